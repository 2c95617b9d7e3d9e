"""All functions with random objects: exceptions, and never the end of the process."""

import random

import numpy as np
import oflow as flow
import pytest
from oflow import _oflow

torch = pytest.importorskip("torch")

# Collectives of the world, which every rank calls alike, are in other tests.
NAMES = [name for name in _oflow._function_names() if "." not in name]


class Odd:
    """Looks like a number and is none."""

    def __index__(self):
        raise RuntimeError("no index")

    def __float__(self):
        return float("nan")

    def __len__(self):
        return -1


class Endless:
    """A sequence whose length is wrong."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        if i > 10:
            raise IndexError
        return i


def objects(r):
    """A random object."""
    shape = tuple(r.choice([0, 1, 2, 3]) for _ in range(r.randrange(4)))
    dtype = r.choice([flow.float32, flow.float64, flow.int64, flow.int32, flow.bool, flow.bfloat16, flow.uint8])
    return r.choice(
        [
            lambda: flow.ones(shape, dtype=dtype),
            lambda: flow.ones(shape, dtype=dtype),
            lambda: flow.ones(shape, dtype=dtype),
            lambda: flow.ones(2, 3, requires_grad=True),
            lambda: flow.ones(4, 6)[::2, 1:].transpose(0, 1),
            lambda: flow.from_numpy(np.arange(6.0)[::-1]),
            lambda: flow.ones(3, placement=flow.placement.all("cpu"), sbp=flow.sbp.broadcast),
            lambda: [flow.ones(shape), flow.ones(shape)],
            lambda: [flow.ones(2), 3],
            lambda: [],
            lambda: (),
            lambda: None,
            lambda: r.choice([0, 1, -1, 2, 3, 7, 1 << 40, -(1 << 62), 1 << 63, 1 << 200]),
            lambda: r.choice([0.0, 0.5, -2.5, 1e300, float("nan"), float("inf")]),
            lambda: r.choice([True, False]),
            lambda: r.choice(["", "f32", "B", "S(0)", "cpu", "nonsense", "\0", "\ud800"]),
            lambda: [r.randrange(-2, 5) for _ in range(r.randrange(4))],
            lambda: r.choice([np.float32(2), np.int64(3), np.bool_(True), np.arange(3), np.zeros((2, 0))]),
            lambda: slice(None, None, r.choice([None, 1, -1, 0, 2])),
            lambda: ...,
            lambda: (0, None, slice(1, 2)),
            lambda: r.choice([flow.float32, flow.device("cpu"), flow.Generator(1), flow.sbp.split(0), (flow.sbp.B,)]),
            lambda: flow.placement.all("cpu"),
            lambda: r.choice([object(), Odd(), Endless(), {}, {1: 2}, b"bytes", 3j, int, lambda x: x, torch.ones(2)]),
        ]
    )()


def names_of(name):
    """The names of the parameters."""
    text = " ".join(_oflow._signatures(name)).replace("(", " ").replace(")", " ").replace(",", " ")
    return [word.split("=")[0] for word in text.split() if word[0].islower()]


def likely(r, kind):
    """An object that a parameter of that type may take."""
    dim, t = r.choice([0, 1, -1]), flow.ones(2, 2, dtype=r.choice([flow.float32, flow.float32, flow.int64, flow.bool]))
    of = {"Tensor": t, "TensorTuple": [t, t], "Int": dim, "IntList": [dim], "Shape": (2, 3), "Float": 0.5, "Scalar": 2, "Bool": True}
    of |= {"DataType": flow.float64, "Device": "cpu", "TensorIndex": dim, "Sbp": "B", "Placement": flow.placement.all("cpu")}
    return of.get(kind.rstrip("?").split("[")[0]) if r.random() < 0.93 else objects(r)


def arguments(r, name):
    """Arguments that a function may take, by position."""
    text = r.choice(_oflow._signatures(name)).split("(", 1)[1].split(")")[0].split("*")[0]
    return [likely(r, p.split(" ")[0]) for p in text.split(", ") if " " in p and not p.startswith("Target") and ("=" not in p or r.random() < 0.2)]


@pytest.mark.parametrize("seed", range(8))
def test_random_calls(seed):
    r, worked = random.Random(seed), 0
    for _ in range(2500):
        name = r.choice(NAMES)
        args = [objects(r) for _ in range(r.choice([0, 1, 1, 2, 2, 2, 3, 4, 6]))]
        if r.random() < 0.6:
            args = arguments(r, name)
        named = {r.choice([*names_of(name), "nonsense", "dim"]): objects(r) for _ in range(r.choice([0] * 6 + [1, 2]))}
        try:
            if r.random() < 0.3 and args and isinstance(args[0], flow.Tensor) and hasattr(flow.Tensor, name):
                method = getattr(args[0], name)
                method(*args[1:], **named) if callable(method) else None
            else:
                getattr(flow.functional, name)(*args, **named)
            worked += 1
        except Exception as error:
            assert not isinstance(error, flow.InternalError), f"{name}{args}{named}: {error}"
            str(error)
    assert worked > 400


@pytest.mark.parametrize("seed", range(4))
def test_random_operators(seed):
    import operator

    r, worked = random.Random(1000 + seed), 0
    of_two = "add sub mul truediv floordiv mod pow matmul and_ or_ xor iadd isub imul itruediv ipow lt le eq ne gt ge getitem contains"
    for _ in range(1500):
        a, b = flow.ones(r.choice([(), (2,), (2, 3), (0,)])), objects(r)
        try:
            f = getattr(operator, r.choice(of_two.split()))
            f(b, a) if r.random() < 0.3 else f(a, b)
            worked += 1
        except Exception as error:
            assert not isinstance(error, flow.InternalError), f"{f}({a!r}, {b!r}): {error}"
        try:
            a[objects(r)] = objects(r)
            worked += 1
        except Exception as error:
            assert not isinstance(error, flow.InternalError)
        for f in (flow.tensor, flow.from_numpy, flow.from_dlpack, flow.dtype, flow.device, flow.sbp.Sbp, a.to, a.register_hook):
            try:
                f(objects(r))
            except Exception as error:
                assert not isinstance(error, flow.InternalError)
    assert worked > 100
