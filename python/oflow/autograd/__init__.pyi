# Made by `python python/stubs` from the source beside it; do not edit.

from .._modes import (
    detect_anomaly as detect_anomaly, enable_grad as enable_grad, inference_mode as inference_mode, no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from . import functional as functional
from .check import GradcheckError as GradcheckError, gradcheck as gradcheck
from .function import Function as Function, FunctionCtx as FunctionCtx, once_differentiable as once_differentiable
from .gradients import backward as backward, grad as grad
