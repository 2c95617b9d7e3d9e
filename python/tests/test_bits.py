"""The bytes of a tensor as elements of another dtype, beside PyTorch's."""

import itertools

import numpy as np
import oflow as flow
import pytest

torch = pytest.importorskip("torch")

DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 float16 bfloat16 float32 float64 complex64 complex128 float8_e4m3fn float8_e5m2".split()
)
BYTES = np.random.default_rng(0).integers(0, 256, 192, dtype=np.uint8)
# Parts of a matrix: name, and what is taken of it.
PARTS = {
    "whole": lambda x: x,
    "flat": lambda x: x.reshape(-1),
    "rows": lambda x: x[1:],
    "row": lambda x: x[1],
    "columns from one on": lambda x: x[:, 1:],
    "three columns": lambda x: x[:, :3],
    "two columns": lambda x: x[:, :2],
    "each second column": lambda x: x[:, ::2],
    "transposed": lambda x: x.t(),
    "one column": lambda x: x[:, :1],
    "expanded": lambda x: x[:1].expand(3, x.shape[1]),
    "no rows": lambda x: x[:0],
    "no columns": lambda x: x[:, :0],
    "number": lambda x: x[0, 0],
    "one more dim": lambda x: x[None, :, None],
}


def bits(m, x):
    """Shape and bytes of a tensor."""
    plain = x.contiguous()
    data = plain.view(m.uint8).numpy().tobytes() if plain.ndim else plain.reshape(1).view(m.uint8).numpy().tobytes()
    return tuple(x.shape), data


def matrix(m, dtype):
    """Six rows of random bytes."""
    if dtype == "bool":
        return m.tensor((BYTES[:48] % 2).tolist(), dtype=m.bool).reshape(6, 8)
    return m.tensor(BYTES.tolist(), dtype=m.uint8).view(getattr(m, dtype)).reshape(6, -1)


@pytest.mark.parametrize("dtype, to", list(itertools.product(DTYPES, DTYPES)))
def test_every_dtype_as_every_other(dtype, to):
    for name, part in PARTS.items():
        try:
            want = part(matrix(torch, dtype)).view(getattr(torch, to))
        except RuntimeError:
            want = None
        x = part(matrix(flow, dtype))
        if to == "bool" != dtype:
            with pytest.raises(flow.DTypeError, match=r"(?s)expected bytes of bools.*ne\(0\)"):
                x.view(getattr(flow, to))
        elif want is None and x.ndim and x.shape[-1] == 1 and x.dtype.itemsize > getattr(flow, to).itemsize:
            # The stride of the one element, which PyTorch minds, is of no meaning.
            assert bits(flow, x.view(getattr(flow, to))) == bits(torch, part(matrix(torch, dtype)).contiguous().view(getattr(torch, to)))
        elif want is None:
            with pytest.raises(flow.ShapeError, match="view"):
                x.view(getattr(flow, to))
        else:
            found = x.view(getattr(flow, to))
            assert found.dtype is getattr(flow, to) and bits(flow, found) == bits(torch, want), name


def test_the_memory_is_shared_and_writes_are_counted():
    x = flow.tensor([1.0, 2.0, -3.0])
    y = x.view(flow.int32)
    y &= 0x7FFFFFFF
    assert x.tolist() == [1.0, 2.0, 3.0]
    x.zero_()
    assert y.tolist() == [0, 0, 0] and y.view(dtype=flow.float32).tolist() == [0.0] * 3
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    squares = (w * w).square()
    with flow.no_grad():
        w.view(flow.int32).zero_()
    with pytest.raises(flow.AutogradError, match="in place"):
        squares.sum().backward()


@pytest.mark.parametrize("to", ["int32", "complex64", "float16", "float32"])
def test_there_is_no_gradient(to):
    for m in (flow, torch):
        assert not m.ones(4, requires_grad=True).view(getattr(m, to)).requires_grad


def test_contiguous_copies_what_a_view_needs():
    a = np.arange(12, dtype=np.int32).reshape(3, 4)
    for x in (flow.from_numpy(a[:, ::2]), flow.from_numpy(a).t().detach()):
        assert not x.is_contiguous() and x.contiguous().is_contiguous()
        with pytest.raises(flow.ShapeError, match="contiguous"):
            x.view(flow.int16)
        assert x.contiguous().view(flow.int16).tolist() == np.ascontiguousarray(x.tolist(), np.int32).view(np.int16).tolist()


@pytest.mark.parametrize("sbp", ["S(0)", "B"])
def test_global_tensors(sbp):
    local = flow.arange(12.0).reshape(4, 3)
    x = flow.distribute(local, flow.placement.all("cpu"), sbp)
    for to in (flow.int32, flow.int16, flow.uint8):
        for of, want in ((x, local), (x.t().contiguous().t() if sbp == "B" else x, local)):
            y = of.view(to)
            assert y.is_global and y.placement == x.placement and y.sbp == x.sbp and y.tolist() == want.view(to).tolist()
    with pytest.raises(flow.ShapeError, match="multiple of 2"):
        x.view(flow.float64)
    y = x.view(flow.int32)
    with pytest.raises(flow.Error, match="view"):
        y.zero_()
    z = y.copy()
    z.zero_()
    assert x.tolist() == local.tolist()
    # A split of the last dim is whole only for elements of one size.
    columns = x.to_global(sbp="S(1)")
    assert columns.view(flow.int32).tolist() == local.view(flow.int32).tolist()
    with pytest.raises(flow.SbpError, match="the last dim .* is split"):
        columns.view(flow.int16)
    partial = flow.distribute(local, flow.placement.all("cpu"), "P")
    with pytest.raises(flow.SbpError, match="terms of a sum"):
        partial.view(flow.int32)


def test_what_has_no_bytes_of_its_own_is_refused():
    x = flow.ones(4)
    with pytest.raises(flow.DTypeError, match="two built-in dtypes"):
        x.quantize_per_tensor(0.5, 3, "qint8").view(flow.uint8)
    with pytest.raises(flow.UnsupportedError, match="before the graph"):
        flow.graph(lambda x: x.view(flow.int32) + 1)(x)
    with pytest.raises(TypeError, match="view"):
        x.view("nonsense")
