"""The state of the random numbers of a rank: the same programs in PyTorch and here."""

from importlib import import_module
from importlib.util import find_spec

import oflow as flow
import pytest

MESH = flow.placement.all("cpu")


LIBRARIES = [import_module(m) for m in ("oflow", "torch") if find_spec(m)]


def draws(m):
    """Draws of every kind, as lists."""
    yield m.rand(3).tolist()
    yield m.nn.functional.dropout(m.ones(8), 0.5).tolist()
    yield m.randperm(6).tolist()
    yield m.nn.Linear(2, 2).weight.tolist()
    if m is flow:
        yield flow.randn((4,), placement=MESH, sbp="S(0)").tolist()
        sampler = flow.utils.data.RandomSampler(range(8))
        yield list(sampler)


@pytest.mark.parametrize("m", LIBRARIES, ids=lambda m: m.__name__)
def test_a_state_goes_on_from_where_it_was_taken(m):
    m.manual_seed(5)
    assert m.initial_seed() == 5 == m.random.initial_seed()
    m.rand(2)
    state = m.get_rng_state()
    assert state.dtype == m.uint8 and state.ndim == 1
    first, second = list(draws(m)), list(draws(m))
    m.set_rng_state(state)
    assert list(draws(m)) == first and list(draws(m)) == second and first != second
    m.random.set_rng_state(state.clone())
    assert list(draws(m)) == first and not m.equal(m.random.get_rng_state(), state)


@pytest.mark.parametrize("m", LIBRARIES, ids=lambda m: m.__name__)
def test_a_fork_leaves_no_draws_behind(m):
    m.manual_seed(7)
    want = list(draws(m))
    m.manual_seed(7)
    with m.random.fork_rng():
        inside = list(draws(m))
    assert inside == want == list(draws(m))
    m.manual_seed(7)
    with pytest.raises(KeyError), m.random.fork_rng(devices=[], enabled=True):
        m.manual_seed(8)
        m.rand(1)
        raise KeyError
    assert list(draws(m)) == want
    m.manual_seed(7)
    with m.random.fork_rng(enabled=False):
        m.rand(1)
    assert list(draws(m)) != want

    @m.random.fork_rng()
    def noise():
        return m.rand(2).tolist()

    m.manual_seed(7)
    assert noise() == noise() and list(draws(m)) == want


def test_a_state_is_kept_in_a_file(tmp_path):
    flow.manual_seed(3)
    flow.save({"rng": flow.get_rng_state()}, tmp_path / "state.safetensors")
    want = list(draws(flow))
    flow.set_rng_state(flow.load(tmp_path / "state.safetensors")["rng"])
    assert list(draws(flow)) == want


@pytest.mark.parametrize("no", [7, flow.zeros(48), flow.zeros(47, dtype=flow.uint8)], ids=["number", "floats", "short"])
def test_other_states_are_refused(no):
    with pytest.raises(TypeError, match="a uint8 tensor of 48 bytes"):
        flow.set_rng_state(no)


def test_a_state_that_no_draws_lead_to_is_refused():
    state = flow.get_rng_state()
    with pytest.raises(flow.ArgumentError, match="is not an ordinal"):
        flow.set_rng_state(flow.full((48,), 255, dtype=flow.uint8))
    assert flow.equal(flow.get_rng_state(), state)


def test_a_graph_sets_no_state():
    @flow.graph
    def step(x):
        return flow.vmap(lambda x: x + flow.rand(2), randomness="same")(x)

    with pytest.raises(flow.UnsupportedError, match="set the state of a generator"):
        step(flow.ones(2, 2))


@pytest.mark.parametrize("m", LIBRARIES, ids=lambda m: m.__name__)
def test_random_numbers_of_vmap(m):
    def noisy(x):
        return x + m.rand(3)

    x = m.zeros(4, 3)
    m.manual_seed(1)
    same = m.vmap(noisy, randomness="same")(x)
    behind = m.rand(3)
    assert m.equal(same, same[0].expand(4, 3))
    m.manual_seed(1)
    assert m.equal(m.rand(3), same[0])
    assert m.equal(m.rand(3), behind), "one call's draws are left behind"
    rows = m.vmap(noisy, randomness="different")(x).tolist()
    assert len({tuple(row) for row in rows}) == 4
    with pytest.raises(RuntimeError, match="random"):
        m.vmap(noisy)(x)
    with pytest.raises((RuntimeError, ValueError), match="random"):
        m.vmap(noisy, randomness="no")(x)
    assert m.equal(m.vmap(lambda x: x * 2)(x + 1), x + 2)
