"""Starting ranks: ``oflow.launch(4)`` in a notebook, ``python -m oflow.launch`` at a terminal.

``python -m oflow.launch`` runs ``oflaunch`` with the same arguments, with the Python that runs it. The module can be called: see
:func:`oflow.launch`.
"""

import os
import shutil
import sys
import types


def _program():
    """The path of ``oflaunch``: beside this Python, else on the path."""
    beside = os.path.join(os.path.dirname(sys.executable), "oflaunch")
    return beside if os.access(beside, os.X_OK) else shutil.which("oflaunch")


def main():
    """Becomes ``oflaunch``; returns only if there is none."""
    program = _program()
    if program is None:
        print("oflow.launch: expected oflaunch beside this Python or on the path, found none: `pip install` oflow puts it there", file=sys.stderr)
        return 127
    os.environ.setdefault("OFLOW_PYTHON", sys.executable)
    os.execv(program, [program, *sys.argv[1:]])


class _Launch(types.ModuleType):
    """The module, which can be called: a module and a function have this name."""

    def __call__(self, nproc, *arguments, timeout=120.0):
        from ._ranks import launch

        return launch(nproc, *arguments, timeout=timeout)


if __name__ == "__main__":
    sys.exit(main())
else:
    sys.modules[__name__].__class__ = _Launch
