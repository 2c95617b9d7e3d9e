"""The byte-level GPT of examples/gpt.rs with PyTorch, for `gpt_torch.py` and `benches/peers/graph_torch.py`. `o` has the sizes: dim,
layers, heads, seq."""

import torch
import torch.nn.functional as F
from torch import nn

from gpt_common import CLASSES


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.size = o.dim // o.heads
        self.ln1, self.ln2 = nn.LayerNorm(o.dim), nn.LayerNorm(o.dim)
        self.q, self.k, self.v, self.o = (nn.Linear(o.dim, o.dim) for _ in range(4))
        self.fc, self.pr = nn.Linear(o.dim, 4 * o.dim), nn.Linear(4 * o.dim, o.dim)

    def attend(self, h):
        """Queries, keys and values `[B, H, T, D]`. Under tensor parallelism a rank has a part of the heads."""
        b, t, _ = h.shape
        return (m(h).view(b, t, -1, self.size).transpose(1, 2) for m in (self.q, self.k, self.v))

    def rest(self, x, a):
        """The block after attention has given `a`, `[B, H, T, D]`."""
        b, t, _ = x.shape
        x = x + self.o(a.transpose(1, 2).reshape(b, t, -1))
        return x + self.pr(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))

    def forward(self, x):
        q, k, v = self.attend(self.ln1(x))
        return self.rest(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))


class Gpt(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(CLASSES, o.dim), nn.Embedding(o.seq, o.dim)
        self.h = nn.ModuleList(Block(o) for _ in range(o.layers))
        self.lnf, self.head = nn.LayerNorm(o.dim), nn.Linear(o.dim, CLASSES, bias=False)
        for weight in (self.wte.weight, self.wpe.weight, self.head.weight):
            nn.init.normal_(weight, std=0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.head(self.lnf(x))
