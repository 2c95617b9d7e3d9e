"""Tensors as objects of Python."""

import copy
import gc
import pickle
import sys
import threading
import weakref

import numpy as np
import oflow as flow
import pytest


def test_properties():
    x = flow.ones((2, 3), dtype=flow.float64)
    assert x.shape == (2, 3) and x.ndim == 2 and len(x) == 2 and x.numel() == 6
    assert x.dtype is flow.float64 and x.dtype == flow.double and repr(x.dtype) == "oflow.float64"
    assert x.device == flow.device("cpu") and x.device.type == "cpu" and str(x.device) == "cpu"
    assert not x.is_global and x.is_local and x.is_leaf and not x.requires_grad and x.grad is None and x.grad_fn is None
    assert repr(flow.ones(2)) == "tensor([1., 1.], f32[2] on cpu)"
    with pytest.raises(flow.SbpError, match="is not a global tensor"):
        x.placement


def test_operators_are_those_of_numpy():
    a, b = np.array([[1.0, -2.0], [3.0, 4.0]]), np.array([2.0, 3.0])
    x, y = flow.from_numpy(a), flow.from_numpy(b)
    for f in (
        lambda p, q: p + q,
        lambda p, q: p - q,
        lambda p, q: p * q,
        lambda p, q: p / q,
        lambda p, q: p // q,
        lambda p, q: p % q,
        lambda p, q: p @ q.reshape(2, 1),
        lambda p, q: p**2,
        lambda p, q: 2**q,
        lambda p, q: 2 - p,
        lambda p, q: 1 / q,
        lambda p, q: 2 + p * 3,
        lambda p, q: -abs(p),
        lambda p, q: p < q,
        lambda p, q: p >= 3,
        lambda p, q: (p == q) | (p != 3),
        lambda p, q: ~(p > q) & (p < 3),
        lambda p, q: np.float64(2) * p,
        lambda p, q: p + np.float32(1),
    ):
        got, want = f(x, y), f(a, b)
        assert isinstance(got, flow.Tensor)
        np.testing.assert_allclose(got.numpy(), want)
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "a"
    with pytest.raises(TypeError, match="unsupported operand"):
        None * x
    with pytest.raises(TypeError):
        x < "a"
    assert (x == "a") is False and (x != None) is True  # noqa: E711
    a, b = np.array([6, -3, 12]), np.array([5, 1, 2])
    i, j = flow.tensor([6, -3, 12]), flow.tensor([5, 1, 2])
    for f in (
        lambda p, q: p & q,
        lambda p, q: (p | 1) ^ q,
        lambda p, q: 7 & p,
        lambda p, q: ~p,
        lambda p, q: (p << q) >> 1,
        lambda p, q: (p > 0) & (q > 1) | True,
    ):
        np.testing.assert_array_equal(f(i, j).numpy(), f(a, b))
    with pytest.raises((TypeError, flow.Error), match="bitwise_and"):
        flow.ones(2) & 1


def test_numbers():
    assert float(flow.tensor(2.5)) == 2.5 and int(flow.tensor([3])) == 3 and bool(flow.tensor([[True]])) is True
    assert flow.tensor(3).item() == 3 and isinstance(flow.tensor(3).item(), int)
    assert isinstance(flow.tensor(True).item(), bool) and isinstance(flow.tensor(3.0).item(), float)
    assert [10, 20, 30][flow.tensor(1)] == 20
    with pytest.raises(ValueError, match="ambiguous"):
        bool(flow.ones(2))
    with pytest.raises(flow.ShapeError, match="2 elements"):
        flow.ones(2).item()
    with pytest.raises(TypeError):
        [1, 2][flow.tensor(1.0)]
    with pytest.raises(TypeError, match="without dims"):
        len(flow.tensor(1))
    assert 2.0 in flow.tensor([1.0, 2.0]) and 5 not in flow.tensor([1.0, 2.0]) and "a" not in flow.tensor([1.0])


def test_indexing_is_that_of_numpy():
    a = np.arange(24.0).reshape(2, 3, 4)
    x = flow.tensor(a)
    mask = a > 7
    for index in (
        1,
        -1,
        (0, 1),
        slice(None),
        slice(0, 1),
        (..., slice(1, 3)),
        (slice(None), None, 1),
        (..., slice(None, None, -1)),
        (0, slice(None, None, 2), -1),
        [0, 1, 0],
        (slice(None), [2, 0]),
        ([0, 1], [1, 2], [3, 0]),
        np.array([1, 0]),
        np.int64(1),
        (),
        ...,
        None,
        True,
        mask,
    ):
        np.testing.assert_array_equal(x[index].numpy(), a[index], err_msg=str(index))
    np.testing.assert_array_equal(x[flow.tensor(mask)].numpy(), a[mask])
    x[flow.tensor(mask)] = -1
    a[mask] = -1
    x[0, 1:3, ::2] = flow.tensor([[5.0, 6.0], [7.0, 8.0]], dtype=flow.float64)
    a[0, 1:3, ::2] = [[5, 6], [7, 8]]
    x[1, 0] = [1, 2, 3, 4]
    a[1, 0] = [1, 2, 3, 4]
    np.testing.assert_array_equal(x.numpy(), a)
    for bad in ("a", 1.5, (0, 0, 0, 0), 5, {1: 2}, object()):
        with pytest.raises((TypeError, IndexError, ValueError, flow.Error)):
            x[bad]
    with pytest.raises(TypeError):
        del x[0]


def test_iteration():
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert [row.tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    a, b = x
    a += 1
    assert x.tolist() == [[2.0, 3.0], [3.0, 4.0]]
    with pytest.raises(TypeError, match="without dims"):
        iter(flow.tensor(1.0))


def test_identity_and_hash():
    x, y = flow.ones(2), flow.ones(2)
    d = {x: 1, y: 2}
    assert d[x] == 1 and d[y] == 2 and hash(x) == hash(x) and x in d
    r = weakref.ref(x)
    del x, d
    gc.collect()
    assert r() is None


def test_copies_and_pickles():
    for dtype in ("bool", "uint8", "int16", "uint16", "uint32", "int64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float32", "float64"):
        x = flow.tensor([[1, 0], [1, 1]], dtype=dtype)
        assert copy.copy(x) is not x and copy.copy(x).data_ptr() == x.data_ptr()
        for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert y.data_ptr() != x.data_ptr() and y.dtype is x.dtype and y.tolist() == x.tolist()
    x = flow.ones(2, requires_grad=True)
    y = copy.deepcopy([x, x])
    assert y[0] is y[1] and y[0].requires_grad and y[0].data_ptr() != x.data_ptr()
    assert pickle.loads(pickle.dumps(x)).requires_grad
    with pytest.raises(TypeError, match="detach"):
        pickle.dumps(x + 1)
    placements = [flow.placement("cpu", r) for r in ([0], [2, 1], [[0, 1], [2, 3]], [[[0, 1]], [[2, 3]]])]
    placements += [placements[1].mesh(dp=2), placements[2].mesh(dp=2, tp=2), placements[2].mesh(a=4)]
    for o in (flow.float32, flow.device("cpu"), flow.sbp.split(1), *placements):
        assert pickle.loads(pickle.dumps(o)) == o
    assert pickle.loads(pickle.dumps(flow.relu))(flow.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
    assert copy.deepcopy(flow.relu) is flow.relu
    assert copy.copy(Parameter(flow.ones(2), "w")).name == "w"


class Parameter(flow.Tensor):
    """A subclass with attributes of its own."""

    def __new__(cls, data, name=None):
        return super().__new__(cls, data)

    def __init__(self, data, name=None):
        self.name = name


def test_subclasses():
    x = flow.ones(2)
    p = Parameter(x, "w")
    assert isinstance(p, flow.Tensor) and p.name == "w" and p.data_ptr() == x.data_ptr()
    p.add_(1)
    assert x.tolist() == [2.0, 2.0]
    assert p.add_(1) is p
    p.requires_grad_()
    assert x.requires_grad
    (p * 2).sum().backward()
    assert p.grad.tolist() == x.grad.tolist() == [2.0, 2.0]
    q = pickle.loads(pickle.dumps(p))
    assert type(q) is Parameter and q.name == "w" and q.tolist() == p.tolist()
    r = copy.deepcopy(p)
    assert type(r) is Parameter and r.name == "w" and r.requires_grad
    assert Parameter([1.0, 2.0]).shape == (2,)
    assert flow.Tensor([1.0, 2.0], dtype=flow.float64).dtype is flow.float64
    with pytest.raises(TypeError, match="oflow.empty"):
        flow.Tensor(2, 3)


def test_conversions():
    x = flow.ones(2)
    assert x.to(flow.float32) is x and x.to("cpu") is x and x.to(flow.device("cpu"), flow.float32) is x
    assert x.to(flow.int64).dtype is flow.int64 and x.to("float64").dtype is flow.float64 and x.to(dtype=bool).dtype is flow.bool
    assert x.to(flow.zeros(1, dtype=flow.float16)).dtype is flow.float16 and x.to(x, copy=True) is not x
    for bad in ((3,), ("nonsense",), (flow.float32, flow.float64), (None,)):
        with pytest.raises((TypeError, ValueError)):
            x.to(*bad)
    with pytest.raises(flow.AutogradError):
        flow.ones(2, dtype=flow.int64, requires_grad=True)


def test_references_do_not_leak():
    x, y = flow.ones(4), flow.ones(4)
    gc.collect()
    before = [sys.getrefcount(o) for o in (x, y, flow.float32)]
    live = flow.memory_stats().live
    for _ in range(100):
        x + y
        x.add(y)
        x.add_(y)
        x.relu()
        x.sum(dims=0, keepdim=True)
        x[0:2]
        x.dtype
        x.reshape(2, 2).tolist()
        x.numpy()
        try:
            flow.add(x, "a")
        except TypeError:
            pass
        try:
            x.matmul(flow.ones(3, 3))
        except flow.Error:
            pass
    gc.collect()
    assert [sys.getrefcount(o) for o in (x, y, flow.float32)] == before
    assert flow.memory_stats().live == live


def test_threads():
    x, found, failed = flow.ones(200, 200), [], []

    def work():
        try:
            for _ in range(20):
                found.append((x @ x).sum().item())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failed and found == [200.0**3] * 80


def test_errors_are_exceptions_with_the_line():
    with pytest.raises(flow.ShapeError) as error:
        flow.ones(2, 3).matmul(flow.ones(2, 3))
    e = error.value
    assert isinstance(e, ValueError) and isinstance(e, flow.Error) and isinstance(e, RuntimeError)
    assert e.kind == "Shape" and e.message == "inner dims differ: 3 and 2" and e.help and e.site[0] == __file__
    assert f"{__file__}:{e.site[1]}" in str(e) and "matmul(f32[2, 3], f32[2, 3])" in str(e)
    with pytest.raises(flow.DTypeError):
        flow.ones(2, dtype=flow.int64).requires_grad_(False).softmax(0)


def test_placements_and_sbp():
    p = flow.placement("cpu", ranks=[[0, 1], [2, 3]])
    assert p.shape == (2, 2) and p.ranks == [0, 1, 2, 3] and p.type == "cpu" and len(p) == 4
    assert p == flow.Placement("cpu", ranks=[0, 1, 2, 3], mesh=None).mesh(a=2, b=2) or p.names == (None, None)
    m = flow.placement("cpu", [0, 1, 2, 3]).mesh(dp=2, tp=2)
    assert m.names == ("dp", "tp") and m.slice("tp", 1).ranks == [1, 3] and m.slice(0, 0).ranks == [0, 1]
    assert hash(m) == hash(flow.placement("cpu", range(4), mesh={"dp": 2, "tp": 2}))
    with pytest.raises(flow.PlacementError):
        flow.placement("cpu", [0, 0])
    with pytest.raises(ValueError):
        flow.placement("cpu", [[0, 1], [2]])
    with pytest.raises(ValueError):
        flow.placement("nothing", [0])
    s = flow.sbp.split(1)
    assert s == flow.sbp.S(1) and s.dim == 1 and str(s) == "S(1)" and flow.sbp.broadcast() is flow.sbp.broadcast
    assert repr(flow.sbp.partial_sum) == "oflow.sbp.partial_sum" and len({s, flow.sbp.S(1), flow.sbp.B}) == 2
    with pytest.raises(ValueError):
        flow.sbp.split(-1)


def test_dtypes():
    assert flow.dtype("float32") is flow.dtype(np.float32) is flow.dtype(np.dtype("f4")) is flow.dtype(float) is flow.float32
    assert flow.dtype("f32") is flow.float and flow.float32.itemsize == 4 and flow.bfloat16.is_floating_point
    assert flow.dtype("complex64") is flow.dtype(np.complex64) is flow.complex64 and flow.complex64.is_complex
    with pytest.raises(ValueError, match="unknown dtype 'complex32'"):
        flow.dtype("complex32")
    with pytest.raises(TypeError):
        flow.dtype(3)


def test_random_numbers():
    flow.manual_seed(3)
    a = flow.randn(4).tolist()
    flow.manual_seed(3)
    assert flow.randn(4).tolist() == a and flow.randn(4).tolist() != a
    g = flow.Generator(7)
    b = flow.rand(3, generator=g).tolist()
    state = g.get_state()
    c = flow.rand(3, generator=g).tolist()
    g.set_state(state)
    assert flow.rand(3, generator=g).tolist() == c
    assert flow.rand(3, generator=g.manual_seed(7)).tolist() == b and g.initial_seed() == 7
