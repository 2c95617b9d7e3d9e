# Made by `python python/stubs` from the source beside it; do not edit.

from ._oflow import Sbp as Sbp

broadcast: Sbp
partial_sum: Sbp
partial_max: Sbp
partial_min: Sbp
def split(dim: int) -> Sbp: ...
S = split
B = broadcast
P = partial_sum
