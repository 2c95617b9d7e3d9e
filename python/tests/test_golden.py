"""Calls whose results PyTorch gave (``tests/golden`` of the repository), through Python: local tensors, and global ones over all ranks."""

import ast
import json
import pathlib

import numpy as np
import oflow as flow
import pytest

FILE = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "ops.json"
if not FILE.exists():
    pytest.skip("the golden files are in the repository only", allow_module_level=True)

# Relative to the largest number of the result.
TOLERANCE = {"f16": 2e-3, "bf16": 2e-2, "f32": 2e-5, "f64": 1e-10}


def array(said):
    """The numbers of the file."""
    return np.array([float(x) for x in said["data"]], np.float64).reshape(said["shape"])


def tensor(said):
    whole = said["dtype"] in ("i32", "i64", "u8", "i8", "bool")
    numbers = np.array(said["data"], np.int64).reshape(said["shape"]) if whole else array(said)
    return flow.tensor(numbers).cast(flow.dtype(said["dtype"]))


def value(text):
    """A value of an attribute."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def check(got, said, what):
    want = array(said)
    assert tuple(got.shape) == want.shape and got.dtype is flow.dtype(said["dtype"]), what
    numbers = np.array(got.cast(flow.float64).tolist(), np.float64).reshape(want.shape)
    tolerance = TOLERANCE.get(said["dtype"], 0)
    finite = want[np.isfinite(want)]
    scale = max(1.0, np.abs(finite).max()) if finite.size else 1.0
    np.testing.assert_allclose(numbers, want, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def parameters(name):
    """The parameters of the first overload, as the table writes them."""
    text = flow._oflow._signatures(name)[0]
    return [p.split("=")[0] for p in text.split("(", 1)[1].split(") ->")[0].split(", ") if " " in p.split("=")[0]]


def is_function(case):
    """Whether the op of the case is a function of that name with its attributes; optimizer steps write their inputs and return nothing."""
    name = case["op"]
    return name in flow.functional.__dir__() and name not in ("arange", "linspace", "eye") and "-> Void" not in flow._oflow._signatures(name)[0]


CASES = [case for case in json.loads(FILE.read_text()) if is_function(case)]


def run(case, place):
    """One call, forward and backward."""
    what = f"{case['op']} {case['name']} {case['attrs']}"
    inputs = [None if said is None else place(tensor(said)) for said in case["inputs"]]
    for x, said in zip(inputs, case["inputs"]):
        if x is not None and case["grads"] and x.dtype.is_floating_point:
            x.requires_grad_()
    function = getattr(flow.functional, case["op"])
    attrs = {name: value(text) for name, text in case["attrs"].items()}
    # Where the op's defaults are not the function's.
    if case["op"] == "cross_entropy":
        attrs |= {"reduction": "none", "dim": -1}
    if case["op"] == "rms_norm":
        attrs.setdefault("eps", 1e-6)
    # Tensors by the names of their parameters, in order.
    names = [text.split(" ") for text in parameters(case["op"])]
    if names[0][0].startswith("TensorTuple"):
        given = {names[0][1]: inputs}
    else:
        given = dict(zip([name for kind, name in names if kind in ("Tensor", "Tensor?")], inputs))
    results = function(**given, **attrs)
    results = results if isinstance(results, tuple) else (results,)
    for got, said in zip(results, case["outputs"]):
        check(got, said, what)
    if case["grads"] and case["dy"]:
        wants = [(x, said) for x, said in zip(inputs, case["grads"]) if said is not None]
        dy = tensor(case["dy"])
        if results[0].is_global:
            dy = flow.distribute(dy, results[0].placement, flow.sbp.broadcast)
        found = flow.grad(results[0], [x for x, _ in wants], dy, allow_unused=True)
        for gradient, (_, said) in zip(found, wants):
            check(gradient, said, "gradient of " + what)


def run_all(place):
    wrong = []
    for case in CASES:
        try:
            run(case, place)
        except Exception as error:
            wrong.append(f"{case['op']} {case['name']} {case['attrs']}: {type(error).__name__}: {str(error)[:300]}")
    assert not wrong, f"{len(wrong)} of {len(CASES)}:\n" + "\n".join(wrong[:20])


def test_there_are_as_many():
    assert len(CASES) >= 300


def test_local_tensors():
    run_all(lambda t: t)


def test_global_tensors_whole_on_each_rank():
    mesh = flow.placement.all("cpu")
    run_all(lambda t: flow.distribute(t, mesh, flow.sbp.broadcast))


def test_global_tensors_that_are_split():
    mesh = flow.placement.all("cpu")

    def place(t):
        return flow.distribute(t, mesh, flow.sbp.split(t.ndim - 1) if t.ndim else flow.sbp.broadcast)

    run_all(place)
