"""Programs that use oflow pass `mypy --strict` and `pyright`, and the stubs are those that `python/stubs` writes."""

import ast
import importlib
import importlib.util
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import oflow
import pytest
from jobs import ROOT, environment

PACKAGE = ROOT / "python"
TYPED = ROOT / "python/tests/typed.py"
STUBS = sorted(set((PACKAGE / "oflow").rglob("*.pyi")) - {PACKAGE / f"oflow/{name}.pyi" for name in ("_oflow", "fft", "linalg")})
# Programs of pages define functions without annotations: what is checked of them is the use of oflow.
UNTYPED = ("--allow-untyped-defs", "--allow-untyped-calls")


def programs():
    """The programs of the pages by name, without those that need PyTorch."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {
        f"{page.stem.replace('-', '_').lower()}_{number}.py": code
        for page in pages
        for number, code in enumerate(re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S))
    }
    return {name: code for name, code in found.items() if "import torch" not in code}


def checked(folder, command, files, **env):
    """Runs a type checker on files, in a folder where no other modules are."""
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}, **env}
    done = subprocess.run([sys.executable, "-m", *command, *map(str, files)], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def mypy(folder, *files, options=()):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("there is no mypy here: `pip install mypy`")
    checked(folder, ["mypy", "--strict", "--cache-dir", folder / "cache", *options], files, MYPYPATH=str(PACKAGE))


def pyright(folder, *files):
    # The package downloads the checker, so it may be there without it.
    if importlib.util.find_spec("pyright") is None or subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True).returncode:
        pytest.skip("there is no pyright here: `pip install pyright`")
    # A variable that a loop sets is there behind it in these programs.
    (folder / "pyrightconfig.json").write_text('{"reportPossiblyUnboundVariable": false, "reportUnusedExpression": false}')
    checked(folder, ["pyright", "--pythonpath", sys.executable], files, PYTHONPATH=str(PACKAGE))


@pytest.fixture
def written(tmp_path):
    """The programs of the pages as files."""
    for name, code in programs().items():
        (tmp_path / name).write_text(code)
    assert len(programs()) >= 9
    return sorted(tmp_path.glob("*.py"))


@pytest.fixture
def examples(tmp_path):
    return sorted(shutil.copytree(ROOT / "examples/python", tmp_path / "examples").glob("*.py"))


def test_the_stubs_are_those_of_the_sources():
    done = subprocess.run([sys.executable, PACKAGE / "stubs", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run `python python/stubs`"


def test_mypy_accepts_a_typed_program(tmp_path):
    mypy(tmp_path, shutil.copy(TYPED, tmp_path))


def test_pyright_accepts_a_typed_program(tmp_path):
    pyright(tmp_path, shutil.copy(TYPED, tmp_path))


def test_the_typed_program_runs(tmp_path):
    done = subprocess.run([sys.executable, TYPED], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_mypy_accepts_all_stubs(tmp_path):
    """Each module, as a program that imports it: a checker reports what is wrong in a stub."""
    names = [".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__") for path in STUBS]
    program = tmp_path / "all_modules.py"
    program.write_text("".join(f"import {name}\n" for name in [*names, "oflow.fft", "oflow.linalg"]))
    mypy(tmp_path, program)


def test_mypy_accepts_the_programs_of_the_pages(tmp_path, written):
    mypy(tmp_path, *written, options=UNTYPED)


def test_pyright_accepts_the_programs_of_the_pages(tmp_path, written):
    pyright(tmp_path, *written)


def test_mypy_accepts_the_examples(tmp_path, examples):
    mypy(tmp_path / "examples", *examples, options=UNTYPED)


def test_pyright_accepts_the_examples(tmp_path, examples):
    pyright(tmp_path / "examples", *examples)


def shown(body):
    """What a stub defines or imports for others, without what is private."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            yield (node.target if isinstance(node, ast.AnnAssign) else node.targets[0]).id, node
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname, node) for alias in node.names if alias.asname == alias.name)


@pytest.mark.parametrize("path", STUBS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_what_a_stub_shows_is_there(path):
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
    # Its functions are those of the package.
    module = oflow if name == "oflow._pytorch_forms" else importlib.import_module(name)
    for shown_name, node in shown(ast.parse(path.read_text()).body):
        if shown_name.startswith("_"):
            continue
        found = getattr(module, shown_name)
        if isinstance(node, ast.ClassDef):
            methods = {n.name for n in node.body if isinstance(n, ast.FunctionDef)} - {"__getattr__", "__setattr__", "__new__"}
            assert {m for m in methods if not hasattr(found, m)} == set(), shown_name
        elif isinstance(node, ast.FunctionDef) and inspect.isfunction(found) and not node.decorator_list:
            args = node.args
            said = [a.arg for a in (*args.posonlyargs, *args.args, *filter(None, [args.vararg]), *args.kwonlyargs, *filter(None, [args.kwarg]))]
            assert said == list(inspect.signature(found).parameters), shown_name


def test_the_package_shows_what_it_has():
    stub = dict(shown(ast.parse((PACKAGE / "oflow/__init__.pyi").read_text()).body))
    # The class of the functions, and a module that is a program.
    there = {name for name in vars(oflow) if not name.startswith("_")} - {"Function", "launch"}
    assert there - set(stub) == set()


def test_the_package_is_typed():
    assert (pathlib.Path(oflow.__file__).parent / "py.typed").exists()
