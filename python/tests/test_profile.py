"""Profiles and timelines."""

import collections

import pytest

import oflow


def train(steps):
    weight = oflow.randn(8, 8, requires_grad=True)
    sgd = oflow.optim.SGD([weight], lr=0.1)
    for _ in range(steps):
        with oflow.name_scope("model"):
            loss = (oflow.randn(4, 8) @ weight).relu().sum()
        sgd.zero_grad()
        loss.backward()
        sgd.step()


def test_a_profile_tells_ops_lines_and_steps():
    with oflow.profile() as p:
        train(3)
    kernels = p.rows("kernel")
    matmuls = [row for row in kernels if row.name == "matmul" and row.scope == "model"]
    assert sum(row.calls for row in matmuls) >= 3 and all(row.file.endswith("test_profile.py") for row in matmuls)
    assert all(row.seconds > 0 for row in kernels)
    assert p.steps == 3
    assert p.split.whole >= p.split.compute > 0
    assert abs(sum(p.split[1:]) - p.split.whole) < 1e-6
    text = str(p)
    assert "3 steps" in text and "kernels by op" in text
    # The tables have the rows that took longest; of a short run these differ from machine to machine.
    lines = collections.Counter()
    for row in kernels:
        lines[row.name, row.line] += row.seconds
    (name, line), _ = lines.most_common(1)[0]
    assert f"{name} at " in text and f"test_profile.py:{line} " in text
    assert p.timeline is None


def test_nothing_is_recorded_outside():
    x = oflow.ones(3)
    with oflow.profile() as p:
        pass
    x.relu()
    assert p.rows("kernel") == [] and p.steps == 0 and p.split is None
    assert "no step ended in it" in str(p)


def test_spans_and_marked_steps():
    @oflow.span("decorated")
    def work():
        return oflow.ones(2)

    with oflow.profile() as p:
        for _ in range(2):
            with oflow.span("block"):
                work()
            oflow.mark_step()
    assert {row.name: row.calls for row in p.rows("span")} == {"block": 2, "decorated": 2}
    assert p.steps == 2


def test_a_timeline_is_a_perfetto_trace(tmp_path):
    with oflow.profile(timeline=tmp_path / "run") as p:
        train(2)
    data = open(p.timeline, "rb").read()
    assert p.timeline == str(tmp_path / "run" / f"rank-{oflow.rank()}.pftrace") and data[0] == 0x0A
    trace = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace()
    trace.ParseFromString(data)
    names = {n.iid: n.name for packet in trace.packet for n in packet.interned_data.event_names}
    begun = [names[packet.track_event.name_iid] for packet in trace.packet if packet.track_event.type == 1]
    assert begun.count("backward") == 2 and begun.count("step 1") == 1
    assert len(begun) == sum(packet.track_event.type == 2 for packet in trace.packet)


def test_errors_are_told(tmp_path):
    with pytest.raises(RuntimeError, match="has not ended"):
        str(oflow.profile())
    (tmp_path / "file").write_text("")
    with pytest.raises(oflow.Error, match="file"):
        with oflow.profile(timeline=tmp_path / "file" / "inner"):
            pass
    with pytest.raises(ZeroDivisionError):
        with oflow.profile() as p:
            oflow.ones(2).relu()
            1 / 0
    assert p.rows("kernel")


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_a_data_loader_are_shown(workers):
    data = oflow.utils.data.TensorDataset(oflow.arange(24).reshape(12, 2))
    with oflow.profile() as p:
        for _ in oflow.utils.data.DataLoader(data, batch_size=4, num_workers=workers):
            pass
    rows = p.rows("data")
    counts = {row.name: row.calls for row in rows}
    assert counts["make a batch"] == 3 and counts["wait for a batch"] >= 3
    assert all(row.file.endswith("test_profile.py") for row in rows)
