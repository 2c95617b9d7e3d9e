"""States of PyTorch's optimizers: taken over, and given back."""

from .. import _oflow
from .._oflow import Tensor

_MEANS = {"mean": "exp_avg", "square": "exp_avg_sq"}

# Names of the tensors of state of each kind, and PyTorch's.
_NAMES = {
    "adadelta": {"square": "square_avg", "change": "acc_delta"},
    "adafactor": {"row": "row_var", "column": "col_var", "square": "variance"},
    "adagrad": {"sum": "sum"},
    "adam": {**_MEANS, "largest": "max_exp_avg_sq"},
    "adamax": {"mean": "exp_avg", "largest": "exp_inf"},
    "adamw": {**_MEANS, "largest": "max_exp_avg_sq"},
    "asgd": {"average": "ax"},
    "muon": {"momentum": "momentum_buffer"},
    "nadam": _MEANS,
    "radam": _MEANS,
    "rmsprop": {"square": "square_avg", "mean": "grad_avg", "momentum": "momentum_buffer"},
    "rprop": {"previous": "prev", "size": "step_size"},
    "sgd": {"momentum": "momentum_buffer"},
}
# What PyTorch keeps of a parameter that follows from the number of steps and the options.
_FOLLOWS = {"step", "mu_product", "eta", "mu"}
_NO_STEPS = {"muon", "sgd"}


def is_state(state):
    """Whether a dict is the state of an optimizer of PyTorch."""
    return set(state) == {"state", "param_groups"} and hasattr(state["state"], "items")


def _tensor(value):
    return value if isinstance(value, Tensor) else _oflow.from_dlpack(value.detach())


def _names(optimizer):
    names = _NAMES.get(optimizer._kind)
    if names is None:
        raise RuntimeError(f"the state of {type(optimizer).__name__} cannot be exchanged with PyTorch")
    return names


def taken(optimizer, state):
    """The state of PyTorch's optimizer as that of this one. Options that PyTorch has not stay as they are."""
    own, names = optimizer.param_groups, {theirs: ours for ours, theirs in _names(optimizer).items()}
    groups = state["param_groups"]
    if [len(group["params"]) for group in groups] != [len(group["params"]) for group in own]:
        raise RuntimeError("the state is of another optimizer: its groups have other numbers of parameters")
    made, steps, saved_groups, first = {}, [], [], 0
    for group, mine in zip(groups, own):
        for number, key in enumerate(group["params"], first):
            kept = state["state"].get(key, {})
            unknown = [name for name in kept if name not in names and name not in _FOLLOWS]
            if unknown:
                raise RuntimeError(f"the state is of another optimizer: {type(optimizer).__name__} keeps no '{unknown[0]}' of a parameter")
            steps.append(int(kept.get("step", 0)))
            made.update({f"{number}.{names[name]}": _tensor(value) for name, value in kept.items() if name in names and value is not None})
        options = {name: group.get(name, mine[name]) for name in optimizer.defaults}
        optimizer._check(options)
        saved = optimizer._as_settings(options)
        saved["params"] = list(range(first, first + len(group["params"])))
        notes = {**optimizer._notes(mine), **{name: group[name] for name in ("initial_lr", "param_names") if name in group}}
        saved_groups.append({**saved, "notes": notes} if notes else saved)
        first += len(group["params"])
    return {**made, "steps": steps, "param_groups": saved_groups}


def given(optimizer):
    """The state of this optimizer as PyTorch's has it."""
    names, state, own = _names(optimizer), {}, optimizer.state_dict()
    steps, groups, first = own.get("steps"), [], 0
    for group in optimizer.param_groups:
        for number in range(first, first + len(group["params"])):
            kept = {theirs: own[f"{number}.{ours}"] for ours, theirs in names.items() if f"{number}.{ours}" in own}
            if kept:
                state[number] = {**_counted(optimizer._kind, group, steps[number] if steps else 0), **kept}
        options = {name: value for name, value in group.items() if name not in ("params", "master_weights")}
        groups.append({**options, "params": list(range(first, first + len(group["params"])))})
        first += len(group["params"])
    return {"state": state, "param_groups": groups}


def _counted(kind, group, step):
    """What PyTorch keeps beside tensors of the parameter's shape; the number of steps is 0 where a step does not depend on it."""
    if kind in _NO_STEPS:
        return {}
    found = {"step": float(step)}
    if kind == "nadam":
        found["mu_product"] = 1.0
        for at in range(1, step + 1):
            found["mu_product"] *= group["betas"][0] * (1.0 - 0.5 * 0.96 ** (at * group["momentum_decay"]))
    if kind == "asgd":
        lr, lambd = group["lr"], group["lambd"]
        found["eta"] = lr / (1.0 + lambd * lr * step) ** group["alpha"]
        found["mu"] = 1.0 / max(1.0, step - group["t0"])
    return {name: _oflow.tensor(value) for name, value in found.items()}
