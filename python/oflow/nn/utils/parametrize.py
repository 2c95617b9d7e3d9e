"""Parameters that are computed from others each time they are read, as in PyTorch."""

import contextlib
import threading
from typing import TypeVar

import oflow

from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

_local = threading.local()
_M = TypeVar("_M", bound=Module)


@contextlib.contextmanager
def cached():
    """Within it each parametrized tensor is computed once, at its first use."""
    depth = getattr(_local, "depth", 0)
    _local.depth, _local.cache = depth + 1, _local.cache if depth else {}
    try:
        yield
    finally:
        _local.depth = depth
        if not depth:
            _local.cache = {}


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _inverted(modules, value, required):
    """What the modules compute a value from: the last one is inverted first."""
    for module in reversed(list(modules)):
        if hasattr(module, "right_inverse"):
            value = module.right_inverse(value)
        elif required:
            raise RuntimeError(f"{type(module).__name__} has no right_inverse, so nothing can be assigned to what it computes")
    return value


class ParametrizationList(ModuleList):
    """The modules that compute a tensor, one after the other, from ``original``, or from ``original0``, ``original1`` and so on where the
    first one takes several."""

    def __init__(self, modules, original, unsafe=False):
        super().__init__(modules)
        self.unsafe = unsafe
        with oflow.no_grad():
            new = _inverted(self, original, required=False)
        self.is_tensor = isinstance(new, oflow.Tensor)
        if not self.is_tensor and not isinstance(new, (list, tuple)):
            raise ValueError(f"right_inverse returns a tensor or several, not {type(new).__name__}")
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if new.dtype != original.dtype:
                raise ValueError(f"right_inverse gives {new.dtype}, not {original.dtype}: one tensor keeps its dtype")
            if new is not original:
                original = self._written(original, new)
            _register(self, "original", original)
        else:
            for number, tensor in enumerate(new):
                if isinstance(original, Parameter):
                    tensor = Parameter(tensor.detach().clone(), original.requires_grad)
                _register(self, f"original{number}", tensor)
        if not unsafe:
            made = self.compute()
            if (tuple(made.shape), made.dtype) != (tuple(original.shape), original.dtype):
                raise ValueError(
                    f"the parametrization makes {made!r} of {original!r}: another shape or dtype needs unsafe=True"
                )

    @staticmethod
    def _written(original, new):
        """The original with new values: the same object, so that optimizers keep it, where the shape is the same."""
        if tuple(new.shape) != tuple(original.shape):
            new = new.detach().clone()
            return Parameter(new, original.requires_grad) if isinstance(original, Parameter) else new
        with oflow.no_grad():
            original.copy_(new)
        return original

    def originals(self) -> list[oflow.Tensor]:
        """The tensors from which the parametrized one is computed."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def compute(self) -> oflow.Tensor:
        """The parametrized tensor."""
        first, *others = self
        x = first(*self.originals())
        for module in others:
            x = module(x)
        return x

    def right_inverse(self, value):
        """Writes what the parametrized tensor is to be into the originals."""
        with oflow.no_grad():
            new = _inverted(self, value, required=True)
            new = [new] if self.is_tensor else list(new)
            if len(new) != self.ntensors:
                raise ValueError(f"right_inverse gives {len(new)} tensors, not {self.ntensors}")
            for original, tensor in zip(self.originals(), new):
                if tuple(tensor.shape) != tuple(original.shape) or tensor.dtype != original.dtype:
                    raise ValueError(f"right_inverse gives {tensor!r} for {original!r}")
                original.copy_(tensor)

    def __len__(self):
        return sum(name.isdigit() for name in self._modules)


def _read(module, name):
    made = module.parametrizations[name]
    if not getattr(_local, "depth", 0):
        return made.compute()
    key = (id(module), name)
    if key not in _local.cache:
        _local.cache[key] = made.compute()
    return _local.cache[key]


def _set(module, name, value):
    if name in module.__dict__.get("_modules", {}).get("parametrizations", ()):
        module.parametrizations[name].right_inverse(value)
    else:
        super(_parametrized_class(module), module).__setattr__(name, value)


def _parametrized_class(module):
    return next(cls for cls in type(module).__mro__ if cls.__dict__.get("_names") is not None)


def _reclass(module, base, names):
    """Gives a module a class of its own in which these tensors are computed; its base class if there are none."""
    made = base
    if names:
        tensors = {name: property(lambda self, name=name: _read(self, name)) for name in names}
        made = type(f"Parametrized{base.__name__}", (base,), {"_names": tuple(names), "__setattr__": _set, **tensors})
    object.__setattr__(module, "__class__", made)


def is_parametrized(module, tensor_name: str | None = None) -> bool:
    """Whether a module has a parametrized tensor, or the one of that name."""
    names = getattr(type(module), "_names", ())
    return bool(names) if tensor_name is None else tensor_name in names


def type_before_parametrizations(module) -> type[Module]:
    """The class of a module without its parametrizations."""
    return _parametrized_class(module).__bases__[0] if is_parametrized(module) else type(module)


def register_parametrization(module: _M, tensor_name: str, parametrization: Module, *, unsafe=False) -> _M:
    """Makes a parameter or buffer the result of a module, ``parametrization(original)``, each time it is read. ``original`` is a parameter of
    ``module.parametrizations[tensor_name]``. A second one computes with the result of the first. With ``unsafe`` the shape and the dtype
    may change. Returns the module."""
    if not isinstance(parametrization, Module):
        raise TypeError(f"a parametrization is a Module, not {type(parametrization).__name__}")
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        made = module.parametrizations[tensor_name]
        before = getattr(module, tensor_name)
        if not unsafe:
            after = parametrization(before)
            if (tuple(after.shape), after.dtype) != (tuple(before.shape), before.dtype):
                raise ValueError(f"the parametrization makes {after!r} of {before!r}: another shape or dtype needs unsafe=True")
        if hasattr(parametrization, "right_inverse"):
            with oflow.no_grad():
                value = parametrization.right_inverse(before)
            made.right_inverse(value)
        made.add_module(str(len(made)), parametrization)
        made.unsafe |= unsafe
    elif tensor_name in module._parameters or tensor_name in module._buffers:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = made
        _reclass(module, type_before_parametrizations(module), (*getattr(type(module), "_names", ()), tensor_name))
    else:
        raise ValueError(f"{type(module).__name__} has no parameter or buffer '{tensor_name}'")
    return module


def remove_parametrizations(module: _M, tensor_name: str, leave_parametrized=True) -> _M:
    """Makes a parametrized tensor a parameter or buffer again: with the value that it has, or else with the value of its original. Returns the
    module."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"'{tensor_name}' of {type(module).__name__} is not parametrized")
    made = module.parametrizations[tensor_name]
    if not made.is_tensor and not leave_parametrized:
        raise ValueError(f"'{tensor_name}' is computed from {made.ntensors} tensors: without its parametrization it has no value")
    with oflow.no_grad():
        value = made.compute() if leave_parametrized else None
    if made.is_tensor:
        tensor = made.original if value is None else ParametrizationList._written(made.original, value)
    else:
        trained = isinstance(made.original0, Parameter)
        tensor = Parameter(value.detach().clone(), made.original0.requires_grad) if trained else value.detach().clone()
    names = tuple(name for name in type(module)._names if name != tensor_name)
    base = type_before_parametrizations(module)
    del module.parametrizations[tensor_name]
    if not names:
        del module.parametrizations
    _reclass(module, base, names)
    _register(module, tensor_name, tensor)
    return module
