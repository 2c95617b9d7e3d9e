"""Numbers at edges: what divides by 0, draws, rounds and defaults as PyTorch does, by Python's operators, functions and classes."""

import itertools

import oflow as flow
import pytest

F = flow.nn.functional
INTEGERS = (flow.uint8, flow.int8, flow.int16, flow.uint16, flow.int32, flow.uint32, flow.int64)
FLOATS = (flow.float16, flow.bfloat16, flow.float32, flow.float64)


def divisions():
    """Python's ways to divide by a zero."""

    def in_place(f):
        def run(x, zero):
            x = x.clone()
            f(x, zero)

        return run

    def floor(x, zero):
        x //= zero

    def rest(x, zero):
        x %= zero

    yield "//", lambda x, zero: x // zero
    yield "%", lambda x, zero: x % zero
    yield "//=", in_place(floor)
    yield "%=", in_place(rest)
    for name in ("floor_divide", "remainder", "fmod"):
        yield name, lambda x, zero, name=name: getattr(flow, name)(x, zero)
        yield f"Tensor.{name}", lambda x, zero, name=name: getattr(x, name)(zero)
        yield f"Tensor.{name}_", in_place(lambda x, zero, name=name: getattr(x, name + "_")(zero))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_not_divided_by_zero(dtype):
    mesh = flow.placement.all("cpu")
    local = flow.tensor([[7, 5], [3, 1]], dtype=dtype)
    divisor = flow.tensor([[1, 2], [3, 0]], dtype=dtype)
    count = 0
    for (name, divide), layout in itertools.product(divisions(), (None, "B", "S(0)", "S(1)")):
        x, d = (local, divisor) if layout is None else (flow.distribute(t, mesh, layout) for t in (local, divisor))
        for zero in (0, d):
            with pytest.raises(flow.Error, match="no quotient by 0") as e:
                divide(x, zero)
            assert "test_numbers.py" in str(e.value), f"{name} in {layout}: {e.value}"
            count += 1
        divide(x, 2)
        divide(x, d + 1)
    assert count == 13 * 4 * 2
    with pytest.raises(flow.Error, match="exponent of at least 0"):
        local**-1
    with pytest.raises(flow.Error, match="exponent of at least 0"):
        local.pow_(-2)
    assert (local**-1.0).dtype is flow.float32


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_numbers_are_below_the_bound(dtype):
    flow.manual_seed(0)
    mesh = flow.placement.all("cpu")
    shape = (1 << 14,)
    of = {"dtype": dtype}
    drawn = {
        "rand": flow.rand(shape, **of),
        "rand, global": flow.rand(shape, placement=mesh, sbp="S(0)", **of),
        "rand_like": flow.rand_like(flow.zeros(shape, **of)),
        "uniform_": flow.zeros(shape, **of).uniform_(),
    }
    for name, x in drawn.items():
        assert x.dtype is dtype and 0 <= x.min().item() and x.max().item() < 1, name
    for low, high in ((-1.0, 0.0), (2.0, 3.0), (-0.5, 0.25), (100.0, 101.0)):
        for x in (flow.zeros(shape, **of).uniform_(low, high), flow.rand(shape, lo=low, hi=high, **of)):
            assert low <= x.min().item() and x.max().item() < high, (low, high)
    # What is made of them is finite.
    assert flow.isfinite(flow.gumbel_softmax(flow.zeros(shape, **of))).all().item()
    assert flow.isfinite(flow.zeros(shape, **of).exponential_()).all().item()


def small(dtype):
    return flow.tensor([[1e-3, -2e-3, 3e-3, 1e-3]], dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rms_norm_has_the_eps_of_the_dtype(dtype):
    torch = pytest.importorskip("torch")
    x = small(dtype)
    theirs = torch.nn.functional.rms_norm(torch.tensor(x.tolist(), dtype=getattr(torch, dtype.name)), (4,))
    for name, y in (
        ("F.rms_norm", F.rms_norm(x, (4,))),
        ("oflow.rms_norm", flow.rms_norm(x)),
        ("nn.RMSNorm", flow.nn.RMSNorm(4, dtype=dtype)(x)),
    ):
        assert y.dtype is dtype
        assert y.tolist()[0] == pytest.approx(theirs.tolist()[0], rel=1e-2 if dtype.itemsize == 2 else 1e-5), name
    assert flow.rms_norm(x, None, 1e-6).tolist() != flow.rms_norm(x).tolist()


def test_cross_entropy_has_one_meaning():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    for shape in ((3, 4), (2, 3, 3), (2, 3, 4, 2), (5,)):
        logits = torch.randn(shape)
        target = torch.randint(0, 3, shape[:1] + shape[2:] if len(shape) > 1 else ())
        want = torch.nn.functional.cross_entropy(logits, target).item()
        x, t = flow.tensor(logits.numpy()), flow.tensor(target.numpy())
        for call in (flow.cross_entropy, F.cross_entropy, x.cross_entropy):
            assert (call(t) if call == x.cross_entropy else call(x, t)).item() == pytest.approx(want, rel=1e-5), shape
        if len(shape) > 2:
            last = flow.cross_entropy(x.movedim(1, -1), t, dim=-1)
            assert last.item() == pytest.approx(want, rel=1e-5)


def test_the_cross_entropy_of_halves():
    x, t = flow.tensor([[1.0, 2.0], [3.0, -1.0]]), flow.tensor([0, 1])
    for dtype in FLOATS:
        for reduction in ("none", "sum", "mean"):
            assert flow.cross_entropy(x.to(dtype), t, reduction=reduction).dtype is dtype
    # Autocast keeps the loss in f32, as PyTorch does.
    with flow.autocast(flow.bfloat16):
        assert flow.cross_entropy(x @ x, t).dtype is flow.float32


def test_ctc_loss_takes_lengths_on_any_mesh():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    probs = torch.randn(6, 2, 4).log_softmax(-1)
    targets = torch.tensor([[1, 2, 3], [2, 2, 1]])
    want = torch.nn.functional.ctc_loss(probs, targets, (6, 5), (3, 2)).item()
    n = flow.world_size()
    flat = flow.placement.all("cpu")
    for mesh in (None, flat, flat.mesh(dp=n, tp=1), flat.mesh(a=1, b=n, c=1)):
        x, t = flow.tensor(probs.numpy()), flow.tensor(targets.numpy())
        if mesh is not None:
            axes = len(mesh.shape)
            x, t = (flow.distribute(v, mesh, ("B",) * axes) for v in (x, t))
        for kind in (tuple, list, flow.tensor):
            lengths = [kind((6, 5)), kind((3, 2))]
            if kind is flow.tensor and mesh is not None:
                lengths = [flow.distribute(v, mesh, ("B",) * axes) for v in lengths]
            assert F.ctc_loss(x, t, *lengths).item() == pytest.approx(want, rel=1e-5), (mesh, kind)


def test_inner_products_conjugate():
    a, b = flow.tensor([1 + 2j, 3 - 1j]), flow.tensor([2 - 1j, 1 + 1j])
    assert flow.linalg.vecdot(a, b).item() == 2 - 1j and flow.linalg.vecdot(a, a).item() == 15
