"""Sessions: the bits of the loop that they stand for, sources on threads, values behind the runs, errors at lines of Python."""

import gc
import threading
import time
import traceback

import oflow as flow
import oflow.nn.functional as F
import pytest
from oflow import nn


def here():
    """The line after the caller's."""
    import sys

    return sys._getframe(1).f_lineno + 1


def loader():
    x = [[(i * 7 + j * 5) % 13 / 13 for j in range(6)] for i in range(19)]
    y = [i * 3 % 4 for i in range(19)]
    return flow.data.Loader([x, y], flow.placement.all("cpu"), 8, split_along=0, seed=3)


class Training:
    def __init__(self):
        flow.manual_seed(3)
        mesh = flow.placement.all("cpu")
        self.model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 4))
        self.model.to_global(placement=mesh, sbp=flow.sbp.broadcast)
        self.opt = flow.optim.AdamW(self.model.parameters(), lr=0.05)

    def step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return {"loss": loss}

    def weights(self):
        return [p.detach().to_local().tolist() for p in self.model.parameters()]


def looped(steps):
    t, batches = Training(), loader().stream()
    losses = [t.step(*next(batches))["loss"].item() for _ in range(steps)]
    return losses, t.weights()


def test_a_session_trains_with_the_bits_of_the_loop():
    t = Training()
    session = flow.Session(t.step, runs_per_call=2)
    session.feed(["x", "y"], loader().stream())
    session.fetch("loss")
    read = []
    for n in range(5):
        session.run()
        ready = session.fetched("loss")
        assert [run for run, _ in ready] == list(range(max(2 * n - 1, 0), 2 * n + 1)), "behind by one run"
        read += ready
    session.finish()
    read += session.fetched("loss")
    assert [run for run, _ in read] == list(range(10)) and session.runs == 10 and session.run() is None
    assert ([loss.item() for _, loss in read], t.weights()) == looped(10)
    assert session.explain().count("return") == 2, "one graph for each size of a batch"
    assert session.graph.plan.kernels > 0


def test_a_stream_has_the_position_of_the_runs(tmp_path):
    def part(session, begin, end):
        t, batches = Training(), loader().stream()
        manager = flow.checkpoint.CheckpointManager(tmp_path / f"{session}", keep=1)
        state = {"model": t.model, "opt": t.opt, "data": batches}
        if session:
            run = flow.Session(t.step, ahead=3)
            run.feed(["x", "y"], batches)
            if begin:
                # What was made ahead is dropped when a checkpoint is loaded.
                run.run()
        if begin:
            assert manager.load_latest(state) == begin
        for _ in range(begin, end):
            run.run() if session else t.step(*next(batches))
        manager.save(end, state)
        return t.weights(), (batches.epoch, batches.batch)

    for session in (False, True):
        part(session, 0, 4)
        assert part(session, 4, 10) == (looped(10)[1], (3, 1))


def test_training_and_evaluation_share_their_variables():
    w, more = flow.zeros(2, requires_grad=True), flow.zeros(2)

    def grow(x):
        with flow.no_grad():
            w.add_(x)
            more.add_(x)
        return {"w": w}

    train = flow.Session(grow)
    train.fetch("w", every=2)
    evaluate = flow.Session(lambda x: (w * x).sum() + more.sum() * 0, variables=[more])
    seen = []
    for _ in range(4):
        train.run(x=flow.ones(2))
        seen.append(evaluate.run(x=flow.ones(2)).item())
    train.finish()
    assert seen == [2, 4, 6, 8] and [(n, v.tolist()) for n, v in train.fetched("w")] == [(0, [1, 1]), (2, [3, 3])]


def numbers(n):
    return (flow.ones(2) * i for i in range(n))


def test_a_session_ends_with_its_first_source():
    session = flow.Session(lambda x, y, scale=2.0: (x + y) * scale)
    session.feed("x", numbers(3))
    session.feed(["y"], numbers(9))
    assert [r.tolist() for r in session] == [[0, 0], [4, 4], [8, 8]] and session.ended
    assert session.run() is None and list(session) == []


def test_what_does_not_fit_is_an_error():
    def refused(words, call, *args, **kwargs):
        with pytest.raises(flow.ArgumentError, match=words):
            call(*args, **kwargs)

    x = flow.ones(2)
    session = flow.Session(lambda x, y: {"loss": x + y})
    session.feed("x", numbers(9))
    refused("input 'x' has a source already", session.feed, ["x"], numbers(2))
    refused("the step has no input 'z'; its inputs are 'x', 'y'", session.feed, "z", numbers(2))
    refused("input 'y' of the step has no source and is not given", session.run)
    refused("the step has no input 'z'", session.run, z=x, y=x)
    refused("input 'x' is given, and has a source", session.run, x=x, y=x)
    refused("every 0 runs", session.fetch, "loss", 0)
    refused("'loss' is not fetched", session.fetched, "loss")
    session.fetch("lost")
    refused("fetched already", session.fetch, "lost")
    refused("returns no tensor 'lost', which is fetched; it returns 'loss'", session.run, y=x)
    refused("runs_per_call is at least 1, not 0", flow.Session, lambda x: x, runs_per_call=0)

    def fed(items, names="x"):
        session = flow.Session(lambda x, y=None: x * 2)
        session.feed(names, items)
        return session

    refused("the source of 'x' gave a list for 'x', not a tensor", fed(iter([[1, 2]])).run)
    refused("the source of 'x', 'y' gave 1 tensors for 2 inputs", fed(iter([(x,)]), ["x", "y"]).run)


def test_an_error_of_a_source_comes_out_at_a_run_with_its_line():
    line = here() + 3

    def rows():
        yield flow.ones(2)
        yield flow.ones(2) + flow.ones(3)

    session = flow.Session(lambda x: x * 2)
    session.feed("x", rows())
    assert session.run().tolist() == [2, 2]
    with pytest.raises(flow.ShapeError) as e:
        session.run()
    assert e.value.site == (__file__, line)
    assert any(frame.name == "rows" for frame in traceback.extract_tb(e.value.__traceback__))
    with pytest.raises(flow.ArgumentError, match="the source of 'x' has failed before"):
        session.run()

    def bad():
        raise KeyError("row 3")
        yield

    session = flow.Session(lambda x: x)
    session.feed("x", bad())
    with pytest.raises(KeyError, match="row 3"):
        session.run()


def test_a_source_makes_no_calls_that_have_a_place_in_an_order():
    mesh = flow.placement.all("cpu")
    for make, words in [
        (lambda: flow.ones(4, placement=mesh, sbp="S(0)"), "makes no calls on global tensors"),
        (lambda: flow.ones(4).to_global(placement=mesh, sbp="B"), "makes no calls on global tensors"),
        (lambda: flow.rand(4), "does not draw from the generators of the rank"),
    ]:
        session = flow.Session(lambda x: x)
        session.feed("x", (make() for _ in range(2)))
        with pytest.raises(flow.ContextError, match=words):
            session.run()
    own = flow.Generator()
    session = flow.Session(lambda x: flow.distribute(x, placement=mesh, sbp="S(0)") * 2)
    session.feed("x", (flow.rand(4, generator=own) for _ in range(2)))
    assert session.run().is_global
    session.finish()


@pytest.mark.parametrize("dropped", [False, True])
def test_a_session_that_ends_stops_its_threads(dropped):
    made = []

    def rows():
        while True:
            made.append(len(made))
            yield flow.ones(2)

    session = flow.Session(lambda x: x, ahead=3)
    session.feed("x", rows())
    assert made == [], "a source is asked from the first run on"
    session.run()
    end = time.monotonic() + 20
    while len(made) < 5 and time.monotonic() < end:
        time.sleep(0.001)
    time.sleep(0.05)
    # One that is taken, three that wait, one that is made.
    assert len(made) == 5
    if dropped:
        del session
        gc.collect()
    else:
        session.finish()
    assert not any(t.name == "feed x" for t in threading.enumerate())


def test_passes_have_switches():
    def f(x):
        return flow.cumsum(flow.relu(x) + flow.relu(x), 0) - flow.tensor([0.0, 2.0])

    def nodes(**switches):
        g = flow.graph(**switches)(f) if switches else flow.graph(f)
        assert g.plan is None
        assert g(flow.ones(2)).tolist() == [2, 2]
        plan = g.plan
        assert plan.kernels > 0 and plan.arenas[0].device == "cpu" and plan.arenas[0].bytes >= plan.arenas[0].bound
        return g.explain().count("= oflow.")

    # The two functions before the sum are one call, and equal calls are one.
    assert nodes() == nodes(passes=True) == nodes(passes={"common": True}) == 4
    assert nodes(passes={"fuse": False}) == 5
    assert nodes(passes=False) == nodes(passes={"common": False, "fuse": False}) == 6
    with pytest.raises(flow.ArgumentError, match="pass \"fusion\" does not exist"):
        nodes(passes={"fusion": False})
    session = flow.Session(f, passes={"common": False, "fuse": False})
    session.run(x=flow.ones(2))
    assert session.explain().count("= oflow.") == 6


def test_memory_is_bounded():
    model = flow.nn.Sequential(*[flow.nn.Linear(32, 32) for _ in range(8)])
    opt = flow.optim.AdamW(model.parameters())

    def step(x):
        for layer in model:
            x = layer(x).gelu()
        loss = x.square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    x = flow.ones(256, 32)

    def peak(memory):
        g = flow.graph(memory=memory)(step)
        assert g(x).shape == ()
        assert g.plan.peak > g.plan.outside > 0
        return g.plan.peak

    kept, least = peak(1 << 40), peak("least")
    middle = (kept + least) // 2
    assert least <= peak(middle) <= middle < kept
    with pytest.raises(flow.ArgumentError, match="cannot keep to"):
        peak(least // 2)
    with pytest.raises(flow.ArgumentError, match="a graph cannot take"):
        peak("much")
