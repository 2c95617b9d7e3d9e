# Made by `python python/stubs` from the source beside it; do not edit.

import os
from typing import NamedTuple

class ProfileRow(NamedTuple):
    name: str
    file: str
    line: int
    scope: str
    calls: int
    seconds: float

class StepSplit(NamedTuple):
    whole: float
    compute: float
    communication: float
    late_ranks: float
    data: float
    checkpoint: float
    rest: float

class profile:
    def __init__(self, timeline: str | os.PathLike[str] | None = None) -> None: ...
    def __enter__(self) -> profile: ...
    def __exit__(self, *_: object) -> None: ...
    @property
    def timeline(self) -> str | None: ...
    @property
    def steps(self) -> int: ...
    @property
    def split(self) -> StepSplit | None: ...
    def rows(self, kind: str = 'kernel') -> list[ProfileRow]: ...
