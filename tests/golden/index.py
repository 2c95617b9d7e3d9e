"""Makes index.json: what PyTorch gives for random indices into a tensor of 0, 1, 2, ... and for assignments to them.

Run it with any Python that has torch, in this folder: `python index.py`. The test `indexing` reads the file. PyTorch has no
negative steps, so there are none here.
"""

import json
import math
import random

import torch

random.seed(20)


def bound(n):
    return None if random.random() < 0.3 else random.randrange(-n - 2, n + 3)


def draw(shape):
    """A random index: members as PyTorch takes them, and as text or tensors for the file."""
    common = [random.randrange(1, 4) for _ in range(random.randrange(3))]
    members, written, d, dots, mask = [], [], 0, False, False

    def add(member, text):
        members.append(member)
        written.append(text)

    while d < len(shape):
        n = shape[d]
        kind = random.randrange(9)
        if kind == 0:
            i = random.randrange(-n, n)
            add(i, str(i))
        elif kind in (1, 2):
            a, b, s = bound(n), bound(n), random.choice((1, 1, 2, 3))
            add(slice(a, b, s), f"{'' if a is None else a}:{'' if b is None else b}:{s}")
        elif kind == 3:
            add(None, "newaxis")
            continue
        elif kind == 4 and not dots:
            add(..., "...")
            dots = True
            # What follows must fill the rest.
            d += random.randrange(len(shape) - d + 1)
            continue
        elif kind in (5, 6, 7) and not mask:
            s = common[random.randrange(len(common) + 1):]
            s = [1 if random.random() < 0.2 else k for k in s]
            v = [random.randrange(-n, n) for _ in range(math.prod(s))]
            add(torch.tensor(v).reshape(s), {"dtype": "i64", "shape": s, "data": v})
        elif kind == 8 and not any(torch.is_tensor(m) for m in members):
            span = min(random.randrange(1, 3), len(shape) - d)
            s = list(shape[d:d + span])
            v = [random.randrange(2) for _ in range(math.prod(s))]
            add(torch.tensor(v).bool().reshape(s), {"dtype": "bool", "shape": s, "data": v})
            d += span - 1
            mask = True
        else:
            add(slice(None), ":")
        d += 1
    return tuple(members), written


cases = []
while len(cases) < 300:
    shape = [random.randrange(1, 4) for _ in range(random.randrange(1, 5))]
    index, written = draw(shape)
    x = torch.arange(math.prod(shape)).reshape(shape)
    y = x[index]
    z = x.clone()
    # Where a place is named twice, PyTorch does not say which value it gets: all that name it get the same.
    z[index] = 100 + y
    cases.append({"shape": shape, "index": written, "result": list(y.shape), "data": y.reshape(-1).tolist(), "put": z.reshape(-1).tolist()})

with open("index.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
