"""Functions and methods of PyTorch whose results depend on their arguments, or that stand for the program's objects: the table of
functions has what computes."""

from . import _oflow
from ._oflow import Tensor, dtype as _dtype

_unique, _unique_consecutive, _nonzero = (_oflow._function(name) for name in ("unique", "unique_consecutive", "nonzero"))


def _one_or_all(results):
    return results[0] if len(results) == 1 else tuple(results)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct values, smallest first; then, where asked for, the place of each element among them, and how often each occurs.

    With ``dim`` the distinct slices along it. The call waits for the number of values. They are always sorted.
    """
    if dim is None:
        return _one_or_all(_unique(input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts))
    return _one_or_all(_unique(input, dim=dim, return_inverse=return_inverse, return_counts=return_counts))


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The values without those that equal the one before; then, where asked for, the place of each element among them, and the lengths.

    With ``dim`` the slices along it. The call waits for the number of values.
    """
    if dim is None:
        return _one_or_all(_unique_consecutive(input, return_inverse=return_inverse, return_counts=return_counts))
    return _one_or_all(_unique_consecutive(input, dim=dim, return_inverse=return_inverse, return_counts=return_counts))


def nonzero(input, *, as_tuple=False):
    """Where the elements are that are not zero: a row for each, or with ``as_tuple`` a list of positions for each dim."""
    return _oflow.where(input) if as_tuple else _nonzero(input)


def _like(name):
    """The factory of that name, with the device and the leaf that PyTorch's takes."""
    make = _oflow._function(name)

    def like(input, *args, dtype=None, device=None, requires_grad=False, memory_format=None, layout=None, pin_memory=False, **more):
        if dtype is not None:
            more["dtype"] = dtype
        made = make(input, *args, **more)
        if device is not None:
            made = made.to(device)
        return made.requires_grad_() if requires_grad else made

    like.__name__ = like.__qualname__ = name
    like.__doc__ = make.__doc__
    return like


FUNCTIONS = (
    unique,
    unique_consecutive,
    nonzero,
    *map(_like, ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like")),
)


def _placed(x, shape, dtype, device, requires_grad, **more):
    """Where ``new_zeros`` and its kin make a tensor: as x lies, in all ranks alike."""
    if x.is_global and device is None:
        more.update(placement=x.placement, sbp=tuple(_oflow._sbps("B")[0] for _ in x.sbp))
    else:
        more["device"] = x.device if device is None else device
    if len(shape) == 1 and not isinstance(shape[0], int):
        (shape,) = shape
    return dict(shape=tuple(shape), dtype=dtype or x.dtype, requires_grad=requires_grad, **more)


def new_zeros(self, *size, dtype=None, device=None, requires_grad=False):
    """Zeros of this shape, with the dtype and on the device of the tensor; of a global tensor on its placement, B."""
    return _oflow.zeros(**_placed(self, size, dtype, device, requires_grad))


def new_ones(self, *size, dtype=None, device=None, requires_grad=False):
    """Ones of this shape, with the dtype and on the device of the tensor; of a global tensor on its placement, B."""
    return _oflow.ones(**_placed(self, size, dtype, device, requires_grad))


def new_empty(self, *size, dtype=None, device=None, requires_grad=False):
    """Memory of this shape that nobody reads before writing it, with the dtype and on the device of the tensor."""
    return _oflow.empty(**_placed(self, size, dtype, device, requires_grad))


def new_full(self, size, fill_value, dtype=None, device=None, requires_grad=False):
    """One number everywhere, with the dtype and on the device of the tensor; of a global tensor on its placement, B."""
    return _oflow.full(value=fill_value, **_placed(self, (size,), dtype, device, requires_grad))


def new_tensor(self, data, dtype=None, device=None, requires_grad=False):
    """A tensor of values, with the dtype and on the device of the tensor."""
    made = _oflow.tensor(data, dtype=dtype or self.dtype).to(self.device if device is None else device)
    return made.requires_grad_(requires_grad)


def type_as(self, other):
    """The tensor with the dtype of another one; itself where it has it."""
    return self.to(other.dtype)


def type(self, dtype=None):
    """The tensor with another dtype, an object or its name; without one the name of its dtype."""
    if dtype is None:
        return f"oflow.{self.dtype.name}"
    return self.to(dtype if isinstance(dtype, _dtype) else _dtype(str(dtype).rpartition(".")[2]))


def cpu(self):
    """The tensor in the memory of the CPU; itself where it is."""
    return self.to("cpu")


def cuda(self, device=None):
    """The tensor on a GPU: that of the number, or the rank's."""
    if device is None:
        return self.to("cuda")
    return self.to(f"cuda:{device}" if isinstance(device, int) else device)


METHODS = (new_zeros, new_ones, new_empty, new_full, new_tensor, type_as, type, cpu, cuda)


def _data(self):
    """The same data without gradient; what is assigned is copied into the tensor, unrecorded."""
    return self.detach()


def _set_data(self, value):
    with _no_grad():
        self.copy_(value)


def _no_grad():
    from ._modes import no_grad

    return no_grad()


PROPERTIES = {
    "data": property(_data, _set_data),
    "H": property(lambda self: self.mH if self.ndim == 2 else _oflow.adjoint(self), doc="The conjugate transpose of a matrix."),
    "is_cuda": property(lambda self: self.device.type == "cuda", doc="Whether it is on a GPU."),
    "itemsize": property(lambda self: self.element_size(), doc="Bytes of an element."),
    "nbytes": property(lambda self: self.numel() * self.element_size(), doc="Bytes of all elements."),
}


def add_to(names):
    """Puts the functions into a module's names, and the methods and properties into the class of tensors."""
    for function in FUNCTIONS:
        function.__module__ = "oflow"
        names[function.__name__] = function
        setattr(Tensor, function.__name__, function)
    for method in METHODS:
        setattr(Tensor, method.__name__, method)
    for name, made in PROPERTIES.items():
        setattr(Tensor, name, made)
