"""Hooks of modules: functions that see the arguments, the result and the gradients of each call."""

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import oflow

from .. import _oflow
from .._hooks import RemovableHandle, added
from .._oflow import Tensor


class _Hook(NamedTuple):
    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


TABLES = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
"""Tables of hooks that each module has."""


class Hooked:
    """What a module has of hooks."""

    _forward_hooks: OrderedDict[int, Any]
    _forward_pre_hooks: OrderedDict[int, Any]
    _backward_hooks: OrderedDict[int, Any]
    _backward_pre_hooks: OrderedDict[int, Any]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    def _make_hook_tables(self):
        for name in TABLES:
            object.__setattr__(self, name, OrderedDict())

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args, result)`` after each forward, ``hook(module, args, kwargs, result)`` with ``with_kwargs``; a result
        that is not None replaces that of forward. With ``always_call`` also after a forward that raised, with None as its result."""
        return added(self._forward_hooks, _Hook(hook, with_kwargs, always_call), prepend)

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Calls ``hook(module, args)`` before each forward; a result that is not None replaces the arguments by position. With
        ``with_kwargs`` it is ``hook(module, args, kwargs)``, and a result is the pair of both."""
        return added(self._forward_pre_hooks, _Hook(hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)`` in backward, with tuples of the gradients of the arguments by position and of the
        results, None for what is no tensor or has no gradient. A result that is not None replaces ``grad_input``.

        Without an argument that requires a gradient the hook is called as soon as the gradients of the results are there.
        """
        return added(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(module, grad_output)`` in backward before the gradients pass through the module. A result that is not None replaces
        ``grad_output``."""
        return added(self._backward_pre_hooks, hook, prepend)

    def _hooked_call(self, args, kwargs):
        """The call of a module that has hooks."""
        called = set()
        try:
            return self._forward_between(args, kwargs, called)
        except Exception:
            for number, hook in tuple(self._forward_hooks.items()):
                if hook.always_call and number not in called:
                    try:
                        hook.function(self, args, kwargs, None) if hook.with_kwargs else hook.function(self, args, None)
                    except Exception as error:
                        warnings.warn(f"a forward hook with always_call=True raised {type(error).__name__}: {error}", stacklevel=2)
            raise

    def _forward_between(self, args, kwargs, called):
        for hook in tuple(self._forward_pre_hooks.values()):
            if hook.with_kwargs:
                changed = hook.function(self, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError(f"a forward pre-hook with kwargs returns None or a pair (args, kwargs), not {changed!r}")
                    args, kwargs = changed
            else:
                changed = hook.function(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        gradients = _Gradients(self, len(args)) if self._backward_hooks or self._backward_pre_hooks else None
        if gradients is not None:
            args = gradients.of_arguments(args)
        result = self.forward(*args, **kwargs)
        for number, hook in tuple(self._forward_hooks.items()):
            called.add(number)
            changed = hook.function(self, args, kwargs, result) if hook.with_kwargs else hook.function(self, args, result)
            if changed is not None:
                result = changed
        return result if gradients is None else gradients.of_results(result)


class _Gradients:
    """The backward of one call of a module: passes gradients of its results and of its arguments to hooks."""

    def __init__(self, module, count):
        self.module, self.count = module, count
        self.before, self.after = list(module._backward_pre_hooks.values()), list(module._backward_hooks.values())
        self.grad_output, self.has_input = None, False

    def of_arguments(self, args):
        """The same arguments, whose gradients go to the hooks."""
        at = _with_gradients(args)
        if not at or not self.after:
            return args
        self.has_input = True

        def backward(*grads):
            # Another part of the graph may have reached an argument and no result.
            if self.grad_output is None:
                return grads
            given = _filled(self.count, at, grads)
            given = self._after(given)
            self.grad_output = None
            return tuple(given[i] for i in at)

        return _through(args, at, backward)

    def of_results(self, result):
        """The same results, whose gradients go to the hooks."""
        results = result if isinstance(result, tuple) else (result,)
        at = _with_gradients(results)
        if not at:
            return result

        def backward(*grads):
            given = _filled(len(results), at, grads)
            for hook in self.before:
                given = _replaced("a full backward pre-hook", hook(self.module, given), given)
            self.grad_output = given
            if not self.has_input:
                none = (None,) * self.count
                for hook in self.after:
                    changed = hook(self.module, none, given)
                    if changed is not None and any(g is not None for g in changed if isinstance(changed, tuple)):
                        raise RuntimeError("a full backward hook gave gradients of arguments that require none")
                self.grad_output = None
            return tuple(given[i] for i in at)

        made = _through(results, at, backward)
        if not isinstance(result, tuple):
            return made[0]
        return type(result)(*made) if hasattr(result, "_fields") else made

    def _after(self, given):
        for hook in self.after:
            given = _replaced("a full backward hook", hook(self.module, given, self.grad_output), given)
        return given


def _with_gradients(values):
    if not oflow.is_grad_enabled():
        return []
    return [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]


def _filled(count, at, grads):
    given = [None] * count
    for i, g in zip(at, grads):
        given[i] = g
    return tuple(given)


def _replaced(what, changed, given):
    if changed is None:
        return given
    changed = changed if isinstance(changed, tuple) else (changed,)
    if len(changed) != len(given):
        raise RuntimeError(f"{what} returned {len(changed)} gradients for {len(given)}")
    return changed


def _through(values, at, backward):
    """The values, of which those at some places pass their gradients through a function."""
    given = [values[i] for i in at]
    made = _oflow._apply_custom("hook", given, lambda: [x.detach().view_as(x) for x in given], backward)
    now = list(values)
    for i, x in zip(at, made):
        now[i] = x
    return tuple(now)
