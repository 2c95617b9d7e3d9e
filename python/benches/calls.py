"""Microseconds of a call through Python, beside PyTorch: alternating rounds, medians, and their ratio.

    python python/benches/calls.py
    oflaunch --nproc 2 python/benches/calls.py      # global tensors over two ranks, beside PyTorch's DTensor
"""

import os
import statistics
import tempfile
import time

import oflow as flow
import torch

# Short rounds: a round in which other work had the core is far from the median.
ROUNDS, CALLS = 301, 200


def seconds(function):
    """Seconds of one call."""
    start = time.perf_counter()
    for _ in range(CALLS):
        function()
    return (time.perf_counter() - start) / CALLS


def compare(name, mine, theirs):
    """Medians of alternating rounds."""
    seconds(mine), seconds(theirs)
    rounds = [(seconds(mine), seconds(theirs)) for _ in range(ROUNDS)]
    a, b = (statistics.median(column) * 1e6 for column in zip(*rounds))
    if flow.rank() == 0:
        print(f"{name:36} oflow {a:8.2f} us   torch {b:8.2f} us   ratio {a / b:5.2f}", flush=True)


def local():
    x, y = flow.ones(8), flow.ones(8)
    p, q = torch.ones(8), torch.ones(8)
    compare("add of 8 numbers: x + y", lambda: x + y, lambda: p + q)
    compare("add of 8 numbers: add(x, y)", lambda: flow.add(x, y), lambda: torch.add(p, q))
    compare("add of a number: x + 2.0", lambda: x + 2.0, lambda: p + 2.0)
    compare("relu: x.relu()", lambda: x.relu(), lambda: p.relu())
    compare("in place: x.add_(y)", lambda: x.add_(y), lambda: p.add_(q))
    a, b = flow.ones(8, 8), torch.ones(8, 8)
    compare("sum of a dim: a.sum(dim=1)", lambda: a.sum(dim=1), lambda: b.sum(dim=1))
    compare("matmul 8 x 8: a @ a", lambda: a @ a, lambda: b @ b)
    compare("index: a[1:3]", lambda: a[1:3], lambda: b[1:3])
    compare("reshape: a.reshape(64)", lambda: a.reshape(64), lambda: b.reshape(64))
    compare("shape", lambda: a.shape, lambda: b.shape)
    g, t = flow.ones(8, requires_grad=True), torch.ones(8, requires_grad=True)
    compare("recorded add: g + y", lambda: g + y, lambda: t + q)
    compare("item", lambda: flow_one.item(), lambda: torch_one.item())


def of_all_ranks():
    import torch.distributed as dist
    from torch.distributed.tensor import DTensor, Replicate, Shard, init_device_mesh

    if not dist.is_initialized():
        # The ranks of a job have one parent.
        store = dist.FileStore(os.path.join(tempfile.gettempdir(), f"oflow-bench-{os.getppid()}"), flow.world_size())
        dist.init_process_group("gloo", store=store, rank=flow.rank(), world_size=flow.world_size())
    mesh = init_device_mesh("cpu", (flow.world_size(),))
    place = flow.placement.all("cpu")
    for name, sbp, theirs in (("S(0)", flow.sbp.split(0), Shard(0)), ("B", flow.sbp.broadcast, Replicate())):
        x = flow.ones(8, placement=place, sbp=sbp)
        d = DTensor.from_local(torch.ones(8 // flow.world_size() if name != "B" else 8), mesh, [theirs])
        compare(f"global add {name}: x + x", lambda: x + x, lambda: d + d)
        compare(f"global relu {name}: x.relu()", lambda: x.relu(), lambda: d.relu())
    dist.destroy_process_group()


flow_one, torch_one = flow.tensor(1.0), torch.tensor(1.0)

if __name__ == "__main__":
    torch.set_num_threads(1)
    if flow.world_size() == 1:
        local()
    of_all_ranks()
