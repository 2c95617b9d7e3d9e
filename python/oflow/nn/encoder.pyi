# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any
from .._oflow import Tensor, device, placement
from .attention import MultiheadAttention
from .containers import ModuleList
from .dropout import Dropout
from .layers import Linear
from .module import Module

class _Layer(Module):
    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention
    linear1: Linear
    dropout: Dropout
    linear2: Linear
    norm_first: bool
    activation: Any
    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = ..., layer_norm_eps: float = 1e-05, batch_first: bool = False, norm_first: bool = False, bias: bool = True, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...

class TransformerEncoderLayer(_Layer):
    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False) -> Tensor: ...

class TransformerDecoderLayer(_Layer):
    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor: ...

class _Stack(Module):
    layers: ModuleList
    num_layers: int
    norm: Any
    def __init__(self, layer: Any, num_layers: int, norm: Any = None) -> None: ...

class TransformerEncoder(_Stack):
    def __init__(self, encoder_layer: Any, num_layers: int, norm: Any = None) -> None: ...
    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: Any = None) -> Tensor: ...

class TransformerDecoder(_Stack):
    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None: ...
    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: Any = None, memory_is_causal: bool = False) -> Tensor: ...

class Transformer(Module):
    encoder: TransformerEncoder | Any
    decoder: TransformerDecoder | Any
    d_model: int
    nhead: int
    batch_first: bool
    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = ..., custom_encoder: Any = None, custom_decoder: Any = None, layer_norm_eps: float = 1e-05, batch_first: bool = False, norm_first: bool = False, bias: bool = True, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, src_is_causal: Any = None, tgt_is_causal: Any = None, memory_is_causal: bool = False) -> Tensor: ...
    @staticmethod
    def generate_square_subsequent_mask(sz: Any, device: device | str | None = None, dtype: Any = None) -> Tensor: ...
