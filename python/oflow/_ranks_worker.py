"""The program of the ranks that :func:`oflow.launch` starts: it runs the cells that the session sends."""

import sys

if __name__ == "__main__":
    # The folder of the session, as in a notebook, and not that of this file: it has a `random`.
    sys.path[0] = ""

import ast  # noqa: E402
import json  # noqa: E402
import linecache  # noqa: E402
import os  # noqa: E402
import queue  # noqa: E402
import select  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
import types  # noqa: E402
from typing import Any  # noqa: E402


_MOST_HTML = 4 << 20
"""Characters of HTML that are sent; of longer one only the text is shown."""


class Plain:
    """A value whose ``repr`` is JSON; ``repr`` of what JSON has no form for."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        return json.dumps(self._value, default=repr)

    def _repr_html_(self) -> str | None:
        return html(self._value)


def html(value: Any) -> str | None:
    """The HTML that notebooks show of a value, if it has any."""
    method = None if isinstance(value, type) else getattr(type(value), "_repr_html_", None)
    if method is None:
        return None
    try:
        text = method(value)
    except Exception:
        # There is the text.
        return None
    return text if isinstance(text, str) and len(text) <= _MOST_HTML else None


class _Session:
    """The connection to the session. A thread reads it, so that an interrupt is seen while a cell runs."""

    def __init__(self, connection: socket.socket) -> None:
        from oflow._ranks import Reader

        self._connection, self._reader = connection, Reader(connection)
        self.cells: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._sending = threading.Lock()
        self._state = threading.Lock()
        self._cell, self._cancelled, self._told = 0, 0, 0
        # Read by the handler of signals, which runs on the main thread between two of its steps.
        self._in_cell = self._in_send = self._interrupted = self._due = False
        signal.signal(signal.SIGINT, self._on_interrupt)
        threading.Thread(target=self._read, daemon=True, name="session").start()

    def _on_interrupt(self, *_: object) -> None:
        if self._due:
            self._due, self._told = False, self._cell
        elif self._told == self._cell:
            # One more signal of an interrupt that was seen.
            return
        if self._in_send:
            # Half a message would be read as the beginning of the next.
            self._interrupted = True
        elif self._in_cell:
            raise KeyboardInterrupt

    def _signal(self, gone: bool = False) -> None:
        """Signals the main thread until its handler has run, the cell has ended or a message has come. One signal is not enough: a call such
        as ``time.sleep`` looks for signals and then waits, and one that comes in between does not end the wait."""
        pause = 0.02
        while True:
            with self._state:
                if not (self._due and self._in_cell):
                    return
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            if gone:
                time.sleep(pause)
            elif select.select([self._connection], [], [], pause)[0]:
                return
            pause = min(2 * pause, 1.0)

    def _read(self) -> None:
        while True:
            self._signal()
            try:
                message = self._reader.wait()
            except OSError:
                message = None
            number = None if message is None else message.get("interrupt")
            if message is not None and number is None:
                self.cells.put(message)
                continue
            with self._state:
                # The session has gone: what runs for it ends.
                self._cancelled = max(self._cancelled, sys.maxsize if number is None else number)
                self._due = self._in_cell and self._cell <= self._cancelled
            if message is None:
                self._signal(gone=True)
                self.cells.put(None)
                return

    def begin(self, cell: int) -> None:
        """A cell begins, unless it was interrupted before."""
        with self._state:
            # Handlers of signals that were for the last cell run before this one begins.
            signal.pthread_sigmask(signal.SIG_BLOCK, ())
            self._cell, self._interrupted, self._due = cell, False, False
            if cell <= self._cancelled:
                raise KeyboardInterrupt
            self._in_cell = True

    def end(self) -> None:
        """The cell has ended: an interrupt comes too late."""
        self._in_cell = False

    def say(self, message: dict[str, Any]) -> None:
        """Sends a message, from any thread."""
        from oflow._ranks import send

        if threading.current_thread() is not threading.main_thread():
            with self._sending:
                send(self._connection, message)
            return
        self._in_send = True
        try:
            with self._sending:
                send(self._connection, message)
        finally:
            self._in_send = False
        if self._interrupted and self._in_cell:
            self._interrupted = False
            raise KeyboardInterrupt


class _Output:
    """A text stream that goes to the session."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, session: _Session, cell: int) -> None:
        self._session, self._cell = session, cell

    def write(self, text: str) -> int:
        if text:
            self._session.say({"cell": self._cell, "output": text})
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        # Code that asks for the file, such as a subprocess, writes into the log of the job.
        return 1


def _run(code: str, name: str, space: dict[str, Any], with_html: bool) -> tuple[str | None, str | None]:
    """Runs the statements of a cell, and returns ``repr`` of a last expression and the HTML that it has."""
    # Tracebacks show lines of cells.
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), space)
    if last is None or not isinstance(last, ast.Expr):
        return None, None
    value = eval(compile(ast.Expression(last.value), name, "eval"), space)
    if value is None:
        return None, None
    return repr(value), html(value) if with_html else None


def _traceback(error: BaseException) -> str:
    """The traceback from the cell on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def main() -> None:
    import oflow

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(os.environ.pop("OFLOW_RANKS_SOCKET"))
    oflow.init()
    session = _Session(connection)
    session.say({"rank": oflow.rank(), "token": os.environ.pop("OFLOW_RANKS_TOKEN")})
    # Cells are the program: what they define is in `__main__`, as pickle and dataclasses want it.
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    own_out, own_err = sys.stdout, sys.stderr
    while (message := session.cells.get()) is not None:
        cell, begin = message["cell"], time.perf_counter()
        result = shown = error = None
        try:
            try:
                session.begin(cell)
                sys.stdout = sys.stderr = _Output(session, cell)  # type: ignore[assignment]
                result, shown = _run(message["code"], f"<cell {cell}>", module.__dict__, message["html"])
            except SystemExit as e:
                error = f"SystemExit: {e}\n"
            except BaseException as e:
                error = _traceback(e)
            finally:
                session.end()
                sys.stdout, sys.stderr = own_out, own_err
        except KeyboardInterrupt as e:
            # It came while an error was put down.
            error = error or _traceback(e)
            session.end()
            sys.stdout, sys.stderr = own_out, own_err
        seconds = time.perf_counter() - begin
        try:
            session.say({"cell": cell, "result": result, "html": shown, "error": error, "seconds": seconds})
        except OSError:
            break


if __name__ == "__main__":
    main()
