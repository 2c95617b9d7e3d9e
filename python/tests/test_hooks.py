"""Hooks of modules and tensors, and what functions with a backward of their own say of themselves: the same programs in PyTorch and here."""

import numpy as np
import oflow as flow
import pytest

torch = pytest.importorskip("torch")
BOTH = (flow, torch)


def same(program, *args):
    """Runs a program with both libraries; what it returns must be alike."""
    ours, theirs = (plain(program(m, *args)) for m in BOTH)
    assert ours == theirs


def plain(value):
    if isinstance(value, (flow.Tensor, torch.Tensor)):
        return ["tensor", np.round(np.asarray(value.detach().tolist(), np.float64), 4).tolist()]
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def layer(m, rows=2, columns=2, bias=True):
    made = m.nn.Linear(columns, rows, bias=bias)
    with m.no_grad():
        made.weight.copy_(m.tensor((np.arange(rows * columns).reshape(rows, columns) / 4 - 0.3).astype(np.float32)))
        if bias:
            made.bias.copy_(m.tensor(np.linspace(-0.5, 0.5, rows).astype(np.float32)))
    return made


def x(m, requires_grad=True):
    return m.tensor([[1.0, 2.0], [-0.5, 0.25]], requires_grad=requires_grad)


class Scaled:
    """A module with arguments by name."""

    def __new__(cls, m):
        class Module(m.nn.Module):
            def forward(self, x, *, by=1.0, fail=False):
                if fail:
                    raise KeyError("fail")
                return x * by

        return Module()


def forward_hooks(m):
    log, model = [], Scaled(m)
    model.register_forward_pre_hook(lambda mod, args: log.append(("pre", args)))
    model.register_forward_pre_hook(lambda mod, args, kwargs: (args, {**kwargs, "by": 3.0}), with_kwargs=True)
    model.register_forward_pre_hook(lambda mod, args: (args[0] + 1,), prepend=True)
    model.register_forward_hook(lambda mod, args, kwargs, out: log.append((args, kwargs, out)), with_kwargs=True)
    double = model.register_forward_hook(lambda mod, args, out: out * 2, prepend=True)
    with double:
        first = model(x(m))
    double.remove()
    return log, first, model(x(m), by=7.0)


def always_called(m):
    log, model = [], Scaled(m)
    model.register_forward_hook(lambda mod, args, out: log.append(out), always_call=True)
    model.register_forward_hook(lambda mod, args, out: log.append("not"))
    with pytest.raises(KeyError):
        model(x(m), fail=True)
    model(x(m))
    return log


def backward_hooks(m, requires_grad, hooks):
    log = []
    model = m.nn.Sequential(layer(m), m.nn.Tanh(), layer(m))
    for i in hooks:
        model[i].register_full_backward_hook(lambda mod, gi, go, i=i: log.append((i, type(gi).__name__, gi, go)))
    y = model(x(m, requires_grad))
    y.square().sum().backward()
    return log, model[0].weight.grad


def backward_hooks_that_replace(m):
    model = layer(m)
    model.register_full_backward_pre_hook(lambda mod, go: (go[0] * 10,))
    model.register_full_backward_pre_hook(lambda mod, go: (go[0] * 2,), prepend=True)
    model.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 3,))
    last = model.register_full_backward_hook(lambda mod, gi, go: (gi[0] + 1,))
    a = x(m)
    model(a).sum().backward()
    last.remove()
    b = x(m)
    model(b).sum().backward()
    return a.grad, b.grad, model.weight.grad, model.bias.grad


def backward_hooks_of_several(m):
    class Two(m.nn.Module):
        def forward(self, a, n, b):
            return a * n, b.detach(), a + b

    log, model = [], Two()
    model.register_full_backward_hook(lambda mod, gi, go: log.append((gi, go)))
    a, b = x(m), x(m)
    first, _, last = model(a, 3.0, b)
    (first.sum() + last.sum()).backward()
    return log, a.grad


def backward_hooks_that_only_read_under_no_grad(m):
    log, model = [], layer(m)
    model.register_full_backward_hook(lambda mod, gi, go: log.append(1))
    with m.no_grad():
        y = model(x(m))
    return log, y, y.requires_grad


def tensor_hooks(m):
    log, a = [], x(m)
    b = a * 2
    handle = b.register_hook(lambda g: log.append(g))
    b.register_hook(lambda g: g * 5)
    b.sum().backward(retain_graph=True)
    handle.remove()
    b.sum().backward()
    return log, a.grad


def hooks_after_accumulation(m):
    log, a, b = [], x(m), x(m)

    def keep(leaf):
        log.append((leaf is a, leaf.grad.clone(), m.is_grad_enabled()))

    def step(leaf):
        leaf.add_(leaf.grad, alpha=-0.1)
        leaf.grad = None

    a.register_hook(lambda g: g * 3)
    kept = a.register_post_accumulate_grad_hook(keep)
    b.register_post_accumulate_grad_hook(step)
    for _ in range(2):
        (a * b).sum().backward()
    m.autograd.grad((a * b).sum(), a)
    kept.remove()
    (a * 2).sum().backward()
    with a.register_post_accumulate_grad_hook(lambda leaf: log.append("both")):
        m.autograd.backward([(a * 2).sum(), a.square().sum()])
    (a * 2).sum().backward()
    (a * b).sum().backward(inputs=[a])
    return log, a.grad, b.grad, b


def copied(t):
    """The gradient of now: PyTorch adds in place."""
    return None if t.grad is None else t.grad.clone()


def gradients_of_chosen_tensors(m):
    log, a, b = [], x(m), x(m)
    a.register_hook(lambda g: log.append("a"))
    y = a * 2
    z = y * 3
    y.register_hook(lambda g: log.append("y"))
    out = (z * b).sum()
    seen = []
    for inputs in ([b], b, (b, b), [a], [a, b]):
        out.backward(retain_graph=True, inputs=inputs)
        seen.append([copied(t) for t in (a, b)])
    out.backward(inputs=[y], retain_graph=True)
    out.backward(inputs=[y, x(m)], retain_graph=True)
    seen.append([copied(t) for t in (a, b, y)])
    out.backward(inputs=[z, y], retain_graph=True)
    out.backward(m.tensor(2.0), inputs=[b], retain_graph=True)
    seen.append([copied(t) for t in (a, b, y, z)])
    log.append(m.autograd.grad(out, b, retain_graph=True))
    # The call that made `out` is the only one whose tensors this pass needs.
    out.backward(inputs=[b])
    z.sum().backward(inputs=[a])
    return log, seen, a.grad, b.grad, y.grad, z.grad


def retained_gradients_add_up(m):
    a = x(m)
    y = a * 2
    y.retain_grad()
    out = y.square().sum()
    for _ in range(2):
        out.backward(retain_graph=True)
    m.autograd.grad(out, a)
    return y.grad, a.grad


def a_context(m):
    seen = []

    class Scale(m.autograd.Function):
        @staticmethod
        def forward(a, by, b):
            return a * by + b, (a > 0).to(m.float32), a.argmax(1)

        @staticmethod
        def setup_context(ctx, inputs, output):
            a, ctx.by, b = inputs
            ctx.save_for_backward(a)
            ctx.mark_non_differentiable(output[1], output[2])
            seen.append(len(output))

        @staticmethod
        def backward(ctx, g, none, no_index):
            seen.append(ctx.needs_input_grad)
            seen.append((none.shape[0], no_index is None))
            return g * ctx.by, None, g if ctx.needs_input_grad[2] else None

    a, b = x(m), x(m, False)
    y, mask, at = Scale.apply(a, 3.0, b)
    y.sum().backward()
    return seen, a.grad, y.requires_grad, mask.requires_grad, at.requires_grad, mask, at


def gradients_that_are_missing(m, fills):
    seen = []

    class Split(m.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.set_materialize_grads(fills)
            return a * 2, a * 3

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g, h))
            return g * 2

    a = x(m)
    Split.apply(a)[0].sum().backward()
    return seen, a.grad


def once(m):
    from importlib import import_module

    once_differentiable = import_module("torch.autograd.function" if m is torch else "oflow.autograd").once_differentiable

    class Cube(m.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a**3

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

    a = x(m)
    (g,) = m.autograd.grad((Cube.apply(a) * a).sum(), a, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()
    return g


PROGRAMS = {
    **{p.__name__: (p,) for p in (forward_hooks, always_called, backward_hooks_that_replace, backward_hooks_of_several)},
    **{p.__name__: (p,) for p in (tensor_hooks, hooks_after_accumulation, gradients_of_chosen_tensors, retained_gradients_add_up, a_context, once)},
    "under no_grad": (backward_hooks_that_only_read_under_no_grad,),
    **{f"backward {g} {h}": (backward_hooks, g, h) for g in (True, False) for h in ((0,), (1, 2), (0, 1, 2))},
    **{f"missing {f}": (gradients_that_are_missing, f) for f in (True, False)},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_pytorch(name):
    same(*PROGRAMS[name])


def test_backward_hooks_of_global_tensors():
    mesh = flow.placement.all("cpu")
    model, log = flow.nn.Linear(4, 4, placement=mesh, sbp="B"), []
    model.register_full_backward_hook(lambda mod, gi, go: log.append((gi[0].shape, go[0].shape)))
    model.register_full_backward_pre_hook(lambda mod, go: go[0] * 2)
    x = flow.ones((8, 4), placement=mesh, sbp="S(0)", requires_grad=True)
    model(x).sum().backward()
    assert log == [((8, 4), (8, 4))]
    np.testing.assert_allclose(np.asarray(x.grad.tolist())[0], 2 * np.asarray(model.weight.tolist()).sum(0), rtol=1e-5)


def test_hooks_that_do_not_fit():
    model = layer(flow)
    with model.register_forward_pre_hook(lambda mod, args, kwargs: args, with_kwargs=True), pytest.raises(RuntimeError, match="a pair"):
        model(x(flow))
    with model.register_full_backward_pre_hook(lambda mod, go: (1, 2)), pytest.raises(RuntimeError, match="2 gradients for 1"):
        model(x(flow)).sum().backward()
    with model.register_full_backward_hook(lambda mod, gi, go: (go[0],)), pytest.raises(RuntimeError, match="require none"):
        model(x(flow, False)).sum().backward()
    with pytest.raises(NotImplementedError, match="return a new tensor"):
        flow.autograd.FunctionCtx(()).mark_dirty(x(flow))


def refused(m):
    """What the libraries refuse of hooks and inputs, by the kind of the exception."""
    a, b = x(m), x(m, False)
    out = (a * 2).sum()
    calls = {
        "hook of a result": lambda: out.register_post_accumulate_grad_hook(print),
        "hook of a tensor without gradient": lambda: b.register_post_accumulate_grad_hook(print),
        "no inputs": lambda: out.backward(inputs=[]),
        "an input without gradient": lambda: out.backward(inputs=[b]),
        "a number among the inputs": lambda: out.backward(inputs=[3]),
        "a number as inputs": lambda: out.backward(inputs=3),
    }
    said = {}
    for name, call in calls.items():
        with pytest.raises((RuntimeError, TypeError)) as error:
            call()
        said[name] = str(error.value)
    return said


def test_what_hooks_and_inputs_do_not_take():
    assert refused(torch).keys() == refused(flow).keys()
    said = refused(flow)
    assert "only the gradients of leaves are accumulated" in said["hook of a result"] and "register_hook" in said["hook of a result"]
    assert "does not require a gradient" in said["hook of a tensor without gradient"]
    assert "an empty list of inputs" in said["no inputs"]
    assert "does not require a gradient" in said["an input without gradient"]
    assert "inputs are a Tensor or a list of Tensors" in said["a number as inputs"]
    a = x(flow)
    with pytest.raises(TypeError, match="a function of the tensor, not int"):
        a.register_post_accumulate_grad_hook(3)
    for returned in (5, flow.zeros(2)):
        with a.register_post_accumulate_grad_hook(lambda leaf: returned), pytest.raises(TypeError, match="returns None, not"):
            (a * 2).sum().backward()


def test_a_hook_keeps_no_leaf():
    import gc
    import weakref

    a = x(flow)
    a.register_post_accumulate_grad_hook(lambda leaf: None)
    seen = weakref.ref(a)
    del a
    gc.collect()
    assert seen() is None


def test_hooks_after_accumulation_of_global_tensors():
    mesh = flow.placement.all("cpu")
    a, b = (flow.ones((8, 4), placement=mesh, sbp=s, requires_grad=True) for s in ("S(0)", "B"))
    log = []
    for leaf in (a, b):
        leaf.register_post_accumulate_grad_hook(lambda leaf: log.append((leaf is a, leaf.grad.sbp == leaf.sbp)))
    (a * b).sum().backward()
    (a * b).sum().backward(inputs=[b])
    assert sorted(log) == [(False, True), (False, True), (True, True)] and b.grad.tolist()[0] == [2.0] * 4


def test_an_optimizer_steps_within_backward_in_a_graph():
    def run(step):
        a = x(flow)
        a.register_post_accumulate_grad_hook(lambda leaf: (leaf.sub_(leaf.grad), setattr(leaf, "grad", None))[1])

        def once(b):
            loss = (a * b).square().sum()
            loss.backward()
            return loss

        once = flow.graph(once) if step else once
        b = x(flow, False)
        return [once(b).item() for _ in range(3)], a.tolist()

    assert run(True) == run(False)


def test_hooks_see_a_module_in_a_graph():
    model = layer(flow)
    model.register_forward_hook(lambda mod, args, out: out * 2)
    model.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 3,))

    @flow.graph
    def step(a):
        a = a.detach().requires_grad_()
        y = model(a).sum()
        return flow.grad(y, a)[0]

    a = x(flow, False)
    assert step(a).tolist() == flow.grad(model(b := x(flow)).sum(), b)[0].tolist()
