# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any
from .._oflow import Tensor, device, placement
from .layers import Linear
from .module import Module
from .parameter import Parameter

class MultiheadAttention(Module):
    embed_dim: int
    num_heads: int
    dropout: float
    batch_first: bool
    add_zero_attn: bool
    kdim: int | Any
    vdim: int | Any
    in_proj_weight: Any
    q_proj_weight: Any
    k_proj_weight: Any
    v_proj_weight: Any
    in_proj_bias: Parameter | Any
    out_proj: Linear
    bias_k: Parameter | Any
    bias_v: Parameter | Any
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: Any = None, vdim: Any = None, batch_first: bool = False, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | Any]: ...
    def extra_repr(self) -> str: ...

class RotaryEmbedding(Module):
    width: int
    positions: int
    base: float
    scaling: float
    interleaved: bool
    cos: Tensor
    sin: Tensor
    def __init__(self, width: int, positions: Any, base: float = 10000.0, scaling: float = 1.0, interleaved: bool = False, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, x: Tensor, offset: int = 0) -> Tensor: ...
    def extra_repr(self) -> str: ...
