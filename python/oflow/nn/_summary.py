"""Summaries of models."""

import json
from typing import Any, NamedTuple

from .. import _oflow


class ModuleRow(NamedTuple):
    """A module of a model, with all that is in it."""

    path: str
    """Empty for the whole."""
    kind: str
    output: str
    """Last result of the module, as ``f32[8, 10]``."""
    layout: str
    """nd-SBP of that result; empty for a local one."""
    parameters: int
    mult_adds: int
    """Multiplications that are followed by an addition, of products and convolutions, on all ranks together."""
    results: int
    """Bytes of the results of all calls, on this rank."""
    sent: int
    """Bytes that all ranks together send in boxings."""
    calls: int


class ParameterRow(NamedTuple):
    """A parameter of a model, or a variable of a graph."""

    name: str
    tensor: str
    layout: str
    on: str
    elements: int
    bytes: int
    """Of this rank's shard."""
    trained: bool


class Summary:
    """What a model consists of, and what a forward pass takes. ``print(summary)`` shows tables."""

    def __init__(self, text: str, of: dict[str, Any]) -> None:
        self._text = text
        self.rank: int = of["rank"]
        self.inputs: int = of["inputs"]
        self.modules: list[ModuleRow] = [ModuleRow(**row) for row in of["modules"]]
        self.parameters: list[ParameterRow] = [ParameterRow(**row) for row in of["parameters"]]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Summary({len(self.modules)} modules, {len(self.parameters)} parameters)"


def _read(made: tuple[str, str]) -> Summary:
    text, of = made
    return Summary(text, json.loads(of))


def summary(model: Any, *inputs: Any, **kwargs: Any) -> Summary:
    """Returns the summary of ``model(*inputs, **kwargs)``: of each module the result with its layout, parameters, multiplications and what
    boxings send; of each parameter its layout and this rank's bytes.

    torchinfo's ``summary``, with layouts. The call is captured, so nothing is computed or sent, and a model that reads values cannot be
    summarised. Give global tensors to see what sharding does.

    >>> print(oflow.nn.summary(model, x))  # doctest: +SKIP
    """
    named = list(model.named_parameters())
    kinds = [(path, type(module).__name__) for path, module in model.named_modules()]

    def body() -> list[Any]:
        return _tensors(model(*inputs, **kwargs))

    return _read(_oflow._summarize([name for name, _ in named], [p for _, p in named], kinds, body))


def _tensors(made: Any) -> list[Any]:
    """The tensors in what a model returns."""
    if isinstance(made, _oflow.Tensor):
        return [made]
    if isinstance(made, dict):
        made = list(made.values())
    if isinstance(made, (list, tuple)):
        return [t for part in made for t in _tensors(part)]
    return []
