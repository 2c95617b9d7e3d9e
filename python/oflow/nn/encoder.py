"""PyTorch's transformer: layers of encoder and decoder, stacks of them, and both together. Weights have PyTorch's names."""

import copy
import math

import oflow

from . import functional as F
from . import init
from .attention import MultiheadAttention
from .containers import ModuleList
from .dropout import Dropout
from .layers import LayerNorm, Linear
from .module import Module


def _activation(activation):
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise ValueError(f'the activation is "relu", "gelu" or a function, not {activation!r}')
    return getattr(F, activation)


class _Layer(Module):
    """The parts that both kinds of layers have: attention to itself, two linear layers, and norms."""

    _norms = 2

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        *,
        device=None,
        placement=None,
        sbp=None,
        dtype=None,
    ):
        super().__init__()
        layout = init.where(device, placement, sbp, dtype)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **layout)
        if self._norms == 3:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **layout)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **layout)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **layout)
        self.norm_first, self.activation = bool(norm_first), _activation(activation)
        for n in range(1, self._norms + 1):
            setattr(self, f"norm{n}", LayerNorm(d_model, layer_norm_eps, bias=bias, **init.of_vectors(layout)))
            setattr(self, f"dropout{n}", Dropout(dropout))

    def _self_attention(self, x, mask, padding, is_causal):
        y, _ = self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)
        return self.dropout1(y)

    def _feed_forward(self, x, drop):
        return drop(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself and two linear layers, each with a residual and a norm: after it, or with ``norm_first``
    before. Shapes are ``[T, B, d_model]``, with ``batch_first`` ``[B, T, d_model]``, or ``[T, d_model]``."""

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x = src
        if self.norm_first:
            x = x + self._self_attention(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._feed_forward(self.norm2(x), self.dropout2)
        x = self.norm1(x + self._self_attention(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._feed_forward(x, self.dropout2))


class TransformerDecoderLayer(_Layer):
    """As ``TransformerEncoderLayer``, with attention to a second sequence, ``memory``, between the two parts."""

    _norms = 3

    def _memory_attention(self, x, memory, mask, padding, is_causal):
        y, _ = self.multihead_attn(x, memory, memory, padding, False, mask, is_causal=is_causal)
        return self.dropout2(y)

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
        memory_is_causal=False,
    ):
        x = tgt
        if self.norm_first:
            x = x + self._self_attention(self.norm1(x), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._memory_attention(self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal)
            return x + self._feed_forward(self.norm3(x), self.dropout3)
        x = self.norm1(x + self._self_attention(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self.norm2(x + self._memory_attention(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self.norm3(x + self._feed_forward(x, self.dropout3))


class _Stack(Module):
    def __init__(self, layer, num_layers, norm=None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _normed(self, x):
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """``num_layers`` copies of an encoder layer, one after another, and a norm if there is one."""

    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, bool(is_causal))
        return self._normed(x)


class TransformerDecoder(_Stack):
    """``num_layers`` copies of a decoder layer, one after another, and a norm if there is one."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                bool(tgt_is_causal),
                memory_is_causal,
            )
        return self._normed(x)


class Transformer(Module):
    """An encoder of ``src`` and a decoder of ``tgt`` that attends to what it gives. Matrices begin uniform by Glorot's rule."""

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        *,
        device=None,
        placement=None,
        sbp=None,
        dtype=None,
    ):
        super().__init__()
        layout = init.where(device, placement, sbp, dtype)

        def norm():
            return LayerNorm(d_model, layer_norm_eps, bias=bias, **init.of_vectors(layout))

        how = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is None:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*how, **layout), num_encoder_layers, norm())
        else:
            self.encoder = custom_encoder
        if custom_decoder is None:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*how, **layout), num_decoder_layers, norm())
        else:
            self.decoder = custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, bool(batch_first)
        with oflow.no_grad():
            for parameter in self.parameters():
                if parameter.ndim > 1:
                    bound = math.sqrt(6.0 / (parameter.shape[0] + parameter.shape[1]))
                    parameter.uniform_(-bound, bound)

    def forward(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        src_is_causal=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ValueError(f"a batch of {src.shape[batch]} sequences to encode and {tgt.shape[batch]} to decode")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ValueError(f"sequences have {src.shape[-1]} and {tgt.shape[-1]} elements, not {self.d_model}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """The mask ``[sz, sz]`` that is added to scores: 0 where a query sees a key, -inf after it."""
        layout = init.where(device=device, dtype=dtype)
        return oflow.full([sz, sz], -math.inf, **layout).triu(1)
