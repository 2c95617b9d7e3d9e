"""The base of the optimizers. What they compute is in Rust; here are groups of parameters and their options."""

import difflib
import functools
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .. import _core, _oflow
from .._graph import note_optimizer
from .._hooks import RemovableHandle, added
from .._oflow import Tensor
from . import _pytorch as pytorch

_IncompatibleKeys = NamedTuple("IncompatibleKeys", [("missing_keys", list[str]), ("unexpected_keys", list[str])])


# Options whose values may be below 0.
_SIGNED = {"beta2_decay", "ns_coefficients", "t0"}


def _number(name, value):
    """The number of an option; of a tensor with one element that element, which is read now."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(f"{name} is a number or a tensor with one element, not {value!r}")
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (value >= 0.0 or (name in _SIGNED and value < 0.0)):
        least = "" if name in _SIGNED else " of at least 0"
        raise ValueError(f"{name} is a number{least}, not {value!r}")
    return value


def _checked(name, value, default):
    """The value of an option, of the type that its default has."""
    if isinstance(default, bool):
        return bool(value)
    if isinstance(default, tuple):
        if not isinstance(value, (tuple, list)) or len(value) != len(default):
            raise ValueError(f"{name} are {len(default)} numbers, not {value!r}")
        if name == "betas" and len({isinstance(beta, Tensor) for beta in value}) > 1:
            raise ValueError(f"betas are two numbers or two tensors, not {value!r}")
        value = tuple(None if d is None and v is None else _number(name, v) for v, d in zip(value, default))
        if name == "betas" and not all(0.0 <= beta < 1.0 for beta in value):
            raise ValueError(f"betas are two numbers from 0 to below 1, not {value!r}")
        return value
    if default is None or isinstance(default, str):
        return value
    if isinstance(default, int):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{name} is a whole number of at least 0, not {value!r}")
        return value
    return _number(name, value)


def _check_choices(kind, options, foreach, fused, capturable, differentiable):
    """Refuses choices of PyTorch's implementations that cannot be meant; the others change no values."""
    if differentiable:
        raise ValueError("differentiable=True is not supported: a step is not recorded; write the update with functions of tensors to differentiate it")
    if foreach and fused:
        raise RuntimeError("foreach and fused cannot both be True")
    read_once = [options["lr"], *(options["betas"] if isinstance(options.get("betas"), (tuple, list)) else ())]
    if kind in ("adam", "adamw") and foreach and not capturable and any(isinstance(value, Tensor) for value in read_once):
        raise ValueError("with foreach=True, lr and betas are tensors only with capturable=True, as in PyTorch; give numbers")


def _with_hooks(step):
    """A step between the hooks of the optimizer; one step that calls another has them once."""

    @functools.wraps(step)
    def hooked(self, *args, **kwargs):
        before, after = self.__dict__.get("_step_pre_hooks"), self.__dict__.get("_step_post_hooks")
        if not (before or after) or self.__dict__.get("_in_step"):
            return step(self, *args, **kwargs)
        self._in_step = True
        try:
            for hook in tuple((before or {}).values()):
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError(f"a hook before a step returns None or a pair (args, kwargs), not {changed!r}")
                    args, kwargs = changed
            result = step(self, *args, **kwargs)
            for hook in tuple((after or {}).values()):
                hook(self, args, kwargs)
            return result
        finally:
            self._in_step = False

    return hooked


def _all_kinds(kind):
    """A class of optimizers and all of its subclasses."""
    return [kind, *(found for sub in kind.__subclasses__() for found in _all_kinds(sub))]


class Optimizer:
    """Updates parameters from their gradients. ``params`` is an iterable of tensors, of pairs of a name and a tensor
    (``named_parameters()``), or of dicts with the key ``params`` and options that differ for that group. ``param_groups`` holds the
    options; a changed one counts from the next step on. A tensor with one element is taken for a number: it is read once, when it is given.
    """

    _kind = None
    # What the state holds of each parameter.
    _state = ()
    # Those that have size 1 in this dim of a matrix.
    _reduced = {}
    _values = ()
    # Options with their defaults.
    _options = {}
    defaults: dict[str, Any]
    param_groups: list[dict[str, Any]]

    def __init__(self, params, defaults: dict[str, Any], *, foreach=None, fused=None, capturable=False, differentiable=False):
        if isinstance(params, Tensor):
            raise TypeError("an optimizer takes an iterable of parameters, not one tensor; write [parameter]")
        if isinstance(params, (set, frozenset)):
            raise TypeError("an optimizer takes parameters in an order, which a set has not: states are saved by it; write a list")
        groups = list(params)
        if not groups:
            raise ValueError("the optimizer got no parameters")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        _check_choices(self._kind, defaults, foreach, fused, capturable, differentiable)
        self.defaults = {name: _checked(name, value, self._options[name]) for name, value in defaults.items()}
        self._begin(groups)

    def _begin(self, groups):
        self.param_groups, self._engine, self._members = [], None, []
        # Whether parameters come with names; None: there are none yet.
        self._named = None
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Adds a group: a dict with ``params`` and options."""
        if not isinstance(group, dict) or "params" not in group:
            raise TypeError("a group of parameters is a dict with the key 'params'")
        params = group["params"]
        if isinstance(params, (set, frozenset)):
            raise TypeError("a group takes parameters in an order, which a set has not; write a list")
        params = [params] if isinstance(params, Tensor) else list(params)
        named = [isinstance(p, (tuple, list)) for p in params]
        if params and (any(named) != all(named) or self._named not in (None, all(named))):
            raise ValueError("parameters are given all with names or all without, in all groups")
        notes = {}
        self._named = all(named) if params else self._named
        if params and all(named):
            notes = {"param_names": [name for name, _ in params]}
            params = [p for _, p in params]
        for name in group:
            # Other names are the program's own, unless one is an option of another optimizer, or has a wrong letter.
            if name in ("params", "param_names", *self.defaults):
                continue
            meant = difflib.get_close_matches(name, self.defaults, 1, 0.8)
            if meant or any(name in kind._options for kind in _all_kinds(Optimizer)):
                help = f"; did you mean '{meant[0]}'? It has" if meant else "; it has"
                raise ValueError(f"{type(self).__name__} has no option '{name}'{help} {', '.join(self.defaults)}")
        seen = {id(p) for other in self.param_groups for p in other["params"]}
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise TypeError(f"parameter {i} is a {_core.named(p)}, not a Tensor")
            if not p.is_leaf:
                raise ValueError(f"parameter {i}, {p!r}, is the result of a recorded call: only leaves are trained")
            if not p.dtype.is_floating_point:
                raise ValueError(f"parameter {i}, {p!r}, has no gradient: its dtype is not floating point")
            if id(p) in seen:
                raise ValueError(f"parameter {i}, {p!r}, is given twice")
            seen.add(id(p))
        made = {"params": params, **self.defaults, **{k: v for k, v in group.items() if k != "params"}, **notes}
        self._check(made)
        self._make_group(params, self._settings(made))
        self.param_groups.append(made)
        self._members.append(tuple(map(id, params)))

    def _make_group(self, params, settings):
        """Adds a group to the engine."""
        self._engine = self._engine or _oflow._Optimizer()
        self._engine.add(params, settings)

    def _set_groups(self):
        """Gives the engine the options and the notes of the groups."""
        for number, group in enumerate(self.param_groups):
            self._engine.set(number, self._settings(group))
            self._engine.note(number, self._noted(group))

    def _check(self, options):
        for name, default in self._options.items():
            options[name] = _checked(name, options[name], default)

    def _settings(self, group):
        """The settings of a group, as the config of an optimizer in Rust."""
        return json.dumps(self._as_settings(group))

    def _as_settings(self, group):
        settings = {"kind": self._kind, **{name: group[name] for name in self.defaults}}
        if "betas" in settings:
            settings["beta1"], settings["beta2"] = settings.pop("betas")
        return settings

    def _ready(self):
        """The engine with the options as they are now."""
        note_optimizer(self)
        if [tuple(map(id, group["params"])) for group in self.param_groups] != self._members:
            raise RuntimeError("the parameters of param_groups were changed; use add_param_group, or make a new optimizer")
        for group in self.param_groups:
            self._check(group)
        self._set_groups()
        return self._engine

    def _notes(self, group):
        """What a group holds beside parameters and options, such as ``initial_lr``."""
        return {name: value for name, value in group.items() if name != "params" and name not in self.defaults}

    def _noted(self, group):
        notes = self._notes(group)
        try:
            return json.dumps(notes, allow_nan=False) if notes else "{}"
        except (TypeError, ValueError) as e:
            raise TypeError(f"a group of an optimizer holds plain values beside its options, which are saved with it; {notes!r} is not: {e}") from None

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` before each step; a result that is not None is the pair of other arguments."""
        return added(self.__dict__.setdefault("_step_pre_hooks", OrderedDict()), hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` after each step."""
        return added(self.__dict__.setdefault("_step_post_hooks", OrderedDict()), hook)

    @property
    def state(self) -> dict[Tensor, dict[str, Any]]:
        """What is kept of each parameter that has been updated, by PyTorch's names: ``state[parameter]["exp_avg"]``. A dict to read."""
        found = self.pytorch_state_dict()["state"]
        return {p: found[n] for n, p in enumerate(p for group in self.param_groups for p in group["params"]) if n in found}

    @_with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates each parameter that has a gradient, in place. A closure computes the loss anew and is called first; its result
        is returned."""
        loss = closure() if closure is not None else None
        self._ready().step()
        return loss

    def zero_grad(self, set_to_none=True):
        """Removes the gradients of all parameters; with ``set_to_none=False`` they become zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                else:
                    _core.zero_gradient(p)

    def state_dict(self) -> dict[str, Any]:
        """Tensors by number of the parameter, counted through all groups (``3.mean``), and values: numbers of steps, and
        ``param_groups`` with the options of each group. The names are those of a checkpoint."""
        tensors, values = self._ready().state()
        return {**dict(tensors), **json.loads(values)}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict=True) -> _IncompatibleKeys:
        """Takes over the state of ``state_dict()``, with every option of every group. The tensors are copied; they may have other layouts.
        The groups must be as many, and of as many parameters, as those of the state. Returns missing and unexpected names; with
        ``strict`` either is an error, and nothing is changed then. The state of PyTorch's optimizer of that name is taken too."""
        if pytorch.is_state(state_dict):
            state_dict = pytorch.taken(self, state_dict)
        tensors = {name: value for name, value in state_dict.items() if isinstance(value, Tensor)}
        values = {name: value for name, value in state_dict.items() if name not in tensors}
        # Nothing is changed by a state that does not fit.
        all_params = [p for group in self.param_groups for p in group["params"]]
        unexpected = []
        for name, tensor in list(tensors.items()):
            number, kept, *_ = [*name.split("."), ""]
            if not number.isdigit() or int(number) >= len(all_params) or kept not in self._state:
                if strict:
                    raise RuntimeError(f"the state is of another optimizer: {name} belongs to no parameter of this one")
                unexpected.append(name)
                del tensors[name]
                continue
            p = all_params[int(number)]
            want = list(p.shape)
            if kept in self._reduced and len(want) > 1:
                want[self._reduced[kept]] = 1
            if list(tensor.shape) != want:
                raise RuntimeError(f"the state is of another optimizer: the shape of {name} is {tuple(tensor.shape)}, not {tuple(want)}")
        lacking = [name for name in self._values if name not in values]
        if "param_groups" not in values:
            lacking.append("param_groups")
        if lacking and strict:
            raise RuntimeError(f"the state of the optimizer lacks {', '.join(lacking)}")
        fills, missing = self._ready().prepare(list(tensors), json.dumps(values))
        if missing and strict:
            raise RuntimeError(f"the state of the optimizer lacks {', '.join(missing)}")
        taken = {name for name, _ in fills}
        unexpected += [name for name in tensors if name not in taken]
        for write in [_core.copy_into(target, tensors[name]) for name, target in fills]:
            write()
        self._after_load()
        return _IncompatibleKeys(missing, unexpected)

    def pytorch_state_dict(self) -> dict[str, Any]:
        """The state as PyTorch's optimizer of that name has it: ``{"state": {0: {"step": …, "exp_avg": …}}, "param_groups": […]}``.
        ``torch.from_dlpack`` makes tensors of PyTorch of its tensors."""
        return pytorch.given(self)

    def __getstate__(self):
        return {"defaults": self.defaults, "groups": self.param_groups, "state": self.state_dict()}

    def __setstate__(self, state):
        self.defaults = state["defaults"]
        plain = ("params", *self.defaults)
        self._begin([{name: value for name, value in group.items() if name in plain} for group in state["groups"]])
        self.load_state_dict(state["state"])

    def _after_load(self):
        for group, (settings, notes) in zip(self.param_groups, self._engine.settings()):
            group.update(self._from_settings(json.loads(settings)))
            group.update(json.loads(notes))

    def _from_settings(self, settings):
        """The options of a group, of the settings of an optimizer in Rust."""
        options = {name: tuple(v) if isinstance(v := settings[name], list) else v for name in self.defaults if name in settings}
        if "betas" in self.defaults:
            options["betas"] = (settings["beta1"], settings["beta2"])
        return options

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            options = ", ".join(f"{name}={value!r}" for name, value in group.items() if name != "params")
            lines.append(f"  group {number}: {len(group['params'])} parameters, {options}")
        return "\n".join(lines + [")"])


def by_decay(params: Iterable[Tensor], weight_decay: float) -> list[dict[str, Any]]:
    """Two groups for an optimizer: parameters of two dims and more with this weight decay, and the others (biases and the scales of
    norms) with none."""
    params = list(params)
    return [
        {"params": [p for p in params if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in params if p.ndim < 2], "weight_decay": 0.0},
    ]
