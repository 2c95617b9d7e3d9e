"""Gradients of given outputs with respect to given inputs, with PyTorch's arguments."""

from collections.abc import Sequence

import oflow

from .. import _oflow
from .._differentiate import zeros_for
from .._oflow import Tensor


def _listed(given):
    return [given] if isinstance(given, Tensor) else list(given)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Gradients of ``outputs`` (single numbers, unless ``grad_outputs`` are given) with respect to ``inputs``, without touching any
    ``grad``.

    With ``create_graph`` they can be differentiated again. An input without influence is an error, None with ``allow_unused``, and zeros
    with ``materialize_grads``. With ``is_grads_batched`` the first dim of each of ``grad_outputs`` counts gradients, which are passed back
    one after another, and the results have that dim too.
    """
    if not only_inputs:
        raise ValueError("grad: only_inputs=False is not taken: call backward() to write the gradients of all leaves")
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: materialize_grads gives zeros where allow_unused=False is an error: give one of them")
    allow_unused = bool(allow_unused) or materialize_grads
    inputs = _listed(inputs)
    if is_grads_batched:
        found = _batched(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)
    else:
        found = _oflow.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)
    if materialize_grads:
        found = tuple(zeros_for(found, inputs))
    return found


def _batched(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused):
    starts = _listed(grad_outputs) if grad_outputs is not None else []
    sizes = {g.shape[0] if g.ndim else None for g in starts if g is not None}
    if len(sizes) != 1 or None in sizes:
        raise ValueError("grad: with is_grads_batched the first dim of each of grad_outputs is the number of gradients, one for all")
    (size,) = sizes
    if size == 0:
        raise ValueError("grad: with is_grads_batched there is at least one gradient")
    keep = create_graph if retain_graph is None else retain_graph
    rows = []
    for i in range(size):
        row = [None if g is None else g.select(0, i) for g in starts]
        rows.append(_oflow.grad(outputs, inputs, row, keep or i + 1 < size, create_graph, allow_unused))
    return tuple(None if column[0] is None else oflow.stack(column) for column in zip(*rows))


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Adds the gradients of the sum of ``tensors`` to the ``grad`` of the leaves, or only to that of ``inputs``.

    Tensors of more than one element need their gradients in ``grad_tensors``.
    """
    tensors = _listed(tensors)
    starts = [None] * len(tensors) if grad_tensors is None else _listed(grad_tensors)
    if len(starts) != len(tensors):
        raise ValueError(f"backward: {len(starts)} gradients are given for {len(tensors)} tensors")
    _oflow._backward(tensors, starts, retain_graph, create_graph, inputs)
