"""Derivatives of functions of tensors at given inputs, as in ``torch.autograd.functional``. ``oflow.func`` has functions of functions.

Inputs and outputs are a tensor or a tuple of them, and so are the results. With ``create_graph`` the results can be differentiated; without
it they have no gradient. With ``strict`` an output that does not depend on the inputs is an error, and not zeros.
"""

from collections.abc import Callable
from typing import Any

import oflow

from .._differentiate import columns, pulled, pushed, rows, zeros_for
from .._oflow import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(who, what, given):
    if isinstance(given, Tensor):
        return (given,), True
    given = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    for i, x in enumerate(given):
        if not isinstance(x, Tensor):
            raise TypeError(f"{who}: expected {what} that are a tensor or a tuple of tensors, got a {type(x).__name__} at {i}")
    return given, False


def _as_given(values, is_one):
    return values[0] if is_one else tuple(values)


def _variables(inputs, create_graph):
    """Tensors of the same values; parts of the graph of the inputs with ``create_graph``."""
    return [x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in inputs]


def _plain(tensors, create_graph):
    return [t if create_graph else t.detach() for t in tensors]


class _Called:
    """A function called with variables."""

    def __init__(self, who, func, inputs, create_graph, strict):
        inputs, self.one_in = _tuple(who, "inputs", inputs)
        self.who, self.create_graph, self.strict = who, create_graph, strict
        with oflow.enable_grad():
            self.variables = _variables(inputs, create_graph)
            outputs = func(*self.variables)
        self.outputs, self.one_out = _tuple(who, "outputs", outputs)
        for i, y in enumerate(self.outputs):
            if strict and not y.requires_grad:
                raise RuntimeError(f"{who}: output {i} does not depend on the inputs, which strict=True refuses")

    def one_number(self):
        """The output of a function that gives one number."""
        if not self.one_out or self.outputs[0].numel() != 1:
            raise RuntimeError(f"{self.who}: expected a function that gives a tensor of one number")
        return self.outputs[0]

    def vectors(self, v, tensors, needed_unless):
        """Vectors as given for tensors; ones for a single number."""
        if v is None:
            if len(tensors) == 1 and tensors[0].numel() == 1:
                return [oflow.ones_like(tensors[0])]
            raise RuntimeError(f"{self.who}: v may be left out only if {needed_unless} is a single number")
        v, _ = _tuple(self.who, "v", v)
        if len(v) != len(tensors):
            raise RuntimeError(f"{self.who}: expected {len(tensors)} tensors in v, got {len(v)}")
        for i, (a, x) in enumerate(zip(v, tensors)):
            if tuple(a.shape) != tuple(x.shape):
                raise RuntimeError(f"{self.who}: expected v of shape {tuple(x.shape)} at {i}, got {tuple(a.shape)}")
        return list(v)

    def filled(self, found, tensors, what):
        """Gradients; zeros of what has no influence on the outputs."""
        if self.strict and any(g is None for g in found):
            raise RuntimeError(f"{self.who}: {what} {found.index(None)} has no influence, which strict=True refuses")
        return zeros_for(found, tensors)


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs, and v^T J for the Jacobian J of ``func`` at ``inputs``."""
    c = _Called("vjp", func, inputs, create_graph, strict)
    v = c.vectors(v, c.outputs, "the output")
    found = c.filled(pulled(c.outputs, c.variables, v, create_graph, create_graph), c.variables, "input")
    return _as_given(_plain(c.outputs, create_graph), c.one_out), _as_given(found, c.one_in)


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs, and J v for the Jacobian J of ``func`` at ``inputs``: by a backward of a backward."""
    c = _Called("jvp", func, inputs, create_graph, strict)
    v = c.vectors(v, c.variables, "the input")
    found = c.filled(pushed(c.outputs, c.variables, v, create_graph), c.outputs, "output")
    return _as_given(_plain(c.outputs, create_graph), c.one_out), _as_given(found, c.one_out)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian ``[*output, *input]`` of ``func`` at ``inputs``: a tuple over outputs of tuples over inputs, without the tuple where
    ``func`` gives, or is given, one tensor.

    ``strategy="forward-mode"`` makes columns instead of rows: less work where the inputs have fewer elements. ``vectorize`` changes
    nothing: rows are made one after another.
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f'jacobian: strategy is "reverse-mode" or "forward-mode", not {strategy!r}')
    c = _Called("jacobian", func, inputs, create_graph, strict)
    if strict:
        for i, y in enumerate(c.outputs):
            for j, g in enumerate(pulled([y], c.variables, [oflow.ones_like(y)], False)):
                if g is None:
                    raise RuntimeError(f"jacobian: output {i} does not depend on input {j}, which strict=True refuses")
    if strategy == "forward-mode":
        parts = columns(c.outputs, c.variables, create_graph)
    else:
        parts = [rows(y, c.variables, create_graph) for y in c.outputs]
    return _as_given([_as_given(part, c.one_in) for part in parts], c.one_out)


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives ``[*input, *input]`` of ``func``, which gives one number: a tuple of tuples over the inputs, or the tensor of
    one input."""
    values, is_one = _tuple("hessian", "inputs", inputs)

    def gradients(*xs):
        return tuple(_gradient("hessian", func, xs, True, strict)[1])

    found = jacobian(gradients, values, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found[0][0] if is_one else found


def _gradient(who, func, inputs, create_graph, strict):
    """The call of a function of one number, and its gradient, which can be differentiated."""
    c = _Called(who, func, inputs, create_graph, strict)
    y = c.one_number()
    return c, c.filled(pulled([y], c.variables, [oflow.ones_like(y)], True), c.variables, "input")


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The output of ``func``, which gives one number, and v^T H for its second derivatives H."""
    c, first = _gradient("vhp", func, inputs, create_graph, strict)
    v = c.vectors(v, c.variables, "the input")
    found = c.filled(pulled(first, c.variables, v, create_graph), c.variables, "input")
    return _plain(c.outputs, create_graph)[0], _as_given(found, c.one_in)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The output of ``func``, which gives one number, and H v for its second derivatives H. These are symmetric: ``vhp`` gives the same and
    is faster."""
    c, first = _gradient("hvp", func, inputs, create_graph, strict)
    v = c.vectors(v, c.variables, "the input")
    found = c.filled(pushed(first, c.variables, v, create_graph), c.variables, "input")
    return _plain(c.outputs, create_graph)[0], _as_given(found, c.one_in)
