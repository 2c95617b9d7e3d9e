"""ZeRO, and data parallelism of local tensors."""

from typing import TypeVar

import oflow

from .. import _oflow
from .._oflow import Tensor
from .module import Module
from .parameter import Parameter

_M = TypeVar("_M", bound=Module)


def zero(module: _M, stage: int, axis="dp", min_elements=1024) -> _M:
    """Divides what a module and its optimizer hold over the mesh axis that splits the batch (ZeRO), and returns the module.

    Stage 1 divides the states of optimizers, 2 gradients too, 3 parameters too; 0 makes all whole again. Calls that read a parameter
    get it whole, so the model computes what it computed before. Parameters of fewer than ``min_elements`` elements stay whole. Call it
    last, after ``to_global``, and make optimizers afterwards.
    """
    slots = list(module._slots("_parameters", True))
    names = [dotted for _, _, dotted in slots]
    made = _oflow._zero(names, [owner._parameters[name] for owner, name, _ in slots], stage, str(axis), min_elements)
    done = {}
    for (owner, name, _), new in zip(slots, made):
        old = owner._parameters[name]
        if id(old) not in done:
            done[id(old)] = old, old if new is None else Tensor.__new__(Parameter, new)
        owner._parameters[name] = done[id(old)][1]
    return module


class Replicas:
    """Data parallelism of a module of local tensors (PyTorch's ``DistributedDataParallel``).

    Gives the module the parameters and buffers of the first rank. After ``backward`` call ``reduce_gradients()`` on every rank: each
    gradient becomes the mean over the ranks. A rank that has no gradient of a parameter counts as zero.
    """

    def __init__(self, module, placement=None, bucket_bytes=25 << 20):
        self.module = module
        named = [*module.named_parameters(), *module.named_buffers()]
        names, tensors = [name for name, _ in named], [tensor for _, tensor in named]
        placement = oflow.placement.all("cpu") if placement is None else placement
        self._inner = _oflow._Replicas(names, tensors, placement, bucket_bytes)

    def __call__(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def reduce_gradients(self) -> list[str]:
        """Makes each gradient the mean over the ranks. Returns the names of the parameters that have none on any rank, whose gradients
        stay None."""
        named = list(self.module.named_parameters())
        return self._inner.reduce_gradients([name for name, _ in named], [p for _, p in named])
