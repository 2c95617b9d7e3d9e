"""Makes schedules.json: learning rates of PyTorch's schedulers by step, and of ReduceLROnPlateau by metric.

Run it with any Python that has torch, in this folder: `python schedules.py`. The test `schedules` reads the file.
"""

import json
import warnings

import torch
from torch.optim import lr_scheduler as s

warnings.simplefilter("ignore")
STEPS, BASE = 40, 0.5


def optimizer(lr=BASE):
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)


def rates(make, steps=STEPS):
    opt = optimizer()
    scheduler = make(opt)
    found = []
    for _ in range(steps):
        found.append(opt.param_groups[0]["lr"] / BASE)
        scheduler.step()
    return found


cases = []


def case(schedule, make, steps=STEPS):
    cases.append({"schedule": schedule, "factors": rates(make, steps)})


case({"kind": "step", "every": 7, "gamma": 0.3}, lambda o: s.StepLR(o, 7, 0.3))
case({"kind": "multi_step", "milestones": [3, 11, 11, 20], "gamma": 0.4}, lambda o: s.MultiStepLR(o, [3, 11, 11, 20], 0.4))
case({"kind": "constant_for", "factor": 0.25, "total": 6}, lambda o: s.ConstantLR(o, 0.25, 6))
case({"kind": "linear", "start": 0.25, "end": 0.75, "total": 9}, lambda o: s.LinearLR(o, 0.25, 0.75, 9))
case({"kind": "exponential", "gamma": 0.9}, lambda o: s.ExponentialLR(o, 0.9))
case({"kind": "polynomial", "total": 17, "power": 1.5}, lambda o: s.PolynomialLR(o, 17, 1.5))
case({"kind": "cosine_annealing", "period": 9, "floor": 0.2}, lambda o: s.CosineAnnealingLR(o, 9, 0.2 * BASE))
case({"kind": "cosine_restarts", "first": 5, "growth": 1, "floor": 0.1}, lambda o: s.CosineAnnealingWarmRestarts(o, 5, 1, 0.1 * BASE))
case({"kind": "cosine_restarts", "first": 4, "growth": 2, "floor": 0.0}, lambda o: s.CosineAnnealingWarmRestarts(o, 4, 2))
for by_cycle, mode in ((1.0, "triangular"), (0.5, "triangular2")):
    case({"kind": "cyclic", "least": 0.2, "up": 5, "down": 3, "by_cycle": by_cycle}, lambda o: s.CyclicLR(o, 0.2 * BASE, BASE, 5, 3, mode, cycle_momentum=False))
case({"kind": "cyclic", "least": 0.2, "up": 4, "down": 4, "by_step": 0.95}, lambda o: s.CyclicLR(o, 0.2 * BASE, BASE, 4, None, "exp_range", 0.95, cycle_momentum=False))
for linear, strategy in ((False, "cos"), (True, "linear")):
    case({"kind": "one_cycle", "total": STEPS, "rise": 0.3, "start": 0.04, "end": 4e-6, "linear": linear},
         lambda o: s.OneCycleLR(o, BASE, STEPS, anneal_strategy=strategy, cycle_momentum=False))
    case({"kind": "one_cycle", "total": STEPS, "rise": 0.4, "start": 0.1, "end": 1e-4, "linear": linear, "three_phase": True},
         lambda o: s.OneCycleLR(o, BASE, STEPS, pct_start=0.4, div_factor=10, final_div_factor=1000, anneal_strategy=strategy, cycle_momentum=False, three_phase=True))
# A stretch without change after a warm-up, then a line down ("warm-up, stable, decay"), and a warm-up before restarts.
case({"kind": "sequential", "schedules": [{"kind": "linear", "start": 0.2, "end": 1.0, "total": 5}, {"kind": "constant"}, {"kind": "linear", "start": 1.0, "end": 0.1, "total": 12}], "milestones": [5, 20]},
     lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.2, 1.0, 5), s.ConstantLR(o, 1.0, 1), s.LinearLR(o, 1.0, 0.1, 12)], [5, 20]))
case({"kind": "sequential", "schedules": [{"kind": "linear", "start": 0.1, "end": 1.0, "total": 4}, {"kind": "cosine_restarts", "first": 6, "growth": 2, "floor": 0.05}], "milestones": [4]},
     lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingWarmRestarts(o, 6, 2, 0.05 * BASE)], [4]))
case({"kind": "chained", "schedules": [{"kind": "constant_for", "factor": 0.5, "total": 4}, {"kind": "exponential", "gamma": 0.9}]},
     lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 4), s.ExponentialLR(o, 0.9)]))
case({"kind": "sequential", "schedules": [{"kind": "linear", "start": 0.1, "end": 1.0, "total": 5}, {"kind": "step", "every": 3, "gamma": 0.5}, {"kind": "exponential", "gamma": 0.8}], "milestones": [6, 20]},
     lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 5), s.StepLR(o, 3, 0.5), s.ExponentialLR(o, 0.8)], [6, 20]))

metrics = [3.0, 2.0, 2.1, 1.99, 2.2, 2.3, 2.4, 1.0, 1.0, 1.0, 1.0, 0.999, 1.5, 1.5, 1.5, float("nan"), 1.5, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3]
plateaus = []
for maximize in (False, True):
    for relative in (False, True):
        for cooldown, least in ((0, 0.0), (2, 0.1)):
            said = {"maximize": maximize, "factor": 0.5, "patience": 1, "threshold": 0.01, "relative": relative, "cooldown": cooldown, "least": least}
            opt = optimizer()
            scheduler = s.ReduceLROnPlateau(opt, "max" if maximize else "min", 0.5, 1, 0.01, "rel" if relative else "abs", cooldown, least)
            found = []
            for metric in metrics:
                scheduler.step(metric)
                found.append(opt.param_groups[0]["lr"])
            plateaus.append({"options": said, "rates": found})

with open("schedules.json", "w") as f:
    shown = [None if m != m else m for m in metrics]
    json.dump({"base": BASE, "cases": cases, "metrics": shown, "plateaus": plateaus}, f, indent=None, separators=(",", ":"))
    f.write("\n")
print(len(cases), "schedules,", len(plateaus), "plateaus")
