"""Promotion of dtypes is PyTorch's: `result_type`, and the dtype that a sum has, for all pairs of operands in result_type.tsv."""

import pathlib

import oflow as flow
import pytest

LINES = (pathlib.Path(__file__).parent / "result_type.tsv").read_text().splitlines()
# There are no complex numbers of 16-bit parts.
HALVES = {"complex32": "complex64", "bcomplex32": "complex64"}
ROWS = [[a, b, HALVES.get(dtype, dtype)] for a, b, dtype in (line.split("\t") for line in LINES if not line.startswith("#"))]


def operand(text):
    name, bracket, shape = text.partition("[")
    if not bracket:
        return complex(text) if text.endswith("j") else {"True": True, "2": 2, "2.5": 2.5}[text]
    return flow.ones((2,) if shape == "2]" else (), dtype=getattr(flow, name))


OPERANDS = {text: operand(text) for text in {row[0] for row in ROWS}}


def found(call):
    try:
        return call().name
    except flow.DTypeError:
        return "refused"


# PyTorch has no common dtype for these; oflow has the kind's, and refuses other integers beside them too.
WITHOUT = [row for row in ROWS if row[2] == "refused"]
ROWS = [row for row in ROWS if row[2] != "refused"]


def test_the_list_is_whole():
    assert len(ROWS) + len(WITHOUT) == len(OPERANDS) ** 2 == 32**2
    assert all("uint16" in row[0] + row[1] or "uint32" in row[0] + row[1] for row in WITHOUT)


def test_result_type():
    other = [(*row, got) for row in ROWS if (got := found(lambda: flow.result_type(OPERANDS[row[0]], OPERANDS[row[1]]))) != row[2]]
    assert not other


@pytest.mark.parametrize("name", ["add", "mul"])
def test_calls(name):
    """What is computed has that dtype. A number with a number is no call of oflow."""
    call = getattr(flow, name)
    pairs = [row for row in ROWS if "[" in row[0] and "[" in row[1]] + [row for row in ROWS if "[" in row[0] and "[" not in row[1]]
    other = [(*row, got) for row in pairs if (got := found(lambda: call(OPERANDS[row[0]], OPERANDS[row[1]]).dtype)) != row[2]]
    assert not other


def test_promote_types():
    dims = [row for row in ROWS if row[0].endswith("[2]") and row[1].endswith("[2]")]
    of = lambda text: getattr(flow, text.partition("[")[0])  # noqa: E731
    assert not [row for row in dims if found(lambda: flow.promote_types(of(row[0]), of(row[1]))) != row[2]]


def test_can_cast():
    assert flow.can_cast(flow.float64, flow.float16) and flow.can_cast(flow.int64, flow.float32)
    assert not flow.can_cast(flow.float32, flow.int64) and not flow.can_cast(flow.complex64, flow.float64)


def test_limits():
    assert flow.finfo(flow.float32).eps == 2.0**-23 and flow.finfo(flow.float16).max == 65504
    assert (flow.iinfo(flow.int8).min, flow.iinfo(flow.uint8).max) == (-128, 255)
    with pytest.raises(TypeError, match="finfo"):
        flow.finfo(flow.int32)
