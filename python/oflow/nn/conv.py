"""Convolutions, pooling and the norms of channels, with PyTorch's arguments and initial values."""

import oflow

from . import functional as F
from . import init
from .layers import _size
from .module import Module


def _numbers(name, value, dims, least=0):
    """One number for each spatial dim."""
    all_of = list(value) if isinstance(value, (list, tuple)) else [value] * dims
    if len(all_of) != dims:
        raise ValueError(f"{name} is {value}; it needs 1 number, or {dims}, one per spatial dim")
    return [_size(name, v, least) for v in all_of]


class _Conv(Module):
    _dims, _transposed = 0, False

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", *,
        output_padding=0, device=None, placement=None, sbp=None, dtype=None,
    ):
        super().__init__()
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"padding_mode is zeros, reflect, replicate or circular, not {padding_mode!r}")
        if self._transposed and padding_mode != "zeros":
            raise ValueError(f'a transposed convolution pads with "zeros" only, not {padding_mode!r}')
        self.padding_mode = padding_mode
        n = self._dims
        self.in_channels, self.out_channels = _size("in_channels", in_channels), _size("out_channels", out_channels)
        self.kernel_size = _numbers("kernel_size", kernel_size, n, 1)
        self.stride, self.dilation = _numbers("stride", stride, n, 1), _numbers("dilation", dilation, n, 1)
        self.padding = padding if isinstance(padding, str) else _numbers("padding", padding, n)
        self.output_padding = _numbers("output_padding", output_padding, n)
        self.groups = _size("groups", groups, 1)
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{in_channels} and {out_channels} channels do not fall in {groups} groups")
        channels = [in_channels, out_channels // groups] if self._transposed else [out_channels, in_channels // groups]
        fan = channels[1]
        for k in self.kernel_size:
            fan *= k
        layout, bound = init.where(device, placement, sbp, dtype), 1.0 / max(fan, 1) ** 0.5
        self.weight = init.uniform(channels + self.kernel_size, bound, **layout)
        if bias:
            self.bias = init.uniform([out_channels], bound, **init.of_vectors(layout))
        else:
            self.register_parameter("bias", None)

    def forward(self, x):
        if self._transposed:
            call = getattr(F, f"conv_transpose{self._dims}d")
            return call(x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        call = getattr(F, f"conv{self._dims}d")
        if self.padding_mode != "zeros":
            x = F.pad(x, self._around(), self.padding_mode)
            return call(x, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return call(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def _around(self):
        """Elements before and after the last dim, then the one before it, and so on."""
        if self.padding == "valid":
            pairs = [(0, 0)] * self._dims
        elif isinstance(self.padding, str):
            reach = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            pairs = [(r // 2, r - r // 2) for r in reach]
        else:
            pairs = [(p, p) for p in self.padding]
        return [p for pair in reversed(pairs) for p in pair]

    def extra_repr(self):
        more = "".join(
            f", {name}={value}"
            for name, value, usual in (
                ("stride", self.stride, [1] * self._dims), ("padding", self.padding, [0] * self._dims),
                ("dilation", self.dilation, [1] * self._dims), ("groups", self.groups, 1), ("bias", self.bias is not None, True),
                ("padding_mode", self.padding_mode, "zeros"),
            )
            if value != usual
        )
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}{more}"


class Conv1d(_Conv):
    """A convolution over one spatial dim. SBP S(0) on the weight splits the output channels, S(1) the input channels."""

    _dims = 1


class Conv2d(_Conv):
    """A convolution over two spatial dims. SBP S(0) on the weight splits the output channels, S(1) the input channels."""

    _dims = 2


class Conv3d(_Conv):
    """A convolution over three spatial dims. SBP S(0) on the weight splits the output channels, S(1) the input channels."""

    _dims = 3


class _ConvTranspose(_Conv):
    _transposed = True

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
        padding_mode="zeros", **layout,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
            output_padding=output_padding, **layout,
        )


class ConvTranspose1d(_ConvTranspose):
    """A transposed convolution over one spatial dim: the gradient of a convolution."""

    _dims = 1


class ConvTranspose2d(_ConvTranspose):
    """A transposed convolution over two spatial dims: the gradient of a convolution."""

    _dims = 2


class ConvTranspose3d(_ConvTranspose):
    """A transposed convolution over three spatial dims: the gradient of a convolution."""

    _dims = 3


class _MaxPool(Module):
    _dims = 0

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, x):
        call = getattr(F, f"max_pool{self._dims}d")
        return call(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)

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

    def forward(self, x):
        more = () if self._dims == 1 else (self.divisor_override,)
        call = getattr(F, f"avg_pool{self._dims}d")
        return call(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, *more)

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

    def forward(self, x):
        return getattr(F, self._function)(x, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


def _adaptive(name, function, doc):
    return type(name, (_Adaptive,), {"__doc__": doc, "__module__": __name__, "_function": function})


AdaptiveMaxPool1d = _adaptive("AdaptiveMaxPool1d", "adaptive_max_pool1d", "The largest elements of windows that cover one spatial dim.")
AdaptiveMaxPool2d = _adaptive("AdaptiveMaxPool2d", "adaptive_max_pool2d", "The largest elements of windows that cover two spatial dims.")
AdaptiveMaxPool3d = _adaptive("AdaptiveMaxPool3d", "adaptive_max_pool3d", "The largest elements of windows that cover three spatial dims.")
AdaptiveAvgPool1d = _adaptive("AdaptiveAvgPool1d", "adaptive_avg_pool1d", "The averages of windows that cover one spatial dim.")
AdaptiveAvgPool2d = _adaptive("AdaptiveAvgPool2d", "adaptive_avg_pool2d", "The averages of windows that cover two spatial dims.")
AdaptiveAvgPool3d = _adaptive("AdaptiveAvgPool3d", "adaptive_avg_pool3d", "The averages of windows that cover three spatial dims.")


class _BatchNorm(Module):
    _ranks = ()

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, *, device=None, placement=None, sbp=None, dtype=None,
    ):
        super().__init__()
        if momentum is None:
            raise NotImplementedError("a momentum of None (plain averages of all batches) is not there yet; give a number")
        self.num_features, self.eps, self.momentum = _size("num_features", num_features), eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        layout = init.where(device, placement, sbp, dtype)
        for name, value in (("weight", 1.0), ("bias", 0.0)):
            if affine:
                setattr(self, name, init.constant([num_features], value, **layout))
            else:
                self.register_parameter(name, None)
        for name, value in (("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, oflow.full([num_features], value, **layout) if track_running_stats else None)

    def _check(self, x):
        if x.ndim not in self._ranks:
            raise ValueError(f"{type(self).__name__} takes a tensor of {' or '.join(map(str, self._ranks))} dims, not {x.ndim}")

    def forward(self, x):
        self._check(x)
        batch = self.training or not self.track_running_stats
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, batch, self.momentum, self.eps)

    def extra_repr(self):
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, track_running_stats={self.track_running_stats}"


class BatchNorm1d(_BatchNorm):
    """Batch norm of ``[batch, channels]`` or ``[batch, channels, length]``: statistics of the logical batch, however it is split."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of ``[batch, channels, height, width]``: statistics of the logical batch, however it is split."""

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch norm of three spatial dims: statistics of the logical batch, however it is split."""

    _ranks = (5,)


class _InstanceNorm(_BatchNorm):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, **layout):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, **layout)

    def forward(self, x):
        self._check(x)
        own = self.training or not self.track_running_stats
        return F.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias, own, self.momentum, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Instance norm of ``[batch, channels, length]``."""

    _ranks = (3,)


class InstanceNorm2d(_InstanceNorm):
    """Instance norm of ``[batch, channels, height, width]``."""

    _ranks = (4,)


class InstanceNorm3d(_InstanceNorm):
    """Instance norm of three spatial dims."""

    _ranks = (5,)


class GroupNorm(Module):
    """Group norm of ``[batch, channels, ...]``: each group of channels of each image with mean 0 and variance 1, then scale and shift."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, *, device=None, placement=None, sbp=None, dtype=None):
        super().__init__()
        self.num_groups, self.num_channels = _size("num_groups", num_groups, 1), _size("num_channels", num_channels)
        if num_channels % num_groups:
            raise ValueError(f"{num_channels} channels do not fall in {num_groups} groups of as many")
        self.eps, self.affine = eps, affine
        layout = init.where(device, placement, sbp, dtype)
        for name, value in (("weight", 1.0), ("bias", 0.0)):
            if affine:
                setattr(self, name, init.constant([num_channels], value, **layout))
            else:
                self.register_parameter(name, None)

    def forward(self, x):
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
