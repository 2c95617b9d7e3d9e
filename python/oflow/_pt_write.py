"""Writes files that ``torch.load`` reads, with ``weights_only=True`` too."""

import os
import secrets
import struct
import zipfile
from collections import OrderedDict

import oflow

from ._errors import StorageError, UnsupportedError
from ._pt_file import DTYPES, STORAGES, _numpy, e4m3fn_values
from ._pt_pickle import DEEPEST

_STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}


def _bytes(tensor):
    """The elements of a local tensor, row by row."""
    np = _numpy()
    tensor = tensor.detach().to("cpu").contiguous()
    name = tensor.dtype.name
    if name == "bfloat16":
        return (tensor.cast(oflow.float32).numpy().view(np.uint32) >> 16).astype(np.uint16).tobytes()
    if name == "float8_e5m2":
        return (tensor.cast(oflow.float16).numpy().view(np.uint16) >> 8).astype(np.uint8).tobytes()
    if name == "float8_e4m3fn":
        wide = tensor.cast(oflow.float32).numpy()
        bits = np.searchsorted(e4m3fn_values()[:127], np.abs(wide))
        return (np.where(np.isnan(wide), 127, bits) | np.signbit(wide) << 7).astype(np.uint8).tobytes()
    return np.ascontiguousarray(tensor.numpy()).tobytes()


class _Writer:
    """The pickle of one value, in protocol 2, and the storages of its tensors."""

    def __init__(self):
        self.out, self.storages, self.keys = [], [], {}

    def name(self, module, name):
        self.out.append(f"c{module}\n{name}\n".encode())

    def text(self, value):
        data = value.encode("utf-8", "surrogatepass")
        self.out.append(b"X" + struct.pack("<I", len(data)) + data)

    def value(self, value, path, room, above):
        if id(value) in above:
            raise ValueError(f"save: {path} contains itself")
        if room < 0:
            raise ValueError(f"save: {path} is more than {DEEPEST} levels of lists and dicts deep")
        kind, out = type(value), self.out
        if value is None or kind is bool:
            out.append(b"N" if value is None else b"\x88" if value else b"\x89")
        elif kind is int:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            if len(data) > 255:
                raise ValueError(f"save: {path} is a number of {len(data)} bytes")
            out.append(b"J" + struct.pack("<i", value) if -(2**31) <= value < 2**31 else b"\x8a" + bytes([len(data)]) + data)
        elif kind is float:
            out.append(b"G" + struct.pack(">d", value))
        elif kind is str:
            self.text(value)
        elif kind is bytes:
            self.name("_codecs", "encode")
            self.text(value.decode("latin1"))
            self.text("latin1")
            out.append(b"\x86R")
        elif kind is complex:
            self.name("__builtin__", "complex")
            out.append(b"G" + struct.pack(">d", value.real) + b"G" + struct.pack(">d", value.imag) + b"\x86R")
        elif isinstance(value, oflow.Tensor):
            self.tensor(value, path)
        elif kind is oflow.dtype:
            if value.name not in DTYPES:
                raise UnsupportedError(f"save: {path} is {value}, which PyTorch's files do not have")
            self.name("torch", value.name)
        else:
            self.container(value, path, room - 1, (*above, id(value)))

    def container(self, value, path, room, above):
        kind, out = type(value), self.out
        if kind in (dict, OrderedDict):
            if kind is dict:
                out.append(b"}(")
            else:
                self.name("collections", "OrderedDict")
                out.append(b")R(")
            for key, member in value.items():
                self.value(key, f"a key of {path}", room, above)
                self.value(member, f"{path}[{key!r}]", room, above)
            out.append(b"u")
            # State dicts have the versions of their modules.
            metadata = getattr(value, "_metadata", None) if kind is OrderedDict else None
            if metadata is not None:
                self.value({"_metadata": metadata}, f"{path}._metadata", room, above)
                out.append(b"b")
        elif kind in (list, tuple, set):
            if kind is set:
                self.name("__builtin__", "set")
            out.append(b"(" if kind is tuple else b"](")
            for i, member in enumerate(value):
                self.value(member, f"{path}[{i}]", room, above)
            out.append({list: b"e", tuple: b"t", set: b"e\x85R"}[kind])
        else:
            raise TypeError(
                f"save: {path} is a {kind.__module__}.{kind.__qualname__}; a file holds tensors, numbers, texts, bytes, dtypes, and dicts, lists, "
                "tuples and sets of them. Save the state_dict() of a module, an optimizer or a scheduler"
            )

    def tensor(self, tensor, path):
        name = tensor.dtype.name
        if name not in DTYPES:
            raise UnsupportedError(f"save: {path} is {tensor.dtype}, which PyTorch's files do not have")
        if tensor.is_global:
            key = id(tensor)
            local = tensor.detach().to_global(sbp=(oflow.sbp.broadcast,) * len(tensor.sbp)).to_local()
        else:
            local = tensor.detach()
            # Tensors of the same memory are one storage.
            key = (local.data_ptr(), tuple(local.shape), tuple(local.stride()), name) if local.device.type == "cpu" else id(tensor)
        if key not in self.keys:
            self.keys[key] = len(self.storages)
            # The tensor keeps its address for the time of the call.
            self.storages.append((_bytes(local), tensor))
        number, out = self.keys[key], self.out
        size = tuple(local.shape)
        stride, step = [], 1
        for n in reversed(size):
            stride.insert(0, step)
            step *= max(n, 1)
        typed = name in _STORAGE_OF
        parameter = isinstance(tensor, oflow.nn.Parameter)
        if parameter:
            self.name("torch._utils", "_rebuild_parameter")
        self.name("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3")
        out.append(b"((")
        self.text("storage")
        self.name(*(("torch", _STORAGE_OF[name]) if typed else ("torch.storage", "UntypedStorage")))
        self.text(str(number))
        self.text("cpu")
        data = self.storages[number][0]
        self.value(local.numel() if typed else len(data), "", 0, ())
        out.append(b"tQ")
        for part in (0, size, tuple(stride), bool(tensor.requires_grad) and tensor.is_leaf and not parameter):
            self.value(part, "", 1, ())
        self.name("collections", "OrderedDict")
        out.append(b")R")
        if not typed:
            self.name("torch", name)
        out.append(b"tR")
        if parameter:
            self.value(bool(tensor.requires_grad), "", 0, ())
            self.name("collections", "OrderedDict")
            out.append(b")R\x87R")


def save(value, path):
    """Writes a value to a file. With global tensors all ranks call this; rank 0 writes, and the others return when it has."""
    _numpy()
    writer = _Writer()
    writer.value(value, "the value", DEEPEST, ())
    together = any(tensor.is_global for _, tensor in writer.storages)
    error = None
    if not together or oflow.rank() == 0:
        try:
            _write(writer, path)
        except OSError as e:
            error = StorageError(f"cannot write {path}: {e.strerror or e}")
    if together:
        # Every rank returns behind rank 0's write, and hears whether it failed.
        failed = oflow.tensor([0.0 if error is None else 1.0]).to_global(oflow.placement.all("cpu"), "P").sum().item()
        if failed and error is None:
            error = StorageError(f"rank 0 cannot write {path}")
    if error is not None:
        raise error


def _write(writer, path):
    if hasattr(path, "write"):
        _write_archive(writer, path)
        return
    path = os.fsdecode(path)
    # A new name that nobody else has made; the file is there whole or not at all.
    part = f"{path}.{secrets.token_hex(8)}.part"
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o644)
    try:
        with os.fdopen(handle, "wb") as file:
            _write_archive(writer, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def _write_archive(writer, file):
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + b"".join(writer.out) + b".")
        archive.writestr("archive/byteorder", b"little")
        for number, (data, _) in enumerate(writer.storages):
            archive.writestr(f"archive/data/{number}", data)
        archive.writestr("archive/version", b"3\n")
