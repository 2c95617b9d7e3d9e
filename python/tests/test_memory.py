"""NumPy and DLPack: memory is shared, and outlives either side."""

import gc

import numpy as np
import oflow as flow
import pytest

torch = pytest.importorskip("torch")

DTYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_both_ways_without_a_copy(name):
    a = np.arange(6).reshape(2, 3).astype(name)
    x = flow.from_numpy(a)
    assert x.shape == (2, 3) and x.dtype is getattr(flow, name)
    b = x.numpy()
    assert b.dtype == a.dtype and b.ctypes.data == a.ctypes.data == x.data_ptr()
    assert (a == b).all() and (np.asarray(x) == a).all()


@pytest.mark.parametrize("name", [*DTYPES, "bfloat16"])
def test_torch_both_ways_without_a_copy(name):
    t = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
    x = flow.from_dlpack(t)
    assert x.data_ptr() == t.data_ptr() and x.dtype is getattr(flow, name)
    assert torch.equal(torch.from_dlpack(x), t) and torch.from_dlpack(x).data_ptr() == t.data_ptr()
    y = flow.zeros(3, dtype=getattr(flow, name))
    assert torch.from_dlpack(y).data_ptr() == y.data_ptr()


def test_writes_are_seen_on_the_other_side():
    a = np.zeros((2, 3), np.float32)
    x = flow.from_numpy(a)
    a[0, 1] = 5
    assert x[0, 1].item() == 5
    x[1] = 7
    assert (a[1] == 7).all()
    x.add_(1)
    assert a[0, 0] == 1
    t = torch.from_dlpack(x)
    t[0, 0] = -1
    assert a[0, 0] == -1 and x[0, 0].item() == -1
    assert x._version > 0


def test_memory_outlives_either_side():
    a = np.arange(1000.0)
    x = flow.from_numpy(a)
    address = a.ctypes.data
    del a
    gc.collect()
    assert x.data_ptr() == address and x.sum().item() == 499500
    b = x.numpy()
    del x
    gc.collect()
    assert b.sum() == 499500
    t = torch.from_dlpack(flow.arange(1000))
    gc.collect()
    assert t.sum() == 499500
    x = flow.from_dlpack(torch.arange(1000))
    gc.collect()
    assert x.sum().item() == 499500


def test_strides_negative_ones_too():
    a = np.arange(24, dtype=np.float64).reshape(4, 6)
    for view in (a[::-1], a[:, ::-2], a.T, a[1:3, ::3], a[::-1].T, a[2], a[2, 3:4], np.array(3.0)):
        x = flow.from_numpy(view)
        assert (x.numpy() == view).all() and x.shape == view.shape
        assert (x.add(1.0).numpy() == view + 1).all()
    x = flow.from_numpy(a[::-1])
    x.mul_(2)
    assert a[0, 1] == 2


def test_empty_arrays():
    for shape in ((0,), (0, 3), (3, 0, 2)):
        x = flow.from_numpy(np.zeros(shape, np.float32))
        assert x.shape == shape and x.numpy().shape == shape and torch.from_dlpack(x).shape == shape
        assert flow.from_dlpack(torch.zeros(shape)).shape == shape
        assert np.array(x.tolist()).size == 0


def test_what_cannot_be_shared_is_said():
    a = np.zeros(3)
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        flow.from_numpy(a)
    assert flow.tensor(a).shape == (3,)
    with pytest.raises(BufferError, match="read-only"):
        flow.from_dlpack(np.broadcast_to(np.zeros(3), (2, 3)))
    with pytest.raises(ValueError, match="no dtype for arrays of"):
        flow.from_numpy(np.zeros(3, np.longdouble))
    with pytest.raises(ValueError, match="byte order"):
        flow.from_numpy(np.zeros(3, ">f4"))
    with pytest.raises(ValueError, match="multiples of their size"):
        flow.from_numpy(np.zeros(3, [("a", "u1"), ("b", "<f4")])["b"])
    with pytest.raises(ValueError, match="must lie at multiples of 4 bytes"):
        flow.from_numpy(np.frombuffer(bytearray(9), np.float32, 2, 1))
    with pytest.raises(TypeError, match="NumPy has no oflow.bfloat16"):
        flow.zeros(3, dtype=flow.bfloat16).numpy()
    with pytest.raises(flow.AutogradError, match=r"detach\(\)"):
        flow.zeros(3, requires_grad=True).numpy()
    with pytest.raises(TypeError):
        flow.from_dlpack(3)
    with pytest.raises(TypeError):
        flow.from_numpy([1, 2])
    with pytest.raises(ValueError, match="a bool is the byte 0 or 1"):
        flow.from_numpy(np.array([[0, 1], [1, 2]], np.uint8).view(bool))
    capsule = flow.zeros(3).__dlpack__()
    flow.from_dlpack(capsule)
    with pytest.raises(TypeError, match="not used before"):
        flow.from_dlpack(capsule)


def test_numpy_reads_dlpack_too():
    x = flow.arange(5)
    assert np.from_dlpack(x).ctypes.data == x.data_ptr()
    assert (np.from_dlpack(x) == np.arange(5)).all()
    assert flow.from_dlpack(np.arange(5)).tolist() == [0, 1, 2, 3, 4]


def test_unused_capsules_free_their_tensor():
    x = flow.zeros(1 << 20)
    before = flow.memory_stats().live
    for _ in range(20):
        x.add(1).__dlpack__()
        x.add(1).__dlpack__(max_version=(1, 0))
        x.add(1).numpy()
        torch.from_dlpack(x.add(1))
    gc.collect()
    assert flow.memory_stats().live == before


def test_tensors_from_data():
    assert flow.tensor(3).dtype is flow.int64 and flow.tensor(3).shape == ()
    assert flow.tensor(3.5).dtype is flow.float32 and flow.tensor(True).dtype is flow.bool
    assert flow.tensor([]).shape == (0,) and flow.tensor([[], []]).shape == (2, 0)
    assert flow.tensor([[1, 2.5], [True, 4]]).tolist() == [[1.0, 2.5], [1.0, 4.0]]
    assert flow.tensor(np.float32(2)).item() == 2 and flow.tensor(np.arange(3)).dtype is flow.int64
    assert flow.tensor([np.float32(1), np.int64(2)]).tolist() == [1.0, 2.0]
    assert flow.tensor([flow.tensor(1.5), 2]).tolist() == [1.5, 2.0]
    assert flow.tensor(torch.ones(2, 2), dtype=flow.int32).tolist() == [[1, 1], [1, 1]]
    for bad in ([[1], 2], [1, [2]], [[1, 2], [3]], "abc", ["a"], {"a": 1}, object(), [None]):
        with pytest.raises((TypeError, ValueError)):
            flow.tensor(bad)
    with pytest.raises(ValueError, match="does not fit into oflow.uint8"):
        flow.tensor([1000], dtype=flow.uint8)
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested deeper"):
        flow.tensor(loop)


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 3), (2, 0), (2, 1, 3)])
def test_tolist_is_that_of_numpy(shape):
    a = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    assert flow.tensor(a).tolist() == a.tolist()


def test_a_memory_report_names_the_holders():
    lin = flow.nn.Linear(64, 96)
    net = flow.nn.Sequential(lin, flow.nn.ReLU())
    opt = flow.optim.AdamW(net.parameters(), lr=1e-3)
    flow.reset_peak_memory()
    x = flow.tensor(np.ones((128, 64), dtype="float32"))
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
    report = flow.memory_report()
    (cpu,) = [d for d in report.devices if d.device == "cpu"]
    assert sum(h.bytes for h in cpu.now) == cpu.stats.live and sum(h.bytes for h in cpu.peak) == cpu.stats.peak
    bytes_of = lambda use: sum(h.bytes for h in cpu.now if h.used_for == use and h.scope == "0")  # noqa: E731
    weight = 64 * 96 * 4
    assert bytes_of("parameters") == weight and bytes_of("gradients") == weight and bytes_of("optimizer state") == 2 * weight
    mine = [h for h in cpu.now if h.file.endswith("test_memory.py")]
    assert any(h.bytes == 128 * 64 * 4 for h in mine), mine
    text = str(report)
    assert "by use" in text and "optimizer state" in text and all(len(line) <= 80 for line in text.splitlines())
    assert repr(report).startswith("MemoryReport(rank 0: ")


def test_without_memory_the_error_names_the_holders():
    held = flow.zeros(1 << 20)
    with pytest.raises(MemoryError, match="cannot allocate 70368744177664 bytes on cpu") as e:
        flow.zeros(1 << 44)
    assert "held by" in str(e.value) and "test_memory.py" in str(e.value)
    failure = flow.memory_report().devices[0].failure
    assert failure is not None and failure.bytes == 1 << 46 and failure.live == sum(h.bytes for h in failure.held)
    del held
