"""Schedulers beside PyTorch's, step by step."""

import copy
import json
import math
import pickle

import oflow as flow
import oflow.optim.lr_scheduler as ours
import pytest

torch = pytest.importorskip("torch")
theirs = torch.optim.lr_scheduler
STEPS = 24
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def halves(step):
    return 0.5 ** (step // 4)


def shrinks(step):
    return 0.9 + 0.01 * (step % 3)


# How each scheduler is made, of either library.
CASES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [halves, shrinks]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, shrinks),
    "StepLR": lambda s, o: s.StepLR(o, 5, 0.3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 9, 9, 15], 0.4),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 6),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.25, 0.75, 9),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 17, 1.5),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 7, 0.02),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4, 2, 0.01),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.1, [0.5, 0.7], 5, 3, "triangular2"),
    "CyclicLR steps": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 5, mode="exp_range", gamma=0.9, base_momentum=0.7),
    "CyclicLR function": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 5, scale_fn=halves, scale_mode="iterations", cycle_momentum=False),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [0.5, 1.0], STEPS),
    "OneCycleLR line": lambda s, o: s.OneCycleLR(o, 0.5, epochs=6, steps_per_epoch=5, anneal_strategy="linear", three_phase=True, pct_start=0.2),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 4), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 6)], optimizer=o),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 5), s.StepLR(o, 3, 0.5), s.CosineAnnealingLR(o, 8, 0.01)], [6, 12]),
    "SequentialLR at once": lambda s, o: s.SequentialLR(o, [s.ExponentialLR(o, 0.5), s.PolynomialLR(o, 9)], [1]),
    "SequentialLR of chains": lambda s, o: s.SequentialLR(o, [s.ChainedScheduler([s.ConstantLR(o, 0.5, 3), s.ExponentialLR(o, 0.9)]), s.StepLR(o, 2)], [5]),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, factor=0.5, patience=1, threshold=0.01, cooldown=1),
    "ReduceLROnPlateau max": lambda s, o: s.ReduceLROnPlateau(o, "max", 0.5, 2, 0.05, "abs", min_lr=[0.1, 0.0]),
}


def optimizer(library, kind):
    make = (lambda: torch.zeros(1, requires_grad=True)) if library is theirs else (lambda: flow.zeros(1, requires_grad=True))
    options = {"momentum": 0.8} if kind == "SGD" else {}
    module = torch.optim if library is theirs else flow.optim
    return getattr(module, kind)([{"params": [make()]}, {"params": [make()], "lr": 0.25}], lr=0.5, **options)


def metric(step):
    return [3.0, 2.0, 2.1, 1.99, 2.2, math.nan, 1.0, 1.0, 1.004, 0.2][step % 10]


def advance(scheduler, step):
    scheduler.step(metric(step)) if "Plateau" in type(scheduler).__name__ else scheduler.step()


def rates(opt):
    return [(group["lr"], group.get("momentum", group.get("betas"))) for group in opt.param_groups]


def close(a, b):
    flat = lambda x: [v for each in x for v in (flat(each) if isinstance(each, (tuple, list)) else [each])]  # noqa: E731
    assert flat(a) == pytest.approx(flat(b), rel=1e-12, abs=1e-15)


def test_every_scheduler_of_pytorch_has_a_case():
    public = {name for name in theirs.__all__ if name != "LRScheduler"}
    assert {name.split()[0] for name in CASES} == public
    assert public <= set(ours.__all__)


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", CASES)
def test_steps_are_pytorchs(name, kind):
    mine, other = optimizer(ours, kind), optimizer(theirs, kind)
    here, there = CASES[name](ours, mine), CASES[name](theirs, other)
    for step in range(STEPS):
        close(rates(mine), rates(other))
        close(here.get_last_lr(), there.get_last_lr())
        if not name.startswith("Chained"):
            assert here.last_epoch == there.last_epoch
        advance(here, step)
        advance(there, step)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", ["state", "deepcopy", "pickle"])
def test_one_goes_on_where_it_was(name, way):
    if way == "pickle" and name == "LambdaLR":
        pytest.skip("the functions of this module are pickled by name")
    whole = optimizer(ours, "SGD")
    scheduler = CASES[name](ours, whole)
    for step in range(7):
        advance(scheduler, step)
    if way == "state":
        state = json.loads(json.dumps(scheduler.state_dict()))
        opt = optimizer(ours, "SGD")
        opt.load_state_dict(whole.state_dict())
        again = CASES[name](ours, opt)
        opt.load_state_dict(whole.state_dict())
        again.load_state_dict(state)
    else:
        opt, again = copy.deepcopy((whole, scheduler)) if way == "deepcopy" else pickle.loads(pickle.dumps((whole, scheduler)))
        assert again.optimizer is opt
    for step in range(7, STEPS):
        close(rates(opt), rates(whole))
        advance(scheduler, step)
        advance(again, step)
    close(rates(opt), rates(whole))


# How each goes on after step 4; the rates of the optimizer are those of step 5 there.
LATER = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [halves, shrinks], 4),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, shrinks, 4),
    "StepLR": lambda s, o: s.StepLR(o, 4, 0.3, 4),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 9, 9, 15], 0.4, 4),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 6, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.25, 0.75, 9, 4),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9, 4),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 17, 1.5, 4),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 7, 0.02, 4),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [0.5, 1.0], STEPS, last_epoch=4),
}


@pytest.mark.parametrize("name", LATER)
def test_last_epoch_goes_on_with_a_state_of_the_optimizer(name):
    mine, other = optimizer(ours, "SGD"), optimizer(theirs, "SGD")
    for library, opt in ((ours, mine), (theirs, other)):
        scheduler = CASES[name](library, opt) if name != "StepLR" else library.StepLR(opt, 4, 0.3)
        for _ in range(5):
            scheduler.step()
    here, there = LATER[name](ours, mine), LATER[name](theirs, other)
    for _ in range(6):
        close(rates(mine), rates(other))
        here.step()
        there.step()


def test_steps_to_an_epoch():
    for name in ("StepLR", "LinearLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "PolynomialLR", "ExponentialLR", "ConstantLR", "MultiStepLR"):
        mine, other = optimizer(ours, "SGD"), optimizer(theirs, "SGD")
        here, there = CASES[name](ours, mine), CASES[name](theirs, other)
        for epoch in (5, 2, 11):
            here.step(epoch)
            there.step(epoch)
            close(rates(mine), rates(other))


def test_what_is_refused():
    opt, other = optimizer(ours, "SGD"), optimizer(ours, "SGD")
    plain = flow.optim.Adagrad([flow.zeros(1, requires_grad=True)])
    for make, text in (
        (lambda: ours.LambdaLR(opt, [halves]), "1 functions for 2 groups"),
        (lambda: ours.ConstantLR(opt, 1.5), "factor is a number from 0 to 1"),
        (lambda: ours.LinearLR(opt, 0.0), "start_factor"),
        (lambda: ours.LinearLR(opt, 0.5, 2.0), "end_factor"),
        (lambda: ours.CosineAnnealingWarmRestarts(opt, 0), "T_0 is"),
        (lambda: ours.CosineAnnealingWarmRestarts(opt, 2, 0.5), "T_mult is"),
        (lambda: ours.CyclicLR(opt, 0.1, 0.5, mode="square"), "mode is"),
        (lambda: ours.CyclicLR(plain, 0.1, 0.5), "needs an optimizer with momentum"),
        (lambda: ours.OneCycleLR(opt, 0.5), "give total_steps"),
        (lambda: ours.OneCycleLR(opt, 0.5, 0), "total_steps is"),
        (lambda: ours.OneCycleLR(opt, 0.5, 9, pct_start=2.0), "pct_start is"),
        (lambda: ours.OneCycleLR(opt, 0.5, 9, anneal_strategy="steps"), "anneal_strategy is"),
        (lambda: ours.ChainedScheduler([]), "at least one"),
        (lambda: ours.ChainedScheduler([ours.StepLR(opt, 2), ours.StepLR(other, 2)]), "of another optimizer"),
        (lambda: ours.SequentialLR(opt, [ours.StepLR(opt, 2), ours.ReduceLROnPlateau(opt)], [2]), "without a metric"),
        (lambda: ours.SequentialLR(opt, [ours.StepLR(opt, 2)], [2]), "0 milestones between them"),
        (lambda: ours.ReduceLROnPlateau(opt, "low"), "mode is"),
        (lambda: ours.ReduceLROnPlateau(opt, factor=1.0), "factor is"),
        (lambda: ours.ReduceLROnPlateau(opt, threshold_mode="part"), "threshold_mode is"),
        (lambda: ours.ReduceLROnPlateau(opt, min_lr=[0.1]), "1 min_lr for 2 groups"),
    ):
        with pytest.raises(ValueError, match=text):
            make()
    cycle = ours.OneCycleLR(opt, 0.5, 2)
    cycle.step()
    cycle.step()
    with pytest.raises(ValueError, match="the cycle has 2 steps"):
        cycle.step()
