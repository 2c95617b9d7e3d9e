"""Linear algebra: ``oflow.linalg.svd(x)``, with the names and the meaning of ``torch.linalg``.

All functions take batches of matrices of float32, float64, complex64 or complex128, on the CPU. A global tensor may be split along its
batch dims; along the others it is gathered first. All are differentiable, to any order, but ``ldl_factor`` and ``ldl_solve``.
"""

from ._namespace import Namespace as _Namespace

_functions = _Namespace("linalg")


def __getattr__(name):
    try:
        return getattr(_functions, name)
    except AttributeError as error:
        raise AttributeError(f"module 'oflow.linalg' has no attribute '{name}': {error}") from None


def __dir__():
    return dir(_functions)
