"""Tables of vectors that are read by index, under PyTorch's names and with its arguments."""

import oflow

from .. import _core


def _counts(weight, ids):
    """How often each row of the table is named."""
    line = ids.reshape([-1])
    one = oflow.ones(line.shape, dtype=oflow.int64, **_core.beside(ids))
    return oflow.zeros([weight.shape[0]], dtype=oflow.int64, **_core.beside(ids)).scatter_add(0, line, one)


def _shorten(weight, ids, max_norm, norm_type):
    """Scales the rows that are named and longer than ``max_norm`` to this length, in place."""
    with oflow.no_grad():
        length = weight.norm(float(norm_type), [1], True)
        longer = (length > max_norm).logical_and((_counts(weight, ids) > 0).unsqueeze(-1))
        weight.copy_(oflow.where(longer, weight * (max_norm / (length + 1e-7)), weight))


def _by_frequency(weight, ids):
    """The table; the gradient of each row is divided by how often it is named."""
    still = weight.detach()
    often = _counts(weight, ids).clamp(1).cast(weight.dtype)
    return still + (weight - still) / often.unsqueeze(-1)


def _row(padding_idx, weight):
    return padding_idx + weight.shape[0] if padding_idx is not None and padding_idx < 0 else padding_idx


def embedding(
    input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
):
    """The rows of ``weight`` at the indices ``input``. The row at ``padding_idx`` gets no gradient. Rows longer than ``max_norm`` are scaled
    to it in place first. With ``scale_grad_by_freq`` the gradient of a row is divided by how often it is read. The gradient is dense, also
    with ``sparse``."""
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    y = oflow.embedding(_by_frequency(weight, input) if scale_grad_by_freq else weight, input)
    if padding_idx is None:
        return y
    return oflow.where((input == _row(padding_idx, weight)).unsqueeze(-1), y.detach(), y)


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """The rows of ``weight`` that each bag names, reduced: rows of ``input`` of two dims, or a list of ids and the ``offsets`` at which
    bags start. ``max_norm``, ``scale_grad_by_freq`` and ``sparse`` are those of ``embedding``."""
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    if scale_grad_by_freq:
        if mode == "max":
            raise ValueError("scale_grad_by_freq is for sums and means, not for the mode 'max'")
        weight = _by_frequency(weight, input)
    return oflow.embedding_bag(
        weight,
        input,
        offsets,
        mode=mode,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
