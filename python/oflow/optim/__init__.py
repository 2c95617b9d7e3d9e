"""Optimizers, clipping, loss scaling and schedules, with PyTorch's names and arguments.

An optimizer updates parameters in place. Its state has the layouts of the parameters, so a step needs no communication.
"""

from .._oflow import GradScaler
from . import kinds, lr_scheduler
from .average import EMA
from .clip import clip_grad_norm_
from .kinds import *
from .lbfgs import LBFGS
from .optimizer import Optimizer, by_decay
from .schedule import Schedule

__all__ = [
    *kinds.__all__,
    "EMA",
    "GradScaler",
    "LBFGS",
    "Optimizer",
    "Schedule",
    "by_decay",
    "clip_grad_norm_",
    "lr_scheduler",
]
