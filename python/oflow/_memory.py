"""Memory of a rank."""

from typing import NamedTuple


class MemoryStats(NamedTuple):
    """Bytes of a device's memory: in use, cached for later, and the most that were in use."""

    live: int
    cached: int
    peak: int
