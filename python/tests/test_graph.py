"""Functions captured as graphs: the bits of the function, and errors at its lines."""

import numpy as np
import oflow as flow
import oflow.nn.functional as F
import pytest
from oflow import nn


def here():
    """The line after the caller's."""
    import sys

    return sys._getframe(1).f_lineno + 1


def batch(n):
    rng = np.random.default_rng(n)
    return flow.tensor(rng.standard_normal((8, 6)), dtype=flow.float32), flow.tensor(rng.integers(0, 4, 8))


def trained(captured, scaled):
    flow.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 4))
    opt = flow.optim.AdamW(model.parameters(), lr=0.1)
    scaler = flow.optim.GradScaler(init_scale=2.0**30)

    def step(x, y):
        with flow.autocast(flow.float16, enabled=scaled):
            logits = model(x)
        loss = F.cross_entropy(logits, y)
        opt.zero_grad()
        if scaled:
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        else:
            loss.backward()
            opt.step()
        return loss

    run = flow.graph(step) if captured else step
    losses = []
    for n in range(6):
        for group in opt.param_groups:
            group["lr"] = 0.1 / (1 + n)
        losses.append(run(*batch(n)).item())
    return losses, [p.numpy().tolist() for p in (q.detach() for q in model.parameters())], scaler.get_scale()


@pytest.mark.parametrize("scaled", [False, True])
def test_a_step_has_the_same_bits(scaled):
    assert trained(True, scaled) == trained(False, scaled)


def test_arguments_and_results_have_structure():
    calls = []

    @flow.graph
    def f(pair, scale=2.0, *, more=None):
        calls.append(scale)
        a, b = pair
        made = {"sum": a + b, "scaled": [a * scale]}
        if more is not None:
            made["more"] = more["x"] - a
        return made, scale

    x, y = flow.ones(3), flow.arange(3).to(flow.float32)
    made, scale = f((x, y))
    assert made["sum"].tolist() == [1, 2, 3] and made["scaled"][0].tolist() == [2, 2, 2] and scale == 2.0
    assert f((y, x))[0]["scaled"][0].tolist() == [0, 2, 4] and calls == [2.0]
    assert f((x, y), 3.0)[0]["scaled"][0].tolist() == [3, 3, 3] and calls == [2.0, 3.0]
    assert f((x, y), more={"x": y})[0]["more"].tolist() == [-1, 0, 1]
    f((flow.ones(4), flow.ones(4)))
    assert calls == [2.0, 3.0, 2.0, 2.0]
    assert f.__name__ == "f"
    assert all(name in f.explain() for name in ['input %0 "pair.0"', 'input %1 "pair.1"']), f.explain()
    assert f((x, x), more={"x": y})[0]["more"].tolist() == [-1, 0, 1] and '"more.x"' in f.explain()


def test_equal_numbers_of_other_kinds_are_other_arguments():
    @flow.graph
    def f(x, by):
        return x * by

    x = flow.tensor([1, 2])
    assert f(x, 1).dtype is flow.int64 and f(x, 1.0).dtype is flow.float32 and f(x, True).dtype is flow.int64
    y = flow.ones(1)
    assert [np.signbit(f(y, by).item()) for by in (0.0, -0.0, 0.0)] == [False, True, False]


def test_an_input_has_no_gradient():
    f = flow.graph(lambda x: (x * 2).sum())
    x = flow.ones(2, requires_grad=True)
    with pytest.raises(flow.AutogradError, match="requires a gradient, which a graph does not compute for inputs"):
        f(x)
    f(x.detach())
    with pytest.raises(flow.AutogradError, match="does not compute for inputs"):
        f(x)
    with flow.no_grad():
        assert f(x).item() == 4


def test_modes_are_part_of_what_is_captured():
    w = flow.ones(2, requires_grad=True)
    calls = []

    @flow.graph
    def f(x):
        calls.append(flow.is_grad_enabled())
        return (x * w).sum()

    x = flow.ones(2)
    f(x)
    with flow.no_grad():
        f(x)
    f(x)
    assert calls == [True, False]


def test_few_graphs_are_kept():
    @flow.graph
    def f(x):
        return x + 1

    for n in range(2, 30):
        assert f(flow.ones(n)).shape == (n,)
    assert f.explain().count("return") == 8


def test_methods_are_captured_with_their_object():
    class Step:
        def __init__(self):
            self.total = flow.zeros(2)

        @flow.graph
        def add(self, x):
            with flow.no_grad():
                self.total.add_(x)
            return self.total * 1

    step = Step()
    step.add(flow.ones(2))
    assert step.add(flow.ones(2)).tolist() == [2, 2] and step.total.tolist() == [2, 2]


def refused(function, error, words):
    x = flow.ones(3)
    with pytest.raises(error) as e:
        flow.graph(function)(x)
    assert words in str(e.value), e.value
    return e.value


def test_reading_is_an_error_at_its_line():
    line = here() + 2

    def item(x):
        return x * x.sum().item()

    e = refused(item, flow.UnsupportedError, "has no value while its graph is captured")
    assert e.site == (__file__, line)
    refused(lambda x: x if (x > 0).all() else -x, flow.UnsupportedError, "has no value while its graph is captured")
    refused(lambda x: flow.from_numpy(x.numpy()), flow.UnsupportedError, "has no value while its graph is captured")
    refused(lambda x: x * x.data_ptr(), flow.UnsupportedError, "has no value while its graph is captured")
    refused(lambda x: x.tolist(), flow.UnsupportedError, "has no value while its graph is captured")
    refused(lambda x: flow.nonzero(x), flow.UnsupportedError, "depends on values")
    refused(lambda x: 1 / 0, ZeroDivisionError, "division")
    refused(lambda x: x @ flow.ones(4, 4), flow.ShapeError, "inner dims differ: 3 and 4")


def test_what_cannot_be_a_key_is_said():
    with pytest.raises(TypeError, match="must be hashable: b is not"):
        flow.graph(lambda a, b: a)(flow.ones(2), np.ones(2))


def test_a_failed_capture_changes_nothing():
    w = flow.ones(2, requires_grad=True)
    (w * 3).sum().backward()
    opt = flow.optim.SGD([w], lr=0.5, momentum=0.9)

    @flow.graph
    def step(x):
        opt.zero_grad()
        (w * x).sum().backward()
        opt.step()
        raise ValueError("no")

    with pytest.raises(ValueError):
        step(flow.ones(2))
    assert w.tolist() == [1, 1] and w.grad.tolist() == [3, 3] and w.requires_grad


def test_numbers_of_python_become_tensors():
    @flow.graph
    def f(x):
        return x + flow.tensor([1.0, 2.0]) + x[[1, 0]]

    assert f(flow.tensor([10.0, 20.0])).tolist() == [31, 32]
    assert f(flow.tensor([1.0, 2.0])).tolist() == [4, 5]


@pytest.mark.parametrize("captured", [False, True])
def test_a_scan_is_a_loop_of_calls(captured):
    calls = []

    def step(x, more):
        def body(carried, parts):
            calls.append(1)
            h, (total, _) = carried
            h = (h * 0.5 + parts["x"]).tanh()
            return (h, (total + h.sum(), h)), {"h": h, "more": [parts["more"] * 2.0]}

        begin = flow.zeros(3)
        return flow.scan(body, (begin, (flow.zeros(()), begin)), {"x": x, "more": more})

    x, more = flow.arange(12, dtype=flow.float32).reshape(4, 3), flow.ones(4)
    run = flow.graph(step) if captured else step
    for _ in range(2):
        (h, (total, last)), out = run(x, more)
    want, sums = np.zeros(3, np.float32), np.float32(0)
    rows = []
    for row in x.numpy():
        want = np.tanh(want * np.float32(0.5) + row)
        rows.append(want)
        sums += want.sum()
    np.testing.assert_allclose(out["h"].numpy(), rows, rtol=1e-6)
    np.testing.assert_allclose(total.item(), sums, rtol=1e-6)
    assert h.tolist() == last.tolist() == out["h"][-1].tolist() and out["more"][0].tolist() == [2.0] * 4
    assert len(calls) == (1 if captured else 8)


def test_gradients_accumulate_in_a_scan():
    def accumulated(captured):
        flow.manual_seed(5)
        model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 4))
        opt = flow.optim.AdamW(model.parameters(), lr=0.1)

        def step(x, y):
            def part(carried, parts):
                loss = F.cross_entropy(model(parts[0]), parts[1]) / 3
                loss.backward()
                return carried, loss.detach()

            opt.zero_grad()
            _, losses = flow.scan(part, xs=(x, y))
            opt.step()
            return losses

        run = flow.graph(step) if captured else step
        losses = []
        for n in range(3):
            parts = [batch(3 * n + k) for k in range(3)]
            losses.append(run(flow.stack([x for x, _ in parts]), flow.stack([y for _, y in parts])).tolist())
        return losses, [p.detach().tolist() for p in model.parameters()]

    assert accumulated(True) == accumulated(False)


def test_a_scan_says_what_it_cannot_do():
    with pytest.raises(TypeError, match="give length"):
        flow.scan(lambda c, x: (c, None), flow.ones(2))
    with pytest.raises(TypeError, match="another structure"):
        flow.scan(lambda c, x: ((c, c), None), flow.ones(2), length=2)
    with pytest.raises(flow.Error, match="its next value is"):
        flow.graph(lambda x: flow.scan(lambda c, _: (c.sum(), None), x, length=2))(flow.ones(2))
    with pytest.raises(flow.Error, match="no slice along dim 0 for each of the 2 iterations"):
        flow.scan(lambda c, x: (c, x), xs=flow.ones(3), length=2)
    carried, collected = flow.scan(lambda c, x: (c, None), flow.ones(2), length=0)
    assert carried.tolist() == [1.0, 1.0] and collected is None
