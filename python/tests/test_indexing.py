"""Indices of Python: every kind of member, alone and combined, in every position and layout, read and written, beside NumPy."""

import numpy as np
import oflow as flow
import pytest
from jobs import run

WORLD = flow.world_size()
A = np.arange(60, dtype=np.float32).reshape(3, 4, 5)

# Members of one dim of any size above 2. What NumPy takes with the same meaning as PyTorch.
ONE_DIM = [
    1, -1, np.int64(2), slice(None), slice(1, None), slice(None, None, 2), slice(2, 0), slice(-2, None), slice(None, None, -1),
    [0, 2], [-1], [], [[0, 1], [2, 0]], range(2), range(2, 0, -1), np.array([1, 0]), np.array([2], dtype=np.int32),
    np.array([], dtype=np.int64), (np.arange(4) % 2).reshape(2, 2),
]  # fmt: skip
MASK_OF_THREE = [True, False, True]
WHOLE = [
    None, ..., True, False, np.bool_(True), MASK_OF_THREE, np.array(MASK_OF_THREE), A > 20, (A > 20).tolist(), (A.sum(-1) > 100),
    ([0, 1], [2, 3]), ([0, 1], slice(None), [2, 3]), (None, [0, 1]), (..., [0, 4]), (MASK_OF_THREE, 0), (MASK_OF_THREE, slice(None), [1]),
    (0, [1, 2]), (np.array([0]), [1, 2], range(2)), (slice(None), np.array([True, False, True, True])), ([[0], [1]], [1, 2]),
    (slice(None), None, [1]), (1, ..., -1), (),
]  # fmt: skip


def layouts():
    """No layout, and those of a mesh of one and of two axes."""
    line = flow.placement.all("cpu")
    yield "local", None
    for sbp in ("B", "S(0)", "S(1)", "S(2)"):
        yield sbp, dict(placement=line, sbp=sbp)
    yield "S(1), B", dict(placement=line.mesh(a=WORLD, b=1), sbp=("S(1)", "B"))


LAYOUTS = dict(layouts())


def made(layout):
    return flow.tensor(A, **(LAYOUTS[layout] or {}))


def indices():
    for member in ONE_DIM:
        yield member
        yield (slice(None), member)
        yield (..., member)
    yield from WHOLE


def for_numpy(index):
    """Ranges are lists; a list alone is no tuple, which NumPy once took it for."""
    def one(member):
        return np.array(member, dtype=None if len(member) else np.int64) if isinstance(member, (list, range)) else member

    return tuple(map(one, index)) if isinstance(index, tuple) else one(index)


def fails(call):
    try:
        return call(), None
    except (flow.Error, TypeError, IndexError, ValueError) as error:
        return None, error


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_index_reads_and_writes_what_numpy_does(layout):
    read = written = 0
    for index in indices():
        want = A[for_numpy(index)]
        x = made(layout)
        got = x[index]
        assert got.shape == want.shape and np.array_equal(np.array(got.tolist()).reshape(want.shape), want), index
        assert got.is_global == x.is_global
        read += 1
        # An array of the indexed shape in the order of its elements: places that are named once get their own.
        values = [7, 2.5, np.float32(3), np.full(want.shape, -1.0), np.full(want.shape, 4, dtype=np.int64).tolist(), np.ones(1)]
        for value in values:
            if isinstance(value, list) and np.array(value).shape != want.shape:
                continue
            x, plain = made(layout), A.copy()
            x[index] = value
            plain[for_numpy(index)] = value
            assert np.array_equal(np.array(x.tolist()), plain), (index, value)
            written += 1
    assert read >= 80 and written >= 400


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_list_of_tensors_is_a_tuple_as_in_pytorch(layout):
    mesh = made(layout).placement if LAYOUTS[layout] else None

    def ids(value):
        t = flow.tensor(value)
        return flow.distribute(t, mesh, ["B"] * len(mesh.shape)) if mesh else t

    i, j = ids([0, 2]), ids([1, 1])
    for index in ([i, j], [i], [slice(1, None), 0], [None, 0], [..., [0, 1]], [i, 1], [ids(0), ids(2)]):
        x = made(layout)
        want = x[tuple(index)].tolist()
        assert x[index].tolist() == want, index
        assert flow.index_put(x, index, 7.0)[tuple(index)].flatten().tolist() == [7.0] * np.size(want), index
        x[index] = 5.0
        assert x[tuple(index)].flatten().tolist() == [5.0] * np.size(want), index


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_does_not_fit_is_an_index_error(layout):
    x = made(layout)
    for index in (3, -4, (0, 4), (0, 0, 0, 0), (slice(None), -5), (None, 3), (..., 5)):
        with pytest.raises(IndexError) as error:
            x[index]
        assert isinstance(error.value, flow.Error) and "test_indexing.py" in str(error.value)
        with pytest.raises(IndexError):
            x[index] = 1.0
        with pytest.raises(IndexError):
            A[index]
    for index in ("x", 1.5, [0.5], {}, object(), (0, "x")):
        with pytest.raises((TypeError, flow.DTypeError)):
            x[index]
    with pytest.raises(flow.ShapeError):
        x[[0, 1]] = np.ones(7)
    with pytest.raises(TypeError):
        x[0] = "x"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_old_protocol_of_sequences_ends(layout):
    """Python iterates over what has only ``__getitem__`` until IndexError."""

    class Rows:
        def __init__(self, x):
            self.x = x

        def __getitem__(self, i):
            return self.x[i]

    x = made(layout)
    assert len(list(Rows(x))) == len(list(x)) == 3
    assert [row.tolist() for row in Rows(x)] == A.tolist() == [row.tolist() for row in x]


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "local"])
def test_gradients_pass_an_index_of_a_list(layout):
    x = made(layout).requires_grad_()
    (x[:, [2, 0, 2]] * 2).sum().backward()
    want = np.zeros_like(A)
    np.add.at(want, (slice(None), [2, 0, 2]), 2.0)
    assert np.array_equal(np.array(x.grad.tolist()), want)


def test_a_local_tensor_is_no_index_of_a_global_one():
    """It may differ between ranks: the program says which it means."""
    x = made("S(0)")
    for call in (lambda: x[flow.tensor([0, 1])], lambda: x.index_put_(flow.tensor([0]), 1.0)):
        with pytest.raises(flow.PlacementError, match="distribute"):
            call()
    assert x[flow.tensor([0, 1], placement=x.placement, sbp="B")].shape == (2, 4, 5)


DIFFERENT = """
import oflow as flow
x = flow.zeros(4, 3, placement=flow.placement.all("cpu"), sbp="S(0)")
x[[0, flow.rank()]] = 1.0  # this line
x.tolist()
"""


@pytest.mark.skipif(WORLD > 1, reason="starts ranks of its own")
def test_lists_that_differ_between_ranks_are_told_under_oflaunch(tmp_path):
    job = run(tmp_path, DIFFERENT, OFLOW_CHECK="1")
    assert job.code != 0 and "distribute" in job.out + job.err and "job.py:4" in job.out + job.err
