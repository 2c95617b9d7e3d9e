# Made by `python python/stubs` from the source beside it; do not edit.

from .._oflow import GradScaler as GradScaler
from . import kinds as kinds, lr_scheduler as lr_scheduler
from .average import EMA as EMA
from .clip import clip_grad_norm_ as clip_grad_norm_
from .lbfgs import LBFGS as LBFGS
from .optimizer import Optimizer as Optimizer, by_decay as by_decay
from .schedule import Schedule as Schedule
from .kinds import *
