"""Makes modules.json: what PyTorch's modules give for given weights and inputs, with gradients of both.

Run it with any Python that has torch, in this folder: `python modules.py`. The test `modules` reads the file, and so does the test of
the Python module.
"""

import contextlib
import io
import json

import torch
from torch import nn

with contextlib.redirect_stdout(io.StringIO()):
    from make import dump, values

cases = []


def case(kind, module, inputs, call=None, options=None, **config):
    """`inputs` and `config` are told; `options` are those of the call, tensors among them."""
    module = module.double()
    for i, (name, p) in enumerate(module.named_parameters()):
        p.data = values(p.shape, "f64", start=5 * i) / 3
    ins = [t.clone().requires_grad_(t.dtype.is_floating_point) for t in inputs]
    options = options or {}
    out = call(module, *ins) if call else module(*ins, **options)
    outs = []
    for o in out if isinstance(out, (tuple, list)) else [out]:
        outs += list(o) if isinstance(o, (tuple, list)) else [o]
    outs = [o for o in outs if o is not None]
    dy = [values(o.shape, "f64", start=3 + i) for i, o in enumerate(outs)]
    wants = [t for t in ins if t.requires_grad] + list(module.parameters())
    found = list(torch.autograd.grad(outs, wants, dy, allow_unused=True))
    grads = [dump(found.pop(0)) if t.requires_grad else None for t in ins]
    cases.append({
        "kind": kind, "config": config, "options": {k: dump(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()},
        "state": {name: dump(t) for name, t in module.state_dict().items()}, "inputs": [dump(t) for t in ins], "outputs": [dump(o) for o in outs],
        "dy": [dump(d) for d in dy], "grads": grads, "parameter_grads": {name: dump(g) for (name, _), g in zip(module.named_parameters(), found)},
    })


x = values((3, 4, 2), "f64")
for sizes in (dict(), dict(num_layers=2, bidirectional=True), dict(num_layers=2, bias=False, batch_first=True)):
    config = dict(input_size=2, hidden_size=3, **sizes)
    states = sizes.get("num_layers", 1) * (2 if sizes.get("bidirectional") else 1)
    h = values((states, 3 if sizes.get("batch_first") else 4, 3), "f64", start=7)
    c = values(h.shape, "f64", start=9)
    case("lstm", nn.LSTM(**config), [x], **config)
    case("lstm", nn.LSTM(**config), [x, h, c], lambda m, x, h, c: m(x, (h, c)), **config)
    case("gru", nn.GRU(**config), [x], **config)
    case("gru", nn.GRU(**config), [x, h], **config)
    for how in ("tanh", "relu"):
        case("rnn", nn.RNN(nonlinearity=how, **config), [x, h], nonlinearity=how, **config)
case("lstm", nn.LSTM(2, 3), [x[:, 0]], input_size=2, hidden_size=3)

q, k, v = values((3, 2, 4), "f64"), values((5, 2, 4), "f64", start=4), values((5, 2, 4), "f64", start=8)
padding = torch.tensor([[False, False, True, False, True], [False, True, True, True, False]])
hidden = torch.tensor([[False, True, False, False, False], [False, False, False, True, True], [True, False, False, False, False]])
for options in (dict(need_weights=False), dict(), dict(average_attn_weights=False), dict(key_padding_mask=padding), dict(attn_mask=hidden, key_padding_mask=padding),
                dict(attn_mask=values((3, 5), "f64"), need_weights=False), dict(attn_mask=values((4, 3, 5), "f64")),
                dict(attn_mask=values((3, 5), "f64"), key_padding_mask=torch.where(padding, -torch.inf, 0.0).double())):
    case("mha", nn.MultiheadAttention(4, 2), [q, k, v], options=options, embed_dim=4, num_heads=2)
case("mha", nn.MultiheadAttention(4, 2, batch_first=True, bias=False), [q, q, q], embed_dim=4, num_heads=2, batch_first=True, bias=False)
case("mha", nn.MultiheadAttention(4, 2), [q], lambda m, x: m(x, x, x), embed_dim=4, num_heads=2)
case("mha", nn.MultiheadAttention(4, 2, kdim=3, vdim=5), [q, values((5, 2, 3), "f64"), values((5, 2, 5), "f64")], embed_dim=4, num_heads=2, kdim=3, vdim=5)
case("mha", nn.MultiheadAttention(4, 2), [q[:, 0], k[:, 0], v[:, 0]], embed_dim=4, num_heads=2)

ids = values((4, 3), "i64", below=6)
for mode in ("sum", "mean", "max"):
    case("bag", nn.EmbeddingBag(6, 4, mode=mode), [ids], rows=6, width=4, mode=mode)
    case("bag", nn.EmbeddingBag(6, 4, mode=mode, padding_idx=2), [ids.reshape(-1), torch.tensor([0, 4, 4, 9])], rows=6, width=4, mode=mode, padding_idx=2)
case("embedding", nn.Embedding(6, 4, padding_idx=2), [ids], rows=6, width=4, padding_idx=2)
case("sequential", nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.LayerNorm(5), nn.Linear(5, 3)), [values((3, 4), "f64")])

with open("modules.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
print(len(cases), "cases")
