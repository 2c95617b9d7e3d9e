"""Functions and methods of PyTorch whose results depend on their arguments, or that stand for the program's objects: the table of
functions has what computes."""

from . import _oflow
from . import _elsewhere, _numbers, _numpy
from . import fft as _fft
from ._oflow import Tensor, dtype as _dtype

_unique, _unique_consecutive, _nonzero, _broadcast_shapes, _histogramdd = (
    _oflow._function(name) for name in ("unique", "unique_consecutive", "nonzero", "broadcast_shapes", "histogramdd")
)
_clone = Tensor.clone


def _one_or_all(results):
    return results[0] if len(results) == 1 else tuple(results)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim: int | None = None) -> Tensor:
    """The distinct values, smallest first; then, where asked for, the place of each element among them, and how often each occurs.

    With ``dim`` the distinct slices along it. The call waits for the number of values. They are always sorted.
    """
    if dim is None:
        return _one_or_all(_unique(input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts))
    return _one_or_all(_unique(input, dim=dim, return_inverse=return_inverse, return_counts=return_counts))


def unique_consecutive(input, return_inverse=False, return_counts=False, dim: int | None = None) -> Tensor:
    """The values without those that equal the one before; then, where asked for, the place of each element among them, and the lengths.

    With ``dim`` the slices along it. The call waits for the number of values.
    """
    if dim is None:
        return _one_or_all(_unique_consecutive(input, return_inverse=return_inverse, return_counts=return_counts))
    return _one_or_all(_unique_consecutive(input, dim=dim, return_inverse=return_inverse, return_counts=return_counts))


def nonzero(input, *, out=None, as_tuple=False) -> Tensor:
    """Where the elements are that are not zero: a row for each, or with ``as_tuple`` a list of positions for each dim."""
    return _oflow.where(input) if as_tuple else _nonzero(input, out=out)


def broadcast_shapes(*shapes) -> tuple[int, ...]:
    """The shape to which tensors of these shapes broadcast. A number is a shape of one dim."""
    return tuple(_broadcast_shapes([(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]))


def clone(input, *, memory_format=None) -> Tensor:
    """A copy of a tensor, through which gradients pass."""
    return _clone(input)


def histogramdd(input, bins, range=None, weight=None, density=False) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The histogram of points, the rows of ``input``, in boxes, and the bounds of the intervals of each column.

    ``bins`` is a number of equal intervals, one for each column, or for each column the bounds of its intervals. ``range`` has the lowest
    and the highest bound of each column; without it they are read.
    """
    if not isinstance(bins, int) and any(isinstance(b, Tensor) for b in bins):
        found = _histogramdd(input, list(bins), weight=weight, density=density)
    else:
        bins = [bins] if isinstance(bins, int) else list(bins)
        found = _histogramdd(input, bins, range=[float(v) for v in range or ()], weight=weight, density=density)
    return found[0], tuple(found[1:])


def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None, return_complex=None) -> Tensor:
    """The Fourier transforms of pieces of ``n_fft`` samples of a signal, as ``[.., frequency, piece]``.

    With ``return_complex=False`` a last dim of 2 has the real and the imaginary parts.
    """
    given = dict(hop_length=hop_length, win_length=win_length, window=window, center=center, pad_mode=pad_mode, normalized=normalized)
    found = _fft.stft(input, n_fft, onesided=onesided, **given)
    return _oflow.view_as_real(found) if return_complex is False else found


def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, return_complex=False) -> Tensor:
    """The signal of which these are the transforms of pieces: the inverse of ``stft``."""
    given = dict(hop_length=hop_length, win_length=win_length, window=window, center=center, normalized=normalized, length=length)
    if return_complex:
        if onesided:
            raise ValueError("istft: a one-sided transform is of a real signal: leave `return_complex` out, or give `onesided=False`")
        raise NotImplementedError("istft: signals are real here: give `return_complex=False`")
    return _fft.istft(input, n_fft, onesided=onesided, **given)


def is_tensor(obj) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


def as_tensor(data, dtype=None, device=None) -> Tensor:
    """A tensor of values, or of the object that is one: itself where dtype and device are as asked for."""
    made = data if isinstance(data, Tensor) else _oflow.tensor(data, dtype=dtype)
    made = made if dtype is None else made.to(dtype)
    return made if device is None else made.to(device)


def get_default_dtype() -> _dtype:
    """The dtype of tensors made of floats without a dtype: float32."""
    return _oflow.float32


def set_default_dtype(d):
    """Accepts float32, which is the dtype of tensors made of floats without a dtype.

    Raises:
        NotImplementedError: for other dtypes; give ``dtype=`` where tensors are made.
    """
    if (d if isinstance(d, _dtype) else _dtype(d)) != _oflow.float32:
        raise NotImplementedError(f"the default dtype is float32, it cannot be {d}: give `dtype=` where tensors are made")


def _like(name):
    """The factory of that name, with the device and the leaf that PyTorch's takes."""
    make = _oflow._function(name)

    def like(input, *args, dtype=None, device=None, requires_grad=False, memory_format=None, layout=None, pin_memory=False, **more) -> Tensor:
        if dtype is not None:
            more["dtype"] = dtype
        made = make(input, *args, **more)
        if device is not None:
            made = made.to(device)
        return made.requires_grad_() if requires_grad else made

    like.__name__ = like.__qualname__ = name
    like.__doc__ = make.__doc__
    return like


# Functions that are no methods.
OF_THE_MODULE = (broadcast_shapes, is_tensor, as_tensor, get_default_dtype, set_default_dtype)

FUNCTIONS = (
    unique,
    unique_consecutive,
    nonzero,
    clone,
    histogramdd,
    stft,
    istft,
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


def fill_diagonal_(self, fill_value, wrap=False):
    """A number on the main diagonal, in place. With ``wrap`` a matrix of more rows than columns has it again below."""
    shape = self.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise ValueError(f"fill_diagonal_: expected 2 dims, or dims of one size, got {tuple(shape)}")
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    columns = shape[-1]
    end = self.numel() if wrap or len(shape) > 2 else min(self.numel(), columns * columns)
    filled = _oflow.index_put(self.reshape(-1), (slice(0, end, sum(strides)),), fill_value) if end else self
    return self.copy_(filled.reshape(tuple(shape)))


def random_(self, *bounds, generator=None, **named):
    """Whole numbers, in place: from 0, or the first bound, up to the last one, which does not occur. Without bounds as many as the dtype
    has, of floats those that it has exactly."""
    low, high = named.pop("from", None), named.pop("to", None)
    if named or len(bounds) > 2 or (bounds and (low is not None or high is not None)):
        raise TypeError("random_: expected random_(), random_(to) or random_(from, to)")
    if bounds:
        low, high = (bounds[0], bounds[1]) if len(bounds) == 2 else (0, bounds[0])
    if high is None:
        name = self.dtype.name
        high = _numbers.iinfo(self.dtype).max if name in _numbers._INTEGERS else 2 if name == "bool" else int(2 / _numbers.finfo(self.dtype).eps)
    given = _placed(self, (tuple(self.shape),), self.dtype, None, False)
    given.pop("requires_grad")
    return self.copy_(_oflow.randint(low or 0, high, generator=generator, **given))


def narrow_copy(self, dim, start, length):
    """A copy of ``length`` elements of a dim from ``start`` on."""
    return self.narrow(dim, start, length).clone()


def pin_memory(self):
    """The tensor: memory of the CPU is copied to a GPU without being pinned."""
    return self


def get_device(self):
    """The number of the GPU that the tensor is on, -1 on the CPU."""
    return 0 if self.device.type == "cuda" else -1


def apply_(self, callable):
    """A function of Python of each element, in place: slow, on this process alone."""
    values = self.detach().flatten().tolist()
    made = _oflow.tensor([callable(value) for value in values], dtype=self.dtype).reshape(tuple(self.shape))
    return self.copy_(made.to(self.device))


def record_stream(self, stream):
    """Nothing is to be said: memory is kept until every stream that uses it is done."""


def to_dense(self, dtype=None):
    """The tensor itself, in that dtype: all tensors are dense."""
    return self if dtype is None else self.to(dtype)


METHODS = (
    *(apply_, record_stream, to_dense),
    *(new_zeros, new_ones, new_empty, new_full, new_tensor, type_as, type, cpu, cuda),
    *(fill_diagonal_, random_, narrow_copy, pin_memory, get_device),
)


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
    "is_quantized": property(lambda self: self.dtype.name.startswith(("qint", "quint")), doc="Whether its dtype is quantised."),
    "is_sparse": property(lambda self: False, doc="False: all tensors are dense."),
    "is_cpu": property(lambda self: self.device.type == "cpu", doc="Whether it is in the memory of the CPU."),
    "itemsize": property(lambda self: self.element_size(), doc="Bytes of an element."),
    "nbytes": property(lambda self: self.numel() * self.element_size(), doc="Bytes of all elements."),
}


def add_to(names):
    """Puts the functions into a module's names, and the methods and properties into the class of tensors."""
    for function in FUNCTIONS:
        function.__module__ = "oflow"
        names[function.__name__] = function
        setattr(Tensor, function.__name__, function)
    for function in OF_THE_MODULE:
        function.__module__ = "oflow"
        names[function.__name__] = function
    for method in (*METHODS, *_numpy.METHODS):
        setattr(Tensor, method.__name__, method)
    for name, made in PROPERTIES.items():
        setattr(Tensor, name, made)
    Tensor.__getattr__ = _elsewhere.of_tensor
