"""Plain values in the notation of checkpoints: JSON, and for what JSON does not have an object of one key that begins with ``$``.

A value comes back as it was, of the same type, or is refused when it is saved. ``src/state/notation`` is the same for Rust.
"""

import json
import math
import re
import struct
import sys
from collections import OrderedDict

import oflow

# Lists and objects in each other: readers of JSON refuse more than 127 levels.
_DEEPEST = 100
_KINDS = "None, bools, numbers, strings, bytes, lists, tuples, sets, dicts, arrays and scalars of NumPy, dtypes and devices"
# Kinds of NumPy's dtypes whose elements are their bytes.
_ARRAYS = "biufcSUmM"


class _Refused(Exception):
    """Why a value cannot be saved, as a sentence."""


def dumps(values, section):
    """The JSON text of a dict of values. Raises an error that names the value that cannot be saved."""
    found = {}
    for name, value in values.items():
        try:
            found[checked_name(name)] = _write(value, _DEEPEST, ())
        except _Refused as e:
            raise TypeError(f"'{name}' of '{section}' cannot be saved in a checkpoint: {e}") from None
    return json.dumps(found, allow_nan=False)


def loads(text):
    """The dict of values of a JSON text."""
    return {name: _read(value) for name, value in json.loads(text).items()}


def checked_name(name):
    """The name, if it is one that a file can have."""
    if not isinstance(name, str):
        raise TypeError(f"expected names that are strings, got {name!r}; save a dict with other keys as a value: {{'name': dict}}")
    if not _is_text(name):
        raise ValueError(f"expected a name of valid Unicode, got {name!r}; files hold UTF-8")
    return name


def _is_text(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _float(x):
    if math.isfinite(x):
        return x
    bits = struct.pack(">d", x).hex()
    return {"$float": {"7ff0000000000000": "inf", "fff0000000000000": "-inf", "7ff8000000000000": "nan"}.get(bits, bits)}


def _write(value, room, above):
    """The notation of a value of at most ``room`` levels; ``above`` are the ids of what it is in."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return value if _is_text(value) else {"$text": value.encode("utf-8", "surrogatepass").hex()}
    if kind is int:
        return value if -(2**63) <= value < 2**64 else {"$int": hex(value)}
    if kind is float:
        return _float(value)
    if kind is complex:
        return {"$complex": [_float(value.real), _float(value.imag)]}
    if kind in (bytes, bytearray):
        return {f"${kind.__name__}": value.hex()}
    if kind in (oflow.dtype, oflow.device):
        return {f"${kind.__name__}": value.name if kind is oflow.dtype else str(value)}
    if kind in (list, tuple, set, frozenset, dict, OrderedDict):
        if id(value) in above:
            raise _Refused(f"expected values without cycles, got a {kind.__name__} that contains itself")
        return _container(value, kind, room, (*above, id(value)))
    return _array(value)


def _container(value, kind, room, above):
    levels = 1 if kind is list else 3 if kind in (dict, OrderedDict) else 2
    if room < levels:
        raise _Refused(f"expected at most {_DEEPEST} levels of lists and dicts, got more; save it flat, or as text or bytes")

    def inside(v):
        return _write(v, room - levels, above)

    if kind is list:
        return [inside(v) for v in value]
    if kind is tuple:
        return {"$tuple": [inside(v) for v in value]}
    if kind in (set, frozenset):
        # In one order in every process.
        return {f"${kind.__name__}": sorted((inside(v) for v in value), key=json.dumps)}
    plain = kind is dict and all(type(k) is str and _is_text(k) for k in value)
    # Readers in Rust sort the keys of an object.
    if plain and list(value) == sorted(value) and not (len(value) == 1 and next(iter(value)).startswith("$")):
        return {k: inside(v) for k, v in value.items()}
    return {"$dict" if kind is dict else "$ordereddict": [[inside(k), inside(v)] for k, v in value.items()]}


def _array(value):
    """The notation of an array or a scalar of NumPy."""
    numpy, kind = sys.modules.get("numpy"), type(value)
    if numpy is not None and (kind is numpy.ndarray or isinstance(value, numpy.generic)):
        array = numpy.asarray(value)
        if array.dtype.kind in _ARRAYS and array.dtype.isbuiltin != 2:
            said = [array.dtype.str, list(array.shape), array.tobytes().hex()]
            return {"$array" if kind is numpy.ndarray else "$scalar": said}
        raise _Refused(f"expected an array of numbers, bools or text, got one of {array.dtype}; save its parts")
    bases = [base.__name__ for base in kind.__mro__[1:-1] if base in (int, float, str, bytes, tuple, list, dict, set, OrderedDict)]
    help = "save a tensor by a name of its own in the section" if isinstance(value, oflow.Tensor) else ""
    help = help or (f"save {bases[0]}(value)" if bases else "save its parts, or a text of it")
    raise _Refused(f"expected {_KINDS}, got {kind.__module__}.{kind.__qualname__}; {help}")


def _read_float(text):
    if text in ("inf", "-inf", "nan"):
        return float(text)
    value = struct.unpack(">d", bytes.fromhex(text))[0]
    if not math.isnan(value):
        raise ValueError(text)
    return value


def _read_array(said):
    import numpy

    # Not all that NumPy takes for a dtype: objects, records, texts that it evaluates.
    if not re.fullmatch(rf"[<>|][{_ARRAYS}]\d+(\[\w+\])?", said[0]):
        raise ValueError(said[0])
    return numpy.ndarray(tuple(said[1]), numpy.dtype(said[0]), bytes.fromhex(said[2])).copy()


def _pairs(kind):
    return lambda all: kind((_read(k), _read(v)) for k, v in all)


_READ = {
    "$float": _read_float,
    "$int": lambda text: int(text, 16),
    "$text": lambda text: bytes.fromhex(text).decode("utf-8", "surrogatepass"),
    "$complex": lambda parts: complex(*map(_read, parts)),
    "$bytes": bytes.fromhex,
    "$bytearray": bytearray.fromhex,
    "$tuple": lambda all: tuple(map(_read, all)),
    "$set": lambda all: set(map(_read, all)),
    "$frozenset": lambda all: frozenset(map(_read, all)),
    "$dict": _pairs(dict),
    "$ordereddict": _pairs(OrderedDict),
    "$array": _read_array,
    "$scalar": lambda said: _read_array(said)[()],
    "$dtype": lambda name: oflow.dtype(name),
    "$device": lambda name: oflow.device(name),
    # Rust's Some(None).
    "$some": lambda value: _read(value),
}


def _read(value):
    """The value of a notation."""
    if isinstance(value, list):
        return [_read(v) for v in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (tag := next(iter(value))).startswith("$"):
        try:
            return _READ[tag](value[tag])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, struct.error) as e:
            raise ValueError(f"expected the notation of a plain value, got {str(value)[:80]}; a newer oflow may have saved it") from e
    return {k: _read(v) for k, v in value.items()}
