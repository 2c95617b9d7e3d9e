"""Samplers: in which order a ``DataLoader`` takes samples."""

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import oflow

from .. import _seeds
from .._oflow import Generator

_T = TypeVar("_T", covariant=True)


def draw_seed(generator: Generator | None = None) -> int:
    """A number from a generator, or that of the seed of ``manual_seed``: the same on every rank."""
    if generator is None:
        return _seeds.draw()
    return int(oflow.randint(0, 2**62, (1,), dtype=oflow.int64, generator=generator).item())


def permutation(count: int, generator: Generator | None = None) -> list[int]:
    """The numbers below ``count`` in a random order."""
    order = list(range(count))
    random.Random(draw_seed(generator)).shuffle(order)
    return order


class Sampler(Generic[_T]):
    """Subclasses define ``__iter__``, which gives numbers of samples, and, if it is known, ``__len__``."""

    def __iter__(self) -> Iterator[_T]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class SequentialSampler(Sampler[int]):
    """All samples, in order."""

    def __init__(self, data_source: Any):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All samples in a random order; with ``replacement`` each draw is from all of them. ``num_samples`` draws, where not as many as there
    are samples: whole orders one after another."""

    def __init__(self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Generator | None = None):
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement is True or False, not {replacement!r}")
        if num_samples is not None and (isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < 1):
            raise ValueError(f"num_samples is a whole number of at least 1, not {num_samples!r}")
        self.data_source, self.replacement, self.generator, self._number = data_source, replacement, generator, num_samples

    @property
    def num_samples(self) -> int:
        """The number of draws."""
        return len(self.data_source) if self._number is None else self._number

    def __iter__(self) -> Iterator[int]:
        count, draws = len(self.data_source), random.Random(draw_seed(self.generator))
        if count == 0:
            return
        if self.replacement:
            for _ in range(self.num_samples):
                yield draws.randrange(count)
            return
        left = self.num_samples
        while left:
            order = list(range(count))
            draws.shuffle(order)
            yield from order[:left]
            left -= min(left, count)

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Samples of these numbers in a random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in permutation(len(self.indices), self.generator))

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Draws of samples with probabilities in proportion to weights; without ``replacement`` each at most once."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Generator | None = None):
        if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < 1:
            raise ValueError(f"num_samples is a whole number of at least 1, not {num_samples!r}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement is True or False, not {replacement!r}")
        self.weights = [float(w) for w in (weights.tolist() if hasattr(weights, "tolist") else weights)]
        if not all(0.0 <= w < math.inf for w in self.weights) or not any(self.weights):
            raise ValueError("the weights are numbers of at least 0, of which some are more")
        if not replacement and sum(w > 0 for w in self.weights) < num_samples:
            raise ValueError(f"num_samples is {num_samples}, and {sum(w > 0 for w in self.weights)} samples have a weight above 0")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        draws = random.Random(draw_seed(self.generator))
        if self.replacement:
            return iter(draws.choices(range(len(self.weights)), self.weights, k=self.num_samples))
        # Efraimidis and Spirakis (2006): the largest of u^(1/w), u uniform, by logarithms.
        keys = {i: -draws.expovariate(1.0) / w for i, w in enumerate(self.weights) if w > 0}
        return iter(sorted(keys, key=keys.__getitem__, reverse=True)[: self.num_samples])

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` numbers of a sampler; the last may be shorter, unless ``drop_last``."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool):
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"a batch has at least one sample, not {batch_size!r}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last is True or False, not {drop_last!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class DistributedSampler(Sampler[int]):
    """The part of a data set that one rank takes: samples ``rank``, ``rank + num_replicas``, and on. All ranks take as many: the first
    samples are taken again, or with ``drop_last`` the last ones left out.

    With ``shuffle`` the order is drawn from ``seed`` and the number that ``set_epoch`` was given, the same on every rank.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        num_replicas = oflow.world_size() if num_replicas is None else num_replicas
        rank = oflow.rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"the rank is from 0 to {num_replicas - 1}, not {rank}")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        count = len(dataset)
        self.num_samples = count // num_replicas if drop_last else -(-count // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        if not self.drop_last and order:
            order += list(itertools.islice(itertools.cycle(order), self.total_size - len(order)))
        return iter(order[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch: int):
        """Sets the number of the epoch, so that each has an order of its own. Call it on every rank before each epoch."""
        self.epoch = epoch
