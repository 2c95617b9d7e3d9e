"""``oflow.linalg``: the functions are those of ``torch.linalg``, which the tests of the crate compare number by number."""

import ast
import pathlib

import numpy as np
import oflow as flow
import oflow.linalg
import pytest
from oflow import _oflow
from oflow.linalg import svd

RNG = np.random.default_rng(7)


def close(a, b):
    np.testing.assert_allclose(a.numpy(), b, rtol=1e-9, atol=1e-9)


def test_every_function_is_there_with_its_type():
    there = {name.removeprefix("linalg.") for name in _oflow._function_names() if name.startswith("linalg.")}
    assert len(there) >= 24
    assert set(dir(flow.linalg)) == there
    for name in there:
        function = getattr(flow.linalg, name)
        assert callable(function) and function.__doc__, name
    stub = ast.parse((pathlib.Path(flow.__file__).parent / "linalg.pyi").read_text())
    assert {node.name for node in stub.body if isinstance(node, ast.FunctionDef)} == there
    with pytest.raises(AttributeError, match="oflow.linalg"):
        flow.linalg.nonsense


def test_values_are_numpys():
    a = RNG.normal(size=(2, 4, 4)) + 4 * np.eye(4)
    x, b = flow.tensor(a), RNG.normal(size=(2, 4, 3))
    close(flow.linalg.det(x), np.linalg.det(a))
    close(flow.linalg.inv(x), np.linalg.inv(a))
    close(flow.linalg.solve(x, flow.tensor(b)), np.linalg.solve(a, b))
    u, s, vh = svd(x)
    close(s, np.linalg.svd(a)[1])
    close((u * s.unsqueeze(-2)) @ vh, a)
    q, r = flow.linalg.qr(x)
    close(q @ r, a)
    spd = a @ a.transpose(0, 2, 1)
    low = flow.linalg.cholesky(flow.tensor(spd))
    close(low, np.linalg.cholesky(spd))
    close(flow.linalg.eigvalsh(flow.tensor(spd)), np.linalg.eigvalsh(spd))
    close(flow.linalg.pinv(flow.tensor(b)), np.linalg.pinv(b))
    close(flow.linalg.pinv(flow.tensor(b), rtol=0.9), np.linalg.pinv(b, 0.9))
    close(flow.linalg.matrix_power(x, -2), np.linalg.matrix_power(a, -2))
    close(flow.linalg.cond(x), np.linalg.cond(a))
    close(flow.linalg.matrix_norm(x, "nuc"), np.linalg.norm(a, "nuc", axis=(1, 2)))
    close(flow.linalg.matrix_norm(x, float("inf"), keepdim=True), np.linalg.norm(a, np.inf, axis=(1, 2), keepdims=True))
    close(flow.linalg.vector_norm(x, 3.0, dim=1), np.linalg.norm(a, 3, axis=1))
    assert flow.linalg.matrix_rank(flow.tensor(np.outer(b[0, :, 0], b[0, :, 1]))).item() == 1
    solution, residuals, rank, values = flow.linalg.lstsq(flow.tensor(b[0]), flow.tensor(a[0]))
    want = np.linalg.lstsq(b[0], a[0], rcond=None)
    for have, want in zip((solution, residuals, rank, values), want):
        close(have, want)
    c = RNG.normal(size=(3, 5))
    close(flow.linalg.multi_dot([x[0], flow.tensor(b[0]), flow.tensor(c)]), a[0] @ b[0] @ c)


def test_gradients_and_layouts():
    x = flow.tensor(RNG.normal(size=(3, 3)) + 3 * np.eye(3), requires_grad=True)
    flow.linalg.slogdet(x)[1].backward()
    close(x.grad, np.linalg.inv(x.detach().numpy()).T)
    p = flow.placement.all("cpu")
    batch = flow.tensor(np.stack([np.eye(3) * (k + 1) for k in range(4)]), placement=p, sbp=flow.sbp.split(0))
    y = flow.linalg.inv(batch)
    assert y.sbp == (flow.sbp.split(0),)
    assert flow.linalg.det(y).tolist() == [1.0, 1 / 8, pytest.approx(1 / 27), 1 / 64]


def test_errors_name_the_function():
    with pytest.raises(flow.ShapeError, match="linalg.inv.*square"):
        flow.linalg.inv(flow.zeros(2, 3))
    with pytest.raises(flow.Error, match="singular"):
        flow.linalg.solve(flow.zeros(2, 2), flow.ones(2))
    with pytest.raises(flow.ShapeError, match="matrix_power needs square matrices"):
        flow.linalg.matrix_power(flow.zeros(2, 3), 2)
    with pytest.raises(flow.DTypeError, match="svd"):
        flow.linalg.svdvals(flow.zeros(2, 3, dtype=flow.int64))
    with pytest.raises(flow.Error, match="neither 'fro' nor 'nuc'"):
        flow.linalg.matrix_norm(flow.zeros(2, 3), "max")
