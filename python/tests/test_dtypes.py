"""i16, u16, u32 and 8-bit floats."""

import copy
import pickle

import numpy as np
import oflow as flow
import pytest

NARROW = {"int16": np.int16, "uint16": np.uint16, "uint32": np.uint32}
FLOAT8 = (flow.float8_e4m3fn, flow.float8_e5m2)


@pytest.mark.parametrize("name", NARROW)
def test_integers_share_memory_with_numpy(name):
    ends = np.iinfo(NARROW[name])
    a = np.array([[ends.min, 1, 2], [3, 4, ends.max]], dtype=NARROW[name])
    x = flow.from_numpy(a)
    assert x.dtype is getattr(flow, name) and x.dtype.itemsize == a.itemsize and not x.dtype.is_floating_point
    assert x.tolist() == a.tolist() and x.numpy().dtype == a.dtype
    x[0, 1] = 7
    assert a[0, 1] == 7
    assert np.from_dlpack(x).dtype == a.dtype and flow.from_dlpack(a).tolist() == a.tolist()
    assert (x + x).tolist() == (a + a).tolist()
    assert x.sum().item() == a.sum(dtype=np.int64) and x.sum().dtype is flow.int64
    assert x.amax().item() == ends.max and x.argmin(1).tolist() == a.argmin(1).tolist()
    assert flow.sort(x.flatten())[0].tolist() == sorted(a.flatten().tolist())
    assert (x.T @ x).tolist() == (a.T @ a).tolist()
    assert flow.arange(5, dtype=x.dtype).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="does not fit"):
        flow.tensor([2**40], dtype=x.dtype)


def test_promotion_is_pytorchs():
    x = flow.ones(2, dtype=flow.int16)
    assert (x + flow.ones(2, dtype=flow.int8)).dtype is flow.int16
    assert (flow.ones(2, dtype=flow.uint8) + flow.ones(2, dtype=flow.int8)).dtype is flow.int16
    assert (x + flow.ones(2, dtype=flow.int32)).dtype is flow.int32
    assert (x + 1.5).dtype is flow.float32 and (x / x).dtype is flow.float32
    with pytest.raises(flow.DTypeError, match="u16.*i16|i16.*u16"):
        x + flow.ones(2, dtype=flow.uint16)


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_is_stored_moved_and_cast(dtype):
    assert dtype.is_floating_point and dtype.itemsize == 1
    x = flow.tensor([[0.1, -2.0], [float("nan"), 0.0]]).to(dtype)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), x.T.T, flow.cat([x, x])[:2]):
        assert y.dtype is dtype
        np.testing.assert_array_equal(y.to(flow.float32).numpy(), x.to(flow.float32).numpy())
    with pytest.raises(flow.DTypeError, match="add"):
        x + x
    with pytest.raises(TypeError, match="NumPy has no oflow.float8"):
        x.numpy()
    w = flow.tensor([0.3, 1.7], requires_grad=True)
    (w.to(dtype).to(flow.float32) * flow.tensor([2.0, 3.0])).sum().backward()
    assert w.grad.tolist() == [2.0, 3.0]


def test_float8_is_pytorchs_code_by_code():
    torch = pytest.importorskip("torch")
    for dtype in FLOAT8:
        codes = torch.arange(256, dtype=torch.uint8)
        theirs = codes.view(getattr(torch, dtype.name)).float()
        ours = flow.tensor(theirs.numpy()).to(dtype)
        np.testing.assert_array_equal(ours.to(flow.float32).numpy(), theirs.numpy())
        # Random bits of float32.
        bits = np.random.default_rng(3).integers(0, 2**32, 20_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
        near = np.random.default_rng(4).normal(size=20_000).astype(np.float32) * np.float32(100)
        for x in (bits, near, near / np.float32(1e6)):
            want = torch.from_numpy(x.copy()).to(getattr(torch, dtype.name)).float().numpy()
            np.testing.assert_array_equal(flow.tensor(x).to(dtype).to(flow.float32).numpy(), want)


def test_columns_of_a_loader():
    for name, kind in NARROW.items():
        loader = flow.data.Loader([np.arange(6, dtype=kind)], flow.placement.all("cpu"), 2)
        assert [batch.tolist() for (batch,) in loader] == [[0, 1], [2, 3], [4, 5]]
        assert next(iter(loader))[0].dtype is getattr(flow, name)


def test_methods_of_pytorch():
    x = flow.tensor([[1.5, -2.0, 0.0]])
    for name, dtype in {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64",
                        "int": "int32", "short": "int16", "char": "int8", "bool": "bool"}.items():
        assert getattr(x, name)().dtype is getattr(flow, dtype)
    assert x.float() is x and x.abs().byte().tolist() == [[1, 2, 0]]
    assert x.T.shape == (3, 1) and x.mT.tolist() == x.T.tolist() and flow.zeros(2, 3, 4).T.shape == (4, 3, 2)
    x.requires_grad_()
    x.T.double().sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0, 1.0]]


def test_quantised_numbers():
    x = flow.tensor([[0.0, 1.3, -0.75], [1e9, -1e9, 0.25]])
    q = x.quantize_per_tensor(0.5, 3, "qint8")
    assert str(q.dtype) == "qint8(scale=0.5, zero=3)" and q.dtype == flow.dtype("qint8(scale=0.5, zero=3)")
    assert q.int_repr().tolist() == [[3, 6, 1], [127, -128, 3]] and q.int_repr().dtype is flow.int8
    assert q.dequantize().tolist() == q.tolist() == [[0.0, 1.5, -1.0], [62.0, -65.5, 0.0]]
    assert q.q_scale() == 0.5 and q.q_zero_point() == 3
    assert x.quantize("qint8(scale=0.5, zero=3)").int_repr().tolist() == q.int_repr().tolist()
    y = q.quantized_matmul(q.T, "qint16(scale=1.0, zero=0)")
    assert y.tolist() == [[3.0, -98.0], [-98.0, 8134.0]]
    w = flow.tensor([0.2, 0.6, 9.0], requires_grad=True)
    flow.fake_quantize_per_tensor_affine(w, 0.5, 0, -4, 4).sum().backward()
    assert w.grad.tolist() == [1.0, 1.0, 0.0]
    with pytest.raises(flow.DTypeError, match="add"):
        q + q
    with pytest.raises(flow.Error, match="greater than zero"):
        x.quantize_per_tensor(0.0, 3)


def test_errors_of_inner_ops_name_the_function():
    with pytest.raises(flow.Error, match=r"^scatter: scatter_fill\("):
        flow.scatter(flow.zeros(3, dtype=flow.int8), 0, flow.tensor([0]), 1000)
    with pytest.raises(flow.Error, match="^group_norm"):
        flow.group_norm(flow.tensor([[1, 2], [3, 4]]), 2)
