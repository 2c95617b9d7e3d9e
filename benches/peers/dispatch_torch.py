"""PyTorch's side of `cargo bench --bench dispatch`, which starts it: one thread, CPU.

Reads the name of a row and answers with the median processor time of a call in µs. Rows that begin with "dtensor" are calls on
DTensors over a mesh of one rank."""
import sys, time, torch

torch.set_num_threads(1)
a, b = torch.randn(8, 8), torch.randn(8, 8)
g = torch.randn(8, 8, requires_grad=True)
ROWS = {
    "add": lambda: a + b,
    "matmul": lambda: a @ b,
    "mul_number": lambda: a * 2.0,
    "view": lambda: a.t(),
    "recorded_add": lambda: g + b,
    "relu": lambda: a.relu(),
}


def with_dtensors():
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,))
    x, y = (distribute_tensor(torch.randn(8, 8), mesh, [Shard(0)]) for _ in range(2))
    w = distribute_tensor(torch.randn(8, 8), mesh, [Replicate()])
    ROWS["dtensor_add"] = lambda: x + y
    ROWS["dtensor_matmul"] = lambda: x @ w
    ROWS["dtensor_relu"] = lambda: x.relu()


def median(f, calls=2000, samples=15):
    for _ in range(500):
        f()
    times = []
    for _ in range(samples):
        start = time.thread_time_ns()
        for _ in range(calls):
            f()
        times.append((time.thread_time_ns() - start) / 1e3 / calls)
    return sorted(times)[len(times) // 2]


for line in sys.stdin:
    row = line.strip()
    if row.startswith("dtensor") and row not in ROWS:
        with_dtensors()
    print(median(ROWS[row]), flush=True)
