# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any, NamedTuple

class MemoryStats(NamedTuple):
    live: int
    cached: int
    peak: int

class MemoryHolder(NamedTuple):
    used_for: str
    op: str
    file: str
    line: int
    scope: str
    bytes: int
    blocks: int

class MemoryFailure(NamedTuple):
    bytes: int
    op: str
    line: str
    live: int
    held: list[MemoryHolder]

class DeviceMemory(NamedTuple):
    device: str
    stats: MemoryStats
    now: list[MemoryHolder]
    peak: list[MemoryHolder]
    failure: MemoryFailure | None

class MemoryReport:
    def __init__(self, text: str, of: dict[str, Any]) -> None: ...

def memory_report() -> MemoryReport: ...
