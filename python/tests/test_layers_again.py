"""Layers drawn anew, attributes of parameters, hooks and states of optimizers, and names of groups: PyTorch's habits."""

import numpy as np
import oflow as flow
import pytest

torch = pytest.importorskip("torch")
nn = flow.nn

LAYERS = {
    "Linear": lambda m: m.nn.Linear(64, 128),
    "Bilinear": lambda m: m.nn.Bilinear(8, 8, 64),
    "Embedding": lambda m: m.nn.Embedding(64, 32, padding_idx=3),
    "EmbeddingBag": lambda m: m.nn.EmbeddingBag(64, 32, padding_idx=2),
    "Conv2d": lambda m: m.nn.Conv2d(8, 16, 3),
    "ConvTranspose1d": lambda m: m.nn.ConvTranspose1d(16, 8, 3),
    "LayerNorm": lambda m: m.nn.LayerNorm(16),
    "GroupNorm": lambda m: m.nn.GroupNorm(2, 16),
    "BatchNorm1d": lambda m: m.nn.BatchNorm1d(16),
    "LSTM": lambda m: m.nn.LSTM(16, 32, num_layers=2, proj_size=8),
    "GRUCell": lambda m: m.nn.GRUCell(16, 32),
    "PReLU": lambda m: m.nn.PReLU(4),
}


@pytest.mark.parametrize("layout", [None, "S(0)", "B"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_drawn_anew(name, layout):
    theirs, ours = LAYERS[name](torch), LAYERS[name](flow)
    if layout is not None:
        ours.to_global(flow.placement.all("cpu"), layout)
    with flow.no_grad():
        for t in (*ours.parameters(), *(b for b in ours.buffers() if b.dtype == flow.float32)):
            t.fill_(7.0)
    places = [id(p) for p in ours.parameters()]
    theirs.reset_parameters()
    assert ours.reset_parameters() is None and [id(p) for p in ours.parameters()] == places
    for (name, t), (_, u) in zip(ours.state_dict().items(), theirs.state_dict().items(), strict=True):
        x, y = np.asarray(t.tolist()), u.numpy()
        assert x.shape == y.shape and np.isclose(x.std(), y.std(), rtol=0.35, atol=0.02) and np.isclose(x.mean(), y.mean(), atol=0.15), name
        assert np.allclose(np.abs(x).max(), np.abs(y).max(), rtol=0.4), name
    if name == "Embedding":
        assert not ours.weight[3].any().item()


def test_a_layer_that_draws_again_keeps_its_way():
    layer = nn.Linear(100, 100)
    layer.weight = nn.Parameter(flow.zeros(100, 100))
    layer.double()
    layer.reset_parameters()
    assert 0.09 < layer.weight.abs().max().item() <= 0.1 and layer.weight.dtype == flow.float64
    assert not hasattr(layer.weight, "_drawn")


def test_attributes_of_parameters_stay():
    layer = nn.Linear(4, 4)
    layer.weight.no_decay = True
    assert layer.double().weight.no_decay and layer.to_global(flow.placement.all("cpu")).weight.no_decay
    assert not hasattr(layer.bias, "no_decay")


def test_attributes_of_tensors_stay_with_the_object():
    x = flow.ones(2)
    x.name, x._age = "x", 3
    assert (x.name, x._age) == ("x", 3) and vars(x) == {"name": "x", "_age": 3}
    # What is computed or copied is another object, as in PyTorch.
    assert not hasattr(x + 1, "name") and not hasattr(x.detach(), "name")
    del x.name
    assert not hasattr(x, "name")
    for name, value in (("shape", (2,)), ("dtype", flow.int64)):
        with pytest.raises(AttributeError):
            setattr(x, name, value)
    with pytest.raises(AttributeError, match="has no attribute 'squeeze_': a tensor keeps its shape"):
        x.squeeze_


def trained(m):
    layer = m.nn.Linear(2, 1)
    opt = m.optim.Adam([{"params": [layer.weight], "name": "weights"}, {"params": [layer.bias], "lr": 0.5, "scale": 2}])
    layer(m.ones(1, 2)).sum().backward()
    return layer, opt


def test_groups_have_names():
    for m in (flow, torch):
        layer, opt = trained(m)
        opt.step()
        assert opt.param_groups[0]["name"] == "weights" and opt.param_groups[1]["scale"] == 2 and opt.param_groups[1]["lr"] == 0.5
        state = opt.state_dict()
        opt.param_groups[1]["scale"] = 3
        opt.load_state_dict(state)
        assert opt.param_groups[1]["scale"] == 2
    with pytest.raises(ValueError, match="did you mean 'weight_decay'"):
        flow.optim.SGD([{"params": [layer_of(flow).weight], "weight_decai": 0.1}], lr=0.1)


def layer_of(m):
    return m.nn.Linear(1, 1)


def test_states_of_parameters():
    for m in (flow, torch):
        layer, opt = trained(m)
        assert len(opt.state) == 0
        opt.step()
        kept = opt.state[layer.weight]
        assert set(kept) == {"step", "exp_avg", "exp_avg_sq"} and float(kept["step"]) == 1.0
        np.testing.assert_allclose(kept["exp_avg"].tolist(), [[0.1, 0.1]], rtol=1e-6)


@pytest.mark.parametrize("kind", ["Adam", "LBFGS"])
def test_hooks_of_steps(kind):
    for m in (flow, torch):
        layer, log = layer_of(m), []
        opt = getattr(m.optim, kind)(layer.parameters(), lr=0.1)

        def closure(m=m, layer=layer, opt=opt):
            opt.zero_grad()
            loss = layer(m.ones(1, 1)).square().sum()
            loss.backward()
            return loss

        before = opt.register_step_pre_hook(lambda o, args, kwargs: log.append(("before", len(args))))
        opt.register_step_post_hook(lambda o, args, kwargs: log.append(("after", o is opt)))
        opt.step(closure)
        before.remove()
        opt.step(closure)
        # PyTorch gives its hooks the optimizer among the arguments.
        given = 1 if m is flow else 2
        assert log == [("before", given), ("after", True), ("after", True)]


def test_a_hook_changes_the_arguments_of_a_step():
    layer = layer_of(flow)
    opt = flow.optim.SGD(layer.parameters(), lr=0.1)
    opt.register_step_pre_hook(lambda o, args, kwargs: ((), {"closure": lambda: 5}))
    layer(flow.ones(1, 1)).sum().backward()
    assert opt.step() == 5
    opt.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="a pair"):
        opt.step()


def test_autocast_by_device():
    layer, x = layer_of(flow), flow.ones(1, 1)
    for mode in (flow.autocast("cpu", dtype=flow.bfloat16), flow.autocast(device_type="cuda"), flow.autocast(flow.bfloat16), flow.autocast("cpu", flow.bfloat16)):
        with mode:
            assert layer(x).dtype == flow.bfloat16
    with flow.autocast("cpu", enabled=False):
        assert layer(x).dtype == flow.float32
    with pytest.raises(TypeError, match="a device such as 'cpu'"):
        flow.autocast(flow.bfloat16, flow.float16)


@pytest.mark.parametrize("segments", [1, 2, 3])
def test_a_sequence_in_parts_that_are_run_again(segments):
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    x = flow.ones(2, 3, requires_grad=True)
    model(x).sum().backward()
    want = [p.grad.tolist() for p in (x, *model.parameters())]
    x.grad = None
    model.zero_grad()
    flow.utils.checkpoint.checkpoint_sequential(model, segments, x, use_reentrant=False).sum().backward()
    assert [p.grad.tolist() for p in (x, *model.parameters())] == want
    with pytest.raises(ValueError, match="from 1 to 5"):
        flow.utils.checkpoint.checkpoint_sequential(model, 6, x)
