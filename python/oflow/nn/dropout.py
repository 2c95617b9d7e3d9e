"""Modules that drop elements or channels at random in training mode. Masks do not depend on placement or SBP."""

from .. import _core
from . import functional as F
from .module import Module


class _Dropout(Module):
    _function = None

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"the probability of dropping is between 0 and 1, not {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input):
        if self.training and self.p == 0.0:
            # The number is drawn all the same: later ones must not depend on a rate being zero.
            _core.draw(input)
            return input
        return type(self)._function(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}"


class Dropout(_Dropout):
    """In training mode sets elements to zero with probability ``p`` and multiplies the others by 1 / (1 - p); in evaluation mode
    returns its input."""

    _function = staticmethod(F.dropout)


class Dropout1d(_Dropout):
    """``Dropout`` of whole channels of ``[batch, channels, length]``, or without the batch."""

    _function = staticmethod(F.dropout1d)


class Dropout2d(_Dropout):
    """``Dropout`` of whole channels of ``[batch, channels, height, width]``; three dims are a batch of lines."""

    _function = staticmethod(F.dropout2d)


class Dropout3d(_Dropout):
    """``Dropout`` of whole channels of ``[batch, channels, 3 spatial dims]``, or without the batch."""

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_Dropout):
    """In training mode sets elements to the negative limit of SELU with probability ``p``, then scales and shifts all, so that mean 0 and
    variance 1 stay."""

    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """``AlphaDropout`` of whole channels of ``[batch, channels, ...]``."""

    _function = staticmethod(F.feature_alpha_dropout)
