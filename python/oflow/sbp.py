"""How a tensor lies along one axis of a mesh.

``split(dim)``: each rank has a part of a dim. ``broadcast``: each rank has all. ``partial_sum`` (``partial_max``, ``partial_min``): the
value is the sum (maximum, minimum) over the ranks. On a mesh of several axes an SBP for each axis stands in a tuple, outermost first.
"""

from ._oflow import Sbp

broadcast = Sbp("B")
partial_sum = Sbp("P(sum)")
partial_max = Sbp("P(max)")
partial_min = Sbp("P(min)")


def split(dim: int) -> Sbp:
    """Each rank has a part of this dim."""
    if not isinstance(dim, int) or isinstance(dim, bool) or dim < 0:
        raise ValueError(f"split takes a dim from 0 on, not {dim!r}")
    return Sbp(f"S({dim})")


S = split
B = broadcast
P = partial_sum

__all__ = ["Sbp", "split", "broadcast", "partial_sum", "partial_max", "partial_min", "S", "B", "P"]
