"""Functions that a program registers, ops with base attributes, and hooks of calls."""

import copy
import pickle
import sys
import threading
import traceback

import numpy as np
import oflow as flow
import pytest
from jobs import ROOT, run


@flow.function("mine.scaled_relu(Tensor x, *, Float by=2.0) -> Tensor")
def scaled_relu(x, by):
    """relu of x times a number."""
    return (x * by).relu()


def test_a_function_composes_ops():
    x = flow.tensor([-1.0, 3.0], requires_grad=True)
    assert scaled_relu(x).tolist() == [0.0, 6.0]
    y = flow.mine.scaled_relu(x, by=3)
    y.sum().backward()
    assert y.tolist() == [0.0, 9.0] and x.grad.tolist() == [0.0, 3.0]
    assert "mine.scaled_relu" in dir(flow) and "scaled_relu" in dir(flow.mine)
    assert "by: float = 2.0" in scaled_relu.__doc__ and "times a number" in scaled_relu.__doc__
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        scaled_relu(x, 3.0)
    with pytest.raises(TypeError, match="argument 'by' must be float, not str"):
        scaled_relu(x, by="a")
    # Second derivatives too, and a function of the table is pickled by its name.
    cube = flow.function("mine.cube(Tensor x) -> Tensor", lambda x: x * x * x)
    (dx,) = flow.grad(cube(x).sum(), [x], create_graph=True)
    (ddx,) = flow.grad(dx.sum(), [x])
    assert ddx.tolist() == [-6.0, 18.0]
    assert pickle.loads(pickle.dumps(cube))(x).tolist() == [-1.0, 27.0]


def test_arguments_and_results_of_every_kind():
    seen = {}

    @flow.function("mine.draw(Shape size, *, Generator? generator) -> Tensor")
    def draw(size, generator):
        seen["generator"] = generator
        return flow.rand(size, generator=generator)

    g = flow.Generator(3)
    first = draw((2,), generator=g)
    assert first.tolist() != draw((2,), generator=g).tolist() and g.get_state()[1] > 1
    assert draw((2,), generator=flow.Generator(3)).tolist() == first.tolist()
    assert draw((2,)).shape == (2,) and seen["generator"] is None

    @flow.function("mine.at(Tensor x, TensorIndex index) -> Tensor")
    def at(x, index):
        return x[index]

    x = flow.arange(12).reshape(3, 4)
    n = x.numpy()
    for index in (1, (slice(None), -1), (slice(0, 3, 2), None, 1), (..., 2), [0, 2], ([0, 2], [1, 3]), (flow.tensor([2, 0]),), n > 4):
        assert at(x, index).tolist() == n[_plain(index)].tolist()
    spread = flow.tensor(n, placement=flow.placement.all("cpu"), sbp=flow.sbp.broadcast)
    assert at(spread, ([0, 2], 1)).tolist() == [1, 9]

    @flow.function("mine.halves(TensorTuple xs, *, Int dim=0) -> TensorTuple")
    def halves(xs, dim):
        assert isinstance(xs, tuple)
        return [x.narrow(dim, 0, x.shape[dim] // 2) for x in xs]

    assert [t.shape for t in halves([x, x], dim=1)] == [(3, 2), (3, 2)]

    @flow.function("mine.extent(Tensor x) -> (Tensor low, Tensor high)")
    def extent(x):
        return x.amin(), x.amax()

    found = extent(x)
    assert found.low.item() == 0 and found.high.item() == 11

    @flow.function("mine.shift_(Tensor x, Scalar by=1) -> Void")
    def shift_(x, by):
        x.add_(by)

    assert shift_(x) is None and x[0, 0].item() == 1

    @flow.function("mine.grid(Int n, Target target) -> Tensor")
    def grid(n, target):
        return flow.arange(n, **target)

    assert grid(3).tolist() == [0, 1, 2]
    there = grid(3, placement=flow.placement.all("cpu"), sbp=flow.sbp.broadcast)
    assert there.is_global and there.sbp == (flow.sbp.broadcast,)

    for kind, value in (("Int", 3), ("Float", 0.5), ("Bool", True), ("String", "abc"), ("Shape", (2, 3)), ("FloatList", (0.5, 1.0)),
                        ("DataType", flow.float32), ("Scalar", 1 + 2j), ("StringList", ("a", "b"))):  # fmt: skip
        f = flow.function(f"mine.gives_{kind.lower()}(Tensor? x) -> {kind}", lambda x, value=value: value)
        assert f() == value


def _plain(index):
    parts = index if isinstance(index, tuple) else (index,)
    parts = tuple(p.numpy() if isinstance(p, flow.Tensor) else p for p in parts)
    return parts if isinstance(index, tuple) else parts[0]


def test_overloads_are_tried_in_order_of_registration():
    flow.function("mine.times(Tensor x, Tensor y) -> Tensor", lambda x, y: x * y, doc="Of two tensors.")
    times = flow.function("mine.times(Tensor x, Int n) -> Tensor", lambda x, n: x * n, doc="Of a number.")
    flow.function("mine.times(Tensor x, String word) -> String", lambda x, word: word * x.numel())
    x = flow.tensor([1.0, 2.0])
    assert (times(x, x).tolist(), times(x, 3).tolist(), flow.mine.times(x, "ab")) == ([1, 4], [3, 6], "abab")
    with pytest.raises(TypeError, match="(?s)invalid combination.*Tensor.*int.*str"):
        times(x, 0.5)
    with pytest.raises(flow.RegistryError, match="mine.times.* is registered already"):
        flow.function("mine.times(Tensor x, Int n) -> Tensor", lambda x, n: x)
    with pytest.raises(flow.RegistryError, match="no call would reach the overload"):
        flow.function("mine.times(Tensor x, IntList[2] n) -> Tensor", lambda x, n: x)
        flow.function("mine.times(Tensor y, Tensor z) -> Tensor", lambda y, z: y)


def test_errors_of_a_body_keep_their_type_and_line():
    class Own(Exception):
        pass

    @flow.function("mine.fails(Tensor x, Int how) -> Tensor")
    def fails(x, how):
        if how == 0:
            raise Own("not today")
        return x.matmul(flow.ones(7, 7)) if how == 1 else [x][how]

    x = flow.ones(2, 3)
    with pytest.raises(Own, match="^not today$") as e:
        fails(x, 0)
    assert any(frame.name == "fails" and "raise Own" in frame.line for frame in traceback.extract_tb(e.value.__traceback__))
    with pytest.raises(flow.ShapeError, match="(?s)matmul.*test_functions.py"):
        fails(x, 1)
    with pytest.raises(IndexError):
        fails(x, 5)
    with pytest.raises(Own):
        flow.function("mine.outer(Tensor x) -> Tensor", lambda x: fails(x, 0))(x)


def test_wrong_declarations_and_results_say_so():
    one = lambda x: x  # noqa: E731
    for text, body, error, message in (
        ("mine.w(Tensr x) -> Tensor", one, flow.ParseError, "unknown type 'Tensr'"),
        ("mine.w(Tensor x)", one, flow.ParseError, "missing '->'"),
        ("mine.w(Tensor x) -> Tensor", 3, TypeError, "the body of mine.w must be a function, not int"),
        ("mine.w(Tensor x, *, Int n=1) -> Tensor", one, TypeError, r"is called as body\(x, n=...\)"),
        ("mine.w(Tensor x, Int y) -> Tensor", one, TypeError, "too many positional arguments"),
        ("mine.class(Tensor x) -> Tensor", one, ValueError, "'class' cannot be written as oflow.mine.class"),
        ("mine.w(Tensor class) -> Tensor", one, ValueError, "'class' cannot be the name of a parameter"),
        ("mine..w(Tensor x) -> Tensor", one, ValueError, "'' cannot be written"),
        ("save(Tensor x) -> Tensor", one, flow.RegistryError, "oflow.save is something else"),
        ("nn.w(Tensor x) -> Tensor", one, flow.RegistryError, "oflow.nn is something else"),
        ("mine(Tensor x) -> Tensor", one, flow.RegistryError, "oflow.mine is the domain of mine"),
    ):
        with pytest.raises(error, match=message):
            flow.function(text, body)
    with pytest.raises(TypeError, match="takes the text of a signature, not function"):
        flow.function(one)

    async def later(x):
        return x

    with pytest.raises(TypeError, match="a coroutine or a generator"):
        flow.function("mine.w(Tensor x) -> Tensor", later)
    op = flow.op("an_op(Tensor x) -> Tensor", expression="x + 1", domain="mine")
    with pytest.raises(flow.RegistryError, match="mine.an_op is the op mine.an_op"):
        flow.function("mine.an_op(Tensor x, Int n) -> Tensor", lambda x, n: x)
    with pytest.raises(flow.RegistryError, match="(?s)an op has one signature.*oflow.function"):
        flow.op("an_op(Tensor x, Int n) -> Tensor", expression="x + n", domain="mine")
    for text in ("a(Tensor x, Generator g) -> Tensor", "a(Tensor x, TensorIndex i) -> Tensor", "a(Tensor x) -> TensorTuple"):
        with pytest.raises(ValueError, match="oflow.function"):
            flow.op(text, kernel=print, domain="mine")
    x = op(flow.ones(2))
    for i, (returns, value, message) in enumerate((
        ("Tensor", [x], "returned list: it returns one Tensor"),
        ("Tensor", None, "returned NoneType: it returns one Tensor"),
        ("(Tensor a, Tensor b)", (x,), r"a tuple of 2 Tensors \(a, b\), not of 1"),
        ("(Tensor a, Tensor b)", (x, 3), "member 1 is int"),
        ("TensorTuple", x, "returned Tensor: it returns a tuple or list of Tensors"),
        ("Void", x, "returns None"),
        ("Int", 1.5, "returned float: it returns int"),
        ("String", x, "returned Tensor: it returns str"),
    )):  # fmt: skip
        f = flow.function(f"mine.wrong{i}(Tensor x) -> {returns}", lambda x, value=value: value)
        with pytest.raises(TypeError, match=f"the body of mine.wrong{i} .*{message}"):
            f(x)


def test_a_body_may_call_itself_and_register_and_run_on_threads():
    @flow.function("mine.down(Tensor x, Int n) -> Tensor")
    def down(x, n):
        return x if n == 0 else flow.mine.down(x + 1, n - 1)

    assert down(flow.zeros(2), 90).tolist() == [90, 90]
    with pytest.raises(RecursionError, match="mine.down: .* more than 100 levels deep"):
        down(flow.zeros(2), 200)
    assert down(flow.zeros(2), 3).tolist() == [3, 3]

    @flow.function("mine.registers(Tensor x, Int n) -> Tensor")
    def registers(x, n):
        return flow.function(f"mine.made{n}(Tensor x) -> Tensor", lambda x: x + n)(x)

    results = {}

    def work(n):
        results[n] = registers(flow.zeros(10_000), n).sum().item() + down(flow.zeros(5_000), 20)[0].item()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert results == {n: n * 10_000 + 20 for n in range(8)}
    assert flow.mine.made5(flow.zeros(1)).item() == 5


def test_a_gradient_rule_calls_a_function():
    flow.function("mine.twice(Tensor x) -> Tensor", lambda x: x + x)

    def kernel(inputs, outputs, attrs):
        outputs[0][...] = inputs[0] * 2

    flow.op(
        "doubled(Tensor x) -> Tensor", kernel=kernel, domain="mine", inputs="f32|f64", dtype="same", factors="m -> m", linear="x",
        gradient=lambda dy, x: getattr(dy, "mine.twice")(), samples=["f32[4]", "f64[3]"],
    )  # fmt: skip
    x = flow.ones(3, requires_grad=True)
    flow.mine.doubled(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    # On simulated ranks the body runs as the rank that calls it.
    assert "mine.doubled" in flow.testing.conformance("mine.doubled")


def test_on_global_tensors(tmp_path):
    code = """
import oflow as flow

@flow.function("mine.scaled_relu(Tensor x, *, Float by=2.0) -> Tensor")
def scaled_relu(x, by):
    return (x * by).relu()

mesh = flow.placement.all("cpu")
x = flow.ones(4, 6, placement=mesh, sbp=flow.sbp.split(0)).requires_grad_()
y = scaled_relu(x, by=3.0)
assert y.is_global and y.sbp == (flow.sbp.split(0),), y.sbp
y.sum().backward()
assert x.grad.sum().item() == 72, x.grad

ops = []
with flow.watch_calls(after=lambda call, results: ops.append((call.op, results[0].sbp))):
    scaled_relu(x)
assert [op for op, _ in ops] == ["mul_scalar", "relu"] and ops[0][1] == (flow.sbp.split(0),), ops

# An overload of a built-in function; tensors have it as a method too.
flow.function("relu(Tensor x, String how) -> Tensor", lambda x, how: x.clamp_min(0) if how == "plain" else x)
assert flow.relu(-x, "plain").sum().item() == 0 and (-x).relu(how="no").sum().item() == -24 and flow.relu(-x).sum().item() == 0
"""
    job = run(tmp_path, code, ranks=2)
    assert job.code == 0, job.err


def test_hidden_ops_are_not_called_from_python():
    for name in ("strided_read", "oflow.strided_read"):
        with pytest.raises(LookupError, match="(?s)strided_read is declared `hidden`: it cannot be called from Python.*gradient rules"):
            flow._oflow._function(name)
    with pytest.raises(AttributeError, match="declared `hidden`"):
        flow.strided_read
    with pytest.raises(flow.RegistryError, match="declared `hidden`"):
        flow.OpCall("strided_read")


def test_hidden_ops_of_libraries_are_for_their_gradients():
    library = flow.ops.build_and_load([ROOT / "examples/ops/softclip.cu"])
    assert "demo.softclip_grad" in library.ops and "softclip" in dir(flow.demo) and "softclip_grad" not in dir(flow.demo)
    with pytest.raises(AttributeError, match="demo.softclip_grad is declared `hidden`"):
        flow.demo.softclip_grad
    flow.ops.unload(library)


def test_an_op_with_base_attributes():
    x = flow.arange(6).reshape(2, 3).cast(flow.float32).requires_grad_()
    top = flow.OpCall("sum", dims=[1])
    assert top(x).tolist() == [3.0, 12.0] and top(x, keepdim=True).shape == (2, 1) and top(x, dims=[0]).shape == (3,)
    assert repr(top) == 'oflow.OpCall("sum", dims=(1,))' and top.op == "sum"
    assert top.attrs == {"dims": (1,), "keepdim": False}
    for again in (copy.deepcopy(top), pickle.loads(pickle.dumps(top))):
        assert again(x).tolist() == [3.0, 12.0]
    top(x).sum().backward()
    assert x.grad.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert flow.OpCall("concat", dim=0)([x, x]).shape == (4, 3)
    assert flow.OpCall("full", shape=[2], dtype=flow.int64, value=3)(device="cpu").tolist() == [3, 3]
    for op, attrs, error, message in (
        ("sum", {"axle": 1}, TypeError, r"OpCall\(sum\): the op has no attribute 'axle'"),
        ("sum", {"x": 1}, TypeError, "no attribute 'x'"),
        ("sum", {"dims": "a"}, TypeError, "attribute 'dims' must be int or a tuple of ints, not str"),
        ("reshape", {}, TypeError, "the attribute 'shape' has no default and is not given"),
        ("summ", {}, flow.RegistryError, "unknown op 'summ'"),
    ):
        with pytest.raises(error, match=message):
            flow.OpCall(op, **attrs)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axle'"):
        top(x, axle=1)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        top()


def test_hooks_see_calls_and_results():
    x = flow.tensor([1.0, -2.0], requires_grad=True)
    seen = []
    with flow.watch_calls(lambda call: seen.append((call.op, len(call.inputs), call.attrs, call.in_place, call.site[0]))):
        (x * 2.0).relu()
        x.detach().clone().add_(1)
    assert seen[0][:4] == ("mul_scalar", 1, {"s": 2.0}, False) and seen[0][4].endswith("test_functions.py")
    assert [s[0] for s in seen[:2]] == ["mul_scalar", "relu"] and seen[-1][0] == "add_scalar" and seen[-1][3]
    count = len(seen)
    x.relu()
    assert len(seen) == count

    def refuse(call):
        if call.op == "exp":
            raise PermissionError("no exp")

    with flow.watch_calls(refuse), pytest.raises(PermissionError, match="no exp"):
        x.exp()

    # Replaced results: gradients flow to what they are made of, and the hook's own calls do not show.
    def halve(call, results):
        assert len(results) == 1 and repr(call).startswith("<call ")
        return results[0] * 0.5 if call.op == "exp" else None

    with flow.watch_calls(after=halve):
        y = x.exp()
    y.sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), np.exp([1.0, -2.0]) / 2, rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, -2.0]) / 2, rtol=1e-6)
    two = flow.tensor([2.0])
    with flow.watch_calls(after=lambda call, results: (results[0].neg(),)), flow.watch_calls(after=lambda call, results: results[0] + 1):
        # The oldest first.
        assert two.square().tolist() == [-3.0]
    for replacement, message in (
        (lambda r: r.cast(flow.float64), "a hook replaced result 0"),
        (lambda r: r[:1], "a hook replaced result 0"),
        (lambda r: (r, r), "left 2 tensors of 1"),
        (lambda r: 3, "returns None, a Tensor or a tuple of Tensors, not int"),
        (lambda r: (r, 3), "returns None, a Tensor or a tuple of Tensors, not int"),
    ):
        with flow.watch_calls(after=lambda call, results: replacement(results[0])), pytest.raises((flow.Error, TypeError), match=message):
            x.exp()
    with flow.watch_calls(after=lambda call, results: results[0].neg()), pytest.raises(flow.Error, match="the result of a call in place"):
        two.add_(1)
    for hooks, message in (((), "takes a hook"), ((3,), "before must be a function, not int")):
        with pytest.raises(TypeError, match=message):
            flow.watch_calls(*hooks)
    assert flow._oflow._modes() == []


def test_add_and_sub_with_alpha():
    x, y = flow.tensor([1.0, 2.0], requires_grad=True), flow.tensor([3.0, 5.0], requires_grad=True)
    flow.add(x, y, alpha=2).sum().backward()
    assert x.grad.tolist() == [1, 1] and y.grad.tolist() == [2, 2]
    y.grad = None
    x.sub(y, alpha=0.5).sum().backward()
    assert y.grad.tolist() == [-0.5, -0.5] and flow.sub(x, y, alpha=0.5).tolist() == [-0.5, -0.5]
    assert x.add(3, alpha=2).tolist() == [7, 8] and x.sub(3, alpha=2).tolist() == [-5, -4] and flow.add(x, y).tolist() == [4, 7]
    z = x.detach().clone()
    assert z.add_(y, alpha=2) is z and z.tolist() == [7, 12]
    assert z.sub_(1, alpha=2).tolist() == [5, 10] and z.sub_(y, alpha=1).tolist() == [2, 5] and z.add_(1, alpha=2).tolist() == [4, 7]
    i, b = flow.tensor([1, 2]), flow.tensor([True, False])
    assert i.add(i, alpha=3).tolist() == [4, 8] and i.add(i, alpha=3).dtype == flow.int64
    c = flow.tensor([1 + 1j, 2j])
    assert c.add(c, alpha=1j).tolist() == [2j, -2 + 2j]
    assert i.add(2.5, alpha=1.5).dtype == flow.float32 and b.add(b, alpha=True).dtype == flow.bool
    for call in (
        lambda: i.add(i, alpha=2.0),
        lambda: i.add(2, alpha=1.5),
        lambda: i.sub(i, alpha=1.5),
        lambda: i.add_(i, alpha=2.0),
        lambda: i.add(i, alpha=True),
        lambda: x.add(y, alpha=1j),
    ):
        with pytest.raises(flow.DTypeError, match="for alpha"):
            call()
    with pytest.raises(flow.DTypeError, match="bool"):
        b.sub(b, alpha=True)
    torch = pytest.importorskip("torch")
    for name in ("add", "sub"):
        for a, c, alpha in (([1, 2], 3, 2), ([1, 2], 2.5, 3), ([1.5, 2.0], 2, 1.5), ([1.5, 2.0], [1, 2], 2.5), ([1, 2], [2.5, 1.0], 0.5)):
            ours = getattr(flow.tensor(a), name)(flow.tensor(c) if isinstance(c, list) else c, alpha=alpha)
            theirs = getattr(torch.tensor(a), name)(torch.tensor(c) if isinstance(c, list) else c, alpha=alpha)
            assert ours.tolist() == theirs.tolist() and str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]


def test_unsigned_integers_of_64_bits_are_refused_with_the_signed_ones():
    with pytest.raises(OverflowError, match="18446744073709551615 does not fit into 64 bits with a sign; .* same bits is -1"):
        flow.ones(2).add(2**64 - 1)
    with pytest.raises(OverflowError, match="does not fit into 64 bits with a sign$"):
        flow.ones(2).add(2**70)
    # Seeds are bits, and take all of them.
    assert flow.Generator(2**64 - 1).initial_seed() == 2**64 - 1


def test_a_body_is_not_kept_from_being_interrupted():
    @flow.function("mine.interrupted(Tensor x) -> Tensor")
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted(flow.ones(2))
    assert sys.exc_info() == (None, None, None)
