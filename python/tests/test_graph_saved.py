"""Graphs that are saved and loaded: the bits of the function, and what differs is refused."""

import numpy as np
import oflow as flow
import oflow.nn.functional as F
import pytest
from oflow import nn


def batch(n):
    rng = np.random.default_rng(n)
    return flow.tensor(rng.standard_normal((8, 6)), dtype=flow.float32), flow.tensor(rng.integers(0, 4, 8))


class Job:
    def __init__(self, width=12):
        flow.manual_seed(3)
        self.model = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 4))
        self.opt = flow.optim.AdamW(self.model.parameters(), lr=0.1)
        self.scaler = flow.optim.GradScaler(init_scale=2.0**10)

    def step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        self.opt.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
        return loss

    @property
    def state(self):
        return {"model": self.model, "opt": self.opt, "scaler": self.scaler}

    def trained(self, run):
        losses = []
        for n in range(5):
            for group in self.opt.param_groups:
                group["lr"] = 0.1 / (1 + n)
            losses.append(run(*batch(n)).item())
        return losses, [p.detach().numpy().tolist() for p in self.model.parameters()]


def test_a_loaded_graph_has_the_bits_of_the_function(tmp_path):
    job = Job()
    want = job.trained(job.step)
    job = Job()
    graph = flow.graph(job.step)
    with pytest.raises(ValueError, match="call it first"):
        graph.save(tmp_path, job.state)
    assert job.trained(graph) == want
    graph.save(tmp_path, job.state)
    job = Job()
    loaded = flow.load_graph(tmp_path, job.state)
    assert loaded.inputs == ("x", "y")
    assert job.trained(loaded) == want
    assert "adamw_many" in loaded.explain()
    job = Job()
    loaded = flow.load_graph(tmp_path, job.state)
    assert job.trained(lambda x, y: loaded(y=y, x=x)) == want


def test_averages_and_generators_are_sections(tmp_path):
    def made():
        flow.manual_seed(5)
        model = nn.Linear(6, 4)
        opt = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        ema, noise = flow.optim.EMA(model.parameters(), decay=0.5), flow.Generator(7)

        def step(x, y):
            loss = F.cross_entropy(model(x + flow.rand(8, 6, generator=noise)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update()
            return loss

        return step, {"model": model, "opt": opt, "ema": ema, "noise": noise}

    def trained(run, state):
        losses = [run(*batch(n)).item() for n in range(4)]
        means = [t.numpy().tolist() for t in state["ema"].averages]
        return losses, means, state["ema"].updates, flow.rand(2, generator=state["noise"]).tolist()

    step, state = made()
    want = trained(step, state)
    step, state = made()
    graph = flow.graph(step)
    assert trained(graph, state) == want
    with pytest.raises(flow.ArgumentError, match="add the optimizer, scaler or average"):
        graph.save(tmp_path, {**state, "ema": {str(i): t for i, t in enumerate(state["ema"].averages)}})
    graph.save(tmp_path, state)
    with flow.checkpoint.CheckpointManager(tmp_path / "c") as manager:
        manager.save(1, state)
    _, state = made()
    loaded = flow.load_graph(tmp_path, state)
    assert trained(loaded, state) == want
    with flow.checkpoint.CheckpointManager(tmp_path / "c") as manager:
        assert manager.load_latest(state) == 1
    assert state["ema"].updates == 4


def test_results_are_a_tensor_or_a_tuple(tmp_path):
    x = flow.ones(3)
    for number, (function, count) in enumerate([(lambda x: x * 2, None), (lambda x: (x, x + 1), 2), (lambda x: (), 0)]):
        graph = flow.graph(function)
        graph(x)
        graph.save(tmp_path / str(number), {})
        result = flow.load_graph(tmp_path / str(number), {})(x)
        assert isinstance(result, flow.Tensor) if count is None else len(result) == count


def test_what_differs_is_refused(tmp_path):
    job = Job()
    graph = flow.graph(job.step)
    graph(*batch(0))
    with pytest.raises(flow.ArgumentError, match="does not name"):
        graph.save(tmp_path, {"model": job.model})
    graph.save(tmp_path, job.state)
    with pytest.raises(flow.ArgumentError, match=r'"model.0.weight" is f32\[10, 6\]'):
        flow.load_graph(tmp_path, Job(10).state)
    with pytest.raises(flow.ArgumentError, match='needs the tensor "model.0.weight"'):
        flow.load_graph(tmp_path, {"net": job.model})
    with pytest.raises(flow.StorageError, match="rank0.graph"):
        flow.load_graph(tmp_path / "nothing", job.state)
    loaded, (x, y) = flow.load_graph(tmp_path, job.state), batch(0)
    for args, kwargs, says in [
        ((x,), {}, "needs y"),
        ((x, y, y), {}, "2 inputs, x, y; 3 are given"),
        ((x,), {"x": y}, "'x' is given twice"),
        ((x, y), {"z": y}, "'z' does not exist"),
    ]:
        with pytest.raises(TypeError, match=says):
            loaded(*args, **kwargs)
    with pytest.raises(flow.ArgumentError, match="captured with"):
        loaded(flow.ones(9, 6), y)
    path = tmp_path / "rank0.graph"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(flow.Error, match="saved graph|damaged"):
        flow.load_graph(tmp_path, job.state)
