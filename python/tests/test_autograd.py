"""Gradients."""

import oflow as flow
import pytest


def test_backward():
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    assert y.requires_grad and not y.is_leaf and "test_autograd.py" in y.grad_fn
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    x.grad = None
    assert x.grad is None
    y = x * 3
    y.retain_grad()
    y.backward(flow.tensor([1.0, 2.0]))
    assert x.grad.tolist() == [3.0, 6.0] and y.grad.tolist() == [1.0, 2.0]
    with pytest.raises(flow.AutogradError):
        x.detach().sum().backward()


def test_grad():
    x, y = flow.tensor([3.0], requires_grad=True), flow.tensor([2.0], requires_grad=True)
    z = (x**3 * y).sum()
    (dx,) = flow.grad(z, x, create_graph=True)
    (ddx,) = flow.grad(dx.sum(), [x])
    assert dx.item() == 54 and ddx.item() == 36 and x.grad is None
    with pytest.raises(ValueError, match="no influence"):
        flow.grad((x * 2).sum(), [x, y])
    assert flow.grad((x * 2).sum(), [x, y], allow_unused=True)[1] is None
    (d,) = flow.grad([x * 2, x * 3], [x], [flow.tensor([1.0]), flow.tensor([10.0])])
    assert d.item() == 32


def test_modes():
    x = flow.ones(2, requires_grad=True)
    with flow.no_grad():
        assert not (x * 2).requires_grad and not flow.is_grad_enabled()
        with flow.enable_grad():
            assert (x * 2).requires_grad
    assert flow.is_grad_enabled()

    @flow.no_grad()
    def f(depth=0):
        return (x * 2).requires_grad or (depth < 2 and f(depth + 1))

    @flow.no_grad
    def g():
        return (x * 2).requires_grad

    assert not f() and not g() and (x * 2).requires_grad
    with pytest.raises(ZeroDivisionError):
        with flow.no_grad():
            1 / 0
    assert flow.is_grad_enabled()
    with flow.autocast(flow.bfloat16):
        assert (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is flow.bfloat16
        with flow.autocast(enabled=False):
            assert (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is flow.float32
    with flow.name_scope("block"), flow.name_scope("attn"):
        with pytest.raises(flow.ShapeError, match="in block.attn"):
            flow.ones(2).add(flow.ones(3))
    with flow.detect_anomaly():
        with pytest.raises(flow.Error, match="NaN"):
            flow.zeros(2) / flow.zeros(2)


def test_hooks():
    x, seen = flow.ones(2, requires_grad=True), []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    double = x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]] and x.grad.tolist() == [6.0, 6.0]
    handle.remove()
    double.remove()
    x.grad = None
    (x * 3).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [3.0, 3.0]


def test_an_exception_of_a_hook_comes_out_of_backward():
    x = flow.ones(2, requires_grad=True)

    class Mine(Exception):
        pass

    def hook(g):
        raise Mine("no")

    x.register_hook(hook)
    with pytest.raises(Mine, match="no") as error:
        (x * 2).sum().backward()
    assert "hook" in [entry.name for entry in error.traceback]
    y = flow.ones(2, requires_grad=True)
    y.register_hook(lambda g: "nonsense")
    with pytest.raises(TypeError, match="a hook returns a Tensor or None, not str"):
        (y * 2).sum().backward()
    with pytest.raises(TypeError):
        y.register_hook(3)


class Scaled(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, w):
        ctx.save_for_backward(x, w)
        ctx.factor = factor
        assert not flow.is_grad_enabled()
        return x * factor * w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False, True)
        return dy * ctx.factor * w, None, dy * ctx.factor * x


def test_functions():
    x, w = flow.tensor([1.0, 2.0], requires_grad=True), flow.tensor([3.0, 5.0], requires_grad=True)
    y = Scaled.apply(x, 2.0, w)
    assert y.tolist() == [6.0, 20.0] and not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 10.0] and w.grad.tolist() == [2.0, 4.0]


def test_functions_of_several_outputs_and_second_order():
    class Powers(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            return x * x, x * x * x

        @staticmethod
        def backward(ctx, da, db):
            both = [g * f for g, f in ((da, ctx.x * 2), (db, ctx.x * ctx.x * 3)) if g is not None]
            return sum(both[1:], both[0])

    x = flow.tensor([2.0], requires_grad=True)
    a, b = Powers.apply(x)
    (d,) = flow.grad((a + b).sum(), x, create_graph=True)
    assert d.item() == 16
    (dd,) = flow.grad(d.sum(), x)
    assert dd.item() == 14
    a, b = Powers.apply(x)
    assert flow.grad(a.sum(), x)[0].item() == 4


def test_wrong_functions_say_so():
    class Wrong(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, dy):
            return dy, dy

    class Raises(Wrong):
        @staticmethod
        def backward(ctx, dy):
            raise KeyError("inside")

    class NoTensor(Wrong):
        @staticmethod
        def forward(ctx, x):
            return 3

    x = flow.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="returned 2 gradients; forward takes 1 arguments"):
        Wrong.apply(x).sum().backward()
    with pytest.raises(KeyError, match="inside"):
        Raises.apply(x).sum().backward()
    with pytest.raises(TypeError, match="results of forward"):
        NoTensor.apply(x)

    class Written(Wrong):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x * 1

        @staticmethod
        def backward(ctx, dy):
            return ctx.saved_tensors[0] * dy, None

    y = flow.ones(2)
    z = Written.apply(x, y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="was written in place afterwards"):
        z.sum().backward()


WRITES = {
    "add_": lambda lib, y: y.add_(1.0),
    "mul_": lambda lib, y: y.mul_(4.0),
    "y[0]": lambda lib, y: y.__setitem__(0, 7.0),
    "copy_": lambda lib, y: y.copy_(y * 3),
    "a view": lambda lib, y: y[1:].mul_(2.0),
    "zero_": lambda lib, y: y.zero_(),
    "twice": lambda lib, y: y.add_(1.0).mul_(2.0),
    "none": lambda lib, y: y,
}


@pytest.mark.parametrize("write", sorted(WRITES))
@pytest.mark.parametrize("when", ["before", "after", "both", "a hook before"])
@pytest.mark.parametrize("of", ["result", "view"])
def test_a_retained_gradient_is_that_of_the_value_written_last(write, when, of):
    """As in PyTorch: the retained gradient moves to the new value, hooks stay with the old one."""
    torch = pytest.importorskip("torch")

    def run(lib):
        seen = []
        x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
        base = x * 2
        y = base if of == "result" else base[:2]
        if when in ("before", "both"):
            y.retain_grad()
        if when == "a hook before":
            y.register_hook(lambda g: seen.append(g.tolist()))
            y.retain_grad()
        WRITES[write](lib, y)
        if when in ("after", "both"):
            y.retain_grad()
        (y * lib.tensor([3.0, 5.0, 7.0][: len(y)])).sum().backward()
        # A hook of a view before the write sees the gradient of that value here; PyTorch leaves the old view out of the graph.
        return None if y.grad is None else y.grad.tolist(), x.grad.tolist(), seen if of == "result" else None

    assert run(flow) == run(torch)


def test_gradients_that_pass_through_are_not_shared():
    """The gradient of a sum is what arrives, for both terms: a write to one of them changes no other."""
    x, y = (flow.ones(3).requires_grad_() for _ in range(2))
    z = x + y
    z.retain_grad()
    seed = flow.tensor([1.0, 2.0, 3.0])
    z.backward(seed)
    x.grad.add_(10)
    z.grad.mul_(100)
    assert y.grad.tolist() == seed.tolist() == [1, 2, 3]
    assert (x.grad.tolist(), z.grad.tolist()) == ([11, 12, 13], [100, 200, 300])
    of_x, of_y = flow.autograd.grad(x + y, [x, y], seed)
    of_x.add_(10)
    assert of_y.tolist() == seed.tolist() == [1, 2, 3]


def test_a_hook_that_writes_into_a_gradient_changes_that_one():
    x, y = (flow.ones(3).requires_grad_() for _ in range(2))
    x.register_hook(lambda g: g.mul_(5))
    (x + y).backward(flow.tensor([1.0, 2.0, 3.0]))
    assert (x.grad.tolist(), y.grad.tolist()) == ([5, 10, 15], [1, 2, 3])
