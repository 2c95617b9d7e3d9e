"""Profiles: where the time of a rank goes."""

import os
from typing import NamedTuple

from . import _oflow


class ProfileRow(NamedTuple):
    """How often something happened at a line, and how long it took in all."""

    name: str
    """The op, or the name of a span."""
    file: str
    line: int
    scope: str
    calls: int
    seconds: float


class StepSplit(NamedTuple):
    """Seconds of a step of training, and what they were spent on."""

    whole: float
    compute: float
    communication: float
    """Boxings on the main thread, and waiting for boxings on others, without the waiting for late ranks."""
    late_ranks: float
    data: float
    checkpoint: float
    rest: float
    """Dispatch, the program's own code, and time without a processor."""


class profile:
    """Takes a profile of what this rank does in a ``with`` block: which ops, lines and modules its time goes to.

    With ``timeline="folder"`` the block's timeline is written to ``rank-N.pftrace`` in that folder, for https://ui.perfetto.dev.
    ``print(p)`` shows tables. Each rank has a profile of its own.

    >>> with oflow.profile() as p:
    ...     y = x @ x
    >>> print(p)  # doctest: +SKIP
    """

    def __init__(self, timeline: str | os.PathLike[str] | None = None) -> None:
        self._timeline = None if timeline is None else os.fspath(timeline)
        self._taken = _oflow._Profile()

    def __enter__(self) -> "profile":
        self._taken.start(self._timeline)
        return self

    def __exit__(self, *_: object) -> None:
        self._taken.stop()

    def __str__(self) -> str:
        return self._taken.text()

    @property
    def timeline(self) -> str | None:
        """Path of the timeline, if one was asked for."""
        return self._taken.timeline()

    @property
    def steps(self) -> int:
        """Number of steps of the optimizer in the block."""
        return self._taken.steps()

    @property
    def split(self) -> StepSplit | None:
        """What a step consists of, in the mean of those that took as long as most; None if no step ended in the block."""
        split = self._taken.split()
        return None if split is None else StepSplit(*split)

    def rows(self, kind: str = "kernel") -> list[ProfileRow]:
        """Sums by op and line of a kind of event: ``"kernel"``, ``"op"``, ``"boxing"``, ``"collective"``, ``"data"``, ``"checkpoint"``,
        ``"span"``, ``"backward"``, ``"graph"`` or ``"wait"``."""
        return [ProfileRow(*row) for row in self._taken.rows(kind)]
