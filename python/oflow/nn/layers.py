"""Layers with parameters. Parameters have the initial values of PyTorch's layers, and for the same seed those of the
layers of the same names in Rust."""

import math

import oflow

from .. import _core
from . import functional as F
from . import init
from .drawn import Drawn
from .module import Module


def _size(name, value, least=0) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is an integer, not {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} is at least {least}, not {value}")
    return value


class Linear(Drawn):
    """``x weightᵀ + bias``. Weight ``[out_features, in_features]`` and bias are uniform in ±1/√in_features.

    SBP S(0) on the weight splits the outputs ("column parallel"), S(1) splits the inputs ("row parallel"); the bias is then whole.
    """

    def __init__(self, in_features, out_features, bias=True, *, device=None, placement=None, sbp=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = _size("in_features", in_features), _size("out_features", out_features)
        layout, bound = init.where(device, placement, sbp, dtype), 1.0 / max(in_features, 1) ** 0.5
        self.weight = init.uniform([out_features, in_features], bound, **layout)
        if bias:
            self.bias = init.uniform([out_features], bound, **init.of_vectors(layout))
        else:
            self.register_parameter("bias", None)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Drawn):
    """``input1ᵀ W input2`` for each matrix W of the weight ``[out_features, in1_features, in2_features]``, plus bias, which are uniform in
    ±1/√in1_features."""

    def __init__(
        self, in1_features, in2_features, out_features, bias=True, *, device=None, placement=None, sbp=None, dtype=None
    ):
        super().__init__()
        self.in1_features, self.in2_features = _size("in1_features", in1_features, 1), _size("in2_features", in2_features, 1)
        self.out_features = _size("out_features", out_features)
        layout, bound = init.where(device, placement, sbp, dtype), in1_features**-0.5
        self.weight = init.uniform([out_features, in1_features, in2_features], bound, **layout)
        self.register_parameter("bias", init.uniform([out_features], bound, **init.of_vectors(layout)) if bias else None)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


class LinearCrossEntropyLoss(Module):
    """The cross entropy of the logits that its linear layer ``linear`` gives: of ``num_classes`` classes, for each place of
    ``out_features``."""

    def __init__(
        self,
        in_features,
        num_classes,
        *,
        out_features=(),
        bias=False,
        reduction="mean",
        weight=None,
        ignore_index=None,
        label_smoothing=0.0,
        options=None,
        device=None,
        placement=None,
        sbp=None,
        dtype=None,
    ):
        super().__init__()
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ValueError(f"the weight has shape {list(weight.shape)} for {num_classes} classes")
        self.num_classes, self.out_features = _size("num_classes", num_classes), tuple(out_features)
        self.reduction, self.ignore_index, self.label_smoothing = reduction, ignore_index, label_smoothing
        self.options = options
        self.register_buffer("weight", weight)
        layout = init.where(device, placement, sbp, dtype)
        self.linear = Linear(in_features, math.prod(self.out_features, start=num_classes), bias, **layout)

    def forward(self, input, target):
        shape, bias = [self.num_classes, *self.out_features], self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape([*shape, self.linear.in_features]),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )


class Embedding(Drawn):
    """A table ``[num_embeddings, embedding_dim]`` of vectors, read by index, normally distributed with standard deviation ``std``.

    SBP S(0) splits the vocabulary, S(1) splits each vector.
    """

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        *,
        std=1.0,
        device=None,
        placement=None,
        sbp=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings = _size("num_embeddings", num_embeddings)
        self.embedding_dim = _size("embedding_dim", embedding_dim)
        self.padding_idx = _padding(padding_idx, num_embeddings)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        layout = init.where(device, placement, sbp, dtype)
        self.weight = init.normal([num_embeddings, embedding_dim], std, **layout)
        _without(self.weight, self.padding_idx)

    def reset_parameters(self) -> None:
        """Draws the table anew, in place, without the row of padding."""
        super().reset_parameters()
        _without(self.weight, self.padding_idx)

    def forward(self, input):
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


def _padding(index, rows) -> int | None:
    """The row at which padding is, counted from the front."""
    if index is None:
        return None
    if not -rows <= index < rows:
        raise ValueError(f"padding_idx {index} is not within the {rows} rows of the table")
    return index % rows


def _without(weight, index):
    """Sets a row of a table to 0."""
    if index is not None:
        place = oflow.full([], index, dtype=oflow.int64, **_core.beside(weight))
        row = oflow.one_hot(place, weight.shape[0]) != 0
        with oflow.no_grad():
            weight.copy_(weight.detach().masked_fill(row.unsqueeze(-1), 0.0))


class EmbeddingBag(Drawn):
    """A table of vectors, of which each bag of indices gives one: the ``"sum"``, the ``"mean"`` or the ``"max"`` of its vectors."""

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        *,
        include_last_offset=False,
        padding_idx=None,
        device=None,
        placement=None,
        sbp=None,
        dtype=None,
    ):
        super().__init__()
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f'the mode is "sum", "mean" or "max", not {mode!r}')
        self.num_embeddings = _size("num_embeddings", num_embeddings)
        self.embedding_dim = _size("embedding_dim", embedding_dim)
        self.mode, self.include_last_offset = mode, bool(include_last_offset)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.padding_idx = _padding(padding_idx, num_embeddings)
        self.weight = init.normal([num_embeddings, embedding_dim], 1.0, **init.where(device, placement, sbp, dtype))
        _without(self.weight, self.padding_idx)

    def reset_parameters(self) -> None:
        """Draws the table anew, in place, without the row of padding."""
        super().reset_parameters()
        _without(self.weight, self.padding_idx)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


def _normalized(shape) -> tuple[int, ...]:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if not shape:
        raise ValueError("normalized_shape has at least one dim")
    return tuple(_size("normalized_shape", s) for s in shape)


class LayerNorm(Drawn):
    """Layer norm over the last dims, those of ``normalized_shape``: mean 0 and variance 1, then a scale and a shift."""

    def __init__(
        self,
        normalized_shape,
        eps=1e-5,
        elementwise_affine=True,
        bias=True,
        *,
        device=None,
        placement=None,
        sbp=None,
        dtype=None,
    ):
        super().__init__()
        self.normalized_shape, self.eps = _normalized(normalized_shape), eps
        layout = init.where(device, placement, sbp, dtype)
        for name, value, wanted in (("weight", 1.0, True), ("bias", 0.0, bias)):
            made = init.constant(self.normalized_shape, value, **layout) if elementwise_affine and wanted else None
            self.register_parameter(name, made)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Drawn):
    """RMS norm over the last dims, those of ``normalized_shape``: root mean square 1, then a scale. ``eps`` is the distance from 1 to the
    next number of the input's dtype (for halves of float32) unless given."""

    def __init__(
        self, normalized_shape, eps=None, elementwise_affine=True, *, device=None, placement=None, sbp=None, dtype=None
    ):
        super().__init__()
        self.normalized_shape, self.eps = _normalized(normalized_shape), eps
        layout = init.where(device, placement, sbp, dtype)
        made = init.constant(self.normalized_shape, 1.0, **layout) if elementwise_affine else None
        self.register_parameter("weight", made)

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}"


def _filled(n, value, *layout):
    return init.constant([n], value, **init.where(*layout))


class PReLU(Drawn):
    """x, or ``weight`` x where x is not above 0. ``num_parameters`` is 1, or the number of channels, dim 1."""

    def __init__(self, num_parameters=1, init=0.25, *, device=None, placement=None, sbp=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        _size("num_parameters", num_parameters, least=1)
        self.register_parameter("weight", _filled(num_parameters, init, device, placement, sbp, dtype))

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class Threshold(Module):
    """x where it is above ``threshold``, else ``value``."""

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        return f"threshold={self.threshold}, value={self.value}"


class Identity(Module):
    """Returns its input."""

    def __init__(self, *_args, **_kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Flatten(Module):
    """Makes one dim of the dims from ``start_dim`` to ``end_dim``."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Makes of one dim the dims of ``unflattened_size``."""

    def __init__(self, dim, unflattened_size):
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
