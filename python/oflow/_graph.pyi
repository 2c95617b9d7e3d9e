# Made by `python python/stubs` from the source beside it; do not edit.

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, overload
from typing_extensions import Self
from ._oflow import Tensor
from .optim.optimizer import Optimizer

_P = ParamSpec("_P")
_R = TypeVar("_R")
MOST: int
def note_optimizer(optimizer: Optimizer) -> None: ...

@dataclasses.dataclass(frozen=True)
class Arena:
    device: str
    bytes: int
    bound: int

@dataclasses.dataclass(frozen=True)
class GraphPlan:
    kernels: int
    boxings: int
    stepwise: int
    peak: int
    outside: int
    arenas: tuple[Arena, ...]

class Graph(Generic[_P, _R]):
    def __init__(
        self, function: Callable[_P, _R], *, passes: bool | dict[str, bool] = True, memory: int | str = "cheap", variables: Iterable[Tensor] = ()
    ) -> None: ...
    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[..., _R]: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @property
    def plan(self) -> GraphPlan | None: ...
    def save(self, folder: str | os.PathLike[str], state: Mapping[str, Any]) -> None: ...
    def summary(self) -> Any: ...
    def explain(self) -> str: ...

class LoadedGraph:
    inputs: tuple[str, ...]
    def __init__(self, graph: Any, optimizers: Any) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def explain(self) -> str: ...

def load_graph(folder: str | os.PathLike[str], state: Mapping[str, Any]) -> LoadedGraph: ...
def scan(function: Callable[[Any, Any], tuple[Any, Any]], init: Any = None, xs: Any = None, length: int | None = None) -> tuple[Any, Any]: ...
@overload
def graph(
    function: Callable[_P, _R], *, passes: bool | dict[str, bool] = True, memory: int | str = "cheap", variables: Iterable[Tensor] = ()
) -> Graph[_P, _R]: ...
@overload
def graph(
    function: None = None, *, passes: bool | dict[str, bool] = True, memory: int | str = "cheap", variables: Iterable[Tensor] = ()
) -> Callable[[Callable[_P, _R]], Graph[_P, _R]]: ...
