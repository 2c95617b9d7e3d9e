"""PyTorch's files: ``torch.save`` writes a zip archive, uncompressed, of one pickle and a file for each storage.

What an archive says of itself is not trusted: sizes, offsets and strides are checked against the bytes that are there, and no more bytes are
read than the file has.
"""

import contextlib
import math
import os
import struct
import sys
import zipfile
from collections import OrderedDict

import oflow

from . import _pt_pickle
from ._errors import StorageError, UnsupportedError
from ._pt_pickle import Global, Refused

_MOST_PICKLE = 64 << 20
# Elements of a tensor that repeats those of its storage.
_MOST_REPEATED = 1 << 24

# PyTorch's names of dtypes: of ours, and of NumPy's whose bytes they are.
DTYPES = {
    "float32": ("float32", "f4"),
    "float64": ("float64", "f8"),
    "float16": ("float16", "f2"),
    "bfloat16": ("bfloat16", "u2"),
    "float8_e4m3fn": ("float8_e4m3fn", "u1"),
    "float8_e5m2": ("float8_e5m2", "u1"),
    "complex64": ("complex64", "c8"),
    "complex128": ("complex128", "c16"),
    "int64": ("int64", "i8"),
    "int32": ("int32", "i4"),
    "int16": ("int16", "i2"),
    "int8": ("int8", "i1"),
    "uint8": ("uint8", "u1"),
    "uint16": ("uint16", "u2"),
    "uint32": ("uint32", "u4"),
    "bool": ("bool", "u1"),
}
STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}


def _numpy():
    try:
        import numpy
    except ImportError:
        raise UnsupportedError("files of PyTorch are read and written with NumPy, which is not installed: pip install numpy") from None
    return numpy


def is_file(path):
    """Whether a path is an open file, such as a ``BytesIO``."""
    return hasattr(path, "read") and hasattr(path, "seek")


def kind_of(path):
    """Whether a file is PyTorch's: "zip", "pickle" for what older versions wrote, or None."""
    if is_file(path):
        at = path.tell()
        start = path.read(16)
        path.seek(at)
    else:
        try:
            with open(path, "rb") as file:
                start = file.read(16)
        except OSError:
            return None
    if start[:4] == b"PK\x03\x04":
        return "zip"
    return "pickle" if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") else None


class _Storage:
    """The bytes of one storage, and the dtype that its class says; None for bytes alone."""

    def __init__(self, data, dtype):
        self.data, self.dtype, self.wide = data, dtype, {}


class _Archive:
    def __init__(self, file):
        self.left = file.seek(0, os.SEEK_END)
        self.zip, self.storages = zipfile.ZipFile(file), {}
        found = [name for name in self.zip.namelist() if name.endswith("/data.pkl") and name.count("/") == 1]
        if len(found) != 1:
            raise Refused("the archive is not one of torch.save: it has no data.pkl")
        self.folder = found[0].partition("/")[0]

    def read(self, name, most=None):
        """The bytes of a member."""
        try:
            info = self.zip.getinfo(f"{self.folder}/{name}")
        except KeyError:
            raise Refused(f"the archive lacks {name}") from None
        if info.flag_bits & 1:
            raise Refused(f"{name} is encrypted")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise Refused(f"{name} is compressed, which torch.save does not do")
        if most is not None and info.file_size > most:
            raise Refused(f"{name} has {info.file_size} bytes, and at most {most} are read")
        # Members may lie on each other: all together are not more than the file.
        self.left -= info.file_size
        if self.left < 0:
            raise Refused("the members of the archive have more bytes than the file")
        data = bytearray(info.file_size)
        with self.zip.open(info) as member:
            view, at = memoryview(data), 0
            while at < len(data):
                count = member.readinto(view[at:])
                if not count:
                    raise Refused(f"{name} ends after {at} of {len(data)} bytes")
                at += count
            # The end of the member is where its checksum is compared.
            member.read(1)
        return data

    def storage(self, dtype, key, count):
        if not isinstance(key, str) or not key.isalnum() or not _is_count(count):
            raise Refused("a storage has no name or no size")
        if key not in self.storages:
            self.storages[key] = _Storage(self.read(f"data/{key}"), dtype)
        found = self.storages[key]
        width = 1 if dtype is None else _numpy().dtype(DTYPES[dtype][1]).itemsize
        if found.dtype != dtype or count * width > len(found.data):
            raise Refused(f"the storage {key} is of {count} elements of {dtype or 'one byte'}, and has {len(found.data)} bytes")
        return found


def _is_count(value):
    return type(value) is int and 0 <= value < 1 << 62


def _counts(what, value):
    if not isinstance(value, (tuple, list)) or len(value) > 32 or not all(map(_is_count, value)):
        raise Refused(f"a tensor has {what} that are not up to 32 whole numbers of at least 0")
    return tuple(value)


def _rebuilt(storage, offset, size, stride, dtype, requires_grad):
    """The tensor that is a view of a storage."""
    np = _numpy()
    if not isinstance(storage, _Storage) or not _is_count(offset) or dtype not in DTYPES:
        raise Refused("a tensor has no storage, offset or dtype")
    size, stride = _counts("sizes", size), _counts("strides", stride)
    if len(size) != len(stride):
        raise Refused(f"a tensor has {len(size)} sizes and {len(stride)} strides")
    ours, theirs = DTYPES[dtype]
    width = np.dtype(theirs).itemsize
    there = len(storage.data) // width
    count = math.prod(size)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride)) + 1 if count else offset
    if last > there:
        raise Refused(f"a tensor of sizes {size}, strides {stride} and offset {offset} needs {last} elements, and its storage has {there}")
    if count > max(there, _MOST_REPEATED):
        raise Refused(f"a tensor has {count} elements, which repeat the {there} of its storage")
    if not count:
        return _leaf(oflow.zeros(size, dtype=oflow.dtype(ours)), requires_grad)
    flat = np.frombuffer(storage.data, np.dtype(theirs), there)
    if ours == "bool":
        flat = flat.view(np.bool_) if flat.max(initial=0) <= 1 else flat != 0
    if ours in _WIDENED:
        return _leaf(_of_wide(storage, flat, ours, offset, size, stride), requires_grad)
    view = np.lib.stride_tricks.as_strided(flat[offset:], size, [step * width for step in stride])
    return _leaf(oflow.from_numpy(view), requires_grad)


def _of_wide(storage, flat, dtype, offset, size, stride):
    """A view of a storage of a dtype that NumPy does not have: of one tensor for each storage, where its dims lie densely in some order."""
    if dtype not in storage.wide:
        storage.wide[dtype] = oflow.from_numpy(_WIDENED[dtype](flat)).cast(oflow.dtype(dtype))
    base = storage.wide[dtype]
    order = sorted(range(len(size)), key=lambda d: (-stride[d], -size[d]))
    dense, expected = True, 1
    for d in reversed(order):
        dense = dense and (size[d] == 1 or stride[d] == expected)
        expected *= size[d]
    if dense:
        found = base.narrow(0, offset, math.prod(size)).view(tuple(size[d] for d in order))
        return found.permute(*(order.index(d) for d in range(len(size)))) if size else found
    np = _numpy()
    width = flat.itemsize
    part = np.lib.stride_tricks.as_strided(flat[offset:], size, [step * width for step in stride])
    return oflow.from_numpy(_WIDENED[dtype](np.ascontiguousarray(part))).cast(oflow.dtype(dtype))


def _of_bfloat16(bits):
    np = _numpy()
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _of_float8_e5m2(bits):
    np = _numpy()
    return (bits.astype(np.uint16) << 8).view(np.float16).astype(np.float32)


def e4m3fn_values():
    """The values of the 128 bit patterns of float8_e4m3fn without sign."""
    np = _numpy()
    bits = np.arange(128)
    exponent, mantissa = bits >> 3, bits & 7
    values = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0))
    values[127] = np.nan
    return values.astype(np.float32)


def _of_float8_e4m3fn(bits):
    np = _numpy()
    values = e4m3fn_values()
    return np.concatenate([values, -values])[bits]


_WIDENED = {"bfloat16": _of_bfloat16, "float8_e5m2": _of_float8_e5m2, "float8_e4m3fn": _of_float8_e4m3fn}
"""For dtypes that NumPy does not have: the float32 values of their bits."""


def _leaf(tensor, requires_grad):
    return tensor.requires_grad_() if requires_grad is True else tensor


def _tensor_v2(storage=None, offset=None, size=None, stride=None, requires_grad=False, hooks=None, metadata=None):
    dtype = storage.dtype if isinstance(storage, _Storage) else None
    return _rebuilt(storage, offset, size, stride, dtype, requires_grad)


def _tensor_v3(storage=None, offset=None, size=None, stride=None, requires_grad=False, hooks=None, dtype=None, metadata=None):
    name = dtype.name if isinstance(dtype, oflow.dtype) else None
    return _rebuilt(storage, offset, size, stride, name, requires_grad)


def _parameter(data=None, requires_grad=True, hooks=None, state=None):
    if not isinstance(data, oflow.Tensor):
        raise Refused("a parameter has no tensor")
    return oflow.nn.Parameter(data.detach(), requires_grad=requires_grad is True)


def _ordered(*pairs):
    if pairs:
        raise Refused("an OrderedDict is made of pairs")
    return OrderedDict()


def _set(members=()):
    if not isinstance(members, (list, tuple)) or not all(map(_pt_pickle._is_key, members)):
        raise Refused("a set has members that are not numbers, texts, or tuples of these")
    return set(members)


def _size(sizes=()):
    return _counts("sizes", sizes)


def _encoded(text="", coding=""):
    # How protocol 2 writes bytes.
    if not isinstance(text, str) or coding != "latin1":
        raise Refused("the pickle has bytes where text of latin1 was expected")
    try:
        return text.encode("latin1")
    except UnicodeEncodeError:
        raise Refused("the pickle has bytes where text of latin1 was expected") from None


def _complex(real=0.0, imag=0.0):
    if not all(type(part) in (int, float) for part in (real, imag)):
        raise Refused("a complex number has parts of another type than numbers")
    return complex(real, imag)


def _device(*parts):
    if not parts or not isinstance(parts[0], str):
        raise Refused("a device has no name")
    return ":".join(str(part) for part in parts if isinstance(part, (str, int)))


def _called(name, make):
    def checked(*given):
        try:
            return make(*given)
        except TypeError as error:
            raise Refused(f"{name} has arguments that do not fit: {error}") from None

    return Global(name, checked)


_NAMES = {
    ("collections", "OrderedDict"): _called("OrderedDict", _ordered),
    ("torch._utils", "_rebuild_tensor_v2"): _called("a tensor", _tensor_v2),
    ("torch._utils", "_rebuild_tensor"): _called("a tensor", _tensor_v2),
    ("torch._utils", "_rebuild_tensor_v3"): _called("a tensor", _tensor_v3),
    ("torch._utils", "_rebuild_parameter"): _called("a parameter", _parameter),
    ("torch._utils", "_rebuild_parameter_with_state"): _called("a parameter", _parameter),
    ("torch", "Size"): _called("a shape", _size),
    ("torch", "device"): _called("a device", _device),
    ("builtins", "set"): _called("a set", _set),
    ("builtins", "complex"): _called("a complex number", _complex),
    ("_codecs", "encode"): _called("bytes", _encoded),
    ("torch.storage", "UntypedStorage"): Global("a storage"),
    **{("torch", name): Global(name, value=dtype) for name, dtype in STORAGES.items()},
    **{("torch", name): Global(name, value=oflow.dtype(ours)) for name, (ours, _) in DTYPES.items()},
}


def load(path):
    """The value of a file of ``torch.save``, of a path or an open one, with tensors on the CPU. Tensors that shared memory share it."""
    _numpy()
    if sys.byteorder != "little":
        raise UnsupportedError("files of PyTorch are read on little-endian machines")
    with contextlib.nullcontext(path) if is_file(path) else open(path, "rb") as file:
        path = getattr(file, "name", "the file")
        try:
            archive = _Archive(file)
            names = archive.zip.namelist()
            if f"{archive.folder}/constants.pkl" in names:
                raise Refused("it is a program of TorchScript. In PyTorch save the state_dict() of the model")
            if f"{archive.folder}/byteorder" in names and archive.read("byteorder", 16) != b"little":
                raise Refused("its numbers are big-endian")
            return _pt_pickle.read(bytes(archive.read("data.pkl", _MOST_PICKLE)), _NAMES, archive.storage)
        except Refused as error:
            raise StorageError(f"cannot load {path}: {error}") from None
        except (zipfile.BadZipFile, struct.error, NotImplementedError, EOFError, OSError, ValueError, OverflowError) as error:
            # What `zipfile` says of archives that are none.
            raise StorageError(f"cannot load {path}: the archive is damaged: {error}") from None


def refuse_pickle(path):
    """Refuses what ``torch.save`` of PyTorch before 1.6 wrote, and other pickles."""
    raise StorageError(
        f"cannot load {path}: it is a pickle, which may run any code, as torch.save wrote it before PyTorch 1.6. Save it anew in PyTorch: "
        "torch.save(torch.load(path), path)"
    )
