# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any
from .._oflow import Tensor

def embedding(input: Tensor, weight: Tensor, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor: ...
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: Any = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = 'mean', sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: Any = None) -> Tensor: ...
