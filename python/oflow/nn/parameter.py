"""Parameters of modules."""

from .._core import as_leaf, named
from .._oflow import Tensor


class Parameter(Tensor):
    """A tensor that a module trains: assigned to an attribute of a module it is among its ``parameters()``.

    ``Parameter(data)`` shares the values of ``data`` and is a leaf of its own, as in PyTorch. Attributes of any name may be set; copies
    and pickles have them.
    """

    def __new__(cls, data, requires_grad=True):
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter takes a tensor, not {named(data)}")
        return as_leaf(cls, data, bool(requires_grad))

    def __repr__(self):
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that a module keeps and does not train: assigned to an attribute of a module it is registered as by ``register_buffer``."""

    persistent: bool

    def __new__(cls, data, *, persistent=True):
        if not isinstance(data, Tensor):
            raise TypeError(f"Buffer takes a tensor, not {named(data)}")
        made = as_leaf(cls, data, False)
        made.persistent = bool(persistent)
        return made
