"""Data sets: samples by number, or one after another."""

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from .._oflow import Generator, Tensor
from .samplers import permutation

_T = TypeVar("_T", covariant=True)


class Dataset(Generic[_T]):
    """Samples by number: subclasses define ``__getitem__`` and, for most samplers, ``__len__``; ``__getitems__(indices)`` if several at once
    are faster."""

    def __getitem__(self, index: Any) -> _T:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")

    def __add__(self, other: "Dataset[Any]") -> "ConcatDataset":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T]):
    """Samples one after another: subclasses define ``__iter__``. Each worker of a ``DataLoader`` iterates over all of it, unless
    ``__iter__`` takes a part by ``get_worker_info()``."""

    def __iter__(self) -> Iterator[_T]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")

    def __add__(self, other: Dataset[Any]) -> "ChainDataset":  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors: sample i is the tuple of their elements i."""

    def __init__(self, *tensors: Tensor):
        if not tensors:
            raise ValueError("a TensorDataset needs a tensor")
        sizes = [t.shape[0] if t.ndim else None for t in tensors]
        if None in sizes or len(set(sizes)) > 1:
            raise ValueError(f"the tensors of a TensorDataset have as many rows each, not shapes {', '.join(str(tuple(t.shape)) for t in tensors)}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]


class StackDataset(Dataset[Any]):
    """Data sets side by side: sample i is the tuple of their samples i, or a dict for data sets given by name."""

    def __init__(self, *args: Any, **kwargs: Any):
        if bool(args) == bool(kwargs):
            raise ValueError("a StackDataset takes data sets, all by position or all by name")
        self.datasets = args or kwargs
        parts = list(kwargs.values()) if kwargs else list(args)
        if len({len(d) for d in parts}) > 1:
            raise ValueError(f"the data sets of a StackDataset have as many samples each, not {[len(d) for d in parts]}")
        self._length = len(parts[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self):
        return self._length


class ConcatDataset(Dataset[Any]):
    """Data sets one behind another."""

    def __init__(self, datasets: Iterable[Dataset[Any]]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("a ConcatDataset needs a data set")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise TypeError("a ConcatDataset takes samples by number; ChainDataset is that of IterableDatasets")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of a data set of {len(self)}")
        index %= len(self)
        at = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[at][index - (self.cumulative_sizes[at - 1] if at else 0)]


class ChainDataset(IterableDataset[Any]):
    """Iterable data sets one behind another."""

    def __init__(self, datasets: Iterable[Any]):
        super().__init__()
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise TypeError(f"a ChainDataset takes IterableDatasets, not a {type(d).__name__}")
            yield from d

    def __len__(self):
        return sum(len(d) for d in self.datasets)


class Subset(Dataset[Any]):
    """The samples of a data set that have these numbers."""

    def __init__(self, dataset: Any, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Samples of several numbers."""
        numbers = [self.indices[i] for i in indices]
        several = getattr(self.dataset, "__getitems__", None)
        return several(numbers) if callable(several) else [self.dataset[i] for i in numbers]

    def __len__(self):
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset]:
    """Parts of a data set with these numbers of samples, or with these fractions of all, drawn at random without overlap."""
    lengths = list(lengths)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        if any(not 0 <= f <= 1 for f in lengths):
            raise ValueError(f"the fractions of a random_split are from 0 to 1, not {lengths}")
        counts = [math.floor(len(dataset) * f) for f in lengths]
        for i in range(len(dataset) - sum(counts)):
            # What is left, one for each part.
            counts[i % len(counts)] += 1
    else:
        counts = [int(n) for n in lengths]
    if sum(counts) != len(dataset):
        raise ValueError(f"the parts of a random_split have {sum(counts)} samples together, and the data set has {len(dataset)}")
    order = permutation(len(dataset), generator)
    ends = itertools.accumulate(counts)
    return [Subset(dataset, order[end - n : end]) for end, n in zip(ends, counts)]
