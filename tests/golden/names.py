"""Lists the functions of src/functional/generated/reference.md that PyTorch has under the same name: no aliases, no gradients, no forms in place, no layout ops.

    python tests/golden/names.py
"""

import pathlib
import re

import torch
import torch.nn.functional

# Properties of a tensor, which are functions by name only.
PROPERTIES = {"dtype", "device", "shape", "ndim", "size", "numel", "item", "requires_grad"}
# An alias of transpose; OneFlow's names.
OTHERS = {"t", "is_global", "placement", "sbp"}

page = pathlib.Path(__file__).parents[2] / "src/functional/generated/reference.md"
names = re.findall(r"^## (\S+)$", page.read_text(), re.M)
rooms = (torch, torch.nn.functional, torch.Tensor, torch.linalg, torch.special)
both = [n for n in names if not n.endswith("_") and n not in PROPERTIES | OTHERS and any(hasattr(r, n) for r in rooms)]
print("\n".join(both))
print(f"{len(both)} of {len(names)} names")
