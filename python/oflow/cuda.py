"""GPUs, with the names of ``torch.cuda``. Each rank computes on one GPU, which is ``"cuda"`` there."""

import functools

from . import _oflow, _seeds
from ._errors import Error as _Error


@functools.lru_cache(maxsize=None)
def is_available() -> bool:
    """Whether this rank has a GPU on which tensors can be made."""
    try:
        _oflow.zeros((1,), device="cuda")
    except _Error:
        return False
    return True


def device_count():
    """GPUs that this rank computes on: one or none."""
    return int(is_available())


def current_device():
    """The number of the rank's GPU, as in ``"cuda:0"``."""
    if not is_available():
        raise RuntimeError("expected a GPU on this rank, found none: `oflow.cuda.is_available()` says so")
    return 0


def is_bf16_supported() -> bool:
    """Whether there is a GPU: bf16 is a dtype like others."""
    return is_available()


def manual_seed(seed: int):
    """As ``oflow.manual_seed``: random numbers do not depend on the device."""
    _seeds.manual_seed(seed)


manual_seed_all = manual_seed
