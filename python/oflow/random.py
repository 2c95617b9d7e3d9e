"""The random numbers of this rank, with the names of ``torch.random``."""

from ._seeds import fork_rng, get_rng_state, initial_seed, manual_seed, set_rng_state

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "set_rng_state"]
