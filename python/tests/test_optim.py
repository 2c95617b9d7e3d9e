"""Optimizers, clipping, scaling and schedules. Steps beside PyTorch's are in test_beside_pytorch.py."""

import json
import math

import numpy as np
import oflow as flow
import pytest
from oflow import nn
from oflow.optim import SGD, AdamW, GradScaler, Schedule, clip_grad_norm_, lr_scheduler


def leaf(*values, **options):
    return flow.tensor(list(values), requires_grad=True, **options)


def step(opt, *params):
    opt.zero_grad()
    loss = sum((p * p).sum() for p in params)
    loss.backward()
    opt.step()


def test_what_no_optimizer_takes():
    p, frozen = leaf(1.0, 2.0), flow.ones(2)
    for make, kind, text in (
        (lambda: SGD([]), ValueError, "no parameters"),
        (lambda: SGD(iter(())), ValueError, "no parameters"),
        (lambda: SGD(p), TypeError, "not one tensor"),
        (lambda: SGD([p, p]), ValueError, "given twice"),
        (lambda: SGD([{"params": [p]}, {"params": [p]}]), ValueError, "given twice"),
        (lambda: SGD([p * 2]), ValueError, "only leaves are trained"),
        (lambda: SGD([3.0]), TypeError, "not a Tensor"),
        (lambda: SGD([flow.ones(2, dtype=flow.int64)]), ValueError, "not floating point"),
        (lambda: SGD([("w", p)]), TypeError, "not named_parameters"),
        (lambda: SGD([p], lr=-1), ValueError, "lr is a number of at least 0"),
        (lambda: SGD([p], lr=math.nan), ValueError, "lr is a number"),
        (lambda: SGD([p], nesterov=True), ValueError, "Nesterov"),
        (lambda: AdamW([p], betas=(0.9, 1.0)), ValueError, "betas"),
        (lambda: AdamW([{"params": [p], "momentum": 0.9}]), ValueError, "no option 'momentum'"),
        (lambda: AdamW([{"lr": 0.1}]), TypeError, "key 'params'"),
    ):
        with pytest.raises(kind, match=text):
            make()
    opt = SGD([p, frozen], lr=0.1)
    with pytest.raises(flow.AutogradError, match="no parameter has a gradient") as e:
        opt.step()
    assert e.value.site[0].endswith("test_optim.py")
    step(opt, p)
    assert frozen.tolist() == [1.0, 1.0] and frozen.grad is None


def test_groups_have_options_of_their_own():
    a, b, c = leaf(1.0), leaf(1.0), leaf(1.0)
    opt = SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    opt.add_param_group({"params": [c], "lr": 0.0})
    step(opt, a, b, c)
    np.testing.assert_allclose([p.item() for p in (a, b, c)], [0.8, 0.0, 1.0], rtol=1e-6)
    opt.param_groups[2]["lr"] = 0.25
    opt.param_groups[0]["weight_decay"] = 1.0
    step(opt, a, b, c)
    np.testing.assert_allclose([p.item() for p in (a, b, c)], [0.56, 0.0, 0.5], rtol=1e-6)
    # A group without gradients is left alone.
    step(opt, a)
    assert b.grad is None and c.item() == 0.5
    opt.param_groups[1]["lr"] = "high"
    with pytest.raises(ValueError, match="lr is a number"):
        opt.step()


def test_a_closure_is_called_first():
    p = leaf(2.0)
    opt = SGD([p], lr=0.25)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert opt.step(closure).item() == 4.0 and p.item() == 1.0
    opt.zero_grad(set_to_none=False)
    assert p.grad.item() == 0.0


@pytest.mark.parametrize("make", [lambda ps: SGD(ps, lr=0.1, momentum=0.9), lambda ps: AdamW(ps, lr=0.1)])
def test_a_state_goes_on_where_it_was(make):
    def run(opt, p, q, steps):
        for _ in range(steps):
            step(opt, p, q)

    p, q = leaf(1.0, 2.0), leaf(3.0)
    whole = make([{"params": [p]}, {"params": [q], "lr": 0.05}])
    run(whole, p, q, 3)
    state = {k: v.copy() if isinstance(v, flow.Tensor) else v for k, v in whole.state_dict().items()}
    r, s = leaf(*p.tolist()), leaf(*q.tolist())
    run(whole, p, q, 2)
    again = make([{"params": [r]}, {"params": [s], "lr": 0.5}])
    again.load_state_dict(state)
    assert [g["lr"] for g in again.param_groups] == [0.1, 0.05]
    run(again, r, s, 2)
    assert r.tolist() == p.tolist() and s.tolist() == q.tolist()
    fresh = make([{"params": [r]}, {"params": [s]}])
    fresh.load_state_dict(state)
    with pytest.raises(RuntimeError, match="another optimizer: 7"):
        fresh.load_state_dict({**state, "7.mean": flow.ones(2)})
    with pytest.raises(RuntimeError, match="lacks lr"):
        fresh.load_state_dict({k: v for k, v in state.items() if k != "lr"})
    with pytest.raises(RuntimeError, match="the shape of 0"):
        fresh.load_state_dict({k: flow.ones(9) if isinstance(v, flow.Tensor) else v for k, v in state.items()})
    with pytest.raises(RuntimeError, match="another optimizer"):
        (AdamW if isinstance(fresh, SGD) else SGD)([r, s]).load_state_dict(state)
    # None of these changed anything.
    for name, tensor in fresh.state_dict().items():
        assert not isinstance(tensor, flow.Tensor) or tensor.tolist() == state[name].tolist()
    fresh.param_groups[0]["params"] = [s]
    with pytest.raises(RuntimeError, match="param_groups were changed"):
        fresh.step()


def test_clipping():
    p, q = leaf(3.0), leaf(4.0)
    (p * p / 2 + q * q / 2).sum().backward()
    assert clip_grad_norm_([p, q], 1.0).item() == pytest.approx(5.0)
    np.testing.assert_allclose([p.grad.item(), q.grad.item()], [0.6, 0.8], rtol=1e-5)
    assert clip_grad_norm_(p, 10.0).item() == pytest.approx(0.6, rel=1e-5)
    with pytest.raises(flow.Error, match="no parameter"):
        clip_grad_norm_([leaf(1.0)], 1.0)


def test_a_scaler_skips_what_is_not_finite():
    p = leaf(1.0)
    opt, scaler = SGD([p], lr=0.5), GradScaler(init_scale=8.0, growth_interval=1)
    for factor, done in ((1.0, True), (math.inf, False)):
        opt.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.unscale_(opt)
        with pytest.raises(flow.Error, match="unscaled already"):
            scaler.unscale_(opt)
        assert scaler.step(opt) is done
        scaler.update()
    assert p.item() == 0.5 and scaler.skipped == 1 and scaler.get_scale() == 8.0
    with pytest.raises(TypeError, match="no oflow.optim.Optimizer"):
        scaler.step(p)


def test_schedules():
    s = Schedule.warmup_cosine(warmup=10, total=110, floor=0.1)
    assert s.at(4) == 0.5 and s.at(10) == 1.0 and s.at(60) == pytest.approx(0.55) and s.at(200) == pytest.approx(0.1)
    assert [Schedule.step(2, 0.5)(i) for i in range(5)] == [1, 1, 0.5, 0.5, 0.25]
    with pytest.raises(ValueError):
        s.at(-1)
    opt = SGD([{"params": [leaf(1.0)]}, {"params": [leaf(1.0)], "lr": 0.2}], lr=0.1)
    scheduler = lr_scheduler.StepLR(opt, step_size=1, gamma=0.5)
    assert scheduler.get_last_lr() == [0.1, 0.2]
    scheduler.step()
    assert scheduler.get_last_lr() == [0.05, 0.1]
    state = json.loads(json.dumps(scheduler.state_dict()))
    scheduler.step()
    scheduler.load_state_dict(state)
    assert scheduler.get_last_lr() == [0.05, 0.1]
    with pytest.raises(ValueError):
        lr_scheduler.LambdaLR(opt, [lambda i: 1.0])


def test_an_optimizer_of_global_parameters_keeps_their_layouts():
    mesh = flow.placement.all("cpu")
    flow.manual_seed(1)
    net = nn.Linear(4, 6, placement=mesh, sbp="S(0)")
    opt = AdamW(net.parameters(), lr=0.1)
    net(flow.ones((2, 4), placement=mesh, sbp="B")).sum().backward()
    norm = clip_grad_norm_(net.parameters(), 1.0)
    assert norm.is_global
    opt.step()
    state = opt.state_dict()
    assert state["0.mean"].sbp == net.weight.sbp and state["steps"] == [1, 1]
    flow.manual_seed(1)
    other = nn.Linear(4, 6)
    again = AdamW(other.parameters(), lr=0.3)
    again.load_state_dict({k: flow.tensor(v.tolist()) if isinstance(v, flow.Tensor) else v for k, v in state.items()})
    assert again.param_groups[0]["lr"] == 0.1
