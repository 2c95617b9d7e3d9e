"""Data sets for tests of workers that are processes: these import them."""

import numpy as np
import oflow as flow


class Squares(flow.data.Dataset):
    """Sample i is (i, i²); some numbers fail."""

    def __init__(self, count, fails=(), unpicklable=()):
        self.count, self.fails, self.unpicklable = count, fails, unpicklable

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i in self.fails:
            raise ValueError(f"sample {i} is bad")
        if i in self.unpicklable:
            return lambda: i
        return flow.tensor(float(i)), np.int64(i * i)


class Count(flow.data.IterableDataset):
    """The numbers below a bound, a share of them for each worker."""

    def __init__(self, stop):
        self.stop = stop

    def __iter__(self):
        info = flow.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        yield from range(first, self.stop, step)
