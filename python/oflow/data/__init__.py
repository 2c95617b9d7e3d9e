"""Training data: global batches from rows in memory (``Loader``), and PyTorch's data sets, samplers and ``DataLoader``.

``Loader`` makes global batches, each rank its shard; ``DataLoader`` makes local batches of any data set, and
``batch.to_global(placement, "S(0)")`` makes those of all ranks one. ``oflow.utils.data`` has the same names.
"""

from .collate import default_collate, default_convert
from .dataloader import DataLoader
from .datasets import ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split
from .loader import Loader
from .samplers import BatchSampler, DistributedSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from .workers import WorkerInfo, get_worker_info
from .._oflow import Stream

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "Loader",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Stream",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
