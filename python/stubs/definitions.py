"""The stubs of classes, functions and values."""

import ast

from inference import annotation, default_type, own_nodes, parameters, result, type_of, union, written
from sources import NATIVE, definition, relative, resolve
from tables import BASES, METHODS, MORE, OTHER_ARGUMENTS, PROTECTED, TEXTS


def inner(function):
    """The function that a function defines and returns."""
    made = [n for n in ast.walk(function) if isinstance(n, ast.FunctionDef) and n is not function]
    names = {r.value.id for r in own_nodes(function) if isinstance(r, ast.Return) and isinstance(r.value, ast.Name)}
    return next((m for m in reversed(made) if m.name in names), None)


def bound(function, call, known):
    """What a call gives the parameters of a function: expressions, and dicts of those that `**` takes."""
    args = function.args
    given = dict(zip([a.arg for a in args.args], call.args))
    for a, default in zip(reversed(args.args), reversed(args.defaults)):
        given.setdefault(a.arg, default)
    more = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            more.update(known.get(ast.unparse(keyword.value), {}))
        else:
            more[keyword.arg] = keyword.value
    for a in args.args:
        given[a.arg] = more.pop(a.arg, given.get(a.arg))
        if isinstance(given[a.arg], ast.Name) and given[a.arg].id in known:
            given[a.arg] = known[given[a.arg].id]
    return {**given, **({args.kwarg.arg: more} if args.kwarg else {})}


def type_call(source, call, known=None):
    """The call of `type` behind the call of a function that makes a class, and what the names in it stand for; or None."""
    function = source.defs.get(call.func.id) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
    if not isinstance(function, ast.FunctionDef):
        return None
    known = bound(function, call, known or {})
    for node in own_nodes(function):
        if isinstance(node, ast.Return) and node.value is not None:
            for part in ast.walk(node.value):
                if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                    if part.func.id == "type" and len(part.args) == 3:
                        return function, part, known
                    deeper = type_call(source, part, known)
                    if deeper is not None:
                        return deeper
    return None


def made_class(source, name, made):
    """The stub of a class that a function makes."""
    function, call, known = made
    base = call.args[1].elts[0]
    base = known.get(base.id, base) if isinstance(base, ast.Name) else base
    lines = [f"class {name}({ast.unparse(base)}):"]
    if base.id == "_WithOptions":
        where, of = function_of(source, known["function"])
        options = known["defaults"]
        position = known["by_position"].value
        position = len(options) if position is None else position
        kinds = [
            ("either" if i < position else "named", name, default_type(source, name, default, True), default)
            for i, (name, default) in enumerate(options.items())
        ]
        lines.append(f"    def __init__({written(kinds, 'self')}) -> None: ...")
        lines += [f"    {o}: {union([of, 'Any']) if of.endswith('| None') else of}" for _, o, of, _ in kinds]
        lines.append(f"    def forward({written(parameters(where, of, drop=options), 'self')}) -> Tensor: ...")
    elif base.id == "_Lazy":
        where, of = inherited(source, known["becomes"], "__init__")
        lines.append(f"    def __init__({written(parameters(where, of, '', name='__init__')[2:], 'self')}) -> None: ...")
    else:
        for method in (n for n in ast.walk(function) if isinstance(n, ast.FunctionDef) and n is not function):
            lines.append(function_text(source, method.name, method, "    ", name).rstrip("\n"))
    return "\n".join(lines if len(lines) > 1 else [lines[0] + " ..."]) + "\n"


def function_of(source, expr):
    """The function that a name stands for, also one that another function has made."""
    where, name = resolve(source, expr)
    if name in where.defs:
        return where, where.defs[name]
    value = where.values[name][0]
    return where, inner(where.defs[maker(value)])


def inherited(source, cls, name):
    """The method of a class of the package, or of its bases."""
    where, node = definition(source, cls)
    while node is not None:
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == name:
                return where, method
        where, node = definition(where, node.bases[0])
    raise LookupError(name)


def maker(value):
    """The function whose call a value is, or the parts of a value are."""
    if isinstance(value, ast.GeneratorExp):
        value = value.elt
    return value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else None


def function_text(source, name, function, indent="", owner=None, decorators=()):
    kinds = {ast.unparse(d) for d in decorators}
    first, params = None, parameters(source, function, owner, name=name)
    returns = result(source, function, name, owner)
    if owner is not None and "staticmethod" not in kinds:
        first, params = ("cls" if "classmethod" in kinds or name == "__new__" else "self"), params[1:]
    lines = [f"{indent}@{k}" for k in ("property", "staticmethod", "classmethod") if k in kinds]
    if "contextlib.contextmanager" in kinds:
        returns = f"contextlib.AbstractContextManager[{returns if returns != 'Any' else owner or 'None'}]"
    if owner is None and any(p[1] == "return_indices" for p in params):
        return indices_text(name, params)
    if name == "__exit__":
        params = [("*", "_", "object", None)]
    if name == "__getattr__":
        params = [("either", "name", "str", None)]
    if name == "__setattr__":
        params = [("either", "name", "str", None), ("either", "value", "Any", None)]
    ignore = "  # type: ignore[override]" if f"{owner}.{name}" in OTHER_ARGUMENTS else ""
    lines.append(f"{indent}def {name}({written(params, first)}) -> {returns}: ...{ignore}")
    return "\n".join(lines) + "\n"


def indices_text(name, params):
    """A pooling, which also gives indices if it is asked for them."""
    at = next(i for i, p in enumerate(params) if p[1] == "return_indices")
    asked = params[:at] + params[at + 1 :] + [("named", "return_indices", "Literal[True]", None)]
    usual = [(k, n, "Literal[False]" if n == "return_indices" else of, d) for k, n, of, d in params]
    forms = ((usual, "Tensor"), (asked, "tuple[Tensor, Tensor]"), (params, "Any"))
    return "".join(f"@overload\ndef {name}({written(form)}) -> {returns}: ...\n" for form, returns in forms)


def assigned(node):
    """The targets of an assignment, each with its value; None for one of several that a call gives."""
    for target in node.targets:
        if not isinstance(target, ast.Tuple):
            yield target, node.value
        elif isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts)
        else:
            yield from ((part, None) for part in target.elts)


def looped(node):
    """The variable of a loop over words, over tuples that begin with words, or over letters, and these."""
    first = node.target.elts[0] if isinstance(node.target, ast.Tuple) else node.target
    if isinstance(node.iter, ast.Constant):
        return first.id, list(node.iter.value)
    each = node.iter.elts if isinstance(node.iter, ast.Tuple) else []
    each = [e.elts[0] if isinstance(e, ast.Tuple) else e for e in each]
    return first.id, [e.value for e in each if isinstance(e, ast.Constant)]


REGISTERING = {"self.register_parameter": "Parameter", "self.register_buffer": "Tensor", "setattr": None}


def registered(source, call, names, words):
    """The names under which a call registers something, and the type of it."""
    name, value = call.args[-2:]
    kind = REGISTERING[ast.unparse(call.func)] or type_of(source, value, names)
    # A name was given a type by an assignment or as a parameter: None is among its values.
    may_be_none = isinstance(value, ast.IfExp) or ast.unparse(value) == "None" or ast.unparse(value) in names
    found = [name.value] if isinstance(name, ast.Constant) else words.get(ast.unparse(name), [])
    return found, union([kind, "None"]) if may_be_none else kind


def attributes(source, cls):
    """Public attributes that `__init__` sets, and what it registers, with their types."""
    init = next((n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    if init is None:
        return {}
    found, words = {}, {}
    names = {p[1]: p[2] for p in parameters(source, init, cls.name)}

    def note(name, of):
        if isinstance(name, str) and not name.startswith("_"):
            found[name] = union([found[name], of]) if name in found else of

    for node in sorted((n for n in own_nodes(init) if hasattr(n, "lineno")), key=lambda n: (n.lineno, n.col_offset)):
        if isinstance(node, ast.For):
            variable, words_of_it = looped(node)
            words[variable] = words_of_it
        elif isinstance(node, ast.Assign):
            for part, value in assigned(node):
                of = "Any" if value is None else type_of(source, value, names)
                of = "Any" if of == "None" else of
                if isinstance(part, ast.Name):
                    names[part.id] = of
                elif isinstance(part, ast.Attribute) and ast.unparse(part.value) == "self":
                    note(part.attr, union([of, "None"]) if of.endswith("| None") else of)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in REGISTERING:
            registering, of = registered(source, node, names, words)
            for name in registering:
                note(name, of)
    return found


def class_text(source, cls):
    decorators = [ast.unparse(d) for d in cls.decorator_list]
    bases = ", ".join(map(ast.unparse, cls.bases))
    lines, seen = [f"@{d}\n" for d in decorators], set()
    bases = BASES.get(f"{source.short}.{cls.name}", bases)
    if source.short == "_modes" and bases == "_Mode" and not any(isinstance(n, ast.FunctionDef) for n in cls.body):
        bases = "_Plain"
    head = f"class {cls.name}({bases}):" if bases else f"class {cls.name}:"
    body = []
    for node in cls.body:
        if isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_"):
            default = " = ..." if node.value is not None and (decorators or "NamedTuple" in bases) else ""
            body.append(f"    {node.target.id}: {annotation(node.annotation)}{default}\n")
            seen.add(node.target.id)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and not node.targets[0].id.startswith("_"):
            name = node.targets[0].id
            if isinstance(node.value, ast.Name):
                body.append(f"    {name} = {node.value.id}\n")
            else:
                body.append(f"    {name}: {type_of(source, node.value, {})}\n")
            seen.add(name)
    methods = [n for n in cls.body if isinstance(n, ast.FunctionDef)]
    properties = {m.name for m in methods}
    body += [f"    {n}: {of}\n" for n, of in attributes(source, cls).items() if n not in seen | properties]
    aliases = [line for line in body if " = " in line and ":" not in line]
    body = [line for line in body if line not in aliases]
    for method in methods:
        text = TEXTS.get(f"{source.short}.{cls.name}.{method.name}")
        if text is None and (not method.name.startswith("_") or method.name in METHODS or f"{cls.name}.{method.name}" in PROTECTED):
            text = function_text(source, method.name, method, "    ", cls.name, method.decorator_list)
        body.append(text or "")
    body = [line for line in [*body, *aliases, MORE.get(f"{source.short}.{cls.name}", "")] if line]
    return "".join(lines) + (head + "\n" + "".join(body) if body else head + " ...\n")


def value_text(source, name, value, index, annotated):
    """What a module assigns: a class or a function that is made, another name, or a value."""
    if annotated is not None:
        return f"{name}: {ast.unparse(annotated)}\n"
    made = type_call(source, value.elt if isinstance(value, ast.GeneratorExp) else value)
    if made is not None:
        return made_class(source, name, made)
    if maker(value) in source.defs:
        of = source.defs[maker(value)]
        if isinstance(of, ast.FunctionDef) and inner(of) is not None:
            return function_text(source, name, inner(of))
    if ast.unparse(value).startswith("TypeVar("):
        return f"{name} = {ast.unparse(value)}\n"
    if ast.unparse(value).startswith("NamedTuple("):
        fields = [f"    {f.elts[0].value}: {ast.unparse(f.elts[1])}\n" for f in value.args[1].elts]
        return f"class {name}(NamedTuple):\n" + "".join(fields)
    if index is not None and isinstance(value, ast.Tuple):
        value = value.elts[index]
    where, target = resolve(source, value)
    if where == NATIVE and target == name:
        return f"from {relative(source, NATIVE)} import {target} as {name}\n"
    if where is not None:
        return f"{name} = {target}\n"
    return f"{name}: {type_of(source, value, {})}\n"


def definition_text(source, name):
    if f"{source.short}.{name}" in TEXTS:
        return TEXTS[f"{source.short}.{name}"]
    node = source.defs.get(name)
    if isinstance(node, ast.ClassDef):
        return class_text(source, node)
    if node is not None:
        return function_text(source, name, node, decorators=node.decorator_list)
    return value_text(source, name, *source.values[name])
