"""Names of PyTorch that are not in oflow: an error says what to write in their place."""

KEEPS = "a tensor keeps its shape; write x = x.{}"
ORDER = "memory in an order of the program's choice; tensors are row-major or views by `permute`, `slice`, `expand`"
SPARSE = "every tensor is dense; `index_add` and `embedding_bag` compute with lists of indices"
STORAGE = "memory is not an object of its own; `detach()` shares it, `numpy()` and `oflow.from_numpy` share it with NumPy"

OF_TENSORS = {
    "as_strided": ORDER,
    "as_strided_": ORDER,
    "as_strided_scatter": ORDER,
    "new_empty_strided": ORDER,
    "detach_": "a tensor keeps its place in the graph; write x = x.detach()",
    "resize_": "a tensor keeps its shape; make a new one, or take `reshape`",
    "resize_as_": "a tensor keeps its shape; make a new one, or take `reshape_as`",
    "set_": "a tensor keeps its memory; `copy_` writes values into it",
    "share_memory_": "ranks of `oflaunch` share no tensors; a global tensor is on all of them",
    "squeeze_": KEEPS.format("squeeze(dim)"),
    "storage": STORAGE,
    "swapaxes_": KEEPS.format("swapaxes(a, b)"),
    "swapdims_": KEEPS.format("swapdims(a, b)"),
    "t_": KEEPS.format("t()"),
    "to_sparse": SPARSE,
    "transpose_": KEEPS.format("transpose(a, b)"),
    "unsqueeze_": KEEPS.format("unsqueeze(dim)"),
    "untyped_storage": STORAGE,
}

OF_THE_MODULE = {
    "as_strided": ORDER,
    "backends": "which kernels run is chosen for each call; GPUs and their libraries are looked up when they are used (docs/cuda.md)",
    "binomial": "the sum of `bernoulli` over a dim of n draws from it",
    "compile": "`oflow.graph` captures a step, improves it and runs it again (docs/graph.md)",
    "distributed": "global tensors are sent by their layouts: `to_global` gathers, reduces and scatters; `oflow.rank()` and `oflow.world_size()` are the job's",
    "distributions": "factories draw: `randn`, `rand`, `bernoulli`, `multinomial`; a tensor in place by `normal_`, `uniform_`, `exponential_`, `geometric_`, `log_normal_`",
    "empty_strided": ORDER,
    "jit": "`oflow.graph` captures a step, and `save` keeps it (docs/graph.md)",
    "multiprocessing": "`oflaunch --nproc N` starts the ranks of a job",
    "poisson": "no function here draws from it; NumPy's `random.poisson` and `oflow.from_numpy`",
    "set_default_device": "factories take `device=`, and global ones a placement",
    "set_default_tensor_type": "`set_default_dtype`, and `device=` of factories",
    "set_num_threads": "`oflaunch --threads N`, or the variable OFLOW_THREADS before the start",
    "sparse": SPARSE,
    "sparse_coo_tensor": SPARSE,
    "use_deterministic_algorithms": "results do not depend on the number of threads, and random numbers on seed, call and place alone; there is nothing to turn on",
}


def of_tensor(tensor, name):
    """The error for an attribute that tensors do not have."""
    said = f"'{type(tensor).__module__}.{type(tensor).__name__}' object has no attribute '{name}'"
    hint = OF_TENSORS.get(name)
    raise AttributeError(f"{said}: {hint}" if hint else said, name=name, obj=tensor)
