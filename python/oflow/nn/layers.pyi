# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any
from .._oflow import Tensor, device, placement
from .module import Module
from .parameter import Parameter

class Linear(Module):
    in_features: int
    out_features: int
    weight: Parameter
    bias: Parameter | Any
    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class Bilinear(Module):
    in1_features: int
    in2_features: int
    out_features: int
    weight: Parameter
    bias: Parameter | Any
    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, input1: Tensor, input2: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class LinearCrossEntropyLoss(Module):
    num_classes: int
    out_features: tuple[Any, ...]
    reduction: str
    ignore_index: Any
    label_smoothing: float
    options: Any
    weight: Tensor | Any
    linear: Linear
    def __init__(self, in_features: int, num_classes: int, *, out_features: Any = ..., bias: bool = False, reduction: str = 'mean', weight: Tensor | None = None, ignore_index: Any = None, label_smoothing: float = 0.0, options: Any = None, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> Tensor: ...

class Embedding(Module):
    num_embeddings: int
    embedding_dim: int
    padding_idx: int | Any
    max_norm: Any
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool
    weight: Parameter
    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, *, std: float = 1.0, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class EmbeddingBag(Module):
    num_embeddings: int
    embedding_dim: int
    mode: str
    include_last_offset: bool
    max_norm: Any
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool
    padding_idx: int | Any
    weight: Parameter
    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: Any = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = 'mean', sparse: bool = False, *, include_last_offset: bool = False, padding_idx: Any = None, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor: ...
    def extra_repr(self) -> str: ...

class LayerNorm(Module):
    normalized_shape: tuple[int, ...]
    eps: float
    weight: Parameter | Any
    bias: Parameter | Any
    def __init__(self, normalized_shape: Any, eps: float = 1e-05, elementwise_affine: bool = True, bias: bool = True, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class RMSNorm(Module):
    normalized_shape: tuple[int, ...]
    eps: Any
    weight: Parameter | Any
    def __init__(self, normalized_shape: Any, eps: Any = None, elementwise_affine: bool = True, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class PReLU(Module):
    num_parameters: int
    weight: Parameter
    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class Threshold(Module):
    threshold: Any
    value: Any
    inplace: bool
    def __init__(self, threshold: Any, value: Any, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class Identity(Module):
    def __init__(self, *_args: Any, **_kwargs: Any) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...

class Flatten(Module):
    start_dim: int
    end_dim: int
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class Unflatten(Module):
    dim: Any
    unflattened_size: tuple[Any, ...]
    def __init__(self, dim: Any, unflattened_size: Any) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...
