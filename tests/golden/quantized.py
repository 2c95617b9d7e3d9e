"""Makes quantized.json: what PyTorch stores and gives back, and its fake quantisation with gradients.

Run it with any Python that has torch, in this folder: `python quantized.py`. The test `dtypes` reads the file.
"""

import json
import warnings

import torch

warnings.filterwarnings("ignore")
rows = []
x = torch.tensor([0.0, -0.0, 0.24, 0.26, 1.3, -1.3, 2.5, 3.5, -2.5, 7.75, 100.0, -100.0, 1e6, -1e6, 0.125, 0.375, -0.125, 63.4, -64.6])
for scale, zero in ((0.5, 0), (0.5, 3), (0.25, -7), (0.1, 5), (1.7, 0), (0.037, 2)):
    for name in ("qint8", "quint8"):
        z = zero + 100 if name == "quint8" else zero
        q = torch.quantize_per_tensor(x, scale, z, getattr(torch, name))
        rows.append({"dtype": name, "scale": scale, "zero": z, "x": x.tolist(), "stored": q.int_repr().tolist(), "back": q.dequantize().tolist()})
    leaf = x.clone().requires_grad_(True)
    y = torch.fake_quantize_per_tensor_affine(leaf, scale, zero, -20, 30)
    (2 * y).sum().backward()
    rows.append({"scale": scale, "zero": zero, "low": -20, "high": 30, "x": x.tolist(), "y": y.tolist(), "grad": leaf.grad.tolist()})
with open("quantized.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows) + "\n]\n")
print(len(rows), "rows")
