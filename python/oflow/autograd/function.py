"""Functions with a backward of their own."""

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import oflow

from .. import _oflow
from .._core import beside, named
from .._modes import no_grad
from .._oflow import Tensor


class FunctionCtx:
    """What ``forward`` keeps for ``backward``.

    ``needs_input_grad`` says of each argument whether a gradient is wanted; further attributes may be set freely.
    """

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self._saved = ()
        self._plain = frozenset()
        self._fills = True

    def save_for_backward(self, *tensors: Tensor | None):
        """Keeps tensors (or None) for ``saved_tensors``. A tensor that is written in place afterwards is refused in backward."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, _oflow.Tensor):
                raise TypeError(f"save_for_backward takes tensors, not {named(tensor)}; set an attribute for other values")
        self._saved = tuple((tensor, None if tensor is None else tensor._version) for tensor in tensors)

    def mark_non_differentiable(self, *tensors: Tensor):
        """Says of results of ``forward`` that they have no gradient: indices, masks."""
        self._plain = frozenset(map(id, tensors))

    def set_materialize_grads(self, value: bool):
        """Whether ``backward`` is given zeros for a result without a gradient, as it is unless told otherwise, or None."""
        self._fills = bool(value)

    def mark_dirty(self, *tensors: Tensor) -> NoReturn:
        """Refused: a Function returns new tensors."""
        raise NotImplementedError("mark_dirty: a Function does not write into its inputs: return a new tensor, as of x.clone()")

    @property
    def saved_tensors(self) -> tuple[Tensor | Any, ...]:
        """The tensors that were kept."""
        for tensor, version in self._saved:
            if tensor is not None and tensor._version != version:
                raise RuntimeError(
                    f"a tensor that was saved for backward, {tuple(tensor.shape)} {tensor.dtype}, was written in place afterwards: it is "
                    f"at version {tensor._version}, saved was version {version}"
                )
        return tuple(tensor for tensor, _ in self._saved)


def _inside(value, path, seen):
    """The paths of the tensors within lists, tuples, dicts and sets that require a gradient."""
    if isinstance(value, _oflow.Tensor):
        return [path] if value.requires_grad else []
    if isinstance(value, dict):
        parts = [(f"{path}[{key!r}]", part) for key, part in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"{path}[{i}]", part) for i, part in enumerate(value)]
    elif isinstance(value, (set, frozenset)):
        parts = [(f"a member of {path}", part) for part in value]
    else:
        return []
    # A list may hold itself.
    if id(value) in seen:
        return []
    seen = seen | {id(value)}
    return [found for where, part in parts for found in _inside(part, where, seen)]


def _has_gradient(x):
    return x.dtype.is_floating_point or x.dtype.is_complex


class Function:
    """A function with a backward of its own. Subclasses have two static methods::

        class Square(oflow.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, dy):
                (x,) = ctx.saved_tensors
                return 2 * x * dy

        y = Square.apply(x)

    ``backward`` is given a gradient for each output (zeros where there is none, or None after ``ctx.set_materialize_grads(False)``) and
    returns one for each argument of ``forward``; that of an argument that is no tensor is None. Calls inside of ``forward`` are not recorded.

    A class that has ``setup_context(ctx, inputs, output)`` too has a ``forward`` without ``ctx``.

    A gradient that ``backward`` returns is summed to the shape of its argument and cast to its dtype, as in PyTorch; one in another place,
    or whose shape does not broadcast from that of the argument, is an error. Gradients go to tensors that are given by position: a tensor
    that requires one is refused as a keyword argument and within a list, tuple, dict or set.
    """

    @staticmethod
    def forward(ctx: Any, *args, **kwargs):
        raise NotImplementedError("a Function needs a static method forward(ctx, ...)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any):
        raise NotImplementedError("setup_context(ctx, inputs, output) keeps what backward needs")

    @staticmethod
    def backward(ctx: Any, *grads):
        raise NotImplementedError("a Function needs a static method backward(ctx, ...)")

    @classmethod
    def apply(cls, *args, **kwargs) -> Any:
        """Runs ``forward`` and records ``backward`` as its gradient."""
        tensors = [i for i, arg in enumerate(args) if isinstance(arg, _oflow.Tensor)]
        if _oflow.is_grad_enabled():
            cls._refuse_unseen(args, kwargs)
        needs = tuple(isinstance(arg, _oflow.Tensor) and arg.requires_grad for arg in args)
        ctx = FunctionCtx(needs)
        many, plain, places = False, (), ()

        def forward():
            nonlocal many, plain, places
            with no_grad():
                if cls.setup_context is Function.setup_context:
                    result = cls.forward(ctx, *args, **kwargs)
                else:
                    result = cls.forward(*args, **kwargs)
                    cls.setup_context(ctx, args, result)
            many = isinstance(result, (tuple, list))
            results = list(result) if many else [result]
            plain = tuple(isinstance(t, Tensor) and (id(t) in ctx._plain or not _has_gradient(t)) for t in results)
            places = tuple({"shape": tuple(t.shape), "dtype": t.dtype, **beside(t)} for t in results if isinstance(t, Tensor))
            return results

        def backward(*grads):
            if ctx._fills:
                grads = [oflow.zeros(**place) if g is None else g for g, place in zip(grads, places)]
            result = cls.backward(ctx, *grads)
            result = result if isinstance(result, tuple) else (result,)
            if all(extra is None for extra in result[len(args) :]):
                result = result[: len(args)]
            if len(result) != len(args):
                raise ValueError(
                    f"{cls.__name__}.backward returned {len(result)} gradients; forward takes {len(args)} arguments, and each has one "
                    "(None for an argument that is not a tensor)"
                )
            for i, gradient in enumerate(result):
                if gradient is not None and i not in tensors:
                    raise ValueError(f"{cls.__name__}.backward returned a gradient for argument {i}, which is not a tensor")
            return tuple(result[i] for i in tensors)

        outs = _oflow._apply_custom(cls.__name__, [args[i] for i in tensors], forward, backward)
        outs = tuple(t.detach() if is_plain else t for t, is_plain in zip(outs, plain))
        return outs if many else outs[0]

    @classmethod
    def _refuse_unseen(cls, args, kwargs):
        """Refuses tensors that require a gradient where ``backward`` could not return one."""
        unseen = [
            found
            for i, arg in enumerate(args)
            if not isinstance(arg, _oflow.Tensor)
            for found in _inside(arg, f"argument {i}", frozenset())
        ]
        unseen += [found for name, arg in kwargs.items() for found in _inside(arg, name, frozenset())]
        if unseen:
            raise TypeError(
                f"{cls.__name__}.apply: {', '.join(unseen)} requires a gradient, but gradients go to tensors that are given by position; give "
                "it by position, or detach() it"
            )


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a ``backward`` whose calls are not recorded: a gradient of the gradient is an error, and not one that is wrong."""

    @functools.wraps(function)
    def backward(ctx, *grads):
        with no_grad():
            result = function(ctx, *grads)
        given = [g for g in grads if isinstance(g, Tensor) and g.requires_grad]
        if not given or not _oflow.is_grad_enabled():
            return result
        many = isinstance(result, tuple)
        parts = list(result) if many else [result]
        at = [i for i, part in enumerate(parts) if isinstance(part, Tensor)]

        def refuse(*_):
            raise RuntimeError("a backward that is marked with @once_differentiable is differentiated a second time")

        for i, part in zip(at, _oflow._apply_custom("once_differentiable", given, lambda: [parts[i] for i in at], refuse)):
            parts[i] = part
        return tuple(parts) if many else parts[0]

    return backward
