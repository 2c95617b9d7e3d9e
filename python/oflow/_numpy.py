"""NumPy's functions of tensors. Operators between an array and a tensor, on either side, and ``np.mean`` and its kin are computed by oflow and
have gradients; other functions get arrays, and give tensors where NumPy keeps the class of what it is given."""

import operator
import sys

from . import _oflow
from ._oflow import Tensor

# The functions by which NumPy computes its operators.
_OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "matmul": operator.matmul,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "negative": operator.neg,
    "absolute": operator.abs,
}
# Functions of NumPy that call a method of what they are given, with arguments that methods of tensors do not have.
_REDUCTIONS = {
    **{name: name for name in ("all", "amax", "amin", "any", "mean", "prod", "std", "sum", "var")},
    **{"max": "amax", "min": "amin"},
}


def _array(value):
    return value.__array__() if isinstance(value, Tensor) else value


def _tensor(value, like):
    """An array as a tensor that lies where ``like`` does; a scalar of NumPy as a number."""
    numpy = sys.modules["numpy"]
    if isinstance(value, numpy.generic):
        return value.item()
    if not isinstance(value, numpy.ndarray):
        return value
    from ._core import beside

    made = _oflow.tensor(value)
    return _oflow.distribute(made, **beside(like)) if like.is_global else made.to(like.device)


def _wrapped(result):
    numpy = sys.modules["numpy"]
    if isinstance(result, tuple):
        return tuple(map(_wrapped, result))
    return _oflow.tensor(result) if isinstance(result, (numpy.ndarray, numpy.generic)) else result


def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
    """What NumPy calls for its functions of elements, and for its operators."""
    function = _OPERATORS.get(ufunc.__name__) if method == "__call__" and not kwargs else None
    if function is not None:
        like = next(x for x in inputs if isinstance(x, Tensor))
        inputs = [_tensor(x, like) for x in inputs]
        if function is operator.matmul:
            # A product takes one dtype; NumPy's converts.
            common = _oflow.result_type(*inputs)
            inputs = [x.to(common) for x in inputs]
        return function(*inputs)
    outs = kwargs.get("out", ())
    if any(isinstance(x, Tensor) for x in outs):
        raise TypeError(f"np.{ufunc.__name__}: out is an array of NumPy, not a tensor; use the method of the tensor that writes in place")
    result = getattr(ufunc, method)(*map(_array, inputs), **{k: _array(v) for k, v in kwargs.items()})
    return result if outs else _wrapped(result)


def __array_wrap__(self, array, context=None, return_scalar=False):
    """What NumPy makes of a result that is to be of the class of its argument."""
    return _oflow.tensor(array)


def __array_function__(self, func, types, args, kwargs):
    """What NumPy calls for its other functions."""
    name = _REDUCTIONS.get(func.__name__) if func.__module__ == "numpy" else None
    if name is None or not args or not isinstance(args[0], Tensor):
        return func._implementation(*args, **kwargs)
    return _reduced(func.__name__, name, *args, **kwargs)


def _reduced(theirs, name, x, axis=None, dtype=None, out=None, ddof=None, keepdims=False, **more):
    numpy = sys.modules["numpy"]
    if more or out is not None or (ddof is not None and name not in ("std", "var")):
        given = [*more, *(["out"] if out is not None else []), *(["ddof"] if ddof is not None else [])]
        raise TypeError(f"np.{theirs} of a tensor takes axis, dtype and keepdims, not {given[0]}: give tensor.numpy() for NumPy's other arguments")
    if dtype is not None:
        x = x.to(_oflow.dtype(numpy.dtype(dtype).name))
    keepdim = bool(keepdims) if isinstance(keepdims, (bool, int)) else False
    dims = list(range(x.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    options = {"correction": ddof or 0} if name in ("std", "var") else {}
    if name in ("mean", "std", "var") and not (x.dtype.is_floating_point or x.dtype.is_complex):
        # As NumPy's, of whole numbers.
        x = x.to(_oflow.float64)
    if name in ("prod", "all", "any"):
        # One dim at a time.
        for dim in sorted((d % x.ndim for d in dims), reverse=True):
            x = getattr(_oflow, name)(x, dim, keepdim)
        return x
    return getattr(_oflow, name)(x, dims, keepdim=keepdim, **options) if dims or name in ("std", "var") else x.clone()


def __reversed__(self):
    """The tensor with its first dim reversed."""
    return self.flip(0) if self.ndim else self


METHODS = (__array_ufunc__, __array_wrap__, __array_function__, __reversed__)
