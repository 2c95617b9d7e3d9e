"""Functions by name: of the table, of ops that were registered later, and of domains."""

from . import _oflow
from ._elsewhere import OF_THE_MODULE

_found: dict = {}


def _function(name):
    """The function of that full name, made once."""
    if name not in _found:
        _found[name] = _oflow._function(name)
    return _found[name]


class Namespace:
    """The functions of a domain: ``oflow.mine.scaled`` is the function ``scaled`` of the domain ``mine``."""

    def __init__(self, domain):
        self._domain = domain

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self._domain}.{name}"
        if any(other.startswith(full + ".") for other in _oflow._function_names()):
            return Namespace(full)
        try:
            return _function(full)
        except LookupError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self):
        start = self._domain + "."
        return sorted({name[len(start) :].split(".")[0] for name in _oflow._function_names() if name.startswith(start)})

    def __repr__(self):
        return f"<functions of the domain {self._domain}>"


def find(name):
    """What ``oflow.<name>`` is, where the module itself does not have it."""
    if name.startswith("__"):
        raise AttributeError(f"module 'oflow' has no attribute '{name}'")
    if any(other.startswith(name + ".") for other in _oflow._function_names()):
        return Namespace(name)
    try:
        return _function(name)
    except LookupError as error:
        said = OF_THE_MODULE.get(name, error)
        raise AttributeError(f"module 'oflow' has no attribute '{name}': {said}") from None
