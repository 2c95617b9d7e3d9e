"""Best time in us of torch's all_reduce over gloo between two processes, for sizes given as bytes:repetitions."""
import sys, time
import torch, torch.distributed as dist

rank, port, sizes = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
for size in sizes.split(","):
    nbytes, n = map(int, size.split(":"))
    x = torch.zeros(nbytes // 4)
    for _ in range(max(1, n // 4)):
        dist.all_reduce(x)
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(n):
            dist.all_reduce(x)
        best = min(best, (time.perf_counter() - start) / n * 1e6)
    if rank == 0:
        print(best, flush=True)
dist.destroy_process_group()
