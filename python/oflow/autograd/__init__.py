"""Gradients, and functions with a backward of their own."""

from .._modes import detect_anomaly, enable_grad, inference_mode, no_grad, set_grad_enabled
from . import functional
from .function import Function, FunctionCtx, once_differentiable
from .gradients import backward, grad

__all__ = [
    "Function",
    "FunctionCtx",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "inference_mode",
    "no_grad",
    "once_differentiable",
    "set_grad_enabled",
]
