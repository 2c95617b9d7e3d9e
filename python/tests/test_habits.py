"""Names that programs of PyTorch use beside its functions: modes, limits, devices, writes of whole tensors."""

import os
import subprocess
import sys

import numpy as np
import oflow as flow
import pytest


def test_set_grad_enabled():
    x = flow.ones((2,), requires_grad=True)
    with flow.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    flow.set_grad_enabled(False)
    try:
        assert not flow.is_grad_enabled() and not (x * 2).requires_grad
    finally:
        flow.set_grad_enabled(True)
    assert (x * 2).requires_grad

    @flow.set_grad_enabled(False)
    def twice(x):
        return x * 2

    assert flow.is_grad_enabled() and not twice(x).requires_grad and (x * 2).requires_grad


def test_inference_mode():
    x = flow.ones((2,), requires_grad=True)
    with flow.inference_mode():
        assert not (x * 2).requires_grad
    with flow.inference_mode(False):
        assert (x * 2).requires_grad

    @flow.inference_mode()
    def twice(x):
        return x * 2

    @flow.inference_mode
    def again(x):
        return x * 2

    assert not twice(x).requires_grad and not again(x).requires_grad and flow.is_grad_enabled()


def test_as_tensor():
    x = flow.ones((2,))
    assert flow.as_tensor(x) is x and flow.is_tensor(x) and not flow.is_tensor([1.0])
    assert flow.as_tensor([1, 2], dtype=flow.float64).dtype == flow.float64
    assert flow.as_tensor(np.ones(3, dtype=np.float32)).tolist() == [1.0] * 3


def test_default_dtype():
    assert flow.get_default_dtype() == flow.float32
    flow.set_default_dtype(flow.float32)
    with pytest.raises(NotImplementedError, match="give `dtype=`"):
        flow.set_default_dtype(flow.float64)


@pytest.mark.parametrize("shape, wrap", [((3, 3), False), ((5, 2), False), ((5, 2), True), ((2, 5), False), ((3, 3, 3), False), ((0, 0), False)])
def test_fill_diagonal(shape, wrap):
    x = flow.zeros(shape)
    assert x.fill_diagonal_(2.0, wrap) is x
    want = np.zeros(shape, dtype=np.float32)
    if want.size:
        np.fill_diagonal(want, 2.0, wrap=wrap)
    assert np.array_equal(x.numpy(), want)


def test_random():
    x = flow.empty((1000,), dtype=flow.int64).random_(3, 6)
    assert set(x.tolist()) == {3, 4, 5}
    assert set(flow.empty((100,), dtype=flow.float32).random_(2).tolist()) == {0.0, 1.0}
    assert flow.empty((100,), dtype=flow.int8).random_().max().item() <= 127
    with pytest.raises(TypeError, match="random_"):
        x.random_(1, 2, 3)


def test_distributions():
    flow.manual_seed(3)
    x = flow.empty((20000,), dtype=flow.float64)
    assert abs(x.cauchy_(2.0, 0.5).median().item() - 2.0) < 0.05
    assert abs(x.log_normal_(1.0, 0.5).log().mean().item() - 1.0) < 0.02
    assert abs(x.geometric_(0.25).mean().item() - 4.0) < 0.15 and x.min().item() == 1.0
    for bad in (lambda: x.cauchy_(0.0, 0.0), lambda: x.geometric_(1.0), lambda: x.log_normal_(0.0, -1.0), lambda: x.log_normal_(0.0, 0.0)):
        with pytest.raises(flow.ArgumentError):
            bad()


def test_what_a_tensor_keeps():
    x = flow.ones((2, 3))
    assert x.pin_memory() is x and x.get_device() == -1 and x.is_cpu
    part = x.narrow_copy(1, 0, 2)
    part.fill_(5.0)
    assert x.sum().item() == 6.0
    assert flow.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    with pytest.raises(flow.ShapeError):
        flow.broadcast_shapes((2,), (3,))


def test_index_put_accumulates():
    x = flow.zeros((3, 2))
    where = (flow.tensor([0, 2, 0]),)
    value = flow.ones((3, 2), requires_grad=True)
    y = flow.index_put(x, where, value, True)
    assert y.tolist() == [[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
    y.sum().backward()
    assert value.grad.tolist() == [[1.0, 1.0]] * 3
    assert x.index_put_(where, flow.tensor(1.0), True) is x and x.tolist() == y.tolist()
    x = flow.zeros((2, 2, 2))
    at = (slice(None), flow.tensor([1, 1]))
    assert flow.index_put(x, at, flow.ones((2, 2, 2)), True).tolist() == [[[0.0, 0.0], [2.0, 2.0]]] * 2


def test_gpu():
    assert flow.cuda.is_available() in (True, False)
    assert flow.cuda.device_count() == int(flow.cuda.is_available())
    if not flow.cuda.is_available():
        with pytest.raises(RuntimeError, match="expected a GPU"):
            flow.cuda.current_device()


def test_windows_by_import():
    from oflow.signal.windows import hann

    assert hann(5).tolist() == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])
    with pytest.raises(flow.ArgumentError, match="symmetric"):
        flow.signal.windows.exponential(5, center=1.0)


def test_launch_without_a_program(tmp_path):
    """A Python that has no oflaunch beside it, and none on the path, says so."""
    environment = {**os.environ, "PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    python = tmp_path / "python"
    python.symlink_to(os.path.realpath(sys.executable))
    ended = subprocess.run([python, "-m", "oflow.launch", "--version"], env=environment, capture_output=True, text=True)
    assert ended.returncode == 127 and "expected oflaunch" in ended.stderr


@pytest.mark.parametrize(
    "name, says",
    [
        ("unsqueeze_", "x = x.unsqueeze(dim)"),
        ("t_", "x = x.t()"),
        ("resize_", "`reshape`"),
        ("as_strided", "row-major"),
        ("untyped_storage", "`detach()` shares it"),
        ("to_sparse", "every tensor is dense"),
    ],
)
def test_names_that_tensors_do_not_have_say_what_to_write(name, says):
    x = flow.ones((2, 3))
    with pytest.raises(AttributeError, match="object has no attribute") as raised:
        getattr(x, name)
    assert says in str(raised.value) and name in str(raised.value)
    assert not hasattr(x, name)
    with pytest.raises(AttributeError, match="'nn_' *") as raised:
        flow.nn.Parameter(x).nn_
    assert raised.value.name == "nn_"


@pytest.mark.parametrize("name", ["compile", "distributed", "distributions", "jit", "poisson", "set_num_threads", "sparse_coo_tensor"])
def test_names_that_the_module_does_not_have_say_what_to_write(name):
    with pytest.raises(AttributeError, match=f"module 'oflow' has no attribute '{name}': "):
        getattr(flow, name)
    assert not hasattr(flow, name)


def test_what_hints_name_is_there():
    from oflow import _elsewhere

    for name in _elsewhere.OF_TENSORS:
        assert not hasattr(flow.Tensor, name), name
    for name in _elsewhere.OF_THE_MODULE:
        assert not hasattr(flow, name), name
    import re

    for hint in (*_elsewhere.OF_TENSORS.values(), *_elsewhere.OF_THE_MODULE.values()):
        for called in re.findall(r"`(?:oflow\.)?([a-z_]+)(?:\(.*?\))?`", hint):
            assert called in ("oflaunch",) or any(hasattr(at, called) for at in (flow, flow.Tensor, flow.Graph, flow.GraphPlan)), called


def test_apply_calls_a_function_of_each_element():
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.apply_(lambda v: v * v + 1) is x
    assert x.tolist() == [[2.0, 5.0], [10.0, 17.0]]
    assert flow.tensor([1, 2]).apply_(lambda v: -v).tolist() == [-1, -2]
    assert flow.zeros((0, 2)).apply_(abs).shape == (0, 2)


def test_what_kind_of_tensor_it_is():
    x = flow.ones((2,))
    assert not x.is_sparse and not x.is_quantized and x.to_dense() is x
    assert x.quantize_per_tensor(0.5, 0, "qint8").is_quantized
    assert x.to_dense(flow.float64).dtype == flow.float64
