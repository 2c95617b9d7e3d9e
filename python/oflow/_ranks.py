"""Ranks that an interactive session drives: ``oflow.launch(4)``.

The session starts ``oflaunch`` with :mod:`oflow._ranks_worker` as its program. The ranks connect to a socket in a folder that only this user
can open, and run what the session sends: cells of a notebook, each on all ranks or on some. Messages are JSON behind their length.
"""

import atexit
import contextlib
import html
import json
import os
import secrets
import selectors
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

_T = TypeVar("_T")

_MOST = 64 << 20
"""Bytes of a message. Output of a cell comes in many."""

_PATIENCE = 5.0
"""Seconds that ranks may run on after another one has raised, before the session is told."""


def send(to: socket.socket, message: dict[str, Any]) -> None:
    """Sends a message."""
    body = json.dumps(message).encode()
    to.sendall(struct.pack("<I", len(body)) + body)


class Reader:
    """Messages that arrive at a socket, which may come in pieces."""

    def __init__(self, of: socket.socket) -> None:
        self.socket = of
        self._data = bytearray()

    def more(self) -> bool:
        """Reads what is there. Returns False at the end of the connection."""
        data = self.socket.recv(1 << 16)
        self._data += data
        return bool(data)

    def take(self) -> dict[str, Any] | None:
        """The next message that is there whole."""
        if len(self._data) < 4:
            return None
        (size,) = struct.unpack_from("<I", self._data)
        if size > _MOST:
            raise ConnectionError(f"a message of {size} bytes: at most {_MOST} are taken")
        if len(self._data) < 4 + size:
            return None
        body = bytes(self._data[4 : 4 + size])
        del self._data[: 4 + size]
        message: dict[str, Any] = json.loads(body)
        return message

    def wait(self) -> dict[str, Any] | None:
        """The next message; None at the end of the connection."""
        while True:
            message = self.take()
            if message is not None:
                return message
            if not self.more():
                return None


class RankResult(NamedTuple):
    """What a cell did on one rank."""

    rank: int
    output: str
    """What it printed."""
    result: str | None
    """``repr`` of its last expression."""
    error: str | None
    """The traceback, if it raised."""
    seconds: float
    html: str | None = None
    """What a notebook shows of its last expression. None if it has no HTML, and where no notebook drives the ranks."""

    def __repr__(self) -> str:
        fields = (f"{name}={getattr(self, name)!r}" for name in self._fields if name != "html")
        return f"RankResult({', '.join(fields)})"


class _ByRank(list[_T]):
    """A list with a value for each rank. If a value has HTML, a notebook shows them by rank, equal ones once."""

    def __init__(self, values: Iterable[_T], shown: Iterable[tuple[int, str, str | None]]) -> None:
        super().__init__(values)
        self._shown = list(shown)

    def _repr_html_(self) -> str | None:
        if all(of_rank is None for _, _, of_rank in self._shown):
            return None
        return "\n".join(_labelled(who, text, shown) for who, text, shown in _by_value(self._shown))


class RanksError(RuntimeError):
    """A cell raised on some ranks. ``results`` has what it did on each."""

    def __init__(self, message: str, results: list[RankResult]) -> None:
        super().__init__(message)
        self.results = results


def _named(ranks: Sequence[int]) -> str:
    """Numbers as a person writes them: ``0-3``, ``0, 2``."""
    parts: list[list[int]] = []
    for r in ranks:
        if parts and parts[-1][1] == r - 1:
            parts[-1][1] = r
        else:
            parts.append([r, r])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"


def _by_value(of: Iterable[tuple[int, str, str | None]]) -> list[tuple[str, str, str | None]]:
    """Texts and their HTML with the ranks that have each, in the order of the first rank."""
    ranks: dict[tuple[str, str | None], list[int]] = {}
    for rank, text, shown in of:
        ranks.setdefault((text, shown), []).append(rank)
    return [(_named(r), text, shown) for (text, shown), r in ranks.items()]


def _by_text(of: Iterable[tuple[int, str]]) -> list[tuple[str, str]]:
    """Texts with the ranks that have each, in the order of the first rank."""
    return [(who, text) for who, text, _ in _by_value((rank, text, None) for rank, text in of)]


def _labelled(who: str, text: str, shown: str | None) -> str:
    """Text and HTML behind the names of their ranks."""
    style = "margin:0;background:none;color:inherit;font-family:ui-monospace,monospace;font-size:13px"
    body = f'<pre style="{style}">{html.escape(text)}</pre>' if text else ""
    return f'<div style="margin:4px 0">\n<div style="{style}">[{who}]</div>\n{body}{shown or ""}\n</div>'


def _folder() -> str:
    """A folder that only this user can open, with a path that leaves room for the name of a socket."""
    folder = tempfile.mkdtemp(prefix="oflow-ranks-")
    if len(os.fsencode(folder)) > 90:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="oflow-ranks-", dir="/tmp")
    return folder


class Ranks:
    """Ranks of a job that this session drives; made by :func:`oflow.launch`."""

    def __init__(self, nproc: int, arguments: Sequence[str], timeout: float) -> None:
        from .launch import _program

        program = _program()
        if program is None:
            raise FileNotFoundError(
                "oflow.launch: expected oflaunch beside this Python or on the path, found none: `pip install` oflow puts it there"
            )
        self._world = nproc
        self._folder = _folder()
        self._cells = 0
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._readers: dict[int, Reader] = {}
        self._log = open(os.path.join(self._folder, "oflaunch.log"), "w+b")
        token = secrets.token_hex(16)
        path = os.path.join(self._folder, "socket")
        worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_ranks_worker.py")
        environment = {**os.environ, "OFLOW_PYTHON": sys.executable, "OFLOW_RANKS_SOCKET": path, "OFLOW_RANKS_TOKEN": token}
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
                door.bind(path)
                door.listen(nproc)
                # A group of its own: an interrupt of the notebook is passed on by this class, not by the terminal.
                self._job = subprocess.Popen(
                    [program, "--nproc", str(nproc), *arguments, worker],
                    env=environment, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True,
                )  # fmt: skip
                self._admit(door, token, timeout)
        except BaseException:
            self.close()
            raise
        atexit.register(self.close)

    def _admit(self, door: socket.socket, token: str, timeout: float) -> None:
        until = time.monotonic() + timeout
        door.settimeout(0.2)
        while len(self._readers) < self._world:
            if self._job.poll() is not None:
                raise RuntimeError(f"oflow.launch: the ranks ended before they were ready:\n{self.log()}")
            if time.monotonic() > until:
                raise TimeoutError(f"oflow.launch: {len(self._readers)} of {self._world} ranks were ready after {timeout} s:\n{self.log()}")
            try:
                connection, _ = door.accept()
            except TimeoutError:
                continue
            connection.settimeout(max(1.0, until - time.monotonic()))
            reader = Reader(connection)
            hello = reader.wait()
            if hello is None or not secrets.compare_digest(str(hello.get("token")), token):
                connection.close()
                continue
            connection.settimeout(None)
            self._readers[hello["rank"]] = reader

    def __len__(self) -> int:
        return self._world

    def __repr__(self) -> str:
        return f"Ranks({self._world}, {'running' if self.is_running() else 'ended'})"

    def is_running(self) -> bool:
        """Whether the job still runs. It ends with :meth:`close`, with the session, or when a rank ends."""
        return bool(self._readers) and self._job.poll() is None

    def log(self) -> str:
        """What ``oflaunch`` said, and what ranks printed outside of cells."""
        with contextlib.suppress(OSError, ValueError):
            self._log.flush()
            with open(self._log.name, "rb") as f:
                return f.read()[-65536:].decode(errors="replace").strip()
        return ""

    def run(
        self,
        code: str,
        ranks: int | Iterable[int] | None = None,
        *,
        on_output: Callable[[int, str], None] | None = None,
        check: bool = True,
    ) -> list[RankResult]:
        """Runs code on the ranks, in their ``__main__`` with what earlier calls have defined, and waits until all are done.

        Calls on global tensors communicate, so ranks that take part in them must run the same code. An interrupt (Ctrl-C, the button of a
        notebook) raises KeyboardInterrupt on the ranks; a second one ends the job, as a rank that waits for another in a collective cannot be
        interrupted.

        Args:
            code: the statements; the value of a last expression is ``result``.
            ranks: a rank or several; all by default.
            on_output: called with the rank and the text when a rank prints.
            check: raise :class:`RanksError` if a rank raises; otherwise its ``error`` has the traceback.
        """
        wanted = sorted({ranks} if isinstance(ranks, int) else set(range(self._world) if ranks is None else ranks))
        for r in wanted:
            if not 0 <= r < self._world:
                raise ValueError(f"expected ranks from 0 to {self._world - 1}, not {r}")
        with self._lock:
            if not self.is_running():
                raise RuntimeError(f"the ranks have ended; oflow.launch({self._world}) starts new ones:\n{self.log()}")
            self._cells += 1
            results = self._run(code, wanted, on_output)
        failed = [r for r in results if r.error is not None]
        if failed and check:
            texts = [f"[{who}] {text.rstrip()}" for who, text in _by_text((r.rank, r.error or "") for r in failed)]
            raise RanksError("\n".join(texts), results)
        return _ByRank(results, ((r.rank, r.output + (r.error or r.result or "" if r.html is None else ""), r.html) for r in results))

    def _run(self, code: str, wanted: list[int], on_output: Callable[[int, str], None] | None) -> list[RankResult]:
        number, with_html = self._cells, _in_notebook()
        with selectors.DefaultSelector() as selector:
            for r in wanted:
                self._send(r, {"cell": number, "code": code, "html": with_html})
                selector.register(self._readers[r].socket, selectors.EVENT_READ, r)
            output: dict[int, list[str]] = {r: [] for r in wanted}
            done: dict[int, RankResult] = {}
            interrupted = warned = False
            while len(done) < len(wanted):
                running = [r for r in wanted if r not in done]
                failed = [r for r in done if done[r].error is not None]
                try:
                    ready = selector.select(_PATIENCE if failed and not warned else None)
                    for key, _ in ready:
                        self._take(key.data, number, output, done, on_output)
                except KeyboardInterrupt:
                    if interrupted:
                        self.close()
                        text = f"{_named(running)} could not be interrupted, so the job was ended; oflow.launch({self._world}) starts new ranks"
                        raise KeyboardInterrupt(text) from None
                    interrupted = True
                    self.interrupt(running)
                    continue
                if not ready and not warned:
                    warned = True
                    print(
                        f"{_named(failed)} raised, and {_named(running)} still run. If they wait for it in a collective, interrupt twice: that ends the job.",
                        file=sys.stderr,
                    )
        return [done[r] for r in wanted]

    def _take(
        self,
        rank: int,
        number: int,
        output: dict[int, list[str]],
        done: dict[int, RankResult],
        on_output: Callable[[int, str], None] | None,
    ) -> None:
        reader = self._readers[rank]
        try:
            more = reader.more()
        except OSError:
            more = False
        while (message := reader.take()) is not None:
            if message.get("cell") != number:
                continue
            if "output" in message:
                output[rank].append(message["output"])
                if on_output is not None:
                    on_output(rank, message["output"])
            else:
                text = "".join(output[rank])
                done[rank] = RankResult(rank, text, message["result"], message["error"], message["seconds"], message["html"])
        if not more:
            # The job ends with a rank; oflaunch says why.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._job.wait(timeout=30)
            log = self.log()
            self.close()
            raise RuntimeError(f"rank {rank} ended, and the job with it:\n{log}")

    def _send(self, rank: int, message: dict[str, Any]) -> None:
        # An interrupt may come from another thread.
        with self._sending:
            send(self._readers[rank].socket, message)

    def interrupt(self, ranks: Iterable[int] | None = None) -> None:
        """Interrupts what ranks are running: it raises KeyboardInterrupt there, unless they wait for others in a collective."""
        for r in range(self._world) if ranks is None else ranks:
            # By the number of the cell: a rank that has not begun it does not run it, and one that has ended it goes on.
            with contextlib.suppress(OSError, KeyError):
                self._send(r, {"interrupt": self._cells})

    def __getitem__(self, expression: str) -> list[Any]:
        """The value of an expression on each rank: numbers, texts, None, and lists and dicts of these; of anything else its ``repr``."""
        if not isinstance(expression, str):
            raise TypeError(f"expected the text of an expression, not a {type(expression).__name__}")
        compile(expression, "<expression>", "eval")
        code = f"__import__('oflow._ranks_worker', fromlist=['Plain']).Plain({expression})"
        results = self.run(code)
        values = [json.loads(r.result or "null") for r in results]
        shown = ((r.rank, repr(value) if r.html is None else "", r.html) for r, value in zip(results, values, strict=True))
        return _ByRank(values, shown)

    def close(self) -> None:
        """Ends the ranks. Closing twice does nothing."""
        atexit.unregister(self.close)
        for reader in self._readers.values():
            reader.socket.close()
        self._readers.clear()
        job = getattr(self, "_job", None)
        if job is not None:
            try:
                # Ranks end when their connection does.
                job.wait(timeout=5)
            except subprocess.TimeoutExpired:
                job.terminate()
                try:
                    job.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    job.kill()
                    job.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def show(self, code: str, ranks: int | Iterable[int] | None = None) -> None:
        """Runs code as :meth:`run` does, and prints outputs and results by rank; equal ones of several ranks once. The cell magic
        ``%%ranks`` calls it."""
        begun: dict[int, str] = {}

        def said(rank: int, text: str) -> None:
            # Whole lines: those of several ranks come in between each other.
            lines = (begun.get(rank, "") + text).split("\n")
            begun[rank] = lines.pop()
            for line in lines:
                print(f"[{rank}] {line}", flush=True)

        results = self.run(code, ranks, on_output=said, check=False)
        for rank in sorted(begun):
            if begun[rank]:
                print(f"[{rank}] {begun[rank]}")
        for who, text, shown in _by_value((r.rank, r.result, r.html) for r in results if r.result is not None):
            text = f"[{who}] {text}" if "\n" not in text else f"[{who}]\n{text}"
            if shown is None:
                print(text)
            else:
                _display(text, _labelled(who, "", shown))
        failed = [r for r in results if r.error is not None]
        if failed:
            texts = [f"[{who}] {text.rstrip()}" for who, text in _by_text((r.rank, r.error or "") for r in failed)]
            raise RanksError("\n".join(texts), results)


_last: Ranks | None = None


def _magic(line: str, cell: str) -> None:
    """``%%ranks``: runs the cell on the ranks of the last ``oflow.launch``; ``%%ranks 0 2`` or ``%%ranks 0-1`` on some of them."""
    if _last is None or not _last.is_running():
        raise RuntimeError("no ranks are running: `oflow.launch(4)` starts four")
    wanted: set[int] = set()
    for part in line.replace(",", " ").split():
        first, _, last = part.partition("-")
        try:
            wanted.update(range(int(first), int(last or first) + 1))
        except ValueError:
            raise ValueError(f"expected ranks as `0 2` or `0-3`, not {part!r}") from None
    _last.show(cell, wanted or None)


def launch(nproc: int, *arguments: str, timeout: float = 120.0) -> Ranks:
    """Starts ``nproc`` ranks that this session drives, and returns them when they are ready.

    In a notebook the cell magic ``%%ranks`` runs a cell on all of them, ``%%ranks 0 2`` on some; outputs are shown by rank. Elsewhere
    ``ranks.run("...")`` does. The ranks end with ``ranks.close()``, or with the session.

    Args:
        nproc: number of ranks.
        arguments: further arguments of ``oflaunch``, such as ``"--threads", "2"``.
        timeout: seconds until the ranks must be ready.

    >>> ranks = oflow.launch(4)  # doctest: +SKIP
    >>> ranks.run("import oflow; oflow.rank()")  # doctest: +SKIP
    """
    global _last
    if not isinstance(nproc, int) or nproc < 1:
        raise ValueError(f"expected a number of ranks from 1 on, not {nproc!r}")
    ranks = Ranks(nproc, arguments, timeout)
    _last = ranks
    shell = _shell()
    if shell is not None:
        shell.register_magic_function(_magic, magic_kind="cell", magic_name="ranks")
    return ranks


def _shell() -> Any:
    """The running IPython, if there is one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _in_notebook() -> bool:
    """Whether the session shows HTML: a kernel does, a terminal does not."""
    return hasattr(_shell(), "kernel")


def _display(text: str, shown: str) -> None:
    """Shows HTML in a notebook, with the text for readers without HTML."""
    from IPython.display import display

    display({"text/plain": text, "text/html": shown}, raw=True)
