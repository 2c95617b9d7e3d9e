"""Arguments that PyTorch refuses are refused, with a sentence that says what was given and what is allowed."""

import numpy as np
import oflow
import oflow.nn.functional as F
import pytest


def zeros(*shape, dtype=oflow.float32):
    return oflow.zeros(shape, dtype=dtype)


def negative(*names):
    return {name: oflow.tensor([1, -1, 2] if name == "fweights" else [1.0, 2.0, -0.5]) for name in names}


POOLS = [(kind, n) for kind in ("max_pool", "avg_pool") for n in (1, 2, 3)]

CASES = [
    ("cov of negative counts", lambda: oflow.cov(zeros(2, 3), **negative("fweights")), "expected fweights of at least 0; the smallest is -1"),
    ("cov of negative weights", lambda: oflow.cov(zeros(2, 3), **negative("aweights")), "expected aweights of at least 0; the smallest is -0.5"),
    ("maximum with a number", lambda: oflow.maximum(oflow.tensor([1, 2, 3]), 2), "maximum"),
    ("minimum with a number", lambda: oflow.minimum(oflow.tensor([1, 2, 3]), 2), "minimum"),
    ("65 dims", lambda: zeros(*[1] * 65), "expected at most 64 dims, not 65"),
    ("65 dims by a view", lambda: zeros(*[1] * 64).unsqueeze(0), "expected at most 64 dims, not 65"),
    ("group_norm without channels", lambda: F.group_norm(zeros(1, 0, 2), 1), "dim 1 of x has 0 elements"),
    ("group_norm without pixels", lambda: F.group_norm(zeros(1, 2, 0), 1), "dim 2 of x has 0 elements"),
    ("softshrink below 0", lambda: F.softshrink(zeros(1), lambd=-0.5), "expected lambd of at least 0, not -0.5"),
    ("softshrink by NaN", lambda: F.softshrink(zeros(1), lambd=float("nan")), "expected lambd of at least 0, not NaN"),
    ("hardtanh between crossed bounds", lambda: F.hardtanh(zeros(1), 0.5, -0.5), "expected lo at most hi, not lo = 0.5 and hi = -0.5"),
    ("celu with alpha 0", lambda: F.celu(zeros(1), 0.0), "expected alpha other than 0"),
    ("neg of bools", lambda: -zeros(2, dtype=oflow.bool), "logical_not"),
    ("roll along a dim that is not there", lambda: oflow.tensor(1.0).roll(0, 0), "expected no dims for a tensor without dims, not [0]"),
    ("t of 3 dims", lambda: zeros(2, 3, 4).t(), "expected a tensor of at most 2 dims, not 3"),
    ("integers in steps of a half", lambda: oflow.arange(0, 4, 0.5, dtype=oflow.int64), "expected a step of at least 1 for i64, not 0.5"),
]
for kind, n in POOLS:
    image = (4,) * n

    def pool(shape, kind=kind, n=n, **options):
        return getattr(F, f"{kind}{n}d")(zeros(*shape), 2, **options)

    CASES += [
        (f"{kind}{n}d with stride 0", lambda p=pool, i=image: p((3, 3, *i), stride=0), "stride is [0]"),
        (f"{kind}{n}d without channels", lambda p=pool, i=image: p((2, 0, *i)), "dim 1 of x has 0 elements"),
        (f"{kind}{n}d without channels and batch", lambda p=pool, i=image: p((0, *i)), "dim 0 of x has 0 elements"),
        (f"{kind}{n}d of an empty image", lambda p=pool, i=image: p((2, 3, *i[1:], 0)), f"dim {n + 1} of x has 0 elements"),
    ]
    if kind == "max_pool":
        CASES += [
            (f"adaptive_{k}{n}d of an empty image", lambda k=k, n=n, i=image: getattr(F, f"adaptive_{k}{n}d")(zeros(2, 3, *i[1:], 0), 2), f"dim {n + 1} of x has 0 elements")
            for k in ("max_pool", "avg_pool")
        ]


@pytest.mark.parametrize("what, call, says", CASES, ids=[what for what, *_ in CASES])
def test_what_pytorch_refuses_is_refused(what, call, says):
    with pytest.raises((oflow.Error, TypeError)) as refused:
        call()
    assert says in str(refused.value)


def test_an_empty_batch_is_pooled():
    for kind, n in POOLS:
        assert getattr(F, f"{kind}{n}d")(zeros(0, 3, *(4,) * n), 2).shape == (0, 3, *(2,) * n)
        assert getattr(F, f"adaptive_{kind}{n}d")(zeros(0, 3, *(4,) * n), 2).shape == (0, 3, *(2,) * n)


def test_bounds_are_pytorchs_at_the_bounds():
    x = oflow.tensor([-1.0, 0.0, 1.0], requires_grad=True)
    (x.clamp_min(0.0) + x.clamp_max(0.0) + x.clamp(0.0, 1.0)).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 1.0]
    assert oflow.clamp_min(oflow.tensor([1, 5]), oflow.tensor([3, 3])).tolist() == [3, 5]


def test_steps_in_integer_dtypes_are_equal():
    def ints(t):
        assert t.dtype == oflow.int64
        return t.tolist()

    assert ints(oflow.arange(-0.9, 2.1, 2.0, dtype=oflow.int64)) == [0, 2]
    assert ints(oflow.arange(2.1, -2.9, -1.0, dtype=oflow.int64)) == [2, 1, 0, -1, -2]
    assert ints(oflow.linspace(4.3, 0, 5, dtype=oflow.int64)) == [4, 3, 2, 1, 0]
    assert ints(oflow.logspace(0, 3, 4, dtype=oflow.int64)) == [1, 10, 100, 1000]
    assert ints(oflow.logspace(0, -3, 2, dtype=oflow.int64)) == [1, 0]


def test_slopes_of_zero_are_zeros_and_not_none():
    a = oflow.tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
    for y in (oflow.linalg.matrix_power(a, 0).sum(), a.norm(0), oflow.linalg.slogdet(a)[0]):
        (g,) = oflow.autograd.grad(y, [a], allow_unused=True)
        assert g is None or not any(g.flatten().tolist())


def test_tensors_and_types_of_another_library_are_named():
    """None of them is taken for something else: not compared as an object, not read as a number."""
    torch = pytest.importorskip("torch")
    x, theirs = oflow.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0])
    for call in (
        lambda: x == theirs,
        lambda: x != theirs,
        lambda: x + theirs,
        lambda: x @ theirs,
        lambda: x[torch.tensor([0])],
        lambda: x[torch.tensor(0)],
        lambda: oflow.matmul(x, theirs),
        lambda: oflow.cat([x, theirs]),
        lambda: x.add_(theirs),
    ):
        with pytest.raises(TypeError, match=r"torch\.Tensor.*oflow\.from_dlpack"):
            call()
    with pytest.raises(TypeError, match=r"torch\.dtype"):
        oflow.zeros(2, dtype=torch.float32)
    assert (x == np.array([1.0, 3.0], dtype=np.float32)).tolist() == [True, False]
    assert (x == None) is False and (x == "x") is False  # noqa: E711
