"""Memory of a rank: how much is in use, and for what."""

import json
from typing import Any, NamedTuple

from . import _oflow


class MemoryStats(NamedTuple):
    """Bytes of a device's memory: in use, cached for later, and the most that were in use."""

    live: int
    cached: int
    peak: int


class MemoryHolder(NamedTuple):
    """Memory that one line of the program holds through one op."""

    used_for: str
    """``parameters``, ``gradients``, ``optimizer state``, ``activations``, ``backward``, ``boxing``, ``workspace``, ``data`` or ``graphs``;
    ``small blocks`` are all blocks of less than 4 KiB."""
    op: str
    file: str
    line: int
    scope: str
    """Path of the module; of a parameter that of the module that used it first."""
    bytes: int
    blocks: int


class MemoryFailure(NamedTuple):
    """An allocation that failed, and who held memory then."""

    bytes: int
    op: str
    line: str
    live: int
    held: list[MemoryHolder]


class DeviceMemory(NamedTuple):
    """Memory of one device: who holds it now, and who held it at the peak; the largest first."""

    device: str
    stats: MemoryStats
    now: list[MemoryHolder]
    peak: list[MemoryHolder]
    failure: MemoryFailure | None


class MemoryReport:
    """Who holds the memory of this rank. ``print(report)`` shows tables."""

    def __init__(self, text: str, of: dict[str, Any]) -> None:
        self._text = text
        self.rank: int = of["rank"]
        self.devices: list[DeviceMemory] = [_device(d) for d in of["devices"]]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        used = ", ".join(f"{d.device} {d.stats.live} bytes" for d in self.devices)
        return f"MemoryReport(rank {self.rank}: {used})"


def _holders(rows: list[dict[str, Any]]) -> list[MemoryHolder]:
    return [MemoryHolder(**row) for row in rows]


def _device(of: dict[str, Any]) -> DeviceMemory:
    stats, failure = of["stats"], of["failure"]
    if failure is not None:
        failure = MemoryFailure(**{**failure, "held": _holders(failure["held"])})
    stats = MemoryStats(stats["live"], stats["cached"], stats["peak"])
    return DeviceMemory(of["device"], stats, _holders(of["now"]), _holders(of["peak"]), failure)


def memory_report() -> MemoryReport:
    """Returns who holds the memory of this rank's devices, now and at the peak: by use, op, line of the program and module.

    It needs no preparation. The bytes of all holders together are the counters of :func:`memory_stats`.
    """
    text, of = _oflow._memory_report()
    return MemoryReport(text, json.loads(of))
