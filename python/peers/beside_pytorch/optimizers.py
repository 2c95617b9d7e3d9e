"""OptimizerInfo: the options of PyTorch's optimizers. Each makes the same steps from the same parameters and gradients."""

import re

import torch
from torch.testing._internal.common_optimizers import optim_db

import oflow

from . import compared
from .ops import refusal
from .values import Giver, described

STEPS = 6


def jobs(info, dtypes):
    """The groups of samples of an optimizer: `(label, generator)`."""
    floats = [getattr(torch, name) for name in dtypes if name in ("float64", "float32")]
    return [(str(dtype)[6:], lambda d=dtype: values(info, d)) for dtype in floats] + [("errors", lambda: errors(info))]


def selected(pattern):
    return [info for info in optim_db if re.search(pattern, f"optim.{info.optim_cls.__name__}")]


def parameters(name, dtype):
    torch.manual_seed(0)
    # Muon takes matrices only.
    shapes = [(4, 3), (3, 4)] if name == "Muon" else [(4, 3), (5,), ()]
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def values(info, dtype):
    name = info.optim_cls.__name__
    for sample in info.optim_inputs_func(device="cpu", dtype=dtype):
        give = Giver()
        what = f"optim.{name}({described(**sample.kwargs)})"
        theirs = parameters(name, dtype)
        ours = [give(p, True) for p in theirs]
        try:
            reference = info.optim_cls(theirs, **sample.kwargs)
        except Exception:
            continue
        try:
            optimizer = getattr(oflow.optim, name)(ours, **give(sample.kwargs))
            yield steps(reference, optimizer, theirs, ours, give, what)
        except Exception as e:
            yield "refused", f"{what}: {refusal(e)}"


def steps(reference, optimizer, theirs, ours, give, what):
    torch.manual_seed(1)
    for number in range(STEPS):
        factors = [torch.randn_like(p) for p in theirs]

        def closure():
            reference.zero_grad()
            loss = sum(((p - f) ** 2).sum() for p, f in zip(theirs, factors))
            loss.backward()
            return loss

        def own_closure():
            optimizer.zero_grad()
            loss = sum(((p - give(f)) ** 2).sum() for p, f in zip(ours, factors))
            loss.backward()
            return loss

        reference.step(closure)
        optimizer.step(own_closure)
        for x, y in zip(ours, theirs):
            said = compared.differ(x, y)
            if said:
                return "wrong", f"{what}: {said} at step {number}"
    return "right", ""


class Once(Giver):
    """Gives one tensor of oflow for each of PyTorch's, wherever it stands."""

    def __init__(self):
        super().__init__()
        self.given = {}

    def __call__(self, value, differentiable=False):
        if isinstance(value, (set, frozenset)):
            return {self(v, differentiable) for v in value}
        if isinstance(value, torch.Tensor):
            if id(value) not in self.given:
                self.given[id(value)] = super().__call__(value, differentiable)
            return self.given[id(value)]
        return super().__call__(value, differentiable)


def errors(info):
    name = info.optim_cls.__name__
    for error in info.optim_error_inputs_func(device="cpu", dtype=torch.float32) if info.optim_error_inputs_func else ():
        sample = error.optimizer_error_input
        give = Once()
        # Without parameters of its own a sample is of any.
        params = [torch.nn.Parameter(torch.randn(2, 3))] if sample.params is None else sample.params
        what = f"optim.{name}({described(sample.params, **sample.kwargs)})"
        try:
            getattr(oflow.optim, name)(give(params, True), **give(sample.kwargs))
        except Exception:
            yield "right", ""
            continue
        yield "accepted", f"{what}: PyTorch: {str(error.error_regex)[:120]}"
