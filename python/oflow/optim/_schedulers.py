"""The base of the schedulers."""

from typing import Any

from .optimizer import Optimizer


def for_groups(what, optimizer, value):
    """The value for each group of an optimizer: a list has them all."""
    groups = optimizer.param_groups
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ValueError(f"{len(value)} {what} for {len(groups)} groups of parameters")
    return list(value)


class LRScheduler:
    """Sets the learning rates of an optimizer's groups. The base of a group's rate is its ``initial_lr``, which is its rate when the first
    scheduler is made; the optimizer saves it with the group. With ``last_epoch``, the number of steps before the last one, the scheduler
    goes on where another one was: load the optimizer first."""

    # Attributes that are not saved.
    _unsaved = ("optimizer",)
    # Whether the scheduler sets the rates of its start.
    _initial = False
    optimizer: Optimizer
    last_epoch: int
    base_lrs: list[float]

    def __init__(self, optimizer, last_epoch=-1):
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"group {number} of the optimizer has no 'initial_lr', which a scheduler with last_epoch={last_epoch} goes on from: load "
                    "the optimizer's state first, or set it to the rate before the first step"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self._begin()

    def _begin(self):
        self._step_count, self._initial = 0, True
        try:
            self.step()
        finally:
            del self._initial

    def get_lr(self) -> list[float]:
        """The learning rates of the step that begins, one for each group. Programs call ``get_last_lr()``."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Sets the learning rates of the next step; ``epoch`` is its number, the one after the last if not given."""
        self._step_count += 1
        if epoch is None and self._initial and self.last_epoch >= 0:
            # The rates that an optimizer was loaded with may be those of this step, or of the one before.
            epoch = self.last_epoch + 1
        if epoch is None:
            self.last_epoch += 1
            self._set(self.get_lr())
        else:
            self._go_to(epoch)

    def _go_to(self, epoch):
        self.last_epoch = epoch
        closed_form = getattr(self, "_closed_form", self.get_lr)
        self._set(closed_form())

    def _rates(self):
        return [group["lr"] for group in self.optimizer.param_groups]

    def _set(self, rates):
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = self._rates()

    def get_last_lr(self) -> list[float]:
        """The learning rates that were set last, one for each group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint saves: plain values."""
        return {name: value for name, value in self.__dict__.items() if name not in self._unsaved}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from a state: sets the rates that it set last."""
        rates = state["_last_lr"]
        if len(rates) != len(self.optimizer.param_groups):
            raise ValueError(f"the state is of {len(rates)} groups of parameters, not {len(self.optimizer.param_groups)}")
        self.__dict__.update(state)
        self._set(rates)
