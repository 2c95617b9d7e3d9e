"""Global tensors over all ranks of the world: of one rank, or of as many as `oflaunch --nproc N` starts."""

import numpy as np
import oflow as flow
import pytest

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum


@pytest.fixture(scope="module")
def mesh():
    return flow.placement.all("cpu")


def test_factories(mesh):
    x = flow.zeros((4, 6), placement=mesh, sbp=S(0))
    assert x.is_global and x.shape == (4, 6) and x.sbp == (S(0),) and x.placement == mesh
    assert repr(x) == f"f32[4, 6] [S(0)] on cpu[{flow.world_size()}]"
    assert x.to_local().shape[1] == 6
    x = flow.tensor(np.arange(6.0), placement=mesh, sbp=S(0), requires_grad=True)
    assert x.requires_grad and x.tolist() == [0, 1, 2, 3, 4, 5]
    for sbp in ("S(0)", "B", [S(0)], (B,), B, "P"):
        assert flow.ones(5, placement=mesh, sbp=sbp).sum().item() == 5


def test_boxing(mesh):
    value = np.arange(12.0).reshape(4, 3)
    x = flow.tensor(value, placement=mesh, sbp=S(0))
    for sbp in (B, S(1), P, S(0)):
        x = x.to_global(mesh, sbp)
        assert x.sbp == (sbp,) and (np.array(x.tolist()) == value).all()
    x = x.to_global(sbp=B)
    assert (x.to_local().numpy() == value).all()
    x = x.to_local().to_global(placement=mesh, sbp=B)
    assert x.sum().item() == value.sum()
    y = flow.distribute(flow.tensor(value), mesh, S(1))
    assert y.sbp == (S(1),)


def test_arithmetic_and_gradients(mesh):
    a, b = np.random.default_rng(0).normal(size=(4, 6)), np.random.default_rng(1).normal(size=(6, 8))
    for sx, sw in ((S(0), B), (S(1), S(0)), (B, S(1)), (B, B)):
        x = flow.tensor(a, placement=mesh, sbp=sx, requires_grad=True)
        w = flow.tensor(b, placement=mesh, sbp=sw, requires_grad=True)
        y = (x @ w).relu().sum()
        y.backward()
        hot = (a @ b) > 0
        np.testing.assert_allclose(y.item(), (a @ b)[hot].sum())
        np.testing.assert_allclose(np.array(x.grad.tolist()), hot @ b.T)
        np.testing.assert_allclose(np.array(w.grad.tolist()), a.T @ hot)
        assert x.grad.sbp == (sx,)


def test_what_is_not_local_is_refused(mesh):
    x = flow.ones(4, placement=mesh, sbp=S(0))
    for f in (lambda: x.numpy(), lambda: x.__dlpack__(), lambda: flow.from_dlpack(x), lambda: np.asarray(x)):
        with pytest.raises(TypeError, match="local tensor"):
            f()
    with pytest.raises(TypeError, match="local tensor"):
        __import__("pickle").dumps(x)
    with pytest.raises(flow.Error):
        x + flow.ones(4)
    with pytest.raises(flow.SbpError):
        flow.ones(4, placement=mesh, sbp=S(3))
    with pytest.raises(TypeError, match="needs an sbp too"):
        flow.ones(4, placement=mesh)


def test_a_shard_is_read_only(mesh):
    x = flow.ones(4, placement=mesh, sbp=S(0))
    shard = x.to_local()
    array = shard.numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0
    with pytest.raises(flow.Error):
        shard.add_(1)


def test_world():
    assert 0 <= flow.rank() < flow.world_size()
    flow.barrier()
    flow.init()


def test_records_name_lines_of_python(mesh):
    flow.take_comm_trace()
    x = flow.ones(8, placement=mesh, sbp=S(0))
    with flow.name_scope("here"):
        x.to_global(sbp=B)
    records = flow.take_comm_trace()
    x.to_global(sbp=B)
    table = flow.report()
    if flow.world_size() > 1:
        r = records[0]
        assert r.op == "to_global"
        assert r.file == __file__ and r.line > 0 and r.scope == "here" and not r.backward and r.bytes > 0
        assert "to_global" in table and "test_global.py" in table


def test_policies_and_requests(mesh):
    x, w = flow.ones((4, 6), placement=mesh, sbp=S(1)), flow.ones((6, 8), placement=mesh, sbp=S(0))
    y = flow.with_sbp(S(1), lambda: x @ w)
    assert y.sbp == (S(1),)
    with flow.pin_sbp("matmul", B):
        assert (x @ w).sbp == (B,)
    with pytest.raises(ZeroDivisionError):
        flow.with_sbp(S(1), lambda: 1 / 0)
    with flow.boxing_policy("deny_all"):
        if flow.world_size() > 1:
            with pytest.raises(flow.DeniedError, match="test_global.py"):
                x.to_global(sbp=B)
    with flow.boxing_policy("warn_above_bytes", 1 << 30):
        x.to_global(sbp=B)
    with pytest.raises(ValueError):
        flow.boxing_policy("nonsense")
    xs = flow.functional.box_many([x, w], [mesh, mesh], [B, B], [None, None])
    assert [t.sbp for t in xs] == [(B,), (B,)]
