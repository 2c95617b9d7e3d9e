"""The GPT of gpt.py: a decoder-only transformer."""

import oflow
from oflow import nn

B, S = oflow.sbp.broadcast, oflow.sbp.split


class Gpt(nn.Module):
    """Token and position embeddings, blocks, layer norm and a linear output layer."""

    # They split attention heads and hidden units over mesh axis "tp". Each block then has two all-reduces in forward, after
    # attn.o and mlp.pr, and two in backward.
    SPLIT_RULES = [
        ("h.*.attn.o.weight", (B, S(1))),
        ("h.*.attn.o.bias", (B, B)),
        ("h.*.attn.*", (B, S(0))),
        ("h.*.mlp.fc.*", (B, S(0))),
        ("h.*.mlp.pr.weight", (B, S(1))),
    ]

    def __init__(self, vocab, layers, width, heads, seq, *, dropout=0.0, tied=False, **layout):
        super().__init__()
        self.wte = nn.Embedding(vocab, width, std=0.02, **layout)
        self.wpe = nn.Embedding(seq, width, std=0.02, **layout)
        self.h = nn.ModuleList(nn.TransformerBlock(width, heads, 4 * width, dropout, **layout) for _ in range(layers))
        self.lnf = nn.LayerNorm(width, **layout)
        # The name head.weight, under which Rust programs save it.
        self.head = nn.Module()
        self.head.weight = self.wte.weight if tied else nn.init.normal([vocab, width], 0.02, **layout)

    def forward(self, ids):
        """Logits [B, T, vocab] of the next token at each position of ids, i64[B, T]."""
        whole = {"placement": ids.placement, "sbp": (B,) * len(ids.sbp)}
        x = self.wte(ids) + self.wpe(oflow.arange(ids.shape[1], **whole))
        for block in self.h:
            x = block(x)
        return oflow.linear(self.lnf(x), self.head.weight)
