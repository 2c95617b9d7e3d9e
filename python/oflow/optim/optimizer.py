"""The base of the optimizers. What they compute is in Rust; here are groups of parameters and their options."""

import json
from collections import namedtuple

from .. import _core, _oflow
from .._graph import note_optimizer
from .._oflow import Tensor

_IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])


class Optimizer:
    """Updates parameters from their gradients. ``params`` is an iterable of tensors, or of dicts with the key ``params`` and
    options that differ for that group. ``param_groups`` holds the options; a changed one counts from the next step on."""

    _kind = None
    # What the state holds of each parameter.
    _state = ()
    _values = ()

    def __init__(self, params, defaults):
        if isinstance(params, Tensor):
            raise TypeError("an optimizer takes an iterable of parameters, not one tensor; write [parameter]")
        groups = list(params)
        if not groups:
            raise ValueError("the optimizer got no parameters")
        if isinstance(groups[0], (tuple, list)):
            raise TypeError("an optimizer takes parameters, not pairs; call parameters(), not named_parameters()")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        if "betas" in defaults:
            defaults["betas"] = tuple(defaults["betas"])
        self.defaults, self.param_groups, self._engine = defaults, [], _oflow._Optimizer()
        self._members = []
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, group):
        """Adds a group: a dict with ``params`` and options."""
        if not isinstance(group, dict) or "params" not in group:
            raise TypeError("a group of parameters is a dict with the key 'params'")
        params = group["params"]
        params = [params] if isinstance(params, Tensor) else list(params)
        unknown = [name for name in group if name != "params" and name not in self.defaults]
        if unknown:
            raise ValueError(f"{type(self).__name__} has no option '{unknown[0]}'; it has {', '.join(self.defaults)}")
        seen = {id(p) for other in self.param_groups for p in other["params"]}
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise TypeError(f"parameter {i} is a {type(p).__name__}, not a Tensor")
            if not p.is_leaf:
                raise ValueError(f"parameter {i}, {p!r}, is the result of a recorded call: only leaves are trained")
            if not p.dtype.is_floating_point:
                raise ValueError(f"parameter {i}, {p!r}, has no gradient: its dtype is not floating point")
            if id(p) in seen:
                raise ValueError(f"parameter {i}, {p!r}, is given twice")
            seen.add(id(p))
        made = {"params": params, **self.defaults, **{k: v for k, v in group.items() if k != "params"}}
        self._check(made)
        self._engine.add(params, self._settings(made))
        self.param_groups.append(made)
        self._members.append(tuple(map(id, params)))

    def _check(self, options):
        for name, default in self.defaults.items():
            value = options[name]
            if name == "betas":
                if len(value) != 2 or not all(0.0 <= beta < 1.0 for beta in value):
                    raise ValueError(f"betas are two numbers from 0 to below 1, not {value!r}")
            elif not isinstance(default, bool):
                if not isinstance(value, (int, float)) or not value >= 0.0:
                    raise ValueError(f"{name} is a number of at least 0, not {value!r}")

    def _settings(self, group):
        """The settings of a group, as the config of an optimizer in Rust."""
        settings = {"kind": self._kind}
        for name, default in self.defaults.items():
            if name == "betas":
                settings["beta1"], settings["beta2"] = map(float, group[name])
            else:
                settings[name] = bool(group[name]) if isinstance(default, bool) else float(group[name])
        return json.dumps(settings)

    def _ready(self):
        """The engine with the options as they are now."""
        note_optimizer(self)
        if [tuple(map(id, group["params"])) for group in self.param_groups] != self._members:
            raise RuntimeError("the parameters of param_groups were changed; use add_param_group, or make a new optimizer")
        for number, group in enumerate(self.param_groups):
            self._check(group)
            self._engine.set(number, self._settings(group))
            self._engine.note(number, self._notes(group))
        return self._engine

    def _notes(self, group):
        """What a group holds beside parameters and options, such as ``initial_lr``, as JSON."""
        notes = {name: value for name, value in group.items() if name != "params" and name not in self.defaults}
        try:
            return json.dumps(notes, allow_nan=False) if notes else "{}"
        except (TypeError, ValueError) as e:
            raise TypeError(f"a group of an optimizer holds plain values beside its options, which are saved with it; {notes!r} is not: {e}") from None

    def step(self, closure=None):
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

    def state_dict(self):
        """Tensors by number of the parameter, counted through all groups (``3.mean``), and values: numbers of steps, and
        ``param_groups`` with the options of each group. The names are those of a checkpoint."""
        tensors, values = self._ready().state()
        return {**dict(tensors), **json.loads(values)}

    def load_state_dict(self, state_dict, strict=True):
        """Takes over the state of ``state_dict()``, with every option of every group. The tensors are copied; they may have other layouts.
        The groups must be as many, and of as many parameters, as those of the state. Returns missing and unexpected names; with
        ``strict`` either is an error, and nothing is changed then."""
        tensors = {name: value for name, value in state_dict.items() if isinstance(value, Tensor)}
        values = {name: value for name, value in state_dict.items() if name not in tensors}
        # Nothing is changed by a state that does not fit.
        all_params = [p for group in self.param_groups for p in group["params"]]
        unexpected = []
        for name, tensor in list(tensors.items()):
            number, _, kept = name.partition(".")
            if not number.isdigit() or int(number) >= len(all_params) or kept not in self._state:
                if strict:
                    raise RuntimeError(f"the state is of another optimizer: {name} belongs to no parameter of this one")
                unexpected.append(name)
                del tensors[name]
                continue
            p = all_params[int(number)]
            if tuple(tensor.shape) != tuple(p.shape):
                raise RuntimeError(f"the state is of another optimizer: the shape of {name} is {tuple(tensor.shape)}, not {tuple(p.shape)}")
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

    def _after_load(self):
        for group, (settings, notes) in zip(self.param_groups, self._engine.settings()):
            group.update(self._options(json.loads(settings)))
            group.update(json.loads(notes))

    def _options(self, settings):
        """The options of a group, of the settings of an optimizer in Rust."""
        options = {name: settings[name] for name in self.defaults if name in settings}
        if "betas" in self.defaults:
            options["betas"] = (settings["beta1"], settings["beta2"])
        return options

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            options = ", ".join(f"{name}={value!r}" for name, value in group.items() if name != "params")
            lines.append(f"  group {number}: {len(group['params'])} parameters, {options}")
        return "\n".join(lines + [")"])


def by_decay(params, weight_decay):
    """Two groups for an optimizer: parameters of two dims and more with this weight decay, and the others (biases and the scales of
    norms) with none."""
    params = list(params)
    return [
        {"params": [p for p in params if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in params if p.ndim < 2], "weight_decay": 0.0},
    ]
