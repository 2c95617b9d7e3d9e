"""What a module saves and loads: state dicts, as in PyTorch."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .. import _oflow
from .._core import as_leaf, copy_into, named
from .._hooks import RemovableHandle, added
from .._oflow import Tensor
from .parameter import Parameter

_IncompatibleKeys = NamedTuple("IncompatibleKeys", [("missing_keys", list[str]), ("unexpected_keys", list[str])])

EXTRA = "_extra_state"
"""The name under which a state dict has what ``get_extra_state`` gives."""


def joined(prefix, name):
    """A dotted name."""
    return f"{prefix}.{name}" if prefix else name


class _Found(list):
    """What the modules of a tree find in a state dict: the list of errors, the writes, and the parts that load their own."""

    def __init__(self):
        super().__init__()
        self.writes, self.parts, self.assigned = [], [], {}


class Stateful:
    """State dicts of a module."""

    _version = 1

    def get_extra_state(self) -> Any:
        """What a module saves besides tensors, under the name ``_extra_state``. A module that defines it defines ``set_extra_state`` too."""
        raise RuntimeError(f"{type(self).__name__} defines set_extra_state and no get_extra_state, which gives what is saved")

    def set_extra_state(self, state: Any) -> None:
        """Takes what ``get_extra_state`` gave."""
        raise RuntimeError(f"{type(self).__name__} defines get_extra_state and no set_extra_state, which takes what was saved")

    def _has_extra_state(self, which="get_extra_state"):
        return getattr(type(self), which) is not getattr(Stateful, which)

    def _extra_states(self):
        """The extra states of this module and its parts by dotted name."""
        return {name: module.get_extra_state() for name, module in self.named_modules() if module._has_extra_state()}

    def _set_extra_states(self, states):
        for name, module in self.named_modules():
            if name in states:
                module.set_extra_state(states[name])

    def state_dict(self, *, destination=None, prefix="", keep_vars=False) -> dict[str, Any]:
        """Dotted names and tensors of all parameters and persistent buffers. The tensors share memory with the module; a shared
        parameter is there under each of its names. Calls the ``state_dict`` of each part, which adds to ``destination`` names that
        begin with ``prefix``. With ``keep_vars`` the dict has the parameters themselves, without it they are detached."""
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
            self._sizes_known()
            # Refuses a module that contains itself.
            all(True for _ in self._saved())
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in tuple(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook, may_replace in tuple(self._state_dict_hooks.values()):
            changed = hook(self, destination, prefix, metadata)
            if changed is not None:
                if not may_replace:
                    raise RuntimeError("a state dict post-hook changes the dict that it is given, and returns None")
                destination = changed
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Adds the own tensors to a state dict, without those of parts."""
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if self._has_extra_state():
            destination[prefix + EXTRA] = self.get_extra_state()

    def _own_state(self):
        """Own names and tensors that are saved, without those of parts."""
        for table in (self._parameters, self._buffers):
            for name, tensor in table.items():
                if tensor is not None and name not in self._transient:
                    yield name, tensor

    def _saved(self, prefix="", above=()):
        """All names under which parameters and persistent buffers are saved: those of a part that is there twice come twice."""
        for name, tensor in self._own_state():
            yield joined(prefix, name), tensor
        for name, module in self._modules.items():
            if module is self or module in above:
                raise RuntimeError(f"the module '{joined(prefix, name)}' contains itself")
            if module is not None:
                yield from module._saved(joined(prefix, name), (*above, self))

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copies tensors (or NumPy arrays) into the parameters and buffers of the same names. They keep their layouts: a local
        tensor is the logical value. Returns missing and unexpected names; with ``strict`` either is an error. Nothing is changed
        if there is an error, unless a part has a hook of ``register_load_state_dict_post_hook``, which is called behind the writes. A part
        that defines ``load_state_dict`` is given its own tensors, after all others have been checked.

        With ``assign`` the module takes the tensors themselves, with their dtypes and layouts, in the place of its parameters and buffers.
        Make optimizers after such a call.
        """
        if not hasattr(state_dict, "items"):
            raise TypeError(f"a state dict is a dict of tensors, not {type(state_dict).__name__}")
        for name in state_dict:
            if not isinstance(name, str):
                raise TypeError(f"the names of a state dict are strings, not {name!r}")
        own = dict(self._saved())
        missing, unexpected, found = [], [], _Found()
        metadata = getattr(state_dict, "_metadata", None) or {}
        self._load("", dict(state_dict), metadata, assign, missing, unexpected, found)
        # A shared parameter may be saved under one of its names only.
        present = {id(own[name]) for name in own if name in state_dict}
        keys = _IncompatibleKeys([name for name in missing if id(own.get(name)) not in present], unexpected)
        hooked = [m for m in self.modules() if m._load_state_dict_post_hooks]
        if hooked and not found:
            self._finish_load(found, keys, strict, assign)
            for module in reversed(hooked):
                for hook in tuple(module._load_state_dict_post_hooks.values()):
                    if hook(module, keys) is not None:
                        raise RuntimeError("a load_state_dict post-hook changes the keys that it is given, and returns None")
        problems = []
        if strict and keys.unexpected_keys:
            problems.append("unexpected names: " + ", ".join(keys.unexpected_keys))
        if strict and keys.missing_keys:
            problems.append("missing names: " + ", ".join(keys.missing_keys))
        problems += found
        if problems:
            raise RuntimeError(f"cannot load the state dict into {type(self).__name__}:\n  " + "\n  ".join(problems))
        if not hooked:
            self._finish_load(found, keys, strict, assign)
        return keys

    def _finish_load(self, found, keys, strict, assign):
        more = {**({} if strict else {"strict": False}), **({"assign": True} if assign else {})}
        for module, prefix, part in found.parts:
            theirs = module.load_state_dict(part, **more)
            keys.missing_keys.extend(prefix + name for name in getattr(theirs, "missing_keys", ()))
            keys.unexpected_keys.extend(prefix + name for name in getattr(theirs, "unexpected_keys", ()))
        for write in found.writes:
            write()

    def _load(self, prefix, state_dict, metadata, assign, missing, unexpected, found):
        local = dict(metadata.get(prefix[:-1], {}))
        if assign:
            local["assign_to_params_buffers"] = True
        self._load_from_state_dict(state_dict, prefix, local, True, missing, unexpected, found)
        for name, module in self._modules.items():
            if module is None:
                continue
            inner = f"{prefix}{name}."
            part = {key: value for key, value in state_dict.items() if key.startswith(inner)}
            if getattr(module.load_state_dict, "__func__", None) is not Stateful.load_state_dict:
                found.parts.append((module, inner, {key[len(inner) :]: value for key, value in part.items()}))
            else:
                module._load(inner, part, metadata, assign, missing, unexpected, found)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Loads the own tensors, without those of parts, from the names that begin with ``prefix``; what cannot be loaded is added to
        the three lists. A module may define it to rename what older versions of it saved. Tensors are written after all modules have
        found theirs."""
        for hook, with_module in tuple(self._load_state_dict_pre_hooks.values()):
            more = (self,) if with_module else ()
            hook(*more, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = dict(self._own_state())
        assign = local_metadata.get("assign_to_params_buffers", False)
        known = set(own)
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                try:
                    if assign:
                        write = self._assigning(name, tensor, state_dict[key], getattr(error_msgs, "assigned", {}))
                    else:
                        write = copy_into(tensor, state_dict[key])
                except (TypeError, ValueError) as e:
                    error_msgs.append(f"'{key}': {e}")
                else:
                    error_msgs.writes.append(write) if isinstance(error_msgs, _Found) else write()
            elif strict:
                missing_keys.append(key)
        if self._has_extra_state("set_extra_state"):
            known.add(EXTRA)
            if prefix + EXTRA in state_dict:
                state = state_dict[prefix + EXTRA]
                write = lambda: self.set_extra_state(state)  # noqa: E731
                error_msgs.writes.append(write) if isinstance(error_msgs, _Found) else write()
            elif strict:
                missing_keys.append(prefix + EXTRA)
        for key in state_dict if strict else ():
            first, inside, _ = key[len(prefix) :].partition(".")
            if key.startswith(prefix) and (self._modules.get(first) is None if inside else first not in known):
                unexpected_keys.append(key)

    def _assigning(self, name, old, value, assigned):
        """Checks that a tensor may be put in the place of another one and returns the function that does it."""
        if not isinstance(value, Tensor):
            raise TypeError(f"expected a tensor to assign, got a {named(value)}")
        if tuple(value.shape) != tuple(old.shape):
            raise ValueError(f"the shape is {tuple(value.shape)}, {tuple(old.shape)} is needed")
        table = self._parameters if name in self._parameters else self._buffers

        def write():
            # What was one parameter under several names stays one.
            if id(old) not in assigned:
                if table is self._buffers:
                    new = as_leaf(Tensor, value.detach(), False)
                elif isinstance(value, Parameter):
                    new = value.requires_grad_(old.requires_grad)
                else:
                    new = Parameter(value.detach(), requires_grad=old.requires_grad)
                assigned[id(old)] = old, new
                if isinstance(old, Parameter) and new is not old:
                    _oflow._replaced([old])
            table[name] = assigned[id(old)][1]

        return write

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, prefix, keep_vars)`` before ``state_dict`` reads the module."""
        return added(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict`` has added the module and its parts; it may change
        the dict in place."""
        return added(self._state_dict_hooks, (hook, False))

    def _register_state_dict_hook(self, hook):
        """``register_state_dict_post_hook`` of a hook that may also return another dict."""
        return added(self._state_dict_hooks, (hook, True))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`` before the module
        takes its tensors; it may rename in the dict what begins with ``prefix``."""
        return added(self._load_state_dict_pre_hooks, (hook, True))

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        """``register_load_state_dict_pre_hook`` of a hook that is not given the module."""
        return added(self._load_state_dict_pre_hooks, (hook, with_module))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, incompatible_keys)`` after the module and its parts have taken their tensors; it may take names out of the
        two lists."""
        return added(self._load_state_dict_post_hooks, hook)
