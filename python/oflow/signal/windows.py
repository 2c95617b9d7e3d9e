"""Windows of signals, which fade out towards both ends: ``hann(64)``, with the names and the meaning of ``torch.signal.windows``."""

from .._namespace import Namespace as _Namespace

_functions = _Namespace("signal.windows")


def __getattr__(name):
    try:
        return getattr(_functions, name)
    except AttributeError as error:
        raise AttributeError(f"module 'oflow.signal.windows' has no attribute '{name}': {error}") from None


def __dir__():
    return dir(_functions)
