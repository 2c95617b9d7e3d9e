"""The example programs beside their Rust versions: the same losses, bit for bit, and checkpoints that either reads."""

import json
import os
import re
import shutil
import subprocess

import pytest
from jobs import LIMIT, ROOT, environment, oflaunch

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust programs cannot be built: there is no cargo here")
# The first run builds the Rust programs.
BUILD = 1800
GPT = ["--steps", 5, "--dim", 32, "--layers", 2, "--heads", 2, "--seq", 16, "--batch", 4, "--sample", 0]


STEP = re.compile(r"(?:\[rank 0\] )?step (\d+)/\d+: loss (\S+)")


def train(folder, program, *options, ranks=2, limit=LIMIT):
    """Runs a program. Returns the losses that it has printed, one for each step, and its last line."""
    script = ROOT / ("examples/python" if program.endswith(".py") else "examples") / program
    args = [oflaunch(), "-n", ranks, "-t", 1, script, "--", *options]
    done = subprocess.run(
        list(map(str, args)), cwd=folder, env={**environment(), "CARGO_TERM_QUIET": "true"}, capture_output=True, text=True, timeout=limit
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    steps = [step for step in map(STEP.match, lines) if step]
    return [float(step[2]) for step in steps], lines[-1]


@pytest.mark.parametrize("parallel", ["dp", "tp"])
@pytest.mark.parametrize("name, options", [("train", ["--steps", 30]), ("gpt", GPT)])
def test_the_losses_are_those_of_the_rust_program(tmp_path, name, options, parallel):
    options = [*options, "--parallel", parallel]
    ours, _ = train(tmp_path, f"{name}.py", *options)
    theirs, _ = train(tmp_path, f"{name}.rs", *options, limit=BUILD)
    assert len(ours) in (5, 30) and ours == theirs


@pytest.mark.parametrize("first, second", [("train.rs", "train.py"), ("train.py", "train.rs")])
def test_either_resumes_from_the_others_checkpoint(tmp_path, first, second):
    whole, _ = train(tmp_path, "train.py", "--steps", 20, "--parallel", "dp")
    save = ["--checkpoint", tmp_path / "runs", "--save-every", 10, "--steps", 20]
    saved, _ = train(tmp_path, first, *save, "--parallel", "dp", limit=BUILD)
    shutil.rmtree(tmp_path / "runs/step-000020")
    # On one rank: the sums are added in another order.
    resumed, result = train(tmp_path, second, *save, "--resume", ranks=1, limit=BUILD)
    assert saved == whole and resumed == pytest.approx(whole[10:], rel=1e-4)
    # The checkpoint has the losses of its steps: the first one is that of step 1, not of step 11.
    assert f": loss {whole[0]:.4f} -> " in result, result
    manifest = json.loads((tmp_path / "runs/step-000020/manifest.json").read_text())
    assert manifest["values"]["losses.losses"][:10] == pytest.approx(whole[:10], rel=1e-6)
    assert os.path.isdir(tmp_path / "runs/step-000020")


@pytest.mark.parametrize("options", [["--autocast", "bf16"], ["--autocast", "f16"], ["--dtype", "f64"], ["--parallel", "2d"]])
def test_precisions_and_meshes(tmp_path, options):
    losses, _ = train(tmp_path, "train.py", "--steps", 60, *options)
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.parametrize("args", [["--nothing"], ["--steps", "0"], ["--resume"], ["--parallel", "pp"]])
def test_wrong_options_end_every_rank(tmp_path, args):
    command = [oflaunch(), "-n", "2", str(ROOT / "examples/python/train.py"), "--", *args]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2 and "--help lists the options" in done.stderr, done.stderr
