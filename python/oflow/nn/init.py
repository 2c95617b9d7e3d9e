"""Initial values of parameters. On a placement they come from the global generator, so they do not depend on the layout; make
parameters in the same order on every rank. The same seed gives the same numbers as in a Rust program."""

import oflow

from .. import _oflow
from .parameter import Parameter


def where(device=None, placement=None, sbp=None, dtype=None):
    """The layout arguments of a new tensor, as a dict without those that are not given."""
    given = {"device": device, "placement": placement, "sbp": sbp, "dtype": dtype}
    return {name: value for name, value in given.items() if value is not None}


def of_vectors(layout):
    """The layout arguments of a layer's vectors (biases, norms): as the weights lie, and whole where these split a dim that a vector
    does not have."""
    if "sbp" not in layout:
        return layout
    sbps = (oflow.sbp.broadcast if s.dim else s for s in _oflow._sbps(layout["sbp"]))
    return {**layout, "sbp": tuple(sbps)}


def uniform(shape, bound, **layout):
    """A parameter with elements uniform in [-bound, bound)."""
    return Parameter(oflow.rand(list(shape), lo=-bound, hi=bound, **layout))


def normal(shape, std=1.0, **layout):
    """A parameter with normally distributed elements of mean 0."""
    return Parameter(oflow.randn(list(shape), mean=0.0, std=std, **layout))


def constant(shape, value, **layout):
    """A parameter with all elements ``value``."""
    return Parameter(oflow.full(list(shape), float(value), **layout))
