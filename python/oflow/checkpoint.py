"""Checkpoints in the format of Rust programs, and files of tensors.

A checkpoint is saved by all ranks and loaded on any number of ranks, in any layout. What is saved is a dict of sections: modules,
optimizers, scalers, averages, generators, streams of batches, schedulers, and dicts of tensors and plain values. A plain value comes back as it was: numbers
(infinities, NaN and large integers too), strings, bytes, lists, tuples, sets, dicts with any keys, arrays of NumPy. Others are refused
when they are saved.
"""

import atexit
import os
import sys
import weakref
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

import oflow

from . import _core, _oflow, _plain
from ._oflow import Generator, GradScaler, Stream, Tensor

if TYPE_CHECKING:
    from .nn import Module

__all__ = ["Checkpoint", "CheckpointManager", "load", "save"]


def _split(state, section):
    tensors = [(_plain.checked_name(name), value) for name, value in state.items() if isinstance(value, Tensor)]
    return tensors, _plain.dumps({name: v for name, v in state.items() if not isinstance(v, Tensor)}, section)


def _first_names(module):
    """Tensors of a module with their first names: a shared one is saved once, as in Rust."""
    seen, found = set(), []
    for name, tensor in [*module.named_parameters(), *module._named("_buffers", "", True, transient=False)]:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found.append((name, tensor))
    return found


class _Sections:
    """The sections of a call, as the library takes them."""

    def __init__(self, state):
        from .nn import Module
        from .optim import EMA, Optimizer

        if not hasattr(state, "items"):
            raise TypeError(f"what is saved is a dict of sections, not {type(state).__name__}")
        self._state, self.given, seen = dict(state), [], set()
        for name, value in self._state.items():
            if not isinstance(name, str):
                raise TypeError(f"the name of a section is a string, not {name!r}")
            _plain.checked_name(name)
            if id(value) in seen:
                raise ValueError(f"'{name}' is saved in another section already")
            seen.add(id(value))
            if isinstance(value, Module):
                piece = (_first_names(value), _plain.dumps(value._extra_states(), name))
            elif isinstance(value, Optimizer):
                piece = value._ready()
            elif isinstance(value, EMA):
                piece = value._engine
            elif isinstance(value, (Generator, GradScaler, Stream)):
                piece = value
            elif isinstance(value, Tensor):
                raise TypeError(f"'{name}' is a tensor; a section is a dict: {{'{name}': {{'value': tensor}}}}")
            elif hasattr(value, "items"):
                piece = _split(value, name)
            elif hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
                piece = _split(value.state_dict(), name)
            else:
                raise TypeError(f"'{name}' is a {type(value).__name__}, which has no state to save")
            self.given.append((name, piece))

    def loaded(self, values):
        """Gives the values that were loaded to dicts and to objects with a state of their own."""
        from .nn import Module
        from .optim import Optimizer

        for name, text in values:
            value, found = self._state[name], _plain.loads(text)
            if isinstance(value, Module):
                value._set_extra_states(found)
                continue
            if hasattr(value, "items"):
                value.update(found)
            else:
                value.load_state_dict({**value.state_dict(), **found})
        for value in self._state.values():
            if isinstance(value, Optimizer):
                value._after_load()


_live = weakref.WeakSet()


class CheckpointManager:
    """Saves checkpoints to one folder and loads them. All ranks make a manager and issue the same calls.

    ``keep`` is the number of checkpoints to keep; 0 keeps all.
    """

    def __init__(self, dir: str | os.PathLike[str], keep=3):
        self._manager = _oflow._CheckpointManager(os.fsdecode(dir), keep)
        self.dir = os.fsdecode(dir)
        _live.add(self)

    def save(self, step: int, state: Mapping[str, Any]) -> None:
        """Saves ``state``, a dict of sections, as the checkpoint of ``step``. Returns when it is complete on every rank."""
        self._manager.save(step, _Sections(state).given, False)

    def save_async(self, step: int, state: Mapping[str, Any]) -> None:
        """Copies ``state`` and returns; a thread writes the copy. An error is raised by the next call of the manager."""
        self._manager.save(step, _Sections(state).given, True)

    def load_latest(self, state: Mapping[str, Any]) -> int | None:
        """Loads the latest checkpoint into ``state`` and the random generators, and returns its step; None without one."""
        sections = _Sections(state)
        step, values = self._manager.load_latest(sections.given)
        if step is not None:
            sections.loaded(values)
        return step

    def load_step(self, step: int, state: Mapping[str, Any]) -> None:
        """Loads the checkpoint of a step."""
        sections = _Sections(state)
        sections.loaded(self._manager.load_step(step, sections.given))

    def wait(self):
        """Waits until the running save, if any, has ended, and raises its error."""
        self._manager.wait()

    def finish(self):
        """Waits for the last save and gives the folder back."""
        self._manager.finish()
        _live.discard(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.finish()


def _finish_all():
    """Saves that still run when the program ends are waited for."""
    for manager in list(_live):
        try:
            manager.finish()
        except Exception as e:
            print(f"oflow: the last save to {manager.dir} failed: {e}", file=sys.stderr)


atexit.register(_finish_all)


class Checkpoint:
    """A checkpoint opened for reading; also the folder of a model, or a safetensors file."""

    def __init__(self, path: str | os.PathLike[str]):
        self._saved = _oflow._Checkpoint(os.fsdecode(path))

    @property
    def step(self) -> int:
        """The step at which it was saved."""
        return self._saved.step

    @property
    def world(self) -> int:
        """The number of ranks that saved it."""
        return self._saved.world

    def tensors(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Names of the tensors with shapes and dtypes."""
        return {name: (tuple(shape), dtype) for name, shape, dtype in self._saved.tensors()}

    def values(self) -> dict[str, Any]:
        """The plain values by name."""
        return _plain.loads(self._saved.values())

    def tensor(self, name: str, *, device=None, placement=None, sbp=None) -> Tensor:
        """One tensor, on a device or in a layout. For a layout all ranks call this, and each reads its part."""
        return self._saved.tensor(name, device, placement, sbp)

    def load(self, state: Mapping[str, Any], strict=True, cast=False) -> tuple[list[str], list[str]]:
        """Loads sections in place; tensors keep their layouts. Returns missing and unexpected names; with ``strict`` either is an
        error, and nothing is changed."""
        sections = _Sections(state)
        names, values = self._saved.load(sections.given, strict, cast)
        sections.loaded(values)
        return names

    def verify(self):
        """Reads every byte and compares all checksums."""
        self._saved.verify()


def save(tensors: "Module | Mapping[str, Any] | Any", path: str | os.PathLike[str] | IO[bytes]) -> None:
    """Writes a dict of tensors, or a module, to one safetensors file. With a global tensor all ranks call this, and rank 0
    writes.

    A path that ends in ``.pt`` or ``.pth`` makes a file of PyTorch, which ``torch.load`` reads: it also holds numbers, texts, and dicts, lists,
    tuples and sets in each other, such as ``{"model": model.state_dict(), "epoch": 3}``. An open file, such as a ``BytesIO``, gets one too. It
    needs NumPy."""
    from .nn import Module

    if hasattr(path, "write") or os.fsdecode(path).endswith((".pt", ".pth")):
        from . import _pt_write

        _pt_write.save(tensors.state_dict() if isinstance(tensors, Module) else tensors, path)
        return
    named = _first_names(tensors) if isinstance(tensors, Module) else None
    if named is None:
        if not hasattr(tensors, "items"):
            raise TypeError(f"save takes a dict of tensors or a Module, not {type(tensors).__name__}")
        named = list(tensors.items())
    for name, tensor in named:
        if isinstance(name, str):
            _plain.checked_name(name)
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise TypeError(
                f"{name!r} is a {_core.named(tensor)}; a file holds tensors with names. Save other values with a checkpoint, or to a file whose "
                "name ends in .pt"
            )
    _oflow._save_file(os.fsdecode(path), [(name, tensor.detach()) for name, tensor in named])


def load(path: str | os.PathLike[str] | IO[bytes], map_location=None, *, device=None, placement=None, sbp=None, weights_only: bool = True) -> Any:
    """All tensors of a safetensors file, the folder of a model, or a checkpoint, as a dict; or what a file of ``torch.save`` holds. With a
    placement and an sbp all ranks call this, and each reads its part.

    A file of PyTorch, of a path or an open one, may hold tensors, numbers, texts, and dicts, lists, tuples and sets of them; nothing in it is
    run, and what else it holds is refused by name. Its tensors come to the CPU, to ``map_location`` or to ``device``, and those that shared memory share it on the
    CPU. With a placement each rank reads the whole file. It needs NumPy.
    """
    from . import _pt_file

    if not weights_only:
        raise ValueError("load runs no code of a file: weights_only is True. Save the state_dict() of a model in PyTorch, and plain values")
    if map_location is not None:
        if not isinstance(map_location, (str, oflow.device)):
            raise TypeError(f"map_location is a device or its name, not a {type(map_location).__name__}")
        device = map_location if device is None else device
    path = path if _pt_file.is_file(path) else os.fsdecode(path)
    kind = _pt_file.kind_of(path)
    if kind is None and _pt_file.is_file(path):
        raise _pt_file.StorageError("cannot load an open file that is not one of torch.save: give the path of other files")
    if kind is None:
        return dict(_oflow._load_file(path, device, placement, sbp))
    if kind == "pickle":
        _pt_file.refuse_pickle(path)
    return _put(_pt_file.load(path), device, placement, sbp)


def _put(value, device, placement, sbp):
    """A value of nested dicts and lists with its tensors on a device or in a layout."""
    if device is None and placement is None:
        return value
    if isinstance(value, Tensor):
        new = oflow.distribute(value.detach(), placement, sbp) if placement is not None else value.detach().to(device)
        made = type(value).__new__(type(value), new) if type(value) is not Tensor else new
        return made.requires_grad_(value.requires_grad) if value.requires_grad != made.requires_grad else made
    if isinstance(value, dict):
        for key in value:
            value[key] = _put(value[key], device, placement, sbp)
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(_put(v, device, placement, sbp) for v in value)
    return value
