"""oflow: one program on many devices.

A program computes with tensors as in PyTorch. A *global tensor* has a logical shape, a placement (a mesh of ranks) and an SBP for each
axis of the mesh: split, broadcast or partial. Each op chooses how it is sharded and inserts the communication it needs.

    import oflow as flow

    p = flow.placement.all("cpu")
    x = flow.randn((1024, 512), placement=p, sbp=flow.sbp.split(0))
    w = flow.randn((512, 256), placement=p, sbp=flow.sbp.broadcast)
    print((x @ w).relu())

``oflaunch --nproc 4 train.py`` runs a program on four ranks; without it a program is a world of one rank.

All functions of the library are here: ``oflow.relu(x)``, and as methods: ``x.relu()``. They are the rows of one table, which
``oflow.functional`` holds too.
"""

import importlib as _importlib
import os as _os

from . import _oflow

_oflow._set_package(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

from ._errors import (  # noqa: E402
    ArgumentError,
    AutogradError,
    CommError,
    ContextError,
    DeniedError,
    DeviceError,
    DivergedError,
    DTypeError,
    Error,
    InternalError,
    IoError,
    LinkError,
    OutOfMemoryError,
    OutOfRangeError,
    ParseError,
    PeerError,
    PlacementError,
    RegistryError,
    SbpError,
    ShapeError,
    StorageError,
    UnsupportedError,
)
from ._oflow import *  # noqa: E402,F403
from ._oflow import Generator, Tensor, __version__, device, dtype, placement  # noqa: E402
from . import functional, sbp  # noqa: E402
from . import autograd, fft, func, linalg, ops, testing  # noqa: E402
from .autograd import grad  # noqa: E402
from .func import vmap  # noqa: E402
from ._seeds import get_rng_state, initial_seed, manual_seed, set_rng_state  # noqa: E402
from ._function import function  # noqa: E402
from ._graph import Graph, GraphPlan, LoadedGraph, graph, load_graph, scan  # noqa: E402
from ._modes import (  # noqa: E402
    autocast,
    boxing_policy,
    detect_anomaly,
    enable_grad,
    inference_mode,
    keep_layouts,
    name_scope,
    no_grad,
    no_sync,
    pin_sbp,
    set_grad_enabled,
    span,
    watch_calls,
)
from ._namespace import find as _find  # noqa: E402
from ._numbers import e, finfo, iinfo, inf, nan, newaxis, pi  # noqa: E402
from ._op import SbpHints, op  # noqa: E402
from ._session import Session  # noqa: E402
from . import cuda, random, signal, special  # noqa: E402
from ._comm_trace import CommRecord, with_grad_sbp, with_sbp  # noqa: E402
from ._memory import DeviceMemory, MemoryFailure, MemoryHolder, MemoryReport, memory_report  # noqa: E402
from ._profile import ProfileRow, StepSplit, profile  # noqa: E402

Placement = placement
"""The same class as ``oflow.placement``."""

cpu = device("cpu")


def __getattr__(name):
    """Functions of ops that were registered after the import, and their domains: ``oflow.mine.scaled``."""
    if name == "launch":
        # Not before it is asked for: `python -m oflow.launch` runs the module itself.
        return _importlib.import_module("oflow.launch")
    return _find(name)


def __dir__():
    return sorted({*globals(), *_oflow._function_names(), "launch"})


from . import _job, _pytorch_forms  # noqa: E402

_pytorch_forms.add_to(globals())

_job.begin()

from . import checkpoint, data, metrics, nn, optim, utils  # noqa: E402
from .checkpoint import load, save  # noqa: E402
from .metrics import log  # noqa: E402

# They are in `optim` and in `data`.
del GradScaler, Stream  # noqa: F821
