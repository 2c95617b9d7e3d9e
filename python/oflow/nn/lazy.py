"""Layers that find out at their first call how many features or channels they are given, under PyTorch's names.

Until then a lazy layer has no parameters: it remembers its arguments and what it was converted to. The first call, or a state dict with its
tensors, makes the parameters, and the layer becomes one of the class without ``Lazy``.
"""

import inspect

from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .hooks import TABLES
from .layers import Linear
from .module import Module, targets
from .norms import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d


class _Lazy(Module):
    _is_lazy = True
    # The class of the layer once its sizes are known.
    _becomes = None
    # The place of the features or channels in the shape of the input.
    _dim = None
    # Options that are other ones than those of the class, as in PyTorch.
    _other_defaults = {}

    def __init__(self, *args, **kwargs):
        super().__init__()
        signature = inspect.signature(self._becomes.__init__)
        given = signature.bind(None, 1, *args, **kwargs).arguments
        kwargs = {**{name: value for name, value in self._other_defaults.items() if name not in given}, **kwargs}
        bound = signature.bind(None, 1, *args, **kwargs)
        bound.apply_defaults()
        self._given, self._arguments, self._targets = (args, kwargs), bound.arguments, []

    @staticmethod
    def _from_state(state, arguments):
        """The number of features or channels by the tensors of a saved layer, or None."""
        raise NotImplementedError

    def _become(self, size):
        args, kwargs = self._given
        made = self._becomes(size, *args, **kwargs)
        for target in self._targets:
            made.to(target)
        made.train(self.training)
        kept = (*TABLES, "_scope")
        own = {name: self.__dict__[name] for name in kept if name in self.__dict__}
        self.__dict__.clear()
        self.__dict__.update({**made.__dict__, **own})
        self.__class__ = self._becomes

    def forward(self, input, *args, **kwargs):
        self._become(input.shape[self._dim])
        return self.forward(input, *args, **kwargs)

    def to(self, *args, **kwargs):
        """Remembers a device or a dtype for the parameters that it will have."""
        self._targets += targets(args, kwargs)
        return self

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        size = self._from_state({key[len(prefix) :]: value for key, value in state_dict.items()}, self._arguments)
        if size is not None:
            self._become(size)
            self._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self):
        args, kwargs = self._given
        return ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])


def _of_weight(dim, by_groups):
    """The size of a dim of the weight, which may be that of one group."""

    def size(state, arguments):
        weight = state.get("weight")
        return None if weight is None else weight.shape[dim] * (arguments["groups"] if by_groups else 1)

    return size


def _of_channels(state, _):
    found = [state[name] for name in ("weight", "running_mean") if name in state]
    return found[0].shape[0] if found else None


def _lazy(becomes, dim, from_state, **defaults):
    name = f"Lazy{becomes.__name__}"
    doc = f"``{becomes.__name__}`` whose number of inputs is that of its first input."
    members = {"_becomes": becomes, "_dim": dim, "_from_state": staticmethod(from_state), "_other_defaults": defaults}
    return type(name, (_Lazy,), {**members, "__doc__": doc, "__module__": __name__})


LazyLinear = _lazy(Linear, -1, _of_weight(1, False))
LazyConv1d = _lazy(Conv1d, -2, _of_weight(1, True))
LazyConv2d = _lazy(Conv2d, -3, _of_weight(1, True))
LazyConv3d = _lazy(Conv3d, -4, _of_weight(1, True))
LazyConvTranspose1d = _lazy(ConvTranspose1d, -2, _of_weight(0, False))
LazyConvTranspose2d = _lazy(ConvTranspose2d, -3, _of_weight(0, False))
LazyConvTranspose3d = _lazy(ConvTranspose3d, -4, _of_weight(0, False))
LazyBatchNorm1d = _lazy(BatchNorm1d, 1, _of_channels)
LazyBatchNorm2d = _lazy(BatchNorm2d, 1, _of_channels)
LazyBatchNorm3d = _lazy(BatchNorm3d, 1, _of_channels)
_KEEPS = {"affine": True, "track_running_stats": True}
LazyInstanceNorm1d = _lazy(InstanceNorm1d, -2, _of_channels, **_KEEPS)
LazyInstanceNorm2d = _lazy(InstanceNorm2d, -3, _of_channels, **_KEEPS)
LazyInstanceNorm3d = _lazy(InstanceNorm3d, -4, _of_channels, **_KEEPS)
