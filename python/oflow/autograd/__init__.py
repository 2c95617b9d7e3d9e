"""Gradients, and functions with a backward of their own."""

from .._modes import detect_anomaly, enable_grad, inference_mode, no_grad, set_grad_enabled
from . import functional
from .check import GradcheckError, gradcheck
from .function import Function, FunctionCtx, once_differentiable
from .gradients import backward, grad

__all__ = [
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "inference_mode",
    "no_grad",
    "once_differentiable",
    "set_grad_enabled",
]
