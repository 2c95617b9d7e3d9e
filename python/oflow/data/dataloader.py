"""Batches of the samples of a data set, as in PyTorch."""

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import _oflow, _seeds
from .._oflow import Generator
from .collate import default_collate, default_convert
from .datasets import IterableDataset
from .samplers import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from .workers import Ended, Failure, Fetcher, Workers, timed


class _Forever(Sampler[None]):
    """The numbers of the samples of an iterable data set: there are none."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class _Epoch(Sampler[int]):
    """A ``RandomSampler`` of a loader, whose order is that of the seed of the epoch."""

    def __init__(self, dataset):
        self.data_source, self.seed = dataset, 0

    def __iter__(self) -> Iterator[int]:
        return iter(RandomSampler(self.data_source, generator=Generator(self.seed)))

    def __len__(self):
        return len(self.data_source)


class DataLoader:
    """Batches of the samples of a data set: local tensors. Each ``for`` loop is an epoch.

    ``shuffle`` draws another order in each epoch, from ``generator`` or by the seed of ``oflow.manual_seed``, the same on every rank. A
    ``DistributedSampler`` gives each rank a part. ``num_workers`` threads make batches ahead, ``prefetch_factor`` each; with
    ``multiprocessing_context="spawn"`` they are processes, and the data set has to be picklable. In a worker calls on global tensors, and
    draws from the random numbers of the rank, are errors: draw from a generator with the seed of ``get_worker_info()``. An exception of a
    worker is raised where its batch is taken. ``pin_memory`` changes nothing.

    ``state_dict()`` says where an epoch is; the loop behind ``load_state_dict`` goes on there, with the same batches, and the epochs behind it
    have the same orders. A checkpoint saves it as a section, in which all ranks are at one place. A sampler of the program's own has to give
    the same numbers again.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        _check(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        self._is_iterable = isinstance(dataset, IterableDataset)
        if self._is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("an IterableDataset has an order of its own: it takes no shuffle, sampler or batch_sampler")
        if sampler is not None and shuffle:
            raise ValueError("a sampler has an order of its own: give it, or shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("a batch_sampler makes the batches: it takes no batch_size, shuffle, sampler or drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("drop_last asks for batches, and batch_size=None makes none")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers, self.timeout, self.worker_init_fn, self.generator = num_workers, timeout, worker_init_fn, generator
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self.persistent_workers, self.pin_memory, self.in_order = persistent_workers, pin_memory, in_order
        self.multiprocessing_context = multiprocessing_context
        if sampler is None:
            sampler = _Forever() if self._is_iterable else _Epoch(dataset) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self._batches = batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if self._batches else default_convert)
        self._workers: Workers | None = None
        self._seed: int | None = None
        self._given, self._resumed = 0, None

    def __len__(self):
        if not self._is_iterable:
            return len(self.batch_sampler if self._batches else self.sampler)
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """The seed of the epoch that runs, None between epochs, how many of its batches were given, and where the draws of seeds are."""
        draws = list(self.generator.get_state()) if self.generator is not None else _seeds.position()
        return {"seed": self._seed, "given": self._given, "draws": draws}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next loop goes on behind the batches of the state."""
        seed, given, draws = (state_dict.get(name) for name in ("seed", "given", "draws"))
        whole = isinstance(draws, (list, tuple)) and len(draws) == 2 and all(isinstance(n, int) for n in draws)
        if not isinstance(given, int) or given < 0 or not (seed is None or isinstance(seed, int)) or not whole:
            raise ValueError(f"the state of a DataLoader is a seed, a number of batches and two numbers of draws, not {state_dict!r}")
        if self.generator is not None:
            self.generator.set_state(tuple(draws))
        else:
            _seeds.go_to(list(draws))
        self._resumed = None if seed is None else (seed, given)
        self._seed, self._given = seed, given

    def __iter__(self) -> Iterator[Any]:
        seed, skipped = self._resumed or (draw_seed(self.generator), 0)
        self._resumed, self._seed, self._given = None, seed, skipped
        if isinstance(self.sampler, _Epoch):
            self.sampler.seed = seed
        numbers = iter(self.batch_sampler if self._batches else self.sampler)
        if not self._is_iterable:
            numbers, skipped = itertools.islice(numbers, skipped, None), 0
        place = _oflow._BatchPlace()
        batches = self._parallel(numbers, seed, place) if self.num_workers else self._alone(numbers, place)
        return self._counted(batches, seed, skipped, place)

    def _counted(self, batches, seed, skipped, place):
        # Each rank has as many where a sampler divides the samples.
        ranks = getattr(self.sampler, "num_replicas", 1)
        try:
            # An iterable data set has to be read to be behind them.
            asked = itertools.islice(batches, skipped, None)
            while True:
                timer = _oflow._BatchTimer(place)
                batch = next(asked, Ended)
                if batch is Ended:
                    break
                timer.waited((self.batch_size or 1) * ranks)
                if self._seed == seed:
                    self._given += 1
                yield batch
        finally:
            batches.close()
        if self._seed == seed:
            self._seed, self._given = None, 0

    def _options(self):
        return self.collate_fn, self._batches, self._is_iterable, self.drop_last

    def _alone(self, numbers, place):
        fetch = Fetcher(self.dataset, *self._options())
        for indices in numbers:
            batch = timed(fetch, indices, place)
            if batch is Ended:
                return
            yield batch

    def _parallel(self, numbers, seed, place):
        workers = self._workers
        if workers is None:
            workers = Workers(
                self.num_workers, self.dataset, self._options(), self.worker_init_fn, self.multiprocessing_context, self.timeout
            )
            if self.persistent_workers:
                self._workers = workers
                weakref.finalize(self, workers.end)
        try:
            workers.begin(seed, place)
            yield from self._ordered(workers, numbers)
        except (Exception, KeyboardInterrupt):
            self._workers = None
            raise
        finally:
            if workers is not self._workers:
                workers.end()

    def _ordered(self, workers, numbers):
        """The batches of an epoch: each worker has some tasks ahead."""
        turns, running = itertools.cycle(range(self.num_workers)), set(range(self.num_workers))
        tasks, arrived, given = itertools.count(), {}, 0
        waiting = set()

        def send():
            indices = next(numbers, Ended) if running else Ended
            if indices is not Ended:
                worker, number = next(w for w in turns if w in running), next(tasks)
                workers.give(worker, number, indices)
                waiting.add(number)

        for _ in range(self.prefetch_factor * self.num_workers):
            send()
        while waiting or arrived:
            if given in arrived or (arrived and not self.in_order):
                value = arrived.pop(given if self.in_order else next(iter(arrived)))
                given += 1
                send()
                if isinstance(value, Failure):
                    value.again()
                if value is not Ended:
                    yield value
                continue
            worker, number, value = workers.take()
            waiting.discard(number)
            arrived[number] = value
            if value is Ended:
                # The iterable data set of each worker ends by itself.
                running.discard(worker)


def _check(num_workers, timeout, prefetch_factor, persistent_workers, context):
    if isinstance(num_workers, bool) or not isinstance(num_workers, int) or num_workers < 0:
        raise ValueError(f"num_workers is a whole number of at least 0, not {num_workers!r}")
    if not timeout >= 0:
        raise ValueError(f"timeout is a number of seconds of at least 0, not {timeout!r}")
    if not num_workers:
        given = {"prefetch_factor": prefetch_factor is not None, "persistent_workers": persistent_workers, "multiprocessing_context": context is not None}
        for name in (name for name, is_given in given.items() if is_given):
            raise ValueError(f"{name} is for num_workers above 0")
    elif prefetch_factor is not None and (not isinstance(prefetch_factor, int) or prefetch_factor < 1):
        raise ValueError(f"prefetch_factor is a whole number of at least 1, not {prefetch_factor!r}")
