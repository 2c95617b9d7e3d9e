"""Schedulers that set the learning rates of an optimizer's groups, with PyTorch's names and formulas. Call ``step()`` after each step of the
optimizer."""

import math
from bisect import bisect_right
from typing import Any

from ._cycles import CyclicLR, OneCycleLR
from ._schedulers import LRScheduler, for_groups
from .schedule import Schedule

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "WarmupCosineLR",
]


class LambdaLR(LRScheduler):
    """Each group's learning rate is its base times ``lr_lambda(step)``; a list has one function for each group. Functions are not saved."""

    _unsaved = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        self.lr_lambdas = for_groups("functions", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(LRScheduler):
    """Each step multiplies a group's learning rate by ``lr_lambda(step)``; a list has one function for each group. Functions are not saved."""

    _unsaved = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        self.lr_lambdas = for_groups("functions", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._initial:
            return self._rates()
        return [rate * factor(self.last_epoch) for rate, factor in zip(self._rates(), self.lr_lambdas)]


class StepLR(LRScheduler):
    """A factor of ``gamma`` after every ``step_size`` steps."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        due = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return [rate * self.gamma for rate in self._rates()] if due else self._rates()

    def _closed_form(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """A factor of ``gamma`` at each of the ``milestones``, which are numbers of steps."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [rate * self.gamma ** self.milestones.count(self.last_epoch) for rate in self._rates()]

    def _closed_form(self):
        return [base * self.gamma ** bisect_right(self.milestones, self.last_epoch) for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """A factor of ``factor`` for the first ``total_iters`` steps."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0.0 <= factor <= 1.0:
            raise ValueError(f"factor is a number from 0 to 1, not {factor!r}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._rates()]
        return [rate / self.factor for rate in self._rates()] if self.last_epoch == self.total_iters else self._rates()

    def _closed_form(self):
        return [base * (1.0 if self.last_epoch >= self.total_iters else self.factor) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """A factor that changes linearly from ``start_factor`` to ``end_factor`` over ``total_iters`` steps."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0.0 < start_factor <= 1.0:
            raise ValueError(f"start_factor is a number above 0 and at most 1, not {start_factor!r}")
        if not 0.0 <= end_factor <= 1.0:
            raise ValueError(f"end_factor is a number from 0 to 1, not {end_factor!r}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates()]
        if self.last_epoch > self.total_iters:
            return self._rates()
        change = self.end_factor - self.start_factor
        factor = 1.0 + change / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change)
        return [rate * factor for rate in self._rates()]

    def _closed_form(self):
        way = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * way) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """A factor of ``gamma`` after every step."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._rates() if self._initial else [rate * self.gamma for rate in self._rates()]

    def _closed_form(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """A factor that falls from 1 to 0 over ``total_iters`` steps: the part of steps that is left, to the power ``power``."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._initial or self.last_epoch > self.total_iters:
            return self._rates()
        left, before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return [rate * (left / before) ** self.power for rate in self._rates()]

    def _closed_form(self):
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the base down to ``eta_min`` over ``T_max`` steps, up again over the next ``T_max``, and so on."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._initial:
            return self._rates()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1.0 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * rise for rate, base in zip(self._rates(), self.base_lrs)]
        now, before = (1.0 + math.cos(math.pi * step / self.T_max) for step in (self.last_epoch, self.last_epoch - 1))
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in self._rates()]

    def _closed_form(self):
        part = (1.0 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the base down to ``eta_min`` over ``T_0`` steps, and again from the base over ``T_mult`` times as many steps as
    before, and so on. ``step(epoch)`` sets the time, also to parts of a step."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"T_0 is a whole number above 0, not {T_0!r}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"T_mult is a whole number of at least 1, not {T_mult!r}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"eta_min is a number, not {eta_min!r}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        part = (1.0 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def step(self, epoch: int | None = None) -> None:
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"epoch is a number of at least 0, not {epoch!r}")
            self.T_cur, self.T_i = epoch, self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self._step_count += 1
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())


class WarmupCosineLR(LRScheduler):
    """Linear warm-up over ``warmup`` steps, then half a cosine down to ``floor`` of the base at step ``total``."""

    def __init__(self, optimizer, warmup, total, floor=0.0, last_epoch=-1):
        self.warmup, self.total, self.floor = warmup, total, floor
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factor = Schedule.warmup_cosine(self.warmup, self.total, self.floor).at(self.last_epoch)
        return [base * factor for base in self.base_lrs]


class _Several(LRScheduler):
    """Schedulers of one optimizer."""

    _unsaved = ("optimizer", "_schedulers")

    def _take(self, schedulers, optimizer):
        name = type(self).__name__
        if not schedulers:
            raise ValueError(f"{name} takes at least one scheduler")
        self.optimizer = optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        for number, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"scheduler {number} of {name} is a {type(scheduler).__name__}")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"{name} calls step() without a metric, which ReduceLROnPlateau needs: call that one yourself")
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"scheduler {number} of {name} is of another optimizer")
        self._schedulers = list(schedulers)

    def _undo(self):
        for scheduler in self._schedulers:
            if isinstance(scheduler, _Several):
                scheduler._undo()
            else:
                scheduler.last_epoch -= 1

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        state = dict(state)
        for scheduler, own in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(own)
        super().load_state_dict(state)


class ChainedScheduler(_Several):
    """Several schedulers, each of which steps at every step: their factors multiply."""

    def __init__(self, schedulers, optimizer=None):
        self._take(schedulers, optimizer)
        self.last_epoch = self._schedulers[-1].last_epoch
        self._last_lr = self._rates()

    def step(self):
        for scheduler in self._schedulers:
            scheduler.step()
        self.last_epoch = self._schedulers[-1].last_epoch
        self._last_lr = self._rates()


class SequentialLR(_Several):
    """One scheduler after the other: the next one begins, at its step 0, at each of the ``milestones``."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        self._take(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"{len(schedulers)} schedulers have {len(schedulers) - 1} milestones between them, not {len(milestones)}")
        self._milestones, self.last_epoch = list(milestones), last_epoch + 1
        # Each has set the rates of its start: only the first one's count.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self._undo()
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._begin()
        self._last_lr = first.get_last_lr()

    def step(self):
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._go_to(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ReduceLROnPlateau(LRScheduler):
    """A factor of ``factor`` where a metric has not become better for more than ``patience`` steps. ``step(metric)`` takes the metric, a number
    or a tensor; ``mode`` says whether smaller (``min``) or larger (``max``) is better, and ``threshold`` by how much, relative to the best or
    absolute (``threshold_mode``). ``cooldown`` steps after a change do not count."""

    def __init__(
        self,
        optimizer,
        mode="min",
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode="rel",
        cooldown=0,
        min_lr=0.0,
        eps=1e-8,
    ):
        if factor >= 1.0:
            raise ValueError(f"factor is a number below 1, not {factor!r}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode is 'min' or 'max', not {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold_mode is 'rel' or 'abs', not {threshold_mode!r}")
        self.optimizer, self.factor, self.patience, self.cooldown, self.eps = optimizer, factor, patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.min_lrs = for_groups("min_lr", optimizer, min_lr)
        self.last_epoch, self._last_lr = 0, self._rates()
        # None: no metric so far.
        self.best, self.cooldown_counter, self.num_bad_epochs = None, 0, 0

    def step(self, metrics, epoch=None):
        metric = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(metric):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        rates = self._rates()
        if self.num_bad_epochs > self.patience:
            lower = [max(rate * self.factor, least) for rate, least in zip(rates, self.min_lrs, strict=True)]
            rates = [new if rate - new > self.eps else rate for rate, new in zip(rates, lower)]
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._set(rates)

    @property
    def in_cooldown(self):
        """Whether steps do not count now."""
        return self.cooldown_counter > 0

    def _is_better(self, metric):
        sign = 1.0 if self.mode == "min" else -1.0
        best = sign * math.inf if self.best is None else self.best
        if self.threshold_mode == "rel":
            return sign * metric < sign * best * (1.0 - sign * self.threshold)
        return sign * metric < sign * best - self.threshold
