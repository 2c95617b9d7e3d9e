"""Complex numbers and ``oflow.fft`` in Python: beside NumPy, and beside PyTorch where it is."""

import ast
import copy
import pathlib
import pickle

import numpy as np
import oflow as flow
import oflow.fft
import pytest
from oflow import _oflow

RNG = np.random.default_rng(3)
Z = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))


def close(a, b):
    np.testing.assert_allclose(a.numpy(), b, rtol=1e-9, atol=1e-12)


def test_dtypes_numbers_and_arrays():
    assert flow.tensor(1 + 2j).dtype == flow.complex64 == flow.cfloat and flow.cdouble == flow.complex128
    assert flow.complex64.is_complex and flow.complex64.itemsize == 8 and not flow.float32.is_complex
    z = flow.tensor([[1, 2.5], [1j, -2j]])
    assert z.dtype == flow.complex64 and z.tolist() == [[1, 2.5], [1j, -2j]]
    assert flow.tensor(3 - 4j).item() == 3 - 4j and complex(flow.tensor(1j)) == 1j
    with pytest.raises(TypeError):
        float(flow.tensor(1j))
    for dtype in (np.complex64, np.complex128):
        a = Z.astype(dtype)
        x = flow.from_numpy(a)
        assert x.dtype.name == a.dtype.name and x.numpy().dtype == dtype
        a[0, 0] = 7j
        assert x[0, 0].item() == 7j
        x[1] = 2 - 1j
        assert (a[1] == 2 - 1j).all()
        assert (flow.tensor(a.T).numpy() == a.T).all()
        again = pickle.loads(pickle.dumps(x))
        assert again.dtype == x.dtype and (again.numpy() == a).all() and (copy.deepcopy(x).numpy() == a).all()


def test_functions_and_operators_are_numpys():
    z, w = flow.tensor(Z), flow.tensor(Z[::-1].copy())
    close(z * w + 2j, Z * Z[::-1] + 2j)
    close((1 - 2j) / z, (1 - 2j) / Z)
    close(2 ** z, 2 ** Z)
    close(z @ w.mT, Z @ Z[::-1].T)
    close(z.mH, Z.conj().T)
    close(z.real, Z.real)
    close(z.imag, Z.imag)
    close(z.abs(), np.abs(Z))
    close(z.angle(), np.angle(Z))
    close(z.exp().log().sin(), np.sin(np.log(np.exp(Z))))
    close(z.sum(1), Z.sum(1))
    close(z.view_as_real().view_as_complex(), Z)
    close(flow.complex(z.real, z.imag), Z)
    assert (z == z).all().item() and z.is_complex()
    x = flow.tensor([1.0, -2.0])
    assert x.real is x
    for wrong in (lambda: z < w, lambda: z.relu(), lambda: x.imag, lambda: z.sort(), lambda: x.clamp(1j, 2)):
        with pytest.raises((TypeError, flow.Error)):
            wrong()


def test_gradients():
    z = flow.tensor(Z, requires_grad=True)
    (z.abs() ** 2).sum().backward()
    close(z.grad, 2 * Z)
    with pytest.raises(flow.Error, match="complex"):
        z.sum().backward()


def test_pytorch_shares_and_agrees():
    torch = pytest.importorskip("torch")
    t = torch.tensor(Z)
    x = flow.from_dlpack(t)
    assert x.dtype == flow.complex128
    t[0, 0] = 5j
    assert x[0, 0].item() == 5j
    assert torch.from_dlpack(x).dtype == torch.complex128
    for name, options in [("fft", {}), ("ifft", {"n": 6}), ("rfftn", {"s": [2, 5]}), ("irfft", {"dim": 0, "norm": "ortho"}), ("fft2", {}), ("hfft", {})]:
        given = t.real.clone() if name.startswith("rfft") else t
        leaf, ours = given.clone().requires_grad_(True), flow.tensor(given.numpy(), requires_grad=True)
        want, have = getattr(torch.fft, name)(leaf, **options), getattr(flow.fft, name)(ours, **options)
        close(have.detach(), want.detach().numpy())
        (want.abs() ** 3).sum().backward()
        (have.abs() ** 3).sum().backward()
        close(ours.grad, leaf.grad.resolve_conj().numpy())
    signal, window = torch.tensor(RNG.normal(size=(2, 30))), torch.hann_window(8, dtype=torch.float64)
    pieces = flow.fft.stft(flow.tensor(signal.numpy()), 8, hop_length=2, window=flow.tensor(window.numpy()))
    close(pieces, torch.stft(signal, 8, hop_length=2, window=window, return_complex=True).numpy())
    close(flow.fft.istft(pieces, 8, hop_length=2, window=flow.tensor(window.numpy()), length=30), signal.numpy())


def test_every_transform_is_there_with_its_type():
    there = {name.removeprefix("fft.") for name in _oflow._function_names() if name.startswith("fft.")}
    assert {"fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"} <= there
    assert {"fftshift", "ifftshift", "fftfreq", "rfftfreq", "stft", "istft"} <= there and set(dir(flow.fft)) == there
    stub = ast.parse((pathlib.Path(flow.__file__).parent / "fft.pyi").read_text())
    assert {node.name for node in stub.body if isinstance(node, ast.FunctionDef)} == there
    close(flow.fft.fftshift(flow.fft.fftfreq(5, d=0.5)).cast(flow.float64), np.fft.fftshift(np.fft.fftfreq(5, d=0.5)).astype(np.float32))
    close(flow.fft.irfft(flow.fft.rfft(flow.tensor(Z.real), n=4), n=4), Z.real)
    with pytest.raises(AttributeError, match="oflow.fft"):
        flow.fft.dct
