"""Factors of the learning rate by step, as the schedules of Rust programs."""

import math
from collections.abc import Callable


class Schedule:
    """A factor of the base learning rate, by step (counted from 0): ``lr = base * schedule.at(step)``."""

    def __init__(self, factor: Callable[[int], float]):
        self._factor = factor

    def at(self, step: int) -> float:
        """The factor at a step."""
        if step < 0:
            raise ValueError(f"steps are counted from 0; {step} is below")
        return self._factor(step)

    __call__ = at

    @classmethod
    def constant(cls) -> "Schedule":
        """The constant 1."""
        return cls(lambda step: 1.0)

    @classmethod
    def warmup_cosine(cls, warmup: int, total: int, floor=0.0) -> "Schedule":
        """Linear warm-up to 1 over ``warmup`` steps, then half a cosine down to ``floor`` at step ``total``, constant afterwards."""

        def factor(step):
            if step < warmup:
                return (step + 1) / warmup
            way = (step - warmup) / max(total - warmup, 1)
            return floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * min(way, 1.0)))

        return cls(factor)

    @classmethod
    def step(cls, every: int, gamma=0.1) -> "Schedule":
        """A factor of ``gamma`` after every ``every`` steps; 0 never changes."""
        return cls(lambda step: gamma ** (step // every) if every else 1.0)
