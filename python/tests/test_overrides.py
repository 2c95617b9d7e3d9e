"""A parent's methods call those that a part defines itself: every method × how it is defined × where the part stands."""

import types
from collections import OrderedDict

import oflow as flow
import pytest
from oflow import nn

# The method, and its call on the parent.
CALLS = {
    "train": lambda net: net.train(),
    "train (through eval)": lambda net: net.eval(),
    "eval": lambda net: net.eval(),
    "apply": lambda net: net.apply(lambda m: None),
    "state_dict": lambda net: net.state_dict(),
    "_save_to_state_dict": lambda net: net.state_dict(),
    "load_state_dict": lambda net: net.load_state_dict(net.state_dict()),
    "_load_from_state_dict": lambda net: net.load_state_dict(net.state_dict()),
    "zero_grad": lambda net: net.zero_grad(),
    "zero_grad (to zeros)": lambda net: net.zero_grad(False),
    "requires_grad_": lambda net: net.requires_grad_(False),
    "to": lambda net: net.to(flow.float64),
    "to (through half)": lambda net: net.half(),
    "half": lambda net: net.half(),
    "float": lambda net: net.float(),
    "double": lambda net: net.double(),
    "bfloat16": lambda net: net.bfloat16(),
    "cpu": lambda net: net.cpu(),
}
PLACES = {
    "attribute": lambda part: holder(part),
    "Sequential": lambda part: nn.Sequential(nn.Linear(2, 2), part),
    "ModuleList in a Sequential": lambda part: holder(nn.ModuleList([nn.Linear(2, 2), part])),
    "ModuleDict": lambda part: nn.ModuleDict({"a": part, "b": nn.Linear(2, 2)}),
    "three deep": lambda part: holder(nn.Sequential(holder(part))),
    "twice": lambda part: nn.Sequential(part, part),
}


def holder(part):
    net = nn.Module()
    net.fc, net.part = nn.Linear(2, 2), part
    return net


def recorded(method, seen, on_object):
    """A part that notes the calls of its own method."""
    own = getattr(nn.Linear, method)

    def noted(self, *args, **kwargs):
        seen.append(method)
        return own(self, *args, **kwargs)

    part = (nn.Linear if on_object else type("Own", (nn.Linear,), {method: noted}))(2, 2)
    if on_object:
        object.__setattr__(part, method, types.MethodType(noted, part))
    return part


def test_every_method_of_a_part_is_called():
    cells, lost = 0, []
    for what, call in CALLS.items():
        for place, make in PLACES.items():
            for on_object in (False, True):
                seen = []
                net = make(recorded(what.split(" ")[0], seen, on_object))
                before = [tuple(t.shape) for t in net.state_dict().values()]
                seen.clear()
                call(net)
                cells += 1
                if not seen:
                    lost.append(f"{what}, {place}, {'object' if on_object else 'class'}")
                assert [tuple(t.shape) for t in net.state_dict().values()] == before
    print(f"{len(CALLS)} methods x {len(PLACES)} places x 2 ways: {cells} cells, {len(lost)} not called")
    assert not lost, f"{len(lost)} of {cells}: {lost}"


class Frozen(nn.BatchNorm1d):
    def train(self, mode=True):
        return super().train(False)


def test_a_part_has_its_say():
    net = nn.Sequential(nn.Linear(3, 3), Frozen(3), nn.Dropout())
    for mode in (net.train, net.eval, net.train):
        mode()
        assert not net[1].training and net[0].training is net[2].training is net.training

    class Kept(nn.Linear):
        def half(self):
            return self

        def requires_grad_(self, requires_grad=True):
            return self

        def zero_grad(self):
            pass

    net = nn.Sequential(nn.Linear(2, 2), Kept(2, 2))
    net[0].weight.grad = net[1].weight.grad = flow.ones((2, 2))
    net.requires_grad_(False).zero_grad()
    assert [p.requires_grad for p in net.parameters()] == [False, False, True, True]
    assert net[0].weight.grad is None and net[1].weight.grad is not None
    assert [p.dtype.name for p in net.half().parameters()] == ["float16", "float16", "float32", "float32"]
    assert {p.dtype.name for p in net.to(flow.float64).parameters()} == {"float64"}


class Renamed(nn.Linear):
    """Loads what an older version saved as `w`, and saves a name of its own."""

    def _load_from_state_dict(self, state_dict, prefix, *args):
        if prefix + "w" in state_dict:
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
        super()._load_from_state_dict(state_dict, prefix, *args)


class Adapter(nn.Linear):
    """Saves and loads its bias alone."""

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        destination = OrderedDict() if destination is None else destination
        destination[prefix + "only"] = self.bias.detach()
        return destination

    def load_state_dict(self, state_dict, strict=True):
        with flow.no_grad():
            self.bias.copy_(state_dict["only"])
        return nn.Module().load_state_dict({})


def test_state_of_parts_with_names_of_their_own():
    net = nn.Sequential(OrderedDict(a=Renamed(2, 2), b=nn.Sequential(Adapter(2, 2)), c=nn.Linear(2, 1)))
    state = net.state_dict()
    assert list(state) == ["a.weight", "a.bias", "b.0.only", "c.weight", "c.bias"]
    assert list(net.state_dict(prefix="x.")) == ["x." + name for name in state]
    assert net.state_dict(keep_vars=True)["a.weight"] is net.a.weight
    given = {name: flow.full_like(t, 3.0) for name, t in state.items()}
    given["a.w"] = given.pop("a.weight")
    found = net.load_state_dict(given)
    assert found.missing_keys == found.unexpected_keys == []
    assert net.a.weight.tolist() == [[3.0, 3.0]] * 2 and net.b[0].bias.tolist() == [3.0, 3.0]
    # Nothing is changed by what does not fit, in parts neither.
    wrong = {**{name: t * 2 for name, t in given.items()}, "c.bias": flow.ones(5), "a.other": flow.ones(1), "d": flow.ones(1)}
    with pytest.raises(RuntimeError, match="unexpected names: .*a.other(.|\n)*'c.bias': the shape"):
        net.load_state_dict(wrong)
    assert net.a.weight.tolist() == [[3.0, 3.0]] * 2 and net.b[0].bias.tolist() == [3.0, 3.0]
    with pytest.raises(TypeError, match="names of a state dict are strings, not 1"):
        net.load_state_dict({1: flow.ones(1)})


def test_a_tensor_without_dims_formats_as_its_number():
    torch = pytest.importorskip("torch")
    for value, spec in ((0.123456, ".4f"), (1e-7, "g"), (3, "05d"), (-2, ""), (True, ""), (2.5, ""), (float("inf"), ".1f"), (1.5, ">8")):
        assert f"{flow.tensor(value):{spec}}" == f"{torch.tensor(value):{spec}}", (value, spec)
        assert f"{nn.Parameter(flow.tensor(1.5)):.2f}" == "1.50"
    mesh = flow.placement.all("cpu")
    whole = flow.tensor(0.123456, placement=mesh, sbp="B")
    assert f"{whole:.4f}" == "0.1235" and f"{whole}" == str(whole)
    for t in (flow.ones(2), flow.ones(1), whole.to_global(sbp="P(sum)")):
        assert f"{t}" == str(t)
        with pytest.raises(TypeError, match=r"expected a number to format as '\.4f', got f32(.|\n)*item\(\)"):
            f"{t:.4f}"
