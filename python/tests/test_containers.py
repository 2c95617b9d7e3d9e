"""Modules, their containers and their state dicts: the same programs in PyTorch and here."""

import copy
import pickle

import numpy as np
import oflow as flow
import pytest

torch = pytest.importorskip("torch")


def names(model):
    return [name for name, _ in model.named_modules()], list(model.state_dict())


def tags(modules):
    return [type(m).__name__ for m in modules]


def sequential(m):
    nn = m.nn
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    out = [names(model)]
    model[1] = nn.Tanh()
    model[-1] = nn.Linear(3, 4)
    out.append((names(model), tags(model)))
    del model[0]
    out.append((names(model), tags(model)))
    model.insert(0, nn.Sigmoid()).append(nn.GELU()).extend([nn.ReLU(), nn.Identity()])
    out.append((names(model), tags(model), tags(model[1:3]), names(model[2:])))
    out.append((type(model.pop(1)).__name__, tags(model)))
    both = model + nn.Sequential(nn.Linear(1, 1))
    both += [nn.ReLU()] if m is flow else nn.Sequential(nn.ReLU())
    out.append((tags(both), tags(model * 2), tags(2 * model)))
    model *= 2
    out.append((names(model), model[0] is model[len(model) // 2]))
    del model[1:3]
    out.append(tags(model))
    named = nn.Sequential({"a": nn.ReLU(), "b": nn.Tanh()}) if m is flow else nn.Sequential(__import__("collections").OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    named[0] = nn.GELU()
    out.append((names(named), names(named[:1]), tags(named), type(named.b).__name__))
    return out


def module_list(m):
    nn = m.nn
    model = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
    out = [names(model)]
    model += [nn.Tanh()]
    model.insert(1, nn.GELU())
    model[0] = nn.Linear(2, 2)
    out.append((names(model), tags(model), tags(model + [nn.ReLU()]), tags(model[::2])))
    out.append((type(model.pop(-1)).__name__, tags(model)))
    del model[0]
    out.append((names(model), tags(model), len(nn.ModuleList())))
    del model[:]
    return out + [len(model), tags(nn.ModuleList(x for x in [nn.ReLU()]))]


def module_dict(m):
    nn = m.nn
    model = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()})
    model.update([["c", nn.Tanh()]])
    out = [names(model), list(model), "a" in model, "z" in model, len(model), list(model.keys()), tags(model.values()), [k for k, _ in model.items()]]
    out.append(type(model.pop("b")).__name__)
    del model["a"]
    out.append(names(model))
    model.clear()
    return out + [len(model)]


def parameter_list(m):
    nn = m.nn
    model = nn.ParameterList([nn.Parameter(m.ones(2)), m.zeros(3)])
    model.append(m.ones(1)).extend([m.ones(4)])
    model += [m.zeros(5)]
    model[0] = nn.Parameter(m.zeros(2))
    model[-1] = m.ones(5)
    return [
        names(model), [type(p).__name__ for p in model], [tuple(p.shape) for p in model], len(model),
        type(model[1:3]).__name__, [tuple(p.shape) for p in model[1:3]], [p.sum().item() for p in model],
    ]  # fmt: skip


def parameter_dict(m):
    nn = m.nn
    model = nn.ParameterDict({"a": nn.Parameter(m.ones(2)), "b": m.zeros(3)})
    out = [names(model), list(model), list(reversed(model)), len(model), model.get("z") is None, tuple(model.setdefault("c", m.ones(4)).shape)]
    other = model | nn.ParameterDict({"d": m.ones(1)})
    model |= nn.ParameterDict({"e": m.ones(6)})
    out += [names(other), names(model), tuple(model.pop("a").shape), model.popitem()[0], names(model.copy())]
    out += [names(model.fromkeys(["x", "y"], m.ones(1))), [k for k, _ in model.items()], "c" in model]
    del model["b"]
    model.clear()
    return out + [len(model)]


def shared(m):
    nn = m.nn

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
            self.b = self.a
            self.c = nn.Linear(2, 2)
            self.c.weight = self.a[0].weight

    model = Twice()
    model.register_module("d", nn.ReLU())
    out = []
    for once in (True, False):
        out.append([n for n, _ in model.named_modules(remove_duplicate=once)])
        out.append([n for n, _ in model.named_parameters(remove_duplicate=once)])
        out.append([n for n, _ in model.named_buffers("p", remove_duplicate=once)])
    out.append([n for n, _ in model.named_modules(prefix="top")])
    out.append(model.get_buffer("a.1.running_mean").tolist())
    for bad in (model.get_buffer, model.get_parameter, model.get_submodule):
        with pytest.raises(AttributeError):
            bad("a.1.nothing")
    return out


def state_hooks(m):
    nn, log = m.nn, []

    class Old(nn.Linear):
        _version = 3

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            log.append(local_metadata.get("version"))
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    model = nn.Sequential(Old(2, 2), nn.Linear(2, 1))
    model[0].register_state_dict_pre_hook(lambda mod, prefix, keep: log.append((prefix, keep)))
    model[0].register_state_dict_post_hook(lambda mod, state, prefix, meta: state.update({prefix + "more": m.ones(1)}))
    model._register_state_dict_hook(lambda mod, state, prefix, meta: type(state)((k, v) for k, v in state.items() if "1.bias" not in k))
    state = model.state_dict(prefix="net.", keep_vars=True)
    out = [list(state), state["net.0.weight"] is model[0].weight]
    state = model.state_dict()
    out.append(list(state))

    def rename(mod, state, prefix, *rest):
        log.append((prefix, len(rest)))
        state.pop(prefix + "more", None)
        if prefix + "kernel" in state:
            state[prefix + "weight"] = state.pop(prefix + "kernel")

    model[0].register_load_state_dict_pre_hook(rename)
    model[0]._register_load_state_dict_pre_hook(lambda state, prefix, *rest: log.append(prefix))
    state["0.kernel"] = state.pop("0.weight") * 0 + 7
    result = model.load_state_dict(state, strict=False)
    out.append((result.missing_keys, model[0].weight.tolist(), sorted(result._fields)))
    model.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
    out.append(model.load_state_dict({"0.weight": m.zeros(2, 2)}).missing_keys)
    return out, log, model[0].weight.tolist()


def assigned(m):
    nn = m.nn
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[0].bias.requires_grad_(False)
    state = {k: (v.double() if v.dtype == m.float32 else v) for k, v in model.state_dict().items()}
    model.load_state_dict(state, assign=True)
    with m.no_grad():
        state["0.weight"].fill_(3.0)
    return [
        str(model[0].weight.dtype).rpartition(".")[2], model[0].weight.tolist(), model[0].bias.requires_grad, model[0].weight.requires_grad,
        type(model[0].weight).__name__, str(model[1].running_mean.dtype).rpartition(".")[2], [n for n, _ in model.named_parameters()],
    ]  # fmt: skip


def extra(m):
    class Counting(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    a, b = m.nn.Sequential(Counting(), m.nn.Linear(1, 1)), m.nn.Sequential(Counting(), m.nn.Linear(1, 1))
    a[0].count = 5
    state = a.state_dict()
    b.load_state_dict(state)
    del state["0._extra_state"]
    with pytest.raises(RuntimeError, match="0._extra_state"):
        b.load_state_dict(state)
    return list(a.state_dict()), b[0].count


def moved(m):
    nn, out = m.nn, []
    for args, kwargs in (((m.float64,), {}), (("cpu",), {"dtype": m.float64}), (("cpu", m.float64), {}), ((), {"dtype": m.float16, "device": "cpu"}),
                         ((m.ones(1, dtype=m.float64),), {}), ((), {"device": "cpu", "non_blocking": True})):  # fmt: skip
        model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        assert model.to(*args, **kwargs) is model
        out.append([str(t.dtype).rpartition(".")[2] for t in model.state_dict().values()])
    out.append(str(nn.Linear(1, 1).type(m.float64).weight.dtype).rpartition(".")[2])
    return out


PROGRAMS = (sequential, module_list, module_dict, parameter_list, parameter_dict, shared, state_hooks, assigned, extra, moved)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_pytorch(program):
    assert program(flow) == program(torch)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_copies(copied):
    model = flow.nn.Sequential(flow.nn.Linear(2, 2), flow.nn.BatchNorm1d(2), flow.nn.ModuleList([flow.nn.Linear(2, 2)]))
    model[0].weight.tag = "free"
    model[0].register_forward_hook(_double)
    model[0].bias.requires_grad_(False)
    again = copied(model)
    assert names(again) == names(model) and again[0].weight is not model[0].weight
    assert again[0].weight.tag == "free" and not again[0].bias.requires_grad and again[0].weight.requires_grad
    x = flow.ones(2, 2)
    assert again[0](x).tolist() == model[0](x).tolist()
    with flow.no_grad():
        again[0].weight.fill_(0.0)
    assert model[0].weight.abs().sum().item() > 0


def _double(module, args, result):
    return result * 2


def test_a_shallow_copy_shares_what_pytorchs_shares():
    for m in (flow, torch):
        model = m.nn.Sequential(m.nn.Linear(2, 2))
        again = copy.copy(model)
        assert again is not model and again[0] is model[0] and again._modules is model._modules
        again.mark = 1
        assert not hasattr(model, "mark")


def test_extra_states_are_in_checkpoints(folder):
    class Counting(flow.nn.Linear):
        count = 0

        def get_extra_state(self):
            return self.count

        def set_extra_state(self, state):
            self.count = state

    model = flow.nn.Sequential(Counting(1, 1))
    model[0].count = 3
    with flow.checkpoint.CheckpointManager(folder) as manager:
        manager.save(1, {"model": model})
        model[0].count = 0
        manager.load_latest({"model": model})
    assert model[0].count == 3


def test_wrong_states_change_nothing():
    model = flow.nn.Sequential(flow.nn.Linear(2, 2))
    before = model[0].weight
    for assign in (False, True):
        with pytest.raises(RuntimeError, match=r"'0.bias': the shape is \(3,\)"):
            model.load_state_dict({"0.weight": flow.zeros(2, 2), "0.bias": flow.zeros(3)}, assign=assign)
    assert model[0].weight is before and before.abs().sum().item() > 0
    with pytest.raises(RuntimeError, match="expected a tensor to assign, got a numpy.ndarray"):
        model.load_state_dict({"0.weight": np.zeros((2, 2)), "0.bias": flow.zeros(2)}, assign=True)


def test_an_optimizer_of_replaced_parameters_says_so():
    model = flow.nn.Linear(2, 2)
    opt = flow.optim.SGD(model.parameters(), lr=0.1)
    model.load_state_dict({"weight": flow.zeros(2, 2), "bias": flow.zeros(2)}, assign=True)
    model(flow.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="another tensor in its place"):
        opt.step()


@pytest.mark.parametrize("call, text", [
    (lambda: flow.nn.Sequential(3), "is a int, not a Module"),
    (lambda: flow.nn.ModuleList([flow.nn.ReLU()])[1], "module 1 of a list of 1"),
    (lambda: flow.nn.ModuleDict([("a",)]), "pairs of a name and a value"),
    (lambda: flow.nn.ParameterList([3]), "is a int, not a Parameter"),
    (lambda: flow.nn.Linear(1, 1).to(), "takes a device, a dtype, or a tensor"),
    (lambda: flow.nn.Linear(1, 1).to(colour=1), "no argument 'colour'"),
    (lambda: flow.nn.Linear(1, 1).to(flow.int64), "floating point or complex dtype"),
    (lambda: flow.nn.Sequential(flow.nn.ReLU()) * 0, "at least once"),
])  # fmt: skip
def test_refused(call, text):
    with pytest.raises((TypeError, IndexError, ValueError), match=text):
        call()
