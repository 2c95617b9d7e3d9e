"""Data sets, samplers, batches and loaders, beside PyTorch's where there is no chance in them."""

import collections
import random
import threading
import time
import traceback

import numpy as np
import oflow as flow
import pytest
from data_sets import Count, Squares

data = flow.data
torch = pytest.importorskip("torch")
theirs = torch.utils.data
Pair = collections.namedtuple("Pair", "a b")


def plain(value):
    if isinstance(value, (flow.Tensor, torch.Tensor)):
        return [str(value.dtype).rpartition(".")[2], tuple(value.shape), value.tolist()]
    if isinstance(value, dict):
        return type(value).__name__, {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v) for v in value]
    return value


SAMPLES = [
    lambda m, i: m.full((2,), float(i)),
    lambda m, i: np.full((2, 1), i, np.float32),
    lambda m, i: np.float64(i),
    lambda m, i: i,
    lambda m, i: float(i),
    lambda m, i: i % 2 == 0,
    lambda m, i: str(i),
    lambda m, i: b"x",
    lambda m, i: (i, float(i), "a"),
    lambda m, i: [i, m.ones(1)],
    lambda m, i: {"a": i, "b": {"c": float(i)}},
    lambda m, i: Pair(i, m.ones(2)),
    lambda m, i: collections.OrderedDict(z=i, a=[i]),
]


@pytest.mark.parametrize("case", range(len(SAMPLES)))
def test_batches(case):
    sample = SAMPLES[case]
    assert plain(data.default_collate([sample(flow, i) for i in range(3)])) == plain(theirs.default_collate([sample(torch, i) for i in range(3)]))
    assert plain(data.default_convert(sample(flow, 1))) == plain(theirs.default_convert(sample(torch, 1)))


@pytest.mark.parametrize("batch, kind, text", [
    ([flow.ones(2), flow.ones(3)], RuntimeError, r"one shape, not \(2,\), \(3,\)"),
    ([[1], [1, 2]], RuntimeError, "one length"),
    ([object()], TypeError, "found object"),
    ([np.array(["a"])], TypeError, "an array of <U1"),
])  # fmt: skip
def test_what_is_no_batch(batch, kind, text):
    with pytest.raises(kind, match=text):
        data.default_collate(batch)


def sets(of):
    m = flow if of is data else torch
    rows = m.arange(10)
    one = of.TensorDataset(rows, rows * 2)
    return {
        "tensors": one,
        "subset": of.Subset(one, [3, 1, 7]),
        "concat": one + of.TensorDataset(rows[:3], rows[:3]),
        "stack": of.StackDataset(one, one),
        "named": of.StackDataset(a=one, b=one),
    }


@pytest.mark.parametrize("name", sets(data))
def test_data_sets(name):
    a, b = sets(data)[name], sets(theirs)[name]
    assert len(a) == len(b) and [plain(a[i]) for i in range(len(a))] == [plain(b[i]) for i in range(len(b))]
    assert plain(a[-1]) == plain(b[-1])
    for batch_size, drop_last in ((3, False), (4, True), (None, False)):
        mine, its = (of.DataLoader(d, batch_size, drop_last=drop_last) for of, d in ((data, a), (theirs, b)))
        assert len(mine) == len(its) and [plain(x) for x in mine] == [plain(x) for x in its]


def test_chains_and_splits():
    chain = Count(3) + Count(2)
    assert list(chain) == [0, 1, 2, 0, 1]
    for lengths, want in (([7, 3], [7, 3]), ([0.5, 0.25, 0.25], [4, 3, 3]), ([0.9, 0.1], [9, 1])):
        parts = data.random_split(range(10), lengths, generator=flow.Generator(1))
        again = data.random_split(range(10), lengths, generator=flow.Generator(1))
        assert sorted(i for p in parts for i in p) == list(range(10)) and [p.indices for p in parts] == [p.indices for p in again]
        assert [len(p) for p in parts] == [len(p) for p in theirs.random_split(range(10), lengths)]
        assert len(lengths) == 3 or [len(p) for p in parts] == want


@pytest.mark.parametrize("count", [0, 1, 10, 11])
@pytest.mark.parametrize("drop_last", [False, True])
def test_samplers_without_chance(count, drop_last):
    for world in (1, 3, 4):
        for rank in range(world):
            mine, its = (of.DistributedSampler(range(count), world, rank, shuffle=False, drop_last=drop_last) for of in (data, theirs))
            assert list(mine) == list(its) and len(mine) == len(its)
    mine, its = (of.BatchSampler(of.SequentialSampler(range(count)), 4, drop_last) for of in (data, theirs))
    assert list(mine) == list(its) and len(mine) == len(its)


def test_ranks_have_one_order():
    def parts(epoch):
        found = []
        for rank in range(3):
            sampler = data.DistributedSampler(range(12), 3, rank, seed=5)
            sampler.set_epoch(epoch)
            found.append(list(sampler))
        return found

    assert sorted(i for part in parts(0) for i in part) == list(range(12)) and parts(0) == parts(0) and parts(0) != parts(1)


def test_samplers_with_chance():
    flow.manual_seed(0)
    draws = data.RandomSampler(range(5), num_samples=12)
    found = list(draws)
    assert len(draws) == 12 and sorted(found[:5]) == sorted(found[5:10]) == list(range(5)) and list(draws) != found
    assert list(data.RandomSampler(range(50), generator=flow.Generator(3))) == list(data.RandomSampler(range(50), generator=flow.Generator(3)))
    assert len(set(data.RandomSampler(range(50), True, 50))) < 50
    assert sorted(data.SubsetRandomSampler([4, 7, 9])) == [4, 7, 9]
    weights = flow.tensor([0.0, 1.0, 3.0])
    counts = collections.Counter(data.WeightedRandomSampler(weights, 8000))
    assert counts[0] == 0 and abs(counts[2] / counts[1] - 3) < 0.3
    firsts = collections.Counter(next(iter(data.WeightedRandomSampler([1, 3], 1, False))) for _ in range(2000))
    assert abs(firsts[1] / firsts[0] - 3) < 0.7
    assert sorted(data.WeightedRandomSampler([1, 0, 3], 2, False)) == [0, 2]


WORKERS = [{}, {"num_workers": 3}, {"num_workers": 2, "multiprocessing_context": "spawn"}]


@pytest.mark.parametrize("options", WORKERS, ids=["alone", "threads", "processes"])
def test_workers_give_the_same(options):
    for d, extra in ((Squares(11), {"batch_size": 4}), (Squares(11), {"batch_size": None}), (Count(11), {"batch_size": 2})):
        found = [plain(x) for x in data.DataLoader(d, **extra, **options)]
        alone = [plain(x) for x in data.DataLoader(d, **extra)]
        if isinstance(d, Count) and options:
            # Each worker has batches of its own share.
            assert sorted(i for _, _, part in found for i in part) == list(range(11))
        else:
            assert found == alone


def test_an_iterable_has_pytorchs_order():
    class Theirs(theirs.IterableDataset):
        def __iter__(self):
            info = theirs.get_worker_info()
            yield from range(info.id, 13, info.num_workers)

    found = [x.tolist() for x in data.DataLoader(Count(13), 2, num_workers=3)]
    assert found == [x.tolist() for x in theirs.DataLoader(Theirs(), 2, num_workers=3)]


@pytest.mark.parametrize("options", WORKERS, ids=["alone", "threads", "processes"])
def test_an_exception_of_a_worker(options):
    loader = iter(data.DataLoader(Squares(9, fails=(5,)), 2, **options))
    assert [next(loader)[0].tolist(), next(loader)[0].tolist()] == [[0.0, 1.0], [2.0, 3.0]]
    with pytest.raises(ValueError, match="sample 5 is bad") as error:
        next(loader)
    text = "".join(traceback.format_exception(error.value))
    assert "data_sets.py" in text and "raise ValueError" in text
    assert list(loader) == []


def test_what_a_process_cannot_send_is_an_error():
    with pytest.raises(RuntimeError, match="pickle"):
        list(data.DataLoader(Squares(4, unpicklable=(1,)), 1, collate_fn=_first, num_workers=1, multiprocessing_context="spawn"))


def _first(batch):
    return batch[0]


def _dies(number):
    import os

    os._exit(3)


def test_a_process_that_dies_is_an_error():
    with pytest.raises(RuntimeError, match="ended unexpectedly, with exit code 3"):
        list(data.DataLoader(Squares(4), num_workers=1, multiprocessing_context="spawn", worker_init_fn=_dies))


def test_a_fork_is_refused():
    flow.init()
    with pytest.raises(ValueError, match='"spawn"'):
        next(iter(data.DataLoader(Squares(4), num_workers=1, multiprocessing_context="fork")))


def test_what_a_worker_knows():
    seen = []

    class Asks(data.Dataset):
        share = None

        def __len__(self):
            return 8

        def __getitem__(self, i):
            info = data.get_worker_info()
            assert info.dataset is not asks and info.dataset.share == info.id
            return info.id, info.num_workers, info.seed

    def begin(number):
        seen.append(number)
        data.get_worker_info().dataset.share = number

    asks = Asks()
    loader = data.DataLoader(asks, 1, num_workers=2, worker_init_fn=begin, persistent_workers=True)
    first = [tuple(int(x) for x in batch) for batch in loader]
    again = [tuple(int(x) for x in batch) for batch in loader]
    assert [x[:2] for x in first] == [(0, 2), (1, 2)] * 4 and len({x[2] for x in first}) == 2
    assert {x[2] for x in first}.isdisjoint(x[2] for x in again) and sorted(seen) == [0, 1] and asks.share is None
    assert data.get_worker_info() is None


def test_a_worker_that_fails_at_its_beginning():
    def begin(number):
        raise KeyError("no camera")

    with pytest.raises(KeyError, match="no camera"):
        list(data.DataLoader(Squares(4), num_workers=2, worker_init_fn=begin))


def test_what_is_of_the_rank_is_refused_in_a_worker():
    class Draws(Squares):
        def __getitem__(self, i):
            return flow.rand(2)

    with pytest.raises(flow.Error):
        list(data.DataLoader(Draws(4), num_workers=1))
    assert len(list(data.DataLoader(Draws(4)))) == 4


def test_a_time_out():
    class Slow(Squares):
        def __getitem__(self, i):
            time.sleep(3)

    with pytest.raises(RuntimeError, match="has waited 0.2 seconds"):
        list(data.DataLoader(Slow(4), num_workers=1, timeout=0.2))


def test_workers_end_with_the_loop():
    def alive():
        return sum(t.name.startswith("oflow-data") for t in threading.enumerate())

    before = alive()
    for batch in data.DataLoader(Squares(1000), 2, num_workers=3):
        assert alive() > before
        break
    del batch
    for _ in range(100):
        if alive() == before:
            break
        time.sleep(0.05)
    assert alive() == before


def test_as_they_come():
    class Uneven(Squares):
        def __getitem__(self, i):
            time.sleep(0.3 if i == 0 else 0)
            return i

    found = [x.item() for x in data.DataLoader(Uneven(6), num_workers=2, in_order=False)]
    assert sorted(found) == list(range(6)) and found[0] != 0


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("kind", ["shuffled", "iterable", "samplers"])
def test_an_epoch_goes_on_where_it_was(kind, num_workers, folder):
    def loader():
        if kind == "iterable":
            return data.DataLoader(Count(20), 3, num_workers=num_workers)
        if kind == "samplers":
            return data.DataLoader(Squares(20), batch_sampler=[[1, 2], [3], [4, 5, 6], [7]], num_workers=num_workers)
        return data.DataLoader(Squares(20), 3, shuffle=True, num_workers=num_workers)

    def rows(batches):
        return [plain(b if kind == "iterable" else b[0]) for b in batches]

    first = loader()
    running = iter(first)
    begun = rows([next(running), next(running)])
    manager = flow.checkpoint.CheckpointManager(folder)
    manager.save(1, {"data": first})
    rest = rows(running)
    after = rows(first)
    assert first.state_dict()["given"] == 0
    second = loader()
    manager.load_latest({"data": second})
    manager.finish()
    assert rows(second) == rest and rows(second) == after
    assert len(after) == len(begun) + len(rest) and (kind != "shuffled" or after != begun + rest)


def test_an_order_by_seed():
    if flow.world_size() > 1:
        # Ranks have one order.
        x = next(iter(data.DataLoader(Squares(64), 64, shuffle=True)))[0]
        mesh = flow.placement.all("cpu")
        assert x.unsqueeze(0).to_global(mesh, "S(0)").var(0, correction=0).sum().item() == 0
    flow.manual_seed(7)
    loader = data.DataLoader(Squares(20), 5, shuffle=True)
    first, second = ([b[0].tolist() for b in loader] for _ in range(2))
    flow.manual_seed(7)
    assert [b[0].tolist() for b in loader] == first != second
    one, two = (data.DataLoader(Squares(20), 5, shuffle=True, generator=flow.Generator(3)) for _ in range(2))
    assert [b[0].tolist() for b in one] == [b[0].tolist() for b in two]


def test_global_batches():
    mesh = flow.placement.all("cpu")
    sampler = data.DistributedSampler(Squares(16), shuffle=False)
    for x, y in data.DataLoader(Squares(16), 4, sampler=sampler):
        both = x.to_global(mesh, "S(0)")
        assert both.shape == (4 * flow.world_size(),) and y.dtype == flow.int64
    flow.utils.data.DataLoader(Squares(2))


@pytest.mark.parametrize("call, text", [
    (lambda: data.DataLoader(Count(3), shuffle=True), "takes no shuffle"),
    (lambda: data.DataLoader(Squares(3), shuffle=True, sampler=[1]), "give it, or shuffle"),
    (lambda: data.DataLoader(Squares(3), 2, batch_sampler=[[1]]), "makes the batches"),
    (lambda: data.DataLoader(Squares(3), None, drop_last=True), "batch_size=None makes none"),
    (lambda: data.DataLoader(Squares(3), 0), "at least one sample, not 0"),
    (lambda: data.DataLoader(Squares(3), num_workers=-1), "not -1"),
    (lambda: data.DataLoader(Squares(3), prefetch_factor=2), "for num_workers above 0"),
    (lambda: data.DataLoader(Squares(3), persistent_workers=True), "for num_workers above 0"),
    (lambda: data.DataLoader(Squares(3), timeout=-1), "at least 0"),
    (lambda: data.DataLoader(Squares(3)).load_state_dict({"seed": 1, "given": "x"}), "two numbers of draws"),
    (lambda: data.TensorDataset(flow.ones(2), flow.ones(3)), "as many rows"),
    (lambda: data.StackDataset(Squares(2), Squares(3)), r"not \[2, 3\]"),
    (lambda: data.ConcatDataset([]), "needs a data set"),
    (lambda: data.random_split(range(3), [1, 1]), "2 samples together"),
    (lambda: data.WeightedRandomSampler([0.0, -1.0], 1), "at least 0"),
    (lambda: data.WeightedRandomSampler([0.0, 1.0], 2, False), "1 samples have a weight"),
    (lambda: data.DistributedSampler(range(3), 2, 2), "from 0 to 1, not 2"),
    (lambda: data.RandomSampler(range(3), num_samples=0), "not 0"),
])  # fmt: skip
def test_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_random_sizes():
    """Loaders of random sizes: every sample once, whatever the workers."""
    rng = random.Random(0)
    for _ in range(60):
        count, batch = rng.randrange(0, 12), rng.randrange(1, 5)
        options = dict(num_workers=rng.randrange(0, 5), shuffle=rng.random() < 0.5, drop_last=rng.random() < 0.5)
        if options["num_workers"]:
            options.update(prefetch_factor=rng.randrange(1, 4), persistent_workers=rng.random() < 0.5)
        loader = data.DataLoader(Squares(count), batch, **options)
        for _ in range(2):
            found = [b[0].tolist() for b in loader]
            assert len(found) == len(loader)
            whole = sorted(i for b in found for i in b)
            assert whole == list(range(count)) if not options["drop_last"] else len(set(whole)) == len(whole) == count // batch * batch
