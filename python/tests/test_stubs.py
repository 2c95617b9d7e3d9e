"""The stubs say what is there. They are made by ``cargo xtask codegen``."""

import ast
import pathlib

import oflow as flow
from oflow import _oflow

TREE = ast.parse((pathlib.Path(flow.__file__).parent / "_oflow.pyi").read_text())


def names(body):
    """What a module or class defines."""
    found = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
    return found


def test_the_module():
    inside = {"HookHandle", "MemoryStats", "Number", "Index", "_dtype", "_device", "_placement"}
    # Classes of named results.
    inside |= {c.name for c in TREE.body if isinstance(c, ast.ClassDef) and any(getattr(b, "id", "") == "NamedTuple" for b in c.bases)}
    there = {name for name in dir(_oflow) if not name.startswith("__") and name != "Function"}
    assert names(TREE.body) - inside - {"__version__"} == there


def test_tensors():
    tensor = next(node for node in TREE.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    said = names(tensor.body)
    assert {name for name in said if not hasattr(flow.Tensor, name)} == set()
    assert {name for name in dir(flow.Tensor) if not name.startswith("__")} - said == set()
