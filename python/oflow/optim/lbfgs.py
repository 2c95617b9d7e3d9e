"""L-BFGS, whose steps evaluate the loss several times."""

from collections.abc import Callable
from typing import Any

from .. import _oflow
from .optimizer import Optimizer


class LBFGS(Optimizer):
    """L-BFGS (Liu and Nocedal, 1989), with PyTorch's formulas: steps along directions that the last ``history_size`` changes of the gradient
    give, with the line search ``strong_wolfe`` or without. It has one group of parameters.

    ``step(closure)`` calls the closure several times; it removes the gradients, computes the loss, calls ``backward()`` and returns the loss.
    The host waits for each loss, so a graph cannot capture a step; the closure may run a graph. Vectors have the dtypes and the layouts of the
    parameters."""

    _kind = "lbfgs"
    _state = ("direction", "gradient", "step", "change")
    _values = ("memory",)
    _options = {
        "lr": 1.0,
        "max_iter": 20,
        "max_eval": None,
        "tolerance_grad": 1e-7,
        "tolerance_change": 1e-9,
        "history_size": 100,
        "line_search_fn": None,
        "maximize": False,
    }

    def __init__(
        self,
        params,
        lr=1.0,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
        *,
        maximize=False,
    ):
        options = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, options)

    def _make_group(self, params, settings):
        if self.param_groups:
            raise ValueError("LBFGS has one group of parameters: its direction is one of all of them")
        self._engine = _oflow._Lbfgs(params, settings)

    def _as_settings(self, group):
        return {name: group[name] for name in self.defaults}

    def _set_groups(self):
        (group,) = self.param_groups
        self._engine.set(self._settings(group), self._noted(group))

    def step(self, closure: Callable[[], Any]) -> Any:
        """Updates the parameters, and returns the loss that the closure returned first."""
        return self._ready().step(closure)
