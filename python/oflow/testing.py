"""Tests of ops."""

from . import _oflow


def conformance(op) -> str:
    """Checks an op on its samples: every declared signature on simulated ranks, random layouts, derivatives against finite differences,
    bad arguments. ``op`` is a name such as ``"mine.leaky"``, or the function that ``oflow.op`` returned.

    Returns the report as text; what is wrong is one error that lists it.
    """
    name = op if isinstance(op, str) else op.__self__.full_name
    return _oflow._conformance(name)
