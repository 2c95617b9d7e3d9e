"""The optimizers. What they compute is in Rust; here are groups of parameters and their options."""

import json

from .. import _core, _oflow
from .._oflow import Tensor


class Optimizer:
    """Updates parameters from their gradients. ``params`` is an iterable of tensors, or of dicts with the key ``params`` and
    options that differ for that group. ``param_groups`` holds the options; a changed one counts from the next step on."""

    _kind = None
    # What the state holds of each parameter.
    _kept = ()
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
        self._engine.add(self._kind, params, made)
        self.param_groups.append(made)
        self._members.append(tuple(map(id, params)))

    def _check(self, options):
        for name in ("lr", "weight_decay", "eps", "momentum"):
            value = options.get(name, 0.0)
            if not isinstance(value, (int, float)) or not value >= 0.0:
                raise ValueError(f"{name} is a number of at least 0, not {value!r}")

    def _ready(self):
        """The engine with the options as they are now."""
        if [tuple(map(id, group["params"])) for group in self.param_groups] != self._members:
            raise RuntimeError("the parameters of param_groups were changed; use add_param_group, or make a new optimizer")
        for number, group in enumerate(self.param_groups):
            self._check(group)
            self._engine.set(number, group)
        return self._engine

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
                p.grad = None if set_to_none or p.grad is None else p.grad * 0

    def state_dict(self):
        """Tensors by number of the parameter, counted through all groups (``3.mean``), and values: the names of a checkpoint."""
        tensors, values = self._ready().state()
        return {**dict(tensors), **json.loads(values)}

    def load_state_dict(self, state_dict):
        """Takes over the state of ``state_dict()``. The tensors are copied; they may have other layouts."""
        tensors = {name: value for name, value in state_dict.items() if isinstance(value, Tensor)}
        values = {name: value for name, value in state_dict.items() if name not in tensors}
        # Nothing is changed by a state that does not fit.
        all_params = [p for group in self.param_groups for p in group["params"]]
        for name, tensor in tensors.items():
            number, _, kept = name.partition(".")
            if not number.isdigit() or int(number) >= len(all_params) or kept not in self._kept:
                raise RuntimeError(f"the state is of another optimizer: {name} belongs to no parameter of this one")
            p = all_params[int(number)]
            if tuple(tensor.shape) != tuple(p.shape):
                raise RuntimeError(f"the state is of another optimizer: the shape of {name} is {tuple(tensor.shape)}, not {tuple(p.shape)}")
        lacking = [name for name in self._values if name not in values]
        if lacking:
            raise RuntimeError(f"the state of the optimizer lacks {', '.join(lacking)}")
        fills, missing = self._ready().prepare(list(tensors), json.dumps(values))
        if missing:
            raise RuntimeError(f"the state of the optimizer lacks {', '.join(missing)}")
        for write in [_core.copy_into(target, tensors[name]) for name, target in fills]:
            write()
        self._after_load()

    def _after_load(self):
        for group, lr in zip(self.param_groups, self._engine.lrs()):
            group["lr"] = lr

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            options = ", ".join(f"{name}={value!r}" for name, value in group.items() if name != "params")
            lines.append(f"  group {number}: {len(group['params'])} parameters, {options}")
        return "\n".join(lines + [")"])


class SGD(Optimizer):
    """Stochastic gradient descent with momentum, with PyTorch's formula. The state of half-precision parameters is float32; with
    ``master_weights`` so is a copy of each, which is updated and rounded into the parameter."""

    _kind = "sgd"
    _kept = ("momentum", "master")
    _values = ("lr",)

    def __init__(
        self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, *, master_weights=True
    ):
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum needs a momentum and no dampening")
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "master_weights": master_weights,
        }
        super().__init__(params, options)


class AdamW(Optimizer):
    """AdamW (Loshchilov and Hutter, 2019), with PyTorch's formula. The state of half-precision parameters is float32; with
    ``master_weights`` so is a copy of each, which is updated and rounded into the parameter."""

    _kind = "adamw"
    _kept = ("mean", "square", "master")
    _values = ("lr", "steps")

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, *, master_weights=True):
        options = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "master_weights": master_weights}
        super().__init__(params, options)

    def _check(self, options):
        super()._check(options)
        betas = options["betas"]
        if len(betas) != 2 or not all(0.0 <= beta < 1.0 for beta in betas):
            raise ValueError(f"betas are two numbers from 0 to below 1, not {betas!r}")
