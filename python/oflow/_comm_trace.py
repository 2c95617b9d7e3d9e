"""Records of communication, and requests for layouts."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from . import _oflow

_T = TypeVar("_T")


class CommRecord(NamedTuple):
    """What was communicated: a tensor was brought into another layout, or an op exchanged boxes of one."""

    op: str
    """The op that needed it; ``gradient`` for the gradient of a leaf, ``to_global`` or ``to_vec`` where the program asked for it."""
    file: str
    line: int
    scope: str
    backward: bool
    plan: str
    """What was done, with layouts and steps."""
    bytes: int
    """Bytes that all ranks together sent."""
    links: list[tuple[str, int]]
    """The same by kind of link: ``[("SameHost", 4096)]``. Empty for an exchange that no change of layout stands behind."""
    predicted: float
    """Seconds, by the cost model; 0 for such an exchange."""
    measured: float | None
    """Seconds of this rank's part; None if it failed."""


def with_sbp(sbp, function: Callable[[], _T]) -> _T:
    """Calls ``function()`` and returns its result; the calls of ops inside give their results in this layout.

    It holds for functions called on global tensors inside, so wrap one call at a time: ``with_sbp(split(1), lambda: x @ w)``.
    """
    return _oflow._with_sbp(sbp, False, function)


def with_grad_sbp(sbp, function: Callable[[], _T]) -> _T:
    """As ``with_sbp``, for the gradients of the results: in backward they are brought into this layout."""
    return _oflow._with_sbp(sbp, True, function)
