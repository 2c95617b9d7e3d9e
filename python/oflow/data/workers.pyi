# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any, NamedTuple

class WorkerInfo(NamedTuple):
    id: int
    num_workers: int
    seed: int
    dataset: Any

def get_worker_info() -> WorkerInfo | None: ...

class Ended: ...

class Failure:
    worker: Any
    error: Any
    kind: Any
    text: Any
    def __init__(self, worker: Any, error: Any, is_thread: Any) -> None: ...
    def again(self) -> None: ...

class Fetcher:
    dataset: Any
    collate: Any
    batches: Any
    drop_last: Any
    samples: Any
    def __init__(self, dataset: Any, collate: Any, batches: Any, is_iterable: Any, drop_last: Any) -> None: ...
    def __call__(self, indices: Any) -> Any: ...

def timed(fetch: Any, indices: Any, place: Any) -> Any: ...
def work(number: Any, count: Any, dataset: Any, options: Any, init: Any, tasks: Any, results: Any, is_thread: Any) -> None: ...

class Workers:
    count: Any
    timeout: Any
    generation: int
    is_thread: bool
    results: Any
    tasks: list[Any]
    runners: list[Any]
    def __init__(self, count: Any, dataset: Any, options: Any, init: Any, context: Any, timeout: Any) -> None: ...
    def begin(self, seed: Any, place: Any) -> None: ...
    def give(self, worker: Any, number: Any, indices: Any) -> None: ...
    def take(self) -> Any: ...
    def end(self) -> None: ...
