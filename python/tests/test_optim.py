"""Optimizers, clipping, scaling and schedules. Steps beside PyTorch's are in test_beside_pytorch.py."""

import copy
import json
import math
import pickle

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
        (lambda: SGD([("w", p), leaf(1.0)]), ValueError, "all with names or all without"),
        (lambda: SGD([{"params": [("w", p)]}, {"params": [leaf(1.0)]}]), ValueError, "all with names or all without"),
        (lambda: SGD({p, leaf(1.0)}), TypeError, "a set has not"),
        (lambda: SGD([p], differentiable=True), ValueError, "differentiable=True is not supported"),
        (lambda: SGD([p], foreach=True, fused=True), RuntimeError, "cannot both be True"),
        (lambda: AdamW([p], lr=flow.tensor(0.1), foreach=True), ValueError, "tensors only with capturable=True"),
        (lambda: AdamW([p], betas=(0.9, flow.tensor(0.9))), ValueError, "two numbers or two tensors"),
        (lambda: SGD([p], lr=flow.ones(2)), ValueError, "a tensor with one element"),
        (lambda: flow.optim.Adadelta([p], rho=1.5), ValueError, "rho is a number from 0 to 1"),
        (lambda: flow.optim.Rprop([p], etas=(1.0, 1.2)), ValueError, "etas are a factor between 0 and 1"),
        (lambda: flow.optim.Rprop([p], etas=0.5), ValueError, "etas are 2 numbers"),
        (lambda: flow.optim.Adafactor([p], d=0.5), ValueError, "a threshold of at least 1"),
        (lambda: flow.optim.Adafactor([p], beta2_decay=0.5), ValueError, "a power of at most 0"),
        (lambda: flow.optim.Adafactor([p], eps=(-1.0, 1e-3)), ValueError, "eps is a number of at least 0"),
        (lambda: flow.optim.Muon([p]), flow.ShapeError, "Muon steps matrices"),
        (lambda: flow.optim.Muon([leaf([1.0])], adjust_lr_fn="any"), ValueError, "unknown variant `any`"),
        (lambda: flow.optim.Muon([leaf([1.0])], ns_steps=2.5), ValueError, "ns_steps is a whole number"),
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
    "AdamW": [{"lr": 0.5, "betas": (0.5, 0.25), "eps": 0.125, "weight_decay": 0.75}, {"amsgrad": True, "maximize": True, "master_weights": False}],
    "Adam": [{"lr": 0.5, "betas": (0.5, 0.25), "eps": 0.125, "weight_decay": 0.75}, {"amsgrad": True, "maximize": True, "master_weights": False}],
    "RMSprop": [{"lr": 0.5, "alpha": 0.25, "eps": 0.125, "weight_decay": 0.75}, {"momentum": 0.5, "centered": True, "maximize": True, "master_weights": False}],
    "Adagrad": [{"lr": 0.5, "lr_decay": 0.25, "weight_decay": 0.75}, {"initial_accumulator_value": 0.5, "eps": 0.125, "maximize": True, "master_weights": False}],
    "Adadelta": [{"lr": 0.5, "rho": 0.25, "eps": 0.125, "weight_decay": 0.75}, {"maximize": True, "master_weights": False}],
    "Adamax": [{"lr": 0.5, "betas": (0.5, 0.25), "eps": 0.125, "weight_decay": 0.75}, {"maximize": True, "master_weights": False}],
    "NAdam": [{"lr": 0.5, "betas": (0.5, 0.25), "eps": 0.125, "weight_decay": 0.75, "momentum_decay": 0.5}, {"decoupled_weight_decay": True, "maximize": True, "master_weights": False}],
    "RAdam": [{"lr": 0.5, "betas": (0.5, 0.25), "eps": 0.125, "weight_decay": 0.75}, {"decoupled_weight_decay": True, "maximize": True, "master_weights": False}],
    "ASGD": [{"lr": 0.5, "lambd": 0.25, "alpha": 0.5, "weight_decay": 0.75}, {"t0": 1.0, "maximize": True, "master_weights": False}],
    "Rprop": [{"lr": 0.5, "etas": (0.25, 1.5)}, {"step_sizes": (0.125, 2.0), "maximize": True, "master_weights": False}],
    "Adafactor": [{"lr": 0.5, "beta2_decay": -0.5, "eps": (0.25, 0.125), "weight_decay": 0.75}, {"d": 2.0, "maximize": True, "master_weights": False}],
    "Muon": [{"lr": 0.5, "weight_decay": 0.25, "momentum": 0.5, "ns_coefficients": (3.0, -4.0, 2.0), "eps": 0.125}, {"nesterov": False, "ns_steps": 3, "adjust_lr_fn": "match_rms_adamw", "maximize": True, "master_weights": False}],
    "Lion": [{"lr": 0.5, "betas": (0.5, 0.25), "weight_decay": 0.75}, {"maximize": True, "master_weights": False}],
    "Lamb": [{"lr": 0.5, "betas": (0.5, 0.25), "eps": 0.125, "weight_decay": 0.75}, {"bias_correction": False, "maximize": True, "master_weights": False}],
}


SHAPES = {"Muon": [[[1.0, 2.0]], [[3.0]], [[4.0], [1.0]]]}
OPTIONS["SGD"][1]["maximize"] = True


def settings(opt):
    return [{k: v for k, v in g.items() if k != "params"} for g in opt.param_groups]


@pytest.mark.parametrize("name", sorted(OPTIONS))
@pytest.mark.parametrize("way", ["state_dict", "checkpoint"])
def test_every_option_of_every_group_comes_back(name, way, tmp_path):
    if way == "checkpoint" and flow.world_size() > 1:
        pytest.skip("checkpoints of several ranks hold global tensors; test_checkpoint.py has those")
    cls = getattr(flow.optim, name)
    assert sorted(OPTIONS) == sorted(c.__name__ for c in vars(flow.optim).values() if isinstance(c, type) and issubclass(c, flow.optim.Optimizer) and c not in (flow.optim.Optimizer, flow.optim.LBFGS))

    def groups(options):
        values = SHAPES.get(name, [[1.0, 2.0], [3.0], [4.0]])
        ps = [flow.tensor(v, requires_grad=True, dtype=flow.float32 if i else flow.bfloat16) for i, v in enumerate(values)]
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
        rest = iter(groups([{}, {}])[0])
        wrong = cls([{"params": [next(rest) for _ in range(n)]} for n in sizes])
        had = settings(wrong)
        with pytest.raises((RuntimeError, ValueError), match=text):
            wrong.load_state_dict(state)
        assert settings(wrong) == had
    for kind in OPTIONS:
        if kind != name:
            wrong = getattr(flow.optim, kind)([{"params": [leaf([1.0]), leaf([2.0])]}, {"params": []}, {"params": [leaf([3.0])]}])
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


@pytest.mark.parametrize("name", sorted(OPTIONS))
@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_copies_go_on_where_the_optimizer_was(name, way):
    if way == "pickle" and flow.world_size() > 1:
        pytest.skip("one process is enough")
    ps = [flow.tensor(v, requires_grad=True) for v in ([[1.0, 2.0], [3.0, 4.0]], [[5.0, -6.0]])]
    opt = getattr(flow.optim, name)([{"params": ps[:1], **OPTIONS[name][0]}, {"params": ps[1:], **OPTIONS[name][1]}])
    opt.param_groups[1]["name"] = "rest"
    for _ in range(3):
        step(opt, *ps)
    again, qs = copy.deepcopy((opt, ps)) if way == "deepcopy" else pickle.loads(pickle.dumps((opt, ps)))
    assert type(again) is type(opt) and settings(again) == settings(opt)
    assert all(p is q for p, q in zip(qs, (p for g in again.param_groups for p in g["params"])))
    before = [p.tolist() for p in ps]
    step(again, *qs)
    assert [p.tolist() for p in ps] == before != [q.tolist() for q in qs]
    step(opt, *ps)
    step(again, *qs)
    step(opt, *ps)
    assert [p.tolist() for p in ps] == [q.tolist() for q in qs]


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - {"Lion", "Lamb"}))
def test_states_are_exchanged_with_pytorch(name):
    torch = pytest.importorskip("torch")
    options = [{k: v for k, v in o.items() if k != "master_weights" and not (name == "Muon" and k == "maximize")} for o in OPTIONS[name]]
    # Muon's iterations are in bfloat16.
    tolerance = 1e-2 if name == "Muon" else 1e-6
    values = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, -6.0]]] + ([] if name == "Muon" else [[0.5, -0.25, 1.0]])

    def made(module, leaves, groups):
        split = [leaves[:1], leaves[1:]]
        return getattr(module, name)([{"params": ps, **o} for ps, o in zip(split, groups)])

    def steps(opt, leaves, count):
        for _ in range(count):
            opt.zero_grad()
            sum((p * p).sum() for p in leaves).backward()
            opt.step()

    theirs = [torch.tensor(v, requires_grad=True, dtype=torch.float64) for v in values]
    reference = made(torch.optim, theirs, options)
    steps(reference, theirs, 3)
    ours = [flow.tensor(p.tolist(), requires_grad=True, dtype=flow.float64) for p in theirs]
    opt = made(flow.optim, ours, [{}, {}])
    assert opt.load_state_dict(reference.state_dict()) == ([], [])
    for group, given in zip(opt.param_groups, options):
        assert {k: group[k] for k in given} == given
    steps(reference, theirs, 3)
    steps(opt, ours, 3)
    for p, q in zip(ours, theirs):
        np.testing.assert_allclose(p.tolist(), q.tolist(), rtol=tolerance)

    # And back.
    state = opt.pytorch_state_dict()
    for kept in state["state"].values():
        kept.update({k: torch.from_dlpack(v.copy()) for k, v in kept.items()})
    back = made(torch.optim, theirs, [{}, {}])
    back.load_state_dict(state)
    steps(back, theirs, 3)
    steps(opt, ours, 3)
    for p, q in zip(ours, theirs):
        np.testing.assert_allclose(p.tolist(), q.tolist(), rtol=tolerance)


def test_a_state_of_another_optimizer_of_pytorch_is_refused():
    torch = pytest.importorskip("torch")
    theirs = torch.ones(2, requires_grad=True)
    reference = torch.optim.Adam([theirs])
    theirs.sum().backward()
    reference.step()
    with pytest.raises(RuntimeError, match="RMSprop keeps no 'exp_avg'"):
        flow.optim.RMSprop([leaf(1.0, 1.0)]).load_state_dict(reference.state_dict())
    with pytest.raises(RuntimeError, match="other numbers of parameters"):
        flow.optim.Adam([leaf(1.0), leaf(1.0)]).load_state_dict(reference.state_dict())
    with pytest.raises(RuntimeError, match="the state of Lion cannot be exchanged"):
        flow.optim.Lion([leaf(1.0)]).pytorch_state_dict()


def test_names_of_parameters_are_kept_with_their_group():
    net = nn.Linear(2, 1)
    opt = SGD(net.named_parameters(), lr=0.5)
    assert opt.param_groups[0]["param_names"] == ["weight", "bias"] and opt.param_groups[0]["params"][0] is net.weight
    net(flow.ones(1, 2)).sum().backward()
    opt.step()
    again = SGD(net.named_parameters())
    again.load_state_dict(opt.state_dict())
    assert again.param_groups[0]["param_names"] == ["weight", "bias"] and again.param_groups[0]["lr"] == 0.5


def test_a_tensor_is_a_rate_that_is_read_once():
    p, rate = leaf(2.0), flow.tensor(0.25)
    opt = SGD([p], lr=rate, foreach=True, capturable=True, fused=False)
    rate.fill_(9.0)
    assert opt.param_groups[0]["lr"] == 0.25
    step(opt, p)
    assert p.item() == 1.0
    opt.param_groups[0]["lr"] = flow.tensor([0.5])
    step(opt, p)
    assert p.item() == 0.0 and opt.param_groups[0]["lr"] == 0.5


def rosenbrock(opt, p, evaluated):
    """A closure of a function whose minimum lies in a bent valley."""

    def closure():
        opt.zero_grad()
        loss = ((1.0 - p[:-1]) ** 2 + 100.0 * (p[1:] - p[:-1] ** 2) ** 2).sum()
        loss.backward()
        evaluated.append(loss.item())
        return loss

    return closure


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("layout", [None, "B", "S(0)"])
def test_lbfgs_evaluates_what_pytorch_evaluates(search, layout):
    torch = pytest.importorskip("torch")
    values, options = [-1.2, 1.0, 0.5, 2.0], {"lr": 1.0 if search else 1e-3, "max_iter": 7, "history_size": 4, "line_search_fn": search}
    theirs = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    ours = flow.tensor(values, dtype=flow.float64)
    if layout:
        ours = flow.distribute(ours, flow.placement.all("cpu"), layout)
    ours = ours.requires_grad_(True)
    seen, want = [], []
    opt, reference = flow.optim.LBFGS([ours], **options), torch.optim.LBFGS([theirs], **options)
    for n in range(4):
        if n == 2:
            # Another optimizer goes on with the state.
            state, opt = opt.state_dict(), flow.optim.LBFGS([ours], line_search_fn=search)
            opt.load_state_dict(state)
            assert opt.param_groups[0]["history_size"] == 4
        if n == 3 and layout is None:
            opt, ours = copy.deepcopy((opt, ours))
        loss = opt.step(rosenbrock(opt, ours, seen))
        assert loss.item() == pytest.approx(reference.step(rosenbrock(reference, theirs, want)).item(), rel=1e-6)
    assert seen == pytest.approx(want, rel=1e-5)
    np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-6)
    if layout:
        assert ours.sbp == flow.distribute(flow.zeros(4), flow.placement.all("cpu"), layout).sbp


def test_lbfgs_refuses_groups_graphs_and_errors_of_the_closure(tmp_path):
    p, q = leaf(2.0), leaf(1.0)
    with pytest.raises(ValueError, match="LBFGS has one group"):
        flow.optim.LBFGS([{"params": [p]}, {"params": [q]}])
    with pytest.raises(ValueError, match="unknown variant"):
        flow.optim.LBFGS([p], line_search_fn="armijo")
    opt = flow.optim.LBFGS([p])

    def wrong():
        raise KeyError("of the closure")

    with pytest.raises(KeyError, match="of the closure"):
        opt.step(wrong)
    # A loss may be a number.
    p.grad = flow.zeros(1)
    assert opt.step(lambda: 3.0) == 3.0

    @flow.graph
    def captured():
        return opt.step(lambda: (p * p).sum())

    with pytest.raises(flow.Error, match="a graph that is captured has not"):
        captured()
    if flow.world_size() == 1:
        step = lambda o, x: o.step(rosenbrock(o, x, []))  # noqa: E731
        a = leaf(0.5, 2.0)
        first = flow.optim.LBFGS([a], line_search_fn="strong_wolfe", max_iter=3)
        step(first, a)
        b = leaf(*a.tolist())
        again = flow.optim.LBFGS([b])
        with flow.checkpoint.CheckpointManager(tmp_path) as manager:
            manager.save(1, {"opt": first})
            assert manager.load_latest({"opt": again}) == 1
        assert settings(again) == settings(first)
        step(first, a)
        step(again, b)
        assert a.tolist() == b.tolist()
