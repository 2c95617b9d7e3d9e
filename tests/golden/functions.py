"""Makes functions.json: what PyTorch gives for small calls of functions that are several ops, forward and gradient.

Run it with any Python that has torch, in this folder: `python functions.py`. The test `golden_functions` reads the file.
"""

import contextlib
import io
import itertools
import json

import torch
import torch.nn.functional as F

with contextlib.redirect_stdout(io.StringIO()):
    from make import DTYPES, dump, inf, nan, values

cases = []


def told(a):
    """An argument of a call by name."""
    if isinstance(a, torch.Tensor):
        return {"tensor": dump(a)}
    if isinstance(a, (list, tuple)) and a and isinstance(a[0], torch.Tensor):
        return {"tensors": [dump(t) for t in a]}
    kind = {bool: "bool", int: "int", float: "float", str: "text"}.get(type(a), "ints")
    if kind == "ints" and any(isinstance(v, float) for v in a):
        return {"floats": [float(v) for v in a]}
    return {kind: str(a) if kind == "float" else list(a) if kind == "ints" else a}


def case(name, f, *args, backward=True, note="", **named):
    """`f` takes the tensors among the arguments, in order; a list of them counts as its members."""
    flat = lambda xs: list(itertools.chain(*([x] if isinstance(x, torch.Tensor) else x if isinstance(x, (list, tuple)) and x and isinstance(x[0], torch.Tensor) else [] for x in xs)))
    given = flat([*args, *named.values()])
    ins = [t.clone().requires_grad_(backward and t.dtype.is_floating_point) for t in given]
    out = f(*ins)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    dy, grads = None, None
    wants = [t for t in ins if t.requires_grad]
    if wants and outs and outs[0].requires_grad and outs[0].dtype.is_floating_point:
        dy = values(outs[0].shape, "f64", start=3).to(outs[0].dtype)
        found = iter(torch.autograd.grad(outs[0], wants, dy, allow_unused=True))
        grads = [dump(next(found)) if t.requires_grad else None for t in ins]
    cases.append({"function": name, "note": note, "args": [told(a) for a in args], "named": {k: told(v) for k, v in named.items()},
                  "outputs": [dump(t) for t in outs], "dy": dump(dy), "grads": grads})


x = values((2, 3, 4), "f64")

# --- shapes --------------------------------------------------------------------------------------------------------------

for a, b in (([0], [2]), ([-1, 0], [0, 1]), ([2, 1], [0, 2])):
    case("movedim", lambda x: x.movedim(a, b), x, a, b)
for dim, sizes in ((2, [2, 2]), (0, [2, 1, -1]), (-1, [4, 1])):
    case("unflatten", lambda x: x.unflatten(dim, sizes), x, dim, sizes)
for n in ([1, 1, 1], [2, 1, 3], [2, 1, 1, 2], [1, 0, 1]):
    case("repeat", lambda x: x.repeat(n), x, n)
for n in ([2], [3, 1, 2], [2, 2, 1, 1]):
    case("tile", lambda x: x.tile(n), x, n)
for n, dim in ((3, 1), (2, -1), (0, 0), (1, 2)):
    case("repeat_interleave", lambda x: x.repeat_interleave(n, dim), x, n, dim=dim)
case("repeat_interleave", lambda x: x.repeat_interleave(2), values((2, 3), "i32"), 2)
for dim in (0, 1, -1):
    case("unbind", lambda x: x.unbind(dim), x, dim)
for shifts, dims in (([1], [0]), ([-2, 5], [1, 2]), ([3], []), ([0], [1]), ([1, 1], [2, 2])):
    case("roll", lambda x: x.roll(shifts, dims), x, shifts, dims)
for k in (0, 1, 2, 3, -1, 5):
    case("rot90", lambda x: torch.rot90(x, k, (0, 2)), x, k, [0, 2])
for how in ("ij", "xy"):
    grid = [values((2,)), values((3,), start=4), values((4,), start=9)]
    case("meshgrid", lambda *xs: torch.meshgrid(*xs, indexing=how), grid, indexing=how)
for offset in (0, 1, -1, 3):
    case("diag_embed", lambda x: torch.diag_embed(x, offset), values((2, 3)), offset)
    case("diag", lambda x: torch.diag(x, offset), values((3,)), offset)
    case("diag", lambda x: torch.diag(x, offset), values((3, 4)), offset)
case("diag_embed", torch.diag_embed, values((2, 0)), 0)
for d in ("i32", "bool"):
    case("diag_embed", lambda x: torch.diag_embed(x, -1), values((2, 3), d), -1)
case("trace", torch.trace, values((3, 4)))
case("trace", torch.trace, values((4, 3), "f64"))
pair = [values((2, 3)), values((2, 2), start=4)]
case("hstack", lambda *xs: torch.hstack(xs), pair)
case("hstack", lambda *xs: torch.hstack(xs), [values((2,)), values((3,), start=4)])
case("vstack", lambda *xs: torch.vstack(xs), [values((2, 3)), values((3,), start=4)])

# --- reductions ----------------------------------------------------------------------------------------------------------

for dims, keep in (([], False), ([1], False), ([0, -1], True)):
    d = dict(dim=tuple(dims) or None, keepdim=keep)
    for n in (1.0, 0.0, 2.0):
        case("var", lambda x: torch.var(x, correction=n, **d), x, dims, keepdim=keep, correction=n)
        case("std", lambda x: torch.std(x, correction=n, **d), x, dims, keepdim=keep, correction=n)
    for p in (2.0, 1.0, inf, -inf, 3.0, 0.5):
        case("norm", lambda x: torch.linalg.vector_norm(x, p, **d), x, p, dims, keep)
    case("norm", lambda x: torch.linalg.vector_norm(x, 0, **d), x, 0.0, dims, keep, backward=False)
    all_dims = tuple(dims) or (0, 1, 2)
    case("logsumexp", lambda x: torch.logsumexp(x, all_dims, keep), x, dims, keep)
    holes = torch.where(values((2, 3, 4), "bool"), x, nan)
    case("nansum", lambda x: torch.nansum(x, all_dims, keep), holes, dims, keep)
    case("nanmean", lambda x: torch.nanmean(x, all_dims, keep), holes, dims, keep, backward=False)
    case("aminmax", lambda x: (torch.amin(x, all_dims, keep), torch.amax(x, all_dims, keep)), x, dims, keep)
case("var", lambda x: torch.var(x, 1), values((3, 4), "bf16"), [1])
case("var", torch.var, torch.tensor([2.5]), backward=False, note="one element")
case("norm", torch.linalg.vector_norm, torch.zeros(3), note="zero")
case("std", lambda x: torch.std(x, 1), torch.ones(2, 3), [1], note="equal")
for d in ("u8", "i8", "i16", "i32", "i64", "bool"):
    case("logsumexp", lambda x: torch.logsumexp(x, 1), values((3, 4), d), [1], note="integers")
case("argmax", torch.argmax, x.float())
case("argmin", torch.argmin, x.float())
case("argmax", lambda x: torch.argmax(x, keepdim=True), x.float(), keepdim=True)
case("argmin", torch.argmin, torch.tensor(2.5))
case("max", torch.max, x, values((3, 1), "f64", start=7))
case("min", torch.min, x, values((2, 3, 4), "f64", start=7))
case("squeeze", torch.squeeze, values((1, 3, 1, 2), "f64"))
case("squeeze", torch.squeeze, values((1, 1)))
case("clamp", lambda x: x.clamp(min=-0.3), x, min=-0.3)
case("clamp", lambda x: x.clamp(max=0.7), x, max=0.7)
case("clamp", lambda x: x.clamp(min=-0.3, max=0.7), x, min=-0.3, max=0.7)
case("clamp", lambda x: x.clamp(0.2), x, 0.2)
case("clamp", lambda x, lo: x.clamp(lo), x, values((4,), "f64", start=5))
case("clamp", lambda x, lo, hi: x.clamp(lo, hi), x, values((4,), "f64", start=5) - 1, values((3, 1), "f64", start=8) + 1)
case("logsumexp", lambda x: torch.logsumexp(x, 0), torch.tensor([[1e4, -inf, inf], [1e4, -inf, 2.0]]), [0], backward=False, note="large")
for p in (2.0, 1.0, 3.0):
    case("normalize", lambda x: F.normalize(x, p, 1), x, p, 1)

# --- products ------------------------------------------------------------------------------------------------------------

a, b = values((3, 4), "f64"), values((4, 5), "f64", start=11)
for beta, alpha in ((1, 1), (0.5, 2.0), (0, 3)):
    case("addmm", lambda x, a, b: torch.addmm(x, a, b, beta=beta, alpha=alpha), values((3, 5), "f64", start=2), a, b, beta=beta, alpha=alpha, backward=beta != 0)
case("addmm", torch.addmm, values((5,), "f64", start=2), a, b)
case("addmv", torch.addmv, values((3,), "f64", start=2), a, values((4,), "f64", start=7))
case("baddbmm", torch.baddbmm, values((2, 3, 5), "f64"), values((2, 3, 4), "f64", start=1), values((2, 4, 5), "f64", start=3))
case("dot", torch.dot, values((5,)), values((5,), start=4))
case("outer", torch.outer, values((3,)), values((4,), start=4))
case("tensordot", lambda a, b: torch.tensordot(a, b, ([1, 0], [0, 2])), x, values((3, 5, 2), "f64", start=4), [1, 0], [0, 2])
case("tensordot", lambda a, b: torch.tensordot(a, b, 1), x, values((4, 2), "f64", start=4), 1)
case("tensordot", lambda a, b: torch.tensordot(a, b, 0), values((2,)), values((3,)), 0)
case("kron", torch.kron, values((2, 3)), values((3, 2), start=4))
case("kron", torch.kron, values((2,)), values((2, 3), start=4))
case("cross", lambda a, b: torch.linalg.cross(a, b, dim=-1), values((2, 3)), values((2, 3), start=4), -1)
case("cross", lambda a, b: torch.linalg.cross(a, b, dim=0), values((3, 2)), values((3, 2), start=4), 0)
for equation, *shapes in (("ij,jk->ik", (2, 3), (3, 4)), ("ij,kj", (2, 3), (4, 3)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 2)), ("ii", (3, 3)), ("ii->i", (3, 3)),
                          ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("i,j->ij", (2,), (3,)), ("i,i", (4,), (4,)), ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
                          ("...ij,...jk->...ik", (2, 3, 4), (4, 2)), ("...ij,...jk", (2, 1, 3, 4), (3, 4, 2)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
                          ("ijk,k->ij", (2, 3, 4), (4,)), ("ij,ij->ij", (2, 3), (2, 3)), ("iij,jk->ki", (3, 3, 2), (2, 4)), ("ab,cd->", (2, 3), (2, 2)),
                          ("ij,j->i", (2, 3), (1,)), ("ij->ij", (2, 3)), ("abc,cd,abe->ed", (2, 3, 4), (4, 2), (2, 3, 5))):
    xs = [values(s, "f64", start=5 * i) for i, s in enumerate(shapes)]
    case("einsum", lambda *xs: torch.einsum(equation, *xs), equation, xs)

# --- elements by index ---------------------------------------------------------------------------------------------------

m = values((4, 5), "f64")
for dim, ids in ((0, values((6, 5), "i64", below=4)), (0, values((3, 2), "i64", below=4)), (1, values((2, 7), "i64", below=5)), (-1, values((4, 0), "i64", below=5))):
    case("gather", lambda x, i: x.gather(dim, i), m, dim, ids)
    src = values(ids.shape, "f64", start=6)
    case("scatter_add", lambda x, i, v: x.scatter_add(dim, i, v), m, dim, ids, src)
    case("scatter", lambda x, i: x.scatter(dim, i, 2.5), m, dim, ids, 2.5)
once = torch.tensor([[1, 0, 3, 2], [0, 4, 1, 3]])
case("scatter", lambda x, i, v: x.scatter(1, i, v), m, 1, once, values((2, 4), "f64", start=6))
case("scatter", lambda x, i, v: x.scatter(1, i, v), values((4, 5), "i32"), 1, once, values((2, 4), "i32", start=6))
case("gather", lambda x, i: x.gather(0, i), values((), "f64"), 0, torch.tensor(0))
case("take_along_dim", lambda x, i: x.take_along_dim(i, 1), m, torch.tensor([[0, 3, 3]]), 1)
case("take_along_dim", lambda x, i: x.take_along_dim(i, 0), values((3, 1), "f64"), torch.tensor([[0, 2], [1, 1]]), 0)
line = torch.tensor([2, 0, 2])
case("index_add", lambda x, i, v: x.index_add(0, i, v), m, 0, line, values((3, 5), "f64", start=6))
case("index_add", lambda x, i, v: x.index_add(1, i, v, alpha=-2), m, 1, line, values((4, 3), "f64", start=6), alpha=-2)
case("index_copy", lambda x, i, v: x.index_copy(0, i, v), m, 0, torch.tensor([2, 0]), values((2, 5), "f64", start=6))
for dim, keep in ((0, False), (1, True), (-1, False)):
    for name, f in (("max", torch.max), ("min", torch.min)):
        case(name, lambda x: f(x, dim, keep), values((3, 4, 2), "f64"), dim, keep)
        case(name, lambda x: f(x, dim, keep), values((3, 4, 2), "i32"), dim, keep)
for name, f in (("max", torch.max), ("min", torch.min)):
    case(name, f, m)
    case(name, lambda x: f(x, 0), torch.tensor([1.0, nan, 3.0]), 0, backward=False)

# --- losses --------------------------------------------------------------------------------------------------------------

p, t = torch.sigmoid(values((3, 4), "f64")), torch.sigmoid(values((3, 4), "f64", start=9))
y, z = values((3, 4), "f64"), values((3, 4), "f64", start=9)
signs = torch.sign(values((3, 4), "f64", start=5))
row = torch.sign(values((3,), "f64", start=5))
for r in ("mean", "sum", "none"):
    case("mse_loss", lambda a, b: F.mse_loss(a, b, reduction=r), y, z, reduction=r)
    case("l1_loss", lambda a, b: F.l1_loss(a, b, reduction=r), y, z, reduction=r)
    case("smooth_l1_loss", lambda a, b: F.smooth_l1_loss(a, b, reduction=r, beta=0.3), y, z, beta=0.3, reduction=r)
    case("smooth_l1_loss", lambda a, b: F.smooth_l1_loss(a, b, reduction=r, beta=0.0), y, z, beta=0.0, reduction=r)
    case("huber_loss", lambda a, b: F.huber_loss(a, b, reduction=r, delta=0.3), y, z, delta=0.3, reduction=r)
    case("binary_cross_entropy", lambda a, b: F.binary_cross_entropy(a, b, reduction=r), p, t, reduction=r)
    weight = values((4,), "f64", positive=True)
    case("binary_cross_entropy", lambda a, b, w: F.binary_cross_entropy(a, b, w.detach(), reduction=r), p, t, weight=weight, reduction=r, backward=False)
    case("binary_cross_entropy_with_logits", lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction=r), y, t, reduction=r)
    case("binary_cross_entropy_with_logits", lambda a, b, v, w: F.binary_cross_entropy_with_logits(a, b, v, pos_weight=w, reduction=r), y, t,
         weight=weight, pos_weight=weight * 2, reduction=r, backward=False)
    case("kl_div", lambda a, b: F.kl_div(a, b, reduction=r), y, t, reduction=r)
    case("kl_div", lambda a, b: F.kl_div(a, b, reduction=r, log_target=True), y, z, reduction=r, log_target=True)
    case("soft_margin_loss", lambda a, b: F.soft_margin_loss(a, b.detach(), reduction=r), y, signs, reduction=r, backward=False)
    case("hinge_embedding_loss", lambda a, b: F.hinge_embedding_loss(a, b, 0.6, reduction=r), y, signs, margin=0.6, reduction=r, backward=False)
    case("margin_ranking_loss", lambda a, b, c: F.margin_ranking_loss(a, b, c, 0.3, reduction=r), y, z, signs, margin=0.3, reduction=r)
    for full in (False, True):
        case("poisson_nll_loss", lambda a, b: F.poisson_nll_loss(a, b, full=full, reduction=r), y, t * 4, full=full, reduction=r, backward=not full)
        case("gaussian_nll_loss", lambda a, b, v: F.gaussian_nll_loss(a, b, v, full=full, reduction=r), y, z, p * 3, full=full, reduction=r)
    case("poisson_nll_loss", lambda a, b: F.poisson_nll_loss(a, b, log_input=False, reduction=r), p, t * 4, log_input=False, reduction=r)
    case("cosine_embedding_loss", lambda a, b, c: F.cosine_embedding_loss(a, b, c, 0.1, reduction=r), y, z, row, margin=0.1, reduction=r, backward=False)
    for swap in (False, True):
        case("triplet_margin_loss", lambda a, b, c: F.triplet_margin_loss(a, b, c, 2.0, swap=swap, reduction=r), y, z, values((3, 4), "f64", start=20), margin=2.0, swap=swap, reduction=r)
case("kl_div", lambda a, b: F.kl_div(a, b, reduction="batchmean"), y, t, reduction="batchmean")
case("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, 1), y, z)
case("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, -1), x, values((2, 3, 4), "f64", start=7), -1)
for q in (2.0, 1.0, 3.0):
    case("pairwise_distance", lambda a, b: F.pairwise_distance(a, b, q), y, z, p=q)
case("pairwise_distance", lambda a, b: F.pairwise_distance(a, b, keepdim=True), y, z, keepdim=True)

# --- convolutions and pooling --------------------------------------------------------------------------------------------

for n, (conv, turned, pool, avg, widest, means) in enumerate((
    (F.conv1d, F.conv_transpose1d, F.max_pool1d, F.avg_pool1d, F.adaptive_max_pool1d, F.adaptive_avg_pool1d),
    (F.conv2d, F.conv_transpose2d, F.max_pool2d, F.avg_pool2d, F.adaptive_max_pool2d, F.adaptive_avg_pool2d),
    (F.conv3d, F.conv_transpose3d, F.max_pool3d, F.avg_pool3d, F.adaptive_max_pool3d, F.adaptive_avg_pool3d),
), 1):
    size = (7, 6, 5)[:n]
    image, weight, bias = values((2, 4, *size), "f64"), values((6, 4, *(3, 2, 3)[:n]), "f64", start=3), values((6,), "f64", start=8)
    grouped = values((6, 2, *(2, 3, 2)[:n]), "f64", start=3)
    name = f"conv{n}d"
    case(name, lambda x, w: conv(x, w), image, weight)
    case(name, lambda x, w, b: conv(x, w, b, 2, 1), image, weight, bias, [2], [1])
    case(name, lambda x, w, b: conv(x, w, b, 1, 0, 2, 2), image, grouped, bias, [1], [0], [2], 2)
    case(name, lambda x, w: conv(x, w, None, 1, "same"), image, weight, padding="same")
    case(name, lambda x, w: conv(x, w, None, 1, "same", 2), image, weight, padding="same", dilation=[2])
    case(name, lambda x, w: conv(x, w, None, 2, "valid"), image, weight, stride=[2], padding="valid")
    case(name, lambda x, w: conv(x, w), values((4, *size), "f64"), weight)
    back, few = values((6, 4, *(3, 2, 3)[:n]), "f64", start=3), values((2, 6, *(3, 3, 2)[:n]), "f64")
    out = values((4,), "f64", start=8)
    name = f"conv_transpose{n}d"
    case(name, lambda x, w: turned(x, w), few, back)
    case(name, lambda x, w, b: turned(x, w, b, 2, 1, 1), few, back, out, [2], [1], [1])
    case(name, lambda x, w: turned(x, w, None, 1, 0, 0, 2, 2), few, grouped, stride=[1], padding=[0], output_padding=[0], groups=2, dilation=[2])
    case(name, lambda x, w: turned(x, w), values((6, *(3, 3, 2)[:n]), "f64"), back)
    name = f"max_pool{n}d"
    case(name, lambda x: pool(x, 2), image, [2])
    case(name, lambda x: pool(x, 3, 2, 1), image, [3], [2], [1])
    case(name, lambda x: pool(x, 2, 2, 1, 2, True), image, [2], [2], [1], [2], True)
    case(name, lambda x: pool(x, 2, 3, 0, 1, True), image[0], [2], [3], ceil_mode=True)
    case(f"{name}_with_indices", lambda x: pool(x, 3, 2, 1, return_indices=True), image, [3], [2], [1])
    name = f"avg_pool{n}d"
    case(name, lambda x: avg(x, 2), image, [2])
    for ceil in (False, True):
        for count in (False, True):
            case(name, lambda x: avg(x, 3, 2, 1, ceil, count), image, [3], [2], [1], ceil, count)
    if n > 1:
        case(name, lambda x: avg(x, 2, 1, 1, divisor_override=3), image, [2], [1], [1], divisor_override=3)
    for to in ([1], [2], [3]):
        case(f"adaptive_max_pool{n}d", lambda x: widest(x, to * n), image, to)
        case(f"adaptive_avg_pool{n}d", lambda x: means(x, to * n), image, to)

# --- padding, other sizes, regrouping --------------------------------------------------------------------------------------

image = values((2, 4, 5, 6), "f64")
for pads in ([1, 2], [0, 1, 2, 0], [-1, 3, 2, -2], [0, 0], [1, 0, 0, 2, 1, 1, 0, 3], []):
    case("pad", lambda x: F.pad(x, pads), image, pads)
    case("pad", lambda x: F.pad(x, pads, value=2.5), image, pads, value=2.5)
case("pad", lambda x: F.pad(x, (1, 2), value=3), values((3, 4), "i64"), [1, 2], value=3)
case("pad", lambda x: F.pad(x, (1, 2), value=-inf), values((3, 4)), [1, 2], value=-inf)
for mode in ("reflect", "replicate", "circular"):
    for t, pads in ((image[0, 0], [2, 3]), (image[0], [1, 5]), (image[0], [2, 0, 1, 4]), (image, [5, 1, 0, 2]), (image, [0, 1, 2, 0, 3, 1]), (image[None], [1, 0, 2, 1, 0, 2]), (image, [-2, 1, 0, -1])):
        if 2 * (t.ndim - 2) <= len(pads) <= 2 * (t.ndim - 1):
            case("pad", lambda x: F.pad(x, pads, mode), t, pads, mode=mode)
case("pad", lambda x: F.pad(x, (1, 2), "circular"), values((2, 3, 4), "i32"), [1, 2], mode="circular")
for n in (1, 2, 3):
    t = values((2, 3, *(4, 5, 3)[:n]), "f64")
    for mode in ("nearest", "nearest-exact", "area", "linear", "bilinear", "bicubic", "trilinear"):
        if {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(mode, n) != n:
            continue
        for aligned in (None, False, True) if mode not in ("nearest", "nearest-exact", "area") else (None,):
            how = dict(mode=mode) | ({} if aligned is None else dict(align_corners=aligned))
            for size in ([7], [3], [9, 2, 5][:n]):
                case("interpolate", lambda x: F.interpolate(x, size[0] if len(size) == 1 else size, **how), t, size, **how)
            for scale in ([2.0], [0.6], [1.3, 2.6, 0.9][:n]):
                to = scale[0] if len(scale) == 1 else scale
                case("interpolate", lambda x: F.interpolate(x, scale_factor=to, **how), t, scale_factor=scale, **how)
                case("interpolate", lambda x: F.interpolate(x, scale_factor=to, recompute_scale_factor=True, **how), t, scale_factor=scale, recompute_scale_factor=True, **how)
case("interpolate", lambda x: F.interpolate(x, 7, mode="bilinear"), values((2, 3, 4, 5)), [7], mode="bilinear")
for r, shape in ((2, (2, 8, 3, 2)), (3, (9, 2, 2)), (1, (2, 3, 4, 5)), (2, (2, 2, 4, 1, 3))):
    case("pixel_shuffle", lambda x: F.pixel_shuffle(x, r), values(shape, "f64"), r)
for r, shape in ((2, (2, 2, 4, 6)), (3, (1, 3, 6)), (1, (2, 3, 4, 5))):
    case("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, r), values(shape, "f64"), r)
for g, shape in ((2, (2, 6, 3, 2)), (3, (2, 6, 4)), (1, (2, 3, 4)), (4, (1, 4, 2, 1, 2))):
    case("channel_shuffle", lambda x: F.channel_shuffle(x, g), values(shape, "f64"), g)
for kernel, dilation, padding, stride in (([2], [1], [0], [1]), ([3, 2], [1, 2], [1, 0], [2, 1]), ([2, 3], [2], [1], [1, 3]), ([5, 6], [1], [0], [1])):
    one = lambda v: v[0] if len(v) == 1 else v
    columns = lambda x: F.unfold(x, one(kernel), one(dilation), one(padding), one(stride))
    for t in (image, image[0]):
        case("im2col", columns, t, kernel, dilation, padding, stride)
        case("col2im", lambda y: F.fold(y, (5, 6), one(kernel), one(dilation), one(padding), one(stride)), columns(t) * 1.1 + 0.1, [5, 6], kernel, dilation, padding, stride)
for dim, size, step in ((0, 1, 1), (1, 2, 1), (2, 3, 2), (-1, 6, 4), (-2, 2, 5), (3, 0, 2), (1, 4, 1)):
    case("unfold", lambda x: x.unfold(dim, size, step), image, dim, size, step)
case("unfold", lambda x: x.unfold(0, 3, 2), values((8,), "i64"), 0, 3, 2)
case("unfold", lambda x: x.unfold(0, 1, 1), values((), "f64"), 0, 1, 1)

for shape, places in (((2, 3, 4, 5), (3, 2)), ((1, 2, 1, 3), (2, 4)), ((2, 2, 3, 4, 2), (2, 1, 3))):
    n = len(places)
    grid = values((shape[0], *places, n), "f64", start=6) / 1.21
    for how in ("bilinear", "nearest", "bicubic"):
        for outside in ("zeros", "border", "reflection"):
            for aligned in (False, True):
                if how == "bicubic" and n == 3:
                    continue
                f = lambda x, g: F.grid_sample(x, g, how, outside, aligned)
                case("grid_sample", f, values(shape, "f64"), grid, mode=how, padding_mode=outside, align_corners=aligned)
edges = torch.tensor([-1.0, 1.0, 0.0, -3.0, 1.0, 1.0]).double().reshape(1, 1, 3, 2)
for outside in ("border", "reflection"):
    case("grid_sample", lambda x, g: F.grid_sample(x, g, "bilinear", outside, True), values((1, 2, 3, 4), "f64"), edges, padding_mode=outside, align_corners=True)
for size in ([2, 3, 4, 5], [2, 1, 1, 3], [2, 3, 2, 1, 4]):
    n = len(size) - 2
    for aligned in (False, True):
        case("affine_grid", lambda t: F.affine_grid(t, size, aligned), values((2, n, n + 1), "f64"), size, align_corners=aligned)

# --- norms of channels ---------------------------------------------------------------------------------------------------

for shape in ((4, 6), (3, 6, 5), (2, 6, 3, 4), (2, 6, 2, 2, 18)):
    image, w, b = values(shape, "f64"), values((6,), "f64", start=3), values((6,), "f64", start=8)
    m, v = values((6,), "f64", start=11), values((6,), "f64", start=12, positive=True)
    case("batch_norm", lambda x, w: F.batch_norm(x, None, None, w, None, True), image, weight=w, training=True)
    case("batch_norm", lambda x, b: F.batch_norm(x, None, None, None, b, True), image, bias=b, training=True)
    case("batch_norm", lambda x: F.batch_norm(x, None, None, training=True, eps=0.1), image, training=True, eps=0.1)
    case("batch_norm", lambda x, m, v: F.batch_norm(x, m.clone(), v.clone(), None, None, True, 0.3), image, m, v, training=True, momentum=0.3, backward=False)
    case("batch_norm", lambda x, m, v, w, b: F.batch_norm(x, m.detach(), v.detach(), w, b), image, m, v, w, b, backward=False)
    case("batch_norm", lambda x, m, v: F.batch_norm(x, m.detach(), v.detach(), None, None), image, m, v, backward=False)
    for groups in (1, 2, 6):
        if len(shape) > 2 or groups < 6:
            case("group_norm", lambda x, w, b: F.group_norm(x, groups, w, b), image, groups, w, b)
            case("group_norm", lambda x: F.group_norm(x, groups, eps=0.1), image, groups, eps=0.1)
            case("group_norm", lambda x, w: F.group_norm(x, groups, w), image, groups, w)
    if len(shape) > 2:
        case("instance_norm", lambda x, w: F.instance_norm(x, None, None, w), image, weight=w)
        case("instance_norm", lambda x, b: F.instance_norm(x, None, None, None, b), image, bias=b)
        case("instance_norm", lambda x: F.instance_norm(x, eps=0.1), image, eps=0.1)
        case("instance_norm", lambda x, m, v: F.instance_norm(x, m.clone(), v.clone(), momentum=0.2), image, m, v, momentum=0.2, backward=False)
        case("instance_norm", lambda x, m, v, w, b: F.instance_norm(x, m, v, w, b, False), image, m, v, w, b, use_input_stats=False, backward=False)

# --- activations with weights, gates -------------------------------------------------------------------------------------

for shape in ((4,), (3, 6), (2, 6, 5), (2, 6, 3, 18)):
    for d in ("f64", "f32"):
        case("prelu", F.prelu, values(shape, d), values((1,), d, start=3))
        case("glu", F.glu, values(shape[:-1] + (2 * shape[-1],), d))
    if len(shape) > 1:
        case("prelu", F.prelu, values(shape, "f64"), values((6,), "f64", start=3))
        case("glu", lambda x: F.glu(x, 1), values(shape, "f64"), 1)
case("glu", lambda x: F.glu(x, 0), values((0, 3), "f64"), 0)

# --- order ---------------------------------------------------------------------------------------------------------------

for descending in (False, True):
    case("argsort", lambda x: torch.argsort(x, dim=1, descending=descending, stable=True), x, 1, descending)
    case("argsort", lambda x: torch.argsort(x, dim=-1, descending=descending, stable=True), values((3, 6), "i64", below=4), descending=descending)
    case("sort", lambda x: torch.sort(x, dim=0, descending=descending, stable=True), x, 0, descending)
    case("sort", lambda x: torch.sort(x, stable=True, descending=descending), values((7,), "i64", below=4), descending=descending)
case("msort", torch.msort, x)
case("msort", torch.msort, values((5,), "i32"))
case("median", torch.median, x)
case("median", torch.median, torch.tensor([2.0, 1.0, 2.0, nan]), note="NaN", backward=False)
for dim, keep in ((0, False), (-1, True)):
    case("median", lambda x: torch.median(x, dim, keep), x, dim, keep)
    case("kthvalue", lambda x: torch.kthvalue(x, 2, dim, keep), x, 2, dim, keep)
    case("topk", lambda x: torch.topk(x, 2, dim), x, 2, dim)
    case("topk", lambda x: torch.topk(x, 2, dim, False), x, 2, dim, largest=False)

# --- places and counts ----------------------------------------------------------------------------------------------------

# No value stands on a boundary: parts of a sum need not add up to the last bit. The cases of the op have some that do.
line, rows = torch.sort(values((9,), "f64") * 1.07)[0], torch.sort(values((2, 3, 5), "f64") * 1.07, 2)[0]
for right in (False, True):
    case("searchsorted", lambda s, x: torch.searchsorted(s, x, right=right), line, x, right=right, backward=False)
    case("searchsorted", lambda s, x: torch.searchsorted(s, x, right=right, out_int32=True), rows, x, right=right, out_int32=True, backward=False)
    case("bucketize", lambda x, s: torch.bucketize(x, s, right=right), x, line, right=right, backward=False)
ids = values((11,), "i64", below=7)
case("bincount", torch.bincount, ids)
case("bincount", torch.bincount, ids.to(torch.uint8))
case("bincount", lambda x: torch.bincount(x, minlength=10), ids.int(), minlength=10)
case("bincount", torch.bincount, torch.zeros(0, dtype=torch.int64))
for d in ("f32", "f64", "i64"):
    case("bincount", lambda x, w: torch.bincount(x, w), ids, weights=values((11,), d), backward=False)
case("histc", torch.histc, torch.tensor([0.0, 1.0, 0.505, 0.125]), backward=False)
for args in ((5,), (4, -1.0, 0.5)):
    case("histc", lambda x: torch.histc(x, *args), x, *args, backward=False)
    case("histc", lambda x: torch.histc(x, *args), values((20,)), *args, backward=False)
case("histc", lambda x: torch.histc(x, 3), torch.ones(4), 3, backward=False, note="all alike")
for t in (values((3, 5), "i64", below=6), values((4,), "bool"), torch.tensor([[2.0, -1.0, 2.0], [0.0, 7.5, -1.0]]), torch.zeros((0, 2))):
    case("unique", torch.unique, t, backward=False)
    case("unique", lambda x: torch.unique(x, return_inverse=True), t, return_inverse=True, backward=False)
    case("unique", lambda x: torch.unique(x, return_counts=True), t, return_counts=True, backward=False)
    case("unique", lambda x: torch.unique(x, return_inverse=True, return_counts=True), t, return_inverse=True, return_counts=True, backward=False)
# --- losses of classes ---------------------------------------------------------------------------------------------------

def weighed(f, dim, logs, ignore_index=-100, label_smoothing=0.0, reduction="mean"):
    """The formula of F.nll_loss and F.cross_entropy (`f`) with weights, of which PyTorch has no gradient."""
    def run(x, t, w):
        lp = x.movedim(dim, -1)
        lp = torch.log_softmax(lp, -1) if logs else lp
        keep = t != ignore_index
        at = t.masked_fill(~keep, 0)
        wt = w[at] * keep
        each = -(1 - label_smoothing) * wt * lp.gather(-1, at[..., None])[..., 0] - label_smoothing / w.numel() * (lp * w).sum(-1) * keep
        loss = {"none": each, "sum": each.sum(), "mean": each.sum() / wt.sum()}[reduction]
        how = {"label_smoothing": label_smoothing} if logs else {}
        assert torch.allclose(loss, f(x, t, w.detach(), ignore_index=ignore_index, reduction=reduction, **how), equal_nan=True)
        return loss
    return run


# Shape of the inputs, dim of the classes, shape of the targets.
for shape, dim, rows in (((4, 5), 1, (4,)), ((2, 5, 3), 1, (2, 3)), ((2, 5, 2, 2), 1, (2, 2, 2)), ((5,), 0, ())):
    logits, classes = values(shape, "f64"), shape[dim]
    ids = values(rows, "i64", below=classes, start=1)
    soft = torch.softmax(values(shape, "f64", start=8), dim)
    weight = values((classes,), "f64", positive=True)
    for r in ("mean", "sum", "none"):
        for ignore in (None, 2):
            known = {} if ignore is None else {"ignore_index": ignore}
            case("nll_loss", lambda x, t: F.nll_loss(x, t, reduction=r, **known), logits, ids, reduction=r, **known)
            case("nll_loss", weighed(F.nll_loss, dim, False, reduction=r, **known), logits, ids, weight=weight, reduction=r, **known)
            for eps in (0.0, 0.2):
                how = dict(reduction=r, label_smoothing=eps, **known)
                case("cross_entropy", lambda x, t: F.cross_entropy(x, t, **how), logits, ids, dim=dim, **how)
                case("cross_entropy", weighed(F.cross_entropy, dim, True, **how), logits, ids, weight=weight, dim=dim, **how)
        for eps in (0.0, 0.2):
            how = dict(reduction=r, label_smoothing=eps)
            case("cross_entropy", lambda x, t: F.cross_entropy(x, t, **how), logits, soft, dim=dim, **how)
            case("cross_entropy", lambda x, t, w: F.cross_entropy(x, t, w, **how), logits, soft, weight=weight, dim=dim, **how)
        if len(rows) < 2:
            for power in (1, 2):
                case("multi_margin_loss", lambda x, t: F.multi_margin_loss(x, t, power, 0.7, reduction=r), logits, ids, p=power, margin=0.7, reduction=r)
                case("multi_margin_loss", lambda x, t, w: F.multi_margin_loss(x, t, power, 0.7, w.detach(), reduction=r), logits, ids, p=power, margin=0.7, weight=weight, reduction=r, backward=False)
            labels = torch.tensor([[3, 0, -1, 1, 2], [4, -1, 4, 4, 4], [-1, 0, 0, 0, 0], [0, 1, 2, 3, 4]][: rows[0]] if rows else [2, 4, -1, 0, 0])
            case("multilabel_margin_loss", lambda x, t: F.multilabel_margin_loss(x, t, reduction=r), logits, labels, reduction=r)
            yes = values(shape, "bool").double()
            case("multilabel_soft_margin_loss", lambda x, t: F.multilabel_soft_margin_loss(x, t, reduction=r), logits, yes, reduction=r)
            case("multilabel_soft_margin_loss", lambda x, t, w: F.multilabel_soft_margin_loss(x, t, w, reduction=r), logits, yes, weight=weight, reduction=r)
gone = torch.tensor([1, 1])
for eps in (0.0, 0.2):
    case("cross_entropy", lambda x, t: F.cross_entropy(x, t, ignore_index=1, label_smoothing=eps), values((2, 3), "f64"), gone, ignore_index=1, label_smoothing=eps,
         backward=False, note="all ignored")
case("cross_entropy", lambda x, t: F.cross_entropy(x, t), values((0, 3), "f64"), torch.zeros(0, dtype=torch.int64), backward=False, note="no rows")
case("cross_entropy", weighed(F.cross_entropy, 1, True, reduction="none", label_smoothing=0.1), values((3, 4), "f32"), torch.tensor([3, 0, 2]), weight=values((4,), positive=True),
     reduction="none", label_smoothing=0.1)

# --- alignments ----------------------------------------------------------------------------------------------------------


def aligned(blank, reduction, zero_infinity=False):
    """CTC by the sum over all alignments: PyTorch's value, and the gradient of the log-probabilities as they are."""
    def run(lp, targets, inputs, lengths):
        three = lp if lp.ndim == 3 else lp[:, None]
        losses, start = [], 0
        for n, (t, s) in enumerate(zip(inputs.reshape(-1).tolist(), lengths.reshape(-1).tolist())):
            wanted = (targets[n][:s] if targets.ndim == 2 else targets[start:start + s]).tolist()
            start += s
            ways = [torch.stack([three[i, n, c] for i, c in enumerate(path)]).sum() for path in itertools.product(range(lp.shape[-1]), repeat=t)
                    if [c for c, _ in itertools.groupby(path) if c != blank] == wanted]
            losses.append(-torch.logsumexp(torch.stack(ways), 0) if ways else three[0, 0, 0] * 0 + (0.0 if zero_infinity else inf))
        each = torch.stack(losses)
        loss = {"sum": each.sum(), "none": each if lp.ndim == 3 else each[0], "mean": (each / lengths.reshape(-1).clamp(min=1)).mean()}[reduction]
        theirs = F.ctc_loss(lp.detach(), targets, inputs, lengths, blank, reduction, zero_infinity)
        assert torch.allclose(loss, theirs), (loss, theirs)
        return loss
    return run


lp = torch.log_softmax(values((5, 3, 3), "f64"), -1)
several, one_list = torch.tensor([[1, 2], [2, 2], [1, 0]]), torch.tensor([1, 2, 2, 2, 1])
times, lengths = torch.tensor([5, 4, 3]), torch.tensor([2, 2, 1])
for r in ("mean", "sum", "none"):
    case("ctc_loss", aligned(0, r), lp, several, times, lengths, reduction=r)
    case("ctc_loss", aligned(0, r), lp, one_list, times, lengths, reduction=r)
    case("ctc_loss", aligned(0, r), lp[:, 0], several[0], torch.tensor(4), torch.tensor(2), reduction=r)
case("ctc_loss", aligned(2, "none"), lp, torch.tensor([[0, 1], [1, 1], [0, 0]]), times, torch.tensor([2, 1, 0]), blank=2, reduction="none")
case("ctc_loss", aligned(0, "none", True), lp, several, torch.tensor([5, 2, 1]), lengths, reduction="none", zero_infinity=True)
case("ctc_loss", aligned(0, "none"), lp, several, torch.tensor([5, 2, 1]), lengths, reduction="none", backward=False, note="one fits no input")

# --- networks ------------------------------------------------------------------------------------------------------------

q, k, v = values((2, 4, 3, 6), "f64"), values((2, 4, 5, 6), "f64", start=5), values((2, 4, 5, 2), "f64", start=9)
seen = torch.tensor([[True, False, True, True, False], [True] * 5, [False, False, False, False, True]])
blind = torch.tensor([[True, False, True, True, False], [False] * 5, [True] * 5])
sdpa = F.scaled_dot_product_attention
case("scaled_dot_product_attention", sdpa, q, k, v)
case("scaled_dot_product_attention", lambda q, k, v: sdpa(q, k, v, is_causal=True), q, k, v, is_causal=True)
case("scaled_dot_product_attention", lambda q, k, v: sdpa(q, k, v, scale=0.3), q, k, v, scale=0.3)
for mask in (seen, blind, values((3, 5), "f64"), values((2, 1, 3, 5), "f64"), torch.where(seen, 0.0, -inf).double()):
    case("scaled_dot_product_attention", lambda q, k, v, m: sdpa(q, k, v, m), q, k, v, mask)
for n in (2, 3):
    cut = lambda t: t[0] if n == 3 else t[0, 0]
    case("scaled_dot_product_attention", sdpa, cut(q), cut(k), cut(v))
    case("scaled_dot_product_attention", lambda q, k, v: sdpa(q, k, v, is_causal=True), cut(q), cut(k), cut(v), is_causal=True)
case("scaled_dot_product_attention", lambda q, k, v: sdpa(q, k, v, enable_gqa=True), q, k[:, :2], v[:, :1], enable_gqa=True)
case("scaled_dot_product_attention", lambda q, k, v, m: sdpa(q, k, v, m, enable_gqa=True), q, k[:, :2], v[:, :2], seen, enable_gqa=True)

table, rows, ids = values((7, 3), "f64"), values((4, 5), "i64", below=7), values((9,), "i64", below=7, start=3)
for mode in ("sum", "mean", "max"):
    for padding in (None, 2, -1):
        how = {} if padding is None else {"padding_idx": padding}
        case("embedding_bag", lambda w, i: F.embedding_bag(i, w, mode=mode, **how), table, rows, mode=mode, **how)
        for offsets in ([0, 2, 2, 7], [0], [0, 9, 9]):
            case("embedding_bag", lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, **how), table, ids, torch.tensor(offsets), mode=mode, **how)
        ends = torch.tensor([0, 4, 4, 9])
        case("embedding_bag", lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, include_last_offset=True, **how), table, ids, ends, mode=mode, include_last_offset=True, **how)
each = values((4, 5), "f64", start=3)
case("embedding_bag", lambda w, i, p: F.embedding_bag(i, w, mode="sum", per_sample_weights=p), table, rows, mode="sum", per_sample_weights=each)
case("embedding_bag", lambda w, i, o, p: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=p), table, ids, torch.tensor([0, 2, 2, 7]), mode="sum", per_sample_weights=values((9,), "f64", start=3))

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
for name, gates in GATES.items():
    cell = getattr(torch, name + "_cell")
    for shape in ((3, 2), (2,)):
        weights = [values((gates * 3, 2), "f64") / 3, values((gates * 3, 3), "f64", start=8) / 3, values((gates * 3,), "f64", start=2), values((gates * 3,), "f64", start=6)]
        x, h = values(shape, "f64", start=4), values((*shape[:-1], 3), "f64", start=1)
        if name == "lstm":
            states = [h, values(h.shape, "f64", start=12)]
            batch = (lambda t: t) if len(shape) == 2 else (lambda t: t[None])
            run = lambda x, h, c, *w: [t if len(shape) == 2 else t[0] for t in cell(batch(x), (batch(h), batch(c)), *w)]
            case("lstm_cell", run, x, states, *weights)
            case("lstm_cell", run, x, states, *weights[:2])
        else:
            run = lambda x, h, *w: cell(x, h, *w) if len(shape) == 2 else cell(x[None], h[None], *w)[0]
            case(name + "_cell", run, x, h, *weights)
            case(name + "_cell", run, x, h, *weights[:2])
    for layers, both, biases, first, batched in ((1, False, True, False, True), (2, True, True, False, True), (2, False, False, True, True), (1, True, True, False, False)):
        directions = 2 if both else 1
        params = []
        for layer in range(layers):
            for d in range(directions):
                width = 2 if layer == 0 else 3 * directions
                params += [values((gates * 3, width), "f64", start=3 * layer + d) / 3, values((gates * 3, 3), "f64", start=8 + layer) / 3]
                params += [values((gates * 3,), "f64", start=2 + d), values((gates * 3,), "f64", start=6 + layer)] if biases else []
        x = values(((2, 3, 2) if first else (3, 2, 2)) if batched else (3, 2), "f64", start=4)
        h = values((layers * directions, 2, 3) if batched else (layers * directions, 3), "f64", start=1)
        how = dict(has_biases=biases, num_layers=layers, bidirectional=both, batch_first=first)
        net = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}.get(name, torch.nn.RNN)(
            2, 3, num_layers=layers, bias=biases, batch_first=first, bidirectional=both, dtype=torch.float64, **({"nonlinearity": name[4:]} if name[:3] == "rnn" else {}))

        def run(x, *rest):
            n = 2 if name == "lstm" else 1
            state, weights = rest[:n], dict(zip((p for p, _ in net.named_parameters()), rest[n:]))
            out, s = torch.func.functional_call(net, weights, (x, tuple(state) if n == 2 else state[0]))
            return (out, *s) if n == 2 else (out, s)

        states = [h, values(h.shape, "f64", start=12)] if name == "lstm" else h
        case(name, run, x, states, params, **how)

# --- pieces ---------------------------------------------------------------------------------------------------------------

x = values((2, 3, 4), "f64")

for n, dim in ((2, 0), (3, 2), (5, -1), (1, 1)):
    case("tensor_split", lambda x: torch.tensor_split(x, n, dim), x, n, dim)
for places, dim in (([1, 3], 2), ([-1], 1), ([2, 1, 9], -1), ([0], 0)):
    case("tensor_split", lambda x: torch.tensor_split(x, places, dim), x, places, dim)
case("column_stack", lambda *xs: torch.column_stack(xs), [values((3,)), values((3, 2), start=4), values((3,), start=8)])
case("dstack", lambda *xs: torch.dstack(xs), [values((3,)), values((3,), start=8)])
case("dstack", lambda *xs: torch.dstack(xs), [values((2, 3)), values((2, 3, 2), start=8)])
case("block_diag", lambda *xs: torch.block_diag(*xs), [values((2, 3)), values((2,), start=4), values((), start=8), values((0, 2)), values((1, 1), start=9)])
for offset in (0, 2, -1):
    case("diagflat", lambda x: torch.diagflat(x, offset), values((2, 2)), offset)
case("fliplr", torch.fliplr, x)
case("flipud", torch.flipud, x)
case("broadcast_tensors", lambda *xs: torch.broadcast_tensors(*xs), [values((3, 1)), values((4,), start=3), values((2, 1, 1), start=9)])
for dim, at in ((0, 1), (1, -1), (-1, 2)):
    case("select_scatter", lambda x, y: torch.select_scatter(x, y, dim, at), x, values(x.select(dim, at).shape, "f64", start=5), dim, at)
for dim, start, end, step in ((2, 1, 3, 1), (1, 0, 3, 2), (0, -1, 9, 1), (1, 2, 1, 1), (2, 0, 4, 3)):
    part = x.transpose(0, dim)[max(start, -9) : end : step].transpose(0, dim)
    case("slice_scatter", lambda x, y: torch.slice_scatter(x, y, dim, start, end, step), x, values(part.shape, "f64", start=5), dim, start=start, end=end, step=step)
case("slice_scatter", lambda x, y: torch.slice_scatter(x, y, 1), x, values((2, 3, 4), "f64", start=5), 1)
case("cartesian_prod", lambda *xs: torch.cartesian_prod(*xs), [values((2,)), values((3,), start=4), values((2,), start=9)])
case("cartesian_prod", lambda *xs: torch.cartesian_prod(*xs), [values((3,))])
for columns, rising in ((None, False), (3, True), (5, False), (0, True)):
    powers = torch.arange(4 if columns is None else columns)
    powers = powers if rising else powers.flip(0)
    assert torch.allclose(torch.vander(values((4,)), columns, rising), values((4, 1)) ** powers)
    # torch.vander itself has no gradient that works.
    case("vander", lambda x: x[:, None] ** powers, values((4,), "f64"), **({} if columns is None else {"columns": columns}), increasing=rising)
case("vander", torch.vander, torch.tensor([0, 2, -3]))

# --- statistics -----------------------------------------------------------------------------------------------------------

for dims, keep, correction in (([], False, 1.0), ([1], True, 0.0), ([0, 2], False, 2.0)):
    how = dict(dim=dims or None, keepdim=keep, correction=correction)
    case("var_mean", lambda x: torch.var_mean(x, **how), x, dims, keepdim=keep, correction=correction)
    case("std_mean", lambda x: torch.std_mean(x, **how), x, dims, keepdim=keep, correction=correction)
table, often, much = values((3, 5), "f64"), torch.tensor([1, 3, 0, 2, 1]), torch.tensor([0.5, 1.0, 2.0, 0.25, 1.5], dtype=torch.float64)
for correction in (1, 0, 2):
    case("cov", lambda x: torch.cov(x, correction=correction), table, correction=correction)
case("cov", torch.cov, values((4,), "f64"))
case("cov", lambda x, w: torch.cov(x, fweights=w), table, fweights=often)
case("cov", lambda x, w: torch.cov(x, aweights=w), table, aweights=much, backward=False)
case("cov", lambda x, f, a: torch.cov(x, correction=0, fweights=f, aweights=a), table, correction=0, fweights=often, aweights=much, backward=False)
case("corrcoef", torch.corrcoef, table)
case("corrcoef", torch.corrcoef, values((4,)))
holes = table.clone()
holes[0, 1] = holes[2, 0] = holes[2, 3] = nan
holes[1] = nan
for how in ("linear", "lower", "higher", "midpoint", "nearest"):
    for q in (0.0, 0.3, 0.5, 1.0):
        case("quantile", lambda x: torch.quantile(x, q, interpolation=how), table, q, interpolation=how)
        case("quantile", lambda x: torch.quantile(x, q, 1, True, interpolation=how), table, q, dim=1, keepdim=True, interpolation=how)
        case("nanquantile", lambda x: torch.nanquantile(x, q, 1, interpolation=how), holes, q, dim=1, interpolation=how, backward=False)
    parts = [0.1, 0.55, 0.9]
    case("quantile", lambda x: torch.quantile(x, torch.tensor(parts, dtype=x.dtype), 0, interpolation=how), table, parts, dim=0, interpolation=how)
case("quantile", lambda x: torch.quantile(x, 0.4, -1), holes, 0.4, dim=-1, backward=False)
case("quantile", lambda x: torch.quantile(x, 0.4, keepdim=True), values((2, 3)), 0.4, keepdim=True)
case("nanquantile", lambda x: torch.nanquantile(x, 0.4, 0), table, 0.4, dim=0)
case("nanquantile", lambda x: torch.nanquantile(x, 0.4), holes, 0.4, backward=False)
for d in ("f64", "i64", "i32"):
    few = values((3, 7), d, below=4)
    for dim, keep in ((1, False), (0, True), (-1, True)):
        case("mode", lambda x: torch.mode(x, dim, keep), few, dim, keep)
for n, low, high in ((4, -1.5, 1.0), (1, -9.0, 9.0)):
    case("histogram", lambda x: torch.histogram(x, n, range=(low, high)), x, n, range=[low, high], backward=False)
    case("histogram", lambda x: torch.histogram(x, n, range=(low, high), density=True), x, n, range=[low, high], density=True, backward=False)
    case("histogram", lambda x, w: torch.histogram(x, n, range=(low, high), weight=w), x, n, range=[low, high], weight=values((2, 3, 4), "f64", positive=True, start=4), backward=False)
case("histogram", lambda x: torch.histogram(x, 3), values((7,)), 3, backward=False)
case("histogram", lambda x: torch.histogram(x, 3), torch.full((4,), 2.0), 3, backward=False)
case("histogram", lambda x, e: torch.histogram(x, e), x, torch.tensor([-1.0, 0.0, 0.25, 2.0], dtype=torch.float64), backward=False)

# --- differences ----------------------------------------------------------------------------------------------------------

for n, dim in ((1, -1), (2, 1), (0, 0), (1, 0), (3, 1), (7, 2)):
    case("diff", lambda x: torch.diff(x, n, dim), x, n=n, dim=dim)
case("diff", lambda x, a, b: torch.diff(x, dim=1, append=a, prepend=b), x, dim=1, append=values((2, 2, 4), "f64", start=7), prepend=values((2, 1, 4), "f64", start=5))
case("diff", torch.diff, values((6,), "bool"))
case("diff", torch.diff, values((6,), "i32"))
for dim in (-1, 0, 1):
    case("trapezoid", lambda y: torch.trapezoid(y, dx=0.3, dim=dim), x, dx=0.3, dim=dim)
    case("cumulative_trapezoid", lambda y: torch.cumulative_trapezoid(y, dx=0.3, dim=dim), x, dx=0.3, dim=dim)
    at = values((x.shape[dim],), "f64", start=8)
    case("trapezoid", lambda y, a: torch.trapezoid(y, a, dim=dim), x, at, dim=dim)
    case("cumulative_trapezoid", lambda y, a: torch.cumulative_trapezoid(y, a, dim=dim), x, at, dim=dim)
case("trapezoid", lambda y, a: torch.trapezoid(y, a, dim=1), x, values((2, 3, 4), "f64", start=8), dim=1)
for p in (2.0, 1.0, 3.0, inf, 0.5):
    case("cdist", lambda a, b: torch.cdist(a, b, p), values((3, 4), "f64"), values((2, 4), "f64", start=11).square(), p)
    case("cdist", lambda a, b: torch.cdist(a, b, p), values((2, 1, 3, 2), "f64"), values((3, 2, 2), "f64", start=11).square(), p)
    case("pdist", lambda a: F.pdist(a, p), values((4, 3), "f64"), p)
case("cdist", lambda a, b: torch.cdist(a, b), values((27, 3), "f64"), values((2, 3), "f64", start=11), note="by a product")
case("cdist", lambda a, b: torch.cdist(a, b, 0.0), values((3, 2)).round(), values((2, 2)).round(), 0.0, backward=False)
case("bilinear", lambda a, b, w: F.bilinear(a, b, w), values((3, 2)), values((3, 4), start=5), values((2, 2, 4), start=9))
case("bilinear", lambda a, b, w, c: F.bilinear(a, b, w, c), values((2, 3, 2), "f64"), values((2, 3, 4), "f64", start=5), values((2, 2, 4), "f64", start=9), values((2,), "f64"))
odd = torch.tensor([0.0, -1.5, nan, inf, -inf, 2.0])
for d in ("f32", "f64", "f16", "bf16"):
    case("nan_to_num", lambda x: torch.nan_to_num(x), odd.to(DTYPES[d]), backward=False)
    case("nan_to_num", lambda x: torch.nan_to_num(x, 0.5, 9.0, -9.0), odd.to(DTYPES[d]), 0.5, posinf=9.0, neginf=-9.0, backward=False)
case("nan_to_num", lambda x: torch.nan_to_num(x), values((2, 3), "i32"))
for d in ("f32", "i32", "u8", "bool"):
    case("signbit", torch.signbit, values((2, 3), d), backward=False)
case("nan_to_num", lambda x: torch.nan_to_num(x), x)
chances = torch.sigmoid(x)
case("logit", lambda x: torch.logit(x), chances)
for eps in (0.1, 0.3, 0.0):
    case("logit", lambda x: torch.logit(x, eps), chances, eps)
case("logit", lambda x: torch.logit(x), torch.tensor([0.0, 1.0, -0.5, 1.5, nan]), backward=False)
case("logit", lambda x: torch.logit(x, 1e-3), torch.tensor([0.0, 1.0, -0.5, 1.5, nan]), 1e-3, backward=False)
other = odd + torch.tensor([1e-9, 1e-3, 0.0, 0.0, 0.0, 1e-5])
for d in ("f32", "f64"):
    a, b = odd.to(DTYPES[d]), other.to(DTYPES[d])
    for rtol, atol, equal in ((1e-5, 1e-8, False), (0.0, 0.0, True), (0.0, 0.1, True), (0.1, 0.0, False)):
        case("isclose", lambda x, y: torch.isclose(x, y, rtol, atol, equal), a, b, rtol=rtol, atol=atol, equal_nan=equal, backward=False)
        case("isclose", lambda x, y: torch.isclose(x, y, rtol, atol, equal), a, b.flip(0), rtol=rtol, atol=atol, equal_nan=equal, backward=False)
case("isclose", lambda x, y: torch.isclose(x, y, 0.0, 2.0), torch.tensor([1, 9, 255], dtype=torch.uint8), torch.tensor([3, 5, 0], dtype=torch.uint8), rtol=0.0, atol=2.0)
for d in ("f32", "i64", "i32"):
    a, b = values((3, 4), d, below=6), values((4,), d, below=3)
    case("isin", lambda x, y: torch.isin(x, y), a, b, backward=False)
    case("isin", lambda x, y: torch.isin(x, y, invert=True), a, b, invert=True, backward=False)
case("isin", lambda x, y: torch.isin(x, y), torch.tensor([nan, 1.0]), torch.tensor([nan, inf]), backward=False)
case("isin", lambda x, y: torch.isin(x, y), values((3,)), torch.zeros(0), backward=False)

# --- choice by places -----------------------------------------------------------------------------------------------------

case("take", torch.take, x, torch.tensor([[0, 23], [-1, 5]]))
case("take", torch.take, values((4,)), torch.tensor(2))
for dim, at, v in ((0, [1], 2.5), (1, [2, 0], -1.0), (-1, [3, 3, -4 + 4], 7.0)):
    case("index_fill", lambda x, i: x.index_fill(dim, i, v), x, dim, torch.tensor(at), v)
mask = values((2, 3, 4), "bool")
case("masked_scatter", lambda x, m, y: torch.masked_scatter(x, m, y), x, mask, values((3, 5), "f64", start=4))
case("masked_scatter", lambda x, m, y: torch.masked_scatter(x, m, y), x, torch.zeros(3, 1, dtype=torch.bool), values((2,), "f64"), note="nowhere")
case("masked_scatter", lambda x, m, y: torch.masked_scatter(x, m, y), x, values((3, 1), "bool"), values((20,), "f64", start=4))
# torch counts an element of x that does not take part among the equal ones: the shares of the gradient do not add up then.
for reduce in ("sum", "mean", "amax", "amin"):
    for own in (True, False):
        at = torch.tensor([[0, 1, 1, 3], [3, 3, 0, 3]])
        case("scatter_reduce", lambda x, i, y: x.scatter_reduce(1, i, y, reduce, include_self=own), values((3, 5), "f64"), 1, at, values((2, 4), "f64", start=6), reduce, include_self=own)
        case("scatter_reduce", lambda x, i, y: x.scatter_reduce(0, i, y, reduce, include_self=own), torch.tensor([1.0, 2.0 if own else 5.0, 3.0, 4.0]), 0, torch.tensor([1, 1, 1, 3, 3]), torch.tensor([2.0, 2.0, 1.0, 9.0, 9.0]), reduce, include_self=own, note="ties")
        case("scatter_reduce", lambda x, i, y: x.scatter_reduce(0, i, y, reduce, include_self=own), values((4,), "i32"), 0, torch.tensor([1, 1, 3, 3]), values((4,), "i32", start=3), reduce, include_self=own)
        case("scatter_reduce", lambda x, i, y: x.scatter_reduce(0, i, y, reduce, include_self=own), torch.tensor([1.0, nan, inf, 0.0, 5.0]), 0, torch.tensor([0, 1, 2, 3, 3]), torch.tensor([nan, 2.0, 1.0, -inf, inf]), reduce, include_self=own, backward=False, note="edges")
runs = torch.tensor([1, 1, 2, 2, 2, 1, 3, 3])
for how in (dict(return_inverse=False, return_counts=False), dict(return_inverse=True, return_counts=False), dict(return_inverse=False, return_counts=True), dict(return_inverse=True, return_counts=True)):
    for d in ("i64", "f32"):
        case("unique_consecutive", lambda x: torch.unique_consecutive(x, **how), runs.to(DTYPES[d]).reshape(2, 4), **how, backward=False)
case("unique_consecutive", lambda x: torch.unique_consecutive(x), runs, backward=False)
case("unique_consecutive", lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), torch.tensor([5]), return_inverse=True, return_counts=True)
case("unravel_index", lambda i: torch.unravel_index(i, (2, 3, 4)), torch.tensor([[0, 23], [7, 13]]), [2, 3, 4])

# --- bounds, dtypes of results ---------------------------------------------------------------------------------------------

for d in ("f64", "f32", "i32"):
    backward = d != "i32"
    case("clamp_min", lambda x: torch.clamp_min(x, 1), values((3, 4), d), 1, backward=backward)
    case("clamp_max", lambda x: torch.clamp_max(x, 1), values((3, 4), d), 1, backward=backward)
    case("clamp_min", torch.clamp_min, values((3, 4), d), values((4,), d, start=5), backward=backward)
    case("clamp_max", torch.clamp_max, values((3, 4), d), values((4,), d, start=5), backward=backward)
for name, bounds in (("clamp_min", [1.0]), ("clamp_max", [1.0]), ("clamp", [-1.0, 1.0])):
    edges = torch.tensor([1.0, -1.0, nan, inf, -inf, 0.0], dtype=torch.float64)
    bound = {"clamp_min": dict(min=1.0), "clamp_max": dict(max=1.0), "clamp": dict(min=-1.0, max=1.0)}[name]
    case(name, lambda x: torch.clamp(x, **bound), edges, *bounds, note="at the bounds")
case("square", torch.square, values((4,), "bool"), note="integers")
case("norm", lambda x: torch.linalg.vector_norm(x, 0), torch.tensor([0.0, -0.0, 2.0, -inf]), 0.0, note="order 0 has the slope 0")
for f, a in (("f64", "f32"), ("f32", "f64"), ("bf16", "f32")):
    weights = values((4,), a, positive=True)
    case("cov", lambda x, w: torch.cov(x, aweights=w), values((3, 4), f), aweights=weights, backward=False, note="two dtypes")
    case("cov", lambda x, f, a: torch.cov(x, fweights=f, aweights=a), values((3, 4), f), fweights=torch.tensor([1, 0, 2, 3]), aweights=weights, backward=False, note="two dtypes")
# Scores of some hundreds: those of halves are kept in f32.
wide = lambda shape, start: (values(shape, "f64", start=start) * 9).to(torch.bfloat16)
for mask in (None, wide((3, 6), 11)):
    given = {} if mask is None else {"attn_mask": mask}
    case("scaled_dot_product_attention", lambda q, k, v, *m: F.scaled_dot_product_attention(q, k, v, *m), wide((2, 3, 8), 1), wide((2, 6, 8), 3), wide((2, 6, 8), 7), **given, backward=False, note="scores of halves")

# --- PyTorch's older way to say the correction ---------------------------------------------------------------------------

x = values((2, 3, 4), "f64")
for name in ("var", "std", "var_mean", "std_mean"):
    f = getattr(torch, name)
    case(name, lambda x: f(x, (0, 2), False), x, [0, 2], False, note="unbiased")
    case(name, lambda x: f(x, (1,), True, True), x, [1], True, True, note="unbiased")
    case(name, lambda x: f(x, False), x, False, note="unbiased")

# --- dtypes of results ----------------------------------------------------------------------------------------------------
# What PyTorch refuses has no row.


def each_dtype(name, f, make, *, dtypes=tuple(DTYPES)[:9], **how):
    """A row for each dtype of the tensors that PyTorch takes; `make` gives the arguments."""
    for d in dtypes:
        args, named = make(d)
        try:
            case(name, f, *args, note=d, **named, **how)
        except RuntimeError:
            pass


for equation, shapes in (("ii->", [(3, 3)]), ("ii->i", [(3, 3)]), ("ij->", [(2, 3)]), ("ij->i", [(2, 3)]), ("ij,jk->ik", [(2, 3), (3, 2)]), ("ij,ij->", [(2, 3), (2, 3)]),
                         ("i,j->ij", [(2,), (3,)]), ("ij,jk->", [(2, 3), (3, 2)]), ("ij,k->i", [(2, 3), (2,)]), ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 2)])):
    each_dtype("einsum", lambda *xs: torch.einsum(equation, *xs), lambda d: ([equation, [values(s, d, start=i) for i, s in enumerate(shapes)]], {}), backward=False,
               dtypes=("u8", "i8", "i32", "i64", "bf16", "f32", "f64") if len(shapes) > 1 else ("bool", "u8", "i8", "i32", "i64", "bf16", "f32", "f64"))
for how in (dict(), dict(alpha=2), dict(beta=3), dict(alpha=2, beta=0)):
    for name, shapes in (("addmm", [(2, 4), (2, 3), (3, 4)]), ("addmv", [(2,), (2, 3), (3,)]), ("baddbmm", [(2, 2, 4), (2, 2, 3), (2, 3, 4)])):
        each_dtype(name, lambda *xs: getattr(torch, name)(*xs, **how), lambda d: ([values(s, d, start=i) for i, s in enumerate(shapes)], how), dtypes=("u8", "i32", "i64", "f64"))
each_dtype("addcmul", lambda *xs: torch.addcmul(*xs, value=2), lambda d: ([values((2, 3), d, start=i) for i in range(3)], dict(value=2)), dtypes=("u8", "i8", "i32", "i64", "bf16", "f64"))
each_dtype("index_add", lambda x, i, y: x.index_add(0, i, y, alpha=2), lambda d: ([values((3, 2), d), 0, torch.tensor([2, 0]), values((2, 2), d, start=5)], dict(alpha=2)), dtypes=("u8", "i8", "i32", "i64", "bf16", "f64"))
for reduction in ("none", "sum", "mean"):
    ids, how = values((3,), "i64", below=4), dict(reduction=reduction)
    each_dtype("cross_entropy", lambda x, t: F.cross_entropy(x, t, **how), lambda d: ([values((3, 4), d), ids], how), dtypes=("bf16", "f32", "f64"))
    each_dtype("cross_entropy", lambda x, t: F.cross_entropy(x, t, **how), lambda d: ([values((3, 4), d), values((3, 4), d, start=2).softmax(1)], how), dtypes=("bf16", "f32", "f64"))
    each_dtype("nll_loss", lambda x, t: F.nll_loss(x, t, **how), lambda d: ([values((3, 4), d), ids], how), dtypes=("bf16", "f32", "f64"))
    case("cross_entropy", lambda x, t: F.cross_entropy(x, t, **how), values((2, 3, 4), "f64"), values((2, 4), "i64", below=3), **how, note="classes in dim 1")
    target = torch.tensor([0.2, nan, 0.5, -1.0], dtype=torch.float64)
    case("kl_div", lambda x, t: F.kl_div(x, t, **how), values((4,), "f64"), target, **how, note="no probabilities")
for d, size in (("bf16", 0.1), ("f32", 1e-3), ("f64", 1e-8)):
    case("rms_norm", lambda x: F.rms_norm(x, (4,)), values((2, 4), d) * size, note="eps of the dtype")

# --- products, views and places under PyTorch's names --------------------------------------------------------------------

a, b, v = values((2, 3), "f64"), values((3, 4), "f64", start=5), values((3,), "f64", start=2)
batches = values((2, 3, 4), "f64"), values((2, 4, 2), "f64", start=4)
case("mm", torch.mm, a, b)
case("mv", torch.mv, a, v)
case("bmm", torch.bmm, *batches)
case("vdot", torch.vdot, v, values((3,), "f64", start=7))
case("inner", torch.inner, a, values((5, 3), "f64", start=6))
case("inner", torch.inner, a, values((), "f64"))
for beta, alpha in ((1.0, 1.0), (0.5, 2.0), (0.0, 1.0)):
    case("addbmm", lambda x, a, b: torch.addbmm(x, a, b, beta=beta, alpha=alpha), values((3, 2), "f64", start=9), *batches, beta=beta, alpha=alpha)
    case("addr", lambda x, a, b: torch.addr(x, a, b, beta=beta, alpha=alpha), values((3,), "f64"), values((2,), "f64"), v, beta=beta, alpha=alpha)
case("dist", lambda x, y: torch.dist(x, y, 3.0), a, values((3,), "f64"), 3.0)
case("sum_to_size", lambda x: x.sum_to_size(3, 1), x, [3, 1])
case("split", lambda x: x.split([1, 0, 3], 2), x, [1, 0, 3], 2)
case("squeeze", lambda x: x.squeeze((0, 2)), values((1, 3, 1, 2), "f64"), [0, 2])
for name, how in (("hsplit", 3), ("vsplit", [1]), ("dsplit", [1, 3])):
    case(name, lambda x: getattr(torch, name)(x, how), x, how)
for rounding in ("floor", "trunc"):
    case("div", lambda x, y: torch.div(x, y, rounding_mode=rounding), values((4,), "f64"), values((4,), "f64", start=3), rounding_mode=rounding)
    case("div", lambda x, y: torch.div(x, y, rounding_mode=rounding), torch.tensor([7, -7, 7, -7]), torch.tensor([2, 2, -2, -3]), rounding_mode=rounding)
for digits in (0, 2, -1):
    case("round", lambda x: torch.round(x, decimals=digits), values((5,), "f64") * 17.123, decimals=digits)
case("rsub", lambda x, y: torch.rsub(x, y, alpha=2.0), a, values((2, 3), "f64", start=8), alpha=2.0)
places = torch.tensor([[1, 0, 1], [1, 1, 2]])
for own in (True, False):
    case("scatter_reduce", lambda x, i, s: x.scatter_reduce(0, i, s, "prod", include_self=own), values((), "f64"), 0, torch.tensor(0), values((), "f64", start=3), "prod", include_self=own)
    src = values((2, 3), "f64", start=4)
    case("scatter_reduce", lambda x, i, s: x.scatter_reduce(0, i, s, "prod", include_self=own), values((3, 3), "f64"), 0, places, src, "prod", include_self=own)
    for reduce in ("prod", "mean", "amax"):
        case("index_reduce", lambda x, i, s: x.index_reduce(0, i, s, reduce, include_self=own), values((3, 3), "f64"), 0, torch.tensor([2, 0, 2, 2]), values((4, 3), "f64", start=4), reduce, include_self=own)
for add in (False, True):
    case("put", lambda x, i, s: x.put(i, s, add), values((3, 3), "f64"), torch.tensor([[1, 5], [-1, 0]]), values((2, 2), "f64", start=6), add)
for offset in (0, 1, -1):
    n = 3 if offset == 0 else 3 if offset == 1 else 2
    case("diagonal_scatter", lambda x, s: x.diagonal_scatter(s, offset), values((3, 4), "f64"), values((n,), "f64", start=5), offset)
case("renorm", lambda x: x.renorm(2.0, 0, 1.0), values((3, 4), "f64"), 2.0, 0, 1.0)
gaps = torch.tensor([[1.0, nan, 3.0, 2.0], [nan, nan, nan, nan], [4.5, 1.5, 2.5, 3.5]], dtype=torch.float64)
case("nanmedian", torch.nanmedian, gaps)
case("repeat_interleave", lambda x, n: x.repeat_interleave(n, 1), x, torch.tensor([2, 0, 3]), dim=1, backward=False)
case("diag_embed", lambda x: torch.diag_embed(x, 1, 0, 2), values((2, 3), "f64"), 1, 0, 2)
case("masked_fill", lambda x, m, v: x.masked_fill(m, v), a, a > 0, values((), "f64"))
rows = torch.tensor([[2, 1], [1, 5], [2, 1], [1, 4], [1, 5]])
case("unique", lambda x: torch.unique(x, dim=0, return_inverse=True, return_counts=True), rows, dim=0, return_inverse=True, return_counts=True)
case("unique", lambda x: (torch.unique(x, dim=1),), rows, dim=1)
case("unique_consecutive", lambda x: torch.unique_consecutive(x, dim=0, return_counts=True), rows, dim=0, return_counts=True)

# --- pooling and losses of more kinds ------------------------------------------------------------------------------------

for n, (widest, norms, pool, back) in enumerate((
    (F.adaptive_max_pool1d, F.lp_pool1d, F.max_pool1d, F.max_unpool1d),
    (F.adaptive_max_pool2d, F.lp_pool2d, F.max_pool2d, F.max_unpool2d),
    (F.adaptive_max_pool3d, F.lp_pool3d, F.max_pool3d, F.max_unpool3d),
), 1):
    image = values((2, 2, *(5, 4, 6)[:n]), "f64")
    case(f"adaptive_max_pool{n}d_with_indices", lambda x: widest(x, 3, return_indices=True), image, [3])
    case(f"lp_pool{n}d", lambda x: norms(x, 2.0, 2), image, 2.0, [2])
    case(f"lp_pool{n}d", lambda x: norms(x, 3.0, 3, 2, True), image.abs(), 3.0, [3], [2], True)
    case(f"lp_pool{n}d", lambda x: norms(x, inf, 2), image, inf, [2])
    small, at = pool(image, 2, return_indices=True)
    case(f"max_unpool{n}d", lambda x, at: back(x, at, 2), small, at, [2])
    case(f"max_unpool{n}d", lambda x, at: back(x, at, 2, output_size=image.shape[2:]), small, at, [2], output_size=list(image.shape[2:]))
samples = values((2, 2, 3), "f64").abs() % 1
image = values((2, 2, 6, 5, 7), "f64")
case("fractional_max_pool2d", lambda x, u: F.fractional_max_pool2d(x, 2, (3, 4), return_indices=True, _random_samples=u.detach()), image[:, :, 0], [2], [3, 4], samples[..., :2])
case("fractional_max_pool2d", lambda x, u: F.fractional_max_pool2d(x, (3, 2), (1, 4), return_indices=True, _random_samples=u.detach()), image[0, :, 0], [3, 2], [1, 4], samples[:1, :, :2])
case("fractional_max_pool3d", lambda x, u: F.fractional_max_pool3d(x, 2, (3, 2, 4), return_indices=True, _random_samples=u.detach()), image, [2], [3, 2, 4], samples)
for size, shape in ((2, (2, 5, 3)), (3, (2, 4, 3, 2)), (5, (1, 3, 2, 2, 2))):
    case("local_response_norm", lambda x: F.local_response_norm(x, size, 0.1, 0.6, 2.0), values(shape, "f64"), size, 0.1, 0.6, 2.0)
case("rrelu", lambda x: F.rrelu(x, 0.1, 0.5), values((3, 4), "f64"), 0.1, 0.5)
for shape in ((3,), (3, 1), (1, 4)):
    v = values(shape, "f64").abs() + 0.1
    case("gaussian_nll_loss", lambda x, t, v: F.gaussian_nll_loss(x, t, v), values((3, 4), "f64"), values((3, 4), "f64", start=5), v)
for a, b, dim in (((1, 2, 3), (2, 1, 3), -2), ((2, 3), (3,), 1), ((4,), (2, 4), 0)):
    case("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, dim), values(a, "f64"), values(b, "f64", start=4), dim)
case("hinge_embedding_loss", lambda x, t: F.hinge_embedding_loss(x, t, 0.7), values((5,), "f64"), torch.tensor([1.0, -1.0, 0.5, -1.0, 1.0], dtype=torch.float64), margin=0.7, note="targets that are neither")
signs = torch.tensor([1, -1, -1, 1])
case("margin_ranking_loss", lambda x, y, t: F.margin_ranking_loss(x, y, t, 0.2), values((4,), "f64"), values((4,), "f64", start=3), signs, margin=0.2, note="integers as targets")
case("soft_margin_loss", lambda x, t: F.soft_margin_loss(x, t), values((4,), "f64"), signs, note="integers as targets")
case("multilabel_soft_margin_loss", lambda x, t: F.multilabel_soft_margin_loss(x, t), values((3, 4), "f64"), values((3, 4), "i64", below=2), note="integers as targets")
case("multi_margin_loss", lambda x, t: F.multi_margin_loss(x, t), values((), "f64"), torch.tensor(0), note="one class")
case("multi_margin_loss", lambda x, t: F.multi_margin_loss(x, t), values((4,), "f64"), torch.tensor([2]), note="one row, the target with a dim")
case("multilabel_margin_loss", lambda x, t: F.multilabel_margin_loss(x, t), values((), "f64"), torch.tensor(0), note="one class")
case("linear", lambda x, w, b: F.linear(x, w, b), values((2, 3), "i64"), values((4, 3), "i64", start=2), values((4,), "i64"), note="integers")
for bias, layers, both in ((True, 1, False), (False, 2, False), (True, 2, True)):
    torch.manual_seed(1)
    net = torch.nn.LSTM(3, 4, layers, bias, proj_size=2, bidirectional=both).double()
    n = layers * (2 if both else 1)
    x, states = values((5, 2, 3), "f64"), [values((n, 2, 2), "f64", start=7), values((n, 2, 4), "f64", start=9)]
    weights = [w.detach().clone() for w in net._flat_weights]
    run = lambda x, h, c, *w: (lambda y: (y[0], y[1], y[2]))(torch.lstm(x, (h, c), list(w), bias, layers, 0.0, False, both, False))
    case("lstm", run, x, states, weights, has_biases=bias, num_layers=layers, bidirectional=both, note="h narrower than c")

# --- integers by the places of a kernel, gradients of data, combinations ---------------------------------------------------

ints = values((2, 4, 5, 6), "i64", start=3)
for kernel, stride, padding, dilation, groups in ((2, 1, 0, 1, 1), (3, 2, 1, 1, 2), ([1, 2], [2, 3], [0, 1], [1, 2], 4)):
    size = kernel if isinstance(kernel, list) else [kernel, kernel]
    pair = lambda v: v if isinstance(v, list) else [v, v]
    w = values((4, 4 // groups, *size), "i64", start=5)
    case("conv2d", lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups), ints, w, values((4,), "i64"), pair(stride), pair(padding), pair(dilation), groups, note="integers")
    w = values((4, 6 // groups if groups < 4 else 2, *size), "i64", start=5)
    case("conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w, None, stride, padding, 0, groups, dilation), ints, w, stride=pair(stride), padding=pair(padding), groups=groups, dilation=pair(dilation), note="integers")
case("conv1d", lambda x, w: F.conv1d(x, w), values((2, 3, 7), "i64"), values((2, 3, 3), "i64"), note="integers")
for kernel, stride, padding, dilation, up in (([2, 2], [2, 2], [0, 0], [1, 1], False), ([3, 2], [2, 1], [1, 1], [1, 2], True)):
    case("max_pool2d", lambda x: F.max_pool2d(x, kernel, stride, padding, dilation, up), ints, kernel, stride, padding, dilation, up, note="integers")
    case("max_pool2d_with_indices", lambda x: F.max_pool2d(x, kernel, stride, padding, dilation, up, return_indices=True), ints, kernel, stride, padding, dilation, up, note="integers")
    for counted, divisor in ((True, None), (False, None), (True, 3)):
        case("avg_pool2d", lambda x: F.avg_pool2d(x, kernel, stride, padding, up, counted, divisor), ints, kernel, stride, padding, up, counted, **({} if divisor is None else {"divisor_override": divisor}), note="integers")
curve = values((4, 5), "f64").cumsum(1)
for spacing, dim, order in ((1.0, [0, 1], 1), (0.5, [1], 2), (2.0, [0], 1)):
    case("gradient", lambda x: torch.gradient(x, spacing=spacing, dim=dim, edge_order=order), curve, spacing=spacing, dim=dim, edge_order=order)
case("gradient", lambda x: torch.gradient(x, spacing=[0.5, 2.0]), curve, spacing=[0.5, 2.0])
for order in (1, 2):
    at = [torch.tensor([0.0, 0.5, 2.0, 3.0], dtype=torch.float64), torch.tensor([0.0, 1.0, 1.5, 4.0, 4.25], dtype=torch.float64)]
    case("gradient", lambda x, *at: torch.gradient(x, spacing=[t.detach() for t in at], edge_order=order), curve, spacing=at, edge_order=order, backward=False)
for r, again in ((2, False), (3, False), (2, True), (1, False), (4, False)):
    case("combinations", lambda x: torch.combinations(x, r, again), values((4,), "f64"), r, again)
for bins, limits in (([3, 2], []), ([2, 4], [-2.0, 2.0, -1.0, 1.5])):
    points = values((7, 2), "f64")
    flat = lambda found: [found[0], *found[1]]
    case("histogramdd", lambda x: flat(torch.histogramdd(x, bins, range=limits or None)), points, bins, **({"range": limits} if limits else {}), backward=False)
    case("histogramdd", lambda x, w: flat(torch.histogramdd(x, bins, range=limits or None, weight=w, density=True)), points, bins, **({"range": limits} if limits else {}), weight=values((7,), "f64").abs(), density=True, backward=False)
case("histogramdd", lambda x, a, b: flat(torch.histogramdd(x, [a, b])), points, [torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64), torch.tensor([-2.0, 0.5, 1.0, 3.0], dtype=torch.float64)], backward=False)
case("constant_pad_nd", lambda x: torch.constant_pad_nd(x, [1, 2, -1, 0], 0.5), x, [1, 2, -1, 0], 0.5)
case("cat", lambda a, b: torch.cat([a, b], 1), [torch.zeros(0, dtype=torch.float64), values((2, 3), "f64")], 1, note="an empty list")
case("tensordot", lambda a, b: torch.tensordot(a, b, ([1], [0])), values((2, 1), "f64"), values((3, 4), "f64"), [1], [0], note="a dim of size 1")
case("trapezoid", lambda y, x: torch.trapezoid(y, x), values((2, 4), "f64"), values((1, 4), "f64").cumsum(1), note="places of one row")
bools = values((5,), "i64", below=2).bool()
case("index_add", lambda x, i, v: torch.index_add(x, 0, i, v), bools, 0, torch.tensor([0, 2, 2]), torch.tensor([True, False, True]), note="bools")
# --- special functions ---------------------------------------------------------------------------------------------------

positive = values((3, 4), "f64", positive=True)
for p in (1, 2, 3, 5):
    case("mvlgamma", lambda x: torch.mvlgamma(x, p), positive + 3, p)
case("special.multigammaln", lambda x: torch.special.multigammaln(x, 2), values((3, 4), "f32", positive=True) + 1, 2)
case("frexp", torch.frexp, values((3, 4), "f64"))
case("frexp", torch.frexp, torch.tensor([0.0, -0.0, 1.0, -8.0, 1e-40, 0.75]))
case("float_power", torch.float_power, values((3, 4), "f64", positive=True), values((4,), "f64", start=3))
case("float_power", torch.float_power, values((3, 4), "i32", positive=True), values((4,), "i64"))
case("float_power", lambda x: torch.float_power(x, 2.5), values((3, 4), "f64", positive=True), 2.5)
case("float_power", lambda x: torch.float_power(2.5, x), 2.5, values((3, 4), "f64"))
case("polygamma", lambda x: torch.polygamma(2, x), 2, positive)
case("polygamma", lambda x: x.polygamma(2), positive, 2)
case("special.xlog1py", lambda x: torch.special.xlog1py(x, 0.7), values((3, 4)), 0.7)
case("special.xlog1py", lambda x: torch.special.xlog1py(0.7, x), 0.7, positive)
case("special.xlogy", lambda x: torch.special.xlogy(0.7, x), 0.7, positive)
case("special.zeta", lambda x: torch.special.zeta(2.5, x), 2.5, positive)
case("special.gammaln", torch.special.gammaln, positive)
case("special.gammainc", lambda a, x: torch.special.gammainc(a.detach(), x), positive, positive.flip(0))
case("conj_physical", torch.conj_physical, values((3, 4)))
degrees = torch.arange(6, dtype=torch.float64)
case("special.legendre_polynomial_p", lambda n: torch.special.legendre_polynomial_p(0.3, n), 0.3, degrees, backward=False)
case("special.laguerre_polynomial_l", lambda x: torch.special.laguerre_polynomial_l(x, 4), values((3, 4), "f64"), 4, backward=False)

with open("functions.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
print(len(cases), "cases of", len({c["function"] for c in cases}), "functions")
