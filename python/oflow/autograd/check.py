"""Gradients beside differences."""

from collections.abc import Callable
from typing import Any

import oflow

from .._differentiate import rows
from .._oflow import Tensor


class GradcheckError(RuntimeError):
    """A gradient is not that of the values."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compares the gradients of a function, which gives a tensor or a tuple of tensors, with differences of its values at ``x + eps`` and
    ``x - eps``. Inputs that require a gradient are local and of float64: differences of smaller numbers are not exact enough."""
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    at = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not at:
        raise ValueError("gradcheck: no input requires a gradient")
    for i in at:
        if inputs[i].is_global or inputs[i].dtype != oflow.float64:
            raise ValueError(f"gradcheck: input {i} is {inputs[i]!r}; expected a local tensor of float64")

    def outputs(values):
        found = func(*values)
        found = (found,) if isinstance(found, Tensor) else tuple(found)
        return [y for y in found if isinstance(y, Tensor) and y.dtype.is_floating_point]

    def differences(i):
        """For each output its differences by input i, ``[*output, *input]``."""
        x = inputs[i].detach()
        columns = []
        for n in range(x.numel()):
            step = oflow.zeros(x.numel(), dtype=x.dtype)
            step[n] = eps
            step = step.reshape(tuple(x.shape))
            with oflow.no_grad():
                up, down = (outputs([x + s if j == i else v for j, v in enumerate(inputs)]) for s in (step, -step))
            columns.append([(a - b) / (2 * eps) for a, b in zip(up, down)])
        return [oflow.stack(list(of), -1).reshape((*of[0].shape, *x.shape)) for of in zip(*columns)]

    ys = outputs(inputs)
    found = [rows(y, [inputs[i] for i in at], False) for y in ys]
    for place, i in enumerate(at):
        for k, by_values in enumerate(differences(i)):
            if not oflow.allclose(found[k][place], by_values, rtol, atol):
                if not raise_exception:
                    return False
                raise GradcheckError(
                    f"gradcheck: the gradient of output {k} by input {i} is\n{found[k][place]}\nand the differences of its values are\n{by_values}"
                )
    return True
