"""Makes golden.json: what torch.fft gives, with gradients of the sum of squared absolute values weighted by position.

Run it with any Python that has torch, in this folder: `python golden.py`. The test `golden` reads the file.
"""

import json

import torch


def pairs(t):
    t = t.detach().resolve_conj()
    return (torch.view_as_real(t) if t.is_complex() else t).reshape(-1).tolist()


def values(shape, dtype):
    n = torch.Size(shape).numel() * (2 if dtype.is_complex else 1)
    x = torch.tensor([((37 * i) % 41) / 16 - 1.2 for i in range(n)], dtype=torch.float64)
    if dtype.is_complex:
        x = torch.view_as_complex(x.reshape(*shape, 2))
    return x.reshape(shape).to(dtype)


rows = []


def row(name, x, **kw):
    leaf = x.clone().requires_grad_(x.is_floating_point() or x.is_complex())
    y = getattr(torch.fft, name)(leaf, **kw)
    made = {"call": name, "shape": list(x.shape), "dtype": str(x.dtype).split(".")[1], "x": pairs(x), "kw": kw, "y": pairs(y), "of": str(y.dtype).split(".")[1], "size": list(y.shape)}
    if leaf.requires_grad:
        weights = torch.arange(1, y.numel() + 1, dtype=torch.float64).reshape(y.shape)
        (y.abs() ** 2 * weights).sum().backward()
        made["grad"] = pairs(leaf.grad)
    rows.append(json.dumps(made, separators=(",", ":")))


COMPLEX, REAL = (torch.complex128, torch.complex64), (torch.float64, torch.float32)
for dtype in COMPLEX + REAL:
    for norm in (None, "ortho", "forward", "backward"):
        for name in ("fft", "ifft", "irfft", "hfft"):
            row(name, values([5], dtype), norm=norm)
        if not dtype.is_complex:
            row("rfft", values([5], dtype), norm=norm)
            row("ihfft", values([6], dtype), norm=norm)
    for n in (1, 2, 3, 4, 7):
        for name in ("fft", "ifft", "irfft", "hfft"):
            row(name, values([2, 4], dtype), n=n)
            row(name, values([4, 3], dtype), n=n, dim=0)
        if not dtype.is_complex:
            row("rfft", values([2, 4], dtype), n=n)
            row("ihfft", values([4, 2], dtype), n=n, dim=0)
    for name in ("fftn", "ifftn", "fft2", "ifft2", "irfftn", "irfft2"):
        row(name, values([2, 3, 4], dtype))
        row(name, values([2, 3, 4], dtype), s=[3, 5], norm="ortho")
        row(name, values([2, 3, 4], dtype), s=[4, 2], dim=[2, 0])
    if not dtype.is_complex:
        for name in ("rfftn", "rfft2"):
            row(name, values([2, 3, 4], dtype))
            row(name, values([2, 3, 4], dtype), s=[3, 5], norm="forward")
            row(name, values([2, 3, 4], dtype), s=[4, 2], dim=[2, 0])
    row("fftshift", values([5, 4], dtype))
    row("ifftshift", values([5, 4], dtype), dim=[0])
row("fft", torch.arange(5, dtype=torch.int64))
row("rfft", torch.arange(6, dtype=torch.int32))
for n, d in ((1, 1.0), (4, 0.5), (5, 2.0)):
    for name in ("fftfreq", "rfftfreq"):
        y = getattr(torch.fft, name)(n, d)
        rows.append(json.dumps({"call": name, "n": n, "d": d, "y": y.tolist()}))
signal = values([2, 23], torch.float64)
for kw in ({}, {"hop_length": 3}, {"center": False, "hop_length": 5}, {"normalized": True}, {"onesided": False}, {"pad_mode": "constant"}):
    for length in (None, 6):
        window = torch.hann_window(length, periodic=False, dtype=torch.float64) + 0.1 if length else None
        y = torch.stft(signal, 8, window=window, win_length=length, return_complex=True, **kw)
        row = {"call": "stft", "kw": kw, "x": pairs(signal), "y": pairs(y), "size": list(y.shape), "window": window.tolist() if length else None}
        if kw.get("center", True):
            back = {k: v for k, v in kw.items() if k != "pad_mode"}
            row["back"] = torch.istft(y, 8, window=window, win_length=length, length=23, **back).reshape(-1).tolist()
        rows.append(json.dumps(row, separators=(",", ":")))
with open("golden.json", "w") as f:
    f.write("[\n" + ",\n".join(rows) + "\n]\n")
print(len(rows), "rows")
