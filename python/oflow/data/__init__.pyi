# Made by `python python/stubs` from the source beside it; do not edit.

from .._oflow import Stream as Stream
from .collate import default_collate as default_collate, default_convert as default_convert
from .dataloader import DataLoader as DataLoader
from .datasets import (
    ChainDataset as ChainDataset, ConcatDataset as ConcatDataset, Dataset as Dataset, IterableDataset as IterableDataset,
    StackDataset as StackDataset, Subset as Subset, TensorDataset as TensorDataset, random_split as random_split,
)
from .loader import Loader as Loader
from .samplers import (
    BatchSampler as BatchSampler, DistributedSampler as DistributedSampler, RandomSampler as RandomSampler, Sampler as Sampler,
    SequentialSampler as SequentialSampler, SubsetRandomSampler as SubsetRandomSampler, WeightedRandomSampler as WeightedRandomSampler,
)
from .workers import WorkerInfo as WorkerInfo, get_worker_info as get_worker_info
