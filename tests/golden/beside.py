"""Calls every function that PyTorch has too with drawn tensors and numbers, and compares values, dtypes, writes and gradients.

    python tests/golden/beside.py [--dtype float32] [--seed 0] [--values zeros] [--views] [--only NAME] [--all]

Wants an interpreter with PyTorch and oflow's Python module. The arguments are the same for every function; most calls are refused by
both sides. A difference is printed; the exit status is 1 if one is not in `AGREED`. `--all` also prints calls that one side refuses.
With `--values special` also the differences of `AGREED_SPECIAL` are meant.
"""

import argparse
import collections
import sys
import warnings

import numpy as np
import oflow as flow
import torch
import torch.nn.functional

# Differences that are meant, by function, with the reason.
AGREED = {
    "acosh": "the derivative where there is no value has another sign",
    "all any": "PyTorch keeps u8 for u8",
    "binary_cross_entropy_with_logits huber_loss soft_margin_loss": "two dtypes are promoted; PyTorch takes one",
    "bucketize searchsorted": "the boundaries are not sorted: any place will do",
    "byte copy_": "a number below zero as u8 is undefined in PyTorch",
    "clamp": "the gradient of a tie is shared; PyTorch gives it to one bound",
    "clamp_max clamp_min": "the gradient at the bound is 0, as of `clamp`; PyTorch's clamp(min=) has 0 and clamp_min has 1 there",
    "div": "complex numbers divided by zero: NaN, where PyTorch gives an infinity",
    "group_norm": "gradients near zero cancel",
    "hardsigmoid": "PyTorch's factor is 1 / 6 in f32",
    "heaviside heaviside_": "PyTorch has no derivative by the values",
    "hinge_embedding_loss": "the targets are neither 1 nor -1",
    "histogram": "has no gradient; PyTorch's fails when it is asked for",
    "kthvalue topk": "indices of equal elements",
    "log_softmax softmax": "without a dim it is the last one; PyTorch warns and guesses",
    "pdist": "order 0 counts and has no gradient; PyTorch's is zero",
    "nanquantile": "which of equal numbers gets the gradient",
    "normalize": "the 300th power in f32 has few digits",
    "polar": "the derivative also holds for an absolute value below zero",
    "pow": "the derivative of 0 to a complex power is 0, where PyTorch gives NaN",
    "quantile": "True is one number as any other; PyTorch takes it for 1",
    "stride": "NumPy gives an empty array other strides",
    "unique unique_consecutive": "have no gradient; PyTorch's fails when it is asked for",
}
AGREED = {name: reason for names, reason in AGREED.items() for name in names.split()}

# Differences at infinities, NaN and signed zeros that are meant.
AGREED_SPECIAL = {
    "addcdiv addcdiv_": "PyTorch squares the divisor, and the square of 1e-30 is 0 in f32",
    "atan2 atan2_": "PyTorch squares both, and the square of 1e-30 is 0 in f32: its slope there is 0",
    "cdist": "PyTorch's slope of order 1 is NaN beside a NaN; here it is the sign of the difference",
    "char int long short": "a number that is not finite as an integer is undefined in PyTorch; here it is the nearest one, and NaN is 0",
    "celu celu_ elu elu_ hardswish selu selu_": "the slope at NaN: PyTorch's loops give 1 in f32 and NaN in f64",
    "copysign copysign_": "PyTorch's slope is the result divided by a: NaN at an infinity",
    "cumprod": "PyTorch divides by an element; here the others are multiplied, also beside a NaN",
    "div_": "an f32 is divided in place by an f64 in f32; PyTorch divides in f64 and rounds, so its slope has a wider range",
    "gelu": "PyTorch's loops over vectors give NaN at infinity, its scalar code the infinity",
    "hardshrink hardtanh hardtanh_ relu6 softshrink": "the slope at NaN: PyTorch's loops over vectors give 1, its scalar code 0",
    "logit": "the slope at -0 is inf, as at 0 and in PyTorch's f32; its f64 has -inf",
    "logcumsumexp": "the slope at -inf is 0; PyTorch takes logarithms of the gradient, which give NaN there",
    "mode": "a NaN that is as frequent as a number: PyTorch gives one or the other by its place",
    "multilabel_margin_loss": "NaN stays NaN; PyTorch's comparison drops it",
    "multilabel_soft_margin_loss": "the targets are neither 0 nor 1",
    "pow_": "PyTorch takes square roots, and that of -inf is NaN; its power is infinite (IEEE 754), and so is the slope",
    "rsub": "PyTorch multiplies x by a complex alpha of 1: an infinity times 0 is NaN",
    "std std_mean var var_mean": "PyTorch adds up in f64 from the first element on: 1e-30 squared is not 0 there, and a mean beside an infinity is NaN. Here that"
    " mean is infinite, and what is NaN has the slope NaN",
    "softsign": "PyTorch's slope is that of a quotient of infinities; here it is 0",
    "trapezoid": "the order of sums that overflow",
}
AGREED_SPECIAL = {name: reason for names, reason in AGREED_SPECIAL.items() for name in names.split()}

# What draws, makes memory without values, or is no function of tensors.
APART = set(
    "manual_seed seed load save empty empty_like rand randn randint rand_like randn_like randint_like randperm dropout bernoulli multinomial"
    " normal compile tensor device dtype no_grad enable_grad inference_mode set_grad_enabled get_default_dtype set_default_dtype"
    " set_num_threads set_printoptions from_numpy as_tensor typename alpha_dropout gumbel_softmax rrelu poisson"
    " backward numpy cuda cpu register_hook item tolist data_ptr retain_grad requires_grad_ normal_ uniform_ exponential_ bernoulli_"
    " random_ to type".split()
)

FLOATS = "float16 float32 float64 complex64 complex128".split()


# Values to draw from, where they are not normal numbers: many zeros and ties; what is not finite.
EDGES = {"zeros": [0, 0, 0, 1, -1], "special": [0, -0.0, 1, np.inf, -np.inf, np.nan, 1e-30]}


def drawn(dtype, seed, values):
    """Tensors by name: of the dtype, and of others that it meets."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind

    def of(*shape):
        if kind in "fc":
            some = (lambda: rng.choice(EDGES[values], shape)) if values in EDGES else lambda: rng.normal(size=shape)
            x = some() if values in EDGES else some() * 1.3 + 0.1
            if kind == "f":
                return np.asarray(x).astype(dtype)
            z = np.zeros(shape, dtype)
            z.real, z.imag = x, some()
            return z
        x = rng.integers(-3, 4, shape)
        return (x > 0 if kind == "b" else abs(x) if kind == "u" else x).astype(dtype)

    def real(*shape):
        return rng.normal(size=shape)

    return {
        "x": of(3, 4), "x2": of(3, 4), "row": of(4), "turned": of(4, 3), "one": of(), "cube": of(2, 3, 4), "none": of(0, 4),
        "f64": real(3, 4), "f32": real(3, 4).astype(np.float32), "i64": rng.integers(0, 3, (3, 4)), "bool": real(3, 4) > 0,
        "index": np.array([0, 2, 1]), "positive": abs(real(3, 4)) + 0.2, "share": rng.uniform(0.05, 0.95, (3, 4)),
    }  # fmt: skip


def calls():
    """The arguments: names of drawn tensors, a list of them, numbers."""
    dims = [0, 1, -1, (0, 1), [0], [3, 4], [4, 3], [12], 2]
    numbers = [2, 1.5, 1j, 2 - 1j, 0, -1, True, None, -2.5, 0.5, 300]
    yield from ((x,) for x in "x row one turned cube none i64 positive share".split())
    yield from ((x, d) for x in ("x", "cube") for d in dims)
    yield from ((x, k) for x in ("x", "positive", "share", "f32") for k in numbers)
    pairs = "x x2,x row,x f64,f64 x,i64 x,f32 x,x i64,x bool,bool x,x turned,row row,f64 one,f32 one,share positive,positive x,one x"
    yield from (tuple(p.split()) for p in pairs.split(","))
    yield from [
        ("x", 0, "index"), ("x", "x2", "x"), ("x", "x2", 1j), ("x", "x2", 0.5), ("x", "bool", 1j), ("x", "bool", 2.0), ("x", "bool", "x2"),
        ("bool", "x", "f64"), ("bool", "x", 1.0), ("x", 0, 1), ("x", 1, 0), ("x", 0, 0, 2), ("x", -1, 1, 3), ("row", "x", "turned"),
        ("one", "x", "x2"), ("x", 2, 1), ("x", 1, 1, True), ("x", "x2", 1), ("positive", "x", "share"), ("x", 0.3, 1), ("x", 3.0, [0, 1]),
        ("x", 0, True), ("x", "row", "row"), (["x", "x2"],), (["x", "x2"], 1),
    ]  # fmt: skip


def names():
    """(function, where PyTorch has it): functions of the module, and methods of tensors that are no functions."""
    listed = []
    for room in (torch.nn.functional, torch):
        for name in dir(flow):
            ours = getattr(flow, name)
            if not name.startswith("_") and name not in APART and callable(ours) and not isinstance(ours, type):
                if callable(getattr(room, name, None)) and all(name != n for n, _ in listed):
                    listed.append((name, room))
    for name in dir(flow.Tensor):
        if not name.startswith("_") and name not in APART and callable(getattr(torch.Tensor, name, None)):
            if all(name != n for n, _ in listed):
                listed.append((name, torch.Tensor))
    return listed


def made(lib, argument, pool, graph, views):
    """The argument as a tensor of the library; of floats and complex numbers one that is given a gradient. With `views` it is a view of
    a larger or turned tensor."""
    if isinstance(argument, list) and argument and isinstance(argument[0], str):
        return [made(lib, a, pool, graph, views) for a in argument]
    if not isinstance(argument, str):
        return argument
    value = np.array(pool[argument])
    views = views and value.ndim > 0
    if views:
        base = np.repeat(value, 2) if value.ndim == 1 else np.ascontiguousarray(np.swapaxes(value, 0, -1))
    else:
        base = value
    x = torch.from_numpy(base) if lib is torch else flow.tensor(base)
    if graph and value.dtype.kind in "fc":
        x.requires_grad_(True)
    if views:
        x = x[::2] if value.ndim == 1 else x.transpose(0, -1)
        if x.requires_grad:
            x.retain_grad()
    return x


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, (list, tuple)) else [x]


def array(x):
    """A tensor as an array, and its dtype by name."""
    if isinstance(x, torch.Tensor):
        x = x.detach().resolve_conj().resolve_neg()
        kind = str(x.dtype).removeprefix("torch.")
        return (x.float() if x.dtype == torch.bfloat16 else x).numpy(force=True), kind
    if isinstance(x, flow.Tensor):
        kind = str(x.dtype).removeprefix("oflow.")
        return (x.detach().cast(flow.float32) if x.dtype == flow.bfloat16 else x.detach()).numpy(), kind
    return x, type(x).__name__


def tolerance(arguments, pool):
    """Of the narrowest float that the call may be computed in."""
    kinds = {str(pool[a].dtype) for a in flat(list(arguments)) if isinstance(a, str)}
    return 2e-2 if "float16" in kinds else 1e-4 if {"float32", "complex64"} & kinds else 1e-8


def near(a, b, tolerance):
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return a == b or str(a) == str(b)
    return a.shape == b.shape and np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def called(lib, name, room, arguments, in_place):
    """The results of the call, or the error; and the first argument as it is written to."""
    arguments = list(arguments)
    if in_place:
        # A leaf is not written to.
        arguments[0] = arguments[0] * 1
    try:
        if lib is flow:
            function = getattr(flow, name, None)
            result = getattr(arguments[0], name)(*arguments[1:]) if room is torch.Tensor else function(*arguments)
        else:
            result = getattr(room, name)(*arguments)
    except Exception as error:
        return None, error, None
    return flat(result), None, arguments[0]


def weighted(lib, results):
    """The sum of all floats of the results, each with a weight of its own."""
    total = None
    for k, y in enumerate(results):
        if not y.requires_grad:
            continue
        shape = tuple(y.shape)
        weight = np.arange(1, int(np.prod(shape)) + 1, dtype=np.float64).reshape(shape) / (k + 1)
        if lib is torch:
            real = y.real + y.imag if y.is_complex() else y
            part = (real * torch.from_numpy(weight)).sum()
        else:
            real = y.real + y.imag if y.dtype.is_complex else y
            part = (real * flow.tensor(weight)).sum()
        total = part if total is None else total + part
    return total


def is_float(x):
    if isinstance(x, torch.Tensor):
        return x.is_floating_point() or x.is_complex()
    return isinstance(x, flow.Tensor) and (x.dtype.is_floating_point or x.dtype.is_complex)


def numbers(x):
    x = np.asarray(x)
    return f"{x.ravel()[:4]} of shape {x.shape}"


def gradients(theirs, ours, inputs, tolerance):
    """What differs about the gradients, or None."""
    t, o = [y for y in theirs if is_float(y)], [y for y in ours if is_float(y)]
    if [y.requires_grad for y in t] != [y.requires_grad for y in o]:
        return "other results have gradients"
    if not any(y.requires_grad for y in t):
        return None
    try:
        weighted(torch, t).backward()
    except Exception:
        return None
    try:
        weighted(flow, o).backward()
    except Exception as error:
        return f"no backward: {error}"
    for theirs, ours in inputs:
        if not isinstance(theirs, torch.Tensor) or not theirs.requires_grad:
            continue
        a = None if theirs.grad is None else array(theirs.grad)[0]
        b = None if ours.grad is None else array(ours.grad)[0]
        # No gradient and one of zeros say the same.
        if a is None or b is None:
            if any(x is not None and np.any(x != 0) for x in (a, b)):
                return f"one side has no gradient: {a} and {b}"
        elif not near(a, b, tolerance):
            return f"gradient {numbers(a)} of PyTorch, {numbers(b)} here"
    return None


def difference(name, room, arguments, pool, graph, views):
    """(outcome, what differs) of one call."""
    if name == "pdist" and arguments[0] == "none":
        # PyTorch divides by zero there, and the process ends.
        return "both refuse", None
    theirs, ours = ([made(lib, a, pool, graph, views) for a in arguments] for lib in (torch, flow))
    in_place = name.endswith("_")
    if in_place and isinstance(theirs[0], list):
        return "both refuse", None
    t, refused, written = called(torch, name, room, theirs, in_place)
    o, error, over = called(flow, name, room, ours, in_place)
    if refused is not None or error is not None:
        if refused is not None and error is not None:
            return "both refuse", None
        return ("only PyTorch takes", str(error)) if error is not None else ("only oflow takes", str(refused))
    if len(t) != len(o):
        return "differ", f"{len(t)} results of PyTorch, {len(o)} here"
    for a, b in zip([*t, written] if in_place else t, [*o, over] if in_place else o):
        (a, kind), (b, other) = array(a), array(b)
        if kind != other and isinstance(a, np.ndarray):
            return "differ", f"{kind} of PyTorch, {other} here"
        # Integers become f32.
        single = 1e-4 if kind in ("float32", "complex64") else 0
        if not near(a, b, max(tolerance(arguments, pool), single)):
            return "differ", f"{numbers(a)} of PyTorch, {numbers(b)} here"
    what = gradients(t, o, zip(flat(theirs), flat(ours)), tolerance(arguments, pool)) if graph else None
    return ("differ", what) if what else ("alike", None)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--dtype", default="float32", help="of most tensors, as NumPy says it")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", help="one function")
    options.add_argument("--values", choices=["normal", *EDGES], default="normal", help="what the tensors hold")
    options.add_argument("--views", action="store_true", help="the tensors are views, with strides")
    options.add_argument("--all", action="store_true", help="also prints what one side refuses, once for each function")
    options = options.parse_args()
    warnings.filterwarnings("ignore")
    counts, unagreed, told = collections.Counter(), 0, set()
    agreed = AGREED | AGREED_SPECIAL if options.values == "special" else AGREED
    for name, room in names():
        if options.only not in (None, name):
            continue
        for arguments in calls():
            pool = drawn(options.dtype, options.seed, options.values)
            for graph in {False, options.dtype in FLOATS}:
                outcome, what = difference(name, room, arguments, pool, graph, options.views)
                counts[outcome] += 1
                if outcome == "differ":
                    unagreed += name not in agreed
                    print(f"{name}{arguments}{' with gradients' if graph else ''}: {what}" + (f" (agreed: {agreed[name]})" if name in agreed else ""))
                elif options.all and what and (name, outcome) not in told:
                    told.add((name, outcome))
                    print(f"{outcome} {name}{arguments}: {what.splitlines()[0]}")
    print(", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())), f"in {options.dtype}")
    sys.exit(1 if unagreed else 0)


if __name__ == "__main__":
    main()
