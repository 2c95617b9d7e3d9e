"""Recurrent networks, heads of attention, bags and optimizers against the numbers of PyTorch that the Rust tests read (tests/golden)."""

import json
import pathlib

import numpy as np
import oflow as flow
import pytest
from oflow import nn, optim

GOLDEN = pathlib.Path(__file__).parents[2] / "tests" / "golden"
MODULES = json.loads((GOLDEN / "modules.json").read_text())
STEPS = json.loads((GOLDEN / "optimizers.json").read_text())


def array(said):
    dtype = {"f64": "float64", "f32": "float32", "i64": "int64", "bool": "bool"}[said["dtype"]]
    return np.array([float(x) if isinstance(x, str) else x for x in said["data"]]).astype(dtype).reshape(said["shape"])


def tensor(said):
    return flow.tensor(array(said))


def near(got, said, what, eps=None):
    want = array(said)
    assert tuple(got.shape) == want.shape, what
    eps = eps or (1e-11 if want.dtype == np.float64 else 3e-6)
    np.testing.assert_allclose(np.array(got.tolist()), want, rtol=eps, atol=eps, err_msg=what)


def made(kind, config):
    config = dict(config)
    if kind == "bag":
        return nn.EmbeddingBag(config.pop("rows"), config.pop("width"), dtype=flow.float64, **config)
    if kind == "embedding":
        return nn.Embedding(config.pop("rows"), config.pop("width"), dtype=flow.float64, **config)
    if kind == "sequential":
        f64 = {"dtype": flow.float64}
        return nn.Sequential(nn.Linear(4, 5, **f64), nn.Tanh(), nn.LayerNorm(5, **f64), nn.Linear(5, 3, **f64))
    kinds = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN, "mha": nn.MultiheadAttention}
    return kinds[kind](**config, dtype=flow.float64)


def run(case, placement, split):
    what = f"{case['kind']} {case['config']}"
    module = made(case["kind"], case["config"])
    place = lambda t: t  # noqa: E731
    if placement is not None:
        module.to_global(placement, flow.sbp.split(0) if split else flow.sbp.broadcast)

        def place(t):
            return flow.distribute(t, placement, flow.sbp.split(t.ndim - 1) if split and t.ndim else flow.sbp.broadcast)

    module.load_state_dict({name: tensor(said) for name, said in case["state"].items()})
    inputs = [place(tensor(said)) for said in case["inputs"]]
    for x in inputs:
        if x.dtype.is_floating_point:
            x.requires_grad_()
    options = {name: place(tensor(v)) if isinstance(v, dict) else v for name, v in case["options"].items()}
    if case["kind"] == "lstm" and len(inputs) == 3:
        out = module(inputs[0], (inputs[1], inputs[2]))
    elif case["kind"] == "mha" and len(inputs) == 1:
        out = module(inputs[0], inputs[0], inputs[0])
    else:
        out = module(*inputs, **options)
    outs = []
    for o in out if isinstance(out, tuple) else (out,):
        outs += [o] if isinstance(o, flow.Tensor) else [x for x in (o or ()) if x is not None]
    assert len(outs) == len(case["outputs"]), what
    for o, said in zip(outs, case["outputs"]):
        near(o, said, what)
    loss = sum((o * place(tensor(d))).sum() for o, d in zip(outs, case["dy"]))
    loss.backward()
    for x, said in zip(inputs, case["grads"]):
        if said is not None:
            near(x.grad, said, what)
    for name, said in case["parameter_grads"].items():
        near(module.get_parameter(name).grad, said, f"{name} of {what}")


@pytest.mark.parametrize("case", MODULES, ids=lambda c: c["kind"])
def test_modules_are_pytorchs(case):
    run(case, None, False)
    for split in (False, True):
        run(case, flow.placement.all("cpu"), split)


KINDS = {
    "sgd": optim.SGD,
    "adam": optim.Adam,
    "adamw": optim.AdamW,
    "rmsprop": optim.RMSprop,
    "adagrad": optim.Adagrad,
    "adadelta": optim.Adadelta,
    "adafactor": optim.Adafactor,
    "adamax": optim.Adamax,
    "asgd": optim.ASGD,
    "lion": optim.Lion,
    "lamb": optim.Lamb,
    "muon": optim.Muon,
    "nadam": optim.NAdam,
    "radam": optim.RAdam,
    "rprop": optim.Rprop,
}


@pytest.mark.parametrize("case", STEPS, ids=lambda c: c["config"]["kind"])
def test_steps_are_pytorchs(case):
    config = dict(case["config"])
    make = KINDS[config.pop("kind")]
    if "beta1" in config:
        config["betas"] = (config.pop("beta1"), config.pop("beta2"))
    if config.pop("decoupled", False):
        make = optim.AdamW
    parameters = [tensor(said).requires_grad_() for said in case["initial"]]
    opt = make(parameters, **config)
    for n, (grads, after) in enumerate(zip(case["grads"], case["after"])):
        for p, g in zip(parameters, grads):
            p.grad = tensor(g)
        if n == 2:
            # A state goes on where it was, in a new optimizer.
            state = opt.state_dict()
            opt = make(parameters, **config)
            opt.load_state_dict(state)
        opt.step()
        for p, said in zip(parameters, after):
            near(p, said, f"{case['config']} after step {n}", 1e-2 * opt.defaults["lr"] if isinstance(opt, optim.Muon) else None)


def test_groups_by_decay_and_averages():
    net = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    groups = optim.by_decay(net.parameters(), 0.5)
    assert [len(g["params"]) for g in groups] == [1, 3]
    opt = optim.AdamW(groups, lr=1.0)
    ema = optim.EMA(net.parameters(), decay=0.5)
    for p in net.parameters():
        p.grad = p * 0
    before = [p.tolist() for p in net.parameters()]
    opt.step()
    ema.update()
    weight = np.array(before[0])
    np.testing.assert_allclose(net[0].weight.tolist(), weight * 0.5, rtol=1e-6)
    assert net[0].bias.tolist() == before[1]
    with ema.averaged():
        np.testing.assert_allclose(net[0].weight.tolist(), weight * 0.75, rtol=1e-6)
        with pytest.raises(flow.Error, match="hold the averages"):
            ema.update()
    np.testing.assert_allclose(net[0].weight.tolist(), weight * 0.5, rtol=1e-6)
    other = optim.EMA(net.parameters())
    other.load_state_dict(ema.state_dict())
    assert other.updates == 1
    np.testing.assert_allclose(other.averages[0].tolist(), weight * 0.75, rtol=1e-6)
    with pytest.raises(RuntimeError, match="lacks 0.mean"):
        other.load_state_dict({"updates": 1})


def test_states_load_by_name_where_they_fit():
    p = flow.ones(2).requires_grad_()
    p.grad = flow.ones(2)
    opt = optim.Adam([p])
    opt.step()
    state = opt.state_dict()
    for name, value in (("0.odd", flow.ones(2)), ("3.mean", flow.ones(2))):
        with pytest.raises(RuntimeError, match="another optimizer"):
            optim.Adam([p]).load_state_dict({**state, name: value})
        found = optim.Adam([p]).load_state_dict({**state, name: value}, strict=False)
        assert found.unexpected_keys == [name] and found.missing_keys == []
    del state["0.square"]
    with pytest.raises(RuntimeError, match="lacks 0.square"):
        optim.Adam([p]).load_state_dict(state)
    assert optim.Adam([p]).load_state_dict(state, strict=False).missing_keys == ["0.square"]


def test_frozen_and_replaced_parts():
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    net.freeze("0.*")
    net(flow.ones((4, 2))).sum().backward()
    assert net[0].weight.grad is None and net[1].weight.grad is not None
    net.unfreeze()
    assert all(p.requires_grad for p in net.parameters())
    with pytest.raises(ValueError, match="'2.\\*' matches no parameter"):
        net.freeze("2.*")
    net.set_submodule("1", nn.Linear(3, 5))
    assert tuple(net(flow.ones((4, 2))).shape) == (4, 5)
    with pytest.raises(AttributeError, match="no part '7'"):
        net.set_submodule("7", nn.Linear(3, 5))


def test_weights_of_classes_are_saved_with_the_loss():
    loss = nn.CrossEntropyLoss(weight=flow.tensor([1.0, 2.0, 0.5]), label_smoothing=0.1)
    assert list(loss.state_dict()) == ["weight"] and not list(loss.parameters())
    x = flow.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0]])
    assert loss(x, flow.tensor([2, 0])).ndim == 0
    assert tuple(nn.CrossEntropyLoss(reduction="none")(x, flow.tensor([2, -100])).shape) == (2,)


def test_cells_give_the_steps_of_networks():
    flow.manual_seed(1)
    for network, cell in ((nn.LSTM, nn.LSTMCell), (nn.GRU, nn.GRUCell), (nn.RNN, nn.RNNCell)):
        net, one = network(3, 4), cell(3, 4)
        one.load_state_dict({name[:-3]: t for name, t in net.state_dict().items()})
        x = flow.randn((5, 2, 3))
        out, last = net(x)
        state = None
        for t in range(5):
            state = one(x[t], state)
        last, state = (last[0], state[0]) if network is nn.LSTM else (last, state)
        np.testing.assert_allclose(np.array(state.tolist()), np.array(last[0].tolist()), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.array(out[4].tolist()), np.array(state.tolist()), rtol=1e-5, atol=1e-6)
