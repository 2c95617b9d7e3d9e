# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple
from typing import TypeAlias
from .._oflow import Tensor

_Params: TypeAlias = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]]

class _IncompatibleKeys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]

class Optimizer:
    defaults: dict[str, Any]
    param_groups: list[dict[str, Any]]
    def __init__(self, params: _Params, defaults: dict[str, Any], *, foreach: Any = None, fused: Any = None, capturable: bool = False, differentiable: bool = False) -> None: ...
    def add_param_group(self, group: dict[str, Any]) -> None: ...
    def step(self, closure: Callable[[], Any] | None = None) -> Any: ...
    def zero_grad(self, set_to_none: bool = True) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> _IncompatibleKeys: ...
    def pytorch_state_dict(self) -> dict[str, Any]: ...
def by_decay(params: Iterable[Tensor], weight_decay: float) -> list[dict[str, Any]]: ...
