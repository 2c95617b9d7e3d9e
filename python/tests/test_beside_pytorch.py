"""Layers, losses and optimizers beside PyTorch's: values and gradients."""

import math

import numpy as np
import oflow as flow
import oflow.nn.functional as F
import pytest
from oflow import nn
from oflow.optim import SGD, AdamW

torch = pytest.importorskip("torch")


def near(a, b, tolerance=1e-5):
    np.testing.assert_allclose(np.array(a.tolist()), np.array(b.tolist()), rtol=tolerance, atol=tolerance)


def pair(shape, seed=0):
    value = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return flow.tensor(value, requires_grad=True), torch.tensor(value, requires_grad=True)


def alike(ours, theirs, inputs):
    """Compares values, and gradients of the sum."""
    near(ours, theirs)
    ours.sum().backward()
    theirs.sum().backward()
    for mine, other in inputs:
        near(mine.grad, other.grad)


@pytest.mark.parametrize(
    "name, args",
    [
        ("ReLU", {}), ("SiLU", {}), ("Mish", {}), ("Sigmoid", {}), ("Tanh", {}), ("Softsign", {}), ("Hardsigmoid", {}),
        ("Hardswish", {}), ("Tanhshrink", {}), ("SELU", {}), ("LogSigmoid", {}), ("GELU", {}), ("GELU", {"approximate": "tanh"}),
        ("LeakyReLU", {"negative_slope": 0.2}), ("ELU", {"alpha": 1.5}), ("Softplus", {"beta": 2.0}), ("Hardtanh", {"min_val": -0.5}),
        ("Hardshrink", {}), ("Softshrink", {"lambd": 0.3}), ("Softmax", {"dim": -1}), ("LogSoftmax", {"dim": 0}), ("Identity", {}),
        ("Flatten", {}),
    ],
)  # fmt: skip
def test_activations_are_pytorchs(name, args):
    x, t = pair((3, 4, 5))
    alike(getattr(nn, name)(**args)(x) * 2, getattr(torch.nn, name)(**args)(t) * 2, [(x, t)])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name, args", [("MSELoss", {}), ("L1Loss", {}), ("HuberLoss", {"delta": 0.7}), ("SmoothL1Loss", {"beta": 0.5})])
def test_losses_of_values_are_pytorchs(name, args, reduction):
    (x, t), (y, u) = pair((4, 3)), pair((4, 3), 1)
    ours, theirs = getattr(nn, name)(reduction=reduction, **args), getattr(torch.nn, name)(reduction=reduction, **args)
    alike(ours(x, y.detach()), theirs(t, u.detach()), [(x, t)])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(6, 4), (2, 4, 3)])
@pytest.mark.parametrize("name", ["CrossEntropyLoss", "NLLLoss"])
def test_losses_of_classes_are_pytorchs(name, shape, reduction):
    rows = shape[:1] + shape[2:]
    target = np.arange(math.prod(rows)).reshape(rows) % 4
    target.flat[1] = -100
    x, t = pair(shape)
    ours, theirs = getattr(nn, name)(reduction=reduction), getattr(torch.nn, name)(reduction=reduction)
    before = (F.log_softmax(x, 1), torch.log_softmax(t, 1)) if name == "NLLLoss" else (x, t)
    alike(ours(before[0], flow.tensor(target)), theirs(before[1], torch.tensor(target)), [(x, t)])


def test_binary_losses_are_pytorchs():
    (x, t), p = pair((4, 3)), np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    alike(nn.BCEWithLogitsLoss()(x, flow.tensor(p)), torch.nn.BCEWithLogitsLoss()(t, torch.tensor(p)), [(x, t)])


@pytest.mark.parametrize(
    "ours, theirs, shape",
    [
        (lambda: nn.Linear(5, 3), lambda: torch.nn.Linear(5, 3), (2, 4, 5)),
        (lambda: nn.Linear(5, 3, bias=False), lambda: torch.nn.Linear(5, 3, bias=False), (2, 5)),
        (lambda: nn.LayerNorm(5), lambda: torch.nn.LayerNorm(5), (2, 4, 5)),
        (lambda: nn.LayerNorm((4, 5), eps=1e-3), lambda: torch.nn.LayerNorm((4, 5), eps=1e-3), (2, 4, 5)),
        (lambda: nn.LayerNorm(5, bias=False), lambda: torch.nn.LayerNorm(5, bias=False), (3, 5)),
        (lambda: nn.LayerNorm(5, elementwise_affine=False), lambda: torch.nn.LayerNorm(5, elementwise_affine=False), (3, 5)),
        (lambda: nn.RMSNorm(5, eps=1e-6), lambda: torch.nn.RMSNorm(5, eps=1e-6), (2, 4, 5)),
        (lambda: nn.PReLU(), lambda: torch.nn.PReLU(), (3, 5)),
        (lambda: nn.PReLU(4), lambda: torch.nn.PReLU(4), (2, 4, 5)),
        (lambda: nn.GLU(1), lambda: torch.nn.GLU(1), (2, 4, 5)),
        (lambda: nn.CELU(0.5), lambda: torch.nn.CELU(0.5), (2, 5)),
        (lambda: nn.Threshold(0.1, -2.0), lambda: torch.nn.Threshold(0.1, -2.0), (2, 5)),
        (lambda: nn.ReLU6(), lambda: torch.nn.ReLU6(), (2, 5)),
    ],
)
def test_layers_are_pytorchs(ours, theirs, shape):
    ours, theirs = ours(), theirs()
    # State dicts have the same names.
    ours.load_state_dict({name: flow.from_dlpack(t.detach() + 0.5) for name, t in theirs.state_dict().items()})
    with torch.no_grad():
        for p in theirs.parameters():
            p += 0.5
    x, t = pair(shape)
    pairs = list(zip(ours.parameters(), theirs.parameters()))
    alike(ours(x).tanh(), theirs(t).tanh(), [(x, t), *pairs])


def test_embedding_and_attention_are_pytorchs():
    ours, theirs = nn.Embedding(7, 4), torch.nn.Embedding(7, 4)
    ours.load_state_dict({"weight": flow.from_dlpack(theirs.weight.detach())})
    ids = np.array([[1, 6], [0, 1]])
    alike(ours(flow.tensor(ids)).sin(), theirs(torch.tensor(ids)).sin(), [(ours.weight, theirs.weight)])
    (q, tq), (k, tk), (v, tv) = (pair((2, 3, 5, 4), seed) for seed in range(3))
    for causal in (False, True):
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=0.3)
        z = torch.nn.functional.scaled_dot_product_attention(tq, tk, tv, is_causal=causal, scale=0.3)
        near(y, z)
    x, t = pair((3, 4))
    near(F.normalize(x), torch.nn.functional.normalize(t))
    near(F.one_hot(flow.tensor([0, 2]), 3), torch.tensor([[1, 0, 0], [0, 0, 1]]))


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (lambda p: SGD(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
        (
            lambda p: SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.2),
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.2),
        ),
        (
            lambda p: SGD(p, lr=0.1, momentum=0.9, nesterov=True),
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        ),
        (lambda p: AdamW(p), lambda p: torch.optim.AdamW(p)),
        (
            lambda p: AdamW(p, lr=0.1, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.3),
            lambda p: torch.optim.AdamW(p, lr=0.1, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.3),
        ),
    ],
)
def test_steps_are_pytorchs(ours, theirs):
    values = np.linspace(-1, 1, 6, dtype=np.float32)
    p, t = flow.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    a, b = ours([p]), theirs([t])
    for i in range(5):
        for opt, loss in ((a, (p * p * p + p * i).sum()), (b, (t * t * t + t * i).sum())):
            opt.zero_grad()
            loss.backward()
            opt.step()
    np.testing.assert_allclose(p.tolist(), t.tolist(), rtol=2e-5, atol=1e-6)
