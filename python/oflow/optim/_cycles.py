"""Schedulers that cycle the learning rate, and the momentum against it."""

import math

from ._schedulers import LRScheduler, for_groups


class _WithMomentum(LRScheduler):
    def _take_momentum(self, base_momentum, max_momentum, fresh):
        """Prepares a cycle of the momentum, or of the first of the ``betas``; ``fresh``: it begins."""
        options = self.optimizer.defaults
        if "momentum" not in options and "betas" not in options:
            raise ValueError(f"cycle_momentum=True needs an optimizer with momentum or betas; {type(self.optimizer).__name__} has neither")
        self.base_momentums = for_groups("momenta", self.optimizer, base_momentum)
        self.max_momentums = for_groups("momenta", self.optimizer, max_momentum)
        if fresh:
            self._set_momenta(self.max_momentums)
            for group, least, most in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                group["max_momentum"], group["base_momentum"] = most, least

    def _set_momenta(self, momenta):
        for group, momentum in zip(self.optimizer.param_groups, momenta):
            if "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    """Learning rates that rise linearly from ``base_lr`` to ``max_lr`` over ``step_size_up`` steps and fall over ``step_size_down``, and so on.

    ``mode`` scales the height: ``triangular`` not at all, ``triangular2`` by a half after each cycle, ``exp_range`` by ``gamma`` after each
    step; a function ``scale_fn`` takes its place, of the number of the cycle or of the step (``scale_mode``). With ``cycle_momentum`` the
    momentum falls from ``max_momentum`` to ``base_momentum`` while the rate rises. The function is not saved."""

    _unsaved = ("optimizer", "_scale")

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ):
        self.optimizer = optimizer
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs):
                group["lr"] = rate
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode is 'triangular', 'triangular2' or 'exp_range', not {mode!r}")
        self.mode, self.gamma, self._scale = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._take_momentum(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x) -> float:
        """The factor of the height in cycle or step ``x``."""
        if self._scale is not None:
            return self._scale(x)
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1)}.get(self.mode, self.gamma**x)

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            self._set_momenta([most - (most - least) * height for least, most in zip(self.base_momentums, self.max_momentums)])
        return [least + (most - least) * height for least, most in zip(self.base_lrs, self.max_lrs)]


class OneCycleLR(_WithMomentum):
    """One cycle over all steps: the learning rate rises from ``max_lr / div_factor`` to ``max_lr`` in the part ``pct_start`` of the steps, then
    falls to ``max_lr / div_factor / final_div_factor``, along a cosine or a line (``anneal_strategy``). With ``three_phase`` it falls to where
    it began first. With ``cycle_momentum`` the momentum falls from ``max_momentum`` to ``base_momentum`` while the rate rises.

    The number of all steps is ``total_steps``, or ``epochs * steps_per_epoch``."""

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):
        self.optimizer = optimizer
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("give total_steps, or epochs and steps_per_epoch")
        counts = {"total_steps": total_steps} if total_steps is not None else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        for name, count in counts.items():
            if not isinstance(count, int) or count <= 0:
                raise ValueError(f"{name} is a whole number above 0, not {count!r}")
        self.total_steps = math.prod(counts.values())
        if not isinstance(pct_start, float) or not 0.0 <= pct_start <= 1.0:
            raise ValueError(f"pct_start is a float from 0 to 1, not {pct_start!r}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        last = self.total_steps - 1
        # Last step, rates and momenta between which each phase goes.
        self.phases = [[pct_start * self.total_steps - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum"]]
        if three_phase:
            self.phases.append([2 * pct_start * self.total_steps - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"])
            self.phases.append([last, "initial_lr", "min_lr", "max_momentum", "max_momentum"])
        else:
            self.phases.append([last, "max_lr", "min_lr", "base_momentum", "max_momentum"])
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, for_groups("max_lr", optimizer, max_lr)):
                group["initial_lr"], group["max_lr"] = rate / div_factor, rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self._take_momentum(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def _between(self, start, end, part):
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (1.0 + math.cos(math.pi * part))

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"the cycle has {self.total_steps} steps; this is step {step}")
        start = 0.0
        for end, *names in self.phases[:-1]:
            if step <= end:
                break
            start = end
        else:
            end, *names = self.phases[-1]
        part = (step - start) / (end - start)
        first_lr, last_lr, first_momentum, last_momentum = names
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            self._set_momenta([self._between(group[first_momentum], group[last_momentum], part) for group in groups])
        return [self._between(group[first_lr], group[last_lr], part) for group in groups]
