"""Optimizers, clipping, loss scaling and schedules, with PyTorch's names and arguments.

An optimizer updates parameters in place. Its state has the layouts of the parameters, so a step needs no communication.
"""

from .._oflow import GradScaler
from . import lr_scheduler
from .clip import clip_grad_norm_
from .optimizer import SGD, AdamW, Optimizer
from .schedule import Schedule

__all__ = ["AdamW", "GradScaler", "Optimizer", "SGD", "Schedule", "clip_grad_norm_", "lr_scheduler"]
