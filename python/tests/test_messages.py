"""Errors speak Python: no text of the library that reaches a program names a function, a type or a line of Rust."""

import pathlib
import random
import re

import oflow as flow
import pytest
from oflow import _oflow

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRATES = ["src", "base/src", "kernels/src", "linalg/src", "fft/src", "comm/src", "python/src"]

# What only Rust writes: paths, `?` behind a call, macros, closures, references, its types and files.
RUST = re.compile(
    r"\b[A-Za-z_]\w*::\w|\)\?|\w!\[|\w!\(|\|\| |(?<![\w&])&\w|\bSome\(|\bOk\(|\bErr\(|\busize\b|\bVec<|\bOption<|\bResult<|\w\.rs\b"
)

# Texts that programs of Python do not see, or that are about sources in Rust, by a part of them.
NOT_FOR_PYTHON = (
    "`oflow_op::library!` in Rust",  # Of a library that is written in Rust.
    "sources end in .rs",
    " in Python, `cast(DType::",  # Says both.
    "`Backend::copy`",  # A backend is written in Rust.
    "`GradWire::output`",  # Gradient rules of Rust; those of Python have texts of their own.
    "`Row::select`",  # Data sets and metrics of Rust.
    "`Feed::new`",
    "`Loader::new`",
    "`Auc::new`",
    "`FnBody::Value`",  # A function that is registered in Rust.
    "`let _guard",  # What the compiler of Rust says of a guard that nothing holds.
    "oracle.rs",
    "crate::",
)


# Comments, characters and strings: what is no string hides none.
TOKENS = re.compile(r'''//[^\n]*|/\*.*?\*/|'(?:\\.|[^\\'\n])'|\br(#*)"(.*?)"\1|"((?:[^"\\]|\\.)*)"''', re.S)


def texts():
    """Every text of the sources that is a sentence: it has words, and stands outside of comments and tests."""
    for crate in CRATES:
        for path in sorted((ROOT / crate).rglob("*.rs")):
            if "test" in str(path.relative_to(ROOT)) or "generated" in path.parts or path.name in ("phrases.rs", "cuda.rs"):
                continue
            code = path.read_text().split("#[cfg(test)]")[0]
            for _, raw, text in TOKENS.findall(code):
                text = raw or re.sub(r"\\\n\s*", "", text).replace('\\"', '"')
                # Texts of code that is compiled for devices, and docs with examples, are no messages.
                if " " in text.strip() and "\n" not in text and "```" not in text:
                    yield path.relative_to(ROOT), f"`{text}`" if path.name == "pytorch.rs" else text


@pytest.mark.skipif(not (ROOT / "src").is_dir(), reason="the sources are not here")
def test_no_text_of_the_sources_is_rust_after_it_is_put_in_pythons_words():
    rust = read = 0
    left = []
    for path, text in texts():
        read += 1
        # A name that is filled in is some word.
        text = re.sub(r"\{[^{}]*\}", "name", text)
        rust += bool(RUST.search(text))
        if RUST.search(_oflow._in_python(text)) and not any(part in text for part in NOT_FOR_PYTHON):
            left.append((str(path), text))
    assert read > 2000 and rust > 30
    assert not left, "\n".join(map(str, left))


@pytest.mark.parametrize(
    "rust, python",
    [
        ("`x.to_global((&placement, sbp![S(0), B]))`, with", '`x.to_global(placement, ("S(0)", "B"))`, with'),
        ("write `(&placement, sbp![...])`", "write `placement=..., sbp=...`"),
        ("box to the CPU first: `x.to_global((&placement.on(Device::Cpu), sbp))`", 'box to the CPU first: `x.to_global(placement.on("cpu"), sbp)`'),
        ("a complex tensor: `.cast(DType::C64)`", "a complex tensor: `.cast(oflow.complex64)`"),
        ("`a.unsqueeze(1)?.mul(&b)?.add(&x)?`", "`a.unsqueeze(1).mul(b).add(x)`"),
        ("with_sbp(sbp![P(sum)], || ...) costs 1 us", 'with_sbp("P(sum)", lambda: ...) costs 1 us'),
        ("what about a & b, and R(x)? It stays", "what about a & b, and R(x)? It stays"),
    ],
)  # fmt: skip
def test_words_of_python(rust, python):
    assert _oflow._in_python(rust) == python


def test_names_of_pytorch_are_answered_in_python():
    for name, part in {"swish": "`x.silu()`", "lstsq": "`oflow.linalg.lstsq`", "all_reduce": 'to_global("B")'}.items():
        with pytest.raises(AttributeError) as error:
            getattr(flow, name)
        assert part in str(error.value) and not RUST.search(str(error.value))


def bad_arguments(r):
    """Arguments that a function may take by their kinds, and that may not fit by their values."""
    shape = tuple(r.choice([0, 1, 2, 3]) for _ in range(r.randrange(4)))
    dtype = r.choice([flow.float32, flow.float64, flow.int64, flow.bool, flow.complex64, flow.float16])
    layout = r.choice([{}, {}, {"placement": flow.placement.all("cpu"), "sbp": "B"}])
    return {
        "Tensor": lambda: flow.ones(shape, dtype=dtype, **layout),
        "TensorTuple": lambda: [flow.ones(shape, dtype=dtype), flow.ones(2, 2)],
        "Int": lambda: r.choice([-7, -1, 0, 1, 2, 9]),
        "IntList": lambda: [r.choice([-9, -1, 0, 1, 2, 7]) for _ in range(r.randrange(4))],
        "Shape": lambda: [r.choice([-1, 0, 2, 3]) for _ in range(r.randrange(4))],
        "Float": lambda: r.choice([-1.0, 0.0, 0.5, float("nan"), float("inf")]),
        "FloatList": lambda: [0.5, 2.0],
        "Scalar": lambda: r.choice([-1, 2, 0.5, True, 1j, 1e300]),
        "Bool": lambda: r.random() < 0.5,
        "String": lambda: r.choice(["mean", "nothing", ""]),
        "DataType": lambda: r.choice([flow.float32, flow.int64, flow.float8_e5m2]),
        "Device": lambda: "cpu",
        "TensorIndex": lambda: r.choice([9, (0, 9), [9], slice(None), flow.tensor([1.5]), None]),
        "Sbp": lambda: r.choice(["B", "S(0)", "S(7)", ("S(0)", "B")]),
        "Placement": lambda: flow.placement.all("cpu"),
    }


def test_errors_of_every_function_name_lines_of_python():
    """Every function of the table with arguments that mostly do not fit."""
    r, errors = random.Random(0), 0
    ours = ("fft", "linalg")
    for name in [n for n in _oflow._function_names() if "." not in n or n.startswith(ours)]:
        signatures = _oflow._signatures(name)
        function = _oflow._function(name)
        for _ in range(12):
            of, args = bad_arguments(r), []
            inside = re.sub(r"\[[^\]]*\]", "", r.choice(signatures).split("(", 1)[1].rpartition(") ->")[0])
            for part in filter(None, inside.split(", ")):
                kind = part.split(" ")[0].rstrip("?")
                if part == "*" or kind not in of or ("=" in part and r.random() < 0.5):
                    break
                args.append(of[kind]())
            try:
                function(*args)
            except (flow.Error, TypeError, ValueError, OverflowError) as error:
                errors += 1
                said = f"{error} {getattr(error, 'help', '')} {getattr(error, 'site', '')}"
                assert not RUST.search(said), f"{name}{args}: {said}"
                if isinstance(error, flow.Error):
                    assert error.site and error.site[0].endswith("test_messages.py"), f"{name}: {error}"
                    # The function that the program called stands first, whatever it calls itself; with or without its domain.
                    assert re.match(rf"(\w+\.)?{re.escape(name.rpartition('.')[2])}[(:]", str(error)), f"{name}: {error}"
    assert errors > 3000


def test_what_is_pytorchs_is_named():
    torch = pytest.importorskip("torch")
    theirs, layer = torch.nn.Linear(1, 1), flow.nn.Linear(1, 1)
    way = r"torch\S* \(oflow.from_dlpack\(x.detach\(\)\) makes a tensor of oflow of it\)"
    for call in (
        lambda: flow.optim.SGD(theirs.parameters(), lr=0.1),
        lambda: flow.nn.Parameter(torch.ones(1)),
        lambda: layer.register_buffer("b", torch.ones(1)),
        lambda: setattr(layer, "weight", theirs.weight),
        lambda: flow.func.functional_call(layer, {"bias": torch.ones(1)}, flow.ones(1)),
        lambda: flow.save({"a": torch.ones(1)}, "x.safetensors"),
    ):
        with pytest.raises(TypeError, match=way):
            call()
    with pytest.raises(TypeError, match="'0' is a torch.nn.modules.linear.Linear, not a Module"):
        flow.nn.Sequential(theirs)
    assert layer.to(torch.float16).weight.dtype == flow.float16
    assert layer.to(torch.device("cpu"), torch.float64).weight.dtype == flow.float64
