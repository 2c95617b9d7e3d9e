"""Each group of samples in a process of its own: a call that ends the process, or does not end, costs its group only."""

import json
import os
import signal

SECONDS = 120


def outcomes(job, isolate=True):
    """The outcomes `(kind, detail)` that the generator `job()` yields, in a process of its own if `isolate`."""
    if not isolate:
        return list(job())
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _child(job, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = [tuple(json.loads(line)) for line in pipe.read().splitlines()]
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return found
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {os.WEXITSTATUS(status)}"
    slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
    return found + [("slow" if slow else "died", f"{how} after {len(found)} samples")]


def _child(job, write):
    signal.alarm(SECONDS)
    try:
        for outcome in job():
            os.write(write, (json.dumps(outcome) + "\n").encode())
    except BaseException as e:
        os.write(write, (json.dumps(("harness", f"{type(e).__name__}: {str(e)[:200]}")) + "\n").encode())
    os._exit(0)
