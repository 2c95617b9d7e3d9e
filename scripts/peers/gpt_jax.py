"""Training steps of the byte-level GPT of examples/gpt.rs with JAX: forward, backward and AdamW in one jit, the same model, text
and schedule. Prints one line of JSON: milliseconds and losses of the counted steps, peak memory, cores used. `--parallel dp`
splits the batch over two CPU devices of one process. Run by launcher/benches/gpt.rs.

python gpt_jax.py --parallel single|dp [--dim 256 --layers 4 --heads 4 --seq 128 --batch 16 --steps 15 --warmup 3]

One thread a device computes: NPROC is the size of XLA's thread pools, and XLA's own switch for threads inside of an op is off.
What cannot be limited: the threads of the Python client, of the compiler (before the counted steps) and of the collectives
between devices. Therefore "cores" is the processor time of the counted steps divided by their wall time: threads beyond one a device show there.
"""

import json
import os
import time

from gpt_common import CLASSES, Batches, options, peak_mib, rate

o = options()
devices = {"single": 1, "dp": 2}[o.parallel]
# All of it is read when JAX is loaded or makes its client.
os.environ["NPROC"] = str(devices)
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=false --xla_force_host_platform_device_count={devices}"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

BETA1, BETA2, EPSILON, DECAY = 0.9, 0.999, 1e-8, 0.01
rng = np.random.default_rng(0)


def normal(rows, columns):
    return rng.normal(0, 0.02, (rows, columns)).astype(np.float32)


def linear(inputs, outputs):
    bound = inputs**-0.5
    draw = lambda *shape: rng.uniform(-bound, bound, shape).astype(np.float32)
    return {"w": draw(inputs, outputs), "b": draw(outputs)}


def norm():
    return {"w": np.ones(o.dim, np.float32), "b": np.zeros(o.dim, np.float32)}


def block():
    square = {name: linear(o.dim, o.dim) for name in "qkvo"}
    return square | {"ln1": norm(), "ln2": norm(), "fc": linear(o.dim, 4 * o.dim), "pr": linear(4 * o.dim, o.dim)}


def layer_norm(p, x):
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p["w"] + p["b"]


def affine(p, x):
    return x @ p["w"] + p["b"]


def loss_of(p, seen, following):
    x = p["wte"][seen] + p["wpe"]
    for h in p["h"]:
        y = layer_norm(h["ln1"], x)
        q, k, v = (affine(h[name], y).reshape(*y.shape[:2], o.heads, -1) for name in "qkv")
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + affine(h["o"], y.reshape(x.shape))
        x = x + affine(h["pr"], jax.nn.gelu(affine(h["fc"], layer_norm(h["ln2"], x)), approximate=True))
    logits = layer_norm(p["lnf"], x) @ p["head"]
    right = jnp.take_along_axis(logits, following[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - right).mean()


def adamw(p, grad, mean, square, lr, t):
    mean = BETA1 * mean + (1 - BETA1) * grad
    square = BETA2 * square + (1 - BETA2) * jnp.square(grad)
    root = jnp.sqrt(square / (1 - BETA2**t)) + EPSILON
    return p * (1 - lr * DECAY) - lr * (mean / (1 - BETA1**t)) / root, mean, square


def train(state, seen, following, lr, t):
    p, means, squares = state
    loss, grads = jax.value_and_grad(loss_of)(p, seen, following)
    new = jax.tree.map(lambda *leaves: adamw(*leaves, lr, t), p, grads, means, squares)
    # A tree of triples to a triple of trees.
    return jax.tree.transpose(jax.tree.structure(p), jax.tree.structure((0, 0, 0)), new), loss


mesh = Mesh(np.array(jax.devices()[:devices]), ("dp",))
whole, rows = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in [(), ("dp",)])
weights = {
    "wte": normal(CLASSES, o.dim),
    "wpe": normal(o.seq, o.dim),
    "h": [block() for _ in range(o.layers)],
    "lnf": norm(),
    "head": normal(o.dim, CLASSES),
}
zeros = jax.tree.map(np.zeros_like, weights)
state = jax.device_put((weights, zeros, zeros), whole)
del weights, zeros
step_of = jax.jit(train, donate_argnums=0, out_shardings=(whole, whole))

batches, ms, losses = Batches(o), [], []
for step in range(o.steps):
    if step == o.warmup:
        cpu, wall = time.process_time(), time.perf_counter()
    began = time.perf_counter()
    seen, following = (jax.device_put(ids.astype(np.int32), rows) for ids in batches.next())
    state, loss = step_of(state, seen, following, np.float32(rate(o, step)), np.float32(step + 1))
    losses.append(float(loss))
    jax.block_until_ready(state)
    ms.append((time.perf_counter() - began) * 1e3)
cores = (time.process_time() - cpu) / (time.perf_counter() - wall)
print(json.dumps({"ms": ms[o.warmup :], "losses": losses, "peak_mib": peak_mib(), "cores": cores}), flush=True)
