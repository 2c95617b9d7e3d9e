"""Cross entropy of the logits of a linear layer, at once or in chunks of the batch."""

import dataclasses
import math

import oflow

from ..utils.checkpoint import checkpoint
from .losses import cross_entropy


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How ``linear_cross_entropy`` divides the batch: the logits of a chunk are computed, reduced, and computed once more in backward, so
    those of the whole batch never lie in memory.

    ``batch_chunk_size`` is the number of rows of a chunk. Without it ``chunking_method`` ``"aspect_ratio"``, or ``"auto"``, takes so many
    that the logits of a chunk are about as large as the input; ``"aspect_ratio:N"`` takes an N-th of these. With both None there is one
    chunk. Backward may run more than once whatever ``allow_retain_graph`` says.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"

    def __post_init__(self):
        size, method = self.batch_chunk_size, self.chunking_method
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise ValueError(f"batch_chunk_size is an integer of at least 1, or None, not {size!r}")
        if size is not None and method not in (None, "auto"):
            raise ValueError(f"either batch_chunk_size or chunking_method says how large a chunk is, not {size} and {method!r}")
        self._factor()

    def _factor(self):
        method = self.chunking_method
        if method in (None, "auto", "aspect_ratio"):
            return 1
        name, _, factor = str(method).partition(":")
        if name != "aspect_ratio" or not factor.isdigit() or factor.strip("0") == "":
            raise ValueError(f'chunking_method is None, "auto", "aspect_ratio" or "aspect_ratio:N", not {method!r}')
        return int(factor)

    def _rows(self, batch, inputs, classes):
        """The rows of a chunk."""
        if self.batch_chunk_size is not None:
            return self.batch_chunk_size
        if self.chunking_method is None:
            return max(batch, 1)
        wanted = math.ceil(batch / math.ceil(classes / max(inputs, 1))) if classes else 1
        return max(1, (1 << max(wanted - 1, 0).bit_length()) // self._factor())


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """Cross entropy of the logits that a linear layer of weight ``[C, ..., in]`` and bias ``[C, ...]`` gives, with ``options`` in chunks of
    the batch."""
    if input.ndim < 2 and linear_weight.ndim > 2:
        raise ValueError(f"a loss at several places takes a batch [N, in], not an input of shape {list(input.shape)}")
    ignored = -100 if ignore_index is None else ignore_index
    flat = linear_weight.reshape([-1, linear_weight.shape[-1]])
    bias = None if linear_bias is None else linear_bias.reshape([-1])

    def losses(x, t, reduction):
        logits = oflow.linear(x, flat, bias).reshape([*x.shape[:-1], *linear_weight.shape[:-1]])
        return cross_entropy(
            logits, t, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
        )

    if options is None or input.ndim < 2 or input.shape[0] == 0:
        return losses(input, target, reduction)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}')
    wide = oflow.float64 if input.dtype == oflow.float64 else oflow.float32

    def part(x, t):
        each = losses(x, t, "none")
        # Chunks of halves are added up as f32.
        return each if reduction == "none" else each.cast(wide).sum()

    batch, rows = input.shape[0], options._rows(input.shape[0], input.shape[-1], flat.shape[0])
    pieces = [(n, min(rows, batch - n)) for n in range(0, batch, rows)]
    made = [checkpoint(part, input.narrow(0, n, k), target.narrow(0, n, k)) for n, k in pieces]
    if reduction == "none":
        return oflow.cat(made, 0)
    total = oflow.stack(made).sum()
    if reduction == "mean":
        total = total / _count(target, weight, ignored, linear_weight.shape[0], wide)
    return total.cast(input.dtype)


def _count(target, weight, ignored, classes, dtype):
    """What the mean divides by: the number of distributions, or the weights of the classes that are not ignored."""
    if target.dtype.is_floating_point:
        return target.numel() / max(classes, 1)
    kept = target != ignored
    if weight is None:
        return kept.sum().cast(dtype)
    own = oflow.embedding(weight.unsqueeze(-1), target.masked_fill(kept.logical_not(), 0)).squeeze(-1)
    return own.masked_fill(kept.logical_not(), 0.0).cast(dtype).sum()
