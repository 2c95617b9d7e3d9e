"""Attention with several heads between any sequences, with PyTorch's arguments and names of parameters."""

import math

import oflow

from . import functional as F
from . import init
from .layers import Linear, _size
from .module import Module


class MultiheadAttention(Module):
    """Queries, keys and values are projected, each head attends, and the heads together are projected. Shapes are ``[T, B, width]``, with
    ``batch_first`` ``[B, T, width]``, or ``[T, width]``. Gives the result and the weights of attention, or None."""

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        *,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        placement=None,
        sbp=None,
        dtype=None,
    ):
        super().__init__()
        self.embed_dim, self.num_heads = _size("embed_dim", embed_dim, 1), _size("num_heads", num_heads, 1)
        if embed_dim % num_heads:
            raise ValueError(f"a width of {embed_dim} cannot be cut into {num_heads} heads")
        if not 0.0 <= dropout <= 1.0:
            raise ValueError(f"the probability of dropping is between 0 and 1, not {dropout}")
        self.dropout, self.batch_first = float(dropout), bool(batch_first)
        self.kdim, self.vdim = kdim if kdim is not None else embed_dim, vdim if vdim is not None else embed_dim
        layout = init.where(device, placement, sbp, dtype)

        def xavier(rows, columns):
            return init.uniform([rows, columns], math.sqrt(6.0 / (rows + columns)), **layout)

        if kdim is None and vdim is None:
            self.in_proj_weight = xavier(3 * embed_dim, embed_dim)
        else:
            self.q_proj_weight = xavier(embed_dim, embed_dim)
            self.k_proj_weight = xavier(embed_dim, self.kdim)
            self.v_proj_weight = xavier(embed_dim, self.vdim)
        self.register_parameter("in_proj_bias", init.constant([3 * embed_dim], 0.0, **init.of_vectors(layout)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=False, **layout)
        if bias:
            self.out_proj.bias = init.constant([embed_dim], 0.0, **init.of_vectors(layout))

    def _projected(self, query, key, value):
        packed = self._parameters.get("in_proj_weight")
        if packed is not None and key is query and value is query:
            return F.linear(query, packed, self.in_proj_bias).chunk(3, -1)
        weights = packed.chunk(3, 0) if packed is not None else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = self.in_proj_bias.chunk(3, 0) if self.in_proj_bias is not None else (None,) * 3
        return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]

    def _mask(self, attn_mask, key_padding_mask, b, tq, tk, dtype):
        """Both masks as one that attention takes: True where a query sees a key, or floats that are added."""
        if attn_mask is not None:
            attn_mask = attn_mask.reshape([b, self.num_heads, tq, tk] if attn_mask.ndim == 3 else [1, 1, tq, tk])
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.reshape([b, 1, 1, tk])
        masks = [m for m in (attn_mask, key_padding_mask) if m is not None]
        if not masks:
            return None
        if all(m.dtype == oflow.bool for m in masks):
            hidden = masks[0] if len(masks) == 1 else masks[0].logical_or(masks[1])
            return hidden.logical_not()
        added = [(m.cast(dtype) * 0).masked_fill(m, -math.inf) if m.dtype == oflow.bool else m for m in masks]
        return added[0] if len(added) == 1 else added[0] + added[1]

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        batched = query.ndim == 3
        if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
            raise ValueError("attention takes [T, B, width], or [B, T, width] with batch_first, or [T, width]")
        same = key is query and value is query

        def turned(x):
            return x.unsqueeze(0) if not batched else x if self.batch_first else x.transpose(0, 1)

        query = turned(query)
        key, value = (query, query) if same else (turned(key), turned(value))
        q, k, v = self._projected(query, key, value)
        b, tq, tk = q.shape[0], q.shape[1], k.shape[1]
        q, k, v = (
            x.reshape([b, t, self.num_heads, -1]).permute([0, 2, 1, 3]) for x, t in ((q, tq), (k, tk), (v, tk))
        )
        # PyTorch's is_causal says of the mask that it is the causal one; without a mask it is one here.
        mask = self._mask(attn_mask, key_padding_mask, b, tq, tk, q.dtype)
        causal = is_causal and attn_mask is None
        dropout = self.dropout if self.training else 0.0
        weights = None
        if not need_weights and not (causal and mask is not None):
            y = F.scaled_dot_product_attention(q, k, v, mask, dropout, causal)
        else:
            weights = F._attention_weights(q, k, mask, dropout, causal)
            y = weights @ v
        y = self.out_proj(y.permute([0, 2, 1, 3]).reshape([b, tq, -1]))
        y = y.squeeze(0) if not batched else y if self.batch_first else y.transpose(0, 1)
        if weights is None or not need_weights:
            return y, None
        weights = weights.mean(1) if average_attn_weights else weights
        return y, weights if batched else weights.squeeze(0)

    def extra_repr(self):
        return f"{self.embed_dim}, num_heads={self.num_heads}, dropout={self.dropout}, batch_first={self.batch_first}"


class RotaryEmbedding(Module):
    """Rotary position embedding of queries and keys ``[..., positions, width]``, by tables of cosines and sines for ``positions``
    positions, of which pair i of n turns by ``position / scaling / base ** (i / n)``. The tables are buffers that are not saved. Gives
    what the layer of that name in Rust gives."""

    def __init__(
        self,
        width,
        positions,
        base=10000.0,
        scaling=1.0,
        interleaved=False,
        *,
        device=None,
        placement=None,
        sbp=None,
        dtype=None,
    ):
        super().__init__()
        self.width, self.positions = _size("width", width), _size("positions", positions)
        if width % 2:
            raise ValueError(f"expected an even number of elements, got {width}")
        if not (base > 0 and scaling > 0):
            raise ValueError(f"base {base} and scaling {scaling} are positive")
        self.base, self.scaling, self.interleaved = base, scaling, bool(interleaved)
        pairs = width // 2
        angles = [p / scaling / base ** (i / pairs) for p in range(positions) for i in range(pairs)]
        layout = init.where(device, placement, sbp)
        for name, of in (("cos", math.cos), ("sin", math.sin)):
            table = oflow.tensor([of(a) for a in angles], dtype=oflow.float64, **layout).reshape(positions, pairs)
            self.register_buffer(name, table.cast(dtype or oflow.float32), persistent=False)

    def forward(self, x, offset=0):
        """``x`` with its pairs turned; its first position is ``offset``: 0, or the length of a cache of keys."""
        given = x.shape[-2] if x.ndim > 1 else 0
        if offset < 0 or offset + given > self.positions:
            raise ValueError(f"{given} positions from {offset} on; the tables have {self.positions}")
        cos, sin = (t.narrow(0, offset, given).cast(x.dtype) for t in (self.cos, self.sin))
        return F.rotary_embedding(x, cos, sin, self.interleaved)

    def extra_repr(self):
        return f"{self.width}, {self.positions}, base={self.base}, scaling={self.scaling}, interleaved={self.interleaved}"
