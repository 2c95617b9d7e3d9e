"""Pooling, with PyTorch's arguments."""

from . import functional as F
from .module import Module


class _MaxPool(Module):
    _dims = 0

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input):
        call = getattr(F, f"max_pool{self._dims}d")
        return call(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride or self.kernel_size}, padding={self.padding}"


class MaxPool1d(_MaxPool):
    """The largest element of each window of one spatial dim."""

    _dims = 1


class MaxPool2d(_MaxPool):
    """The largest element of each window of two spatial dims."""

    _dims = 2


class MaxPool3d(_MaxPool):
    """The largest element of each window of three spatial dims."""

    _dims = 3


class _AvgPool(Module):
    _dims = 0

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input):
        more = () if self._dims == 1 else (self.divisor_override,)
        call = getattr(F, f"avg_pool{self._dims}d")
        return call(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, *more)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride or self.kernel_size}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """The average of each window of one spatial dim."""

    _dims = 1

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2d(_AvgPool):
    """The average of each window of two spatial dims."""

    _dims = 2


class AvgPool3d(_AvgPool):
    """The average of each window of three spatial dims."""

    _dims = 3


class _Adaptive(Module):
    _function = ""

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return getattr(F, self._function)(input, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size, return_indices=False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input):
        return getattr(F, self._function)(input, self.output_size, self.return_indices)


def _adaptive(base, name, function, doc):
    return type(name, (base,), {"__doc__": doc, "__module__": __name__, "_function": function})


_DIMS = {1: "one spatial dim", 2: "two spatial dims", 3: "three spatial dims"}

AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = (
    _adaptive(_AdaptiveMax, f"AdaptiveMaxPool{n}d", f"adaptive_max_pool{n}d", f"The largest elements of windows that cover {dims}.")
    for n, dims in _DIMS.items()
)
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = (
    _adaptive(_Adaptive, f"AdaptiveAvgPool{n}d", f"adaptive_avg_pool{n}d", f"The averages of windows that cover {dims}.")
    for n, dims in _DIMS.items()
)


class _LPPool(Module):
    _dims = 0

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input):
        return getattr(F, f"lp_pool{self._dims}d")(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self):
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPool):
    """The p-norm of each window of one spatial dim, p = ``norm_type``."""

    _dims = 1


class LPPool2d(_LPPool):
    """The p-norm of each window of two spatial dims, p = ``norm_type``."""

    _dims = 2


class LPPool3d(_LPPool):
    """The p-norm of each window of three spatial dims, p = ``norm_type``."""

    _dims = 3


class _MaxUnpool(Module):
    _dims = 0

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, input, indices, output_size=None):
        call = getattr(F, f"max_unpool{self._dims}d")
        return call(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride or self.kernel_size}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """The elements of a max pooling over one spatial dim at their places, and zeros elsewhere."""

    _dims = 1


class MaxUnpool2d(_MaxUnpool):
    """The elements of a max pooling over two spatial dims at their places, and zeros elsewhere."""

    _dims = 2


class MaxUnpool3d(_MaxUnpool):
    """The elements of a max pooling over three spatial dims at their places, and zeros elsewhere."""

    _dims = 3


class _FractionalMaxPool(Module):
    _dims = 0

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{type(self).__name__} takes either output_size or output_ratio")
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input):
        call = getattr(F, f"fractional_max_pool{self._dims}d")
        return call(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples)

    def extra_repr(self):
        to = f"output_size={self.output_size}" if self.output_ratio is None else f"output_ratio={self.output_ratio}"
        return f"kernel_size={self.kernel_size}, {to}"


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest elements of windows over two spatial dims, whose places are random: ``output_size`` windows in each dim, or the size
    times ``output_ratio``."""

    _dims = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest elements of windows over three spatial dims, whose places are random: ``output_size`` windows in each dim, or the size
    times ``output_ratio``."""

    _dims = 3
