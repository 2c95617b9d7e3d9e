# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Iterable
from typing import Any
from ..._oflow import Tensor

def pad_sequence(sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = 'right') -> Tensor: ...
def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]: ...
