"""Modules made of lists and dicts of modules and parameters."""

import operator
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any

from .._oflow import Tensor
from .._core import named
from .module import Module
from .parameter import Parameter


class _Listed(Module):
    """What lists of modules have: names are the numbers "0", "1", and on, or those that were given."""

    def append(self, module: Module):
        """Adds a module at the end. Returns the list."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]):
        """Adds modules at the end. Returns the list."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"extend takes an iterable of modules, not {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module):
        """Puts a module before that of a number; the modules behind it are numbered anew. Returns the list."""
        modules = list(self)
        modules.insert(operator.index(index), module)
        self._renumber(modules)
        return self

    def pop(self, index: int = -1) -> Any:
        """Takes a module out and returns it; the modules behind it are numbered anew."""
        module = self[index]
        del self[index]
        return module

    def _renumber(self, modules):
        for module in modules:
            if module is not None and not isinstance(module, Module):
                raise TypeError(f"a {type(self).__name__} has modules, not a {named(module)}")
        self._modules.clear()
        for number, module in enumerate(modules):
            self.add_module(str(number), module)

    def _name(self, index):
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"module {index} of a list of {len(self)}")
        return list(self._modules)[index]

    def __len__(self):
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module):
        self.add_module(self._name(index), module)

    def __delitem__(self, index: int | slice):
        modules = list(self)
        if not isinstance(index, slice):
            self._name(index)
        del modules[index]
        self._renumber(modules)

    def __iadd__(self, modules: Iterable[Module]):
        return self.extend(modules)


class Sequential(_Listed):
    """Modules that run one after another: ``Sequential(a, b)`` or ``Sequential({"first": a, "second": b})``."""

    def __init__(self, *modules: Module | Mapping[str, Module]):
        super().__init__()
        named = modules[0].items() if len(modules) == 1 and hasattr(modules[0], "items") else enumerate(modules)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, x):
        for module in self._modules.values():
            x = module(x)
        return x

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)({name: self._modules[name] for name in list(self._modules)[index]})
        return self._modules[self._name(index)]

    def __add__(self, other: "Sequential"):
        if not isinstance(other, Sequential):
            raise ValueError(f"a Sequential is added to a Sequential, not to a {type(other).__name__}")
        return Sequential(*self, *other)

    def __mul__(self, times: int):
        if not isinstance(times, int) or isinstance(times, bool):
            raise TypeError(f"a Sequential is repeated a whole number of times, not {times!r}")
        if times < 1:
            raise ValueError(f"a Sequential is repeated at least once, not {times} times")
        return Sequential(*(list(self) * times))

    def __rmul__(self, times: int):
        return self * times

    def __imul__(self, times: int):
        for module in list(self * times)[len(self) :]:
            self.append(module)
        return self


class ModuleList(_Listed):
    """A list of modules, which are parts of the module that has the list."""

    _is_list = True

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        self.extend(() if modules is None else modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._name(index)]

    def __add__(self, other: Iterable[Module]):
        return ModuleList([*self, *other])

    def forward(self, *_):
        raise NotImplementedError("a ModuleList is not called; call its modules")


def _pairs(what, given):
    """Names and values of a mapping or of an iterable of pairs."""
    pairs = list(given.items()) if hasattr(given, "items") else list(given)
    for i, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"{what} takes a mapping or pairs of a name and a value; entry {i} is {pair!r}")
    return pairs


class ModuleDict(Module):
    """A dict of modules, which are parts of the module that has the dict."""

    _is_list = True

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None):
        super().__init__()
        self.update(() if modules is None else modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]):
        """Adds modules by name."""
        for name, module in _pairs("ModuleDict.update", modules):
            self[name] = module

    def clear(self):
        """Takes all modules out."""
        self._modules.clear()

    def pop(self, name: str) -> Any:
        """Takes a module out and returns it."""
        module = self[name]
        del self[name]
        return module

    def __setitem__(self, name: str, module: Module):
        self.add_module(name, module)

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def __delitem__(self, name: str):
        del self._modules[name]

    def __contains__(self, name: object):
        return name in self._modules

    def __len__(self):
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def items(self) -> ItemsView[str, Module]:
        """Names and modules."""
        return self._modules.items()

    def forward(self, *_):
        raise NotImplementedError("a ModuleDict is not called; call its modules")


def _parameter(value):
    """A tensor as the parameter that a list or a dict makes of it."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class ParameterList(Module):
    """A list of parameters, which belong to the module that has the list. Tensors become parameters."""

    def __init__(self, values: Iterable[Tensor] | None = None):
        super().__init__()
        self.extend(() if values is None else values)

    def append(self, value: Tensor):
        """Adds a parameter at the end. Returns the list."""
        self.register_parameter(str(len(self)), _parameter(value))
        return self

    def extend(self, values: Iterable[Tensor]):
        """Adds parameters at the end. Returns the list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"extend takes an iterable of parameters, not {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __len__(self):
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())

    def __getitem__(self, index: int | slice) -> Any:
        found = list(self._parameters.values())[index]
        return type(self)(found) if isinstance(index, slice) else found

    def __setitem__(self, index: int, value: Tensor):
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"parameter {index} of a list of {len(self)}")
        self.register_parameter(str(index % len(self)), _parameter(value))

    def __iadd__(self, values: Iterable[Tensor]):
        return self.extend(values)

    def forward(self, *_):
        raise NotImplementedError("a ParameterList is not called")


class ParameterDict(Module):
    """A dict of parameters, which belong to the module that has the dict. Tensors become parameters."""

    def __init__(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None):
        super().__init__()
        self.update(() if parameters is None else parameters)

    def update(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]):
        """Adds parameters by name."""
        for name, parameter in _pairs("ParameterDict.update", parameters):
            self[name] = parameter

    def setdefault(self, name: str, default: Tensor | None = None) -> Any:
        """The parameter of a name; where there is none, ``default`` becomes it."""
        if name not in self:
            self[name] = default
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The parameter of a name, or ``default``."""
        return self._parameters.get(name, default)

    def pop(self, name: str) -> Any:
        """Takes a parameter out and returns it."""
        return self._parameters.pop(name)

    def popitem(self) -> tuple[str, Any]:
        """Takes the parameter that was added last out and returns its name and it."""
        return self._parameters.popitem()

    def clear(self):
        """Takes all parameters out."""
        self._parameters.clear()

    def copy(self):
        """Another dict of the same parameters."""
        return type(self)(self._parameters)

    def fromkeys(self, names: Iterable[str], default: Any = None):
        """Another dict, with one value under these names."""
        return type(self)((name, default) for name in names)

    def __setitem__(self, name: str, parameter: Tensor | None):
        self.register_parameter(name, _parameter(parameter))

    def __getitem__(self, name: str) -> Any:
        return self._parameters[name]

    def __delitem__(self, name: str):
        del self._parameters[name]

    def __contains__(self, name: object):
        return name in self._parameters

    def __len__(self):
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._parameters)

    def __or__(self, other: "ParameterDict"):
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: "ParameterDict"):
        self.update(other)
        return self

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._parameters.keys()

    def values(self) -> ValuesView[Parameter]:
        """The parameters."""
        return self._parameters.values()

    def items(self) -> ItemsView[str, Parameter]:
        """Names and parameters."""
        return self._parameters.items()

    def forward(self, *_):
        raise NotImplementedError("a ParameterDict is not called")
