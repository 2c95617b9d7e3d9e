"""What the peers of launcher/benches/gpt.rs share: options under the names of examples/gpt.rs, batches of its text, its learning
rate, the peak memory of a process."""

import argparse
import math
import pathlib

import numpy as np

CLASSES = 256


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--parallel", choices=["single", "dp", "tp"], default="single")
    for name, default in {"dim": 256, "layers": 4, "heads": 4, "seq": 128, "batch": 16, "steps": 15, "warmup": 3}.items():
        p.add_argument(f"--{name}", type=int, default=default)
    p.add_argument("--lr", type=float, default=1e-3)
    return p.parse_args()


def rate(o, step):
    """Linear warm-up, then half a cosine down to a tenth."""
    warmup = o.steps // 15
    if step < warmup:
        return o.lr * (step + 1) / warmup
    way = min((step - warmup) / max(o.steps - warmup, 1), 1.0)
    return o.lr * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * way)))


class Batches:
    """Windows of the text in random order: the tokens seen, and the same windows one byte later."""

    def __init__(self, o):
        text = pathlib.Path(__file__).parents[2] / "examples/data/corpus.txt"
        self.ids, self.o, self.at = np.frombuffer(text.read_bytes(), np.uint8).astype(np.int64), o, 0
        self.order = np.random.default_rng(0).permutation((len(self.ids) - 1) // o.seq)

    def next(self):
        rows = self.order.take(range(self.at, self.at + self.o.batch), mode="wrap")
        self.at += self.o.batch
        at = rows[:, None] * self.o.seq + np.arange(self.o.seq)
        return self.ids[at], self.ids[at + 1]


def peak_mib():
    status = pathlib.Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
