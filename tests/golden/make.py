"""Makes ops.json, promotion.json, scalars.json and extremes.json: what PyTorch gives for small calls of every op, forward
and gradient.

Run it with any Python that has torch, in this folder: `python make.py`. The test `golden` reads the files; torch is
needed only to make them again.
"""

import json
import math

import torch
import torch.nn.functional as F

NAMES = {
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
    torch.int8: "i8", torch.uint8: "u8", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool",
    torch.int16: "i16", torch.uint16: "u16", torch.uint32: "u32", torch.float8_e4m3fn: "f8_e4m3fn", torch.float8_e5m2: "f8_e5m2",
}
FLOAT8 = ("f8_e4m3fn", "f8_e5m2")
DTYPES = {v: k for k, v in NAMES.items()}
DIGITS = {"f16": 6, "bf16": 5, "f32": 9, "f64": 17, "f8_e4m3fn": 17, "f8_e5m2": 17}
nan, inf = math.nan, math.inf


def number(x, dtype):
    if dtype == "bool":
        return int(x)
    if dtype not in DIGITS:
        return int(x)
    x = float(x)
    if math.isnan(x) or math.isinf(x):
        return str(x)
    return float(f"{x:.{DIGITS[dtype]}g}")


def dump(t):
    if t is None:
        return None
    d = NAMES[t.dtype]
    return {"dtype": d, "shape": list(t.shape), "data": [number(x, d) for x in t.detach().reshape(-1).tolist()]}


def values(shape, dtype="f32", positive=False, start=0, below=None):
    """Fixed values: neither round nor near a kink of the functions; integers small; no two of a tensor alike."""
    n = math.prod(shape)
    if below is not None:
        return torch.tensor([(7 * i + start) % below for i in range(n)], dtype=DTYPES[dtype]).reshape(shape)
    if dtype == "bool":
        return torch.tensor([(5 * i + start) % 3 == 0 for i in range(n)]).reshape(shape)
    if dtype in ("i8", "u8", "i32", "i64", "i16", "u16", "u32"):
        low = 1 if positive or dtype[0] == "u" else -4
        return torch.tensor([low + (5 * (i + start)) % 9 or 7 for i in range(n)], dtype=DTYPES[dtype]).reshape(shape)
    xs = [(((37 * (i + start)) % 61) - 30) / 16.7 + 0.011 * i + 0.037 for i in range(n)]
    xs = [abs(x) + 0.21 for x in xs] if positive else xs
    return torch.tensor(xs, dtype=torch.float64).to(DTYPES[dtype]).reshape(shape)


cases = []


def case(op, f, *inputs, attrs=None, backward=True, name=""):
    """One call; with float inputs and outputs also the gradients for a fixed out-gradient of output 0."""
    leaf = lambda t: backward and t.dtype.is_floating_point and NAMES[t.dtype] not in FLOAT8
    ins = [t.clone().requires_grad_(leaf(t)) if t is not None else None for t in inputs]
    out = f(*ins)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    dy, grads = None, None
    wants = [t for t in ins if t is not None and t.requires_grad]
    if wants and outs[0].requires_grad and outs[0].dtype.is_floating_point:
        dy = values(outs[0].shape, "f64", start=3).to(outs[0].dtype)
        found = iter(torch.autograd.grad(outs[0], wants, dy, allow_unused=True))
        grads = [dump(next(found)) if t is not None and t.requires_grad else None for t in ins]
    cases.append({
        "op": op, "name": name, "inputs": [dump(t) for t in ins], "attrs": {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in (attrs or {}).items()},
        "outputs": [dump(t) for t in outs], "dy": dump(dy), "grads": grads,
    })


# --- one tensor, elementwise -------------------------------------------------------------------------------------------

# hardsigmoid by its formula: torch's own has the slope 1/6 in f32, whatever the dtype.
ANY = {
    "copy": torch.clone, "neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "square": torch.square,
    "floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "exp": torch.exp, "expm1": torch.expm1, "sin": torch.sin,
    "cos": torch.cos, "erf": torch.erf, "reciprocal": torch.reciprocal, "relu": torch.relu, "sigmoid": torch.sigmoid,
    "tanh": torch.tanh, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x), "silu": F.silu, "mish": F.mish, "leaky_relu": F.leaky_relu, "elu": F.elu,
    "softplus": F.softplus, "log_sigmoid": F.logsigmoid, "softsign": F.softsign, "selu": F.selu, "hardtanh": F.hardtanh,
    "hardsigmoid": lambda x: (x / 6 + 0.5).clamp(0, 1), "hardswish": F.hardswish,
    "hardshrink": F.hardshrink, "softshrink": F.softshrink, "tanhshrink": F.tanhshrink,
    "tan": torch.tan, "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh, "asinh": torch.asinh, "exp2": torch.exp2,
    "deg2rad": torch.deg2rad, "rad2deg": torch.rad2deg,
    "erfc": torch.erfc, "trunc": torch.trunc, "frac": torch.frac, "relu6": F.relu6, "celu": F.celu,
}
POSITIVE = {"log2": torch.log2, "log10": torch.log10, "log": torch.log, "log1p": torch.log1p, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt}
for op, f in {**ANY, **POSITIVE}.items():
    for d in ("f32", "f64", "bf16"):
        case(op, f, values((3, 4), d, positive=op in POSITIVE))
# What is defined between bounds only.
WITHIN = {"asin": torch.asin, "acos": torch.acos, "atanh": torch.atanh, "acosh": torch.acosh}
for op, f in WITHIN.items():
    for d in ("f32", "f64", "bf16"):
        x = values((3, 4), "f64") / 2.7
        case(op, f, (x + 2 if op == "acosh" else x).to(DTYPES[d]))
for op in ("copy", "neg", "abs", "sign", "square", "relu", "trunc", "relu6"):
    for d in ("i32", "i16"):
        case(op, ANY[op], values((2, 3), d))
for op in ("exp", "sqrt", "log", "sin", "reciprocal", "sigmoid", "tanh"):
    case(op, {**ANY, **POSITIVE}[op], values((2, 3), "i64", positive=True), name="integers become f32")
for op, f in {"logical_not": torch.logical_not, "isnan": torch.isnan, "isinf": torch.isinf, "isfinite": torch.isfinite}.items():
    case(op, f, torch.tensor([0.0, -1.5, nan, inf, -inf, 2.0]), backward=False)
for op, f in {"isposinf": torch.isposinf, "isneginf": torch.isneginf, "minus_sign": torch.signbit}.items():
    case(op, f, torch.tensor([0.0, -0.0, -1.5, nan, inf, -inf, 2.0, -1e-42]), backward=False)
    if op != "minus_sign":
        case(op, f, values((4,), "i32"))
for d in ("f32", "f64", "bf16"):
    # torch rounds every step of this gradient to bf16.
    case("sinc", torch.sinc, values((3, 4), d), backward=d != "bf16")
case("sinc", torch.sinc, torch.tensor([0.0, 1.0, -2.0, inf, nan]), backward=False, name="edges")
for d in ("f32", "f64", "bf16"):
    case("replace_not_finite", lambda x: torch.nan_to_num(x, 0.5, 9.0, -8.0), values((3, 4), d), attrs={"nan": 0.5, "posinf": 9.0, "neginf": -8.0})
    case("logit_within", lambda x: torch.logit(x, 0.2), torch.sigmoid(values((3, 4), d)), attrs={"eps": 0.2}, backward=d != "bf16")
edges = torch.tensor([-inf, -1.0, -0.0, 0.0, 1.0, inf, nan])
for op in ("abs", "neg", "exp", "expm1", "relu", "sigmoid", "tanh", "erf", "floor", "round", "silu"):
    case(op, ANY[op], edges, backward=False, name="edges")
for op in ("log", "sqrt", "log1p"):
    case(op, POSITIVE[op], edges, backward=False, name="edges")
case("round", torch.round, torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 3.49]), backward=False, name="ties to even")
for d in ("i8", "u8", "i16", "i32", "i64"):
    case("bitwise_not", torch.bitwise_not, values((2, 3), d))
case("prelu", lambda x, w: torch.where(x > 0, x, w * x), values((3, 4)), values((4,), start=3))
case("gate", lambda x, w: F.glu(torch.stack([x, w]), 0)[0], values((3, 4)), values((3, 4), start=5))
case("celu", lambda x: F.celu(x, 0.7), values((5,)), attrs={"alpha": 0.7})
case("threshold", lambda x: F.threshold(x, 0.3, 7.5), values((7,)), attrs={"threshold": 0.3, "value": 7.5})
case("threshold", lambda x: F.threshold(x, -0.3, -1.0), values((3, 4), "f64"), attrs={"threshold": -0.3, "value": -1.0})
case("leaky_relu", lambda x: F.leaky_relu(x, 0.3), values((5,)), attrs={"alpha": 0.3})
case("elu", lambda x: F.elu(x, 0.7), values((5,)), attrs={"alpha": 0.7})
case("softplus", lambda x: F.softplus(x, 2.0, 1.0), values((7,)), attrs={"beta": 2.0, "threshold": 1.0})
case("hardtanh", lambda x: F.hardtanh(x, -0.3, 0.9), values((7,)), attrs={"lo": -0.3, "hi": 0.9})
for src, dst in (("f32", "f64"), ("f64", "bf16"), ("f32", "f16"), ("i64", "f32"), ("f32", "i64"), ("f32", "bool"), ("bool", "i32"), ("i32", "u8"), ("f64", "i8")):
    case("cast", lambda x: x.to(DTYPES[dst]), values((2, 3), src, positive=dst == "u8"), attrs={"dtype": dst})
wide = torch.tensor([0.0, -7.0, 40000.0, 70000.0, -40000.0, 127.0, 255.0, 32768.0, 65535.0, 65536.0, 3e9, 2.0**31, 2.0**32, 1.5, -1.5])
for d in ("i16", "u16", "u32"):
    case("cast", lambda x: x.to(DTYPES[d]), wide.long(), attrs={"dtype": d}, name="integers wrap")
    # Beyond the range C does not say what a float becomes.
    ends = torch.iinfo(DTYPES[d])
    held = wide[(wide.double() >= ends.min) & (wide.double() <= ends.max)]
    case("cast", lambda x: x.to(DTYPES[d]), held, attrs={"dtype": d})
    for other in ("f32", "f64", "f16", "bf16", "i64", "i32", "u8", "i8", "bool", "i16", "u16", "u32"):
        case("cast", lambda x: x.to(DTYPES[other]), held.double().to(DTYPES[d]), attrs={"dtype": other})
# 8-bit floats: every code, and f32 numbers on, between, and just beside the middles of all neighbours, and beyond the largest.
for d in FLOAT8:
    codes = torch.arange(256, dtype=torch.uint8).view(DTYPES[d])
    for other in ("f32", "f16", "bf16", "f64"):
        case("cast", lambda x: x.to(DTYPES[other]), codes, attrs={"dtype": other}, name="every code")
    numbers = codes.double().sort()[0]
    numbers = numbers[numbers.isfinite()].unique()
    middles = ((numbers[1:] + numbers[:-1]) / 2).float()
    most = numbers.max().item()
    beyond = torch.tensor([most * k for k in (1.01, 1.03, 1.0357142, 1.04, 1.0714, 1.08, 1.2, 100.0)] + [1e38, inf, nan, 1e-45, 1e-30])
    up, down = (torch.nextafter(middles, torch.full_like(middles, to)) for to in (inf, -inf))
    for x in (middles, up, down, beyond, -beyond):
        case("cast", lambda x: x.to(DTYPES[d]), x, attrs={"dtype": d}, backward=False, name="rounding")
    case("cast", lambda x: x.to(DTYPES[d]), values((3, 4)), attrs={"dtype": d}, name="the gradient comes back")
    case("cast", lambda x: x.to(DTYPES[d]), values((3, 4), "i32"), attrs={"dtype": d})
    case("cast", lambda x: x.to(torch.int32), values((3, 4)).to(DTYPES[d]), attrs={"dtype": "i32"}, backward=False)

# --- two tensors, elementwise ------------------------------------------------------------------------------------------

BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum, "minimum": torch.minimum,
    "fmod": torch.fmod, "remainder": torch.remainder, "floor_divide": torch.floor_divide,
}
for op, f in BINARY.items():
    grad = op != "floor_divide"
    for d in ("f32", "f64", "bf16"):
        case(op, f, values((3, 4), d), values((3, 4), d, positive=True, start=9), backward=grad)
    case(op, f, values((2, 1, 3)), values((4, 1), positive=True, start=5), backward=grad, name="broadcast")
    case(op, f, values((4,)), values((), positive=True, start=2), backward=grad, name="0-dim")
    case(op, f, values((0, 3)), values((3,), positive=True), backward=grad, name="empty")
    for d in ("i32", "i16"):
        case(op, f, values((2, 3), d), values((2, 3), d, positive=True, start=4))
BINARY_MORE = {"atan2": torch.atan2, "hypot": torch.hypot, "logaddexp": torch.logaddexp, "fmax": torch.fmax, "fmin": torch.fmin,
               "copysign": torch.copysign, "logaddexp2": torch.logaddexp2}
for op, f in BINARY_MORE.items():
    for d in ("f32", "f64", "bf16"):
        case(op, f, values((3, 4), d), values((3, 4), d, start=9))
    case(op, f, values((2, 1, 3)), values((4, 1), start=5), name="broadcast")
for a, b in (("f32", "f64"), ("f64", "f32"), ("bf16", "f32"), ("i32", "f64"), ("f16", "i64"), ("i64", "i32")):
    some = values((3,), "bool")
    for first, other in ((values((3,), a), values((), b)), (values((), a), values((3,), b)), (values((), a), values((), b))):
        # The gradient of a half without dims is a sum that is rounded on each rank that has a part of it.
        case("where", lambda c, x, y: torch.where(c, x, y), some, first, other, name="without dims", backward=a not in ("bf16", "f16"))
for d in ("f32", "f64", "bf16"):
    case("ldexp", lambda a, b: a * torch.exp2(b), values((3, 4), d), values((4,), d, start=9))
    case("xlogy", torch.xlogy, values((3, 4), d), values((4,), d, start=9, positive=True))
    case("heaviside", torch.heaviside, torch.round(values((3, 4), d)), values((4,), d, start=9), backward=False)
    case("close_to", lambda a, b: torch.isclose(a, b, 0.1, 0.2), values((3, 4), d), values((4,), d, start=1), attrs={"rtol": 0.1, "atol": 0.2}, backward=False)
case("xlogy", torch.xlogy, torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0, nan]), torch.tensor([0.0, nan, -1.0, inf, 0.0, 0.0]), backward=False, name="edges")
case("xlogy", torch.xlogy, values((3,), "i32"), values((3,), "i32", positive=True), name="integers become f32")
case("heaviside", torch.heaviside, torch.tensor([nan, 0.0, -0.0, inf, -inf]), torch.tensor([2.0, 3.0, nan, 1.0, 1.0]), backward=False, name="edges")
case("copysign", torch.copysign, values((2, 3), "i32"), values((2, 3), "i32", start=4), name="integers become f32")
case("atan2", torch.atan2, values((2, 3), "i32"), values((2, 3), "i32", start=4), name="integers become f32")
BITS = {"bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or, "bitwise_xor": torch.bitwise_xor}
SHIFTS = {"bitwise_left_shift": torch.bitwise_left_shift, "bitwise_right_shift": torch.bitwise_right_shift}
for op, f in BITS.items():
    for d in ("i8", "u8", "i16", "i32", "i64", "bool"):
        case(op, f, values((3, 4), d), values((3, 4), d, start=9))
    case(op, f, values((2, 3), "i64"), values((3,), "u8"), name="promotion")
    case(op + "_scalar", lambda x: f(x, 6), values((3, 4), "i32"), attrs={"s": 6})
for op, f in SHIFTS.items():
    for d in ("i8", "u8", "i32", "i64"):
        case(op, f, values((3, 4), d), values((3, 4), d, below=7))
    case(op + "_scalar", lambda x: f(x, 3), values((3, 4), "i32"), attrs={"s": 3})
for d in ("f32", "f64"):
    three = values((3, 4), d), values((3, 4), d, start=9), values((3, 4), d, start=4, positive=True)
    case("lerp", torch.lerp, *three)
    case("lerp", torch.lerp, values((3, 4), d), values((4,), d, start=9), values((3, 1), d, start=4), name="broadcast")
    for w in (0.25, 0.75, -1.5, 1.0):
        case("lerp_scalar", lambda a, b: torch.lerp(a, b, w), three[0], three[1], attrs={"weight": w})
    for v in (1, 0.5, -2):
        case("addcmul", lambda x, a, b: torch.addcmul(x, a, b, value=v), *three, attrs={"value": v})
        case("addcdiv", lambda x, a, b: torch.addcdiv(x, a, b, value=v), *three, attrs={"value": v})
case("addcmul", lambda x, a, b: torch.addcmul(x, a, b, value=2), values((4,), "i64"), values((4,), "i64", start=3), values((4,), "i64", start=6), attrs={"value": 2})

# --- losses of elements -------------------------------------------------------------------------------------------------

each = lambda f, **kw: lambda x, t: f(x, t, reduction="none", **kw)
EACH = {"mse_each": each(F.mse_loss), "l1_each": each(F.l1_loss), "smooth_l1_each": each(F.smooth_l1_loss), "huber_each": each(F.huber_loss),
        "soft_margin_each": lambda x, t: F.softplus(-t * x), "kl_log_each": each(F.kl_div, log_target=True)}
for op, f in EACH.items():
    for d in ("f32", "f64", "bf16"):
        case(op, f, values((3, 4), d), values((3, 4), d, start=9), backward=d != "bf16")
case("smooth_l1_each", each(F.smooth_l1_loss, beta=0.4), values((3, 4)), values((3, 4), start=9), attrs={"beta": 0.4})
case("huber_each", each(F.huber_loss, delta=0.4), values((3, 4)), values((3, 4), start=9), attrs={"delta": 0.4})
for d in ("f32", "f64"):
    p, t = torch.sigmoid(values((3, 4), d)), torch.sigmoid(values((3, 4), d, start=9))
    case("bce_each", each(F.binary_cross_entropy), p, t)
    case("bce_logits_each", each(F.binary_cross_entropy_with_logits), values((3, 4), d), t)
    case("bce_logits_weighted_each", lambda x, t, w: (1 - t) * x + (1 + (w - 1) * t) * F.softplus(-x), values((3, 4), d), t, values((4,), d, positive=True))
    case("kl_each", each(F.kl_div), values((3, 4), d), t)
    signs = torch.sign(values((3, 4), d, start=5))
    case("hinge_each", lambda x, t: F.hinge_embedding_loss(x, t, 0.7, reduction="none"), values((3, 4), d), signs, attrs={"margin": 0.7}, backward=False)
    case("ranking_each", lambda a, b, t: F.margin_ranking_loss(a, b, t, 0.3, reduction="none"), values((3, 4), d), values((3, 4), d, start=9), signs, attrs={"margin": 0.3})
    case("root", torch.sqrt, values((3, 4), d, positive=True))
case("bce_each", each(F.binary_cross_entropy), torch.tensor([0.0, 1.0, 0.0, 1.0]), torch.tensor([0.0, 1.0, 1.0, 0.0]), backward=False, name="certain")
case("root", lambda x: torch.linalg.vector_norm(x.sqrt()[:, None], dim=1), torch.tensor([0.0, 4.0]), backward=False, name="zero")

case("pow", torch.pow, values((3, 4), positive=True), values((3, 4), start=5))
case("pow", torch.pow, values((3, 1), "f64", positive=True), values((4,), "f64", start=5), name="broadcast")
case("pow", torch.pow, torch.tensor([0.0, 0.0, -2.0, 2.0, 1.0]), torch.tensor([0.0, 2.0, 3.0, -1.0, inf]), backward=False, name="edges")
bad = (torch.tensor([nan, 1.0, nan, -0.0, inf]), torch.tensor([1.0, nan, nan, 0.0, -inf]))
for op in ("add", "mul", "maximum", "minimum"):
    case(op, BINARY[op], *bad, backward=False, name="NaN propagates")
signs = (torch.tensor([7.0, -7.0, 7.0, -7.0, 5.5]), torch.tensor([3.0, 3.0, -3.0, -3.0, 0.5]))
for op in ("fmod", "remainder", "floor_divide"):
    case(op, BINARY[op], *signs, backward=False, name="signs")
    case(op, BINARY[op], *(t.to(torch.int64) for t in (signs[0], torch.tensor([3, 3, -3, -3, 2]))), name="signs of integers")
COMPARE = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}
for op, f in COMPARE.items():
    case(op, f, torch.tensor([1.0, 2.0, nan, 3.0]), torch.tensor([1.0, 3.0, nan, 2.0]), backward=False)
    case(op, f, values((3, 1), "i64"), values((4,), "i64", start=1), backward=False)
    case(op + "_scalar", lambda x: f(x, 2), values((6,), "i64"), attrs={"s": 2}, backward=False)
    case(op + "_scalar", lambda x: f(x, 0.5), torch.tensor([0.5, 1.0, nan, -1.0]), attrs={"s": 0.5}, backward=False)
for op, f in {"logical_and": torch.logical_and, "logical_or": torch.logical_or, "logical_xor": torch.logical_xor}.items():
    case(op, f, torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False]))
    case(op, f, torch.tensor([0, 2, 0, -1]), torch.tensor([True, False, True, True]), name="mixed")
case("where", torch.where, values((3, 4), "bool"), values((3, 4)), values((3, 4), start=7))
case("where", torch.where, values((3, 1), "bool"), values((4,), "f64"), values((3, 4), "f64", start=7), name="broadcast")
case("where", torch.where, values((3,), "bool"), values((3,), "f32"), values((3,), "i64", start=7), name="promotion")
case("masked_fill", lambda x, m: x.masked_fill(m, -1.5), values((3, 4)), values((3, 4), "bool"), attrs={"s": -1.5})
case("masked_fill", lambda x, m: x.masked_fill(m, 2), values((2, 3), "i32"), values((3,), "bool"), attrs={"s": 2})

SCALAR = {
    "add_scalar": lambda x, s: x + s, "sub_scalar": lambda x, s: x - s, "rsub_scalar": lambda x, s: s - x, "mul_scalar": lambda x, s: x * s,
    "div_scalar": lambda x, s: x / s, "rdiv_scalar": lambda x, s: s / x, "pow_scalar": torch.pow, "rpow_scalar": lambda x, s: torch.pow(s, x),
    "clamp_min": lambda x, s: torch.clamp(x, min=s), "clamp_max": lambda x, s: torch.clamp(x, max=s),
    "fmod_scalar": torch.fmod, "remainder_scalar": torch.remainder, "floor_divide_scalar": torch.floor_divide,
}
# What the number is called.
WORD = {"clamp_min": "min", "clamp_max": "max"}
for op, f in SCALAR.items():
    word = WORD.get(op, "s")
    grad = op != "floor_divide_scalar"
    for d in ("f32", "f64", "bf16"):
        case(op, lambda x: f(x, 1.5), values((3, 4), d, positive=True), attrs={word: 1.5}, backward=grad)
    case(op, lambda x: f(x, 2), values((4,), "f32", positive=True), attrs={word: 2}, backward=grad)
    case(op, lambda x: f(x, 2), values((4,), "i64", positive=True), attrs={word: 2})
for s in (0.0, 1.0, 2.0, 3.0, -1.0, 0.5):
    case("pow_scalar", lambda x: torch.pow(x, s), values((5,), "f64", positive=s in (0.5, -1.0)), attrs={"s": s})
case("clamp", lambda x: torch.clamp(x, -0.5, 0.7), values((3, 4)), attrs={"lo": -0.5, "hi": 0.7})
case("clamp", lambda x: torch.clamp(x, -1, 2), values((5,), "i32"), attrs={"lo": -1, "hi": 2})
case("clamp", lambda x: torch.clamp(x, -0.5, 0.7), torch.tensor([nan, inf, -inf]), attrs={"lo": -0.5, "hi": 0.7}, backward=False, name="edges")

# --- reductions --------------------------------------------------------------------------------------------------------


def dims_of(f, dims, keep):
    if dims:
        return lambda x: f(x, dim=tuple(dims), keepdim=keep)
    return lambda x: f(x, dim=tuple(range(x.ndim)), keepdim=keep)


def prod(x, dim, keepdim):
    for d in sorted((d % x.ndim for d in dim), reverse=True):
        x = torch.prod(x, d, keepdim=keepdim)
    return x


REDUCE = {"sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "amin": torch.amin, "prod": prod}
for op, f in REDUCE.items():
    for dims, keep in (([], False), ([1], False), ([-1, 0], True), ([0], False), ([0, 1, 2], True)):
        for d in ("f32", "f64"):
            case(op, dims_of(f, dims, keep), values((2, 3, 4), d), attrs={"dims": dims, "keepdim": keep})
    case(op, dims_of(f, [1], False), values((3, 4), "bf16"), attrs={"dims": [1]})
    if op != "mean":
        case(op, dims_of(f, [0], False), values((3, 4), "i32"), attrs={"dims": [0]})
    case(op, dims_of(f, [1], False), values((0, 4)), attrs={"dims": [1]}, backward=False, name="empty output")
    case(op, dims_of(f, [0], False), torch.tensor([[1.0, nan], [2.0, 3.0]]), attrs={"dims": [0]}, backward=False, name="NaN propagates")
case("prod", dims_of(prod, [1], False), torch.tensor([[0.0, 2.0, 3.0], [0.0, 0.0, 5.0], [4.0, 2.0, 0.5]]), attrs={"dims": [1]}, name="zeros")
case("prod", torch.prod, torch.tensor([[0.0, 2.0], [3.0, 5.0]], dtype=torch.float64), attrs={"dims": []}, name="zeros")
for op, f in REDUCE.items():
    for dims, keep in (([0], False), ([-1], True), ([], False)):
        case(op, dims_of(f, dims, keep) if op != "prod" else lambda x: torch.prod(x, 0), torch.tensor(2.5), attrs={"dims": dims, "keepdim": keep}, name="0-dim")
case("sum", lambda x: x.sum(0), torch.tensor(3), attrs={"dims": [0]}, name="0-dim")
for op in ("sum", "prod"):
    case(op, dims_of(REDUCE[op], [1], False), values((3, 0)), attrs={"dims": [1]}, backward=False, name="nothing to reduce")
    case(op, dims_of(REDUCE[op], [0], False), values((4, 2), "bool"), attrs={"dims": [0]}, name="bools")
for op in ("amax", "amin"):
    case(op, dims_of(REDUCE[op], [0], False), torch.tensor([[1.0, 2.0], [1.0, 3.0], [0.0, 3.0]]), attrs={"dims": [0]}, name="ties share")
for op, f in {"any": torch.any, "all": torch.all}.items():
    for dims, keep in (([1], False), ([0], True)):
        case(op, lambda x: f(x, dim=dims[0], keepdim=keep), values((3, 4), "bool"), attrs={"dims": dims, "keepdim": keep})
    case(op, lambda x: f(x, dim=1), torch.tensor([[0, 2], [0, 0], [1, 3]]), attrs={"dims": [1]}, name="integers")
    case(op, lambda x: f(x, dim=1), values((2, 0), "bool"), attrs={"dims": [1]}, name="nothing to reduce")
for op, f in {"argmax": torch.argmax, "argmin": torch.argmin}.items():
    for dim, keep in ((0, False), (-1, True), (1, False)):
        case(op, lambda x: f(x, dim=dim, keepdim=keep), values((3, 4, 2)), attrs={"dim": dim, "keepdim": keep}, backward=False)
    case(op, lambda x: f(x, dim=0), torch.tensor([1.0, nan, 3.0, nan]), attrs={"dim": 0}, backward=False, name="NaN wins")
    case(op, lambda x: f(x, dim=0), torch.tensor([2, 5, 5, 2]), attrs={"dim": 0}, name="the first of equals")
for op, f in {"any": torch.any, "all": torch.all}.items():
    case(op, lambda x: f(x, dim=0), torch.tensor(True), attrs={"dims": [0]}, name="0-dim")
for op, f in {"argmax": torch.argmax, "argmin": torch.argmin}.items():
    for dim in (0, -1):
        case(op, lambda x: f(x, dim=dim), torch.tensor(2.5), attrs={"dim": dim}, backward=False, name="0-dim")
for dim in (0, -1):
    case("cumsum", lambda x: torch.cumsum(x, dim), torch.tensor(2.5), attrs={"dim": dim}, name="0-dim")
    for op, f in {"softmax": torch.softmax, "log_softmax": torch.log_softmax}.items():
        case(op, lambda x: f(x, dim), torch.tensor(2.5), attrs={"dim": dim}, name="0-dim")
case("cumsum", lambda x: x.flip(1).cumsum(1).flip(1), values((3, 4)), attrs={"dim": 1, "reverse": True})
case("cumsum", lambda x: x.flip(0).cumsum(0).flip(0), values((3, 4), "i32"), attrs={"dim": 0, "reverse": True})
for d in ("f32", "f64", "i32"):
    case("cumsum", lambda x: torch.cumsum(x, 1), values((3, 4), d), attrs={"dim": 1})
case("cumsum", lambda x: torch.cumsum(x, -2), values((3, 4)), attrs={"dim": -2})

# --- products ----------------------------------------------------------------------------------------------------------

MATMUL = [((3, 4), (4, 5), False, False), ((4, 3), (4, 5), True, False), ((3, 4), (5, 4), False, True), ((4, 3), (5, 4), True, True),
          ((2, 3, 4), (4, 5), False, False), ((2, 3, 4), (5, 4), False, True), ((2, 3, 4), (2, 4, 5), False, False),
          ((2, 1, 3, 4), (3, 4, 2), False, False), ((2, 4, 3), (4, 5), True, False), ((3, 0), (0, 2), False, False), ((0, 3), (3, 2), False, False)]
for a, b, ta, tb in MATMUL:
    f = lambda x, y: torch.matmul(x.mT if ta else x, y.mT if tb else y)
    for d in ("f32", "f64"):
        case("matmul", f, values(a, d), values(b, d, start=11), attrs={"transpose_a": ta, "transpose_b": tb})
case("matmul", torch.matmul, values((3, 4), "bf16"), values((4, 5), "bf16", start=11))
case("matmul", torch.matmul, values((3, 4), "i64"), values((4, 2), "i64", start=11))
rows = lambda a, b: a.reshape(-1, a.shape[-1]).mT @ b.reshape(-1, b.shape[-1])
case("matmul_rows", rows, values((2, 3, 4)), values((2, 3, 5), start=11))
case("matmul_rows", rows, values((3, 4), "f64"), values((3, 2), "f64", start=11))
for shape, dtype in [((4, 6), "f32"), ((2, 3, 4), "f64"), ((2, 2, 3, 4), "f32")]:
    k = shape[-1]
    case("linear", F.linear, values(shape, dtype), values((5, k), dtype, start=11), values((5,), dtype, start=3))

# --- softmax, norms, losses, attention ---------------------------------------------------------------------------------

for op, f in {"softmax": torch.softmax, "log_softmax": torch.log_softmax}.items():
    for d in ("f32", "f64", "bf16"):
        for dim in (-1, 0):
            case(op, lambda x: f(x, dim), values((3, 4), d), attrs={"dim": dim})
    case(op, lambda x: f(x, 1), values((2, 0)), attrs={"dim": 1}, backward=False, name="empty")
    case(op, lambda x: f(x, 0), torch.tensor([1e4, -1e4, -inf, 1.0]), attrs={"dim": 0}, backward=False, name="large")

    def gradient(dy, y):
        x = torch.log(y).detach().requires_grad_(True) if op == "softmax" else y.detach().requires_grad_(True)
        return torch.autograd.grad(f(x, 1), x, dy)[0]

    y = f(values((3, 4), "f64"), 1)
    case(op + "_grad", gradient, values((3, 4), "f64", start=2), y, attrs={"dim": 1}, backward=False)


def layer_norm(axes, eps):
    def f(x, w, b):
        shape = x.shape[x.ndim - axes:]
        y = F.layer_norm(x, shape, w, b, eps)
        dims = tuple(range(x.ndim - axes, x.ndim))
        wide = x.float() if x.dtype == torch.bfloat16 else x
        mean = wide.mean(dims)
        return y, mean, torch.rsqrt(wide.var(dims, unbiased=False) + eps)
    return f


def rms_norm(axes, eps):
    def f(x, w):
        y = F.rms_norm(x, x.shape[x.ndim - axes:], w, eps)
        return y, torch.rsqrt(x.square().mean(tuple(range(x.ndim - axes, x.ndim))) + eps)
    return f


for d in ("f32", "f64"):
    case("layer_norm", layer_norm(1, 1e-5), values((2, 3, 6), d), values((6,), d, start=3), values((6,), d, start=8))
    case("layer_norm", layer_norm(2, 1e-3), values((2, 3, 4), d), values((3, 4), d, start=3), None, attrs={"axes": 2, "eps": 1e-3})
    case("layer_norm", layer_norm(1, 1e-5), values((4, 6), d), None, None)
    case("rms_norm", rms_norm(1, 1e-6), values((2, 3, 6), d), values((6,), d, start=3))
    case("rms_norm", rms_norm(2, 1e-3), values((2, 3, 4), d), None, attrs={"axes": 2, "eps": 1e-3})
case("layer_norm", layer_norm(1, 1e-5), values((4, 6), "bf16"), values((6,), "bf16", start=3), values((6,), "bf16", start=8))


def norm_grad(f, n):
    def run(dy, x, *rest):
        x = x.detach().requires_grad_(True)
        stats, w = rest[: n], rest[n].detach().requires_grad_(True)
        args = (x, w, torch.zeros_like(w).requires_grad_(True)) if n == 2 else (x, w)
        return torch.autograd.grad(f(*args)[0], args, dy)
    return run


x, w, dy = values((4, 6), "f64"), values((6,), "f64", start=3), values((4, 6), "f64", start=5)
case("layer_norm_grad", norm_grad(layer_norm(1, 1e-5), 2), dy, x, *layer_norm(1, 1e-5)(x, w, None)[1:], w, backward=False)
case("rms_norm_grad", norm_grad(rms_norm(1, 1e-6), 1), dy, x, rms_norm(1, 1e-6)(x, w)[1], w, backward=False)


def batch_norm(eps):
    def f(x, w, b):
        dims = [d for d in range(x.ndim) if d != 1]
        wide = x.float() if x.dtype == torch.bfloat16 else x
        return F.batch_norm(x, None, None, w, b, True, 0.1, eps), wide.mean(dims), wide.var(dims, unbiased=False)
    return f


for d in ("f32", "f64"):
    case("batch_norm_train", batch_norm(1e-5), values((4, 3, 5), d), values((3,), d, start=3), values((3,), d, start=8))
    case("batch_norm_train", batch_norm(0.1), values((6, 4), d), values((4,), d, start=3), None, attrs={"eps": 0.1})
    case("batch_norm_train", batch_norm(1e-5), values((3, 2, 4, 5), d), None, None)
case("batch_norm_train", batch_norm(1e-5), values((4, 3, 20), "bf16"), values((3,), "bf16", start=3), values((3,), "bf16", start=8), backward=False)
x, w, dy = values((4, 3, 6), "f64"), values((3,), "f64", start=3), values((4, 3, 6), "f64", start=5)
case("batch_norm_grad", norm_grad(batch_norm(1e-5), 2), dy, x, *batch_norm(1e-5)(x, w, None)[1:], w, backward=False)



def grouped_norm(eps):
    def f(x, w, b):
        flat = lambda v: None if v is None else v.reshape(-1)
        y, mean, rstd = torch.native_group_norm(x, flat(w), flat(b), x.shape[0], x.shape[1] * x.shape[2], x.shape[3], x.shape[1], eps)
        return y, mean, rstd
    return f


for d in ("f32", "f64"):
    case("grouped_norm", grouped_norm(1e-5), values((4, 3, 2, 5), d), values((3, 2), d, start=3), values((3, 2), d, start=8))
    case("grouped_norm", grouped_norm(0.1), values((3, 2, 4, 1), d), values((2, 4), d, start=3), None, attrs={"eps": 0.1})
    case("grouped_norm", grouped_norm(1e-5), values((2, 3, 1, 20), d), None, None)
x, w, dy = values((4, 3, 2, 6), "f64"), values((3, 2), "f64", start=3), values((4, 3, 2, 6), "f64", start=5)
case("grouped_norm_grad", norm_grad(grouped_norm(1e-5), 2), dy, x, *grouped_norm(1e-5)(x, w, None)[1:], w, backward=False)

# Image, weight, stride, padding, dilation, groups.
CONVS = (
    ((2, 4, 7), (6, 4, 3), (1,), (1,), (1,), 1),
    ((2, 3, 6, 5), (4, 3, 3, 2), (2, 1), (1, 0), (1, 2), 1),
    ((3, 4, 5, 5), (6, 2, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    ((2, 2, 3, 4, 3), (3, 2, 2, 2, 2), (1, 2, 2), (0, 1, 1), (1, 1, 1), 1),
)


def slides(stride, padding, dilation, size, groups=1):
    return {"stride": list(stride), "padding": list(padding), "dilation": list(dilation), "size": list(size), "groups": groups}


for d in ("f32", "f64", "bf16", "f16"):
    for x, w, s, p, l, g in CONVS[: 4 if d in ("f32", "f64") else 2]:
        conv, turned = [(F.conv1d, F.conv_transpose1d), (F.conv2d, F.conv_transpose2d), (F.conv3d, F.conv_transpose3d)][len(x) - 3]
        a, b, bias = values(x, d), values(w, d, start=3), values(w[:1], d, start=8)
        y = conv(a, b, None, s, p, l, g)
        case("conv", lambda a, b, _: conv(a, b, None, s, p, l, g), a, b, None, attrs=slides(s, p, l, y.shape[2:], g))
        case("conv", lambda a, b, c: conv(a, b, c, s, p, l, g), a, b, bias, attrs=slides(s, p, l, y.shape[2:], g))
        dy = values(tuple(y.shape), d, start=5)
        c = values((x[1],), d, start=8)
        more = [(y.shape[2 + i] - 1) * s[i] - 2 * p[i] + l[i] * (w[2 + i] - 1) + 1 for i in range(len(s))]
        extra = [x[2 + i] - more[i] for i in range(len(s))]
        case("conv_transpose", lambda a, b, c: turned(a, b, c, s, p, extra, g, l), dy, b, c, attrs=slides(s, p, l, x[2:], g))
        if d in ("f32", "f64"):
            grad = [torch.nn.grad.conv1d_weight, torch.nn.grad.conv2d_weight, torch.nn.grad.conv3d_weight][len(x) - 3]
            case("conv_weight", lambda a, b: grad(a, w, b, s, p, l, g), a, dy, attrs=slides(s, p, l, w[2:], g), backward=False)


def averages(kernel, stride, padding, size, count, divisor=None):
    a = {"kernel": list(kernel), "stride": list(stride), "padding": list(padding), "count_padding": count, "size": list(size)}
    return a | ({"divisor": divisor} if divisor else {})


# Image, kernel, stride, padding, dilation.
POOLS = (
    ((2, 3, 7), (3,), (2,), (1,), (1,)),
    ((2, 2, 5, 6), (2, 3), (2, 1), (0, 1), (1, 2)),
    ((2, 2, 4, 4, 4), (2, 2, 2), (2, 1, 2), (1, 0, 1), (1, 1, 1)),
)
for d in ("f32", "f64", "bf16"):
    for x, k, s, p, l in POOLS[: 2 if d == "bf16" else 3]:
        n = len(k) - 1
        pool = [F.max_pool1d, F.max_pool2d, F.max_pool3d][n]
        avg = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][n]
        t = values(x, d)
        y, ids = pool(t, k, s, p, l, return_indices=True)
        at = {"kernel": list(k), "stride": list(s), "padding": list(p), "dilation": list(l), "size": list(y.shape[2:])}
        case("max_pool", lambda t: pool(t, k, s, p, l), t, attrs=at)
        case("max_pool_index", lambda t: pool(t, k, s, p, l, return_indices=True)[1], t, attrs=at, backward=False)
        for count in (True, False):
            z = avg(t, k, s, p, count_include_pad=count)
            case("avg_pool", lambda t: avg(t, k, s, p, count_include_pad=count), t, attrs=averages(k, s, p, z.shape[2:], count))
        if n > 0:
            case("avg_pool", lambda t: avg(t, k, s, p, divisor_override=5), t, attrs=averages(k, s, p, z.shape[2:], True, 5))
        dz = values(tuple(z.shape), d, start=4)

        def spread(dz):
            u = torch.zeros(x, dtype=dz.dtype, requires_grad=True)
            return torch.autograd.grad(avg(u, k, s, p), u, dz)[0]
        case("avg_pool_grad", spread, dz, attrs=averages(k, s, p, x[2:], True), backward=False)
        size = [2, 3, 2][: n + 1]
        widest = [F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d][n]
        means = [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d][n]
        case("adaptive_max_pool", lambda t: widest(t, size), t, attrs={"size": size})
        case("adaptive_max_pool_index", lambda t: widest(t, size, return_indices=True)[1], t, attrs={"size": size}, backward=False)
        case("adaptive_avg_pool", lambda t: means(t, size), t, attrs={"size": size})
        dz = values((*x[:2], *size), d, start=4)

        def spread(dz):
            u = torch.zeros(x, dtype=dz.dtype, requires_grad=True)
            return torch.autograd.grad(means(u, size), u, dz)[0]
        case("adaptive_avg_pool_grad", spread, dz, attrs={"size": list(x[2:])}, backward=False)
t = torch.tensor([[1.0, nan, 2.0, 2.0, nan, nan]])
case("max_pool", lambda t: F.max_pool1d(t, 2), t, attrs={"kernel": [2], "stride": [2], "padding": [0], "dilation": [1], "size": [3]}, backward=False)
case("max_pool_index", lambda t: F.max_pool1d(t, 2, return_indices=True)[1], t, attrs={"kernel": [2], "stride": [2], "padding": [0], "dilation": [1], "size": [3]}, backward=False)


# --- padding and resampling ----------------------------------------------------------------------------------------------

# Shape, before, size, value.
for shape, before, size, value in (((2, 3), [0, 1], [2, 6], 0), ((3, 4), [1, -1], [5, 2], 2.5), ((4, 2), [-1, 0], [2, 2], 1), ((2, 3, 2), [2, 0, -2], [4, 3, 3], 7)):
    pairs = [(b, m - n - b) for b, m, n in zip(before, size, shape)]
    flat = [v for pair in reversed(pairs) for v in pair]
    for d in ("f32", "f64", "bf16", "i32", "bool"):
        if d != "bool":
            case("pad_constant", lambda x: F.pad(x, flat, value=value), values(shape, d), attrs={"before": before, "size": size, "value": value})
    case("pad_constant", lambda x: F.pad(x, flat, value=True), values(shape, "bool"), attrs={"before": before, "size": size, "value": True})

# Mode of the op, PyTorch's, shape, size, aligned, scales.
INTERPOLATED = (
    ("nearest", "nearest", (2, 2, 5), [8], False, []), ("nearest", "nearest", (2, 1, 3, 5), [7, 2], False, []),
    ("nearest", "nearest", (1, 2, 2, 3, 2), [3, 7, 2], False, []), ("nearest", "nearest", (2, 2, 6), [8], False, [1.37]),
    ("nearest-exact", "nearest-exact", (2, 2, 5), [8], False, []), ("nearest-exact", "nearest-exact", (2, 1, 3, 5), [7, 2], False, []),
    ("nearest-exact", "nearest-exact", (2, 2, 6), [8], False, [1.37]), ("linear", "linear", (2, 2, 5), [8], False, []),
    ("linear", "linear", (2, 2, 5), [3], True, []), ("linear", "linear", (2, 2, 5), [1], True, []), ("linear", "linear", (2, 2, 6), [8], False, [1.37]),
    ("linear", "bilinear", (2, 2, 3, 5), [7, 3], False, []), ("linear", "bilinear", (2, 2, 3, 5), [7, 3], True, []),
    ("linear", "bilinear", (2, 2, 3, 5), [3, 9], False, []), ("linear", "bilinear", (1, 2, 4, 5), [5, 8], False, [1.3, 1.7]),
    ("linear", "trilinear", (1, 2, 2, 3, 4), [5, 2, 4], False, []), ("linear", "trilinear", (1, 2, 2, 3, 4), [5, 2, 7], True, []),
    ("cubic", "bicubic", (2, 2, 3, 5), [7, 3], False, []), ("cubic", "bicubic", (2, 2, 3, 5), [7, 3], True, []),
    ("cubic", "bicubic", (1, 2, 4, 5), [5, 8], False, [1.3, 1.7]),
)


def interpolated(how, shape, size, aligned, scales):
    corners = {"align_corners": aligned} if "nearest" not in how else {}
    to = {"scale_factor": scales} if scales else {"size": size}
    return lambda x: F.interpolate(x, mode=how, **to, **corners)


def pulled(f, shape):
    """The gradient of a linear function, as a function."""
    def run(dy):
        x = torch.zeros(shape, dtype=dy.dtype, requires_grad=True)
        return torch.autograd.grad(f(x), x, dy, create_graph=True)[0] if dy.dtype != torch.bfloat16 else torch.autograd.grad(f(x), x, dy)[0]
    return run


for mode, how, shape, size, aligned, scales in INTERPOLATED:
    n, f = len(size), interpolated(how, shape, size, aligned, scales)
    at = {"mode": mode, "size": size, "aligned": aligned, "scales": scales}
    for d in ("f32", "f64", "bf16"):
        x = values(shape, d)
        if d != "bf16":
            case("resample", f, x, attrs=at)
        if d == "f64" or d == "f32" and mode != "cubic":
            case("resample_grad", pulled(f, shape), values(f(x).shape, d, start=4), attrs=at | {"size": list(shape[2:])}, backward=False)
        if d == "bf16" and mode != "cubic":
            case("resample", f, x, attrs=at, backward=False)
# Mode, shape, pads of PyTorch.
for mode, shape, pads in (("reflect", (2, 5), (3, 2)), ("reflect", (2, 3, 4), (1, 3, 2, 0)), ("replicate", (2, 3, 4), (1, 3, 0, 6)), ("circular", (2, 3, 4), (4, 1, 0, 2)),
                          ("reflect", (2, 3, 2, 4), (1, 1, 0, 1, 1, 2)), ("replicate", (1, 2, 3, 2, 4), (0, 1, 2, 0, 1, 1)), ("reflect", (2, 5), (-1, 2)), ("replicate", (2, 5), (2, -3))):
    n = len(pads) // 2
    before, lead = list(pads[::2][::-1]), len(shape) - n
    size = [shape[lead + k] + pads[2 * (n - 1 - k)] + pads[2 * (n - 1 - k) + 1] for k in range(n)]
    f = lambda x: F.pad(x, pads, mode)
    at = {"mode": mode, "size": size, "steps": before}
    for d in ("f32", "f64", "bf16"):
        case("resample", f, values(shape, d), attrs=at, backward=d != "bf16")
        if d != "bf16":
            case("resample_grad", pulled(f, shape), values((*shape[:lead], *size), d, start=4), attrs=at | {"size": list(shape[lead:])}, backward=False)


def windows(sizes):
    """Sizes: of each dim the elements of a window, windows, stride, padding, dilation."""
    def f(x):
        (kh, oh, sh, ph, dh), (kw, ow, sw, pw, dw) = sizes
        y = F.unfold(x, (kh, kw), (dh, dw), (ph, pw), (sh, sw))
        return y.reshape(*x.shape[:2], kh, kw, oh, ow).permute(0, 1, 2, 4, 3, 5).reshape(*x.shape[:2], kh * oh, kw * ow)
    return f


for sizes, shape in ((((2, 3, 1, 0, 1), (3, 2, 2, 1, 1)), (2, 2, 4, 4)), (((2, 2, 2, 1, 2), (2, 4, 1, 0, 1)), (1, 3, 4, 5))):
    at = {"mode": "windows", "size": [k * o for k, o, *_ in sizes], "steps": [v for _, *rest in sizes for v in rest]}
    for d in ("f32", "f64"):
        y = windows(sizes)(values(shape, d))
        case("resample", windows(sizes), values(shape, d), attrs=at)
        case("resample_grad", pulled(windows(sizes), shape), values(y.shape, d, start=4), attrs=at | {"size": list(shape[2:])}, backward=False)


def rotated(interleaved):
    def f(x, cos, sin):
        n = cos.shape[-1]
        a, b = (x[..., 0:2 * n:2], x[..., 1:2 * n:2]) if interleaved else (x[..., :n], x[..., n:2 * n])
        y = [a * cos - b * sin, b * cos + a * sin]
        turned = torch.stack(y, -1).flatten(-2) if interleaved else torch.cat(y, -1)
        return torch.cat([turned, x[..., 2 * n:]], -1)
    return f


for d in ("f32", "f64"):
    for inter in (False, True):
        for shape, table in (((2, 3, 4, 6), (4, 3)), ((2, 4, 7), (4, 3)), ((3, 2, 4), (3, 1, 2)), ((2, 5), (2,)), ((2, 3), (0,))):
            angles = values(table, "f64")
            case("rotary_embedding", rotated(inter), values(shape, d), torch.cos(angles).to(DTYPES[d]), torch.sin(angles).to(DTYPES[d]), attrs={"interleaved": inter})


def cross_entropy(ignore, smoothing=0.0):
    def f(x, t):
        n = x.shape[-1]
        loss = F.cross_entropy(x.reshape(-1, n), t.reshape(-1), reduction="none", ignore_index=ignore, label_smoothing=smoothing).reshape(t.shape)
        return loss, torch.logsumexp(x, -1)
    return f


for d in ("f32", "f64"):
    case("cross_entropy", cross_entropy(-100), values((4, 5), d), values((4,), "i64", below=5))
    case("cross_entropy", cross_entropy(1), values((2, 3, 6), d), values((2, 3), "i64", below=6), attrs={"ignore_index": 1})
    case("cross_entropy", cross_entropy(1, 0.3), values((2, 3, 6), d), values((2, 3), "i64", below=6), attrs={"ignore_index": 1, "label_smoothing": 0.3})


def cross_entropy_grad(x, t, lse, dloss, smoothing=0.0):
    x = x.detach().requires_grad_(True)
    return torch.autograd.grad(cross_entropy(-100, smoothing)(x, t)[0], x, dloss)[0]


x, t = values((4, 5), "f64"), values((4,), "i64", below=5)
case("cross_entropy_grad", cross_entropy_grad, x, t, torch.logsumexp(x, -1), values((4,), "f64", start=2), backward=False)
case("cross_entropy_grad", lambda *a: cross_entropy_grad(*a, 0.3), x, t, torch.logsumexp(x, -1), values((4,), "f64", start=2), attrs={"label_smoothing": 0.3}, backward=False)
case("nll_pick", lambda x, t: x.gather(-1, t[:, None])[:, 0], x, t, backward=False)


def attention(causal, scale):
    def f(q, k, v):
        s = q @ k.mT * scale
        if causal:
            s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), -inf)
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale), torch.logsumexp(s, -1)
    return f


for d in ("f32", "f64"):
    q, k, v = (values((2, 2, 4, 3), d, start=i) for i in (0, 5, 9))
    for causal in (False, True):
        case("attention", attention(causal, 0.6), q, k, v, attrs={"causal": causal, "scale": 0.6})
    case("attention", attention(False, 0.5), values((1, 2, 3, 4), d), values((1, 2, 5, 4), d, start=2), values((1, 2, 5, 6), d, start=4), attrs={"scale": 0.5})


def attention_grad(dout, q, k, v, out, lse):
    args = [t.detach().requires_grad_(True) for t in (q, k, v)]
    return torch.autograd.grad(attention(True, 0.6)(*args)[0], args, dout)


out, lse = attention(True, 0.6)(q, k, v)
case("attention_grad", attention_grad, values((2, 2, 4, 3), "f64", start=7), q, k, v, out, lse, attrs={"causal": True, "scale": 0.6}, backward=False)

# --- indices, shapes ---------------------------------------------------------------------------------------------------

for d in ("f32", "f64", "bf16"):
    case("embedding", lambda w, i: F.embedding(i, w), values((6, 3), d), values((2, 4), "i64", below=6))
case("embedding", lambda w, i: F.embedding(i, w), values((6, 3)), values((4,), "i32", below=6))
case("embedding_grad", lambda dy, i: torch.zeros(6, 3, dtype=dy.dtype).index_add(0, i, dy), values((5, 3), "f64"), values((5,), "i64", below=6), attrs={"rows": 6})
case("one_hot", lambda i: F.one_hot(i, 4), values((2, 3), "i64", below=4), attrs={"classes": 4})
case("match_index", lambda x, m: torch.where(x == m, torch.arange(3)[:, None], torch.iinfo(torch.int64).max),
     torch.tensor([[1.0, 2.0], [3.0, 2.0], [3.0, 0.0]]), torch.tensor([[3.0, 2.0]]), attrs={"dim": 0}, backward=False)
for shape in ([24], [4, 6], [2, 1, 12], [3, 2, 4]):
    case("reshape", lambda x: x.reshape(shape), values((2, 3, 4)), attrs={"shape": shape})
case("reshape", lambda x: x.reshape(0, 5), values((0, 3)), attrs={"shape": [0, 5]})
for dims in ([2, 0, 1], [-1, 1, 0], [0, 1, 2]):
    case("permute", lambda x: x.permute(dims), values((2, 3, 4)), attrs={"dims": dims})
for src, dst in (((3, 1), [3, 4]), ((4,), [2, 3, 4]), ((1, 3), [1, 3]), ((1,), [0])):
    case("expand", lambda x: x.expand(dst), values(src), attrs={"shape": dst})
for dim, a, b, step in ((0, 1, 3, 1), (1, 0, 5, 2), (-1, 2, 2, 1), (1, 1, 5, 3)):
    def cut(x):
        at = [slice(None)] * x.ndim
        at[dim] = slice(a, b, step)
        return x[tuple(at)]
    case("slice", cut, values((4, 5)), attrs={"dim": dim, "start": a, "end": b, "step": step})


def uncut(dy):
    x = torch.zeros(9, 3, dtype=dy.dtype)
    return torch.slice_scatter(x, dy, 0, 1, 8, 2)


case("slice_grad", uncut, values((4, 3)), attrs={"dim": 0, "start": 1, "step": 2, "size": 9})
case("concat", lambda *xs: torch.cat(xs, 0), values((2, 3)), values((1, 3), start=4), attrs={"dim": 0})
case("concat", lambda *xs: torch.cat(xs, -1), values((2, 3)), values((2, 0)), values((2, 2), start=4), attrs={"dim": -1})
case("concat", lambda *xs: torch.cat(xs, 0), values((2,), "i32"), values((2,), "f32"), attrs={"dim": 0}, backward=False, name="promotion")
for name, f in (("add", torch.add), ("sub", torch.sub)):
    for alpha in (2, -0.5):
        case(f"{name}_scaled", lambda a, b: f(a, b, alpha=alpha), values((2, 3)), values((3,), start=4), attrs={"alpha": alpha})
        case(f"{name}_scalar_scaled", lambda x: f(x, 1.5, alpha=alpha), values((2, 3)), attrs={"s": 1.5, "alpha": alpha})
for dim, shift in ((0, 1), (-1, -2), (0, 7), (1, 0)):
    case("roll_along", lambda x: torch.roll(x, shift, dim), values((4, 3)), attrs={"dim": dim, "shift": shift})
for offset, d1, d2 in ((0, 0, 1), (1, 0, 2), (-2, 1, -1), (5, 0, 1)):
    case("diagonal", lambda x: torch.diagonal(x, offset, d1, d2), values((3, 4, 5)), attrs={"offset": offset, "dim1": d1, "dim2": d2})
for op, f in {"tril": torch.tril, "triu": torch.triu}.items():
    for diagonal in (0, -1, 2):
        case(op, lambda x: f(x, diagonal), values((2, 3, 4)), attrs={"diagonal": diagonal})

# --- sources, steps ----------------------------------------------------------------------------------------------------

case("full", lambda: torch.full((2, 3), 2.5), attrs={"shape": [2, 3], "value": 2.5})
case("full", lambda: torch.full((3,), 7, dtype=torch.int64), attrs={"shape": [3], "dtype": "i64", "value": 7})
case("arange", lambda: torch.arange(5), attrs={"len": 5})
case("arange", lambda: torch.arange(0.5, 2.0, 0.25, dtype=torch.float32), attrs={"len": 6, "dtype": "f32", "start": 0.5, "step": 0.25})
for n, a, b in ((5, -1.0, 0.7), (6, 0.3, 0.1), (1, 3.0, 4.0), (0, 0.0, 1.0), (2, 0.0, 1.0)):
    for d in ("f32", "f64"):
        case("linspace", lambda: torch.linspace(a, b, n, dtype=DTYPES[d]), attrs={"len": n, "start": a, "end": b, "dtype": d})
for n, m in ((3, 3), (2, 5), (4, 1), (0, 2)):
    case("eye", lambda: torch.eye(n, m), attrs={"rows": n, "columns": m})
case("assign", lambda x, y: y.to(x.dtype), values((2, 3)), values((2, 3), "i32"), backward=False)


def adamw(p, g, m, v):
    from torch.optim import AdamW
    p = p.clone().requires_grad_(True)
    p.grad = g
    o = AdamW([p], lr=0.1, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.03)
    o.state[p] = {"step": torch.tensor(2.0), "exp_avg": m.clone(), "exp_avg_sq": v.clone()}
    o.step()
    return p.detach(), o.state[p]["exp_avg"], o.state[p]["exp_avg_sq"]


for d in ("f32", "f64"):
    case("adamw_step", adamw, values((2, 3), d), values((2, 3), d, start=1), values((2, 3), d, start=2), values((2, 3), d, start=3, positive=True),
         attrs={"lr": 0.1, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6, "weight_decay": 0.03, "step": 3}, backward=False)


def sgd(p, g, buf=None, **kw):
    p = p.clone().requires_grad_(True)
    p.grad = g
    o = torch.optim.SGD([p], lr=0.1, **kw)
    if buf is not None:
        o.state[p] = {"momentum_buffer": buf.clone()}
    o.step()
    return (p.detach(), o.state[p]["momentum_buffer"]) if buf is not None else (p.detach(),)


case("sgd_step", lambda p, g, b: sgd(p, g), values((2, 3)), values((2, 3), start=1), None, attrs={"lr": 0.1}, backward=False)
for nesterov in (False, True):
    case("sgd_step", lambda p, g, b: sgd(p, g, b, momentum=0.9, weight_decay=0.02, nesterov=nesterov), values((2, 3)), values((2, 3), start=1), values((2, 3), start=2),
         attrs={"lr": 0.1, "decay": 0.9, "weight_decay": 0.02, "nesterov": nesterov}, backward=False)



def both(step, n):
    """The step for each group of n tensors; what it changes, in order."""
    return lambda *xs: [y for k in range(0, len(xs), n) for y in step(*xs[k:k + n])]


case("adamw_many", both(adamw, 4), *[values(s, positive=k == 3, start=k) for s in ((2, 3), (5,)) for k in range(4)],
     attrs={"lr": 0.1, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6, "weight_decay": 0.03, "step": 3}, backward=False)
case("sgd_many", both(lambda p, g, b: sgd(p, g, b, momentum=0.9), 3), *[values(s, start=k) for s in ((2, 3), (5,)) for k in range(3)],
     attrs={"lr": 0.1, "decay": 0.9}, backward=False)
case("sgd_many", both(lambda p, g, b: sgd(p, g), 3), values((2, 3)), values((2, 3), start=1), None, values((4,)), values((4,), start=1), None,
     attrs={"lr": 0.1}, backward=False)


def stepped(make, keys, numbers=None, **kw):
    """A step of PyTorch's optimizer with these tensors as its state, and numbers beside them; what it changes, in order."""
    def run(p, g, *kept):
        p = p.clone().requires_grad_(True)
        p.grad = g
        o = make([p], **kw)
        there = [(k, t) for k, t in zip(keys, kept) if t is not None]
        counted = {"step": 2.0, **(numbers or {})}
        o.state[p] = {**{k: torch.tensor(x, dtype=torch.float64) for k, x in counted.items()}, **{k: t.clone() for k, t in there}}
        o.step()
        return (p.detach(), *(o.state[p][k] for k, _ in there))
    return run


def lamb(p, g, m, v, r):
    m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
    return p, m, v, (m / (1 - 0.8**2)) / ((v / (1 - 0.9**2)).sqrt() + 1e-3) + 0.3 * p


def lion(p, g, m):
    return p * (1 - 0.1 * 0.3) - 0.1 * torch.sign(0.8 * m + 0.2 * g), 0.9 * m + 0.1 * g


TWO = ((2, 3), (5,))
squares = lambda s, k, d: values(s, d, positive=True, start=k) + 1
for d in ("f32", "f64"):
    for amsgrad in (False, True):
        for decoupled, make in ((False, torch.optim.Adam), (True, torch.optim.AdamW)):
            case("adam_many", both(stepped(make, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2, amsgrad=amsgrad), 5),
                 *[x for s in TWO for x in (values(s, d), values(s, d, start=1), values(s, d, start=2), squares(s, 3, d), squares(s, 9, d) if amsgrad else None)],
                 attrs={"lr": 0.1, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.2, "step": 3, "decoupled": decoupled}, backward=False)
    for centered in (False, True):
        for momentum in (0.0, 0.7):
            case("rmsprop_many", both(stepped(torch.optim.RMSprop, ("square_avg", "grad_avg", "momentum_buffer"), lr=0.1, alpha=0.9, eps=1e-3, weight_decay=0.2, momentum=momentum, centered=centered), 5),
                 *[x for s in TWO for x in (values(s, d), values(s, d, start=1), squares(s, 3, d), values(s, d, start=2) / 9 if centered else None, values(s, d, start=4) if momentum else None)],
                 attrs={"lr": 0.1, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.2, "decay": momentum, "centered": centered}, backward=False)
    for decoupled in (False, True):
        adam = {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2, "decoupled_weight_decay": decoupled}
        own = {"lr": 0.1, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.2, "decoupled": decoupled, "step": 3}
        moments = [x for s in TWO for x in (values(s, d), values(s, d, start=1), values(s, d, start=2), squares(s, 3, d))]
        case("radam_many", both(stepped(torch.optim.RAdam, ("exp_avg", "exp_avg_sq"), **adam), 4), *moments, attrs=own, backward=False)
        # The product of the momenta of the two steps before.
        product = math.prod(0.8 * (1 - 0.5 * 0.96 ** (at * 0.1)) for at in (1, 2))
        case("nadam_many", both(stepped(torch.optim.NAdam, ("exp_avg", "exp_avg_sq"), {"mu_product": product}, momentum_decay=0.1, **adam), 4),
             *moments, attrs={**own, "momentum_decay": 0.1}, backward=False)
    case("adamax_many", both(stepped(torch.optim.Adamax, ("exp_avg", "exp_inf"), lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2), 4),
         *moments, attrs={k: v for k, v in own.items() if k != "decoupled"}, backward=False)
    for mix in (1.0, 0.25):
        case("asgd_many", both(stepped(torch.optim.ASGD, ("ax",), {"eta": 0.05, "mu": mix}, lr=0.1, lambd=0.3, weight_decay=0.2), 3),
             *[x for s in TWO for x in (values(s, d), values(s, d, start=1), values(s, d, start=2))],
             attrs={"rate": 0.05, "lambd": 0.3, "weight_decay": 0.2, "mix": mix}, backward=False)
    case("rprop_many", both(stepped(torch.optim.Rprop, ("prev", "step_size"), etas=(0.4, 1.5), step_sizes=(0.5, 1.8)), 4),
         *moments, attrs={"shrink": 0.4, "grow": 1.5, "least": 0.5, "most": 1.8}, backward=False)
    case("adagrad_many", both(stepped(torch.optim.Adagrad, ("sum",), lr=0.1, eps=1e-3, weight_decay=0.2), 3),
         *[x for s in TWO for x in (values(s, d), values(s, d, start=1), squares(s, 3, d))], attrs={"lr": 0.1, "eps": 1e-3, "weight_decay": 0.2}, backward=False)
    case("adadelta_many", both(stepped(torch.optim.Adadelta, ("square_avg", "acc_delta"), lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.2), 4),
         *[x for s in TWO for x in (values(s, d), values(s, d, start=1), squares(s, 3, d), squares(s, 5, d))],
         attrs={"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.2}, backward=False)
    case("lion_many", both(lion, 3), *[x for s in TWO for x in (values(s, d), values(s, d, start=1), values(s, d, start=2))],
         attrs={"lr": 0.1, "beta1": 0.8, "beta2": 0.9, "weight_decay": 0.3}, backward=False)
    case("lamb_direction_many", both(lamb, 5), *[x for s in TWO for x in (values(s, d), values(s, d, start=1), values(s, d, start=2), squares(s, 3, d), values(s, d))],
         attrs={"beta1": 0.8, "beta2": 0.9, "eps": 1e-3, "weight_decay": 0.3, "step": 2}, backward=False)
    case("average_many", both(lambda m, x: (torch.lerp(m, x, 0.25),), 2), *[x for s in TWO for x in (values(s, d), values(s, d, start=1))], attrs={"decay": 0.75}, backward=False)
case("subtract_many", lambda f, *xs: [xs[2 * i] - f[i] * xs[2 * i + 1] for i in range(2)], torch.tensor([0.3, -2.0]), *[x for s in TWO for x in (values(s), values(s, start=1))], backward=False)
case("squares_of_each", lambda *xs: torch.stack([(x * x).sum() for x in xs]), values((2, 3)), values((4,), start=1))
case("scale_many", lambda s, *xs: [x * s for x in xs], torch.tensor(0.3), values((2, 3)), values((4,), "f64"), backward=False)
case("sum_of_squares", lambda *xs: sum((x * x).sum() for x in xs), values((2, 3)), values((4,), start=1))

# --- lengths that depend on values -------------------------------------------------------------------------------------

holes = torch.tensor([[0.0, nan, -1.5], [2.0, -0.0, 0.0], [inf, 0.0, 1e-30]])
for d in ("f32", "f64", "bf16"):
    case("nonzero", torch.nonzero, holes.to(DTYPES[d]), backward=False)
for d in ("i64", "i32", "u8", "bool"):
    case("nonzero", torch.nonzero, values((3, 2, 2), d, below=None if d == "bool" else 3), backward=False)
    case("unique", torch.unique, values((4, 3), d, below=None if d == "bool" else 5), backward=False)
for shape in ((), (0, 3), (1,)):
    case("nonzero", torch.nonzero, torch.ones(shape), backward=False, name=str(shape))
    case("masked_select", torch.masked_select, values(shape, "f64"), torch.ones(shape, dtype=torch.bool), name=str(shape))
case("nonzero", torch.nonzero, torch.zeros((2, 2)), backward=False, name="none")
case("unique", torch.unique, torch.tensor([2.5, nan, -1.0, 2.5, inf, nan, -inf, 0.0]), backward=False, name="edges")
for d in ("f32", "f64", "bf16", "i64"):
    case("masked_select", torch.masked_select, values((3, 4), d), values((3, 4), "bool"))
    case("masked_spread", lambda v, m: torch.zeros(m.shape, dtype=v.dtype).masked_scatter(m, v), values((4,), d), values((3, 4), "bool"))
for d in ("f32", "f64", "bf16", "i64"):
    ids = values((2, 3), "i64", below=4)
    case("index_select", lambda x, i: x[i], values((4, 3), d), ids, attrs={"dim": 0})
    case("index_select", lambda x, i: x[:, i], values((2, 4, 2), d), ids.int(), attrs={"dim": 1})
    case("flip", lambda x: x.flip(0, -1), values((3, 2, 4), d), attrs={"dims": [0, -1]})
for d in ("f32", "f64", "bf16"):
    case("index_sum", lambda v, i: torch.zeros(4, 2, dtype=v.dtype).index_put((i,), v, accumulate=True), values((2, 3, 2), d), values((2, 3), "i64", below=3), attrs={"rows": 4})
for d in ("f32", "f64", "bf16", "i64", "bool"):
    case("gather", lambda x, i: x.gather(0, i), values((4, 3), d), values((5, 3), "i64", below=4), attrs={"dim": 0})
    case("gather", lambda x, i: x.gather(1, i.long()), values((2, 5, 3), d), values((2, 4, 3), "i32", below=5), attrs={"dim": -2})
for d in ("f32", "f64", "bf16", "i64", "i32"):
    case("scatter_sum", lambda v, i: torch.zeros(4, 3, dtype=v.dtype).scatter_add(0, i, v), values((5, 3), d), values((5, 3), "i64", below=4), attrs={"dim": 0, "rows": 4})
    case("scatter_sum", lambda v, i: torch.zeros(2, 5, dtype=v.dtype).scatter_add(1, i, v), values((2, 4), d), values((2, 4), "i64", below=5), attrs={"dim": 1, "rows": 5})
    once = torch.tensor([[3, 0, 1], [0, 2, 2]])
    case("gather_last", lambda x, i: x.gather(0, i), values((4, 3), d), once, attrs={"dim": 0})
    case("scatter_fill", lambda x, i: x.scatter(0, i, 3), values((4, 3), d), once, attrs={"dim": 0, "s": 3})
    case("scatter_into", lambda x, i, v: x.scatter(0, i, v), values((4, 3), d), once, values((2, 3), d, start=5), attrs={"dim": 0})
case("wrap_index", lambda i: torch.where(i < 0, i + 5, i), values((7,), "i64", below=10) - 5, attrs={"size": 5}, backward=False)
case("last_index", lambda i: torch.tensor([max([k for k in range(7) if i[k] == r], default=-1) for r in range(6)]), values((7,), "i64", below=5), attrs={"size": 6}, backward=False)
case("count_nonzero", torch.count_nonzero, holes, backward=False)
case("count_nonzero", lambda x: torch.count_nonzero(x, 1), holes, attrs={"dims": [1]}, backward=False)
case("count_nonzero", lambda x: torch.count_nonzero(x, (0, 2)), values((3, 2, 2), "i32", below=2), attrs={"dims": [0, 2]}, backward=False)

# --- order ---------------------------------------------------------------------------------------------------------------

ALL = ("f32", "f64", "bf16", "f16", "i64", "i32", "i16", "u8", "i8", "bool")
unordered = torch.tensor([[2.5, nan, -1.0, inf, 0.0, -inf, -0.0, nan, 2.5], [nan, 1.0, -0.0, 0.0, 3.0, -3.0, 1.0, inf, -inf]])
for d in ALL:
    for descending in (False, True):
        case("sort", lambda x: torch.sort(x, dim=1, descending=descending, stable=True), values((3, 7), d), attrs={"dim": 1, "descending": descending})
        case("sort", lambda x: torch.sort(x, dim=0, descending=descending, stable=True), values((4, 2, 3), d), attrs={"dim": -3, "descending": descending})
for d in ("f32", "f64", "bf16", "f16"):
    for descending in (False, True):
        case("sort", lambda x: torch.sort(x, descending=descending, stable=True), unordered.to(DTYPES[d]), attrs={"descending": descending}, backward=False, name="NaN is the greatest")
case("sort", lambda x: torch.sort(x, stable=True), values((300,)), name="a long line")
case("sort", lambda x: torch.sort(x, stable=True), values((300,), "i64", below=17), name="many alike")
case("sort", torch.sort, values((0, 3)), attrs={"dim": 0}, backward=False, name="empty")
case("sort", torch.sort, torch.tensor(2.5), name="0-dim")
apart = lambda shape, d: values(shape, d) if d in DIGITS else values(shape, d, below=100)
for d in ("f32", "f64", "bf16", "f16", "i64", "i32", "i16", "u8", "i8"):
    for k, largest in ((2, True), (3, False), (7, True), (0, True)):
        case("topk", lambda x: torch.topk(x, k, 1, largest), apart((3, 7), d), attrs={"k": k, "dim": 1, "largest": largest}, backward=k > 0)
    case("topk", lambda x: torch.topk(x, 2, 0), apart((4, 2, 3), d), attrs={"k": 2, "dim": 0})
    for k, dim, keep in ((1, 1, False), (5, -1, True), (2, 0, False)):
        case("kthvalue", lambda x: torch.kthvalue(x, k, dim, keep), apart((3, 7), d), attrs={"k": k, "dim": dim, "keepdim": keep})
    for dim, keep in ((1, False), (0, True)):
        case("median", lambda x: torch.median(x, dim, keep), apart((4, 7), d), attrs={"dim": dim, "keepdim": keep})
case("topk", lambda x: torch.topk(x, 1, 0), torch.tensor(2.5), attrs={"k": 1, "dim": 0}, name="0-dim")
case("topk", lambda x: torch.topk(x, 100), values((2, 300)), attrs={"k": 100}, name="many of a long line")
case("topk", lambda x: torch.topk(x, 3), torch.tensor([1.0, nan, inf, -inf, 2.0]), attrs={"k": 3}, backward=False, name="NaN is the greatest")
case("kthvalue", lambda x: torch.kthvalue(x, 4), torch.tensor([1.0, nan, inf, -inf, 2.0]), attrs={"k": 4}, backward=False, name="NaN is the greatest")
case("kthvalue", lambda x: torch.kthvalue(x, 1, 0), torch.tensor(2.5), attrs={"k": 1, "dim": 0}, name="0-dim")
case("median", lambda x: torch.median(x, 0), torch.tensor([[1.0, nan], [nan, 1.0], [2.0, 5.0]]), attrs={"dim": 0}, backward=False, name="NaN wins")
case("median", lambda x: torch.median(x, 0), torch.tensor(2.5), attrs={"dim": 0}, name="0-dim")


def middle(x):
    y = torch.median(x)
    return y, torch.tensor(next((i for i, v in enumerate(x.reshape(-1)) if v == y or (v != v and y != y)), 0))


for d in ("f32", "f64", "bf16", "f16", "i64", "i32", "i16", "u8", "i8"):
    case("middle", middle, apart((3, 4), d))
case("middle", middle, torch.tensor([1.0, 3.0, 2.0, 2.0, 0.0]), name="equals share the gradient")
case("middle", middle, torch.tensor([1.0, nan, 2.0, nan]), name="NaN wins")
case("middle", middle, torch.zeros(0), backward=False, name="empty")
case("middle", middle, torch.tensor(2.5), name="0-dim")

# --- running along a dim --------------------------------------------------------------------------------------------------

zeros = values((4, 5), "f64").clone()
zeros[1, 2] = zeros[2, 0] = zeros[2, 3] = 0.0
for d in ALL:
    for dim in (1, 0, -1):
        case("cumprod", lambda x: torch.cumprod(x, dim), values((4, 3, 2), d), attrs={"dim": dim})
        case("cummax", lambda x: torch.cummax(x, dim), values((4, 3, 2), d), attrs={"dim": dim})
        case("cummin", lambda x: torch.cummin(x, dim), values((4, 3, 2), d), attrs={"dim": dim})
for d in ("f32", "f64"):
    for dim in (0, 1):
        case("cumprod", lambda x: torch.cumprod(x, dim), zeros.to(DTYPES[d]), attrs={"dim": dim}, name="with zeros")
for d in ("f32", "f64", "bf16", "f16"):
    for dim in (1, 0):
        case("logcumsumexp", lambda x: torch.logcumsumexp(x, dim), values((4, 7), d), attrs={"dim": dim})
for op, f in {"cumprod": torch.cumprod, "cummax": torch.cummax, "cummin": torch.cummin, "logcumsumexp": torch.logcumsumexp}.items():
    case(op, lambda x: f(x, 0), torch.tensor(2.5), attrs={"dim": 0}, name="0-dim")
    case(op, lambda x: f(x, 1), values((3, 0)), attrs={"dim": 1}, backward=False, name="empty")
    case(op, lambda x: f(x, 1), unordered, attrs={"dim": 1}, backward=False, name="edges")
for op, f in {"cummax": torch.cummax, "cummin": torch.cummin}.items():
    case(op, lambda x: f(x, 0), torch.tensor([1.0, 2.0, 2.0, 1.0, 1.0, 3.0]), attrs={"dim": 0}, name="the last of equals")
case("logcumsumexp", lambda x: torch.logcumsumexp(x, 0), torch.tensor([-1e4, 1e4, 1e4, -5.0, 2e4], dtype=torch.float64), attrs={"dim": 0}, name="large")
case("logcumsumexp", lambda x: torch.logcumsumexp(x, 0), torch.tensor([-inf, -inf, 1.0, -inf, 2.0]), attrs={"dim": 0}, backward=False, name="nothing first")


def recurrence(a, b, dim, reverse):
    turn = lambda x: x.flip(dim) if reverse else x
    rs = []
    for x, y in zip(turn(a).unbind(dim), turn(b).unbind(dim)):
        rs.append(y + x * rs[-1] if rs else y)
    return turn(torch.stack(rs, dim))


for d in ("f32", "f64", "bf16"):
    for dim, reverse in ((0, False), (1, True)):
        case("linear_scan", lambda a, b: recurrence(a.double(), b.double(), dim, reverse).to(a.dtype), values((4, 3), d), values((4, 3), d, start=7), attrs={"dim": dim, "reverse": reverse}, backward=d != "bf16")

# --- places and counts ----------------------------------------------------------------------------------------------------

for d in ("f32", "f64", "bf16", "f16", "i64", "i32", "i16", "u8", "i8"):
    line, rows = torch.sort(apart((7,), d))[0], torch.sort(apart((2, 5), d), 1)[0]
    asked = torch.cat([line[2:5], apart((9,), d)]).reshape(3, 4)
    for right in (False, True):
        case("searchsorted", lambda s, x: torch.searchsorted(s, x, right=right), line, asked, attrs={"right": right}, backward=False)
        case("searchsorted", lambda s, x: torch.searchsorted(s, x, right=right, out_int32=True), rows, rows[:, [1, 1, 4]], attrs={"right": right, "out_int32": True}, backward=False)
case("searchsorted", torch.searchsorted, torch.tensor([-1.0, 0.0, 0.0, 2.0]), torch.tensor([-inf, -0.0, 0.0, inf, nan]), backward=False, name="edges")
case("searchsorted", torch.searchsorted, torch.zeros(0), torch.tensor([1.0, 2.0]), backward=False, name="empty sequence")
case("searchsorted", torch.searchsorted, torch.tensor([1.0, 2.0]), torch.zeros(0, 2), backward=False, name="no values")
case("searchsorted", lambda s, x: torch.searchsorted(s, x), torch.tensor([1.0, 2.0]), torch.tensor(1.5), backward=False, name="0-dim")
for d in ("i64", "i32"):
    case("count_index", lambda x: torch.bincount(x.reshape(-1), minlength=7), values((3, 4), d, below=5), attrs={"size": 7}, backward=False)
for d in ("f32", "f64"):
    for n, lo, hi in ((4, -1.0, 1.5), (1, -0.2, 0.2), (7, -2.0, 2.0)):
        case("histogram_within", lambda x: torch.histc(x, n, lo, hi), values((5, 6), d), attrs={"bins": n, "lo": lo, "hi": hi}, backward=False)
    case("histogram_within", lambda x: torch.histc(x, 4, 0, 1), torch.tensor([0.0, 0.25, 1.0, nan, inf, -inf, 0.7499], dtype=DTYPES[d]), attrs={"bins": 4, "lo": 0.0, "hi": 1.0}, backward=False, name="edges")

# --- special functions ---------------------------------------------------------------------------------------------------

S = torch.special
SPECIAL = {
    "erfcx": S.erfcx, "ndtr": S.ndtr, "log_ndtr": S.log_ndtr, "i0": S.i0, "i0e": S.i0e, "i1": S.i1, "i1e": S.i1e, "lgamma": torch.lgamma,
    "digamma": torch.digamma, "entr": S.entr, "erfinv": torch.erfinv, "ndtri": S.ndtri,
}
ENDS = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, -0.5, 3.0, 30.0, 1e-8, nan], dtype=torch.float64)
for op, f in SPECIAL.items():
    for d in ("f32", "f64"):
        x = values((3, 4), "f64", positive=op in ("lgamma", "digamma", "entr"))
        x = x / 2.1 if op == "erfinv" else torch.sigmoid(x) if op == "ndtri" else x
        # torch's trigamma is 1e-9 off.
        case(op, f, x.to(DTYPES[d]), backward=(op, d) != ("digamma", "f64"))
    case(op, f, ENDS, backward=False, name="edges")
    case(op, f, values((4,), "i32", positive=True), name="integers become f32")
for op in ("lgamma", "digamma", "i0", "ndtr"):
    # torch rounds every step of these gradients to bf16.
    case(op, SPECIAL[op], values((3, 4), "bf16", positive=True), backward=False)
# PyTorch's own have errors of 1e-10 in f64.
for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "airy_ai"):
    case(name, getattr(S, name), values((3, 4), "f32", positive=True))
    case(name, getattr(S, name), torch.tensor([0.0, 1.0, 12.5, nan], dtype=torch.float32), name="edges")
for n in range(4):
    for d in ("f32", "f64"):
        if (n, d) != (1, "f64"):
            case("polygamma", lambda x: torch.polygamma(n, x), values((3, 4), d, positive=True), attrs={"n": n}, backward=d == "f32")
for d in ("f32", "f64"):
    a, b = values((3, 4), d, positive=True), values((3, 1), d, positive=True, start=5)
    for op, f in {"zeta": lambda a, b: S.zeta(a + 1, b), "igamma": torch.igamma, "igammac": torch.igammac}.items():
        case(op, (lambda a, b: S.zeta(a.detach(), b)) if op == "zeta" else (lambda a, b: f(a.detach(), b)), a + 1 if op == "zeta" else a, b)
    case("xlog1py", S.xlog1py, values((3, 4), d), b)
case("xlog1py", S.xlog1py, torch.tensor([0.0, 0.0, 2.0, 0.0]), torch.tensor([-1.0, nan, -1.0, inf]), backward=False, name="edges")
for name in [s + "chebyshev_polynomial_" + k for s in ("", "shifted_") for k in "tuvw"] + ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]:
    n = torch.arange(-1, 11, dtype=torch.float64)
    case(name, getattr(S, name), values((3, 1), "f64"), n, backward=False)
    case(name, getattr(S, name), torch.tensor([[1.0], [-1.0], [0.0], [1.5]]), n.float(), backward=False)
for d in ("i16", "i32", "i64", "u8"):
    for op, f in {"gcd": torch.gcd, "lcm": torch.lcm}.items():
        case(op, f, values((3, 4), d) * 6, values((4,), d, start=2) * 4)
case("gcd", torch.gcd, torch.tensor([0, 0, 5, -12]), torch.tensor([0, 7, 0, 18]), name="zeros")
case("lcm", torch.lcm, torch.tensor([0, 0, 5, -12]), torch.tensor([0, 7, 0, 18]), name="zeros")
for d in ("f32", "f64"):
    case("nextafter", torch.nextafter, values((3, 4), d), values((4,), d, start=2))
    case("nextafter", torch.nextafter, torch.tensor([0.0, -0.0, inf, 1.0, nan], dtype=DTYPES[d]), torch.tensor([-1.0, 1.0, 0.0, 1.0, 1.0], dtype=DTYPES[d]), backward=False, name="edges")
for d, digits, least in (("bf16", 8, -133), ("f16", 11, -24)):
    most = torch.finfo(DTYPES[d]).max
    attrs = {"digits": digits, "least": least, "most": most}
    case("next_half", torch.nextafter, values((3, 4), d), values((4,), d, start=2), attrs=attrs, backward=False)
    a = torch.tensor([0.0, -0.0, inf, -inf, 1.0, 1.0, 1.0, -4.0, -4.0, nan, 1.0, 2.0**least, most, 0.0], dtype=DTYPES[d])
    b = torch.tensor([-1.0, 1.0, 0.0, 0.0, 0.0, 2.0, 1.0, -1.0, -8.0, 1.0, nan, 0.0, inf, 0.0], dtype=DTYPES[d])
    case("next_half", torch.nextafter, a, b, attrs=attrs, backward=False, name="edges")
for d in ("f32", "f64", "bf16"):
    case("frexp_mantissa", lambda x: torch.frexp(x)[0], values((3, 4), d), backward=d != "bf16")
    case("frexp_exponent", lambda x: torch.frexp(x)[1], values((3, 4), d), backward=False)

with open("ops.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")

# --- dtypes of results -------------------------------------------------------------------------------------------------

promotion = []
REAL = [d for d in DTYPES if d not in FLOAT8]


def dtype_of(f, x, y):
    """The dtype of a result, or what torch says where it has none: no dtype for both, or no kernel."""
    try:
        return NAMES[f(x, y).dtype]
    except (RuntimeError, NotImplementedError) as e:
        return "refused" if "Promotion" in str(e) else None


for a in REAL:
    for b in REAL:
        for zero in ("", "a", "b"):
            x = torch.ones(() if zero == "a" else (2,), dtype=DTYPES[a])
            y = torch.ones(() if zero == "b" else (2,), dtype=DTYPES[b])
            row = {op: dtype_of(f, x, y) for op, f in (("add", torch.add), ("mul", torch.mul), ("div", torch.div), ("maximum", torch.maximum), ("eq", torch.eq))}
            row = {op: d for op, d in row.items() if d}
            promotion.append({"a": a, "b": b, "zero": zero, "dtypes": row})
scalars = []
for a in REAL:
    for kind, s in (("bool", True), ("int", 2), ("float", 2.5)):
        row = {}
        for op, f in (("add_scalar", torch.add), ("mul_scalar", torch.mul), ("div_scalar", torch.div), ("pow_scalar", torch.pow), ("eq_scalar", torch.eq)):
            if op == "pow_scalar" and (kind == "bool" or a == "bool"):
                continue
            d = dtype_of(f, torch.ones(2, dtype=DTYPES[a]), s)
            row.update({op: d} if d else {})
        scalars.append({"a": a, "kind": kind, "s": str(s).lower(), "dtypes": row})
with open("promotion.json", "w") as f:
    rows = lambda rs: "[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in rs) + "\n]"
    f.write('{"tensors":' + rows(promotion) + ',\n"scalars":' + rows(scalars) + "}\n")
# --- numbers of another kind or beyond the dtype's range ------------------------------------------------------------------

HELD = {
    "bool": [True, False], "u8": [0, 1, 2, 5, 44, 255], "i8": [-128, -3, 0, 2, 44, 127],
    "i16": [-32768, -7, 0, 2, 5, 32767], "u16": [0, 2, 5, 44, 65535], "u32": [0, 2, 5, 16777217, 2**32 - 1],
    "i32": [-(2**31), -7, 0, 2, 5, 16777217, 2**31 - 1], "i64": [-(2**62), -7, 0, 2, 5, 16777217, 2**60 + 1],
    "f16": [-2.0, 0.0, 0.1, 2.0, 2.5, 60000.0], "bf16": [-2.0, 0.0, 0.1, 2.5, 300.0], "f32": [-2.0, 0.0, 0.1, 2.5, 16777216.0, inf],
}
NUMBERS = [True, 0, 2, -3, 300, 2**40, 2.5, -0.5, 0.1, 2.0001, 16777216.0, 1e10, nan, inf, -inf]
WITH = {
    **{op: SCALAR[op] for op in ("add_scalar", "sub_scalar", "rsub_scalar", "mul_scalar", "div_scalar", "rdiv_scalar", "fmod_scalar",
                                 "remainder_scalar", "floor_divide_scalar", "clamp_min", "clamp_max")},
    **{op + "_scalar": f for op, f in COMPARE.items()},
    "masked_fill": lambda x, s: x.masked_fill(torch.tensor(True), s),
}
scalars_table = []
for d, xs in HELD.items():
    x = torch.tensor(xs, dtype=DTYPES[d])
    rows = []
    for s in NUMBERS:
        for op, f in WITH.items():
            try:
                y = dump(f(x, s))
                rows.append([op, str(s).lower(), y["dtype"], y["data"]])
            except (RuntimeError, TypeError, NotImplementedError) as error:
                # What torch refuses and gives a number here is no promise; what masks write must be representable.
                if op == "masked_fill" and "not implemented" not in str(error):
                    rows.append([op, str(s).lower(), None, []])
    scalars_table.append({"dtype": d, "x": dump(x)["data"], "rows": rows})
with open("scalars.json", "w") as f:
    lines = lambda t: json.dumps({"dtype": t["dtype"], "x": t["x"]}, separators=(",", ":"))[:-1] + ',"rows":[\n' + ",\n".join(json.dumps(r, separators=(",", ":")) for r in t["rows"]) + "]}"
    f.write("[\n" + ",\n".join(lines(t) for t in scalars_table) + "\n]\n")

# --- values and gradients at extreme values ---------------------------------------------------------------------------------

BIG = {"f32": torch.finfo(torch.float32).max, "f64": torch.finfo(torch.float64).max}
GRID = [0.0, -0.0, 1e-30, -1e-30, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 7.5, -7.5, 20.0, -20.0, 21.0, 89.0, -89.0, 104.0, -104.0, 710.0, -710.0, 1e4, -1e4, inf, -inf, nan]
PAIRS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -3.0, 1e30, inf, -inf, nan]
short = lambda t: [str(v) if math.isnan(v) or math.isinf(v) else float(f"{v:.9g}") for v in t.detach().double().reshape(-1).tolist()]
extremes = []


def extreme(op, f, n, attrs=None, backward=True):
    for d in ("f32", "f64"):
        grid = (GRID + [BIG[d], -BIG[d]]) if n == 1 else PAIRS
        xs = [torch.tensor(g, dtype=DTYPES[d], requires_grad=backward) for g in ([grid] if n == 1 else zip(*[(a, b) for a in grid for b in grid]))]
        y = f(*xs)
        grads = [short(g) for g in torch.autograd.grad(y, xs, torch.ones_like(y))] if backward else None
        extremes.append({"op": op, "dtype": d, "attrs": {k: str(v) for k, v in (attrs or {}).items()}, "inputs": n, "y": short(y), "grads": grads})


for op, f in {**ANY, **POSITIVE}.items():
    extreme(op, f, 1)
for op, f in BINARY.items():
    extreme(op, f, 2, backward=op != "floor_divide")
for op, f in WITHIN.items():
    extreme(op, f, 1)
for op, f in BINARY_MORE.items():
    # PyTorch's slope of copysign is the result divided by a: NaN where a is infinite or NaN.
    extreme(op, f, 2, backward=op != "copysign")
extreme("pow", torch.pow, 2)
for s in (0, 1, 2, 3, -1, 0.5, -2.5, 0.0, 1.0):
    extreme("pow_scalar", lambda x: torch.pow(x, s), 1, {"s": s})
for s in (2.0, 0.5, 0.0, 1.0, -2.0):
    extreme("rpow_scalar", lambda x: torch.pow(s, x), 1, {"s": s})
for op in ("add_scalar", "sub_scalar", "rsub_scalar", "mul_scalar", "div_scalar", "rdiv_scalar", "fmod_scalar", "remainder_scalar", "floor_divide_scalar"):
    for s in (0.0, 2.0, -3.0, inf):
        extreme(op, lambda x: SCALAR[op](x, s), 1, {"s": s}, backward=op != "floor_divide_scalar")
for s in (0.0, 1.0, -3.0):
    extreme("clamp_min", lambda x: torch.clamp(x, min=s), 1, {"min": s})
    extreme("clamp_max", lambda x: torch.clamp(x, max=s), 1, {"max": s})
extreme("clamp", lambda x: torch.clamp(x, -1, 3), 1, {"lo": -1, "hi": 3})
extreme("clamp", lambda x: torch.clamp(x, 0.0, inf), 1, {"lo": 0.0, "hi": inf})
extreme("leaky_relu", lambda x: F.leaky_relu(x, -0.5), 1, {"alpha": -0.5})
extreme("elu", lambda x: F.elu(x, 0.7), 1, {"alpha": 0.7})
extreme("elu", lambda x: F.elu(x, -0.7), 1, {"alpha": -0.7})
extreme("softplus", lambda x: F.softplus(x, 2.0, 1.0), 1, {"beta": 2.0, "threshold": 1.0})
extreme("hardtanh", lambda x: F.hardtanh(x, -3.0, 1.0), 1, {"lo": -3.0, "hi": 1.0})
with open("extremes.json", "w") as f:
    grids = {d: GRID + [BIG[d], -BIG[d]] for d in BIG}
    text = {d: [str(v) if math.isnan(v) or math.isinf(v) else v for v in g] for d, g in grids.items()}
    text["pairs"] = [str(v) if math.isnan(v) or math.isinf(v) else v for v in PAIRS]
    f.write('{"grid":' + json.dumps(text, separators=(",", ":")) + ',"cases":[\n' + ",\n".join(json.dumps(c, separators=(",", ":")) for c in extremes) + "\n]}\n")
print(len(cases), "cases,", len(promotion), "pairs,", len(scalars), "scalars")
