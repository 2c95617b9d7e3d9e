"""Ops from shared libraries and source files, while the program runs.

    oflow.ops.build_and_load(["scale.cc"])
    y = oflow.mine.scale(x, by=3.0)

The page "Write an op in C++ or CUDA" tells how such a source is written.
"""

import os as _os
from typing import Any

from . import _namespace, _oflow
from ._oflow import Library

__all__ = ["Library", "build_and_load", "load", "loaded", "unload"]


def load(path: str | _os.PathLike[str]) -> Library:
    """Loads a shared library and registers its ops, which are there at once as ``oflow.<domain>.<name>``. Returns the ``Library``.

    Load before the first tensor of a job is made, on every rank: ranks compare their ops, with the library's hash, when they meet.
    Loading a library that is loaded returns it; one whose file has changed replaces its ops. The library's code runs in this process:
    load what you trust.
    """
    return _oflow._load_library(_os.fspath(path))


def build_and_load(sources: Any, *, name=None, flags=(), dependencies=(), cache=None, debug=False) -> Library:
    """Builds a library of ops from sources (``.rs``, ``.c``, ``.cc``, ``.cpp``, ``.cu``; a path or a list of them) and loads it.

    Builds are kept: what has not changed is loaded within milliseconds. All ranks of a host may call this; one of them builds.

    name: of the build; a library of ``.cu`` files alone has this name.
    flags: for the compiler of C and C++, such as ``["-march=native"]``.
    dependencies: of a Rust source, as lines of a manifest: ``['half = "2"']``.
    cache: folder for builds; ``OFLOW_OP_CACHE``, or ``oflow/ops`` in the user's folder for caches, if there is none.
    debug: with checks and without optimisation.

    An error of the compiler is the error, with the lines of the source.
    """
    if isinstance(sources, (str, _os.PathLike)):
        sources = [sources]
    sources = [_os.fspath(s) for s in sources]
    cache = None if cache is None else _os.fspath(cache)
    return _oflow._build_library(sources, name, list(flags), list(dependencies), cache, debug)


def unload(library: Library):
    """Takes the ops of a library out. It is refused while the autograd graph of a tensor holds a call of one of them."""
    _oflow._unload_library(library)
    # Functions read their ops anew by themselves; those without any are not to be found any more.
    _namespace._found.clear()


def loaded() -> list[Library]:
    """All loaded libraries, in the order of loading."""
    return _oflow._loaded_libraries()
