# Made by `python python/stubs` from the source beside it; do not edit.

from ._seeds import (
    fork_rng as fork_rng, get_rng_state as get_rng_state, initial_seed as initial_seed, manual_seed as manual_seed,
    set_rng_state as set_rng_state,
)
