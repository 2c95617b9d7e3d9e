"""Writes result_type.tsv: PyTorch's `result_type` of all pairs of tensors with dims, tensors without dims, and numbers.

    python result_type.py
"""

import pathlib

import torch

DTYPES = "bool uint8 int8 int16 uint16 int32 uint32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
NUMBERS = {"True": True, "2": 2, "2.5": 2.5, "2j": 2j}
OPERANDS = {**{f"{d}[2]": torch.ones(2, dtype=getattr(torch, d)) for d in DTYPES}, **{f"{d}[]": torch.ones((), dtype=getattr(torch, d)) for d in DTYPES}, **NUMBERS}


def result(a, b):
    try:
        return str(torch.result_type(a, b)).removeprefix("torch.")
    except RuntimeError:
        return "refused"


if __name__ == "__main__":
    lines = [f"# torch.result_type of PyTorch {torch.__version__.split('+')[0]}: one operand, the other, the dtype"]
    lines += [f"{x}\t{y}\t{result(a, b)}" for x, a in OPERANDS.items() for y, b in OPERANDS.items()]
    (pathlib.Path(__file__).parent / "result_type.tsv").write_text("\n".join(lines) + "\n")
