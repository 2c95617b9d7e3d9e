"""nn.utils and nn.init beside PyTorch's."""

import copy
import math

import numpy as np
import oflow as flow
import pytest
from oflow import nn

torch = pytest.importorskip("torch")


def near(a, b, tolerance=1e-5):
    np.testing.assert_allclose(np.array(a.tolist()), np.array(b.tolist()), rtol=tolerance, atol=tolerance)


def with_gradients():
    values = [np.random.default_rng(i).normal(size=shape).astype(np.float32) for i, shape in enumerate([(3, 4), (5,), ()])]
    ours, theirs = [flow.tensor(v, requires_grad=True) for v in values], [torch.tensor(v, requires_grad=True) for v in values]
    for ps in (ours, theirs):
        sum((p * p * p).sum() for p in ps).backward()
    return ours, theirs


@pytest.mark.parametrize("norm_type", [1, 2, 2.5, math.inf, 0.0])
def test_norms_and_clipping(norm_type):
    (ours, theirs), utils = with_gradients(), torch.nn.utils
    near(nn.utils.get_total_norm([p.grad for p in ours], norm_type), utils.get_total_norm([p.grad for p in theirs], norm_type))
    for check in (False, True):
        mine = nn.utils.clip_grad_norm_(ours, 0.5, norm_type, check, foreach=False)
        near(mine, utils.clip_grad_norm_(theirs, 0.5, norm_type, check))
        for p, q in zip(ours, theirs):
            near(p.grad, q.grad)
    nn.utils.clip_grads_with_norm_(ours, 0.25, flow.tensor(2.0))
    utils.clip_grads_with_norm_(theirs, 0.25, torch.tensor(2.0))
    nn.utils.clip_grad_value_(ours, 0.01)
    utils.clip_grad_value_(theirs, 0.01)
    for p, q in zip(ours, theirs):
        near(p.grad, q.grad)
    ours[0].grad = flow.full((3, 4), math.nan)
    before = ours[1].grad.tolist()
    # The number of elements that are not 0 is finite.
    if norm_type:
        with pytest.raises(RuntimeError, match="is nan, so they cannot be clipped"):
            nn.utils.clip_grad_norm_(ours, 0.5, norm_type, error_if_nonfinite=True)
    assert ours[1].grad.tolist() == before
    with pytest.raises(flow.Error, match="no parameter has a gradient"):
        nn.utils.clip_grad_norm_([flow.zeros(2, requires_grad=True)], 0.5, norm_type)


@pytest.mark.parametrize("sbp", ["B", "S(0)"])
def test_norms_of_global_gradients(sbp):
    mesh = flow.placement.all("cpu")
    (ours, theirs) = with_gradients()
    laid = [flow.distribute(p.detach(), mesh, sbp if p.ndim else "B").requires_grad_(True) for p in ours]
    sum((p * p * p).sum() for p in laid).backward()
    for norm_type in (1.0, math.inf):
        near(nn.utils.clip_grad_norm_(laid, 0.5, norm_type), torch.nn.utils.clip_grad_norm_(theirs, 0.5, norm_type))
    nn.utils.clip_grad_value_(laid, 0.01)
    torch.nn.utils.clip_grad_value_(theirs, 0.01)
    for p, q in zip(laid, theirs):
        near(p.grad, q.grad)


def test_parameters_as_a_vector():
    ours, theirs = with_gradients()
    vector = nn.utils.parameters_to_vector(ours)
    near(vector, torch.nn.utils.parameters_to_vector(theirs))
    nn.utils.vector_to_parameters(vector.detach() * 2.0, ours)
    for p, q in zip(ours, theirs):
        near(p, q * 2.0)
    with pytest.raises(ValueError, match="9 elements, the parameters have 18"):
        nn.utils.vector_to_parameters(flow.ones(9), ours)


def test_sequences_are_padded_and_taken_apart():
    ours, theirs = [flow.rand(n, 2) for n in (3, 1, 4)], None
    theirs = [torch.tensor(s.tolist()) for s in ours]
    for options in ({}, {"batch_first": True}, {"padding_value": -1.0, "padding_side": "left"}):
        near(nn.utils.rnn.pad_sequence(ours, **options), torch.nn.utils.rnn.pad_sequence(theirs, **options))
    for first in (False, True):
        padded = nn.utils.rnn.pad_sequence(ours, first)
        for a, b in zip(nn.utils.rnn.unpad_sequence(padded, flow.tensor([3, 1, 4]), first), ours, strict=True):
            near(a, b)


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2.0

    def right_inverse(self, x):
        return x / 2.0


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).t()


def test_a_parametrized_tensor_is_computed_when_it_is_read():
    flow.manual_seed(1)
    net = nn.Linear(3, 3)
    given, parameter = net.weight.tolist(), net.weight
    nn.utils.parametrize.register_parametrization(net, "weight", Doubled())
    assert type(net).__name__ == "ParametrizedLinear" and isinstance(net, nn.Linear)
    assert net.parametrizations.weight.original is parameter
    assert net.weight.tolist() == given and parameter.tolist() == (net.weight / 2.0).tolist()
    assert sorted(net.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert [n for n, _ in net.named_parameters()] == ["bias", "parametrizations.weight.original"]
    net(flow.ones(1, 3)).sum().backward()
    assert parameter.grad.tolist() == [[2.0] * 3] * 3
    with flow.no_grad():
        net.weight = flow.ones(3, 3)
    assert parameter.tolist() == [[0.5] * 3] * 3
    nn.utils.parametrize.register_parametrization(net, "weight", Symmetric())
    with flow.no_grad():
        parameter.copy_(flow.arange(9).reshape(3, 3).to(flow.float32))
    assert net.weight.tolist() == net.weight.t().tolist()
    with pytest.raises(RuntimeError, match="Symmetric has no right_inverse"):
        net.weight = flow.ones(3, 3)
    with nn.utils.parametrize.cached():
        assert net.weight is net.weight
    assert net.weight is not net.weight
    other = copy.deepcopy(net)
    assert other.parametrizations.weight.original is not parameter
    value = net.weight.tolist()
    nn.utils.parametrize.remove_parametrizations(net, "weight")
    assert type(net) is nn.Linear and net.weight is parameter and net.weight.tolist() == value
    assert sorted(net.state_dict()) == ["bias", "weight"]
    assert nn.utils.parametrize.is_parametrized(other, "weight") and other.weight.tolist() == value
    for make, kind, text in (
        (lambda: nn.utils.parametrize.register_parametrization(net, "scale", Doubled()), ValueError, "no parameter or buffer 'scale'"),
        (lambda: nn.utils.parametrize.register_parametrization(net, "weight", lambda x: x), TypeError, "is a Module"),
        (lambda: nn.utils.parametrize.register_parametrization(net, "bias", nn.Flatten(0)) or net.bias, None, ""),
        (lambda: nn.utils.parametrize.remove_parametrizations(net, "weight"), ValueError, "is not parametrized"),
    ):
        if kind is None:
            make()
            continue
        with pytest.raises(kind, match=text):
            make()


def twin(make, name, ours, theirs):
    """The same parametrized layer in both libraries, with the same values."""
    mine, other = make(nn, ours), make(torch.nn, theirs)
    other.load_state_dict({k: torch.tensor(v.tolist()) for k, v in mine.state_dict().items()})
    near(mine.weight, other.weight)
    return mine, other


LAYERS = {
    "Linear": (lambda n: n.Linear(5, 4), (3, 5)),
    "Conv1d": (lambda n: n.Conv1d(2, 3, 3), (1, 2, 7)),
    "ConvTranspose1d": (lambda n: n.ConvTranspose1d(2, 3, 3), (1, 2, 7)),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("name, options", [("weight_norm", {}), ("weight_norm", {"dim": 1}), ("weight_norm", {"dim": None}), ("spectral_norm", {"n_power_iterations": 2})])
def test_norms_of_weights_are_pytorchs(layer, name, options):
    make, shape = LAYERS[layer]
    wrapped = lambda n, how: how(make(n), **options)  # noqa: E731
    mine, other = twin(wrapped, name, getattr(nn.utils.parametrizations, name), getattr(torch.nn.utils.parametrizations, name))
    assert sorted(mine.state_dict()) == sorted(other.state_dict())
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for _ in range(2):
        a, b = mine(flow.tensor(x)), other(torch.tensor(x))
        near(a, b)
        (a * a).sum().backward()
        (b * b).sum().backward()
    theirs = dict(other.named_parameters())
    for key, p in mine.named_parameters():
        near(p.grad, theirs[key].grad, 1e-4)
    mine.eval(), other.eval()
    near(mine(flow.tensor(x)), other(torch.tensor(x)))


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6)])
@pytest.mark.parametrize("how", ["matrix_exp", "cayley", None])
def test_orthogonal_weights_stay_so(shape, how):
    flow.manual_seed(2)
    net = nn.utils.parametrizations.orthogonal(nn.Linear(shape[1], shape[0]), orthogonal_map=how)
    opt = flow.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        w = net.weight
        near(w @ w.t() if shape[0] <= shape[1] else w.t() @ w, flow.eye(min(shape)), 1e-4)
        opt.zero_grad()
        (net(flow.ones(2, shape[1])) ** 2).sum().backward()
        opt.step()
    with pytest.raises(ValueError, match="is not supported"):
        nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="householder")


def test_gains_are_pytorchs():
    for name, param in (("linear", None), ("conv_transpose2d", None), ("sigmoid", None), ("tanh", None), ("relu", None), ("leaky_relu", None), ("leaky_relu", 0.3), ("selu", None)):
        assert nn.init.calculate_gain(name, param) == pytest.approx(torch.nn.init.calculate_gain(name, param))
    with pytest.raises(ValueError, match="no gain is known"):
        nn.init.calculate_gain("gelu")


def test_every_initializer_of_pytorch_is_there():
    theirs = {name for name in torch.nn.init.__all__ if name.endswith("_")}
    assert all(hasattr(nn.init, name) for name in theirs), theirs


@pytest.mark.parametrize("name, args", [("constant_", (2.5,)), ("ones_", ()), ("zeros_", ()), ("eye_", ()), ("dirac_", ()), ("dirac_", (2,))])
def test_values_that_are_not_random(name, args):
    for shape in [(4, 2, 3), (6, 3, 4, 5), (2, 5, 3, 2, 1)] if name == "dirac_" else [(3, 5), (4, 2)]:
        ours, theirs = flow.rand(*shape, requires_grad=True), torch.rand(*shape, requires_grad=True)
        assert getattr(nn.init, name)(ours, *args) is ours
        near(ours, getattr(torch.nn.init, name)(theirs, *args))
        assert ours.is_leaf and ours.requires_grad


RANDOM = [
    ("uniform_", {"a": -1.0, "b": 3.0}), ("normal_", {"mean": 1.0, "std": 0.5}), ("trunc_normal_", {}), ("trunc_normal_", {"mean": 1.0, "std": 2.0, "a": 0.0, "b": 9.0}), ("trunc_normal_", {"a": 1.5, "b": 2.5}),
    ("xavier_uniform_", {"gain": 2.0}), ("xavier_normal_", {}), ("kaiming_uniform_", {"a": 0.5}), ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}),
    ("orthogonal_", {"gain": 2.0}), ("sparse_", {"sparsity": 0.3, "std": 0.5}),
]


@pytest.mark.parametrize("name, options", RANDOM)
def test_random_values_have_pytorchs_moments(name, options):
    flow.manual_seed(3), torch.manual_seed(3)
    shape = (100, 150)
    ours, theirs = getattr(nn.init, name)(flow.zeros(shape), **options), getattr(torch.nn.init, name)(torch.zeros(shape), **options)
    for moment in (lambda x: x.mean(), lambda x: x.std(), lambda x: (x**4).mean() ** 0.25):
        assert moment(ours).item() == pytest.approx(moment(theirs).item(), rel=0.05, abs=0.02)
    bounds = {"uniform_": 0.01, "trunc_normal_": 0.2, "xavier_uniform_": 0.01, "kaiming_uniform_": 0.01}
    if name in bounds:
        assert ours.min().item() == pytest.approx(theirs.min().item(), abs=bounds[name]) and ours.max().item() <= theirs.max().item() + bounds[name]
    if name == "orthogonal_":
        near(ours @ ours.t(), flow.eye(100) * 4.0, 1e-4)
    if name == "sparse_":
        assert {(column == 0.0).sum().item() for column in ours.t()} == {30}
    # The numbers do not depend on the layout, and a generator gives its own.
    mesh = flow.placement.all("cpu")
    laid = []
    for sbp in ("B", "S(0)"):
        flow.manual_seed(5)
        laid.append(getattr(nn.init, name)(flow.zeros((8, 6), placement=mesh, sbp=sbp), **options))
    near(laid[0], laid[1])


def test_initializers_refuse_what_they_cannot_write():
    for make, text in (
        (lambda: nn.init.eye_(flow.zeros(3)), "eye_ writes tensors of 2 dims"),
        (lambda: nn.init.dirac_(flow.zeros(3, 3)), "dirac_ writes tensors of 3 or 4 or 5 dims"),
        (lambda: nn.init.dirac_(flow.zeros(3, 3, 3), 2), "3 channels are not divided by 2"),
        (lambda: nn.init.sparse_(flow.zeros(3), 0.5), "sparse_ writes"),
        (lambda: nn.init.orthogonal_(flow.zeros(3)), "at least 2 dims"),
        (lambda: nn.init.xavier_normal_(flow.zeros(3)), "at least 2 dims"),
        (lambda: nn.init.kaiming_normal_(flow.zeros(3, 3), mode="fan"), "mode is 'fan_in' or 'fan_out'"),
    ):
        with pytest.raises(ValueError, match=text):
            make()
