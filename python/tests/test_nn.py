"""Modules: registration, walks, state dicts, layouts. Values are in test_beside_pytorch.py."""

import copy
import itertools

import numpy as np
import oflow as flow
import oflow.nn.functional as F
import pytest
from oflow import nn


@pytest.fixture(scope="module")
def mesh():
    return flow.placement.all("cpu")


def near(a, b, tolerance=1e-5):
    np.testing.assert_allclose(np.array(a.tolist()), np.array(b.tolist()), rtol=tolerance, atol=tolerance)


class Net(nn.Module):
    def __init__(self, **layout):
        super().__init__()
        self.fc1 = nn.Linear(4, 8, **layout)
        self.fc2 = nn.Linear(8, 3, bias=False, **layout)
        self.register_buffer("mean", flow.zeros(4))
        self.register_buffer("cache", flow.zeros(2), persistent=False)

    def forward(self, x):
        return self.fc2(self.fc1(x - self.mean).relu())


def filled(net):
    """The same values on every rank: local random numbers differ."""
    numbers = np.random.default_rng(0)
    net.load_state_dict({name: numbers.normal(size=t.shape).astype(np.float32) for name, t in net.state_dict().items()})
    return net


def test_parameters_are_found_under_their_names():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["fc1.weight", "fc1.bias", "fc2.weight"]
    assert [n for n, _ in net.named_buffers()] == ["mean", "cache"]
    assert [n for n, _ in net.named_modules()] == ["", "fc1", "fc2"]
    assert list(net.state_dict()) == ["mean", "fc1.weight", "fc1.bias", "fc2.weight"]
    assert net.get_parameter("fc1.bias") is net.fc1.bias and net.get_submodule("fc2") is net.fc2
    assert isinstance(net.fc1.weight, flow.Tensor) and net.fc1.weight.is_leaf and net.fc1.weight.requires_grad
    assert net.fc2.bias is None and "fc2" in dir(net)
    with pytest.raises(AttributeError, match="no parameter 'fc2.bias'"):
        net.get_parameter("fc2.bias")
    with pytest.raises(AttributeError, match="has no attribute 'fc3'"):
        net.fc3


def test_a_shared_parameter_is_one_parameter():
    net = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    net[1].weight = net[0].weight
    assert [n for n, _ in net.named_parameters()] == ["0.weight"] and len(net.state_dict()) == 2
    shared = net.state_dict()
    # One of its names is enough to load it.
    assert net.load_state_dict({"0.weight": flow.ones((3, 3))}).missing_keys == []
    assert net[1].weight.tolist() == [[1.0] * 3] * 3
    net.load_state_dict(shared)
    net.to_global(flow.placement.all("cpu"), rules={"0.*": "S(0)"})
    assert net[0].weight is net[1].weight and net[1].weight.sbp == (flow.sbp.split(0),)
    module = nn.Linear(2, 2)
    both = nn.Sequential(module, module)
    assert len(list(both.children())) == 1 and len(list(both.parameters())) == 2
    # As in PyTorch a state dict has every name.
    assert list(both.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    both.load_state_dict({"1.weight": flow.ones((2, 2)), "0.bias": flow.ones(2)})
    assert module.weight.tolist() == [[1.0, 1.0]] * 2
    module.again = both
    with pytest.raises(RuntimeError, match="contains itself"):
        both.state_dict()


def test_what_is_assigned_takes_the_place_of_what_was_there():
    net = nn.Module()
    net.w = nn.Parameter(flow.ones(2))
    net.w = nn.Parameter(flow.zeros(3))
    assert [list(p.shape) for p in net.parameters()] == [[3]]
    with pytest.raises(TypeError, match="cannot assign a Tensor to the parameter 'w'"):
        net.w = flow.ones(3)
    net.w = None
    assert list(net.parameters()) == [] and net.w is None
    net.w = nn.Linear(1, 1)
    assert [n for n, _ in net.named_parameters()] == ["w.weight", "w.bias"]
    del net.w
    assert not hasattr(net, "w") and list(net.modules()) == [net]
    net.plain = flow.ones(2)
    assert list(net.state_dict()) == []
    net.plain = nn.Parameter(flow.ones(2))
    assert list(net.state_dict()) == ["plain"]


def test_wrong_registrations_are_refused():
    class Late(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="before super"):
        Late()
    net = nn.Module()
    for name in ("", "a.b", 3):
        with pytest.raises(KeyError):
            net.register_parameter(name, None)
    with pytest.raises(KeyError, match="attribute 'train' already"):
        net.add_module("train", nn.ReLU())
    with pytest.raises(TypeError, match="not a Parameter"):
        net.register_parameter("w", flow.ones(1))
    with pytest.raises(TypeError, match="Parameter takes a tensor"):
        nn.Parameter([1.0])
    with pytest.raises(NotImplementedError, match="defines no forward"):
        net(1)


def test_state_dicts_are_checked_before_anything_is_written():
    net = Net()
    before = net.fc1.weight.tolist()
    good = {name: flow.ones_like(t) for name, t in net.state_dict().items()}
    for change, text in (
        ({"fc1.weight": flow.ones((8, 5))}, r"'fc1.weight': the shape is \(8, 5\), \(8, 4\) is needed"),
        ({"fc1.weight": flow.ones((8, 4), dtype=flow.int64)}, "'fc1.weight': the dtype is oflow.int64, oflow.float32 is needed"),
        ({"fc1.weight": "text"}, "'fc1.weight': expected a tensor, got a str"),
        ({"fc3.weight": flow.ones(1)}, "unexpected names: fc3.weight"),
        ({"cache": flow.ones(2)}, "unexpected names: cache"),
    ):
        with pytest.raises(RuntimeError, match=text):
            net.load_state_dict({**good, **change})
        assert net.fc1.weight.tolist() == before
    lacking = {name: t for name, t in good.items() if name != "fc2.weight"}
    with pytest.raises(RuntimeError, match="missing names: fc2.weight"):
        net.load_state_dict(lacking)
    found = net.load_state_dict({**lacking, "other": flow.ones(1)}, strict=False)
    assert found.missing_keys == ["fc2.weight"] and found.unexpected_keys == ["other"]
    assert net.fc1.weight.tolist() == [[1.0] * 4] * 8
    # Arrays, and another precision.
    net.load_state_dict({**good, "mean": np.full(4, 2.0), "fc1.bias": flow.zeros(8, dtype=flow.float16)})
    assert net.mean.tolist() == [2.0] * 4 and net.fc1.bias.dtype is flow.float32
    with pytest.raises(TypeError, match="a state dict is a dict"):
        net.load_state_dict([1])


def test_a_state_dict_shares_memory_and_loads_into_any_layout(mesh):
    net = filled(Net())
    state = net.state_dict()
    assert state["fc1.weight"].data_ptr() == net.fc1.weight.data_ptr() and not state["fc1.weight"].requires_grad
    other = Net(placement=mesh, sbp="B")
    other.to_global(mesh, rules=[("fc1.*", "S(0)"), ("fc2.weight", "S(1)")])
    other.load_state_dict(state)
    assert other.fc1.weight.tolist() == net.fc1.weight.tolist() and str(other.fc2.weight.sbp[0]) == "S(1)"
    third = Net(placement=mesh, sbp="B").to_global(mesh)
    third.load_state_dict(other.state_dict())
    assert third.fc2.weight.tolist() == net.fc2.weight.tolist()
    with pytest.raises(RuntimeError, match="the value is global and the target local"):
        net.load_state_dict(other.state_dict())


def test_layouts_by_rules(mesh):
    net = Net(placement=mesh, sbp="B")
    flow.distribute(flow.zeros(4), mesh, "B")
    values = net.fc1.weight.tolist()
    net.fc1.bias.requires_grad_(False)
    assert net.to_global(mesh, "B", rules={"fc1.?eight": "S(1)"}) is net
    assert [str(p.sbp[0]) for p in net.parameters()] == ["S(1)", "B", "B"] and net.fc1.weight.tolist() == values
    assert [p.requires_grad for p in net.parameters()] == [True, False, True]
    assert isinstance(net.fc1.weight, nn.Parameter) and net.mean.is_global
    with pytest.raises(flow.Error, match="'wieght' matches no parameter"):
        net.to_global(mesh, rules={"wieght": "S(0)"})
    with pytest.raises(flow.Error, match="parameter 'fc1.bias'.* cannot be laid out"):
        net.to_global(mesh, rules={"fc1.*": "S(1)"})
    opt = flow.optim.SGD(net.parameters(), lr=0.1)
    net.to_global(mesh)
    net(flow.ones((2, 4), placement=mesh, sbp="B")).sum().backward()
    with pytest.raises(flow.Error, match="make the optimizer after the last change of the module") as e:
        opt.step()
    assert e.value.site[0].endswith("test_nn.py")


def test_modes_hooks_and_apply():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.9), nn.Sequential(nn.Dropout(0.9)))
    assert net.training and net.eval() is net and not net[2][0].training
    x = flow.ones((3, 2))
    assert net(x).tolist() == net[0](x).tolist()
    net.train()
    with pytest.raises(ValueError):
        net.train("yes")
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Dropout", "Dropout", "Sequential", "Sequential"]
    layer = nn.Linear(2, 2)
    with layer.register_forward_pre_hook(lambda m, args: args[0] * 0):
        handle = layer.register_forward_hook(lambda m, args, y: y + 1)
        near(layer(x), (layer.bias + 1).expand([3, 2]))
    handle.remove()
    handle.remove()
    near(layer(x), F.linear(x, layer.weight, layer.bias))


def test_gradients_of_modules():
    net = Net()
    net(flow.ones((2, 4))).sum().backward()
    assert net.unused_parameters() == []
    net.zero_grad()
    assert net.unused_parameters() == ["fc1.weight", "fc1.bias", "fc2.weight"]
    net(flow.ones((2, 4))).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.fc2.weight.grad.abs().sum().item() == 0
    net.requires_grad_(False)
    assert not net(flow.ones((2, 4))).requires_grad


def test_errors_and_reports_name_the_path_of_the_module():
    net = nn.Module()
    net.h = nn.ModuleList([nn.Sequential(nn.Linear(2, 3), nn.Linear(2, 3))])
    net.h.append(net.h[0])
    net.h[0][1].register_forward_pre_hook(lambda m, args: (args[0], flow.ones((2, 2)) @ flow.ones((3, 3)))[:1])
    with pytest.raises(flow.ShapeError, match=r"h\.1\.1"):
        net.h[0](flow.ones((1, 2)))
    # The scope has ended with the error.
    with pytest.raises(flow.ShapeError) as e:
        flow.ones((2, 2)) @ flow.ones((3, 3))
    assert "h." not in str(e.value).splitlines()[0] + str(e.value).splitlines()[1]


def test_precisions_and_devices():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    net[0].bias.requires_grad_(False)
    net.register_buffer("mean", flow.ones(2))
    net.register_buffer("count", flow.ones(2, dtype=flow.int64))
    before = net[0].weight.tolist()
    assert net.double() is net and net[0].weight.dtype is flow.float64 and net.mean.dtype is flow.float64
    assert net.count.dtype is flow.int64 and net[0].weight is net[1].weight and not net[0].bias.requires_grad
    assert isinstance(net[0].weight, nn.Parameter) and net[0].weight.is_leaf
    assert net.to("float32")[0].weight.tolist() == before and net.half().bfloat16()[0].bias.dtype is flow.bfloat16
    assert net.float().cpu()[0].weight.device == flow.device("cpu")
    with pytest.raises(TypeError, match="floating point"):
        net.to(flow.int64)
    with pytest.raises((TypeError, ValueError)):
        net.to("nothing")


def test_containers():
    modules = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])
    modules.append(nn.ReLU())
    assert len(modules) == 3 and modules[-1] is modules[2] and len(modules[1:]) == 2
    with pytest.raises(IndexError):
        modules[3]
    named = nn.ModuleDict({"a": nn.Linear(1, 1)})
    named["b"] = nn.ReLU()
    assert "b" in named and list(named.keys()) == ["a", "b"] and [n for n, _ in named.named_parameters()] == ["a.weight", "a.bias"]
    del named["b"]
    assert len(named) == 1
    parameters = nn.ParameterList([nn.Parameter(flow.ones(2)), nn.Parameter(flow.ones(3))])
    assert [n for n, _ in parameters.named_parameters()] == ["0", "1"] and parameters[1].shape == (3,)
    for container in (modules, named, parameters):
        with pytest.raises(NotImplementedError):
            container(1)
    assert "(0): Linear(in_features=1, out_features=1, bias=True)" in repr(modules)


def test_a_copy_is_a_module_of_its_own():
    net = Net()
    other = copy.deepcopy(net)
    assert isinstance(other.fc1.weight, nn.Parameter) and other.fc1.weight is not net.fc1.weight
    with flow.no_grad():
        other.fc1.weight.zero_()
    assert net.fc1.weight.abs().sum().item() > 0


def test_layers_take_only_what_they_can_use():
    for make in (
        lambda: nn.Linear(2.0, 2),
        lambda: nn.Linear(True, 2),
        lambda: nn.Linear(2, -1),
        lambda: nn.Dropout(1.5),
        lambda: nn.LayerNorm(()),
        lambda: nn.SelfAttention(6, 4),
        lambda: nn.GELU("exact")(flow.ones(1)),
        lambda: nn.MSELoss(reduction="all")(flow.ones(1), flow.ones(1)),
        lambda: nn.LeakyReLU(slope=1),
        lambda: nn.LayerNorm((4, 5))(flow.ones((5, 4))),
    ):
        with pytest.raises((TypeError, ValueError)):
            make()


def test_the_same_seed_gives_the_same_parameters_in_any_layout(mesh):
    flow.manual_seed(3)
    a = nn.TransformerBlock(8, 2, 16, placement=mesh, sbp="B")
    flow.manual_seed(3)
    b = nn.TransformerBlock(8, 2, 16, placement=mesh, sbp="B").to_global(mesh, rules={"mlp.fc.*": "S(0)"})
    flow.manual_seed(3)
    c = nn.Linear(8, 8, placement=mesh, sbp="S(0)")
    assert all(p.tolist() == q.tolist() for p, q in zip(a.parameters(), b.parameters()))
    assert c.weight.tolist() == a.attn.q.weight.tolist()
    x = flow.randn((2, 3, 8), placement=mesh, sbp="B")
    near(a(x), b(x))


def test_a_rate_of_zero_draws_as_another_would():
    def after(p):
        flow.manual_seed(5)
        nn.Dropout(p)(flow.ones(4))
        return flow.rand(3).tolist()

    assert after(0.0) == after(0.5)


S0, S1, B = flow.sbp.S(0), flow.sbp.S(1), flow.sbp.B
PADDED = [(axes, sbp) for axes, kinds in ((1, (S0, S1, B)), (2, (S0, S1, B)), (3, (S0, B))) for sbp in itertools.product(kinds, repeat=axes)]


@pytest.mark.parametrize("layer", [nn.Embedding, nn.EmbeddingBag])
@pytest.mark.parametrize("axes, sbp", PADDED)
def test_the_row_of_padding_on_meshes(mesh, layer, axes, sbp):
    grid = (mesh, mesh.mesh(a=1, b=flow.world_size()), mesh.mesh(a=1, b=flow.world_size(), c=1))[axes - 1]
    for padding in (0, 2, -1):
        made = layer(5, 3, padding_idx=padding, placement=grid, sbp=sbp)
        assert [sum(v != 0 for v in row) for row in made.weight.tolist()] == [0 if r == padding % 5 else 3 for r in range(5)]
        ids = flow.tensor([[padding % 5, 1], [3, padding % 5]])
        made(flow.distribute(ids, grid, (B,) * axes)).sum().backward()
        assert [any(row) for row in made.weight.grad.tolist()] == [r in (1, 3) for r in range(5)]
