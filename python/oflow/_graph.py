"""Functions captured once and run many times: ``@oflow.graph``."""

import dataclasses
import functools
import gc
import inspect
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from . import _oflow
from ._oflow import Tensor

MOST = 8
"""Graphs that one function keeps at most. A further one replaces the one that was used longest ago."""


_thread = threading.local()


def note_optimizer(optimizer):
    """Notes an optimizer of Python whose settings a graph that is captured needs at each run."""
    noted = getattr(_thread, "optimizers", None)
    if noted is not None and all(o is not optimizer for o in noted):
        noted.append(optimizer)


def _take(value, tensors, once=True):
    """The structure of a value, with numbers in the place of its tensors, which are added to the list; of one that stands twice, ``once``."""
    if isinstance(value, Tensor):
        for number, known in enumerate(tensors):
            if once and known is value:
                return ("tensor", number)
        tensors.append(value)
        return ("tensor", len(tensors) - 1)
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(_take(v, tensors, once) for v in value))
    if isinstance(value, dict):
        return (dict, tuple((k, _take(v, tensors, once)) for k, v in value.items()))
    return ("value", _Constant(value))


class _Constant:
    """A plain value. 1, 1.0 and True are other values here, as are 0.0 and -0.0: calls of ops tell them apart."""

    def __init__(self, value):
        self.value = value
        self._key = (type(value), value, repr(value) if isinstance(value, (float, complex)) else None)

    def __hash__(self):
        return hash(self._key)

    def __eq__(self, other):
        return isinstance(other, _Constant) and self._key == other._key


def _give(shape, tensors):
    """The value of a structure, with these tensors."""
    kind, inside = shape
    if kind == "tensor":
        return tensors[inside]
    if kind == "value":
        return inside.value
    if kind is dict:
        return {k: _give(v, tensors) for k, v in inside}
    members = [_give(v, tensors) for v in inside]
    return kind(*members) if hasattr(kind, "_fields") else kind(members)


def _names(name, shape, names):
    """Names the tensors of a structure: ``x``, and ``pair.0`` or ``more.key`` of members."""
    kind, inside = shape
    if kind == "tensor":
        names.setdefault(inside, name)
    elif kind != "value":
        members = inside if kind is dict else enumerate(inside)
        for key, member in members:
            _names(f"{name}.{key}", member, names)


def _type(tensor):
    layout = (tensor.placement, tensor.sbp) if tensor.is_global else tensor.device
    return (tuple(tensor.shape), tensor.dtype, layout)


@dataclasses.dataclass(frozen=True)
class Arena:
    """Memory of one device that a graph needs, beside the tensors from outside and those that it returns."""

    device: str
    bytes: int
    bound: int
    """The most bytes that are in use at one time: no arena is smaller."""


@dataclasses.dataclass(frozen=True)
class GraphPlan:
    """Kernels, boxings and memory with which this rank runs a graph."""

    kernels: int
    boxings: int
    stepwise: int
    """Nodes that are carried out on tensors."""
    peak: int
    """Most bytes in use during a run, with the tensors from outside."""
    outside: int
    """Bytes of the tensors from outside: parameters, states of optimizers, inputs, constants."""
    arenas: tuple[Arena, ...]


class Graph:
    """A function that is captured for each kind of arguments, and then run as a graph, with the same bits.

    ``oflow.graph(function)``, or ``@oflow.graph``. Tensors among the arguments, also in tuples, lists and dicts, are inputs of the graph.
    Other arguments are part of it: with another value the function is captured again. The first call with such arguments captures and
    runs.

    The function is called once, on symbols: tensors without data. Parameters, the state of optimizers and other tensors that it writes are
    variables; what it only reads is constant. It cannot read a value (``item()``, ``numpy()``, ``if`` on a tensor), and numbers that it
    computes in Python stay as they were. Rates and step counts of optimizers and random numbers are those of each call.

    ``passes`` switches the passes that improve the captured program: ``False`` leaves all out, ``{"common": False}`` one. ``memory`` says what is
    computed once more to take less of it: ``"cheap"``, what costs next to nothing; a number of bytes, what keeps to that budget, parameters
    and states included; ``"least"``, all that helps. ``variables`` are tensors that the function only reads and that change between calls:
    ``model.buffers()`` in an evaluation.
    """

    def __init__(self, function, *, passes=True, memory="cheap", variables=()):
        functools.update_wrapper(self, function)
        self._passes, self._variables = (passes, memory), list(variables)
        self._function = function
        self._signature = inspect.signature(function)
        self._graphs = {}

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        inputs = []
        given = tuple((name, _take(value, inputs)) for name, value in bound.arguments.items())
        key = (given, tuple(_type(t) for t in inputs), tuple(_oflow._modes()))
        try:
            hash(key)
        except TypeError:
            named = [name for name, value in bound.arguments.items() if not _hashable(value)]
            raise TypeError(
                f"a graph is captured for each value of its arguments other than tensors, so they must be hashable: {', '.join(named)} is not"
            ) from None
        found = self._graphs.pop(key, None)
        if found is None:
            found = self._capture(given, inputs)
        # The one that was used last stands last.
        self._graphs[key] = found
        if len(self._graphs) > MOST:
            self._graphs.pop(next(iter(self._graphs)))
        graph, shape, optimizers = found
        for optimizer in optimizers:
            # Groups may have other options than at the last call.
            optimizer._ready()
        return _give(shape, graph.run(inputs))

    def _capture(self, given, inputs):
        results = []

        def body(symbols):
            arguments = inspect.BoundArguments(self._signature, {})
            for name, shape in given:
                arguments.arguments[name] = _give(shape, symbols)
            made = []
            results.append(_take(self._function(*arguments.args, **arguments.kwargs), made))
            del arguments
            # Symbols in cycles of objects do not outlive the capture.
            gc.collect()
            return made

        names = {}
        for name, shape in given:
            _names(name, shape, names)
        before, _thread.optimizers = getattr(_thread, "optimizers", None), []
        try:
            graph = _oflow._Graph([names[n] for n in range(len(inputs))], inputs, body, self._passes, self._variables)
            return graph, results[0], _thread.optimizers
        finally:
            _thread.optimizers = before

    @property
    def plan(self) -> GraphPlan | None:
        """The :class:`oflow.GraphPlan` of the graph that was called last; ``None`` before the first call, and with ``OFLOW_GRAPH=replay``."""
        last = next(reversed(self._graphs.values()), None)
        plan = last and last[0].plan()
        return plan and GraphPlan(*plan[:-1], tuple(Arena(*arena) for arena in plan[-1]))

    def save(self, folder: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
        """Saves the graph that was called last to a folder: its program, and the plan of each rank. ``state`` is a dict of sections, as for a
        checkpoint: it names the modules and optimizers of the graph. Their values are not saved. :func:`oflow.load_graph` loads it."""
        last = next(reversed(self._graphs.values()), None)
        if last is None:
            raise ValueError("the function has not been captured yet: call it first")
        _save(last[0], folder, state)

    def summary(self) -> Any:
        """What the graph that was called last consists of, by module, forward and backward together; and its variables with their layouts."""
        from .nn._summary import _read

        last = next(reversed(self._graphs.values()), None)
        if last is None:
            raise ValueError("the function has not been captured yet: call it first")
        return _read(last[0].summary())

    def explain(self) -> str:
        """The programs of the graphs that have been captured: each value with its type, placement and SBP, each call with its line."""
        return "\n".join(graph.explain() for graph, *_ in self._graphs.values())


def _save(graph, folder, state):
    from .checkpoint import _Sections

    graph.save(os.fsdecode(folder), _Sections(state).given)


class LoadedGraph:
    """A graph that another program has saved: see :func:`load_graph`."""

    inputs: tuple[str, ...]

    def __init__(self, graph, optimizers):
        self._graph, self._optimizers = graph, optimizers
        self.inputs = tuple(graph.inputs())
        """Names of the inputs, in their order."""

    def __call__(self, *args, **kwargs):
        """Runs the graph. Inputs are given in their order, or by name. Returns a tensor, or a tuple of several or of none."""
        given = dict(zip(self.inputs, args))
        if len(args) > len(self.inputs):
            raise TypeError(f"the graph has {len(self.inputs)} inputs, {', '.join(self.inputs)}; {len(args)} are given")
        for name, value in kwargs.items():
            if name not in self.inputs or name in given:
                what = "is given twice" if name in given else f"does not exist: the inputs are {', '.join(self.inputs)}"
                raise TypeError(f"input {name!r} {what}")
            given[name] = value
        missing = [name for name in self.inputs if name not in given]
        if missing:
            raise TypeError(f"the graph needs {', '.join(missing)}")
        for optimizer in self._optimizers:
            # Groups may have other options than at the last call.
            optimizer._ready()
        results = self._graph.run([given[name] for name in self.inputs])
        return results[0] if len(results) == 1 else tuple(results)

    def explain(self) -> str:
        """The program of the graph, as :meth:`oflow.Graph.explain` tells it."""
        return self._graph.explain()


def load_graph(folder: str | os.PathLike[str], state: Mapping[str, Any]) -> LoadedGraph:
    """Loads a graph that :meth:`oflow.Graph.save` has written, without capture, passes or planning: a :class:`LoadedGraph`.

    ``state`` is the dict of sections with which it was saved. The state of an optimizer is made if it is not there yet. A graph whose ops, world,
    devices or cost model are others here is refused.
    """
    from .checkpoint import _Sections
    from .optim import Optimizer

    sections = _Sections(state)
    optimizers = [value for value in state.values() if isinstance(value, Optimizer)]
    return LoadedGraph(_oflow._Graph.load(os.fsdecode(folder), sections.given), optimizers)


def scan(function: Callable[[Any, Any], tuple[Any, Any]], init=None, xs=None, length: int | None = None) -> tuple[Any, Any]:
    """Repeats ``function``: ``carried, collected = oflow.scan(function, init, xs)``, as ``jax.lax.scan``.

    ``function(carried, x)`` is given the carried values, at first ``init``, and the slice ``x[i]`` of ``xs`` along dim 0. It returns the next carried
    values and what is collected, stacked along a new dim 0. Each may be a tensor, or tuples, lists and dicts of tensors, or ``None``. ``length``
    is the number of iterations, that of dim 0 of ``xs`` by default.

    In a graph that is captured, the function is called once, and a run repeats it, with the bits of the loop: ``function`` may call
    ``backward``, whose gradients accumulate, write tensors in place, and step an optimizer. Elsewhere it is a loop of calls.
    """
    carried, slices, made = [], [], []
    carries, sliced = _take(init, carried, once=False), _take(xs, slices, once=False)
    if length is None:
        if not slices:
            raise TypeError("scan takes its length from the tensors of xs, and there are none: give length")
        length = slices[0].shape[0]

    def body(values, parts):
        after, outs = function(_give(carries, values), _give(sliced, parts))
        next_values, collected = [], []
        shape = _take(after, next_values, once=False)
        if shape != carries:
            raise TypeError("the function of a scan returns its carried values in another structure than it is given")
        made[:] = [_take(outs, collected, once=False)]
        del after, outs, values, parts
        if getattr(_thread, "optimizers", None) is not None:
            # Symbols in cycles of objects do not outlive the section.
            gc.collect()
        return next_values, collected

    last, collected = _oflow._scan(length, carried, slices, body)
    return _give(carries, last), _give(made[0], collected) if made else None


def _hashable(value):
    try:
        hash(_take(value, []))
    except TypeError:
        return False
    return True


def graph(function=None, *, passes=True, memory="cheap", variables=()):
    """Captures a function as a graph at its first call: see :class:`oflow.Graph`. ``@graph`` and ``@graph(passes=...)``."""
    if function is None:
        return functools.partial(Graph, passes=passes, memory=memory, variables=variables)
    return Graph(function, passes=passes, memory=memory, variables=variables)
