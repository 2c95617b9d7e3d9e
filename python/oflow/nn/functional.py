"""The functions of networks under PyTorch's names and with its arguments. All of them take local and global tensors."""

import oflow

from .dropping import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout  # noqa: F401
from .linear_cross_entropy import linear_cross_entropy  # noqa: F401
from .losses import (  # noqa: F401
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cross_entropy,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from .multihead import multi_head_attention_forward  # noqa: F401
from .pools import (  # noqa: F401
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    fractional_max_pool2d,
    fractional_max_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from .tables import embedding, embedding_bag  # noqa: F401


def _call(name, input, inplace, **options):
    """The function of that name of the table, or its form in place."""
    return getattr(oflow, f"{name}_" if inplace else name)(input, **options)


def _same(name, *, also=None):
    """The function of that name of the table, with the doc of it."""

    def function(input):
        return getattr(oflow, also or name)(input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of each element."
    return function


def _also_in_place(name):
    """The function of that name, which also writes its result over the input."""

    def function(input, inplace=False):
        return _call(name, input, inplace)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of each element; with ``inplace`` it is written over the input."
    return function


relu = _also_in_place("relu")
silu = _also_in_place("silu")
mish = _also_in_place("mish")
hardsigmoid = _also_in_place("hardsigmoid")
hardswish = _also_in_place("hardswish")
selu = _also_in_place("selu")
relu6 = _also_in_place("relu6")
sigmoid = _same("sigmoid")
tanh = _same("tanh")
tanhshrink = _same("tanhshrink")
logsigmoid = _same("logsigmoid", also="log_sigmoid")
relu_, selu_ = oflow.relu_, oflow.selu_


def softsign(input):
    """x / (1 + |x|)."""
    return oflow.softsign(input) if input.dtype.is_floating_point else input / (input.abs() + 1)


def gelu(input, approximate="none"):
    """GELU of each element; with ``approximate="tanh"`` by the tanh approximation."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f'approximate is "none" or "tanh", not {approximate!r}')
    return oflow.gelu(input) if approximate == "none" else oflow.gelu_tanh(input)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x, or ``negative_slope`` x where x is negative."""
    return _call("leaky_relu", input, inplace, alpha=negative_slope)


def leaky_relu_(input, negative_slope=0.01):
    """``leaky_relu``, written over the input."""
    return leaky_relu(input, negative_slope, True)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False, *, generator=None):
    """x, or a slope times x where x is not above 0: with ``training`` each element has a random one between the two bounds, else all
    have their mean."""
    # Backward reads what is written over.
    y = oflow.rrelu(input.copy() if inplace else input, lower, upper, training, generator=generator)
    return input.copy_(y) if inplace else y


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """``rrelu``, written over the input."""
    return rrelu(input, lower, upper, training, True)


def prelu(input, weight):
    """x, or ``weight`` x where x is not above 0. The weight is one number, or one for each channel, dim 1."""
    return oflow.prelu(input, weight)


def glu(input, dim=-1):
    """a sigmoid(b), where a and b are the halves of the input along ``dim``."""
    return oflow.glu(input, dim)


def celu(input, alpha=1.0, inplace=False):
    """x, or ``alpha`` (exp(x / alpha) - 1) where x is negative."""
    return _call("celu", input, inplace, alpha=alpha)


def celu_(input, alpha=1.0):
    """``celu``, written over the input."""
    return celu(input, alpha, True)


def threshold(input, threshold, value, inplace=False):
    """x where it is above ``threshold``, else ``value``."""
    return _call("threshold", input, inplace, threshold=threshold, value=value)


threshold_ = oflow.threshold_


def elu(input, alpha=1.0, inplace=False):
    """x, or ``alpha`` (exp(x) - 1) where x is negative."""
    return _call("elu", input, inplace, alpha=alpha)


def elu_(input, alpha=1.0):
    """``elu``, written over the input."""
    return elu(input, alpha, True)


def softplus(input, beta=1.0, threshold=20.0):
    """log(1 + exp(beta x)) / beta; x itself where beta x is above ``threshold``."""
    return oflow.softplus(input, beta=beta, threshold=threshold)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x within the two values."""
    return _call("hardtanh", input, inplace, lo=min_val, hi=max_val)


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """``hardtanh``, written over the input."""
    return hardtanh(input, min_val, max_val, True)


def hardshrink(input, lambd=0.5):
    """x, or 0 where x is within ±lambd."""
    return oflow.hardshrink(input, lambd=lambd)


def softshrink(input, lambd=0.5):
    """x moved towards 0 by ``lambd``, or 0 where x is within ±lambd."""
    return oflow.softshrink(input, lambd=lambd)


def _over(name, input, dim, dtype):
    # Without a dim it is the one that PyTorch takes: of classes.
    dim = (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim
    return getattr(oflow, name)(input if dtype is None else input.cast(dtype), dim=dim)


def softmax(input, dim=None, *, dtype=None):
    """Softmax over a dim: without one over dim 0 of tensors of 0, 1 or 3 dims, and dim 1 of others. ``dtype`` converts the input first."""
    return _over("softmax", input, dim, dtype)


def softmin(input, dim=None, *, dtype=None):
    """Softmax of the negative input, with the arguments of ``softmax``."""
    return _over("softmax", -input, dim, dtype)


def log_softmax(input, dim=None, *, dtype=None):
    """Logarithm of softmax, with the arguments of ``softmax``."""
    return _over("log_softmax", input, dim, dtype)


def gumbel_softmax(logits, tau=1.0, hard=False, *, dim=-1, generator=None):
    """Random choices among the categories along ``dim``: the softmax of (logits + Gumbel noise) / ``tau``. With ``hard`` the result is
    one-hot, and the gradient is that of the softmax."""
    return oflow.gumbel_softmax(logits, tau, hard, dim, generator=generator)


def linear(input, weight, bias=None):
    """``input weightᵀ + bias``."""
    return oflow.linear(input, weight, bias)


def bilinear(input1, input2, weight, bias=None):
    """``input1ᵀ W input2`` for each matrix W of ``weight``, plus ``bias``, row by row."""
    return oflow.bilinear(input1, input2, weight, bias)


def one_hot(tensor, num_classes=-1):
    """A last dim of ``num_classes`` with 1 at the index and 0 elsewhere. -1 is one more than the largest index, which is read."""
    if num_classes == -1:
        if tensor.numel() == 0:
            raise ValueError("no classes can be counted in a tensor without elements; give num_classes")
        num_classes = int(tensor.amax().item()) + 1
    return oflow.one_hot(tensor, num_classes)


def _axes(input, normalized_shape, name):
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or tuple(input.shape[-len(shape) :]) != shape:
        raise ValueError(f"{name} over {list(shape)} does not fit an input of shape {list(input.shape)}")
    return len(shape)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Layer norm over the last dims."""
    axes = _axes(input, normalized_shape, "layer_norm")
    if axes == 1:
        return oflow.layer_norm(input, weight, bias, eps)
    return oflow.layer_norm(input, weight, bias, eps, axes=axes)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """RMS norm over the last dims. ``eps`` is the distance from 1 to the next number of the input's dtype (for halves of
    float32) unless given."""
    return oflow.rms_norm(input, weight, eps, axes=_axes(input, normalized_shape, "rms_norm"))


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False
):
    """softmax(scale q kᵀ + mask) v over the last two dims. A bool mask is true where a query sees a key, a float mask is added. Without
    mask and dropout the scores never lie in memory. A query that sees no key gives 0."""
    return oflow.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """Divides by the p-norm over a dim, at least ``eps``."""
    return oflow.normalize(input, p, dim, eps=eps)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divides each element of ``[batch, channels, ...]`` by (k + alpha a)^beta, where a is the mean of the squares at its place in ``size``
    channels around its own."""
    return oflow.local_response_norm(input, size, alpha, beta, k)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between two tensors along a dim; norms below ``eps`` count as ``eps``."""
    return oflow.cosine_similarity(x1, x2, dim, eps=eps)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dim."""
    return oflow.pairwise_distance(x1, x2, p=p, eps=eps, keepdim=keepdim)


def pdist(input, p=2.0):
    """The p-norms of the differences of each two rows of a matrix: the upper triangle of ``cdist(x, x)``, row by row."""
    return oflow.pdist(input, p)


def _named(name):
    """Gives a function the name and the doc of that name of the table."""

    def named(function):
        function.__name__ = function.__qualname__ = name
        function.__doc__ = getattr(oflow, name).__doc__
        return function

    return named


def _convolution(name):
    @_named(name)
    def function(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        # A word is another overload, by keyword.
        return getattr(oflow, name)(input, weight, bias, stride, padding=padding, dilation=dilation, groups=groups)

    return function


def _transposed(name):
    @_named(name)
    def function(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        return getattr(oflow, name)(input, weight, bias, stride, padding, output_padding, groups, dilation)

    return function


conv1d, conv2d, conv3d = (_convolution(f"conv{n}d") for n in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_transposed(f"conv_transpose{n}d") for n in (1, 2, 3))


def pad(input, pad, mode="constant", value=None):
    """``input`` with elements around it: ``pad`` has a number before and one after for the last dim, then for the one before it, and so
    on. ``"constant"`` puts ``value`` there and cuts where a number is negative; ``"reflect"``, ``"replicate"`` and ``"circular"`` repeat
    elements of the tensor."""
    return oflow.pad(input, list(pad), mode=mode, value=0 if value is None else value)


def _each(value):
    """A number, or one for each dim, as a list; none is empty."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False
):
    """An image ``[batch, channels, 1 to 3 spatial dims]`` with other spatial sizes: nearest, nearest-exact, linear, bilinear, bicubic,
    trilinear or area."""
    return oflow.interpolate(
        input,
        _each(size),
        scale_factor=[float(s) for s in _each(scale_factor)],
        mode=mode,
        align_corners=align_corners,
        recompute_scale_factor=recompute_scale_factor,
        antialias=antialias,
    )


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """``interpolate``."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """``interpolate`` by the nearest element."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """``interpolate`` by weights of four pixels; the corners lie on each other."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """An image ``[batch, channels, 2 or 3 spatial dims]`` at the places of a grid ``[batch, 2 or 3 dims, 2 or 3]``, whose last dim is x, y
    and z, from -1 to 1 over the image."""
    return oflow.grid_sample(input, grid, mode=mode, padding_mode=padding_mode, align_corners=bool(align_corners))


def affine_grid(theta, size, align_corners=None):
    """The grid of affine maps ``theta`` for ``grid_sample`` to a result of ``size``."""
    return oflow.affine_grid(theta, list(size), align_corners=bool(align_corners))


def rotary_embedding(x, cos, sin, interleaved=False):
    """Rotary position embedding: pairs of the elements of each row of ``x`` turned by angles whose cosines and sines are given."""
    return oflow.rotary_embedding(x, cos, sin, interleaved=interleaved)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of images ``[batch, channels, height, width]`` as columns ``[batch, channels * elements of a window, windows]``."""
    return oflow.im2col(input, _each(kernel_size), _each(dilation), _each(padding), _each(stride))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Images of ``output_size`` to which columns of windows are added at their places: the gradient of ``unfold``."""
    return oflow.col2im(
        input, _each(output_size), _each(kernel_size), _each(dilation), _each(padding), _each(stride)
    )


@_named("pixel_shuffle")
def pixel_shuffle(input, upscale_factor):
    return oflow.pixel_shuffle(input, upscale_factor)


@_named("pixel_unshuffle")
def pixel_unshuffle(input, downscale_factor):
    return oflow.pixel_unshuffle(input, downscale_factor)


@_named("channel_shuffle")
def channel_shuffle(input, groups):
    return oflow.channel_shuffle(input, groups)


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Each channel with mean 0 and variance 1: those of the logical batch with ``training``, else the running ones."""
    return oflow.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    """Each channel of each image with mean 0 and variance 1."""
    return oflow.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Each group of channels of each image with mean 0 and variance 1."""
    return oflow.group_norm(input, num_groups, weight, bias, eps)
