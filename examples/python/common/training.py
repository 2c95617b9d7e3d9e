"""The frame around a training loop: mesh and precision from the command line, checkpoints, measurements, output."""

import contextlib
import math
import time

import numpy as np
import oflow
from oflow.checkpoint import CheckpointManager
from oflow.metrics import Log
from oflow.optim import GradScaler

from .options import mesh

# Number of first steps that the measured speed leaves out.
WARMUP = 3
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
        if not self.speaks:
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
        self.history: dict[str, list[float]] = {"losses": []}
        self.state = {"losses": self.history, **({"scaler": self.scaler} if self.scaler else {}), **state}
        o = self.options
        self.manager = CheckpointManager(o.checkpoint, keep=o.keep) if o.checkpoint else None
        self.first = (self.manager.load_latest(self.state) or 0) if self.manager and o.resume else 0
        # JSON has no NaN: such a loss was saved as null.
        self.history["losses"] = [math.nan if loss is None else loss for loss in self.history["losses"]]
        # A run that goes on from a checkpoint writes the steps since then once more.
        self.log = Log(o.metrics, resume=o.resume) if o.metrics else None
        self.began = self.marked = time.perf_counter()
        self.marked_at, self.windows = self.first, []

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
        if self.log:
            self.log.log(done, loss=loss)
        if done % o.log_every == 0 or done == self.total:
            value = loss.item()
            now = time.perf_counter()
            ms = (now - self.marked) / (done - self.marked_at) * 1e3
            if done > self.first + WARMUP:
                self.windows.append(ms)
            self.marked, self.marked_at = now, done
            self.history["losses"].append(value)
            if self.setup.speaks:
                # All digits of the loss, so that runs can be compared.
                digits = value if loss.dtype == oflow.float64 else np.float32(value)
                print(f"step {done}/{self.total}: loss {digits!s} ({ms:.3f} ms)", flush=True)
        if self.manager and done % o.save_every == 0:
            self.manager.save_async(done, self.state)

    def finish(self):
        """Call it after the last step: writes the last metrics and waits for the last save."""
        if self.log:
            self.log.close()
        if self.manager:
            self.manager.finish()
        return Outcome(self)


class Outcome:
    """The result of a training."""

    def __init__(self, training):
        self.setup, self.steps = training.setup, training.total
        losses = training.history["losses"]
        last = losses[-10:]
        self.first = losses[0] if losses else math.nan
        self.last = sum(last) / len(last) if last else math.nan
        windows = sorted(training.windows)
        self.ms = windows[len(windows) // 2] if windows else math.nan
        self.seconds = time.perf_counter() - training.began

    def say(self, text):
        """Prints a text on rank 0."""
        if self.setup.speaks:
            print(text)

    def print(self, **more):
        """Prints the result on rank 0 with further numbers of the program."""
        if self.setup.speaks:
            extra = "".join(f", {name} {value:.4f}" for name, value in more.items())
            print(
                f"{self.steps} steps in {self.seconds:.1f} s ({self.ms:.1f} ms a step): "
                f"loss {self.first:.4f} -> {self.last:.4f} (mean of the last ten){extra}"
            )

    def expect(self, enough, learned, what):
        """Fails if ``learned`` is false after ``enough`` steps or more. Shorter runs pass."""
        if self.steps >= enough and not learned:
            raise AssertionError(f"after {self.steps} steps {what}")
