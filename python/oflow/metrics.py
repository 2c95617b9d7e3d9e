"""Logs of metrics: numbers by step, in files that TensorBoard, pandas and ``oflow plot`` read.

    oflow.log(step, {"loss": loss, "lr": 1e-3})

writes to ``run/1.jsonl``, ``run/1.csv`` and event files in ``run/1``, or to the first number that is free. A ``Log`` has a path and settings of
its own. No call reads a tensor or communicates, unless a flush is due.
"""

import atexit
import operator
import os
import sys
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from . import _oflow
from ._oflow import Tensor

__all__ = ["Log", "flush_log", "log"]

_log_of_tensors = _oflow._function("log")

# In the order in which they were made, which is the same on every rank.
_live: "weakref.WeakValueDictionary[int, Log]" = weakref.WeakValueDictionary()
_made = 0


def _values(values, named):
    if values is not None and not hasattr(values, "items"):
        raise TypeError(f"values are given as a dict or by name, not as {type(values).__name__}")
    all = {**(values or {}), **named}
    for name in all:
        if not isinstance(name, str):
            raise TypeError(f"the name of a metric is a string, not {name!r}")
    if values is not None and len(all) < len(values) + len(named):
        raise ValueError("a name is given twice, in the dict and by name")
    return list(all.items())


def _step(step):
    step = operator.index(step)
    if step < 0:
        raise ValueError(f"steps are counted from 0: {step} is none")
    return step


class Log:
    """A log of metrics. Every rank makes one with the same arguments; rank 0 writes ``path.jsonl``, ``path.csv`` and event files in the folder
    ``path``.

    ``flush_every`` is the number of steps between two flushes. With ``resume`` the files of an earlier run are continued: rows of the first step
    that is logged, and of later ones, are removed. ``over_ranks`` says what is written of plain numbers and local tensors, of which each rank has
    its own: ``"first"`` takes those of rank 0, which need not be logged by others; ``"mean"``, ``"sum"``, ``"max"`` and ``"min"`` are over all ranks.
    """

    def __init__(self, path: str | os.PathLike[str], formats: Iterable[str] = ("jsonl", "csv", "tensorboard"), flush_every=10, resume=False, over_ranks="first"):
        global _made
        if isinstance(formats, str):
            formats = (formats,)
        self._log = _oflow._Log(os.fsdecode(path), list(formats), flush_every, resume, over_ranks)
        _made += 1
        self._number = _made
        _live[_made] = self

    def log(self, step: int, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Logs values of a step: tensors of one element, global ones in any layout, and numbers. A tensor is logged with the value that it has
        now."""
        self._log.log(_step(step), _values(values, named))

    def flush(self) -> None:
        """Writes what has been logged. Every rank calls it."""
        self._log.flush()

    def install(self) -> None:
        """Makes this the log of ``oflow.log``."""
        self._log.install()

    def close(self) -> None:
        """Flushes and ends the log. Every rank calls it."""
        self._log.flush()
        self._end()

    def _end(self):
        _live.pop(self._number, None)
        self._log.drop()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        # Other ranks may not have failed, so nothing is sent then.
        if kind is None:
            self._log.flush()
        self._end()


def log(*args, **named):
    """Logs values of a step to the installed log, else to a new one in the folder ``run``: ``oflow.log(step, {"loss": loss}, lr=0.1)``.

    With a tensor it is the function ``log`` of the table: the natural logarithm.
    """
    if not args or isinstance(args[0], Tensor) or not hasattr(args[0], "__index__"):
        return _log_of_tensors(*args, **named)
    step, *values = args
    if len(values) > 1:
        raise TypeError(f"log takes a step and a dict of values, and {len(values) - 1} more were given")
    _oflow._log(_step(step), _values(values[0] if values else None, named))


def flush_log() -> None:
    """Writes what ``oflow.log`` has kept. Every rank calls it. The end of a program does the same."""
    _oflow._flush_log()


def _flush_all():
    """At the end of a program that has not failed."""
    if not _oflow.is_initialized():
        return
    # After an exception other ranks may still compute, so only what needs no communication is written.
    failed = _oflow.world_size() > 1 and getattr(sys, "last_value", None) is not None
    for end in (*[each._log for each in list(_live.values())], None):
        try:
            if not failed:
                end.flush() if end else _oflow._flush_log()
            if end:
                end.drop()
        except Exception as e:
            print(f"oflow: the last steps of a log were not written: {e}", file=sys.stderr)


atexit.register(_flush_all)
