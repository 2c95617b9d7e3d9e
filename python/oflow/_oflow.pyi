# Made by `cargo xtask codegen` from the texts of the functions; do not edit.

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias, TypeVar, overload

Number: TypeAlias = builtins.int | builtins.float | builtins.bool | builtins.complex
_T = TypeVar("_T", bound="Tensor")

__version__: str

class dtype:
    """The type of the elements of a tensor."""

    def __init__(self, of: Any) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def itemsize(self) -> builtins.int: ...
    @property
    def is_floating_point(self) -> builtins.bool: ...
    @property
    def is_complex(self) -> builtins.bool: ...

bool: dtype
uint8: dtype
byte: dtype
int8: dtype
char: dtype
int16: dtype
short: dtype
uint16: dtype
uint32: dtype
int32: dtype
int: dtype
int64: dtype
long: dtype
float16: dtype
half: dtype
bfloat16: dtype
float8_e4m3fn: dtype
float8_e5m2: dtype
complex64: dtype
cfloat: dtype
complex128: dtype
cdouble: dtype
float32: dtype
float: dtype
float64: dtype
double: dtype

class device:
    """A kind of device."""

    def __init__(self, of: device | str) -> None: ...
    @property
    def type(self) -> str: ...

class placement:
    """A kind of device and a mesh of ranks."""

    def __init__(self, type: device | str, ranks: Any, mesh: Mapping[str, builtins.int] | None = None) -> None: ...
    @staticmethod
    def all(type: device | str) -> placement: ...
    def mesh(self, **axes: builtins.int) -> placement: ...
    def slice(self, axis: str | builtins.int, index: builtins.int) -> placement: ...
    def on(self, type: device | str) -> placement: ...
    @property
    def ranks(self) -> list[builtins.int]: ...
    @property
    def shape(self) -> tuple[builtins.int, ...]: ...
    @property
    def names(self) -> tuple[str | None, ...]: ...
    @property
    def type(self) -> str: ...
    def __len__(self) -> builtins.int: ...
    def _repr_html_(self) -> str: ...

class Sbp:
    """How a tensor lies along one axis of a mesh."""

    def __init__(self, text: str) -> None: ...
    def __call__(self) -> Sbp: ...
    @property
    def dim(self) -> builtins.int | None: ...

class Generator:
    """A stream of random numbers of its own."""

    def __init__(self, seed: builtins.int = 0) -> None: ...
    def manual_seed(self, seed: builtins.int) -> Generator: ...
    def initial_seed(self) -> builtins.int: ...
    def get_state(self) -> tuple[builtins.int, builtins.int]: ...
    def set_state(self, state: tuple[builtins.int, builtins.int]) -> None: ...

class OpCall:
    """An op with base attributes, made once and called many times."""

    def __init__(self, op: str, /, **attrs: Any) -> None: ...
    @property
    def op(self) -> str: ...
    @property
    def attrs(self) -> dict[str, Any]: ...
    def __call__(self, *inputs: Tensor | Sequence[Tensor] | None, **attrs: Any) -> Any: ...

class WatchedCall:
    """A call of an op, as the hooks of `watch_calls` see it."""

    @property
    def op(self) -> str: ...
    @property
    def inputs(self) -> tuple[Tensor | None, ...]: ...
    @property
    def attrs(self) -> dict[str, Any]: ...
    @property
    def in_place(self) -> builtins.bool: ...
    @property
    def site(self) -> tuple[str, builtins.int]: ...

class HookHandle:
    """Removes its hook when `remove` is called."""

    def remove(self) -> None: ...
    def __enter__(self) -> HookHandle: ...
    def __exit__(self, *args: Any) -> None: ...

_dtype: TypeAlias = dtype
_device: TypeAlias = device
_placement: TypeAlias = placement
Index: TypeAlias = Any

class memory_format:
    """How elements lie in memory, as PyTorch's programs name it. It has no effect: tensors are row-major."""

contiguous_format: memory_format
preserve_format: memory_format
channels_last: memory_format
channels_last_3d: memory_format
strided: memory_format

class Tensor:
    """A tensor: a local tensor on one device, or a global tensor whose shards are on the ranks of a placement."""

    def __new__(cls: type[_T], data: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> _T: ...
    @property
    def shape(self) -> tuple[builtins.int, ...]: ...
    @property
    def ndim(self) -> builtins.int: ...
    @property
    def dtype(self) -> _dtype: ...
    @property
    def device(self) -> _device: ...
    @property
    def is_global(self) -> builtins.bool: ...
    @property
    def is_local(self) -> builtins.bool: ...
    @property
    def placement(self) -> _placement: ...
    @property
    def sbp(self) -> tuple[Sbp, ...]: ...
    @property
    def requires_grad(self) -> builtins.bool: ...
    @requires_grad.setter
    def requires_grad(self, on: builtins.bool) -> None: ...
    def requires_grad_(self: _T, requires_grad: builtins.bool = True) -> _T: ...
    @property
    def is_leaf(self) -> builtins.bool: ...
    @property
    def is_view(self) -> builtins.bool: ...
    @property
    def grad_fn(self) -> str | None: ...
    @property
    def grad(self) -> Tensor | Any: ...
    @grad.setter
    def grad(self, grad: Tensor | None) -> None: ...
    @property
    def _version(self) -> builtins.int: ...
    def data_ptr(self) -> builtins.int: ...
    def stride(self) -> tuple[builtins.int, ...]: ...
    def detach(self) -> Tensor: ...
    def clone(self) -> Tensor: ...
    def to(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def bool(self, memory_format: memory_format | None = None) -> Tensor: ...
    def byte(self, memory_format: memory_format | None = None) -> Tensor: ...
    def char(self, memory_format: memory_format | None = None) -> Tensor: ...
    def short(self, memory_format: memory_format | None = None) -> Tensor: ...
    def int(self, memory_format: memory_format | None = None) -> Tensor: ...
    def long(self, memory_format: memory_format | None = None) -> Tensor: ...
    def half(self, memory_format: memory_format | None = None) -> Tensor: ...
    def bfloat16(self, memory_format: memory_format | None = None) -> Tensor: ...
    def float(self, memory_format: memory_format | None = None) -> Tensor: ...
    def double(self, memory_format: memory_format | None = None) -> Tensor: ...
    def cfloat(self, memory_format: memory_format | None = None) -> Tensor: ...
    def cdouble(self, memory_format: memory_format | None = None) -> Tensor: ...
    @property
    def data(self) -> Tensor: ...
    @data.setter
    def data(self, value: Tensor) -> None: ...
    @property
    def H(self) -> Tensor: ...
    @property
    def is_cuda(self) -> builtins.bool: ...
    @property
    def itemsize(self) -> builtins.int: ...
    @property
    def nbytes(self) -> builtins.int: ...
    def apply_(self, callable: Callable[[Any], Any]) -> Tensor: ...
    def record_stream(self, stream: object) -> None: ...
    def to_dense(self, dtype: _dtype | None = None) -> Tensor: ...
    @property
    def is_quantized(self) -> builtins.bool: ...
    @property
    def is_sparse(self) -> builtins.bool: ...
    def fill_diagonal_(self, fill_value: Number, wrap: builtins.bool = False) -> Tensor: ...
    def random_(self, *bounds: builtins.int, generator: Generator | None = None) -> Tensor: ...
    def narrow_copy(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor: ...
    def pin_memory(self) -> Tensor: ...
    def get_device(self) -> builtins.int: ...
    @property
    def is_cpu(self) -> builtins.bool: ...
    def stft(self, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: Tensor | None = None, center: builtins.bool = True, pad_mode: str = "reflect", normalized: builtins.bool = False, onesided: builtins.bool | None = None, return_complex: builtins.bool | None = None) -> Tensor: ...
    def istft(self, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: Tensor | None = None, center: builtins.bool = True, normalized: builtins.bool = False, onesided: builtins.bool | None = None, length: builtins.int | None = None, return_complex: builtins.bool = False) -> Tensor: ...
    def new_zeros(self, *size: Any, dtype: _dtype | None = None, device: _device | str | None = None, requires_grad: builtins.bool = False) -> Tensor: ...
    def new_ones(self, *size: Any, dtype: _dtype | None = None, device: _device | str | None = None, requires_grad: builtins.bool = False) -> Tensor: ...
    def new_empty(self, *size: Any, dtype: _dtype | None = None, device: _device | str | None = None, requires_grad: builtins.bool = False) -> Tensor: ...
    def new_full(self, size: Sequence[builtins.int], fill_value: Number, dtype: _dtype | None = None, device: _device | str | None = None, requires_grad: builtins.bool = False) -> Tensor: ...
    def new_tensor(self, data: Any, dtype: _dtype | None = None, device: _device | str | None = None, requires_grad: builtins.bool = False) -> Tensor: ...
    def type_as(self, other: Tensor) -> Tensor: ...
    def type(self, dtype: _dtype | str | None = None) -> Any: ...
    def cpu(self) -> Tensor: ...
    def cuda(self, device: _device | builtins.int | str | None = None) -> Tensor: ...
    @property
    def real(self) -> Tensor: ...
    @property
    def imag(self) -> Tensor: ...
    @property
    def mH(self) -> Tensor: ...
    def __complex__(self) -> builtins.complex: ...
    @property
    def mT(self) -> Tensor: ...
    @property
    def T(self) -> Tensor: ...
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None: ...
    def retain_grad(self) -> None: ...
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle: ...
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> HookHandle: ...
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def numpy(self, *, force: builtins.bool = False) -> Any: ...
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> Any: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[builtins.int, builtins.int] | None = None,
        dl_device: tuple[builtins.int, builtins.int] | None = None,
        copy: builtins.bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]: ...
    def _repr_html_(self) -> str: ...
    def __len__(self) -> builtins.int: ...
    def __bool__(self) -> builtins.bool: ...
    def __float__(self) -> builtins.float: ...
    def __int__(self) -> builtins.int: ...
    def __index__(self) -> builtins.int: ...
    def __contains__(self, value: Any) -> builtins.bool: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def where(self, condition: Tensor, other: Tensor) -> Tensor: ...
    def __getitem__(self, index: Index) -> Tensor: ...
    def __setitem__(self, index: Index, value: Any) -> None: ...
    def __add__(self, other: Tensor | Number) -> Tensor: ...
    def __radd__(self, other: Number) -> Tensor: ...
    def __sub__(self, other: Tensor | Number) -> Tensor: ...
    def __rsub__(self, other: Number) -> Tensor: ...
    def __mul__(self, other: Tensor | Number) -> Tensor: ...
    def __rmul__(self, other: Number) -> Tensor: ...
    def __truediv__(self, other: Tensor | Number) -> Tensor: ...
    def __rtruediv__(self, other: Number) -> Tensor: ...
    def __floordiv__(self, other: Tensor | Number) -> Tensor: ...
    def __rfloordiv__(self, other: Number) -> Tensor: ...
    def __mod__(self, other: Tensor | Number) -> Tensor: ...
    def __rmod__(self, other: Number) -> Tensor: ...
    def __pow__(self, other: Tensor | Number) -> Tensor: ...
    def __rpow__(self, other: Number) -> Tensor: ...
    def __matmul__(self, other: Tensor) -> Tensor: ...
    def __and__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __rand__(self, other: builtins.int) -> Tensor: ...
    def __or__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __ror__(self, other: builtins.int) -> Tensor: ...
    def __xor__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __rxor__(self, other: builtins.int) -> Tensor: ...
    def __lshift__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __rlshift__(self, other: builtins.int) -> Tensor: ...
    def __rshift__(self, other: Tensor | builtins.int) -> Tensor: ...
    def __rrshift__(self, other: builtins.int) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __lt__(self, other: Tensor | Number) -> Tensor: ...
    def __le__(self, other: Tensor | Number) -> Tensor: ...
    def __gt__(self, other: Tensor | Number) -> Tensor: ...
    def __ge__(self, other: Tensor | Number) -> Tensor: ...
    def __hash__(self) -> builtins.int: ...
    def abs(self) -> Tensor:
        """|x|; of complex numbers a real number."""
    def abs_(self) -> Tensor:
        """`abs` in place: the result is written over the first argument."""
    def absolute(self) -> Tensor:
        """The same as `abs`."""
    def absolute_(self) -> Tensor:
        """The same as `abs_`."""
    def acos(self) -> Tensor:
        """The inverse cosine, in radians from 0 to π; NaN outside -1 to 1."""
    def acos_(self) -> Tensor:
        """`acos` in place: the result is written over the first argument."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine; NaN below 1."""
    def acosh_(self) -> Tensor:
        """`acosh` in place: the result is written over the first argument."""
    def adamw_step(self, grad: Tensor, m: Tensor, v: Tensor, lr: builtins.float, beta1: builtins.float = 0.9, beta2: builtins.float = 0.999, eps: builtins.float = 1e-8, weight_decay: builtins.float = 0.01, *, step: builtins.int) -> None:
        """One step of AdamW (Loshchilov and Hutter), PyTorch's formula."""
    @overload
    def adaptive_avg_pool(self, size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The average of each window of the last dims."""
    @overload
    def adaptive_avg_pool(self, *size: builtins.int) -> Tensor: ...
    @overload
    def adaptive_avg_pool1d(self, output_size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The averages of `output_size` windows of about one size, which cover the last dim."""
    @overload
    def adaptive_avg_pool1d(self, *output_size: builtins.int) -> Tensor: ...
    @overload
    def adaptive_avg_pool2d(self, output_size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """As `adaptive_avg_pool1d` for 2 spatial dims."""
    @overload
    def adaptive_avg_pool2d(self, *output_size: builtins.int) -> Tensor: ...
    @overload
    def adaptive_avg_pool3d(self, output_size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """As `adaptive_avg_pool1d` for 3 spatial dims."""
    @overload
    def adaptive_avg_pool3d(self, *output_size: builtins.int) -> Tensor: ...
    @overload
    def adaptive_avg_pool_grad(self, size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The gradient of avg_pool: each window's gradient, divided among its elements."""
    @overload
    def adaptive_avg_pool_grad(self, *size: builtins.int) -> Tensor: ...
    @overload
    def adaptive_max_pool(self, size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The largest element of each window of the last dims; NaN where it has one."""
    @overload
    def adaptive_max_pool(self, *size: builtins.int) -> Tensor: ...
    @overload
    def adaptive_max_pool1d(self, output_size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The largest elements of `output_size` windows of about one size, which cover the last dim."""
    @overload
    def adaptive_max_pool1d(self, *output_size: builtins.int) -> Tensor: ...
    @overload
    def adaptive_max_pool1d_with_indices(self, output_size: builtins.int | Sequence[builtins.int]) -> _ValuesIndices:
        """`adaptive_max_pool1d`, and where the elements are, counted over the spatial dims."""
    @overload
    def adaptive_max_pool1d_with_indices(self, *output_size: builtins.int) -> _ValuesIndices: ...
    @overload
    def adaptive_max_pool2d(self, output_size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """As `adaptive_max_pool1d` for 2 spatial dims."""
    @overload
    def adaptive_max_pool2d(self, *output_size: builtins.int) -> Tensor: ...
    @overload
    def adaptive_max_pool2d_with_indices(self, output_size: builtins.int | Sequence[builtins.int]) -> _ValuesIndices:
        """`adaptive_max_pool2d`, and where the elements are, counted over the spatial dims."""
    @overload
    def adaptive_max_pool2d_with_indices(self, *output_size: builtins.int) -> _ValuesIndices: ...
    @overload
    def adaptive_max_pool3d(self, output_size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """As `adaptive_max_pool1d` for 3 spatial dims."""
    @overload
    def adaptive_max_pool3d(self, *output_size: builtins.int) -> Tensor: ...
    @overload
    def adaptive_max_pool3d_with_indices(self, output_size: builtins.int | Sequence[builtins.int]) -> _ValuesIndices:
        """`adaptive_max_pool3d`, and where the elements are, counted over the spatial dims."""
    @overload
    def adaptive_max_pool3d_with_indices(self, *output_size: builtins.int) -> _ValuesIndices: ...
    @overload
    def adaptive_max_pool_index(self, size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Where the largest element of each window is, counted over the pooled dims."""
    @overload
    def adaptive_max_pool_index(self, *size: builtins.int) -> Tensor: ...
    @overload
    def add(self, b: Tensor) -> Tensor:
        """a + b."""
    @overload
    def add(self, other: Tensor) -> Tensor: ...
    @overload
    def add(self, b: Tensor, *, alpha: Number) -> Tensor:
        """a + alpha b."""
    @overload
    def add(self, other: Tensor, *, alpha: Number) -> Tensor: ...
    @overload
    def add(self, s: Number, *, alpha: Number) -> Tensor:
        """x + alpha s."""
    @overload
    def add(self, other: Number, *, alpha: Number) -> Tensor: ...
    @overload
    def add(self, s: Number) -> Tensor:
        """x + s."""
    @overload
    def add(self, other: Number) -> Tensor: ...
    @overload
    def add_(self, b: Tensor) -> Tensor:
        """`add` in place: the result is written over the first argument."""
    @overload
    def add_(self, other: Tensor) -> Tensor: ...
    @overload
    def add_(self, s: Number) -> Tensor:
        """`add` in place: the result is written over the first argument."""
    @overload
    def add_(self, other: Number) -> Tensor: ...
    @overload
    def add_(self, b: Tensor, *, alpha: Number) -> Tensor:
        """a becomes a + `alpha` b, in place."""
    @overload
    def add_(self, other: Tensor, *, alpha: Number) -> Tensor: ...
    @overload
    def add_(self, s: Number, *, alpha: Number) -> Tensor:
        """x becomes x + `alpha` s, in place."""
    @overload
    def add_(self, other: Number, *, alpha: Number) -> Tensor: ...
    def addbmm(self, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`beta` x + `alpha` times the sum of the products of two batches of matrices."""
    def addbmm_(self, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`addbmm` in place: the result is written over the first argument."""
    @overload
    def addcdiv(self, a: Tensor, b: Tensor, *, value: Number = 1) -> Tensor:
        """x + value a / b."""
    @overload
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor: ...
    @overload
    def addcdiv_(self, a: Tensor, b: Tensor, *, value: Number = 1) -> Tensor:
        """`addcdiv` in place: the result is written over the first argument."""
    @overload
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor: ...
    @overload
    def addcmul(self, a: Tensor, b: Tensor, *, value: Number = 1) -> Tensor:
        """x + value a b."""
    @overload
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor: ...
    @overload
    def addcmul_(self, a: Tensor, b: Tensor, *, value: Number = 1) -> Tensor:
        """`addcmul` in place: the result is written over the first argument."""
    @overload
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor: ...
    @overload
    def addmm(self, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`beta` x + `alpha` (a b), a and b matrices; x broadcasts to the product."""
    @overload
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor: ...
    def addmm_(self, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`addmm` in place: the result is written over the first argument."""
    @overload
    def addmv(self, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`beta` x + `alpha` (a b), a a matrix and b a vector."""
    @overload
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor: ...
    def addmv_(self, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`addmv` in place: the result is written over the first argument."""
    def addr(self, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`beta` x + `alpha` times the outer product of two vectors."""
    def addr_(self, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`addr` in place: the result is written over the first argument."""
    def adjoint(self) -> Tensor:
        """The conjugate transpose: the last two dims exchanged, of the conjugates."""
    @overload
    def affine_grid(self, size: builtins.int | Sequence[builtins.int], *, align_corners: builtins.bool = False) -> Tensor:
        """The grid of affine maps `theta` `[batch, 2, 3]`, or `[batch, 3, 4]` for 3 spatial dims, for `grid_sample` to a result of `size` `[batch, channels, spatial dims]`."""
    @overload
    def affine_grid(self, *size: builtins.int, align_corners: builtins.bool = False) -> Tensor: ...
    def airy_ai(self) -> Tensor:
        """The Airy function Ai. It has no gradient."""
    def airy_ai_(self) -> Tensor:
        """`airy_ai` in place: the result is written over the first argument."""
    @overload
    def all(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """True if no element is zero."""
    @overload
    def all(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def allclose(self, y: Tensor, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8, equal_nan: builtins.bool = False) -> builtins.bool:
        """Whether all elements are close, as `isclose` says. On global tensors a collective of the world."""
    @overload
    def allclose(self, other: Tensor, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8, equal_nan: builtins.bool = False) -> builtins.bool: ...
    def alpha_dropout(self, p: builtins.float = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Elements become the negative limit of SELU with probability `p`; then all are scaled and shifted, so that mean 0 and variance 1 stay (Klambauer et al., 2017). With p = 1 all are 0."""
    @overload
    def amax(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """The largest element over dims (none given: all). Over a split dim the result is P(max)."""
    @overload
    def amax(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def amin(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """The smallest element over dims (none given: all). Over a split dim the result is P(min)."""
    @overload
    def amin(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    def aminmax(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> _MinMax:
        """The smallest and the largest element over dims (none given: all)."""
    def angle(self) -> Tensor:
        """The angles of complex numbers, in radians from -π to π; of real ones 0, or π where x is negative."""
    @overload
    def any(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """True if some element is not zero."""
    @overload
    def any(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    def arccos(self) -> Tensor:
        """The same as `acos`."""
    def arccos_(self) -> Tensor:
        """The same as `acos_`."""
    def arccosh(self) -> Tensor:
        """The same as `acosh`."""
    def arccosh_(self) -> Tensor:
        """The same as `acosh_`."""
    def arcsin(self) -> Tensor:
        """The same as `asin`."""
    def arcsin_(self) -> Tensor:
        """The same as `asin_`."""
    def arcsinh(self) -> Tensor:
        """The same as `asinh`."""
    def arcsinh_(self) -> Tensor:
        """The same as `asinh_`."""
    def arctan(self) -> Tensor:
        """The same as `atan`."""
    def arctan2(self, b: Tensor) -> Tensor:
        """The same as `atan2`."""
    def arctan2_(self, b: Tensor) -> Tensor:
        """The same as `atan2_`."""
    def arctan_(self) -> Tensor:
        """The same as `atan_`."""
    def arctanh(self) -> Tensor:
        """The same as `atanh`."""
    def arctanh_(self) -> Tensor:
        """The same as `atanh_`."""
    @overload
    def argmax(self, dim: builtins.int, keepdim: builtins.bool = False) -> Tensor:
        """The i64 index of the largest element along a dim; among equals the first; NaN wins."""
    @overload
    def argmax(self, *, keepdim: builtins.bool = False) -> Tensor:
        """The position of the largest element of all, counted row-major."""
    @overload
    def argmin(self, dim: builtins.int, keepdim: builtins.bool = False) -> Tensor:
        """The i64 index of the smallest element along a dim; among equals the first; NaN wins."""
    @overload
    def argmin(self, *, keepdim: builtins.bool = False) -> Tensor:
        """The position of the smallest element of all, counted row-major."""
    def argsort(self, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False) -> Tensor:
        """The indices that sort each line along `dim`: those of `sort`."""
    def argwhere(self) -> Tensor:
        """The same as `nonzero`."""
    def asin(self) -> Tensor:
        """The inverse sine, in radians from -π/2 to π/2; NaN outside -1 to 1."""
    def asin_(self) -> Tensor:
        """`asin` in place: the result is written over the first argument."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def asinh_(self) -> Tensor:
        """`asinh` in place: the result is written over the first argument."""
    def assign(self, y: Tensor) -> None:
        """x becomes y, in place."""
    def atan(self) -> Tensor:
        """The inverse tangent, in radians from -π/2 to π/2."""
    @overload
    def atan2(self, b: Tensor) -> Tensor:
        """The angle of the point (b, a) seen from the origin, in radians from -π to π."""
    @overload
    def atan2(self, other: Tensor) -> Tensor: ...
    @overload
    def atan2_(self, b: Tensor) -> Tensor:
        """`atan2` in place: the result is written over the first argument."""
    @overload
    def atan2_(self, other: Tensor) -> Tensor: ...
    def atan_(self) -> Tensor:
        """`atan` in place: the result is written over the first argument."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent; NaN outside -1 to 1."""
    def atanh_(self) -> Tensor:
        """`atanh` in place: the result is written over the first argument."""
    def atleast_1d(self) -> Tensor:
        """The tensor, with a dim more if it has none."""
    def atleast_2d(self) -> Tensor:
        """The tensor, with dims of size 1 in front up to two."""
    def atleast_3d(self) -> Tensor:
        """The tensor, with dims of size 1 up to three: around a dim, behind two."""
    def attention(self, k: Tensor, v: Tensor, causal: builtins.bool = False, *, scale: builtins.float | None = None, gather_limit: builtins.int = 268435456) -> Tensor:
        """softmax(scale q kᵀ) v for queries, keys and values of shape `[B, H, T, D]`. With `causal`, query i attends to keys 0..=i only. `scale` is 1 / √D unless given. Memory is linear in T; a derivative of second order takes memory quadratic in T."""
    def attention_grad(self, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, causal: builtins.bool = False, gather_limit: builtins.int = 268435456, *, scale: builtins.float) -> _DqDkDv:
        """Gradients of attention, from its inputs and results."""
    def attention_parts(self, k: Tensor, v: Tensor, parts: builtins.int, causal: builtins.bool = False, *, scale: builtins.float) -> _OutLse:
        """Attention with each of `parts` balanced parts of the keys alone: what ranks that hold such parts compute. A part of which a query sees nothing gives 0, and minus infinity as the logarithm of its sum. Only `out` has a gradient."""
    @overload
    def avg_pool(self, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], count_padding: builtins.bool, divisor: builtins.int | None, size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The average of each window of the last dims."""
    @overload
    def avg_pool(self, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], count_padding: builtins.bool, divisor: builtins.int | None, *size: builtins.int) -> Tensor: ...
    def avg_pool1d(self, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), ceil_mode: builtins.bool = False, count_include_pad: builtins.bool = True) -> Tensor:
        """The average of each window of the last dim. With `count_include_pad` the zeros of the padding count as elements."""
    def avg_pool2d(self, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), ceil_mode: builtins.bool = False, count_include_pad: builtins.bool = True, divisor_override: builtins.int | None = None) -> Tensor:
        """As `avg_pool1d` for 2 spatial dims; `divisor_override` is divided by in place of the number of elements."""
    def avg_pool3d(self, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), ceil_mode: builtins.bool = False, count_include_pad: builtins.bool = True, divisor_override: builtins.int | None = None) -> Tensor:
        """As `avg_pool2d` for 3 spatial dims."""
    @overload
    def avg_pool_grad(self, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], count_padding: builtins.bool, divisor: builtins.int | None, size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The gradient of avg_pool: each window's gradient, divided among its elements."""
    @overload
    def avg_pool_grad(self, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], count_padding: builtins.bool, divisor: builtins.int | None, *size: builtins.int) -> Tensor: ...
    @overload
    def baddbmm(self, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`beta` x + `alpha` (a b), a and b batches of matrices `[B, m, k]` and `[B, k, n]`."""
    @overload
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor: ...
    def baddbmm_(self, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`baddbmm` in place: the result is written over the first argument."""
    def batch_norm(self, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, training: builtins.bool = False, momentum: builtins.float = 0.1, eps: builtins.float = 1e-5) -> Tensor:
        """Batch normalisation: each channel (dim 1 of `[batch, channels, …]`) is normalised to mean 0 and variance 1, multiplied by `weight` and shifted by `bias`. With `training` the mean and the variance are those of x, over the global batch in every layout. Running statistics, if given, are then updated in place: `running_mean` to `(1 - momentum) * running_mean + momentum * mean`, and `running_var` in the same way with the unbiased variance. Without `training`, x is normalised by the running statistics."""
    def batch_norm_grad(self, x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None = None, eps: builtins.float = 1e-5) -> _DxDweightDbias:
        """Gradients of batch_norm_train."""
    def batch_norm_train(self, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-5) -> _YMeanVar:
        """Each channel, dim 1, with mean 0 and variance 1 over all other dims, then scaled and shifted; with mean and variance."""
    def bce_each(self, t: Tensor) -> Tensor:
        """The binary cross entropy of a probability x and a target t."""
    def bce_logits_each(self, t: Tensor) -> Tensor:
        """The binary cross entropy of a logit x and a target t."""
    def bce_logits_weighted_each(self, t: Tensor, w: Tensor) -> Tensor:
        """The binary cross entropy of a logit x and a target t, with the weight w of positive targets."""
    def bernoulli(self, *, generator: Generator | None = None) -> Tensor:
        """For each element 1 with its probability, else 0, in the dtype of the probabilities."""
    def bernoulli_(self, p: builtins.float = 0.5, generator: Generator | None = None) -> Tensor:
        """x becomes 1 with probability `p` and 0 otherwise, in place."""
    def bessel_j0(self) -> Tensor:
        """The Bessel function of the first kind of order 0."""
    def bessel_j0_(self) -> Tensor:
        """`bessel_j0` in place: the result is written over the first argument."""
    def bessel_j1(self) -> Tensor:
        """The Bessel function of the first kind of order 1."""
    def bessel_j1_(self) -> Tensor:
        """`bessel_j1` in place: the result is written over the first argument."""
    def bessel_y0(self) -> Tensor:
        """The Bessel function of the second kind of order 0; NaN below 0."""
    def bessel_y0_(self) -> Tensor:
        """`bessel_y0` in place: the result is written over the first argument."""
    def bessel_y1(self) -> Tensor:
        """The Bessel function of the second kind of order 1; NaN below 0."""
    def bessel_y1_(self) -> Tensor:
        """`bessel_y1` in place: the result is written over the first argument."""
    @overload
    def bilinear(self, x2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """x1ᵀ W x2 + b for each matrix W of `weight` `[out, d1, d2]`: `[.., d1]` and `[.., d2]` give `[.., out]`."""
    @overload
    def bilinear(self, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor: ...
    def binary_cross_entropy(self, target: Tensor, *, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
        """The cross entropy of probabilities x of one of two classes, and targets between 0 and 1."""
    def binary_cross_entropy_with_logits(self, target: Tensor, *, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
        """The same of logits, exact also for large ones. `pos_weight` weighs positive targets."""
    def bincount(self, *, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
        """How often each number from 0 on occurs in a list of integers, at least up to `minlength`; with `weights` the sums of what stands beside each. Counts are i64, sums f32 of f32 and f64 of anything else. The call waits for the greatest number, which decides the length."""
    @overload
    def bitwise_and(self, b: Tensor) -> Tensor:
        """The bits that both have."""
    @overload
    def bitwise_and(self, other: Tensor) -> Tensor: ...
    @overload
    def bitwise_and(self, s: Number) -> Tensor:
        """The bits that both have."""
    @overload
    def bitwise_and(self, other: Number) -> Tensor: ...
    @overload
    def bitwise_and_(self, b: Tensor) -> Tensor:
        """`bitwise_and` in place: the result is written over the first argument."""
    @overload
    def bitwise_and_(self, other: Tensor) -> Tensor: ...
    @overload
    def bitwise_and_(self, s: Number) -> Tensor:
        """`bitwise_and` in place: the result is written over the first argument."""
    @overload
    def bitwise_and_(self, other: Number) -> Tensor: ...
    @overload
    def bitwise_left_shift(self, b: Tensor) -> Tensor:
        """a shifted left by b bits; 0 where b is negative or no bit is left."""
    @overload
    def bitwise_left_shift(self, other: Tensor) -> Tensor: ...
    @overload
    def bitwise_left_shift(self, s: Number) -> Tensor:
        """x shifted left by s bits."""
    @overload
    def bitwise_left_shift(self, other: Number) -> Tensor: ...
    @overload
    def bitwise_left_shift_(self, b: Tensor) -> Tensor:
        """`bitwise_left_shift` in place: the result is written over the first argument."""
    @overload
    def bitwise_left_shift_(self, other: Tensor) -> Tensor: ...
    @overload
    def bitwise_left_shift_(self, s: Number) -> Tensor:
        """`bitwise_left_shift` in place: the result is written over the first argument."""
    @overload
    def bitwise_left_shift_(self, other: Number) -> Tensor: ...
    def bitwise_not(self) -> Tensor:
        """Every bit of an integer turned: -x - 1 of signed ones. A bool is one bit."""
    def bitwise_not_(self) -> Tensor:
        """`bitwise_not` in place: the result is written over the first argument."""
    @overload
    def bitwise_or(self, b: Tensor) -> Tensor:
        """The bits that at least one has."""
    @overload
    def bitwise_or(self, other: Tensor) -> Tensor: ...
    @overload
    def bitwise_or(self, s: Number) -> Tensor:
        """The bits that at least one has."""
    @overload
    def bitwise_or(self, other: Number) -> Tensor: ...
    @overload
    def bitwise_or_(self, b: Tensor) -> Tensor:
        """`bitwise_or` in place: the result is written over the first argument."""
    @overload
    def bitwise_or_(self, other: Tensor) -> Tensor: ...
    @overload
    def bitwise_or_(self, s: Number) -> Tensor:
        """`bitwise_or` in place: the result is written over the first argument."""
    @overload
    def bitwise_or_(self, other: Number) -> Tensor: ...
    @overload
    def bitwise_right_shift(self, b: Tensor) -> Tensor:
        """a shifted right by b bits, with its sign; the sign alone where b is negative or no bit is left."""
    @overload
    def bitwise_right_shift(self, other: Tensor) -> Tensor: ...
    @overload
    def bitwise_right_shift(self, s: Number) -> Tensor:
        """x shifted right by s bits, with its sign."""
    @overload
    def bitwise_right_shift(self, other: Number) -> Tensor: ...
    @overload
    def bitwise_right_shift_(self, b: Tensor) -> Tensor:
        """`bitwise_right_shift` in place: the result is written over the first argument."""
    @overload
    def bitwise_right_shift_(self, other: Tensor) -> Tensor: ...
    @overload
    def bitwise_right_shift_(self, s: Number) -> Tensor:
        """`bitwise_right_shift` in place: the result is written over the first argument."""
    @overload
    def bitwise_right_shift_(self, other: Number) -> Tensor: ...
    @overload
    def bitwise_xor(self, b: Tensor) -> Tensor:
        """The bits that exactly one has."""
    @overload
    def bitwise_xor(self, other: Tensor) -> Tensor: ...
    @overload
    def bitwise_xor(self, s: Number) -> Tensor:
        """The bits that exactly one has."""
    @overload
    def bitwise_xor(self, other: Number) -> Tensor: ...
    @overload
    def bitwise_xor_(self, b: Tensor) -> Tensor:
        """`bitwise_xor` in place: the result is written over the first argument."""
    @overload
    def bitwise_xor_(self, other: Tensor) -> Tensor: ...
    @overload
    def bitwise_xor_(self, s: Number) -> Tensor:
        """`bitwise_xor` in place: the result is written over the first argument."""
    @overload
    def bitwise_xor_(self, other: Number) -> Tensor: ...
    def bmm(self, b: Tensor) -> Tensor:
        """The products of two batches of matrices, `[B, m, k]` and `[B, k, n]`."""
    @overload
    def broadcast_to(self, shape: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Dims of size 1 repeated up to a shape."""
    @overload
    def broadcast_to(self, *shape: builtins.int) -> Tensor: ...
    def bucketize(self, boundaries: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False) -> Tensor:
        """`searchsorted` of the elements of x in one sorted sequence of boundaries."""
    def cast(self, dtype: _dtype) -> Tensor:
        """The values as another dtype; the tensor itself if it has that dtype, like PyTorch's `to`. The gradient is cast back to the dtype of the input."""
    def cauchy_(self, median: builtins.float = 0.0, sigma: builtins.float = 1.0, generator: Generator | None = None) -> Tensor:
        """x becomes numbers of a Cauchy distribution, in place."""
    @overload
    def cdist(self, x2: Tensor, p: builtins.float = 2.0) -> Tensor:
        """The p-norms of the differences of each row of `x1` `[.., m, d]` and each row of `x2` `[.., n, d]`, as `[.., m, n]`. Those of many rows for p = 2 come from a matrix product, which loses digits where rows are nearly equal."""
    @overload
    def cdist(self, x2: Tensor, p: builtins.float, compute_mode: str | None = None) -> Tensor:
        """Distances between all pairs of points. PyTorch's modes say how it computes; there is one way here."""
    def ceil(self) -> Tensor:
        """The smallest integer not below x."""
    def ceil_(self) -> Tensor:
        """`ceil` in place: the result is written over the first argument."""
    def celu(self, alpha: builtins.float = 1.0) -> Tensor:
        """x, or alpha (e^(x / alpha) - 1) where x is negative: an ELU whose slope has no step."""
    def celu_(self, alpha: builtins.float = 1.0) -> Tensor:
        """`celu` in place: the result is written over the first argument."""
    def channel_shuffle(self, groups: builtins.int) -> Tensor:
        """The channels, dim 1, in `groups` groups, taken in turn from each."""
    @overload
    def chebyshev_polynomial_t(self, n: Tensor) -> Tensor:
        """The Chebyshev polynomial of the first kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def chebyshev_polynomial_t(self, n: Number) -> Tensor:
        """`chebyshev_polynomial_t` with a number as n."""
    def chebyshev_polynomial_t_(self, n: Tensor) -> Tensor:
        """`chebyshev_polynomial_t` in place: the result is written over the first argument."""
    @overload
    def chebyshev_polynomial_u(self, n: Tensor) -> Tensor:
        """The Chebyshev polynomial of the second kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def chebyshev_polynomial_u(self, n: Number) -> Tensor:
        """`chebyshev_polynomial_u` with a number as n."""
    def chebyshev_polynomial_u_(self, n: Tensor) -> Tensor:
        """`chebyshev_polynomial_u` in place: the result is written over the first argument."""
    @overload
    def chebyshev_polynomial_v(self, n: Tensor) -> Tensor:
        """The Chebyshev polynomial of the third kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def chebyshev_polynomial_v(self, n: Number) -> Tensor:
        """`chebyshev_polynomial_v` with a number as n."""
    def chebyshev_polynomial_v_(self, n: Tensor) -> Tensor:
        """`chebyshev_polynomial_v` in place: the result is written over the first argument."""
    @overload
    def chebyshev_polynomial_w(self, n: Tensor) -> Tensor:
        """The Chebyshev polynomial of the fourth kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def chebyshev_polynomial_w(self, n: Number) -> Tensor:
        """`chebyshev_polynomial_w` with a number as n."""
    def chebyshev_polynomial_w_(self, n: Tensor) -> Tensor:
        """`chebyshev_polynomial_w` in place: the result is written over the first argument."""
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """The same as `linalg.cholesky`."""
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        """The inverses of matrices from their Cholesky factors L, or U with `upper`."""
    def cholesky_solve(self, L: Tensor, upper: builtins.bool = False) -> Tensor:
        """The solution of the systems with the right sides x whose matrices have the Cholesky factors L, or U with `upper`."""
    @overload
    def chunk(self, parts: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """At most `parts` parts of a dim with equal size (the last may be smaller), as PyTorch's `chunk`."""
    @overload
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def clamp(self, lo: Number, hi: Number) -> Tensor:
        """x, but not below lo and not above hi."""
    @overload
    def clamp(self, min: Number, max: Number) -> Tensor: ...
    @overload
    def clamp(self, min: Number | None = None, max: Number | None = None) -> Tensor:
        """x, but not below `min` and not above `max`; one of them may be left out."""
    @overload
    def clamp(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
        """x, but not below `min` and not above `max`, element by element; one of them may be left out."""
    @overload
    def clamp_(self, lo: Number, hi: Number) -> Tensor:
        """`clamp` in place: the result is written over the first argument."""
    @overload
    def clamp_(self, min: Number, max: Number) -> Tensor: ...
    @overload
    def clamp_(self, min: Number | None = None, max: Number | None = None) -> Tensor:
        """`clamp` in place: the result is written over the first argument."""
    @overload
    def clamp_(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
        """`clamp` in place: the result is written over the first argument."""
    @overload
    def clamp_max(self, max: Number) -> Tensor:
        """x, but not above max."""
    @overload
    def clamp_max(self, max: Tensor) -> Tensor:
        """x, but not above `max`, element by element."""
    @overload
    def clamp_max_(self, max: Number) -> Tensor:
        """`clamp_max` in place: the result is written over the first argument."""
    @overload
    def clamp_max_(self, max: Tensor) -> Tensor:
        """`clamp_max` in place: the result is written over the first argument."""
    @overload
    def clamp_min(self, min: Number) -> Tensor:
        """x, but not below min."""
    @overload
    def clamp_min(self, min: Tensor) -> Tensor:
        """x, but not below `min`, element by element."""
    @overload
    def clamp_min_(self, min: Number) -> Tensor:
        """`clamp_min` in place: the result is written over the first argument."""
    @overload
    def clamp_min_(self, min: Tensor) -> Tensor:
        """`clamp_min` in place: the result is written over the first argument."""
    @overload
    def clip(self, lo: Number, hi: Number) -> Tensor:
        """The same as `clamp`."""
    @overload
    def clip(self, min: Number | None = None, max: Number | None = None) -> Tensor:
        """The same as `clamp`."""
    @overload
    def clip(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
        """The same as `clamp`."""
    @overload
    def clip_(self, lo: Number, hi: Number) -> Tensor:
        """The same as `clamp_`."""
    @overload
    def clip_(self, min: Number | None = None, max: Number | None = None) -> Tensor:
        """The same as `clamp_`."""
    @overload
    def clip_(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
        """The same as `clamp_`."""
    def close_to(self, b: Tensor, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8, equal_nan: builtins.float = 0.0) -> Tensor:
        """True where |a - b| is at most atol + rtol |b|, where both are equal, or both NaN and `equal_nan` is not 0."""
    @overload
    def col2im(self, output_size: builtins.int | Sequence[builtins.int], kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), stride: builtins.int | Sequence[builtins.int] = (1,)) -> Tensor:
        """Images of `output_size` to which columns of windows are added at their places: the gradient of `im2col`. PyTorch's `nn.functional.fold`."""
    @overload
    def col2im(self, output_size: builtins.int | Sequence[builtins.int], kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), *stride: builtins.int) -> Tensor: ...
    def combinations(self, r: builtins.int = 2, with_replacement: builtins.bool = False) -> Tensor:
        """All choices of `r` elements of a list, as rows, in the order of their places; `with_replacement` an element may come again."""
    @overload
    def complex(self, im: Tensor) -> Tensor:
        """The complex numbers re + i im, c64 of f32 and c128 of f64."""
    @overload
    def complex(self, imag: Tensor) -> Tensor: ...
    def conj(self) -> Tensor:
        """The complex conjugate; of real numbers x itself."""
    def conj_(self) -> Tensor:
        """`conj` in place: the result is written over the first argument."""
    def conj_physical(self) -> Tensor:
        """The same as `conj`."""
    def conj_physical_(self) -> Tensor:
        """The same as `conj_`."""
    def constant_pad_nd(self, pad: builtins.int | Sequence[builtins.int], value: Number = 0) -> Tensor:
        """`pad` with one number around."""
    def contiguous(self) -> Tensor:
        """The tensor in memory in row-major order: itself where it is, else a copy."""
    def conv(self, weight: Tensor, bias: Tensor | None, stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int], groups: builtins.int = 1) -> Tensor:
        """The sums of x, weighted by a kernel that slides over its spatial dims."""
    @overload
    def conv1d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1) -> Tensor:
        """The convolution of `[batch, channels, length]`, or without the batch, with a weight `[filters, channels / groups, kernel]`, plus `bias` (one number a filter). Lists of one number stand for all spatial dims. By name `padding` may be `"valid"` or `"same"`, which gives as many elements as x has."""
    @overload
    def conv1d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), *, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1) -> Tensor:
        """`conv1d` with the padding by a word: "valid" is none, "same" gives as many elements as x has."""
    @overload
    def conv1d(self, weight: Tensor, bias: Tensor | None = None, *stride: builtins.int, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1) -> Tensor: ...
    @overload
    def conv2d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1) -> Tensor:
        """As `conv1d` for `[batch, channels, height, width]` and a weight `[filters, channels / groups, height, width]`."""
    @overload
    def conv2d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), *, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1) -> Tensor:
        """`conv2d` with the padding by a word."""
    @overload
    def conv2d(self, weight: Tensor, bias: Tensor | None = None, *stride: builtins.int, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1) -> Tensor: ...
    @overload
    def conv3d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1) -> Tensor:
        """As `conv1d` for 3 spatial dims."""
    @overload
    def conv3d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), *, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1) -> Tensor:
        """`conv3d` with the padding by a word."""
    @overload
    def conv3d(self, weight: Tensor, bias: Tensor | None = None, *stride: builtins.int, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1) -> Tensor: ...
    def conv_transpose(self, weight: Tensor, bias: Tensor | None, stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int], groups: builtins.int = 1) -> Tensor:
        """The transposed convolution: each element of x adds the kernel, times it, at its place. The gradient of conv."""
    @overload
    def conv_transpose1d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, dilation: builtins.int | Sequence[builtins.int] = (1,)) -> Tensor:
        """The transposed convolution of `[batch, channels, length]`, or without the batch, with a weight `[channels, filters / groups, kernel]`: the gradient of a convolution. `output_padding` adds elements at the end."""
    @overload
    def conv_transpose1d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, *dilation: builtins.int) -> Tensor: ...
    @overload
    def conv_transpose2d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, dilation: builtins.int | Sequence[builtins.int] = (1,)) -> Tensor:
        """As `conv_transpose1d` for 2 spatial dims."""
    @overload
    def conv_transpose2d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, *dilation: builtins.int) -> Tensor: ...
    @overload
    def conv_transpose3d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, dilation: builtins.int | Sequence[builtins.int] = (1,)) -> Tensor:
        """As `conv_transpose1d` for 3 spatial dims."""
    @overload
    def conv_transpose3d(self, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, *dilation: builtins.int) -> Tensor: ...
    def conv_weight(self, dy: Tensor, stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int], groups: builtins.int = 1) -> Tensor:
        """The gradient of conv of its weight."""
    def copy(self) -> Tensor:
        """A copy in new memory. The gradient passes through."""
    @overload
    def copy_(self, other: Tensor) -> Tensor:
        """x becomes a copy of `other` in place, converted to x's dtype; it broadcasts to x's shape. The gradient of the new value goes to `other`, what x was before gets none."""
    @overload
    def copy_(self, src: Tensor) -> Tensor: ...
    @overload
    def copysign(self, b: Tensor) -> Tensor:
        """|a| with the sign of b, also where b is zero."""
    @overload
    def copysign(self, other: Tensor) -> Tensor: ...
    @overload
    def copysign(self, s: Number) -> Tensor:
        """|x| with the sign of a number."""
    @overload
    def copysign(self, other: Number) -> Tensor: ...
    @overload
    def copysign_(self, b: Tensor) -> Tensor:
        """`copysign` in place: the result is written over the first argument."""
    @overload
    def copysign_(self, other: Tensor) -> Tensor: ...
    @overload
    def copysign_(self, s: Number) -> Tensor:
        """`copysign` in place: the result is written over the first argument."""
    @overload
    def copysign_(self, other: Number) -> Tensor: ...
    def corrcoef(self) -> Tensor:
        """The correlations of variables, the rows of x: their covariances divided by both standard deviations."""
    def cos(self) -> Tensor:
        """The cosine, of radians."""
    def cos_(self) -> Tensor:
        """`cos` in place: the result is written over the first argument."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine."""
    def cosh_(self) -> Tensor:
        """`cosh` in place: the result is written over the first argument."""
    @overload
    def cosine_embedding_loss(self, x2: Tensor, target: Tensor, *, margin: builtins.float = 0.0, reduction: str = "mean") -> Tensor:
        """1 - cos(x1, x2) where the target is 1, else max(0, cos(x1, x2) - margin)."""
    @overload
    def cosine_embedding_loss(self, input2: Tensor, target: Tensor, *, margin: builtins.float = 0.0, reduction: str = "mean") -> Tensor: ...
    def cosine_similarity(self, x2: Tensor, dim: builtins.int = 1, *, eps: builtins.float = 1e-8) -> Tensor:
        """The cosine of the angle between two tensors along a dim; norms below `eps` count as `eps`."""
    def count_index(self, size: builtins.int) -> Tensor:
        """How often each index below `size` occurs, i64."""
    @overload
    def count_nonzero(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """How many elements over dims (none given: all) are not zero; NaN is not. The result is i64."""
    @overload
    def count_nonzero(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    def cov(self, *, correction: builtins.int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """The covariance matrix of variables. Each row of x is a variable, each column an observation; a 1-d x is one variable. `fweights` are integer frequencies of the observations, `aweights` their importance. The sums are divided by the number of observations (their total weight, if there are weights) less `correction`, as in PyTorch."""
    @overload
    def cross(self, b: Tensor, dim: builtins.int = -1) -> Tensor:
        """The cross product along a dim of 3 elements."""
    @overload
    def cross(self, other: Tensor, dim: builtins.int = -1) -> Tensor: ...
    def cross_entropy(self, target: Tensor, *, weight: Tensor | None = None, ignore_index: builtins.int | None = None, reduction: str = "mean", label_smoothing: builtins.float = 0.0, dim: builtins.int = 1) -> Tensor:
        """The cross entropy of logits whose classes lie along `dim`, as in PyTorch dim 1 unless given (dim 0 of a single row), and targets: class indices (integers, with the other dims), or probabilities (with all dims)."""
    def cross_entropy_grad(self, target: Tensor, lse: Tensor, dloss: Tensor, ignore_index: builtins.int = -100, label_smoothing: builtins.float = 0.0) -> Tensor:
        """Gradient of cross_entropy: (softmax - onehot) dloss."""
    def ctc_loss(self, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, *, blank: builtins.int = 0, reduction: str = "mean", zero_infinity: builtins.bool = False) -> Tensor:
        """The negative log likelihood of target sequences under all their alignments with log-probabilities `[T, N, C]` (or `[T, C]`). Targets are `[N, S]`, or one list of all labels, one sequence after the other; both lengths are `[N]`. `zero_infinity` makes losses 0, and their gradients, where a target does not fit its input. The mean divides each loss by the length of its target first."""
    def cummax(self, dim: builtins.int) -> _ValuesIndices:
        """The largest element so far along a dim, and where it stands: of equal ones the last. From the first NaN on the result is NaN."""
    def cummin(self, dim: builtins.int) -> _ValuesIndices:
        """The smallest element so far along a dim, and where it stands: of equal ones the last. From the first NaN on the result is NaN."""
    @overload
    def cumprod(self, dim: builtins.int) -> Tensor:
        """The running product along a dim. Integers and bools multiply to i64. Its gradient divides by nothing, so zeros need no care."""
    @overload
    def cumprod(self, dim: builtins.int, *, dtype: _dtype) -> Tensor:
        """`cumprod` of the tensor converted to `dtype`."""
    @overload
    def cumprod_(self, dim: builtins.int) -> Tensor:
        """`cumprod` in place: the result is written over the first argument."""
    @overload
    def cumprod_(self, dim: builtins.int, *, dtype: _dtype) -> Tensor:
        """`cumprod` in place: the result is written over the first argument."""
    @overload
    def cumsum(self, dim: builtins.int, *, reverse: builtins.bool = False) -> Tensor:
        """The running sum along a dim, with `reverse` from its end."""
    @overload
    def cumsum(self, dim: builtins.int, *, reverse: builtins.bool = False, dtype: _dtype) -> Tensor:
        """`cumsum` of the tensor converted to `dtype`."""
    @overload
    def cumsum_(self, dim: builtins.int, *, reverse: builtins.bool = False) -> Tensor:
        """`cumsum` in place: the result is written over the first argument."""
    @overload
    def cumsum_(self, dim: builtins.int, *, reverse: builtins.bool = False, dtype: _dtype) -> Tensor:
        """`cumsum` in place: the result is written over the first argument."""
    def cumulative_trapezoid(self, x: Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1) -> Tensor:
        """The integrals up to each place but the first, by the trapezoid rule."""
    def deg2rad(self) -> Tensor:
        """Degrees in radians."""
    def deg2rad_(self) -> Tensor:
        """`deg2rad` in place: the result is written over the first argument."""
    def dequantize(self) -> Tensor:
        """The numbers of a quantised tensor, in f32."""
    def det(self) -> Tensor:
        """The same as `linalg.det`."""
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """The diagonal of a matrix, or the matrix that has a vector on its diagonal."""
    @overload
    def diag_embed(self, offset: builtins.int = 0) -> Tensor:
        """The last dim as the diagonal of the two last dims of the result, with zeros elsewhere."""
    @overload
    def diag_embed(self, offset: builtins.int, dim1: builtins.int, dim2: builtins.int) -> Tensor:
        """The elements as a diagonal of the dims `dim1` and `dim2` of the result, zeros elsewhere."""
    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        """All elements as the diagonal of a matrix."""
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """The diagonal of two dims, as the last dim of the result. A positive offset lies above the main diagonal."""
    def diagonal_scatter(self, src: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """x with `src` as the diagonal of two dims."""
    @overload
    def diff(self, n: builtins.int = 1, dim: builtins.int = -1, *, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
        """The differences of neighbours along `dim`, `n` times in a row; of bools whether they differ. `prepend` and `append` are put before and behind x first."""
    @overload
    def diff(self, n: builtins.int, dim: builtins.int, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
        """The differences of neighbours, `n` times, of x with these in front and behind."""
    def digamma(self) -> Tensor:
        """The derivative of `lgamma`: NaN at negative integers."""
    def digamma_(self) -> Tensor:
        """`digamma` in place: the result is written over the first argument."""
    def dim(self) -> builtins.int:
        """The number of dims."""
    def dist(self, other: Tensor, p: builtins.float = 2.0) -> Tensor:
        """The p-norm of the difference of two tensors."""
    def distribute(self, placement: _placement, sbp: Sbp | str | Sequence[Sbp | str]) -> Tensor:
        """A global tensor from its logical value, which every rank gives."""
    @overload
    def div(self, b: Tensor) -> Tensor:
        """a / b; of integers, a float."""
    @overload
    def div(self, other: Tensor) -> Tensor: ...
    @overload
    def div(self, s: Number) -> Tensor:
        """x / s."""
    @overload
    def div(self, other: Number) -> Tensor: ...
    @overload
    def div(self, b: Tensor, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient, rounded: `"trunc"` towards zero, `"floor"` downwards."""
    @overload
    def div(self, other: Tensor, *, rounding_mode: str | None = None) -> Tensor: ...
    @overload
    def div(self, s: Number, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient, rounded: `"trunc"` towards zero, `"floor"` downwards."""
    @overload
    def div(self, other: Number, *, rounding_mode: str | None = None) -> Tensor: ...
    @overload
    def div_(self, b: Tensor) -> Tensor:
        """`div` in place: the result is written over the first argument."""
    @overload
    def div_(self, other: Tensor) -> Tensor: ...
    @overload
    def div_(self, s: Number) -> Tensor:
        """`div` in place: the result is written over the first argument."""
    @overload
    def div_(self, other: Number) -> Tensor: ...
    @overload
    def div_(self, b: Tensor, *, rounding_mode: str | None = None) -> Tensor:
        """`div` in place: the result is written over the first argument."""
    @overload
    def div_(self, other: Tensor, *, rounding_mode: str | None = None) -> Tensor: ...
    @overload
    def div_(self, s: Number, *, rounding_mode: str | None = None) -> Tensor:
        """`div` in place: the result is written over the first argument."""
    @overload
    def div_(self, other: Number, *, rounding_mode: str | None = None) -> Tensor: ...
    @overload
    def divide(self, b: Tensor) -> Tensor:
        """The same as `div`."""
    @overload
    def divide(self, s: Number) -> Tensor:
        """The same as `div`."""
    @overload
    def divide(self, b: Tensor, *, rounding_mode: str | None = None) -> Tensor:
        """The same as `div`."""
    @overload
    def divide(self, s: Number, *, rounding_mode: str | None = None) -> Tensor:
        """The same as `div`."""
    @overload
    def divide_(self, b: Tensor) -> Tensor:
        """The same as `div_`."""
    @overload
    def divide_(self, s: Number) -> Tensor:
        """The same as `div_`."""
    @overload
    def divide_(self, b: Tensor, *, rounding_mode: str | None = None) -> Tensor:
        """The same as `div_`."""
    @overload
    def divide_(self, s: Number, *, rounding_mode: str | None = None) -> Tensor:
        """The same as `div_`."""
    def dot(self, b: Tensor) -> Tensor:
        """The sum of the products of two vectors' elements."""
    def dropout(self, p: builtins.float = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Zeros with probability p, and the other elements times 1 / (1 - p). The mask depends on the seed and the logical position, not on placement or SBP. The result is always a new tensor; with p = 0 `nn::Dropout` returns its input instead."""
    @overload
    def dsplit(self, sections: builtins.int) -> tuple[Tensor, ...]:
        """So many parts along dim 2."""
    @overload
    def dsplit(self, indices: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]:
        """The parts along dim 2 between these places."""
    @overload
    def dsplit(self, *indices: builtins.int) -> tuple[Tensor, ...]: ...
    def element_size(self) -> builtins.int:
        """Bytes of an element."""
    def elu(self, alpha: builtins.float = 1.0) -> Tensor:
        """x, or alpha (eˣ - 1) where x is negative."""
    def elu_(self, alpha: builtins.float = 1.0) -> Tensor:
        """`elu` in place: the result is written over the first argument."""
    @overload
    def embedding(self, ids: Tensor) -> Tensor:
        """Rows of the table `weight`, `[rows, width]`, by index: integer ids of any shape give `[ids…, width]`."""
    @overload
    def embedding(self, indices: Tensor) -> Tensor: ...
    @overload
    def embedding_bag(self, ids: Tensor, offsets: Tensor | None = None, *, mode: str = "mean", per_sample_weights: Tensor | None = None, include_last_offset: builtins.bool = False, padding_idx: builtins.int | None = None) -> Tensor:
        """The rows of a table `weight` that each bag of `ids` names, reduced: `sum`, `mean` or `max`. The rows of `ids` of two dims are bags; a list of ids has bags that start at `offsets` (with `include_last_offset` the last is the end). An empty bag gives 0. `per_sample_weights` multiply the rows of a `sum`. Rows at `padding_idx` do not count."""
    @overload
    def embedding_bag(self, indices: Tensor, offsets: Tensor | None = None, *, mode: str = "mean", per_sample_weights: Tensor | None = None, include_last_offset: builtins.bool = False, padding_idx: builtins.int | None = None) -> Tensor: ...
    def embedding_grad(self, ids: Tensor, rows: builtins.int) -> Tensor:
        """Gradient of embedding: dy's rows added up by index, in order."""
    @overload
    def empty_like(self) -> Tensor:
        """Memory whose contents nobody reads before writing them (zeros), with the same shape, dtype and layout."""
    @overload
    def empty_like(self, *, dtype: _dtype) -> Tensor:
        """Memory of the same shape and layout whose contents nobody reads before writing them, of that dtype."""
    def entr(self) -> Tensor:
        """-x log(x), the entropy: 0 of 0 and -inf below."""
    def entr_(self) -> Tensor:
        """`entr` in place: the result is written over the first argument."""
    @overload
    def eq(self, b: Tensor) -> Tensor:
        """True where a == b."""
    @overload
    def eq(self, other: Tensor) -> Tensor: ...
    @overload
    def eq(self, s: Number) -> Tensor:
        """True where x == s."""
    @overload
    def eq(self, other: Number) -> Tensor: ...
    @overload
    def eq_(self, b: Tensor) -> Tensor:
        """`eq` in place: the result is written over the first argument."""
    @overload
    def eq_(self, s: Number) -> Tensor:
        """`eq` in place: the result is written over the first argument."""
    @overload
    def equal(self, y: Tensor) -> builtins.bool:
        """Whether shapes and all elements are equal. On global tensors a collective of the world."""
    @overload
    def equal(self, other: Tensor) -> builtins.bool: ...
    def erf(self) -> Tensor:
        """The error function."""
    def erf_(self) -> Tensor:
        """`erf` in place: the result is written over the first argument."""
    def erfc(self) -> Tensor:
        """1 - erf(x), exact where erf(x) is nearly 1."""
    def erfc_(self) -> Tensor:
        """`erfc` in place: the result is written over the first argument."""
    def erfcx(self) -> Tensor:
        """exp(x²) erfc(x), also where the factors overflow and vanish."""
    def erfcx_(self) -> Tensor:
        """`erfcx` in place: the result is written over the first argument."""
    def erfinv(self) -> Tensor:
        """The inverse of `erf`: infinite at -1 and 1, NaN beyond."""
    def erfinv_(self) -> Tensor:
        """`erfinv` in place: the result is written over the first argument."""
    def exp(self) -> Tensor:
        """eˣ."""
    def exp2(self) -> Tensor:
        """2ˣ."""
    def exp2_(self) -> Tensor:
        """`exp2` in place: the result is written over the first argument."""
    def exp_(self) -> Tensor:
        """`exp` in place: the result is written over the first argument."""
    @overload
    def expand(self, shape: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Dims of size 1 repeated up to `shape`; -1 keeps the size of a dim."""
    @overload
    def expand(self, size: builtins.int | Sequence[builtins.int]) -> Tensor: ...
    @overload
    def expand(self, *shape: builtins.int) -> Tensor: ...
    def expand_as(self, other: Tensor) -> Tensor:
        """`expand` to the shape of another tensor."""
    def expm1(self) -> Tensor:
        """eˣ - 1, accurate near zero."""
    def expm1_(self) -> Tensor:
        """`expm1` in place: the result is written over the first argument."""
    def exponential_(self, rate: builtins.float = 1.0, generator: Generator | None = None) -> Tensor:
        """x becomes numbers of the exponential distribution with this rate, in place."""
    def fake_quantize_per_tensor_affine(self, scale: builtins.float, zero_point: builtins.int, quant_min: builtins.int, quant_max: builtins.int) -> Tensor:
        """x rounded to the numbers that a quantised dtype with this scale, zero point and range has, as floats: training that knows of the rounding to come. The gradient passes unchanged where x is in the range, and is 0 elsewhere."""
    def feature_alpha_dropout(self, p: builtins.float = 0.5, *, generator: Generator | None = None) -> Tensor:
        """`alpha_dropout` of whole channels of `[batch, channels, …]`."""
    def feature_dropout(self, p: builtins.float = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Dropout of whole channels of `[batch, channels, …]`: each channel of each sample becomes 0 with probability `p`, the others are divided by 1 - p. What is dropped does not depend on placement or SBP."""
    def fill(self, value: Number) -> Tensor:
        """One number everywhere, with the same shape, dtype and layout."""
    def fill_(self, value: Number) -> Tensor:
        """x becomes `value` everywhere, in place."""
    def fix(self) -> Tensor:
        """The same as `trunc`."""
    def fix_(self) -> Tensor:
        """The same as `trunc_`."""
    @overload
    def flatten(self, start: builtins.int = 0, end: builtins.int = -1) -> Tensor:
        """The dims from `start` to `end`, inclusive, as one. Negative dims count from the end."""
    @overload
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor: ...
    @overload
    def flip(self, dims: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The elements of each of the dims in reverse order, in new memory."""
    @overload
    def flip(self, *dims: builtins.int) -> Tensor: ...
    def fliplr(self) -> Tensor:
        """Dim 1 from the end to the start: columns from right to left."""
    def flipud(self) -> Tensor:
        """Dim 0 from the end to the start: rows from the last to the first."""
    @overload
    def float_power(self, exponent: Tensor) -> Tensor:
        """x to the power of the exponents, computed in f64, or in c128 where one of both is complex."""
    @overload
    def float_power(self, exponent: Number) -> Tensor:
        """x to the power of a number, computed in f64, or in c128 where one of both is complex."""
    @overload
    def float_power_(self, exponent: Tensor) -> Tensor:
        """`float_power` in place: the result is written over the first argument."""
    @overload
    def float_power_(self, exponent: Number) -> Tensor:
        """`float_power` in place: the result is written over the first argument."""
    def floor(self) -> Tensor:
        """The largest integer not above x."""
    def floor_(self) -> Tensor:
        """`floor` in place: the result is written over the first argument."""
    @overload
    def floor_divide(self, b: Tensor) -> Tensor:
        """a / b rounded down. Integers divided by 0 are an error."""
    @overload
    def floor_divide(self, other: Tensor) -> Tensor: ...
    @overload
    def floor_divide(self, s: Number) -> Tensor:
        """x / s rounded down."""
    @overload
    def floor_divide(self, other: Number) -> Tensor: ...
    @overload
    def floor_divide_(self, b: Tensor) -> Tensor:
        """`floor_divide` in place: the result is written over the first argument."""
    @overload
    def floor_divide_(self, other: Tensor) -> Tensor: ...
    @overload
    def floor_divide_(self, s: Number) -> Tensor:
        """`floor_divide` in place: the result is written over the first argument."""
    @overload
    def floor_divide_(self, other: Number) -> Tensor: ...
    @overload
    def fmax(self, b: Tensor) -> Tensor:
        """The larger element of each pair, or the one that is not NaN."""
    @overload
    def fmax(self, other: Tensor) -> Tensor: ...
    def fmax_(self, b: Tensor) -> Tensor:
        """`fmax` in place: the result is written over the first argument."""
    @overload
    def fmin(self, b: Tensor) -> Tensor:
        """The smaller element of each pair, or the one that is not NaN."""
    @overload
    def fmin(self, other: Tensor) -> Tensor: ...
    def fmin_(self, b: Tensor) -> Tensor:
        """`fmin` in place: the result is written over the first argument."""
    @overload
    def fmod(self, b: Tensor) -> Tensor:
        """The remainder of a / b with the sign of a. Integers divided by 0 are an error."""
    @overload
    def fmod(self, other: Tensor) -> Tensor: ...
    @overload
    def fmod(self, s: Number) -> Tensor:
        """The remainder of x / s with the sign of x."""
    @overload
    def fmod(self, other: Number) -> Tensor: ...
    @overload
    def fmod_(self, b: Tensor) -> Tensor:
        """`fmod` in place: the result is written over the first argument."""
    @overload
    def fmod_(self, other: Tensor) -> Tensor: ...
    @overload
    def fmod_(self, s: Number) -> Tensor:
        """`fmod` in place: the result is written over the first argument."""
    @overload
    def fmod_(self, other: Number) -> Tensor: ...
    def frac(self) -> Tensor:
        """What x has behind the point, with the sign of x."""
    def frac_(self) -> Tensor:
        """`frac` in place: the result is written over the first argument."""
    def fractional_max_pool2d(self, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int], samples: Tensor) -> _ValuesIndices:
        """The largest elements of windows whose places are random (Graham, 2014), and where they are, counted over the spatial dims. `samples` `[batch, channels, 2]` are uniform numbers from 0 to 1: the windows of a channel of an image depend on its numbers, the first for the last dim."""
    def fractional_max_pool3d(self, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int], samples: Tensor) -> _ValuesIndices:
        """As `fractional_max_pool2d` for 3 spatial dims and as many numbers for each channel, in the order of the dims."""
    def frexp(self) -> _MantissaExponent:
        """Mantissas, from 1/2 to 1, and exponents, i32: x is the mantissa times 2 to the power of the exponent."""
    def frexp_exponent(self) -> Tensor:
        """The exponent of x, as `frexp` returns it."""
    def frexp_mantissa(self) -> Tensor:
        """The mantissa of x, from 1/2 to 1, as `frexp` returns it."""
    @overload
    def full_like(self, value: Number) -> Tensor:
        """`value` everywhere, with the same shape, dtype and layout."""
    @overload
    def full_like(self, fill_value: Number) -> Tensor: ...
    @overload
    def full_like(self, value: Number, *, dtype: _dtype) -> Tensor:
        """One number everywhere, with the same shape and layout, of that dtype."""
    @overload
    def full_like(self, fill_value: Number, *, dtype: _dtype) -> Tensor: ...
    def gate(self, by: Tensor) -> Tensor:
        """x sigmoid(by)."""
    @overload
    def gather(self, dim: builtins.int, ids: Tensor) -> Tensor:
        """For each index the element of x that it names along `dim`: `y[i][j] = x[ids[i][j]][j]` for dim 0. The indices may be fewer than the elements of x in other dims too; the first are meant."""
    @overload
    def gather(self, dim: builtins.int, index: Tensor) -> Tensor: ...
    def gather_last(self, ids: Tensor, dim: builtins.int) -> Tensor:
        """As gather, but zero where an index that comes later along the dim names the same element. It is the gradient of scatter with respect to the values, of which the last stands."""
    def gaussian_nll_loss(self, target: Tensor, var: Tensor, *, full: builtins.bool = False, eps: builtins.float = 1e-6, reduction: str = "mean") -> Tensor:
        """The negative log likelihood of targets under normal distributions with these means and variances. Targets broadcast; the variances may lack the last dim of x, or have dims of size 1. `full` adds the constant log(2π) / 2."""
    def gcd(self, b: Tensor) -> Tensor:
        """The greatest common divisor; 0 of two zeros."""
    def gcd_(self, b: Tensor) -> Tensor:
        """`gcd` in place: the result is written over the first argument."""
    @overload
    def ge(self, b: Tensor) -> Tensor:
        """True where a >= b."""
    @overload
    def ge(self, other: Tensor) -> Tensor: ...
    @overload
    def ge(self, s: Number) -> Tensor:
        """True where x >= s."""
    @overload
    def ge(self, other: Number) -> Tensor: ...
    @overload
    def ge_(self, b: Tensor) -> Tensor:
        """`ge` in place: the result is written over the first argument."""
    @overload
    def ge_(self, s: Number) -> Tensor:
        """`ge` in place: the result is written over the first argument."""
    def gelu(self) -> Tensor:
        """x Φ(x), with the exact normal distribution function Φ (by erf)."""
    def gelu_(self) -> Tensor:
        """`gelu` in place: the result is written over the first argument."""
    def gelu_tanh(self) -> Tensor:
        """GELU by its tanh approximation."""
    def gelu_tanh_(self) -> Tensor:
        """`gelu_tanh` in place: the result is written over the first argument."""
    def geometric_(self, p: builtins.float, generator: Generator | None = None) -> Tensor:
        """x becomes numbers of trials until the first success, of the probability `p` each, in place: 1, 2, …"""
    def geqrf(self) -> _ATau:
        """The QR decomposition in LAPACK's form: R with the vectors of reflections below its diagonal, and their factors."""
    def ger(self, b: Tensor) -> Tensor:
        """The same as `outer`."""
    def glu(self, dim: builtins.int = -1) -> Tensor:
        """a sigmoid(b), where a and b are the halves of x along `dim`."""
    @overload
    def gradient(self, *, spacing: builtins.float = 1.0, dim: builtins.int | Sequence[builtins.int] = (), edge_order: builtins.int = 1) -> tuple[Tensor, ...]:
        """The gradient of values that are `spacing` apart, along each of the dims (none given: all): differences over two neighbours, at the ends over one (`edge_order` 1) or of second order (2)."""
    @overload
    def gradient(self, *, spacing: builtins.float | Sequence[builtins.float], dim: builtins.int | Sequence[builtins.int] = (), edge_order: builtins.int = 1) -> tuple[Tensor, ...]:
        """The gradient of values with a spacing of its own along each dim."""
    @overload
    def gradient(self, *, spacing: Sequence[Tensor], dim: builtins.int | Sequence[builtins.int] = (), edge_order: builtins.int = 1) -> tuple[Tensor, ...]:
        """The gradient of values at these places: for each dim a list of coordinates."""
    @overload
    def greater(self, b: Tensor) -> Tensor:
        """The same as `gt`."""
    @overload
    def greater(self, s: Number) -> Tensor:
        """The same as `gt`."""
    @overload
    def greater_(self, b: Tensor) -> Tensor:
        """The same as `gt_`."""
    @overload
    def greater_(self, s: Number) -> Tensor:
        """The same as `gt_`."""
    @overload
    def greater_equal(self, b: Tensor) -> Tensor:
        """The same as `ge`."""
    @overload
    def greater_equal(self, s: Number) -> Tensor:
        """The same as `ge`."""
    @overload
    def greater_equal_(self, b: Tensor) -> Tensor:
        """The same as `ge_`."""
    @overload
    def greater_equal_(self, s: Number) -> Tensor:
        """The same as `ge_`."""
    def grid_sample(self, grid: Tensor, *, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: builtins.bool = False) -> Tensor:
        """An image `[batch, channels, 2 or 3 spatial dims]` at the places of a grid `[batch, 2 or 3 dims of the result, 2 or 3]`, whose last dim is x, y and z, from -1 to 1 over the image. The mode is `bilinear`, `nearest` or `bicubic`, also of 3 dims; outside the image are `zeros`, its `border`, or its `reflection`. With `align_corners` -1 and 1 are the centres of the corner pixels, without it their outer edges."""
    def group_norm(self, num_groups: builtins.int, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-5) -> Tensor:
        """Group normalisation: the channels (dim 1) are divided into `num_groups` groups of equal size. Each group of each image is normalised to mean 0 and variance 1, multiplied by `weight` and shifted by `bias`, which have one element per channel."""
    def grouped_norm(self, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-5) -> _YMeanRstd:
        """Group norm of [n, groups, channels, inner]: the elements of an image and a group with mean 0 and variance 1, then scaled and shifted by channels."""
    def grouped_norm_grad(self, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None = None) -> _DxDweightDbias:
        """Gradients of grouped_norm."""
    def gru(self, hx: Tensor, params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False) -> _OutputH_n:
        """Gated recurrent units over a sequence, as `lstm`; the gates are r, z and n."""
    def gru_cell(self, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
        """One step of gated recurrent units for `[B, input]` or `[input]`."""
    @overload
    def gt(self, b: Tensor) -> Tensor:
        """True where a > b."""
    @overload
    def gt(self, other: Tensor) -> Tensor: ...
    @overload
    def gt(self, s: Number) -> Tensor:
        """True where x > s."""
    @overload
    def gt(self, other: Number) -> Tensor: ...
    @overload
    def gt_(self, b: Tensor) -> Tensor:
        """`gt` in place: the result is written over the first argument."""
    @overload
    def gt_(self, s: Number) -> Tensor:
        """`gt` in place: the result is written over the first argument."""
    def gumbel_softmax(self, tau: builtins.float = 1.0, hard: builtins.bool = False, dim: builtins.int = -1, *, generator: Generator | None = None) -> Tensor:
        """Random choices among the categories along `dim`, with a gradient: the softmax of (logits + Gumbel noise) / `tau`. With `hard` the result is one-hot, and the gradient is that of the softmax (Jang et al., 2017)."""
    def hardshrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """x, or 0 where |x| is not above lambd."""
    def hardshrink_(self, lambd: builtins.float = 0.5) -> Tensor:
        """`hardshrink` in place: the result is written over the first argument."""
    def hardsigmoid(self) -> Tensor:
        """The piecewise linear sigmoid: x / 6 + 1/2, clamped to 0 and 1."""
    def hardsigmoid_(self) -> Tensor:
        """`hardsigmoid` in place: the result is written over the first argument."""
    def hardswish(self) -> Tensor:
        """x hardsigmoid(x)."""
    def hardswish_(self) -> Tensor:
        """`hardswish` in place: the result is written over the first argument."""
    def hardtanh(self, lo: builtins.float = -1.0, hi: builtins.float = 1.0) -> Tensor:
        """x, but not below lo and not above hi."""
    def hardtanh_(self, lo: builtins.float = -1.0, hi: builtins.float = 1.0) -> Tensor:
        """`hardtanh` in place: the result is written over the first argument."""
    def heaviside(self, values: Tensor) -> Tensor:
        """0 where x is below zero, 1 where it is above, and the element of `values` where it is zero."""
    def heaviside_(self, values: Tensor) -> Tensor:
        """`heaviside` in place: the result is written over the first argument."""
    @overload
    def hermite_polynomial_h(self, n: Tensor) -> Tensor:
        """The Hermite polynomial of physicists of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def hermite_polynomial_h(self, n: Number) -> Tensor:
        """`hermite_polynomial_h` with a number as n."""
    def hermite_polynomial_h_(self, n: Tensor) -> Tensor:
        """`hermite_polynomial_h` in place: the result is written over the first argument."""
    @overload
    def hermite_polynomial_he(self, n: Tensor) -> Tensor:
        """The Hermite polynomial of probability theory of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def hermite_polynomial_he(self, n: Number) -> Tensor:
        """`hermite_polynomial_he` with a number as n."""
    def hermite_polynomial_he_(self, n: Tensor) -> Tensor:
        """`hermite_polynomial_he` in place: the result is written over the first argument."""
    def hinge_each(self, t: Tensor, margin: builtins.float = 1.0) -> Tensor:
        """x where t is 1, max(0, margin - x) where it is -1, and the sum of both elsewhere."""
    def hinge_embedding_loss(self, target: Tensor, *, margin: builtins.float = 1.0, reduction: str = "mean") -> Tensor:
        """x where the target is 1, max(0, margin - x) where it is -1, and the sum of both elsewhere."""
    def histc(self, bins: builtins.int = 100, min: builtins.float = 0.0, max: builtins.float = 0.0) -> Tensor:
        """How many elements lie in each of `bins` equal intervals from `min` to `max`, which belongs to the last one. Where both are the same, they are the smallest and the largest element, for which the call waits. Other elements, and NaN, are not counted. The result has the dtype of x."""
    @overload
    def histogram(self, bins: builtins.int = 100, *, range: builtins.float | Sequence[builtins.float] = (), weight: Tensor | None = None, density: builtins.bool = False) -> _HistBin_edges:
        """The number of elements, or the sum of their `weight`, in each of `bins` equal intervals, and the intervals' bounds. `range` is the lowest and the highest bound; without it the call reads the smallest and the largest element of x, and waits for them. The last interval includes its upper bound; elements outside do not count. With `density` counts are divided by their sum and interval length."""
    @overload
    def histogram(self, bins: Tensor, *, weight: Tensor | None = None, density: builtins.bool = False) -> _HistBin_edges:
        """`histogram` with `bins` as the bounds of the intervals, in rising order."""
    def histogram_within(self, bins: builtins.int, lo: builtins.float, hi: builtins.float) -> Tensor:
        """How many elements lie in each of `bins` equal intervals between two bounds; the upper one belongs to the last interval. Others, and NaN, are not counted."""
    @overload
    def histogramdd(self, bins: builtins.int | Sequence[builtins.int], *, range: builtins.float | Sequence[builtins.float] = (), weight: Tensor | None = None, density: builtins.bool = False) -> tuple[Tensor, ...]:
        """The histogram of points, the rows of x, in boxes: so many equal intervals of each column. After it the bounds of each column's intervals. `range` has the lowest and the highest bound of each column; without it they are read."""
    @overload
    def histogramdd(self, bins: Sequence[Tensor], *, weight: Tensor | None = None, density: builtins.bool = False) -> tuple[Tensor, ...]:
        """`histogramdd` with the bounds of the intervals of each column, in rising order."""
    @overload
    def histogramdd(self, *bins: builtins.int, range: builtins.float | Sequence[builtins.float] = (), weight: Tensor | None = None, density: builtins.bool = False) -> tuple[Tensor, ...]: ...
    @overload
    def hsplit(self, sections: builtins.int) -> tuple[Tensor, ...]:
        """So many parts along dim 1, or along dim 0 of a tensor with one dim."""
    @overload
    def hsplit(self, indices: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]:
        """The parts along dim 1 between these places, or along dim 0 of a tensor with one dim."""
    @overload
    def hsplit(self, *indices: builtins.int) -> tuple[Tensor, ...]: ...
    def huber_each(self, t: Tensor, delta: builtins.float = 1.0) -> Tensor:
        """(x - t)² / 2 where |x - t| is at most delta, else delta (|x - t| - delta / 2)."""
    def huber_loss(self, target: Tensor, *, delta: builtins.float = 1.0, reduction: str = "mean") -> Tensor:
        """Half the squared error where |x - target| is at most `delta`, else `delta` times the absolute error less `delta` / 2."""
    @overload
    def hypot(self, b: Tensor) -> Tensor:
        """√(a² + b²), also where the squares overflow."""
    @overload
    def hypot(self, other: Tensor) -> Tensor: ...
    @overload
    def hypot_(self, b: Tensor) -> Tensor:
        """`hypot` in place: the result is written over the first argument."""
    @overload
    def hypot_(self, other: Tensor) -> Tensor: ...
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind of order 0."""
    def i0_(self) -> Tensor:
        """`i0` in place: the result is written over the first argument."""
    def i0e(self) -> Tensor:
        """exp(-|x|) times `i0`."""
    def i0e_(self) -> Tensor:
        """`i0e` in place: the result is written over the first argument."""
    def i1(self) -> Tensor:
        """The modified Bessel function of the first kind of order 1."""
    def i1_(self) -> Tensor:
        """`i1` in place: the result is written over the first argument."""
    def i1e(self) -> Tensor:
        """exp(-|x|) times `i1`."""
    def i1e_(self) -> Tensor:
        """`i1e` in place: the result is written over the first argument."""
    def igamma(self, b: Tensor) -> Tensor:
        """The regularized lower incomplete gamma function P(a, b). It has a gradient by b only."""
    def igamma_(self, b: Tensor) -> Tensor:
        """`igamma` in place: the result is written over the first argument."""
    def igammac(self, b: Tensor) -> Tensor:
        """The regularized upper incomplete gamma function Q(a, b) = 1 - P(a, b). It has a gradient by b only."""
    def igammac_(self, b: Tensor) -> Tensor:
        """`igammac` in place: the result is written over the first argument."""
    @overload
    def im2col(self, kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), stride: builtins.int | Sequence[builtins.int] = (1,)) -> Tensor:
        """The windows of images `[batch, channels, height, width]`, or without the batch, as columns: `[batch, channels * elements of a window, windows]`. PyTorch's `nn.functional.unfold`."""
    @overload
    def im2col(self, kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), *stride: builtins.int) -> Tensor: ...
    @overload
    def index(self, index: Index) -> Tensor:
        """The elements that an index of integers, slices, masks and index tensors names."""
    @overload
    def index(self, indices: Index) -> Tensor: ...
    @overload
    def index_add(self, dim: builtins.int, ids: Tensor, src: Tensor, *, alpha: Number = 1) -> Tensor:
        """x with `alpha` times each slice of `src` added at its index along `dim`: `ids` is a list."""
    @overload
    def index_add(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor: ...
    def index_add_(self, dim: builtins.int, ids: Tensor, src: Tensor, *, alpha: Number = 1) -> Tensor:
        """`index_add` in place: the result is written over the first argument."""
    @overload
    def index_copy(self, dim: builtins.int, ids: Tensor, src: Tensor) -> Tensor:
        """x with each slice of `src` written at its index along `dim`: `ids` is a list. Of several at one place the last stands."""
    @overload
    def index_copy(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor: ...
    def index_copy_(self, dim: builtins.int, ids: Tensor, src: Tensor) -> Tensor:
        """`index_copy` in place: the result is written over the first argument."""
    @overload
    def index_fill(self, dim: builtins.int, ids: Tensor, value: Number) -> Tensor:
        """x with `value` in each slice at an index along `dim`: `ids` is a list."""
    @overload
    def index_fill(self, dim: builtins.int, index: Tensor, value: Number) -> Tensor: ...
    @overload
    def index_fill(self, dim: builtins.int, ids: Tensor, value: Tensor) -> Tensor:
        """x with the one number of a tensor in the slices of `dim` that the indices name."""
    @overload
    def index_fill(self, dim: builtins.int, index: Tensor, value: Tensor) -> Tensor: ...
    @overload
    def index_fill_(self, dim: builtins.int, ids: Tensor, value: Number) -> Tensor:
        """`index_fill` in place: the result is written over the first argument."""
    @overload
    def index_fill_(self, dim: builtins.int, ids: Tensor, value: Tensor) -> Tensor:
        """`index_fill` in place: the result is written over the first argument."""
    @overload
    def index_put(self, index: Index, value: Tensor) -> Tensor:
        """A copy with the value, which broadcasts, at what an index names."""
    @overload
    def index_put(self, indices: Index, value: Tensor) -> Tensor: ...
    @overload
    def index_put(self, index: Index, value: Number) -> Tensor:
        """A copy with the value at what an index names."""
    @overload
    def index_put(self, indices: Index, value: Number) -> Tensor: ...
    @overload
    def index_put(self, index: Index, value: Tensor, accumulate: builtins.bool) -> Tensor:
        """A copy with the value at what an index names, or with `accumulate` added to it, as often as the index names a place."""
    @overload
    def index_put(self, indices: Index, value: Tensor, accumulate: builtins.bool) -> Tensor: ...
    @overload
    def index_put_(self, index: Index, value: Tensor) -> Tensor:
        """The value, which broadcasts, is written to what an index names."""
    @overload
    def index_put_(self, indices: Index, value: Tensor) -> Tensor: ...
    @overload
    def index_put_(self, index: Index, value: Number) -> Tensor:
        """The value is written to what an index names."""
    @overload
    def index_put_(self, indices: Index, value: Number) -> Tensor: ...
    @overload
    def index_put_(self, index: Index, value: Tensor, accumulate: builtins.bool) -> Tensor:
        """The value is written to what an index names, or with `accumulate` added to it, as often as the index names a place."""
    @overload
    def index_put_(self, indices: Index, value: Tensor, accumulate: builtins.bool) -> Tensor: ...
    def index_reduce(self, dim: builtins.int, ids: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
        """x with each slice of `src` combined with what is at its index along `dim`: `reduce` is `prod`, `mean`, `amax` or `amin`. Without `include_self` what x has there does not count."""
    def index_reduce_(self, dim: builtins.int, ids: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
        """`index_reduce` in place: the result is written over the first argument."""
    @overload
    def index_select(self, dim: builtins.int, ids: Tensor) -> Tensor:
        """The elements of a dim by index. The dims of `ids` take the place of the dim; a list, as in PyTorch, keeps the rank."""
    @overload
    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor: ...
    def index_sum(self, ids: Tensor, rows: builtins.int) -> Tensor:
        """`rows` rows of zeros to which the rows of `values` are added by index, in order: gradient of index_select."""
    def inner(self, b: Tensor) -> Tensor:
        """The sums of products over the last dims of both: `[…, k]` and `[…, k]` give the dims before of a, then those of b. With a tensor without dims the product. In Rust `tensordot` over `[-1]` and `[-1]`."""
    def instance_norm(self, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: builtins.bool = True, momentum: builtins.float = 0.1, eps: builtins.float = 1e-5) -> Tensor:
        """Instance normalisation: each channel of each image is normalised to mean 0 and variance 1, multiplied by `weight` and shifted by `bias`. Running statistics, if given, are updated as in `batch_norm`, with the statistics of the images averaged over the batch. Without `use_input_stats`, x is normalised by the running statistics."""
    def int_repr(self) -> Tensor:
        """The integers that the elements of a quantised tensor are stored as: i8, u8, i16 or i32."""
    @overload
    def interpolate(self, size: builtins.int | Sequence[builtins.int] = (), *, scale_factor: builtins.float | Sequence[builtins.float] = (), mode: str = "nearest", align_corners: builtins.bool | None = None, recompute_scale_factor: builtins.bool | None = None, antialias: builtins.bool = False) -> Tensor:
        """An image `[batch, channels, 1 to 3 spatial dims]` with other spatial sizes: `size`, or its own times `scale_factor`, one number a dim or one for all. The mode is `nearest`, `nearest-exact`, `linear` (1 dim), `bilinear`, `bicubic` (2), `trilinear` (3) or `area`. With `align_corners` the first and last elements of image and result lie on each other. Coordinates are computed with `scale_factor` where it is given, unless `recompute_scale_factor` takes the ratio of the sizes."""
    @overload
    def interpolate(self, *size: builtins.int, scale_factor: builtins.float | Sequence[builtins.float] = (), mode: str = "nearest", align_corners: builtins.bool | None = None, recompute_scale_factor: builtins.bool | None = None, antialias: builtins.bool = False) -> Tensor: ...
    def inverse(self) -> Tensor:
        """The same as `linalg.inv`."""
    def is_complex(self) -> builtins.bool:
        """Whether the dtype is complex."""
    def is_contiguous(self) -> builtins.bool:
        """Whether the elements lie in memory in row-major order without gaps."""
    def is_floating_point(self) -> builtins.bool:
        """Whether the elements are floats."""
    def is_nonzero(self) -> builtins.bool:
        """Whether a tensor of one element is not zero. On a global tensor a collective of the world."""
    def is_same_size(self, other: Tensor) -> builtins.bool:
        """Whether two tensors have the same shape."""
    def is_signed(self) -> builtins.bool:
        """Whether the elements are integers with a sign, floats or complex numbers."""
    @overload
    def isclose(self, y: Tensor, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8, equal_nan: builtins.bool = False) -> Tensor:
        """True where |x - y| is at most `atol` + `rtol` |y|, or both are equal, or with `equal_nan` both NaN."""
    @overload
    def isclose(self, other: Tensor, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8, equal_nan: builtins.bool = False) -> Tensor: ...
    def isfinite(self) -> Tensor:
        """True where x is neither infinite nor NaN."""
    @overload
    def isin(self, values: Tensor, *, invert: builtins.bool = False) -> Tensor:
        """True where an element of x is among those of `values`, or with `invert` where it is not."""
    @overload
    def isin(self, test_elements: Tensor, *, invert: builtins.bool = False) -> Tensor: ...
    def isinf(self) -> Tensor:
        """True where x is infinite."""
    def isnan(self) -> Tensor:
        """True where x is NaN."""
    def isneginf(self) -> Tensor:
        """True where x is -inf."""
    def isposinf(self) -> Tensor:
        """True where x is inf."""
    def isreal(self) -> Tensor:
        """True where the imaginary part is 0, everywhere for real numbers."""
    def kl_div(self, target: Tensor, *, reduction: str = "mean", log_target: builtins.bool = False) -> Tensor:
        """The Kullback-Leibler divergence target (log target - x) of log-probabilities x from probabilities, or with `log_target` from log-probabilities. The reduction `batchmean` divides the sum by the size of dim 0."""
    def kl_each(self, t: Tensor) -> Tensor:
        """t (log t - x), or 0 where t is 0; NaN where t is negative or NaN: the divergence of log-probabilities x from probabilities t."""
    def kl_log_each(self, t: Tensor) -> Tensor:
        """eᵗ (t - x): the divergence of log-probabilities x from log-probabilities t."""
    @overload
    def kron(self, b: Tensor) -> Tensor:
        """The Kronecker product: each element of a times the whole of b."""
    @overload
    def kron(self, other: Tensor) -> Tensor: ...
    def kthvalue(self, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False) -> _ValuesIndices:
        """The k-th smallest element of each line along a dim, k counted from 1, and where it stood. NaN count as the largest."""
    def l1_each(self, t: Tensor) -> Tensor:
        """|x - t|."""
    def l1_loss(self, target: Tensor, *, reduction: str = "mean") -> Tensor:
        """The absolute error |x - target|."""
    @overload
    def laguerre_polynomial_l(self, n: Tensor) -> Tensor:
        """The Laguerre polynomial of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def laguerre_polynomial_l(self, n: Number) -> Tensor:
        """`laguerre_polynomial_l` with a number as n."""
    def laguerre_polynomial_l_(self, n: Tensor) -> Tensor:
        """`laguerre_polynomial_l` in place: the result is written over the first argument."""
    def last_index(self, size: builtins.int) -> Tensor:
        """For each index below `size` the last position at which it stands in the list, -1 where it does not."""
    def layer_norm(self, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-5, *, axes: builtins.int | None = None) -> Tensor:
        """The last dims with mean 0 and variance 1, times `weight`, plus `bias`. The number of dims is that of `weight`, 1 without one, unless `axes` says otherwise. `eps` is added to the variance."""
    def layer_norm_grad(self, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None = None, axes: builtins.int = 1) -> _DxDweightDbias:
        """Gradients of layer_norm."""
    def lcm(self, b: Tensor) -> Tensor:
        """The least common multiple; 0 where one is 0."""
    def lcm_(self, b: Tensor) -> Tensor:
        """`lcm` in place: the result is written over the first argument."""
    @overload
    def ldexp(self, b: Tensor) -> Tensor:
        """a times 2 to the power b."""
    @overload
    def ldexp(self, other: Tensor) -> Tensor: ...
    @overload
    def ldexp_(self, b: Tensor) -> Tensor:
        """`ldexp` in place: the result is written over the first argument."""
    @overload
    def ldexp_(self, other: Tensor) -> Tensor: ...
    @overload
    def le(self, b: Tensor) -> Tensor:
        """True where a <= b."""
    @overload
    def le(self, other: Tensor) -> Tensor: ...
    @overload
    def le(self, s: Number) -> Tensor:
        """True where x <= s."""
    @overload
    def le(self, other: Number) -> Tensor: ...
    @overload
    def le_(self, b: Tensor) -> Tensor:
        """`le` in place: the result is written over the first argument."""
    @overload
    def le_(self, s: Number) -> Tensor:
        """`le` in place: the result is written over the first argument."""
    def leaky_relu(self, alpha: builtins.float = 0.01) -> Tensor:
        """x, or alpha x where x is negative."""
    def leaky_relu_(self, alpha: builtins.float = 0.01) -> Tensor:
        """`leaky_relu` in place: the result is written over the first argument."""
    @overload
    def legendre_polynomial_p(self, n: Tensor) -> Tensor:
        """The Legendre polynomial of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def legendre_polynomial_p(self, n: Number) -> Tensor:
        """`legendre_polynomial_p` with a number as n."""
    def legendre_polynomial_p_(self, n: Tensor) -> Tensor:
        """`legendre_polynomial_p` in place: the result is written over the first argument."""
    @overload
    def lerp(self, b: Tensor, weight: Tensor) -> Tensor:
        """a + weight (b - a): a where the weight is 0, b where it is 1."""
    @overload
    def lerp(self, b: Tensor, weight: Number) -> Tensor:
        """a + weight (b - a) with one weight for all."""
    @overload
    def lerp_(self, b: Tensor, weight: Tensor) -> Tensor:
        """`lerp` in place: the result is written over the first argument."""
    @overload
    def lerp_(self, b: Tensor, weight: Number) -> Tensor:
        """`lerp` in place: the result is written over the first argument."""
    @overload
    def less(self, b: Tensor) -> Tensor:
        """The same as `lt`."""
    @overload
    def less(self, s: Number) -> Tensor:
        """The same as `lt`."""
    @overload
    def less_(self, b: Tensor) -> Tensor:
        """The same as `lt_`."""
    @overload
    def less_(self, s: Number) -> Tensor:
        """The same as `lt_`."""
    @overload
    def less_equal(self, b: Tensor) -> Tensor:
        """The same as `le`."""
    @overload
    def less_equal(self, s: Number) -> Tensor:
        """The same as `le`."""
    @overload
    def less_equal_(self, b: Tensor) -> Tensor:
        """The same as `le_`."""
    @overload
    def less_equal_(self, s: Number) -> Tensor:
        """The same as `le_`."""
    def lgamma(self) -> Tensor:
        """The logarithm of |Γ(x)|: inf at 0 and at negative integers."""
    def lgamma_(self) -> Tensor:
        """`lgamma` in place: the result is written over the first argument."""
    def linear(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """x weightᵀ + bias for an input `[..., in]`, a weight `[out, in]` and a bias `[out]`, of shape `[..., out]`. Autocast casts all three."""
    def linear_scan(self, b: Tensor, dim: builtins.int, reverse: builtins.bool = False) -> Tensor:
        """r[i] = b[i] + a[i] r[i - 1] along a dim, with `reverse` from its end."""
    @overload
    def linspace(self, end: builtins.float, steps: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False) -> Tensor:
        """Equal steps between numbers of which the first is read."""
    @overload
    def linspace(self, end: Tensor, steps: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False) -> Tensor:
        """Equal steps between numbers that are read."""
    def local_response_norm(self, size: builtins.int, alpha: builtins.float = 0.0001, beta: builtins.float = 0.75, k: builtins.float = 1.0) -> Tensor:
        """Divides each element of `[batch, channels, …]` by (k + alpha a)^beta, where a is the mean of the squares at its place in `size` channels around its own; channels that are not there count as 0."""
    def log(self) -> Tensor:
        """The natural logarithm."""
    def log10(self) -> Tensor:
        """The logarithm to base 10."""
    def log10_(self) -> Tensor:
        """`log10` in place: the result is written over the first argument."""
    def log1p(self) -> Tensor:
        """log(1 + x), accurate near zero."""
    def log1p_(self) -> Tensor:
        """`log1p` in place: the result is written over the first argument."""
    def log2(self) -> Tensor:
        """The logarithm to base 2."""
    def log2_(self) -> Tensor:
        """`log2` in place: the result is written over the first argument."""
    def log_(self) -> Tensor:
        """`log` in place: the result is written over the first argument."""
    def log_ndtr(self) -> Tensor:
        """The logarithm of `ndtr`, also where that vanishes."""
    def log_ndtr_(self) -> Tensor:
        """`log_ndtr` in place: the result is written over the first argument."""
    def log_normal_(self, mean: builtins.float = 1.0, std: builtins.float = 2.0, generator: Generator | None = None) -> Tensor:
        """x becomes numbers whose logarithms are normal with this mean and standard deviation, in place."""
    def log_sigmoid(self) -> Tensor:
        """log σ(x)."""
    def log_sigmoid_(self) -> Tensor:
        """`log_sigmoid` in place: the result is written over the first argument."""
    @overload
    def log_softmax(self, dim: builtins.int = -1) -> Tensor:
        """The logarithm of the softmax along a dim."""
    @overload
    def log_softmax(self, dim: builtins.int = -1, *, dtype: _dtype) -> Tensor:
        """`log_softmax` of the tensor converted to `dtype`."""
    def log_softmax_grad(self, y: Tensor, dim: builtins.int) -> Tensor:
        """Gradient of log-softmax: dy - exp(y) sum(dy)."""
    @overload
    def logaddexp(self, b: Tensor) -> Tensor:
        """log(eᵃ + eᵇ), also where the powers overflow."""
    @overload
    def logaddexp(self, other: Tensor) -> Tensor: ...
    @overload
    def logaddexp2(self, b: Tensor) -> Tensor:
        """log2(2ᵃ + 2ᵇ), also where the powers overflow."""
    @overload
    def logaddexp2(self, other: Tensor) -> Tensor: ...
    def logaddexp2_(self, b: Tensor) -> Tensor:
        """`logaddexp2` in place: the result is written over the first argument."""
    def logaddexp_(self, b: Tensor) -> Tensor:
        """`logaddexp` in place: the result is written over the first argument."""
    @overload
    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        """The logarithm of the running sum of eˣ along a dim, also where the powers overflow."""
    @overload
    def logcumsumexp(self, dim: builtins.int, *, dtype: _dtype) -> Tensor:
        """`logcumsumexp` of the tensor converted to `dtype`."""
    def logdet(self) -> Tensor:
        """The logarithms of determinants: of a negative one NaN, of 0 minus infinity."""
    @overload
    def logical_and(self, b: Tensor) -> Tensor:
        """True where both elements are nonzero."""
    @overload
    def logical_and(self, other: Tensor) -> Tensor: ...
    def logical_and_(self, b: Tensor) -> Tensor:
        """`logical_and` in place: the result is written over the first argument."""
    def logical_not(self) -> Tensor:
        """True where x is zero."""
    def logical_not_(self) -> Tensor:
        """`logical_not` in place: the result is written over the first argument."""
    @overload
    def logical_or(self, b: Tensor) -> Tensor:
        """True where at least one element is nonzero."""
    @overload
    def logical_or(self, other: Tensor) -> Tensor: ...
    def logical_or_(self, b: Tensor) -> Tensor:
        """`logical_or` in place: the result is written over the first argument."""
    @overload
    def logical_xor(self, b: Tensor) -> Tensor:
        """True where exactly one element is nonzero."""
    @overload
    def logical_xor(self, other: Tensor) -> Tensor: ...
    def logical_xor_(self, b: Tensor) -> Tensor:
        """`logical_xor` in place: the result is written over the first argument."""
    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """log(x / (1 - x)), the inverse of `sigmoid`. With `eps` x is brought into `eps` to 1 - `eps` first; else what is outside of 0 to 1 gives NaN."""
    def logit_(self, eps: builtins.float | None = None) -> Tensor:
        """`logit` in place: the result is written over the first argument."""
    def logit_within(self, eps: builtins.float = -1.0) -> Tensor:
        """log(x / (1 - x)) of x brought into eps to 1 - eps, unless eps is negative."""
    @overload
    def logspace(self, end: builtins.float, steps: builtins.int, base: builtins.float, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False) -> Tensor:
        """Powers of `base`; the first exponent is read."""
    @overload
    def logspace(self, end: Tensor, steps: builtins.int, base: builtins.float, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False) -> Tensor:
        """Powers of `base`; both bounds of the exponents are read."""
    @overload
    def logspace(self, end: builtins.float, steps: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False) -> Tensor:
        """Powers of 10; the first exponent is read."""
    @overload
    def logspace(self, end: Tensor, steps: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False) -> Tensor:
        """Powers of 10; both bounds of the exponents are read."""
    @overload
    def logsumexp(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """The logarithm of the sum of eˣ over dims (none given: all), without overflow of eˣ."""
    @overload
    def logsumexp(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    def lp_pool1d(self, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), ceil_mode: builtins.bool = False) -> Tensor:
        """The p-norm of each window of the last dim, p = `norm_type`: the p-th root of the sum of xᵖ. `stride` is the kernel's size unless given."""
    def lp_pool2d(self, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), ceil_mode: builtins.bool = False) -> Tensor:
        """As `lp_pool1d` for 2 spatial dims."""
    def lp_pool3d(self, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), ceil_mode: builtins.bool = False) -> Tensor:
        """As `lp_pool1d` for 3 spatial dims."""
    def lstm(self, hx: Sequence[Tensor], params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False) -> _OutputH_nC_n:
        """A long short-term memory over `[T, B, input]` (`batch_first`: `[B, T, input]`; without a batch `[T, input]`), from the states `hx`: h and c of shape `[layers · directions, B, hidden]`. `params` has for each layer and direction w_ih, w_hh and, with `has_biases`, b_ih and b_hh, whose rows are those of the gates i, f, g and o. `dropout` is between layers, where `train` is set. If h is narrower than c, the weights of each layer and direction end with w_hr `[width of h, hidden]`, which h is multiplied with."""
    def lstm_cell(self, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> _HC:
        """One step of a long short-term memory for `[B, input]` or `[input]`, from h and c: the new ones."""
    @overload
    def lt(self, b: Tensor) -> Tensor:
        """True where a < b."""
    @overload
    def lt(self, other: Tensor) -> Tensor: ...
    @overload
    def lt(self, s: Number) -> Tensor:
        """True where x < s."""
    @overload
    def lt(self, other: Number) -> Tensor: ...
    @overload
    def lt_(self, b: Tensor) -> Tensor:
        """`lt` in place: the result is written over the first argument."""
    @overload
    def lt_(self, s: Number) -> Tensor:
        """`lt` in place: the result is written over the first argument."""
    def lu(self, pivot: builtins.bool = True, get_infos: builtins.bool = False) -> tuple[Tensor, ...]:
        """`linalg.lu_factor` of matrices of any rank, and with `get_infos` for each 0 or the number of the pivot that is zero."""
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """The solution for the results of `lu`. `linalg.lu_solve` has more forms."""
    def lu_unpack(self, LU_pivots: Tensor, unpack_data: builtins.bool = True, unpack_pivots: builtins.bool = True) -> _PLU:
        """P, L and U with `A = P L U` of the results of `lu`; what is not asked for has no elements."""
    @overload
    def margin_ranking_loss(self, x2: Tensor, target: Tensor, *, margin: builtins.float = 0.0, reduction: str = "mean") -> Tensor:
        """max(0, margin - target (x1 - x2)): with the target 1, x1 is to be larger by `margin`."""
    @overload
    def margin_ranking_loss(self, input2: Tensor, target: Tensor, *, margin: builtins.float = 0.0, reduction: str = "mean") -> Tensor: ...
    @overload
    def masked_fill(self, mask: Tensor, s: Number) -> Tensor:
        """s where the mask is true, else x. Shapes broadcast."""
    @overload
    def masked_fill(self, mask: Tensor, value: Number) -> Tensor: ...
    @overload
    def masked_fill(self, mask: Tensor, value: Tensor) -> Tensor:
        """x with the one number of a tensor where the mask holds."""
    @overload
    def masked_fill_(self, mask: Tensor, s: Number) -> Tensor:
        """`masked_fill` in place: the result is written over the first argument."""
    @overload
    def masked_fill_(self, mask: Tensor, value: Number) -> Tensor: ...
    @overload
    def masked_fill_(self, mask: Tensor, value: Tensor) -> Tensor:
        """`masked_fill` in place: the result is written over the first argument."""
    @overload
    def masked_scatter(self, mask: Tensor, src: Tensor) -> Tensor:
        """x with the elements of `src`, in row-major order, at the places where the bool tensor `mask` is true. The call waits for their number."""
    @overload
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor: ...
    def masked_scatter_(self, mask: Tensor, src: Tensor) -> Tensor:
        """`masked_scatter` in place: the result is written over the first argument."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where the bool tensor `mask` is true, in row-major order, as a tensor of one dim. Shapes broadcast. The gradient goes to the elements that were chosen. The call waits for the count, which decides the shape of the result."""
    def masked_spread(self, mask: Tensor) -> Tensor:
        """Gradient of masked_select: the values, one after the other, where the mask is true, zeros elsewhere."""
    def match_index(self, m: Tensor, dim: builtins.int) -> Tensor:
        """The logical index along a dim where x equals m (NaN equals NaN), elsewhere the largest i64."""
    @overload
    def matmul(self, b: Tensor, *, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False) -> Tensor:
        """The matrix product of `[..., m, k]` and `[..., k, n]`, of shape `[..., m, n]`. Leading dims broadcast; a vector is a matrix of one row or one column, as in PyTorch. Matrices may be transposed first."""
    @overload
    def matmul(self, other: Tensor, *, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False) -> Tensor: ...
    def matmul_rows(self, b: Tensor) -> Tensor:
        """aᵀ b summed over all leading dims: the gradient of a weight."""
    def matmul_t(self, b: Tensor) -> Tensor:
        """a bᵀ for `[..., m, k]` and `[..., n, k]`, of shape `[..., m, n]`."""
    def matrix_exp(self) -> Tensor:
        """The same as `linalg.matrix_exp`."""
    def matrix_power(self, n: builtins.int) -> Tensor:
        """The same as `linalg.matrix_power`."""
    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> _ValuesIndices:
        """The largest elements along `dim`, and where they are: among equals the first."""
    @overload
    def max(self) -> Tensor:
        """The largest element of all."""
    @overload
    def max(self, other: Tensor) -> Tensor:
        """The larger of each two elements."""
    @overload
    def max_pool(self, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The largest element of each window of the last dims; NaN where it has one."""
    @overload
    def max_pool(self, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], *size: builtins.int) -> Tensor: ...
    def max_pool1d(self, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False) -> Tensor:
        """The largest element of each window of the last dim of `[batch, channels, length]`, or without the batch. `stride` is the kernel's size unless given; `padding` adds -inf on both sides, at most half of a kernel. `ceil_mode` keeps a last window that is cut off."""
    def max_pool1d_with_indices(self, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False) -> _ValuesIndices:
        """`max_pool1d`, and where the elements are, counted over the spatial dims."""
    def max_pool2d(self, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False) -> Tensor:
        """As `max_pool1d` for 2 spatial dims."""
    def max_pool2d_with_indices(self, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False) -> _ValuesIndices:
        """`max_pool2d`, and where the elements are, counted over the spatial dims."""
    def max_pool3d(self, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False) -> Tensor:
        """As `max_pool1d` for 3 spatial dims."""
    def max_pool3d_with_indices(self, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False) -> _ValuesIndices:
        """`max_pool3d`, and where the elements are, counted over the spatial dims."""
    @overload
    def max_pool_index(self, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Where the largest element of each window is, counted over the pooled dims."""
    @overload
    def max_pool_index(self, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], *size: builtins.int) -> Tensor: ...
    @overload
    def max_unpool1d(self, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), output_size: builtins.int | Sequence[builtins.int] = ()) -> Tensor:
        """The elements of a max pooling at their places `indices`, as `max_pool1d_with_indices` gives them, and zeros elsewhere. The size is that of an image whose windows end with it, unless given."""
    @overload
    def max_unpool1d(self, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), *output_size: builtins.int) -> Tensor: ...
    @overload
    def max_unpool2d(self, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), output_size: builtins.int | Sequence[builtins.int] = ()) -> Tensor:
        """As `max_unpool1d` for 2 spatial dims."""
    @overload
    def max_unpool2d(self, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), *output_size: builtins.int) -> Tensor: ...
    @overload
    def max_unpool3d(self, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), output_size: builtins.int | Sequence[builtins.int] = ()) -> Tensor:
        """As `max_unpool1d` for 3 spatial dims."""
    @overload
    def max_unpool3d(self, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), *output_size: builtins.int) -> Tensor: ...
    @overload
    def maximum(self, b: Tensor) -> Tensor:
        """The larger element of each pair; NaN if either is NaN."""
    @overload
    def maximum(self, other: Tensor) -> Tensor: ...
    def maximum_(self, b: Tensor) -> Tensor:
        """`maximum` in place: the result is written over the first argument."""
    @overload
    def mean(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """The mean over dims (none given: all); NaN if there are no elements. For integers and bools the result is f32, computed in f64, so that sums do not overflow and every layout gives the same bits. Over a split dim the mean of floats is P(sum)."""
    @overload
    def mean(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def mean(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor:
        """`mean` of the tensor converted to `dtype`."""
    @overload
    def mean(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor: ...
    @overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = False) -> _ValuesIndices:
        """The median of each line along a dim, of an even number of elements the lower one of the two, and where it stood. NaN wins."""
    @overload
    def median(self) -> Tensor:
        """The median of all elements, of an even number the lower one of the two. NaN wins, and of no floats at all it is NaN. Equal elements share the gradient."""
    def middle(self) -> tuple[Tensor, Tensor]:
        """The median of all elements, of an even number the lower one of the two, and its place in row-major order. NaN wins."""
    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> _ValuesIndices:
        """The smallest elements along `dim`, and where they are: among equals the first."""
    @overload
    def min(self) -> Tensor:
        """The smallest element of all."""
    @overload
    def min(self, other: Tensor) -> Tensor:
        """The smaller of each two elements."""
    @overload
    def minimum(self, b: Tensor) -> Tensor:
        """The smaller element of each pair; NaN if either is NaN."""
    @overload
    def minimum(self, other: Tensor) -> Tensor: ...
    def minimum_(self, b: Tensor) -> Tensor:
        """`minimum` in place: the result is written over the first argument."""
    def minus_sign(self) -> Tensor:
        """True where x is below zero, or a zero with a minus sign."""
    def mish(self) -> Tensor:
        """x tanh(softplus(x))."""
    def mish_(self) -> Tensor:
        """`mish` in place: the result is written over the first argument."""
    def mm(self, b: Tensor) -> Tensor:
        """The product of two matrices."""
    def mode(self, dim: builtins.int = -1, keepdim: builtins.bool = False) -> _ValuesIndices:
        """The most frequent value along `dim` (the smallest of equally frequent ones), and the index of its last occurrence."""
    def modified_bessel_k0(self) -> Tensor:
        """The modified Bessel function of the second kind of order 0; NaN below 0."""
    def modified_bessel_k0_(self) -> Tensor:
        """`modified_bessel_k0` in place: the result is written over the first argument."""
    def modified_bessel_k1(self) -> Tensor:
        """The modified Bessel function of the second kind of order 1; NaN below 0."""
    def modified_bessel_k1_(self) -> Tensor:
        """`modified_bessel_k1` in place: the result is written over the first argument."""
    @overload
    def moveaxis(self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The same as `movedim`."""
    @overload
    def moveaxis(self, source: builtins.int | Sequence[builtins.int], *destination: builtins.int) -> Tensor: ...
    @overload
    def movedim(self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The dims `source` at the places `destination`; the others keep their order."""
    @overload
    def movedim(self, source: builtins.int | Sequence[builtins.int], *destination: builtins.int) -> Tensor: ...
    def mse_each(self, t: Tensor) -> Tensor:
        """(x - t)²."""
    def mse_loss(self, target: Tensor, *, reduction: str = "mean") -> Tensor:
        """The squared error (x - target)²: its mean, or what `reduction` says: `none`, `mean` or `sum`."""
    def msort(self) -> Tensor:
        """x sorted along its first dim."""
    @overload
    def mul(self, b: Tensor) -> Tensor:
        """a b, element by element."""
    @overload
    def mul(self, other: Tensor) -> Tensor: ...
    @overload
    def mul(self, s: Number) -> Tensor:
        """x s."""
    @overload
    def mul(self, other: Number) -> Tensor: ...
    @overload
    def mul_(self, b: Tensor) -> Tensor:
        """`mul` in place: the result is written over the first argument."""
    @overload
    def mul_(self, other: Tensor) -> Tensor: ...
    @overload
    def mul_(self, s: Number) -> Tensor:
        """`mul` in place: the result is written over the first argument."""
    @overload
    def mul_(self, other: Number) -> Tensor: ...
    def multi_margin_loss(self, target: Tensor, *, p: builtins.int = 1, margin: builtins.float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
        """Per row the mean over all classes but the target of max(0, margin - x[target] + x)ᵖ, times the weight of the target. p is 1 or 2."""
    def multilabel_margin_loss(self, target: Tensor, *, reduction: str = "mean") -> Tensor:
        """Per row the sum over labels y and classes c that are none of max(0, 1 - x[y] + x[c]), divided by the number of classes. The labels of a row are those before its first -1."""
    def multilabel_soft_margin_loss(self, target: Tensor, *, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
        """Per row the mean over the last dim of the binary cross entropy of logits, times `weight`."""
    def multinomial(self, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: Generator | None = None) -> Tensor:
        """`num_samples` indices of each row of weights, each drawn with a probability in proportion to its weight; without `replacement` no index comes twice, and indices without weight come last. Weights are not negative and have a finite sum; they need not add up to one. The indices do not depend on placement or SBP."""
    @overload
    def multiply(self, b: Tensor) -> Tensor:
        """The same as `mul`."""
    @overload
    def multiply(self, s: Number) -> Tensor:
        """The same as `mul`."""
    @overload
    def multiply_(self, b: Tensor) -> Tensor:
        """The same as `mul_`."""
    @overload
    def multiply_(self, s: Number) -> Tensor:
        """The same as `mul_`."""
    def mv(self, v: Tensor) -> Tensor:
        """The product of a matrix and a vector."""
    def mvlgamma(self, p: builtins.int) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension `p`: the sum of `lgamma(x - i / 2)` for i below p, and a constant."""
    def mvlgamma_(self, p: builtins.int) -> Tensor:
        """`mvlgamma` in place: the result is written over the first argument."""
    def nan_to_num(self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None) -> Tensor:
        """x with other numbers in the place of NaN, inf and -inf: `nan`, and the largest and the smallest finite number of the dtype unless they are given."""
    def nan_to_num_(self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None) -> Tensor:
        """`nan_to_num` in place: the result is written over the first argument."""
    @overload
    def nanmean(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """The mean over dims (none given: all) of the elements that are not NaN; NaN if there are none."""
    @overload
    def nanmean(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def nanmean(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor:
        """`nanmean` of the tensor converted to `dtype`."""
    @overload
    def nanmean(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor: ...
    @overload
    def nanmedian(self, dim: builtins.int, keepdim: builtins.bool = False) -> _ValuesIndices:
        """The middle value along `dim` of those that are not NaN (the lower of two), and where it is; NaN where all are."""
    @overload
    def nanmedian(self) -> Tensor:
        """The middle value of all elements that are not NaN, the lower of two."""
    @overload
    def nanquantile(self, q: builtins.float, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear") -> Tensor:
        """`quantile` of the elements that are not NaN; NaN where all elements are NaN."""
    @overload
    def nanquantile(self, q: builtins.float | Sequence[builtins.float], dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear") -> Tensor:
        """The quantiles of the elements that are not NaN, for several fractions."""
    @overload
    def nanquantile(self, q: Tensor, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear") -> Tensor:
        """The quantiles of the elements that are not NaN, for the fractions of a tensor, which are read."""
    @overload
    def nansum(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """The sum over dims (none given: all), with NaN counted as 0."""
    @overload
    def nansum(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def nansum(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor:
        """`nansum` of the tensor converted to `dtype`."""
    @overload
    def nansum(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor: ...
    @overload
    def narrow(self, dim: builtins.int, start: builtins.int, len: builtins.int) -> Tensor:
        """`len` elements of a dim from `start` on."""
    @overload
    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor: ...
    @overload
    def narrow(self, dim: builtins.int, start: Tensor, len: builtins.int) -> Tensor:
        """`len` elements of a dim from the position on that a tensor without dims holds, which is read."""
    @overload
    def narrow(self, dim: builtins.int, start: Tensor, length: builtins.int) -> Tensor: ...
    def ndimension(self) -> builtins.int:
        """The number of dims."""
    def ndtr(self) -> Tensor:
        """The normal distribution function: the area under the bell curve left of x."""
    def ndtr_(self) -> Tensor:
        """`ndtr` in place: the result is written over the first argument."""
    def ndtri(self) -> Tensor:
        """The inverse of `ndtr`: infinite at 0 and 1, NaN beyond."""
    def ndtri_(self) -> Tensor:
        """`ndtri` in place: the result is written over the first argument."""
    @overload
    def ne(self, b: Tensor) -> Tensor:
        """True where a != b."""
    @overload
    def ne(self, other: Tensor) -> Tensor: ...
    @overload
    def ne(self, s: Number) -> Tensor:
        """True where x != s."""
    @overload
    def ne(self, other: Number) -> Tensor: ...
    @overload
    def ne_(self, b: Tensor) -> Tensor:
        """`ne` in place: the result is written over the first argument."""
    @overload
    def ne_(self, s: Number) -> Tensor:
        """`ne` in place: the result is written over the first argument."""
    def neg(self) -> Tensor:
        """-x."""
    def neg_(self) -> Tensor:
        """`neg` in place: the result is written over the first argument."""
    def negative(self) -> Tensor:
        """The same as `neg`."""
    def negative_(self) -> Tensor:
        """The same as `neg_`."""
    def nelement(self) -> builtins.int:
        """The number of elements."""
    def next_half(self, b: Tensor, digits: builtins.float, least: builtins.float, most: builtins.float) -> Tensor:
        """`nextafter` of halves, which the numbers describe."""
    def nextafter(self, b: Tensor) -> Tensor:
        """The number next to a towards b, of those that the dtype has."""
    def nextafter_(self, b: Tensor) -> Tensor:
        """`nextafter` in place: the result is written over the first argument."""
    def nll_loss(self, target: Tensor, *, weight: Tensor | None = None, ignore_index: builtins.int | None = None, reduction: str = "mean", dim: builtins.int = 1) -> Tensor:
        """The negative log likelihood of log-probabilities whose classes lie along `dim`, as in PyTorch, and class indices with the other dims. `weight`, `ignore_index` and `reduction` are those of `cross_entropy`."""
    def nll_pick(self, target: Tensor, ignore_index: builtins.int = -100) -> Tensor:
        """Per row the logit of the target, 0 where it is ignored."""
    def nonzero(self) -> Tensor:
        """The indices of the elements that are not zero (NaN is not): i64, `[count, rank]`, in row-major order. A tensor split along dim 0 gives indices split along dim 0. The call waits for the count, which decides the shape of the result."""
    @overload
    def norm(self, p: builtins.float = 2.0, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """The p-norm over dims (none given: all): the p-th root of the sum of |x| to the power p. For p = inf it is the largest |x|, for -inf the smallest, for 0 the number of elements that are not zero."""
    @overload
    def norm(self, p: builtins.float = 2.0, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def norm(self, p: builtins.float = 2.0, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor:
        """`norm` of the tensor converted to `dtype`."""
    @overload
    def norm(self, p: builtins.float = 2.0, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor: ...
    @overload
    def norm(self, p: str, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, dtype: _dtype | None = None) -> Tensor:
        """The norm of Frobenius (fro) over dims, or the sum of the singular values (nuc) of matrices in two dims."""
    @overload
    def normal(self, std: Tensor, *, generator: Generator | None = None) -> Tensor:
        """Normal numbers, each with a mean and a standard deviation of its own. Shapes broadcast; there is a gradient of both."""
    @overload
    def normal(self, std: builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Normal numbers, each with a mean of its own, of one standard deviation."""
    def normal_(self, mean: builtins.float = 0.0, std: builtins.float = 1.0, generator: Generator | None = None) -> Tensor:
        """x becomes normal numbers with this mean and standard deviation, in place. They do not depend on placement or SBP."""
    def normalize(self, p: builtins.float = 2.0, dim: builtins.int = 1, *, eps: builtins.float = 1e-12) -> Tensor:
        """x divided by its p-norm along `dim`. A norm below `eps` is replaced by `eps`."""
    @overload
    def not_equal(self, b: Tensor) -> Tensor:
        """The same as `ne`."""
    @overload
    def not_equal(self, s: Number) -> Tensor:
        """The same as `ne`."""
    @overload
    def not_equal_(self, b: Tensor) -> Tensor:
        """The same as `ne_`."""
    @overload
    def not_equal_(self, s: Number) -> Tensor:
        """The same as `ne_`."""
    def numel(self) -> builtins.int:
        """The number of elements."""
    def one_hot(self, classes: builtins.int, *, dtype: _dtype = int64) -> Tensor:
        """For integer indices of any shape a new last dim of size `classes`: 1 at the index, 0 elsewhere."""
    @overload
    def ones_like(self) -> Tensor:
        """Ones of the same shape, dtype and layout."""
    @overload
    def ones_like(self, *, dtype: _dtype) -> Tensor:
        """Ones of the same shape and layout, of that dtype."""
    def orgqr(self, tau: Tensor) -> Tensor:
        """The same as `linalg.householder_product`."""
    def ormqr(self, tau: Tensor, other: Tensor, left: builtins.bool = True, transpose: builtins.bool = False) -> Tensor:
        """The product of the square Q of `geqrf`'s results and `other`, or of `other` and Q if not `left`; with `transpose` of Qᴴ."""
    @overload
    def outer(self, b: Tensor) -> Tensor:
        """The products of all elements of one vector with all of another, a matrix."""
    @overload
    def outer(self, vec2: Tensor) -> Tensor: ...
    @overload
    def pad(self, pad: builtins.int | Sequence[builtins.int], *, mode: str = "constant", value: Number = 0) -> Tensor:
        """x with elements around it: `pad` has a number before and one after for the last dim, then for the one before it, and so on. The mode `constant` puts `value` there, and cuts where a number is negative; `reflect` mirrors the tensor at its first and last elements, `replicate` repeats these, and `circular` goes around: these three for at most 3 dims."""
    @overload
    def pad(self, *pad: builtins.int, mode: str = "constant", value: Number = 0) -> Tensor: ...
    def pad_constant(self, before: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int], value: Number = 0) -> Tensor:
        """x in a tensor of shape `size`, its first element at `before`, and a number around it. What is outside is left out."""
    def pairwise_distance(self, x2: Tensor, *, p: builtins.float = 2.0, eps: builtins.float = 1e-6, keepdim: builtins.bool = False) -> Tensor:
        """The p-norm of x1 - x2 + eps along the last dim."""
    def pca_lowrank(self, q: builtins.int | None = None, center: builtins.bool = True, niter: builtins.int = 2) -> _USV:
        """About the q first principal components of the rows of A, as columns of V, by random projections."""
    def pdist(self, p: builtins.float = 2.0) -> Tensor:
        """The p-norms of the differences of each two rows of a matrix: the upper triangle of `cdist(x, x)`, row by row."""
    @overload
    def permute(self, dims: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The dims in the order `dims`."""
    @overload
    def permute(self, *dims: builtins.int) -> Tensor: ...
    def pinverse(self, rcond: builtins.float = 1e-15) -> Tensor:
        """The pseudo-inverse: `linalg.pinv` with the relative tolerance `rcond`."""
    def pixel_shuffle(self, upscale_factor: builtins.int) -> Tensor:
        """`[..., channels * r², height, width]` as `[..., channels, height * r, width * r]`: r² channels become squares of pixels."""
    def pixel_unshuffle(self, downscale_factor: builtins.int) -> Tensor:
        """`[..., channels, height * r, width * r]` as `[..., channels * r², height, width]`: the inverse of `pixel_shuffle`."""
    def poisson_nll_loss(self, target: Tensor, *, log_input: builtins.bool = True, full: builtins.bool = False, eps: builtins.float = 1e-8, reduction: str = "mean") -> Tensor:
        """The negative log likelihood of counts under a Poisson distribution whose rate is x, or with `log_input` eˣ. `full` adds Stirling's approximation for targets above 1."""
    def polar(self, angle: Tensor) -> Tensor:
        """The complex numbers with these absolute values and angles, in radians."""
    def polygamma(self, n: builtins.int) -> Tensor:
        """The derivative of order n of `digamma`."""
    def polygamma_(self, n: builtins.int) -> Tensor:
        """`polygamma` in place: the result is written over the first argument."""
    def positive(self) -> Tensor:
        """The tensor itself."""
    @overload
    def pow(self, b: Tensor) -> Tensor:
        """a to the power b."""
    @overload
    def pow(self, exponent: Tensor) -> Tensor: ...
    @overload
    def pow(self, s: Number) -> Tensor:
        """x to the power s."""
    @overload
    def pow(self, exponent: Number) -> Tensor: ...
    @overload
    def pow_(self, b: Tensor) -> Tensor:
        """`pow` in place: the result is written over the first argument."""
    @overload
    def pow_(self, exponent: Tensor) -> Tensor: ...
    @overload
    def pow_(self, s: Number) -> Tensor:
        """`pow` in place: the result is written over the first argument."""
    @overload
    def pow_(self, exponent: Number) -> Tensor: ...
    def prelu(self, weight: Tensor) -> Tensor:
        """x, or `weight` x where x is not above 0. The weight is one number, or one for each channel, dim 1 of x."""
    @overload
    def prod(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """The product over dims (none given: all). Integers and bools multiply to i64."""
    @overload
    def prod(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def prod(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor:
        """`prod` of the tensor converted to `dtype`."""
    @overload
    def prod(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor: ...
    def put(self, ids: Tensor, src: Tensor, accumulate: builtins.bool = False) -> Tensor:
        """x with the elements of `src` at these places, counted row-major; with `accumulate` they are added."""
    def put_(self, ids: Tensor, src: Tensor, accumulate: builtins.bool = False) -> Tensor:
        """`put` in place: the result is written over the first argument."""
    def q_scale(self) -> builtins.float:
        """The scale of a quantised tensor."""
    def q_zero_point(self) -> builtins.int:
        """The zero point of a quantised tensor."""
    def qr(self, some: builtins.bool = True) -> _QR:
        """Q with orthonormal columns and R upper triangular; without `some` a square Q. `linalg.qr` has more forms."""
    @overload
    def quantile(self, q: builtins.float, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear") -> Tensor:
        """The `q`-quantile: the value below which the fraction `q` of the elements along `dim` lies; without `dim`, of all elements. Between two elements `interpolation` decides: `linear`, `lower`, `higher`, `midpoint` or `nearest`. If an element is NaN, the quantile is NaN."""
    @overload
    def quantile(self, q: builtins.float | Sequence[builtins.float], dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear") -> Tensor:
        """The quantiles for several fractions `q`, along a new first dim."""
    @overload
    def quantile(self, q: Tensor, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear") -> Tensor:
        """The quantiles for the fractions of a tensor, which are read: one, or several along a new first dim."""
    def quantize(self, dtype: _dtype) -> Tensor:
        """x in a quantised dtype, `qint8`, `quint8`, `qint16` or `qint32`: x by the scale, rounded (ties to even), plus the zero point, within the integers that the dtype stores. NaN, which no integer stands for, is stored as 0. It has no gradient."""
    def quantize_per_tensor(self, scale: builtins.float, zero_point: builtins.int, dtype: str = "qint8") -> Tensor:
        """x in the quantised dtype of that family (qint8, quint8, qint16, qint32) with this scale and zero point."""
    def quantized_matmul(self, b: Tensor, dtype: _dtype) -> Tensor:
        """The product of quantised matrices, quantised with `dtype`. The sums are those of integers, exact, so the result is the same under every layout."""
    def quick_gelu(self) -> Tensor:
        """x σ(1.702 x), the sigmoid approximation of GELU."""
    def quick_gelu_(self) -> Tensor:
        """`quick_gelu` in place: the result is written over the first argument."""
    def rad2deg(self) -> Tensor:
        """Radians in degrees."""
    def rad2deg_(self) -> Tensor:
        """`rad2deg` in place: the result is written over the first argument."""
    @overload
    def rand_like(self) -> Tensor:
        """Uniform numbers in [0, 1), with the same shape, dtype and layout."""
    @overload
    def rand_like(self, *, dtype: _dtype) -> Tensor:
        """Uniform numbers in [0, 1) of the same shape and layout, of that dtype."""
    @overload
    def randint_like(self, lo: builtins.int, hi: builtins.int) -> Tensor:
        """Integers in [lo, hi), with the same shape, dtype and layout."""
    @overload
    def randint_like(self, low: builtins.int, high: builtins.int) -> Tensor: ...
    @overload
    def randint_like(self, hi: builtins.int) -> Tensor:
        """Integers in [0, hi), with the same shape, dtype and layout."""
    @overload
    def randint_like(self, high: builtins.int) -> Tensor: ...
    @overload
    def randint_like(self, hi: builtins.int, *, dtype: _dtype) -> Tensor:
        """Integers in [0, hi) of the same shape and layout, of that dtype."""
    @overload
    def randint_like(self, high: builtins.int, *, dtype: _dtype) -> Tensor: ...
    @overload
    def randint_like(self, lo: builtins.int, hi: builtins.int, *, dtype: _dtype) -> Tensor:
        """Integers in [lo, hi) of the same shape and layout, of that dtype."""
    @overload
    def randint_like(self, low: builtins.int, high: builtins.int, *, dtype: _dtype) -> Tensor: ...
    @overload
    def randn_like(self) -> Tensor:
        """Normal numbers with mean 0 and standard deviation 1, with the same shape, dtype and layout."""
    @overload
    def randn_like(self, *, dtype: _dtype) -> Tensor:
        """Normal numbers of the same shape and layout, of that dtype."""
    def ranking_each(self, b: Tensor, t: Tensor, margin: builtins.float = 0.0) -> Tensor:
        """max(0, margin - t (a - b))."""
    def ravel(self) -> Tensor:
        """All elements as one dim."""
    def rdiv(self, s: Number) -> Tensor:
        """s / x."""
    def rdiv_(self, s: Number) -> Tensor:
        """`rdiv` in place: the result is written over the first argument."""
    def reciprocal(self) -> Tensor:
        """1 / x."""
    def reciprocal_(self) -> Tensor:
        """`reciprocal` in place: the result is written over the first argument."""
    def relu(self) -> Tensor:
        """max(x, 0)."""
    def relu6(self) -> Tensor:
        """x, but not below 0 and not above 6."""
    def relu6_(self) -> Tensor:
        """`relu6` in place: the result is written over the first argument."""
    def relu_(self) -> Tensor:
        """`relu` in place: the result is written over the first argument."""
    @overload
    def remainder(self, b: Tensor) -> Tensor:
        """The remainder of a / b with the sign of b. Integers divided by 0 are an error."""
    @overload
    def remainder(self, other: Tensor) -> Tensor: ...
    @overload
    def remainder(self, s: Number) -> Tensor:
        """The remainder of x / s with the sign of s."""
    @overload
    def remainder(self, other: Number) -> Tensor: ...
    @overload
    def remainder_(self, b: Tensor) -> Tensor:
        """`remainder` in place: the result is written over the first argument."""
    @overload
    def remainder_(self, other: Tensor) -> Tensor: ...
    @overload
    def remainder_(self, s: Number) -> Tensor:
        """`remainder` in place: the result is written over the first argument."""
    @overload
    def remainder_(self, other: Number) -> Tensor: ...
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """x with each slice along `dim` whose p-norm is above `maxnorm` scaled to have that norm."""
    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """`renorm` in place: the result is written over the first argument."""
    @overload
    def repeat(self, repeats: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The tensor repeated along each dim. More counts than dims make new dims in front."""
    @overload
    def repeat(self, *repeats: builtins.int) -> Tensor: ...
    @overload
    def repeat_interleave(self, repeats: builtins.int, *, dim: builtins.int | None = None) -> Tensor:
        """Each element `repeats` times in a row along `dim`; without `dim`, of the flattened tensor."""
    @overload
    def repeat_interleave(self, repeats: Tensor, *, dim: builtins.int | None = None, output_size: builtins.int | None = None) -> Tensor:
        """Each slice along `dim` so many times as the list says; without `dim` each element. The list is read where `output_size` is not given."""
    def replace_not_finite(self, nan: builtins.float, posinf: builtins.float, neginf: builtins.float) -> Tensor:
        """x with these numbers in the place of NaN, inf and -inf."""
    def resample(self, mode: str, size: builtins.int | Sequence[builtins.int], aligned: builtins.bool = False, steps: builtins.int | Sequence[builtins.int] = (), scales: builtins.float | Sequence[builtins.float] = ()) -> Tensor:
        """The last dims with other sizes: elements around them (reflect, replicate, circular, with `steps` before each dim), interpolated (nearest, nearest-exact, linear, cubic), or windows of them (with number, stride, padding, dilation of each dim)."""
    def resample_grad(self, mode: str, size: builtins.int | Sequence[builtins.int], aligned: builtins.bool = False, steps: builtins.int | Sequence[builtins.int] = (), scales: builtins.float | Sequence[builtins.float] = ()) -> Tensor:
        """The gradient of resample: each element, times its weights, added to the elements that it was made of."""
    @overload
    def reshape(self, shape: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The same elements, in row-major order, as another shape. One size may be -1: it follows from the others."""
    @overload
    def reshape(self, *shape: builtins.int) -> Tensor: ...
    def reshape_as(self, other: Tensor) -> Tensor:
        """`reshape` to the shape of another tensor."""
    def resolve_conj(self) -> Tensor:
        """The tensor itself: conjugates are computed at once here."""
    def resolve_neg(self) -> Tensor:
        """The tensor itself: signs are computed at once here."""
    @overload
    def result_type(self, tensor2: Tensor) -> _dtype:
        """The dtype that a sum of these has. Tensors without dims count only if they are of a higher kind."""
    @overload
    def result_type(self, scalar: Number) -> _dtype:
        """The dtype that a sum of a tensor and a number has."""
    def ring_attention_return(self, keys: builtins.int, turn: builtins.int, queries: builtins.int, causal: builtins.bool = False) -> Tensor:
        """What the pieces of a turn of ring attention give to each of the `keys`: those of part j are in piece (j + turn) mod parts. 0 for keys that no query of the turn sees."""
    def ring_attention_step(self, k: Tensor, v: Tensor, parts: builtins.int, turn: builtins.int, causal: builtins.bool = False, *, scale: builtins.float) -> _OutLse:
        """One turn of ring attention: the sequences are cut into `parts` balanced parts, and part i of the queries sees part (i - turn) mod parts of the keys alone. A query that sees nothing gives 0, and minus infinity as the logarithm of its sum. No gradient: `attention`, which is made of such turns, has it."""
    def ring_attention_step_grad(self, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, parts: builtins.int, turn: builtins.int, causal: builtins.bool = False, *, scale: builtins.float) -> _DqDkDv:
        """Gradients of one turn of ring attention, from the results of all turns. Piece i of `dk` and `dv`, which have a leading dim of `parts`, is what part i of the queries gives to the keys that it meets; pieces are as long as the longest part, with zeros at the end."""
    def rms_norm(self, weight: Tensor | None = None, eps: builtins.float | None = None, *, axes: builtins.int | None = None) -> Tensor:
        """x divided by the root mean square over the last dims, times `weight`. The number of dims is that of `weight`, 1 without one, unless `axes` says otherwise. `eps` is added to the mean square; it is the distance from 1 to the next number of x's dtype, for halves of f32, unless given."""
    def rms_norm_grad(self, x: Tensor, rstd: Tensor, weight: Tensor | None = None, axes: builtins.int = 1) -> _DxDweight:
        """Gradients of rms_norm."""
    def rnn_relu(self, hx: Tensor, params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False) -> _OutputH_n:
        """A recurrent network with relu over a sequence, as `lstm`."""
    def rnn_relu_cell(self, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
        """relu(x w_ihᵀ + b_ih + hx w_hhᵀ + b_hh)."""
    def rnn_tanh(self, hx: Tensor, params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False) -> _OutputH_n:
        """A recurrent network with tanh over a sequence, as `lstm`."""
    def rnn_tanh_cell(self, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
        """tanh(x w_ihᵀ + b_ih + hx w_hhᵀ + b_hh)."""
    @overload
    def roll(self, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] = ()) -> Tensor:
        """Elements moved by `shifts` places along `dims`; what leaves at the end comes in at the front. Without dims, the flattened tensor is rolled and keeps its shape."""
    @overload
    def roll(self, shifts: builtins.int | Sequence[builtins.int], *dims: builtins.int) -> Tensor: ...
    def roll_along(self, dim: builtins.int, shift: builtins.int) -> Tensor:
        """The elements moved by `shift` places along a dim; what leaves at the end comes in at the front."""
    def root(self) -> Tensor:
        """√x, with the gradient 0 at 0: the root of a sum of squares."""
    @overload
    def rot90(self, k: builtins.int = 1, dims: builtins.int | Sequence[builtins.int] = (0, 1)) -> Tensor:
        """The plane of two dims turned by `k` quarters, from the first towards the second."""
    @overload
    def rot90(self, k: builtins.int = 1, *dims: builtins.int) -> Tensor: ...
    def rotary_embedding(self, cos: Tensor, sin: Tensor, *, interleaved: builtins.bool = False) -> Tensor:
        """Rotary position embedding: pairs of the elements of each row of x `[..., positions, width]` turned by angles whose cosines and sines `[positions, pairs]` are given (more dims broadcast to those of x). A pair is elements i and `pairs + i`, or with `interleaved` 2 i and 2 i + 1. Elements beyond the pairs stay as they are."""
    @overload
    def round(self) -> Tensor:
        """The nearest integer, ties to even."""
    @overload
    def round(self, *, decimals: builtins.int) -> Tensor:
        """x rounded to so many digits behind the point, before it if negative; halves to the even one."""
    @overload
    def round_(self) -> Tensor:
        """`round` in place: the result is written over the first argument."""
    @overload
    def round_(self, *, decimals: builtins.int) -> Tensor:
        """`round` in place: the result is written over the first argument."""
    def rpow(self, s: Number) -> Tensor:
        """s to the power x."""
    def rpow_(self, s: Number) -> Tensor:
        """`rpow` in place: the result is written over the first argument."""
    def rrelu(self, lower: builtins.float = 0.125, upper: builtins.float = 0.3333333333333333, training: builtins.bool = False, *, generator: Generator | None = None) -> Tensor:
        """x, or a slope times x where x is not above 0: with `training` each element has a random slope from `lower` to `upper`, else all have their mean."""
    def rsqrt(self) -> Tensor:
        """1 / √x."""
    def rsqrt_(self) -> Tensor:
        """`rsqrt` in place: the result is written over the first argument."""
    @overload
    def rsub(self, s: Number) -> Tensor:
        """s - x."""
    @overload
    def rsub(self, other: Number) -> Tensor: ...
    @overload
    def rsub(self, b: Tensor, *, alpha: Number = 1) -> Tensor:
        """b - `alpha` a."""
    @overload
    def rsub(self, other: Tensor, *, alpha: Number = 1) -> Tensor: ...
    @overload
    def rsub(self, s: Number, *, alpha: Number) -> Tensor:
        """s - `alpha` x."""
    @overload
    def rsub(self, other: Number, *, alpha: Number) -> Tensor: ...
    def rsub_(self, s: Number) -> Tensor:
        """`rsub` in place: the result is written over the first argument."""
    def scale_many(self, xs: Sequence[Tensor]) -> None:
        """Multiplies many tensors in place by a number that is a tensor."""
    def scaled_dot_product_attention(self, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: builtins.float = 0.0, is_causal: builtins.bool = False, *, scale: builtins.float | None = None, enable_gqa: builtins.bool = False) -> Tensor:
        """softmax(scale q kᵀ + mask) v over the last two dims. `attn_mask` broadcasts to the scores `[..., Tq, Tk]`: a bool mask is true where a query sees a key, a float mask is added. With `is_causal` query i sees keys 0..=i only. `dropout_p` is for the weights. `enable_gqa` repeats the heads of keys and values (dim -3) as often as the queries have more. A query that sees no key gives 0."""
    def scaled_modified_bessel_k0(self) -> Tensor:
        """eˣ times `modified_bessel_k0`."""
    def scaled_modified_bessel_k0_(self) -> Tensor:
        """`scaled_modified_bessel_k0` in place: the result is written over the first argument."""
    def scaled_modified_bessel_k1(self) -> Tensor:
        """eˣ times `modified_bessel_k1`."""
    def scaled_modified_bessel_k1_(self) -> Tensor:
        """`scaled_modified_bessel_k1` in place: the result is written over the first argument."""
    @overload
    def scatter(self, dim: builtins.int, ids: Tensor, src: Tensor) -> Tensor:
        """x with each element of `src` written at its index along `dim`; of several at one place the last stands."""
    @overload
    def scatter(self, dim: builtins.int, index: Tensor, value: Tensor) -> Tensor: ...
    @overload
    def scatter(self, dim: builtins.int, ids: Tensor, value: Number) -> Tensor:
        """x with one number written at each index along `dim`."""
    @overload
    def scatter(self, dim: builtins.int, index: Tensor, value: Number) -> Tensor: ...
    @overload
    def scatter(self, dim: builtins.int, ids: Tensor, src: Tensor, *, reduce: str) -> Tensor:
        """x with each element of `src` written at its index along `dim`, or with `reduce` added to (`"add"`) or multiplied with (`"multiply"`) what is there."""
    @overload
    def scatter(self, dim: builtins.int, index: Tensor, value: Tensor, *, reduce: str) -> Tensor: ...
    @overload
    def scatter(self, dim: builtins.int, ids: Tensor, value: Number, *, reduce: str) -> Tensor:
        """The same with one number."""
    @overload
    def scatter(self, dim: builtins.int, index: Tensor, value: Number, *, reduce: str) -> Tensor: ...
    @overload
    def scatter_(self, dim: builtins.int, ids: Tensor, src: Tensor) -> Tensor:
        """`scatter` in place: the result is written over the first argument."""
    @overload
    def scatter_(self, dim: builtins.int, ids: Tensor, value: Number) -> Tensor:
        """`scatter` in place: the result is written over the first argument."""
    @overload
    def scatter_(self, dim: builtins.int, ids: Tensor, src: Tensor, *, reduce: str) -> Tensor:
        """`scatter` in place: the result is written over the first argument."""
    @overload
    def scatter_(self, dim: builtins.int, ids: Tensor, value: Number, *, reduce: str) -> Tensor:
        """`scatter` in place: the result is written over the first argument."""
    @overload
    def scatter_add(self, dim: builtins.int, ids: Tensor, src: Tensor) -> Tensor:
        """x with each element of `src` added at its index along `dim`."""
    @overload
    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor: ...
    def scatter_add_(self, dim: builtins.int, ids: Tensor, src: Tensor) -> Tensor:
        """`scatter_add` in place: the result is written over the first argument."""
    def scatter_fill(self, ids: Tensor, dim: builtins.int, s: Number) -> Tensor:
        """x with one number written at each index along a dim."""
    def scatter_into(self, ids: Tensor, src: Tensor, dim: builtins.int) -> Tensor:
        """x with each element of `src` written at its index along a dim; of several at one place the last stands."""
    @overload
    def scatter_reduce(self, dim: builtins.int, ids: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
        """x with the elements of `src` reduced at their indices along `dim`: `reduce` is `sum`, `mean`, `amax` or `amin`. With `include_self` the element of x counts as one of them, else it stays only where no index is. Equal extremes share the gradient."""
    @overload
    def scatter_reduce(self, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True) -> Tensor: ...
    def scatter_reduce_(self, dim: builtins.int, ids: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
        """`scatter_reduce` in place: the result is written over the first argument."""
    def scatter_sum(self, ids: Tensor, dim: builtins.int, rows: builtins.int) -> Tensor:
        """Zeros to which each value is added at its index along a dim, which has `rows` elements: the gradient of gather."""
    @overload
    def searchsorted(self, x: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False) -> Tensor:
        """For each value the place where it can be inserted into a sorted sequence: how many of its elements are smaller, or with `right` not greater. The sequence has one dim, or there is one for each row of x: then all dims but the last are those of x. NaN count as the largest. Places are i64, or i32 with `out_int32`. A split sequence gives P(sum)."""
    @overload
    def searchsorted(self, input: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False) -> Tensor: ...
    @overload
    def searchsorted(self, x: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False, side: str | None = None, sorter: Tensor | None = None) -> Tensor:
        """How many of the sorted boundaries stand before each element: `side` says which of the equal ones count."""
    @overload
    def searchsorted(self, input: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False, side: str | None = None, sorter: Tensor | None = None) -> Tensor: ...
    @overload
    def searchsorted(self, s: Number, *, out_int32: builtins.bool = False, right: builtins.bool = False) -> Tensor:
        """The positions in sorted boundaries of one number."""
    @overload
    def searchsorted(self, input: Number, *, out_int32: builtins.bool = False, right: builtins.bool = False) -> Tensor: ...
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """The element `index` along `dim`, which is removed. A negative index counts from the end."""
    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
        """x with `src` in the place of its slice `index` along `dim`."""
    def selu(self) -> Tensor:
        """SELU (Klambauer et al., 2017): a scaled ELU that keeps mean 0 and variance 1."""
    def selu_(self) -> Tensor:
        """`selu` in place: the result is written over the first argument."""
    def sgd_step(self, grad: Tensor, momentum: Tensor | None, lr: builtins.float, decay: builtins.float = 0.0, dampening: builtins.float = 0.0, weight_decay: builtins.float = 0.0, nesterov: builtins.bool = False, first: builtins.bool = False) -> None:
        """One step of SGD with momentum, PyTorch's formula."""
    def sgn(self) -> Tensor:
        """x / |x|, and 0 of 0: -1, 0 or 1 for real numbers."""
    def sgn_(self) -> Tensor:
        """`sgn` in place: the result is written over the first argument."""
    def shards_to_global(self, placement: _placement, sbp: Sbp | str | Sequence[Sbp | str], grad_sbp: Sbp | str | Sequence[Sbp | str] | None = None) -> Tensor:
        """Each rank's local tensor becomes its shard; shapes are compared, B shards are made equal."""
    @overload
    def shifted_chebyshev_polynomial_t(self, n: Tensor) -> Tensor:
        """The Chebyshev polynomial of the first kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def shifted_chebyshev_polynomial_t(self, n: Number) -> Tensor:
        """`shifted_chebyshev_polynomial_t` with a number as n."""
    def shifted_chebyshev_polynomial_t_(self, n: Tensor) -> Tensor:
        """`shifted_chebyshev_polynomial_t` in place: the result is written over the first argument."""
    @overload
    def shifted_chebyshev_polynomial_u(self, n: Tensor) -> Tensor:
        """The Chebyshev polynomial of the second kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def shifted_chebyshev_polynomial_u(self, n: Number) -> Tensor:
        """`shifted_chebyshev_polynomial_u` with a number as n."""
    def shifted_chebyshev_polynomial_u_(self, n: Tensor) -> Tensor:
        """`shifted_chebyshev_polynomial_u` in place: the result is written over the first argument."""
    @overload
    def shifted_chebyshev_polynomial_v(self, n: Tensor) -> Tensor:
        """The Chebyshev polynomial of the third kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def shifted_chebyshev_polynomial_v(self, n: Number) -> Tensor:
        """`shifted_chebyshev_polynomial_v` with a number as n."""
    def shifted_chebyshev_polynomial_v_(self, n: Tensor) -> Tensor:
        """`shifted_chebyshev_polynomial_v` in place: the result is written over the first argument."""
    @overload
    def shifted_chebyshev_polynomial_w(self, n: Tensor) -> Tensor:
        """The Chebyshev polynomial of the fourth kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
    @overload
    def shifted_chebyshev_polynomial_w(self, n: Number) -> Tensor:
        """`shifted_chebyshev_polynomial_w` with a number as n."""
    def shifted_chebyshev_polynomial_w_(self, n: Tensor) -> Tensor:
        """`shifted_chebyshev_polynomial_w` in place: the result is written over the first argument."""
    def sigmoid(self) -> Tensor:
        """The sigmoid σ(x) = 1 / (1 + e⁻ˣ)."""
    def sigmoid_(self) -> Tensor:
        """`sigmoid` in place: the result is written over the first argument."""
    def sign(self) -> Tensor:
        """-1, 0 or 1, in the dtype of x."""
    def sign_(self) -> Tensor:
        """`sign` in place: the result is written over the first argument."""
    def signbit(self) -> Tensor:
        """True where x is below zero, or a zero with a minus sign."""
    def silu(self) -> Tensor:
        """x σ(x)."""
    def silu_(self) -> Tensor:
        """`silu` in place: the result is written over the first argument."""
    def sin(self) -> Tensor:
        """The sine, of radians."""
    def sin_(self) -> Tensor:
        """`sin` in place: the result is written over the first argument."""
    def sinc(self) -> Tensor:
        """sin(πx) / (πx), and 1 of 0."""
    def sinc_(self) -> Tensor:
        """`sinc` in place: the result is written over the first argument."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine."""
    def sinh_(self) -> Tensor:
        """`sinh` in place: the result is written over the first argument."""
    @overload
    def size(self, dim: builtins.int) -> builtins.int:
        """The size of a dim. Negative dims count from the end."""
    @overload
    def size(self) -> tuple[builtins.int, ...]:
        """The logical shape."""
    def slice(self, dim: builtins.int, start: builtins.int, end: builtins.int, step: builtins.int = 1) -> Tensor:
        """Elements `start`, `start + step`, … below `end` of a dim. Negative bounds count from the end; bounds are clamped to the size."""
    def slice_grad(self, dim: builtins.int, start: builtins.int, step: builtins.int, size: builtins.int) -> Tensor:
        """Zeros of `size` along a dim with dy at start, start + step, …: the gradient of slice."""
    def slice_scatter(self, src: Tensor, dim: builtins.int = 0, start: builtins.int | None = None, end: builtins.int | None = None, step: builtins.int = 1) -> Tensor:
        """x with `src` in the place of its slice `start`, `start + step`, … below `end` along `dim`."""
    def slogdet(self) -> _SignLogabsdet:
        """The same as `linalg.slogdet`."""
    def smooth_l1_each(self, t: Tensor, beta: builtins.float = 1.0) -> Tensor:
        """(x - t)² / (2 beta) where |x - t| is below beta, else |x - t| - beta / 2."""
    def smooth_l1_loss(self, target: Tensor, *, beta: builtins.float = 1.0, reduction: str = "mean") -> Tensor:
        """The squared error over 2 `beta` where |x - target| is below `beta`, else the absolute error less `beta` / 2."""
    def soft_margin_each(self, t: Tensor) -> Tensor:
        """log(1 + e^(-t x))."""
    def soft_margin_loss(self, target: Tensor, *, reduction: str = "mean") -> Tensor:
        """log(1 + e^(-target x)), for targets 1 and -1."""
    @overload
    def softmax(self, dim: builtins.int = -1) -> Tensor:
        """The softmax along a dim: exp(x) divided by its sum."""
    @overload
    def softmax(self, dim: builtins.int = -1, *, dtype: _dtype) -> Tensor:
        """`softmax` of the tensor converted to `dtype`."""
    def softmax_grad(self, y: Tensor, dim: builtins.int) -> Tensor:
        """Gradient of softmax: y (dy - sum(dy y))."""
    def softplus(self, *, beta: builtins.float = 1.0, threshold: builtins.float = 20.0) -> Tensor:
        """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."""
    def softplus_(self, *, beta: builtins.float = 1.0, threshold: builtins.float = 20.0) -> Tensor:
        """`softplus` in place: the result is written over the first argument."""
    def softshrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """x moved towards zero by lambd, or 0 where |x| is not above lambd."""
    def softshrink_(self, lambd: builtins.float = 0.5) -> Tensor:
        """`softshrink` in place: the result is written over the first argument."""
    def softsign(self) -> Tensor:
        """x / (1 + |x|)."""
    def softsign_(self) -> Tensor:
        """`softsign` in place: the result is written over the first argument."""
    def sort(self, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False) -> _ValuesIndices:
        """The elements of each line along a dim from the smallest to the largest, or with `descending` from the largest, and where they stood. NaN count as the largest. Equal elements always keep their order, so `stable` changes nothing."""
    def spherical_bessel_j0(self) -> Tensor:
        """The spherical Bessel function of the first kind of order 0: sin(x) / x, and 1 of 0."""
    def spherical_bessel_j0_(self) -> Tensor:
        """`spherical_bessel_j0` in place: the result is written over the first argument."""
    @overload
    def split(self, size: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Parts of a dim with `size` elements; the last part may be smaller."""
    @overload
    def split(self, split_size_or_sections: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def split(self, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Parts of a dim with these sizes, which add up to its size."""
    @overload
    def split(self, split_size_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def split_with_sizes(self, size: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The same as `split`."""
    @overload
    def split_with_sizes(self, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The same as `split`."""
    def sqrt(self) -> Tensor:
        """The square root; NaN below zero."""
    def sqrt_(self) -> Tensor:
        """`sqrt` in place: the result is written over the first argument."""
    def square(self) -> Tensor:
        """x²; of bools integers."""
    def square_(self) -> Tensor:
        """`square` in place: the result is written over the first argument."""
    @overload
    def squeeze(self, dim: builtins.int) -> Tensor:
        """Without `dim`, if its size is 1; otherwise the tensor unchanged, as in PyTorch."""
    @overload
    def squeeze(self, dims: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Without those of the dims that have size 1."""
    @overload
    def squeeze(self, dim: builtins.int | Sequence[builtins.int]) -> Tensor: ...
    @overload
    def squeeze(self) -> Tensor:
        """x without its dims of size 1."""
    @overload
    def squeeze(self, *dims: builtins.int) -> Tensor: ...
    @overload
    def std(self, dims: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> Tensor:
        """The standard deviation: the root of the variance."""
    @overload
    def std(self, dim: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> Tensor: ...
    @overload
    def std(self, dims: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False) -> Tensor:
        """The standard deviation over dims, with a correction of 1 if `unbiased`, else of 0."""
    @overload
    def std(self, dim: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def std(self, unbiased: builtins.bool) -> Tensor:
        """The standard deviation of all elements, with a correction of 1 if `unbiased`, else of 0."""
    @overload
    def std(self, *dims: builtins.int, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> Tensor: ...
    @overload
    def std_mean(self, dims: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> _StdMean:
        """The standard deviation, as `std`, and the mean over dims (none given: all)."""
    @overload
    def std_mean(self, dim: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> _StdMean: ...
    @overload
    def std_mean(self, dims: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False) -> _StdMean:
        """The standard deviation over dims, with a correction of 1 if `unbiased`, else of 0, and the mean."""
    @overload
    def std_mean(self, dim: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False) -> _StdMean: ...
    @overload
    def std_mean(self, unbiased: builtins.bool) -> _StdMean:
        """The standard deviation of all elements, with a correction of 1 if `unbiased`, else of 0, and the mean."""
    @overload
    def std_mean(self, *dims: builtins.int, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> _StdMean: ...
    @overload
    def sub(self, b: Tensor) -> Tensor:
        """a - b."""
    @overload
    def sub(self, other: Tensor) -> Tensor: ...
    @overload
    def sub(self, b: Tensor, *, alpha: Number) -> Tensor:
        """a - alpha b."""
    @overload
    def sub(self, other: Tensor, *, alpha: Number) -> Tensor: ...
    @overload
    def sub(self, s: Number, *, alpha: Number) -> Tensor:
        """x - alpha s."""
    @overload
    def sub(self, other: Number, *, alpha: Number) -> Tensor: ...
    @overload
    def sub(self, s: Number) -> Tensor:
        """x - s."""
    @overload
    def sub(self, other: Number) -> Tensor: ...
    @overload
    def sub_(self, b: Tensor) -> Tensor:
        """`sub` in place: the result is written over the first argument."""
    @overload
    def sub_(self, other: Tensor) -> Tensor: ...
    @overload
    def sub_(self, s: Number) -> Tensor:
        """`sub` in place: the result is written over the first argument."""
    @overload
    def sub_(self, other: Number) -> Tensor: ...
    @overload
    def sub_(self, b: Tensor, *, alpha: Number) -> Tensor:
        """a becomes a - `alpha` b, in place."""
    @overload
    def sub_(self, other: Tensor, *, alpha: Number) -> Tensor: ...
    @overload
    def sub_(self, s: Number, *, alpha: Number) -> Tensor:
        """x becomes x - `alpha` s, in place."""
    @overload
    def sub_(self, other: Number, *, alpha: Number) -> Tensor: ...
    @overload
    def subtract(self, b: Tensor) -> Tensor:
        """The same as `sub`."""
    @overload
    def subtract(self, b: Tensor, *, alpha: Number) -> Tensor:
        """The same as `sub`."""
    @overload
    def subtract(self, s: Number, *, alpha: Number) -> Tensor:
        """The same as `sub`."""
    @overload
    def subtract(self, s: Number) -> Tensor:
        """The same as `sub`."""
    @overload
    def subtract_(self, b: Tensor) -> Tensor:
        """The same as `sub_`."""
    @overload
    def subtract_(self, s: Number) -> Tensor:
        """The same as `sub_`."""
    @overload
    def subtract_(self, b: Tensor, *, alpha: Number) -> Tensor:
        """The same as `sub_`."""
    @overload
    def subtract_(self, s: Number, *, alpha: Number) -> Tensor:
        """The same as `sub_`."""
    def subtract_many(self, tensors: Sequence[Tensor]) -> None:
        """Subtracts from each of many tensors in place its factor times another tensor. The factors are one tensor."""
    @overload
    def sum(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """The sum over dims (none given: all). Integers and bools sum to i64. Over a split dim the result is P(sum): it is reduced when a later op needs it."""
    @overload
    def sum(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def sum(self, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor:
        """`sum` of the tensor converted to `dtype`."""
    @overload
    def sum(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype) -> Tensor: ...
    @overload
    def sum_to_size(self, size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """x summed over the dims along which a tensor of that shape would be repeated to have the shape of x."""
    @overload
    def sum_to_size(self, *size: builtins.int) -> Tensor: ...
    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True) -> _USV:
        """The singular values S, and the singular vectors as columns of U and V: `x = U diag(S) Vᴴ`; without `some` all vectors, without `compute_uv` zeros. `linalg.svd` gives Vᴴ."""
    def svd_lowrank(self, q: builtins.int = 6, niter: builtins.int = 2, M: Tensor | None = None) -> _USV:
        """About the q largest singular values of A less M, and their vectors as columns of U and V, by random projections."""
    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """The same as `transpose`."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """The same as `transpose`."""
    def t(self) -> Tensor:
        """Exchanges the last two dims: the transpose of a matrix."""
    @overload
    def take(self, ids: Tensor) -> Tensor:
        """The elements at these places of x in row-major order, in the shape of the indices. Negative ones count from the end."""
    @overload
    def take(self, index: Tensor) -> Tensor: ...
    @overload
    def take_along_dim(self, ids: Tensor, dim: builtins.int) -> Tensor:
        """`gather` with indices that broadcast with x in the other dims."""
    @overload
    def take_along_dim(self, indices: Tensor, dim: builtins.int) -> Tensor: ...
    @overload
    def take_along_dim(self, ids: Tensor) -> Tensor:
        """The elements that the indices name among all of x, counted row-major, as a list."""
    @overload
    def take_along_dim(self, indices: Tensor) -> Tensor: ...
    def tan(self) -> Tensor:
        """The tangent, of radians."""
    def tan_(self) -> Tensor:
        """`tan` in place: the result is written over the first argument."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
    def tanh_(self) -> Tensor:
        """`tanh` in place: the result is written over the first argument."""
    def tanhshrink(self) -> Tensor:
        """x - tanh(x)."""
    def tanhshrink_(self) -> Tensor:
        """`tanhshrink` in place: the result is written over the first argument."""
    @overload
    def tensor_split(self, sections: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """`sections` parts of a dim, of sizes that differ by one at most: the first ones are the larger ones."""
    @overload
    def tensor_split(self, indices: builtins.int | Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The parts of a dim between these places. Negative ones count from the end; a part that ends before it begins is empty."""
    @overload
    def tensor_split(self, sections: builtins.int | Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def tensor_split(self, tensor_indices_or_sections: Tensor, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The parts of a dim between the places that a tensor holds, or as many as its one number says; they are read."""
    @overload
    def tensordot(self, b: Tensor, dims_a: builtins.int | Sequence[builtins.int], dims_b: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The sum of products over the dims `dims_a` of a and `dims_b` of b. The result has the other dims of a, then those of b."""
    @overload
    def tensordot(self, b: Tensor, dims: builtins.int = 2) -> Tensor:
        """The sum of products over the last `dims` dims of a and the first of b."""
    @overload
    def tensordot(self, b: Tensor, dims: Sequence[Sequence[builtins.int]]) -> Tensor:
        """The sum of products over these dims of a and of b."""
    @overload
    def tensordot(self, b: Tensor, dims_a: builtins.int | Sequence[builtins.int], *dims_b: builtins.int) -> Tensor: ...
    def threshold(self, threshold: Number, value: Number) -> Tensor:
        """x, or `value` where x is not above `threshold`."""
    def threshold_(self, threshold: Number, value: Number) -> Tensor:
        """`threshold` in place: the result is written over the first argument."""
    @overload
    def tile(self, dims: builtins.int | Sequence[builtins.int]) -> Tensor:
        """`repeat`, with 1 for the leading dims that have no count."""
    @overload
    def tile(self, *dims: builtins.int) -> Tensor: ...
    def to_device(self, device: _device | str) -> Tensor:
        """A local tensor on another device, with its gradient; the tensor itself where it is on that device (as PyTorch's `to`). Global tensors move with `to_global((&placement, sbp))`."""
    @overload
    def to_global(self, placement: _placement, sbp: Sbp | str | Sequence[Sbp | str], *, grad_sbp: Sbp | str | Sequence[Sbp | str] | None = None) -> Tensor:
        """The tensor in another layout; a local one becomes the rank's shard of a global one."""
    @overload
    def to_global(self, sbp: Sbp | str | Sequence[Sbp | str], *, grad_sbp: Sbp | str | Sequence[Sbp | str] | None = None) -> Tensor:
        """A global tensor in another layout on its placement."""
    def to_global_grad(self, placement: _placement, sbp: Sbp | str | Sequence[Sbp | str], from_: _placement, from_sbp: Sbp | str | Sequence[Sbp | str], grad_sbp: Sbp | str | Sequence[Sbp | str] | None = None) -> Tensor:
        """The gradient of a tensor that lay as `sbp` on `placement` and was boxed to `from`."""
    def to_local(self, *, grad_sbp: Sbp | str | Sequence[Sbp | str] | None = None) -> Tensor:
        """The rank's shard as a local tensor."""
    def to_local_grad(self, shape: builtins.int | Sequence[builtins.int], placement: _placement, sbp: Sbp | str | Sequence[Sbp | str], grad_sbp: Sbp | str | Sequence[Sbp | str]) -> Tensor:
        """The gradients of a global tensor's shards, as a global tensor."""
    def topk(self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True) -> _ValuesIndices:
        """The k largest elements of each line along a dim, or with `largest=false` the smallest, and where they stood. They are always sorted, so `sorted` changes nothing; of equal ones the first are taken. NaN count as the largest."""
    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix."""
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchanges two dims."""
    def trapezoid(self, x: Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1) -> Tensor:
        """The integral along `dim` by the trapezoid rule: y are the values at `x`, a list or a tensor of y's shape, or at places that are `dx` apart."""
    def trapz(self, x: Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1) -> Tensor:
        """The same as `trapezoid`."""
    def triangular_solve(self, A: Tensor, upper: builtins.bool = True, transpose: builtins.bool = False, unitriangular: builtins.bool = False) -> _SolutionCloned_coefficient:
        """The x of `A x = b` for a triangular A, and a copy of A. `linalg.solve_triangular` has more forms."""
    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """Zeros above a diagonal of the last two dims. Diagonal 0 is the main one; positive ones lie above it."""
    def tril_(self, diagonal: builtins.int = 0) -> Tensor:
        """`tril` in place: the result is written over the first argument."""
    def triplet_margin_loss(self, positive: Tensor, negative: Tensor, *, margin: builtins.float = 1.0, p: builtins.float = 2.0, eps: builtins.float = 1e-6, swap: builtins.bool = False, reduction: str = "mean") -> Tensor:
        """max(0, d(anchor, positive) - d(anchor, negative) + margin) of rows, d the p-norm of their difference. With `swap` the nearer of d(anchor, negative) and d(positive, negative) counts."""
    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """Zeros below a diagonal of the last two dims. Diagonal 0 is the main one; positive ones lie above it."""
    def triu_(self, diagonal: builtins.int = 0) -> Tensor:
        """`triu` in place: the result is written over the first argument."""
    @overload
    def true_divide(self, b: Tensor) -> Tensor:
        """The same as `div`."""
    @overload
    def true_divide(self, s: Number) -> Tensor:
        """The same as `div`."""
    @overload
    def true_divide(self, b: Tensor, *, rounding_mode: str | None = None) -> Tensor:
        """The same as `div`."""
    @overload
    def true_divide(self, s: Number, *, rounding_mode: str | None = None) -> Tensor:
        """The same as `div`."""
    @overload
    def true_divide_(self, b: Tensor) -> Tensor:
        """The same as `div_`."""
    @overload
    def true_divide_(self, s: Number) -> Tensor:
        """The same as `div_`."""
    @overload
    def true_divide_(self, b: Tensor, *, rounding_mode: str | None = None) -> Tensor:
        """The same as `div_`."""
    @overload
    def true_divide_(self, s: Number, *, rounding_mode: str | None = None) -> Tensor:
        """The same as `div_`."""
    def trunc(self) -> Tensor:
        """The integer part: x rounded towards zero."""
    def trunc_(self) -> Tensor:
        """`trunc` in place: the result is written over the first argument."""
    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The slices along `dim`, without that dim."""
    @overload
    def unflatten(self, dim: builtins.int, sizes: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The dim `dim` as several dims of these sizes. One size may be -1: it follows from the others."""
    @overload
    def unflatten(self, dim: builtins.int, *sizes: builtins.int) -> Tensor: ...
    @overload
    def unfold(self, dim: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """The windows of `size` elements of `dim`, which begin `step` elements apart; the elements of a window are the last dim of the result."""
    @overload
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor: ...
    @overload
    def uniform_(self, lo: builtins.float = 0.0, hi: builtins.float = 1.0, generator: Generator | None = None) -> Tensor:
        """x becomes uniform numbers from `lo` to below `hi`, in place."""
    @overload
    def uniform_(self, lo: builtins.float = 0.0, to: builtins.float = 1.0, generator: Generator | None = None) -> Tensor: ...
    @overload
    def unique(self) -> Tensor:
        """The distinct values, smallest first, as a tensor of one dim. NaN come last; no two are equal. A global result is B. It has no gradient, and no kernel for GPUs."""
    @overload
    def unique(self, *, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool = False) -> tuple[Tensor, ...]:
        """The distinct values, smallest first; then, where asked for, the place among them of each element, in the shape of x, and how often each occurs. NaN come last; no two are equal. The call waits for the number of values. They are always `sorted`."""
    @overload
    def unique(self, *, dim: builtins.int, return_inverse: builtins.bool = False, return_counts: builtins.bool = False) -> tuple[Tensor, ...]:
        """The distinct slices along a dim in the order of their elements; then, where asked for, the place of each slice among them, and how often each occurs. The call sorts once for each element of a slice, and waits for the number of slices."""
    @overload
    def unique_consecutive(self) -> Tensor:
        """The first element of each run of equal elements, in order. The call waits for the number of runs."""
    @overload
    def unique_consecutive(self, *, return_inverse: builtins.bool = False, return_counts: builtins.bool = False) -> tuple[Tensor, ...]:
        """The first element of each run of equal elements, in order; then, where asked for, which run each element belongs to, in the shape of x, and how long each is. The call waits for the number of runs."""
    @overload
    def unique_consecutive(self, *, dim: builtins.int, return_inverse: builtins.bool = False, return_counts: builtins.bool = False) -> tuple[Tensor, ...]:
        """The slices along a dim without those that equal the one before; then, where asked for, the place of each slice among them, and how many each stands for. The call waits for the number of slices."""
    @overload
    def unravel_index(self, shape: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]:
        """The coordinates in a tensor of that shape of places in row-major order: one tensor for each dim."""
    @overload
    def unravel_index(self, *shape: builtins.int) -> tuple[Tensor, ...]: ...
    def unsafe_chunk(self, parts: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The same as `chunk`."""
    @overload
    def unsafe_split(self, size: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The same as `split`."""
    @overload
    def unsafe_split(self, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The same as `split`."""
    @overload
    def unsafe_split_with_sizes(self, size: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The same as `split`."""
    @overload
    def unsafe_split_with_sizes(self, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The same as `split`."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """A dim of size 1 more, at position `dim`."""
    @overload
    def vander(self, columns: builtins.int | None = None, increasing: builtins.bool = False) -> Tensor:
        """The powers of each element of a list, one row each: `columns` of them (as many as elements unless given), from the highest to the power 0, or with `increasing` the other way round."""
    @overload
    def vander(self, N: builtins.int | None = None, increasing: builtins.bool = False) -> Tensor: ...
    @overload
    def var(self, dims: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> Tensor:
        """The variance over dims (none given: all): the sum of squared distances from the mean, divided by the number of elements less `correction`. With the default correction of 1 the variance is unbiased, and NaN for a single element."""
    @overload
    def var(self, dim: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> Tensor: ...
    @overload
    def var(self, dims: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False) -> Tensor:
        """The variance over dims, with a correction of 1 if `unbiased`, else of 0."""
    @overload
    def var(self, dim: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def var(self, unbiased: builtins.bool) -> Tensor:
        """The variance of all elements, with a correction of 1 if `unbiased`, else of 0."""
    @overload
    def var(self, *dims: builtins.int, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> Tensor: ...
    @overload
    def var_mean(self, dims: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> _VarMean:
        """The variance, as `var`, and the mean over dims (none given: all)."""
    @overload
    def var_mean(self, dim: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> _VarMean: ...
    @overload
    def var_mean(self, dims: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False) -> _VarMean:
        """The variance over dims, with a correction of 1 if `unbiased`, else of 0, and the mean."""
    @overload
    def var_mean(self, dim: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False) -> _VarMean: ...
    @overload
    def var_mean(self, unbiased: builtins.bool) -> _VarMean:
        """The variance of all elements, with a correction of 1 if `unbiased`, else of 0, and the mean."""
    @overload
    def var_mean(self, *dims: builtins.int, keepdim: builtins.bool = False, correction: builtins.float = 1.0) -> _VarMean: ...
    def vdot(self, b: Tensor) -> Tensor:
        """The sum of the products of two vectors' elements, those of `a` conjugated."""
    @overload
    def view(self, shape: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The same elements as another shape, without a copy: a view. One size may be -1."""
    @overload
    def view(self, dtype: _dtype) -> Tensor:
        """The same bytes as elements of another dtype, without gradient, in the same memory. Where the elements have another size, so has the last dim."""
    @overload
    def view(self, *shape: builtins.int) -> Tensor: ...
    def view_as(self, other: Tensor) -> Tensor:
        """`view` with the shape of another tensor."""
    def view_as_complex(self) -> Tensor:
        """Real numbers, of which a last dim of 2 has the real and the imaginary part, as complex ones without that dim. It is a copy."""
    def view_as_real(self) -> Tensor:
        """Complex numbers as real ones: a last dim of 2 has the real and the imaginary part. It is a copy."""
    @overload
    def vsplit(self, sections: builtins.int) -> tuple[Tensor, ...]:
        """So many parts along dim 0."""
    @overload
    def vsplit(self, indices: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]:
        """The parts along dim 0 between these places."""
    @overload
    def vsplit(self, *indices: builtins.int) -> tuple[Tensor, ...]: ...
    def wrap_index(self, size: builtins.int, dim: builtins.int = 0) -> Tensor:
        """Indices into dim `dim` of `size` elements as i64 that count from the front: negative ones count from the end."""
    @overload
    def xlog1py(self, b: Tensor) -> Tensor:
        """a log(1 + b), and 0 where a is zero."""
    @overload
    def xlog1py(self, b: Number) -> Tensor:
        """`xlog1py` with a number as b."""
    def xlog1py_(self, b: Tensor) -> Tensor:
        """`xlog1py` in place: the result is written over the first argument."""
    @overload
    def xlogy(self, b: Tensor) -> Tensor:
        """a log(b), and 0 where a is zero."""
    @overload
    def xlogy(self, other: Tensor) -> Tensor: ...
    @overload
    def xlogy(self, b: Number) -> Tensor:
        """`xlogy` with a number as b."""
    @overload
    def xlogy(self, other: Number) -> Tensor: ...
    @overload
    def xlogy_(self, b: Tensor) -> Tensor:
        """`xlogy` in place: the result is written over the first argument."""
    @overload
    def xlogy_(self, other: Tensor) -> Tensor: ...
    def zero_(self) -> Tensor:
        """x becomes zero everywhere, in place."""
    @overload
    def zeros_like(self) -> Tensor:
        """Zeros of the same shape, dtype and layout."""
    @overload
    def zeros_like(self, *, dtype: _dtype) -> Tensor:
        """Zeros of the same shape and layout, of that dtype."""
    @overload
    def zeta(self, b: Tensor) -> Tensor:
        """The zeta function of Hurwitz: the sum of (b + k)⁻ᵃ over all k from 0. It has a gradient by b only."""
    @overload
    def zeta(self, b: Number) -> Tensor:
        """`zeta` with a number as b."""
    def zeta_(self, b: Tensor) -> Tensor:
        """`zeta` in place: the result is written over the first argument."""

class MemoryStats(NamedTuple):
    """Bytes of a device's memory."""

    live: builtins.int
    cached: builtins.int
    peak: builtins.int

def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: _device | str | None = None,
    placement: _placement | None = None,
    sbp: Any = None,
    requires_grad: builtins.bool = False,
) -> Tensor: ...
def from_numpy(array: Any) -> Tensor: ...
def from_dlpack(ext_tensor: Any) -> Tensor: ...
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: builtins.bool | None = None,
    create_graph: builtins.bool = False,
    allow_unused: builtins.bool = False,
) -> tuple[Tensor | None, ...]: ...
def init() -> None: ...
def is_initialized() -> builtins.bool: ...
def rank() -> builtins.int: ...
def world_size() -> builtins.int: ...
def manual_seed(seed: builtins.int) -> None: ...
def _generators() -> tuple[tuple[builtins.int, builtins.int], tuple[builtins.int, builtins.int]]: ...
def _set_generators(
    of_global: tuple[builtins.int, builtins.int], of_local: tuple[builtins.int, builtins.int]
) -> None: ...
def barrier() -> None: ...
def is_grad_enabled() -> builtins.bool: ...
def memory_stats(device: _device | str | None = None) -> MemoryStats: ...
def reset_peak_memory(device: _device | str | None = None) -> None: ...
def _memory_report() -> tuple[str, str]: ...
def _summarize(
    names: list[str], parameters: Sequence[Tensor], kinds: list[tuple[str, str]], body: Callable[[], list[Tensor]]
) -> tuple[str, str]: ...

_names: list[str]

def _set_package(folder: str) -> None: ...
def _finish() -> None: ...
def _function(name: str) -> Any: ...
def _function_names() -> list[str]: ...
def _signatures(name: str) -> list[str]: ...
def _enter(mode: str, value: Any = None) -> builtins.int: ...
def _leave(number: builtins.int) -> None: ...
def _modes() -> builtins.list[str]: ...
def _backward(
    outputs: Tensor | Sequence[Tensor],
    gradients: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: builtins.bool | None = None,
    create_graph: builtins.bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None: ...
def _apply_custom(
    name: str, inputs: Sequence[Tensor], forward: Callable[[], Any], backward: Callable[..., Any]
) -> tuple[Tensor, ...]: ...
def _register_op(text: str, said: dict[str, Any]) -> str: ...
def _register_function(text: str, body: Any, doc: str | None) -> str: ...
def _conformance(name: str) -> str: ...
def take_comm_trace() -> list[Any]: ...
def mark_step() -> None: ...

class _BatchPlace: ...

class _BatchTimer:
    def __init__(self, place: _BatchPlace) -> None: ...
    def waited(self, rows: builtins.int) -> None: ...
    def made(self, rows: builtins.int) -> None: ...

class _Profile:
    def start(self, timeline: str | None) -> None: ...
    def stop(self) -> None: ...
    def text(self) -> str: ...
    def timeline(self) -> str | None: ...
    def steps(self) -> builtins.int: ...
    def split(self) -> list[builtins.float] | None: ...
    def rows(self, kind: str) -> list[tuple[str, str, builtins.int, str, builtins.int, builtins.float]]: ...

def report() -> str: ...
def _with_sbp(sbp: Any, of_gradient: builtins.bool, function: Callable[[], Any]) -> Any: ...
def _report_failure(kind: str, message: str) -> builtins.bool: ...
def _rank_variables() -> list[str]: ...
def _forked() -> None: ...
def _leaf(tensor: Tensor, requires_grad: builtins.bool) -> Tensor: ...
def _relayout(
    names: Sequence[str], tensors: Sequence[Tensor], placement: _placement, rules: Sequence[tuple[str, Any]]
) -> list[Tensor]: ...
def _replaced(old: Sequence[Tensor]) -> None: ...
def _zero(
    names: Sequence[str], tensors: Sequence[Tensor], stage: builtins.int, axis: str, min_elements: builtins.int
) -> list[Tensor | None]: ...
def _draw(x: Tensor) -> None: ...
def _in_python(text: str) -> str: ...
def _sbps(sbp: Sbp | str | Sequence[Sbp | str]) -> tuple[Sbp, ...]: ...
def _clip_grad_norm(parameters: Sequence[Tensor], max_norm: builtins.float) -> Tensor: ...
def _save_file(path: str, tensors: Sequence[tuple[str, Tensor]]) -> None: ...
def _log(step: builtins.int, values: Sequence[tuple[str, Any]]) -> None: ...
def _flush_log() -> None: ...
def _load_file(
    path: str, device: Any = None, placement: _placement | None = None, sbp: Any = None
) -> list[tuple[str, Tensor]]: ...

class GradScaler:
    """Loss scaling for float16: scales losses and skips steps whose gradients are not finite."""

    def __init__(
        self,
        init_scale: builtins.float = 65536.0,
        growth_factor: builtins.float = 2.0,
        backoff_factor: builtins.float = 0.5,
        growth_interval: builtins.int = 2000,
    ) -> None: ...
    def scale(self, loss: Tensor) -> Tensor: ...
    def unscale_(self, optimizer: Any) -> None: ...
    def step(self, optimizer: Any) -> builtins.bool: ...
    def update(self) -> None: ...
    def get_scale(self) -> builtins.float: ...
    @property
    def skipped(self) -> builtins.int: ...

class Stream:
    """The batches of a loader, epoch after epoch, without end. A checkpoint saves its position."""

    def __iter__(self) -> Stream: ...
    def __next__(self) -> tuple[Tensor, ...]: ...
    @property
    def epoch(self) -> builtins.int: ...
    @property
    def batch(self) -> builtins.int: ...
    @property
    def at_end_of_epoch(self) -> builtins.bool: ...
    def _fork(self) -> Stream: ...
    def _skip(self) -> None: ...

class _Loader:
    def __init__(
        self,
        placement: _placement,
        batch: builtins.int,
        columns: Sequence[Tensor],
        split_along: Any,
        seed: builtins.int | None,
        drop_last: builtins.bool,
    ) -> None: ...
    def rows(self) -> builtins.int: ...
    def batches(self) -> builtins.int: ...
    def stream(self, epoch: builtins.int, seed: builtins.int | None) -> Stream: ...

class _Graph:
    def __init__(
        self,
        names: Sequence[str],
        examples: Sequence[Tensor],
        body: Callable[[list[Tensor]], list[Tensor]],
        passes: tuple[builtins.bool | dict[str, builtins.bool], builtins.int | builtins.str],
        variables: Sequence[Tensor],
    ) -> None: ...
    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]: ...
    def save(self, folder: builtins.str, state: list[tuple[builtins.str, object]]) -> None: ...
    @staticmethod
    def load(folder: builtins.str, state: list[tuple[builtins.str, object]]) -> _Graph: ...
    def inputs(self) -> list[builtins.str]: ...
    def summary(self) -> tuple[builtins.str, builtins.str]: ...
    def plan(
        self,
    ) -> (
        tuple[
            builtins.int,
            builtins.int,
            builtins.int,
            builtins.int,
            builtins.int,
            list[tuple[str, builtins.int, builtins.int]],
        ]
        | None
    ): ...
    def explain(self) -> str: ...

def _scan(
    length: builtins.int,
    init: Sequence[Tensor],
    xs: Sequence[Tensor],
    body: Callable[[list[Tensor], list[Tensor]], tuple[list[Tensor], list[Tensor]]],
) -> tuple[list[Tensor], list[Tensor]]: ...

class _Replicas:
    def __init__(
        self, names: Sequence[str], tensors: Sequence[Tensor], placement: _placement, bucket_bytes: builtins.int
    ) -> None: ...
    def reduce_gradients(self, names: Sequence[str], tensors: Sequence[Tensor]) -> list[str]: ...

class _Optimizer:
    def __init__(self) -> None: ...
    def add(self, parameters: Sequence[Tensor], settings: str) -> None: ...
    def set(self, group: builtins.int, settings: str) -> None: ...
    def note(self, group: builtins.int, notes: str) -> None: ...
    def settings(self) -> list[tuple[str, str]]: ...
    def step(self) -> None: ...
    def state(self) -> tuple[list[tuple[str, Tensor]], str]: ...
    def prepare(self, names: Sequence[str], values: str) -> tuple[list[tuple[str, Tensor]], list[str]]: ...

class _Lbfgs:
    def __init__(self, parameters: Sequence[Tensor], settings: str) -> None: ...
    def set(self, settings: str, notes: str) -> None: ...
    def settings(self) -> list[tuple[str, str]]: ...
    def step(self, closure: Callable[[], Any]) -> Any: ...
    def state(self) -> tuple[list[tuple[str, Tensor]], str]: ...
    def prepare(self, names: Sequence[str], values: str) -> tuple[list[tuple[str, Tensor]], list[str]]: ...

class _Ema:
    def __init__(self, parameters: Sequence[Tensor], decay: builtins.float) -> None: ...
    def update(self) -> None: ...
    def swap(self) -> None: ...
    def averages(self) -> list[Tensor]: ...
    def updates(self) -> builtins.int: ...
    def set_updates(self, updates: builtins.int) -> None: ...

class _CheckpointManager:
    def __init__(self, dir: str, keep: builtins.int) -> None: ...
    def save(self, step: builtins.int, state: Sequence[tuple[str, Any]], behind: builtins.bool) -> None: ...
    def load_latest(self, state: Sequence[tuple[str, Any]]) -> tuple[builtins.int | None, list[tuple[str, str]]]: ...
    def load_step(self, step: builtins.int, state: Sequence[tuple[str, Any]]) -> list[tuple[str, str]]: ...
    def wait(self) -> None: ...
    def finish(self) -> None: ...

class _Log:
    def __init__(
        self, path: str, formats: Sequence[str], flush_every: builtins.int, resume: builtins.bool, over_ranks: str
    ) -> None: ...
    def log(self, step: builtins.int, values: Sequence[tuple[str, Any]]) -> None: ...
    def flush(self) -> None: ...
    def install(self) -> None: ...
    def drop(self) -> None: ...

class _Checkpoint:
    def __init__(self, path: str) -> None: ...
    @property
    def step(self) -> builtins.int: ...
    @property
    def world(self) -> builtins.int: ...
    def tensors(self) -> list[tuple[str, list[builtins.int], str]]: ...
    def values(self) -> str: ...
    def tensor(
        self, name: str, device: Any = None, placement: _placement | None = None, sbp: Any = None
    ) -> Tensor: ...
    def load(
        self, state: Sequence[tuple[str, Any]], strict: builtins.bool
    ) -> tuple[tuple[list[str], list[str]], list[tuple[str, str]]]: ...
    def verify(self) -> None: ...

class Library:
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def ops(self) -> list[str]: ...

def _load_library(path: str) -> Library: ...
def _build_library(
    sources: Sequence[str],
    name: str | None,
    flags: Sequence[str],
    dependencies: Sequence[str],
    cache: str | None,
    debug: builtins.bool,
) -> Library: ...
def _unload_library(library: Library) -> None: ...
def _loaded_libraries() -> list[Library]: ...

class _ATau(NamedTuple):
    a: Tensor
    tau: Tensor

class _DqDkDv(NamedTuple):
    dq: Tensor
    dk: Tensor
    dv: Tensor

class _DxDweight(NamedTuple):
    dx: Tensor
    dweight: Tensor

class _DxDweightDbias(NamedTuple):
    dx: Tensor
    dweight: Tensor
    dbias: Tensor

class _HC(NamedTuple):
    h: Tensor
    c: Tensor

class _HistBin_edges(NamedTuple):
    hist: Tensor
    bin_edges: Tensor

class _MantissaExponent(NamedTuple):
    mantissa: Tensor
    exponent: Tensor

class _MinMax(NamedTuple):
    min: Tensor
    max: Tensor

class _OutLse(NamedTuple):
    out: Tensor
    lse: Tensor

class _OutputH_n(NamedTuple):
    output: Tensor
    h_n: Tensor

class _OutputH_nC_n(NamedTuple):
    output: Tensor
    h_n: Tensor
    c_n: Tensor

class _PLU(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class _QR(NamedTuple):
    Q: Tensor
    R: Tensor

class _SignLogabsdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class _SolutionCloned_coefficient(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor

class _StdMean(NamedTuple):
    std: Tensor
    mean: Tensor

class _USV(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor

class _ValuesIndices(NamedTuple):
    values: Tensor
    indices: Tensor

class _VarMean(NamedTuple):
    var: Tensor
    mean: Tensor

class _YMeanRstd(NamedTuple):
    y: Tensor
    mean: Tensor
    rstd: Tensor

class _YMeanVar(NamedTuple):
    y: Tensor
    mean: Tensor
    var: Tensor

@overload
def abs(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """|x|; of complex numbers a real number."""
@overload
def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def abs_(x: Tensor) -> Tensor:
    """`abs` in place: the result is written over the first argument."""
def absolute(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `abs`."""
def absolute_(x: Tensor) -> Tensor:
    """The same as `abs_`."""
@overload
def acos(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine, in radians from 0 to π; NaN outside -1 to 1."""
@overload
def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def acos_(x: Tensor) -> Tensor:
    """`acos` in place: the result is written over the first argument."""
@overload
def acos_(input: Tensor) -> Tensor: ...
@overload
def acosh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine; NaN below 1."""
@overload
def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def acosh_(x: Tensor) -> Tensor:
    """`acosh` in place: the result is written over the first argument."""
@overload
def acosh_(input: Tensor) -> Tensor: ...
def adadelta_many(tensors: Sequence[Tensor], lr: builtins.float = 1.0, rho: builtins.float = 0.9, eps: builtins.float = 1e-6, weight_decay: builtins.float = 0.0) -> None:
    """One step of Adadelta (Zeiler), PyTorch's formula, of many parameters that lie alike."""
def adagrad_many(tensors: Sequence[Tensor], lr: builtins.float, eps: builtins.float = 1e-10, weight_decay: builtins.float = 0.0) -> None:
    """One step of Adagrad (Duchi et al.), PyTorch's formula, of many parameters that lie alike."""
def adam_many(tensors: Sequence[Tensor], lr: builtins.float, beta1: builtins.float = 0.9, beta2: builtins.float = 0.999, eps: builtins.float = 1e-8, weight_decay: builtins.float = 0.0, decoupled: builtins.bool = False, *, step: builtins.int) -> None:
    """One step of Adam (Kingma and Ba), PyTorch's formula, of many parameters that lie alike; with `largest` AMSGrad."""
def adamax_many(tensors: Sequence[Tensor], lr: builtins.float, beta1: builtins.float = 0.9, beta2: builtins.float = 0.999, eps: builtins.float = 1e-8, weight_decay: builtins.float = 0.0, *, step: builtins.int) -> None:
    """One step of Adamax (Kingma and Ba), PyTorch's formula, of many parameters that lie alike."""
def adamw_many(tensors: Sequence[Tensor], lr: builtins.float, beta1: builtins.float = 0.9, beta2: builtins.float = 0.999, eps: builtins.float = 1e-8, weight_decay: builtins.float = 0.01, *, step: builtins.int) -> None:
    """One step of AdamW (Loshchilov and Hutter), PyTorch's formula, of many parameters that lie alike."""
def adamw_step(param: Tensor, grad: Tensor, m: Tensor, v: Tensor, lr: builtins.float, beta1: builtins.float = 0.9, beta2: builtins.float = 0.999, eps: builtins.float = 1e-8, weight_decay: builtins.float = 0.01, *, step: builtins.int) -> None:
    """One step of AdamW (Loshchilov and Hutter), PyTorch's formula."""
@overload
def adaptive_avg_pool(x: Tensor, size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The average of each window of the last dims."""
@overload
def adaptive_avg_pool(x: Tensor, *size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_avg_pool1d(x: Tensor, output_size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The averages of `output_size` windows of about one size, which cover the last dim."""
@overload
def adaptive_avg_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_avg_pool1d(x: Tensor, *output_size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_avg_pool2d(x: Tensor, output_size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """As `adaptive_avg_pool1d` for 2 spatial dims."""
@overload
def adaptive_avg_pool2d(x: Tensor, *output_size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_avg_pool3d(x: Tensor, output_size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """As `adaptive_avg_pool1d` for 3 spatial dims."""
@overload
def adaptive_avg_pool3d(x: Tensor, *output_size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_avg_pool_grad(dy: Tensor, size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The gradient of avg_pool: each window's gradient, divided among its elements."""
@overload
def adaptive_avg_pool_grad(dy: Tensor, *size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_max_pool(x: Tensor, size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The largest element of each window of the last dims; NaN where it has one."""
@overload
def adaptive_max_pool(x: Tensor, *size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_max_pool1d(x: Tensor, output_size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The largest elements of `output_size` windows of about one size, which cover the last dim."""
@overload
def adaptive_max_pool1d(input: Tensor, output_size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_max_pool1d(x: Tensor, *output_size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_max_pool1d_with_indices(x: Tensor, output_size: builtins.int | Sequence[builtins.int], *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """`adaptive_max_pool1d`, and where the elements are, counted over the spatial dims."""
@overload
def adaptive_max_pool1d_with_indices(x: Tensor, *output_size: builtins.int, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
@overload
def adaptive_max_pool2d(x: Tensor, output_size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """As `adaptive_max_pool1d` for 2 spatial dims."""
@overload
def adaptive_max_pool2d(x: Tensor, *output_size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_max_pool2d_with_indices(x: Tensor, output_size: builtins.int | Sequence[builtins.int], *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """`adaptive_max_pool2d`, and where the elements are, counted over the spatial dims."""
@overload
def adaptive_max_pool2d_with_indices(x: Tensor, *output_size: builtins.int, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
@overload
def adaptive_max_pool3d(x: Tensor, output_size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """As `adaptive_max_pool1d` for 3 spatial dims."""
@overload
def adaptive_max_pool3d(x: Tensor, *output_size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def adaptive_max_pool3d_with_indices(x: Tensor, output_size: builtins.int | Sequence[builtins.int], *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """`adaptive_max_pool3d`, and where the elements are, counted over the spatial dims."""
@overload
def adaptive_max_pool3d_with_indices(x: Tensor, *output_size: builtins.int, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
@overload
def adaptive_max_pool_index(x: Tensor, size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """Where the largest element of each window is, counted over the pooled dims."""
@overload
def adaptive_max_pool_index(x: Tensor, *size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def add(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a + b."""
@overload
def add(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def add(a: Tensor, b: Tensor, *, alpha: Number, out: Tensor | None = None) -> Tensor:
    """a + alpha b."""
@overload
def add(input: Tensor, other: Tensor, *, alpha: Number, out: Tensor | None = None) -> Tensor: ...
@overload
def add(x: Tensor, s: Number, *, alpha: Number, out: Tensor | None = None) -> Tensor:
    """x + alpha s."""
@overload
def add(input: Tensor, other: Number, *, alpha: Number, out: Tensor | None = None) -> Tensor: ...
@overload
def add(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """x + s."""
@overload
def add(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def add_(a: Tensor, b: Tensor) -> Tensor:
    """`add` in place: the result is written over the first argument."""
@overload
def add_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def add_(x: Tensor, s: Number) -> Tensor:
    """`add` in place: the result is written over the first argument."""
@overload
def add_(input: Tensor, other: Number) -> Tensor: ...
@overload
def add_(a: Tensor, b: Tensor, *, alpha: Number) -> Tensor:
    """a becomes a + `alpha` b, in place."""
@overload
def add_(input: Tensor, other: Tensor, *, alpha: Number) -> Tensor: ...
@overload
def add_(x: Tensor, s: Number, *, alpha: Number) -> Tensor:
    """x becomes x + `alpha` s, in place."""
@overload
def add_(input: Tensor, other: Number, *, alpha: Number) -> Tensor: ...
def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """`beta` x + `alpha` times the sum of the products of two batches of matrices."""
def addbmm_(x: Tensor, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`addbmm` in place: the result is written over the first argument."""
@overload
def addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: Number = 1, out: Tensor | None = None) -> Tensor:
    """x + value a / b."""
@overload
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1, out: Tensor | None = None) -> Tensor: ...
@overload
def addcdiv_(x: Tensor, a: Tensor, b: Tensor, *, value: Number = 1) -> Tensor:
    """`addcdiv` in place: the result is written over the first argument."""
@overload
def addcdiv_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor: ...
@overload
def addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: Number = 1, out: Tensor | None = None) -> Tensor:
    """x + value a b."""
@overload
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1, out: Tensor | None = None) -> Tensor: ...
@overload
def addcmul_(x: Tensor, a: Tensor, b: Tensor, *, value: Number = 1) -> Tensor:
    """`addcmul` in place: the result is written over the first argument."""
@overload
def addcmul_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor: ...
@overload
def addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """`beta` x + `alpha` (a b), a and b matrices; x broadcasts to the product."""
@overload
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor: ...
def addmm_(x: Tensor, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`addmm` in place: the result is written over the first argument."""
@overload
def addmv(x: Tensor, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """`beta` x + `alpha` (a b), a a matrix and b a vector."""
@overload
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor: ...
def addmv_(x: Tensor, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`addmv` in place: the result is written over the first argument."""
def addr(x: Tensor, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """`beta` x + `alpha` times the outer product of two vectors."""
def addr_(x: Tensor, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`addr` in place: the result is written over the first argument."""
@overload
def adjoint(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The conjugate transpose: the last two dims exchanged, of the conjugates."""
@overload
def adjoint(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def affine_grid(theta: Tensor, size: builtins.int | Sequence[builtins.int], *, align_corners: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The grid of affine maps `theta` `[batch, 2, 3]`, or `[batch, 3, 4]` for 3 spatial dims, for `grid_sample` to a result of `size` `[batch, channels, spatial dims]`."""
@overload
def affine_grid(theta: Tensor, *size: builtins.int, align_corners: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
def airy_ai(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Airy function Ai. It has no gradient."""
def airy_ai_(x: Tensor) -> Tensor:
    """`airy_ai` in place: the result is written over the first argument."""
@overload
def all(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """True if no element is zero."""
@overload
def all(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def allclose(x: Tensor, y: Tensor, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8, equal_nan: builtins.bool = False) -> builtins.bool:
    """Whether all elements are close, as `isclose` says. On global tensors a collective of the world."""
@overload
def allclose(input: Tensor, other: Tensor, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8, equal_nan: builtins.bool = False) -> builtins.bool: ...
@overload
def alpha_dropout(x: Tensor, p: builtins.float = 0.5, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Elements become the negative limit of SELU with probability `p`; then all are scaled and shifted, so that mean 0 and variance 1 stay (Klambauer et al., 2017). With p = 1 all are 0."""
@overload
def alpha_dropout(input: Tensor, p: builtins.float = 0.5, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def amax(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The largest element over dims (none given: all). Over a split dim the result is P(max)."""
@overload
def amax(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def amin(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The smallest element over dims (none given: all). Over a split dim the result is P(min)."""
@overload
def amin(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def aminmax(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _MinMax:
    """The smallest and the largest element over dims (none given: all)."""
@overload
def aminmax(input: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _MinMax: ...
@overload
def angle(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angles of complex numbers, in radians from -π to π; of real ones 0, or π where x is negative."""
@overload
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def any(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """True if some element is not zero."""
@overload
def any(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def arange(end: builtins.int, *, dtype: _dtype = int64, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """0, 1, … below `end`; i64 unless the target says otherwise."""
@overload
def arange(start: Number, end: Number, step: Number, *, dtype: _dtype | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """start, start + step, … below `end`: of integers i64, else f32, unless the target says otherwise."""
@overload
def arange(end: Number, *, dtype: _dtype | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """0, 1, … below `end`: of an integer i64, else f32, unless the target says otherwise."""
@overload
def arange(start: Number, end: Number, *, dtype: _dtype | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """start, start + 1, … below `end`: of integers i64, else f32, unless the target says otherwise."""
def arccos(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `acos`."""
def arccos_(x: Tensor) -> Tensor:
    """The same as `acos_`."""
def arccosh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `acosh`."""
def arccosh_(x: Tensor) -> Tensor:
    """The same as `acosh_`."""
def arcsin(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `asin`."""
def arcsin_(x: Tensor) -> Tensor:
    """The same as `asin_`."""
def arcsinh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `asinh`."""
def arcsinh_(x: Tensor) -> Tensor:
    """The same as `asinh_`."""
def arctan(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `atan`."""
def arctan2(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `atan2`."""
def arctan2_(a: Tensor, b: Tensor) -> Tensor:
    """The same as `atan2_`."""
def arctan_(x: Tensor) -> Tensor:
    """The same as `atan_`."""
def arctanh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `atanh`."""
def arctanh_(x: Tensor) -> Tensor:
    """The same as `atanh_`."""
@overload
def argmax(x: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The i64 index of the largest element along a dim; among equals the first; NaN wins."""
@overload
def argmax(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def argmax(x: Tensor, *, keepdim: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The position of the largest element of all, counted row-major."""
@overload
def argmax(input: Tensor, *, keepdim: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def argmin(x: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The i64 index of the smallest element along a dim; among equals the first; NaN wins."""
@overload
def argmin(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def argmin(x: Tensor, *, keepdim: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The position of the smallest element of all, counted row-major."""
@overload
def argmin(input: Tensor, *, keepdim: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def argsort(x: Tensor, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The indices that sort each line along `dim`: those of `sort`."""
@overload
def argsort(input: Tensor, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
def argwhere(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `nonzero`."""
def asgd_many(tensors: Sequence[Tensor], rate: builtins.float, lambd: builtins.float = 0.0001, weight_decay: builtins.float = 0.0, mix: builtins.float = 1.0) -> None:
    """One step of averaged SGD (Polyak and Juditsky), PyTorch's formula, of many parameters that lie alike; `mix` is the parameter's part in the average."""
@overload
def asin(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine, in radians from -π/2 to π/2; NaN outside -1 to 1."""
@overload
def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def asin_(x: Tensor) -> Tensor:
    """`asin` in place: the result is written over the first argument."""
@overload
def asin_(input: Tensor) -> Tensor: ...
@overload
def asinh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""
@overload
def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def asinh_(x: Tensor) -> Tensor:
    """`asinh` in place: the result is written over the first argument."""
@overload
def asinh_(input: Tensor) -> Tensor: ...
def assign(x: Tensor, y: Tensor) -> None:
    """x becomes y, in place."""
@overload
def atan(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent, in radians from -π/2 to π/2."""
@overload
def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def atan2(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point (b, a) seen from the origin, in radians from -π to π."""
@overload
def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def atan2_(a: Tensor, b: Tensor) -> Tensor:
    """`atan2` in place: the result is written over the first argument."""
@overload
def atan2_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def atan_(x: Tensor) -> Tensor:
    """`atan` in place: the result is written over the first argument."""
@overload
def atan_(input: Tensor) -> Tensor: ...
@overload
def atanh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent; NaN outside -1 to 1."""
@overload
def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def atanh_(x: Tensor) -> Tensor:
    """`atanh` in place: the result is written over the first argument."""
@overload
def atanh_(input: Tensor) -> Tensor: ...
@overload
def atleast_1d(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tensor, with a dim more if it has none."""
@overload
def atleast_1d(xs: Sequence[Tensor], *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Each of the tensors, with a dim more if it has none."""
@overload
def atleast_1d(*xs: Tensor, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tensor, with dims of size 1 in front up to two."""
@overload
def atleast_2d(xs: Sequence[Tensor], *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Each of the tensors, with dims of size 1 in front up to two."""
@overload
def atleast_2d(*xs: Tensor, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tensor, with dims of size 1 up to three: around a dim, behind two."""
@overload
def atleast_3d(xs: Sequence[Tensor], *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Each of the tensors, with dims of size 1 up to three."""
@overload
def atleast_3d(*xs: Tensor, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
def attention(q: Tensor, k: Tensor, v: Tensor, causal: builtins.bool = False, *, scale: builtins.float | None = None, gather_limit: builtins.int = 268435456, out: Tensor | None = None) -> Tensor:
    """softmax(scale q kᵀ) v for queries, keys and values of shape `[B, H, T, D]`. With `causal`, query i attends to keys 0..=i only. `scale` is 1 / √D unless given. Memory is linear in T; a derivative of second order takes memory quadratic in T."""
def attention_grad(dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, causal: builtins.bool = False, gather_limit: builtins.int = 268435456, *, scale: builtins.float) -> _DqDkDv:
    """Gradients of attention, from its inputs and results."""
def attention_parts(q: Tensor, k: Tensor, v: Tensor, parts: builtins.int, causal: builtins.bool = False, *, scale: builtins.float, out: Sequence[Tensor] | None = None) -> _OutLse:
    """Attention with each of `parts` balanced parts of the keys alone: what ranks that hold such parts compute. A part of which a query sees nothing gives 0, and minus infinity as the logarithm of its sum. Only `out` has a gradient."""
def average_many(tensors: Sequence[Tensor], decay: builtins.float) -> None:
    """Moves many averages towards values by 1 - `decay` of the difference."""
@overload
def avg_pool(x: Tensor, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], count_padding: builtins.bool, divisor: builtins.int | None, size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The average of each window of the last dims."""
@overload
def avg_pool(x: Tensor, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], count_padding: builtins.bool, divisor: builtins.int | None, *size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def avg_pool1d(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), ceil_mode: builtins.bool = False, count_include_pad: builtins.bool = True, *, out: Tensor | None = None) -> Tensor:
    """The average of each window of the last dim. With `count_include_pad` the zeros of the padding count as elements."""
@overload
def avg_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), ceil_mode: builtins.bool = False, count_include_pad: builtins.bool = True, *, out: Tensor | None = None) -> Tensor: ...
def avg_pool2d(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), ceil_mode: builtins.bool = False, count_include_pad: builtins.bool = True, divisor_override: builtins.int | None = None, *, out: Tensor | None = None) -> Tensor:
    """As `avg_pool1d` for 2 spatial dims; `divisor_override` is divided by in place of the number of elements."""
def avg_pool3d(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), ceil_mode: builtins.bool = False, count_include_pad: builtins.bool = True, divisor_override: builtins.int | None = None, *, out: Tensor | None = None) -> Tensor:
    """As `avg_pool2d` for 3 spatial dims."""
@overload
def avg_pool_grad(dy: Tensor, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], count_padding: builtins.bool, divisor: builtins.int | None, size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The gradient of avg_pool: each window's gradient, divided among its elements."""
@overload
def avg_pool_grad(dy: Tensor, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], count_padding: builtins.bool, divisor: builtins.int | None, *size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def baddbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """`beta` x + `alpha` (a b), a and b batches of matrices `[B, m, k]` and `[B, k, n]`."""
@overload
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor: ...
def baddbmm_(x: Tensor, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`baddbmm` in place: the result is written over the first argument."""
@overload
def bartlett_window(n: builtins.int, *, periodic: builtins.bool = True, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The Bartlett window, which rises and falls in straight lines."""
@overload
def bartlett_window(window_length: builtins.int, *, periodic: builtins.bool = True, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def batch_norm(x: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, training: builtins.bool = False, momentum: builtins.float = 0.1, eps: builtins.float = 1e-5, *, out: Tensor | None = None) -> Tensor:
    """Batch normalisation: each channel (dim 1 of `[batch, channels, …]`) is normalised to mean 0 and variance 1, multiplied by `weight` and shifted by `bias`. With `training` the mean and the variance are those of x, over the global batch in every layout. Running statistics, if given, are then updated in place: `running_mean` to `(1 - momentum) * running_mean + momentum * mean`, and `running_var` in the same way with the unbiased variance. Without `training`, x is normalised by the running statistics."""
@overload
def batch_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, training: builtins.bool = False, momentum: builtins.float = 0.1, eps: builtins.float = 1e-5, *, out: Tensor | None = None) -> Tensor: ...
def batch_norm_grad(dy: Tensor, x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None = None, eps: builtins.float = 1e-5, *, out: Sequence[Tensor] | None = None) -> _DxDweightDbias:
    """Gradients of batch_norm_train."""
def batch_norm_train(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-5, *, out: Sequence[Tensor] | None = None) -> _YMeanVar:
    """Each channel, dim 1, with mean 0 and variance 1 over all other dims, then scaled and shifted; with mean and variance."""
def bce_each(x: Tensor, t: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The binary cross entropy of a probability x and a target t."""
def bce_logits_each(x: Tensor, t: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The binary cross entropy of a logit x and a target t."""
def bce_logits_weighted_each(x: Tensor, t: Tensor, w: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The binary cross entropy of a logit x and a target t, with the weight w of positive targets."""
@overload
def bernoulli(shape: builtins.int | Sequence[builtins.int], p: builtins.float, *, dtype: _dtype = float32, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """1 with probability p, else 0."""
@overload
def bernoulli(x: Tensor, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """For each element 1 with its probability, else 0, in the dtype of the probabilities."""
@overload
def bernoulli(input: Tensor, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def bernoulli_(x: Tensor, p: builtins.float = 0.5, generator: Generator | None = None) -> Tensor:
    """x becomes 1 with probability `p` and 0 otherwise, in place."""
@overload
def bernoulli_(input: Tensor, p: builtins.float = 0.5, generator: Generator | None = None) -> Tensor: ...
def bessel_j0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind of order 0."""
def bessel_j0_(x: Tensor) -> Tensor:
    """`bessel_j0` in place: the result is written over the first argument."""
def bessel_j1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind of order 1."""
def bessel_j1_(x: Tensor) -> Tensor:
    """`bessel_j1` in place: the result is written over the first argument."""
def bessel_y0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind of order 0; NaN below 0."""
def bessel_y0_(x: Tensor) -> Tensor:
    """`bessel_y0` in place: the result is written over the first argument."""
def bessel_y1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind of order 1; NaN below 0."""
def bessel_y1_(x: Tensor) -> Tensor:
    """`bessel_y1` in place: the result is written over the first argument."""
@overload
def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """x1ᵀ W x2 + b for each matrix W of `weight` `[out, d1, d2]`: `[.., d1]` and `[.., d2]` give `[.., out]`."""
@overload
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor: ...
def binary_cross_entropy(x: Tensor, target: Tensor, *, weight: Tensor | None = None, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """The cross entropy of probabilities x of one of two classes, and targets between 0 and 1."""
@overload
def binary_cross_entropy_with_logits(x: Tensor, target: Tensor, *, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """The same of logits, exact also for large ones. `pos_weight` weighs positive targets."""
@overload
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, *, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: str = "mean", out: Tensor | None = None) -> Tensor: ...
@overload
def bincount(x: Tensor, *, weights: Tensor | None = None, minlength: builtins.int = 0, out: Tensor | None = None) -> Tensor:
    """How often each number from 0 on occurs in a list of integers, at least up to `minlength`; with `weights` the sums of what stands beside each. Counts are i64, sums f32 of f32 and f64 of anything else. The call waits for the greatest number, which decides the length."""
@overload
def bincount(input: Tensor, *, weights: Tensor | None = None, minlength: builtins.int = 0, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_and(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The bits that both have."""
@overload
def bitwise_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_and(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The bits that both have."""
@overload
def bitwise_and(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_and_(a: Tensor, b: Tensor) -> Tensor:
    """`bitwise_and` in place: the result is written over the first argument."""
@overload
def bitwise_and_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def bitwise_and_(x: Tensor, s: Number) -> Tensor:
    """`bitwise_and` in place: the result is written over the first argument."""
@overload
def bitwise_and_(input: Tensor, other: Number) -> Tensor: ...
@overload
def bitwise_left_shift(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a shifted left by b bits; 0 where b is negative or no bit is left."""
@overload
def bitwise_left_shift(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_left_shift(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """x shifted left by s bits."""
@overload
def bitwise_left_shift(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_left_shift_(a: Tensor, b: Tensor) -> Tensor:
    """`bitwise_left_shift` in place: the result is written over the first argument."""
@overload
def bitwise_left_shift_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def bitwise_left_shift_(x: Tensor, s: Number) -> Tensor:
    """`bitwise_left_shift` in place: the result is written over the first argument."""
@overload
def bitwise_left_shift_(input: Tensor, other: Number) -> Tensor: ...
@overload
def bitwise_not(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Every bit of an integer turned: -x - 1 of signed ones. A bool is one bit."""
@overload
def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_not_(x: Tensor) -> Tensor:
    """`bitwise_not` in place: the result is written over the first argument."""
@overload
def bitwise_not_(input: Tensor) -> Tensor: ...
@overload
def bitwise_or(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The bits that at least one has."""
@overload
def bitwise_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_or(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The bits that at least one has."""
@overload
def bitwise_or(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_or_(a: Tensor, b: Tensor) -> Tensor:
    """`bitwise_or` in place: the result is written over the first argument."""
@overload
def bitwise_or_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def bitwise_or_(x: Tensor, s: Number) -> Tensor:
    """`bitwise_or` in place: the result is written over the first argument."""
@overload
def bitwise_or_(input: Tensor, other: Number) -> Tensor: ...
@overload
def bitwise_right_shift(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a shifted right by b bits, with its sign; the sign alone where b is negative or no bit is left."""
@overload
def bitwise_right_shift(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_right_shift(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """x shifted right by s bits, with its sign."""
@overload
def bitwise_right_shift(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_right_shift_(a: Tensor, b: Tensor) -> Tensor:
    """`bitwise_right_shift` in place: the result is written over the first argument."""
@overload
def bitwise_right_shift_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def bitwise_right_shift_(x: Tensor, s: Number) -> Tensor:
    """`bitwise_right_shift` in place: the result is written over the first argument."""
@overload
def bitwise_right_shift_(input: Tensor, other: Number) -> Tensor: ...
@overload
def bitwise_xor(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The bits that exactly one has."""
@overload
def bitwise_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_xor(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The bits that exactly one has."""
@overload
def bitwise_xor(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def bitwise_xor_(a: Tensor, b: Tensor) -> Tensor:
    """`bitwise_xor` in place: the result is written over the first argument."""
@overload
def bitwise_xor_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def bitwise_xor_(x: Tensor, s: Number) -> Tensor:
    """`bitwise_xor` in place: the result is written over the first argument."""
@overload
def bitwise_xor_(input: Tensor, other: Number) -> Tensor: ...
@overload
def blackman_window(n: builtins.int, *, periodic: builtins.bool = True, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The Blackman window 0.42 - 0.5 cos(2πk / n) + 0.08 cos(4πk / n)."""
@overload
def blackman_window(window_length: builtins.int, *, periodic: builtins.bool = True, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def block_diag(xs: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """A matrix with these matrices along its diagonal and zeros elsewhere. A list is a row, a number a matrix of one element."""
@overload
def block_diag(*xs: Tensor, out: Tensor | None = None) -> Tensor: ...
def bmm(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of two batches of matrices, `[B, m, k]` and `[B, k, n]`."""
def box_many(xs: Sequence[Tensor] | None, placements: Sequence[_placement], sbps: Sequence[Sbp | str | Sequence[Sbp | str]], grad_sbps: Sequence[Sbp | str | Sequence[Sbp | str]], *, out: Tensor | None = None) -> Tensor:
    """What `to_global` does to each tensor, with their communication together."""
def box_many_grad(dys: Sequence[Tensor] | None, placements: Sequence[_placement], sbps: Sequence[Sbp | str | Sequence[Sbp | str]], from_: Sequence[_placement], from_sbps: Sequence[Sbp | str | Sequence[Sbp | str]], grad_sbps: Sequence[Sbp | str | Sequence[Sbp | str]], *, out: Tensor | None = None) -> Tensor:
    """What `to_global_grad` does to each gradient, with their communication together."""
def broadcast_shapes(shapes: Sequence[Sequence[builtins.int]]) -> tuple[builtins.int, ...]:
    """The shape to which tensors of these shapes broadcast."""
@overload
def broadcast_tensors(xs: Sequence[Tensor], *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Tensors repeated up to their common shape."""
@overload
def broadcast_tensors(*xs: Tensor, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def broadcast_to(x: Tensor, shape: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """Dims of size 1 repeated up to a shape."""
@overload
def broadcast_to(x: Tensor, *shape: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def bucketize(x: Tensor, boundaries: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """`searchsorted` of the elements of x in one sorted sequence of boundaries."""
@overload
def bucketize(input: Tensor, boundaries: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
def can_cast(from_: _dtype, to: _dtype) -> builtins.bool:
    """Whether a result of the first dtype may be written to a tensor of the second: to one of the same or of a higher kind."""
@overload
def cartesian_prod(xs: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """All combinations of an element of each list: the rows of a matrix, the last list fastest. Of one list its elements."""
@overload
def cartesian_prod(*xs: Tensor, out: Tensor | None = None) -> Tensor: ...
def cast(x: Tensor, dtype: _dtype, *, out: Tensor | None = None) -> Tensor:
    """The values as another dtype; the tensor itself if it has that dtype, like PyTorch's `to`. The gradient is cast back to the dtype of the input."""
@overload
def cat(xs: Sequence[Tensor], dim: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors one after another along a dim. Their other sizes must be equal. An empty list is left out, as a program may begin with one."""
@overload
def cat(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Tensor | None = None) -> Tensor: ...
def cauchy_(x: Tensor, median: builtins.float = 0.0, sigma: builtins.float = 1.0, generator: Generator | None = None) -> Tensor:
    """x becomes numbers of a Cauchy distribution, in place."""
@overload
def cdist(x1: Tensor, x2: Tensor, p: builtins.float = 2.0, *, out: Tensor | None = None) -> Tensor:
    """The p-norms of the differences of each row of `x1` `[.., m, d]` and each row of `x2` `[.., n, d]`, as `[.., m, n]`. Those of many rows for p = 2 come from a matrix product, which loses digits where rows are nearly equal."""
@overload
def cdist(x1: Tensor, x2: Tensor, p: builtins.float, compute_mode: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Distances between all pairs of points. PyTorch's modes say how it computes; there is one way here."""
@overload
def ceil(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest integer not below x."""
@overload
def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ceil_(x: Tensor) -> Tensor:
    """`ceil` in place: the result is written over the first argument."""
@overload
def ceil_(input: Tensor) -> Tensor: ...
@overload
def celu(x: Tensor, alpha: builtins.float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """x, or alpha (e^(x / alpha) - 1) where x is negative: an ELU whose slope has no step."""
@overload
def celu(input: Tensor, alpha: builtins.float = 1.0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def celu_(x: Tensor, alpha: builtins.float = 1.0) -> Tensor:
    """`celu` in place: the result is written over the first argument."""
@overload
def celu_(input: Tensor, alpha: builtins.float = 1.0) -> Tensor: ...
@overload
def channel_shuffle(x: Tensor, groups: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The channels, dim 1, in `groups` groups, taken in turn from each."""
@overload
def channel_shuffle(input: Tensor, groups: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def chebyshev_polynomial_t(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the first kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def chebyshev_polynomial_t(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`chebyshev_polynomial_t` with a number as n."""
@overload
def chebyshev_polynomial_t(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`chebyshev_polynomial_t` with a number as x."""
def chebyshev_polynomial_t_(x: Tensor, n: Tensor) -> Tensor:
    """`chebyshev_polynomial_t` in place: the result is written over the first argument."""
@overload
def chebyshev_polynomial_u(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the second kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def chebyshev_polynomial_u(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`chebyshev_polynomial_u` with a number as n."""
@overload
def chebyshev_polynomial_u(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`chebyshev_polynomial_u` with a number as x."""
def chebyshev_polynomial_u_(x: Tensor, n: Tensor) -> Tensor:
    """`chebyshev_polynomial_u` in place: the result is written over the first argument."""
@overload
def chebyshev_polynomial_v(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the third kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def chebyshev_polynomial_v(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`chebyshev_polynomial_v` with a number as n."""
@overload
def chebyshev_polynomial_v(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`chebyshev_polynomial_v` with a number as x."""
def chebyshev_polynomial_v_(x: Tensor, n: Tensor) -> Tensor:
    """`chebyshev_polynomial_v` in place: the result is written over the first argument."""
@overload
def chebyshev_polynomial_w(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the fourth kind of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def chebyshev_polynomial_w(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`chebyshev_polynomial_w` with a number as n."""
@overload
def chebyshev_polynomial_w(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`chebyshev_polynomial_w` with a number as x."""
def chebyshev_polynomial_w_(x: Tensor, n: Tensor) -> Tensor:
    """`chebyshev_polynomial_w` in place: the result is written over the first argument."""
def cholesky(x: Tensor, upper: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The same as `linalg.cholesky`."""
def cholesky_inverse(L: Tensor, upper: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverses of matrices from their Cholesky factors L, or U with `upper`."""
def cholesky_solve(x: Tensor, L: Tensor, upper: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The solution of the systems with the right sides x whose matrices have the Cholesky factors L, or U with `upper`."""
@overload
def chunk(x: Tensor, parts: builtins.int, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """At most `parts` parts of a dim with equal size (the last may be smaller), as PyTorch's `chunk`."""
@overload
def chunk(input: Tensor, chunks: builtins.int, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def clamp(x: Tensor, lo: Number, hi: Number, *, out: Tensor | None = None) -> Tensor:
    """x, but not below lo and not above hi."""
@overload
def clamp(input: Tensor, min: Number, max: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp(x: Tensor, min: Number | None = None, max: Number | None = None, *, out: Tensor | None = None) -> Tensor:
    """x, but not below `min` and not above `max`; one of them may be left out."""
@overload
def clamp(input: Tensor, min: Number | None = None, max: Number | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp(x: Tensor, min: Tensor | None = None, max: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """x, but not below `min` and not above `max`, element by element; one of them may be left out."""
@overload
def clamp(input: Tensor, min: Tensor | None = None, max: Tensor | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp_(x: Tensor, lo: Number, hi: Number) -> Tensor:
    """`clamp` in place: the result is written over the first argument."""
@overload
def clamp_(input: Tensor, min: Number, max: Number) -> Tensor: ...
@overload
def clamp_(x: Tensor, min: Number | None = None, max: Number | None = None) -> Tensor:
    """`clamp` in place: the result is written over the first argument."""
@overload
def clamp_(input: Tensor, min: Number | None = None, max: Number | None = None) -> Tensor: ...
@overload
def clamp_(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """`clamp` in place: the result is written over the first argument."""
@overload
def clamp_(input: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor: ...
@overload
def clamp_max(x: Tensor, max: Number, *, out: Tensor | None = None) -> Tensor:
    """x, but not above max."""
@overload
def clamp_max(input: Tensor, max: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp_max(x: Tensor, max: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x, but not above `max`, element by element."""
@overload
def clamp_max(input: Tensor, max: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp_max_(x: Tensor, max: Number) -> Tensor:
    """`clamp_max` in place: the result is written over the first argument."""
@overload
def clamp_max_(input: Tensor, max: Number) -> Tensor: ...
@overload
def clamp_max_(x: Tensor, max: Tensor) -> Tensor:
    """`clamp_max` in place: the result is written over the first argument."""
@overload
def clamp_max_(input: Tensor, max: Tensor) -> Tensor: ...
@overload
def clamp_min(x: Tensor, min: Number, *, out: Tensor | None = None) -> Tensor:
    """x, but not below min."""
@overload
def clamp_min(input: Tensor, min: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp_min(x: Tensor, min: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x, but not below `min`, element by element."""
@overload
def clamp_min(input: Tensor, min: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def clamp_min_(x: Tensor, min: Number) -> Tensor:
    """`clamp_min` in place: the result is written over the first argument."""
@overload
def clamp_min_(input: Tensor, min: Number) -> Tensor: ...
@overload
def clamp_min_(x: Tensor, min: Tensor) -> Tensor:
    """`clamp_min` in place: the result is written over the first argument."""
@overload
def clamp_min_(input: Tensor, min: Tensor) -> Tensor: ...
@overload
def clip(x: Tensor, lo: Number, hi: Number, *, out: Tensor | None = None) -> Tensor:
    """The same as `clamp`."""
@overload
def clip(x: Tensor, min: Number | None = None, max: Number | None = None, *, out: Tensor | None = None) -> Tensor:
    """The same as `clamp`."""
@overload
def clip(x: Tensor, min: Tensor | None = None, max: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """The same as `clamp`."""
@overload
def clip_(x: Tensor, lo: Number, hi: Number) -> Tensor:
    """The same as `clamp_`."""
@overload
def clip_(x: Tensor, min: Number | None = None, max: Number | None = None) -> Tensor:
    """The same as `clamp_`."""
@overload
def clip_(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """The same as `clamp_`."""
def close_to(a: Tensor, b: Tensor, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8, equal_nan: builtins.float = 0.0, *, out: Tensor | None = None) -> Tensor:
    """True where |a - b| is at most atol + rtol |b|, where both are equal, or both NaN and `equal_nan` is not 0."""
@overload
def col2im(x: Tensor, output_size: builtins.int | Sequence[builtins.int], kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), stride: builtins.int | Sequence[builtins.int] = (1,), *, out: Tensor | None = None) -> Tensor:
    """Images of `output_size` to which columns of windows are added at their places: the gradient of `im2col`. PyTorch's `nn.functional.fold`."""
@overload
def col2im(x: Tensor, output_size: builtins.int | Sequence[builtins.int], kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), *stride: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def column_stack(xs: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors as columns of a matrix: those of one dim become one column each, the others are put side by side."""
@overload
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
def combinations(x: Tensor, r: builtins.int = 2, with_replacement: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """All choices of `r` elements of a list, as rows, in the order of their places; `with_replacement` an element may come again."""
@overload
def complex(re: Tensor, im: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex numbers re + i im, c64 of f32 and c128 of f64."""
@overload
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def concat(xs: Sequence[Tensor], dim: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The same as `cat`."""
def concatenate(xs: Sequence[Tensor], dim: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The same as `cat`."""
@overload
def conj(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate; of real numbers x itself."""
@overload
def conj(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def conj_(x: Tensor) -> Tensor:
    """`conj` in place: the result is written over the first argument."""
def conj_physical(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `conj`."""
def conj_physical_(x: Tensor) -> Tensor:
    """The same as `conj_`."""
def constant_pad_nd(x: Tensor, pad: builtins.int | Sequence[builtins.int], value: Number = 0, *, out: Tensor | None = None) -> Tensor:
    """`pad` with one number around."""
def contiguous(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tensor in memory in row-major order: itself where it is, else a copy."""
def conv(x: Tensor, weight: Tensor, bias: Tensor | None, stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int], groups: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """The sums of x, weighted by a kernel that slides over its spatial dims."""
@overload
def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """The convolution of `[batch, channels, length]`, or without the batch, with a weight `[filters, channels / groups, kernel]`, plus `bias` (one number a filter). Lists of one number stand for all spatial dims. By name `padding` may be `"valid"` or `"same"`, which gives as many elements as x has."""
@overload
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), *, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, out: Tensor | None = None) -> Tensor:
    """`conv1d` with the padding by a word: "valid" is none, "same" gives as many elements as x has."""
@overload
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), *, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, out: Tensor | None = None) -> Tensor: ...
@overload
def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, *stride: builtins.int, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, out: Tensor | None = None) -> Tensor: ...
@overload
def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """As `conv1d` for `[batch, channels, height, width]` and a weight `[filters, channels / groups, height, width]`."""
@overload
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), *, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, out: Tensor | None = None) -> Tensor:
    """`conv2d` with the padding by a word."""
@overload
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), *, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, out: Tensor | None = None) -> Tensor: ...
@overload
def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, *stride: builtins.int, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, out: Tensor | None = None) -> Tensor: ...
@overload
def conv3d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """As `conv1d` for 3 spatial dims."""
@overload
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def conv3d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), *, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, out: Tensor | None = None) -> Tensor:
    """`conv3d` with the padding by a word."""
@overload
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), *, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, out: Tensor | None = None) -> Tensor: ...
@overload
def conv3d(x: Tensor, weight: Tensor, bias: Tensor | None = None, *stride: builtins.int, padding: str, dilation: builtins.int | Sequence[builtins.int] = (1,), groups: builtins.int = 1, out: Tensor | None = None) -> Tensor: ...
def conv_transpose(x: Tensor, weight: Tensor, bias: Tensor | None, stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int], groups: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """The transposed convolution: each element of x adds the kernel, times it, at its place. The gradient of conv."""
@overload
def conv_transpose1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, dilation: builtins.int | Sequence[builtins.int] = (1,), *, out: Tensor | None = None) -> Tensor:
    """The transposed convolution of `[batch, channels, length]`, or without the batch, with a weight `[channels, filters / groups, kernel]`: the gradient of a convolution. `output_padding` adds elements at the end."""
@overload
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, dilation: builtins.int | Sequence[builtins.int] = (1,), *, out: Tensor | None = None) -> Tensor: ...
@overload
def conv_transpose1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, *dilation: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def conv_transpose2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, dilation: builtins.int | Sequence[builtins.int] = (1,), *, out: Tensor | None = None) -> Tensor:
    """As `conv_transpose1d` for 2 spatial dims."""
@overload
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, dilation: builtins.int | Sequence[builtins.int] = (1,), *, out: Tensor | None = None) -> Tensor: ...
@overload
def conv_transpose2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, *dilation: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def conv_transpose3d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, dilation: builtins.int | Sequence[builtins.int] = (1,), *, out: Tensor | None = None) -> Tensor:
    """As `conv_transpose1d` for 3 spatial dims."""
@overload
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, dilation: builtins.int | Sequence[builtins.int] = (1,), *, out: Tensor | None = None) -> Tensor: ...
@overload
def conv_transpose3d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), output_padding: builtins.int | Sequence[builtins.int] = (0,), groups: builtins.int = 1, *dilation: builtins.int, out: Tensor | None = None) -> Tensor: ...
def conv_weight(x: Tensor, dy: Tensor, stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int], groups: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """The gradient of conv of its weight."""
def copy(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy in new memory. The gradient passes through."""
@overload
def copy_(x: Tensor, other: Tensor) -> Tensor:
    """x becomes a copy of `other` in place, converted to x's dtype; it broadcasts to x's shape. The gradient of the new value goes to `other`, what x was before gets none."""
@overload
def copy_(input: Tensor, src: Tensor) -> Tensor: ...
@overload
def copysign(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """|a| with the sign of b, also where b is zero."""
@overload
def copysign(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def copysign(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """|x| with the sign of a number."""
@overload
def copysign(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def copysign_(a: Tensor, b: Tensor) -> Tensor:
    """`copysign` in place: the result is written over the first argument."""
@overload
def copysign_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def copysign_(x: Tensor, s: Number) -> Tensor:
    """`copysign` in place: the result is written over the first argument."""
@overload
def copysign_(input: Tensor, other: Number) -> Tensor: ...
@overload
def corrcoef(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The correlations of variables, the rows of x: their covariances divided by both standard deviations."""
@overload
def corrcoef(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def cos(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine, of radians."""
@overload
def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def cos_(x: Tensor) -> Tensor:
    """`cos` in place: the result is written over the first argument."""
@overload
def cos_(input: Tensor) -> Tensor: ...
@overload
def cosh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine."""
@overload
def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def cosh_(x: Tensor) -> Tensor:
    """`cosh` in place: the result is written over the first argument."""
@overload
def cosh_(input: Tensor) -> Tensor: ...
@overload
def cosine_embedding_loss(x1: Tensor, x2: Tensor, target: Tensor, *, margin: builtins.float = 0.0, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """1 - cos(x1, x2) where the target is 1, else max(0, cos(x1, x2) - margin)."""
@overload
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, *, margin: builtins.float = 0.0, reduction: str = "mean", out: Tensor | None = None) -> Tensor: ...
def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int = 1, *, eps: builtins.float = 1e-8, out: Tensor | None = None) -> Tensor:
    """The cosine of the angle between two tensors along a dim; norms below `eps` count as `eps`."""
def count_index(ids: Tensor, size: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """How often each index below `size` occurs, i64."""
@overload
def count_nonzero(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """How many elements over dims (none given: all) are not zero; NaN is not. The result is i64."""
@overload
def count_nonzero(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def cov(x: Tensor, *, correction: builtins.int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """The covariance matrix of variables. Each row of x is a variable, each column an observation; a 1-d x is one variable. `fweights` are integer frequencies of the observations, `aweights` their importance. The sums are divided by the number of observations (their total weight, if there are weights) less `correction`, as in PyTorch."""
@overload
def cov(input: Tensor, *, correction: builtins.int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def cross(a: Tensor, b: Tensor, dim: builtins.int = -1, *, out: Tensor | None = None) -> Tensor:
    """The cross product along a dim of 3 elements."""
@overload
def cross(input: Tensor, other: Tensor, dim: builtins.int = -1, *, out: Tensor | None = None) -> Tensor: ...
def cross_entropy(logits: Tensor, target: Tensor, *, weight: Tensor | None = None, ignore_index: builtins.int | None = None, reduction: str = "mean", label_smoothing: builtins.float = 0.0, dim: builtins.int = 1, out: Tensor | None = None) -> Tensor:
    """The cross entropy of logits whose classes lie along `dim`, as in PyTorch dim 1 unless given (dim 0 of a single row), and targets: class indices (integers, with the other dims), or probabilities (with all dims)."""
def cross_entropy_grad(logits: Tensor, target: Tensor, lse: Tensor, dloss: Tensor, ignore_index: builtins.int = -100, label_smoothing: builtins.float = 0.0, *, out: Tensor | None = None) -> Tensor:
    """Gradient of cross_entropy: (softmax - onehot) dloss."""
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, *, blank: builtins.int = 0, reduction: str = "mean", zero_infinity: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The negative log likelihood of target sequences under all their alignments with log-probabilities `[T, N, C]` (or `[T, C]`). Targets are `[N, S]`, or one list of all labels, one sequence after the other; both lengths are `[N]`. `zero_infinity` makes losses 0, and their gradients, where a target does not fit its input. The mean divides each loss by the length of its target first."""
@overload
def cummax(x: Tensor, dim: builtins.int, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """The largest element so far along a dim, and where it stands: of equal ones the last. From the first NaN on the result is NaN."""
@overload
def cummax(input: Tensor, dim: builtins.int, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
@overload
def cummin(x: Tensor, dim: builtins.int, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """The smallest element so far along a dim, and where it stands: of equal ones the last. From the first NaN on the result is NaN."""
@overload
def cummin(input: Tensor, dim: builtins.int, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
@overload
def cumprod(x: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The running product along a dim. Integers and bools multiply to i64. Its gradient divides by nothing, so zeros need no care."""
@overload
def cumprod(input: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def cumprod(x: Tensor, dim: builtins.int, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """`cumprod` of the tensor converted to `dtype`."""
@overload
def cumprod(input: Tensor, dim: builtins.int, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
@overload
def cumprod_(x: Tensor, dim: builtins.int) -> Tensor:
    """`cumprod` in place: the result is written over the first argument."""
@overload
def cumprod_(x: Tensor, dim: builtins.int, *, dtype: _dtype) -> Tensor:
    """`cumprod` in place: the result is written over the first argument."""
@overload
def cumsum(x: Tensor, dim: builtins.int, *, reverse: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The running sum along a dim, with `reverse` from its end."""
@overload
def cumsum(input: Tensor, dim: builtins.int, *, reverse: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def cumsum(x: Tensor, dim: builtins.int, *, reverse: builtins.bool = False, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """`cumsum` of the tensor converted to `dtype`."""
@overload
def cumsum(input: Tensor, dim: builtins.int, *, reverse: builtins.bool = False, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
@overload
def cumsum_(x: Tensor, dim: builtins.int, *, reverse: builtins.bool = False) -> Tensor:
    """`cumsum` in place: the result is written over the first argument."""
@overload
def cumsum_(x: Tensor, dim: builtins.int, *, reverse: builtins.bool = False, dtype: _dtype) -> Tensor:
    """`cumsum` in place: the result is written over the first argument."""
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1, out: Tensor | None = None) -> Tensor:
    """The integrals up to each place but the first, by the trapezoid rule."""
@overload
def deg2rad(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Degrees in radians."""
@overload
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def deg2rad_(x: Tensor) -> Tensor:
    """`deg2rad` in place: the result is written over the first argument."""
@overload
def deg2rad_(input: Tensor) -> Tensor: ...
@overload
def dequantize(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The numbers of a quantised tensor, in f32."""
@overload
def dequantize(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def det(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `linalg.det`."""
@overload
def diag(x: Tensor, diagonal: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The diagonal of a matrix, or the matrix that has a vector on its diagonal."""
@overload
def diag(input: Tensor, diagonal: builtins.int = 0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def diag_embed(x: Tensor, offset: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The last dim as the diagonal of the two last dims of the result, with zeros elsewhere."""
@overload
def diag_embed(input: Tensor, offset: builtins.int = 0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def diag_embed(x: Tensor, offset: builtins.int, dim1: builtins.int, dim2: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The elements as a diagonal of the dims `dim1` and `dim2` of the result, zeros elsewhere."""
@overload
def diag_embed(input: Tensor, offset: builtins.int, dim1: builtins.int, dim2: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def diagflat(x: Tensor, offset: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """All elements as the diagonal of a matrix."""
@overload
def diagflat(input: Tensor, offset: builtins.int = 0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def diagonal(x: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """The diagonal of two dims, as the last dim of the result. A positive offset lies above the main diagonal."""
@overload
def diagonal(input: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1, *, out: Tensor | None = None) -> Tensor: ...
def diagonal_scatter(x: Tensor, src: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """x with `src` as the diagonal of two dims."""
@overload
def diff(x: Tensor, n: builtins.int = 1, dim: builtins.int = -1, *, prepend: Tensor | None = None, append: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """The differences of neighbours along `dim`, `n` times in a row; of bools whether they differ. `prepend` and `append` are put before and behind x first."""
@overload
def diff(input: Tensor, n: builtins.int = 1, dim: builtins.int = -1, *, prepend: Tensor | None = None, append: Tensor | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def diff(x: Tensor, n: builtins.int, dim: builtins.int, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """The differences of neighbours, `n` times, of x with these in front and behind."""
@overload
def diff(input: Tensor, n: builtins.int, dim: builtins.int, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None = None) -> Tensor: ...
def digamma(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `lgamma`: NaN at negative integers."""
def digamma_(x: Tensor) -> Tensor:
    """`digamma` in place: the result is written over the first argument."""
def dim(x: Tensor) -> builtins.int:
    """The number of dims."""
def dist(x: Tensor, other: Tensor, p: builtins.float = 2.0, *, out: Tensor | None = None) -> Tensor:
    """The p-norm of the difference of two tensors."""
def distribute(x: Tensor, placement: _placement, sbp: Sbp | str | Sequence[Sbp | str], *, out: Tensor | None = None) -> Tensor:
    """A global tensor from its logical value, which every rank gives."""
@overload
def div(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a / b; of integers, a float."""
@overload
def div(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def div(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """x / s."""
@overload
def div(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def div(s: Number, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """s / x."""
@overload
def div(other: Number, input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def div(a: Tensor, b: Tensor, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """The quotient, rounded: `"trunc"` towards zero, `"floor"` downwards."""
@overload
def div(input: Tensor, other: Tensor, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def div(x: Tensor, s: Number, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """The quotient, rounded: `"trunc"` towards zero, `"floor"` downwards."""
@overload
def div(input: Tensor, other: Number, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def div_(a: Tensor, b: Tensor) -> Tensor:
    """`div` in place: the result is written over the first argument."""
@overload
def div_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def div_(x: Tensor, s: Number) -> Tensor:
    """`div` in place: the result is written over the first argument."""
@overload
def div_(input: Tensor, other: Number) -> Tensor: ...
@overload
def div_(a: Tensor, b: Tensor, *, rounding_mode: str | None = None) -> Tensor:
    """`div` in place: the result is written over the first argument."""
@overload
def div_(input: Tensor, other: Tensor, *, rounding_mode: str | None = None) -> Tensor: ...
@overload
def div_(x: Tensor, s: Number, *, rounding_mode: str | None = None) -> Tensor:
    """`div` in place: the result is written over the first argument."""
@overload
def div_(input: Tensor, other: Number, *, rounding_mode: str | None = None) -> Tensor: ...
@overload
def divide(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `div`."""
@overload
def divide(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The same as `div`."""
@overload
def divide(s: Number, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `div`."""
@overload
def divide(a: Tensor, b: Tensor, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """The same as `div`."""
@overload
def divide(x: Tensor, s: Number, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """The same as `div`."""
@overload
def divide_(a: Tensor, b: Tensor) -> Tensor:
    """The same as `div_`."""
@overload
def divide_(x: Tensor, s: Number) -> Tensor:
    """The same as `div_`."""
@overload
def divide_(a: Tensor, b: Tensor, *, rounding_mode: str | None = None) -> Tensor:
    """The same as `div_`."""
@overload
def divide_(x: Tensor, s: Number, *, rounding_mode: str | None = None) -> Tensor:
    """The same as `div_`."""
@overload
def dot(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of the products of two vectors' elements."""
@overload
def dot(input: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def dropout(x: Tensor, p: builtins.float = 0.5, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Zeros with probability p, and the other elements times 1 / (1 - p). The mask depends on the seed and the logical position, not on placement or SBP. The result is always a new tensor; with p = 0 `nn::Dropout` returns its input instead."""
@overload
def dropout(input: Tensor, p: builtins.float = 0.5, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def dsplit(x: Tensor, sections: builtins.int, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """So many parts along dim 2."""
@overload
def dsplit(x: Tensor, indices: builtins.int | Sequence[builtins.int], *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The parts along dim 2 between these places."""
@overload
def dsplit(x: Tensor, *indices: builtins.int, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def dstack(xs: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors behind each other along dim 2; those of fewer dims get dims of size 1."""
@overload
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
@overload
def einsum(equation: str, xs: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The sum of products that `equation` describes: for each tensor the letters of its dims, after `->` those of the result. Letters that the result lacks are summed over; a letter twice in one tensor takes its diagonal; `...` stands for leading dims that broadcast. Without `->` the result has the letters that occur once, in alphabetical order. Products of integers keep their dtype; where letters of one tensor alone are summed over, integers and bools give i64, as `sum` does."""
@overload
def einsum(equation: str, *xs: Tensor, out: Tensor | None = None) -> Tensor: ...
def element_size(x: Tensor) -> builtins.int:
    """Bytes of an element."""
def elu(x: Tensor, alpha: builtins.float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """x, or alpha (eˣ - 1) where x is negative."""
def elu_(x: Tensor, alpha: builtins.float = 1.0) -> Tensor:
    """`elu` in place: the result is written over the first argument."""
@overload
def embedding(weight: Tensor, ids: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Rows of the table `weight`, `[rows, width]`, by index: integer ids of any shape give `[ids…, width]`."""
@overload
def embedding(weight: Tensor, indices: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def embedding_bag(weight: Tensor, ids: Tensor, offsets: Tensor | None = None, *, mode: str = "mean", per_sample_weights: Tensor | None = None, include_last_offset: builtins.bool = False, padding_idx: builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """The rows of a table `weight` that each bag of `ids` names, reduced: `sum`, `mean` or `max`. The rows of `ids` of two dims are bags; a list of ids has bags that start at `offsets` (with `include_last_offset` the last is the end). An empty bag gives 0. `per_sample_weights` multiply the rows of a `sum`. Rows at `padding_idx` do not count."""
@overload
def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor | None = None, *, mode: str = "mean", per_sample_weights: Tensor | None = None, include_last_offset: builtins.bool = False, padding_idx: builtins.int | None = None, out: Tensor | None = None) -> Tensor: ...
def embedding_grad(dy: Tensor, ids: Tensor, rows: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """Gradient of embedding: dy's rows added up by index, in order."""
@overload
def empty(shape: builtins.int | Sequence[builtins.int], *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Memory whose contents nobody reads before writing them; zeros, so that no rank ever sees another's garbage."""
@overload
def empty(size: builtins.int | Sequence[builtins.int], *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def empty(*shape: builtins.int, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def empty_like(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Memory whose contents nobody reads before writing them (zeros), with the same shape, dtype and layout."""
@overload
def empty_like(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def empty_like(x: Tensor, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """Memory of the same shape and layout whose contents nobody reads before writing them, of that dtype."""
@overload
def empty_like(input: Tensor, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
def entr(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x log(x), the entropy: 0 of 0 and -inf below."""
def entr_(x: Tensor) -> Tensor:
    """`entr` in place: the result is written over the first argument."""
@overload
def eq(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where a == b."""
@overload
def eq(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def eq(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """True where x == s."""
@overload
def eq(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def eq_(a: Tensor, b: Tensor) -> Tensor:
    """`eq` in place: the result is written over the first argument."""
@overload
def eq_(x: Tensor, s: Number) -> Tensor:
    """`eq` in place: the result is written over the first argument."""
@overload
def equal(x: Tensor, y: Tensor) -> builtins.bool:
    """Whether shapes and all elements are equal. On global tensors a collective of the world."""
@overload
def equal(input: Tensor, other: Tensor) -> builtins.bool: ...
@overload
def erf(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function."""
@overload
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def erf_(x: Tensor) -> Tensor:
    """`erf` in place: the result is written over the first argument."""
@overload
def erf_(input: Tensor) -> Tensor: ...
@overload
def erfc(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 - erf(x), exact where erf(x) is nearly 1."""
@overload
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def erfc_(x: Tensor) -> Tensor:
    """`erfc` in place: the result is written over the first argument."""
@overload
def erfc_(input: Tensor) -> Tensor: ...
def erfcx(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x²) erfc(x), also where the factors overflow and vanish."""
def erfcx_(x: Tensor) -> Tensor:
    """`erfcx` in place: the result is written over the first argument."""
def erfinv(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `erf`: infinite at -1 and 1, NaN beyond."""
def erfinv_(x: Tensor) -> Tensor:
    """`erfinv` in place: the result is written over the first argument."""
@overload
def exp(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """eˣ."""
@overload
def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def exp2(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2ˣ."""
@overload
def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def exp2_(x: Tensor) -> Tensor:
    """`exp2` in place: the result is written over the first argument."""
@overload
def exp2_(input: Tensor) -> Tensor: ...
@overload
def exp_(x: Tensor) -> Tensor:
    """`exp` in place: the result is written over the first argument."""
@overload
def exp_(input: Tensor) -> Tensor: ...
@overload
def expand(x: Tensor, shape: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """Dims of size 1 repeated up to `shape`; -1 keeps the size of a dim."""
@overload
def expand(input: Tensor, size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def expand(x: Tensor, *shape: builtins.int, out: Tensor | None = None) -> Tensor: ...
def expand_as(x: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`expand` to the shape of another tensor."""
@overload
def expm1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """eˣ - 1, accurate near zero."""
@overload
def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def expm1_(x: Tensor) -> Tensor:
    """`expm1` in place: the result is written over the first argument."""
@overload
def expm1_(input: Tensor) -> Tensor: ...
@overload
def exponential_(x: Tensor, rate: builtins.float = 1.0, generator: Generator | None = None) -> Tensor:
    """x becomes numbers of the exponential distribution with this rate, in place."""
@overload
def exponential_(input: Tensor, rate: builtins.float = 1.0, generator: Generator | None = None) -> Tensor: ...
@overload
def eye(n: builtins.int, *, m: builtins.int | None = None, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """A matrix of `n` rows with ones on its diagonal; with `m` columns where given, else square. f32 unless the target says otherwise."""
@overload
def eye(n: builtins.int, m: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """A matrix of n rows and m columns with ones on the diagonal."""
@overload
def fake_quantize_per_tensor_affine(x: Tensor, scale: builtins.float, zero_point: builtins.int, quant_min: builtins.int, quant_max: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """x rounded to the numbers that a quantised dtype with this scale, zero point and range has, as floats: training that knows of the rounding to come. The gradient passes unchanged where x is in the range, and is 0 elsewhere."""
@overload
def fake_quantize_per_tensor_affine(input: Tensor, scale: builtins.float, zero_point: builtins.int, quant_min: builtins.int, quant_max: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def feature_alpha_dropout(x: Tensor, p: builtins.float = 0.5, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """`alpha_dropout` of whole channels of `[batch, channels, …]`."""
@overload
def feature_alpha_dropout(input: Tensor, p: builtins.float = 0.5, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def feature_dropout(x: Tensor, p: builtins.float = 0.5, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Dropout of whole channels of `[batch, channels, …]`: each channel of each sample becomes 0 with probability `p`, the others are divided by 1 - p. What is dropped does not depend on placement or SBP."""
@overload
def feature_dropout(input: Tensor, p: builtins.float = 0.5, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
def fill(x: Tensor, value: Number, *, out: Tensor | None = None) -> Tensor:
    """One number everywhere, with the same shape, dtype and layout."""
@overload
def fill_(x: Tensor, value: Number) -> Tensor:
    """x becomes `value` everywhere, in place."""
@overload
def fill_(input: Tensor, value: Number) -> Tensor: ...
def fix(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `trunc`."""
def fix_(x: Tensor) -> Tensor:
    """The same as `trunc_`."""
@overload
def flatten(x: Tensor, start: builtins.int = 0, end: builtins.int = -1, *, out: Tensor | None = None) -> Tensor:
    """The dims from `start` to `end`, inclusive, as one. Negative dims count from the end."""
@overload
def flatten(input: Tensor, start_dim: builtins.int = 0, end_dim: builtins.int = -1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def flip(x: Tensor, dims: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The elements of each of the dims in reverse order, in new memory."""
@overload
def flip(input: Tensor, dims: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def flip(x: Tensor, *dims: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def fliplr(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Dim 1 from the end to the start: columns from right to left."""
@overload
def fliplr(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def flipud(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Dim 0 from the end to the start: rows from the last to the first."""
@overload
def flipud(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def float_power(x: Tensor, exponent: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x to the power of the exponents, computed in f64, or in c128 where one of both is complex."""
@overload
def float_power(x: Tensor, exponent: Number, *, out: Tensor | None = None) -> Tensor:
    """x to the power of a number, computed in f64, or in c128 where one of both is complex."""
@overload
def float_power(x: Number, exponent: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A number to the power of the exponents, computed in f64, or in c128 where one of both is complex."""
@overload
def float_power_(x: Tensor, exponent: Tensor) -> Tensor:
    """`float_power` in place: the result is written over the first argument."""
@overload
def float_power_(x: Tensor, exponent: Number) -> Tensor:
    """`float_power` in place: the result is written over the first argument."""
@overload
def floor(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest integer not above x."""
@overload
def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def floor_(x: Tensor) -> Tensor:
    """`floor` in place: the result is written over the first argument."""
@overload
def floor_(input: Tensor) -> Tensor: ...
@overload
def floor_divide(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a / b rounded down. Integers divided by 0 are an error."""
@overload
def floor_divide(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def floor_divide(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """x / s rounded down."""
@overload
def floor_divide(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def floor_divide_(a: Tensor, b: Tensor) -> Tensor:
    """`floor_divide` in place: the result is written over the first argument."""
@overload
def floor_divide_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def floor_divide_(x: Tensor, s: Number) -> Tensor:
    """`floor_divide` in place: the result is written over the first argument."""
@overload
def floor_divide_(input: Tensor, other: Number) -> Tensor: ...
@overload
def fmax(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger element of each pair, or the one that is not NaN."""
@overload
def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def fmax_(a: Tensor, b: Tensor) -> Tensor:
    """`fmax` in place: the result is written over the first argument."""
@overload
def fmin(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller element of each pair, or the one that is not NaN."""
@overload
def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def fmin_(a: Tensor, b: Tensor) -> Tensor:
    """`fmin` in place: the result is written over the first argument."""
@overload
def fmod(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The remainder of a / b with the sign of a. Integers divided by 0 are an error."""
@overload
def fmod(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def fmod(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The remainder of x / s with the sign of x."""
@overload
def fmod(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def fmod_(a: Tensor, b: Tensor) -> Tensor:
    """`fmod` in place: the result is written over the first argument."""
@overload
def fmod_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def fmod_(x: Tensor, s: Number) -> Tensor:
    """`fmod` in place: the result is written over the first argument."""
@overload
def fmod_(input: Tensor, other: Number) -> Tensor: ...
@overload
def frac(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """What x has behind the point, with the sign of x."""
@overload
def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def frac_(x: Tensor) -> Tensor:
    """`frac` in place: the result is written over the first argument."""
@overload
def frac_(input: Tensor) -> Tensor: ...
def fractional_max_pool2d(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int], samples: Tensor, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """The largest elements of windows whose places are random (Graham, 2014), and where they are, counted over the spatial dims. `samples` `[batch, channels, 2]` are uniform numbers from 0 to 1: the windows of a channel of an image depend on its numbers, the first for the last dim."""
def fractional_max_pool3d(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], output_size: builtins.int | Sequence[builtins.int], samples: Tensor, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """As `fractional_max_pool2d` for 3 spatial dims and as many numbers for each channel, in the order of the dims."""
def frexp(x: Tensor, *, out: Sequence[Tensor] | None = None) -> _MantissaExponent:
    """Mantissas, from 1/2 to 1, and exponents, i32: x is the mantissa times 2 to the power of the exponent."""
def frexp_exponent(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The exponent of x, as `frexp` returns it."""
def frexp_mantissa(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The mantissa of x, from 1/2 to 1, as `frexp` returns it."""
def from_boxes(boxes: Sequence[Tensor] | None, offsets: Sequence[Sequence[builtins.int]], shape: builtins.int | Sequence[builtins.int], placement: _placement, sbp: Sbp | str | Sequence[Sbp | str], *, out: Tensor | None = None) -> Tensor:
    """A global tensor from boxes that ranks happen to hold."""
@overload
def full(shape: builtins.int | Sequence[builtins.int], value: Number, *, dtype: _dtype | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Every element is `value`; the dtype is that of the number's kind unless the target says otherwise."""
@overload
def full(size: builtins.int | Sequence[builtins.int], fill_value: Number, *, dtype: _dtype | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def full_like(x: Tensor, value: Number, *, out: Tensor | None = None) -> Tensor:
    """`value` everywhere, with the same shape, dtype and layout."""
@overload
def full_like(input: Tensor, fill_value: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def full_like(x: Tensor, value: Number, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """One number everywhere, with the same shape and layout, of that dtype."""
@overload
def full_like(input: Tensor, fill_value: Number, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
def gate(x: Tensor, by: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x sigmoid(by)."""
@overload
def gather(x: Tensor, dim: builtins.int, ids: Tensor, *, out: Tensor | None = None) -> Tensor:
    """For each index the element of x that it names along `dim`: `y[i][j] = x[ids[i][j]][j]` for dim 0. The indices may be fewer than the elements of x in other dims too; the first are meant."""
@overload
def gather(input: Tensor, dim: builtins.int, index: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def gather_last(x: Tensor, ids: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """As gather, but zero where an index that comes later along the dim names the same element. It is the gradient of scatter with respect to the values, of which the last stands."""
def gaussian_nll_loss(x: Tensor, target: Tensor, var: Tensor, *, full: builtins.bool = False, eps: builtins.float = 1e-6, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """The negative log likelihood of targets under normal distributions with these means and variances. Targets broadcast; the variances may lack the last dim of x, or have dims of size 1. `full` adds the constant log(2π) / 2."""
def gcd(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor; 0 of two zeros."""
def gcd_(a: Tensor, b: Tensor) -> Tensor:
    """`gcd` in place: the result is written over the first argument."""
@overload
def ge(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where a >= b."""
@overload
def ge(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ge(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """True where x >= s."""
@overload
def ge(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ge_(a: Tensor, b: Tensor) -> Tensor:
    """`ge` in place: the result is written over the first argument."""
@overload
def ge_(x: Tensor, s: Number) -> Tensor:
    """`ge` in place: the result is written over the first argument."""
def gelu(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x Φ(x), with the exact normal distribution function Φ (by erf)."""
def gelu_(x: Tensor) -> Tensor:
    """`gelu` in place: the result is written over the first argument."""
def gelu_tanh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """GELU by its tanh approximation."""
def gelu_tanh_(x: Tensor) -> Tensor:
    """`gelu_tanh` in place: the result is written over the first argument."""
def geometric_(x: Tensor, p: builtins.float, generator: Generator | None = None) -> Tensor:
    """x becomes numbers of trials until the first success, of the probability `p` each, in place: 1, 2, …"""
def geqrf(x: Tensor, *, out: Sequence[Tensor] | None = None) -> _ATau:
    """The QR decomposition in LAPACK's form: R with the vectors of reflections below its diagonal, and their factors."""
def ger(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `outer`."""
def glu(x: Tensor, dim: builtins.int = -1, *, out: Tensor | None = None) -> Tensor:
    """a sigmoid(b), where a and b are the halves of x along `dim`."""
@overload
def gradient(x: Tensor, *, spacing: builtins.float = 1.0, dim: builtins.int | Sequence[builtins.int] = (), edge_order: builtins.int = 1, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The gradient of values that are `spacing` apart, along each of the dims (none given: all): differences over two neighbours, at the ends over one (`edge_order` 1) or of second order (2)."""
@overload
def gradient(x: Tensor, *, spacing: builtins.float | Sequence[builtins.float], dim: builtins.int | Sequence[builtins.int] = (), edge_order: builtins.int = 1, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The gradient of values with a spacing of its own along each dim."""
@overload
def gradient(x: Tensor, *, spacing: Sequence[Tensor], dim: builtins.int | Sequence[builtins.int] = (), edge_order: builtins.int = 1, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The gradient of values at these places: for each dim a list of coordinates."""
@overload
def greater(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `gt`."""
@overload
def greater(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The same as `gt`."""
@overload
def greater_(a: Tensor, b: Tensor) -> Tensor:
    """The same as `gt_`."""
@overload
def greater_(x: Tensor, s: Number) -> Tensor:
    """The same as `gt_`."""
@overload
def greater_equal(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `ge`."""
@overload
def greater_equal(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The same as `ge`."""
@overload
def greater_equal_(a: Tensor, b: Tensor) -> Tensor:
    """The same as `ge_`."""
@overload
def greater_equal_(x: Tensor, s: Number) -> Tensor:
    """The same as `ge_`."""
def grid_sample(x: Tensor, grid: Tensor, *, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """An image `[batch, channels, 2 or 3 spatial dims]` at the places of a grid `[batch, 2 or 3 dims of the result, 2 or 3]`, whose last dim is x, y and z, from -1 to 1 over the image. The mode is `bilinear`, `nearest` or `bicubic`, also of 3 dims; outside the image are `zeros`, its `border`, or its `reflection`. With `align_corners` -1 and 1 are the centres of the corner pixels, without it their outer edges."""
@overload
def group_norm(x: Tensor, num_groups: builtins.int, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-5, *, out: Tensor | None = None) -> Tensor:
    """Group normalisation: the channels (dim 1) are divided into `num_groups` groups of equal size. Each group of each image is normalised to mean 0 and variance 1, multiplied by `weight` and shifted by `bias`, which have one element per channel."""
@overload
def group_norm(input: Tensor, num_groups: builtins.int, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-5, *, out: Tensor | None = None) -> Tensor: ...
def grouped_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-5, *, out: Sequence[Tensor] | None = None) -> _YMeanRstd:
    """Group norm of [n, groups, channels, inner]: the elements of an image and a group with mean 0 and variance 1, then scaled and shifted by channels."""
def grouped_norm_grad(dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None = None, *, out: Sequence[Tensor] | None = None) -> _DxDweightDbias:
    """Gradients of grouped_norm."""
@overload
def gru(x: Tensor, hx: Tensor, params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _OutputH_n:
    """Gated recurrent units over a sequence, as `lstm`; the gates are r, z and n."""
@overload
def gru(input: Tensor, hx: Tensor, params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _OutputH_n: ...
@overload
def gru_cell(x: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """One step of gated recurrent units for `[B, input]` or `[input]`."""
@overload
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def gt(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where a > b."""
@overload
def gt(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def gt(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """True where x > s."""
@overload
def gt(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def gt_(a: Tensor, b: Tensor) -> Tensor:
    """`gt` in place: the result is written over the first argument."""
@overload
def gt_(x: Tensor, s: Number) -> Tensor:
    """`gt` in place: the result is written over the first argument."""
def gumbel_softmax(logits: Tensor, tau: builtins.float = 1.0, hard: builtins.bool = False, dim: builtins.int = -1, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Random choices among the categories along `dim`, with a gradient: the softmax of (logits + Gumbel noise) / `tau`. With `hard` the result is one-hot, and the gradient is that of the softmax (Jang et al., 2017)."""
@overload
def hamming_window(n: builtins.int, *, periodic: builtins.bool = True, alpha: builtins.float = 0.54, beta: builtins.float = 0.46, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The Hamming window `alpha` - `beta` cos(2πk / n)."""
@overload
def hamming_window(window_length: builtins.int, *, periodic: builtins.bool = True, alpha: builtins.float = 0.54, beta: builtins.float = 0.46, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def hann_window(n: builtins.int, *, periodic: builtins.bool = True, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The Hann window sin²(πk / n) of `n` numbers; f32 unless the target says otherwise. With `periodic` it is one number longer, and the last is left out: what a Fourier transform wants. Else it is symmetric."""
@overload
def hann_window(window_length: builtins.int, *, periodic: builtins.bool = True, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def hardshrink(x: Tensor, lambd: builtins.float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x, or 0 where |x| is not above lambd."""
@overload
def hardshrink(input: Tensor, lambd: builtins.float = 0.5, *, out: Tensor | None = None) -> Tensor: ...
def hardshrink_(x: Tensor, lambd: builtins.float = 0.5) -> Tensor:
    """`hardshrink` in place: the result is written over the first argument."""
def hardsigmoid(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The piecewise linear sigmoid: x / 6 + 1/2, clamped to 0 and 1."""
def hardsigmoid_(x: Tensor) -> Tensor:
    """`hardsigmoid` in place: the result is written over the first argument."""
def hardswish(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x hardsigmoid(x)."""
def hardswish_(x: Tensor) -> Tensor:
    """`hardswish` in place: the result is written over the first argument."""
def hardtanh(x: Tensor, lo: builtins.float = -1.0, hi: builtins.float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """x, but not below lo and not above hi."""
def hardtanh_(x: Tensor, lo: builtins.float = -1.0, hi: builtins.float = 1.0) -> Tensor:
    """`hardtanh` in place: the result is written over the first argument."""
@overload
def heaviside(x: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 where x is below zero, 1 where it is above, and the element of `values` where it is zero."""
@overload
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def heaviside_(x: Tensor, values: Tensor) -> Tensor:
    """`heaviside` in place: the result is written over the first argument."""
@overload
def heaviside_(input: Tensor, values: Tensor) -> Tensor: ...
@overload
def hermite_polynomial_h(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Hermite polynomial of physicists of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def hermite_polynomial_h(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`hermite_polynomial_h` with a number as n."""
@overload
def hermite_polynomial_h(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`hermite_polynomial_h` with a number as x."""
def hermite_polynomial_h_(x: Tensor, n: Tensor) -> Tensor:
    """`hermite_polynomial_h` in place: the result is written over the first argument."""
@overload
def hermite_polynomial_he(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Hermite polynomial of probability theory of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def hermite_polynomial_he(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`hermite_polynomial_he` with a number as n."""
@overload
def hermite_polynomial_he(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`hermite_polynomial_he` with a number as x."""
def hermite_polynomial_he_(x: Tensor, n: Tensor) -> Tensor:
    """`hermite_polynomial_he` in place: the result is written over the first argument."""
def hinge_each(x: Tensor, t: Tensor, margin: builtins.float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """x where t is 1, max(0, margin - x) where it is -1, and the sum of both elsewhere."""
@overload
def hinge_embedding_loss(x: Tensor, target: Tensor, *, margin: builtins.float = 1.0, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1, and the sum of both elsewhere."""
@overload
def hinge_embedding_loss(input: Tensor, target: Tensor, *, margin: builtins.float = 1.0, reduction: str = "mean", out: Tensor | None = None) -> Tensor: ...
@overload
def histc(x: Tensor, bins: builtins.int = 100, min: builtins.float = 0.0, max: builtins.float = 0.0, *, out: Tensor | None = None) -> Tensor:
    """How many elements lie in each of `bins` equal intervals from `min` to `max`, which belongs to the last one. Where both are the same, they are the smallest and the largest element, for which the call waits. Other elements, and NaN, are not counted. The result has the dtype of x."""
@overload
def histc(input: Tensor, bins: builtins.int = 100, min: builtins.float = 0.0, max: builtins.float = 0.0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def histogram(x: Tensor, bins: builtins.int = 100, *, range: builtins.float | Sequence[builtins.float] = (), weight: Tensor | None = None, density: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _HistBin_edges:
    """The number of elements, or the sum of their `weight`, in each of `bins` equal intervals, and the intervals' bounds. `range` is the lowest and the highest bound; without it the call reads the smallest and the largest element of x, and waits for them. The last interval includes its upper bound; elements outside do not count. With `density` counts are divided by their sum and interval length."""
@overload
def histogram(input: Tensor, bins: builtins.int = 100, *, range: builtins.float | Sequence[builtins.float] = (), weight: Tensor | None = None, density: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _HistBin_edges: ...
@overload
def histogram(x: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _HistBin_edges:
    """`histogram` with `bins` as the bounds of the intervals, in rising order."""
@overload
def histogram(input: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _HistBin_edges: ...
def histogram_within(x: Tensor, bins: builtins.int, lo: builtins.float, hi: builtins.float, *, out: Tensor | None = None) -> Tensor:
    """How many elements lie in each of `bins` equal intervals between two bounds; the upper one belongs to the last interval. Others, and NaN, are not counted."""
@overload
def histogramdd(x: Tensor, bins: builtins.int | Sequence[builtins.int], *, range: builtins.float | Sequence[builtins.float] = (), weight: Tensor | None = None, density: builtins.bool = False, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The histogram of points, the rows of x, in boxes: so many equal intervals of each column. After it the bounds of each column's intervals. `range` has the lowest and the highest bound of each column; without it they are read."""
@overload
def histogramdd(x: Tensor, bins: Sequence[Tensor], *, weight: Tensor | None = None, density: builtins.bool = False, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """`histogramdd` with the bounds of the intervals of each column, in rising order."""
@overload
def histogramdd(x: Tensor, *bins: builtins.int, range: builtins.float | Sequence[builtins.float] = (), weight: Tensor | None = None, density: builtins.bool = False, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def hsplit(x: Tensor, sections: builtins.int, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """So many parts along dim 1, or along dim 0 of a tensor with one dim."""
@overload
def hsplit(x: Tensor, indices: builtins.int | Sequence[builtins.int], *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The parts along dim 1 between these places, or along dim 0 of a tensor with one dim."""
@overload
def hsplit(x: Tensor, *indices: builtins.int, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def hstack(xs: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors side by side: along dim 1, or dim 0 where they have one dim."""
@overload
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
def huber_each(x: Tensor, t: Tensor, delta: builtins.float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """(x - t)² / 2 where |x - t| is at most delta, else delta (|x - t| - delta / 2)."""
def huber_loss(x: Tensor, target: Tensor, *, delta: builtins.float = 1.0, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """Half the squared error where |x - target| is at most `delta`, else `delta` times the absolute error less `delta` / 2."""
@overload
def hypot(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """√(a² + b²), also where the squares overflow."""
@overload
def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def hypot_(a: Tensor, b: Tensor) -> Tensor:
    """`hypot` in place: the result is written over the first argument."""
@overload
def hypot_(input: Tensor, other: Tensor) -> Tensor: ...
def i0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
def i0_(x: Tensor) -> Tensor:
    """`i0` in place: the result is written over the first argument."""
def i0e(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(-|x|) times `i0`."""
def i0e_(x: Tensor) -> Tensor:
    """`i0e` in place: the result is written over the first argument."""
def i1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
def i1_(x: Tensor) -> Tensor:
    """`i1` in place: the result is written over the first argument."""
def i1e(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(-|x|) times `i1`."""
def i1e_(x: Tensor) -> Tensor:
    """`i1e` in place: the result is written over the first argument."""
def igamma(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized lower incomplete gamma function P(a, b). It has a gradient by b only."""
def igamma_(a: Tensor, b: Tensor) -> Tensor:
    """`igamma` in place: the result is written over the first argument."""
def igammac(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized upper incomplete gamma function Q(a, b) = 1 - P(a, b). It has a gradient by b only."""
def igammac_(a: Tensor, b: Tensor) -> Tensor:
    """`igammac` in place: the result is written over the first argument."""
@overload
def im2col(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), stride: builtins.int | Sequence[builtins.int] = (1,), *, out: Tensor | None = None) -> Tensor:
    """The windows of images `[batch, channels, height, width]`, or without the batch, as columns: `[batch, channels * elements of a window, windows]`. PyTorch's `nn.functional.unfold`."""
@overload
def im2col(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int] = (1,), padding: builtins.int | Sequence[builtins.int] = (0,), *stride: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def imag(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The imaginary part of complex numbers."""
@overload
def imag(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def index(x: Tensor, index: Index, *, out: Tensor | None = None) -> Tensor:
    """The elements that an index of integers, slices, masks and index tensors names."""
@overload
def index(input: Tensor, indices: Index, *, out: Tensor | None = None) -> Tensor: ...
@overload
def index_add(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """x with `alpha` times each slice of `src` added at its index along `dim`: `ids` is a list."""
@overload
def index_add(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor: ...
def index_add_(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor, *, alpha: Number = 1) -> Tensor:
    """`index_add` in place: the result is written over the first argument."""
@overload
def index_copy(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x with each slice of `src` written at its index along `dim`: `ids` is a list. Of several at one place the last stands."""
@overload
def index_copy(input: Tensor, dim: builtins.int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def index_copy_(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor) -> Tensor:
    """`index_copy` in place: the result is written over the first argument."""
@overload
def index_fill(x: Tensor, dim: builtins.int, ids: Tensor, value: Number, *, out: Tensor | None = None) -> Tensor:
    """x with `value` in each slice at an index along `dim`: `ids` is a list."""
@overload
def index_fill(input: Tensor, dim: builtins.int, index: Tensor, value: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def index_fill(x: Tensor, dim: builtins.int, ids: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x with the one number of a tensor in the slices of `dim` that the indices name."""
@overload
def index_fill(input: Tensor, dim: builtins.int, index: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def index_fill_(x: Tensor, dim: builtins.int, ids: Tensor, value: Number) -> Tensor:
    """`index_fill` in place: the result is written over the first argument."""
@overload
def index_fill_(x: Tensor, dim: builtins.int, ids: Tensor, value: Tensor) -> Tensor:
    """`index_fill` in place: the result is written over the first argument."""
@overload
def index_put(x: Tensor, index: Index, value: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy with the value, which broadcasts, at what an index names."""
@overload
def index_put(input: Tensor, indices: Index, value: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def index_put(x: Tensor, index: Index, value: Number, *, out: Tensor | None = None) -> Tensor:
    """A copy with the value at what an index names."""
@overload
def index_put(input: Tensor, indices: Index, value: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def index_put(x: Tensor, index: Index, value: Tensor, accumulate: builtins.bool, *, out: Tensor | None = None) -> Tensor:
    """A copy with the value at what an index names, or with `accumulate` added to it, as often as the index names a place."""
@overload
def index_put(input: Tensor, indices: Index, value: Tensor, accumulate: builtins.bool, *, out: Tensor | None = None) -> Tensor: ...
@overload
def index_put_(x: Tensor, index: Index, value: Tensor) -> Tensor:
    """The value, which broadcasts, is written to what an index names."""
@overload
def index_put_(input: Tensor, indices: Index, value: Tensor) -> Tensor: ...
@overload
def index_put_(x: Tensor, index: Index, value: Number) -> Tensor:
    """The value is written to what an index names."""
@overload
def index_put_(input: Tensor, indices: Index, value: Number) -> Tensor: ...
@overload
def index_put_(x: Tensor, index: Index, value: Tensor, accumulate: builtins.bool) -> Tensor:
    """The value is written to what an index names, or with `accumulate` added to it, as often as the index names a place."""
@overload
def index_put_(input: Tensor, indices: Index, value: Tensor, accumulate: builtins.bool) -> Tensor: ...
def index_reduce(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True, out: Tensor | None = None) -> Tensor:
    """x with each slice of `src` combined with what is at its index along `dim`: `reduce` is `prod`, `mean`, `amax` or `amin`. Without `include_self` what x has there does not count."""
def index_reduce_(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
    """`index_reduce` in place: the result is written over the first argument."""
@overload
def index_select(x: Tensor, dim: builtins.int, ids: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements of a dim by index. The dims of `ids` take the place of the dim; a list, as in PyTorch, keeps the rank."""
@overload
def index_select(input: Tensor, dim: builtins.int, index: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def index_sum(values: Tensor, ids: Tensor, rows: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """`rows` rows of zeros to which the rows of `values` are added by index, in order: gradient of index_select."""
def inner(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sums of products over the last dims of both: `[…, k]` and `[…, k]` give the dims before of a, then those of b. With a tensor without dims the product. In Rust `tensordot` over `[-1]` and `[-1]`."""
@overload
def instance_norm(x: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: builtins.bool = True, momentum: builtins.float = 0.1, eps: builtins.float = 1e-5, *, out: Tensor | None = None) -> Tensor:
    """Instance normalisation: each channel of each image is normalised to mean 0 and variance 1, multiplied by `weight` and shifted by `bias`. Running statistics, if given, are updated as in `batch_norm`, with the statistics of the images averaged over the batch. Without `use_input_stats`, x is normalised by the running statistics."""
@overload
def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: builtins.bool = True, momentum: builtins.float = 0.1, eps: builtins.float = 1e-5, *, out: Tensor | None = None) -> Tensor: ...
@overload
def int_repr(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The integers that the elements of a quantised tensor are stored as: i8, u8, i16 or i32."""
@overload
def int_repr(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def interpolate(x: Tensor, size: builtins.int | Sequence[builtins.int] = (), *, scale_factor: builtins.float | Sequence[builtins.float] = (), mode: str = "nearest", align_corners: builtins.bool | None = None, recompute_scale_factor: builtins.bool | None = None, antialias: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """An image `[batch, channels, 1 to 3 spatial dims]` with other spatial sizes: `size`, or its own times `scale_factor`, one number a dim or one for all. The mode is `nearest`, `nearest-exact`, `linear` (1 dim), `bilinear`, `bicubic` (2), `trilinear` (3) or `area`. With `align_corners` the first and last elements of image and result lie on each other. Coordinates are computed with `scale_factor` where it is given, unless `recompute_scale_factor` takes the ratio of the sizes."""
@overload
def interpolate(x: Tensor, *size: builtins.int, scale_factor: builtins.float | Sequence[builtins.float] = (), mode: str = "nearest", align_corners: builtins.bool | None = None, recompute_scale_factor: builtins.bool | None = None, antialias: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
def inverse(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `linalg.inv`."""
@overload
def is_complex(x: Tensor) -> builtins.bool:
    """Whether the dtype is complex."""
@overload
def is_complex(input: Tensor) -> builtins.bool: ...
def is_contiguous(x: Tensor) -> builtins.bool:
    """Whether the elements lie in memory in row-major order without gaps."""
def is_floating_point(x: Tensor) -> builtins.bool:
    """Whether the elements are floats."""
def is_global(x: Tensor) -> builtins.bool:
    """Whether it is a global tensor."""
def is_nonzero(x: Tensor) -> builtins.bool:
    """Whether a tensor of one element is not zero. On a global tensor a collective of the world."""
def is_same_size(x: Tensor, other: Tensor) -> builtins.bool:
    """Whether two tensors have the same shape."""
def is_signed(x: Tensor) -> builtins.bool:
    """Whether the elements are integers with a sign, floats or complex numbers."""
@overload
def isclose(x: Tensor, y: Tensor, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8, equal_nan: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """True where |x - y| is at most `atol` + `rtol` |y|, or both are equal, or with `equal_nan` both NaN."""
@overload
def isclose(input: Tensor, other: Tensor, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8, equal_nan: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def isfinite(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where x is neither infinite nor NaN."""
@overload
def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def isin(x: Tensor, values: Tensor, *, invert: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """True where an element of x is among those of `values`, or with `invert` where it is not."""
@overload
def isin(x: Tensor, test_elements: Tensor, *, invert: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def isinf(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where x is infinite."""
@overload
def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def isnan(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where x is NaN."""
@overload
def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def isneginf(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where x is -inf."""
@overload
def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def isposinf(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where x is inf."""
@overload
def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def isreal(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where the imaginary part is 0, everywhere for real numbers."""
@overload
def isreal(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def item(x: Tensor) -> Any:
    """The value of a tensor of one element. On a global tensor a collective of the world."""
@overload
def item(input: Tensor) -> Any: ...
def kaiser_window(n: builtins.int, *, periodic: builtins.bool = True, beta: builtins.float = 12.0, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The Kaiser window, of Bessel functions: the wider, the smaller `beta`."""
@overload
def kl_div(x: Tensor, target: Tensor, *, reduction: str = "mean", log_target: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The Kullback-Leibler divergence target (log target - x) of log-probabilities x from probabilities, or with `log_target` from log-probabilities. The reduction `batchmean` divides the sum by the size of dim 0."""
@overload
def kl_div(input: Tensor, target: Tensor, *, reduction: str = "mean", log_target: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
def kl_each(x: Tensor, t: Tensor, *, out: Tensor | None = None) -> Tensor:
    """t (log t - x), or 0 where t is 0; NaN where t is negative or NaN: the divergence of log-probabilities x from probabilities t."""
def kl_log_each(x: Tensor, t: Tensor, *, out: Tensor | None = None) -> Tensor:
    """eᵗ (t - x): the divergence of log-probabilities x from log-probabilities t."""
@overload
def kron(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: each element of a times the whole of b."""
@overload
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def kthvalue(x: Tensor, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """The k-th smallest element of each line along a dim, k counted from 1, and where it stood. NaN count as the largest."""
@overload
def kthvalue(input: Tensor, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
def l1_each(x: Tensor, t: Tensor, *, out: Tensor | None = None) -> Tensor:
    """|x - t|."""
def l1_loss(x: Tensor, target: Tensor, *, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """The absolute error |x - target|."""
@overload
def laguerre_polynomial_l(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Laguerre polynomial of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def laguerre_polynomial_l(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`laguerre_polynomial_l` with a number as n."""
@overload
def laguerre_polynomial_l(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`laguerre_polynomial_l` with a number as x."""
def laguerre_polynomial_l_(x: Tensor, n: Tensor) -> Tensor:
    """`laguerre_polynomial_l` in place: the result is written over the first argument."""
def lamb_direction_many(tensors: Sequence[Tensor], beta1: builtins.float = 0.9, beta2: builtins.float = 0.999, eps: builtins.float = 1e-6, weight_decay: builtins.float = 0.0, *, step: builtins.int) -> None:
    """The directions of LAMB (You et al.) for many parameters that lie alike, which stay as they are."""
def last_index(ids: Tensor, size: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """For each index below `size` the last position at which it stands in the list, -1 where it does not."""
@overload
def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-5, *, axes: builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """The last dims with mean 0 and variance 1, times `weight`, plus `bias`. The number of dims is that of `weight`, 1 without one, unless `axes` says otherwise. `eps` is added to the variance."""
@overload
def layer_norm(input: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: builtins.float = 1e-5, *, axes: builtins.int | None = None, out: Tensor | None = None) -> Tensor: ...
def layer_norm_grad(dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None = None, axes: builtins.int = 1, *, out: Sequence[Tensor] | None = None) -> _DxDweightDbias:
    """Gradients of layer_norm."""
def lcm(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple; 0 where one is 0."""
def lcm_(a: Tensor, b: Tensor) -> Tensor:
    """`lcm` in place: the result is written over the first argument."""
@overload
def ldexp(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a times 2 to the power b."""
@overload
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ldexp_(a: Tensor, b: Tensor) -> Tensor:
    """`ldexp` in place: the result is written over the first argument."""
@overload
def ldexp_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def le(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where a <= b."""
@overload
def le(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def le(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """True where x <= s."""
@overload
def le(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def le_(a: Tensor, b: Tensor) -> Tensor:
    """`le` in place: the result is written over the first argument."""
@overload
def le_(x: Tensor, s: Number) -> Tensor:
    """`le` in place: the result is written over the first argument."""
def leaky_relu(x: Tensor, alpha: builtins.float = 0.01, *, out: Tensor | None = None) -> Tensor:
    """x, or alpha x where x is negative."""
def leaky_relu_(x: Tensor, alpha: builtins.float = 0.01) -> Tensor:
    """`leaky_relu` in place: the result is written over the first argument."""
@overload
def legendre_polynomial_p(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Legendre polynomial of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def legendre_polynomial_p(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`legendre_polynomial_p` with a number as n."""
@overload
def legendre_polynomial_p(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`legendre_polynomial_p` with a number as x."""
def legendre_polynomial_p_(x: Tensor, n: Tensor) -> Tensor:
    """`legendre_polynomial_p` in place: the result is written over the first argument."""
@overload
def lerp(a: Tensor, b: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a + weight (b - a): a where the weight is 0, b where it is 1."""
@overload
def lerp(input: Tensor, b: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def lerp(a: Tensor, b: Tensor, weight: Number, *, out: Tensor | None = None) -> Tensor:
    """a + weight (b - a) with one weight for all."""
@overload
def lerp(input: Tensor, b: Tensor, weight: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def lerp_(a: Tensor, b: Tensor, weight: Tensor) -> Tensor:
    """`lerp` in place: the result is written over the first argument."""
@overload
def lerp_(input: Tensor, b: Tensor, weight: Tensor) -> Tensor: ...
@overload
def lerp_(a: Tensor, b: Tensor, weight: Number) -> Tensor:
    """`lerp` in place: the result is written over the first argument."""
@overload
def lerp_(input: Tensor, b: Tensor, weight: Number) -> Tensor: ...
@overload
def less(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `lt`."""
@overload
def less(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The same as `lt`."""
@overload
def less_(a: Tensor, b: Tensor) -> Tensor:
    """The same as `lt_`."""
@overload
def less_(x: Tensor, s: Number) -> Tensor:
    """The same as `lt_`."""
@overload
def less_equal(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `le`."""
@overload
def less_equal(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The same as `le`."""
@overload
def less_equal_(a: Tensor, b: Tensor) -> Tensor:
    """The same as `le_`."""
@overload
def less_equal_(x: Tensor, s: Number) -> Tensor:
    """The same as `le_`."""
def lgamma(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of |Γ(x)|: inf at 0 and at negative integers."""
def lgamma_(x: Tensor) -> Tensor:
    """`lgamma` in place: the result is written over the first argument."""
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """x weightᵀ + bias for an input `[..., in]`, a weight `[out, in]` and a bias `[out]`, of shape `[..., out]`. Autocast casts all three."""
def linear_scan(a: Tensor, b: Tensor, dim: builtins.int, reverse: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """r[i] = b[i] + a[i] r[i - 1] along a dim, with `reverse` from its end."""
@overload
def linspace(start: builtins.float, end: builtins.float, steps: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, in equal steps; f32 unless the target says otherwise."""
@overload
def linspace(start: Tensor, end: builtins.float, steps: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Equal steps between numbers of which the first is read."""
@overload
def linspace(start: builtins.float, end: Tensor, steps: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Equal steps between numbers of which the second is read."""
@overload
def linspace(start: Tensor, end: Tensor, steps: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Equal steps between numbers that are read."""
def lion_many(tensors: Sequence[Tensor], lr: builtins.float, beta1: builtins.float = 0.9, beta2: builtins.float = 0.99, weight_decay: builtins.float = 0.0) -> None:
    """One step of Lion (Chen et al.) of many parameters that lie alike."""
def local_response_norm(x: Tensor, size: builtins.int, alpha: builtins.float = 0.0001, beta: builtins.float = 0.75, k: builtins.float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """Divides each element of `[batch, channels, …]` by (k + alpha a)^beta, where a is the mean of the squares at its place in `size` channels around its own; channels that are not there count as 0."""
@overload
def log(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm."""
@overload
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def log10(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10."""
@overload
def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def log10_(x: Tensor) -> Tensor:
    """`log10` in place: the result is written over the first argument."""
@overload
def log10_(input: Tensor) -> Tensor: ...
@overload
def log1p(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(1 + x), accurate near zero."""
@overload
def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def log1p_(x: Tensor) -> Tensor:
    """`log1p` in place: the result is written over the first argument."""
@overload
def log1p_(input: Tensor) -> Tensor: ...
@overload
def log2(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2."""
@overload
def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def log2_(x: Tensor) -> Tensor:
    """`log2` in place: the result is written over the first argument."""
@overload
def log2_(input: Tensor) -> Tensor: ...
@overload
def log_(x: Tensor) -> Tensor:
    """`log` in place: the result is written over the first argument."""
@overload
def log_(input: Tensor) -> Tensor: ...
def log_ndtr(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of `ndtr`, also where that vanishes."""
def log_ndtr_(x: Tensor) -> Tensor:
    """`log_ndtr` in place: the result is written over the first argument."""
def log_normal_(x: Tensor, mean: builtins.float = 1.0, std: builtins.float = 2.0, generator: Generator | None = None) -> Tensor:
    """x becomes numbers whose logarithms are normal with this mean and standard deviation, in place."""
def log_sigmoid(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log σ(x)."""
def log_sigmoid_(x: Tensor) -> Tensor:
    """`log_sigmoid` in place: the result is written over the first argument."""
@overload
def log_softmax(x: Tensor, dim: builtins.int = -1, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the softmax along a dim."""
@overload
def log_softmax(input: Tensor, dim: builtins.int = -1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def log_softmax(x: Tensor, dim: builtins.int = -1, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """`log_softmax` of the tensor converted to `dtype`."""
@overload
def log_softmax(input: Tensor, dim: builtins.int = -1, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
def log_softmax_grad(dy: Tensor, y: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """Gradient of log-softmax: dy - exp(y) sum(dy)."""
@overload
def logaddexp(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(eᵃ + eᵇ), also where the powers overflow."""
@overload
def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def logaddexp2(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log2(2ᵃ + 2ᵇ), also where the powers overflow."""
@overload
def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logaddexp2_(a: Tensor, b: Tensor) -> Tensor:
    """`logaddexp2` in place: the result is written over the first argument."""
def logaddexp_(a: Tensor, b: Tensor) -> Tensor:
    """`logaddexp` in place: the result is written over the first argument."""
@overload
def logcumsumexp(x: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the running sum of eˣ along a dim, also where the powers overflow."""
@overload
def logcumsumexp(input: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def logcumsumexp(x: Tensor, dim: builtins.int, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """`logcumsumexp` of the tensor converted to `dtype`."""
@overload
def logcumsumexp(input: Tensor, dim: builtins.int, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
def logdet(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithms of determinants: of a negative one NaN, of 0 minus infinity."""
@overload
def logical_and(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where both elements are nonzero."""
@overload
def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logical_and_(a: Tensor, b: Tensor) -> Tensor:
    """`logical_and` in place: the result is written over the first argument."""
@overload
def logical_not(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where x is zero."""
@overload
def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logical_not_(x: Tensor) -> Tensor:
    """`logical_not` in place: the result is written over the first argument."""
@overload
def logical_or(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where at least one element is nonzero."""
@overload
def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logical_or_(a: Tensor, b: Tensor) -> Tensor:
    """`logical_or` in place: the result is written over the first argument."""
@overload
def logical_xor(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where exactly one element is nonzero."""
@overload
def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logical_xor_(a: Tensor, b: Tensor) -> Tensor:
    """`logical_xor` in place: the result is written over the first argument."""
@overload
def logit(x: Tensor, eps: builtins.float | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of `sigmoid`. With `eps` x is brought into `eps` to 1 - `eps` first; else what is outside of 0 to 1 gives NaN."""
@overload
def logit(input: Tensor, eps: builtins.float | None = None, *, out: Tensor | None = None) -> Tensor: ...
def logit_(x: Tensor, eps: builtins.float | None = None) -> Tensor:
    """`logit` in place: the result is written over the first argument."""
def logit_within(x: Tensor, eps: builtins.float = -1.0, *, out: Tensor | None = None) -> Tensor:
    """log(x / (1 - x)) of x brought into eps to 1 - eps, unless eps is negative."""
@overload
def logspace(start: builtins.float, end: builtins.float, steps: builtins.int, *, base: builtins.float = 10.0, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """`steps` numbers from `base` to the power `start` to `base` to the power `end`, with exponents in equal steps; f32 unless the target says otherwise."""
@overload
def logspace(start: builtins.float, end: builtins.float, steps: builtins.int, base: builtins.float, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Powers of `base` with exponents in equal steps."""
@overload
def logspace(start: Tensor, end: builtins.float, steps: builtins.int, base: builtins.float, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Powers of `base`; the first exponent is read."""
@overload
def logspace(start: builtins.float, end: Tensor, steps: builtins.int, base: builtins.float, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Powers of `base`; the last exponent is read."""
@overload
def logspace(start: Tensor, end: Tensor, steps: builtins.int, base: builtins.float, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Powers of `base`; both bounds of the exponents are read."""
@overload
def logspace(start: Tensor, end: builtins.float, steps: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Powers of 10; the first exponent is read."""
@overload
def logspace(start: builtins.float, end: Tensor, steps: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Powers of 10; the last exponent is read."""
@overload
def logspace(start: Tensor, end: Tensor, steps: builtins.int, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Powers of 10; both bounds of the exponents are read."""
@overload
def logsumexp(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of eˣ over dims (none given: all), without overflow of eˣ."""
@overload
def logsumexp(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
def lp_pool1d(x: Tensor, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), ceil_mode: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The p-norm of each window of the last dim, p = `norm_type`: the p-th root of the sum of xᵖ. `stride` is the kernel's size unless given."""
def lp_pool2d(x: Tensor, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), ceil_mode: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """As `lp_pool1d` for 2 spatial dims."""
def lp_pool3d(x: Tensor, norm_type: builtins.float, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), ceil_mode: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """As `lp_pool1d` for 3 spatial dims."""
@overload
def lstm(x: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _OutputH_nC_n:
    """A long short-term memory over `[T, B, input]` (`batch_first`: `[B, T, input]`; without a batch `[T, input]`), from the states `hx`: h and c of shape `[layers · directions, B, hidden]`. `params` has for each layer and direction w_ih, w_hh and, with `has_biases`, b_ih and b_hh, whose rows are those of the gates i, f, g and o. `dropout` is between layers, where `train` is set. If h is narrower than c, the weights of each layer and direction end with w_hr `[width of h, hidden]`, which h is multiplied with."""
@overload
def lstm(input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _OutputH_nC_n: ...
@overload
def lstm_cell(x: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Sequence[Tensor] | None = None) -> _HC:
    """One step of a long short-term memory for `[B, input]` or `[input]`, from h and c: the new ones."""
@overload
def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Sequence[Tensor] | None = None) -> _HC: ...
@overload
def lt(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where a < b."""
@overload
def lt(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def lt(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """True where x < s."""
@overload
def lt(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def lt_(a: Tensor, b: Tensor) -> Tensor:
    """`lt` in place: the result is written over the first argument."""
@overload
def lt_(x: Tensor, s: Number) -> Tensor:
    """`lt` in place: the result is written over the first argument."""
def lu(A: Tensor, pivot: builtins.bool = True, get_infos: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """`linalg.lu_factor` of matrices of any rank, and with `get_infos` for each 0 or the number of the pivot that is zero."""
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The solution for the results of `lu`. `linalg.lu_solve` has more forms."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: builtins.bool = True, unpack_pivots: builtins.bool = True, *, out: Sequence[Tensor] | None = None) -> _PLU:
    """P, L and U with `A = P L U` of the results of `lu`; what is not asked for has no elements."""
@overload
def margin_ranking_loss(x1: Tensor, x2: Tensor, target: Tensor, *, margin: builtins.float = 0.0, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """max(0, margin - target (x1 - x2)): with the target 1, x1 is to be larger by `margin`."""
@overload
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, *, margin: builtins.float = 0.0, reduction: str = "mean", out: Tensor | None = None) -> Tensor: ...
@overload
def masked_fill(x: Tensor, mask: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """s where the mask is true, else x. Shapes broadcast."""
@overload
def masked_fill(input: Tensor, mask: Tensor, value: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def masked_fill(x: Tensor, mask: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x with the one number of a tensor where the mask holds."""
@overload
def masked_fill(input: Tensor, mask: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def masked_fill_(x: Tensor, mask: Tensor, s: Number) -> Tensor:
    """`masked_fill` in place: the result is written over the first argument."""
@overload
def masked_fill_(input: Tensor, mask: Tensor, value: Number) -> Tensor: ...
@overload
def masked_fill_(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """`masked_fill` in place: the result is written over the first argument."""
@overload
def masked_fill_(input: Tensor, mask: Tensor, value: Tensor) -> Tensor: ...
@overload
def masked_scatter(x: Tensor, mask: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x with the elements of `src`, in row-major order, at the places where the bool tensor `mask` is true. The call waits for their number."""
@overload
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def masked_scatter_(x: Tensor, mask: Tensor, src: Tensor) -> Tensor:
    """`masked_scatter` in place: the result is written over the first argument."""
@overload
def masked_select(x: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where the bool tensor `mask` is true, in row-major order, as a tensor of one dim. Shapes broadcast. The gradient goes to the elements that were chosen. The call waits for the count, which decides the shape of the result."""
@overload
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def masked_spread(values: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Gradient of masked_select: the values, one after the other, where the mask is true, zeros elsewhere."""
def match_index(x: Tensor, m: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The logical index along a dim where x equals m (NaN equals NaN), elsewhere the largest i64."""
@overload
def matmul(a: Tensor, b: Tensor, *, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The matrix product of `[..., m, k]` and `[..., k, n]`, of shape `[..., m, n]`. Leading dims broadcast; a vector is a matrix of one row or one column, as in PyTorch. Matrices may be transposed first."""
@overload
def matmul(input: Tensor, other: Tensor, *, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
def matmul_rows(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """aᵀ b summed over all leading dims: the gradient of a weight."""
def matmul_t(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a bᵀ for `[..., m, k]` and `[..., n, k]`, of shape `[..., m, n]`."""
def matrix_exp(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `linalg.matrix_exp`."""
def matrix_power(x: Tensor, n: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The same as `linalg.matrix_power`."""
@overload
def max(x: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """The largest elements along `dim`, and where they are: among equals the first."""
@overload
def max(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
@overload
def max(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest element of all."""
@overload
def max(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(x: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of each two elements."""
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max_pool(x: Tensor, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The largest element of each window of the last dims; NaN where it has one."""
@overload
def max_pool(x: Tensor, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], *size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def max_pool1d(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The largest element of each window of the last dim of `[batch, channels, length]`, or without the batch. `stride` is the kernel's size unless given; `padding` adds -inf on both sides, at most half of a kernel. `ceil_mode` keeps a last window that is cut off."""
@overload
def max_pool1d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max_pool1d_with_indices(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """`max_pool1d`, and where the elements are, counted over the spatial dims."""
@overload
def max_pool1d_with_indices(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
@overload
def max_pool2d(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """As `max_pool1d` for 2 spatial dims."""
@overload
def max_pool2d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
def max_pool2d_with_indices(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """`max_pool2d`, and where the elements are, counted over the spatial dims."""
@overload
def max_pool3d(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """As `max_pool1d` for 3 spatial dims."""
@overload
def max_pool3d(input: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
def max_pool3d_with_indices(x: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), dilation: builtins.int | Sequence[builtins.int] = (1,), ceil_mode: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """`max_pool3d`, and where the elements are, counted over the spatial dims."""
@overload
def max_pool_index(x: Tensor, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """Where the largest element of each window is, counted over the pooled dims."""
@overload
def max_pool_index(x: Tensor, kernel: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int], padding: builtins.int | Sequence[builtins.int], dilation: builtins.int | Sequence[builtins.int], *size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def max_unpool1d(x: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), output_size: builtins.int | Sequence[builtins.int] = (), *, out: Tensor | None = None) -> Tensor:
    """The elements of a max pooling at their places `indices`, as `max_pool1d_with_indices` gives them, and zeros elsewhere. The size is that of an image whose windows end with it, unless given."""
@overload
def max_unpool1d(x: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), *output_size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def max_unpool2d(x: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), output_size: builtins.int | Sequence[builtins.int] = (), *, out: Tensor | None = None) -> Tensor:
    """As `max_unpool1d` for 2 spatial dims."""
@overload
def max_unpool2d(x: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), *output_size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def max_unpool3d(x: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), output_size: builtins.int | Sequence[builtins.int] = (), *, out: Tensor | None = None) -> Tensor:
    """As `max_unpool1d` for 3 spatial dims."""
@overload
def max_unpool3d(x: Tensor, indices: Tensor, kernel_size: builtins.int | Sequence[builtins.int], stride: builtins.int | Sequence[builtins.int] = (), padding: builtins.int | Sequence[builtins.int] = (0,), *output_size: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def maximum(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger element of each pair; NaN if either is NaN."""
@overload
def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def maximum_(a: Tensor, b: Tensor) -> Tensor:
    """`maximum` in place: the result is written over the first argument."""
@overload
def mean(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The mean over dims (none given: all); NaN if there are no elements. For integers and bools the result is f32, computed in f64, so that sums do not overflow and every layout gives the same bits. Over a split dim the mean of floats is P(sum)."""
@overload
def mean(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def mean(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """`mean` of the tensor converted to `dtype`."""
@overload
def mean(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
@overload
def median(x: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """The median of each line along a dim, of an even number of elements the lower one of the two, and where it stood. NaN wins."""
@overload
def median(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
@overload
def median(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The median of all elements, of an even number the lower one of the two. NaN wins, and of no floats at all it is NaN. Equal elements share the gradient."""
@overload
def median(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def meshgrid(xs: Sequence[Tensor], *, indexing: str = "ij", out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Tensors of one dim as coordinates of a grid: output i varies along dim i. With the indexing `xy`, the first two dims are exchanged."""
@overload
def meshgrid(*xs: Tensor, indexing: str = "ij", out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
def middle(x: Tensor, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """The median of all elements, of an even number the lower one of the two, and its place in row-major order. NaN wins."""
@overload
def min(x: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """The smallest elements along `dim`, and where they are: among equals the first."""
@overload
def min(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
@overload
def min(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest element of all."""
@overload
def min(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def min(x: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of each two elements."""
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def minimum(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller element of each pair; NaN if either is NaN."""
@overload
def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def minimum_(a: Tensor, b: Tensor) -> Tensor:
    """`minimum` in place: the result is written over the first argument."""
def minus_sign(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where x is below zero, or a zero with a minus sign."""
def mish(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x tanh(softplus(x))."""
def mish_(x: Tensor) -> Tensor:
    """`mish` in place: the result is written over the first argument."""
def mm(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices."""
@overload
def mode(x: Tensor, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """The most frequent value along `dim` (the smallest of equally frequent ones), and the index of its last occurrence."""
@overload
def mode(input: Tensor, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
def modified_bessel_k0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 0; NaN below 0."""
def modified_bessel_k0_(x: Tensor) -> Tensor:
    """`modified_bessel_k0` in place: the result is written over the first argument."""
def modified_bessel_k1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 1; NaN below 0."""
def modified_bessel_k1_(x: Tensor) -> Tensor:
    """`modified_bessel_k1` in place: the result is written over the first argument."""
@overload
def moveaxis(x: Tensor, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The same as `movedim`."""
@overload
def moveaxis(x: Tensor, source: builtins.int | Sequence[builtins.int], *destination: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def movedim(x: Tensor, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The dims `source` at the places `destination`; the others keep their order."""
@overload
def movedim(input: Tensor, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def movedim(x: Tensor, source: builtins.int | Sequence[builtins.int], *destination: builtins.int, out: Tensor | None = None) -> Tensor: ...
def mse_each(x: Tensor, t: Tensor, *, out: Tensor | None = None) -> Tensor:
    """(x - t)²."""
def mse_loss(x: Tensor, target: Tensor, *, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """The squared error (x - target)²: its mean, or what `reduction` says: `none`, `mean` or `sum`."""
@overload
def msort(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x sorted along its first dim."""
@overload
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def mul(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a b, element by element."""
@overload
def mul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def mul(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """x s."""
@overload
def mul(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def mul_(a: Tensor, b: Tensor) -> Tensor:
    """`mul` in place: the result is written over the first argument."""
@overload
def mul_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def mul_(x: Tensor, s: Number) -> Tensor:
    """`mul` in place: the result is written over the first argument."""
@overload
def mul_(input: Tensor, other: Number) -> Tensor: ...
def multi_margin_loss(x: Tensor, target: Tensor, *, p: builtins.int = 1, margin: builtins.float = 1.0, weight: Tensor | None = None, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """Per row the mean over all classes but the target of max(0, margin - x[target] + x)ᵖ, times the weight of the target. p is 1 or 2."""
def multilabel_margin_loss(x: Tensor, target: Tensor, *, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """Per row the sum over labels y and classes c that are none of max(0, 1 - x[y] + x[c]), divided by the number of classes. The labels of a row are those before its first -1."""
def multilabel_soft_margin_loss(x: Tensor, target: Tensor, *, weight: Tensor | None = None, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """Per row the mean over the last dim of the binary cross entropy of logits, times `weight`."""
@overload
def multinomial(probs: Tensor, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """`num_samples` indices of each row of weights, each drawn with a probability in proportion to its weight; without `replacement` no index comes twice, and indices without weight come last. Weights are not negative and have a finite sum; they need not add up to one. The indices do not depend on placement or SBP."""
@overload
def multinomial(input: Tensor, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def multiply(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `mul`."""
@overload
def multiply(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The same as `mul`."""
@overload
def multiply_(a: Tensor, b: Tensor) -> Tensor:
    """The same as `mul_`."""
@overload
def multiply_(x: Tensor, s: Number) -> Tensor:
    """The same as `mul_`."""
def mv(a: Tensor, v: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of a matrix and a vector."""
def mvlgamma(x: Tensor, p: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`: the sum of `lgamma(x - i / 2)` for i below p, and a constant."""
def mvlgamma_(x: Tensor, p: builtins.int) -> Tensor:
    """`mvlgamma` in place: the result is written over the first argument."""
def nadam_many(tensors: Sequence[Tensor], lr: builtins.float, beta1: builtins.float = 0.9, beta2: builtins.float = 0.999, eps: builtins.float = 1e-8, weight_decay: builtins.float = 0.0, momentum_decay: builtins.float = 0.004, decoupled: builtins.bool = False, *, step: builtins.int) -> None:
    """One step of NAdam (Dozat), PyTorch's formula, of many parameters that lie alike."""
@overload
def nan_to_num(x: Tensor, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None, *, out: Tensor | None = None) -> Tensor:
    """x with other numbers in the place of NaN, inf and -inf: `nan`, and the largest and the smallest finite number of the dtype unless they are given."""
@overload
def nan_to_num(input: Tensor, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None, *, out: Tensor | None = None) -> Tensor: ...
def nan_to_num_(x: Tensor, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None) -> Tensor:
    """`nan_to_num` in place: the result is written over the first argument."""
@overload
def nanmean(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The mean over dims (none given: all) of the elements that are not NaN; NaN if there are none."""
@overload
def nanmean(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def nanmean(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """`nanmean` of the tensor converted to `dtype`."""
@overload
def nanmean(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
@overload
def nanmedian(x: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """The middle value along `dim` of those that are not NaN (the lower of two), and where it is; NaN where all are."""
@overload
def nanmedian(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The middle value of all elements that are not NaN, the lower of two."""
@overload
def nanquantile(x: Tensor, q: builtins.float, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN where all elements are NaN."""
@overload
def nanquantile(input: Tensor, q: builtins.float, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor: ...
@overload
def nanquantile(x: Tensor, q: builtins.float | Sequence[builtins.float], dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor:
    """The quantiles of the elements that are not NaN, for several fractions."""
@overload
def nanquantile(input: Tensor, q: builtins.float | Sequence[builtins.float], dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor: ...
@overload
def nanquantile(x: Tensor, q: Tensor, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor:
    """The quantiles of the elements that are not NaN, for the fractions of a tensor, which are read."""
@overload
def nanquantile(input: Tensor, q: Tensor, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor: ...
@overload
def nansum(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum over dims (none given: all), with NaN counted as 0."""
@overload
def nansum(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def nansum(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """`nansum` of the tensor converted to `dtype`."""
@overload
def nansum(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
@overload
def narrow(x: Tensor, dim: builtins.int, start: builtins.int, len: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """`len` elements of a dim from `start` on."""
@overload
def narrow(input: Tensor, dim: builtins.int, start: builtins.int, length: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def narrow(x: Tensor, dim: builtins.int, start: Tensor, len: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """`len` elements of a dim from the position on that a tensor without dims holds, which is read."""
@overload
def narrow(input: Tensor, dim: builtins.int, start: Tensor, length: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
def ndim(x: Tensor) -> builtins.int:
    """The number of dims."""
def ndimension(x: Tensor) -> builtins.int:
    """The number of dims."""
def ndtr(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The normal distribution function: the area under the bell curve left of x."""
def ndtr_(x: Tensor) -> Tensor:
    """`ndtr` in place: the result is written over the first argument."""
def ndtri(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `ndtr`: infinite at 0 and 1, NaN beyond."""
def ndtri_(x: Tensor) -> Tensor:
    """`ndtri` in place: the result is written over the first argument."""
@overload
def ne(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where a != b."""
@overload
def ne(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ne(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """True where x != s."""
@overload
def ne(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ne_(a: Tensor, b: Tensor) -> Tensor:
    """`ne` in place: the result is written over the first argument."""
@overload
def ne_(x: Tensor, s: Number) -> Tensor:
    """`ne` in place: the result is written over the first argument."""
@overload
def neg(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x."""
@overload
def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def neg_(x: Tensor) -> Tensor:
    """`neg` in place: the result is written over the first argument."""
@overload
def neg_(input: Tensor) -> Tensor: ...
def negative(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `neg`."""
def negative_(x: Tensor) -> Tensor:
    """The same as `neg_`."""
def nelement(x: Tensor) -> builtins.int:
    """The number of elements."""
def next_half(a: Tensor, b: Tensor, digits: builtins.float, least: builtins.float, most: builtins.float, *, out: Tensor | None = None) -> Tensor:
    """`nextafter` of halves, which the numbers describe."""
def nextafter(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The number next to a towards b, of those that the dtype has."""
def nextafter_(a: Tensor, b: Tensor) -> Tensor:
    """`nextafter` in place: the result is written over the first argument."""
def nll_loss(x: Tensor, target: Tensor, *, weight: Tensor | None = None, ignore_index: builtins.int | None = None, reduction: str = "mean", dim: builtins.int = 1, out: Tensor | None = None) -> Tensor:
    """The negative log likelihood of log-probabilities whose classes lie along `dim`, as in PyTorch, and class indices with the other dims. `weight`, `ignore_index` and `reduction` are those of `cross_entropy`."""
def nll_pick(logits: Tensor, target: Tensor, ignore_index: builtins.int = -100, *, out: Tensor | None = None) -> Tensor:
    """Per row the logit of the target, 0 where it is ignored."""
@overload
def nonzero(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The indices of the elements that are not zero (NaN is not): i64, `[count, rank]`, in row-major order. A tensor split along dim 0 gives indices split along dim 0. The call waits for the count, which decides the shape of the result."""
@overload
def nonzero(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def norm(x: Tensor, p: builtins.float = 2.0, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The p-norm over dims (none given: all): the p-th root of the sum of |x| to the power p. For p = inf it is the largest |x|, for -inf the smallest, for 0 the number of elements that are not zero."""
@overload
def norm(input: Tensor, p: builtins.float = 2.0, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def norm(x: Tensor, p: builtins.float = 2.0, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """`norm` of the tensor converted to `dtype`."""
@overload
def norm(input: Tensor, p: builtins.float = 2.0, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
@overload
def norm(x: Tensor, p: str, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, dtype: _dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """The norm of Frobenius (fro) over dims, or the sum of the singular values (nuc) of matrices in two dims."""
@overload
def norm(input: Tensor, p: str, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False, dtype: _dtype | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def normal(mean: builtins.float, std: builtins.float, shape: builtins.int | Sequence[builtins.int], *, dtype: _dtype = float32, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Normal numbers with this mean and standard deviation; f32 unless the target says otherwise."""
@overload
def normal(mean: builtins.float, std: builtins.float, size: builtins.int | Sequence[builtins.int], *, dtype: _dtype = float32, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def normal(mean: Tensor, std: Tensor, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Normal numbers, each with a mean and a standard deviation of its own. Shapes broadcast; there is a gradient of both."""
@overload
def normal(mean: Tensor, std: builtins.float = 1.0, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Normal numbers, each with a mean of its own, of one standard deviation."""
@overload
def normal(mean: builtins.float, std: Tensor, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Normal numbers of one mean, each with a standard deviation of its own."""
@overload
def normal(mean: builtins.float, std: builtins.float, *shape: builtins.int, dtype: _dtype = float32, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def normal_(x: Tensor, mean: builtins.float = 0.0, std: builtins.float = 1.0, generator: Generator | None = None) -> Tensor:
    """x becomes normal numbers with this mean and standard deviation, in place. They do not depend on placement or SBP."""
@overload
def normal_(input: Tensor, mean: builtins.float = 0.0, std: builtins.float = 1.0, generator: Generator | None = None) -> Tensor: ...
def normalize(x: Tensor, p: builtins.float = 2.0, dim: builtins.int = 1, *, eps: builtins.float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x divided by its p-norm along `dim`. A norm below `eps` is replaced by `eps`."""
@overload
def not_equal(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `ne`."""
@overload
def not_equal(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The same as `ne`."""
@overload
def not_equal_(a: Tensor, b: Tensor) -> Tensor:
    """The same as `ne_`."""
@overload
def not_equal_(x: Tensor, s: Number) -> Tensor:
    """The same as `ne_`."""
@overload
def numel(x: Tensor) -> builtins.int:
    """The number of elements."""
@overload
def numel(input: Tensor) -> builtins.int: ...
def one_hot(ids: Tensor, classes: builtins.int, *, dtype: _dtype = int64, out: Tensor | None = None) -> Tensor:
    """For integer indices of any shape a new last dim of size `classes`: 1 at the index, 0 elsewhere."""
@overload
def ones(shape: builtins.int | Sequence[builtins.int], *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Ones; f32 unless the target says otherwise."""
@overload
def ones(size: builtins.int | Sequence[builtins.int], *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def ones(*shape: builtins.int, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def ones_like(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Ones of the same shape, dtype and layout."""
@overload
def ones_like(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ones_like(x: Tensor, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """Ones of the same shape and layout, of that dtype."""
@overload
def ones_like(input: Tensor, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
def orgqr(x: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `linalg.householder_product`."""
def ormqr(x: Tensor, tau: Tensor, other: Tensor, left: builtins.bool = True, transpose: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The product of the square Q of `geqrf`'s results and `other`, or of `other` and Q if not `left`; with `transpose` of Qᴴ."""
@overload
def outer(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of all elements of one vector with all of another, a matrix."""
@overload
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def pad(x: Tensor, pad: builtins.int | Sequence[builtins.int], *, mode: str = "constant", value: Number = 0, out: Tensor | None = None) -> Tensor:
    """x with elements around it: `pad` has a number before and one after for the last dim, then for the one before it, and so on. The mode `constant` puts `value` there, and cuts where a number is negative; `reflect` mirrors the tensor at its first and last elements, `replicate` repeats these, and `circular` goes around: these three for at most 3 dims."""
@overload
def pad(x: Tensor, *pad: builtins.int, mode: str = "constant", value: Number = 0, out: Tensor | None = None) -> Tensor: ...
def pad_constant(x: Tensor, before: builtins.int | Sequence[builtins.int], size: builtins.int | Sequence[builtins.int], value: Number = 0, *, out: Tensor | None = None) -> Tensor:
    """x in a tensor of shape `size`, its first element at `before`, and a number around it. What is outside is left out."""
def pairwise_distance(x1: Tensor, x2: Tensor, *, p: builtins.float = 2.0, eps: builtins.float = 1e-6, keepdim: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dim."""
def pca_lowrank(A: Tensor, q: builtins.int | None = None, center: builtins.bool = True, niter: builtins.int = 2, *, out: Sequence[Tensor] | None = None) -> _USV:
    """About the q first principal components of the rows of A, as columns of V, by random projections."""
@overload
def pdist(x: Tensor, p: builtins.float = 2.0, *, out: Tensor | None = None) -> Tensor:
    """The p-norms of the differences of each two rows of a matrix: the upper triangle of `cdist(x, x)`, row by row."""
@overload
def pdist(input: Tensor, p: builtins.float = 2.0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def permute(x: Tensor, dims: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The dims in the order `dims`."""
@overload
def permute(input: Tensor, dims: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def permute(x: Tensor, *dims: builtins.int, out: Tensor | None = None) -> Tensor: ...
def pinverse(x: Tensor, rcond: builtins.float = 1e-15, *, out: Tensor | None = None) -> Tensor:
    """The pseudo-inverse: `linalg.pinv` with the relative tolerance `rcond`."""
@overload
def pixel_shuffle(x: Tensor, upscale_factor: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """`[..., channels * r², height, width]` as `[..., channels, height * r, width * r]`: r² channels become squares of pixels."""
@overload
def pixel_shuffle(input: Tensor, upscale_factor: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def pixel_unshuffle(x: Tensor, downscale_factor: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """`[..., channels, height * r, width * r]` as `[..., channels * r², height, width]`: the inverse of `pixel_shuffle`."""
@overload
def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def poisson_nll_loss(x: Tensor, target: Tensor, *, log_input: builtins.bool = True, full: builtins.bool = False, eps: builtins.float = 1e-8, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """The negative log likelihood of counts under a Poisson distribution whose rate is x, or with `log_input` eˣ. `full` adds Stirling's approximation for targets above 1."""
@overload
def poisson_nll_loss(input: Tensor, target: Tensor, *, log_input: builtins.bool = True, full: builtins.bool = False, eps: builtins.float = 1e-8, reduction: str = "mean", out: Tensor | None = None) -> Tensor: ...
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex numbers with these absolute values and angles, in radians."""
@overload
def polygamma(n: builtins.int, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of order n of `digamma`."""
@overload
def polygamma(x: Tensor, n: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The derivative of order n of `digamma`."""
def polygamma_(x: Tensor, n: builtins.int) -> Tensor:
    """`polygamma` in place: the result is written over the first argument."""
def positive(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tensor itself."""
@overload
def pow(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a to the power b."""
@overload
def pow(input: Tensor, exponent: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def pow(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """x to the power s."""
@overload
def pow(input: Tensor, exponent: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def pow(s: Number, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """s to the power x."""
@overload
def pow(exponent: Number, input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def pow_(a: Tensor, b: Tensor) -> Tensor:
    """`pow` in place: the result is written over the first argument."""
@overload
def pow_(input: Tensor, exponent: Tensor) -> Tensor: ...
@overload
def pow_(x: Tensor, s: Number) -> Tensor:
    """`pow` in place: the result is written over the first argument."""
@overload
def pow_(input: Tensor, exponent: Number) -> Tensor: ...
@overload
def prelu(x: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x, or `weight` x where x is not above 0. The weight is one number, or one for each channel, dim 1 of x."""
@overload
def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def prod(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The product over dims (none given: all). Integers and bools multiply to i64."""
@overload
def prod(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def prod(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """`prod` of the tensor converted to `dtype`."""
@overload
def prod(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
def promote_types(type1: _dtype, type2: _dtype) -> _dtype:
    """The smallest dtype to which both can be converted: that of a sum of tensors of these."""
def put(x: Tensor, ids: Tensor, src: Tensor, accumulate: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """x with the elements of `src` at these places, counted row-major; with `accumulate` they are added."""
def put_(x: Tensor, ids: Tensor, src: Tensor, accumulate: builtins.bool = False) -> Tensor:
    """`put` in place: the result is written over the first argument."""
@overload
def q_scale(x: Tensor) -> builtins.float:
    """The scale of a quantised tensor."""
@overload
def q_scale(input: Tensor) -> builtins.float: ...
@overload
def q_zero_point(x: Tensor) -> builtins.int:
    """The zero point of a quantised tensor."""
@overload
def q_zero_point(input: Tensor) -> builtins.int: ...
def qr(x: Tensor, some: builtins.bool = True, *, out: Sequence[Tensor] | None = None) -> _QR:
    """Q with orthonormal columns and R upper triangular; without `some` a square Q. `linalg.qr` has more forms."""
@overload
def quantile(x: Tensor, q: builtins.float, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor:
    """The `q`-quantile: the value below which the fraction `q` of the elements along `dim` lies; without `dim`, of all elements. Between two elements `interpolation` decides: `linear`, `lower`, `higher`, `midpoint` or `nearest`. If an element is NaN, the quantile is NaN."""
@overload
def quantile(input: Tensor, q: builtins.float, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor: ...
@overload
def quantile(x: Tensor, q: builtins.float | Sequence[builtins.float], dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor:
    """The quantiles for several fractions `q`, along a new first dim."""
@overload
def quantile(input: Tensor, q: builtins.float | Sequence[builtins.float], dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor: ...
@overload
def quantile(x: Tensor, q: Tensor, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor:
    """The quantiles for the fractions of a tensor, which are read: one, or several along a new first dim."""
@overload
def quantile(input: Tensor, q: Tensor, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear", out: Tensor | None = None) -> Tensor: ...
def quantize(x: Tensor, dtype: _dtype, *, out: Tensor | None = None) -> Tensor:
    """x in a quantised dtype, `qint8`, `quint8`, `qint16` or `qint32`: x by the scale, rounded (ties to even), plus the zero point, within the integers that the dtype stores. NaN, which no integer stands for, is stored as 0. It has no gradient."""
@overload
def quantize_per_tensor(x: Tensor, scale: builtins.float, zero_point: builtins.int, dtype: str = "qint8", *, out: Tensor | None = None) -> Tensor:
    """x in the quantised dtype of that family (qint8, quint8, qint16, qint32) with this scale and zero point."""
@overload
def quantize_per_tensor(input: Tensor, scale: builtins.float, zero_point: builtins.int, dtype: str = "qint8", *, out: Tensor | None = None) -> Tensor: ...
def quantized_matmul(a: Tensor, b: Tensor, dtype: _dtype, *, out: Tensor | None = None) -> Tensor:
    """The product of quantised matrices, quantised with `dtype`. The sums are those of integers, exact, so the result is the same under every layout."""
def quick_gelu(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x σ(1.702 x), the sigmoid approximation of GELU."""
def quick_gelu_(x: Tensor) -> Tensor:
    """`quick_gelu` in place: the result is written over the first argument."""
@overload
def rad2deg(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Radians in degrees."""
@overload
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def rad2deg_(x: Tensor) -> Tensor:
    """`rad2deg` in place: the result is written over the first argument."""
@overload
def rad2deg_(input: Tensor) -> Tensor: ...
def radam_many(tensors: Sequence[Tensor], lr: builtins.float, beta1: builtins.float = 0.9, beta2: builtins.float = 0.999, eps: builtins.float = 1e-8, weight_decay: builtins.float = 0.0, decoupled: builtins.bool = False, *, step: builtins.int) -> None:
    """One step of RAdam (Liu et al.), PyTorch's formula, of many parameters that lie alike."""
@overload
def rand(shape: builtins.int | Sequence[builtins.int], *, lo: builtins.float = 0.0, hi: builtins.float = 1.0, dtype: _dtype = float32, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Uniform numbers in [lo, hi); f32 unless the target says otherwise. Of complex numbers both parts are."""
@overload
def rand(size: builtins.int | Sequence[builtins.int], *, lo: builtins.float = 0.0, hi: builtins.float = 1.0, dtype: _dtype = float32, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def rand(*shape: builtins.int, lo: builtins.float = 0.0, hi: builtins.float = 1.0, dtype: _dtype = float32, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def rand_like(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Uniform numbers in [0, 1), with the same shape, dtype and layout."""
@overload
def rand_like(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def rand_like(x: Tensor, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """Uniform numbers in [0, 1) of the same shape and layout, of that dtype."""
@overload
def rand_like(input: Tensor, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
@overload
def randint(lo: builtins.int, hi: builtins.int, shape: builtins.int | Sequence[builtins.int], *, dtype: _dtype = int64, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Integers in [lo, hi)."""
@overload
def randint(low: builtins.int, high: builtins.int, size: builtins.int | Sequence[builtins.int], *, dtype: _dtype = int64, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def randint(hi: builtins.int, shape: builtins.int | Sequence[builtins.int], *, dtype: _dtype = int64, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Integers in [0, hi)."""
@overload
def randint(high: builtins.int, size: builtins.int | Sequence[builtins.int], *, dtype: _dtype = int64, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def randint(lo: builtins.int, hi: builtins.int, *shape: builtins.int, dtype: _dtype = int64, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def randint(hi: builtins.int, *shape: builtins.int, dtype: _dtype = int64, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def randint_like(x: Tensor, lo: builtins.int, hi: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """Integers in [lo, hi), with the same shape, dtype and layout."""
@overload
def randint_like(input: Tensor, low: builtins.int, high: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def randint_like(x: Tensor, hi: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """Integers in [0, hi), with the same shape, dtype and layout."""
@overload
def randint_like(input: Tensor, high: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def randint_like(x: Tensor, hi: builtins.int, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """Integers in [0, hi) of the same shape and layout, of that dtype."""
@overload
def randint_like(input: Tensor, high: builtins.int, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
@overload
def randint_like(x: Tensor, lo: builtins.int, hi: builtins.int, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """Integers in [lo, hi) of the same shape and layout, of that dtype."""
@overload
def randint_like(input: Tensor, low: builtins.int, high: builtins.int, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
@overload
def randn(shape: builtins.int | Sequence[builtins.int], *, mean: builtins.float = 0.0, std: builtins.float = 1.0, dtype: _dtype = float32, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Normal numbers with this mean and standard deviation; f32 unless the target says otherwise. Complex numbers have half of the variance in each part."""
@overload
def randn(size: builtins.int | Sequence[builtins.int], *, mean: builtins.float = 0.0, std: builtins.float = 1.0, dtype: _dtype = float32, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def randn(*shape: builtins.int, mean: builtins.float = 0.0, std: builtins.float = 1.0, dtype: _dtype = float32, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def randn_like(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Normal numbers with mean 0 and standard deviation 1, with the same shape, dtype and layout."""
@overload
def randn_like(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def randn_like(x: Tensor, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """Normal numbers of the same shape and layout, of that dtype."""
@overload
def randn_like(input: Tensor, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
def randperm(n: builtins.int, *, dtype: _dtype = int64, generator: Generator | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The numbers from 0 to n - 1 in a random order, which does not depend on placement or SBP; i64 unless the target says otherwise."""
def ranking_each(a: Tensor, b: Tensor, t: Tensor, margin: builtins.float = 0.0, *, out: Tensor | None = None) -> Tensor:
    """max(0, margin - t (a - b))."""
def ravel(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """All elements as one dim."""
def rdiv(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """s / x."""
def rdiv_(x: Tensor, s: Number) -> Tensor:
    """`rdiv` in place: the result is written over the first argument."""
@overload
def real(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The real part; of real numbers x itself."""
@overload
def real(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def reciprocal(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / x."""
@overload
def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def reciprocal_(x: Tensor) -> Tensor:
    """`reciprocal` in place: the result is written over the first argument."""
@overload
def reciprocal_(input: Tensor) -> Tensor: ...
@overload
def relu(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """max(x, 0)."""
@overload
def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def relu6(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x, but not below 0 and not above 6."""
def relu6_(x: Tensor) -> Tensor:
    """`relu6` in place: the result is written over the first argument."""
@overload
def relu_(x: Tensor) -> Tensor:
    """`relu` in place: the result is written over the first argument."""
@overload
def relu_(input: Tensor) -> Tensor: ...
@overload
def remainder(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The remainder of a / b with the sign of b. Integers divided by 0 are an error."""
@overload
def remainder(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def remainder(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The remainder of x / s with the sign of s."""
@overload
def remainder(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def remainder_(a: Tensor, b: Tensor) -> Tensor:
    """`remainder` in place: the result is written over the first argument."""
@overload
def remainder_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def remainder_(x: Tensor, s: Number) -> Tensor:
    """`remainder` in place: the result is written over the first argument."""
@overload
def remainder_(input: Tensor, other: Number) -> Tensor: ...
def renorm(x: Tensor, p: builtins.float, dim: builtins.int, maxnorm: builtins.float, *, out: Tensor | None = None) -> Tensor:
    """x with each slice along `dim` whose p-norm is above `maxnorm` scaled to have that norm."""
def renorm_(x: Tensor, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
    """`renorm` in place: the result is written over the first argument."""
@overload
def repeat(x: Tensor, repeats: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The tensor repeated along each dim. More counts than dims make new dims in front."""
@overload
def repeat(input: Tensor, repeats: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def repeat(x: Tensor, *repeats: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def repeat_interleave(x: Tensor, repeats: builtins.int, *, dim: builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """Each element `repeats` times in a row along `dim`; without `dim`, of the flattened tensor."""
@overload
def repeat_interleave(input: Tensor, repeats: builtins.int, *, dim: builtins.int | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def repeat_interleave(x: Tensor, repeats: Tensor, *, dim: builtins.int | None = None, output_size: builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """Each slice along `dim` so many times as the list says; without `dim` each element. The list is read where `output_size` is not given."""
@overload
def repeat_interleave(input: Tensor, repeats: Tensor, *, dim: builtins.int | None = None, output_size: builtins.int | None = None, out: Tensor | None = None) -> Tensor: ...
def replace_not_finite(x: Tensor, nan: builtins.float, posinf: builtins.float, neginf: builtins.float, *, out: Tensor | None = None) -> Tensor:
    """x with these numbers in the place of NaN, inf and -inf."""
def requires_grad(x: Tensor) -> builtins.bool:
    """Whether it is a leaf that wants a gradient, or depends on one."""
def resample(x: Tensor, mode: str, size: builtins.int | Sequence[builtins.int], aligned: builtins.bool = False, steps: builtins.int | Sequence[builtins.int] = (), scales: builtins.float | Sequence[builtins.float] = (), *, out: Tensor | None = None) -> Tensor:
    """The last dims with other sizes: elements around them (reflect, replicate, circular, with `steps` before each dim), interpolated (nearest, nearest-exact, linear, cubic), or windows of them (with number, stride, padding, dilation of each dim)."""
def resample_grad(dy: Tensor, mode: str, size: builtins.int | Sequence[builtins.int], aligned: builtins.bool = False, steps: builtins.int | Sequence[builtins.int] = (), scales: builtins.float | Sequence[builtins.float] = (), *, out: Tensor | None = None) -> Tensor:
    """The gradient of resample: each element, times its weights, added to the elements that it was made of."""
@overload
def reshape(x: Tensor, shape: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The same elements, in row-major order, as another shape. One size may be -1: it follows from the others."""
@overload
def reshape(input: Tensor, shape: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def reshape(x: Tensor, *shape: builtins.int, out: Tensor | None = None) -> Tensor: ...
def reshape_as(x: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`reshape` to the shape of another tensor."""
def resolve_conj(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tensor itself: conjugates are computed at once here."""
def resolve_neg(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tensor itself: signs are computed at once here."""
@overload
def result_type(tensor1: Tensor, tensor2: Tensor) -> _dtype:
    """The dtype that a sum of these has. Tensors without dims count only if they are of a higher kind."""
@overload
def result_type(tensor: Tensor, scalar: Number) -> _dtype:
    """The dtype that a sum of a tensor and a number has."""
@overload
def result_type(scalar: Number, tensor: Tensor) -> _dtype:
    """The dtype that a sum of a number and a tensor has."""
@overload
def result_type(scalar1: Number, scalar2: Number) -> _dtype:
    """The dtype that a sum of two numbers has."""
def ring_attention_return(x: Tensor, keys: builtins.int, turn: builtins.int, queries: builtins.int, causal: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """What the pieces of a turn of ring attention give to each of the `keys`: those of part j are in piece (j + turn) mod parts. 0 for keys that no query of the turn sees."""
def ring_attention_step(q: Tensor, k: Tensor, v: Tensor, parts: builtins.int, turn: builtins.int, causal: builtins.bool = False, *, scale: builtins.float, out: Sequence[Tensor] | None = None) -> _OutLse:
    """One turn of ring attention: the sequences are cut into `parts` balanced parts, and part i of the queries sees part (i - turn) mod parts of the keys alone. A query that sees nothing gives 0, and minus infinity as the logarithm of its sum. No gradient: `attention`, which is made of such turns, has it."""
def ring_attention_step_grad(dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, parts: builtins.int, turn: builtins.int, causal: builtins.bool = False, *, scale: builtins.float) -> _DqDkDv:
    """Gradients of one turn of ring attention, from the results of all turns. Piece i of `dk` and `dv`, which have a leading dim of `parts`, is what part i of the queries gives to the keys that it meets; pieces are as long as the longest part, with zeros at the end."""
@overload
def rms_norm(x: Tensor, weight: Tensor | None = None, eps: builtins.float | None = None, *, axes: builtins.int | None = None, out: Tensor | None = None) -> Tensor:
    """x divided by the root mean square over the last dims, times `weight`. The number of dims is that of `weight`, 1 without one, unless `axes` says otherwise. `eps` is added to the mean square; it is the distance from 1 to the next number of x's dtype, for halves of f32, unless given."""
@overload
def rms_norm(input: Tensor, weight: Tensor | None = None, eps: builtins.float | None = None, *, axes: builtins.int | None = None, out: Tensor | None = None) -> Tensor: ...
def rms_norm_grad(dy: Tensor, x: Tensor, rstd: Tensor, weight: Tensor | None = None, axes: builtins.int = 1, *, out: Sequence[Tensor] | None = None) -> _DxDweight:
    """Gradients of rms_norm."""
def rmsprop_many(tensors: Sequence[Tensor], lr: builtins.float, alpha: builtins.float = 0.99, eps: builtins.float = 1e-8, weight_decay: builtins.float = 0.0, decay: builtins.float = 0.0, centered: builtins.bool = False) -> None:
    """One step of RMSprop, PyTorch's formula, of many parameters that lie alike; centered where there is a mean of gradients."""
@overload
def rnn_relu(x: Tensor, hx: Tensor, params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _OutputH_n:
    """A recurrent network with relu over a sequence, as `lstm`."""
@overload
def rnn_relu(input: Tensor, hx: Tensor, params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _OutputH_n: ...
@overload
def rnn_relu_cell(x: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """relu(x w_ihᵀ + b_ih + hx w_hhᵀ + b_hh)."""
@overload
def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def rnn_tanh(x: Tensor, hx: Tensor, params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _OutputH_n:
    """A recurrent network with tanh over a sequence, as `lstm`."""
@overload
def rnn_tanh(input: Tensor, hx: Tensor, params: Sequence[Tensor], *, has_biases: builtins.bool = True, num_layers: builtins.int = 1, dropout: builtins.float = 0.0, train: builtins.bool = False, bidirectional: builtins.bool = False, batch_first: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _OutputH_n: ...
@overload
def rnn_tanh_cell(x: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """tanh(x w_ihᵀ + b_ih + hx w_hhᵀ + b_hh)."""
@overload
def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def roll(x: Tensor, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] = (), *, out: Tensor | None = None) -> Tensor:
    """Elements moved by `shifts` places along `dims`; what leaves at the end comes in at the front. Without dims, the flattened tensor is rolled and keeps its shape."""
@overload
def roll(input: Tensor, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] = (), *, out: Tensor | None = None) -> Tensor: ...
@overload
def roll(x: Tensor, shifts: builtins.int | Sequence[builtins.int], *dims: builtins.int, out: Tensor | None = None) -> Tensor: ...
def roll_along(x: Tensor, dim: builtins.int, shift: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The elements moved by `shift` places along a dim; what leaves at the end comes in at the front."""
def root(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """√x, with the gradient 0 at 0: the root of a sum of squares."""
@overload
def rot90(x: Tensor, k: builtins.int = 1, dims: builtins.int | Sequence[builtins.int] = (0, 1), *, out: Tensor | None = None) -> Tensor:
    """The plane of two dims turned by `k` quarters, from the first towards the second."""
@overload
def rot90(input: Tensor, k: builtins.int = 1, dims: builtins.int | Sequence[builtins.int] = (0, 1), *, out: Tensor | None = None) -> Tensor: ...
@overload
def rot90(x: Tensor, k: builtins.int = 1, *dims: builtins.int, out: Tensor | None = None) -> Tensor: ...
def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Rotary position embedding: pairs of the elements of each row of x `[..., positions, width]` turned by angles whose cosines and sines `[positions, pairs]` are given (more dims broadcast to those of x). A pair is elements i and `pairs + i`, or with `interleaved` 2 i and 2 i + 1. Elements beyond the pairs stay as they are."""
@overload
def round(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The nearest integer, ties to even."""
@overload
def round(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def round(x: Tensor, *, decimals: builtins.int, out: Tensor | None = None) -> Tensor:
    """x rounded to so many digits behind the point, before it if negative; halves to the even one."""
@overload
def round(input: Tensor, *, decimals: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def round_(x: Tensor) -> Tensor:
    """`round` in place: the result is written over the first argument."""
@overload
def round_(input: Tensor) -> Tensor: ...
@overload
def round_(x: Tensor, *, decimals: builtins.int) -> Tensor:
    """`round` in place: the result is written over the first argument."""
@overload
def round_(input: Tensor, *, decimals: builtins.int) -> Tensor: ...
def row_stack(xs: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The same as `vstack`."""
def rpow(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """s to the power x."""
def rpow_(x: Tensor, s: Number) -> Tensor:
    """`rpow` in place: the result is written over the first argument."""
def rprop_many(tensors: Sequence[Tensor], shrink: builtins.float = 0.5, grow: builtins.float = 1.2, least: builtins.float = 1e-6, most: builtins.float = 50.0) -> None:
    """One step of Rprop (Riedmiller and Braun), PyTorch's formula, of many parameters that lie alike."""
@overload
def rrelu(x: Tensor, lower: builtins.float = 0.125, upper: builtins.float = 0.3333333333333333, training: builtins.bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """x, or a slope times x where x is not above 0: with `training` each element has a random slope from `lower` to `upper`, else all have their mean."""
@overload
def rrelu(input: Tensor, lower: builtins.float = 0.125, upper: builtins.float = 0.3333333333333333, training: builtins.bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def rsqrt(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / √x."""
@overload
def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def rsqrt_(x: Tensor) -> Tensor:
    """`rsqrt` in place: the result is written over the first argument."""
@overload
def rsqrt_(input: Tensor) -> Tensor: ...
@overload
def rsub(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """s - x."""
@overload
def rsub(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def rsub(a: Tensor, b: Tensor, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """b - `alpha` a."""
@overload
def rsub(input: Tensor, other: Tensor, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor: ...
@overload
def rsub(x: Tensor, s: Number, *, alpha: Number, out: Tensor | None = None) -> Tensor:
    """s - `alpha` x."""
@overload
def rsub(input: Tensor, other: Number, *, alpha: Number, out: Tensor | None = None) -> Tensor: ...
def rsub_(x: Tensor, s: Number) -> Tensor:
    """`rsub` in place: the result is written over the first argument."""
def scalar_tensor(value: Number, *, dtype: _dtype | None = None, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """A tensor without dims."""
def scale_many(s: Tensor, xs: Sequence[Tensor]) -> None:
    """Multiplies many tensors in place by a number that is a tensor."""
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: builtins.float = 0.0, is_causal: builtins.bool = False, *, scale: builtins.float | None = None, enable_gqa: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """softmax(scale q kᵀ + mask) v over the last two dims. `attn_mask` broadcasts to the scores `[..., Tq, Tk]`: a bool mask is true where a query sees a key, a float mask is added. With `is_causal` query i sees keys 0..=i only. `dropout_p` is for the weights. `enable_gqa` repeats the heads of keys and values (dim -3) as often as the queries have more. A query that sees no key gives 0."""
def scaled_modified_bessel_k0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """eˣ times `modified_bessel_k0`."""
def scaled_modified_bessel_k0_(x: Tensor) -> Tensor:
    """`scaled_modified_bessel_k0` in place: the result is written over the first argument."""
def scaled_modified_bessel_k1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """eˣ times `modified_bessel_k1`."""
def scaled_modified_bessel_k1_(x: Tensor) -> Tensor:
    """`scaled_modified_bessel_k1` in place: the result is written over the first argument."""
@overload
def scatter(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x with each element of `src` written at its index along `dim`; of several at one place the last stands."""
@overload
def scatter(input: Tensor, dim: builtins.int, index: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def scatter(x: Tensor, dim: builtins.int, ids: Tensor, value: Number, *, out: Tensor | None = None) -> Tensor:
    """x with one number written at each index along `dim`."""
@overload
def scatter(input: Tensor, dim: builtins.int, index: Tensor, value: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def scatter(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor, *, reduce: str, out: Tensor | None = None) -> Tensor:
    """x with each element of `src` written at its index along `dim`, or with `reduce` added to (`"add"`) or multiplied with (`"multiply"`) what is there."""
@overload
def scatter(input: Tensor, dim: builtins.int, index: Tensor, value: Tensor, *, reduce: str, out: Tensor | None = None) -> Tensor: ...
@overload
def scatter(x: Tensor, dim: builtins.int, ids: Tensor, value: Number, *, reduce: str, out: Tensor | None = None) -> Tensor:
    """The same with one number."""
@overload
def scatter(input: Tensor, dim: builtins.int, index: Tensor, value: Number, *, reduce: str, out: Tensor | None = None) -> Tensor: ...
@overload
def scatter_(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor) -> Tensor:
    """`scatter` in place: the result is written over the first argument."""
@overload
def scatter_(x: Tensor, dim: builtins.int, ids: Tensor, value: Number) -> Tensor:
    """`scatter` in place: the result is written over the first argument."""
@overload
def scatter_(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    """`scatter` in place: the result is written over the first argument."""
@overload
def scatter_(x: Tensor, dim: builtins.int, ids: Tensor, value: Number, *, reduce: str) -> Tensor:
    """`scatter` in place: the result is written over the first argument."""
@overload
def scatter_add(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x with each element of `src` added at its index along `dim`."""
@overload
def scatter_add(input: Tensor, dim: builtins.int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def scatter_add_(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor) -> Tensor:
    """`scatter_add` in place: the result is written over the first argument."""
def scatter_fill(x: Tensor, ids: Tensor, dim: builtins.int, s: Number, *, out: Tensor | None = None) -> Tensor:
    """x with one number written at each index along a dim."""
def scatter_into(x: Tensor, ids: Tensor, src: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """x with each element of `src` written at its index along a dim; of several at one place the last stands."""
@overload
def scatter_reduce(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True, out: Tensor | None = None) -> Tensor:
    """x with the elements of `src` reduced at their indices along `dim`: `reduce` is `sum`, `mean`, `amax` or `amin`. With `include_self` the element of x counts as one of them, else it stays only where no index is. Equal extremes share the gradient."""
@overload
def scatter_reduce(input: Tensor, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True, out: Tensor | None = None) -> Tensor: ...
def scatter_reduce_(x: Tensor, dim: builtins.int, ids: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True) -> Tensor:
    """`scatter_reduce` in place: the result is written over the first argument."""
def scatter_sum(values: Tensor, ids: Tensor, dim: builtins.int, rows: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """Zeros to which each value is added at its index along a dim, which has `rows` elements: the gradient of gather."""
@overload
def searchsorted(sorted: Tensor, x: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """For each value the place where it can be inserted into a sorted sequence: how many of its elements are smaller, or with `right` not greater. The sequence has one dim, or there is one for each row of x: then all dims but the last are those of x. NaN count as the largest. Places are i64, or i32 with `out_int32`. A split sequence gives P(sum)."""
@overload
def searchsorted(sorted_sequence: Tensor, input: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def searchsorted(sorted: Tensor, x: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False, side: str | None = None, sorter: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """How many of the sorted boundaries stand before each element: `side` says which of the equal ones count."""
@overload
def searchsorted(sorted_sequence: Tensor, input: Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False, side: str | None = None, sorter: Tensor | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def searchsorted(sorted: Tensor, s: Number, *, out_int32: builtins.bool = False, right: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The positions in sorted boundaries of one number."""
@overload
def searchsorted(sorted_sequence: Tensor, input: Number, *, out_int32: builtins.bool = False, right: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def select(x: Tensor, dim: builtins.int, index: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The element `index` along `dim`, which is removed. A negative index counts from the end."""
@overload
def select(input: Tensor, dim: builtins.int, index: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def select_scatter(x: Tensor, src: Tensor, dim: builtins.int, index: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """x with `src` in the place of its slice `index` along `dim`."""
@overload
def select_scatter(input: Tensor, src: Tensor, dim: builtins.int, index: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def selu(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """SELU (Klambauer et al., 2017): a scaled ELU that keeps mean 0 and variance 1."""
@overload
def selu(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def selu_(x: Tensor) -> Tensor:
    """`selu` in place: the result is written over the first argument."""
@overload
def selu_(input: Tensor) -> Tensor: ...
def sgd_many(tensors: Sequence[Tensor], lr: builtins.float, decay: builtins.float = 0.0, dampening: builtins.float = 0.0, weight_decay: builtins.float = 0.0, nesterov: builtins.bool = False, first: builtins.bool = False) -> None:
    """One step of SGD with momentum, PyTorch's formula, of many parameters that lie alike; all have a momentum buffer or none has."""
def sgd_step(param: Tensor, grad: Tensor, momentum: Tensor | None, lr: builtins.float, decay: builtins.float = 0.0, dampening: builtins.float = 0.0, weight_decay: builtins.float = 0.0, nesterov: builtins.bool = False, first: builtins.bool = False) -> None:
    """One step of SGD with momentum, PyTorch's formula."""
@overload
def sgn(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x / |x|, and 0 of 0: -1, 0 or 1 for real numbers."""
@overload
def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sgn_(x: Tensor) -> Tensor:
    """`sgn` in place: the result is written over the first argument."""
@overload
def sgn_(input: Tensor) -> Tensor: ...
def shape(x: Tensor) -> tuple[builtins.int, ...]:
    """The logical shape."""
def shards_to_global(x: Tensor, placement: _placement, sbp: Sbp | str | Sequence[Sbp | str], grad_sbp: Sbp | str | Sequence[Sbp | str] | None = None, *, out: Tensor | None = None) -> Tensor:
    """Each rank's local tensor becomes its shard; shapes are compared, B shards are made equal."""
@overload
def shifted_chebyshev_polynomial_t(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the first kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def shifted_chebyshev_polynomial_t(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`shifted_chebyshev_polynomial_t` with a number as n."""
@overload
def shifted_chebyshev_polynomial_t(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`shifted_chebyshev_polynomial_t` with a number as x."""
def shifted_chebyshev_polynomial_t_(x: Tensor, n: Tensor) -> Tensor:
    """`shifted_chebyshev_polynomial_t` in place: the result is written over the first argument."""
@overload
def shifted_chebyshev_polynomial_u(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the second kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def shifted_chebyshev_polynomial_u(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`shifted_chebyshev_polynomial_u` with a number as n."""
@overload
def shifted_chebyshev_polynomial_u(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`shifted_chebyshev_polynomial_u` with a number as x."""
def shifted_chebyshev_polynomial_u_(x: Tensor, n: Tensor) -> Tensor:
    """`shifted_chebyshev_polynomial_u` in place: the result is written over the first argument."""
@overload
def shifted_chebyshev_polynomial_v(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the third kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def shifted_chebyshev_polynomial_v(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`shifted_chebyshev_polynomial_v` with a number as n."""
@overload
def shifted_chebyshev_polynomial_v(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`shifted_chebyshev_polynomial_v` with a number as x."""
def shifted_chebyshev_polynomial_v_(x: Tensor, n: Tensor) -> Tensor:
    """`shifted_chebyshev_polynomial_v` in place: the result is written over the first argument."""
@overload
def shifted_chebyshev_polynomial_w(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the fourth kind at 2x - 1 of degree n, cut to a whole number; 0 of a negative degree. It has no gradient."""
@overload
def shifted_chebyshev_polynomial_w(x: Tensor, n: Number, *, out: Tensor | None = None) -> Tensor:
    """`shifted_chebyshev_polynomial_w` with a number as n."""
@overload
def shifted_chebyshev_polynomial_w(x: Number, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`shifted_chebyshev_polynomial_w` with a number as x."""
def shifted_chebyshev_polynomial_w_(x: Tensor, n: Tensor) -> Tensor:
    """`shifted_chebyshev_polynomial_w` in place: the result is written over the first argument."""
@overload
def sigmoid(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sigmoid σ(x) = 1 / (1 + e⁻ˣ)."""
@overload
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sigmoid_(x: Tensor) -> Tensor:
    """`sigmoid` in place: the result is written over the first argument."""
@overload
def sigmoid_(input: Tensor) -> Tensor: ...
@overload
def sign(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1, in the dtype of x."""
@overload
def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sign_(x: Tensor) -> Tensor:
    """`sign` in place: the result is written over the first argument."""
@overload
def sign_(input: Tensor) -> Tensor: ...
@overload
def signbit(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where x is below zero, or a zero with a minus sign."""
@overload
def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def silu(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x σ(x)."""
def silu_(x: Tensor) -> Tensor:
    """`silu` in place: the result is written over the first argument."""
@overload
def sin(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine, of radians."""
@overload
def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sin_(x: Tensor) -> Tensor:
    """`sin` in place: the result is written over the first argument."""
@overload
def sin_(input: Tensor) -> Tensor: ...
@overload
def sinc(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sin(πx) / (πx), and 1 of 0."""
@overload
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sinc_(x: Tensor) -> Tensor:
    """`sinc` in place: the result is written over the first argument."""
@overload
def sinc_(input: Tensor) -> Tensor: ...
@overload
def sinh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine."""
@overload
def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sinh_(x: Tensor) -> Tensor:
    """`sinh` in place: the result is written over the first argument."""
@overload
def sinh_(input: Tensor) -> Tensor: ...
@overload
def size(x: Tensor, dim: builtins.int) -> builtins.int:
    """The size of a dim. Negative dims count from the end."""
@overload
def size(input: Tensor, dim: builtins.int) -> builtins.int: ...
@overload
def size(x: Tensor) -> tuple[builtins.int, ...]:
    """The logical shape."""
@overload
def size(input: Tensor) -> tuple[builtins.int, ...]: ...
def slice(x: Tensor, dim: builtins.int, start: builtins.int, end: builtins.int, step: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """Elements `start`, `start + step`, … below `end` of a dim. Negative bounds count from the end; bounds are clamped to the size."""
def slice_grad(dy: Tensor, dim: builtins.int, start: builtins.int, step: builtins.int, size: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """Zeros of `size` along a dim with dy at start, start + step, …: the gradient of slice."""
@overload
def slice_scatter(x: Tensor, src: Tensor, dim: builtins.int = 0, start: builtins.int | None = None, end: builtins.int | None = None, step: builtins.int = 1, *, out: Tensor | None = None) -> Tensor:
    """x with `src` in the place of its slice `start`, `start + step`, … below `end` along `dim`."""
@overload
def slice_scatter(input: Tensor, src: Tensor, dim: builtins.int = 0, start: builtins.int | None = None, end: builtins.int | None = None, step: builtins.int = 1, *, out: Tensor | None = None) -> Tensor: ...
def slogdet(x: Tensor, *, out: Sequence[Tensor] | None = None) -> _SignLogabsdet:
    """The same as `linalg.slogdet`."""
def smooth_l1_each(x: Tensor, t: Tensor, beta: builtins.float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """(x - t)² / (2 beta) where |x - t| is below beta, else |x - t| - beta / 2."""
def smooth_l1_loss(x: Tensor, target: Tensor, *, beta: builtins.float = 1.0, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """The squared error over 2 `beta` where |x - target| is below `beta`, else the absolute error less `beta` / 2."""
def soft_margin_each(x: Tensor, t: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(1 + e^(-t x))."""
def soft_margin_loss(x: Tensor, target: Tensor, *, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """log(1 + e^(-target x)), for targets 1 and -1."""
@overload
def softmax(x: Tensor, dim: builtins.int = -1, *, out: Tensor | None = None) -> Tensor:
    """The softmax along a dim: exp(x) divided by its sum."""
@overload
def softmax(input: Tensor, dim: builtins.int = -1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def softmax(x: Tensor, dim: builtins.int = -1, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """`softmax` of the tensor converted to `dtype`."""
@overload
def softmax(input: Tensor, dim: builtins.int = -1, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
def softmax_grad(dy: Tensor, y: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """Gradient of softmax: y (dy - sum(dy y))."""
def softplus(x: Tensor, *, beta: builtins.float = 1.0, threshold: builtins.float = 20.0, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."""
def softplus_(x: Tensor, *, beta: builtins.float = 1.0, threshold: builtins.float = 20.0) -> Tensor:
    """`softplus` in place: the result is written over the first argument."""
def softshrink(x: Tensor, lambd: builtins.float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x moved towards zero by lambd, or 0 where |x| is not above lambd."""
def softshrink_(x: Tensor, lambd: builtins.float = 0.5) -> Tensor:
    """`softshrink` in place: the result is written over the first argument."""
def softsign(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x / (1 + |x|)."""
def softsign_(x: Tensor) -> Tensor:
    """`softsign` in place: the result is written over the first argument."""
@overload
def sort(x: Tensor, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """The elements of each line along a dim from the smallest to the largest, or with `descending` from the largest, and where they stood. NaN count as the largest. Equal elements always keep their order, so `stable` changes nothing."""
@overload
def sort(input: Tensor, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
def spherical_bessel_j0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of the first kind of order 0: sin(x) / x, and 1 of 0."""
def spherical_bessel_j0_(x: Tensor) -> Tensor:
    """`spherical_bessel_j0` in place: the result is written over the first argument."""
@overload
def split(x: Tensor, size: builtins.int, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Parts of a dim with `size` elements; the last part may be smaller."""
@overload
def split(input: Tensor, split_size_or_sections: builtins.int, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def split(x: Tensor, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Parts of a dim with these sizes, which add up to its size."""
@overload
def split(input: Tensor, split_size_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def split_with_sizes(x: Tensor, size: builtins.int, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The same as `split`."""
@overload
def split_with_sizes(x: Tensor, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The same as `split`."""
@overload
def sqrt(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root; NaN below zero."""
@overload
def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sqrt_(x: Tensor) -> Tensor:
    """`sqrt` in place: the result is written over the first argument."""
@overload
def sqrt_(input: Tensor) -> Tensor: ...
@overload
def square(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x²; of bools integers."""
@overload
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def square_(x: Tensor) -> Tensor:
    """`square` in place: the result is written over the first argument."""
@overload
def square_(input: Tensor) -> Tensor: ...
def squares_of_each(xs: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The sums of squares of the elements of each input, as one tensor in f32, or f64 where an input is."""
@overload
def squeeze(x: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """Without `dim`, if its size is 1; otherwise the tensor unchanged, as in PyTorch."""
@overload
def squeeze(input: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def squeeze(x: Tensor, dims: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """Without those of the dims that have size 1."""
@overload
def squeeze(input: Tensor, dim: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def squeeze(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x without its dims of size 1."""
@overload
def squeeze(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def squeeze(x: Tensor, *dims: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def stack(xs: Sequence[Tensor], dim: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape along a new dim at position `dim`."""
@overload
def stack(tensors: Sequence[Tensor], dim: builtins.int = 0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def std(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Tensor | None = None) -> Tensor:
    """The standard deviation: the root of the variance."""
@overload
def std(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Tensor | None = None) -> Tensor: ...
@overload
def std(x: Tensor, dims: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The standard deviation over dims, with a correction of 1 if `unbiased`, else of 0."""
@overload
def std(input: Tensor, dim: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def std(x: Tensor, unbiased: builtins.bool, *, out: Tensor | None = None) -> Tensor:
    """The standard deviation of all elements, with a correction of 1 if `unbiased`, else of 0."""
@overload
def std(input: Tensor, unbiased: builtins.bool, *, out: Tensor | None = None) -> Tensor: ...
@overload
def std(x: Tensor, *dims: builtins.int, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Tensor | None = None) -> Tensor: ...
@overload
def std_mean(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Sequence[Tensor] | None = None) -> _StdMean:
    """The standard deviation, as `std`, and the mean over dims (none given: all)."""
@overload
def std_mean(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Sequence[Tensor] | None = None) -> _StdMean: ...
@overload
def std_mean(x: Tensor, dims: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _StdMean:
    """The standard deviation over dims, with a correction of 1 if `unbiased`, else of 0, and the mean."""
@overload
def std_mean(input: Tensor, dim: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _StdMean: ...
@overload
def std_mean(x: Tensor, unbiased: builtins.bool, *, out: Sequence[Tensor] | None = None) -> _StdMean:
    """The standard deviation of all elements, with a correction of 1 if `unbiased`, else of 0, and the mean."""
@overload
def std_mean(input: Tensor, unbiased: builtins.bool, *, out: Sequence[Tensor] | None = None) -> _StdMean: ...
@overload
def std_mean(x: Tensor, *dims: builtins.int, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Sequence[Tensor] | None = None) -> _StdMean: ...
@overload
def sub(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a - b."""
@overload
def sub(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sub(a: Tensor, b: Tensor, *, alpha: Number, out: Tensor | None = None) -> Tensor:
    """a - alpha b."""
@overload
def sub(input: Tensor, other: Tensor, *, alpha: Number, out: Tensor | None = None) -> Tensor: ...
@overload
def sub(x: Tensor, s: Number, *, alpha: Number, out: Tensor | None = None) -> Tensor:
    """x - alpha s."""
@overload
def sub(input: Tensor, other: Number, *, alpha: Number, out: Tensor | None = None) -> Tensor: ...
@overload
def sub(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """x - s."""
@overload
def sub(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sub(s: Number, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """s - x."""
@overload
def sub(other: Number, input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sub_(a: Tensor, b: Tensor) -> Tensor:
    """`sub` in place: the result is written over the first argument."""
@overload
def sub_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def sub_(x: Tensor, s: Number) -> Tensor:
    """`sub` in place: the result is written over the first argument."""
@overload
def sub_(input: Tensor, other: Number) -> Tensor: ...
@overload
def sub_(a: Tensor, b: Tensor, *, alpha: Number) -> Tensor:
    """a becomes a - `alpha` b, in place."""
@overload
def sub_(input: Tensor, other: Tensor, *, alpha: Number) -> Tensor: ...
@overload
def sub_(x: Tensor, s: Number, *, alpha: Number) -> Tensor:
    """x becomes x - `alpha` s, in place."""
@overload
def sub_(input: Tensor, other: Number, *, alpha: Number) -> Tensor: ...
@overload
def subtract(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `sub`."""
@overload
def subtract(a: Tensor, b: Tensor, *, alpha: Number, out: Tensor | None = None) -> Tensor:
    """The same as `sub`."""
@overload
def subtract(x: Tensor, s: Number, *, alpha: Number, out: Tensor | None = None) -> Tensor:
    """The same as `sub`."""
@overload
def subtract(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The same as `sub`."""
@overload
def subtract(s: Number, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `sub`."""
@overload
def subtract_(a: Tensor, b: Tensor) -> Tensor:
    """The same as `sub_`."""
@overload
def subtract_(x: Tensor, s: Number) -> Tensor:
    """The same as `sub_`."""
@overload
def subtract_(a: Tensor, b: Tensor, *, alpha: Number) -> Tensor:
    """The same as `sub_`."""
@overload
def subtract_(x: Tensor, s: Number, *, alpha: Number) -> Tensor:
    """The same as `sub_`."""
def subtract_many(factors: Tensor, tensors: Sequence[Tensor]) -> None:
    """Subtracts from each of many tensors in place its factor times another tensor. The factors are one tensor."""
@overload
def sum(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum over dims (none given: all). Integers and bools sum to i64. Over a split dim the result is P(sum): it is reduced when a later op needs it."""
@overload
def sum(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sum(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """`sum` of the tensor converted to `dtype`."""
@overload
def sum(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
def sum_of_squares(xs: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The sum of squares of all elements of all inputs, in f32, or f64 where one is."""
@overload
def sum_to_size(x: Tensor, size: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """x summed over the dims along which a tensor of that shape would be repeated to have the shape of x."""
@overload
def sum_to_size(x: Tensor, *size: builtins.int, out: Tensor | None = None) -> Tensor: ...
def svd(x: Tensor, some: builtins.bool = True, compute_uv: builtins.bool = True, *, out: Sequence[Tensor] | None = None) -> _USV:
    """The singular values S, and the singular vectors as columns of U and V: `x = U diag(S) Vᴴ`; without `some` all vectors, without `compute_uv` zeros. `linalg.svd` gives Vᴴ."""
def svd_lowrank(A: Tensor, q: builtins.int = 6, niter: builtins.int = 2, M: Tensor | None = None, *, out: Sequence[Tensor] | None = None) -> _USV:
    """About the q largest singular values of A less M, and their vectors as columns of U and V, by random projections."""
def swapaxes(x: Tensor, dim0: builtins.int, dim1: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The same as `transpose`."""
def swapdims(x: Tensor, dim0: builtins.int, dim1: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The same as `transpose`."""
@overload
def t(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Exchanges the last two dims: the transpose of a matrix."""
@overload
def t(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def take(x: Tensor, ids: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements at these places of x in row-major order, in the shape of the indices. Negative ones count from the end."""
@overload
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def take_along_dim(x: Tensor, ids: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """`gather` with indices that broadcast with x in the other dims."""
@overload
def take_along_dim(input: Tensor, indices: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def take_along_dim(x: Tensor, ids: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements that the indices name among all of x, counted row-major, as a list."""
@overload
def take_along_dim(input: Tensor, indices: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def tan(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent, of radians."""
@overload
def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def tan_(x: Tensor) -> Tensor:
    """`tan` in place: the result is written over the first argument."""
@overload
def tan_(input: Tensor) -> Tensor: ...
@overload
def tanh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""
@overload
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def tanh_(x: Tensor) -> Tensor:
    """`tanh` in place: the result is written over the first argument."""
@overload
def tanh_(input: Tensor) -> Tensor: ...
def tanhshrink(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x - tanh(x)."""
def tanhshrink_(x: Tensor) -> Tensor:
    """`tanhshrink` in place: the result is written over the first argument."""
@overload
def tensor_split(x: Tensor, sections: builtins.int, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """`sections` parts of a dim, of sizes that differ by one at most: the first ones are the larger ones."""
@overload
def tensor_split(input: Tensor, sections: builtins.int, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(x: Tensor, indices: builtins.int | Sequence[builtins.int], dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The parts of a dim between these places. Negative ones count from the end; a part that ends before it begins is empty."""
@overload
def tensor_split(input: Tensor, sections: builtins.int | Sequence[builtins.int], dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(x: Tensor, tensor_indices_or_sections: Tensor, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The parts of a dim between the places that a tensor holds, or as many as its one number says; they are read."""
@overload
def tensor_split(input: Tensor, tensor_indices_or_sections: Tensor, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def tensordot(a: Tensor, b: Tensor, dims_a: builtins.int | Sequence[builtins.int], dims_b: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The sum of products over the dims `dims_a` of a and `dims_b` of b. The result has the other dims of a, then those of b."""
@overload
def tensordot(a: Tensor, b: Tensor, dims: builtins.int = 2, *, out: Tensor | None = None) -> Tensor:
    """The sum of products over the last `dims` dims of a and the first of b."""
@overload
def tensordot(a: Tensor, b: Tensor, dims: Sequence[Sequence[builtins.int]], *, out: Tensor | None = None) -> Tensor:
    """The sum of products over these dims of a and of b."""
@overload
def tensordot(a: Tensor, b: Tensor, dims_a: builtins.int | Sequence[builtins.int], *dims_b: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def threshold(x: Tensor, threshold: Number, value: Number, *, out: Tensor | None = None) -> Tensor:
    """x, or `value` where x is not above `threshold`."""
@overload
def threshold(input: Tensor, threshold: Number, value: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def threshold_(x: Tensor, threshold: Number, value: Number) -> Tensor:
    """`threshold` in place: the result is written over the first argument."""
@overload
def threshold_(input: Tensor, threshold: Number, value: Number) -> Tensor: ...
@overload
def tile(x: Tensor, dims: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """`repeat`, with 1 for the leading dims that have no count."""
@overload
def tile(input: Tensor, dims: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def tile(x: Tensor, *dims: builtins.int, out: Tensor | None = None) -> Tensor: ...
def to_device(x: Tensor, device: _device | str, *, out: Tensor | None = None) -> Tensor:
    """A local tensor on another device, with its gradient; the tensor itself where it is on that device (as PyTorch's `to`). Global tensors move with `to_global((&placement, sbp))`."""
@overload
def to_global(x: Tensor, placement: _placement, sbp: Sbp | str | Sequence[Sbp | str], *, grad_sbp: Sbp | str | Sequence[Sbp | str] | None = None, out: Tensor | None = None) -> Tensor:
    """The tensor in another layout; a local one becomes the rank's shard of a global one."""
@overload
def to_global(x: Tensor, sbp: Sbp | str | Sequence[Sbp | str], *, grad_sbp: Sbp | str | Sequence[Sbp | str] | None = None, out: Tensor | None = None) -> Tensor:
    """A global tensor in another layout on its placement."""
def to_global_grad(dy: Tensor, placement: _placement, sbp: Sbp | str | Sequence[Sbp | str], from_: _placement, from_sbp: Sbp | str | Sequence[Sbp | str], grad_sbp: Sbp | str | Sequence[Sbp | str] | None = None, *, out: Tensor | None = None) -> Tensor:
    """The gradient of a tensor that lay as `sbp` on `placement` and was boxed to `from`."""
def to_local(x: Tensor, *, grad_sbp: Sbp | str | Sequence[Sbp | str] | None = None, out: Tensor | None = None) -> Tensor:
    """The rank's shard as a local tensor."""
def to_local_grad(dy: Tensor, shape: builtins.int | Sequence[builtins.int], placement: _placement, sbp: Sbp | str | Sequence[Sbp | str], grad_sbp: Sbp | str | Sequence[Sbp | str], *, out: Tensor | None = None) -> Tensor:
    """The gradients of a global tensor's shards, as a global tensor."""
@overload
def topk(x: Tensor, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices:
    """The k largest elements of each line along a dim, or with `largest=false` the smallest, and where they stood. They are always sorted, so `sorted` changes nothing; of equal ones the first are taken. NaN count as the largest."""
@overload
def topk(input: Tensor, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True, *, out: Sequence[Tensor] | None = None) -> _ValuesIndices: ...
@overload
def trace(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of the diagonal of a matrix."""
@overload
def trace(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def transpose(x: Tensor, dim0: builtins.int, dim1: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """Exchanges two dims."""
@overload
def transpose(input: Tensor, dim0: builtins.int, dim1: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1, out: Tensor | None = None) -> Tensor:
    """The integral along `dim` by the trapezoid rule: y are the values at `x`, a list or a tensor of y's shape, or at places that are `dx` apart."""
def trapz(y: Tensor, x: Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1, out: Tensor | None = None) -> Tensor:
    """The same as `trapezoid`."""
def triangular_solve(b: Tensor, A: Tensor, upper: builtins.bool = True, transpose: builtins.bool = False, unitriangular: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _SolutionCloned_coefficient:
    """The x of `A x = b` for a triangular A, and a copy of A. `linalg.solve_triangular` has more forms."""
@overload
def tril(x: Tensor, diagonal: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Zeros above a diagonal of the last two dims. Diagonal 0 is the main one; positive ones lie above it."""
@overload
def tril(input: Tensor, diagonal: builtins.int = 0, *, out: Tensor | None = None) -> Tensor: ...
def tril_(x: Tensor, diagonal: builtins.int = 0) -> Tensor:
    """`tril` in place: the result is written over the first argument."""
@overload
def tril_indices(rows: builtins.int, columns: builtins.int, *, offset: builtins.int = 0, dtype: _dtype = int64, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Where the elements on and below a diagonal of a matrix are: a row of row numbers and a row of column numbers."""
@overload
def tril_indices(row: builtins.int, col: builtins.int, *, offset: builtins.int = 0, dtype: _dtype = int64, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def tril_indices(rows: builtins.int, columns: builtins.int, offset: builtins.int, *, dtype: _dtype = int64, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Where the elements on and below a diagonal of a matrix are."""
@overload
def tril_indices(row: builtins.int, col: builtins.int, offset: builtins.int, *, dtype: _dtype = int64, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, margin: builtins.float = 1.0, p: builtins.float = 2.0, eps: builtins.float = 1e-6, swap: builtins.bool = False, reduction: str = "mean", out: Tensor | None = None) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) of rows, d the p-norm of their difference. With `swap` the nearer of d(anchor, negative) and d(positive, negative) counts."""
@overload
def triu(x: Tensor, diagonal: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Zeros below a diagonal of the last two dims. Diagonal 0 is the main one; positive ones lie above it."""
@overload
def triu(input: Tensor, diagonal: builtins.int = 0, *, out: Tensor | None = None) -> Tensor: ...
def triu_(x: Tensor, diagonal: builtins.int = 0) -> Tensor:
    """`triu` in place: the result is written over the first argument."""
@overload
def triu_indices(rows: builtins.int, columns: builtins.int, *, offset: builtins.int = 0, dtype: _dtype = int64, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Where the elements on and above a diagonal of a matrix are: a row of row numbers and a row of column numbers."""
@overload
def triu_indices(row: builtins.int, col: builtins.int, *, offset: builtins.int = 0, dtype: _dtype = int64, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def triu_indices(rows: builtins.int, columns: builtins.int, offset: builtins.int, *, dtype: _dtype = int64, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Where the elements on and above a diagonal of a matrix are."""
@overload
def triu_indices(row: builtins.int, col: builtins.int, offset: builtins.int, *, dtype: _dtype = int64, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def true_divide(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `div`."""
@overload
def true_divide(x: Tensor, s: Number, *, out: Tensor | None = None) -> Tensor:
    """The same as `div`."""
@overload
def true_divide(s: Number, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The same as `div`."""
@overload
def true_divide(a: Tensor, b: Tensor, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """The same as `div`."""
@overload
def true_divide(x: Tensor, s: Number, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """The same as `div`."""
@overload
def true_divide_(a: Tensor, b: Tensor) -> Tensor:
    """The same as `div_`."""
@overload
def true_divide_(x: Tensor, s: Number) -> Tensor:
    """The same as `div_`."""
@overload
def true_divide_(a: Tensor, b: Tensor, *, rounding_mode: str | None = None) -> Tensor:
    """The same as `div_`."""
@overload
def true_divide_(x: Tensor, s: Number, *, rounding_mode: str | None = None) -> Tensor:
    """The same as `div_`."""
@overload
def trunc(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The integer part: x rounded towards zero."""
@overload
def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def trunc_(x: Tensor) -> Tensor:
    """`trunc` in place: the result is written over the first argument."""
@overload
def trunc_(input: Tensor) -> Tensor: ...
@overload
def unbind(x: Tensor, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The slices along `dim`, without that dim."""
@overload
def unbind(input: Tensor, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def unflatten(x: Tensor, dim: builtins.int, sizes: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The dim `dim` as several dims of these sizes. One size may be -1: it follows from the others."""
@overload
def unflatten(input: Tensor, dim: builtins.int, sizes: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def unflatten(x: Tensor, dim: builtins.int, *sizes: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def unfold(x: Tensor, dim: builtins.int, size: builtins.int, step: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """The windows of `size` elements of `dim`, which begin `step` elements apart; the elements of a window are the last dim of the result."""
@overload
def unfold(input: Tensor, dimension: builtins.int, size: builtins.int, step: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def uniform_(x: Tensor, lo: builtins.float = 0.0, hi: builtins.float = 1.0, generator: Generator | None = None) -> Tensor:
    """x becomes uniform numbers from `lo` to below `hi`, in place."""
@overload
def uniform_(input: Tensor, lo: builtins.float = 0.0, to: builtins.float = 1.0, generator: Generator | None = None) -> Tensor: ...
@overload
def unique(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The distinct values, smallest first, as a tensor of one dim. NaN come last; no two are equal. A global result is B. It has no gradient, and no kernel for GPUs."""
@overload
def unique(x: Tensor, *, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The distinct values, smallest first; then, where asked for, the place among them of each element, in the shape of x, and how often each occurs. NaN come last; no two are equal. The call waits for the number of values. They are always `sorted`."""
@overload
def unique(x: Tensor, *, dim: builtins.int, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The distinct slices along a dim in the order of their elements; then, where asked for, the place of each slice among them, and how often each occurs. The call sorts once for each element of a slice, and waits for the number of slices."""
@overload
def unique_consecutive(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first element of each run of equal elements, in order. The call waits for the number of runs."""
@overload
def unique_consecutive(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def unique_consecutive(x: Tensor, *, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The first element of each run of equal elements, in order; then, where asked for, which run each element belongs to, in the shape of x, and how long each is. The call waits for the number of runs."""
@overload
def unique_consecutive(input: Tensor, *, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def unique_consecutive(x: Tensor, *, dim: builtins.int, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The slices along a dim without those that equal the one before; then, where asked for, the place of each slice among them, and how many each stands for. The call waits for the number of slices."""
@overload
def unique_consecutive(input: Tensor, *, dim: builtins.int, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def unravel_index(ids: Tensor, shape: builtins.int | Sequence[builtins.int], *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The coordinates in a tensor of that shape of places in row-major order: one tensor for each dim."""
@overload
def unravel_index(ids: Tensor, *shape: builtins.int, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
def unsafe_chunk(x: Tensor, parts: builtins.int, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The same as `chunk`."""
@overload
def unsafe_split(x: Tensor, size: builtins.int, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The same as `split`."""
@overload
def unsafe_split(x: Tensor, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The same as `split`."""
@overload
def unsafe_split_with_sizes(x: Tensor, size: builtins.int, dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The same as `split`."""
@overload
def unsafe_split_with_sizes(x: Tensor, sizes: builtins.int | Sequence[builtins.int], dim: builtins.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The same as `split`."""
@overload
def unsqueeze(x: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor:
    """A dim of size 1 more, at position `dim`."""
@overload
def unsqueeze(input: Tensor, dim: builtins.int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def vander(x: Tensor, columns: builtins.int | None = None, increasing: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The powers of each element of a list, one row each: `columns` of them (as many as elements unless given), from the highest to the power 0, or with `increasing` the other way round."""
@overload
def vander(x: Tensor, N: builtins.int | None = None, increasing: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def var(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Tensor | None = None) -> Tensor:
    """The variance over dims (none given: all): the sum of squared distances from the mean, divided by the number of elements less `correction`. With the default correction of 1 the variance is unbiased, and NaN for a single element."""
@overload
def var(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Tensor | None = None) -> Tensor: ...
@overload
def var(x: Tensor, dims: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The variance over dims, with a correction of 1 if `unbiased`, else of 0."""
@overload
def var(input: Tensor, dim: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def var(x: Tensor, unbiased: builtins.bool, *, out: Tensor | None = None) -> Tensor:
    """The variance of all elements, with a correction of 1 if `unbiased`, else of 0."""
@overload
def var(input: Tensor, unbiased: builtins.bool, *, out: Tensor | None = None) -> Tensor: ...
@overload
def var(x: Tensor, *dims: builtins.int, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Tensor | None = None) -> Tensor: ...
@overload
def var_mean(x: Tensor, dims: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Sequence[Tensor] | None = None) -> _VarMean:
    """The variance, as `var`, and the mean over dims (none given: all)."""
@overload
def var_mean(input: Tensor, dim: builtins.int | Sequence[builtins.int] = (), *, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Sequence[Tensor] | None = None) -> _VarMean: ...
@overload
def var_mean(x: Tensor, dims: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _VarMean:
    """The variance over dims, with a correction of 1 if `unbiased`, else of 0, and the mean."""
@overload
def var_mean(input: Tensor, dim: builtins.int | Sequence[builtins.int], unbiased: builtins.bool, keepdim: builtins.bool = False, *, out: Sequence[Tensor] | None = None) -> _VarMean: ...
@overload
def var_mean(x: Tensor, unbiased: builtins.bool, *, out: Sequence[Tensor] | None = None) -> _VarMean:
    """The variance of all elements, with a correction of 1 if `unbiased`, else of 0, and the mean."""
@overload
def var_mean(input: Tensor, unbiased: builtins.bool, *, out: Sequence[Tensor] | None = None) -> _VarMean: ...
@overload
def var_mean(x: Tensor, *dims: builtins.int, keepdim: builtins.bool = False, correction: builtins.float = 1.0, out: Sequence[Tensor] | None = None) -> _VarMean: ...
def vdot(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of the products of two vectors' elements, those of `a` conjugated."""
@overload
def view(x: Tensor, shape: builtins.int | Sequence[builtins.int], *, out: Tensor | None = None) -> Tensor:
    """The same elements as another shape, without a copy: a view. One size may be -1."""
@overload
def view(x: Tensor, dtype: _dtype, *, out: Tensor | None = None) -> Tensor:
    """The same bytes as elements of another dtype, without gradient, in the same memory. Where the elements have another size, so has the last dim."""
@overload
def view(x: Tensor, *shape: builtins.int, out: Tensor | None = None) -> Tensor: ...
def view_as(x: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`view` with the shape of another tensor."""
@overload
def view_as_complex(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Real numbers, of which a last dim of 2 has the real and the imaginary part, as complex ones without that dim. It is a copy."""
@overload
def view_as_complex(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def view_as_real(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers as real ones: a last dim of 2 has the real and the imaginary part. It is a copy."""
@overload
def view_as_real(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def vsplit(x: Tensor, sections: builtins.int, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """So many parts along dim 0."""
@overload
def vsplit(x: Tensor, indices: builtins.int | Sequence[builtins.int], *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The parts along dim 0 between these places."""
@overload
def vsplit(x: Tensor, *indices: builtins.int, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
@overload
def vstack(xs: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors as rows: along dim 0; tensors of one dim are rows of a matrix."""
@overload
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(cond: Tensor, a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a where cond is true, else b. The three shapes broadcast."""
@overload
def where(condition: Tensor, input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(cond: Tensor, a: Tensor, b: Number, *, out: Tensor | None = None) -> Tensor:
    """The element of `a` where the condition holds, else that of `b`."""
@overload
def where(condition: Tensor, input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(cond: Tensor, a: Number, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The element of `a` where the condition holds, else that of `b`."""
@overload
def where(condition: Tensor, input: Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(cond: Tensor, a: Number, b: Number, *, out: Tensor | None = None) -> Tensor:
    """One number where the condition holds, else the other."""
@overload
def where(condition: Tensor, input: Number, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def where(cond: Tensor, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Where the elements are that hold: for each dim a list of positions."""
@overload
def where(condition: Tensor, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]: ...
def wrap_index(ids: Tensor, size: builtins.int, dim: builtins.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Indices into dim `dim` of `size` elements as i64 that count from the front: negative ones count from the end."""
@overload
def xlog1py(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a log(1 + b), and 0 where a is zero."""
@overload
def xlog1py(a: Tensor, b: Number, *, out: Tensor | None = None) -> Tensor:
    """`xlog1py` with a number as b."""
@overload
def xlog1py(a: Number, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`xlog1py` with a number as a."""
def xlog1py_(a: Tensor, b: Tensor) -> Tensor:
    """`xlog1py` in place: the result is written over the first argument."""
@overload
def xlogy(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """a log(b), and 0 where a is zero."""
@overload
def xlogy(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def xlogy(a: Tensor, b: Number, *, out: Tensor | None = None) -> Tensor:
    """`xlogy` with a number as b."""
@overload
def xlogy(input: Tensor, other: Number, *, out: Tensor | None = None) -> Tensor: ...
@overload
def xlogy(a: Number, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`xlogy` with a number as a."""
@overload
def xlogy(input: Number, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def xlogy_(a: Tensor, b: Tensor) -> Tensor:
    """`xlogy` in place: the result is written over the first argument."""
@overload
def xlogy_(input: Tensor, other: Tensor) -> Tensor: ...
@overload
def zero_(x: Tensor) -> Tensor:
    """x becomes zero everywhere, in place."""
@overload
def zero_(input: Tensor) -> Tensor: ...
@overload
def zeros(shape: builtins.int | Sequence[builtins.int], *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """Zeros; f32 unless the target says otherwise."""
@overload
def zeros(size: builtins.int | Sequence[builtins.int], *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def zeros(*shape: builtins.int, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def zeros_like(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Zeros of the same shape, dtype and layout."""
@overload
def zeros_like(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def zeros_like(x: Tensor, *, dtype: _dtype, out: Tensor | None = None) -> Tensor:
    """Zeros of the same shape and layout, of that dtype."""
@overload
def zeros_like(input: Tensor, *, dtype: _dtype, out: Tensor | None = None) -> Tensor: ...
@overload
def zeta(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The zeta function of Hurwitz: the sum of (b + k)⁻ᵃ over all k from 0. It has a gradient by b only."""
@overload
def zeta(a: Tensor, b: Number, *, out: Tensor | None = None) -> Tensor:
    """`zeta` with a number as b."""
@overload
def zeta(a: Number, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`zeta` with a number as a."""
def zeta_(a: Tensor, b: Tensor) -> Tensor:
    """`zeta` in place: the result is written over the first argument."""
