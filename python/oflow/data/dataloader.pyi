# Made by `python python/stubs` from the source beside it; do not edit.

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from .._oflow import Generator
from .samplers import BatchSampler, Sampler, SequentialSampler

class _Forever(Sampler[None]):
    def __iter__(self) -> Iterator[None]: ...

class _Epoch(Sampler[int]):
    data_source: Any
    seed: int
    def __init__(self, dataset: Any) -> None: ...
    def __iter__(self) -> Iterator[int]: ...
    def __len__(self) -> int: ...

class DataLoader:
    dataset: Any
    batch_size: Any
    drop_last: bool
    num_workers: int
    timeout: float
    worker_init_fn: Callable[[int], Any] | Any
    generator: Generator | Any
    prefetch_factor: int | Any
    persistent_workers: bool
    pin_memory: bool
    in_order: bool
    multiprocessing_context: Any
    sampler: _Forever | _Epoch | SequentialSampler
    batch_sampler: BatchSampler
    collate_fn: Any
    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Iterable[Any] | None = None, batch_sampler: Iterable[Any] | None = None, num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, drop_last: bool = False, timeout: float = 0, worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: Any = None, generator: Generator | None = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = '', in_order: bool = True) -> None: ...
    def __len__(self) -> int: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
