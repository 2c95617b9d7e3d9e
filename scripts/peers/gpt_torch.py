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
from gpt_torch_model import Gpt

o = options()
torch.set_num_threads(1)
torch.manual_seed(0)


net, rank, world = Gpt(o), 0, 1
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
