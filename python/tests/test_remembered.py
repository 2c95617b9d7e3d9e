"""What is remembered of tensors, and modes that are left anywhere: random programs that write between every two uses, beside runs that
remember nothing."""

import gc
import random
import threading

import numpy as np
import oflow as flow
import pytest
from oflow import _modes, _oflow, nn, optim
from oflow.utils.checkpoint import _recompute

KINDS = {
    "SGD": lambda ps, **o: optim.SGD(ps, lr=0.25, momentum=0.5, **o),
    "AdamW": lambda ps, **o: optim.AdamW(ps, lr=0.125, weight_decay=0.0, **o),
    "Lion": lambda ps, **o: optim.Lion(ps, lr=0.0625, **o),
}


def values(rng, shape=(3, 4)):
    return np.asarray([rng.randrange(-64, 64) / 32 for _ in range(shape[0] * shape[1])], np.float32).reshape(shape)


class Case:
    """A module with one weight, in a layout."""

    def __init__(self, dtype, placement, sbp, start):
        place = {} if placement is None else {"placement": placement, "sbp": sbp}
        self.place = place
        self.net = nn.Linear(4, 3, bias=False, **place).to(dtype)
        self.put(start)

    @property
    def w(self):
        return self.net.weight

    def made(self, array, dtype=None):
        t = flow.tensor(array).cast(dtype or self.w.dtype)
        return flow.distribute(t, **self.place) if self.place else t

    def put(self, array):
        with flow.no_grad():
            self.w.copy_(self.made(array))

    def read(self):
        t = self.w.detach()
        return np.asarray(t.cast(flow.float32).tolist(), np.float32)


# Every way to write. Each takes the case, an array and a place for files, and writes the same into whatever it is given.


def by_copy(c, a, _):
    with flow.no_grad():
        c.w.copy_(c.made(a))


def by_add(c, a, _):
    with flow.no_grad():
        c.w.add_(c.made(a))


def by_mul(c, a, _):
    with flow.no_grad():
        c.w.mul_(0.5)


def by_fill(c, a, _):
    with flow.no_grad():
        c.w.fill_(float(a[0, 0]))


def by_zero(c, a, _):
    with flow.no_grad():
        c.w.zero_()


def by_index(c, a, _):
    with flow.no_grad():
        c.w[1] = float(a[0, 1])


def by_item(c, a, _):
    with flow.no_grad():
        c.w[0, 2] = float(a[0, 2])


def by_view(c, a, _):
    with flow.no_grad():
        if c.w.is_global:
            c.w.copy_(c.w.detach() * 2)
        else:
            c.w.t()[1].copy_(c.made(a)[:, 1])


def by_detached(c, a, _):
    # A local one shares its memory; a global one is a value, whose sum is written back.
    if c.w.is_global:
        with flow.no_grad():
            c.w.copy_(c.w.detach() + c.made(a))
    else:
        c.w.detach().add_(c.made(a))


def by_load_state_dict(c, a, _):
    c.net.load_state_dict({"weight": flow.tensor(a)})


def by_array_state(c, a, _):
    c.net.load_state_dict({"weight": a})


def by_checkpoint(c, a, folder):
    from oflow.checkpoint import CheckpointManager

    other = Case(c.w.dtype, c.place.get("placement"), c.place.get("sbp"), a)
    with CheckpointManager(folder) as manager:
        manager.save(0, {"net": other.net})
        manager.load_latest({"net": c.net})


def by_file(c, a, folder):
    from oflow import checkpoint

    checkpoint.save({"weight": flow.tensor(a).cast(c.w.dtype)}, f"{folder}/w.safetensors")
    c.net.load_state_dict(checkpoint.load(f"{folder}/w.safetensors"))


def by_lerp(c, a, _):
    with flow.no_grad():
        c.w.lerp_(c.made(a), 0.5)


def by_numpy(c, a, _):
    if c.w.is_global or c.w.dtype == flow.bfloat16:
        return by_copy(c, a, _)
    c.w.detach().numpy()[0] = a[0]


def by_dlpack(c, a, _):
    torch = pytest.importorskip("torch")
    if c.w.is_global:
        return by_copy(c, a, _)
    torch.from_dlpack(c.w.detach())[2] = torch.from_numpy(a)[2]


def by_another_optimizer(c, a, _):
    kept = c.w.grad
    c.w.grad = c.made(a)
    optim.SGD([c.w], lr=0.5, master_weights=False).step()
    c.w.grad = kept


def by_an_average(c, a, _):
    ema = optim.EMA([c.w], decay=0.5)
    by_copy(c, a, _)
    ema.update()
    ema.swap()


def by_clamp(c, a, _):
    with flow.no_grad():
        c.w.clamp_(-0.5, 0.75)


def by_nothing(c, a, _):
    """No write: what is remembered is used again."""


WRITES = [by_copy, by_add, by_mul, by_fill, by_zero, by_index, by_item, by_view, by_detached, by_load_state_dict, by_array_state]
WRITES += [by_checkpoint, by_file, by_lerp, by_numpy, by_dlpack, by_another_optimizer, by_an_average, by_clamp, by_nothing]


class Remembering:
    """The parameter with its optimizer, as programs have them."""

    def __init__(self, case, kind):
        self.c, self.opt = case, KINDS[kind]([case.w])

    def wrote(self):
        pass

    def step(self, gradient):
        self.c.w.grad = self.c.made(gradient)
        self.opt.step()


class Plain:
    """Nothing is remembered: the copy in float32 is followed element by element here."""

    def __init__(self, case, kind):
        self.c = case
        self.master = case.made(case.read(), flow.float32).detach().requires_grad_(True)
        self.opt = KINDS[kind]([self.master])

    def wrote(self):
        here, rounded = self.c.read(), self.c.made(np.asarray(self.master.detach().tolist(), np.float32))
        rounded = np.asarray(rounded.cast(flow.float32).tolist(), np.float32)
        new = np.where(here == rounded, np.asarray(self.master.detach().tolist(), np.float32), here)
        with flow.no_grad():
            self.master.copy_(self.c.made(new, flow.float32))

    def step(self, gradient):
        self.master.grad = self.c.made(gradient, self.c.w.dtype).cast(flow.float32)
        self.opt.step()
        self.c.put(np.asarray(self.master.detach().tolist(), np.float32))



def forward(c, x, mode):
    """The result and the gradient of a use of the weight, in each mode in which forms of it are remembered."""
    c.w.grad = None
    x = c.made(x, c.w.dtype)
    if mode is None:
        y = c.net(x)
    else:
        with flow.autocast(mode):
            y = c.net(x) + c.net(x)
    y.sum().backward()
    grad, c.w.grad = c.w.grad, None
    return y.detach().cast(flow.float32).tolist(), grad.cast(flow.float32).tolist()


def test_a_write_between_two_uses_is_seen_by_the_next(tmp_path):
    """Random programs: uses (a step, a forward with remembered casts) with every way to write between them."""
    layouts = [(None, None), (flow.placement.all("cpu"), "B"), (flow.placement.all("cpu"), "S(0)")]
    programs = uses = 0
    written = set()
    for seed in range(120):
        rng = random.Random(seed)
        dtype = rng.choice([flow.bfloat16, flow.float16, flow.bfloat16, flow.float16, flow.float32])
        (placement, sbp), kind, start = rng.choice(layouts), rng.choice(sorted(KINDS)), values(rng)
        ours, plain = (made(Case(dtype, placement, sbp, start), kind) for made in (Remembering, Plain))
        said = [f"{dtype} {kind} {sbp}"]
        for _ in range(6):
            # Each way in turn, so that all are there; and some that are drawn.
            write = WRITES[programs % len(WRITES)] if not len(said) % 2 else rng.choice(WRITES)
            a, x, gradient = values(rng), values(rng, (2, 4)), values(rng)
            for run in (ours, plain):
                write(run.c, a, str(tmp_path))
                run.wrote()
            written.add(write)
            said.append(write.__name__)
            np.testing.assert_allclose(ours.c.read(), plain.c.read(), rtol=0.01, atol=0.004, err_msg=f"{seed} {said}")
            if rng.random() < 0.6:
                said.append("step")
                ours.step(gradient)
                plain.step(gradient)
                # Kernels of a half gradient may round the last bit of the copy otherwise.
                np.testing.assert_allclose(ours.c.read(), plain.c.read(), rtol=0.01, atol=0.004, err_msg=f"{seed} {said}")
            else:
                mode = rng.choice([None, flow.bfloat16, flow.float16])
                said.append(f"forward {mode}")
                # A new tensor of the same values has no forms.
                fresh = Case(dtype, placement, sbp, ours.c.read())
                assert forward(ours.c, x, mode) == forward(fresh, x, mode), (seed, said)
            uses += 1
        programs += 1
    assert (programs, uses, len(written)) == (120, 720, len(WRITES))


def test_numpy_writes_inside_autocast_are_seen():
    """Memory that another library shares has no version: no cast of it is remembered."""
    net = nn.Linear(2, 1, bias=False)
    with flow.autocast(flow.bfloat16):
        seen = net.weight.detach().numpy()
        for value in (1.0, 2.0, 3.0):
            seen[:] = value
            assert net(flow.ones((1, 2))).item() == 2 * value


@pytest.mark.parametrize("how", ["double", "half", "bfloat16"])
@pytest.mark.parametrize("part", ["whole", "one layer", "frozen"])
def test_a_change_of_dtype_after_the_optimizer_is_told(how, part):
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 1, bias=False))
    if part == "frozen":
        net[1].requires_grad_(False)
    opt = optim.SGD(net.parameters(), lr=0.5)
    changed = net if part == "whole" else net[1]
    getattr(changed, how)()
    changed.requires_grad_(True)
    y = net[0](flow.ones((3, 2), dtype=net[0].weight.dtype))
    net[1](y.to(net[1].weight.dtype)).sum().backward()
    with pytest.raises(flow.AutogradError, match="its module got another tensor in its place") as e:
        opt.step()
    assert "test_remembered.py" in str(e.value)


def test_a_module_that_is_so_already_keeps_its_parameters():
    net = nn.Linear(2, 1)
    before = list(net.parameters())
    net.weight.grad = flow.ones((1, 2))
    for same in (net.cpu(), net.to("cpu"), net.float(), net.to(flow.float32)):
        assert all(a is b for a, b in zip(same.parameters(), before))
    assert net.weight.grad is not None


# Modes.


def modes():
    """A maker of each mode, by its class and value."""
    policies = [("allow",), ("log",), ("deny",), ("deny_all",), ("warn_above_bytes", 8), ("warn_above_micros", 8)]
    made = {_modes.boxing_policy: policies, _modes.autocast: [(flow.bfloat16,), (flow.float16,)], _modes.name_scope: [("a",)]}
    made[_modes.span] = [("a",)]
    made[_modes.pin_sbp] = [("matmul", "B")]
    made[_modes.watch_calls] = [(id,), (None, lambda *_: None)]
    return [(cls, args) for cls in _modes._Mode.__subclasses__() for args in made.get(cls, [()])]


def elsewhere(call):
    out = []
    thread = threading.Thread(target=lambda: out.append(call()))
    thread.start()
    thread.join()
    return out[0]


def with_in_a_generator(mode):
    with mode:
        yield


def left_here(mode):
    mode.__exit__(None, None, None)


def left_elsewhere(mode):
    elsewhere(lambda: mode.__exit__(None, None, None))


@pytest.mark.parametrize("cls, args", modes(), ids=lambda v: getattr(v, "__name__", None) or "-".join(getattr(a, "__name__", str(a)) for a in v) or "plain")
def test_a_decorated_generator_has_its_mode_while_it_runs(cls, args):
    flow.init()
    with cls(*args):
        inside = _oflow._modes()

    @cls(*args)
    def parts():
        got = []
        try:
            for i in range(2):
                got.append((yield (i, _oflow._modes())))
            try:
                yield (2, _oflow._modes())
            except KeyError:
                got.append(_oflow._modes())
            return got
        finally:
            got.append(_oflow._modes())

    generator, seen = parts(), []
    for step in (lambda: next(generator), lambda: generator.send("a"), lambda: generator.send("b")):
        seen.append(step())
        assert _oflow._modes() == []
    assert seen == [(i, inside) for i in range(3)]
    with pytest.raises(StopIteration) as end:
        generator.throw(KeyError())
    assert end.value.value == ["a", "b", inside, inside] and _oflow._modes() == []
    closed = parts()
    next(closed)
    closed.close()
    assert _oflow._modes() == []


@pytest.mark.parametrize("cls, args", modes(), ids=lambda v: getattr(v, "__name__", None) or "-".join(getattr(a, "__name__", str(a)) for a in v) or "plain")
def test_a_mode_ends_with_its_guard_on_any_thread_in_any_order(cls, args):
    flow.init()
    others = modes()
    assert _oflow._modes() == []
    for leave in (left_here, left_elsewhere):
        for other, other_args in others:
            mode, second = cls(*args), other(*other_args)
            mode.__enter__()
            second.__enter__()
            leave(mode)
            # The other one stays, whatever order they end in.
            after = _oflow._modes()
            leave(second)
            assert _oflow._modes() == [], (cls, other)
            with other(*other_args):
                alone = _oflow._modes()
            # A name inside another is longer, and nothing is recomputed of what was entered without recording.
            relative = (_modes.enable_grad, _modes.name_scope, _recompute)
            assert after == alone or other in relative, (cls, other, after, alone)
    # A generator that another thread closes, or that the garbage collector finds.
    for close in (lambda g: g.close(), lambda g: None):
        generator = with_in_a_generator(cls(*args))
        next(generator)
        box = [generator]
        del generator
        elsewhere(lambda: (close(box.pop()), gc.collect(0)))
        assert _oflow._modes() == [], cls
    # On the other thread a mode of its own stays, and a thread that has ended is left alone.
    mode = cls(*args)
    mode.__enter__()

    def there():
        with flow.no_grad():
            left_here(mode)
            return _oflow._modes()

    assert elsewhere(there) == ["no_grad"] and _oflow._modes() == []
    gone = cls(*args)
    elsewhere(gone.__enter__)
    left_here(gone)
    assert _oflow._modes() == []
    # One object, entered on two threads at once, is left on each by itself.
    both = cls(*args)
    with both:
        here = _oflow._modes()

        def twice():
            with both:
                inside = _oflow._modes()
            return inside, _oflow._modes()

        assert elsewhere(twice) == (here, [])
        assert _oflow._modes() == here
    assert _oflow._modes() == []
