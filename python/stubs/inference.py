"""Types of values, of parameters and of results."""

import ast

from sources import NATIVE, Source, definition, resolve
from tables import BASES, KNOWN, METHODS, OF_TENSORS, PARAMETERS, RESULTS, TENSORS, WIDER


def union(types):
    """One of these types. What may also be None is not checked for it: most programs know which it is."""
    types = [part for t in types for part in t.split(" | ")]
    found = list(dict.fromkeys("Any" if t == "None" and len(set(types)) > 1 else t for t in types))
    return "Any" if found[0] == "Any" and len(found) == 1 else " | ".join(sorted(found, key=lambda t: t == "Any"))


def type_of(source, expr, names):
    """The type that an expression shows, with the types of names; `Any` if it shows none."""
    if isinstance(expr, ast.Constant):
        return "None" if expr.value is None else type(expr.value).__name__
    if isinstance(expr, ast.Name):
        return names.get(expr.id, "Any")
    if isinstance(expr, ast.JoinedStr):
        return "str"
    if isinstance(expr, ast.Compare) or (isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not)):
        return "bool"
    if isinstance(expr, ast.UnaryOp):
        return type_of(source, expr.operand, names)
    if isinstance(expr, ast.IfExp):
        return union([type_of(source, expr.body, names), type_of(source, expr.orelse, names)])
    if isinstance(expr, ast.BinOp):
        sides = {type_of(source, expr.left, names), type_of(source, expr.right, names)}
        if sides <= {"int", "float"}:
            return "float" if isinstance(expr.op, ast.Div) or sides != {"int"} else "int"
        return sides.pop() if len(sides) == 1 else "Any"
    if isinstance(expr, (ast.List, ast.ListComp)):
        return "list[Any]"
    if isinstance(expr, (ast.Dict, ast.DictComp)):
        return "dict[str, Any]"
    if isinstance(expr, ast.Attribute) and ast.unparse(expr) in ("math.e", "math.pi", "math.inf", "math.nan"):
        return "float"
    if isinstance(expr, ast.Call):
        if isinstance(expr.func, ast.Name) and expr.func.id in ("bool", "float", "int", "str"):
            return expr.func.id
        if isinstance(expr.func, ast.Name) and expr.func.id in ("list", "tuple", "sorted"):
            return "tuple[Any, ...]" if expr.func.id == "tuple" else "list[Any]"
        where, found = definition(source, expr.func)
        if isinstance(found, ast.ClassDef):
            arguments = "[..., Any]" if f"{where.short}.{found.name}" in BASES else ""
            return (expr.func.id if isinstance(expr.func, ast.Name) else found.name) + arguments
        if isinstance(found, ast.FunctionDef):
            return result(where, found, found.name)
        where, name = resolve(source, expr.func)
        if where == NATIVE and name in KNOWN:
            return name
    return "Any"


def default_type(source, name, default, tensors):
    """The type of a parameter without annotation."""
    none = isinstance(default, ast.Constant) and default.value is None
    if default is None or none:
        base = PARAMETERS.get(name) or ("Tensor" if tensors and name in TENSORS else "Any")
        return f"{base} | None" if none and base != "Any" else base
    if name in WIDER:
        return WIDER[name]
    found = type_of(source, default, {})
    return found if found in ("bool", "float", "int", "str") else "Any"


class _Unquoted(ast.NodeTransformer):
    """A stub may name what is defined behind it."""

    def visit_Constant(self, node):
        return ast.parse(node.value, mode="eval").body if isinstance(node.value, str) else node


def annotation(node):
    """An annotation of a source as a stub writes it."""
    return "Any" if node is None else ast.unparse(_Unquoted().visit(node))


def takes_tensors(source, owner, name):
    """Whether the names of tensors are those of tensors here: in functions as PyTorch's, and in the calls of modules."""
    return source.name.startswith(("oflow.nn", "oflow._pytorch_forms")) and (owner is None or name in ("forward", "__init__"))


def parameters(source, function, owner=None, *, drop=(), name=None):
    """The parameters of a function as [(kind, name, type, default)]; kinds are those of `inspect`, in its words."""
    args, found = function.args, []
    tensors = takes_tensors(source, owner, name or function.name)
    # `value` is a tensor beside `query` and `key`.
    attends = any(a.arg == "query" for a in args.args)
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults

    def typed(arg, default):
        if arg.annotation is not None:
            return annotation(arg.annotation)
        if attends and arg.arg in ("key", "value"):
            return "Tensor"
        return default_type(source, arg.arg, default, tensors)

    for i, (arg, default) in enumerate(zip(positional, defaults)):
        kind = "only" if i < len(args.posonlyargs) else "either"
        found.append((kind, arg.arg, typed(arg, default), default))
    if args.vararg:
        found.append(("*", args.vararg.arg, annotation(args.vararg.annotation), None))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults):
        found.append(("named", arg.arg, typed(arg, default), default))
    if args.kwarg:
        found.append(("**", args.kwarg.arg, annotation(args.kwarg.annotation), None))
    return [p for p in found if p[1] not in drop]


def written(params, first=None):
    """Parameters as text, behind `self` or `cls`."""
    parts, named, only = [first] if first else [], False, False
    for kind, name, of, default in params:
        if only and kind != "only":
            parts.append("/")
            only = False
        if kind == "only":
            only = True
        if kind == "named" and not named:
            parts.append("*")
        named = named or kind in ("named", "*")
        text = f"{'*' * len(kind) if kind in ('*', '**') else ''}{name}: {of}"
        if default is not None:
            plain = isinstance(default, ast.Constant) or (isinstance(default, ast.UnaryOp) and isinstance(default.operand, ast.Constant))
            text += f" = {ast.unparse(default) if plain else '...'}"
        parts.append(text)
    if only:
        parts.append("/")
    return ", ".join(parts)


def own_nodes(function):
    """The nodes of a function without those of functions inside."""
    todo = list(function.body)
    while todo:
        node = todo.pop()
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            yield node
            todo.extend(ast.iter_child_nodes(node))


def result(source, function, name, owner=None):
    """The type that a function returns."""
    full = f"{owner}.{name}" if owner else name
    if function.returns is not None:
        return annotation(function.returns)
    if full in RESULTS or name in METHODS:
        return RESULTS.get(full) or METHODS[name]
    nodes = list(own_nodes(function))
    returns = [n for n in nodes if isinstance(n, ast.Return) and n.value is not None]
    body = [n for n in function.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes) or (len(body) == 1 and isinstance(body[0], ast.Raise)):
        return "Any"
    if name == "forward" or (owner is None and source.name in OF_TENSORS):
        return "Tensor"
    if not returns:
        return "None"
    if all(isinstance(r.value, ast.Name) and r.value.id == "self" for r in returns):
        return "Self"
    known = {p[1]: p[2] for p in parameters(source, function, owner)}
    return union([type_of(source, r.value, known) for r in returns])
