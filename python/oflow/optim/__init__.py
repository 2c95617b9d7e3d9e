"""Optimizers, clipping, loss scaling and schedules, with PyTorch's names and arguments.

An optimizer updates parameters in place. Its state has the layouts of the parameters, so a step needs no communication.
"""

from .._oflow import GradScaler
from . import lr_scheduler
from .average import EMA
from .clip import clip_grad_norm_
from .optimizer import SGD, Adadelta, Adagrad, Adam, AdamW, Lamb, Lion, Optimizer, RMSprop, by_decay
from .schedule import Schedule

__all__ = [
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "EMA",
    "GradScaler",
    "Lamb",
    "Lion",
    "Optimizer",
    "RMSprop",
    "SGD",
    "Schedule",
    "by_decay",
    "clip_grad_norm_",
    "lr_scheduler",
]
