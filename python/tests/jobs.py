"""Runs programs under oflaunch, for tests."""

import os
import pathlib
import shutil
import subprocess
import sys

import oflow
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(oflow.__file__).resolve().parents[1]
# Long: the machine may be busy. Nothing waits for it but a test that fails.
LIMIT = 120


def oflaunch():
    """The launcher: `OFLAUNCH`, else that of this source tree, else that of PATH."""
    named = [os.environ.get("OFLAUNCH"), ROOT / "target/debug/oflaunch", ROOT / "target/release/oflaunch", shutil.which("oflaunch")]
    for path in filter(None, named):
        if pathlib.Path(path).is_file():
            return str(path)
    pytest.skip("there is no oflaunch here: build it (`cargo build -p oflaunch`), or set OFLAUNCH")


def environment(**more):
    """The environment of a job: this interpreter, this package, no constants of somebody's calibration."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("OFLOW_", "PYTHON")) and k != "VIRTUAL_ENV"}
    return {**plain, "OFLOW_PYTHON": sys.executable, "PYTHONPATH": str(PACKAGE), "OFLOW_MODEL": "default", **more}


class Job:
    """An oflaunch in a folder of its own."""

    def __init__(self, folder, *args, **env):
        self.folder = folder
        more = {"TMPDIR": str(folder), **env}
        self.process = subprocess.Popen(
            [oflaunch(), *map(str, args)],
            cwd=folder,
            env=environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self):
        """The next line of output."""
        return self.process.stdout.readline().rstrip("\n")

    def finish(self):
        """Waits for the end."""
        try:
            self.out, self.err = self.process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            pytest.fail(f"the job did not end in {LIMIT} s\n{out}\n{err}")
        self.code = self.process.returncode
        return self

    @property
    def report(self):
        """What oflaunch itself said about the failure."""
        lines = [line.removeprefix("oflaunch: ") for line in self.err.splitlines() if not line.startswith("[rank")]
        return "\n".join(line for line in lines if not line.startswith(("other work uses", "flight records")))


def run(folder, text, *options, ranks=2, args=(), name="job.py", **env):
    """Writes a program and runs it to its end."""
    (folder / name).write_text(text)
    return Job(folder, "-n", ranks, "-t", 1, *options, name, "--", *args, **env).finish()


def line_of(text, part):
    """The number of the first line that has this part."""
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


def segments():
    """Files of shared memory that exist now."""
    return {name for name in os.listdir("/dev/shm") if "oflow" in name}


def is_alive(pid):
    """Whether a process runs; one that has ended and is not reaped does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False
