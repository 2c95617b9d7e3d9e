"""The modules of the package as they are written, and what their names stand for."""

import ast
import pathlib

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "oflow"
NATIVE = "oflow._oflow"


class Source:
    """A module: what it imports, defines and assigns."""

    def __init__(self, path):
        self.path = path
        parts = ["oflow", *path.relative_to(PACKAGE).with_suffix("").parts]
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.short = self.name.removeprefix("oflow.")
        self.tree = ast.parse(path.read_text())
        self.imports, self.defs, self.values, self.stars = {}, {}, {}, []
        for node in self.tree.body:
            self._read(node)
        loaded = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        listed = {n.value for n in ast.walk(self.values["__all__"][0]) if isinstance(n, ast.Constant)} if "__all__" in self.values else set()
        # An import that the module itself does not use is for others.
        self.reexports = {n for n in self.imports if not n.startswith("_") and (self.is_package or n in listed or n not in loaded)}

    def _read(self, node):
        if isinstance(node, ast.ImportFrom):
            base = self.name.split(".")
            up = base[: len(base) - node.level + self.is_package] if node.level else []
            module = ".".join([*up, *([node.module] if node.module else [])])
            for alias in node.names:
                if alias.name == "*":
                    self.stars.append(module)
                elif f"{module}.{alias.name}" in PATHS and (node.module is None or node.level):
                    self.imports[alias.asname or alias.name] = (f"{module}.{alias.name}", None)
                else:
                    self.imports[alias.asname or alias.name] = (module, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                self.imports[alias.asname or alias.name.split(".")[0]] = (alias.name, None)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self.defs[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            self.values[node.target.id] = (node.value, None, node.annotation)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.values[target.id] = (node.value, None, None)
                elif isinstance(target, ast.Tuple):
                    for i, part in enumerate(target.elts):
                        self.values[part.id] = (node.value, i, None)


PATHS = {}
SOURCES = {}


def load():
    """Reads all modules."""
    written = {"fft", "linalg"}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ["oflow", *path.relative_to(PACKAGE).with_suffix("").parts]
        PATHS[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    PATHS[NATIVE] = PACKAGE / "_oflow.pyi"
    for name, path in PATHS.items():
        if name != NATIVE and path.stem not in written:
            SOURCES[name] = Source(path)


def resolve(source, expr):
    """The source and the definition or value that a name, or a name of a module, stands for."""
    if isinstance(expr, ast.Attribute) and isinstance(expr.value, ast.Name):
        module = source.imports.get(expr.value.id, (None, None))
        if module[1] is not None or module[0] not in PATHS:
            return None, None
        return _in_module(module[0], expr.attr)
    if not isinstance(expr, ast.Name):
        return None, None
    if expr.id in source.defs or expr.id in source.values:
        return source, expr.id
    if expr.id in source.imports:
        return _in_module(*source.imports[expr.id])
    return None, None


def _in_module(module, name):
    if module in (NATIVE, "oflow") or name is None:
        return NATIVE, name
    source = SOURCES.get(module)
    return resolve(source, ast.Name(name)) if source else (None, None)


def definition(source, expr):
    """The class or function of the package that an expression stands for, and its source."""
    where, name = resolve(source, expr)
    return (where, where.defs.get(name)) if isinstance(where, Source) else (None, None)


def relative(source, module):
    """A module as this one names it; with a dot at the end the package that it is."""
    here = source.name.split(".") if source.is_package else source.name.split(".")[:-1]
    there = module.split(".")
    common = 0
    while common < min(len(here), len(there) - 1) and here[common] == there[common]:
        common += 1
    return "." * (len(here) - common + 1) + ".".join(there[common:])
