"""All functions of the table, by their own names: also those that ``oflow`` has a class or a module for (``placement``, ``sbp``)."""

from . import _oflow
from ._namespace import _function
from ._namespace import find as _find


def __getattr__(name):
    if name in _oflow._names:
        found = _function(name)
        globals()[name] = found
        return found
    return _find(name)


def __dir__():
    return _oflow._function_names()
