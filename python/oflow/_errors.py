"""The exceptions of oflow, one class for each kind of error of the library."""

from typing import Any


class Error(RuntimeError):
    """An error of oflow. The text names the call, its inputs, the line of the Python program, and help where there is some.

    Attributes: ``kind`` (name of the kind), ``message`` (the sentence alone), ``help``, ``site`` (file and line of the call),
    ``places`` (what ranks were doing, if the error is about several ranks), ``missing_rank``.
    """

    kind: str = "Internal"
    message: str | Any = None
    help: str | Any = None
    site: tuple[str, int] | Any = None
    places: tuple[Any, ...] = ()
    missing_rank: int | None = None


class ShapeError(Error, ValueError):
    """Sizes do not match."""


class DTypeError(Error, TypeError):
    """Element types do not match."""


class SbpError(Error, ValueError):
    """No legal SBP signature, or an SBP that is not valid for the tensor."""


class PlacementError(Error, ValueError):
    """Placements or meshes do not match."""


class ArgumentError(Error, ValueError):
    """An argument is out of range or of the wrong kind."""


class ParseError(Error, ValueError):
    """Text could not be parsed: an SBP, a shape, a signature, an expression."""


class ContextError(Error):
    """A global tensor was used without a rank."""


class UnsupportedError(Error, NotImplementedError):
    """oflow does not support this."""


class AutogradError(Error):
    """Misuse of gradients."""


class RegistryError(Error, LookupError):
    """The name belongs to none of the ops and functions, or to several."""


class DeniedError(Error):
    """The boxing policy in force denies this communication."""


class OutOfRangeError(Error, IndexError):
    """An index does not fit the tensor, or a value such as an index or a class is out of range, which a kernel has found."""


class OutOfMemoryError(Error, MemoryError):
    """Out of memory."""


class IoError(Error, OSError):
    """A file or a socket failed."""


class StorageError(Error):
    """A checkpoint cannot be written or read."""


class DeviceError(Error):
    """The device failed."""


class CommError(Error):
    """Communication with other ranks failed."""


class PeerError(Error):
    """Another rank has died, left or reported a failure."""


class LinkError(Error):
    """The connection to another host is cut, or delivers no data."""


class DivergedError(Error):
    """Ranks issued different ops."""


class InternalError(Error):
    """A fault of oflow itself."""


# Tracebacks name them as programs do: `oflow.ShapeError`.
for _class in [c for c in list(globals().values()) if isinstance(c, type) and issubclass(c, Error)]:
    _class.__module__ = "oflow"
del _class
