"""Modules made of lists and dicts of modules and parameters."""

import operator
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any

from .module import Module
from .parameter import Parameter


class Sequential(Module):
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

    def append(self, module: Module):
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def __len__(self):
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: int | slice) -> Any:
        names = list(self._modules)
        if isinstance(index, slice):
            return type(self)({name: self._modules[name] for name in names[index]})
        return self._modules[names[operator.index(index)]]


class ModuleList(Module):
    """A list of modules, which are parts of the module that has the list."""

    _is_list = True

    def __init__(self, modules: Iterable[Module] = ()):
        super().__init__()
        self.extend(modules)

    def append(self, module: Module):
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]):
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def __len__(self):
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def _name(self, index):
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"module {index} of a list of {len(self)}")
        return str(index % len(self))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._name(index)]

    def __setitem__(self, index: int, module: Module):
        self.add_module(self._name(index), module)

    def forward(self, *_):
        raise NotImplementedError("a ModuleList is not called; call its modules")


class ModuleDict(Module):
    """A dict of modules, which are parts of the module that has the dict."""

    _is_list = True

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()):
        super().__init__()
        self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]):
        """Adds modules by name."""
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self[name] = module

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


class ParameterList(Module):
    """A list of parameters, which belong to the module that has the list."""

    def __init__(self, parameters: Iterable[Parameter] = ()):
        super().__init__()
        for parameter in parameters:
            self.append(parameter)

    def append(self, parameter: Parameter):
        """Adds a parameter at the end."""
        self.register_parameter(str(len(self)), parameter)
        return self

    def __len__(self):
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())

    def __getitem__(self, index: int | slice) -> Any:
        return list(self._parameters.values())[index]

    def forward(self, *_):
        raise NotImplementedError("a ParameterList is not called")


class ParameterDict(Module):
    """A dict of parameters, which belong to the module that has the dict."""

    def __init__(self, parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]] = ()):
        super().__init__()
        self.update(parameters)

    def update(self, parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]]):
        """Adds parameters by name."""
        for name, parameter in parameters.items() if hasattr(parameters, "items") else parameters:
            self[name] = parameter

    def __setitem__(self, name: str, parameter: Parameter):
        self.register_parameter(name, parameter)

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __delitem__(self, name: str):
        del self._parameters[name]

    def __contains__(self, name: object):
        return name in self._parameters

    def __len__(self):
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

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
