"""Pooling of 1 to 3 spatial dims under PyTorch's names and with its arguments."""

import math

import oflow

from .. import _core


def _named(name, doc=None):
    """Gives a function the name and the doc of that name of the table."""

    def named(function):
        function.__name__ = function.__qualname__ = name
        function.__doc__ = doc or getattr(oflow, name).__doc__
        return function

    return named


def _each(value):
    """A number, or one for each dim, as a list; none is empty."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _max_pool(name):
    @_named(name)
    def function(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        call = getattr(oflow, f"{name}_with_indices" if return_indices else name)
        return call(input, kernel_size, _each(stride), padding, dilation, ceil_mode)

    return function


@_named("avg_pool1d")
def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    return oflow.avg_pool1d(input, kernel_size, _each(stride), padding, ceil_mode, count_include_pad)


def _avg_pool(name):
    @_named(name)
    def function(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        return getattr(oflow, name)(input, kernel_size, _each(stride), padding, ceil_mode, count_include_pad, divisor_override)

    return function


def _sizes(input, output_size, dims):
    """The sizes that an adaptive pooling is asked for: None is that of the input."""
    sizes = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * dims
    own = input.shape[-len(sizes) :] if 0 < len(sizes) <= input.ndim else sizes
    return [n if size is None else size for size, n in zip(sizes, own)]


def _adaptive_max(name, dims):
    @_named(name)
    def function(input, output_size, return_indices=False):
        call = getattr(oflow, f"{name}_with_indices" if return_indices else name)
        return call(input, _sizes(input, output_size, dims))

    return function


def _adaptive_avg(name, dims):
    @_named(name)
    def function(input, output_size):
        return getattr(oflow, name)(input, _sizes(input, output_size, dims))

    return function


def _lp_pool(name, dims):
    @_named(name)
    def function(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        return getattr(oflow, name)(input, float(norm_type), kernel_size, _each(stride), ceil_mode)

    return function


def _max_unpool(name, dims):
    @_named(name)
    def function(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        sizes = _each(output_size)
        # The size of the whole result may be given too.
        sizes = sizes[2:] if len(sizes) == dims + 2 else sizes
        return getattr(oflow, name)(input, indices, kernel_size, _each(stride), padding, sizes)

    return function


def _fractional(name, dims):
    doc = (
        f"The largest elements of windows over {dims} spatial dims, whose places are random: ``output_size`` windows in each dim, or the "
        "size times ``output_ratio``."
    )

    @_named(name, doc)
    def function(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{name} takes either output_size or output_ratio")
        if output_size is None:
            ratios = _each(output_ratio)
            ratios = ratios * dims if len(ratios) == 1 else ratios
            output_size = [math.floor(n * ratio) for n, ratio in zip(input.shape[-dims:], ratios)]
        if _random_samples is None:
            batch = input.shape[0] if input.ndim == dims + 2 else 1
            shape = [batch, input.shape[-dims - 1], dims]
            _random_samples = oflow.rand(shape, dtype=input.dtype, **_core.beside(input))
        values, indices = getattr(oflow, name)(input, kernel_size, _each(output_size), _random_samples)
        return (values, indices) if return_indices else values

    return function


max_pool1d, max_pool2d, max_pool3d = (_max_pool(f"max_pool{n}d") for n in (1, 2, 3))
avg_pool2d, avg_pool3d = (_avg_pool(f"avg_pool{n}d") for n in (2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive_max(f"adaptive_max_pool{n}d", n) for n in (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive_avg(f"adaptive_avg_pool{n}d", n) for n in (1, 2, 3))
lp_pool1d, lp_pool2d, lp_pool3d = (_lp_pool(f"lp_pool{n}d", n) for n in (1, 2, 3))
max_unpool1d, max_unpool2d, max_unpool3d = (_max_unpool(f"max_unpool{n}d", n) for n in (1, 2, 3))
fractional_max_pool2d, fractional_max_pool3d = (_fractional(f"fractional_max_pool{n}d", n) for n in (2, 3))
