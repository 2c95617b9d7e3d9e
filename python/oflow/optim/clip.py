"""Norms and clipping of gradients."""

import math
from collections.abc import Iterable

import oflow

from .. import _core, _oflow
from .._oflow import Tensor


def _gradients(parameters):
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    found = [p.grad for p in parameters if p.grad is not None]
    if parameters and not found:
        raise oflow.ArgumentError("no parameter has a gradient to clip; call backward() first")
    return found


def _at(number, tensor):
    """A number that is a tensor, where another tensor lies."""
    if tensor.is_global:
        return number.to_global(tensor.placement, _core.whole_on(tensor.placement))
    return number.to(tensor.device)


def get_total_norm(tensors: Tensor | Iterable[Tensor], norm_type=2.0, error_if_nonfinite=False, foreach=None) -> Tensor:
    """The norm of all elements of all tensors together, a tensor. On global tensors it is that of the logical tensors. ``foreach`` is ignored."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return oflow.tensor(0.0)
    with oflow.no_grad():
        each = [_at(_core.whole(oflow.linalg.vector_norm(t, norm_type)), tensors[0]) for t in tensors]
        total = oflow.linalg.vector_norm(_core.whole(oflow.stack(each)), norm_type)
        total = _at(total, tensors[0])
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"the total norm of order {norm_type} of the gradients is {total.item()}, so they cannot be clipped; to scale them all the same, "
            "set error_if_nonfinite=False"
        )
    return total


def clip_grads_with_norm_(parameters, max_norm: float, total_norm: Tensor, foreach=None):
    """Scales all gradients by ``max_norm / total_norm`` where that is below 1. ``foreach`` is ignored."""
    with oflow.no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for gradient in _gradients(parameters):
            gradient.mul_(_at(factor, gradient))


def clip_grad_norm_(parameters, max_norm: float, norm_type=2.0, error_if_nonfinite=False, foreach=None) -> Tensor:
    """Scales all gradients so that the norm of all of them together is at most ``max_norm``. Returns the norm before, a tensor.

    On global tensors the norm is the logical one. The 2-norm takes one reduction for each mesh axis, and the host does not wait for it unless
    ``error_if_nonfinite`` is set. ``foreach`` is ignored."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if float(norm_type) == 2.0 and not error_if_nonfinite:
        return _oflow._clip_grad_norm(parameters, float(max_norm))
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_value_(parameters, clip_value: float, foreach=None):
    """Clamps each element of each gradient to [-clip_value, clip_value]. ``foreach`` is ignored."""
    with oflow.no_grad():
        for gradient in _gradients(parameters):
            gradient.clamp_(-float(clip_value), float(clip_value))
