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


def named_results(names):
    """A library whose overloads return other names, and whose outputs vary."""
    outputs = ", ".join(names)
    tensors = ", ".join(f"Tensor {name}" for name in names)
    return f"""#include "oflow_op.hpp"
static void numbers(const oflow::Call &call)
{{
    for (int o = 0; o < int(call.output_count()); ++o)
        for (int64_t i = 0; i < call.output(o).size(); ++i)
            call.output(o).data<float>()[i] = float(o + 1);
}}
static std::vector<oflow::Shape> alike(const oflow::Infer &infer, size_t n) {{ return std::vector<oflow::Shape>(n, infer.input(0).shape()); }}
OFLOW_LIBRARY(results)
{{
    library.op("one(x: f32) -> ({outputs})").gradient("none").cpu(numbers)
        .shapes([](const oflow::Infer &i) {{ return alike(i, {len(names)}); }}).functions({{"f(Tensor x) -> ({tensors})"}});
    library.op("two(x: f32, y: f32) -> (p, q, r)").gradient("none").cpu(numbers)
        .shapes([](const oflow::Infer &i) {{ return alike(i, 3); }})
        .functions({{"f(Tensor x, Tensor y) -> (Tensor p, Tensor q, Tensor r)"}});
    library.op("varies(x: f32, w?: f32; flag: bool = false, n: int = 0) -> (y, m?(flag), v?(w), all...(n))").gradient("none").cpu(numbers)
        .shapes([](const oflow::Infer &i) {{
            return alike(i, 1 + i.param("flag").as<bool>() + i.has_input(1) + i.param("n").as<size_t>());
        }});
    library.op("each(x: f32; n: int) -> all...(n)").gradient("none").cpu(numbers)
        .shapes([](const oflow::Infer &i) {{ return alike(i, i.param("n").as<size_t>()); }});
}}
"""


def test_results_have_the_names_of_their_overload_and_none_where_an_output_is_left_out(tmp_path, cache):
    source = tmp_path / "results.cc"

    def build(names):
        source.write_text(named_results(names))
        return flow.ops.build_and_load([source], cache=cache)

    build(["a", "b"])
    x = flow.ones((1,))
    assert flow.results.f(x)._fields == ("a", "b")
    assert flow.results.f(x, x)._fields == ("p", "q", "r")

    def shown(*args, **named):
        return [None if v is None else [t.item() for t in v] if isinstance(v, tuple) else v.item() for v in flow.results.varies(*args, **named)]

    assert shown(x) == [1, None, None, []]
    assert shown(x, flag=True) == [1, 2, None, []]
    assert shown(x, x) == [1, None, 2, []]
    assert shown(x, x, flag=True, n=2) == [1, 2, 3, [4, 5]]
    assert [len(flow.results.each(x, n)) for n in (0, 1, 3)] == [0, 1, 3]
    # Built again with other names.
    library = build(["a", "b", "c"])
    assert flow.results.f(x)._fields == flow.results.one(x)._fields == ("a", "b", "c")
    assert build(["u", "v"]) is not library
    assert flow.results.f(x).v.item() == 2
    flow.ops.unload(flow.ops.loaded()[-1])


COMPOSED = """
#include "oflow_op.hpp"
OFLOW_LIBRARY(pycomposed) {
    library.function("scaled_relu(Tensor x, *, Float by=2.0) -> Tensor", [](const oflow::Arguments &a) {
        return oflow::call("mul", {oflow::call("relu", {a.tensor("x")})[0], a.param("by").as<double>()});
    }).doc("relu(x) times a number.");
    library.function("ends(Tensor x) -> (Tensor first, Tensor last)", [](const oflow::Arguments &a) -> oflow::Results {
        auto x = a.tensor("x");
        return {oflow::call("slice", {x, 0, 0, 1})[0], oflow::call("slice", {x, 0, x.shape()[0] - 1, x.shape()[0]})[0]};
    });
    library.function("numbers(Tensor x) -> Int", [](const oflow::Arguments &a) { return oflow::Results(a.tensor("x").numel()); });
}
"""


def test_a_function_of_cpp_composes_ops(cache, tmp_path):
    source = tmp_path / "pycomposed.cc"
    source.write_text(COMPOSED)
    library = flow.ops.build_and_load([source], cache=cache)
    x = flow.tensor([-1.0, 3.0]).requires_grad_()
    y = flow.pycomposed.scaled_relu(x, by=4.0)
    y.sum().backward()
    assert y.tolist() == [0.0, 12.0] and x.grad.tolist() == [0.0, 4.0]
    assert "relu(x) times a number." in flow.pycomposed.scaled_relu.__doc__
    assert "scaled_relu(x: Tensor, *, by: float = 2.0) -> Tensor" in flow.pycomposed.scaled_relu.__doc__
    ends = flow.pycomposed.ends(x)
    assert ends.first.tolist() == [-1.0] and ends.last.tolist() == [3.0]
    assert flow.pycomposed.numbers(x) == 2
    p = flow.placement.all("cpu")
    shards = flow.ones((4,), placement=p, sbp=flow.sbp.split(0))
    assert flow.pycomposed.scaled_relu(shards).sbp == shards.sbp
    with pytest.raises(TypeError, match="by"):
        flow.pycomposed.scaled_relu(x, 4.0)
    with pytest.raises(flow.Error, match="slice"):
        flow.pycomposed.ends(flow.tensor(1.0))
    flow.ops.unload(library)
    with pytest.raises(AttributeError):
        flow.pycomposed.scaled_relu(x)
