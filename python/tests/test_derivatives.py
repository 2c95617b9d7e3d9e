"""Derivatives of functions (`oflow.func`, `oflow.autograd.functional`) beside PyTorch's, of local and of global tensors."""

import numpy as np
import oflow as flow
import pytest

torch = pytest.importorskip("torch")

A = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
V = np.random.default_rng(1).normal(size=4).astype(np.float32)


def f(a, v):
    return (a.sin() @ v).tanh()


def g(a, v):
    return f(a, v).square().sum()




FUNC = {
    "grad": lambda m, a, v: m.func.grad(g)(a, v),
    "grad of two": lambda m, a, v: m.func.grad(g, argnums=(0, -1))(a, v),
    "grad and value": lambda m, a, v: m.func.grad_and_value(g, argnums=1)(a, v),
    "grad with aux": lambda m, a, v: m.func.grad(lambda a, v: (g(a, v), {"f": f(a, v)}), has_aux=True)(a, v)[0],
    "grad by name": lambda m, a, v: m.func.grad(lambda a, *, v: g(a, v))(a, v=v),
    "grad of a dict": lambda m, a, v: m.func.grad(lambda p: g(p["a"], p["in"][0]))({"a": a, "in": [v]})["in"],
    "without influence": lambda m, a, v: m.func.grad(lambda a, v: v.sum())(a, v),
    "vjp": lambda m, a, v: m.func.vjp(f, a, v)[1](f(a, v)),
    "vjp of one": lambda m, a, v: m.func.vjp(lambda v: f(a, v), v)[1](f(a, v)),
    "jvp": lambda m, a, v: m.func.jvp(f, (a, v), (a * 2, v.cos())),
    "linearize": lambda m, a, v: m.func.linearize(f, a, v)[1](a, v),
    "jacrev": lambda m, a, v: m.func.jacrev(f, argnums=(0, 1))(a, v),
    "jacrev of two outputs": lambda m, a, v: m.func.jacrev(lambda v: (v.exp(), f(a, v)))(v),
    "jacfwd": lambda m, a, v: m.func.jacfwd(f, argnums=1)(a, v),
    "hessian": lambda m, a, v: m.func.hessian(g, argnums=(0, 1))(a, v),
    "nested": lambda m, a, v: m.func.grad(lambda x: m.func.grad(lambda y: (x * y).square().sum())(v).sum())(v),
    "third": lambda m, a, v: m.func.grad(m.func.grad(m.func.grad(lambda x: x**4)))(v[0]),
    "vmap": lambda m, a, v: m.vmap(lambda x: x.sin().sum())(a),
    "vmap of one whole": lambda m, a, v: m.vmap(lambda x, y: x @ y, in_dims=(0, None))(a, v),
    "vmap of columns": lambda m, a, v: m.vmap(lambda x: (x, {"s": x.sum()}), in_dims=1, out_dims=(1, 0))(a)[0],
    "gradients of samples": lambda m, a, v: m.vmap(m.func.grad(lambda v, x: (v * x).tanh().sum()), in_dims=(None, 0), out_dims=1)(v, a),
    "grad of a vmap": lambda m, a, v: m.func.grad(lambda a: m.vmap(lambda x: x.exp().prod())(a).sum())(a),
}
AUTOGRAD = {
    "vjp": lambda F, m, a, v, **o: F.vjp(f, (a, v), m.ones_like(f(a, v)), **o),
    "jvp": lambda F, m, a, v, **o: F.jvp(f, (a, v), (a, v), **o),
    "jacobian": lambda F, m, a, v, **o: F.jacobian(f, (a, v), **o),
    "jacobian of one": lambda F, m, a, v, **o: F.jacobian(lambda v: f(a, v), v, **o),
    "hessian": lambda F, m, a, v, **o: F.hessian(g, (a, v), **o),
    "hessian of one": lambda F, m, a, v, **o: F.hessian(lambda v: g(a, v), v, **o),
    "vhp": lambda F, m, a, v, **o: F.vhp(g, (a, v), (a, v), **o),
    "hvp": lambda F, m, a, v, **o: F.hvp(g, (a, v), (a, v), **o),
}


def leaves(value):
    return [x for v in value for x in leaves(v)] if isinstance(value, (tuple, list)) else [value]


def inputs(m, layout, requires_grad=False):
    if m is torch:
        return [torch.tensor(x, requires_grad=requires_grad) for x in (A, V)]
    mesh = flow.placement.all("cpu")
    made = []
    for x, sbp in zip((A, V), layout or (None, None)):
        x = flow.tensor(x) if sbp is None else flow.distribute(flow.tensor(x), mesh, sbp)
        made.append(x.detach().requires_grad_(requires_grad))
    return made


def compare(ours, theirs):
    ours, theirs = leaves(ours), leaves(theirs)
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs):
        assert tuple(x.shape) == tuple(y.shape) and x.requires_grad == y.requires_grad
        np.testing.assert_allclose(np.asarray(x.tolist()), y.detach().numpy(), rtol=1e-4, atol=1e-5)


LAYOUTS = [None, ("S(0)", "B"), ("S(1)", "S(0)")]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", FUNC)
def test_func(name, requires_grad, layout):
    compare(FUNC[name](flow, *inputs(flow, layout, requires_grad)), FUNC[name](torch, *inputs(torch, None, requires_grad)))


@pytest.mark.parametrize("layout", LAYOUTS[:2], ids=str)
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", AUTOGRAD)
def test_autograd_functional(name, create_graph, layout):
    ours = AUTOGRAD[name](flow.autograd.functional, flow, *inputs(flow, layout, True), create_graph=create_graph)
    theirs = AUTOGRAD[name](torch.autograd.functional, torch, *inputs(torch, None, True), create_graph=create_graph)
    compare(ours, theirs)


def test_forward_mode_gives_the_same():
    a, v = inputs(flow, None)
    F = flow.autograd.functional
    compare(F.jacobian(f, (a, v), strategy="forward-mode", vectorize=True), torch.autograd.functional.jacobian(f, tuple(inputs(torch, None))))


@pytest.mark.parametrize("layout", [None, ("S(0)", "S(0)")], ids=str)
@pytest.mark.parametrize("leaf", [True, False])
def test_what_a_function_uses_without_being_given_it_gets_its_gradient(leaf, layout):
    grads = []
    for m in (flow, torch):
        _, v = inputs(m, layout if m is flow else None)
        _, w = inputs(m, layout if m is flow else None, True)
        used = w if leaf else w * 1.5
        penalty = m.func.grad(lambda x: ((x * used) ** 2).sum())(v).square().sum()
        assert penalty.requires_grad
        penalty.backward()
        grads.append(w.grad)
    compare(grads[0], grads[1])


def test_a_result_that_was_made_by_an_earlier_transform_counts_as_outside():
    for m in (flow, torch):
        _, v = inputs(m, None)
        w = inputs(m, None, True)[1]
        _, first = m.func.grad_and_value(lambda x: (x * w).sum())(v)
        assert m.func.grad(lambda x: (x * first).sum())(v).requires_grad, m


def test_a_loop_over_plain_weights_keeps_no_graph():
    w = flow.ones(3)
    for _ in range(3):
        w = w - 0.1 * flow.func.grad(lambda w: (w * w).sum())(w)
        assert not w.requires_grad
    with flow.no_grad():
        assert flow.func.grad(lambda w: (w * w).sum())(w).tolist() == pytest.approx((2 * w).tolist())


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_function_that_writes_into_its_argument(requires_grad):
    def written(x):
        x.mul_(3.0)
        return (x * x).sum()

    v = inputs(flow, None, requires_grad)[1]
    before = v.tolist()
    compare(flow.func.grad(written)(v), torch.func.grad(lambda x: (9.0 * x * x).sum())(inputs(torch, None, requires_grad)[1]))
    compare(flow.func.jvp(written, (v,), (flow.ones(4),))[1], torch.func.jvp(lambda x: (9.0 * x * x).sum(), (inputs(torch, None, requires_grad)[1],), (torch.ones(4),))[1])
    assert v.tolist() == before


def test_a_transform_in_a_graph():
    @flow.graph
    def step(w, x):
        return w - 0.5 * flow.func.grad(lambda w: ((w * x) ** 2).sum())(w)

    assert step(flow.ones(2), flow.tensor([1.0, 0.5])).tolist() == [0.0, 0.75]


def test_functional_call():
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    ours = flow.nn.Sequential(flow.nn.Linear(4, 4), flow.nn.BatchNorm1d(4), flow.nn.Linear(4, 1))
    ours.load_state_dict({k: t.detach().numpy() for k, t in theirs.state_dict().items()})
    found = []
    for m, model in ((flow, ours.eval()), (torch, theirs.eval())):
        params = {k: p.detach() for k, p in model.named_parameters()}
        buffers = {k: b.clone() for k, b in model.named_buffers()}
        x = m.tensor(A)

        def loss(params):
            return m.func.functional_call(model, (params, buffers), (x,)).square().sum()

        grads, value = m.func.grad_and_value(loss)(params)
        found.append([value, *(grads[k] for k in sorted(grads))])
        assert all(model.get_parameter(k) is p for k, p in model.named_parameters())
    compare(*found)


def test_functional_call_names_what_does_not_fit():
    layer = flow.nn.Linear(2, 2)
    x = flow.ones(1, 2)
    call = flow.func.functional_call
    with pytest.raises(RuntimeError, match="no parameter or buffer 'wight'"):
        call(layer, {"wight": x}, x, strict=True)
    with pytest.raises(RuntimeError, match="nothing is given for 'bias'"):
        call(layer, {"weight": flow.zeros(2, 2)}, x, strict=True)
    with pytest.raises(ValueError, match="given twice"):
        call(layer, ({"bias": x}, {"bias": x}), x)
    with pytest.raises(flow.ShapeError):
        call(layer, {"bias": flow.zeros(2)}, flow.ones(1, 3))
    assert isinstance(layer.bias, flow.nn.Parameter)


def test_tied_weights_are_replaced_together():
    class Tied(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = flow.nn.Linear(2, 2, bias=False)
            self.b = flow.nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    model, x = Tied(), flow.ones(1, 2)
    two = flow.tensor([[2.0, 0.0], [0.0, 2.0]])
    assert flow.func.functional_call(model, {"a.weight": two}, x).tolist() == [[4.0, 4.0]]
    with pytest.raises(ValueError, match="different ones"):
        flow.func.functional_call(model, {"a.weight": two, "b.weight": two * 2}, x)


def test_models_stacked():
    models = [flow.nn.Linear(4, 2) for _ in range(3)]
    params, buffers = flow.func.stack_module_state(models)
    x = flow.tensor(A)
    y = flow.vmap(lambda p, b: flow.func.functional_call(models[0], (p, b), (x,)))(params, buffers)
    for i, model in enumerate(models):
        np.testing.assert_allclose(y[i].tolist(), model(x).tolist(), rtol=1e-6)
    assert params["weight"].requires_grad and params["weight"].is_leaf


REFUSED = [
    (lambda: flow.func.grad(lambda x: x)(flow.ones(2)), RuntimeError, r"one number and no dims, got a tensor of shape \(2,\)"),
    (lambda: flow.func.grad(lambda x: x.sum())(flow.tensor([1])), TypeError, "floating point or complex numbers to differentiate by, got oflow.int64"),
    (lambda: flow.func.grad(lambda x: x.sum())(3.0), TypeError, "got a float"),
    (lambda: flow.func.grad(lambda x: x.sum(), argnums=1)(flow.ones(2)), RuntimeError, "argnums has 1, but there are 1"),
    (lambda: flow.func.grad(lambda x: x.sum(), has_aux=True)(flow.ones(2)), RuntimeError, r"a tuple \(output, aux\)"),
    (lambda: flow.func.jvp(lambda x: x, (flow.ones(2),), (flow.ones(3),)), RuntimeError, r"shape \(2,\), got \(3,\)"),
    (lambda: flow.vmap(lambda x: x)(flow.tensor(1.0)), ValueError, "in_dims has 0 for a tensor of 0 dims"),
    (lambda: flow.vmap(lambda x, y: x)(flow.ones(2), flow.ones(3)), ValueError, r"different sizes: \[2, 3\]"),
    (lambda: flow.vmap(lambda x: 1.0)(flow.ones(2)), TypeError, "results are made of tensors, got a float"),
    (lambda: flow.vmap(lambda x: x, randomness="none"), ValueError, "\"error\", \"different\" or \"same\", not .none."),
    (lambda: flow.vmap(lambda x: x + flow.rand(()))(flow.ones(2)), RuntimeError, "drew random numbers"),
    (lambda: flow.autograd.functional.jvp(lambda x: x, flow.ones(2)), RuntimeError, "v may be left out only if the input"),
    (lambda: flow.autograd.functional.vjp(lambda x: flow.ones(2), flow.ones(2), flow.ones(2), strict=True), RuntimeError, "output 0 does not depend"),
    (lambda: flow.autograd.functional.jacobian(lambda x, y: x, (flow.ones(2), flow.ones(2)), strict=True), RuntimeError, "on input 1"),
    (lambda: flow.autograd.functional.hessian(lambda x: x, flow.ones(2)), RuntimeError, "a tensor of one number"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(case):
    call, kind, text = REFUSED[case]
    with pytest.raises(kind, match=text):
        call()


def test_grad_with_pytorchs_arguments():
    for m in (flow, torch):
        x, y = m.ones(2, requires_grad=True), m.ones(2, requires_grad=True)
        assert m.autograd.grad((x * 3).sum(), [x, y], materialize_grads=True)[1].tolist() == [0.0, 0.0]
        (rows,) = m.autograd.grad(x * 3, x, m.tensor([[1.0, 0.0], [0.0, 1.0]]), is_grads_batched=True)
        assert rows.tolist() == [[3.0, 0.0], [0.0, 3.0]]


def test_backward_of_several():
    for m in (flow, torch):
        x, y = m.ones(2, requires_grad=True), m.ones(2, requires_grad=True)
        z = x * 2
        m.autograd.backward([(z * y).sum(), z], [None, m.ones(2)])
        assert x.grad.tolist() == [4.0, 4.0] and y.grad.tolist() == [2.0, 2.0]
        m.autograd.backward((x * y).sum(), inputs=[y])
        assert x.grad.tolist() == [4.0, 4.0] and y.grad.tolist() == [3.0, 3.0]


def test_gradients_beside_differences():
    class Wrong(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = flow.tensor(A.astype(np.float64), requires_grad=True)
    v = flow.tensor(V.astype(np.float64), requires_grad=True)
    check = flow.autograd.gradcheck
    assert check(f, (x, v)) and check(lambda x: (x.exp(), x.sum(0), 3), (x,)) and check(lambda x, n: x**n, (x, 2))
    assert not check(Wrong.apply, x, raise_exception=False)
    with pytest.raises(flow.autograd.GradcheckError, match="output 0 by input 0"):
        check(Wrong.apply, (x,))
    with pytest.raises(ValueError, match="expected a local tensor of float64"):
        check(f, (flow.ones(1, requires_grad=True), v))
