"""Clipping of gradients."""

from .. import _oflow
from .._oflow import Tensor


def clip_grad_norm_(parameters, max_norm):
    """Scales all gradients so that the 2-norm of all of them together is at most ``max_norm``. Returns the norm before, a tensor.

    On global tensors the norm is the logical one, and one reduction for each mesh axis gives it.
    """
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return _oflow._clip_grad_norm(parameters, float(max_norm))
