"""Functions that drop elements or channels at random. Masks do not depend on placement or SBP."""

import oflow


def _checked(p):
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"the probability of dropping is between 0 and 1, not {p}")


def _dropped(call, input, p, training, inplace, generator):
    _checked(p)
    if not training:
        return input
    y = call(input, p, generator=generator)
    return input.copy_(y) if inplace else y


def dropout(input, p=0.5, training=True, inplace=False, *, generator=None):
    """Sets elements to zero with probability ``p`` and scales the others by 1 / (1 - p). Without ``training`` returns the input."""
    if input.dtype.is_complex and training:
        # Both parts are dropped or kept together.
        kept = dropout(oflow.ones_like(input.real.detach()), p, True, generator=generator)
        y = input * kept
        return input.copy_(y) if inplace else y
    return _dropped(oflow.dropout, input, p, training, inplace, generator)


def alpha_dropout(input, p=0.5, training=False, inplace=False, *, generator=None):
    """Sets elements to the negative limit of SELU with probability ``p``, then scales and shifts all, so that mean 0 and variance 1 stay."""
    return _dropped(oflow.alpha_dropout, input, p, training, inplace, generator)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False, *, generator=None):
    """``alpha_dropout`` of whole channels of ``[batch, channels, ...]``."""
    return _dropped(oflow.feature_alpha_dropout, input, p, training, inplace, generator)


def _channels(ranks, batched, doc):
    def function(input, p=0.5, training=True, inplace=False, *, generator=None):
        if input.ndim not in ranks:
            raise ValueError(f"{function.__name__} takes {' or '.join(map(str, ranks))} dims, not {input.ndim}")
        x = input if input.ndim in batched else input.unsqueeze(0)
        y = _dropped(oflow.feature_dropout, x, p, training, False, generator)
        y = y if input.ndim in batched else y.squeeze(0)
        return input.copy_(y) if inplace and training else y

    function.__doc__ = doc
    return function


dropout1d = _channels((2, 3), (3,), "Drops whole channels of ``[batch, channels, length]``, or without the batch.")
# PyTorch takes three dims for a batch of lines.
dropout2d = _channels((3, 4), (3, 4), "Drops whole channels of ``[batch, channels, height, width]``; three dims are a batch of lines.")
dropout3d = _channels((4, 5), (5,), "Drops whole channels of ``[batch, channels, 3 spatial dims]``, or without the batch.")
dropout1d.__name__ = dropout1d.__qualname__ = "dropout1d"
dropout2d.__name__ = dropout2d.__qualname__ = "dropout2d"
dropout3d.__name__ = dropout3d.__qualname__ = "dropout3d"
