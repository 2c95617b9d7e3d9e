"""Random plain values and names, for tests of checkpoints in one world and in another."""

import math
import random
from collections import OrderedDict

import numpy as np
import oflow as flow

NAMES = [
    "", "x", "x@[0]", "x@[2]", "__metadata__", "/", "..", "../x", "a.b", ".", "a\nb", "\0", "\x01", '"', "\\", "é\U0001f600",
    '":{"dtype":', '"crc32":"--------"', "oflow.dtype:x", "format", "\u202ex", "%s", "$float", "n" * 10_000,
]  # fmt: skip
FLOATS = [0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 5e-324, 1.7976931348623157e308, 0.1, 1e23, 1 / 3]
INTS = [0, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70, -(2**63), -(2**63) - 1, -(2**70), 10**5000]
TEXTS = ["", "a", "$float", "a\0\U0001f600", "\ud800", "x\udfffy", "\n", '"', "é", "inf", "t" * 5000]
ARRAYS = ["?", "<i1", "<u8", "<i8", ">i4", "<f2", "<f4", ">f8", "<c8", "<c16", "<U3", "<S2", "<M8[ns]", "<m8[s]"]


def array(draw, shape):
    dtype = np.dtype(draw.choice(ARRAYS))
    raw = bytes(draw.randrange(97, 123) for _ in range(dtype.itemsize * math.prod(shape)))
    if dtype.kind == "U":
        return np.array(["ab", "c", ""] * 20)[: math.prod(shape)].astype(dtype).reshape(shape)
    return np.frombuffer(raw, dtype if dtype.kind != "b" else "u1").reshape(shape).astype(dtype)


def leaf(draw):
    kind = draw.randrange(10)
    if kind == 0:
        return draw.choice(FLOATS)
    if kind == 1:
        return draw.choice(INTS)
    if kind == 2:
        return draw.choice(TEXTS)
    if kind == 3:
        return draw.choice([None, True, False])
    if kind == 4:
        return draw.choice([b"", b"\0\xff", bytearray(b"ab"), b"z" * 3000])
    if kind == 5:
        return complex(draw.choice(FLOATS), draw.choice(FLOATS))
    if kind == 6:
        return array(draw, draw.choice([(), (0,), (3,), (2, 0, 2), (2, 3)]))
    if kind == 7:
        return array(draw, (1,))[0]
    if kind == 8:
        return draw.choice([flow.float32, flow.bfloat16, flow.int64, flow.bool, flow.device("cpu")])
    return draw.gauss(0, 10.0 ** draw.randrange(-300, 300))


def key(draw):
    return draw.choice([None, True, 2, -3, 0.5, math.inf, "a", "b", "$tuple", "\ud800", b"k", (1, "x"), frozenset([1, 2]), 2**70])


def value(draw, depth=4):
    """A random value."""
    kind = draw.randrange(9)
    if depth == 0 or kind < 3:
        return leaf(draw)
    n = draw.randrange(4)
    if kind == 3:
        return [value(draw, depth - 1) for _ in range(n)]
    if kind == 4:
        return tuple(value(draw, depth - 1) for _ in range(n))
    if kind == 5:
        return draw.choice([set, frozenset])(key(draw) for _ in range(n))
    if kind == 6:
        return {draw.choice(TEXTS): value(draw, depth - 1) for _ in range(n)}
    if kind == 7:
        return {key(draw): value(draw, depth - 1) for _ in range(n)}
    return OrderedDict((key(draw), value(draw, depth - 1)) for _ in range(n))


def same(a, b):
    """Whether two values are the same, in type and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(k, l) and same(a[k], b[l]) for k, l in zip(a, b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def state(seed, mesh, fresh=False):
    """The section of a seed: some of the names, each a tensor or a value; ``fresh`` has others in their places."""
    draw, made = random.Random(seed), {}
    for number, name in enumerate(NAMES):
        kind = draw.randrange(4)
        if kind == 0:
            t = flow.tensor([-1.0 if fresh else float(number), 1.0, 2.0])
            made[name] = flow.distribute(t, mesh, draw.choice(["B", "S(0)"]))
        elif kind == 1:
            v = [value(draw) for _ in range(10)]
            made[name] = "other" if fresh else v
    return made


def differences(a, b):
    """Names of what two sections have otherwise."""

    def plain(v):
        return v.tolist() if isinstance(v, flow.Tensor) else v

    return [name for name in {**a, **b} if name not in a or name not in b or not same(plain(a[name]), plain(b[name]))]
