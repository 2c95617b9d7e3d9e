"""Modes of the current thread, as context managers and decorators."""

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

from . import _oflow


class _Mode:
    """A mode: ``with mode():``, ``@mode()``, and, where it needs no value, ``@mode``."""

    _name: str | None = None

    def __new__(cls, function=None, *args, **kwargs):
        self = super().__new__(cls)
        if callable(function) and not args and not kwargs:
            self.__init__()
            return self(function)
        return self

    def __init__(self, value=None):
        self._numbers = []
        self._value = value

    def __enter__(self):
        self._numbers.append((threading.get_ident(), _oflow._enter(self._name, self._value)))
        return self

    def __exit__(self, *_):
        # One object may be entered on several threads. A mode that this thread did not enter ends on its own thread.
        here = threading.get_ident()
        own = [i for i, (thread, _) in enumerate(self._numbers) if thread == here]
        _oflow._leave(self._numbers.pop(own[-1] if own else -1)[1])

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):
            return self._each_part(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with type(self)._again(self):
                return function(*args, **kwargs)

        return wrapped

    def _each_part(self, function):
        # The mode is in force while the generator runs, not between its values.
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            run, given = generator.__next__, ()
            while True:
                try:
                    with type(self)._again(self):
                        value = run(*given)
                except StopIteration as end:
                    return end.value
                try:
                    run, given = generator.send, ((yield value),)
                except GeneratorExit:
                    with type(self)._again(self):
                        generator.close()
                    raise
                except BaseException as error:
                    run, given = generator.throw, (error,)

        return wrapped

    def _again(self):
        # A mode of its own for each call: a decorated function may call itself, and run on several threads.
        again = object.__new__(type(self))
        again.__dict__.update(self.__dict__, _numbers=[])
        return again


class no_grad(_Mode):
    """Calls are not recorded for backward."""

    _name = "no_grad"


class enable_grad(_Mode):
    """Calls are recorded for backward, inside of ``no_grad``."""

    _name = "enable_grad"


class inference_mode(_Mode):
    """Calls are not recorded for backward, as inside of ``no_grad``; with ``mode=False`` they are."""

    def __new__(cls, mode=True):
        return super().__new__(cls, mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode=True):
        super().__init__()
        self._name = "no_grad" if mode else "enable_grad"


class set_grad_enabled:
    """Records calls for backward from now on, or does not; as a context manager until its end.

    Outside of ``with`` it holds for the rest of the thread.
    """

    def __init__(self, mode: bool):
        self._mode = enable_grad() if mode else no_grad()
        self._mode.__enter__()
        self._holds = True

    def __enter__(self):
        # It has held since it was made.
        if not self._holds:
            self._mode.__enter__()
            self._holds = True
        return self

    def __exit__(self, *_):
        self._holds = False
        self._mode.__exit__()

    def __call__(self, function):
        # For the calls of the function only.
        self.__exit__()
        return self._mode(function)


class no_sync(_Mode):
    """Gradients of leaves keep the SBP of backward, usually partial: micro-batches accumulate without communication."""

    _name = "no_sync"


class detect_anomaly(_Mode):
    """The first call that makes a NaN raises an error that names it. For debugging: every call waits for its result."""

    _name = "detect_anomaly"


class source_thread(_Mode):
    """This thread makes inputs for a session: calls on global tensors, and draws from the generators of the rank, are errors."""

    _name = "source"


class keep_layouts(_Mode):
    """An op that can run on the layouts of its inputs runs on them, also where moving one first would cost less."""

    _name = "keep_layouts"


class name_scope(_Mode):
    """Errors, records and reports name the calls inside by this path; scopes nest."""

    _name = "name_scope"


class span(_Mode):
    """Shows the block under a name in timelines and profiles (``oflaunch --trace``, ``oflow.profile``)."""

    _name = "span"


class autocast(_Mode):
    """Matrix products and attention run in ``oflow.bfloat16`` or ``oflow.float16``; ``enabled=False`` switches an outer one off.

    ``autocast(dtype)``, or as in PyTorch ``autocast("cuda", dtype)``: the mode holds for all devices, and the dtype is bfloat16 unless one is
    given."""

    _name = "autocast"

    def __init__(self, device_type=None, dtype=None, enabled=True, cache_enabled=None):
        # PyTorch names a device first; here the mode holds for all.
        if device_type is not None and not (isinstance(device_type, str) and device_type.partition(":")[0] in ("cpu", "cuda")):
            if dtype is not None:
                raise TypeError(f"autocast takes a device such as 'cpu' before the dtype, not {device_type!r}")
            device_type, dtype = None, device_type
        dtype = _oflow.bfloat16 if dtype is None else dtype
        super().__init__(_oflow.dtype(dtype).name if enabled else "off")


class boxing_policy(_Mode):
    """Which communication ops may cause: ``allow``, ``log``, ``deny`` or ``deny_all``; ``warn_above_bytes`` and
    ``warn_above_micros`` with a number."""

    def __init__(self, policy: str, value=None):
        if policy not in ("allow", "log", "deny", "deny_all", "warn_above_bytes", "warn_above_micros"):
            raise ValueError(f"unknown boxing policy {policy!r}")
        super().__init__(value)
        self._name = policy


class pin_sbp(_Mode):
    """Every call of an op on global tensors returns its result in this layout."""

    _name = "pin_sbp"

    def __init__(self, op: str, sbp):
        super().__init__((op, sbp))


class watch_calls(_Mode):
    """Hooks that see each call of an op on this thread: those that functions and gradients make too, forward and backward.

        def count(call):
            counts[call.op] += 1

        with oflow.watch_calls(count):
            model(x).sum().backward()

    ``before(call)`` is called before a call runs, ``after(call, results)`` with the tensors that it returned. ``call`` has ``op``,
    ``inputs``, ``attrs``, ``in_place`` and ``site`` (file and line). An exception is that of the call; one of ``before`` keeps it from
    running. What ``after`` returns, unless that is None, replaces the results: a Tensor, or a tuple of as many, of the same shapes,
    dtypes and layouts. The hooks' own calls are not seen. On global tensors hooks do the same on every rank.

    PyTorch's counterpart is ``TorchDispatchMode``.
    """

    _name = "watch_calls"

    def __new__(cls, *_, **__):
        # A function alone is a hook, and none to decorate.
        return object.__new__(cls)

    def __init__(self, before: Callable[..., Any] | None = None, after: Callable[..., Any] | None = None):
        if before is None and after is None:
            raise TypeError("watch_calls() takes a hook: before(call), or after=after(call, results)")
        for what, hook in (("before", before), ("after", after)):
            if hook is not None and not callable(hook):
                raise TypeError(f"{what} must be a function, not {type(hook).__name__}")
        super().__init__((before, after))
