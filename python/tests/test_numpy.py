"""NumPy's functions and operators of tensors, and tensors as Python's numbers and sequences: NumPy's values, in the classes that PyTorch gives."""

import copy
import math
import operator

import numpy as np
import oflow as flow
import pytest

A = np.array([[1.0, -4.0, 9.0], [2.5, 0.5, 3.0]], np.float32)
ARITHMETIC = "add sub mul truediv floordiv mod eq ne lt le gt ge".split()


def tensor(layout=None, data=A, **options):
    x = flow.tensor(data)
    x = x if layout is None else flow.distribute(x, flow.placement.all("cpu"), layout)
    return x.detach().requires_grad_() if options.get("requires_grad") else x


def check(found, want):
    assert isinstance(found, flow.Tensor) and tuple(found.shape) == np.shape(want)
    np.testing.assert_allclose(np.asarray(found.tolist()), want, rtol=1e-6)


@pytest.mark.parametrize("layout", [None, "S(0)"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_operators_with_arrays(name, dtype, layout):
    op, b = getattr(operator, name), np.array([[2, 3, 1], [5, 7, 2]], dtype)
    x = tensor(layout)
    for found, want in ((op(x, b), op(A, b)), (op(b, x), op(b, A)), (op(x, b[0]), op(A, b[0])), (op(b[0], x), op(b[0], A))):
        check(found, want)
        assert found.is_global == (layout is not None)
    for scalar in (dtype(3), np.array(3, dtype)):
        check(op(x, scalar), op(A, 3.0))
        check(op(scalar, x), op(3.0, A))
        if name in ("add", "mul", "sub"):
            assert op(scalar, x).dtype == flow.float32


def test_other_operators():
    x, b = tensor(), np.arange(6).reshape(3, 2)
    check(x @ b, A @ b)
    check(b @ x, b @ A)
    check(np.abs(A[0]) ** tensor(data=A[1]), np.abs(A[0]) ** A[1])
    check(np.array([1, 2]) & flow.tensor([3, 1]), [1, 0])
    check(-x, np.negative(x).tolist())
    out = np.zeros((2, 3), np.float32)
    out += x
    assert type(out) is np.ndarray and (out == A).all()
    assert np.add(x, 1, out=out) is out
    with pytest.raises(TypeError, match="out is an array of NumPy"):
        np.add(A, A, out=x)


IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift".split()


@pytest.mark.parametrize("layout", [None, "S(0)"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_operators_in_place_with_arrays(name, layout):
    op, bits = getattr(operator, name), name in IN_PLACE[7:]
    a, b = np.array([[6, 4, 9], [2, 5, 3]]), np.array([[2, 3, 1], [1, 2, 2]])
    if not bits:
        a = a.astype(np.float32)
    plain = getattr(operator, {"iand": "and_", "ior": "or_"}.get(name, name[1:]))
    for other in (b, b[0], np.array(2), np.int64(3), *([] if bits else [b.astype(np.float64), np.float32(2)])):
        x = tensor(layout, a)
        made = op(x, other)
        assert made is x and x.dtype == flow.tensor(a).dtype
        check(x, plain(a, other))


def test_operators_in_place_as_in_pytorch():
    torch = pytest.importorskip("torch")

    def step(m):
        x = m.tensor([1.0, 2.0, 4.0])
        x += np.array([1, 2, 3], np.float32)
        x *= np.array([2.0, 3.0, 4.0], np.float32)
        x[1:] -= np.float32(1.5)
        x **= np.array([1, 2, 0.5], np.float32)
        return x.tolist()

    assert step(flow) == pytest.approx(step(torch), rel=1e-6)


def test_operators_in_place_refuse_what_they_refuse_of_tensors():
    x = flow.ones(3, dtype=flow.int64)
    for other in (np.array([1.5, 2, 3]), np.ones(2, np.int64), np.array(["a", "b", "c"])):
        with pytest.raises((flow.Error, TypeError, ValueError)):
            x += other
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        x += [1, 2, 3]
    assert x.tolist() == [1, 1, 1]
    leaf = flow.ones(3, requires_grad=True)
    with pytest.raises(flow.Error):
        leaf += np.ones(3, np.float32)
    y = leaf * 2
    y *= np.array([1, 2, 3], np.float32)
    y.sum().backward()
    check(leaf.grad, [2, 4, 6])


@pytest.mark.parametrize("layout", [None, "S(0)"])
def test_operators_with_arrays_have_gradients(layout):
    x = tensor(layout, requires_grad=True)
    (A * x + x / np.full((2, 3), 2.0)).sum().backward()
    check(x.grad, A + 0.5)


FUNCTIONS = ["sqrt", "exp", "isnan", "sign", "floor", "square", "abs", "round", "cumsum", "argmax", "squeeze", "transpose"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_keep_the_class(name):
    of = np.abs(A)
    check(getattr(np, name)(tensor(data=of)), getattr(np, name)(of))


def test_functions_that_give_arrays():
    x = tensor()
    for found, want in ((np.concatenate([x, x]), np.concatenate([A, A])), (np.sort(x), np.sort(A)), (np.where(x > 1, x, 0), np.where(A > 1, A, 0)),
                        (np.dot(x, A.T), A @ A.T), (np.linalg.norm(x), np.linalg.norm(A)), (np.stack([x]), A[None]), (np.vstack([x, A]), np.vstack([A, A]))):  # fmt: skip
        np.testing.assert_allclose(found, want, rtol=1e-6)
    assert np.allclose(x, A) and np.array_equal(x, A) and np.arange(5)[flow.tensor(2)] == 2
    np.testing.assert_array_equal(np.arange(5)[flow.tensor([2, 1])], [2, 1])


@pytest.mark.parametrize("layout", [None, "S(0)"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "std", "var"])
def test_reductions(name, axis, layout):
    f = getattr(np, name)
    check(f(tensor(layout), axis), f(A, axis))
    check(f(tensor(layout), axis=axis, keepdims=True), f(A, axis=axis, keepdims=True))
    if name in ("std", "var"):
        check(f(tensor(layout), axis, ddof=1), f(A, axis, ddof=1))


def test_reductions_of_other_dtypes():
    check(np.mean(flow.tensor([1, 2])), 1.5)
    check(np.mean(tensor(), dtype=np.float64), A.mean(dtype=np.float64))
    check(np.any(flow.tensor([False, True])), True)
    check(np.all(flow.tensor([[False, True], [True, True]]), axis=0), [False, True])
    check(np.sum(flow.tensor(3.0)), 3.0)
    x = tensor(requires_grad=True)
    np.mean(x).backward()
    check(x.grad, np.full((2, 3), 1 / 6))
    with pytest.raises(TypeError, match="axis, dtype and keepdims, not where"):
        np.sum(x, where=A > 0)


def test_what_numpy_would_lose_is_refused():
    with pytest.raises(flow.AutogradError, match=r"detach\(\)"):
        np.exp(tensor(requires_grad=True))
    with pytest.raises((TypeError, flow.Error), match="local"):
        np.exp(tensor("S(0)"))


def test_as_a_number():
    x = flow.tensor(2.5)
    assert (f"{x:.4f}", f"{x:>6.1f}", f"{flow.tensor(3):d}") == ("2.5000", "   2.5", "3")
    assert (float(x), int(x), bool(x), complex(x), math.sqrt(x), math.floor(x), "%.1f" % x) == (2.5, 2, True, 2.5 + 0j, math.sqrt(2.5), 2, "2.5")
    assert [10, 20][flow.tensor(1)] == 20 and list(range(flow.tensor(2))) == [0, 1]
    with pytest.raises(TypeError):
        [10, 20][x]


def test_as_a_sequence():
    x = tensor()
    assert len(x) == 2 and [row.tolist() for row in x] == A.tolist() and 9.0 in x and 8.0 not in x
    assert [row.tolist() for row in reversed(x)] == A[::-1].tolist()
    assert sum(flow.tensor([1.0, 2.0])).item() == 3.0 and max(flow.tensor([1.0, 2.0])).item() == 2.0
    a, b = x
    assert a.tolist() == A[0].tolist()


def test_copies_have_the_gradient():
    x = flow.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    again = copy.deepcopy(x)
    assert again.grad.tolist() == [3.0, 3.0] and again.grad is not x.grad and again.requires_grad
    p = flow.nn.Parameter(flow.ones(2))
    p.sum().backward()
    assert copy.deepcopy(p).grad is None and copy.copy(p).data_ptr() == p.data_ptr()
