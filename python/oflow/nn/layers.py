"""Layers with parameters, and dropout. Parameters have the initial values of PyTorch's layers, and for the same seed those of the
layers of the same names in Rust."""

import oflow

from .. import _core
from . import functional as F
from . import init
from .module import Module


def _size(name, value, least=0):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is an integer, not {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} is at least {least}, not {value}")
    return value


class Linear(Module):
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

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    """A table ``[num_embeddings, embedding_dim]`` of vectors, read by index, normally distributed with standard deviation ``std``.

    SBP S(0) splits the vocabulary, S(1) splits each vector.
    """

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
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
        layout = init.where(device, placement, sbp, dtype)
        self.weight = init.normal([num_embeddings, embedding_dim], std, **layout)
        _without(self.weight, self.padding_idx)

    def forward(self, ids):
        return F.embedding(ids, self.weight, self.padding_idx)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


def _padding(index, rows):
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


class EmbeddingBag(Module):
    """A table of vectors, of which each bag of indices gives one: the ``"sum"``, the ``"mean"`` or the ``"max"`` of its vectors."""

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        *,
        mode="mean",
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
        self.padding_idx = _padding(padding_idx, num_embeddings)
        self.weight = init.normal([num_embeddings, embedding_dim], 1.0, **init.where(device, placement, sbp, dtype))
        _without(self.weight, self.padding_idx)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


def _normalized(shape):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if not shape:
        raise ValueError("normalized_shape has at least one dim")
    return tuple(_size("normalized_shape", s) for s in shape)


class LayerNorm(Module):
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

    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
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

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}"


def _filled(n, value, *layout):
    return init.constant([n], value, **init.where(*layout))


class PReLU(Module):
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

    def __init__(self, threshold, value):
        super().__init__()
        self.threshold, self.value = threshold, value

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value)

    def extra_repr(self):
        return f"threshold={self.threshold}, value={self.value}"


class Dropout(Module):
    """In training mode sets elements to zero with probability ``p`` and multiplies the others by 1 / (1 - p); in evaluation mode
    returns its input. The mask does not depend on placement or SBP."""

    def __init__(self, p=0.5):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"the probability of dropping is between 0 and 1, not {p}")
        self.p = p

    def forward(self, x):
        if self.training and self.p == 0.0:
            # The number is drawn all the same: later ones must not depend on a rate being zero.
            _core.draw(x)
            return x
        return F.dropout(x, self.p, self.training)

    def extra_repr(self):
        return f"p={self.p}"


class Identity(Module):
    """Returns its input."""

    def __init__(self, *_args, **_kwargs):
        super().__init__()

    def forward(self, x):
        return x


class Flatten(Module):
    """Makes one dim of the dims from ``start_dim`` to ``end_dim``."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x):
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
