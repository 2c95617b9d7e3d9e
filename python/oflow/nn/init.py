"""Initial values of parameters. On a placement they come from the global generator, so they do not depend on the layout; make
parameters in the same order on every rank. The same seed gives the same numbers as in a Rust program."""

import functools
import math
from typing import Any

import oflow

from .. import _core, _oflow
from . import functional
from .parameter import Parameter


def where(device=None, placement=None, sbp=None, dtype=None) -> dict[str, Any]:
    """The layout arguments of a new tensor, as a dict without those that are not given."""
    given = {"device": device, "placement": placement, "sbp": sbp, "dtype": dtype}
    return {name: value for name, value in given.items() if value is not None}


def of_vectors(layout: dict[str, Any]) -> dict[str, Any]:
    """The layout arguments of a layer's vectors (biases, norms): as the weights lie, and whole where these split a dim that a vector
    does not have."""
    if "sbp" not in layout:
        return layout
    sbps = (oflow.sbp.broadcast if s.dim else s for s in _oflow._sbps(layout["sbp"]))
    return {**layout, "sbp": tuple(sbps)}


def _drawn(parameter, kind, number):
    """Notes how a parameter was drawn, for the layer that is given it (``drawn.Drawn``)."""
    parameter._drawn = (kind, number)
    return parameter


def uniform(shape, bound, **layout) -> Parameter:
    """A parameter with elements uniform in [-bound, bound)."""
    return _drawn(Parameter(oflow.rand(list(shape), lo=-bound, hi=bound, **layout)), "uniform", bound)


def normal(shape, std=1.0, **layout) -> Parameter:
    """A parameter with normally distributed elements of mean 0."""
    return _drawn(Parameter(oflow.randn(list(shape), mean=0.0, std=std, **layout)), "normal", std)


def constant(shape, value, **layout) -> Parameter:
    """A parameter with all elements ``value``."""
    return _drawn(Parameter(oflow.full(list(shape), float(value), **layout)), "constant", float(value))


# PyTorch's functions, which write a tensor that is there. What is random comes from the generator of the tensor's place, or from the one given.


def calculate_gain(nonlinearity: str, param=None) -> float:
    """The factor of the standard deviation that keeps the variance behind a nonlinearity: 1 for linear layers and sigmoid, 5/3 for tanh, √2
    for relu, that of its slope ``param`` for leaky_relu, 3/4 for selu."""
    if nonlinearity in ("linear", "sigmoid", *(f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3))):
        return 1
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"the slope of leaky_relu is a number, not {param!r}")
        return math.sqrt(2.0 / (1.0 + (0.01 if param is None else param) ** 2))
    gains = {"tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "selu": 0.75}
    if nonlinearity not in gains:
        raise ValueError(f"no gain is known of the nonlinearity {nonlinearity!r}")
    return gains[nonlinearity]


def _in_place(function):
    """A function that writes its first argument without being recorded, and returns it."""

    @functools.wraps(function)
    def written(tensor, *args, **kwargs):
        with oflow.no_grad():
            function(tensor, *args, **kwargs)
        return tensor

    return written


@_in_place
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Numbers uniform in [a, b)."""
    tensor.uniform_(float(a), float(b), generator)


@_in_place
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normally distributed numbers."""
    tensor.normal_(float(mean), float(std), generator)


@_in_place
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normally distributed numbers of [a, b]: numbers outside are drawn again."""
    part = (math.erf((b - mean) / (std * math.sqrt(2.0))) - math.erf((a - mean) / (std * math.sqrt(2.0)))) / 2.0
    nearest = min(max(mean, a), b)
    found, left = tensor, oflow.ones_like(tensor).to(oflow.bool)
    while left.any().item():
        if part > 0.3:
            drawn = oflow.zeros_like(tensor).normal_(mean, std, generator)
            good = (drawn >= a).logical_and(drawn <= b)
        else:
            # Few normal numbers would be within: uniform ones are, of which those stay that are likely.
            drawn = oflow.zeros_like(tensor).uniform_(a, b, generator)
            likely = (((nearest - mean) ** 2 - (drawn - mean) ** 2) / (2.0 * std**2)).exp()
            good = oflow.zeros_like(tensor).uniform_(0.0, 1.0, generator) < likely
        found, left = oflow.where(left.logical_and(good), drawn, found), left.logical_and(good.logical_not())
    tensor.copy_(found)


@_in_place
def constant_(tensor, val):
    """The number ``val`` everywhere."""
    tensor.fill_(val)


@_in_place
def ones_(tensor):
    """Ones."""
    tensor.fill_(1.0)


@_in_place
def zeros_(tensor):
    """Zeros."""
    tensor.zero_()


def _dims(tensor, allowed, what):
    if tensor.ndim not in allowed:
        raise ValueError(f"{what} writes tensors of {' or '.join(map(str, allowed))} dims, not {tensor.ndim}")


@_in_place
def eye_(tensor):
    """Ones on the diagonal of a matrix, zeros elsewhere."""
    _dims(tensor, (2,), "eye_")
    tensor.copy_(oflow.eye(tensor.shape[0], m=tensor.shape[1], dtype=tensor.dtype, **_core.beside(tensor)))


@_in_place
def dirac_(tensor, groups=1):
    """The weight of a convolution that passes its channels on, as many as there are: in each group, ones in the middle of the kernels."""
    _dims(tensor, (3, 4, 5), "dirac_")
    out, into, *kernel = tensor.shape
    if out % groups:
        raise ValueError(f"{out} channels are not divided by {groups} groups")
    one = oflow.eye(out // groups, m=into, dtype=tensor.dtype, **_core.beside(tensor))
    all_groups = oflow.cat([one] * groups, 0).reshape([out, into] + [1] * len(kernel))
    around = [n for size in reversed(kernel) for n in (size // 2, size - size // 2 - 1)]
    tensor.copy_(functional.pad(all_groups, around))


def _fans(tensor):
    if tensor.ndim < 2:
        raise ValueError(f"a tensor of {tensor.ndim} dims has no inputs and outputs: it needs at least 2 dims")
    kernel = math.prod(tensor.shape[2:])
    return tensor.shape[1] * kernel, tensor.shape[0] * kernel


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform numbers that keep the variance forward and backward (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normally distributed numbers that keep the variance forward and backward (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _kaiming(tensor, a, mode, nonlinearity):
    fans = dict(zip(("fan_in", "fan_out"), _fans(tensor)))
    if mode.lower() not in fans:
        raise ValueError(f"mode is 'fan_in' or 'fan_out', not {mode!r}")
    return calculate_gain(nonlinearity, a) / math.sqrt(fans[mode.lower()])


def kaiming_uniform_(tensor, a=0.0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform numbers that keep the variance behind a nonlinearity, forward or backward (He et al., 2015)."""
    if tensor.numel() == 0:
        return tensor
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0.0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normally distributed numbers that keep the variance behind a nonlinearity, forward or backward (He et al., 2015)."""
    if tensor.numel() == 0:
        return tensor
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity), generator)


@_in_place
def orthogonal_(tensor, gain=1.0, generator=None):
    """``gain`` times a matrix whose rows or columns, the fewer of both, are orthogonal and of length 1 (Saxe et al., 2013). Further dims count
    as columns."""
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_ writes tensors of at least 2 dims, not {tensor.ndim}")
    if tensor.numel() == 0:
        return
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    size = (max(rows, columns), min(rows, columns))
    drawn = oflow.zeros(size, dtype=tensor.dtype, **_core.beside(tensor)).normal_(0.0, 1.0, generator)
    q, r = oflow.linalg.qr(drawn)
    q = q * r.diagonal().sign()
    tensor.copy_((q if rows >= columns else q.t()).reshape(tensor.shape) * gain)


@_in_place
def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normally distributed numbers in a matrix; in each column the part ``sparsity`` of them are zeros (Martens, 2010)."""
    _dims(tensor, (2,), "sparse_")
    order = oflow.zeros_like(tensor).to(oflow.float32).uniform_(0.0, 1.0, generator).argsort(0).argsort(0)
    tensor.normal_(0.0, float(std), generator)
    tensor.copy_(tensor.masked_fill(order < math.ceil(sparsity * tensor.shape[0]), 0.0))
