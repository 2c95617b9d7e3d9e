"""Logs of metrics: values, files, and what TensorBoard reads of them."""

import csv
import json
import math
import struct

import numpy as np
import oflow as flow
import pytest
from jobs import Job
from oflow.metrics import Log


def lines(path):
    return [{k: v for k, v in json.loads(line).items() if k != "time"} for line in open(f"{path}.jsonl")]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF


def fields(message):
    """The fields of a protobuf message: number, and the value or the bytes."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
            continue
        size = {1: 8, 5: 4}.get(key & 7)
        size = varint() if size is None else size
        found.append((key >> 3, message[at : at + size]))
        at += size
    return found


def events(folder):
    """The scalars of event files, decoded by hand: (tag, step, value)."""
    found = []
    for path in sorted(folder.iterdir()):
        data, at = path.read_bytes(), 0
        while at < len(data):
            length = struct.unpack("<Q", data[at : at + 8])[0]
            assert struct.unpack("<I", data[at + 8 : at + 12])[0] == masked(data[at : at + 8])
            message = data[at + 12 : at + 12 + length]
            assert struct.unpack("<I", data[at + 12 + length : at + 16 + length])[0] == masked(message)
            if at == 0:
                assert dict(fields(message))[3] == b"brain.Event:2"
            at += 16 + length
            event = dict(fields(message))
            for _, value in fields(event.get(5, b"")):
                value = dict(fields(value))
                found.append((value[1].decode(), event.get(2, 0), struct.unpack("<f", value[2])[0]))
    return found


def tensorboard(folder):
    """The scalars that TensorBoard itself reads."""
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="TensorBoard is not installed")
    reader = module.EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return {tag: [(e.step, e.value, e.wall_time) for e in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def write(path, steps, resume=False):
    with Log(path, resume=resume) as log:
        for step in steps:
            log.log(step, {"loss/train": flow.tensor(1.0 / (step + 1)), "lr": 0.1}, accuracy=np.float32(0.5))
            if step == 3:
                log.log(step, worst=math.nan, best=math.inf)


def test_the_event_file_by_hand(tmp_path):
    write(tmp_path / "a", range(25))
    ours = lines(tmp_path / "a")
    expected = [(tag, row["step"], np.float32(float(value))) for row in ours for tag, value in row.items() if tag != "step"]
    assert np.array_equal([e[2] for e in events(tmp_path / "a")], [e[2] for e in expected], equal_nan=True)
    assert [e[:2] for e in events(tmp_path / "a")] == [e[:2] for e in expected]
    assert len(expected) == 25 * 3 + 2


def test_tensorboard_reads_the_same_scalars(tmp_path):
    write(tmp_path / "a", range(25))
    read, ours = tensorboard(tmp_path / "a"), lines(tmp_path / "a")
    assert set(read) == {"loss/train", "lr", "accuracy", "worst", "best"}
    for tag, found in read.items():
        want = [(row["step"], np.float32(float(row[tag]))) for row in ours if tag in row]
        assert np.array_equal([f[:2] for f in found], want, equal_nan=True), tag
    assert all(f[2] > 1.7e9 for f in read["lr"])


def test_tensorboard_forgets_the_steps_that_a_resumed_run_does_again(tmp_path):
    write(tmp_path / "a", range(10))
    write(tmp_path / "a", range(6, 12), resume=True)
    assert [f[0] for f in tensorboard(tmp_path / "a")["lr"]] == list(range(12))
    assert [row["step"] for row in lines(tmp_path / "a")] == list(range(12))


def test_csv_and_json_lines(tmp_path):
    write(tmp_path / "a", range(5))
    rows = list(csv.DictReader(open(tmp_path / "a.csv")))
    assert list(rows[0]) == ["step", "time", "loss/train", "lr", "accuracy", "worst", "best"]
    assert [float(r["loss/train"]) for r in rows] == [np.float32(1.0 / (s + 1)) for s in range(5)]
    assert (rows[0]["worst"], rows[3]["worst"], rows[3]["best"]) == ("", "nan", "inf")
    assert lines(tmp_path / "a")[3]["worst"] == "NaN" and float(lines(tmp_path / "a")[3]["best"]) == math.inf


def test_a_value_is_that_of_the_call(tmp_path):
    x = flow.tensor([1.0])
    shared = np.ones(1, np.float32)
    of_numpy = flow.from_numpy(shared)
    with Log(tmp_path / "a", formats="jsonl") as log:
        log.log(0, x=x, n=of_numpy)
        x.add_(1)
        shared[0] = 5
        log.log(1, x=x, n=of_numpy)
    assert lines(tmp_path / "a") == [{"step": 0, "x": 1.0, "n": 1.0}, {"step": 1, "x": 2.0, "n": 5.0}]


def test_dtypes(tmp_path):
    values = {str(d): flow.tensor(1).to(d) for d in (flow.int8, flow.int64, flow.uint8, flow.bool, flow.float16, flow.bfloat16, flow.float64)}
    with Log(tmp_path / "a", formats=["jsonl"]) as log:
        log.log(0, values, true=True, whole=7)
    assert lines(tmp_path / "a") == [{"step": 0, **dict.fromkeys(values, 1.0), "true": 1.0, "whole": 7.0}]


def test_what_is_refused(tmp_path):
    log = Log(tmp_path / "a")
    for error, text, call in (
        (flow.ShapeError, "takes one number", lambda: log.log(0, x=flow.ones(2))),
        (flow.DTypeError, "takes real numbers", lambda: log.log(0, x=flow.tensor(1j))),
        (TypeError, "'x' is a str", lambda: log.log(0, x="1")),
        (TypeError, "'x' is a NoneType", lambda: log.log(0, x=None)),
        (TypeError, "as a dict or by name", lambda: log.log(0, [1.0])),
        (TypeError, "is a string, not 3", lambda: log.log(0, {3: 1.0})),
        (TypeError, "integer", lambda: log.log("0", x=1.0)),
        (TypeError, "integer", lambda: log.log(0.5, x=1.0)),
        (ValueError, "given twice", lambda: log.log(0, {"x": 1.0}, x=2.0)),
        (ValueError, "counted from 0", lambda: log.log(-1, x=1.0)),
        (OverflowError, "too big", lambda: log.log(1 << 70, x=1.0)),
        (flow.ArgumentError, "every log has", lambda: log.log(0, {"time": 1.0})),
        (flow.ArgumentError, "another run", lambda: Log(tmp_path / "a")),
        (flow.ArgumentError, 'no format "xml"', lambda: Log(tmp_path / "b", formats=["xml"])),
        (flow.ArgumentError, "over ranks", lambda: Log(tmp_path / "b", over_ranks="median")),
    ):
        with pytest.raises(error, match=text):
            call()
    log.close()
    with pytest.raises(flow.ArgumentError, match="is closed"):
        log.log(0, x=1.0)
    assert (tmp_path / "a.jsonl").read_text() == ""


def test_log_is_the_logarithm_too(tmp_path):
    x = flow.tensor([1.0, math.e])
    assert np.allclose(flow.log(x).tolist(), [0, 1]) and np.allclose(flow.log(input=x).tolist(), [0, 1])
    out = flow.zeros(2)
    assert flow.log(x, out=out) is out
    log = Log(tmp_path / "a", formats=["jsonl"])
    log.install()
    flow.log(np.int64(2), {"out": 3}, x=4.0)
    flow.metrics.flush_log()
    assert lines(tmp_path / "a") == [{"step": 2, "out": 3.0, "x": 4.0}]


RANKS = """
import oflow

world = oflow.placement.all("cpu")
for step in range(13):
    local = oflow.tensor([float(step + 1)])
    loss = (oflow.ones(4, placement=world, sbp="S(0)") * (step + 1)).sum()
    oflow.log(step, {"loss": loss, "local": local * (oflow.rank() + 1)})
    if oflow.rank() == 0:
        oflow.log(step, lr=0.5)
    if step == 11:
        oflow.barrier()
    if oflow.rank() == 1 and END == "exception" and step == 11:
        raise RuntimeError("of rank 1")
"""


def test_two_ranks_and_the_end_of_a_program(tmp_path):
    (tmp_path / "program.py").write_text(RANKS.replace("END", "''"))
    job = Job(tmp_path, "--nproc", 2, "program.py")
    job.finish()
    assert job.process.returncode == 0, job.err
    assert lines(tmp_path / "run/1") == [{"step": s, "loss": 4.0 * (s + 1), "local": s + 1.0, "lr": 0.5} for s in range(13)]
    assert [e for e in events(tmp_path / "run/1") if e[0] == "loss"] == [("loss", s, 4.0 * (s + 1)) for s in range(13)]


def test_an_exception_is_not_hidden_by_the_flush_at_the_end(tmp_path):
    (tmp_path / "program.py").write_text(RANKS.replace("END", "'exception'"))
    job = Job(tmp_path, "--nproc", 2, "program.py")
    job.finish()
    assert job.process.returncode != 0 and "RuntimeError: of rank 1" in job.err
    assert [row["step"] for row in lines(tmp_path / "run/1") if "loss" in row] == list(range(10))
