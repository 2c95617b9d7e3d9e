"""The seeds' programs in Python (MegEngine's is in test_libraries.py): OneFlow's leaky_relu and functions, PopXL's LeakyReLU, with the
numbers that PyTorch gives."""

import numpy as np
import oflow as flow
import pytest

X = [-2.0, -0.5, -0.25, 0.25, 1.0, 3.0]
# torch.nn.functional.leaky_relu(x, 0.02), and its gradient for the weights 1 to 6.
Y = [-0.04, -0.01, -0.005, 0.25, 1.0, 3.0]
DX = [0.02, 0.04, 0.06, 4.0, 5.0, 6.0]


def leaky_relu_kernel(inputs, outputs, attrs):
    (x,) = inputs
    outputs[0][...] = np.where(x < 0, attrs["alpha"] * x, x)


def leaky_relu_grad_kernel(inputs, outputs, attrs):
    dy, x = inputs
    outputs[0][...] = np.where(x < 0, attrs["alpha"] * dy, dy)


# OneFlow's: an op with a kernel, and a gradient op.
flow.op(
    "leaky_relu_grad(Tensor dy, Tensor x, Float alpha) -> Tensor",
    kernel=leaky_relu_grad_kernel,
    domain="seed",
    inputs="f32|f64",
    dtype="same",
    factors="n, n -> n",
    samples=["f32[6] f32[6]; alpha=0.1"],
)
leaky_relu = flow.op(
    "leaky_relu(Tensor x, Float alpha=0.01) -> Tensor",
    kernel=leaky_relu_kernel,
    domain="seed",
    inputs="f32|f64",
    dtype="same",
    factors="n -> n",
    gradient=lambda dy, x, alpha: getattr(dy, "seed.leaky_relu_grad")(x, alpha=alpha),
    samples=["f32[6]; alpha=0.1"],
)

# PopXL's: one expression; the parameter is shared by the op and its gradient, which is derived.
popxl_leaky_relu = flow.op(
    "popxl_leaky_relu(Tensor x, *, Float alpha=1e-2) -> Tensor",
    expression="select(x < 0, alpha * x, x)",
    domain="seed",
    samples=["f32[4, 6]", "f64[5]; alpha=0.25"],
)


@pytest.mark.parametrize("op", [leaky_relu, popxl_leaky_relu])
def test_leaky_relu(op):
    x = flow.tensor(X, requires_grad=True)
    y = op(x, alpha=0.02)
    (y * flow.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).sum().backward()
    assert y.tolist() == pytest.approx(Y) and x.grad.tolist() == pytest.approx(DX)


@pytest.mark.parametrize("name", ["seed.leaky_relu", "seed.leaky_relu_grad", "seed.popxl_leaky_relu"])
def test_they_conform(name):
    assert "conforms" in flow.testing.conformance(name)


def test_oneflows_functions():
    x = flow.tensor([1, 2, 3])
    assert flow.add(x, 1).tolist() == [2, 3, 4] and flow.add(x, 1.5).tolist() == [2.5, 3.5, 4.5]
    a, b = flow.tensor([5.0, 7.0]), flow.tensor([1.0, 2.0])
    assert flow.add(a, b).tolist() == [6.0, 9.0] and flow.sub(x=a, s=2).tolist() == [3.0, 5.0]
    with pytest.raises(TypeError, match=r"sub\(a: Tensor, b: Tensor\) -> Tensor"):
        flow.sub(a, "b")


def test_popxls_session():
    # A stream of inputs from the host, the op and its gradient op in a graph, a stream of results to the host.
    w = flow.ones(3, requires_grad=True)
    x = flow.tensor([-2.0, -0.5, 1.0])

    def step(x):
        x = x * w
        y, again, other, _unused = (popxl_leaky_relu(x, alpha=a) for a in (0.02, 0.02, 0.5, 0.7))
        y = y + again + other
        (dw,) = flow.autograd.grad(y.sum(), w)
        return {"y": y, "dw": dw}

    # Without fusion, which makes one call of several.
    session = flow.Session(step, passes={"fuse": False})
    session.feed("x", iter([x * n for n in (1, 2, 3)]))
    session.fetch("dw")
    while session.run() is not None:
        pass
    read = session.fetched("dw")
    assert [run for run, _ in read] == [0, 1, 2]
    for n, (_, dw) in enumerate(read, 1):
        assert dw.tolist() == pytest.approx([-1.08 * n, -0.27 * n, 3.0 * n])
    assert session.explain().count("popxl_leaky_relu@1(") == 2, "equal calls are one, what nobody needs is none"
