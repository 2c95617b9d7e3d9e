# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any
from .._oflow import Tensor, device, placement
from .drawn import Drawn
from .parameter import Parameter

class _Conv(Drawn):
    padding_mode: str
    in_channels: int
    out_channels: int
    kernel_size: list[int]
    stride: list[int]
    dilation: list[int]
    padding: list[int] | Any
    output_padding: list[int]
    groups: int
    weight: Parameter
    bias: Parameter | Any
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = 'zeros', *, output_padding: Any = 0, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class Conv1d(_Conv): ...

class Conv2d(_Conv): ...

class Conv3d(_Conv): ...

class _ConvTranspose(_Conv):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = 'zeros', **layout: Any) -> None: ...
    def forward(self, input: Tensor, output_size: Any = None) -> Tensor: ...

class ConvTranspose1d(_ConvTranspose): ...

class ConvTranspose2d(_ConvTranspose): ...

class ConvTranspose3d(_ConvTranspose): ...
