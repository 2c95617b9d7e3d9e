"""Arguments by position mean what they mean in PyTorch: every function, method, layer and optimizer of a name that PyTorch has too.

PyTorch's signatures are recorded in pytorch_signatures.json. A call by position that both accept must give each argument to the same
parameter; fewer parameters by position are no difference, because a call with more is refused.
"""

import inspect
import json
import pathlib
import re

import oflow as flow
import oflow.optim.lr_scheduler  # noqa: F401
import pytest
from oflow import _oflow

RECORDED = json.loads((pathlib.Path(__file__).parent / "pytorch_signatures.json").read_text())

# PyTorch's names and ours for one thing.
SAME = """
self: x a A xs ids probs cond s input tensor | tensor: b x | split_size_or_sections: size sizes | dims: dims_a dims | values: parameters s | input: x a A xs ids input1 x1 sorted | other: b B s y x | b: B | elements: x | tensors: xs | qtensor: x
dim: dims axis | dimension: dim | size: shape | index: ids | indices: ids sections | source: src | src: other | value: s
tensor1: a | tensor2: b | mat1: a | mat2: b | mat: a | vec: b v | vec2: b | batch1: a | batch2: b | input1: x1 | input2: x2 | end: b hi
exponent: s b x | window_length: n | chunks: parts | min: lo | max: hi | low: lo | high: hi | from: lo | to: hi | real: re | imag: im
lambd: rate | start_dim: start | end_dim: end | fill_value: value | min_val: lo | max_val: hi | negative_slope: alpha | length: len
test_elements: values | s: value | num_classes: classes | split_size: size sizes | split_sizes: sizes size | sorted_sequence: sorted
dims_self: dims_a | dims_other: dims_b | row: rows | col: columns | N: columns | condition: cond
decimals: decimals | mask: mask | boundaries: boundaries | A: a x | x: x | y: y | repeats: repeats | sections: sections indices
"""
NAMES = {their.strip(): set(ours.split()) for part in re.split(r"[|\n]", SAME) if part.strip() for their, ours in [part.split(":")]}

# What differs by position, with the reason.
OTHER_BY_POSITION = {}

KINDS = {
    "Tensor": {"tensor"}, "Tensors": {"tensors"}, "TensorTuple": {"tensors"}, "int": {"int"}, "Int": {"int"}, "float": {"float", "int"},
    "Float": {"float", "int"}, "Scalar": {"float", "int", "bool"}, "bool": {"bool"}, "Bool": {"bool"}, "str": {"str"}, "String": {"str"},
    "ints": {"int", "ints"}, "IntList": {"int", "ints"}, "Shape": {"int", "ints"}, "floats": {"float", "int", "ints", "floats"},
    "FloatList": {"float", "int", "ints", "floats"}, "any": {"tensor", "tensors", "int", "float", "bool", "str", "ints", "floats"},
}  # fmt: skip


def same(ours, theirs):
    return ours == theirs or ours in NAMES.get(theirs, ())


def overloads(name):
    """The parameters by position of our overloads: (name, kind, is required)."""
    for text in _oflow._signatures(name):
        inside = re.sub(r"\[[^\]]*\]", "", text.split("(", 1)[1].rpartition(") ->")[0])
        by_position = []
        for part in filter(None, inside.split(", ")):
            kind, _, rest = part.partition(" ")
            if part == "*" or kind == "Target":
                break
            by_position.append((rest.split("=")[0], kind.rstrip("?"), "=" not in rest and not kind.endswith("?")))
        yield by_position


# Functions of the table that the class writes as methods of its own.
OWN_METHODS = {"where"}


def own_parameters(name):
    yield [(p.name, "any", p.default is p.empty) for p in inspect.signature(getattr(flow.Tensor, name)).parameters.values()]


def differing(ours, theirs):
    """The first parameters by position that a call gives one argument and that are not the same."""
    least = max(sum(p[2] for p in ours), sum(p[2] for p in theirs))
    for count in range(max(least, 1), min(len(ours), len(theirs)) + 1):
        pairs = list(zip(ours[:count], theirs[:count]))
        if all(KINDS.get(o[1], {o[1]}) & KINDS.get(t[1], {t[1]}) for o, t in pairs):
            apart = [(o[0], t[0]) for o, t in pairs if not same(o[0], t[0])]
            if apart:
                return apart
    return None


@pytest.mark.parametrize("group", ["functions", "methods"])
def test_functions_and_methods(group):
    known, found, count = _oflow._function_names(), {}, 0
    for name, theirs in RECORDED[group].items():
        assert name in known, f"{name} is recorded and no longer there: run pytorch_signatures.py"
        # A method that the class has instead of the table's: its parameters may be anything.
        own = group == "methods" and name in OWN_METHODS
        for ours in own_parameters(name) if own else overloads(name):
            if group == "methods" and not (ours and ours[0][1] in ("Tensor", "any")):
                continue
            for one in theirs:
                count += 1
                apart = differing(ours, one)
                if apart:
                    found.setdefault(name, apart)
    assert count > (600 if group == "functions" else 400)
    assert set(found) == {n.removeprefix(f"{group}.") for n in OTHER_BY_POSITION if n.startswith(f"{group}.")}, found


def positional(thing):
    """The names of the parameters by position, in order."""
    defaults = getattr(thing, "_defaults", None)
    if isinstance(defaults, dict) and inspect.isclass(thing):
        return list(defaults)[: thing._positional]
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in inspect.signature(thing).parameters.values() if p.kind in by_position]


def test_layers_and_functions_of_networks_and_optimizers():
    found, count = {}, 0
    for dotted, theirs in RECORDED["python"].items():
        thing = flow
        for part in dotted.split("."):
            thing = getattr(thing, part)
        ours = positional(thing)
        apart = [(o, t[0]) for o, t in zip(ours, theirs) if not same(o, t[0])]
        count += 1
        if apart:
            found[dotted] = apart
    assert count > 150
    assert set(found) == {name for name in OTHER_BY_POSITION if name.startswith(("nn", "optim"))}, found
