"""Sessions: a step as graphs, with sources that make its inputs ahead of the runs and values that are read behind them."""

import inspect
import queue
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from . import sbp
from ._errors import ArgumentError
from ._graph import Graph
from ._modes import no_grad, source_thread
from ._oflow import Stream, Tensor

_END = object()


class _Source:
    """A source and its thread, which does not know the session: a session that is dropped stops it."""

    def __init__(self, names, several, source, ahead):
        self.names, self.failed = names, False
        self._several, self._source, self._ahead = several, source, ahead
        self._thread = self._expected = None

    def __str__(self):
        return "the source of " + ", ".join(repr(n) for n in self.names)

    def _start(self):
        items = self._source
        if isinstance(items, Stream):
            # The program's own stream has the position that runs have reached.
            self._expected = (items.epoch, items.batch)
            items = items._fork()
        self._stopped, self._made = threading.Event(), queue.Queue(self._ahead)
        given = (items, self._stopped, self._made, self._tensors)
        self._thread = threading.Thread(target=_make, args=given, name=f"feed {', '.join(self.names)}", daemon=True)
        self._thread.start()

    def _tensors(self, item):
        tensors = list(item) if self._several and isinstance(item, (tuple, list)) else [item]
        if len(tensors) != len(self.names):
            raise ArgumentError(f"{self} gave {len(tensors)} tensors for {len(self.names)} inputs")
        for name, tensor in zip(self.names, tensors):
            if not isinstance(tensor, Tensor):
                raise ArgumentError(f"{self} gave a {type(tensor).__name__} for {name!r}, not a tensor")
        return tensors

    def take(self):
        """The tensors of the next run by name; ``None`` at the end."""
        if self.failed:
            raise ArgumentError(f"{self} has failed before; a session ends with the first error of a source: make a new one")
        if self._expected is not None and self._expected != (self._source.epoch, self._source.batch):
            # A checkpoint was loaded into the stream.
            self.stop()
        if self._thread is None:
            self._start()
        made = self._made.get()
        if made is _END:
            return None
        if isinstance(made, BaseException):
            self.failed = True
            raise made
        if self._expected is not None:
            self._source._skip()
            self._expected = (self._source.epoch, self._source.batch)
        return dict(zip(self.names, made))

    def stop(self):
        """Stops the thread after the tensors that it makes now."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stopped.set()
        try:
            while True:
                self._made.get_nowait()
        except queue.Empty:
            pass
        if thread is not threading.current_thread():
            thread.join()


def _make(items, stopped, made, tensors):
    try:
        with source_thread():
            for item in items:
                made.put(tensors(item))
                if stopped.is_set():
                    return
        made.put(_END)
    except BaseException as error:
        made.put(error)


def _stop(sources):
    for source in sources:
        source.stop()


class Session:
    """A step that runs as graphs, with sources that make its inputs ahead of the runs and values that are read behind them.

    ``function`` is the step, or an :class:`oflow.Graph` of it. Its arguments are the inputs: each has a source or is given to ``run``. It is
    captured for each kind of inputs, as ``@oflow.graph`` does; ``passes``, ``memory`` and ``variables`` are those of a graph. Values that are
    fetched are tensors of the dict that it returns. Several sessions share parameters: one trains, one evaluates. Checkpoints are those of a program without sessions.

    ``runs_per_call`` is the number of runs of one call of ``run``. At most ``ahead`` batches of a source wait for their run, and one more is
    being made.
    """

    def __init__(
        self, function, *, passes: bool | dict[str, bool] = True, memory: int | str = "cheap", variables=(), runs_per_call=1, ahead=2
    ):
        for name, value in {"runs_per_call": runs_per_call, "ahead": ahead}.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ArgumentError(f"{name} is at least 1, not {value!r}")
        self.graph = function if isinstance(function, Graph) else Graph(function, passes=passes, memory=memory, variables=variables)
        """The step as graphs: ``session.graph.plan``, ``session.graph.explain()``."""
        self.runs = 0
        """Number of runs that have been made."""
        self.ended = False
        """Whether a source has ended, or ``finish`` was called."""
        self._per_call, self._ahead = runs_per_call, ahead
        self._sources, self._fetched = [], {}
        self._finalizer = weakref.finalize(self, _stop, self._sources)

    def feed(self, names: str | Iterable[str], source: Iterable[Any]) -> None:
        """Feeds inputs from a source, which a thread of its own asks ahead of the runs, from the first run on.

        ``names`` is a name, or several; ``source`` is an iterable of tensors, or of tuples with a tensor for each name: a generator, a
        :class:`oflow.data.Loader` (one epoch), or a stream of one, whose position is then that of the runs. A run takes from every source, and
        the session ends with the first that ends. On several ranks every rank feeds the same number of batches.

        On the thread of a source, calls on global tensors and draws from the generators of the rank are errors: their order is that of the
        main thread. Batches of a loader are global; other sources give local tensors, which the step makes global.
        """
        several = not isinstance(names, str)
        names = list(names) if several else [names]
        for i, name in enumerate(names):
            if name in names[:i] or any(name in s.names for s in self._sources):
                raise ArgumentError(f"input {name!r} has a source already")
            self._check_input(name)
        self._sources.append(_Source(names, several, source, self._ahead))

    def fetch(self, name: str, every=1) -> None:
        """Reads the tensor that the step returns under this name, of every ``every``-th run: the first, then each ``every`` runs later. Names
        inside of others are written with dots: ``losses.0``."""
        if name in self._fetched:
            raise ArgumentError(f"the value {name!r} is fetched already")
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ArgumentError(f"the value {name!r} is to be fetched every {every!r} runs; 1 fetches it in each run")
        self._fetched[name] = (every, [])

    def run(self, **inputs) -> Any:
        """Runs the step on the next batch of each source, and on the inputs given here, ``runs_per_call`` times. Returns what it returns in the
        last run; ``None``, without a run, after a source has ended (``ended`` tells)."""
        result = None
        for _ in range(self._per_call):
            taken = self._take(inputs)
            if taken is None:
                break
            result = self.graph(**taken)
            for name, (every, read) in self._fetched.items():
                if self.runs % every == 0:
                    read.append((self.runs, _whole(_named(result, name))))
            self.runs += 1
        return result

    def __iter__(self) -> Iterator[Any]:
        """The results of the calls of ``run`` until a source has ended."""
        while True:
            before, result = self.runs, self.run()
            if self.runs == before:
                return
            yield result

    def fetched(self, name: str) -> list[tuple[int, Tensor]]:
        """The values of a fetched name, each with the number of its run, from 0, in order. That of the last run is among them only after the
        session has ended, so reading them waits for no run that has just begun. A global value is whole on each rank of its placement."""
        if name not in self._fetched:
            raise ArgumentError(f"the value {name!r} is not fetched; fetch it before the runs")
        _, read = self._fetched[name]
        before = self.runs if self.ended else self.runs - 1
        known = [pair for pair in read if pair[0] < before]
        del read[: len(known)]
        return known

    def finish(self):
        """Ends the session: stops the threads of its sources. ``run`` returns ``None`` then."""
        self.ended = True
        _stop(self._sources)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.finish()

    def explain(self) -> str:
        """The programs of the graphs that have been captured."""
        return self.graph.explain()

    @property
    def _parameters(self):
        return inspect.signature(self.graph).parameters

    def _check_input(self, name):
        known = self._parameters
        if name not in known and not any(p.kind is p.VAR_KEYWORD for p in known.values()):
            raise ArgumentError(f"the step has no input {name!r}; its inputs are {', '.join(map(repr, known)) or 'none'}")

    def _take(self, given):
        if self.ended:
            return None
        for name in given:
            self._check_input(name)
            if any(name in s.names for s in self._sources):
                raise ArgumentError(f"input {name!r} is given, and has a source")
        there = set(given).union(*(s.names for s in self._sources))
        for name, p in self._parameters.items():
            if name not in there and p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise ArgumentError(f"input {name!r} of the step has no source and is not given; feed it, or give it to run")
        inputs = dict(given)
        for source in self._sources:
            taken = source.take()
            if taken is None:
                self.finish()
                return None
            inputs.update(taken)
        return inputs


def _named(result, name):
    value = result
    for part in name.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, (tuple, list)) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            value = None
    if not isinstance(value, Tensor):
        named = ", ".join(map(repr, result)) if isinstance(result, dict) else f"a {type(result).__name__}"
        raise ArgumentError(f"the step returns no tensor {name!r}, which is fetched; it returns {named}: return a dict with it")
    return value


def _whole(value):
    """A value of its own, whole on each rank: what the step returns may be a tensor that later runs write."""
    with no_grad():
        if value.is_global and any(s != sbp.broadcast for s in value.sbp):
            return value.to_global(sbp=(sbp.broadcast,) * len(value.sbp))
        return value.clone()
