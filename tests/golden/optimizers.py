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


def case(kind, make, dtype="f64", zero=False, **options):
    """`options` are PyTorch's; the file has the names of the settings here."""
    params = [values(s, dtype, start=7 * i).clone().requires_grad_(True) for i, s in enumerate(SHAPES)]
    if zero:
        params[1].data.zero_()
    initial = [dump(p) for p in params]
    opt = make(params, **options)
    grads, after = [], []
    for n in range(STEPS):
        own = [values(s, dtype, start=11 * n + 5 * i + 2) for i, s in enumerate(SHAPES)]
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

with open("optimizers.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
print(len(cases), "cases")
