"""OpInfo: the samples of PyTorch's functions and methods."""

import re

import torch
from torch.testing._internal.common_methods_invocations import op_db

import oflow
from oflow.nn import functional as F

from . import compared
from .values import Giver, back, described, leaves

# Results of random functions have shapes and dtypes in common only.
RANDOM = re.compile(
    r"(bernoulli|cauchy|exponential|geometric|log_normal|multinomial|normal|uniform|randn?|randint|randperm|rand_like|randn_like|"
    r"randint_like|empty|empty_like|empty_permuted|empty_strided|new_empty|new_empty_strided|svd_lowrank|pca_lowrank|resize_|resize_as_|"
    r"nn\.functional\.(dropout\d?d?|alpha_dropout|feature_alpha_dropout|rrelu|fractional_max_pool\dd))$"
)
CASTS = "bfloat16 bool byte cdouble cfloat chalf char double float half int long short".split()
# Methods that PyTorch's samples call by a function of their own.
METHODS = (
    "cauchy_ exponential_ geometric_ log_normal_ uniform_ item contiguous sum_to_size expand expand_as to reshape_as view view_as "
    "new_zeros new_ones new_empty new_empty_strided new_full unfold repeat resize_ resize_as_ zero_ __getitem__ __radd__ __rand__ __rdiv__ "
    "__rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rsub__ __rxor__ fill to_sparse"
).split()
# Samples that hold their arguments in another order than the function.
REORDERED = {
    "where": lambda x, condition, other, **k: oflow.where(condition, x, other, **k),
    "einsum": lambda tensors, equation: oflow.einsum(equation, tensors),
    "nn.functional.embedding": lambda weight, ids, **k: F.embedding(ids, weight, **k),
    "nn.functional.embedding_bag": lambda weight, ids, **k: F.embedding_bag(ids, weight, **k),
    "polygamma": lambda x, n: oflow.polygamma(n, x),
    "special.polygamma": lambda x, n: oflow.special.polygamma(n, x),
    "normal/number_mean": lambda std, mean, *a, **k: oflow.normal(mean, std, *a, **k),
    "normal/in_place": lambda x, *a, **k: x.normal_(*a, **k),
    "linalg.lstsq/grad_oriented": lambda a, b, driver: oflow.linalg.lstsq(a, b, driver=driver)[:2],
    "linalg.pinv/singular": lambda a, b: oflow.linalg.pinv(a @ b.mT),
    "svd_lowrank": lambda a, b, **k: oflow.svd_lowrank(a @ b.mT, **k),
    "pca_lowrank": lambda a, b, **k: oflow.pca_lowrank(a @ b.mT, **k),
    **{name: (lambda name: lambda x: getattr(x, name))(name) for name in ("T", "mT", "H", "mH")},
}


def key_of(op):
    return op.name + (f"/{op.variant_test_name}" if op.variant_test_name else "")


def at(path):
    """What stands at a dotted path in oflow, or None."""
    found = oflow
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def called(name):
    """A method of a tensor as a function, or None. One in place has a copy, as a leaf cannot be written."""
    own = (lambda x: x.clone()) if name.endswith("_") and not name.endswith("__") else lambda x: x
    return (lambda x, *a, **k: getattr(own(x), name)(*a, **k)) if hasattr(oflow.Tensor, name) else None


def find(op):
    """The call of oflow under the name of PyTorch, or None if there is none."""
    if op.name in CASTS:
        return called(op.name)
    for method in (op.name, op.name + "_"):
        if method in METHODS:
            return called(method)
    reordered = REORDERED.get(key_of(op), REORDERED.get(op.name))
    if reordered:
        there = at(op.name) if op.name not in ("T", "mT", "H", "mH") else getattr(oflow.Tensor, op.name, None)
        return reordered if there or key_of(op) == "normal/in_place" else None
    return at(op.name)


def variants(op):
    """The forms of an op beside the function: the method, and the method in place."""
    if op.name in CASTS or op.name in METHODS or "." in op.name:
        return {}
    forms = {}
    if op.method_variant is not None and op.method_variant.__name__.isidentifier() and not op.name.startswith("__") and key_of(op) not in REORDERED:
        forms["method"] = op.method_variant.__name__
    if op.inplace_variant is not None and not op.name.startswith("__"):
        forms["in place"] = op.inplace_variant.__name__
    return forms


def samples(op, dtype, requires_grad, limit):
    torch.manual_seed(0)
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=requires_grad)):
        if number == limit:
            return
        yield sample


def drops(op, sample):
    """Whether a function drops elements, though it is not one of the random ones."""
    if op.name == "nn.functional.multi_head_attention_forward":
        return sample.args[9] > 0 and sample.kwargs["training"]
    return bool(sample.kwargs.get("dropout_p"))


def refusal(e):
    lines = str(e).splitlines()
    return f"{type(e).__name__}: {lines[0][:200] if lines else ''}"


def kind_of(e):
    """A fault inside of oflow is no refusal."""
    return "wrong" if type(e).__name__ == "InternalError" else "refused"


class Ops:
    """Runs samples. `give` is a `Giver`, `limit` how many samples of an op and dtype are run."""

    def __init__(self, give=None, limit=40):
        self.give, self.limit = give or Giver(), limit

    def values(self, op, dtype, differentiable=False):
        """Yields `(kind, detail)` for each sample that PyTorch accepts."""
        call, name = find(op), op.name
        for sample in samples(op, dtype, differentiable, self.limit):
            if drops(op, sample):
                continue
            try:
                theirs = op.op(sample.input, *sample.args, **sample.kwargs)
            except Exception:
                continue
            what = f"{name}({described(sample.input, *sample.args, **sample.kwargs)})"
            given = self.give((sample.input, sample.args, sample.kwargs), differentiable)
            x, args, kwargs = given
            try:
                ours = call(x, *args, **kwargs)
                said = self.compared(op, ours, theirs, sample)
            except Exception as e:
                yield kind_of(e), f"{what}: {refusal(e)}"
                continue
            if said:
                yield "wrong", f"{what}: {said}"
            elif differentiable:
                yield self.gradients(op, what, sample, given, *compared.in_one_order(op.name, ours, theirs))
            else:
                yield "right", ""

    def compared(self, op, ours, theirs, sample):
        if RANDOM.match(op.name):
            return compared.same_meta(ours, theirs)
        if op.name in compared.PRODUCTS:
            return compared.factors(op.name, ours, theirs, sample)
        ours, theirs = compared.in_one_order(op.name, ours, theirs)
        said = compared.differ(ours, theirs)
        if said == "values" and (op.name in compared.TIES or key_of(op) in compared.TIES):
            return compared.ties(op.name, ours, theirs, sample)
        return said

    def gradients(self, op, what, sample, given, ours, theirs):
        """Of the sum of results with random factors, to all inputs that ask for one.

        The sample says what of the results has one value: the products of factors, and not the factors.
        """
        if RANDOM.match(op.name):
            return "right", ""
        try:
            theirs = sample.output_process_fn_grad(theirs)
            ours = sample.output_process_fn_grad(ours)
        except Exception as e:
            return "no gradient", f"{what}: {refusal(e)}"
        asked = [isinstance(t, torch.Tensor) and t.requires_grad for t in leaves((sample.input, sample.args, sample.kwargs))]
        inputs = [t for t, yes in zip(leaves((sample.input, sample.args, sample.kwargs)), asked) if yes]
        mine = [t for t, yes in zip(leaves(given), asked) if yes]
        outputs = [(o, t) for o, t in zip(leaves(ours), leaves(theirs)) if isinstance(t, torch.Tensor) and t.requires_grad]
        if not inputs or not outputs:
            return "right", ""
        torch.manual_seed(1)
        factors = [torch.randn(t.shape, dtype=t.dtype) for _, t in outputs]
        try:
            wanted = torch.autograd.grad([t for _, t in outputs], inputs, factors, allow_unused=True)
        except Exception:
            return "right", ""
        try:
            found = oflow.autograd.grad([o for o, _ in outputs], mine, [self.give(f) for f in factors], allow_unused=True)
        except Exception as e:
            return "no gradient", f"{what}: {refusal(e)}"
        for x, y in zip(found, wanted):
            said = None
            if x is not None and y is not None:
                said = compared.differ(x, y)
            elif x is not None or y is not None:
                # None and zeros say the same.
                given_one = y if x is None else back(x)
                said = "gradient of None" if bool((given_one != 0).any()) else None
            if said:
                return "wrong gradient", f"{what}: {said}"
        return "right", ""

    def form(self, op, form, name):
        """The method, or the method in place, in float32 or the first dtype that there is."""
        dtype = next(d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if op.supports_dtype(d, "cpu"))
        theirs_of = op.method_variant if form == "method" else op.inplace_variant
        if not hasattr(oflow.Tensor, name):
            yield "absent", name
            return
        for sample in samples(op, dtype, False, self.limit):
            if not isinstance(sample.input, torch.Tensor) or sample.broadcasts_input:
                continue
            what = f"{name}({described(sample.input, *sample.args, **sample.kwargs)})"
            x, args, kwargs = self.give((sample.input, sample.args, sample.kwargs))
            try:
                theirs = theirs_of(sample.input.clone(), *sample.args, **sample.kwargs)
            except Exception:
                continue
            try:
                ours = getattr(x, name)(*args, **kwargs)
                said = self.compared(op, ours, theirs, sample)
                if form == "in place" and not said:
                    said = None if ours is x or not isinstance(ours, oflow.Tensor) else self.compared(op, x, theirs, sample)
            except Exception as e:
                yield kind_of(e), f"{what}: {refusal(e)}"
                continue
            yield ("wrong", f"{what}: {said}") if said else ("right", "")

    def out(self, op):
        """The function with `out=`: tensors of the results' shapes and dtypes, which are given back with the values of the results."""
        dtype = next(d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if op.supports_dtype(d, "cpu"))
        call = find(op)
        for sample in samples(op, dtype, False, self.limit):
            what = f"{op.name}({described(sample.input, *sample.args, **sample.kwargs)}, out=)"
            x, args, kwargs = self.give((sample.input, sample.args, sample.kwargs))
            try:
                theirs = op.op(sample.input, *sample.args, **sample.kwargs)
                # Some that say that they take it do not.
                written = torch.empty_like(theirs) if isinstance(theirs, torch.Tensor) else tuple(map(torch.empty_like, theirs))
                op.op(sample.input, *sample.args, **sample.kwargs, out=written)
                wanted = call(x, *args, **kwargs)
            except Exception:
                continue
            if not all(isinstance(t, oflow.Tensor) for t in leaves(wanted)):
                continue
            outs = [oflow.full_like(t, 7) if t.dtype.is_floating_point else oflow.ones_like(t) for t in leaves(wanted)]
            given = outs[0] if isinstance(wanted, oflow.Tensor) else tuple(outs)
            try:
                ours = call(x, *args, **kwargs, out=given)
                same = all(o is g for o, g in zip(leaves(ours), outs, strict=True))
                said = self.compared(op, ours, theirs, sample) if same else "results that are not `out`"
            except Exception as e:
                yield kind_of(e), f"{what}: {refusal(e)}"
                continue
            yield ("wrong", f"{what}: {said}") if said else ("right", "")

    def errors(self, op):
        """What PyTorch refuses is refused."""
        call = find(op)
        for error in op.error_inputs("cpu") if op.error_inputs_func else ():
            sample = error.sample_input
            what = f"{op.name}({described(sample.input, *sample.args, **sample.kwargs)})"
            try:
                op.op(sample.input, *sample.args, **sample.kwargs)
                continue
            except Exception:
                pass
            try:
                x, args, kwargs = self.give((sample.input, sample.args, sample.kwargs))
                call(x, *args, **kwargs)
            except Exception as e:
                if type(e).__name__ in ("InternalError", "SystemError", "RecursionError"):
                    yield "wrong", f"{what}: {refusal(e)}"
                else:
                    yield "right", ""
                continue
            yield "accepted", f"{what}: PyTorch: {str(error.error_regex)[:120]}"


def jobs(op, dtypes, runner, gradients, forms, errors):
    """The groups of samples of an op: `(label, generator)`."""
    if errors:
        return [("errors", lambda: runner.errors(op))]
    found = [(name, lambda d=getattr(torch, name): runner.values(op, d)) for name in dtypes if op.supports_dtype(getattr(torch, name), "cpu")]
    if gradients and op.supports_autograd:
        for dtype in (torch.float64, torch.complex128):
            if dtype in op.supported_backward_dtypes("cpu"):
                found.append((f"{str(dtype)[6:]} gradient", lambda d=dtype: runner.values(op, d, True)))
    if forms:
        found += [(form, lambda f=form, n=name: runner.form(op, f, n)) for form, name in variants(op).items()]
        if op.supports_out and key_of(op) not in REORDERED and op.name not in REORDERED and not op.name.startswith("nn."):
            found.append(("out", lambda: runner.out(op)))
    return found


def selected(pattern):
    return [op for op in op_db if re.search(pattern, key_of(op))]
