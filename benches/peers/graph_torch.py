"""PyTorch's side of `cargo bench -p oflaunch --bench graph`, which starts it: one thread, CPU.

Reads the name of a row and a way, "eager" or "compiled", with a tab between, and answers with the processor time of a call in µs, or NaN
where there is no such way."""

import pathlib
import sys
import time
import types

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts/peers"))
from gpt_torch_model import CLASSES, Gpt  # noqa: E402

torch.set_num_threads(1)
torch.manual_seed(0)
SIZES = types.SimpleNamespace(dim=256, layers=4, heads=4, seq=128)


def trained(net, loss, wrap):
    """A step of training with AdamW."""
    opt, loss = torch.optim.AdamW(net.parameters()), wrap(loss)

    def step():
        opt.zero_grad(set_to_none=True)
        loss(net).backward()
        opt.step()

    return step


def gpt(wrap):
    seen, following = (torch.randint(0, CLASSES, (16, SIZES.seq)) for _ in range(2))
    return trained(Gpt(SIZES), lambda net: F.cross_entropy(net(seen).view(-1, CLASSES), following.view(-1)), wrap)


def mlp(batch):
    x = torch.randn(batch, 64)

    def make(wrap):
        net = nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(64, 64), nn.ReLU())))
        return trained(net, lambda net: net(x).square().mean(), wrap)

    return make


def adds(wrap):
    x = torch.ones(8, 8)

    def step():
        y = x + x
        for _ in range(999):
            y = y + x
        return y

    return step


def decode(wrap):
    net, token, at = Gpt(SIZES), torch.zeros(1, 1, dtype=torch.int64), torch.tensor([5])
    caches = [[torch.zeros(1, SIZES.heads, SIZES.seq, SIZES.dim // SIZES.heads) for _ in range(2)] for _ in net.h]
    places = torch.arange(SIZES.seq)

    def following(token, at):
        x = net.wte(token) + net.wpe(at)
        for block, (keys, values) in zip(net.h, caches):
            q, k, v = block.attend(block.ln1(x))
            keys.index_copy_(2, at, k)
            values.index_copy_(2, at, v)
            x = block.rest(x, F.scaled_dot_product_attention(q, keys, values, attn_mask=(places <= at)[None, :]))
        return net.head(net.lnf(x))

    following = wrap(following)

    def step():
        with torch.no_grad():
            return following(token, at)

    return step


# What makes a row's call, and how many calls are timed together. A thousand adds are not compiled: they would be one kernel.
ROWS = {"gpt": (gpt, 2), "mlp 1": (mlp(1), 20), "mlp 32": (mlp(32), 20), "adds": (adds, 10), "decode": (decode, 10)}
CALLS = {}
for line in sys.stdin:
    row, way = line.rstrip("\n").split("\t")
    if (row, way) == ("adds", "compiled"):
        print("nan", flush=True)
        continue
    make, calls = ROWS[row]
    if (row, way) not in CALLS:
        CALLS[row, way] = make(torch.compile if way == "compiled" else lambda f: f)
        for _ in range(3):
            CALLS[row, way]()
    began = time.process_time_ns()
    for _ in range(calls):
        CALLS[row, way]()
    print((time.process_time_ns() - began) / 1e3 / calls, flush=True)
