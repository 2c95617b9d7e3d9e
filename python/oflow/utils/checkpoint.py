"""Activation checkpointing."""

from collections.abc import Callable
from typing import Any, TypeVar

from .._modes import _Mode

__all__ = ["checkpoint", "checkpoint_sequential"]

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


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs) -> Any:
    """Calls the modules of a ``Sequential``, or functions of a list, one after another, in so many parts; each but the last keeps only its
    input for backward, as by ``checkpoint``."""
    functions = list(functions)
    if isinstance(segments, bool) or not isinstance(segments, int) or not 1 <= segments <= max(len(functions), 1):
        raise ValueError(f"the number of segments is from 1 to {len(functions)}, that of the functions, not {segments!r}")
    size = len(functions) // segments

    def run(part):
        def called(x):
            for function in part:
                x = function(x)
            return x

        return called

    for n in range(segments - 1):
        input = checkpoint(run(functions[n * size : (n + 1) * size]), input, use_reentrant=use_reentrant, **kwargs)
    return run(functions[(segments - 1) * size :])(input)
