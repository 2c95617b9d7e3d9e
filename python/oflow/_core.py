"""What modules need of tensors beyond their functions."""

import oflow

from . import _oflow
from ._oflow import Tensor


def named(value):
    """The class of a value, for errors: with its module where that is of another library, and the way to a tensor of oflow."""
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    if module in ("builtins", "oflow", "__main__"):
        return kind.__name__
    name = f"{kind.__module__}.{kind.__qualname__}"
    made = " (oflow.from_dlpack(x.detach()) makes a tensor of oflow of it)" if module == "torch" and hasattr(value, "__dlpack__") else ""
    return name + made


def as_leaf(cls, data, requires_grad):
    """A leaf of this class that shares the values of ``data``."""
    return Tensor.__new__(cls, _oflow._leaf(data, requires_grad))


def zero_gradient(parameter):
    """Writes zeros into the gradient of a parameter, if it has one, whatever it holds: NaN too. Other names of the gradient see it."""
    grad = parameter.grad
    if grad is None:
        return
    if grad.requires_grad or (grad.is_global and grad.is_view):
        # Part of a graph, or a value that is not written: the parameter gets a gradient of its own.
        parameter.grad = oflow.zeros_like(grad)
        return
    with oflow.no_grad():
        grad.zero_()


def draw(x):
    """Advances the random source from which a call on ``x`` would draw."""
    _oflow._draw(x)


def beside(x):
    """The layout arguments of a new tensor that lies where ``x`` does: its device, or its placement with all of it on each rank."""
    return {"placement": x.placement, "sbp": whole_on(x.placement)} if x.is_global else {"device": x.device}


def whole_on(placement):
    """The SBP of a tensor of which each rank of a placement has all: a broadcast for each axis of the mesh."""
    return (oflow.sbp.broadcast,) * len(placement.shape)


def _is_partial(sbp):
    return str(sbp).startswith("P")


def whole(x):
    """``x`` with its partial axes reduced."""
    if x.is_global and any(map(_is_partial, x.sbp)):
        return x.to_global(sbp=tuple(oflow.sbp.broadcast if _is_partial(s) else s for s in x.sbp))
    return x


def same_grad_layout(x):
    """The same value, whose gradient is laid out as the value is."""
    return x.to_global(sbp=x.sbp, grad_sbp=x.sbp) if x.is_global else x


def laid_like(y, stream):
    """``y`` in the layout of ``stream``."""
    return y.to_global(sbp=stream.sbp) if stream.is_global else y


def relayout(names, tensors, placement, rules):
    """The tensors, boxed to a placement by rules on their names."""
    return _oflow._relayout(list(names), list(tensors), placement, [(pattern, sbp) for pattern, sbp in rules])


def _kind(dtype):
    return "floating point" if dtype.is_floating_point else "complex" if dtype.is_complex else "bool" if dtype == oflow.bool else "integer"


def copy_into(target, value):
    """Checks that ``value`` can be written into ``target`` and returns the function that does it."""
    if not isinstance(value, Tensor):
        if not hasattr(value, "__array_interface__") and not hasattr(value, "__dlpack__"):
            raise TypeError(f"expected a tensor, got a {named(value)}")
        value = oflow.tensor(value) if hasattr(value, "__array_interface__") else oflow.from_dlpack(value)
    if tuple(value.shape) != tuple(target.shape):
        raise ValueError(f"the shape is {tuple(value.shape)}, {tuple(target.shape)} is needed")
    if _kind(value.dtype) != _kind(target.dtype):
        raise TypeError(f"the dtype is {value.dtype}, {target.dtype} is needed")
    if value.is_global and not target.is_global:
        raise ValueError("the value is global and the target local; give value.to_local(), or lay the module out first")

    def write():
        with oflow.no_grad():
            new = value.detach()
            if new.dtype != target.dtype:
                new = new.cast(target.dtype)
            if target.is_global:
                place = {"placement": target.placement, "sbp": target.sbp}
                new = new.to_global(**place) if new.is_global else oflow.distribute(new, **place)
            target.copy_(new)

    return write
