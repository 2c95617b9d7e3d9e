"""Python programs as jobs: what reports say of errors, divergence, signals and exit codes, and that nothing is left behind."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import textwrap

import pytest
from jobs import LIMIT, Job, environment, is_alive, line_of, run, segments


def program(text):
    return textwrap.dedent(text).lstrip()


START = """\
import oflow, os, sys
world, rank = oflow.world_size(), oflow.rank()
mesh = oflow.placement.all("cpu")
x = oflow.ones((4,), placement=mesh, sbp="S(0)")
"""


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = segments()
    yield
    assert segments() <= before


def test_ranks_compute_together(tmp_path):
    job = run(tmp_path, START + "print(world, x.sum().item())\n", ranks=3)
    assert job.code == 0 and sorted(job.out.splitlines()) == [f"[rank {r}] 3 4.0" for r in range(3)], job.err
    assert job.err == ""


def test_an_exception_of_one_rank(tmp_path):
    text = START + program("""
        def load(name):
            raise ValueError(f"no {name}")

        x.mean().item()
        if rank == 1:
            load("data")
        print(x.sum().item())
    """)
    job = run(tmp_path, text, ranks=3)
    assert job.code == 1
    at = f"{tmp_path}/job.py:{line_of(text, 'raise ValueError')}"
    assert re.match(rf"rank 1 \(pid \d+\) failed with the error above \(at {re.escape(at)}\)$", job.report), job.err
    assert len(re.findall(r"^\[rank 1\] ValueError: no data$", job.err, re.M)) == 1, job.err
    # The others tell which call waited, and where.
    waited = f"{tmp_path}/job.py:{line_of(text, 'x.sum()')}"
    for other in (0, 2):
        of_it = [line for line in job.err.splitlines() if line.startswith(f"[rank {other}] ")]
        assert any("rank 1" in line and waited in line for line in of_it), job.err


def test_the_same_error_of_all_ranks(tmp_path):
    text = START + "oflow.barrier()\ny = x + oflow.ones((5,), placement=mesh, sbp='B')\n"
    job = run(tmp_path, text)
    at = f"{tmp_path}/job.py:{line_of(text, 'y = x')}"
    assert job.code == 1 and job.err.count("Traceback") == job.err.count("do not broadcast") == 1, job.err
    assert re.search(rf"^rank [01] \(pid \d+\) failed with the error above \(at {re.escape(at)}\)", job.report), job.err
    assert re.search(r"^\[rank [01]\] the same error as rank [01]$", job.err, re.M), job.err


def test_a_divergence_names_the_lines_of_both(tmp_path):
    text = START + program("""
        if rank == 0:
            y = x.exp()
        else:
            y = x.relu()
        print(y.sum().item())
    """)
    job = run(tmp_path, text)
    exp, relu = (f"{tmp_path}/job.py:{line_of(text, part)}" for part in ("x.exp()", "x.relu()"))
    assert job.code == 1
    assert "issued different ops" in job.report and f"'exp' #2 ({exp})" in job.report and f"'relu' #2 ({relu})" in job.report, job.err


def test_ctrl_c(tmp_path):
    text = START + program("""
        import signal
        with open(f"pid{rank}", "w") as file:
            file.write(str(os.getpid()))
        oflow.barrier()
        if rank == 0:
            print("ready")
        while True:
            signal.pause()
    """)
    (tmp_path / "job.py").write_text(text)
    job = Job(tmp_path, "-n", 2, "-t", 1, "job.py")
    assert job.line() == "[rank 0] ready"
    pids = [int((tmp_path / f"pid{rank}").read_text()) for rank in range(2)]
    job.process.send_signal(signal.SIGINT)
    job.finish()
    assert job.code == 130 and "signal 2 (SIGINT) passed on to the ranks" in job.report, job.err
    assert "KeyboardInterrupt" in job.err and not any(map(is_alive, pids))


def test_ctrl_c_wakes_a_rank_that_waits_for_another(tmp_path):
    text = START + program("""
        import signal
        if rank == 0:
            print("ready")
            x.sum().item()
        else:
            while True:
                signal.pause()
    """)
    (tmp_path / "job.py").write_text(text)
    job = Job(tmp_path, "-n", 2, "-t", 1, "job.py")
    assert job.line() == "[rank 0] ready"
    job.process.send_signal(signal.SIGINT)
    assert job.finish().code == 130, job.err


def test_kill_9(tmp_path):
    text = START + program("""
        for step in range(10**9):
            if rank == 1 and step == 9:
                os.kill(os.getpid(), 9)
            x.sum().item()
    """)
    job = run(tmp_path, text, ranks=3)
    assert job.code == 137 and re.match(r"rank 1 \(pid \d+\) was killed by signal 9 \(SIGKILL\)", job.report), job.err
    for other in (0, 2):
        assert re.search(rf"^\[rank {other}\] oflow.PeerError: .*rank 1 .*job.py:{line_of(text, 'x.sum()')}", job.err, re.M), job.err


def test_kill_9_of_oflaunch_leaves_no_process(tmp_path):
    text = START + program("""
        import signal, subprocess
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        with open(f"pids{rank}", "w") as file:
            file.write(f"{os.getpid()} {child.pid}")
        oflow.barrier()
        if rank == 0:
            print("ready")
        while True:
            signal.pause()
    """)
    (tmp_path / "job.py").write_text(text)
    job = Job(tmp_path, "-n", 2, "-t", 1, "job.py")
    assert job.line() == "[rank 0] ready"
    pids = [int(pid) for rank in range(2) for pid in (tmp_path / f"pids{rank}").read_text().split()]
    ends = [os.pidfd_open(pid) for pid in pids]
    job.process.kill()
    try:
        for pid, end in zip(pids, ends):
            assert select.select([end], [], [], LIMIT)[0], f"process {pid} is still there"
    finally:
        for end in ends:
            os.close(end)
    job.finish()


@pytest.mark.parametrize(
    "body, code, told",
    [
        ("sys.exit(0)", 0, ""),
        ("sys.exit(7)", 7, "exited with code 7"),
        ("sys.exit('no data')", 1, "exited with code 1"),
        ("os._exit(9)", 9, "exited with code 9"),
        ("import atexit; atexit.register(lambda: 1 / 0)", 0, ""),
        ("raise MemoryError('no room')", 1, "failed: MemoryError: no room"),
        ("import threading; t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()", 0, ""),
    ],
)
def test_exit_codes(tmp_path, body, code, told):
    job = run(tmp_path, START + f"x.sum().item()\nif rank == 1:\n    {body}\n")
    assert job.code == code and told in job.report and bool(job.report) == bool(told), job.err
    if "no data" in body:
        assert "[rank 1] no data" in job.err


def test_a_rank_that_leaves_early_is_named_by_those_that_need_it(tmp_path):
    text = START + "if rank == 1:\n    sys.exit(0)\nx.sum().item()\n"
    job = run(tmp_path, text)
    assert job.code != 0 and "rank 1" in job.report and "exited with code 0 while others needed it" in job.report, job.err


def test_threads_that_run_on_do_not_keep_the_job(tmp_path):
    text = START + program("""
        import threading
        if rank == 1:
            threading.Thread(target=threading.Event().wait).start()
            raise RuntimeError("the main thread is done")
        x.sum().item()
    """)
    job = run(tmp_path, text, "--timeout", "0.2")
    told = "rank 1 reported: RuntimeError: the main thread is done (at "
    assert job.code != 0 and told in job.report and "runs on for its thread" in job.report, job.err


def test_what_a_program_prints_and_catches_is_its_own(tmp_path):
    text = START + program("""
        import traceback
        try:
            x + oflow.ones((5,), placement=mesh, sbp="B")
        except oflow.ShapeError as e:
            assert e.site[0].endswith("job.py") and e.site[1] == %d
            traceback.print_exc()
        x.sum().item()
    """)
    text = text % line_of(text, "x + oflow")
    job = run(tmp_path, text)
    assert job.code == 0 and job.report == "" and "ShapeError" in job.err, job.err


def test_processes_that_a_rank_starts_are_no_ranks(tmp_path):
    text = program("""
        import multiprocessing, os, subprocess, sys
        import oflow

        def work(n):
            import oflow
            return oflow.world_size(), oflow.ones((n,)).sum().item()

        if __name__ == "__main__":
            rank = oflow.rank()
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print("spawned", pool.map(work, [3]))
            code = "import oflow; print('child', oflow.world_size(), oflow.rank())"
            subprocess.run([sys.executable, "-c", code], check=True)
            pid = os.fork()
            if pid == 0:
                try:
                    oflow.ones((2,))
                except RuntimeError as e:
                    print("forked", "was forked from a rank" in str(e))
                sys.exit(0)
            os.waitpid(pid, 0)
            x = oflow.ones((4,), placement=oflow.placement.all("cpu"), sbp="S(0)")
            print("sum", x.sum().item())
    """)
    job = run(tmp_path, text)
    assert job.code == 0, job.err
    wanted = ["spawned [(1, 3.0)]", "child 1 0", "forked True", "sum 4.0"]
    for rank in range(2):
        assert [line for line in job.out.splitlines() if line.startswith(f"[rank {rank}]")] == [f"[rank {rank}] {w}" for w in wanted]


def by_hand(folder, text, ranks=2):
    """Starts the ranks as another launcher would: by environment variables alone."""
    (folder / "job.py").write_text(text)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "localhost", "MASTER_PORT": port, "OFLOW_TIMEOUT": 1}
    processes = []
    for rank in range(ranks):
        own = {name: str(value) for name, value in {**common, "RANK": rank, "LOCAL_RANK": rank}.items()}
        env = environment(**own)
        processes.append(
            subprocess.Popen(
                [sys.executable, "job.py"], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    ends = [process.communicate(timeout=LIMIT) for process in processes]
    return [(process.returncode, *end) for process, end in zip(processes, ends)]


def test_without_oflaunch(tmp_path):
    text = START + program("""
        x.sum().item()
        # A fork that ends is not the rank that leaves.
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        os.waitpid(pid, 0)
        print(world, rank, x.sum().item())
    """)
    ends = by_hand(tmp_path, text)
    assert [(code, out) for code, out, _ in ends] == [(0, f"2 {rank} 4.0\n") for rank in range(2)], ends


def test_an_exception_without_oflaunch_reaches_the_other_ranks(tmp_path):
    text = START + program("""
        x.sum().item()
        if rank == 1:
            raise ValueError("no data")
        for _ in range(10**9):
            x.sum().item()
    """)
    (zero, _, told), (one, _, own) = by_hand(tmp_path, text)
    assert zero != 0 and one == 1 and "ValueError: no data" in own, (told, own)
    assert "PeerError" in told and "rank 1" in told, told


def test_output_comes_once_from_a_fork(tmp_path):
    text = "import os\nprint('before')\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\n"
    job = run(tmp_path, text, ranks=1)
    assert job.code == 0 and job.out == "before\n"


def test_logs_events_and_restarts(tmp_path):
    text = START + program("""
        x.sum().item()
        if rank == 1 and os.environ["OFLOW_RESTART"] == "0":
            raise RuntimeError("first try")
        print("done", os.environ["OFLOW_RESTART"])
    """)
    job = run(tmp_path, text, "--max-restarts", 1, "--log-dir", "logs")
    assert job.code == 0 and "RuntimeError: first try" in job.err and "all ranks will be started again" in job.report, job.err
    assert "[rank 1] done 1" in job.out
    log = (tmp_path / "logs/rank-1.log").read_text()
    assert "RuntimeError: first try" in log and "done 1" in log
    assert '"kind":"error"' in (tmp_path / "logs/events.jsonl").read_text()


def test_the_report_of_communication_names_python_lines(tmp_path):
    text = START + "y = x.to_global(sbp='B')\nprint(y.sum().item())\n"
    job = run(tmp_path, text, "--report")
    assert job.code == 0 and f"job.py:{line_of(text, 'to_global')}" in job.err, job.err


def test_a_stalled_rank_is_named(tmp_path):
    text = START + program("""
        import time
        if rank == 1:
            while True:
                time.sleep(0.01)
        x.sum().item()
    """)
    job = run(tmp_path, text, "--stall", 2, "--timeout", "0.5")
    assert job.code == 1 and "rank 1" in job.report and f"job.py:{line_of(text, 'x.sum()')}" in job.report, job.err
