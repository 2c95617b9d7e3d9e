"""Every operator of Python on tensors and numbers, in all three forms (``t op x``, ``number op t``, ``t op= x``), beside NumPy."""

import operator

import numpy as np
import oflow as flow
import pytest

ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
BITS = ["and_", "or_", "xor", "lshift", "rshift"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]


def layouts():
    yield None
    for sbp in ("B", "S(0)"):
        yield {"placement": flow.placement.all("cpu"), "sbp": sbp}
    line = flow.placement.all("cpu")
    yield {"placement": line.mesh(a=1, b=flow.world_size()), "sbp": ("B", "S(0)")}


def forms(name, dtype):
    """The operator with both operands, as functions of (a, b): a is an array or tensor, b another one or a number."""
    f = getattr(operator, name)
    yield "t op t", f, np.array([1, 2, 3, 4], dtype=dtype)
    for number in (2, 3.5, np.int64(2)) if name not in BITS else (2, 1):
        yield f"t op {number!r}", f, number
        if name not in COMPARISONS:
            yield f"{number!r} op t", lambda a, b: f(b, a), number


def dtype_of(ours, result):
    """PyTorch's dtype of a result: numbers are weaker than tensors, and floats that come of integers are of 32 bits."""
    if result.dtype == bool:
        return "bool"
    return ours if (result.dtype.kind == np.dtype(ours).kind) else "float32"


@pytest.mark.parametrize("name", ARITHMETIC + BITS + COMPARISONS)
def test_every_operator(name):
    count = 0
    for dtype in ("int32", "int64", "float32", "float64"):
        if name in BITS and dtype.startswith("float"):
            continue
        a = np.array([5, 1, 4, 7], dtype=dtype)
        for form, f, b in forms(name, dtype):
            want = f(a, b)
            for layout in layouts():
                place = (lambda x: flow.tensor(x)) if layout is None else (lambda x: flow.tensor(x, **layout))  # noqa: B023, E731
                x = place(a)
                got = f(x, place(b) if isinstance(b, np.ndarray) else b)
                what = (name, dtype, form, layout)
                np.testing.assert_allclose(np.array(got.tolist()), want, rtol=1e-5, err_msg=str(what))
                assert got.dtype.name == dtype_of(dtype, want), what
                assert got.is_global == (layout is not None)
                count += 1
    assert count > 20


@pytest.mark.parametrize("name", ARITHMETIC + BITS)
def test_every_operator_in_place_writes_the_tensor(name):
    in_place = getattr(operator, "i" + name.rstrip("_"))
    for dtype in ("int64", "float32"):
        if (name in BITS and dtype == "float32") or (name == "truediv" and dtype == "int64"):
            continue
        for layout in layouts():
            x = flow.tensor(np.array([5, 1, 4, 7], dtype=dtype), **(layout or {}))
            alias, want = x, getattr(operator, name)(np.array([5, 1, 4, 7], dtype=dtype), 2)
            x = in_place(x, 2)
            assert x is alias and x.tolist() == want.tolist(), (name, dtype, layout)


def test_reflected_operators_of_what_is_no_number_are_refused():
    x = flow.tensor([1, 2])
    for name in ARITHMETIC + BITS:
        for other in ("a", [1, 2], None, object()):
            if (name, other) == ("mod", "a"):
                continue  # Text formats what is on its right.
            with pytest.raises(TypeError):
                getattr(operator, name)(other, x)
    assert (5 // flow.tensor([2.0])).requires_grad is False
    y = flow.tensor([2.0, 4.0], requires_grad=True)
    (5 % y).sum().backward()
    assert y.grad.tolist() == [-2.0, -1.0]


def test_a_bool_is_not_subtracted():
    """As in PyTorch: who means a mask says so."""
    mask, ints = flow.tensor([True, False]), flow.tensor([1, 2])
    calls = {
        "b - b": lambda: mask - mask, "b - i": lambda: mask - ints, "i - b": lambda: ints - mask, "b - 1": lambda: mask - 1,
        "1 - b": lambda: 1 - mask, "True - b": lambda: True - mask, "i - True": lambda: ints - True, "True - i": lambda: True - ints,
        "sub_": lambda: ints.sub_(mask), "sub": lambda: flow.sub(mask, mask),
    }  # fmt: skip
    for what, call in calls.items():
        with pytest.raises(flow.DTypeError, match="logical_not"):
            call()
            pytest.fail(what)
    assert (mask ^ mask).tolist() == [False, False] and (~mask).tolist() == [False, True]
