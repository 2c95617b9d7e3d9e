"""Trains a two-layer network on 8x8 images of handwritten digits, on one rank or on several:

    oflaunch --nproc 2 examples/python/train.py -- --parallel tp

It computes what examples/train.rs computes: the same data, seeds and losses.
"""

import pathlib

import numpy as np
import oflow
from common import Parser, Setup
from common.options import count
from oflow import nn
from oflow.data import Loader
from oflow.optim import AdamW, Schedule

PIXELS, CLASSES = 64, 10
DIGITS = pathlib.Path(__file__).resolve().parent.parent / "data" / "digits.csv"


class Mlp(nn.Module):
    def __init__(self, hidden, dropout, **layout):
        super().__init__()
        self.fc1 = nn.Linear(PIXELS, hidden, **layout)
        self.drop = nn.Dropout(dropout)
        self.fc2 = nn.Linear(hidden, CLASSES, **layout)

    def forward(self, x):
        """Logits [N, 10] of images [N, 64]."""
        return self.fc2(self.drop(self.fc1(x).relu()))


def digits(mesh, batch, *, test, seed=None):
    """Batches of images f32[batch, 64] (0 to 1) and labels i64[batch], split along mesh axis "dp". Every fifth row is for testing,
    the others are for training."""
    rows = np.loadtxt(DIGITS, delimiter=",", dtype=np.int64, ndmin=2)
    rows = rows[(np.arange(len(rows)) % 5 == 0) == test]
    images = rows[:, :PIXELS].astype(np.float32) / np.float32(16)
    return Loader([images, rows[:, PIXELS].copy()], mesh, batch, split_along="dp", seed=seed)


@oflow.no_grad()
def accuracy(model, test, dtype):
    """Fraction of the test digits that the model recognises."""
    correct = 0
    for x, y in test.epoch(0):
        correct += model(x.cast(dtype)).argmax(-1).eq(y).sum().item()
    return correct / test.rows


def main():
    parser = Parser("Trains an MLP on 8x8 images of handwritten digits.")
    parser.add_argument("--epochs", type=count, default=40, help="passes over the training set")
    parser.add_argument("--steps", type=count, help="largest number of steps")
    parser.add_argument("--batch", type=count, default=64, help="rows of a global batch")
    parser.add_argument("--hidden", type=count, default=128, help="width of the hidden layer")
    parser.add_argument("--lr", type=float, default=0.004, help="learning rate")
    parser.add_argument("--dropout", type=float, default=0.1, help="probability of dropping a hidden unit")
    o = parser.parse()
    setup = Setup(o)
    mesh, B, S = setup.mesh, oflow.sbp.broadcast, oflow.sbp.split

    # Weights are whole on every rank. --parallel tp splits the outputs of the first layer and the inputs of the second: the hidden
    # units then need no communication.
    model = Mlp(o.hidden, o.dropout, placement=mesh, sbp=(B, B), dtype=setup.dtype)
    if setup.splits_weights:
        model.to_global(mesh, rules={"fc1.*": (B, S(0)), "fc2.weight": (B, S(1))})
    setup.describe(model)

    train, test = digits(mesh, o.batch, test=False, seed=setup.seed), digits(mesh, 256, test=True)
    batches = train.stream()
    opt = AdamW(model.parameters(), lr=o.lr)
    total = min(o.epochs * len(train), o.steps or o.epochs * len(train))
    schedule = Schedule.warmup_cosine(warmup=total // 20, total=total, floor=0.02)

    training = setup.start(total, {"model": model, "opt": opt, "data": batches})
    for step in training.steps():
        x, y = next(batches)
        with setup.autocast():
            loss = oflow.cross_entropy(model(x.cast(setup.dtype)), y)
        opt.zero_grad()
        training.backward(loss)
        opt.param_groups[0]["lr"] = o.lr * schedule.at(step)
        training.step(opt)
        training.after(step, loss)
    outcome = training.finish()

    model.eval()
    right = accuracy(model, test, setup.dtype)
    outcome.print(accuracy=right)
    outcome.expect(400, right > 0.9, f"the model recognises only {right:.0%} of the digits")


if __name__ == "__main__":
    main()
