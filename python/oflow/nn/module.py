"""The base class of modules: named parameters, buffers and parts, as in PyTorch."""

import fnmatch
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import oflow

from .. import _oflow
from .._core import as_leaf, copy_into, relayout, zero_gradient
from .._oflow import Tensor
from .parameter import Parameter

_IncompatibleKeys = NamedTuple("IncompatibleKeys", [("missing_keys", list[str]), ("unexpected_keys", list[str])])
_hook_numbers = itertools.count()


class RemovableHandle:
    """Removes a hook: ``remove()``, or the end of a ``with``."""

    def __init__(self, hooks):
        self._hooks, self._number = hooks, next(_hook_numbers)

    def remove(self):
        """Removes the hook. A second call changes nothing."""
        self._hooks.pop(self._number, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def _joined(prefix, name):
    return f"{prefix}.{name}" if prefix else name


def _is_own(module, method):
    """Whether a module, its class or the object, defines a method of ``Module`` itself."""
    return getattr(getattr(module, method), "__func__", None) is not getattr(Module, method)


class _Found(list):
    """What the modules of a tree find in a state dict: the list of errors, the writes, and the parts that load their own."""

    def __init__(self):
        super().__init__()
        self.writes, self.parts = [], []


class Module:
    """A part of a model. Subclasses call ``super().__init__()`` first, assign parameters and modules to attributes, and define
    ``forward``.

    Attributes that are a :class:`Parameter` or a ``Module`` are registered under their names. A parameter that two modules
    share is listed once, under its first name.
    """

    training = True
    # The name under which the module was assigned last.
    _scope = None
    # Lists are not called: their modules are named by both names.
    _is_list = False
    # A layer whose parameters are made at its first call.
    _is_lazy = False

    def __init__(self):
        for name in ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks"):
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_transient", set())
        object.__setattr__(self, "training", True)

    def forward(self, *args, **kwargs):
        """The computation of the module. Call the module itself: ``module(x)``."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    def __call__(self, *args, **kwargs):
        scope = self._scope
        if scope is None:
            return self._call(args, kwargs)
        # Errors, comm records and reports name the calls inside as parameters are named: `h.3.attn.q`.
        number = _oflow._enter("name_scope", scope)
        try:
            return self._call(args, kwargs)
        finally:
            _oflow._leave(number)

    def _call(self, args, kwargs):
        for hook in tuple(self._forward_pre_hooks.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in tuple(self._forward_hooks.values()):
            changed = hook(self, args, result)
            if changed is not None:
                result = changed
        return result

    # Attributes.

    def _tables(self):
        try:
            return self.__dict__["_parameters"], self.__dict__["_buffers"], self.__dict__["_modules"]
        except KeyError:
            raise AttributeError(
                f"{type(self).__name__} assigns parameters or modules before super().__init__() was called"
            ) from None

    def __setattr__(self, name, value):
        if isinstance(value, (Parameter, Module)):
            tables = self._tables()
            own = tables[0] if isinstance(value, Parameter) else tables[2]
            for table in (self.__dict__, *tables):
                if table is not own:
                    table.pop(name, None)
            own[name] = value
            if isinstance(value, Module):
                value._name_scope(name if not self._is_list or self._scope is None else f"{self._scope}.{name}")
            return
        if "_parameters" in self.__dict__:
            parameters, buffers, modules = self._tables()
            for table, what in ((parameters, "parameter"), (modules, "module")):
                if name in table:
                    if value is not None:
                        raise TypeError(
                            f"cannot assign a {type(value).__name__} to the {what} '{name}' of {type(self).__name__}; "
                            f"assign a {'Parameter' if what == 'parameter' else 'Module'} or None, or delete it first"
                        )
                    table[name] = None
                    return
            if name in buffers:
                if value is not None and not isinstance(value, Tensor):
                    raise TypeError(f"cannot assign a {type(value).__name__} to the buffer '{name}'; assign a Tensor or None")
                buffers[name] = value
                return
        object.__setattr__(self, name, value)

    def _name_scope(self, name):
        object.__setattr__(self, "_scope", name)
        if self._is_list:
            for own, module in self._modules.items():
                if module is not None:
                    module._name_scope(f"{name}.{own}")

    def __getattr__(self, name):
        for table in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(table)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name):
        for table in self._tables():
            if name in table:
                del table[name]
                self._transient.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *(name for table in self._tables() for name in table)})

    def _free(self, name, what):
        if not isinstance(name, str) or not name or "." in name:
            raise KeyError(f"{name!r} cannot be the name of a {what}: expected a string without dots")
        if hasattr(self, name) and not any(name in table for table in self._tables()):
            raise KeyError(f"{type(self).__name__} has an attribute '{name}' already")

    def register_parameter(self, name: str, parameter: Parameter | None):
        """Adds a parameter under a name; None reserves the name."""
        self._free(name, "parameter")
        if parameter is None:
            self._tables()[0][name] = None
        elif isinstance(parameter, Parameter):
            setattr(self, name, parameter)
        else:
            raise TypeError(f"'{name}' is a {type(parameter).__name__}, not a Parameter")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent=True):
        """Adds a tensor that is not a parameter: running means, masks. It is saved unless ``persistent`` is false."""
        self._free(name, "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"'{name}' is a {type(tensor).__name__}, not a Tensor")
        parameters, buffers, modules = self._tables()
        if name in parameters or name in modules:
            raise KeyError(f"{type(self).__name__} has an attribute '{name}' already")
        buffers[name] = tensor
        self._transient.discard(name) if persistent else self._transient.add(name)

    def add_module(self, name: str, module: "Module | None"):
        """Adds a part under a name; None reserves the name."""
        self._free(name, "module")
        if module is None:
            self._tables()[2][name] = None
        elif isinstance(module, Module):
            setattr(self, name, module)
        else:
            raise TypeError(f"'{name}' is a {type(module).__name__}, not a Module")

    # Walks.

    def named_modules(self, prefix="", memo=None) -> Iterator[tuple[str, "Module"]]:
        """Dotted names and modules: this one, then its parts in the order in which they were assigned; each module once."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(_joined(prefix, name), memo)

    def modules(self) -> Iterator["Module"]:
        """This module and all its parts."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """Names and modules of the direct parts; each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator["Module"]:
        """The direct parts."""
        return (module for _, module in self.named_children())

    def _slots(self, table, recurse, transient=True):
        """Module, own name and dotted name of every place that holds a tensor. In the order of attributes: the parts come where
        they were assigned, after the own tensors."""
        for prefix, module in self.named_modules() if recurse else [("", self)]:
            for name, tensor in getattr(module, table).items():
                if tensor is not None and (transient or name not in module._transient):
                    yield module, name, _joined(prefix, name)

    def _sizes_known(self):
        """Refuses a module of which a layer has no parameters yet: they would be left out without a word."""
        for name, module in self.named_modules():
            if module._is_lazy:
                what = f"the part '{name}'" if name else "this module"
                raise RuntimeError(f"{what} is a {type(module).__name__}, whose parameters are made at its first call: call the module once before")

    def _named(self, table, prefix, recurse, transient=True):
        self._sizes_known()
        seen = set()
        for module, name, dotted in self._slots(table, recurse, transient):
            tensor = getattr(module, table)[name]
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield _joined(prefix, dotted), tensor

    def named_parameters(self, prefix="", recurse=True) -> Iterator[tuple[str, Parameter]]:
        """Dotted names and parameters, each parameter once."""
        return self._named("_parameters", prefix, recurse)

    def parameters(self, recurse=True) -> Iterator[Parameter]:
        """All parameters, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix="", recurse=True) -> Iterator[tuple[str, Tensor]]:
        """Dotted names and buffers, each once."""
        return self._named("_buffers", prefix, recurse)

    def buffers(self, recurse=True) -> Iterator[Tensor]:
        """All buffers, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> "Module":
        """The part of a dotted name; "" is this module."""
        module = self
        for name in target.split(".") if target else ():
            module = module._modules.get(name)
            if module is None:
                raise AttributeError(f"{type(self).__name__} has no part '{target}'")
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._parameters.get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no parameter '{target}'")
        return found

    def apply(self, function: Callable[["Module"], object]):
        """Calls ``function`` with each part and then with this module, and returns this module."""
        for module in self.children():
            module.apply(function)
        function(self)
        return self

    # Modes and gradients.

    def train(self, mode=True):
        """Training mode for this module and its parts (dropout drops), or evaluation mode: calls the ``train`` of each part, so a part
        may have its own (a batch norm that stays in evaluation mode). Returns the module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is True or False")
        object.__setattr__(self, "training", mode)
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Evaluation mode: ``train(False)``, then the ``eval`` of the parts that define one. Returns the module."""
        self.train(False)
        for module in self._with_own("eval"):
            module.eval()
        return self

    def _with_own(self, *methods):
        """The parts at any depth whose class or object defines one of ``methods`` itself, without those inside of such a part. (PyTorch
        calls only the ``train``, ``state_dict`` and ``apply`` of parts: another method that a part defines has no effect there.)"""
        for module in self.children():
            if any(_is_own(module, method) for method in methods):
                yield module
            else:
                yield from module._with_own(*methods)

    def _left_by(self, method, *args):
        """Calls ``method`` of the parts that define it. Returns the parameters that are in none of them."""
        parts = list(self._with_own(method))
        for part in parts:
            getattr(part, method)(*args)
        theirs = {id(p) for part in parts for p in part.parameters()}
        return [p for p in self.parameters() if id(p) not in theirs]

    def requires_grad_(self, requires_grad=True):
        """Sets whether the parameters are trained; a part that defines ``requires_grad_`` decides about its own. Returns the module."""
        for parameter in self._left_by("requires_grad_", requires_grad):
            parameter.requires_grad_(requires_grad)
        return self

    def freeze(self, pattern="*"):
        """Ends the training of the parameters whose names match a pattern (with ``*`` and ``?``), and removes their gradients. Returns
        the module."""
        for parameter in self._matching(pattern):
            parameter.requires_grad_(False)
            parameter.grad = None
        return self

    def unfreeze(self, pattern="*"):
        """Trains the parameters whose names match a pattern again. Returns the module."""
        for parameter in self._matching(pattern):
            parameter.requires_grad_(True)
        return self

    def _matching(self, pattern):
        named = list(self.named_parameters())
        found = [p for name, p in named if fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))]
        if not found:
            names = ", ".join(name for name, _ in named)
            raise ValueError(f"'{pattern}' matches no parameter; the parameters are {names}")
        return found

    def set_submodule(self, target: str, module: "Module"):
        """Puts a module in the place of the part of a dotted name. Make optimizers after this call."""
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if name not in parent._modules:
            raise AttributeError(f"{type(self).__name__} has no part '{target}'")
        if not isinstance(module, Module):
            raise TypeError(f"'{target}' is to be a {type(module).__name__}, which is not a Module")
        setattr(parent, name, module)

    def zero_grad(self, set_to_none=True):
        """Removes the gradients of all parameters; with ``set_to_none=False`` they become zeros. A part that defines ``zero_grad``
        does so for its own."""
        for parameter in self._left_by("zero_grad", *(() if set_to_none else (False,))):
            if set_to_none:
                parameter.grad = None
            else:
                zero_gradient(parameter)

    def unused_parameters(self) -> list[str]:
        """Names of the parameters that require a gradient and have none: after backward, those the loss does not depend on."""
        return [name for name, p in self.named_parameters() if p.requires_grad and p.grad is None]

    # Layouts, devices and precisions.

    def _map(self, function, apart=()):
        """Replaces the parameters and buffers that ``function`` changes by what it makes of them, without those of the parts ``apart``."""
        done = {}
        theirs = {id(module) for part in apart for module in part.modules()}

        def made(tensor):
            if id(tensor) not in done:
                value = tensor.detach()
                new = function(value)
                done[id(tensor)] = tensor, tensor if new is value else new
            return done[id(tensor)][1]

        def slots(table):
            return [slot for slot in self._slots(table, True) if id(slot[0]) not in theirs]

        replaced = []
        for module, name, _ in slots("_parameters"):
            old = module._parameters[name]
            new = made(old)
            if new is not old and not isinstance(new, Parameter):
                done[id(old)] = old, (new := Parameter(new, requires_grad=old.requires_grad))
                replaced.append(old)
            module._parameters[name] = new
        for module, name, _ in slots("_buffers"):
            old = module._buffers[name]
            new = made(old)
            module._buffers[name] = new if new is old else as_leaf(Tensor, new, False)
        # An optimizer that was made of the old ones says so at its next step.
        _oflow._replaced(replaced)
        return self

    def to(self, target: Any):
        """Moves parameters and buffers to a device, or converts those of floating point or complex numbers to a dtype. Returns the
        module. Parameters that are so already stay as they are; the others are replaced, without their gradients. Make optimizers after this call: one that
        was made of a replaced parameter raises an error at its next step. A part that defines ``to`` does so for its own."""
        return self._to(target, "to")

    def _to(self, target, method):
        """``to(target)``, for which the program called ``method``."""
        if method != "to" and _is_own(self, "to"):
            return self.to(target)
        apart = list(self._with_own(method, "to"))
        for part in apart:
            part.to(target) if method == "to" else getattr(part, method)()
        try:
            device = oflow.device(target)
        except (TypeError, ValueError):
            dtype = oflow.dtype(target)
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(f"a module is converted to a floating point or complex dtype, not to {dtype}") from None
            numbers = lambda d: d.is_floating_point or d.is_complex  # noqa: E731
            return self._map(lambda t: t.cast(dtype) if numbers(t.dtype) and t.dtype != dtype else t, apart)
        return self._map(lambda t: t.to_device(device) if t.device != device else t, apart)

    def float(self):
        """``to(oflow.float32)``."""
        return self._to(oflow.float32, "float")

    def double(self):
        """``to(oflow.float64)``."""
        return self._to(oflow.float64, "double")

    def half(self):
        """``to(oflow.float16)``."""
        return self._to(oflow.float16, "half")

    def bfloat16(self):
        """``to(oflow.bfloat16)``."""
        return self._to(oflow.bfloat16, "bfloat16")

    def cpu(self):
        """``to("cpu")``."""
        return self._to("cpu", "cpu")

    def cuda(self):
        """``to("cuda")``."""
        return self._to("cuda", "cuda")

    def to_global(self, placement, sbp=None, *, rules=()):
        """Lays all parameters and buffers out on a placement and returns the module. Values do not change; gradients are dropped.

        ``rules`` is a dict or a list of pairs (pattern, sbp): the first pattern that matches a parameter's dotted name gives its
        SBP. In a pattern ``*`` matches any characters, dots included, and ``?`` one. Without a rule ``sbp`` applies, and without
        it B on all axes. Of a local parameter the value of the placement's first rank counts. Make optimizers after this call.
        """
        self._sizes_known()
        rules = list(rules.items()) if hasattr(rules, "items") else list(rules)
        if sbp is not None:
            rules.append(("*", sbp))
        slots = list(self._slots("_parameters", True))
        tensors = [module._parameters[name] for module, name, _ in slots]
        made = relayout([dotted for _, _, dotted in slots], tensors, placement, rules)
        done = {}
        for (module, name, _), old, new in zip(slots, tensors, made):
            if id(old) not in done:
                done[id(old)] = Parameter(new, requires_grad=old.requires_grad)
            module._parameters[name] = done[id(old)]
        slots = list(self._slots("_buffers", True))
        tensors = [module._buffers[name] for module, name, _ in slots]
        for (module, name, _), new in zip(slots, relayout([d for _, _, d in slots], tensors, placement, [])):
            module._buffers[name] = new
        return self

    # State.

    def state_dict(self, *, destination=None, prefix="", keep_vars=False) -> dict[str, Any]:
        """Dotted names and tensors of all parameters and persistent buffers. The tensors share memory with the module; a shared
        parameter is there under each of its names. Calls the ``state_dict`` of each part, which adds to ``destination`` names that
        begin with ``prefix``. With ``keep_vars`` the dict has the parameters themselves, without it they are detached."""
        if destination is None:
            destination = OrderedDict()
            self._sizes_known()
            # Refuses a module that contains itself.
            all(True for _ in self._saved())
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Adds the own tensors to a state dict, without those of parts."""
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()

    def _own_state(self):
        """Own names and tensors that are saved, without those of parts."""
        for table in (self._parameters, self._buffers):
            for name, tensor in table.items():
                if tensor is not None and name not in self._transient:
                    yield name, tensor

    def _saved(self, prefix="", above=()):
        """All names under which parameters and persistent buffers are saved: those of a part that is there twice come twice."""
        for name, tensor in self._own_state():
            yield _joined(prefix, name), tensor
        for name, module in self._modules.items():
            if module is self or module in above:
                raise RuntimeError(f"the module '{_joined(prefix, name)}' contains itself")
            if module is not None:
                yield from module._saved(_joined(prefix, name), (*above, self))

    def load_state_dict(self, state_dict: Mapping[str, Any], strict=True) -> _IncompatibleKeys:
        """Copies tensors (or NumPy arrays) into the parameters and buffers of the same names. They keep their layouts: a local
        tensor is the logical value. Returns missing and unexpected names; with ``strict`` either is an error. Nothing is changed
        if there is an error. A part that defines ``load_state_dict`` is given its own tensors, after all others have been checked.
        """
        if not hasattr(state_dict, "items"):
            raise TypeError(f"a state dict is a dict of tensors, not {type(state_dict).__name__}")
        for name in state_dict:
            if not isinstance(name, str):
                raise TypeError(f"the names of a state dict are strings, not {name!r}")
        own = dict(self._saved())
        missing, unexpected, found = [], [], _Found()
        self._load("", dict(state_dict), missing, unexpected, found)
        problems = []
        if strict and unexpected:
            problems.append("unexpected names: " + ", ".join(unexpected))
        # A shared parameter may be saved under one of its names only.
        present = {id(own[name]) for name in own if name in state_dict}
        lacking = [name for name in missing if id(own.get(name)) not in present]
        if strict and lacking:
            problems.append("missing names: " + ", ".join(lacking))
        problems += found
        if problems:
            raise RuntimeError(f"cannot load the state dict into {type(self).__name__}:\n  " + "\n  ".join(problems))
        for module, prefix, part in found.parts:
            keys = module.load_state_dict(part, *(() if strict else (False,)))
            lacking += [prefix + name for name in getattr(keys, "missing_keys", ())]
            unexpected += [prefix + name for name in getattr(keys, "unexpected_keys", ())]
        for write in found.writes:
            write()
        return _IncompatibleKeys(lacking, unexpected)

    def _load(self, prefix, state_dict, missing, unexpected, found):
        self._load_from_state_dict(state_dict, prefix, {}, True, missing, unexpected, found)
        for name, module in self._modules.items():
            if module is None:
                continue
            inner = f"{prefix}{name}."
            part = {key: value for key, value in state_dict.items() if key.startswith(inner)}
            if _is_own(module, "load_state_dict"):
                found.parts.append((module, inner, {key[len(inner) :]: value for key, value in part.items()}))
            else:
                module._load(inner, part, missing, unexpected, found)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Loads the own tensors, without those of parts, from the names that begin with ``prefix``; what cannot be loaded is added to
        the three lists. A module may define it to rename what older versions of it saved. Tensors are written after all modules have
        found theirs."""
        own = dict(self._own_state())
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                try:
                    write = copy_into(tensor, state_dict[key])
                except (TypeError, ValueError) as e:
                    error_msgs.append(f"'{key}': {e}")
                else:
                    error_msgs.writes.append(write) if isinstance(error_msgs, _Found) else write()
            elif strict:
                missing_keys.append(key)
        for key in state_dict if strict else ():
            first, inside, _ = key[len(prefix) :].partition(".")
            if key.startswith(prefix) and (self._modules.get(first) is None if inside else first not in own):
                unexpected_keys.append(key)

    # Hooks.

    def register_forward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, args, result)`` after each forward; a result that is not None replaces that of forward."""
        handle = RemovableHandle(self._forward_hooks)
        self._forward_hooks[handle._number] = hook
        return handle

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, args)`` before each forward; a result that is not None replaces the arguments by position."""
        handle = RemovableHandle(self._forward_pre_hooks)
        self._forward_pre_hooks[handle._number] = hook
        return handle

    # Display.

    def extra_repr(self) -> str:
        """What ``repr`` shows of the module besides its parts."""
        return ""

    def __repr__(self):
        lines = [
            f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items() if module is not None
        ]
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        body = "\n  ".join(([extra] if extra else []) + lines)
        return f"{type(self).__name__}(\n  {body}\n)"
