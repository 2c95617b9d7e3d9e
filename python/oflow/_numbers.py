"""Limits of dtypes and constants, as in PyTorch."""

import math

from . import _oflow
from ._oflow import dtype as _dtype

e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
newaxis = None
"""A new dim in an index: ``x[:, newaxis]``."""

# Of each float dtype: bits, bits of the exponent, bits of the fraction.
_FLOATS = {"float16": (16, 5, 10), "bfloat16": (16, 8, 7), "float32": (32, 8, 23), "float64": (64, 11, 52)}
_FLOATS.update(complex64=_FLOATS["float32"], complex128=_FLOATS["float64"])
_INTEGERS = {"uint8": 8, "int8": 8, "int16": 16, "uint16": 16, "uint32": 32, "int32": 32, "int64": 64}


def _named(of, known, other):
    name = of.name if isinstance(of, _dtype) else _dtype(of).name
    if name not in known:
        raise TypeError(f"{name} has no such limits: `{other}` takes {', '.join(known)}")
    return name


class finfo:
    """Limits of a dtype of floats: ``bits``, ``eps``, ``max``, ``min``, ``tiny``, ``smallest_normal``, ``resolution``."""

    def __init__(self, type=None):
        self.dtype = _named(_oflow.float32 if type is None else type, _FLOATS, "finfo")
        self.bits, exponent, fraction = _FLOATS[self.dtype]
        most = 2 ** (exponent - 1) - 1
        self.eps = 2.0**-fraction
        self.max = (2 - self.eps) * 2.0**most
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - most)
        self.resolution = 10.0 ** -math.floor(fraction * math.log10(2))

    def __repr__(self):
        numbers = ", ".join(f"{name}={getattr(self, name):g}" for name in ("resolution", "min", "max", "eps", "smallest_normal", "tiny"))
        return f"finfo({numbers}, dtype={self.dtype})"


class iinfo:
    """Limits of a dtype of integers: ``bits``, ``max``, ``min``."""

    def __init__(self, type):
        self.dtype = _named(type, _INTEGERS, "iinfo")
        self.bits = _INTEGERS[self.dtype]
        self.min, self.max = (0, 2**self.bits - 1) if self.dtype[0] == "u" else (-(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1)

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
