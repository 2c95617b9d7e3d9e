"""Ranks that a session drives: ``oflow.launch``, and ``%%ranks`` in a notebook."""

import os
import signal
import subprocess
import sys
import threading
import time

import oflow
import pytest
from oflow import _ranks
from oflow.launch import _program

pytestmark = pytest.mark.skipif(_program() is None, reason="oflaunch is not installed")


@pytest.fixture(scope="module")
def ranks():
    with oflow.launch(2) as r:
        yield r


def test_cells_share_names_and_tell_what_they_did(ranks):
    assert len(ranks) == 2 and repr(ranks) == "Ranks(2, running)"
    first = ranks.run("import oflow\nmesh = oflow.placement('cpu', [0, 1])\nx = oflow.ones(4, placement=mesh, sbp='S(0)')\nprint('rank', oflow.rank())")
    assert [r.output for r in first] == ["rank 0\n", "rank 1\n"] and all(r.result is None and r.seconds > 0 for r in first)
    assert [r.result for r in ranks.run("float(x.sum())")] == ["4.0", "4.0"]
    assert ranks["x.shape[0] + oflow.rank()"] == [4, 5]
    assert ranks["{'a': [1, None, 'b']}"] == [{"a": [1, None, "b"]}] * 2
    assert ranks["oflow.rank"][0].startswith("<")
    # Classes of cells are of `__main__`, and standard error is output too.
    out = ranks.run("import sys, pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__module__, file=sys.stderr)", ranks=1)
    assert [(r.rank, r.output) for r in out] == [(1, "__main__\n")]


def test_errors_have_their_cell_and_leave_the_ranks_alone(ranks):
    with pytest.raises(_ranks.RanksError) as e:
        ranks.run("def f():\n    return 1 / (oflow.rank() - 1)\nimport oflow\nf()")
    text = str(e.value)
    assert text.startswith("[rank 1] Traceback") and "return 1 / (oflow.rank() - 1)" in text and "ZeroDivisionError" in text
    assert "_ranks_worker" not in text and e.value.results[0].error is None and e.value.results[0].result == "-1.0"
    # An error that all ranks have is shown once.
    with pytest.raises(_ranks.RanksError, match=r"^\[ranks 0-1\] Traceback") as e:
        ranks.run("oflow.ones((2, 3)) @ oflow.ones((4, 5))")
    assert str(e.value).count("Traceback") == 1 and "inner dims differ" in str(e.value)
    with pytest.raises(_ranks.RanksError, match="SyntaxError"):
        ranks.run("def (")
    with pytest.raises(_ranks.RanksError, match="SystemExit: 3"):
        ranks.run("import sys; sys.exit(3)")
    with pytest.raises(SyntaxError):
        ranks["x ="]
    with pytest.raises(ValueError, match="ranks from 0 to 1, not 2"):
        ranks.run("1", ranks=2)
    assert [r.result for r in ranks.run("1 + 1")] == ["2", "2"]


def test_large_outputs_and_threads(ranks):
    out = ranks.run("for i in range(3000): print('x' * 200)", ranks=0)[0].output
    assert len(out) == 3000 * 201
    all = []
    threads = [threading.Thread(target=lambda n=n: all.append(ranks.run(f"{n} * 10")[0].result)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(all) == ["0", "10", "20", "30"]


def test_shown_by_rank(ranks, capsys):
    ranks.show("print('hello'); oflow.world_size()")
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines[:2]) == ["[0] hello", "[1] hello"] and lines[2] == "[ranks 0-1] 2"
    assert _ranks._named([0, 1, 2, 5, 7, 8]) == "ranks 0-2, 5, 7-8" and _ranks._named([3]) == "rank 3"


def test_an_interrupt_ends_the_cell_and_not_the_ranks(ranks):
    started = threading.Event()
    done = []

    def work():
        try:
            ranks.run("print('on'); import time; time.sleep(600)", on_output=lambda *_: started.set())
        except _ranks.RanksError as e:
            done.append(str(e))

    thread = threading.Thread(target=work)
    thread.start()
    assert started.wait(60)
    ranks.interrupt()
    thread.join(60)
    assert "KeyboardInterrupt" in done[0]
    assert [r.result for r in ranks.run("5")] == ["5", "5"]


def test_an_interrupt_whose_first_signal_comes_too_early_is_not_lost(ranks):
    # A signal between the look of `sleep` at signals and its wait ends nothing. Here the first one is not sent at all.
    lossy = """
import signal, time
kill, signals = signal.pthread_kill, []
def after_the_first(*a):
    signals.append(a)
    if len(signals) > 1:
        kill(*a)
signal.pthread_kill = after_the_first
"""
    ranks.run(lossy)
    threading.Timer(0.2, ranks.interrupt).start()
    with pytest.raises(_ranks.RanksError, match="KeyboardInterrupt"):
        ranks.run("time.sleep(60)")
    assert ranks.run("signal.pthread_kill = kill; len(signals)", ranks=0)[0].result in ("2", "3")
    # A signal that the session did not ask for interrupts, too, and the last one is not raised twice.
    with pytest.raises(_ranks.RanksError, match="KeyboardInterrupt"):
        ranks.run("import os; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)")
    assert [r.result for r in ranks.run("time.sleep(0.2); 6")] == ["6", "6"]


def test_a_second_interrupt_ends_a_job_that_waits_in_a_collective():
    code = """
import oflow, os, signal, threading
r = oflow.launch(2)
r.run("import oflow; x = oflow.ones(4, placement=oflow.placement('cpu', [0, 1]), sbp='S(0)')")
def interrupts(rank, text):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    r.run("print('waits'); x.sum().item()", ranks=0, on_output=lambda rank, text: "waits" in text and interrupts(rank, text))
except KeyboardInterrupt as e:
    print(e, r.is_running())
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert out.stdout == "rank 0 could not be interrupted, so the job was ended; oflow.launch(2) starts new ranks False\n", out


def test_a_rank_that_raises_while_others_run_is_told_of(monkeypatch, tmp_path):
    monkeypatch.setattr(_ranks, "_PATIENCE", 0.1)
    told = []

    class Errors:
        def write(self, text):
            told.append(text)
            (tmp_path / "told").touch()

    monkeypatch.setattr(sys, "stderr", Errors())
    wait = f"import os, time\nwhile not os.path.exists({str(tmp_path / 'told')!r}): time.sleep(0.02)"
    with oflow.launch(2) as r, pytest.raises(_ranks.RanksError, match="rank 1"):
        r.run(f"import oflow\nif oflow.rank() == 1: raise ValueError('alone')\n{wait}")
    assert "rank 1 raised, and rank 0 still run" in "".join(told)


def test_a_rank_that_dies_ends_the_job_with_its_reason():
    r = oflow.launch(2)
    folder = r._folder
    with pytest.raises(RuntimeError, match="and the job with it"):
        r.run("import os; os._exit(7)", ranks=1)
    assert not r.is_running() and not os.path.exists(folder) and repr(r) == "Ranks(2, ended)"
    with pytest.raises(RuntimeError, match="the ranks have ended"):
        r.run("1")


def test_nothing_is_left_after_the_session():
    code = "import oflow, os; r = oflow.launch(2); print(*r['__import__(\"os\").getpid()'], r._folder)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ}).stdout.split()
    until = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{pid}") for pid in out[:2]):
        assert time.monotonic() < until, out
        time.sleep(0.05)
    assert not os.path.exists(out[2])


def test_a_session_that_is_killed_takes_its_ranks_along():
    code = "import oflow, sys, time; r = oflow.launch(2); print(*r['__import__(\"os\").getpid()'], r._folder, flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as p:
        *pids, folder = p.stdout.readline().split()
        p.send_signal(signal.SIGKILL)
    until = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.monotonic() < until, pids
        time.sleep(0.05)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)


def test_bad_arguments():
    with pytest.raises(ValueError, match="a number of ranks from 1 on, not 0"):
        oflow.launch(0)
    with pytest.raises(RuntimeError, match="ended before they were ready") as e:
        oflow.launch(1, "--no-such-option")
    assert "--no-such-option" in str(e.value)
    assert callable(oflow.launch) and "launch" in dir(oflow)


def test_values_have_html_where_a_notebook_shows_it(ranks, monkeypatch):
    shown = []
    monkeypatch.setattr(_ranks, "_display", lambda text, html: shown.append((text, html)))
    ranks.run("import oflow\nx = oflow.ones(4, placement=oflow.placement('cpu', [0, 1]), sbp='S(0)')")
    assert [r.html for r in ranks.run("x")] == [None, None] and ranks["x"]._repr_html_() is None
    monkeypatch.setattr(_ranks, "_in_notebook", lambda: True)
    results = ranks.run("print('<i>'); x")
    assert results[0].html == results[1].html and "S(0)" in results[0].html and "html" not in repr(results)
    page = results._repr_html_()
    assert page.count("[ranks 0-1]") == page.count("<svg") == 1 and "&lt;i&gt;" in page and page.index("&lt;i&gt;") < page.index("<svg")
    # What differs is shown by rank.
    page = ranks["x.to_local() * oflow.rank()"]._repr_html_()
    assert page.index("[rank 0]") < page.index("[0., 0.]") < page.index("[rank 1]") < page.index("[1., 1.]")
    page = ranks["x if oflow.rank() else '<b>'"]._repr_html_()
    assert page.count("<svg") == 1 and "&#x27;&lt;b&gt;&#x27;" in page
    assert ranks["x"] == ["f32[4] [S(0)] on cpu[2]"] * 2 and ranks["1"]._repr_html_() is None
    ranks.show("x")
    ((text, html),) = shown
    assert text == "[ranks 0-1] f32[4] [S(0)] on cpu[2]" and html.count("<svg") == 1 and "[ranks 0-1]" in html


def test_html_that_fails_leaves_the_text(ranks, monkeypatch):
    monkeypatch.setattr(_ranks, "_in_notebook", lambda: True)
    bodies = ("return 1", "raise ValueError", "return None", "return 'x' * (5 << 20)", "return f'<b>{self.x}</b>'")
    for body in bodies:
        ranks.run(f"class A:\n    x = 7\n    __repr__ = lambda self: 'an A'\n    def _repr_html_(self): {body}")
        assert {(r.result, r.html, r.error) for r in ranks.run("A()")} == {("an A", "<b>7</b>" if body == bodies[-1] else None, None)}
        assert all(r.html is None and r.error is None for r in ranks.run("A"))


def test_in_a_notebook():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "import oflow\nranks = oflow.launch(4)",
        "%%ranks\nimport oflow\nx = oflow.ones(8, placement=oflow.placement('cpu', range(4)), sbp='S(0)')\nx.to_local().shape",
        "%%ranks 1-2\nprint('only here')",
        "%%ranks\nx.sum().item()",
        "%%ranks\nraise ValueError('on purpose')",
        "%%ranks\nx",
        "%%ranks\nx.to_local() * (oflow.rank() // 2)",
        "ranks['x']",
        "ranks.run('x', ranks=[1, 3])",
        "oflow.ones(2)",
        "oflow.placement('cpu', range(4)).mesh(dp=2, tp=2)",
        "ranks.close()",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    nbclient.NotebookClient(book, timeout=120, allow_errors=True).execute()
    text = lambda n: "".join(o.get("text", "") for o in book.cells[n].outputs)  # noqa: E731
    assert text(1).startswith("[ranks 0-3] ") and "2" in text(1)
    assert sorted(text(2).split()) == sorted("[1] only here [2] only here".split())
    assert text(3) == "[ranks 0-3] 8.0\n"
    (error,) = book.cells[4].outputs
    assert error.ename == "RanksError" and "[ranks 0-3] Traceback" in error.evalue and "on purpose" in error.evalue
    data = lambda n: [o.data for o in book.cells[n].outputs]  # noqa: E731
    (layout,) = data(5)
    assert layout["text/plain"] == "[ranks 0-3] f32[8] [S(0)] on cpu[4]"
    assert "[ranks 0-3]" in layout["text/html"] and all(f">{r}</text>" in layout["text/html"] for r in range(4))
    first, second = data(6)
    assert "[ranks 0-1]" in first["text/html"] and "[0., 0.]" in first["text/html"]
    assert "[ranks 2-3]" in second["text/html"] and "[1., 1.]" in second["text/plain"]
    assert [data(n)[0]["text/html"].count("<svg") for n in (7, 8, 9, 10)] == [1, 1, 0, 1]
    assert "[ranks 1, 3]" in data(8)[0]["text/html"] and "[1., 1.]" in data(9)[0]["text/html"]
    assert data(9)[0]["text/plain"] == repr(oflow.ones(2))
    assert book.cells[11].outputs == []
