"""Results of oflow beside those of PyTorch."""

import torch

from .values import back, leaves

# Relative and absolute tolerance of a dtype; others are compared exactly.
TOLERANCES = {
    torch.float64: 1e-7,
    torch.float32: 2e-4,
    torch.float16: 5e-3,
    torch.bfloat16: 3e-2,
    torch.complex128: 1e-7,
    torch.complex64: 2e-4,
}


# Ranks add up parts of sums, each rounded to the dtype: an error of 16-bit floats counts beside the largest number of a result.
SHORT = {torch.float16, torch.bfloat16}
in_parts = False


def differ(ours, theirs):
    """None, or how the results differ."""
    ours, theirs = [back(v) for v in leaves(ours)], leaves(theirs)
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    return next((said for pair in zip(ours, theirs) if (said := one_differs(*pair))), None)


def one_differs(ours, theirs):
    if not isinstance(theirs, torch.Tensor):
        if isinstance(ours, torch.Tensor):
            return f"a tensor, not {type(theirs).__name__}"
        if isinstance(theirs, torch.dtype):
            return None if str(ours).rpartition(".")[2] == str(theirs)[6:] else f"{ours}, not {str(theirs)[6:]}"
        both_nan = ours != ours and theirs != theirs
        return None if both_nan or ours == theirs else f"{ours!r}, not {theirs!r}"
    theirs = theirs.detach().resolve_conj().resolve_neg()
    if not isinstance(ours, torch.Tensor):
        return f"{type(ours).__name__}, not a tensor"
    if ours.shape != theirs.shape:
        return f"shape {tuple(ours.shape)}, not {tuple(theirs.shape)}"
    if ours.dtype != theirs.dtype:
        return f"dtype {str(ours.dtype)[6:]}, not {str(theirs.dtype)[6:]}"
    tolerance = TOLERANCES.get(theirs.dtype, 0)
    least = tolerance
    if in_parts and theirs.dtype in SHORT:
        finite = theirs[theirs.isfinite()].abs().double()
        least = tolerance * max(1.0, finite.max().item() if finite.numel() else 0.0)
    return None if torch.allclose(ours, theirs, rtol=tolerance, atol=least, equal_nan=True) else "values"


def same_meta(ours, theirs):
    """Of random results: their shapes and dtypes."""
    for x, y in zip([back(v) for v in leaves(ours)], leaves(theirs), strict=True):
        if isinstance(y, torch.Tensor) and (x.shape, x.dtype) != (y.shape, y.dtype):
            return f"{str(x.dtype)[6:]}{list(x.shape)}, not {str(y.dtype)[6:]}{list(y.shape)}"
    return None


# Where values tie, any of their indices is right: the input there is the value.
TIES = {"sort", "argsort", "topk", "kthvalue", "mode", "median", "nanmedian", "msort", "max/reduction_with_dim", "min/reduction_with_dim"}


def ties(name, ours, theirs, sample):
    if name == "argsort":
        dim = sample.kwargs.get("dim", sample.args[0] if sample.args else -1)
        same = torch.equal(sample.input.gather(dim, back(ours)), sample.input.gather(dim, theirs))
    else:
        same = torch.equal(back(leaves(ours)[0]), leaves(theirs)[0])
    return None if same else "values"


def factors(name, ours, theirs, sample):
    """Factors are free in signs, phases and order: their product is the input, and what has no freedom is the same."""
    ours = [back(v) for v in leaves(ours)]
    theirs = [v.detach() for v in leaves(theirs)]
    said = next(
        (f"{str(x.dtype)[6:]}{list(x.shape)}, not {str(y.dtype)[6:]}{list(y.shape)}" for x, y in zip(ours, theirs) if (x.shape, x.dtype) != (y.shape, y.dtype)),
        None,
    )
    if said or len(ours) != len(theirs):
        return said or f"{len(ours)} results, not {len(theirs)}"
    matrix = sample.input.detach()
    close = {"rtol": 1e2 * TOLERANCES[matrix.dtype], "atol": 1e2 * TOLERANCES[matrix.dtype]}
    made = PRODUCTS[name](matrix, *ours)
    return None if made is None or torch.allclose(made[0], made[1].to(made[0].dtype), **close) else "the product of the factors is not the input"


def in_one_order(name, ours, theirs):
    """Eigenvalues that come in any order, and their vectors, as ours are ordered."""
    if name not in ("linalg.eig", "linalg.eigvals"):
        return ours, theirs
    own, values = back(leaves(ours)[0]), leaves(theirs)[0]
    if own.shape != values.shape or not own.numel():
        return ours, theirs
    order = (own.unsqueeze(-1) - values.detach().unsqueeze(-2)).abs().argmin(-1)
    if name == "linalg.eigvals":
        return ours, values.gather(-1, order)
    vectors = theirs[1]
    return ours, (values.gather(-1, order), vectors.gather(-1, order.unsqueeze(-2).expand(vectors.shape)))


def _svd(matrix, u, s, v):
    return (u[..., : s.shape[-1]] * s.unsqueeze(-2)) @ v[..., : s.shape[-1], :], matrix


def _eig(matrix, values, vectors):
    return vectors * values.unsqueeze(-2), matrix.to(vectors.dtype) @ vectors


def _eigh(matrix, values, vectors):
    # One triangle is read: what the factors make is compared with itself mirrored.
    made = (vectors * values.unsqueeze(-2)) @ vectors.mH
    return made, made.mH


def _qr(matrix, q, r):
    return (q @ r, matrix) if q.numel() or not matrix.numel() else None


PRODUCTS = {
    "linalg.svd": _svd,
    "svd": lambda matrix, u, s, v: _svd(matrix, u, s, v.mH),
    "linalg.eig": _eig,
    "linalg.eigh": _eigh,
    "linalg.qr": _qr,
    "qr": _qr,
}
