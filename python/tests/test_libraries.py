"""Ops from sources, in Python: the seeds' MatMulScale as an autograd function and a module, and libraries that change or fail."""

import pathlib
import shutil

import numpy as np
import oflow as flow
import pytest

pytestmark = pytest.mark.skipif(not shutil.which("c++"), reason="there is no compiler of C++")

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ops"
SCALE = """
#include "oflow_op.hpp"
static void run(const oflow::Call &c) {
    if (c.param("by").as<double>() == 0) throw oflow::Error("by must not be 0");
    for (int64_t i = 0; i < c.output(0).size(); ++i)
        c.output(0).data<float>()[i] = float(FACTOR * c.param("by").as<double>()) * c.input(0).data<float>()[i];
}
OFLOW_LIBRARY(pyscale) {
    library.op("scale(x: f32; by: float = 1 / 4) -> y").signatures({"S(0) -> S(0)", "P -> P"}).gradient("x = pyscale.scale(grad y; by)")
        .functions({"scale(Tensor x, *, Float by=0.25) -> Tensor"}).samples({"f32[4]"}).cpu(run);
}
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def demo(cache):
    return flow.ops.build_and_load([SOURCES / "matmul_scale.cc", SOURCES / "matmul_scale.cu"], cache=cache)


def test_a_library_is_there_at_once(demo):
    assert demo.name == "demo" and "demo.matmul_scale" in demo.ops and demo in [demo]
    assert any(other.hash == demo.hash for other in flow.ops.loaded())
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 5))
    y = flow.demo.matmul_scale(flow.tensor(a), flow.tensor(b), scale=0.1)
    np.testing.assert_allclose(y.numpy(), 0.1 * (a @ b))
    with pytest.raises(TypeError, match="scale"):
        flow.demo.matmul_scale(flow.tensor(a), flow.tensor(b), 0.1)
    assert "matmul_scale(x: Tensor, w: Tensor, *, scale: float = 1.0) -> Tensor" in flow.demo.matmul_scale.__doc__
    assert "conforms" in flow.testing.conformance("demo.matmul_scale")


class MatMulScaleFunction(flow.autograd.Function):
    @staticmethod
    def forward(ctx, lhs, rhs, scale):
        ctx.save_for_backward(lhs, rhs)
        ctx.scale = scale
        return flow.demo.matmul_scale(lhs, rhs, scale=scale)

    @staticmethod
    def backward(ctx, grad):
        lhs, rhs = ctx.saved_tensors
        gradients = flow.demo.matmul_scale_grad(grad, lhs, rhs, scale=ctx.scale)
        return gradients[0], gradients[1], None


class MatMulScale(flow.nn.Module):
    def __init__(self, inputs, outputs, scale, function):
        super().__init__()
        self.scale = scale
        self.function = function
        self.weight = flow.nn.Parameter(flow.zeros([inputs, outputs], dtype=flow.float64))

    def forward(self, x):
        if self.function:
            return MatMulScaleFunction.apply(x, self.weight, self.scale)
        return flow.demo.matmul_scale(x, self.weight, scale=self.scale)


@pytest.mark.parametrize("function", [False, True])
def test_megengines_module_and_training_loop(demo, function):
    x = flow.tensor(np.sin(np.arange(24.0)).reshape(6, 4))
    target = flow.tensor(np.cos(np.arange(18.0)).reshape(6, 3))
    model = MatMulScale(4, 3, 0.5, function)
    optimizer = flow.optim.SGD(model.parameters(), lr=2.0)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (model(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    # The same loop in PyTorch with `0.5 * (x @ w)`.
    torch = [0.5068215251554411, 0.46092083168841114, 0.43961875464141925, 0.4293519238586728, 0.42423713856047307]
    assert losses == pytest.approx(torch, abs=1e-12)


def test_a_changed_source_replaces_its_ops(tmp_path, cache):
    source = tmp_path / "pyscale.cc"
    source.write_text(SCALE.replace("FACTOR", "1"))
    first = flow.ops.build_and_load(source, cache=cache)
    x = flow.tensor([4.0], requires_grad=True)
    assert flow.pyscale.scale(x).tolist() == [1.0]
    source.write_text(SCALE.replace("FACTOR", "2"))
    y = flow.pyscale.scale(x)
    with pytest.raises(flow.Error, match="is in use"):
        flow.ops.build_and_load(source, cache=cache)
    y.backward()
    assert x.grad.tolist() == [0.25]
    del y
    second = flow.ops.build_and_load(source, cache=cache)
    assert first.hash != second.hash and flow.pyscale.scale(x.detach()).tolist() == [2.0]
    with pytest.raises(flow.Error, match="by must not be 0"):
        flow.pyscale.scale(x.detach(), by=0)
    source.write_text("int nothing = missing;\n")
    with pytest.raises(flow.Error, match=r"pyscale.cc:1:"):
        flow.ops.build_and_load(source, cache=cache)
    flow.ops.unload(second)
    with pytest.raises(AttributeError):
        flow.pyscale.scale
    with pytest.raises(flow.Error, match="is not loaded"):
        flow.ops.unload(second)


def test_what_is_no_library(tmp_path):
    for path in [tmp_path / "none.so", tmp_path]:
        with pytest.raises(flow.Error, match="cannot be read"):
            flow.ops.load(path)
    with pytest.raises(flow.Error, match="no source"):
        flow.ops.build_and_load([])
    with pytest.raises(TypeError):
        flow.ops.load(3)
