"""Discrete Fourier transforms: ``oflow.fft.rfft(x)``, with the names and the meaning of ``torch.fft``.

All functions take real and complex tensors on the CPU and are differentiable, to any order. A global tensor may be split along every dim
that is not transformed, or be partial; along the dims that are transformed it is gathered first.
"""

from ._namespace import Namespace as _Namespace

_functions = _Namespace("fft")


def __getattr__(name):
    try:
        return getattr(_functions, name)
    except AttributeError as error:
        raise AttributeError(f"module 'oflow.fft' has no attribute '{name}': {error}") from None


def __dir__():
    return dir(_functions)
