"""Training data: global batches from rows in memory, shuffled in the same order on every rank."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import oflow

from .. import _oflow
from .._oflow import Stream, Tensor
from .._oflow import placement as _placement


class Loader:
    """Makes global batches from rows in memory. Every rank must hold the same rows; each builds only its shard of a batch, without
    communication.

    ``columns`` are tensors, arrays or lists whose first dim are the rows: features, labels. A batch is a tuple with a global
    tensor for each. ``split_along`` names the mesh axis over which batches are split (S(0)): data parallelism. With ``seed`` the
    rows are shuffled in each epoch, as a loader of a Rust program shuffles them.
    """

    def __init__(self, columns: Iterable[Any], placement: _placement, batch: int, *, split_along=None, seed: int | None = None, drop_last=False):
        columns = [c.detach() if isinstance(c, Tensor) else oflow.tensor(c) for c in columns]
        if not columns:
            raise ValueError("a loader needs a column")
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise ValueError(f"a batch has at least one row, not {batch!r}")
        self.batch, self._seed, self._next = batch, seed, 0
        self._rows = _oflow._Loader(placement, batch, columns, split_along, seed, drop_last)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._rows.rows()

    def __len__(self):
        """Number of batches of an epoch."""
        return self._rows.batches()

    def epoch(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """The batches of one epoch."""
        if len(self) == 0:
            return iter(())
        return itertools.islice(self._rows.stream(epoch, self._seed), len(self))

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        """The batches of the next epoch: of epoch 0 the first time, and in a ``for`` loop per epoch each time another order."""
        epoch, self._next = self._next, self._next + 1
        return self.epoch(epoch)

    def stream(self) -> Stream:
        """The batches of all epochs, without end. A checkpoint can save its position."""
        return self._rows.stream(0, self._seed)
