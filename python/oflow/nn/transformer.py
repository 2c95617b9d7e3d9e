"""Attention, the two-layer perceptron, and the transformer block made of them: the modules of the same structure in Rust, with
the same names of parameters."""

from .. import _core
from . import functional as F
from . import init
from .dropout import Dropout
from .layers import LayerNorm, Linear
from .module import Module


class SelfAttention(Module):
    """Causal self-attention over ``[B, T, width]`` with ``heads`` heads.

    Queries, keys and values have separate projections, so that splitting their outputs (S(0)) splits the heads. With the inputs
    of ``o`` split (S(1)) no communication is needed in between.
    """

    def __init__(self, width, heads, *, causal=True, device=None, placement=None, sbp=None, dtype=None):
        super().__init__()
        if heads < 1 or width % heads:
            raise ValueError(f"a width of {width} cannot be cut into {heads} heads")
        self.heads, self.causal = heads, causal
        for name in "qkvo":
            setattr(self, name, Linear(width, width, device=device, placement=placement, sbp=sbp, dtype=dtype))

    def forward(self, x):
        if len(x.shape) != 3:
            raise ValueError(f"self-attention takes [B, T, width], not {list(x.shape)}")
        b, t, _ = x.shape
        q, k, v = (
            part(x).reshape([b, t, self.heads, -1]).permute([0, 2, 1, 3]) for part in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.o(y.permute([0, 2, 1, 3]).reshape([b, t, -1]))

    def extra_repr(self):
        return f"heads={self.heads}, causal={self.causal}"


class MLP(Module):
    """``pr(gelu(fc(x)))``, with the tanh approximation of GELU. To shard it, split the outputs of ``fc`` (S(0)) and the inputs of
    ``pr`` (S(1))."""

    def __init__(self, width, hidden, *, device=None, placement=None, sbp=None, dtype=None):
        super().__init__()
        layout = {"device": device, "placement": placement, "sbp": sbp, "dtype": dtype}
        self.fc = Linear(width, hidden, **layout)
        self.pr = Linear(hidden, width, **layout)

    def forward(self, x):
        return self.pr(F.gelu(self.fc(x), approximate="tanh"))


class TransformerBlock(Module):
    """Pre-norm transformer block: ``x + attn(ln1(x))``, then ``x + mlp(ln2(x))``.

    The residual stream and its gradient keep the layout of the input; partial axes are reduced first. If weights are split, each
    branch therefore ends in one reduction, in forward and in backward.
    """

    def __init__(self, width, heads, hidden, dropout=0.0, *, device=None, placement=None, sbp=None, dtype=None):
        super().__init__()
        layout = init.where(device, placement, sbp, dtype)
        vectors = init.of_vectors(layout)
        self.ln1 = LayerNorm(width, **vectors)
        self.attn = SelfAttention(width, heads, **layout)
        self.ln2 = LayerNorm(width, **vectors)
        self.mlp = MLP(width, hidden, **layout)
        self.drop = Dropout(dropout)

    def forward(self, x):
        x = _core.whole(x)
        h = _core.same_grad_layout(self.ln1(x))
        x = x + self.drop(_core.laid_like(self.attn(h), x))
        h = _core.same_grad_layout(self.ln2(x))
        return x + self.drop(_core.laid_like(self.mlp(h), x))
