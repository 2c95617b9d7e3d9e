"""Averages of weights."""

import contextlib
from collections.abc import Iterable
from typing import Any

from .. import _core, _oflow
from .._oflow import Tensor


class EMA:
    """An exponential moving average of parameters: each ``update()`` keeps the part ``decay`` of it. The averages lie as the parameters
    do; those of half-precision parameters are float32."""

    def __init__(self, params: Iterable[Tensor], decay=0.999):
        if not 0.0 <= decay <= 1.0:
            raise ValueError(f"the decay is between 0 and 1, not {decay!r}")
        self.decay = float(decay)
        self._engine = _oflow._Ema(list(params), self.decay)

    def update(self):
        """Moves the averages towards the parameters. Call it after each step of the optimizer."""
        self._engine.update()

    def swap(self):
        """Gives the parameters the values of the averages; a second call gives them their own values back."""
        self._engine.swap()

    @contextlib.contextmanager
    def averaged(self):
        """Within it the parameters hold the averages."""
        self._engine.swap()
        try:
            yield self
        finally:
            self._engine.swap()

    @property
    def averages(self) -> list[Tensor]:
        """The averages, in the order of the parameters."""
        return self._engine.averages()

    @property
    def updates(self) -> int:
        """The number of updates."""
        return self._engine.updates()

    def state_dict(self) -> dict[str, Any]:
        """The averages by number of the parameter (``3.mean``), and the number of updates."""
        return {**{f"{i}.mean": t for i, t in enumerate(self.averages)}, "updates": self.updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from a state. The tensors are copied; they may have other layouts."""
        own = self.averages
        lacking = [name for name in [*(f"{i}.mean" for i in range(len(own))), "updates"] if name not in state]
        if lacking:
            raise RuntimeError(f"the state of the averages lacks {', '.join(lacking)}")
        for write in [_core.copy_into(t, state[f"{i}.mean"]) for i, t in enumerate(own)]:
            write()
        self._engine.set_updates(state["updates"])
