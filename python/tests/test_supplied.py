"""Gradients that a program supplies: each way to supply one with each thing that may be wrong with it. They are as PyTorch has them: cast,
summed over dims that broadcasting repeats, or refused with a text that names what was given, what was expected, and the line."""

import inspect

import oflow as flow
import pytest

MESH = flow.placement.all("cpu")
WORLD = flow.world_size()
LOCAL = {}
GLOBAL = {"placement": MESH, "sbp": flow.sbp.B}


class Given(flow.autograd.Function):
    """Twice x, with the gradient that a test supplies."""

    gradient = None

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return Given.gradient


# The ways: each takes a leaf of ones and the gradient, and gives the gradient of the leaf, which is what was supplied.


def function(x, g):
    Given.gradient = g
    Given.apply(x).sum().backward()
    return x.grad


def function_of_a_result(x, g):
    Given.gradient = g
    Given.apply(x * 1).sum().backward()
    return x.grad


def hook(x, g):
    y = x * 1
    y.register_hook(lambda _: g)
    y.sum().backward()
    return x.grad


def hook_of_a_leaf(x, g):
    x.register_hook(lambda _: g)
    x.sum().backward()
    return x.grad


def assigned(x, g):
    x.grad = g
    return x.grad


def assigned_to_a_result(x, g):
    y = x * 1
    y.grad = g
    return y.grad


def backward(x, g):
    (x * 1).backward(g)
    return x.grad


def grad_outputs(x, g):
    return flow.grad([x * 1], [x], [g])[0]


FUNCTIONS = (function, function_of_a_result)
HOOKS = (hook, hook_of_a_leaf)
ASSIGNED = (assigned, assigned_to_a_result)
STARTS = (backward, grad_outputs)
WAYS = FUNCTIONS + HOOKS + ASSIGNED + STARTS

EQUAL = "expected the shape [2, 3]"
BROADCASTS = "expected the shape [2, 3], or one to which it broadcasts"
DTYPE = "expected the dtype f32"
# Of each fault what is given and, for each kind of ways, the outcome: a text of the error, or the sum of the gradient.
CAST = {FUNCTIONS: 6.0, STARTS: 6.0, HOOKS: DTYPE, ASSIGNED: DTYPE}


def shaped(text):
    return {FUNCTIONS: text, HOOKS: EQUAL, ASSIGNED: EQUAL, STARTS: EQUAL}


def alike(outcome):
    return {ways: outcome for ways in CAST}


FAULTS = {
    "right": (lambda where: flow.ones((2, 3), **where), alike(6.0)),
    "shape [5]": (lambda where: flow.ones(5, **where), shaped(BROADCASTS)),
    "shape [3, 2]": (lambda where: flow.ones((3, 2), **where), shaped(BROADCASTS)),
    "shape [0]": (lambda where: flow.ones(0, **where), shaped(BROADCASTS)),
    "shape []": (lambda where: flow.ones((), **where), shaped(BROADCASTS)),
    "shape [3]": (lambda where: flow.ones(3, **where), shaped(BROADCASTS)),
    "shape [1, 3]": (lambda where: flow.ones((1, 3), **where), shaped(BROADCASTS)),
    "shape [4, 2, 3]": (lambda where: flow.ones((4, 2, 3), **where), shaped(24.0)),
    "f64": (lambda where: flow.ones((2, 3), dtype=flow.float64, **where), CAST),
    "f16": (lambda where: flow.ones((2, 3), dtype=flow.float16, **where), CAST),
    "integers": (lambda where: flow.ones((2, 3), dtype=flow.int64, **where), CAST),
    "bools": (lambda where: flow.ones((2, 3), dtype=flow.bool, **where), CAST),
    "complex": (
        lambda where: flow.ones((2, 3), dtype=flow.complex64, **where),
        {FUNCTIONS: "expected real numbers", STARTS: "expected real numbers", HOOKS: DTYPE, ASSIGNED: DTYPE},
    ),
    "a number": (lambda where: 3, alike(TypeError)),
    "a list": (lambda where: [[1.0] * 3] * 2, alike(TypeError)),
    "None": (lambda where: None, {FUNCTIONS: None, HOOKS: 6.0, ASSIGNED: None, STARTS: "needs its gradient"}),
}
LOCAL_FAULTS = {
    "global for local": (lambda where: flow.ones((2, 3), **GLOBAL), alike("expected a local tensor")),
}
GLOBAL_FAULTS = {
    "local for global": (lambda where: flow.ones((2, 3)), alike("expected a global tensor on cpu")),
    "on another mesh": (
        lambda where: flow.ones((2, 3), placement=MESH.mesh(a=1, b=WORLD), sbp=(flow.sbp.B, flow.sbp.B)),
        alike("expected a tensor on cpu"),
    ),
    "S(0)": (lambda where: flow.ones((2, 3), placement=MESH, sbp=flow.sbp.S(0)), alike(6.0)),
    "S(1)": (lambda where: flow.ones((2, 3), placement=MESH, sbp=flow.sbp.S(1)), alike(6.0)),
    "P": (lambda where: flow.ones((2, 3), placement=MESH, sbp=flow.sbp.P), alike(6.0)),
}
CASES = [
    pytest.param(where, way, made, outcomes[kind], id=f"{way.__name__}, {fault}, {name}")
    for name, where, more in (("local", LOCAL, LOCAL_FAULTS), ("global", GLOBAL, GLOBAL_FAULTS))
    for fault, (made, outcomes) in {**FAULTS, **more}.items()
    for kind in CAST
    for way in kind
]


@pytest.mark.parametrize("where, way, made, outcome", CASES)
def test_supplied(where, way, made, outcome):
    x, g = flow.ones((2, 3), requires_grad=True, **where), made(where)
    if outcome is TypeError:
        with pytest.raises(TypeError, match=f"Tensor or None, not {type(g).__name__}"):
            way(x, g)
    elif isinstance(outcome, str):
        with pytest.raises(flow.Error) as raised:
            way(x, g)
        error = raised.value
        assert outcome in str(error), str(error)
        # What was given, with its place, and what it is to be the gradient of.
        given = () if g is None else (f"f32[2, 3] [B] on {MESH}" if x.is_global else "f32[2, 3] on cpu",)
        assert all(text in str(error) for text in given), str(error)
        file, line = error.site
        lines, first = inspect.getsourcelines(way)
        assert file == __file__ and first <= line < first + len(lines), str(error)
    elif outcome is None:
        assert way(x, g) is None
    else:
        got = way(x, g)
        assert (got.dtype, tuple(got.shape), float(got.sum().item())) == (flow.float32, (2, 3), outcome)
        if x.is_global and way not in ASSIGNED:
            assert got.sbp == x.sbp


def test_the_count():
    assert len(CASES) == (len(FAULTS) * 2 + len(LOCAL_FAULTS) + len(GLOBAL_FAULTS)) * len(WAYS)


def test_gradients_of_other_dtypes():
    half = flow.ones((2, 3), dtype=flow.bfloat16, requires_grad=True)
    assert function(half, flow.ones((2, 3))).dtype == flow.bfloat16
    number = flow.ones((2, 3), dtype=flow.complex64, requires_grad=True)
    Given.gradient = flow.ones((2, 3))
    Given.apply(number).sum().real.backward()
    assert number.grad.dtype == flow.complex64
    Given.gradient = flow.ones((2, 3), dtype=flow.int64)
    with pytest.raises(flow.Error, match="expected complex numbers or floats"):
        Given.apply(number).sum().real.backward()


def test_a_gradient_is_assigned_to_what_has_one():
    x = flow.ones((2, 3))
    x.grad = None
    with pytest.raises(flow.Error, match="does not require a gradient"):
        x.grad = flow.ones((2, 3))
    x.requires_grad_()
    with pytest.raises(flow.Error, match="cannot be its own gradient"):
        x.grad = x


def test_a_rule_of_an_op_is_checked():
    wrong = flow.op(
        "supplied_wrong(Tensor x) -> Tensor",
        kernel=lambda inputs, outputs, attrs: outputs[0].__setitem__(..., inputs[0] * 2),
        inputs="float",
        gradient=lambda dy, x: dy.reshape(shape=[3, 2]),
    )
    x = flow.ones((2, 3), requires_grad=True)
    with pytest.raises(flow.Error, match=r"the gradient rule of .*supplied_wrong made f32\[3, 2\].*expected the shape \[2, 3\]"):
        wrong(x).sum().backward()


class Scaled(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=None, more=None):
        def found(v):
            return v if isinstance(v, flow.Tensor) else found(next(iter(v.values() if isinstance(v, dict) else v)))

        return x * found(scale)

    @staticmethod
    def backward(ctx, dy):
        return dy * 2.0, None, None


UNSEEN = {
    "scale": lambda x, w: Scaled.apply(x, scale=w),
    "scale[0]": lambda x, w: Scaled.apply(x, scale=[w]),
    "scale['w']": lambda x, w: Scaled.apply(x, scale={"w": w}),
    "a member of scale": lambda x, w: Scaled.apply(x, scale={w}),
    "argument 1[0]": lambda x, w: Scaled.apply(x, [w]),
    "argument 1['w']": lambda x, w: Scaled.apply(x, {"w": w}),
    "argument 1[0][1]['w']": lambda x, w: Scaled.apply(x, [(x.detach(), {"w": w})]),
    "more[0]": lambda x, w: Scaled.apply(x, x.detach(), more=(w,)),
}


@pytest.mark.parametrize("where", UNSEEN)
def test_a_function_refuses_tensors_that_it_does_not_see(where):
    x, w = flow.tensor([3.0], requires_grad=True), flow.tensor([2.0], requires_grad=True)
    with pytest.raises(TypeError) as raised:
        UNSEEN[where](x, w)
    assert str(raised.value).startswith(f"Scaled.apply: {where} requires a gradient")
    # Nothing is lost of one that requires none, or where nothing is recorded.
    assert UNSEEN[where](x, w.detach()).requires_grad
    with flow.no_grad():
        assert not UNSEEN[where](x, w).requires_grad


def test_a_function_may_return_more_nones():
    class Longer(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            return dy, None, None

    x = flow.tensor([3.0], requires_grad=True)
    Longer.apply(x).sum().backward()
    assert x.grad.tolist() == [1.0]
