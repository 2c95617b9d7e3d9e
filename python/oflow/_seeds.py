"""Random numbers of data: orders of samples, which are to be the same on every rank.

The random numbers of local tensors differ from rank to rank, and those of global tensors are calls of all ranks. These are neither: they follow
from the seed of ``manual_seed`` and from how many were drawn on this rank."""

import random

from . import _oflow

_position = [0, 0]


def manual_seed(seed: int) -> None:
    """Seeds the random numbers. Call it on every rank with the same number. Random local tensors then differ from rank to rank; random global
    tensors, and the orders of ``oflow.data``, do not."""
    _oflow.manual_seed(seed)
    _position[:] = [int(seed), 0]


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
