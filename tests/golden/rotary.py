"""Makes rotary.json: frequencies of rotary position embeddings by the formulas of transformers' `modeling_rope_utils`.

Run it with any Python, in this folder: `python rotary.py`. The test of `src/nn/rotary_scaling.rs` reads the file. The formulas are written
out as that module has them, in float64; it computes in float32.
"""

import json
import math


def default(base, width):
    return [1.0 / base ** (2 * i / width) for i in range(width // 2)]


def linear(s, base, width, positions):
    return [f / s["factor"] for f in default(base, width)], 1.0


def ntk(s, base, width, positions):
    return default(base * s["factor"] ** (width / (width - 2)), width), 1.0


def dynamic(s, base, width, positions):
    trained, factor = s["original_max_position_embeddings"], s["factor"]
    length = positions if positions > trained else trained
    return default(base * ((factor * length / trained) - (factor - 1)) ** (width / (width - 2)), width), 1.0


def yarn(s, base, width, positions):
    factor, trained = s["factor"], s["original_max_position_embeddings"]

    def mscale(m=1):
        return 1.0 if factor <= 1 else 0.1 * m * math.log(factor) + 1.0

    attention = s.get("attention_factor")
    if attention is None:
        if s.get("mscale") and s.get("mscale_all_dim"):
            attention = float(mscale(s["mscale"]) / mscale(s["mscale_all_dim"]))
        else:
            attention = mscale()

    def correction(rotations):
        return width * math.log(trained / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low, high = correction(s.get("beta_fast") or 32), correction(s.get("beta_slow") or 1)
    if s.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    if low == high:
        high += 0.001
    found = []
    for i, f in enumerate(default(base, width)):
        extrapolation = 1 - min(max((i - low) / (high - low), 0), 1)
        found.append(f / factor * (1 - extrapolation) + f * extrapolation)
    return found, attention


def llama3(s, base, width, positions):
    factor, low, high, old = s["factor"], s["low_freq_factor"], s["high_freq_factor"], s["original_max_position_embeddings"]
    found = []
    for f in default(base, width):
        wavelen = 2 * math.pi / f
        slowed = f / factor if wavelen > old / low else f
        if not wavelen < old / high and not wavelen > old / low:
            smooth = (old / wavelen - low) / (high - low)
            slowed = (1 - smooth) * slowed / factor + smooth * slowed
        found.append(slowed)
    return found, 1.0


cases = []
for scaling in [
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 4.0},
    {"rope_type": "ntk", "factor": 4.0},
    {"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 2048},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048},
    {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 4096, "beta_fast": 24.0, "beta_slow": 2.0, "attention_factor": 1.25},
    {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 0.707, "mscale_all_dim": 1.0},
    {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096, "truncate": False},
    {"rope_type": "yarn", "factor": 1.0, "original_max_position_embeddings": 16},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
]:
    make = {"default": lambda s, b, w, p: (default(b, w), 1.0), "linear": linear, "ntk": ntk, "dynamic": dynamic, "yarn": yarn, "llama3": llama3}
    for base, width, positions in [(10000.0, 64, 1024), (500000.0, 128, 32768), (10000.0, 8, 4096)]:
        frequencies, attention = make[scaling["rope_type"]](scaling, base, width, positions)
        cases.append({"scaling": scaling, "base": base, "width": width, "positions": positions, "frequencies": frequencies, "attention_factor": attention})
with open("rotary.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
