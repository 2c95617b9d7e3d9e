"""Ops that a program declares in Python."""

import dataclasses
import typing

import numpy as np
import oflow as flow
import pytest

leaky = flow.op(
    "leaky(Tensor x, *, Float alpha=0.01) -> Tensor",
    expression="select(x >= 0, x, alpha * x)",
    domain="mine",
    samples=["f32[4, 6]", "f64[5]; alpha=0.5"],
    doc="x, or alpha x where x is negative.",
)


def scale_rows_kernel(inputs, outputs, attrs):
    x, w = inputs
    outputs[0][...] = x * w[:, None] * attrs["by"]


scale_rows = flow.op(
    "scale_rows(Tensor x, Tensor w, *, Float by=1.0) -> Tensor",
    kernel=scale_rows_kernel,
    domain="mine",
    inputs="f32|f64",
    dtype="same",
    factors="mn, m -> mn",
    linear=["x", "w"],
    gradient=lambda dy, x, w, by: (getattr(dy, "mine.scale_rows")(w, by=by), (dy * x * by).sum(dims=[1])),
    samples=["f32[4, 6] f32[4]", "f64[3, 5] f64[3]; by=2.0"],
)


def test_an_expression():
    x = flow.tensor([-2.0, 3.0], requires_grad=True)
    y = leaky(x, alpha=0.5)
    assert y.tolist() == [-1.0, 3.0] and flow.mine.leaky(x).tolist() == pytest.approx([-0.02, 3.0])
    y.sum().backward()
    assert x.grad.tolist() == [0.5, 1.0]
    assert "alpha: float = 0.01" in leaky.__doc__ and "x is negative" in leaky.__doc__
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        leaky(x, 0.5)
    assert "leaky" in dir(flow.mine) and "mine.leaky" in dir(flow)
    x = flow.tensor([-1.0], placement=flow.placement.all("cpu"), sbp=flow.sbp.broadcast)
    assert leaky(x, alpha=3.0).item() == -3


def test_a_kernel_in_python():
    x, w = np.arange(6.0).reshape(2, 3), np.array([2.0, 3.0])
    a, b = flow.tensor(x, requires_grad=True), flow.tensor(w, requires_grad=True)
    y = scale_rows(a, b, by=2.0)
    np.testing.assert_allclose(y.detach().numpy(), x * w[:, None] * 2)
    y.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), np.ones((2, 3)) * w[:, None] * 2)
    np.testing.assert_allclose(b.grad.numpy(), x.sum(1) * 2)
    p = flow.placement.all("cpu")
    for sx, sw in ((flow.sbp.split(0), flow.sbp.split(0)), (flow.sbp.split(1), flow.sbp.broadcast)):
        y = scale_rows(flow.tensor(x, placement=p, sbp=sx), flow.tensor(w, placement=p, sbp=sw))
        assert y.sbp == (sx,) and (np.array(y.tolist()) == x * w[:, None]).all()


def test_conformance():
    assert "mine.leaky: conforms on 2 samples" in flow.testing.conformance(leaky)
    assert "conforms" in flow.testing.conformance("mine.scale_rows")

    def wrong(inputs, outputs, attrs):
        outputs[0][...] = np.maximum(inputs[0], 0)

    bent = flow.op(
        "bent(Tensor x) -> Tensor", kernel=wrong, domain="mine", inputs="f32", dtype="same", sbp=["S0 -> S0", "P -> P"], samples=["f32[4, 6]"]
    )
    with pytest.raises(flow.RegistryError, match=r"mine.bent sample 0 \(as given\) with \[P\(sum\)\] -> \[\[P\(sum\)\]\] on \[2\]"):
        flow.testing.conformance(bent)


def test_shapes_and_several_outputs():
    def kernel(inputs, outputs, attrs):
        outputs[0][...] = inputs[0].min(axis=1)
        outputs[1][...] = inputs[0].argmin(axis=1)

    least = flow.op(
        "least(Tensor x) -> (Tensor value, Tensor index)",
        kernel=kernel,
        domain="mine",
        shape=lambda shapes, attrs: [shapes[0][:1], shapes[0][:1]],
        dtype=[flow.float32, flow.int64],
        inputs="f32",
    )
    r = least(flow.tensor([[3.0, 1.0], [2.0, 5.0]]))
    assert r.value.tolist() == [1.0, 2.0] and r.index.tolist() == [1, 0]


def test_exceptions_in_callbacks():
    class Mine(Exception):
        pass

    def raises(*args, **kwargs):
        raise Mine("inside")

    f = flow.op("raising(Tensor x) -> Tensor", kernel=raises, domain="mine", dtype="same")
    with pytest.raises(Mine, match="inside") as error:
        f(flow.ones(2))
    assert error.traceback[-1].name == "raises"
    g = flow.op("raising_shape(Tensor x) -> Tensor", kernel=raises, shape=raises, domain="mine", dtype="same")
    with pytest.raises(Mine):
        g(flow.ones(2))
    h = flow.op("raising_grad(Tensor x) -> Tensor", kernel=lambda i, o, a: None, gradient=raises, domain="mine", dtype="same")
    with pytest.raises(Mine):
        h(flow.ones(2, requires_grad=True)).sum().backward()
    k = flow.op("odd_grad(Tensor x) -> Tensor", kernel=lambda i, o, a: None, gradient=lambda dy, x: 3, domain="mine", dtype="same")
    with pytest.raises(TypeError, match="it returns values of the rule"):
        k(flow.ones(2, requires_grad=True)).sum().backward()
    listed = flow.op("listed_shape(Tensor x) -> Tensor", kernel=lambda i, o, a: o[0].fill(1), shape=lambda s, a: [4, 2], domain="mine", dtype="same")
    assert listed(flow.ones(2)).shape == (4, 2)
    s = flow.op("odd_shape(Tensor x) -> Tensor", kernel=lambda i, o, a: None, shape=lambda s, a: "no", domain="mine", dtype="same")
    with pytest.raises(TypeError):
        s(flow.ones(2))
    with pytest.raises(TypeError, match="has no oflow.bfloat16"):
        f(flow.ones(2, dtype=flow.bfloat16))


def test_wrong_declarations_say_so():
    for text, options, error in (
        ("a(Tensr x) -> Tensor", {"expression": "x"}, "unknown type 'Tensr'"),
        ("a(Tensor x) -> Tensor", {"expression": "x +"}, "mine|op a"),
        ("a(Tensor x) -> Tensor", {}, "an expression or a kernel"),
        ("a(Tensor x) -> Tensor", {"kernel": 3}, "kernel must be a function, not int"),
        ("a(Tensor x) -> Tensor", {"expression": "x", "dtype": "same"}, "follow from it: dtype"),
        ("a(Tensor x) -> Void", {"kernel": print}, "an op returns a Tensor"),
        ("leaky(Tensor x) -> Tensor", {"expression": "x * 3"}, "leaky"),
        ("a(Tensor x) -> Tensor", {"kernel": print, "dtype": 5}, "dtype"),
    ):
        with pytest.raises((flow.Error, TypeError, ValueError), match=error):
            flow.op(text, domain="mine", **options)


@dataclasses.dataclass
class Slope:
    alpha: float = 0.01
    times: int = 1
    most: float | None = None
    words: list[str] = dataclasses.field(default_factory=lambda: ["a", "b c"])
    flip: bool = False

    def slope(self):
        return (-1 if self.flip else 1) * self.times * self.alpha


def test_a_dataclass_declares_the_parameters_of_an_op_and_of_its_gradient_op():
    def run(inputs, outputs, p):
        x = inputs[0]
        assert isinstance(p, Slope) and p.words[0] == "a"
        outputs[0][...] = np.minimum(np.where(x >= 0, x, p.slope() * x), np.inf if p.most is None else p.most)

    def backward(inputs, outputs, p):
        dy, x = inputs
        outputs[0][...] = dy * np.where(x >= 0, 1, p.slope())

    flow.op("sloped_grad(Tensor dy, Tensor x) -> Tensor", params=Slope, kernel=backward, dtype="same", domain="mine", sbp="S0, S0 -> S0")
    sloped = flow.op(
        "sloped(Tensor x) -> Tensor",
        params=Slope,
        kernel=run,
        dtype="same",
        domain="mine",
        sbp="S0 -> S0",
        shape=lambda shapes, p: shapes[0][: 100 * p.times],
        gradient=lambda dy, x, p: getattr(dy, "mine.sloped_grad")(x, **dataclasses.asdict(p)),
    )
    assert "alpha: float = 0.01" in sloped.__doc__ and "flip: bool = False" in sloped.__doc__
    x = flow.tensor([-2.0, 3.0], requires_grad=True)
    y = sloped(x, **dataclasses.asdict(Slope(alpha=0.5, times=3, flip=True, most=2.5)))
    assert y.tolist() == [2.5, 2.5]
    y.sum().backward()
    assert x.grad.tolist() == [-1.5, 1.0]
    x = flow.tensor([-2.0], requires_grad=True)
    y = sloped(x)
    y.backward()
    assert y.tolist() == pytest.approx([-0.02]) and x.grad.tolist() == pytest.approx([0.01])

    @dataclasses.dataclass
    class Odd:
        other: typing.Any = 1

    with pytest.raises(TypeError, match="the field other of Odd is"):
        flow.op("odd(Tensor x) -> Tensor", params=Odd, kernel=run, domain="mine")
    with pytest.raises(TypeError, match="params must be a dataclass"):
        flow.op("odd(Tensor x) -> Tensor", params=3, kernel=run, domain="mine")
    with pytest.raises(ValueError, match="write the tensors only"):
        flow.op("odd(Tensor x, *, Int n=1) -> Tensor", params=Slope, kernel=run, domain="mine")


def test_signatures_over_several_mesh_axes_are_rows_of_text():
    def run(inputs, outputs, attrs):
        outputs[0][...] = inputs[0]

    said = {"kernel": run, "dtype": "same", "domain": "mine", "samples": ["f32[4, 6]"]}
    tiles = flow.op("tiles(Tensor x) -> Tensor", sbp="S0 -> S0", nd_extra=["[S(0), S(1)] -> [S(0), S(1)]"], **said)
    flow.op("apart(Tensor x) -> Tensor", sbp=["S0 -> S0", "S1 -> S1"], nd_valid="not [S(0), S(1)] -> *", **said)
    flow.op("listed(Tensor x) -> Tensor", nd_infer=["[S(1), S(0)] -> [S(1), S(0)]"], **said)
    p = flow.placement("cpu", np.zeros((1, 1), dtype=int).tolist())
    x = flow.tensor(np.arange(24.0).reshape(4, 6), placement=p, sbp=(flow.sbp.split(0), flow.sbp.split(1)))
    assert tiles(x).sbp == (flow.sbp.split(0), flow.sbp.split(1))
    for name in ("tiles", "apart", "listed"):
        assert "conforms" in flow.testing.conformance(f"mine.{name}")
    with pytest.raises(Exception, match="its tensors have different numbers of axes"):
        flow.op("wrong(Tensor x) -> Tensor", nd_extra=["[S(0), B] -> [S(0)]"], **said)


def copies(inputs, outputs, attrs):
    outputs[0][...] = inputs[0]


def takes(hints, attrs):
    """What is asked for; of a whole input columns, unless layouts are kept; else what costs least."""
    assert isinstance(hints, flow.SbpHints) and hints.shapes == [(8, 4)] and attrs == {"n": 1}
    columns, whole = ("[" + ", ".join([sbp] * len(hints.mesh)) + "]" for sbp in ("S(1)", "B"))
    taken = hints.output or (columns if hints.inputs[0] == whole and not hints.keep else None)
    return taken and f"{taken} -> {taken}"


def lists(hints, attrs):
    columns = "[" + ", ".join(["S(1)"] * len(hints.mesh)) + "]"
    rows = hints.inputs[0] if "S(0)" in hints.inputs[0] else None
    sbp = hints.output or rows or columns
    return [f"{sbp} -> {sbp}"]


def test_rules_see_the_layouts_that_a_call_has_and_is_asked_for():
    said = {"kernel": copies, "dtype": "same", "domain": "hinted"}
    flow.op("takes(Tensor x, *, Int n=1) -> Tensor", sbp=["S0 -> S0", "S1 -> S1"], nd_choose=takes, **said)
    flow.op("lists(Tensor x) -> Tensor", nd_infer=lists, samples=["f32[4, 6]"], **said)
    assert "conforms" in flow.testing.conformance("hinted.lists")
    split, broadcast, partial = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
    for ranks in ([0], [[0]]):
        p = flow.placement("cpu", ranks)
        axes = len(np.shape(ranks))

        def make(sbp):
            return flow.tensor(np.arange(32.0).reshape(8, 4), placement=p, sbp=(broadcast,) * axes).to_global(sbp=(sbp,) * axes)

        for _ in range(2):
            for op, x, asked, keep, want in (
                (flow.hinted.takes, broadcast, None, False, split(1)),
                (flow.hinted.takes, broadcast, None, True, broadcast),
                (flow.hinted.takes, broadcast, split(0), False, split(0)),
                (flow.hinted.takes, split(0), None, False, split(0)),
                (flow.hinted.lists, split(0), None, False, split(0)),
                (flow.hinted.lists, partial, split(0), False, split(0)),
            ):
                x = make(x)

                def call(x):
                    ask = (lambda: flow.with_sbp((asked,) * axes, lambda: op(x))) if asked else lambda: op(x)
                    if keep:
                        with flow.keep_layouts():
                            return ask()
                    return ask()

                graph = flow.graph(call)
                for y in (call(x), graph(x), graph(x)):
                    assert y.sbp == (want,) * axes and y.tolist() == np.arange(32.0).reshape(8, 4).tolist()


def test_what_goes_wrong_in_a_rule_names_the_op_the_rule_and_the_line():
    x = flow.tensor(np.zeros((2, 2)), placement=flow.placement.all("cpu"), sbp=flow.sbp.broadcast)

    def raises(hints, attrs):
        raise KeyError("rows")

    line = raises.__code__.co_firstlineno + 1
    for n, (rule, function, says) in enumerate(
        (
            ("nd_choose", raises, rf"`nd_choose` of op hinted\.wrong0 raised KeyError: 'rows' \(.*test_ops\.py:{line}\)"),
            ("nd_infer", raises, rf"`nd_infer` of op hinted\.wrong1 raised KeyError: 'rows' \(.*test_ops\.py:{line}\)"),
            ("nd_choose", lambda hints, attrs: ["[B] -> [B]"], r"of op hinted\.wrong2 returned \['\[B\] -> \[B\]'\]; it returns a row as text, or None"),
            ("nd_infer", lambda hints, attrs: "[B] -> [B]", r"of op hinted\.wrong3 returned '\[B\] -> \[B\]'; it returns a list of rows"),
            ("nd_choose", lambda hints, attrs: "[B -> [B]", r"`nd_choose` of op hinted\.wrong4@1 gives '\[B -> \[B\]'"),
            ("nd_infer", lambda hints, attrs: ["[B, B] -> [B, B]"], r"`nd_infer` of op hinted\.wrong5@1 gives .* on 1 mesh axes"),
            ("nd_choose", lambda hints, attrs: "[S(1)] -> [S(1)]", r"op hinted\.wrong6@1 takes .* none of its signatures"),
        )
    ):
        op = flow.op(f"wrong{n}(Tensor x) -> Tensor", kernel=copies, dtype="same", domain="hinted", **{rule: function})
        with pytest.raises(flow.Error, match=says):
            op(x)
        with pytest.raises(flow.Error, match=says):
            flow.graph(op)(x)
    with pytest.raises(TypeError, match="nd_choose must be a function, not str"):
        flow.op("wrong(Tensor x) -> Tensor", kernel=copies, domain="hinted", nd_choose="[B] -> [B]")
