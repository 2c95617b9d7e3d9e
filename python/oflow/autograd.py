"""Functions with a backward of their own."""

from typing import Any

from . import _oflow
from ._modes import enable_grad, no_grad
from ._oflow import Tensor, grad

__all__ = ["Function", "FunctionCtx", "grad", "no_grad", "enable_grad"]


class FunctionCtx:
    """What ``forward`` keeps for ``backward``.

    ``needs_input_grad`` says of each argument whether a gradient is wanted; further attributes may be set freely.
    """

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self._saved = ()

    def save_for_backward(self, *tensors: Tensor | None):
        """Keeps tensors (or None) for ``saved_tensors``. A tensor that is written in place afterwards is refused in backward."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, _oflow.Tensor):
                raise TypeError(f"save_for_backward takes tensors, not {type(tensor).__name__}; set an attribute for other values")
        self._saved = tuple((tensor, None if tensor is None else tensor._version) for tensor in tensors)

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

    ``backward`` is given a gradient for each output (None where there is none) and returns one for each argument of ``forward``; that of
    an argument that is no tensor is None. Calls inside of ``forward`` are not recorded.

    A gradient that ``backward`` returns is summed to the shape of its argument and cast to its dtype, as in PyTorch; one in another place,
    or whose shape does not broadcast from that of the argument, is an error. Gradients go to tensors that are given by position: a tensor
    that requires one is refused as a keyword argument and within a list, tuple, dict or set.
    """

    @staticmethod
    def forward(ctx: Any, *args, **kwargs):
        raise NotImplementedError("a Function needs a static method forward(ctx, ...)")

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
        many = False

        def forward():
            nonlocal many
            with no_grad():
                result = cls.forward(ctx, *args, **kwargs)
            many = isinstance(result, (tuple, list))
            return list(result) if many else [result]

        def backward(*grads):
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
