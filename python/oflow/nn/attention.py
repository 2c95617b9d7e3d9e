"""Attention with several heads between any sequences, with PyTorch's arguments and names of parameters."""

import math

import oflow

from . import functional as F
from . import init
from .layers import Linear, _size
from .module import Module
from .multihead import attended, projected, reported


class MultiheadAttention(Module):
    """Queries, keys and values are projected, each head attends, and the heads together are projected. Shapes are ``[T, B, width]``, with
    ``batch_first`` ``[B, T, width]``, or ``[T, width]``. Gives the result and the weights of attention, or None."""

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        *,
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
        self.dropout, self.batch_first, self.add_zero_attn = float(dropout), bool(batch_first), bool(add_zero_attn)
        self.kdim, self.vdim = kdim if kdim is not None else embed_dim, vdim if vdim is not None else embed_dim
        layout = init.where(device, placement, sbp, dtype)

        def xavier(rows, columns):
            return init.uniform([rows, columns], math.sqrt(6.0 / (rows + columns)), **layout)

        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = xavier(3 * embed_dim, embed_dim)
        else:
            self.q_proj_weight = xavier(embed_dim, embed_dim)
            self.k_proj_weight = xavier(embed_dim, self.kdim)
            self.v_proj_weight = xavier(embed_dim, self.vdim)
        self.register_parameter("in_proj_bias", init.constant([3 * embed_dim], 0.0, **init.of_vectors(layout)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=False, **layout)
        if bias:
            self.out_proj.bias = init.constant([embed_dim], 0.0, **init.of_vectors(layout))
        for name in ("bias_k", "bias_v"):
            made = init.normal([1, 1, embed_dim], embed_dim**-0.5, **init.of_vectors(layout)) if add_bias_kv else None
            self.register_parameter(name, made)

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
        packed = self._parameters.get("in_proj_weight")
        separate = None if packed is not None else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        q, k, v = projected(query, key, value, packed, self.in_proj_bias, separate)
        y, weights = attended(
            q,
            k,
            v,
            self.num_heads,
            attn_mask,
            key_padding_mask,
            need_weights,
            # PyTorch's is_causal says of the mask that it is the causal one; without a mask it is one here.
            is_causal and attn_mask is None,
            self.dropout if self.training else 0.0,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
        )
        y = self.out_proj(y)
        y = y.squeeze(0) if not batched else y if self.batch_first else y.transpose(0, 1)
        return y, reported(weights, batched, need_weights, average_attn_weights)

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
