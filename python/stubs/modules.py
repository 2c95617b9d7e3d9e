"""The stubs of modules."""

import ast
import builtins

from definitions import definition_text, function_text, inner
from sources import NATIVE, PATHS, SOURCES, load, relative
from tables import BEFORE, KNOWN, STUB_ONLY

HEAD = "# Made by `python python/stubs` from the source beside it; do not edit.\n\n"
WIDTH = 140


def exported_forms():
    """The functions that `_pytorch_forms` puts into the package: those with a definition, and those that `_like` makes."""
    values = SOURCES["oflow._pytorch_forms"].values
    parts = [part for group in ("OF_THE_MODULE", "FUNCTIONS") for part in values[group][0].elts]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    likes = [c.value for part in parts if isinstance(part, ast.Starred) for c in ast.walk(part) if isinstance(c, ast.Constant)]
    return names, likes


def native_names():
    """What the module in Rust has, by its stub: a name that a type checker alone needs is none of it."""
    found = set()
    for node in ast.parse(PATHS[NATIVE].read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) != "TypeAlias":
            found.add(node.target.id)
    return {name for name in found - STUB_ONLY if not name.startswith("_")}


def names_used(text):
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def names_defined(text):
    found = set()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            found |= {t.id for t in (node.targets if isinstance(node, ast.Assign) else [node.target])}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def definitions(source):
    """The text of what a module defines for others, and of what this names, by name in the order of the source."""
    both = {**source.defs, **source.values}
    lines = {n: source.defs[n].lineno if n in source.defs else source.values[n][0].lineno for n in both}
    if source.short == "_pytorch_forms":
        todo, likes = exported_forms()
        texts = {n: function_text(source, n, inner(source.defs["_like"])) for n in likes}
    else:
        todo, texts = [n for n in both if not n.startswith("_") or n == "__getattr__"], {}
    while todo:
        texts |= {name: definition_text(source, name) for name in todo}
        todo = sorted(n for n in names_used("".join(texts.values())) if n in both and n not in texts)
    return [texts[n] for n in sorted(texts, key=lambda n: lines.get(n, 0))]


def import_texts(source, imports):
    """The imports of a stub; of the names that the source imports for others, for others."""
    plain, by_module = [], {}
    for local, (module, name) in sorted(imports.items()):
        if name is None and module.startswith("oflow."):
            # A module of the package, from the package that it is in.
            package, _, name = module.rpartition(".")
            module = f"{package}."
        if name is None:
            plain.append(f"import {module}{f' as {local}' if local != module else ''}\n")
        else:
            renamed = f" as {local}" if local in source.reexports or local != name else ""
            by_module.setdefault(module, []).append(f"{name}{renamed}")
    lines = plain
    for module in sorted(by_module, key=lambda m: (m.startswith("oflow"), m)):
        lines += listed(relative(source, module) if module.startswith("oflow") else module, by_module[module])
    return lines


def listed(module, names):
    """An import of several names, in lines that are not too long."""
    line = f"from {module} import {', '.join(names)}\n"
    if len(line) <= WIDTH:
        return [line]
    lines, row = [f"from {module} import (\n"], "   "
    for name in names:
        if len(row) + len(name) + 2 > WIDTH:
            lines.append(row + "\n")
            row = "   "
        row += f" {name},"
    return [*lines, row + "\n", ")\n"]


def for_others(names):
    return [f"{name} as {name}" for name in sorted(names)]


def stub(source):
    """The text of a stub."""
    texts = definitions(source)
    before = BEFORE.get(source.short, "")
    body, after_class = before, False
    for text in texts:
        is_class = text.startswith(("class", "@dataclasses"))
        body += ("\n" if is_class or after_class else "") + text
        after_class = is_class
    imports = {name: source.imports[name] for name in source.reexports}
    for name in names_used(body) - names_defined(body):
        if name in source.imports:
            imports[name] = source.imports[name]
        elif name in KNOWN:
            imports[name] = (KNOWN[name], name)
        elif not hasattr(builtins, name):
            raise LookupError(f"{source.name} uses {name}, of which nothing is known")
    lines = import_texts(source, imports)
    lines += [f"from {relative(source, star)} import *\n" for star in source.stars if star != NATIVE]
    if NATIVE in source.stars:
        # A star would also bring what `_pytorch_forms` replaces.
        names, likes = exported_forms()
        forms = {*names, *likes}
        deleted = {t.id for n in source.tree.body if isinstance(n, ast.Delete) for t in n.targets}
        lines += listed(relative(source, "oflow._pytorch_forms"), for_others(forms))
        lines += listed(relative(source, NATIVE), for_others(native_names() - forms - set(imports) - deleted))
    return HEAD + "".join(lines) + ("\n" + body.lstrip("\n") if body else "")


def modules_named(source, text):
    """The modules of the package from which a stub imports."""
    package = (source.name if source.is_package else source.name.rpartition(".")[0]).split(".")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
            yield from (name for name in (base, *(f"{base}.{alias.name}" for alias in node.names)) if name in SOURCES)


def stubs():
    """The paths and texts of all stubs: of the public modules, and of those that these import from."""
    load()
    todo = [n for n in SOURCES if not any(part.startswith("_") for part in n.split("."))]
    made = {}
    while todo:
        source = SOURCES[todo.pop()]
        if source.name not in made:
            made[source.name] = stub(source)
            todo += modules_named(source, made[source.name])
    return {SOURCES[name].path.with_suffix(".pyi"): made[name] for name in sorted(made)}
