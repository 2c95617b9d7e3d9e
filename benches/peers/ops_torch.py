"""PyTorch's side of `cargo bench --bench ops`, which starts it: one thread, CPU.

Reads lines "case<TAB>forward" or "case<TAB>both" and answers each with the median processor time of a call in µs."""
import sys, time, torch, torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


def r(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype)


ids, back = torch.randint(0, 50000, (64, 512)), torch.arange(4095, -1, -1)
square, tall, heads = [1024, 1024], [4096, 1024], [8, 8, 512, 64]
# name: (function, shapes of the inputs, dtype)
CASES = {
    "gelu exact [1024,1024]": (F.gelu, [square], torch.float32),
    "exp of a transposed [1024,1024]": (lambda x: x.t().exp(), [square], torch.float32),
    "add of a transposed [1024,1024]": (lambda x, y: x + y.t(), [square, square], torch.float32),
    "copy [16,128,4,64] as [16,4,128,64]": (lambda x: x.transpose(1, 2).contiguous(), [[16, 128, 4, 64]], torch.float32),
    "copy of a transposed [1024,1024]": (lambda x: x.t().contiguous(), [square], torch.float32),
    "amax dim 0 [4096,1024]": (lambda x: x.amax(0), [tall], torch.float32),
    "amax dim 0 [1024,1024]": (lambda x: x.amax(0), [square], torch.float32),
    "sum dim 0 [4096,1024]": (lambda x: x.sum(0), [tall], torch.float32),
    "sum dim 0 [1024,1024]": (lambda x: x.sum(0), [square], torch.float32),
    "sum dim 1 [1024,1024]": (lambda x: x.sum(1), [square], torch.float32),
    "var dim 1 [4096,1024]": (lambda x: x.var(1), [tall], torch.float32),
    "softmax [4096,1024]": (lambda x: x.softmax(-1), [tall], torch.float32),
    "cumsum dim 1 [4096,1024]": (lambda x: x.cumsum(1), [tall], torch.float32),
    "index_select rows [4096,1024]": (lambda x: x.index_select(0, back), [tall], torch.float32),
    "embedding 50k x 128, 32k ids": (lambda w: F.embedding(ids, w), [[50000, 128]], torch.float32),
    "bij,bjk,bkl [32,64,64]": (lambda a, b, c: torch.einsum("bij,bjk,bkl->bil", a, b, c), [[32, 64, 64]] * 3, torch.float32),
    "matmul [1024,1024]x[1024,1024]": (torch.matmul, [square, square], torch.float32),
    "matmul skinny [1024,1024]x[1024,8]": (torch.matmul, [square, [1024, 8]], torch.float32),
    "matmul skinny [8,1024]x[1024,1024]": (torch.matmul, [[8, 1024], square], torch.float32),
    "matmul bf16 [1024,1024]x[1024,1024]": (torch.matmul, [square, square], torch.bfloat16),
    "matmul bf16 [256,256]x[256,256]": (torch.matmul, [[256, 256]] * 2, torch.bfloat16),
    "matmul f64 [512,512]x[512,512]": (torch.matmul, [[512, 512]] * 2, torch.float64),
    "attention causal [8,8,512,64]": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [heads] * 3, torch.float32),
    "attention causal [16,4,128,64]": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [[16, 4, 128, 64]] * 3, torch.float32),
}


def median(f, seconds=0.3):
    f(), f()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.thread_time_ns()
        f()
        times.append((time.thread_time_ns() - start) / 1e3)
    return sorted(times)[len(times) // 2]


made = {}
for line in sys.stdin:
    name, way = line.rstrip("\n").split("\t")
    f, shapes, dtype = CASES[name]
    if name not in made:
        made = {name: [r(*s, dtype=dtype) for s in shapes]}
    inputs = made[name]

    def both():
        for x in leaves:
            x.grad = None
        f(*leaves).sum().backward()

    if way == "forward":
        result = median(lambda: f(*inputs))
    else:
        leaves = [x.clone().requires_grad_(True) for x in inputs]
        # The gradients are made on PyTorch's own thread for them, unless there is none.
        with torch.autograd.set_multithreading_enabled(False):
            result = median(both)
    print(result, flush=True)
