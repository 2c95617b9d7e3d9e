"""Padding, images of another size, and regrouping of pixels, with PyTorch's arguments."""

from . import functional as F
from .module import Module


class _Pad(Module):
    _dims, _mode = 0, ""

    def __init__(self, padding):
        super().__init__()
        n = 2 * self._dims
        self.padding = list(padding) if isinstance(padding, (list, tuple)) else [padding] * n
        if len(self.padding) != n:
            raise ValueError(f"padding is {padding}; it needs 1 number, or {n}: before and after of each dim, the last first")

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{tuple(self.padding)}"


class _ConstantPad(_Pad):
    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={tuple(self.padding)}, value={self.value}"


class _ZeroPad(_Pad):
    _mode = "constant"


def _layers(word, base, mode, doc):
    words = ("one spatial dim", "two spatial dims", "three spatial dims")
    made = {"__module__": __name__, "_mode": mode}
    return [type(f"{word}{n}d", (base,), made | {"__doc__": doc.format(words[n - 1]), "_dims": n}) for n in (1, 2, 3)]


ConstantPad1d, ConstantPad2d, ConstantPad3d = _layers("ConstantPad", _ConstantPad, "constant", "A number around {}.")
ZeroPad1d, ZeroPad2d, ZeroPad3d = _layers("ZeroPad", _ZeroPad, "constant", "Zeros around {}.")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _layers("ReflectionPad", _Pad, "reflect", "The image, mirrored, around {}.")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _layers(
    "ReplicationPad", _Pad, "replicate", "The first and last elements around {}."
)
CircularPad1d, CircularPad2d, CircularPad3d = _layers("CircularPad", _Pad, "circular", "The image again around {}.")


class Upsample(Module):
    """Images ``[batch, channels, 1 to 3 spatial dims]`` of another size."""

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input):
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)

    def extra_repr(self):
        to = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{to}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images of two spatial dims of another size, by the nearest pixel."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Images of two spatial dims of another size, by weights of four pixels; the corners lie on each other."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """Squares of channels as squares of pixels: ``[..., C * r², H, W]`` becomes ``[..., C, H * r, W * r]``."""

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input):
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self):
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Squares of pixels as squares of channels: the inverse of ``PixelShuffle``."""

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input):
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self):
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """The channels in groups, taken in turn from each."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self):
        return f"groups={self.groups}"


class Unfold(Module):
    """The windows of images as columns."""

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input):
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """Images to which columns of windows are added at their places: the gradient of ``Unfold``."""

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input):
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self):
        sizes = f"output_size={self.output_size}, kernel_size={self.kernel_size}"
        return f"{sizes}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
