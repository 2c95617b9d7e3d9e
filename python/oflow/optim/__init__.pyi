# Made by `python python/stubs` from the source beside it; do not edit.

from .._oflow import GradScaler as GradScaler
from .average import EMA as EMA
from .clip import clip_grad_norm_ as clip_grad_norm_
from . import kinds as kinds
from .lbfgs import LBFGS as LBFGS
from . import lr_scheduler as lr_scheduler
from .optimizer import Optimizer as Optimizer
from .optimizer import by_decay as by_decay
from .schedule import Schedule as Schedule
from .kinds import *
