"""Training data and sampling for the byte-level GPT."""

import math

import numpy as np
from oflow.data import Loader

BYTES = 256
_MASK = (1 << 64) - 1


def text_loader(text, mesh, batch, seq, seed):
    """Batches of windows of a text, split along mesh axis "dp". Column 0 is i64[batch, seq], the tokens that the model sees; column
    1 is the same windows one byte later."""
    rows = max(len(text) - 1, 0) // seq
    if rows < batch:
        raise ValueError(f"a batch of {batch} rows of {seq} bytes needs a text of {batch * seq + 1} bytes, this one has {len(text)}")
    return _windows(np.frombuffer(text, dtype=np.uint8).astype(np.int64), mesh, batch, rows, seq, seed)


def synthetic_loader(mesh, batch, vocab, seq, seed):
    """Four batches of random tokens below ``vocab``, the same on every rank."""
    rows = 4 * batch
    tokens = np.array([int(uniform(seed, i) * vocab) for i in range(rows * seq + 1)], dtype=np.int64)
    return _windows(tokens, mesh, batch, rows, seq, seed)


def _windows(tokens, mesh, batch, rows, seq, seed):
    columns = [tokens[start : start + rows * seq].reshape(rows, seq) for start in (0, 1)]
    return Loader(columns, mesh, batch, split_along="dp", seed=seed, drop_last=True)


def uniform(seed, position):
    """A number in [0, 1) from a seed and a position, the same on every rank."""
    z = (seed + (position + 1) * 0x9E37_79B9_7F4A_7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK
    return ((z ^ (z >> 31)) >> 11) / (1 << 53)


def draw(logits, temperature, u):
    """Draws an index with probability proportional to exp(logit / temperature), from ``u`` in [0, 1). A temperature of 0 gives the
    largest logit."""
    best = max(range(len(logits)), key=logits.__getitem__)
    if temperature <= 0:
        return best
    weights = [math.exp((logit - logits[best]) / temperature) for logit in logits]
    left = u * sum(weights)
    for i, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return i
    return best
