"""PyTorch's side of `cargo bench --bench ops`, which starts it: CPU, one thread in processor time, or
as many as the variable BENCH_THREADS says in elapsed time.

Reads lines "case<TAB>forward" or "case<TAB>both" and answers each with the median processor time of a call in µs."""
import os, sys, time, torch, torch.nn.functional as F

THREADS = int(os.environ.get("BENCH_THREADS", "1"))
torch.set_num_threads(THREADS)
clock = time.thread_time_ns if THREADS == 1 else time.perf_counter_ns
torch.manual_seed(0)


def r(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype)


ids, back = torch.randint(0, 50000, (64, 512)), torch.arange(4095, -1, -1)
reversed_, spread = torch.arange(1023, -1, -1).expand(4096, 1024), torch.randint(0, 64, (4096, 1024))
turns = torch.arange(4096) % 64
images = [16, 64, 56, 56]
square, tall, heads = [1024, 1024], [4096, 1024], [8, 8, 512, 64]
# name: (function, shapes of the inputs, dtype)
CASES = {
    "svd [256,256]": (lambda x: torch.linalg.svd(x, full_matrices=False)[1], [[256, 256]], torch.float32),
    "solve [512,512] [512,8]": (torch.linalg.solve, [[512, 512], [512, 8]], torch.float32),
    "inv [256,256]": (torch.linalg.inv, [[256, 256]], torch.float32),
    "det [64,32,32]": (torch.linalg.det, [[64, 32, 32]], torch.float32),
    "qr [256,256]": (lambda x: torch.linalg.qr(x)[0], [[256, 256]], torch.float32),
    "cholesky of x xT + 256 [256,256]": (
        lambda x: torch.linalg.cholesky(x @ x.mT + 256 * torch.eye(256)), [[256, 256]], torch.float32),
    "eigh of x + xT [256,256]": (lambda x: torch.linalg.eigh(x + x.mT)[0], [[256, 256]], torch.float32),
    "pinv [256,128]": (torch.linalg.pinv, [[256, 128]], torch.float32),
    "fft [1024,1024]": (torch.fft.fft, [[1024, 1024]], torch.complex64),
    "fft dim 0 [1024,1024]": (lambda x: torch.fft.fft(x, dim=0), [[1024, 1024]], torch.complex64),
    "fft [1024,1000]": (torch.fft.fft, [[1024, 1000]], torch.complex64),
    "fft [1024,1009]": (torch.fft.fft, [[1024, 1009]], torch.complex64),
    "fft [1048576]": (torch.fft.fft, [[1 << 20]], torch.complex64),
    "ifft [4096,64]": (torch.fft.ifft, [[4096, 64]], torch.complex64),
    "fft2 [8,256,256]": (torch.fft.fft2, [[8, 256, 256]], torch.complex64),
    "fftn [64,64,64]": (torch.fft.fftn, [[64, 64, 64]], torch.complex64),
    "irfft [1024,513]": (torch.fft.irfft, [[1024, 513]], torch.complex64),
    "rfft [1024,1024]": (torch.fft.rfft, [square], torch.float32),
    "rfft2 [8,256,256]": (torch.fft.rfft2, [[8, 256, 256]], torch.float32),
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
    "amax dim 1 [4096,1024]": (lambda x: x.amax(1), [tall], torch.float32),
    "gather dim 1 [4096,1024]": (lambda x: x.gather(1, reversed_), [tall], torch.float32),
    "scatter_add dim 1 [4096,1024]": (lambda x: torch.zeros(4096, 64).scatter_add(1, spread, x), [tall], torch.float32),
    "scatter dim 1 [4096,1024]": (lambda x: torch.zeros(4096, 64).scatter(1, spread, x), [tall], torch.float32),
    "index_add dim 0 [4096,1024]": (lambda x: torch.zeros(64, 1024).index_add(0, turns, x), [tall], torch.float32),
    "topk 8 of 1024 [4096,1024]": (lambda x: x.topk(8)[0], [tall], torch.float32),
    "sort [1024,1024]": (lambda x: x.sort()[0], [square], torch.float32),
    "cumprod dim 1 [4096,1024]": (lambda x: x.cumprod(1), [tall], torch.float32),
    "cummax dim 1 [4096,1024]": (lambda x: x.cummax(1)[0], [tall], torch.float32),
    "conv2d 3x3 64->64 [16,64,56,56]": (lambda x, w: F.conv2d(x, w, padding=1), [images, [64, 64, 3, 3]], torch.float32),
    "conv2d 1x1 64->256 [16,64,56,56]": (F.conv2d, [images, [256, 64, 1, 1]], torch.float32),
    "conv2d 7x7 stride 2 3->64 [16,3,224,224]": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=3), [[16, 3, 224, 224], [64, 3, 7, 7]], torch.float32),
    "conv2d 3x3 512->512 [16,512,7,7]": (
        lambda x, w: F.conv2d(x, w, padding=1), [[16, 512, 7, 7], [512, 512, 3, 3]], torch.float32),
    "conv2d depthwise 3x3 [16,64,56,56]": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=64), [images, [64, 1, 3, 3]], torch.float32),
    "conv1d 3 128->128 [16,128,512]": (
        lambda x, w: F.conv1d(x, w, padding=1), [[16, 128, 512], [128, 128, 3]], torch.float32),
    "conv_transpose2d 4x4 stride 2 64->32 [16,64,28,28]": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), [[16, 64, 28, 28], [64, 32, 4, 4]], torch.float32),
    "max_pool2d 2 [16,64,56,56]": (lambda x: F.max_pool2d(x, 2), [images], torch.float32),
    "max_pool2d 3 stride 2 [16,64,56,56]": (lambda x: F.max_pool2d(x, 3, 2, 1), [images], torch.float32),
    "avg_pool2d 2 [16,64,56,56]": (lambda x: F.avg_pool2d(x, 2), [images], torch.float32),
    "batch_norm train [16,64,56,56]": (
        lambda x, g, b: F.batch_norm(x, None, None, g, b, True), [images, [64], [64]], torch.float32),
    "group_norm 8 [16,64,56,56]": (lambda x, g, b: F.group_norm(x, 8, g, b), [images, [64], [64]], torch.float32),
    "layer_norm [4096,1024]": (lambda x, g, b: F.layer_norm(x, [1024], g, b), [tall, [1024], [1024]], torch.float32),
    "interpolate bilinear x2 [16,64,28,28]": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [[16, 64, 28, 28]], torch.float32),
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
        start = clock()
        f()
        times.append((clock() - start) / 1e3)
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
        y = f(*leaves)
        (y.real if y.is_complex() else y).sum().backward()

    if way == "forward":
        result = median(lambda: f(*inputs))
    else:
        leaves = [x.clone().requires_grad_(True) for x in inputs]
        # The gradients are made on PyTorch's own thread for them, unless there is none.
        with torch.autograd.set_multithreading_enabled(False):
            result = median(both)
    print(result, flush=True)
