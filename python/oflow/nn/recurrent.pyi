# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any, overload
from .._oflow import Tensor, device, placement
from .drawn import Drawn
from .parameter import Parameter
from .utils.rnn import PackedSequence

class _Recurrent(Drawn):
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int
    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def extra_repr(self) -> str: ...

class LSTM(_Recurrent):
    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
    @overload
    def __call__(self, input: Tensor, hx: Any = None) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
    @overload
    def __call__(self, input: PackedSequence, hx: Any = None) -> tuple[PackedSequence, tuple[Tensor, Tensor]]: ...

class GRU(_Recurrent):
    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def __call__(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def __call__(self, input: PackedSequence, hx: Any = None) -> tuple[PackedSequence, Tensor]: ...

class RNN(_Recurrent):
    nonlinearity: str
    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = 'tanh', *args: Any, **options: Any) -> None: ...
    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def __call__(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def __call__(self, input: PackedSequence, hx: Any = None) -> tuple[PackedSequence, Tensor]: ...

class _Cell(Drawn):
    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | Any
    bias_hh: Parameter | Any
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, *, device: device | str | None = None, placement: placement | None = None, sbp: Any = None, dtype: Any = None) -> None: ...
    def extra_repr(self) -> str: ...

class LSTMCell(_Cell):
    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]: ...

class GRUCell(_Cell):
    def forward(self, input: Tensor, hx: Any = None) -> Tensor: ...

class RNNCell(_Cell):
    nonlinearity: str
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = 'tanh', **options: Any) -> None: ...
    def forward(self, input: Tensor, hx: Any = None) -> Tensor: ...
