"""ModuleInfo: the samples of PyTorch's modules, with their parameters given by `load_state_dict`."""

import re

import torch
from torch.testing._internal.common_modules import module_db

from . import compared
from .ops import at, refusal
from .values import Giver, described, leaves

# What they give is random.
RANDOM = re.compile(r"nn\.FractionalMaxPool")


def jobs(info, dtypes):
    """The groups of samples of a module: `(label, generator)`."""
    floats = [getattr(torch, name) for name in dtypes if getattr(torch, name) in info.dtypes]
    return [(str(dtype)[6:], lambda d=dtype: values(info, d)) for dtype in floats]


def selected(pattern):
    return [info for info in module_db if re.search(pattern, info.name)]


def values(info, dtype, limit=40):
    """Yields `(kind, detail)` for each sample, in training and in evaluation."""
    for training in (True, False):
        torch.manual_seed(0)
        made = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
        for number, sample in enumerate(made):
            if number == limit:
                break
            yield from one(info, sample, dtype, training)


def one(info, sample, dtype, training):
    give = Giver()
    how, arguments = sample.constructor_input, sample.forward_input
    what = f"{info.name}({described(*how.args, **how.kwargs)})({described(*arguments.args, **arguments.kwargs)})"
    what += "" if training else " in evaluation"
    try:
        theirs = info.module_cls(*how.args, **how.kwargs, **({} if "dtype" in how.kwargs else {"dtype": dtype, "device": "cpu"}))
    except TypeError:
        # A module without parameters takes no dtype.
        theirs = info.module_cls(*how.args, **how.kwargs)
    theirs.train(training)
    try:
        wanted = theirs(*arguments.args, **arguments.kwargs)
    except Exception:
        return
    try:
        ours = at(info.name)(*give(how.args), **give(how.kwargs)).train(training)
        if list(theirs.state_dict()):
            ours.to(give(dtype))
            ours.load_state_dict({name: give(value) for name, value in theirs.state_dict().items()})
        given = give((arguments.args, arguments.kwargs), True)
        found = ours(*given[0], **given[1])
        said = compared.same_meta(found, wanted) if RANDOM.match(info.name) else compared.differ(found, wanted)
    except Exception as e:
        yield "refused", f"{what}: {refusal(e)}"
        return
    if said:
        yield "wrong", f"{what}: {said}"
        return
    outputs = [(x, y) for x, y in zip(leaves(found), leaves(wanted)) if isinstance(y, torch.Tensor) and y.requires_grad]
    if not outputs or RANDOM.match(info.name):
        yield "right", ""
        return
    torch.manual_seed(1)
    factors = [torch.randn(y.shape, dtype=y.dtype) for _, y in outputs]
    torch.autograd.backward([y for _, y in outputs], factors)
    try:
        for (x, _), f in zip(outputs, factors):
            x.backward(give(f), retain_graph=True)
    except Exception as e:
        yield "no gradient", f"{what}: {refusal(e)}"
        return
    pairs = [(x, y) for x, y in zip(leaves(given), leaves((arguments.args, arguments.kwargs))) if isinstance(y, torch.Tensor) and y.is_leaf]
    named = dict(theirs.named_parameters())
    pairs += [(parameter, named[name]) for name, parameter in ours.named_parameters()]
    for x, y in pairs:
        if (x.grad is None) != (y.grad is None):
            said = "gradient of None" if bool(((y.grad if x.grad is None else x.grad) != 0).any()) else None
        elif y.grad is not None:
            said = compared.differ(x.grad, y.grad)
        if said:
            yield "wrong gradient", f"{what}: {said}"
            return
    yield "right", ""
