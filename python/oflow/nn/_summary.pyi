# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any, NamedTuple

class ModuleRow(NamedTuple):
    path: str
    kind: str
    output: str
    layout: str
    parameters: int
    mult_adds: int
    results: int
    sent: int
    calls: int

class ParameterRow(NamedTuple):
    name: str
    tensor: str
    layout: str
    on: str
    elements: int
    bytes: int
    trained: bool

class Summary:
    def __init__(self, text: str, of: dict[str, Any]) -> None: ...

def summary(model: Any, *inputs: Any, **kwargs: Any) -> Summary: ...
