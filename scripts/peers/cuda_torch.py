"""Peer of benches/cuda_speed.rs: the same measurements in eager PyTorch, under the same names.

    python cuda_torch.py [--device cuda] [--only copy,add,...] [--batch 8] [--steps 20] [--tiny]

Each line of the result is `RESULT name value unit`. Attention runs on PyTorch's own flash attention, chosen by name, not on
cuDNN's. AdamW is the fused one, GPT-2 has one product for q, k and v: what a user who wants speed writes.
"""

import argparse
import contextlib
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
parser.add_argument("--only", default="")
parser.add_argument("--batch", type=int, default=8, help="rows of a batch of gpt2")
parser.add_argument("--steps", type=int, default=20, help="steps of tiny and gpt2 that count")
parser.add_argument("--tiny", action="store_true", help="small sizes, to see that it runs")
args = parser.parse_args()
device, tiny = args.device, args.tiny
COLUMNS = 1024
ROWS = 64 if tiny else 64 << 10
BYTES = ROWS * COLUMNS * 4

# What the other side does: products of f32 in f32.
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


def synchronize():
    if device == "cuda":
        torch.cuda.synchronize()


def flash():
    return sdpa_kernel(SDPBackend.FLASH_ATTENTION) if device == "cuda" else contextlib.nullcontext()


def tell(name, value, unit):
    print(f"RESULT {name} {value:.4f} {unit}", flush=True)


def seconds(f):
    """Seconds of one call: the median over samples of several calls with one wait at the end."""

    def sample(calls):
        began = time.perf_counter()
        for _ in range(calls):
            f()
        synchronize()
        return (time.perf_counter() - began) / calls

    sample(3)
    calls = max(1, min(2 if tiny else 100, int(0.05 / sample(1))))
    return statistics.median(sample(calls) for _ in range(3 if tiny else 9))


def bandwidth(name, size, f):
    tell(name, size / seconds(f) * 1e-9, "GB/s")


def rate(name, flops, f):
    tell(name, flops / seconds(f) * 1e-12, "TFLOP/s")


def matrix():
    return torch.randn(ROWS, COLUMNS, device=device)


@torch.no_grad()
def copy():
    x, y = matrix(), matrix()
    bandwidth("copy", 2 * BYTES, lambda: y.copy_(x))


@torch.no_grad()
def add():
    x, y = matrix(), matrix()
    bandwidth("add", 3 * BYTES, lambda: x + y)


@torch.no_grad()
def softmax():
    x = matrix()
    bandwidth("softmax", 2 * BYTES, lambda: x.softmax(-1))


@torch.no_grad()
def layer_norm():
    x, w, b = matrix(), torch.ones(COLUMNS, device=device), torch.zeros(COLUMNS, device=device)
    bandwidth("layer_norm", 2 * BYTES, lambda: F.layer_norm(x, (COLUMNS,), w, b))


def adamw():
    parameters = [nn.Parameter(torch.randn(ROWS // 4, COLUMNS, device=device)) for _ in range(4)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    opt = torch.optim.AdamW(parameters, fused=True)
    bandwidth("adamw", 7 * BYTES, opt.step)


@torch.no_grad()
def matmul():
    n = 128 if tiny else 8192
    x, y = (torch.randn(n, n, device=device).bfloat16() for _ in range(2))
    rate("matmul_bf16_8192", 2.0 * n**3, lambda: x @ y)


def attention():
    batch, heads, tokens, size = (1, 2, 64, 32) if tiny else (16, 16, 4096, 128)
    half = lambda: torch.randn(batch, heads, tokens, size, device=device).bfloat16()
    q, k, v = (half().requires_grad_() for _ in range(3))
    dy = half()
    for causal, name, share in [(False, "attention", 1.0), (True, "attention_causal", 0.5)]:
        product = share * 2.0 * batch * heads * size * tokens**2
        with flash():
            with torch.no_grad():
                run = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
                rate(f"{name}_forward", 2 * product, run)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            backward = lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)
            rate(f"{name}_backward", 5 * product, backward)


@torch.no_grad()
def host():
    x, y = (torch.randn(8, 8, device=device) for _ in range(2))
    calls, samples = 100 if tiny else 10_000, []
    for _ in range(5):
        synchronize()
        began = time.perf_counter()
        for _ in range(calls):
            x + y
        samples.append((time.perf_counter() - began) * 1e6 / calls)
        synchronize()
    tell("host_add_8x8", statistics.median(samples), "us")


class Block(nn.Module):
    def __init__(self, width, heads, one_product):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.ModuleList([nn.Linear(width, 3 * width)] if one_product else [nn.Linear(width, width) for _ in range(3)])
        self.o = nn.Linear(width, width)
        self.fc, self.pr = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        b, t, width = x.shape
        h = self.ln1(x)
        parts = self.qkv[0](h).split(width, dim=2) if len(self.qkv) == 1 else [m(h) for m in self.qkv]
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in parts)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, width))
        return x + self.pr(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocab, layers, width, heads, tokens, tied):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(tokens, width)
        self.h = nn.ModuleList(Block(width, heads, tied) for _ in range(layers))
        self.lnf, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
        for weight in (self.wte.weight, self.wpe.weight, self.head.weight):
            nn.init.normal_(weight, std=0.02)
        if tied:
            self.head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return self.head(self.lnf(x))


def train(sizes, batch, steps, half):
    """Steps of forward, backward and AdamW on one batch; the host waits at the end only."""
    torch.manual_seed(0)
    vocab, tokens = sizes[0], sizes[4]
    model = Gpt(*sizes).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    x, y = (torch.randint(0, vocab, (batch, tokens), device=device) for _ in range(2))
    warmup = 2 if tiny else 5
    steps = 2 if tiny else steps
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    for step in range(warmup + steps):
        if step == warmup:
            synchronize()
            began = time.perf_counter()
        low = torch.autocast(device, dtype=torch.bfloat16) if half else contextlib.nullcontext()
        with low, (flash() if half else contextlib.nullcontext()):
            loss = F.cross_entropy(model(x).view(-1, vocab), y.view(-1))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    synchronize()
    rate = steps / (time.perf_counter() - began)
    assert loss.isfinite().item()
    return rate, torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else float("nan")


def tiny_gpt():
    sizes = (64, 1, 32, 2, 16, False) if tiny else (256, 4, 256, 4, 128, False)
    tell("tiny_gpt", train(sizes, 2 if tiny else 16, 5 * args.steps, False)[0], "steps/s")


def gpt2():
    sizes = (64, 1, 32, 2, 16, True) if tiny else (50_304, 12, 768, 12, 1024, True)
    steps_per_s, peak = train(sizes, args.batch, args.steps, True)
    tell("gpt2", steps_per_s * args.batch * sizes[4], "tokens/s")
    tell("gpt2_peak", peak, "MiB")


BENCHES = {
    "copy": copy,
    "add": add,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "adamw": adamw,
    "matmul": matmul,
    "attention": attention,
    "host": host,
    "tiny": tiny_gpt,
    "gpt2": gpt2,
}
names = [n for n in args.only.split(",") if n] or list(BENCHES)
for name in names:
    if name not in BENCHES:
        parser.error(f"--only {name}: unknown measurement")
    BENCHES[name]()
