"""Checkpoints and files of tensors: what is saved, what is refused, and the exchange with Rust programs."""

import json
import math

import numpy as np
import oflow as flow
import pytest
from jobs import run
from oflow import nn
from oflow.checkpoint import Checkpoint, CheckpointManager
from oflow.data import Loader
from oflow.optim import AdamW, GradScaler, lr_scheduler


@pytest.fixture
def mesh():
    return flow.placement.all("cpu")


class Training:
    """All that a training saves."""

    def __init__(self, mesh, seed):
        flow.manual_seed(seed)
        self.net = nn.Sequential(nn.Linear(3, 4, placement=mesh, sbp="B"), nn.Dropout(0.5), nn.Linear(4, 2, placement=mesh, sbp="B"))
        self.net[2].register_buffer("seen", flow.zeros(1, placement=mesh, sbp="B"))
        self.opt = AdamW([{"params": self.net[0].parameters()}, {"params": self.net[2].parameters(), "lr": 0.02}], lr=0.1)
        self.schedule = lr_scheduler.StepLR(self.opt, 2, 0.5)
        columns = [np.arange(33, dtype=np.float32).reshape(11, 3) / 10, np.arange(11) % 2]
        self.batches = Loader(columns, mesh, 4, seed=7).stream()
        self.scaler = GradScaler(init_scale=4.0)
        self.more = {"losses": [], "mean": flow.zeros(2, placement=mesh, sbp="B")}

    def state(self):
        return {
            "model": self.net, "opt": self.opt, "schedule": self.schedule, "data": self.batches, "scaler": self.scaler, "more": self.more,
        }  # fmt: skip

    def step(self):
        x, y = next(self.batches)
        loss = flow.cross_entropy(self.net(x), y)
        self.opt.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
        self.schedule.step()
        self.more["losses"].append(loss.item())
        self.more["mean"].copy_(flow.full_like(self.more["mean"], loss.item()))
        self.net[2].seen.add_(1.0)


@pytest.mark.parametrize("behind", [False, True])
def test_a_training_goes_on_as_if_it_had_not_stopped(folder, mesh, behind):
    whole = Training(mesh, 1)
    manager = CheckpointManager(folder / "runs", keep=1)
    for i in range(6):
        if i == 3:
            (manager.save_async if behind else manager.save)(3, whole.state())
        whole.step()
    manager.finish()
    again = Training(mesh, 2)
    assert CheckpointManager(folder / "runs").load_latest(again.state()) == 3
    assert again.more["losses"] == whole.more["losses"][:3] and again.schedule.last_epoch == 3
    for _ in range(3):
        again.step()
    assert again.more["losses"] == whole.more["losses"]
    assert all(p.tolist() == q.tolist() for p, q in zip(again.net.parameters(), whole.net.parameters()))
    assert [g["lr"] for g in again.opt.param_groups] == [g["lr"] for g in whole.opt.param_groups]
    assert again.net[2].seen.tolist() == [6.0] and again.more["mean"].tolist() == whole.more["mean"].tolist()
    saved = Checkpoint(folder / "runs/step-000003")
    assert saved.step == 3 and saved.tensors()["model.0.weight"] == ((4, 3), "F32")
    assert saved.values()["data.row"] == 11 and saved.world == flow.world_size()
    saved.verify()


def test_what_no_checkpoint_takes(folder, mesh):
    net, manager = nn.Linear(2, 2, placement=mesh, sbp="B"), CheckpointManager(folder / "c")
    for state, kind, text in (
        ([net], TypeError, "dict of sections"),
        ({"w": flow.ones(1)}, TypeError, "a section is a dict"),
        ({"w": 3}, TypeError, "no state to save"),
        ({3: net}, TypeError, "a string"),
        ({"a": net, "b": net}, ValueError, "another section already"),
        ({"a": {"x": object()}}, TypeError, "'x' of 'a' cannot be saved in a checkpoint: expected None, bools, .* got builtins.object"),
    ):
        with pytest.raises(kind, match=text):
            manager.save(1, state)
    assert manager.load_latest({"model": net}) is None
    with pytest.raises(flow.Error, match="step-000004 does not exist"):
        manager.load_step(4, {"model": net})
    manager.save(1, {"model": net, "more": {"loss": math.nan, "n": np.int64(3)}})
    other = nn.Linear(2, 3, placement=mesh, sbp="B")
    before = other.weight.tolist()
    with pytest.raises(flow.Error, match="model"):
        manager.load_latest({"model": other})
    assert other.weight.tolist() == before
    more = {"loss": 1.0, "n": 0}
    manager.load_latest({"more": more})
    assert math.isnan(more["loss"]) and more["n"] == 3 and type(more["n"]) is np.int64
    saved = Checkpoint(folder / "c/step-000001")
    with pytest.raises(flow.Error, match="extra"):
        saved.load({"more": {"extra": 1}})
    missing, unexpected = saved.load({"more": {"extra": 1}}, strict=False)
    assert missing == ["more.extra"] and sorted(unexpected) == ["more.loss", "more.n"]
    manager.finish()
    manager.finish()
    with pytest.raises(flow.Error, match="has been finished"):
        manager.save(2, {"model": net})


def test_files_of_tensors(folder, mesh):
    file = folder / "model.safetensors"
    layout = {"placement": mesh, "sbp": "B"}
    net = nn.Sequential(nn.Linear(3, 2, **layout), nn.Linear(2, 2, bias=False, **layout))
    flow.save(net, file)
    assert {n: t.tolist() for n, t in flow.load(file).items()} == {n: p.tolist() for n, p in net.named_parameters()}
    flow.save({"x": flow.tensor([[1, 2], [3, 4]], placement=mesh, sbp="S(0)"), "y": flow.ones(2, dtype=flow.bfloat16, **layout)}, file)
    found = flow.load(file, placement=mesh, sbp="B")
    assert found["x"].is_global and found["x"].tolist() == [[1, 2], [3, 4]] and found["y"].dtype is flow.bfloat16
    assert Checkpoint(file).tensor("x", device="cpu").tolist() == [[1, 2], [3, 4]]
    for call, kind in (
        (lambda: flow.save([1], file), TypeError),
        (lambda: flow.save({"x": 1}, file), TypeError),
        (lambda: flow.save({"x": {"y": flow.ones(1)}}, file), TypeError),
        (lambda: flow.save({"x": flow.ones(1)}, folder / "none" / "file"), flow.StorageError),
        (lambda: flow.load(folder / "none"), flow.Error),
        (lambda: flow.load(file, placement=mesh), TypeError),
        (lambda: flow.load(file, device="cpu", placement=mesh, sbp="B"), TypeError),
        (lambda: Checkpoint(file).tensor("z"), flow.Error),
    ):
        with pytest.raises(kind):
            call()
    safetensors = pytest.importorskip("safetensors.numpy")
    assert safetensors.load_file(str(file))["x"].tolist() == [[1, 2], [3, 4]]


def test_the_order_of_rows_is_that_of_the_seed(mesh):
    loader = Loader([list(range(10))], mesh, 4, seed=3)
    assert len(loader) == 3 and loader.rows == 10
    epochs = [[batch[0].tolist() for batch in loader.epoch(e)] for e in range(2)]
    assert [len(b) for b in epochs[0]] == [4, 4, 2] and sorted(sum(epochs[1], [])) == list(range(10)) and epochs[0] != epochs[1]
    stream = loader.stream()
    assert [next(stream)[0].tolist() for _ in range(6)] == epochs[0] + epochs[1]
    assert stream.epoch == 1 and stream.at_end_of_epoch
    assert [b.tolist() for (b,) in Loader([list(range(5))], mesh, 2, drop_last=True)] == [[0, 1], [2, 3]]
    for columns, batch in (([], 2), ([[1, 2], [1]], 2), ([[1, 2]], 0), ([3.0], 2)):
        with pytest.raises((ValueError, flow.Error)):
            Loader(columns, mesh, batch)
    with pytest.raises(flow.Error, match="axis"):
        Loader([[1, 2]], mesh, 2, split_along="dp")


def test_each_for_loop_over_a_loader_is_the_next_epoch(mesh):
    loader = Loader([list(range(10))], mesh, 4, seed=3)
    loops = [[batch.tolist() for (batch,) in loader] for _ in range(4)]
    assert loops == [[batch.tolist() for (batch,) in loader.epoch(e)] for e in range(4)]
    assert all(sorted(sum(rows, [])) == list(range(10)) for rows in loops) and len({str(rows) for rows in loops}) == 4
    # A loop that is left early was an epoch too; another loader of the same seed begins again.
    for _ in loader:
        break
    assert [b.tolist() for (b,) in loader] == [b.tolist() for (b,) in loader.epoch(5)]
    assert [b.tolist() for (b,) in Loader([list(range(10))], mesh, 4, seed=3)] == loops[0]


def test_a_save_that_runs_when_the_program_ends_is_waited_for_under_oflaunch(tmp_path):
    text = """
import oflow
from oflow import nn
from oflow.checkpoint import CheckpointManager
mesh = oflow.placement.all("cpu")
net = nn.Linear(300, 300, placement=mesh, sbp="S(0)")
CheckpointManager("runs").save_async(5, {"model": net})
manager = CheckpointManager("kept")
manager.save_async(6, {"model": net})
"""
    job = run(tmp_path, text)
    assert job.code == 0, job.err
    assert (tmp_path / "kept/step-000006/manifest.json").exists()


def test_ranks_save_and_other_numbers_of_ranks_load_under_oflaunch(tmp_path):
    text = """
import oflow, sys
from oflow import nn
from oflow.checkpoint import CheckpointManager
mesh, rule = oflow.placement.all("cpu"), sys.argv[2]
oflow.manual_seed(int(sys.argv[1]))
net = nn.Linear(5, 7, placement=mesh, sbp="B").to_global(mesh, rules={"weight": rule})
opt = oflow.optim.AdamW(net.parameters(), lr=0.1)
manager = CheckpointManager("runs")
step = manager.load_latest({"model": net, "opt": opt}) or 0
oflow.manual_seed(9)
opt.zero_grad()
net(oflow.randn((4, 5), placement=mesh, sbp="B")).square().mean().backward()
opt.step()
manager.save(step + 1, {"model": net, "opt": opt})
manager.finish()
if oflow.rank() == 0:
    print(step)
whole = net.weight.to_global(sbp="B").to_local()
if oflow.rank() == 0:
    print([round(v, 5) for row in whole.tolist() for v in row])
"""
    results = []
    for ranks in ((1, "B"), (3, "S(0)"), (2, "S(1)")):
        job = run(tmp_path, text, ranks=ranks[0], args=(1 if not results else 2, ranks[1]))
        assert job.code == 0, job.err
        step, values = [line.removeprefix("[rank 0] ") for line in job.out.splitlines()]
        assert int(step) == len(results)
        results.append(json.loads(values))
    alone = []
    other = tmp_path / "alone"
    other.mkdir()
    for i in range(3):
        job = run(other, text, ranks=1, args=(1, "B"))
        alone.append(json.loads(job.out.splitlines()[1]))
    np.testing.assert_allclose(results, alone, atol=2e-5)
