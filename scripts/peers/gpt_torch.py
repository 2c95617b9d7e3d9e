"""Training steps of the byte-level GPT of examples/gpt.rs with PyTorch: the same model, text, schedule and AdamW. Prints one
line of JSON: milliseconds and losses of the counted steps, peak memory of all ranks. Run by launcher/benches/gpt.rs.

python gpt_torch.py --parallel single [--dim 256 --layers 4 --heads 4 --seq 128 --batch 16 --steps 15 --warmup 3]
python -m torch.distributed.run --standalone --nproc-per-node 2 gpt_torch.py --parallel dp|tp
"""

import json
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from gpt_common import CLASSES, Batches, options, peak_mib, rate

o = options()
torch.set_num_threads(1)
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(o.dim), nn.LayerNorm(o.dim)
        self.q, self.k, self.v, self.o = (nn.Linear(o.dim, o.dim) for _ in range(4))
        self.fc, self.pr = nn.Linear(o.dim, 4 * o.dim), nn.Linear(4 * o.dim, o.dim)

    def forward(self, x):
        b, t, _ = x.shape
        h = self.ln1(x)
        # Under tensor parallelism a rank has a part of the heads.
        q, k, v = (m(h).view(b, t, -1, o.dim // o.heads).transpose(1, 2) for m in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, -1))
        return x + self.pr(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(CLASSES, o.dim), nn.Embedding(o.seq, o.dim)
        self.h = nn.ModuleList(Block() for _ in range(o.layers))
        self.lnf, self.head = nn.LayerNorm(o.dim), nn.Linear(o.dim, CLASSES, bias=False)
        for weight in (self.wte.weight, self.wpe.weight, self.head.weight):
            nn.init.normal_(weight, std=0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.head(self.lnf(x))


net, rank, world = Gpt(), 0, 1
if o.parallel != "single":
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
if o.parallel == "dp":
    net = nn.parallel.DistributedDataParallel(net)
if o.parallel == "tp":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    columns, rows = ("q", "k", "v", "fc"), ("o", "pr")
    plan = {name: ColwiseParallel() for name in columns} | {name: RowwiseParallel() for name in rows}
    for block in net.h:
        parallelize_module(block, init_device_mesh("cpu", (world,)), plan)
# A list of parameters may not mix tensors and DTensors.
opt = torch.optim.AdamW(net.parameters(), lr=o.lr, foreach=False if o.parallel == "tp" else None)

batches, ms, losses = Batches(o), [], []
# A slice of the batch in dp, else all of it.
mine = slice(rank * o.batch // world, (rank + 1) * o.batch // world) if o.parallel == "dp" else slice(None)
for step in range(o.steps):
    if step == o.warmup:
        cpu, wall = time.process_time(), time.perf_counter()
    began = time.perf_counter()
    seen, following = (torch.from_numpy(ids[mine]) for ids in batches.next())
    for group in opt.param_groups:
        group["lr"] = rate(o, step)
    opt.zero_grad(set_to_none=True)
    loss = F.cross_entropy(net(seen).reshape(-1, CLASSES), following.reshape(-1))
    loss.backward()
    opt.step()
    losses.append(loss.item())
    ms.append((time.perf_counter() - began) * 1e3)
cores = (time.process_time() - cpu) / (time.perf_counter() - wall)

sums = torch.tensor([peak_mib(), cores] + losses, dtype=torch.float64)
if world > 1:
    dist.all_reduce(sums)
if rank == 0:
    peak, cores, *losses = sums.tolist()
    losses = [loss / world for loss in losses]
    print(json.dumps({"ms": ms[o.warmup :], "losses": losses, "peak_mib": peak, "cores": cores}), flush=True)
if world > 1:
    dist.barrier()
    dist.destroy_process_group()
    # Threads of a mesh's groups sometimes abort the interpreter's own exit.
    os._exit(0)
