"""Activation checkpointing."""

from collections.abc import Callable
from typing import TypeVar

from .._modes import _Mode

__all__ = ["checkpoint"]

_T = TypeVar("_T")


class _recompute(_Mode):
    """Calls keep nothing for backward that calls inside have made; backward runs them again."""

    _name = "recompute"


def checkpoint(function: Callable[..., _T], *args, use_reentrant: bool | None = None, preserve_rng_state=True, **kwargs) -> _T:
    """Calls ``function`` and keeps none of the values inside for backward, which runs its calls once more.

    Gradients are those of a plain call, bit for bit, of inputs and of captured parameters alike. The calls of ops run again and not
    ``function``, so random numbers, ``autocast`` and running statistics are as they were: ``preserve_rng_state=False`` changes nothing, and
    ``use_reentrant=True`` is not possible. Values that ``function`` gets from outside, also from NumPy, stay in memory.
    """
    if use_reentrant:
        raise ValueError("checkpoint runs the calls of the function again, not the function: use_reentrant is False or None")
    with _recompute():
        return function(*args, **kwargs)
