"""The base class of modules: named parameters, buffers and parts, as in PyTorch."""

import fnmatch
from collections.abc import Callable, Iterator
from typing import Any

import oflow

from .. import _oflow
from .._core import as_leaf, named, relayout, zero_gradient
from .._oflow import Tensor
from .hooks import Hooked
from .parameter import Buffer, Parameter
from .state import Stateful, joined

def _is_own(module, method):
    """Whether a module, its class or the object, defines a method of ``Module`` itself."""
    return getattr(getattr(module, method), "__func__", None) is not getattr(Module, method)


def _ours(value):
    """A dtype or a device of PyTorch as the one of oflow."""
    if type(value).__module__.partition(".")[0] == "torch" and type(value).__name__ in ("dtype", "device"):
        return str(value).removeprefix("torch.")
    return value


def _another(old, tensor):
    """The parameter of a tensor in the place of another one, with the attributes that the program has set."""
    new = Parameter(tensor, requires_grad=old.requires_grad)
    new.__dict__.update(old.__dict__)
    return new


def targets(args, kwargs):
    """The device and the dtype that the arguments of ``to`` name, those that are given."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    for name in ("non_blocking", "memory_format"):
        kwargs.pop(name, None)
    if kwargs:
        raise TypeError(f"to() has no argument {', '.join(map(repr, kwargs))}; it takes a device, a dtype, or a tensor")
    device, dtype = _ours(device), _ours(dtype)
    for value in map(_ours, args):
        if isinstance(value, Tensor):
            device, dtype = (None if value.is_global else value.device), value.dtype
        elif isinstance(value, oflow.dtype):
            dtype = value
        elif isinstance(value, bool):
            # `non_blocking` by position.
            continue
        elif value is not None:
            try:
                device = oflow.device(f"cuda:{value}" if isinstance(value, int) else value)
            except (TypeError, ValueError):
                dtype = oflow.dtype(value)
    found = [oflow.device(device)] if device is not None else []
    found += [oflow.dtype(dtype)] if dtype is not None else []
    if not found and not any(isinstance(value, Tensor) for value in args):
        raise TypeError("to() takes a device, a dtype, or a tensor")
    return found


class Module(Hooked, Stateful):
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
        for name in ("_parameters", "_buffers", "_modules"):
            object.__setattr__(self, name, {})
        self._make_hook_tables()
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
        if self._forward_pre_hooks or self._forward_hooks or self._backward_hooks or self._backward_pre_hooks:
            return self._hooked_call(args, kwargs)
        return self.forward(*args, **kwargs)

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
        if isinstance(value, Buffer) and name not in self._tables()[1]:
            self.__dict__.pop(name, None)
            self.register_buffer(name, value, value.persistent)
            return
        if "_parameters" in self.__dict__:
            parameters, buffers, modules = self._tables()
            for table, what in ((parameters, "parameter"), (modules, "module")):
                if name in table:
                    if value is not None:
                        raise TypeError(
                            f"cannot assign a {named(value)} to the {what} '{name}' of {type(self).__name__}; "
                            f"assign a {'Parameter' if what == 'parameter' else 'Module'} or None, or delete it first"
                        )
                    table[name] = None
                    return
            if name in buffers:
                if value is not None and not isinstance(value, Tensor):
                    raise TypeError(f"cannot assign a {named(value)} to the buffer '{name}'; assign a Tensor or None")
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
            raise TypeError(f"'{name}' is a {named(parameter)}, not a Parameter")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent=True):
        """Adds a tensor that is not a parameter: running means, masks. It is saved unless ``persistent`` is false."""
        self._free(name, "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"'{name}' is a {named(tensor)}, not a Tensor")
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
            raise TypeError(f"'{name}' is a {named(module)}, not a Module")

    def register_module(self, name: str, module: "Module | None"):
        """``add_module`` by another name."""
        self.add_module(name, module)

    # Walks.

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, "Module"]]:
        """Dotted names and modules: this one, then its parts in the order in which they were assigned. Each module once, under its first
        name, or with ``remove_duplicate=False`` under each of its names. Modules whose ids are in ``memo`` are left out."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, joined(prefix, name), remove_duplicate)

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

    def _slots(self, table, recurse, transient=True, once=True):
        """Module, own name and dotted name of every place that holds a tensor. In the order of attributes: the parts come where
        they were assigned, after the own tensors. A part that is there twice comes once, or under each name."""
        for prefix, module in self.named_modules(remove_duplicate=once) if recurse else [("", self)]:
            for name, tensor in getattr(module, table).items():
                if tensor is not None and (transient or name not in module._transient):
                    yield module, name, joined(prefix, name)

    def _sizes_known(self):
        """Refuses a module of which a layer has no parameters yet: they would be left out without a word."""
        for name, module in self.named_modules():
            if module._is_lazy:
                what = f"the part '{name}'" if name else "this module"
                raise RuntimeError(f"{what} is a {type(module).__name__}, whose parameters are made at its first call: call the module once before")

    def _named(self, table, prefix, recurse, transient=True, once=True):
        self._sizes_known()
        seen = set()
        for module, name, dotted in self._slots(table, recurse, transient, once):
            tensor = getattr(module, table)[name]
            if not once or id(tensor) not in seen:
                seen.add(id(tensor))
                yield joined(prefix, dotted), tensor

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True) -> Iterator[tuple[str, Parameter]]:
        """Dotted names and parameters, each parameter once, or with ``remove_duplicate=False`` under each of its names."""
        return self._named("_parameters", prefix, recurse, once=remove_duplicate)

    def parameters(self, recurse=True) -> Iterator[Parameter]:
        """All parameters, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True) -> Iterator[tuple[str, Tensor]]:
        """Dotted names and buffers, each once, or with ``remove_duplicate=False`` under each of its names."""
        return self._named("_buffers", prefix, recurse, once=remove_duplicate)

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
        return self._get("_parameters", "parameter", target)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name."""
        return self._get("_buffers", "buffer", target)

    def _get(self, table, what, target):
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), table).get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no {what} '{target}'")
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
            raise TypeError(f"'{target}' is to be a {named(module)}, which is not a Module")
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
                done[id(old)] = old, (new := _another(old, new))
                replaced.append(old)
            module._parameters[name] = new
        for module, name, _ in slots("_buffers"):
            old = module._buffers[name]
            new = made(old)
            module._buffers[name] = new if new is old else as_leaf(Tensor, new, False)
        # An optimizer that was made of the old ones says so at its next step.
        _oflow._replaced(replaced)
        return self

    def to(self, *args: Any, **kwargs: Any):
        """Moves parameters and buffers to a device, or converts those of floating point or complex numbers to a dtype, or both: ``to("cpu")``,
        ``to(oflow.float16)``, ``to("cpu", oflow.float16)``, ``to(device=, dtype=)``, or ``to(tensor)`` for those of a tensor. Returns the
        module.

        Parameters that are so already stay as they are; the others are replaced, without their gradients. Make optimizers after this call:
        one that was made of a replaced parameter raises an error at its next step. A part that defines ``to`` does so for its own."""
        for target in targets(args, kwargs):
            self._to(target, "to")
        return self

    def type(self, dst_type: Any):
        """``to`` a dtype."""
        return self.to(oflow.dtype(dst_type))

    def _to(self, target, method):
        """``to(target)``, for which the program called ``method``."""
        if method != "to" and _is_own(self, "to"):
            return self.to(target)
        # The parts of a lazy layer, and of the program, that move themselves.
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

    def cuda(self, device=None):
        """``to("cuda")``, or the GPU of a number."""
        return self._to("cuda", "cuda") if device is None else self.to(f"cuda:{device}" if isinstance(device, int) else device)

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
                done[id(old)] = _another(old, new)
            module._parameters[name] = done[id(old)]
        slots = list(self._slots("_buffers", True))
        tensors = [module._buffers[name] for module, name, _ in slots]
        for (module, name, _), new in zip(slots, relayout([d for _, _, d in slots], tensors, placement, [])):
            module._buffers[name] = new
        return self

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
