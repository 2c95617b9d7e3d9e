"""Derivatives of functions of tensors: what ``oflow.func`` and ``oflow.autograd.functional`` share."""

import oflow

from . import _oflow
from ._graph import _give, _take


def taken(value):
    """The structure of a value of nested tuples, lists and dicts, and its tensors, each as often as it occurs."""
    tensors = []
    return _take(value, tensors, once=False), tensors


def given(structure, tensors):
    """The value of a structure with these tensors."""
    return _give(structure, tensors)


def check_all_tensors(structure, who, what):
    """Refuses a structure that holds something else than tensors."""
    kind, inside = structure
    if kind == "tensor":
        return
    if kind == "value":
        raise TypeError(f"{who}: expected {what} made of tensors, got a {type(inside.value).__name__}")
    for member in (m for _, m in inside) if kind is dict else inside:
        check_all_tensors(member, who, what)


def zeros_for(gradients, tensors):
    """The gradients, with zeros in the place of those that are None."""
    return [oflow.zeros_like(x) if g is None else g for g, x in zip(gradients, tensors)]


def pulled(outputs, variables, cotangents, create_graph, retain_graph=True):
    """What cotangents of the outputs are for the variables: None for a variable without influence."""
    parts = [(y, v) for y, v in zip(outputs, cotangents) if y.requires_grad]
    if not parts:
        return [None] * len(variables)
    ys, vs = zip(*parts)
    with oflow.enable_grad() if create_graph else oflow.no_grad():
        return list(_oflow.grad(list(ys), list(variables), list(vs), retain_graph or create_graph, create_graph, True))


def pushed(outputs, variables, tangents, create_graph):
    """What tangents of the variables are for the outputs: None for an output without influence.

    Cotangents u of the outputs are pulled back to J^T u, which is linear in u, so its own pullback is J. Townsend (2017), "A new trick for
    calculating Jacobian vector products".
    """
    return linearized(outputs, variables)(tangents, create_graph)


def linearized(outputs, variables):
    """The function of tangents that ``pushed`` is, for many tangents of one point."""
    starts = [oflow.zeros_like(y).requires_grad_() if y.requires_grad else None for y in outputs]
    back = pulled(outputs, variables, starts, True)
    live = [i for i, g in enumerate(back) if g is not None and g.requires_grad]
    moving = [s for s in starts if s is not None]

    def push(tangents, create_graph):
        if not live:
            return [None] * len(outputs)
        found = iter(pulled([back[i] for i in live], moving, [tangents[i] for i in live], create_graph))
        return [None if s is None else next(found) for s in starts]

    return push


def rows(output, variables, create_graph):
    """For each element of an output its gradients with respect to the variables, as one tensor ``[*output, *variable]`` for each."""
    flat = output.reshape(-1)
    found = []
    for i in range(flat.shape[0]):
        element = flat.select(0, i)
        gradients = pulled([element], variables, [oflow.ones_like(element)], create_graph)
        found.append(zeros_for(gradients, variables))
    return stacked(found, output, variables)


def columns(outputs, variables, create_graph):
    """``rows`` of each output, element by element of the variables: less work where these have fewer elements."""
    push = linearized(outputs, variables)
    found = [[] for _ in outputs]
    for at, x in enumerate(variables):
        # Tangents of the other variables are zero.
        zeros = [oflow.zeros_like(v) for v in variables]
        made = [[] for _ in outputs]
        for i in range(x.numel()):
            unit = oflow.nn.functional.one_hot(oflow.tensor(i), x.numel()).to(x.dtype).reshape(tuple(x.shape))
            if x.is_global:
                unit = oflow.distribute(unit, placement=x.placement, sbp=x.sbp)
            tangents = [unit if v is x else zero for v, zero in zip(variables, zeros)]
            for column, y, t in zip(made, outputs, push(tangents, create_graph)):
                column.append(oflow.zeros_like(y) if t is None else t)
        for k, y in enumerate(outputs):
            shape = (*y.shape, *x.shape)
            column = oflow.stack(made[k], -1).reshape(shape) if made[k] else y.new_zeros(shape)
            found[k].append(column)
    return found


def stacked(found, output, variables):
    """Rows of gradients, one tensor for each variable."""
    shapes = [(*output.shape, *x.shape) for x in variables]
    if not found:
        return [x.new_zeros(shape) for shape, x in zip(shapes, variables)]
    return [oflow.stack(column).reshape(shape) for column, shape in zip(zip(*found), shapes)]
