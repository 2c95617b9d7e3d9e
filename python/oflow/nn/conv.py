"""Convolutions, with PyTorch's arguments and initial values."""

from . import functional as F
from . import init
from .layers import _size
from .drawn import Drawn


def _numbers(name, value, dims, least=0) -> list[int]:
    """One number for each spatial dim."""
    all_of = list(value) if isinstance(value, (list, tuple)) else [value] * dims
    if len(all_of) != dims:
        raise ValueError(f"{name} is {value}; it needs 1 number, or {dims}, one per spatial dim")
    return [_size(name, v, least) for v in all_of]


class _Conv(Drawn):
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

    def forward(self, input):
        call = getattr(F, f"conv{self._dims}d")
        if self.padding_mode != "zeros":
            input = F.pad(input, self._around(), self.padding_mode)
            return call(input, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return call(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

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

    def forward(self, input, output_size=None):
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        call = getattr(F, f"conv_transpose{self._dims}d")
        return call(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra(self, input, output_size):
        """The elements at the end that make the result of this size."""
        n = self._dims
        sizes = list(output_size)[-n:]
        if len(output_size) not in (n, input.ndim):
            raise ValueError(f"output_size has {n} or {input.ndim} numbers, not {len(output_size)}")
        extra = []
        for d, (size, long) in enumerate(zip(sizes, input.shape[-n:])):
            least = (long - 1) * self.stride[d] - 2 * self.padding[d] + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            if not least <= size < least + self.stride[d]:
                raise ValueError(f"spatial dim {d} of the result has {least} to {least + self.stride[d] - 1} elements, not {size}")
            extra.append(size - least)
        return extra


class ConvTranspose1d(_ConvTranspose):
    """A transposed convolution over one spatial dim: the gradient of a convolution."""

    _dims = 1


class ConvTranspose2d(_ConvTranspose):
    """A transposed convolution over two spatial dims: the gradient of a convolution."""

    _dims = 2


class ConvTranspose3d(_ConvTranspose):
    """A transposed convolution over three spatial dims: the gradient of a convolution."""

    _dims = 3
