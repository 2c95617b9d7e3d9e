"""Parameters as one vector, and back."""

import oflow

from ..._oflow import Tensor


def parameters_to_vector(parameters) -> Tensor:
    """All elements of all parameters as one vector, which is recorded."""
    return oflow.cat([p.reshape(-1) for p in parameters], 0)


def vector_to_parameters(vec: Tensor, parameters):
    """Writes the elements of a vector into parameters, in the order of ``parameters_to_vector``."""
    parameters = list(parameters)
    count = sum(p.numel() for p in parameters)
    if not isinstance(vec, oflow.Tensor) or vec.ndim != 1:
        raise TypeError(f"parameters are written from a vector, not {vec!r}")
    if vec.numel() != count:
        raise ValueError(f"the vector has {vec.numel()} elements, the parameters have {count}")
    with oflow.no_grad():
        first = 0
        for p in parameters:
            p.copy_(vec.narrow(0, first, p.numel()).reshape(p.shape))
            first += p.numel()
