"""``python -m beside_pytorch.speed [FILTER]``: times calls of oflow beside PyTorch's, on one thread of one process.

Each case is text that both libraries run on the same numbers: forward, and forward with the gradients of all float inputs. Both take
turns; printed are the medians over the turns of the median processor time of a call in µs, and the ratio oflow / PyTorch. Times
include what Python costs on both sides.
"""

import gc
import os
import sys
import time

# One core for both: a library with a pool of threads would get the other one.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["OFLOW_THREADS"] = "1"

import numpy as np
import torch
import torch.nn.functional

import oflow
import oflow.nn.functional

TURNS = 5
SECONDS = 0.1
RANDOM = np.random.default_rng(0)


def normal(*shape, dtype="float32"):
    return RANDOM.standard_normal(shape).astype(dtype)


def uniform(*shape, low=0.0, high=1.0):
    return RANDOM.uniform(low, high, shape).astype("float32")


def whole(high, *shape):
    return RANDOM.integers(0, high, shape)


def numbers(dtype):
    return lambda *shape: normal(*shape).astype(dtype)


def complex_numbers(*shape):
    return (normal(*shape) + 1j * normal(*shape)).astype("complex64")


MILLION = (1024, 1024)
TALL = (4096, 1024)
# Text, inputs by name. Without "= " in front also with gradients.
CASES = [
    *[(f"m.{name}(x)", {"x": normal(*MILLION)}) for name in
      "exp exp2 expm1 sin cos tan sinh cosh tanh atan sigmoid erf erfc sinc abs neg sign square asinh".split()],
    *[(f"m.{name}(x)", {"x": uniform(*MILLION, low=0.01, high=0.99)}) for name in
      "log log2 log10 log1p sqrt rsqrt reciprocal asin acos atanh logit erfinv".split()],
    *[(f"m.{name}(x)", {"x": uniform(*MILLION, low=0.1, high=8.0)}) for name in "lgamma digamma acosh i0".split()],
    *[(f"m.special.{name}(x)", {"x": uniform(*MILLION, low=0.1, high=0.9)}) for name in
      "i0e i1 i1e ndtri log_ndtr ndtr erfcx entr".split()],
    *[(f"= m.special.{name}(x)", {"x": uniform(*MILLION, low=0.1, high=8.0)}) for name in
      "bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai".split()],
    *[(f"= m.{name}(x)", {"x": normal(*MILLION)}) for name in "floor round trunc frac isnan isinf isfinite signbit nan_to_num".split()],
    *[(f"F.{name}(x)", {"x": normal(*MILLION)}) for name in
      "relu relu6 gelu silu mish elu selu celu softplus hardswish hardsigmoid hardtanh leaky_relu logsigmoid softsign tanhshrink".split()],
    ("F.gelu(x, approximate='tanh')", {"x": normal(*MILLION)}),
    ("F.glu(x)", {"x": normal(*MILLION)}),
    ("F.prelu(x, w)", {"x": normal(*MILLION), "w": normal(1024)}),
    ("= m.polygamma(1, x)", {"x": uniform(*MILLION, low=0.1, high=8.0)}),
    ("= m.special.zeta(x, y)", {"x": uniform(256, 1024, low=1.1, high=8.0), "y": uniform(256, 1024, low=0.1, high=8.0)}),
    ("= m.igamma(x, y)", {"x": uniform(256, 1024, low=0.1, high=8.0), "y": uniform(256, 1024, low=0.1, high=8.0)}),
    *[(f"m.{name}(x, y)", {"x": normal(*MILLION), "y": normal(*MILLION)}) for name in
      "add sub mul div maximum fmin atan2 hypot logaddexp".split()],
    *[(f"= m.{name}(x, y)", {"x": normal(*MILLION), "y": normal(*MILLION)}) for name in
      "remainder fmod floor_divide copysign lt eq logical_and nextafter".split()],
    ("m.pow(x, y)", {"x": uniform(*MILLION, low=0.1, high=4.0), "y": normal(*MILLION)}),
    *[(f"m.pow(x, {p})", {"x": uniform(*MILLION, low=0.1, high=4.0)}) for p in (2, 3, 0.5, 2.5, -1)],
    ("m.pow(2.0, x)", {"x": normal(*MILLION)}),
    ("m.xlogy(x, y)", {"x": uniform(*MILLION), "y": uniform(*MILLION, low=0.1)}),
    ("m.lerp(x, y, 0.3)", {"x": normal(*MILLION), "y": normal(*MILLION)}),
    ("m.addcmul(x, y, z)", {"x": normal(*MILLION), "y": normal(*MILLION), "z": normal(*MILLION)}),
    ("m.addcdiv(x, y, z)", {"x": normal(*MILLION), "y": normal(*MILLION), "z": uniform(*MILLION, low=0.5)}),
    ("m.where(x > 0, x, y)", {"x": normal(*MILLION), "y": normal(*MILLION)}),
    ("m.clamp(x, -1, 1)", {"x": normal(*MILLION)}),
    ("x + 1", {"x": normal(*MILLION)}),
    ("x * y", {"x": normal(*MILLION), "y": normal(1024)}),
    ("x + y", {"x": normal(*MILLION), "y": normal(1024, 1)}),
    ("x.masked_fill(y, 0.0)", {"x": normal(*MILLION), "y": normal(*MILLION) > 0}),
    *[(f"= x {op} y", {"x": whole(1000, *MILLION), "y": whole(1000, *MILLION) + 1}) for op in "+ * // % & == <".split()],
    ("= x + y", {"x": whole(100, *MILLION).astype("int32"), "y": whole(100, *MILLION).astype("int32")}),
    ("= x * y", {"x": whole(10, *MILLION).astype("uint8"), "y": whole(10, *MILLION).astype("uint8")}),
    ("= m.gcd(x, y)", {"x": whole(1000, *MILLION), "y": whole(1000, *MILLION) + 1}),
    *[(f"= x.to(m.{to})", {"x": normal(*MILLION).astype(of)}) for of, to in
      [("float32", "float64"), ("float32", "float16"), ("float32", "bfloat16"), ("float32", "int64"), ("int64", "float32"), ("float32", "bool"),
       ("float64", "float32"), ("float16", "float32"), ("int32", "int64"), ("float32", "uint8")]],
    # Reductions and scans.
    *[(f"x.{name}({dim})", {"x": normal(*TALL)}) for name in "sum mean amax var std logsumexp prod norm".split() for dim in
      ("", "dim=0", "dim=1") if not (name == "logsumexp" and not dim) and not (name == "prod") and not (name == "norm" and dim == "dim=0")],
    ("x.prod(dim=1)", {"x": uniform(*TALL, low=0.99, high=1.01)}),
    *[(f"= x.{name}({dim})", {"x": normal(*TALL)}) for name in "argmax argmin count_nonzero aminmax".split() for dim in ("", "dim=0", "dim=1")
      if name != "aminmax" or dim],
    *[(f"= x.{name}({dim})", {"x": normal(*TALL) > 0}) for name in "any all sum".split() for dim in ("", "dim=0", "dim=1")],
    *[(f"= x.{name}({dim})", {"x": whole(100, *TALL)}) for name in "sum amax".split() for dim in ("", "dim=0", "dim=1")],
    ("= x.sum()", {"x": normal(*TALL).astype("float16")}),
    ("= x.sum(dim=1)", {"x": normal(*TALL, dtype="float64")}),
    ("x.max(dim=1)[0]", {"x": normal(*TALL)}),
    ("x.median(dim=1)[0]", {"x": normal(*MILLION)}),
    ("x.kthvalue(10, dim=1)[0]", {"x": normal(*MILLION)}),
    ("x.quantile(0.3, dim=1)", {"x": normal(*MILLION)}),
    ("x.nansum(dim=1)", {"x": normal(*TALL)}),
    *[(f"x.{name}({dim})", {"x": normal(*TALL)}) for name in "cumsum logcumsumexp softmax log_softmax".split() for dim in (0, 1)],
    *[(f"= x.{name}({dim})[0]", {"x": normal(*TALL)}) for name in "cummax cummin".split() for dim in (0, 1)],
    ("x.cumprod(0)", {"x": uniform(*TALL, low=0.99, high=1.01)}),
    ("x.diff(dim=1)", {"x": normal(*TALL)}),
    # Choice and order.
    ("x.sort(dim=0)[0]", {"x": normal(*MILLION)}),
    ("x.sort()[0]", {"x": normal(1000000)}),
    ("= x.sort()[0]", {"x": whole(1 << 40, 1000000)}),
    ("= x.argsort(dim=1)", {"x": normal(*MILLION)}),
    ("= x.unique()", {"x": whole(1000, 1000000)}),
    ("= m.bincount(x)", {"x": whole(1000, 1000000)}),
    ("= m.histc(x, 100)", {"x": normal(1000000)}),
    ("= m.searchsorted(x, y)", {"x": np.sort(normal(10000)), "y": normal(1000000)}),
    ("= m.bucketize(y, x)", {"x": np.sort(normal(100)), "y": normal(1000000)}),
    ("= m.isin(x, y)", {"x": whole(1000, 1000000), "y": whole(1000, 100)}),
    ("= x.nonzero()", {"x": normal(*MILLION) > 0}),
    ("x.masked_select(y)", {"x": normal(*MILLION), "y": normal(*MILLION) > 0}),
    ("x[y]", {"x": normal(*MILLION), "y": normal(*MILLION) > 0}),
    ("x[i]", {"x": normal(*TALL), "i": whole(4096, 4096)}),
    ("x[i, j]", {"x": normal(*TALL), "i": whole(4096, 1000000), "j": whole(1024, 1000000)}),
    ("x.take(i)", {"x": normal(*TALL), "i": whole(1 << 22, 1000000)}),
    ("x.gather(0, i)", {"x": normal(*TALL), "i": whole(4096, *TALL)}),
    ("x.gather(1, i)", {"x": normal(*TALL), "i": whole(1024, *TALL)}),
    ("x.scatter(0, i, y)", {"x": normal(*MILLION), "i": whole(1024, *MILLION), "y": normal(*MILLION)}),
    ("x.scatter_add(0, i, y)", {"x": normal(*MILLION), "i": whole(1024, *MILLION), "y": normal(*MILLION)}),
    ("x.index_add(0, i, y)", {"x": normal(*MILLION), "i": whole(1024, 4096), "y": normal(*TALL)}),
    ("x.index_add(1, i, y)", {"x": normal(*MILLION), "i": whole(1024, 512), "y": normal(1024, 512)}),
    ("x.index_select(1, i)", {"x": normal(*TALL), "i": whole(1024, 1024)}),
    ("x.index_copy(0, i, y)", {"x": normal(*MILLION), "i": RANDOM.permutation(1024), "y": normal(*MILLION)}),
    ("x.index_fill(0, i, 1.0)", {"x": normal(*MILLION), "i": RANDOM.permutation(1024)[:512]}),
    ("x.topk(50, dim=1)[0]", {"x": normal(*MILLION)}),
    ("= m.multinomial(x, 8)", {"x": uniform(1024, 1024)}),
    # Shapes.
    ("m.cat([x, y], 0)", {"x": normal(*MILLION), "y": normal(*MILLION)}),
    ("m.cat([x, y], 1)", {"x": normal(*MILLION), "y": normal(*MILLION)}),
    ("m.stack([x, y], 1)", {"x": normal(*MILLION), "y": normal(*MILLION)}),
    ("m.stack([x, y], -1)", {"x": normal(*MILLION), "y": normal(*MILLION)}),
    ("x.roll(3, 1)", {"x": normal(*MILLION)}),
    ("x.flip(0)", {"x": normal(*MILLION)}),
    ("x.flip(1)", {"x": normal(*MILLION)}),
    ("x.tril()", {"x": normal(*MILLION)}),
    ("x.repeat(2, 2)", {"x": normal(*MILLION)}),
    ("x.repeat_interleave(2, dim=1)", {"x": normal(*MILLION)}),
    ("F.pad(x, (1, 1, 1, 1))", {"x": normal(16, 64, 56, 56)}),
    ("F.pad(x, (1, 1, 1, 1), mode='reflect')", {"x": normal(16, 64, 56, 56)}),
    ("m.diag_embed(x)", {"x": normal(16, 256)}),
    ("m.diagonal(x).clone()", {"x": normal(*MILLION)}),
    ("x.permute(2, 0, 1).contiguous()", {"x": normal(64, 128, 128)}),
    ("x.permute(0, 2, 3, 1).contiguous()", {"x": normal(16, 64, 56, 56)}),
    ("x.unfold(1, 8, 4).contiguous()", {"x": normal(*MILLION)}),
    ("F.unfold(x, 3, padding=1)", {"x": normal(4, 64, 56, 56)}),
    ("F.fold(x, (56, 56), 3, padding=1)", {"x": normal(4, 576, 3136)}),
    ("F.pixel_shuffle(x, 2)", {"x": normal(16, 64, 56, 56)}),
    ("= F.one_hot(i, 1000)", {"i": whole(1000, 4096)}),
    ("m.kron(x, y)", {"x": normal(32, 32), "y": normal(32, 32)}),
    ("m.outer(x, y)", {"x": normal(1024), "y": normal(1024)}),
    ("m.cross(x, y, dim=1)", {"x": normal(100000, 3), "y": normal(100000, 3)}),
    ("m.cdist(x, y)", {"x": normal(512, 64), "y": normal(512, 64)}),
    ("m.trace(x)", {"x": normal(*MILLION)}),
    # Random numbers and creation.
    ("= m.randperm(1000000)", {}),
    ("= m.rand(1024, 1024)", {}),
    ("= m.randn(1024, 1024)", {}),
    ("= m.randint(0, 100, (1024, 1024))", {}),
    ("= m.bernoulli(x)", {"x": uniform(*MILLION)}),
    ("F.dropout(x, 0.1)", {"x": normal(*MILLION)}),
    ("= m.zeros(1024, 1024)", {}),
    ("= m.zeros(8, 8)", {}),
    ("= m.full((1024, 1024), 2.0)", {}),
    ("= m.arange(1000000)", {}),
    ("= m.linspace(0, 1, 1000000)", {}),
    ("= m.eye(1024)", {}),
    ("= m.tril_indices(1024, 1024)", {}),
    # Small calls: what Python and dispatch cost.
    *[(text, {"x": normal(8, 8), "y": normal(8, 8)}) for text in
      ["x + y", "x @ y", "x.sum()", "x[1]", "x[:, 1:3]", "x.t()", "x.reshape(-1)", "x.relu()", "m.cat([x, y])", "x.softmax(-1)", "x * 2.0", "x.view(64)", "x.mean(dim=1)"]],
    *[(f"= {text}", {"x": normal(8, 8), "y": normal(8, 8)}) for text in
      ["x.add_(y)", "x.mul_(0.5)", "x.zero_()", "x.copy_(y)", "x.clone()", "x.item() if x.numel() == 1 else x.numel()", "x.shape[0]", "x[0, 0].item()",
       "x.tolist()", "x.detach()", "x.sum().item()"]],
    # Products.
    ("x @ y", {"x": normal(512, 512), "y": normal(512, 512)}),
    ("x @ y", {"x": normal(64, 64, 64), "y": normal(64, 64, 64)}),
    ("x @ y", {"x": normal(1024, 1024), "y": normal(1024)}),
    ("x @ y", {"x": complex_numbers(256, 256), "y": complex_numbers(256, 256)}),
    ("= x @ y", {"x": whole(10, 256, 256), "y": whole(10, 256, 256)}),
    ("= x @ y", {"x": normal(256, 256).astype("float16"), "y": normal(256, 256).astype("float16")}),
    ("F.linear(x, w, b)", {"x": normal(1024, 512), "w": normal(512, 512), "b": normal(512)}),
    ("F.bilinear(x, y, w)", {"x": normal(128, 64), "y": normal(128, 64), "w": normal(64, 64, 64)}),
    ("m.einsum('bhid,bhjd->bhij', x, y)", {"x": normal(8, 8, 128, 64), "y": normal(8, 8, 128, 64)}),
    ("m.addmm(b, x, y)", {"b": normal(512), "x": normal(512, 512), "y": normal(512, 512)}),
    # Complex numbers.
    *[(f"{text}", {"x": complex_numbers(*MILLION), "y": complex_numbers(*MILLION)}) for text in
      ["m.view_as_real(x * y)", "m.view_as_real(x / y)", "x.abs()", "x.angle()", "m.view_as_real(x.conj() + y)", "m.view_as_real(m.exp(x))"]],
    *[(f"= {text}", {"x": complex_numbers(*MILLION)}) for text in ["m.log(x)", "m.sqrt(x)", "x.sum()", "m.sin(x)", "m.tanh(x)", "x.real.clone()"]],
    # Fourier transforms.
    *[(f"m.view_as_real(m.fft.{name}(x))", {"x": complex_numbers(*shape)}) for name, shape in
      [("fft", MILLION), ("fft", (1024, 1000)), ("fft", (1024, 1009)), ("fft", (1 << 20,)), ("fft2", (8, 256, 256)), ("fftn", (64, 64, 64)), ("ifft", (4096, 64))]],
    ("m.view_as_real(m.fft.fft(x, dim=0))", {"x": complex_numbers(*MILLION)}),
    ("m.view_as_real(m.fft.rfft(x))", {"x": normal(*MILLION)}),
    ("m.view_as_real(m.fft.rfft2(x))", {"x": normal(8, 256, 256)}),
    ("m.fft.irfft(x)", {"x": complex_numbers(1024, 513)}),
    ("m.view_as_real(m.stft(x, 400, 160, window=w, return_complex=True))", {"x": normal(4, 48000), "w": np.hanning(400).astype("float32")}),
    ("= m.fft.fftshift(x)", {"x": normal(*MILLION)}),
    # Networks and losses.
    ("F.cross_entropy(x, i)", {"x": normal(*TALL), "i": whole(1024, 4096)}),
    ("F.nll_loss(x, i)", {"x": normal(*TALL), "i": whole(1024, 4096)}),
    ("F.binary_cross_entropy_with_logits(x, y)", {"x": normal(*MILLION), "y": uniform(*MILLION)}),
    ("F.mse_loss(x, y)", {"x": normal(*MILLION), "y": normal(*MILLION)}),
    ("F.smooth_l1_loss(x, y)", {"x": normal(*MILLION), "y": normal(*MILLION)}),
    ("F.kl_div(x, y, reduction='batchmean')", {"x": normal(*MILLION), "y": uniform(*MILLION, low=0.1)}),
    ("F.cosine_similarity(x, y)", {"x": normal(*MILLION), "y": normal(*MILLION)}),
    ("F.normalize(x)", {"x": normal(*MILLION)}),
    ("F.ctc_loss(x.log_softmax(2), t, a, b)", {"x": normal(100, 16, 30), "t": whole(29, 16, 20) + 1, "a": np.full(16, 100), "b": np.full(16, 20)}),
    ("F.embedding_bag(i, w)", {"i": whole(10000, 1024, 32), "w": normal(10000, 64)}),
    ("F.rms_norm(x, (1024,), w)", {"x": normal(*TALL), "w": normal(1024)}),
    ("F.instance_norm(x)", {"x": normal(16, 64, 56, 56)}),
    ("F.batch_norm(x, a, b)", {"x": normal(16, 64, 56, 56), "a": normal(64), "b": uniform(64, low=0.5)}),
    ("F.local_response_norm(x, 5)", {"x": normal(4, 64, 56, 56)}),
    ("F.adaptive_avg_pool2d(x, 7)", {"x": normal(16, 64, 56, 56)}),
    ("F.adaptive_max_pool2d(x, 7)", {"x": normal(16, 64, 56, 56)}),
    ("F.avg_pool2d(x, 3, 2, 1)", {"x": normal(16, 64, 56, 56)}),
    ("F.lp_pool2d(x, 2, 2)", {"x": normal(4, 64, 56, 56)}),
    ("F.max_pool1d(x, 2)", {"x": normal(16, 64, 4096)}),
    ("F.grid_sample(x, g, align_corners=False)", {"x": normal(4, 16, 64, 64), "g": uniform(4, 64, 64, 2, low=-1)}),
    *[(f"F.interpolate(x, scale_factor=2, mode='{mode}')", {"x": normal(4, 64, 28, 28)}) for mode in ("nearest", "bicubic")],
    ("F.conv3d(x, w, padding=1)", {"x": normal(2, 16, 16, 28, 28), "w": normal(16, 16, 3, 3, 3)}),
    ("F.conv2d(x, w, padding=2, dilation=2)", {"x": normal(4, 64, 56, 56), "w": normal(64, 64, 3, 3)}),
    ("F.conv2d(x, w)", {"x": normal(1, 3, 32, 32), "w": normal(16, 3, 5, 5)}),
    ("F.scaled_dot_product_attention(x, y, z)", {n: normal(4, 8, 256, 64) for n in "xyz"}),
    ("F.scaled_dot_product_attention(x, y, z, attn_mask=k)", {**{n: normal(4, 8, 256, 64) for n in "xyz"}, "k": normal(256, 256)}),
    *[(f"{kind}(x)[0]", {"x": normal(64, 32, 128)}) for kind in ("lstm", "gru", "rnn")],
]

MODULES = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN"}


def named(text, inputs):
    sizes = ", ".join(f"{name} {'' if a.dtype == np.float32 else str(a.dtype) + ' '}{list(a.shape)}" for name, a in inputs.items())
    return f"{text.removeprefix('= ')}; {sizes}" if sizes else text.removeprefix("= ")


class Side:
    def __init__(self, m, text, inputs):
        self.m, self.text = m, text.removeprefix("= ")
        make = torch.from_numpy if m is torch else oflow.tensor
        self.names = {"m": m, "F": m.nn.functional}
        for kind, module in MODULES.items():
            if self.text.startswith(kind + "("):
                self.names[kind] = getattr(m.nn, module)(inputs["x"].shape[-1], 256)
        self.inputs = {name: make(a.copy()) for name, a in inputs.items()}
        self.code = compile(self.text, "case", "eval")

    def forward(self):
        return eval(self.code, self.names, self.inputs)

    def both(self):
        for leaf in self.leaves:
            leaf.grad = None
        eval(self.code, self.names, self.leaf_inputs).sum().backward()

    def start(self, way):
        if way == "both":
            # The window of stft and the like are constants in programs too.
            self.leaf_inputs = {n: x.clone().requires_grad_(True) if x.is_floating_point() or x.is_complex() else x for n, x in self.inputs.items()}
            self.leaves = [x for x in self.leaf_inputs.values() if x.requires_grad]
        self.way = getattr(self, way)
        self.way()

    def time(self):
        self.way()
        times, end = [], time.perf_counter() + SECONDS
        while time.perf_counter() < end or len(times) < 5:
            start = time.thread_time_ns()
            self.way()
            times.append(time.thread_time_ns() - start)
        return median(times) / 1e3


def median(times):
    return sorted(times)[len(times) // 2]


def main():
    torch.set_num_threads(1)
    torch.autograd.set_multithreading_enabled(False)
    wanted, ratios = " ".join(sys.argv[1:]), []
    for text, inputs in CASES:
        name = named(text, inputs)
        if wanted not in name:
            continue
        for way in ["forward"] if text.startswith("= ") else ["forward", "both"]:
            gc.collect()
            try:
                sides = [Side(m, text, inputs) for m in (oflow, torch)]
                for side in sides:
                    side.start(way)
                turns = [[side.time() for side in sides] for _ in range(TURNS)]
            except Exception as error:
                print(f"{name} | {way} | not measured: {type(error).__name__}: {str(error)[:200]}", flush=True)
                continue
            ours, theirs = (median(side) for side in zip(*turns))
            ratios.append(ours / theirs)
            print(f"{name} | {way} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f}", flush=True)
    if ratios:
        print(f"{len(ratios)} cases, median {median(ratios):.2f}, {sum(r > 1 for r in ratios)} above 1.0")


if __name__ == "__main__":
    main()
