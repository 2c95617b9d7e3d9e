"""Random numbers of data: orders of samples, which are to be the same on every rank.

The random numbers of local tensors differ from rank to rank, and those of global tensors are calls of all ranks. These are neither: they follow
from the seed of ``manual_seed`` and from how many were drawn on this rank."""

import contextlib
import random
import struct

from . import _oflow
from ._oflow import Tensor

_position = [0, 0]


def manual_seed(seed: int) -> None:
    """Seeds the random numbers. Call it on every rank with the same number. Random local tensors then differ from rank to rank; random global
    tensors, and the orders of ``oflow.data``, do not."""
    _oflow.manual_seed(seed)
    _position[:] = [int(seed), 0]


# Seed and number of draws of global tensors, of local tensors, of orders of data.
_STATE = struct.Struct("<6Q")


def get_rng_state() -> Tensor:
    """The state of this rank's random numbers, as bytes: ``set_rng_state`` goes on from it. That of local tensors differs from rank to rank, so
    each rank keeps its own. Checkpoints of ``oflow.checkpoint`` have it already."""
    (of_global, of_local) = _oflow._generators()
    return _oflow.tensor(list(_STATE.pack(*of_global, *of_local, *_position)), dtype=_oflow.uint8)


def set_rng_state(new_state: Tensor) -> None:
    """Random numbers go on from a state of ``get_rng_state``: call it on every rank."""
    if not isinstance(new_state, Tensor) or new_state.dtype != _oflow.uint8 or tuple(new_state.shape) != (_STATE.size,):
        raise TypeError(f"set_rng_state takes what get_rng_state() gave, a uint8 tensor of {_STATE.size} bytes, not {new_state!r}")
    numbers = _STATE.unpack(bytes(new_state.tolist()))
    _oflow._set_generators(numbers[:2], numbers[2:4])
    _position[:] = numbers[4:]


def initial_seed() -> int:
    """The seed of the random numbers of global tensors: that of the last ``manual_seed``."""
    return _oflow._generators()[0][0]


@contextlib.contextmanager
def fork_rng(devices=None, enabled: bool = True, device_type: str = "cuda"):
    """Random numbers that are drawn in this scope leave those behind it as they would be without it. ``enabled=False`` does nothing.

    ``devices`` and ``device_type`` change nothing: random numbers do not depend on the device.
    """
    if not enabled:
        yield
        return
    before = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(before)


def draw() -> int:
    """The next number, of 62 bits."""
    seed, count = _position
    _position[1] = count + 1
    return random.Random(f"oflow.data {seed} {count}").getrandbits(62)


def position() -> list[int]:
    """The seed, and how many numbers were drawn since."""
    return list(_position)


def go_to(position: list[int]) -> None:
    """Draws go on from a position."""
    _position[:] = position
