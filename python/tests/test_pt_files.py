"""Files of PyTorch: what it saves is read, what we save it reads, and files that are damaged or made to do harm are errors."""

import collections
import io
import pickle
import random
import resource
import struct
import zipfile

import numpy as np
import oflow as flow
import pytest
from jobs import Job

torch = pytest.importorskip("torch")


def written(path, value, **options):
    torch.save(value, path, **options)
    return path


def same(ours, theirs):
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, flow.Tensor) and tuple(ours.shape) == tuple(theirs.shape)
        assert ours.dtype.name == str(theirs.dtype).partition(".")[2] and ours.requires_grad == theirs.requires_grad
        assert isinstance(ours, flow.nn.Parameter) == isinstance(theirs, torch.nn.Parameter)
        wide = _wide(ours.dtype)
        theirs = theirs.detach().to(getattr(torch, wide.name)).numpy()
        assert np.array_equal(np.asarray(ours.detach().cast(wide).tolist()).reshape(theirs.shape), theirs, equal_nan=True)
    elif isinstance(theirs, dict):
        assert type(ours) is type(theirs) and list(ours) == list(theirs)
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for x, y in zip(ours, theirs):
            same(x, y)
    elif isinstance(theirs, torch.dtype):
        assert ours.name == str(theirs).partition(".")[2]
    else:
        assert type(ours) is type(theirs) and (ours == theirs or theirs != theirs)


def _wide(dtype):
    return flow.float32 if dtype.is_floating_point and dtype != flow.float64 else dtype if dtype.is_complex or dtype == flow.float64 else flow.int64


def values():
    torch.manual_seed(0)
    base = torch.arange(24.0).reshape(2, 3, 4)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    opt = torch.optim.AdamW(model.parameters())
    model(torch.ones(4, 3)).sum().backward()
    opt.step()
    dtypes = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64,
              torch.complex128, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.bool]  # fmt: skip
    return {
        "state": model.state_dict(),
        "optimizer": opt.state_dict(),
        "views": [base, base[1], base[:, 1, 2], base.permute(2, 0, 1), base[:, ::2], base[0, 0, :1].expand(5), base.bfloat16().transpose(0, 2)[1:]],
        "dtypes": {str(d): torch.tensor([0, 1, 2, 3]).to(d) for d in dtypes},
        "special": [torch.tensor([float("nan"), float("inf"), -0.0, 1e-40]).to(d) for d in (torch.float32, torch.bfloat16, torch.float8_e5m2)],
        "every e4m3": torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn),
        "every e5m2": torch.arange(256, dtype=torch.uint8).view(torch.float8_e5m2),
        "shapes": [torch.tensor(3.0), torch.zeros(0, 3), torch.zeros(3, 0).bfloat16(), torch.Size([2, 3])],
        "leaves": [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2), requires_grad=False), torch.ones(1, requires_grad=True)],
        "plain": [1, -(2**31) - 1, 2**70, 2.5, float("inf"), float("nan"), None, True, False, "ü\n", b"\xff\x00", (1, (2,)), {3, "a"}, 1 + 2j, set(), {}, [], ()],
        "keys": {1: "a", (1, "b"): 2, None: 3, 1.5: 4},
        "ordered": collections.OrderedDict(b=1, a=torch.float16),
    }


@pytest.mark.parametrize("name", values())
def test_what_pytorch_saves_is_read(tmp_path, name):
    value = values()[name]
    found = flow.load(written(tmp_path / "x.pt", value))
    same(found, value)
    if name == "state":
        assert found._metadata == value._metadata


@pytest.mark.parametrize("name", values())
def test_what_is_saved_pytorch_reads(tmp_path, name):
    value = values()[name]
    flow.save(flow.load(written(tmp_path / "x.pt", value)), tmp_path / "y.pt")
    again = torch.load(tmp_path / "y.pt", weights_only=True)
    same(flow.load(tmp_path / "y.pt"), again)
    same(flow.load(written(tmp_path / "z.pt", again)), value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.pt", "y.pt", "z.pt"]


def test_open_files():
    file = io.BytesIO()
    torch.save({"a": torch.ones(2)}, file)
    file.seek(0)
    found = flow.load(file)
    assert found["a"].tolist() == [1.0, 1.0]
    again = io.BytesIO()
    flow.save({**found, "n": 3}, again)
    again.seek(0)
    assert torch.load(again, weights_only=True)["n"] == 3
    with pytest.raises(flow.StorageError, match="not one of torch.save"):
        flow.load(io.BytesIO(b"12345678"))
    with pytest.raises(flow.StorageError, match="cannot load the file: the archive is damaged"):
        flow.load(io.BytesIO(b"PK\3\4" + b"12345678"))


def test_tensors_that_shared_memory_share_it(tmp_path):
    for dtype in (torch.float32, torch.bfloat16):
        base = torch.zeros(3, 4, dtype=dtype)
        found = flow.load(written(tmp_path / "x.pt", {"base": base, "t": base.t(), "row": base[1], "other": torch.zeros(3, 4)}))
        found["base"].fill_(1.0)
        assert found["t"].sum().item() == 12 and found["row"].sum().item() == 4 and found["other"].sum().item() == 0


def test_tensors_that_share_memory_are_saved_once(tmp_path):
    layer = flow.nn.Linear(100, 100, bias=False)
    flow.save({"a": layer.weight, "b": layer.state_dict()["weight"]}, tmp_path / "x.pt")
    assert (tmp_path / "x.pt").stat().st_size < 60_000
    found = torch.load(tmp_path / "x.pt", weights_only=True)
    assert found["a"].data_ptr() == found["b"].data_ptr()


def test_a_model_and_an_optimizer_go_on(tmp_path):
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    opt = torch.optim.Adam(theirs.parameters(), lr=0.1)
    x = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)

    def step(m, model, opt):
        opt.zero_grad()
        loss = (model(m.tensor(x)) ** 2).mean()
        loss.backward()
        opt.step()
        return loss.item()

    step(torch, theirs, opt)
    torch.save({"model": theirs.state_dict(), "opt": opt.state_dict(), "epoch": 1}, tmp_path / "x.pt")
    saved = flow.load(tmp_path / "x.pt")
    ours = flow.nn.Sequential(flow.nn.Linear(3, 4), flow.nn.Tanh(), flow.nn.Linear(4, 1))
    mine = flow.optim.Adam(ours.parameters(), lr=0.5)
    ours.load_state_dict(saved["model"])
    mine.load_state_dict(saved["opt"])
    for _ in range(3):
        assert step(flow, ours, mine) == pytest.approx(step(torch, theirs, opt), rel=1e-4)
    flow.save({"model": ours.state_dict(), "opt": mine.pytorch_state_dict()}, tmp_path / "y.pt")
    saved = torch.load(tmp_path / "y.pt", weights_only=True)
    theirs.load_state_dict(saved["model"])
    opt.load_state_dict(saved["opt"])
    assert step(flow, ours, mine) == pytest.approx(step(torch, theirs, opt), rel=1e-4)


def test_where_tensors_go(tmp_path):
    path = written(tmp_path / "x.pt", {"a": [torch.arange(6.0), 3], "p": torch.nn.Parameter(torch.ones(6))})
    mesh = flow.placement.all("cpu")
    found = flow.load(path, placement=mesh, sbp="S(0)")
    assert found["a"][0].sbp == (flow.sbp.split(0),) and found["a"][0].tolist() == list(range(6)) and found["a"][1] == 3
    assert isinstance(found["p"], flow.nn.Parameter) and found["p"].is_global and found["p"].requires_grad
    flow.save(found, tmp_path / "y.pt")
    assert torch.load(tmp_path / "y.pt", weights_only=True)["a"][0].tolist() == list(range(6))
    assert flow.load(path, map_location="cpu", weights_only=True)["a"][0].device.type == "cpu"
    with pytest.raises(ValueError, match="weights_only is True"):
        flow.load(path, weights_only=False)
    with pytest.raises(TypeError, match="map_location is a device"):
        flow.load(path, map_location=lambda s, l: s)  # noqa: E741


class Strange:
    pass


NOT_SAVED = [
    ({"a": [Strange()]}, TypeError, r"the value\['a'\]\[0\] is a test_pt_files.Strange"),
    ({"a": np.ones(2)}, TypeError, "is a numpy.ndarray"),
    ({"a": flow.ones(2).quantize("qint8(scale=0.5, zero=3)")}, NotImplementedError, "do not have"),
]


@pytest.mark.parametrize("case", range(len(NOT_SAVED)))
def test_not_saved(tmp_path, case):
    value, kind, text = NOT_SAVED[case]
    with pytest.raises(kind, match=text):
        flow.save(value, tmp_path / "x.pt")
    deep = []
    for _ in range(200):
        deep = [deep]
    loop = []
    loop.append(loop)
    for bad, text in ((deep, "levels"), (loop, "contains itself")):
        with pytest.raises(ValueError, match=text):
            flow.save(bad, tmp_path / "x.pt")
    assert list(tmp_path.iterdir()) == []


NOT_READ = [
    (Strange(), "test_pt_files.Strange"),
    (torch.nn.Linear(1, 1), "torch.nn.modules.linear.Linear"),
    (np.float64(3), "numpy"),
    (np.ones(2), "numpy"),
    (torch.ones(2).to_sparse(), "_rebuild_sparse_tensor"),
    ([print], "builtins.print"),
]


@pytest.mark.parametrize("case", range(len(NOT_READ)))
def test_what_is_not_read_is_named(tmp_path, case):
    value, text = NOT_READ[case]
    with pytest.raises(flow.StorageError, match=f"cannot load .*x.pt: it holds .*{text}"):
        flow.load(written(tmp_path / "x.pt", value))


def test_old_files_and_programs_are_refused(tmp_path):
    with pytest.raises(flow.StorageError, match="before PyTorch 1.6"):
        flow.load(written(tmp_path / "x.pt", {"a": torch.ones(1)}, _use_new_zipfile_serialization=False))
    (tmp_path / "y.pt").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(flow.StorageError, match="it is a pickle"):
        flow.load(tmp_path / "y.pt")


# Files that are made to do harm.


def archive(path, data, more=(), method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as made:
        made.writestr("x/data.pkl", data)
        for name, content in more:
            made.writestr(f"x/{name}", content)
    return path


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def tensor(size, stride, offset=0, count=4, storage="FloatStorage"):
    """The pickle of a tensor, as a file may say it."""

    def number(n):
        data = n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8a" + bytes([len(data)]) + data

    def tuple_of(numbers):
        return b"(" + b"".join(map(number, numbers)) + b"t"

    stored = b"(" + text("storage") + f"ctorch\n{storage}\n".encode() + text("0") + text("cpu") + number(count) + b"tQ"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + stored + number(offset) + tuple_of(size) + tuple_of(stride) + b"\x89NtR."


FOUR = [("data/0", b"\0" * 16)]
HARM = {
    "size": (tensor([5], [1]), FOUR, "needs 5 elements, and its storage has 4"),
    "offset": (tensor([2], [1], offset=3), FOUR, "needs 5"),
    "huge offset": (tensor([1], [1], offset=2**62 - 1), FOUR, "needs"),
    "below": (tensor([2], [1], offset=-1), FOUR, "no storage, offset"),
    "stride": (tensor([2, 2], [3, 1]), FOUR, "needs 5"),
    "stride below": (tensor([2], [-1], offset=3), FOUR, "strides that are not"),
    "size below": (tensor([-2], [1]), FOUR, "sizes that are not"),
    "overflow": (tensor([2**40, 2**40], [0, 0]), FOUR, "which repeat the 4"),
    "many dims": (tensor([1] * 33, [1] * 33), FOUR, "up to 32"),
    "other dims": (tensor([1, 1], [1]), FOUR, "2 sizes and 1 strides"),
    "storage size": (tensor([1], [1], count=5), FOUR, "has 16 bytes"),
    "huge storage": (tensor([1], [1], count=2**61), FOUR, "has 16 bytes"),
    "no storage": (tensor([1], [1]), [], "lacks data/0"),
    "storage elsewhere": (tensor([1], [1]).replace(text("0"), text("../0")), FOUR, "no name or no size"),
    "no code": (b"\x80\x02cos\nsystem\n" + text("true") + b"\x85R.", [], "it holds os.system"),
    "a call of a value": (b"\x80\x02" + text("a") + b")R.", [], "a function was expected"),
    "arguments": (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.", [], "no storage"),
    "too many arguments": (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + b"N" * 20 + b"tR.", [], "do not fit"),
    "deep": (b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".", [], "more than 100 levels"),
    "deep tuples": (b"\x80\x02)" + b"\x85" * 200_000 + b".", [], "more than 100 levels"),
    "deep keys": (b"\x80\x02})" + b"\x85" * 200_000 + b"Ns.", [], "a key that is a tuple"),
    "deep members": (b"\x80\x04\x8f()" + b"\x85" * 200_000 + b"\x90.", [], "members that are not"),
    "itself": (b"\x80\x02]q\0h\0a.", [], "contains itself"),
    "laughs": (b"\x80\x02(]q\0" + b"".join(b"](" + b"h" + (b"h".join([bytes([i])] * 50)) + b"eq" + bytes([i + 1]) for i in range(90)) + b"t.", [], None),
    "a number": (b"\x80\x02\x8b" + struct.pack("<i", 2**30) + b".", [], "a number of 1073741824 bytes"),
    "a text": (b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b".", [], "in the middle of a value"),
    "instructions": (b"\x80\x02" + b"N0" * 3 + b".", [], "none of the values that are read needs"),
    "many": (b"\x80\x02(" + b"}" * 4_100_000 + b"l.", [], "more than 4000000 instructions"),
    "nothing": (b"", [], "in the middle of a value"),
    "two values": (b"\x80\x02NN.", [], "more or less than one value"),
    "no text": (b"\x80\x02X\1\0\0\0\xff.", [], "not UTF-8"),
    "a function": (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n.", [], "not a value"),
    "key without value": (b"\x80\x02}(Nu.", [], "a key without a value"),
    "attributes": (b"\x80\x02}}b.", [], "changes a dict"),
    "an index": (b"\x80\x02h\5.", [], "has not made"),
    "big-endian": (b"\x80\x02N.", [("byteorder", b"big")], "big-endian"),
    "a program": (b"\x80\x02N.", [("constants.pkl", b"")], "TorchScript"),
}


@pytest.mark.parametrize("name", HARM)
def test_harm(tmp_path, name):
    data, more, said = HARM[name]
    path = archive(tmp_path / "x.pt", data, more)
    if said is None:
        flow.load(path)
        return
    with pytest.raises(flow.StorageError, match="cannot load") as error:
        flow.load(path)
    assert said in str(error.value)


def test_bombs(tmp_path):
    """Little files that are much when they are unpacked."""
    path = archive(tmp_path / "x.pt", tensor([4], [1]), [("data/0", b"\0" * 10_000_000)], zipfile.ZIP_DEFLATED)
    with pytest.raises(flow.StorageError, match="is compressed"):
        flow.load(path)
    # Members that lie on each other: each is the whole file.
    names = [str(n) for n in range(64)]
    value = b"\x80\x02(" + b"".join(tensor([1], [1], count=25_000).removeprefix(b"\x80\x02").removesuffix(b".").replace(text("0"), text(n)) for n in names) + b"t."
    path = archive(tmp_path / "y.pt", value, [("data/0", b"\0" * 100_000), *((f"data/{n}", b"") for n in names[1:])])
    with zipfile.ZipFile(path) as made:
        first = made.getinfo("x/data/0")
    raw = bytearray(path.read_bytes())
    at = raw.index(b"PK\1\2")
    while raw[at : at + 4] == b"PK\1\2":
        lengths = struct.unpack("<HHH", raw[at + 28 : at + 34])
        if raw[at + 46 :].startswith(b"x/data/"):
            raw[at + 16 : at + 28] = struct.pack("<III", first.CRC, first.compress_size, first.file_size)
            raw[at + 42 : at + 46] = struct.pack("<I", first.header_offset)
        at += 46 + sum(lengths)
    path.write_bytes(raw)
    with pytest.raises(flow.StorageError, match="more bytes than the file|damaged"):
        flow.load(path)


def test_mutations(tmp_path):
    """Files with random damage: an error of oflow, or a value, and little memory."""
    value = values()
    whole = io.BytesIO()
    torch.save({k: value[k] for k in ("state", "optimizer", "views", "plain", "keys")}, whole)
    whole = whole.getvalue()
    with zipfile.ZipFile(io.BytesIO(whole)) as made:
        members = {name.partition("/")[2]: made.read(name) for name in made.namelist()}
    rng, path = random.Random(0), tmp_path / "x.pt"
    before, read = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
    for n in range(1500):
        if n % 3 == 0:
            # Damage anywhere in the archive.
            data = mutated(rng, whole)
            path.write_bytes(data)
        else:
            # Damage of the pickle alone, in an archive that is whole.
            archive(path, mutated(rng, members["data.pkl"]), [(k, v) for k, v in members.items() if k != "data.pkl"])
        try:
            flow.load(path)
            read += 1
        except (flow.StorageError, flow.Error):
            pass
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert 0 < read < 1500 and after - before < 300_000


def mutated(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(data))
        kind = rng.randrange(5)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice(b"\0\xff.(]})tueRbQcqhj\x85\x86\x8a\x94" + bytes([rng.randrange(256)]))
        elif kind == 2:
            del data[at : at + rng.randrange(1, 20)]
        elif kind == 3:
            data[at:at] = data[(start := rng.randrange(len(data))) : start + rng.randrange(1, 40)]
        else:
            del data[at:]
        if not data:
            return b"PK\3\4"
    return bytes(data)


def test_a_save_that_fails_under_oflaunch_fails_on_all_ranks(tmp_path):
    """Rank 0 writes: the others hear that it could not, and all can go on."""
    program = tmp_path / "save.py"
    program.write_text(
        """
import oflow
x = oflow.ones(4, placement=oflow.placement.all("cpu"), sbp="S(0)")
try:
    oflow.save({"x": x}, "no such folder/x.pt")
except oflow.StorageError as error:
    print("refused", "no such folder/x.pt" in str(error))
print("goes on", x.sum().item())
"""
    )
    job = Job(tmp_path, "-n", 2, "-t", 1, program).finish()
    assert job.code == 0, job.out + job.err
    assert job.out.count("refused True") == 2 and job.out.count("goes on 4.0") == 2


def test_a_save_that_fails_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "x.pt"
    flow.save({"a": flow.ones(2)}, path)
    with pytest.raises(ValueError, match="contains itself"):
        value = []
        value.append(value)
        flow.save(value, path)
    with pytest.raises(flow.StorageError, match=r"cannot write .*no/x.pt"):
        flow.save({"a": flow.ones(3)}, tmp_path / "no" / "x.pt")
    assert flow.load(path)["a"].tolist() == [1, 1] and [p.name for p in tmp_path.iterdir()] == ["x.pt"]
