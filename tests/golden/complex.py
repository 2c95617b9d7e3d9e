"""Makes complex.json: what PyTorch gives for functions of complex numbers, with gradients.

Run it with any Python that has torch, in this folder: `python complex.py`. The test `dtypes` reads the file. The gradient is that of
the sum of `real(y) + 2 imag(y)`, or of `y` where it is real.
"""

import json
import warnings

import torch

warnings.filterwarnings("ignore")

# In all quadrants, small and large, on both sides of cuts. A zero with a sign is no number of JSON that every reader keeps.
POINTS = [1 + 2j, -1.5 + 0.25j, -0.3 - 2.5j, 0.75 - 0.5j, 2 + 0j, -2 + 1e-3j, -2 - 1e-3j, 0.5j, -3j, 1e-4 + 1e-4j, 30 - 20j, -25 + 40j, 1 + 1e-4j]
OTHERS = [0.5 - 1j, 2 + 0.25j, -1 + 1j, 0.3 + 0.1j, -0.5 + 0j, 1j, 2 - 2j, 1.5 + 0j, -0.25 - 0.75j, 3 + 1j, 0.1 + 0.2j, 1 - 1j, 2 + 0j]
UNARY = """neg conj square exp expm1 log log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp2
log2 log10 sigmoid sgn abs real imag angle logical_not isnan isinf isfinite isreal view_as_real""".split()
BINARY = "add sub mul div pow eq ne".split()


def pairs(t):
    t = t.detach().resolve_conj()
    if t.is_complex():
        return torch.view_as_real(t).reshape(-1).tolist()
    return t.to(torch.float64).reshape(-1).tolist()


def row(name, dtype, args, f):
    leaves = [a.clone().requires_grad_(a.is_complex() or a.is_floating_point()) for a in args]
    y = f(*leaves)
    made = {"call": name, "dtypes": [str(a.dtype).split(".")[1] for a in args], "args": [pairs(a) for a in args], "shapes": [list(a.shape) for a in args]}
    made |= {"y": pairs(y), "of": str(y.dtype).split(".")[1], "shape": list(y.shape)}
    if y.requires_grad:
        loss = (y.real + 2 * y.imag).sum() if y.is_complex() else y.sum()
        loss.backward()
        made["grads"] = [pairs(a.grad) if a.grad is not None else None for a in leaves]
    text = json.dumps(made, separators=(",", ":"))
    # What PyTorch gives as NaN or infinite is not compared.
    return None if "NaN" in text or "Infinity" in text else text


rows = []
for dtype, real in ((torch.complex64, torch.float32), (torch.complex128, torch.float64)):
    x, o = torch.tensor(POINTS, dtype=dtype), torch.tensor(OTHERS, dtype=dtype)
    for name in UNARY:
        # A zero or a cut spoils one element's gradient only: each is a row.
        for part in x.split(1) if name in ("abs", "sgn", "angle", "asin", "acos", "acosh", "atanh", "log1p") else (x,):
            rows.append(row(name, dtype, [part], getattr(torch, name)))
    for name in BINARY:
        rows.append(row(name, dtype, [x, o], getattr(torch, name)))
        rows.append(row(name, dtype, [x, o.real + 1.75], getattr(torch, name)))
        rows.append(row(name, dtype, [o.real + 1.75, x], getattr(torch, name)))
    m, n = x[:12].reshape(3, 4), o[:12].reshape(4, 3)
    rows.append(row("matmul", dtype, [m, n], torch.matmul))
    rows.append(row("matmul", dtype, [m, n[:, 0]], torch.matmul))
    rows.append(row("linear", dtype, [m, n.T.clone(), o[:3].clone()], torch.nn.functional.linear))
    rows.append(row("sum", dtype, [m], torch.sum))
    rows.append(row("mean", dtype, [m], torch.mean))
    rows.append(row("cumsum(dim=1)", dtype, [m], lambda t: torch.cumsum(t, 1)))
    rows.append(row("tril", dtype, [m], torch.tril))
    rows.append(row("adjoint", dtype, [m], torch.adjoint))
    rows.append(row("complex", dtype, [x.real.clone(), x.imag.clone()], torch.complex))
    rows.append(row("polar", dtype, [x.real.abs() + 0.5, x.imag.clone()], torch.polar))
    rows.append(row("view_as_complex", dtype, [torch.view_as_real(x).clone()], torch.view_as_complex))
    rows.append(row("dot", dtype, [x, o], torch.dot))
    rows.append(row("outer", dtype, [x[:3], o[:4]], torch.outer))
    rows.append(row("einsum", dtype, [m, n], lambda a, b: torch.einsum("ij,jk->ki", a, b)))
    rows.append(row("trace", dtype, [m[:3, :3].clone()], torch.trace))
    rows.append(row("index_select", dtype, [m], lambda t: t[[2, 0, 2]]))
    for name in ("var", "std", "norm"):
        rows.append(row(name, dtype, [m], getattr(torch, name)))
    rows.append(row("logsumexp", dtype, [m], lambda t: torch.logsumexp(t, (0, 1))))
    rows.append(row("addcdiv", dtype, [x, o, o.flip(0) + 3], torch.addcdiv))
    rows.append(row("logical_and", dtype, [x, o], torch.logical_and))
    # A number without dims does not widen floats.
    for other in (torch.float32, torch.float64):
        line = x.real.to(other)
        for name in ("add", "mul", "sub"):
            rows.append(row(name, dtype, [line, o[0].clone()], getattr(torch, name)))
            rows.append(row(name, dtype, [o[1].clone(), line], getattr(torch, name)))
rows = [r for r in rows if r]
with open("complex.json", "w") as f:
    f.write("[\n" + ",\n".join(rows) + "\n]\n")
print(len(rows), "rows")
