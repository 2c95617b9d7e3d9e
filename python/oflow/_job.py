"""What a Python program does as a rank of a job: how its end is told, and what the processes that it starts are.

``oflaunch`` reads the traceback and the exit code of a program that fails, so a program that fails before it imports oflow is told of
as well. Here the job is told where nobody would read them: the launcher is another one, or the process does not end because threads
still run.
"""

import atexit
import os
import sys
import threading

from . import _errors, _oflow

# Set by the process that is a rank, to its id.
_PARENT = "OFLOW_RANK_PID"

# These follow from the failure of another rank, or have been told by the library.
_CONSEQUENCES = (_errors.PeerError, _errors.LinkError, _errors.DivergedError, _errors.CommError)


def _is_child():
    """Whether a rank has started this process."""
    pid = os.environ.get(_PARENT)
    if pid is not None and pid != str(os.getpid()):
        return True
    # Workers import the program anew, and with it this module, before they run.
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def _be_alone():
    """A child must not join as the rank that has started it: it is a world of one."""
    for name in (*_oflow._rank_variables(), _PARENT):
        os.environ.pop(name, None)


def _forked():
    _oflow._forked()
    _be_alone()


def _become_rank_or_child():
    if _is_child():
        _be_alone()
    elif any(name in os.environ for name in _oflow._rank_variables()):
        os.environ[_PARENT] = str(os.getpid())


def _place(error, traceback):
    """File and line of an error: of the call, else of the innermost frame that is not of an installed package."""
    site = getattr(error, "site", None)
    if isinstance(error, _errors.Error) and site:
        return f"{site[0]}:{site[1]}"
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{error.filename}:{error.lineno}"
    here = os.path.dirname(os.path.abspath(__file__)) + os.sep
    innermost = found = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        innermost = f"{file}:{traceback.tb_lineno}"
        installed = any(part in file for part in ("/site-packages/", "/dist-packages/", "/lib/python"))
        if not (installed or file.startswith(("<", here))):
            found = innermost
        traceback = traceback.tb_next
    return found or innermost


def describe(error, traceback):
    """The error as reports quote it: class, first line of the message, and place."""
    cls = type(error)
    name = cls.__qualname__ if cls.__module__ in ("builtins", "__main__") else f"{cls.__module__}.{cls.__qualname__}"
    try:
        text = str(error.message if isinstance(error, _errors.Error) and error.message else error)
    except Exception:
        text = "<a message that cannot be shown>"
    text = f"{name}: {text.splitlines()[0]}" if text.strip() else name
    place = _place(error, traceback)
    return f"{text} (at {place})" if place else text


def _kind(error):
    if isinstance(error, MemoryError):
        return "out-of-memory"
    if isinstance(error, _errors.StorageError) or (isinstance(error, OSError) and error.errno in (28, 30, 122)):
        return "storage"
    return "error"


def _hook(previous):
    def failed(cls, error, traceback):
        previous(cls, error, traceback)
        try:
            sys.stderr.flush()
        except Exception:
            pass
        # Whoever has interrupted the program knows, and a consequence of another rank's end is no cause.
        if not isinstance(error, Exception) or isinstance(error, _CONSEQUENCES):
            return
        running = [t.name for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
        if running:
            text = f"{describe(error, traceback)}; the process runs on for its thread {running[0]}"
            _oflow._report_failure(_kind(error), text)
        elif "OFLOW_CONTROL" not in os.environ:
            _oflow._report_failure(_kind(error), describe(error, traceback))

    return failed


def begin():
    """Called once, when the package is imported."""
    _become_rank_or_child()
    sys.excepthook = _hook(sys.excepthook)
    os.register_at_fork(after_in_child=_forked)
    # Registered early, so that it runs late: what a program does at its end may still use tensors.
    atexit.register(_oflow._finish)
