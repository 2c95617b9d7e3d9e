"""Layers that can draw their parameters anew."""

import oflow

from .module import Module
from .parameter import Parameter


class Drawn(Module):
    """A module that remembers how its own parameters were drawn when it was made."""

    def __init__(self):
        super().__init__()
        object.__setattr__(self, "_draws", {})

    def __setattr__(self, name, value):
        if isinstance(value, Parameter) and hasattr(value, "_drawn"):
            # `init` has just made it.
            self._draws[name] = value._drawn
            del value._drawn
        super().__setattr__(name, value)

    def reset_parameters(self) -> None:
        """Draws the own parameters anew, in place, as they were drawn when the layer was made."""
        with oflow.no_grad():
            for name, (kind, number) in self._draws.items():
                parameter = self._parameters.get(name)
                if parameter is None:
                    continue
                if kind == "uniform":
                    parameter.uniform_(-number, number)
                elif kind == "normal":
                    parameter.normal_(0.0, number)
                else:
                    parameter.fill_(number)
