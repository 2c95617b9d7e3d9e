"""Sequences of different lengths as one tensor, and back."""

from collections.abc import Iterable

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
    lengths = lengths.tolist() if isinstance(lengths, oflow.Tensor) else list(lengths)
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [rows[i].narrow(0, 0, length) for i, length in enumerate(lengths)]
