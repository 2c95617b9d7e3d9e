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
    with pytest.raises(RuntimeError, match="lacks param_groups"):
        fresh.load_state_dict({k: v for k, v in state.items() if k != "param_groups"})
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


# Options of each optimizer that are not its defaults.
OPTIONS = {
    "SGD": [{"lr": 0.5, "momentum": 0.25, "dampening": 0.125, "weight_decay": 0.5}, {"momentum": 0.5, "nesterov": True, "master_weights": False}],
    "AdamW": [{"lr": 0.5, "betas": (0.5, 0.25), "eps": 0.125, "weight_decay": 0.75}, {"amsgrad": True, "master_weights": False}],
    "Adam": [{"lr": 0.5, "betas": (0.5, 0.25), "eps": 0.125, "weight_decay": 0.75}, {"amsgrad": True, "master_weights": False}],
    "RMSprop": [{"lr": 0.5, "alpha": 0.25, "eps": 0.125, "weight_decay": 0.75}, {"momentum": 0.5, "centered": True, "master_weights": False}],
    "Adagrad": [{"lr": 0.5, "lr_decay": 0.25, "weight_decay": 0.75}, {"initial_accumulator_value": 0.5, "eps": 0.125, "master_weights": False}],
    "Adadelta": [{"lr": 0.5, "rho": 0.25, "eps": 0.125, "weight_decay": 0.75}, {"master_weights": False}],
    "Lion": [{"lr": 0.5, "betas": (0.5, 0.25), "weight_decay": 0.75}, {"master_weights": False}],
    "Lamb": [{"lr": 0.5, "betas": (0.5, 0.25), "eps": 0.125, "weight_decay": 0.75}, {"bias_correction": False, "master_weights": False}],
}


def settings(opt):
    return [{k: v for k, v in g.items() if k != "params"} for g in opt.param_groups]


@pytest.mark.parametrize("name", sorted(OPTIONS))
@pytest.mark.parametrize("way", ["state_dict", "checkpoint"])
def test_every_option_of_every_group_comes_back(name, way, tmp_path):
    if way == "checkpoint" and flow.world_size() > 1:
        pytest.skip("checkpoints of several ranks hold global tensors; test_checkpoint.py has those")
    cls = getattr(flow.optim, name)
    assert sorted(OPTIONS) == sorted(c.__name__ for c in vars(flow.optim).values() if isinstance(c, type) and issubclass(c, flow.optim.Optimizer) and c is not flow.optim.Optimizer)

    def groups(options):
        ps = [leaf(1.0, 2.0, dtype=flow.bfloat16), leaf(3.0), leaf(4.0)]
        return ps, [{"params": ps[:2], **options[0]}, {"params": [], "lr": 0.75}, {"params": ps[2:], **options[1]}]

    ps, made = groups(OPTIONS[name])
    whole = cls(made)
    for option in whole.defaults:
        assert any(option in o and o[option] != whole.defaults[option] for o in OPTIONS[name]), f"{option} is not tried"
    lr_scheduler.StepLR(whole, 1)
    whole.param_groups[2]["name"] = "rest"
    step(whole, *ps)
    qs, other = groups([{}, {}])
    again = cls(other)
    with flow.no_grad():
        for p, q in zip(ps, qs):
            q.copy_(p.detach())
    if way == "state_dict":
        state = whole.state_dict()
        assert all(isinstance(v, flow.Tensor) or json.loads(json.dumps(v)) == v for v in state.values())
        again.load_state_dict(state)
    else:
        with flow.checkpoint.CheckpointManager(tmp_path) as manager:
            manager.save(1, {"opt": whole})
            assert manager.load_latest({"opt": again}) == 1
    assert settings(again) == settings(whole)
    assert again.param_groups[2]["name"] == "rest" and again.param_groups[0]["initial_lr"] == 0.5
    for _ in range(2):
        step(whole, *ps)
        step(again, *qs)
    assert [p.tolist() for p in ps] == [q.tolist() for q in qs]

    # Other groups than those of the state, of this optimizer and of each other one.
    before = settings(again)
    state = whole.state_dict()
    for sizes, text in (((3,), "3 groups of parameters, this optimizer has 1"), ((1, 2), "3 groups of parameters, this optimizer has 2"),
                        ((1, 1, 1), "group 0 of the saved state has 2 parameters, that of this optimizer has 1"),
                        ((2, 1, 0), "group 1 of the saved state has 0 parameters, that of this optimizer has 1")):
        rest = iter([leaf(1.0, 2.0), leaf(3.0), leaf(4.0)])
        wrong = cls([{"params": [next(rest) for _ in range(n)]} for n in sizes])
        had = settings(wrong)
        with pytest.raises((RuntimeError, ValueError), match=text):
            wrong.load_state_dict(state)
        assert settings(wrong) == had
    for kind in OPTIONS:
        if kind != name:
            wrong = getattr(flow.optim, kind)(groups([{}, {}])[1])
            had = settings(wrong)
            with pytest.raises((RuntimeError, ValueError), match="of another optimizer|group 0 of the saved state is of"):
                wrong.load_state_dict({k: v for k, v in state.items() if not isinstance(v, flow.Tensor)} | {"steps": [0, 0, 0]})
            assert settings(wrong) == had
    assert settings(again) == before


def test_notes_of_a_group_are_plain_values():
    opt = SGD([leaf(1.0)])
    opt.param_groups[0]["filter"] = object()
    with pytest.raises(TypeError, match="holds plain values"):
        opt.state_dict()


def test_a_scheduler_goes_on_from_the_state_of_an_optimizer():
    opt = SGD([{"params": [leaf(1.0)]}, {"params": [leaf(1.0)], "lr": 0.4}], lr=0.8)
    scheduler = lr_scheduler.StepLR(opt, 2, 0.5)
    rates = []
    for n in range(6):
        if n in (1, 3, 4):
            again = SGD([{"params": [leaf(1.0)]}, {"params": [leaf(1.0)]}], lr=9.0)
            again.load_state_dict(opt.state_dict())
            opt, scheduler = again, lr_scheduler.StepLR(again, 2, 0.5, last_epoch=n - 1)
        rates.append(scheduler.get_last_lr())
        scheduler.step()
    assert rates == [[0.8, 0.4], [0.8, 0.4], [0.4, 0.2], [0.4, 0.2], [0.2, 0.1], [0.2, 0.1]]
    with pytest.raises(KeyError, match="load the optimizer's state first"):
        lr_scheduler.StepLR(SGD([leaf(1.0)]), 2, last_epoch=3)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.0])
def test_zeros_are_written_into_a_gradient_whatever_it_holds(value):
    mesh = flow.placement.all("cpu")
    net = nn.Linear(2, 2, bias=False)
    laid = nn.Linear(2, 2, bias=False, placement=mesh, sbp="S(0)")
    for module in (net, laid):
        opt = SGD(module.parameters())
        for zero in (opt.zero_grad, module.zero_grad):
            held = flow.full((2, 2), value)
            if module is laid:
                held = flow.distribute(held, mesh, "S(0)")
            module.weight.grad = held
            zero(set_to_none=False)
            assert module.weight.grad.tolist() == held.tolist() == [[0.0, 0.0]] * 2
    # Of a graph: the parameter gets zeros of its own.
    w = net.weight
    (g,) = flow.autograd.grad((w * w * w).sum(), [w], create_graph=True)
    w.grad = g
    net.zero_grad(set_to_none=False)
    assert w.grad.tolist() == [[0.0, 0.0]] * 2 and not w.grad.requires_grad
    net.zero_grad()
    net.zero_grad(set_to_none=False)
    assert w.grad is None


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
    with pytest.raises(TypeError, match="expected an oflow.optim.Optimizer"):
        scaler.step(p)
    # Groups that come between are not unscaled with the others, which must not be unscaled twice.
    scaler.scale(p.sum()).backward()
    scaler.unscale_(opt)
    opt.add_param_group({"params": [leaf(2.0)]})
    with pytest.raises(flow.Error, match="add groups of parameters before"):
        scaler.step(opt)


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
