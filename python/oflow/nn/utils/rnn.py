"""Sequences of different lengths as one tensor, and back."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import oflow

from ..._oflow import Tensor


def pad_sequence(sequences: Iterable[Tensor], batch_first=False, padding_value=0.0, padding_side="right") -> Tensor:
    """Sequences [length, ...] as one tensor [longest, number, ...], or [number, longest, ...] with ``batch_first``, filled up with
    ``padding_value`` at the ``right`` or ``left``."""
    if padding_side not in ("right", "left"):
        raise ValueError(f"padding_side is 'right' or 'left', not {padding_side!r}")
    sequences = list(sequences)
    if not sequences:
        raise ValueError("pad_sequence takes at least one sequence")
    longest = max(s.shape[0] for s in sequences)
    padded = []
    for s in sequences:
        more = oflow.nn.functional.pad(s, [0, 0] * (s.ndim - 1) + [0, longest - s.shape[0]][:: 1 if padding_side == "right" else -1], value=padding_value)
        padded.append(more)
    return oflow.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths, batch_first=False) -> list[Tensor]:
    """The sequences that ``pad_sequence`` has filled up at the right, of these lengths."""
    lengths = _numbers(lengths)
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [rows[i].narrow(0, 0, length) for i, length in enumerate(lengths)]


class PackedSequence(NamedTuple):
    """Sequences without padding: ``data`` has the first elements of all sequences, longest sequence first, then the second elements of
    those that have one, and so on. ``batch_sizes`` says how many there are of each. ``sorted_indices`` has the sequences by length,
    ``unsorted_indices`` the way back; both are None for sequences that were sorted already.

    ``LSTM``, ``GRU`` and ``RNN`` take it. ``pack_padded_sequence`` and ``pack_sequence`` make it.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | Any = None
    unsorted_indices: Tensor | Any = None

    def to(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """The same sequences with ``data.to(...)``."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def cpu(self) -> "PackedSequence":
        """``to("cpu")``."""
        return self.to("cpu")

    def cuda(self) -> "PackedSequence":
        """``to("cuda")``."""
        return self.to("cuda")

    def float(self) -> "PackedSequence":
        """``to(oflow.float32)``."""
        return self.to(oflow.float32)

    def double(self) -> "PackedSequence":
        """``to(oflow.float64)``."""
        return self.to(oflow.float64)

    def half(self) -> "PackedSequence":
        """``to(oflow.float16)``."""
        return self.to(oflow.float16)

    def pin_memory(self) -> "PackedSequence":
        """The sequences: memory is copied without being pinned."""
        return self

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return self.data.device.type == "cuda"


def _numbers(lengths):
    return [int(n) for n in (lengths.tolist() if hasattr(lengths, "tolist") else lengths)]


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that takes another one back."""
    return None if permutation is None else permutation.argsort()


def runs(batch_sizes: Tensor | Sequence[int]) -> list[tuple[int, int]]:
    """The number of steps and of sequences of each part of packed data in which as many sequences go on."""
    return [(len(list(steps)), size) for size, steps in itertools.groupby(_numbers(batch_sizes))]


def pack_padded_sequence(input: Tensor, lengths: Tensor | Sequence[int], batch_first=False, enforce_sorted=True) -> PackedSequence:
    """Sequences without their padding. ``input`` is [longest, number, ...], or [number, longest, ...] with ``batch_first``.

    With ``enforce_sorted`` the lengths do not increase; without it the sequences are sorted, and results come back in their order.
    """
    lengths = _numbers(lengths)
    if input.ndim < 2:
        raise ValueError(f"pack_padded_sequence takes [longest, number, ...], not {input.ndim} dims")
    x = input.transpose(0, 1) if batch_first else input
    if len(lengths) != x.shape[1]:
        raise ValueError(f"pack_padded_sequence: {len(lengths)} lengths are given for {x.shape[1]} sequences")
    if not lengths or min(lengths) < 1:
        raise ValueError("pack_padded_sequence: every sequence has at least one element")
    if max(lengths) > x.shape[0]:
        raise ValueError(f"pack_padded_sequence: a length is {max(lengths)}, and the sequences have {x.shape[0]} elements with their padding")
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    if enforce_sorted:
        if any(a < b for a, b in zip(lengths, lengths[1:])):
            raise RuntimeError("pack_padded_sequence: the lengths increase: sort the sequences, longest first, or give enforce_sorted=False")
        indices = unsorted = None
    else:
        x = x[:, order]
        indices = oflow.tensor(order, dtype=oflow.int64)
        unsorted = invert_permutation(indices)
    sizes = [sum(n > t for n in lengths) for t in range(max(lengths))]
    parts, start = [], 0
    for steps, size in runs(sizes):
        part = x.narrow(0, start, steps).narrow(1, 0, size)
        parts.append(part.reshape((steps * size, *x.shape[2:])))
        start += steps
    return PackedSequence(oflow.cat(parts), oflow.tensor(sizes, dtype=oflow.int64), indices, unsorted)


def pad_packed_sequence(sequence: PackedSequence, batch_first=False, padding_value=0.0, total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """The inverse of ``pack_padded_sequence``: the padded sequences and their lengths. ``total_length`` is that of the result, unless it is
    to be that of the longest sequence."""
    sizes = _numbers(sequence.batch_sizes)
    longest = len(sizes)
    if total_length is not None and total_length < longest:
        raise ValueError(f"pad_packed_sequence: total_length is {total_length}, and a sequence has {longest} elements")
    rest, parts, start = sequence.data.shape[1:], [], 0
    none = [0, 0] * len(rest)
    for steps, size in runs(sequence.batch_sizes):
        part = sequence.data.narrow(0, start, steps * size).reshape((steps, size, *rest))
        parts.append(oflow.nn.functional.pad(part, [*none, 0, sizes[0] - size], value=padding_value) if size < sizes[0] else part)
        start += steps * size
    x = oflow.cat(parts)
    if total_length is not None and total_length > longest:
        x = oflow.nn.functional.pad(x, [*none, 0, 0, 0, total_length - longest], value=padding_value)
    lengths = [sum(size > i for size in sizes) for i in range(sizes[0])]
    if sequence.unsorted_indices is not None:
        back = _numbers(sequence.unsorted_indices)
        x, lengths = x[:, back], [lengths[i] for i in back]
    return x.transpose(0, 1) if batch_first else x, oflow.tensor(lengths, dtype=oflow.int64)


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted=True) -> PackedSequence:
    """Sequences [length, ...] as ``pack_padded_sequence`` packs them."""
    sequences = list(sequences)
    return pack_padded_sequence(pad_sequence(sequences), [s.shape[0] for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences [length, ...] that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
