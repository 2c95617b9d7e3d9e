"""Writes in place, local and global side by side: every way to write × every state that a tensor may be in. The outcome of a local
tensor is that of PyTorch, and the outcome of a global one is that of the local, except for views and ``detach`` of global tensors:
those are values, and a write to them is refused (invariant I15)."""

import copy
import operator
import re

import oflow as flow
import pytest
from oflow import nn

try:
    import torch
except ImportError:
    torch = None

MESH = flow.placement.all("cpu")
# How a tensor of the row enters: local, or global in a layout.
COLUMNS = {"local": None, "global [B]": "B", "global [S(0)]": "S(0)"}


class Column:
    """Makes the tensors of one column, with oflow or PyTorch."""

    def __init__(self, sbp=None, lib=flow):
        self.sbp, self.lib = sbp, lib

    def __call__(self, values):
        t = self.lib.tensor(values)
        return t if self.sbp is None else flow.distribute(t, MESH, self.sbp)

    def quiet(self, make):
        with self.lib.no_grad():
            return make()

    def x(self):
        return self([[0.25, 0.5, 0.75], [0.5, 0.25, 0.125]])

    def leaf(self):
        return self.x().requires_grad_()

    def linear(self, factory=False, before=None):
        """A linear layer, laid out by the factory or by ``to_global``; ``before`` is called before that."""
        given = {"placement": MESH, "sbp": "B"} if factory and self.sbp else {}
        made = nn.Linear(3, 2, **given)
        if before is not None:
            before(made)
        if self.sbp is not None and not given:
            made.to_global(MESH, rules={"weight": self.sbp})
        return self.filled(made.weight)

    def filled(self, weight):
        with flow.no_grad():
            old = weight.requires_grad
            weight.requires_grad_(True)
            weight.copy_(self.x())
            weight.requires_grad_(old)
        return weight


def frozen(tensor_or_module):
    return tensor_or_module.requires_grad_(False)


def buffer(c, change=lambda m: m, dtype=flow.float32):
    m = nn.Module()
    m.register_buffer("b", flow.tensor([[0.25, 0.5, 0.75], [0.5, 0.25, 0.125]]).cast(dtype))
    if c.sbp is not None:
        m.to_global(MESH, "B")
    return change(m).b




def saved_for_backward(c):
    x = c.leaf() * 1.0
    return x, (x * x).sum()


# The state: what is written, and what is looked at afterwards besides.
STATES = {
    "plain": lambda c: c.x(),
    "leaf": lambda c: c.leaf(),
    "frozen leaf": lambda c: frozen(c.leaf()),
    "result in a graph": lambda c: c.leaf() * 1.0,
    "result without a graph": lambda c: c.quiet(lambda: c.leaf() * 1.0),
    "saved for backward": saved_for_backward,
    "clone of a detach": lambda c: c.leaf().detach().clone(),
    "detach": lambda c: (c.x().detach(),),
    "detach of a leaf": lambda c: c.leaf().detach(),
    "detach, frozen": lambda c: frozen(c.leaf().detach()),
    "view": lambda c: with_base(c.x(), lambda x: x[0:1]),
    "transposed view": lambda c: with_base(c.x(), lambda x: x.transpose(0, 1)),
    "view of a leaf": lambda c: with_base(c.leaf(), lambda x: x[0:1]),
    "view of a result": lambda c: with_base(c.leaf() * 1.0, lambda x: x[0:1]),
    "view made under no_grad": lambda c: with_base(c.leaf() * 1.0, lambda x: c.quiet(lambda: x[0:1])),
    "expanded": lambda c: with_base(c.x(), lambda x: x[0:1].expand(2, 3)),
    "parameter by the factory": lambda c: c.linear(factory=True),
    "frozen parameter by the factory": lambda c: frozen(c.linear(factory=True)),
    "parameter": lambda c: c.linear(),
    "parameter frozen before to_global": lambda c: c.linear(before=frozen),
    "parameter frozen after to_global": lambda c: frozen(c.linear()),
    "parameter frozen by freeze()": lambda c: c.linear(before=lambda m: m.freeze("weight")),
    "parameter of a frozen copy": lambda c: copy.deepcopy(c.linear(before=frozen)),
    "Parameter of a detach": lambda c: c.lib.nn.Parameter(c.leaf().detach(), requires_grad=False),
    "Parameter of a view": lambda c: c.lib.nn.Parameter(c.x()[:, 0:3], requires_grad=False),
    "buffer": buffer,
    "buffer, converted": lambda c: buffer(c, lambda m: m.double()),
    "integer buffer of a converted module": lambda c: buffer(c, lambda m: m.double(), flow.int64),
}
# Views and `detach` of global tensors are values: a write would not reach the tensor they came from.
VALUES = {
    "detach", "detach of a leaf", "detach, frozen", "view", "transposed view", "view of a leaf", "view of a result",
    "view made under no_grad", "expanded",
}  # fmt: skip


def with_base(base, view):
    return view(base), base


def arguments():
    """Every method that writes, with arguments that it takes; and the methods without."""
    takes, no = {}, []
    for name in sorted(n for n in dir(flow.Tensor) if n.endswith("_") and not n.startswith("_") and n != "requires_grad_"):
        tries = (
            (), (0.5,), ("index", "row"), ("mask", 0.5), ("like",), ("like", "like"), ("like", 0.5), (0.25, 0.75), (0,), ("mask", "like"),
            (2.0, 0, 1.0), (0, "ids", "row"), (0, "ids", 0.5), (0, "ids", "row", "prod"), (0, "places", "like"), (0, "places", "like", "sum"),
            ("one place", "one"),
        )  # fmt: skip
        for given in tries:
            try:
                t = Column().x()
                getattr(t, name)(*with_tensors(given, t))
            except Exception:
                continue
            takes[name] = lambda t, name=name, given=given: getattr(t, name)(*with_tensors(given, t))
            break
        else:
            no.append(name)
    for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"):
        for value in (2.0, "like"):
            takes[f"{name} {value}"] = lambda t, name=name, v=value: getattr(operator, name)(t, *with_tensors((v,), t))
    for index in (0, slice(0, 1), Ellipsis, (slice(None), 1), (0, 2)):
        takes[f"[{index}] ="] = lambda t, index=index: t.__setitem__(index, 0.5)
    takes["[mask] ="] = lambda t: t.__setitem__(t > 0.3, 0.5)
    return takes, no


def with_tensors(given, t):
    """Arguments with tensors that lie as ``t``."""

    ours = isinstance(t, flow.Tensor)
    lib = Column("B" if ours and t.is_global else None, flow if ours else torch)

    def like(value):
        with lib.lib.no_grad():
            if value == "like":
                return lib.lib.full_like(t, 0.5)
            if value == "mask":
                return t > 0.3
            if value == "ids":
                return lib([0])
            if value == "places":
                return lib.lib.zeros_like(t).long()
            if value == "one place":
                return lib([0])
            if value == "one":
                return lib([0.5])
            if value == "index":
                return (lib([0]),)
            return lib.lib.full_like(t[0:1], 0.5).clone() if value == "row" else value

    return [like(v) for v in given]


RANDOM = {"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_"}


def outcome(state, write, values, column, quiet):
    column = column if isinstance(column, Column) else Column(COLUMNS[column])
    made = STATES[state](column)
    made = made if isinstance(made, tuple) else (made,)
    target, others = made[0], made[1:]
    try:
        column.quiet(lambda: write(target)) if quiet else write(target)
    except (flow.Error, TypeError, ValueError, RuntimeError, IndexError) as e:
        text = str(e)
        return ("refused", "value" if "views of global tensors are values" in text else type(e).__name__)
    read = [t.detach().tolist() if values else tuple(t.shape) for t in made]
    if state == "saved for backward":
        try:
            others[0].backward()
            read.append("backward")
        except (flow.Error, RuntimeError):
            read.append("no backward")
    return ("written", repr(read))


def rounded(outcome):
    """An outcome with numbers as PyTorch and oflow both have them, without the text of refusals."""
    number = lambda m: f"{float(m[0]) + 0.0:.3g}"  # noqa: E731
    return outcome[0], re.sub(r"-?\d+\.\d+(e-?\d+)?", number, outcome[1]).replace("-0,", "0,") if outcome[0] == "written" else ""


@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors")
def test_local_tensors_are_written_by_pytorchs_rules():
    if torch is None:
        pytest.skip("PyTorch is not installed")
    cells, wrong = 0, []
    states = [name for name in STATES if "parameter" not in name and "buffer" not in name]
    for name, write in arguments()[0].items():
        if name.endswith("_") and not hasattr(torch.Tensor, name):
            continue
        for state in states:
            for quiet in (False, True):
                want = outcome(state, write, name not in RANDOM, Column(lib=torch), quiet)
                have = outcome(state, write, name not in RANDOM, "local", quiet)
                cells += 1
                # PyTorch fills an expanded tensor with one number, and warns that it will not.
                expanded = state == "expanded" and have[0] == "refused"
                # What has no gradient, `logical_and_`, PyTorch writes over a leaf that requires one; oflow refuses all writes to it.
                leaf = name.startswith("logical_") and have == ("refused", "AutogradError")
                # The f64 result is rounded to the tensor's f32, as of other functions; PyTorch writes it over f64 only.
                power = name == "float_power_" and want == ("refused", "RuntimeError")
                if rounded(have) != rounded(want) and not expanded and not leaf and not power:
                    wrong.append(f"{state}: {name}{' under no_grad' if quiet else ''}: {have}, PyTorch: {want}")
    print(f"{cells} cells beside PyTorch, {len(wrong)} wrong")
    assert not wrong, f"{len(wrong)} of {cells}:\n" + "\n".join(wrong[:40])


def test_local_and_global_tensors_are_written_by_the_same_rules():
    writes, no = arguments()
    # They take integers, matrices and vectors, a dimension, or a function.
    others = ("apply_", "bitwise_", "add", "baddbmm_", "gcd_", "lcm_", "mvlgamma_")
    assert no == [n for n in no if n.startswith(others)], f"no arguments for {no}"
    cells, refused, wrong, values = 0, 0, [], 0
    for state in STATES:
        for name, write in writes.items():
            for quiet in (False, True):
                want = outcome(state, write, name not in RANDOM, "local", quiet)
                for column in list(COLUMNS)[1:]:
                    have = outcome(state, write, name not in RANDOM, column, quiet)
                    cells += 1
                    refused += have[0] == "refused"
                    values += have == ("refused", "value")
                    if state in VALUES:
                        # Or what no tensor takes: an index that is out of range.
                        good = have == ("refused", "value") or have == want == ("refused", "OutOfRangeError")
                    else:
                        good = have == want
                    if not good:
                        wrong.append(f"{state}: {name}{' under no_grad' if quiet else ''}, {column}: {have}, local: {want}")
    print(f"{len(writes)} writes x {len(STATES)} states: {cells} cells, {refused} refused ({values} as values), {len(wrong)} wrong")
    assert not wrong, f"{len(wrong)} of {cells}:\n" + "\n".join(wrong[:40])


@pytest.mark.parametrize("column", COLUMNS)
def test_a_frozen_parameter_is_loaded_and_averaged(column):
    """Teachers and bases of LoRA: frozen, laid out, then loaded, averaged by hand, and trained again."""
    sbp = COLUMNS[column]
    student, teacher = nn.Linear(3, 2), nn.Linear(3, 2).freeze()
    state = {name: flow.full_like(t, 2.0) for name, t in teacher.state_dict().items()}
    if sbp is not None:
        student.to_global(MESH, rules={"weight": sbp})
        teacher.to_global(MESH, rules={"weight": sbp})
        teacher.to_global(MESH, rules={"weight": "B"})
        teacher.to_global(MESH, rules={"weight": sbp})
    teacher.load_state_dict(state)
    assert teacher.weight.tolist() == [[2.0] * 3] * 2 and not teacher.weight.requires_grad
    assert not copy.copy(teacher.weight).requires_grad and not copy.deepcopy(teacher).weight.requires_grad
    student.load_state_dict({name: t * 2 for name, t in state.items()})
    with flow.no_grad():
        for a, b in zip(teacher.parameters(), student.parameters()):
            a.mul_(0.5).add_(b)
    assert teacher.weight.tolist() == [[5.0] * 3] * 2 and teacher.bias.tolist() == [5.0] * 2
    assert student.weight.tolist() == [[4.0] * 3] * 2
    teacher.unfreeze()
    opt = flow.optim.SGD(teacher.parameters(), lr=1.0)
    teacher(Column(sbp and "B").x()).sum().backward()
    opt.step()
    assert teacher.bias.tolist() == [3.0] * 2
