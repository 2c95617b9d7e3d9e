"""Functions that a program registers: ``oflow.function``."""

import inspect
from collections.abc import Callable
from typing import Any

from . import _namespace, _oflow


def function(signature: str, body=None, *, doc: str | None = None) -> Callable[..., Any]:
    """Registers a function that calls other functions, and returns it. It is also ``oflow.<name>``, and a call by its name in Rust.

        @oflow.function("mine.scaled_relu(Tensor x, *, Float by=2.0) -> Tensor")
        def scaled_relu(x, by):
            return (x * by).relu()

        oflow.mine.scaled_relu(x, by=3.0)

    The signature is text, with the types of parameters and result, as ``oflow ops`` shows them. The body gets every parameter, defaults
    filled in: those behind ``*`` by name, the others by position, and None for an optional one that was left out. A ``TensorTuple`` is a
    tuple of tensors, a ``TensorIndex`` indexes a tensor (``x[index]``), a ``Target`` is a dict of the keywords of a factory
    (``oflow.zeros(size, **target)``).

    The body returns what the signature says: a Tensor, a tuple of as many as it names, a tuple or list for ``TensorTuple``, None for
    ``Void``, or a number, text, shape and the like. It needs no gradient: that of the functions it calls flows.

    A second registration under a name adds an overload: a call runs the first one, in order of registration, that takes its arguments.
    A function cannot be taken back. ``doc`` is the description, without it the docstring of the body.
    """
    if not isinstance(signature, str):
        raise TypeError(f"function() takes the text of a signature, not {type(signature).__name__}")

    def register(body):
        name = _oflow._register_function(signature, body, doc or (inspect.getdoc(body) if inspect.isroutine(body) else None))
        # Its description has one overload more.
        _namespace._found.pop(name, None)
        return _namespace._function(name)

    return register if body is None else register(body)
