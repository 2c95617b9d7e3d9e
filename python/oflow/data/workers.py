"""Workers of a ``DataLoader``: threads of this process, or processes of their own.

Threads are the default: a fork of a rank cannot use tensors, as the library's threads are not in it. NumPy, files and decoders of images work
beside each other in threads; samples made by code of Python alone are faster in processes. One queue for each worker has tasks, and one the
results of all.

A task is (number, indices), the number of a batch and its samples; a result (number, value, error). Each epoch has a generation, so that what
an abandoned epoch left in the queues is known.
"""

import copy
import itertools
import multiprocessing
import pickle
import queue
import threading
import traceback
from typing import Any, NamedTuple

import oflow

from .._modes import source_thread

_here = threading.local()


class WorkerInfo(NamedTuple):
    """What a worker knows of itself: its number, how many there are, its seed, another one in each epoch, and its copy of the data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info() -> WorkerInfo | None:
    """What the worker that calls this is; None outside of workers."""
    return getattr(_here, "info", None)


class Ended:
    """A result: the worker's iterable data set has no more samples."""


class Failure:
    """An exception of a worker. That of a thread is raised as it is; that of a process as one of its class, with the text of its
    traceback."""

    def __init__(self, worker, error, is_thread):
        self.worker, self.error = worker, error if is_thread else None
        self.kind, self.text = type(error), traceback.format_exc()

    def again(self):
        """Raises the exception."""
        if self.error is not None:
            raise self.error
        text = f"Caught {self.kind.__name__} in worker process {self.worker} of a DataLoader.\nOriginal {self.text}"
        try:
            error = self.kind(text) if self.kind is not KeyError else RuntimeError(text)
        except Exception:
            # A class that takes other arguments.
            error = RuntimeError(text)
        raise error


class Fetcher:
    """Makes batches of the samples of a data set."""

    def __init__(self, dataset, collate, batches, is_iterable, drop_last):
        self.dataset, self.collate, self.batches, self.drop_last = dataset, collate, batches, drop_last
        self.samples = iter(dataset) if is_iterable else None

    def __call__(self, indices):
        """The batch of these samples; of an iterable data set the next as many, or ``Ended``."""
        if self.samples is not None:
            if not self.batches:
                sample = next(self.samples, Ended)
                return sample if sample is Ended else self.collate(sample)
            found = list(itertools.islice(self.samples, len(indices)))
            return self.collate(found) if found and (len(found) == len(indices) or not self.drop_last) else Ended
        if not self.batches:
            return self.collate(self.dataset[indices])
        several = getattr(self.dataset, "__getitems__", None)
        return self.collate(several(indices) if callable(several) else [self.dataset[i] for i in indices])


def timed(fetch, indices, place):
    """A batch, whose time is told to timelines and reports; ``place`` is None in other processes."""
    if place is None:
        return fetch(indices)
    timer = oflow._oflow._BatchTimer(place)
    batch = fetch(indices)
    timer.made(len(indices) if hasattr(indices, "__len__") else 1)
    return batch


def work(number, count, dataset, options, init, tasks, results, is_thread):
    """The life of a worker: an epoch begins with a task that is its generation and seed, and None ends all."""
    fetch, generation, failed, place = None, 0, None, None
    # Attributes that a worker sets are its own, as in a process.
    dataset = copy.copy(dataset) if is_thread else dataset
    began = False
    while (task := tasks.get()) is not None:
        try:
            if task[0] == "epoch":
                _, generation, seed, place = task
                _here.info = WorkerInfo(number, count, seed + number, dataset)
                failed, fetch = None, None
                if init is not None and not began:
                    init(number)
                began = True
                fetch = Fetcher(dataset, *options)
                continue
            value = failed or timed(fetch, task[1], place)
        except Exception as error:
            value = Failure(number, error, is_thread)
            if task[0] == "epoch":
                # The first batch says so.
                failed = value
                continue
        results.put((generation, number, task[0], value) if is_thread else _pickled(generation, number, task[0], value))
    if not is_thread:
        # What nobody takes any more does not keep the process.
        results.cancel_join_thread()


def _pickled(generation, number, at, value):
    """A result as bytes: what cannot be pickled is an error of the batch, and not lost."""
    try:
        return pickle.dumps((generation, number, at, value))
    except Exception as error:
        failure = Failure(number, error, False)
        failure.kind = RuntimeError
        return pickle.dumps((generation, number, at, failure))


def _thread_work(*args):
    with source_thread():
        work(*args, True)


class Workers:
    """Running workers."""

    def __init__(self, count, dataset, options, init, context, timeout):
        self.count, self.timeout, self.generation, self.is_thread = count, timeout, 0, context is None
        if context is None:
            make, self.results = queue.Queue, queue.Queue()
        else:
            context = multiprocessing.get_context(context) if isinstance(context, str) else context
            if context.get_start_method() == "fork" and oflow.is_initialized():
                raise ValueError(
                    'multiprocessing_context is "spawn" or "forkserver", or None for threads: a fork of a rank that has joined cannot use tensors'
                )
            make, self.results = context.Queue, context.Queue()
        self.tasks = [make() for _ in range(count)]
        self.runners = []
        for number, tasks in enumerate(self.tasks):
            args = (number, count, dataset, options, init, tasks, self.results)
            if context is None:
                runner = threading.Thread(target=_thread_work, args=args, daemon=True, name=f"oflow-data-{number}")
            else:
                runner = context.Process(target=work, args=(*args, False), daemon=True)
            runner.start()
            self.runners.append(runner)

    def begin(self, seed, place):
        """Begins an epoch, whose batches are asked for at that place."""
        self.generation += 1
        for tasks in self.tasks:
            tasks.put(("epoch", self.generation, seed, place if self.is_thread else None))

    def give(self, worker, number, indices):
        """Gives a worker the task of a batch."""
        self.tasks[worker].put((number, indices))

    def take(self):
        """The next result of this epoch: worker, number of the batch, and value."""
        waited = 0.0
        while True:
            step = min(1.0, self.timeout) if self.timeout else 1.0
            try:
                found = self.results.get(timeout=step)
            except queue.Empty:
                waited += step
                if self.timeout and waited >= self.timeout:
                    raise RuntimeError(f"a DataLoader has waited {self.timeout} seconds for its workers, which is its timeout") from None
                dead = [r for r in self.runners if not r.is_alive()]
                if dead:
                    code = getattr(dead[0], "exitcode", None)
                    raise RuntimeError(f"worker {self.runners.index(dead[0])} of a DataLoader has ended unexpectedly, with exit code {code}") from None
                continue
            generation, *result = pickle.loads(found) if isinstance(found, bytes) else found
            if generation == self.generation:
                return result

    def end(self):
        """Ends the workers. A second call changes nothing."""
        self.generation += 1
        runners, self.runners = self.runners, []
        if not runners:
            return
        for tasks in self.tasks:
            tasks.put(None)
        for runner in runners:
            if isinstance(runner, threading.Thread):
                continue
            runner.join(timeout=5)
            if runner.is_alive():
                runner.terminate()
