"""Makes optimizers.json: parameters after steps of PyTorch's optimizers, and of Lion and LAMB written out here.

Run it with any Python that has torch, in this folder: `python optimizers.py`. The test `optimizers` reads the file.
"""

import contextlib
import io
import json

import torch

with contextlib.redirect_stdout(io.StringIO()):
    from make import dump, values

SHAPES, STEPS = [(5, 6), (6,), (3, 4)], 4
# Of what keeps numbers of rows and columns, and of what takes matrices alone.
MIXED, MATRICES = [(5, 6), (6,), (2, 3, 4), (4, 1)], [(5, 6), (6, 3), (4, 4)]


class Lion:
    """Chen et al., Symbolic Discovery of Optimization Algorithms, program 1."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        self.params, self.lr, self.betas, self.decay = params, lr, betas, weight_decay
        self.m = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p, m in zip(self.params, self.m):
            update = torch.sign(b1 * m + (1 - b1) * p.grad)
            p -= self.lr * (update + self.decay * p)
            m.copy_(b2 * m + (1 - b2) * p.grad)


class Lamb:
    """You et al., Large Batch Optimization for Deep Learning, algorithm 2, with φ(z) = z."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0, bias_correction=True):
        self.params, self.lr, self.betas, self.eps, self.decay, self.correct = params, lr, betas, eps, weight_decay, bias_correction
        self.m, self.v, self.t = [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params], 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        for p, m, v in zip(self.params, self.m, self.v):
            m.copy_(b1 * m + (1 - b1) * p.grad)
            v.copy_(b2 * v + (1 - b2) * p.grad**2)
            c1, c2 = (1 - b1**self.t, 1 - b2**self.t) if self.correct else (1.0, 1.0)
            r = (m / c1) / ((v / c2).sqrt() + self.eps) + self.decay * p
            a, b = p.norm(), r.norm()
            trust = a / b if a > 0 and b > 0 else 1.0
            p -= self.lr * trust * r


cases = []


def case(kind, make, dtype="f64", zero=False, shapes=SHAPES, steps=STEPS, **options):
    """`options` are PyTorch's; the file has the names of the settings here."""
    # The numbers that PyTorch keeps beside tensors, such as NAdam's product of momenta, have the default dtype.
    torch.set_default_dtype(torch.float64 if dtype == "f64" else torch.float32)
    params = [values(s, dtype, start=7 * i).clone().requires_grad_(True) for i, s in enumerate(shapes)]
    if zero:
        params[1].data.zero_()
    initial = [dump(p) for p in params]
    opt = make(params, **options)
    grads, after = [], []
    for n in range(steps):
        own = [values(s, dtype, start=11 * n + 5 * i + 2) for i, s in enumerate(shapes)]
        for p, g in zip(params, own):
            p.grad = g.clone()
        opt.step()
        grads.append([dump(g) for g in own])
        after.append([dump(p) for p in params])
    said = {"kind": kind, **{k: v for k, v in options.items() if k != "betas"}}
    if "betas" in options:
        said["beta1"], said["beta2"] = options["betas"]
    cases.append({"config": said, "initial": initial, "grads": grads, "after": after})


o = torch.optim
case("sgd", o.SGD, lr=0.1)
case("sgd", o.SGD, lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True)
case("sgd", o.SGD, lr=0.1, momentum=0.9, dampening=0.3)
case("adamw", o.AdamW, lr=0.01, weight_decay=0.1)
for dtype in ("f64", "f32"):
    case("adam", o.Adam, dtype)
    case("adam", o.Adam, dtype, lr=0.05, betas=(0.8, 0.9), eps=1e-4, weight_decay=0.2)
    case("adam", o.Adam, dtype, lr=0.05, amsgrad=True, betas=(0.5, 0.5))
    case("adamw", o.AdamW, dtype, lr=0.05, amsgrad=True, weight_decay=0.1, betas=(0.5, 0.5))
    for centered in (False, True):
        for momentum in (0.0, 0.9):
            case("rmsprop", o.RMSprop, dtype, lr=0.02, alpha=0.9, weight_decay=0.1, centered=centered, momentum=momentum)
    case("rmsprop", o.RMSprop, dtype)
    case("adagrad", o.Adagrad, dtype)
    case("adagrad", o.Adagrad, dtype, lr=0.1, lr_decay=0.5, weight_decay=0.1, initial_accumulator_value=0.25, eps=1e-6)
    case("adadelta", o.Adadelta, dtype)
    case("adadelta", o.Adadelta, dtype, lr=0.5, rho=0.7, eps=1e-3, weight_decay=0.1)
    case("lion", Lion, dtype)
    case("lion", Lion, dtype, lr=0.01, betas=(0.8, 0.6), weight_decay=0.3)
    case("lamb", Lamb, dtype)
    case("lamb", Lamb, dtype, lr=0.1, betas=(0.8, 0.9), eps=1e-4, weight_decay=0.2)
    case("lamb", Lamb, dtype, lr=0.1, bias_correction=False)
    case("lamb", Lamb, dtype, zero=True, lr=0.1)

    for maximize in (False, True):
        case("sgd", o.SGD, dtype, lr=0.1, momentum=0.9, weight_decay=0.1, maximize=maximize)
        case("adamax", o.Adamax, dtype, lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.2, maximize=maximize)
        case("nadam", o.NAdam, dtype, lr=0.1, betas=(0.8, 0.9), weight_decay=0.2, momentum_decay=0.1, maximize=maximize)
        case("nadam", o.NAdam, dtype, lr=0.1, weight_decay=0.2, decoupled_weight_decay=True, maximize=maximize)
        # Never rectified, soon, and from step 6 on.
        for beta2 in (0.3, 0.9, 0.999):
            case("radam", o.RAdam, dtype, steps=8, lr=0.1, betas=(0.8, beta2), weight_decay=0.2, decoupled_weight_decay=maximize, maximize=maximize)
        case("asgd", o.ASGD, dtype, lr=0.1, lambd=0.3, alpha=0.5, t0=1, weight_decay=0.1, maximize=maximize)
        case("rprop", o.Rprop, dtype, lr=0.1, etas=(0.4, 1.5), step_sizes=(0.05, 0.12), maximize=maximize)
        case("adafactor", o.Adafactor, dtype, lr=0.5, weight_decay=0.2, maximize=maximize, shapes=MIXED)
        case("adafactor", o.Adafactor, dtype, beta2_decay=-0.5, eps=(1e-2, 0.2), d=1.5, maximize=maximize, shapes=MIXED)
    case("adamax", o.Adamax, dtype)
    case("nadam", o.NAdam, dtype)
    case("radam", o.RAdam, dtype)
    case("asgd", o.ASGD, dtype)
    case("rprop", o.Rprop, dtype)
    case("muon", o.Muon, dtype, shapes=MATRICES)
    for adjust in ("match_rms_adamw", "spectral_unclamped"):
        case("muon", o.Muon, dtype, lr=0.1, momentum=0.7, nesterov=False, ns_steps=3, adjust_lr_fn=adjust, shapes=MATRICES)

with open("optimizers.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
print(len(cases), "cases")
