"""The frame around a training loop: mesh and precision from the command line, checkpoints, losses, measurements, output."""

import contextlib
import json
import math
import sys
import time

import oflow
from oflow.checkpoint import CheckpointManager
from oflow.optim import GradScaler

from .options import mesh

DTYPES = {"f32": oflow.float32, "f64": oflow.float64, "bf16": oflow.bfloat16, "f16": oflow.float16}


class Setup:
    """The mesh, the precision and the seed of a training."""

    def __init__(self, options):
        self.options = options
        parallel = options.parallel or ("dp" if oflow.world_size() > 1 else "single")
        self.mesh = mesh(parallel, options.device)
        self.splits_weights = parallel in ("tp", "2d")
        self.dtype, self.seed = DTYPES[options.dtype], options.seed
        self.speaks = oflow.rank() == 0
        oflow.manual_seed(self.seed)

    def autocast(self):
        """The mode in which the loss is computed."""
        name = self.options.autocast
        return contextlib.nullcontext() if name == "off" else oflow.autocast(DTYPES[name])

    def describe(self, model):
        """Prints the parameters of a model and their layouts on rank 0: of each list the first element's."""
        if not self.speaks or self.options.json:
            return
        total = sum(p.numel() for p in model.parameters())
        print(f"{total} parameters on {self.mesh}, autocast {self.options.autocast}")
        for name, p in model.named_parameters():
            if not any(part.isdigit() and part != "0" for part in name.split(".")):
                print(f"  {name:<18} {p.dtype.name}{list(p.shape)} [{', '.join(map(str, p.sbp))}]")

    def start(self, total, state):
        """Starts a training of ``total`` steps. With ``--resume`` loads the latest checkpoint into ``state``."""
        return Training(self, total, state)


class Training:
    """A training in progress."""

    def __init__(self, setup, total, state):
        self.setup, self.options, self.total = setup, setup.options, total
        self.scaler = GradScaler() if self.options.autocast == "f16" else None
        self.history = {"losses": []}
        self.state = {"losses": self.history, **({"scaler": self.scaler} if self.scaler else {}), **state}
        o = self.options
        self.manager = CheckpointManager(o.checkpoint, keep=o.keep) if o.checkpoint else None
        self.first = (self.manager.load_latest(self.state) or 0) if o.resume else 0
        # JSON has no NaN: such a loss was saved as null.
        self.history["losses"] = [math.nan if loss is None else loss for loss in self.history["losses"]]
        self.began = self.marked = time.perf_counter()
        self.marked_at, self.windows, self.tenths = self.first, [], 0
        # The first step makes all plans. Receipts are kept for about 20 of the others.
        self.reported = min(max(total - self.first - 1, 1), 20)
        oflow.take_receipts()

    def steps(self):
        """The steps to run: from 0, or from the step of the checkpoint that was loaded."""
        return range(self.first, self.total)

    def backward(self, loss):
        """The gradients of the loss; under float16 of the scaled loss."""
        (self.scaler.scale(loss) if self.scaler else loss).backward()

    def unscale(self, optimizer):
        """Needed before gradients are read or clipped."""
        if self.scaler:
            self.scaler.unscale_(optimizer)

    def step(self, optimizer):
        """A step of the optimizer; skipped if a gradient is not finite under float16."""
        if self.scaler:
            self.scaler.step(optimizer)
            self.scaler.update()
        else:
            optimizer.step()

    def after(self, step, loss):
        """Call it at the end of each step. Logs the loss and saves the state if a save is due."""
        done, o = step + 1, self.options
        if done % o.log == 0 or done == self.total:
            value = loss.item()
            now = time.perf_counter()
            ms = (now - self.marked) / (done - self.marked_at) * 1e3
            if done > self.first + o.warmup:
                self.windows.append(ms)
            self.marked, self.marked_at = now, done
            self.history["losses"].append(value)
            if self.setup.speaks and o.json:
                print(json.dumps({"step": step, "loss": value, "ms": round(ms, 3)}))
            elif self.setup.speaks and done * 10 // self.total > self.tenths:
                self.tenths = done * 10 // self.total
                print(f"{self.tenths * 10:3} % loss {value:.4f}", file=sys.stderr)
        if self.manager and done % o.save_every == 0:
            self.manager.save_async(done, self.state)
        if done + self.reported == self.total:
            oflow.take_receipts()

    def finish(self):
        """Call it after the last step: waits for the last save."""
        if self.manager:
            self.manager.finish()
        if self.options.report and self.setup.speaks:
            print(f"the last {self.reported} steps on {self.setup.mesh}: {oflow.report()}")
        return Outcome(self)


class Outcome:
    """The result of a training."""

    def __init__(self, training):
        self.options, self.setup = training.options, training.setup
        self.losses, self.steps = training.history["losses"], training.total
        last = self.losses[-10:]
        self.first = self.losses[0] if self.losses else math.nan
        self.last = sum(last) / len(last) if last else math.nan
        windows = sorted(training.windows)
        self.ms = windows[len(windows) // 2] if windows else math.nan
        self.seconds = time.perf_counter() - training.began

    def say(self, text):
        """Prints a text on rank 0, unless ``--json`` is given."""
        if self.setup.speaks and not self.options.json:
            print(text)

    def print(self, **more):
        """Prints the result with further numbers of the program, then does what ``--losses`` and ``--compare`` ask for."""
        if not self.setup.speaks:
            return
        if self.options.json:
            numbers = {"steps": self.steps, "first": self.first, "loss": self.last, "seconds": self.seconds}
            print(json.dumps({**numbers, "world": oflow.world_size(), "ms": self.ms, **more}))
        else:
            extra = "".join(f", {name} {value:.4f}" for name, value in more.items())
            print(
                f"{self.steps} steps in {self.seconds:.1f} s ({self.ms:.1f} ms a step): "
                f"loss {self.first:.4f} -> {self.last:.4f} (mean of the last ten){extra}"
            )
        if self.options.losses:
            with open(self.options.losses, "w") as file:
                file.writelines(f"{loss}\n" for loss in self.losses)
        if self.options.compare:
            self._compare()

    def _compare(self):
        name = self.options.compare
        with open(name) as file:
            other = [float(line) for line in file]
        if len(other) != len(self.losses):
            raise ValueError(f"this run has {len(self.losses)} losses, {name} has {len(other)}")
        gaps = [abs(a - b) / max(abs(b), 1.0) for a, b in zip(self.losses, other)]
        for step, gap in enumerate(gaps):
            # A NaN is a difference too.
            if not gap <= self.options.tolerance:
                raise ValueError(f"step {step}: loss {self.losses[step]} here, {other[step]} in {name}")
        print(f"{len(gaps)} losses agree with {name}: they differ by {max(gaps, default=0.0):.1e} at most")

    def expect(self, enough, learned, what):
        """Fails if ``learned`` is false after ``enough`` steps or more. Shorter runs pass."""
        if self.steps >= enough and not learned:
            raise AssertionError(f"after {self.steps} steps {what}")
