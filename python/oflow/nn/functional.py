"""The functions of networks under PyTorch's names and with its arguments. All of them take local and global tensors."""

import math

import oflow

from .. import _core


def _same(name, *, also=None):
    """The function of that name of the table, with the doc of it."""

    def function(input):
        return getattr(oflow, also or name)(input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of each element."
    return function


relu = _same("relu")
silu = _same("silu")
mish = _same("mish")
sigmoid = _same("sigmoid")
tanh = _same("tanh")
softsign = _same("softsign")
hardsigmoid = _same("hardsigmoid")
hardswish = _same("hardswish")
tanhshrink = _same("tanhshrink")
selu = _same("selu")
relu6 = _same("relu6")
logsigmoid = _same("logsigmoid", also="log_sigmoid")


def gelu(input, approximate="none"):
    """GELU of each element; with ``approximate="tanh"`` by the tanh approximation."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f'approximate is "none" or "tanh", not {approximate!r}')
    return oflow.gelu(input) if approximate == "none" else oflow.gelu_tanh(input)


def leaky_relu(input, negative_slope=0.01):
    """x, or ``negative_slope`` x where x is negative."""
    return oflow.leaky_relu(input, alpha=negative_slope)


def prelu(input, weight):
    """x, or ``weight`` x where x is not above 0. The weight is one number, or one for each channel, dim 1."""
    return oflow.prelu(input, weight)


def glu(input, dim=-1):
    """a sigmoid(b), where a and b are the halves of the input along ``dim``."""
    return oflow.glu(input, dim)


def celu(input, alpha=1.0):
    """x, or ``alpha`` (exp(x / alpha) - 1) where x is negative."""
    return oflow.celu(input, alpha=alpha)


def threshold(input, threshold, value):
    """x where it is above ``threshold``, else ``value``."""
    return oflow.threshold(input, threshold, value)


def elu(input, alpha=1.0):
    """x, or ``alpha`` (exp(x) - 1) where x is negative."""
    return oflow.elu(input, alpha=alpha)


def softplus(input, beta=1.0, threshold=20.0):
    """log(1 + exp(beta x)) / beta; x itself where beta x is above ``threshold``."""
    return oflow.softplus(input, beta=beta, threshold=threshold)


def hardtanh(input, min_val=-1.0, max_val=1.0):
    """x within the two values."""
    return oflow.hardtanh(input, lo=min_val, hi=max_val)


def hardshrink(input, lambd=0.5):
    """x, or 0 where x is within ±lambd."""
    return oflow.hardshrink(input, lambd=lambd)


def softshrink(input, lambd=0.5):
    """x moved towards 0 by ``lambd``, or 0 where x is within ±lambd."""
    return oflow.softshrink(input, lambd=lambd)


def softmax(input, dim):
    """Softmax over a dim."""
    return oflow.softmax(input, dim=dim)


def log_softmax(input, dim):
    """Logarithm of softmax over a dim."""
    return oflow.log_softmax(input, dim=dim)


def dropout(input, p=0.5, training=True, *, generator=None):
    """Sets elements to zero with probability ``p`` and scales the others by 1 / (1 - p). Without ``training`` returns the input."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"the probability of dropping is between 0 and 1, not {p}")
    if not training:
        return input
    return oflow.dropout(input, p) if generator is None else oflow.dropout(input, p, generator=generator)


def linear(input, weight, bias=None):
    """``input weightᵀ + bias``."""
    return oflow.linear(input, weight, bias)


def embedding(input, weight, padding_idx=None):
    """The rows of ``weight`` at the indices ``input``. The row at ``padding_idx`` gets no gradient."""
    y = oflow.embedding(weight, input)
    if padding_idx is None:
        return y
    padding_idx = padding_idx + weight.shape[0] if padding_idx < 0 else padding_idx
    return oflow.where((input == padding_idx).unsqueeze(-1), y.detach(), y)


def one_hot(tensor, num_classes):
    """A last dim of ``num_classes`` with 1 at the index and 0 elsewhere."""
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


def _attention_weights(query, key, mask, dropout_p, causal):
    """The weights of attention, of which dropout sets some to 0."""
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)
    if causal:
        seen = (scores.detach() * 0 + 1).tril(0) != 0
        scores = scores.masked_fill(seen.logical_not(), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -math.inf) if mask.dtype == oflow.bool else scores + mask
    if causal or mask is not None:
        # Queries that see nothing: their softmax would be NaN.
        blind = scores.detach().amax(-1, keepdim=True) == -math.inf
        weights = oflow.softmax(scores.masked_fill(blind, 0.0), dim=-1).masked_fill(blind, 0.0)
    else:
        weights = oflow.softmax(scores, dim=-1)
    return oflow.dropout(weights, dropout_p) if dropout_p > 0.0 else weights


def embedding_bag(
    input,
    weight,
    offsets=None,
    *,
    mode="mean",
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """The rows of ``weight`` that each bag names, reduced: rows of ``input`` of two dims, or a list of ids and the ``offsets`` at which
    bags start."""
    return oflow.embedding_bag(
        weight,
        input,
        offsets,
        mode=mode,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )


def _reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}')


def cross_entropy(input, target, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Cross entropy of logits ``[C]``, ``[N, C]`` or ``[N, C, ...]`` and class indices (``[N, ...]``) or probabilities (of the shape of
    the logits). ``"mean"`` is over the rows that are not ignored, by their weights. ``oflow.cross_entropy`` is the same with another
    dim of classes, its ``dim``, where one is given, and ignores no index unless told."""
    return oflow.cross_entropy(
        input,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def mse_loss(input, target, *, reduction="mean"):
    """(input - target)² of each element, reduced."""
    return _reduced((input - target) ** 2, reduction)


def l1_loss(input, target, *, reduction="mean"):
    """|input - target| of each element, reduced."""
    return _reduced((input - target).abs(), reduction)


def huber_loss(input, target, reduction="mean", delta=1.0):
    """Half of the squared difference within ``delta``, and linear beyond, reduced."""
    if delta <= 0:
        raise ValueError(f"delta is above 0, not {delta}")
    apart = (input - target).abs()
    near = apart.clamp(0.0, delta)
    return _reduced(near * (apart - near * 0.5), reduction)


def smooth_l1_loss(input, target, *, reduction="mean", beta=1.0):
    """``huber_loss`` divided by ``beta``; ``l1_loss`` where beta is 0."""
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return huber_loss(input, target, reduction, beta) / beta


def binary_cross_entropy_with_logits(input, target, *, reduction="mean"):
    """Binary cross entropy of logits and probabilities, reduced."""
    return _reduced(softplus(input) - input * target, reduction)


def nll_loss(input, target, weight=None, *, ignore_index=-100, reduction="mean"):
    """Negative log likelihood of log probabilities ``[C]``, ``[N, C]`` or ``[N, C, ...]`` and class indices. ``"mean"`` is over the rows
    that are not ignored, by their weights."""
    return oflow.nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, *, reduction="mean"):
    """The mean over all classes but the target of max(0, margin - x[target] + x) to the power p, reduced over rows."""
    return oflow.multi_margin_loss(input, target, p=p, margin=margin, weight=weight, reduction=reduction)


def multilabel_margin_loss(input, target, *, reduction="mean"):
    """max(0, 1 - x[y] + x[c]) of labels y and classes c that are none, divided by the number of classes, reduced over rows. Labels
    end at the first -1 of a row."""
    return oflow.multilabel_margin_loss(input, target, reduction=reduction)


def multilabel_soft_margin_loss(input, target, weight=None, *, reduction="mean"):
    """Binary cross entropy of logits, its mean over the last dim, reduced over rows."""
    return oflow.multilabel_soft_margin_loss(input, target, weight=weight, reduction=reduction)


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """Divides by the norm over a dim, at least ``eps``; only the norm of p = 2."""
    if p != 2.0:
        raise NotImplementedError(f"normalize knows the norm of p = 2, not of p = {p}")
    return input / (input * input).sum(dim, keepdim=True).sqrt().clamp(eps, float("inf"))


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


def _max_pool(name):
    @_named(name)
    def function(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        call = getattr(oflow, f"{name}_with_indices" if return_indices else name)
        return call(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    return function


def _avg_pool(name):
    @_named(name)
    def function(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, *divisor_override):
        stride = [] if stride is None else stride
        return getattr(oflow, name)(input, kernel_size, stride, padding, ceil_mode, count_include_pad, *divisor_override)

    return function


def _adaptive(name):
    @_named(name)
    def function(input, output_size):
        return getattr(oflow, name)(input, output_size)

    return function


conv1d, conv2d, conv3d = (_convolution(f"conv{n}d") for n in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_transposed(f"conv_transpose{n}d") for n in (1, 2, 3))
max_pool1d, max_pool2d, max_pool3d = (_max_pool(f"max_pool{n}d") for n in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(f"avg_pool{n}d") for n in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive(f"adaptive_max_pool{n}d") for n in (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive(f"adaptive_avg_pool{n}d") for n in (1, 2, 3))


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
def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):
    """The negative log likelihood of targets under all their alignments with log-probabilities ``[T, N, C]``. Lengths are tensors,
    lists or tuples. The gradient is that of the log-probabilities as they are."""

    def lengths(of):
        if isinstance(of, oflow.Tensor):
            return of
        made = oflow.tensor(list(of) if hasattr(of, "__iter__") else of, dtype=oflow.int64)
        return oflow.distribute(made, **_core.beside(log_probs)) if log_probs.is_global else made

    return oflow.ctc_loss(
        log_probs,
        targets,
        lengths(input_lengths),
        lengths(target_lengths),
        blank=blank,
        reduction=reduction,
        zero_infinity=zero_infinity,
    )
