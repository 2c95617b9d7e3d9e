"""Plain values and names × (save, load in the same world, in another one): back as they were, or refused by the save."""

import collections
import datetime
import enum
import math
import os
import pathlib
import random
import subprocess

import numpy as np
import oflow as flow
import pytest
from jobs import ROOT, run
from oflow.checkpoint import Checkpoint, CheckpointManager
from plain_values import NAMES, differences, same, state, value


def test_random_values_and_names_go_round(tmp_path):
    mesh, names, saved, refused = flow.placement.all("cpu"), 0, 0, 0
    for seed in range(40):
        section = "" if seed % 4 == 0 else "more"
        more = state(seed, mesh)
        with CheckpointManager(tmp_path / str(seed)) as manager:
            try:
                manager.save(seed, {section: more})
            except flow.Error as e:
                assert "__metadata__" in more and not section and "format's own" in str(e)
                refused += 1
                continue
            back = state(seed, mesh, fresh=True)
            assert manager.load_latest({section: back}) == seed
        assert not differences(more, back), seed
        found = Checkpoint(tmp_path / str(seed)).values()
        prefix = section and section + "."
        assert all(same(v, found[prefix + n]) for n, v in more.items() if not isinstance(v, flow.Tensor))
        saved, names = saved + 1, names + len(more)
    print(f"{saved} checkpoints of {names} names with 10 values each or a tensor came back, {refused} were refused")
    assert saved > 30 and refused


SAVE = """
import sys
sys.path.insert(0, {tests!r})
import oflow
from oflow.checkpoint import CheckpointManager
from plain_values import differences, state
mesh, loads = oflow.placement.all("cpu"), {loads!r}
count = 0
for seed in range(12):
    with CheckpointManager("c" + str(seed)) as manager:
        if not loads:
            manager.save(seed, {{"more": state(seed, mesh)}})
            count += 1
        else:
            back = state(seed, mesh, fresh=True)
            assert manager.load_latest({{"more": back}}) == seed
            wrong = differences(state(seed, mesh), back)
            assert not wrong, (seed, wrong)
            count += len(back)
if oflow.rank() == 0:
    print(count)
"""


def test_two_ranks_save_and_other_worlds_load_under_oflaunch(tmp_path):
    tests = str(pathlib.Path(__file__).parent)
    for ranks, loads in ((2, False), (2, True), (1, True), (4, True)):
        # Names of pieces (`x@[2]`) may meet: then the save is refused, on all ranks.
        job = run(tmp_path, SAVE.format(tests=tests, loads=loads), ranks=ranks)
        assert job.code == 0, job.err
    print(job.out.strip(), "names of 12 checkpoints of 2 ranks came back on 2, 1 and 4 ranks")


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Name(str):
    __slots__ = ()


Point = collections.namedtuple("Point", "x y")


def deep(kind, levels):
    v = 1
    for _ in range(levels):
        v = {"k": v} if kind is dict else kind([v])
    return v


def cyclic():
    v = [1]
    v.append({"inside": (v,)})
    return v


REFUSED = [
    (object(), "got builtins.object"), (Colour.RED, "got test_plain_values.Colour"), (Level.LOW, r"save int\(value\)"),
    (Name("x"), r"save str\(value\)"), (Point(1, 2), r"save tuple\(value\)"), (collections.Counter("ab"), r"save dict\(value\)"),
    (collections.defaultdict(list), r"save dict\(value\)"), (datetime.date(2020, 1, 1), "datetime.date"), (range(3), "builtins.range"),
    (cyclic(), "a list that contains itself"), (deep(list, 101), "at most 100 levels"), (deep(dict, 60), "at most 100 levels"),
    (deep(tuple, 5000), "at most 100 levels"), (np.array([object()]), "one of object"), (np.zeros(2, "i4,f4"), "one of"),
    (np.ma.array([1]), "numpy.ma"), (np.dtype("f4"), "numpy"), (lambda: 0, "builtins.function"), ([flow.ones(2)], "a name of its own"),
    ({"a": {1: {2: object()}}}, "got builtins.object"),
]  # fmt: skip


def test_other_values_are_refused_by_the_save(tmp_path):
    manager = CheckpointManager(tmp_path)
    for bad, text in REFUSED:
        with pytest.raises(TypeError, match=f"'v' of 'more' cannot be saved in a checkpoint: expected .*{text}"):
            manager.save(1, {"more": {"v": bad}})
    for names, kind in (({1: 2.0}, TypeError), ({None: 1}, TypeError), ({"\ud800": 1}, ValueError), ({"\ud800": flow.ones(1)}, ValueError)):
        with pytest.raises(kind, match="expected (names that are strings|a name of valid Unicode)"):
            manager.save(1, {"more": names})
    assert manager.load_latest({"more": {"v": 1}}) is None
    kept = {"v": [deep(list, 98), deep(dict, 33), deep(tuple, 49)]}
    manager.save(1, {"more": kept})
    back = {"v": 0}
    manager.load_latest({"more": back})
    assert same(back, kept)
    manager.finish()


def test_malformed_notations_are_refused():
    from oflow import _plain

    draw, broken = random.Random(3), 0
    for text in ('{"a": {"$later": 1}}', '{"a": {"$float": 1}}', '{"a": {"$set": [[1]]}}', '{"a": {"$array": ["O", [1], "00"]}}'):
        with pytest.raises(ValueError, match="expected the notation of a plain value"):
            _plain.loads(text)
    for _ in range(3000):
        text = _plain.dumps({"v": value(draw)}, "more")
        at = draw.randrange(len(text))
        try:
            _plain.loads(text[:at] + draw.choice('x0"[]{},:$') + text[at + 1 :])
        except (ValueError, RecursionError, MemoryError):
            broken += 1
    print(f"3000 texts with one character changed: {broken} refused")


def test_objects_with_a_state_of_their_own(tmp_path):
    class Best:
        def __init__(self):
            self.state = {"best": math.inf, "seen": {1: (2, 3)}, "ids": {4, 5}, "w": flow.ones(2, placement=flow.placement.all("cpu"), sbp="B")}

        def state_dict(self):
            return dict(self.state)

        def load_state_dict(self, state):
            self.state = state

    one, two = Best(), Best()
    two.state.update(best=0.0, seen=None, ids=None)
    manager = CheckpointManager(tmp_path)
    manager.save(1, {"best": one})
    manager.load_latest({"best": two})
    manager.finish()
    assert not differences(one.state, two.state)


def test_files_of_any_name_hold_tensors_of_any_name(tmp_path):
    written = 0
    for name in NAMES:
        file = tmp_path / "x.safetensors"
        try:
            flow.save({name: flow.tensor([1.0, 2.0]), "other": flow.ones(1)}, file)
        except flow.Error as e:
            assert name == "__metadata__" and "format's own" in str(e) and not file.exists()
            continue
        assert flow.load(file)[name].tolist() == [1.0, 2.0]
        if (tool := ROOT / "target/debug/oflow").exists():
            ls = subprocess.run([tool, "ckpt", "ls", file], capture_output=True, text=True)
            assert ls.returncode == 0 and len(ls.stdout.splitlines()) == 3, ls
        file.unlink()
        written += 1
    with pytest.raises(ValueError, match="valid Unicode"):
        flow.save({"\ud800": flow.ones(1)}, file)
    for file in (os.fsencode(tmp_path) + b"/\xff\xfe", os.fsdecode(os.fsencode(tmp_path) + b"/\xff.safetensors"), tmp_path / "a\nb"):
        flow.save({"x": flow.ones(2)}, file)
        assert flow.load(file)["x"].tolist() == [1.0, 1.0] and Checkpoint(file).tensor("x").tolist() == [1.0, 1.0]
        written += 1
    with pytest.raises(flow.Error, match="name of an index"):
        flow.save({"x": flow.ones(2)}, tmp_path / "x.index.json")
    print(f"{written} files written and read")
