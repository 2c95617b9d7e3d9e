"""Special functions: ``oflow.special.erfinv(x)``, with the names and the meaning of ``torch.special``."""

from ._namespace import Namespace as _Namespace

_functions = _Namespace("special")


def __getattr__(name):
    try:
        return getattr(_functions, name)
    except AttributeError as error:
        raise AttributeError(f"module 'oflow.special' has no attribute '{name}': {error}") from None


def __dir__():
    return dir(_functions)
