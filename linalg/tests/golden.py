"""Makes golden.json: what PyTorch gives for calls of torch.linalg, forward and gradient.

Run it with any Python that has torch, in this folder: `python golden.py`. The test `golden` reads the file; torch is needed only to make
it again. Vectors whose signs are free are compared through what does not depend on the signs.
"""

import json
import math

import torch

L = torch.linalg
torch.set_num_threads(1)
cases = []


def random(*shape, seed=0):
    g = torch.Generator().manual_seed(seed + 31 * len(shape) + sum(shape))
    return (torch.rand(shape, generator=g, dtype=torch.float64) * 2 - 1).mul(64).round().div(64)


def regular(*shape, seed=0):
    return random(*shape, seed=seed) + 2 * torch.eye(shape[-1], dtype=torch.float64)


def definite(*shape, seed=0):
    x = random(*shape, seed=seed)
    return (x @ x.mT * 16).round() / 16 + torch.diag(torch.arange(1.0, shape[-1] + 1, dtype=torch.float64))


def dump(x, digits):
    if x is None:
        return None
    number = lambda v: str(v) if math.isnan(v) or math.isinf(v) else float(f"{v:.{digits}g}")
    return {"shape": list(x.shape), "data": [number(v) for v in x.detach().double().reshape(-1).tolist()]}


def case(op, f, *inputs, backward=True, **attrs):
    """One call in both dtypes. f gives what is compared; the loss is the sum of it, weighted."""
    for dtype, digits in (("f32", 8), ("f64", 14)):
        xs = [x.detach().to({"f32": torch.float32, "f64": torch.float64}[dtype]).requires_grad_(backward) for x in inputs]
        row = {"op": op, "dtype": dtype, "attrs": {k: str(v) if v in (math.inf, -math.inf) else v for k, v in attrs.items()}, "inputs": [dump(x, 17) for x in xs]}
        try:
            ys = f(*xs, **attrs)
            ys = list(ys) if isinstance(ys, (tuple, list)) else [ys]
        except RuntimeError as e:
            row["error"] = str(e).split("\n")[0]
            cases.append(row)
            continue
        row["outputs"] = [dump(y, digits) for y in ys]
        if backward:
            loss = 0
            for k, y in enumerate(ys):
                w = torch.tensor([((5 * i + 3 * k) % 7) / 4 - 0.6 for i in range(y.numel())], dtype=y.dtype).reshape(y.shape)
                loss = loss + (y * w).sum()
            if loss.requires_grad:
                loss.backward()
            row["grads"] = [dump(x.grad, digits) for x in xs]
        cases.append(row)


def free_of_signs_svd(x, full_matrices=True):
    u, s, vh = L.svd(x, full_matrices=full_matrices)
    k = s.shape[-1]
    u, vh = u[..., :, :k], vh[..., :k, :]
    return (u * s.exp().unsqueeze(-2)) @ vh, s, u.square(), vh.square()


def free_of_signs_eigh(x, UPLO="L"):
    v, q = L.eigh((x + x.mT) / 2, UPLO=UPLO)
    return (q * v.exp().unsqueeze(-2)) @ q.mT, v, q.square()


def symmetric_cholesky(x, upper=False):
    return L.cholesky((x + x.mT) / 2, upper=upper)


def qr(x, mode="reduced"):
    return L.qr(x, mode=mode)


for shape in ((1, 1), (2, 2), (3, 3), (5, 5), (2, 3, 3), (2, 1, 4, 4), (0, 2, 2), (2, 0, 0)):
    case("det", L.det, random(*shape))
    case("slogdet", lambda x: L.slogdet(x)[1], regular(*shape), backward=True)
    case("slogdet_sign", lambda x: L.slogdet(x)[0], random(*shape, seed=4), backward=False)
    case("inv", L.inv, regular(*shape))
    case("cholesky", symmetric_cholesky, definite(*shape))
    case("cholesky", symmetric_cholesky, definite(*shape, seed=1), upper=True)
    case("eigh", free_of_signs_eigh, definite(*shape, seed=2))
    case("eigh", free_of_signs_eigh, random(*shape, seed=3), UPLO="U")
for shape in ((1, 1), (3, 3), (4, 2), (2, 4), (6, 5), (2, 5, 3), (2, 3, 5), (2, 1, 2, 2)):
    case("svd", free_of_signs_svd, random(*shape), full_matrices=False)
    # The vectors after the first k are any: PyTorch gives them no gradient, and nor do we.
    case("svd", free_of_signs_svd, random(*shape, seed=1), full_matrices=True)
    # The signs are LAPACK's.
    case("qr", qr, random(*shape, seed=2), mode="reduced")
    if shape[-2] <= shape[-1]:
        case("qr", qr, random(*shape, seed=3), mode="complete")
case("qr", qr, random(5, 3, seed=9), mode="complete", backward=False)
for a, b in (
    ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (2, 3)), ((2, 3, 3), (2, 3, 4)), ((2, 3, 3), (3, 4)), ((3, 3), (2, 3, 4)),
    ((2, 1, 3, 3), (4, 3, 2)), ((2, 4, 4), (4,)), ((1, 1), (1,)), ((1, 1), (1, 1)), ((2, 2, 2), (2, 2)), ((3, 3), (3, 0)), ((0, 3, 3), (3, 2)),
    ((1, 3, 3), (2, 3, 1)), ((4, 4, 4), (4, 4)), ((3, 2, 2), (2, 2)),
):
    case("solve", L.solve, regular(*a), random(*b, seed=5))
for a, b in (((3, 3), (2, 3)), ((2, 3, 3), (4, 3)), ((3, 3), (2, 4, 3)), ((2, 1, 2, 2), (3, 2, 2))):
    case("solve", L.solve, regular(*a), random(*b, seed=6), left=False)
for upper in (False, True):
    for unitriangular in (False, True):
        for a, b, left in (((3, 3), (3, 2), True), ((2, 3, 3), (3, 4), True), ((3, 3), (2, 2, 3), False), ((2, 1, 4, 4), (3, 4, 4), False)):
            case("solve_triangular", L.solve_triangular, regular(*a), random(*b, seed=7), upper=upper, left=left, unitriangular=unitriangular)
# What is refused, and what is not.
singular = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 0.0]], dtype=torch.float64)
rank_one = torch.ones(3, 3, dtype=torch.float64)
for m in (singular, rank_one, torch.zeros(2, 2, dtype=torch.float64), torch.stack([regular(3, 3), singular])):
    # PyTorch's gradient depends on the rounding of the last pivot; that of ours is compared with cofactors in values.rs.
    case("det", L.det, m, backward=False)
    case("inv", L.inv, m, backward=False)
    case("solve", L.solve, m, torch.ones(m.shape[-1], 2, dtype=torch.float64), backward=False)
    # Whether the last pivot is zero or rounding depends on the order of the sums.
    if m.abs().max() <= 1:
        case("slogdet", lambda x: L.slogdet(x)[1], m, backward=False)
case("cholesky", L.cholesky, -definite(3, 3), backward=False)
case("cholesky", L.cholesky, torch.stack([definite(2, 2), torch.tensor([[1.0, 2.0], [2.0, 1.0]])]), backward=False)
case("cholesky", L.cholesky, torch.zeros(2, 2), backward=False)
for f, op in ((L.det, "det"), (L.inv, "inv"), (L.cholesky, "cholesky"), (L.eigh, "eigh"), (lambda x: L.slogdet(x)[1], "slogdet")):
    case(op, f, random(2, 3), backward=False)
    case(op, f, random(3), backward=False)
for f, op in ((L.svd, "svd"), (L.qr, "qr")):
    case(op, f, random(3), backward=False)
for a, b in (((3, 3), (4,)), ((3, 3), (4, 2)), ((2, 3, 3), (2, 4)), ((2, 3, 3), (4, 3, 2)), ((2, 3), (3,)), ((3, 3), ())):
    case("solve", L.solve, random(*a), random(*b), backward=False)
case("solve", L.solve, random(3, 3), random(3), left=False, backward=False)
nans = torch.full((3, 3), math.nan, dtype=torch.float64)
for f, op in ((L.svd, "svd"), (L.eigh, "eigh"), (L.cholesky, "cholesky"), (L.det, "det")):
    case(op, f, nans, backward=False)
large = random(12, 12)
case("det", L.det, large)
case("svd_values", lambda x: L.svd(x)[1], large, backward=False)


# --- functions of several ops ---------------------------------------------------------------------------------------------

ours = lambda name: lambda *xs, **attrs: getattr(L, name)(*xs, **attrs)
for shape in ((1, 1), (3, 3), (4, 2), (2, 4), (2, 5, 3), (2, 3, 5), (2, 1, 2, 2)):
    x = random(*shape, seed=11)
    case("svdvals", ours("svdvals"), x)
    case("pinv", ours("pinv"), x)
    case("pinv", ours("pinv"), x, rtol=0.3, backward=False)
    case("pinv", ours("pinv"), x, atol=0.25, backward=False)
    case("matrix_rank", ours("matrix_rank"), x, backward=False)
    case("matrix_rank", ours("matrix_rank"), x, atol=0.5, backward=False)
    case("matrix_rank", ours("matrix_rank"), x, atol=0.5, rtol=0.7, backward=False)
    for norm in ("fro", "nuc", 2.0, -2.0, 1.0, -1.0, math.inf, -math.inf):
        case("matrix_norm", lambda x, ord: L.matrix_norm(x, ord), x, ord=norm)
    case("matrix_norm", lambda x, ord, keepdim: L.matrix_norm(x, ord, keepdim=keepdim), x, ord=1.0, keepdim=True)
    for norm in (2.0, 1.0, 0.0, 3.5, math.inf, -math.inf):
        case("vector_norm", lambda x, ord: L.vector_norm(x, ord), x, ord=norm, backward=norm != 0)
        case("vector_norm", lambda x, ord, dim, keepdim: L.vector_norm(x, ord, dim, keepdim), x, ord=norm, dim=[-1], keepdim=True, backward=norm != 0)
    case("cond", lambda x: L.cond(x), x)
    case("cond", lambda x, p: L.cond(x, p), x, p=-2.0)
for shape in ((3, 4, 2), (2, 3, 4, 2)):
    for dim in ([0, 2], [-1, 0], [1, 0]):
        for norm in ("fro", "nuc", 2.0, -1.0, math.inf):
            case("matrix_norm", lambda x, ord, dim, keepdim: L.matrix_norm(x, ord, dim, keepdim), random(*shape, seed=12), ord=norm, dim=dim, keepdim=len(shape) == 4)
low = random(4, 2, seed=13) @ random(2, 5, seed=14)
for x in (low, torch.stack([low, random(4, 5, seed=15)]), torch.zeros(2, 3)):
    case("pinv", ours("pinv"), x, backward=False)
    case("matrix_rank", ours("matrix_rank"), x, backward=False)
for shape in ((1, 1), (3, 3), (2, 4, 4), (0, 2, 2)):
    x = regular(*shape, seed=16)
    case("eigvalsh", lambda x: L.eigvalsh((x + x.mT) / 2), definite(*shape, seed=17))
    for n in (0, 1, 2, 3, 7, -1, -2):
        case("matrix_power", lambda x, n: L.matrix_power(x, n), x, n=n, backward=n != 0)
    for times in (0.01, 1.0, 6.0):
        case("matrix_exp", L.matrix_exp, x * times)
    case("logdet", torch.logdet, definite(*shape, seed=17))
    for p in (1.0, -1.0, math.inf, -math.inf, "fro", "nuc"):
        # PyTorch's own gradient is an error.
        case("cond", lambda x, p: L.cond(x, p), x, p=p, backward=False)
case("matrix_exp", L.matrix_exp, torch.zeros(2, 2))
case("matrix_exp", L.matrix_exp, random(2, 3), backward=False)
case("logdet", torch.logdet, torch.tensor([[[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]]]), backward=False)
case("eigvalsh", L.eigvalsh, random(3, 3, seed=18), backward=False)
case("eigvalsh", L.eigvalsh, random(3, 3, seed=18), UPLO="U", backward=False)
case("pinv", L.pinv, (lambda x: (x + x.mT) / 2)(random(3, 3, seed=18)), hermitian=True, backward=False)
case("matrix_rank", L.matrix_rank, (lambda x: x @ x.mT)(random(4, 2, seed=18)), hermitian=True, backward=False)
for a, b in (((4, 2), (4, 3)), ((3, 3), (3, 1)), ((2, 4), (2, 3)), ((2, 5, 3), (2, 5, 2)), ((2, 3, 5), (2, 3, 2))):
    # The driver that takes any rank.
    case("lstsq", lambda a, b: L.lstsq(a, b, driver="gelsd").solution, random(*a, seed=19), random(*b, seed=20))
    case("lstsq_residuals", lambda a, b: L.lstsq(a, b, driver="gelsd").residuals, random(*a, seed=19), random(*b, seed=20), backward=False)
    case("lstsq_rank", lambda a, b: L.lstsq(a, b, driver="gelsd").rank, random(*a, seed=19), random(*b, seed=20), backward=False)
case("lstsq", lambda a, b: L.lstsq(a, b, driver="gelsd").solution, low, random(4, 2, seed=21), backward=False)
for shapes in (((2, 3), (3, 4)), ((2, 3), (3, 4), (4, 1)), ((3,), (3, 5), (5, 2), (2, 4)), ((5, 2), (2, 7), (7, 3), (3,)), ((3,), (3, 2), (2,)), ((3,), (3,))):
    case("multi_dot", lambda *xs: L.multi_dot(xs), *(random(*s, seed=22 + i) for i, s in enumerate(shapes)))
case("tensorinv", L.tensorinv, random(4, 6, 8, 3, seed=23))
case("tensorinv", L.tensorinv, random(6, 2, 3, seed=24), ind=1)
case("tensorsolve", L.tensorsolve, random(2, 3, 6, seed=25), random(2, 3, seed=26))
case("vecdot", L.vecdot, random(2, 3, 4), random(2, 3, 4, seed=1))
case("vecdot", L.vecdot, random(2, 3, 4), random(3, 1, seed=1), dim=1)
for op, f in (("pinv", L.pinv), ("matrix_rank", L.matrix_rank), ("svdvals", L.svdvals), ("cond", L.cond), ("matrix_norm", L.matrix_norm)):
    case(op, f, random(3), backward=False)
for op, f in (("eigvalsh", L.eigvalsh), ("matrix_power", lambda x: L.matrix_power(x, 2))):
    case(op, f, random(2, 3), backward=False)
case("multi_dot", lambda *xs: L.multi_dot(xs), random(2, 3), random(4, 2), backward=False)
case("multi_dot", lambda *xs: L.multi_dot(xs), random(2, 3), backward=False)
case("tensorinv", L.tensorinv, random(4, 6, 8, 2), backward=False)
case("tensorsolve", L.tensorsolve, random(2, 3, 5), random(2, 3), backward=False)
case("cond", lambda x, p: L.cond(x, p), random(2, 3), p=1.0, backward=False)
case("matrix_norm", lambda x, ord: L.matrix_norm(x, ord), random(2, 3), ord=3.0, backward=False)


# --- decompositions in LAPACK's forms, and functions outside of linalg ------------------------------------------------------

outside = lambda name: lambda *xs, **attrs: getattr(torch, name)(*xs, **attrs)
for shape in ((1, 1), (3, 3), (4, 2), (2, 4), (2, 3, 3), (2, 0, 0)):
    x = random(*shape, seed=30)
    case("lu", ours("lu"), x)
    case("lu_parts", lambda x: L.lu_factor_ex(x)[0], x)
    case("lu_pivots", lambda x: L.lu_factor_ex(x)[1], x, backward=False)
    case("torch.geqrf", outside("geqrf"), x, backward=False)
    if shape[-2] >= shape[-1]:
        case("householder_product", lambda x: L.householder_product(x, x[..., 0, :] * 0.5) if x.shape[-1] else x, x)
        case("polar", ours("polar"), x)
for shape in ((1, 1), (3, 3), (2, 4, 4)):
    x, spd, b = regular(*shape, seed=31), definite(*shape, seed=32), random(*shape, seed=33)
    case("inv_ex", lambda x: L.inv_ex(x)[0], x)
    case("solve_ex", lambda x, b: L.solve_ex(x, b)[0], x, b)
    case("cholesky_ex", lambda x: L.cholesky_ex((x + x.mT) / 2)[0], spd)
    case("matrix_sqrth", lambda x: L.matrix_sqrth((x + x.mT) / 2), spd)
    case("ldl_parts", lambda x: L.ldl_factor_ex((x + x.mT) / 2)[0], b + b.mT, backward=False)
    case("ldl_pivots", lambda x: L.ldl_factor_ex((x + x.mT) / 2)[1], b + b.mT, backward=False)
    for upper in (False, True):
        case("torch.cholesky_inverse", outside("cholesky_inverse"), x.tril(), upper=upper, backward=False)
        case("torch.cholesky_solve", outside("cholesky_solve"), b, x.triu() if upper else x.tril(), upper=upper)
    case("torch.triangular_solve", lambda b, x: torch.triangular_solve(b, x), b, x)
    case("torch.pinverse", outside("pinverse"), b)
    case("torch.slogdet", lambda x: torch.slogdet(x)[1], x)
for dims in ([0, 2], [2, 0]):
    case("tensorsolve", L.tensorsolve, random(2, 3, 6, seed=25), random(3, 2, seed=26), dims=dims)
case("vander", L.vander, random(2, 3, seed=34))
case("vander", L.vander, random(3, seed=34), N=5)
case("cross", L.cross, random(2, 3, seed=35), random(2, 3, seed=36))
case("diagonal", L.diagonal, random(2, 3, 4, seed=37), offset=1)
for dim in (None, [0], [0, 2]):
    case("norm", lambda x, **attrs: L.norm(x, **attrs), random(2, 3, 4, seed=38), **({"dim": dim} if dim else {}))
case("norm", lambda x, ord, dim: L.norm(x, ord, dim), random(2, 3, 4, seed=38), ord=1.0, dim=[0, 2])
case("norm", lambda x, ord, dim: L.norm(x, ord, dim), random(2, 3, 4, seed=38), ord="nuc", dim=[0, 2])

with open("golden.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
print(len(cases), "calls")
