"""What of tensors is written in Python: copies and pickles."""

from . import _oflow


def _local(tensor, what):
    if tensor.is_global:
        raise TypeError(
            f"{what} takes a local tensor, not {tensor!r}; take this rank's shard with to_local(), or save the tensor in a checkpoint"
        )
    if not tensor.is_leaf:
        raise TypeError(f"{what} takes a leaf, not the result of a recorded call; call detach() first")


def _rebuild(cls, shape, dtype, data, requires_grad, state):
    """The tensor of a pickle: ``data`` is an array, or the bytes of its float32 values where NumPy does not have the dtype."""
    import numpy

    if isinstance(data, bytes):
        made = _oflow.tensor(numpy.frombuffer(data, dtype=numpy.float32).reshape(shape), dtype=_oflow.dtype(dtype))
    else:
        made = _oflow.tensor(data)
    if cls is not _oflow.Tensor:
        made = cls.__new__(cls, made)
    made.requires_grad_(requires_grad)
    if state:
        made.__dict__.update(state)
    return made


def _reduce(tensor):
    _local(tensor, "pickle")
    import numpy

    plain = tensor.detach()
    # Floats that NumPy does not have lose nothing as float32.
    widened = plain.dtype.is_floating_point and not hasattr(numpy, plain.dtype.name)
    data = plain.cast(_oflow.float32).numpy().tobytes() if widened else plain.numpy()
    state = getattr(tensor, "__dict__", None)
    return _rebuild, (type(tensor), tuple(tensor.shape), plain.dtype.name, data, tensor.requires_grad, state)


def _copy(tensor):
    """Another object of the same tensor."""
    made = type(tensor).__new__(type(tensor), tensor)
    if made.requires_grad != tensor.requires_grad:
        # A frozen parameter stays frozen.
        made.requires_grad_(tensor.requires_grad)
    if getattr(tensor, "__dict__", None):
        made.__dict__.update(tensor.__dict__)
    return made


def _placement(device, ranks, shape, names):
    """The placement of a pickle."""
    if all(name is not None for name in names):
        return _oflow.placement(device, ranks).mesh(**dict(zip(names, shape)))
    for size in reversed(shape[1:]):
        ranks = [ranks[i : i + size] for i in range(0, len(ranks), size)]
    return _oflow.placement(device, ranks)


def _deepcopy(tensor, memo):
    import copy

    if not tensor.is_leaf:
        raise TypeError("deepcopy takes a leaf, not the result of a recorded call; call detach() first")
    made = tensor.detach().copy()
    if type(tensor) is not _oflow.Tensor:
        made = type(tensor).__new__(type(tensor), made)
    memo[id(tensor)] = made
    made.requires_grad_(tensor.requires_grad)
    if type(tensor) is _oflow.Tensor and tensor.grad is not None:
        # As in PyTorch, which copies no gradients of parameters.
        made.grad = tensor.grad.detach().copy()
    if getattr(tensor, "__dict__", None):
        made.__dict__.update(copy.deepcopy(tensor.__dict__, memo))
    return made
