#!/usr/bin/env python3
"""Random programs of views, writes in place, reads and backward, with PyTorch's answers: makes views.txt.

    python tests/golden/views.py > tests/golden/views.txt

A program is a line of statements separated by "; ", then " | " and what PyTorch gives. Values are small whole numbers in
f64, so answers are exact. Variables are numbered in the order of their making; a statement that makes one is "= op args".

    = leaf SHAPE first      values first, first+1, ..., requires a gradient
    = const SHAPE first     the same without
    = slice v dim start end step      = select v dim index      = transpose v a b       = permute v dims
    = reshape v SHAPE       = expand v SHAPE        = squeeze v dim     = unsqueeze v dim
    = piece v size dim k    piece k of split        = detach v          = add v w       = mul v w
    add_ v w    muls_ v number    mulc_ v w    copy_ v w    zero_ v
    ng                      the next statement runs under no_grad

Sources of writes that share memory with their target are read from a copy, as oflow does (PyTorch refuses some of them).
Answers, in order: "!" per statement that is refused, as "!i" by its index; per variable the sum of element times (1 +
position); then "backward", of the sum of the squares of the last two variables that depend on a leaf, with the gradient of
each leaf ("-" where there is none or it is zero), or "backward !" where it is refused.
"""
import random
import torch

F64 = torch.float64
SHAPES = [[4], [2, 3], [3, 2], [2, 2, 2], [3], [1, 4], [2, 1, 3], [2, 4]]


class Skip(Exception):
    pass


def text(shape):
    return "[" + ",".join(map(str, shape)) + "]"


def values(shape, first):
    n = 1
    for s in shape:
        n *= s
    # Cloned: `reshape` gives a view, and a leaf that is a view of something else behaves otherwise.
    return (torch.arange(n, dtype=F64) + first).reshape(shape).clone()


class Program:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.vars, self.lines, self.leaves, self.refused = [], [], [], []

    def make(self, words, t):
        self.lines.append("= " + words)
        self.vars.append(t)

    def pick(self, ok=lambda t: True):
        found = [i for i, t in enumerate(self.vars) if ok(t)]
        if not found:
            raise Skip
        # Younger ones more often.
        return found[max(self.r.randrange(len(found)), self.r.randrange(len(found)))]

    def start(self):
        r = self.r
        for kind in ["leaf", "leaf"][: r.randint(1, 2)] + ["const"] * r.randint(0, 1):
            shape, first = r.choice(SHAPES), r.randint(-2, 2)
            t = values(shape, first)
            if kind == "leaf":
                t.requires_grad_(True)
                self.leaves.append(len(self.vars))
            self.make(f"{kind} {text(shape)} {first}", t)
        # Something of the graph that is no leaf.
        i = self.pick()
        self.make(f"mul {i} {i}", self.vars[i] * self.vars[i])

    def view(self):
        r = self.r
        kind = r.choice(
            ["slice", "slice", "select", "transpose", "permute", "reshape", "expand", "squeeze", "unsqueeze", "piece", "detach"]
        )
        i = self.pick()
        t = self.vars[i]
        n = t.dim()
        if kind == "slice":
            d = self.dim(t)
            size = t.shape[d]
            a = r.randint(0, max(size - 1, 0))
            b, step = r.randint(a, size), r.choice([1, 1, 2])
            return f"slice {i} {d} {a} {b} {step}", lambda: t[(slice(None),) * d + (slice(a, b, step),)]
        if kind == "select":
            d = self.dim(t)
            k = r.randrange(t.shape[d]) if t.shape[d] else self.skip()
            return f"select {i} {d} {k}", lambda: t.select(d, k)
        if kind == "transpose":
            a, b = self.dim(t), self.dim(t)
            return f"transpose {i} {a} {b}", lambda: t.transpose(a, b)
        if kind == "permute":
            dims = list(range(n))
            r.shuffle(dims)
            return f"permute {i} {text(dims)}", lambda: t.permute(dims)
        if kind == "reshape":
            shapes = [[t.numel()], [1, t.numel()], [t.numel(), 1]]
            if t.numel() % 2 == 0 and t.numel():
                shapes += [[2, t.numel() // 2], [t.numel() // 2, 2]]
            shape = r.choice(shapes)
            return f"reshape {i} {text(shape)}", lambda: t.reshape(shape)
        if kind == "expand":
            shape = [s if s != 1 else r.choice([1, 3]) for s in t.shape]
            if r.random() < 0.4:
                shape = [2] + shape
            if len(shape) > 4:
                raise Skip
            return f"expand {i} {text(shape)}", lambda: t.expand(shape)
        if kind == "squeeze":
            d = self.dim(t)
            return f"squeeze {i} {d}", lambda: t.squeeze(d)
        if kind == "unsqueeze":
            if n > 3:
                raise Skip
            d = r.randint(0, n)
            return f"unsqueeze {i} {d}", lambda: t.unsqueeze(d)
        if kind == "piece":
            d = self.dim(t)
            size = r.randint(1, max(t.shape[d], 1))
            count = -(-t.shape[d] // size) if t.shape[d] else self.skip()
            k = r.randrange(count)
            return f"piece {i} {size} {d} {k}", lambda: t.split(size, d)[k]
        return f"detach {i}", lambda: t.detach()

    def overlap(self):
        raise RuntimeError("overlap")

    def skip(self):
        raise Skip

    def dim(self, t):
        return self.r.randrange(t.dim()) if t.dim() else self.skip()

    def compute(self):
        i = self.pick()
        same = self.pick(lambda t: t.shape == self.vars[i].shape)
        a, b = self.vars[i], self.vars[same]
        return (f"add {i} {same}", lambda: a + b) if self.r.random() < 0.5 else (f"mul {i} {same}", lambda: a * b)

    def write(self):
        r = self.r
        i = self.pick()
        t = self.vars[i]
        kind = r.choice(["add_", "muls_", "mulc_", "copy_", "zero_", "add_", "copy_"])

        def source(w):
            shared = w.untyped_storage().data_ptr() == t.untyped_storage().data_ptr()
            return w.clone() if shared else w

        if kind == "muls_":
            k = r.choice([2.0, 3.0, -1.0])
            return f"muls_ {i} {k}", lambda: t.mul_(k)
        if kind == "zero_":
            repeats = t.numel() and any(n > 1 and stride == 0 for n, stride in zip(t.shape, t.stride()))
            # PyTorch lets `zero_` through, because every write of an element is the same; oflow has one rule.
            return f"zero_ {i}", lambda: self.overlap() if repeats else t.zero_()
        constant = kind == "mulc_"
        j = self.pick(lambda w: w.shape == t.shape and not (constant and w.requires_grad))
        w = self.vars[j]
        if constant and source(w) is not w:
            raise Skip
        run = {"add_": lambda: t.add_(source(w)), "mulc_": lambda: t.mul_(source(w)), "copy_": lambda: t.copy_(source(w))}
        return f"{kind} {i} {j}", run[kind]

    def step(self):
        r = self.r
        kind = r.random()
        words, run = self.view() if kind < 0.45 else self.write() if kind < 0.82 else self.compute()
        quiet = r.random() < 0.06
        making = not words.split()[0].endswith("_")
        if quiet:
            self.lines.append("ng")
        try:
            if quiet:
                with torch.no_grad():
                    out = run()
            else:
                out = run()
        except RuntimeError as e:
            if making or "its base or another view of its base" in str(e):
                raise Skip
            if quiet:
                self.lines.pop()
            self.refused.append(len(self.lines))
            self.lines.append(words)
            return
        if making:
            self.make(words, out)
        else:
            self.lines.append(words)

    def finish(self):
        answers = [f"!{i}" for i in self.refused]
        for t in self.vars:
            flat = t.detach().reshape(-1)
            if flat.numel() and flat.abs().max() > 2**36:
                raise Skip
            s = (flat * (torch.arange(flat.numel(), dtype=F64) + 1)).sum().item()
            answers.append(f"{s + 0.0:.0f}")
        try:
            last = [i for i, t in enumerate(self.vars) if t.grad_fn is not None or i in self.leaves][-2:]
        except RuntimeError:
            raise Skip
        if not last:
            raise Skip
        self.lines.append("backward " + " ".join(map(str, last)))
        answers.append("backward")
        try:
            sum((self.vars[i] * self.vars[i]).sum() for i in last).backward()
        except RuntimeError as e:
            # PyTorch sends zeros to what `copy_` has overwritten, and so finds more changed tensors than take part.
            if "modified by an inplace operation" not in str(e) or any(line.startswith("copy_") for line in self.lines):
                raise Skip
            return answers + ["!"]
        for i in self.leaves:
            g = self.vars[i].grad
            if g is not None and g.numel() and g.abs().max() > 2**50:
                raise Skip
            answers.append("-" if g is None or not g.any() else "[" + ",".join(f"{x + 0.0:.0f}" for x in g.reshape(-1).tolist()) + "]")
        return answers


def program(seed):
    p = Program(seed)
    p.start()
    for _ in range(p.r.randint(4, 12)):
        for _ in range(20):
            lines = len(p.lines)
            try:
                p.step()
                break
            except Skip:
                del p.lines[lines:]
    # Programs in which nothing was written are of no use.
    if not any(line.split()[0].endswith("_") for line in p.lines):
        raise Skip
    answers = p.finish()
    return "; ".join(p.lines) + " | " + " ".join(answers)


def main():
    torch.set_num_threads(1)
    count, seed = 0, 0
    while count < 2400:
        seed += 1
        try:
            line = program(seed)
        except Skip:
            continue
        print(line)
        count += 1


main()
