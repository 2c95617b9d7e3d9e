"""``out=``: results written over tensors of the caller's. That all functions of PyTorch take it is a part of ``beside_pytorch``."""

import oflow
import pytest

X = oflow.tensor([[3.0, 1.0], [2.0, 4.0]])


def zeros(*shape, dtype=oflow.float32):
    return oflow.zeros(*shape, dtype=dtype)


def test_the_result_is_written_and_given_back():
    out = zeros(2, 2)
    assert oflow.add(X, X, alpha=2, out=out) is out
    assert out.tolist() == [[9, 3], [6, 12]]
    # An input.
    x = X.clone()
    assert oflow.matmul(x, x, out=x).tolist() == [[11, 7], [14, 18]]


def test_no_out():
    assert oflow.add(X, 1, out=None).tolist() == (X + 1).tolist()
    assert oflow.nonzero(X, out=None).shape == (4, 2)


def test_several_results():
    values, places = zeros(2, 2), zeros(2, 2, dtype=oflow.int64)
    found = oflow.sort(X, dim=1, out=(values, places))
    assert found.values is values and found.indices is places
    assert values.tolist() == [[1, 3], [2, 4]] and places.tolist() == [[1, 0], [0, 1]]


def test_a_view_is_written_where_it_lies():
    whole = zeros(3, 2)
    oflow.sum(X, dim=0, out=whole[1])
    assert whole.tolist() == [[0, 0], [5, 5], [0, 0]]


def test_a_wider_dtype_takes_the_values():
    out = zeros(2, 2, dtype=oflow.float64)
    oflow.mul(X, 2, out=out)
    assert out.dtype == oflow.float64 and out.tolist() == [[6, 2], [4, 8]]


def test_functions_that_make_tensors():
    out = zeros(3, dtype=oflow.int64)
    assert oflow.arange(3, out=out) is out and out.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: oflow.add(X, X, out=zeros(2)), oflow.ShapeError, r"the result has shape \[2, 2\], `out` has shape \[2\]"),
        (lambda: oflow.add(X, X, out=zeros(2, 2, dtype=oflow.int64)), oflow.DTypeError, "a result of f32 cannot be written over `out` of i64"),
        (lambda: oflow.add(X.clone().requires_grad_(), X, out=zeros(2, 2)), oflow.AutogradError, "has no gradient"),
        (lambda: oflow.add(X, X, out=zeros(2, 2).requires_grad_()), oflow.AutogradError, "has no gradient"),
        (lambda: oflow.add(X, X, out=[zeros(2, 2)]), TypeError, "`out` is a tensor"),
        (lambda: oflow.sort(X, out=zeros(2, 2)), TypeError, "a tuple of 2 tensors"),
        (lambda: oflow.sort(X, out=(zeros(2, 2), 1)), TypeError, "a tuple of 2 tensors"),
        (lambda: oflow.add(X, "x", out=zeros(2, 2)), TypeError, "add"),
        # Methods have their tensor, and functions that write over it too; some give no tensors.
        (lambda: X.add(X, out=zeros(2, 2)), TypeError, "out"),
        (lambda: oflow.add_(X, X, out=zeros(2, 2)), TypeError, "out"),
        (lambda: oflow.numel(X, out=zeros(2, 2)), TypeError, "out"),
    ],
)
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_nothing_is_written_if_one_of_several_does_not_fit():
    values = zeros(2, 2)
    with pytest.raises(oflow.DTypeError):
        oflow.aminmax(X, out=(values[0, 0], oflow.zeros((), dtype=oflow.int64)))
    assert values.tolist() == [[0, 0], [0, 0]]


def test_global_tensors():
    """`out` keeps its layout."""
    everywhere = oflow.placement.all("cpu")
    for given in ("S(0)", "S(1)", "B", "P"):
        for wanted in ("S(0)", "S(1)", "B"):
            x = X.to_global(everywhere, ("B",)).to_global(sbp=given)
            out = oflow.zeros(2, 2, placement=everywhere, sbp=wanted)
            assert oflow.add(x, x, out=out) is out
            assert str(out.sbp[0]) == wanted
            assert out.to_global(sbp="B").to_local().tolist() == [[6, 2], [4, 8]]
