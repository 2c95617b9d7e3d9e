"""Batches of samples."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import oflow

from .._core import named
from .._oflow import Tensor


def _is_array(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def _same_class(like, values):
    """The values as the class of a mapping or of a list that keeps them, where it can be made of them."""
    try:
        return type(like)(values)
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """Samples with tensors in the place of arrays."""
    if isinstance(data, Tensor):
        return data
    if _is_array(data):
        return data if data.dtype.kind in "SUO" else oflow.tensor(data)
    if isinstance(data, Mapping):
        return _same_class(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _same_class(data, [default_convert(value) for value in data])
    return data


def default_collate(batch: Any) -> Any:
    """A batch of samples: tensors and arrays are stacked along a new first dim, numbers become a tensor, texts a list. The members of
    tuples, lists and dicts are batches of their own."""
    first = batch[0]
    if isinstance(first, Tensor):
        shapes = {tuple(x.shape) for x in batch}
        if len(shapes) > 1:
            raise RuntimeError(f"the samples of a batch have tensors of one shape, not {', '.join(map(str, sorted(shapes)))}: give a collate_fn that pads them")
        return oflow.stack(list(batch))
    if _is_array(first):
        if first.dtype.kind in "SUO":
            raise TypeError(f"a batch is made of tensors, arrays of numbers, numbers, texts, dicts and lists; found an array of {first.dtype}")
        return default_collate([oflow.tensor(x) for x in batch])
    if isinstance(first, float):
        return oflow.tensor(list(batch), dtype=oflow.float64)
    if isinstance(first, int):
        return oflow.tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _same_class(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(samples) for samples in zip(*batch)))
    if isinstance(first, Sequence):
        if len({len(sample) for sample in batch}) > 1:
            raise RuntimeError("the samples of a batch have lists of one length: give a collate_fn for others")
        collated = [default_collate(samples) for samples in zip(*batch)]
        return collated if isinstance(first, tuple) else _same_class(first, collated)
    raise TypeError(f"a batch is made of tensors, arrays, numbers, texts, dicts and lists; found {named(first)}")
