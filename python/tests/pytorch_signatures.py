"""Writes pytorch_signatures.json: the positional parameters of what PyTorch and oflow both have, for test_signatures.py.

By hand, with PyTorch: ``python python/tests/pytorch_signatures.py``.
"""

import inspect
import json
import pathlib
import re

FILE = pathlib.Path(__file__).with_suffix(".json")


def kind_of(text):
    """The type of a parameter in one word."""
    inner = re.fullmatch(r"Optional\[(.*)\]", text)
    text = inner[1] if inner else text
    listed = re.fullmatch(r"List\[(.*)\]", text)
    if listed:
        return kind_of(listed[1]) + "s"
    return {"SymInt": "int", "number": "Scalar", "complex": "Scalar"}.get(text, text)


def schemas(torch, name):
    """The overloads of a built-in function: lists of [name, kind, is required]."""
    packet = getattr(torch.ops.aten, name.replace(".", "_"), None) or getattr(torch.ops.aten, name.rpartition(".")[2], None)
    found = []
    for overload in packet.overloads() if packet else ():
        schema = getattr(packet, overload)._schema
        by_position = [a for a in schema.arguments if not a.kwarg_only]
        if not any(a.is_out for a in schema.arguments) and "Dimname" not in str(schema):
            found.append([[a.name, kind_of(str(a.type)), not a.has_default_value()] for a in by_position])
    return found


def parameters(function):
    """The positional parameters of a function of Python: [name, default]."""
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [p for p in inspect.signature(function).parameters.values() if p.kind in by_position and p.name != "out"]
    return [[p.name, None if p.default is p.empty else repr(p.default)] for p in found]


def main():
    import oflow
    import torch
    from oflow import _oflow

    functions, methods = {}, {}
    for name in _oflow._function_names():
        place, _, leaf = name.rpartition(".")
        module = getattr(torch, place) if place else torch
        found = schemas(torch, name)
        if hasattr(module, leaf) and found:
            try:
                # Functions of Python have an order of their own.
                own = parameters(getattr(module, leaf))
                functions[name] = [[[p, "any", default is None] for p, default in own]]
            except ValueError:
                functions[name] = found
        if not place and hasattr(torch.Tensor, leaf) and any(a[0] == "self" for o in found for a in o):
            first = [[a for a in o if a[0] == "self"] + [a for a in o if a[0] != "self"] for o in found]
            methods[name] = [o for o in first if o and o[0][0] == "self"]
    python = {}
    for ours, theirs in (("nn", torch.nn), ("nn.functional", torch.nn.functional), ("optim", torch.optim), ("optim.lr_scheduler", torch.optim.lr_scheduler)):
        module = oflow
        for part in ours.split("."):
            module = getattr(module, part)
        for name in dir(module):
            here, there = getattr(module, name), getattr(theirs, name, None)
            if name.startswith("_") or not callable(here) or not callable(there):
                continue
            try:
                python[f"{ours}.{name}"] = parameters(there)
            except ValueError:
                # A built-in function: its overloads.
                python[f"{ours}.{name}"] = [[a[0], None if a[2] else "?"] for a in (schemas(torch, name) or [[]])[0]]
    text = {"pytorch": torch.__version__.split("+")[0], "functions": functions, "methods": methods, "python": python}
    lines = []
    for group, rows in text.items():
        if isinstance(rows, str):
            lines.append(f'"{group}": {json.dumps(rows)}')
        else:
            inner = ",\n".join(f'  "{name}": {json.dumps(row)}' for name, row in sorted(rows.items()))
            lines.append(f'"{group}": {{\n{inner}\n}}')
    FILE.write_text("{" + ",\n".join(lines) + "}\n")
    print(len(functions), "functions,", len(methods), "methods,", len(python), "of Python")


if __name__ == "__main__":
    main()
