"""Functions of functions: derivatives of functions of tensors, as in ``torch.func``.

    step = oflow.func.grad(lambda weights, x: (x @ weights).square().mean())
    dw = step(weights, x)

Arguments and results are tensors, and tuples, lists and dicts of them. All derivatives are made by backward: ``jvp``, ``jacfwd`` and what
is built of them differentiate a backward, so the calls inside need gradients of their gradients. ``vmap`` calls its function once for each
slice: it saves writing a loop, not the time of one. All functions take global tensors.

A function that writes into an argument writes into a copy. A result requires a gradient only if an argument does, or a tensor that the function uses without being given it, such as a parameter.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import oflow

from . import _oflow
from ._core import named
from ._differentiate import check_all_tensors, columns, given, linearized, pulled, rows, taken, zeros_for
from ._modes import name_scope, watch_calls
from ._oflow import Tensor

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]

_SCOPE = "func()"
_thread = threading.local()


class _Outside:
    """Finds out whether calls use a tensor that requires a gradient and is from outside of the function that is differentiated: a leaf, or
    the result of a call outside of the scope. Results of the function then keep their graphs."""

    def __init__(self):
        self.found, self.making = False, False

    def __call__(self, call):
        if self.found or self.making or not oflow.is_grad_enabled():
            return
        for x in call.inputs:
            if x is not None and x.requires_grad and (x.is_leaf or not _is_inside(x)):
                self.found = True
                return


def _is_inside(x):
    return _SCOPE in (x.grad_fn or "").rpartition(" in ")[2]


class _Run:
    """A function that is called with variables in the place of some tensors."""

    def __init__(self, who, function, structure, tensors, more):
        for x in tensors:
            if not (x.dtype.is_floating_point or x.dtype.is_complex):
                raise TypeError(f"{who}: expected tensors of floating point or complex numbers to differentiate by, got {x.dtype}")
        # The function inside of another one is differentiated together with that one.
        outer = getattr(_thread, "watch", None)
        wanted = oflow.is_grad_enabled()
        self.keep = wanted and (outer is not None or any(x.requires_grad for x in (*tensors, *more)))
        watch = outer or _Outside()
        with oflow.enable_grad(), name_scope(_SCOPE):
            self.variables, given_to_it = _variables(tensors, wanted, watch)
            _thread.watch = watch
            try:
                if outer is not None or self.keep or not wanted:
                    self.result = function(given(structure, given_to_it))
                else:
                    with watch_calls(watch):
                        self.result = function(given(structure, given_to_it))
            finally:
                _thread.watch = outer
        self.keep = self.keep or (wanted and watch.found)

    def out(self, value):
        """A result for the program: part of its graph, or of none."""
        structure, tensors = taken(value)
        # What leaves the scope was made outside of it.
        return given(structure, [t.view_as(t) if self.keep and t.requires_grad else t.detach() if t.requires_grad else t for t in tensors])


def _variables(tensors, wanted, watch):
    """Tensors of the same values that the function is differentiated by, and those that it is given: copies, which it may write into."""
    before, watch.making = watch.making, True
    try:
        made = [x.view_as(x) if x.requires_grad and wanted else x.detach().requires_grad_() for x in tensors]
        return made, [x.clone() for x in made]
    finally:
        watch.making = before


def _chosen(who, argnums, args):
    """The numbers of arguments, counted from the first one."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not numbers:
        raise RuntimeError(f"{who}: argnums is empty: name an argument by its number")
    for n in numbers:
        if not isinstance(n, int) or not -len(args) <= n < len(args):
            raise RuntimeError(f"{who}: argnums has {n!r}, but there are {len(args)} arguments by position")
    numbers = tuple(n % len(args) for n in numbers)
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"{who}: argnums {argnums!r} names an argument twice")
    return numbers


def _started(who, function, argnums, has_aux, args, kwargs):
    """Calls a function with variables for the chosen arguments: the run, their structure, the outputs and what else was returned."""
    numbers = _chosen(who, argnums, args)
    picked = args[numbers[0]] if isinstance(argnums, int) else tuple(args[n] for n in numbers)
    structure, tensors = taken(picked)
    check_all_tensors(structure, who, f"argument {argnums}")
    others = taken(([a for n, a in enumerate(args) if n not in numbers], kwargs))[1]

    def call(values):
        now = list(args)
        for n, value in zip(numbers, (values,) if isinstance(argnums, int) else values):
            now[n] = value
        return function(*now, **kwargs)

    run = _Run(who, call, structure, tensors, others)
    result, aux = _with_aux(who, run.result, has_aux)
    return run, structure, result, aux


def _with_aux(who, result, has_aux):
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f"{who}: with has_aux the function returns a tuple (output, aux), not a {type(result).__name__}")
    return result


def grad_and_value(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that returns the gradient of ``func``, which returns a single number, and that number.

    ``argnums`` says by which arguments; several give a tuple. With ``has_aux`` ``func`` returns ``(output, aux)``, and the new function
    ``(gradient, (output, aux))``.
    """

    def grad_and_value_of(*args, **kwargs):
        run, structure, value, aux = _started("grad", func, argnums, has_aux, args, kwargs)
        if not isinstance(value, Tensor) or value.ndim:
            what = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
            raise RuntimeError(f"grad: expected a function that returns a tensor of one number and no dims, got {what}")
        found = zeros_for(pulled([value], run.variables, [oflow.ones_like(value)], run.keep, False), run.variables)
        found = given(structure, found)
        return found, (run.out(value), run.out(aux)) if has_aux else run.out(value)

    return grad_and_value_of


def grad(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that returns the gradient of ``func``, which returns a single number; ``(gradient, aux)`` with ``has_aux``."""
    both = grad_and_value(func, argnums, has_aux)

    def grad_of(*args, **kwargs):
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return grad_of


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The output of ``func`` for these arguments, and the function that pulls cotangents of the output back to the arguments; with
    ``has_aux`` also what ``func`` returned beside the output."""
    run, _, output, aux = _started("vjp", func, tuple(range(len(primals))), has_aux, primals, {})
    structure, outputs = taken(output)
    check_all_tensors(structure, "vjp", "a function whose output is")
    structures = [taken(p)[0] for p in primals]
    counts = [len(taken(p)[1]) for p in primals]

    def pull(cotangents, retain_graph=True, create_graph=None):
        shape, vectors = taken(cotangents)
        if shape != structure and not (len(outputs) == len(vectors) == 1):
            raise RuntimeError("vjp: the cotangents have another structure than the output")
        _check_shapes("vjp", "cotangent", vectors, outputs)
        follow = getattr(_thread, "watch", None) is not None or run.keep or any(v.requires_grad for v in vectors)
        create_graph = (follow and oflow.is_grad_enabled()) if create_graph is None else create_graph
        found = zeros_for(pulled(outputs, run.variables, vectors, create_graph, retain_graph), run.variables)
        parts = []
        for part, count in zip(structures, counts):
            parts.append(given(part, found[:count]))
            found = found[count:]
        return tuple(parts) if len(parts) > 1 else parts[0]

    return (run.out(output), pull, run.out(aux)) if has_aux else (run.out(output), pull)


def _check_shapes(who, what, vectors, tensors):
    if len(vectors) != len(tensors):
        raise RuntimeError(f"{who}: expected {len(tensors)} {what}s, got {len(vectors)}")
    for v, x in zip(vectors, tensors):
        if tuple(v.shape) != tuple(x.shape):
            raise RuntimeError(f"{who}: expected a {what} of shape {tuple(x.shape)}, got {tuple(v.shape)}")


def _pushing(who, func, primals, has_aux):
    """The run of a function at a point, its outputs, and the function that pushes tangents forward."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{who}: expected a tuple of arguments, got a {type(primals).__name__}")
    run, structure, output, aux = _started(who, func, tuple(range(len(primals))), has_aux, primals, {})
    shape, outputs = taken(output)
    check_all_tensors(shape, who, "a function whose output is")
    push = linearized(outputs, run.variables)

    def pushed(tangents, keep):
        of, vectors = taken(tuple(tangents))
        if of != structure:
            raise RuntimeError(f"{who}: the tangents have another structure than the arguments")
        _check_shapes(who, "tangent", vectors, run.variables)
        return given(shape, zeros_for(push(vectors, keep), outputs))

    return run, output, aux, pushed


def jvp(
    func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """The output of ``func`` at ``primals``, and its derivative in the direction of ``tangents``; both are tuples. With ``has_aux`` also
    what ``func`` returned beside the output."""
    run, output, aux, pushed = _pushing("jvp", func, primals, has_aux)
    keep = run.keep or (oflow.is_grad_enabled() and any(v.requires_grad for v in taken(tangents)[1]))
    moved = pushed(tangents, keep)
    if strict and any(not y.requires_grad for y in taken(output)[1]):
        raise RuntimeError("jvp: an output does not depend on the arguments, which strict=True refuses")
    return (run.out(output), moved, run.out(aux)) if has_aux else (run.out(output), moved)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output of ``func`` for these arguments, and the function of tangents that is its derivative there: many directions, one call of
    ``func``."""
    run, output, _, pushed = _pushing("linearize", func, primals, False)
    return run.out(output), lambda *tangents: pushed(tangents, run.keep)


def _jacobian(who, func, argnums, has_aux, by_column):
    def jacobian_of(*args, **kwargs):
        run, structure, output, aux = _started(who, func, argnums, has_aux, args, kwargs)
        shape, outputs = taken(output)
        check_all_tensors(shape, who, "a function whose output is")
        if by_column:
            parts = columns(outputs, run.variables, run.keep)
        else:
            parts = [rows(y, run.variables, run.keep) for y in outputs]
        # For each output the structure of the arguments.
        found = _nested(shape, iter([given(structure, part) for part in parts]))
        return (found, run.out(aux)) if has_aux else found

    return jacobian_of


def _nested(shape, values):
    """A structure with any values in the place of its tensors."""
    kind, inside = shape
    if kind == "tensor":
        return next(values)
    if kind is dict:
        return {k: _nested(v, values) for k, v in inside}
    members = [_nested(v, values) for v in inside]
    return kind(*members) if hasattr(kind, "_fields") else kind(members)


def jacrev(func: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Callable[..., Any]:
    """The function that returns the Jacobian of ``func``, ``[*output, *argument]``, one backward for each element of the output.

    Outputs and arguments that are tuples, lists or dicts give these of Jacobians, the outputs outside. ``chunk_size`` changes nothing:
    rows are made one after another.
    """
    return _jacobian("jacrev", func, argnums, has_aux, False)


def jacfwd(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable[..., Any]:
    """``jacrev`` with one backward for each element of the arguments: less work where these have fewer elements than the output.
    ``randomness`` changes nothing: ``func`` is called once."""
    return _jacobian("jacfwd", func, argnums, has_aux, True)


def hessian(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """The function that returns the second derivatives of ``func``, ``[*output, *argument, *argument]``."""
    return jacrev(jacrev(func, argnums), argnums)


def _mapped(who, dims, value):
    """The dims of all tensors of a value: ``dims`` is a number, None, or a structure in which these stand for whole parts."""
    structure, tensors = taken(value)
    if dims is None or isinstance(dims, int):
        return [dims] * len(tensors)
    parts = list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, (tuple, list)) else None
    inside = list(dims.values()) if isinstance(dims, dict) else list(dims)
    if parts is None or len(parts) != len(inside) or isinstance(value, dict) != isinstance(dims, dict):
        raise ValueError(f"{who}: in_dims {dims!r} has another structure than the arguments")
    if isinstance(dims, dict):
        inside = [dims[k] for k in value]
    return [d for of, part in zip(inside, parts) for d in _mapped(who, of, part)]


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that calls ``func`` for each slice of its arguments and stacks the results.

    ``in_dims`` says along which dim each argument is sliced, None for one that is given whole; ``out_dims`` where the results are stacked.
    The calls are made one after another. ``randomness`` says what they draw from the random numbers of the rank: an error by default,
    numbers of its own in each call with ``"different"``, the same numbers in all calls with ``"same"``. A ``Generator`` that a call is given
    draws anew in each. ``chunk_size`` changes nothing.
    """
    if randomness not in ("error", "different", "same"):
        raise ValueError(f'vmap: randomness is "error", "different" or "same", not {randomness!r}')

    def mapped(*args, **kwargs):
        if not args:
            raise ValueError("vmap: the function got no argument by position, so nothing is sliced")
        if isinstance(in_dims, (tuple, list)) and len(in_dims) != len(args):
            raise ValueError(f"vmap: in_dims has {len(in_dims)} entries for {len(args)} arguments")
        structure, tensors = taken((args, kwargs))
        dims = _mapped("vmap", in_dims, args)
        dims += [0] * (len(tensors) - len(dims))
        sizes = set()
        for x, dim in zip(tensors, dims):
            if dim is not None:
                if not -x.ndim <= dim < x.ndim:
                    raise ValueError(f"vmap: in_dims has {dim} for a tensor of {x.ndim} dims")
                sizes.add(x.shape[dim])
        if len(sizes) != 1:
            raise ValueError("vmap: nothing is sliced" if not sizes else f"vmap: the sliced dims have different sizes: {sorted(sizes)}")
        (size,) = sizes
        if size == 0:
            raise ValueError("vmap: the sliced dims have no elements, so the shape of the result is unknown")
        shape, slices = None, []
        start = _oflow._generators()
        for i in range(size):
            now, kw = given(structure, [x if d is None else x.select(d, i) for x, d in zip(tensors, dims)])
            if randomness == "same" and i > 0 and _oflow._generators() != start:
                _oflow._set_generators(*start)
            result = func(*now, **kw)
            if randomness == "error" and _oflow._generators() != start:
                raise RuntimeError(
                    f'vmap: {getattr(func, "__name__", "the function")} drew random numbers: say randomness="different" for numbers of its '
                    'own in each call, or randomness="same" for the same numbers in all calls'
                )
            of, parts = taken(result)
            check_all_tensors(of, "vmap", "a function whose results are")
            if shape is not None and of != shape:
                raise ValueError("vmap: the function returned results of different structures")
            shape = of
            slices.append(parts)
        outs = _mapped("vmap", out_dims, result) if isinstance(result, (tuple, list, dict)) else [_one(out_dims)]
        if any(d is None for d in outs):
            raise ValueError("vmap: results are stacked along a dim: out_dims has no None")
        return given(shape, [oflow.stack(list(column), dim) for column, dim in zip(zip(*slices), outs)])

    return mapped


def _one(dims):
    return dims[0] if isinstance(dims, (tuple, list)) and len(dims) == 1 else dims


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other tensors in the place of its parameters and buffers, which are there again afterwards.

    Names are dotted. A parameter that the module has under several names is replaced under all of them, unless ``tie_weights`` is false.
    With ``strict`` every parameter and buffer has to be given. What the module writes in place is written into the given tensors.
    """
    dicts = [parameter_and_buffer_dicts] if hasattr(parameter_and_buffer_dicts, "items") else list(parameter_and_buffer_dicts)
    new: dict[str, Tensor] = {}
    for d in dicts:
        for name, tensor in d.items():
            if name in new:
                raise ValueError(f"functional_call: '{name}' is given twice")
            if not isinstance(tensor, Tensor):
                raise TypeError(f"functional_call: '{name}' is a {named(tensor)}, not a Tensor")
            new[name] = tensor
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    places, by_id = {}, {}
    for table in ("_parameters", "_buffers"):
        for owner, own, dotted in _all_slots(module, table):
            slot = (getattr(owner, table), own)
            places[dotted] = slot
            by_id.setdefault(id(slot[0][own]), []).append(dotted)
    unknown = [name for name in new if name not in places]
    if unknown and strict:
        raise RuntimeError(f"functional_call: the module has no parameter or buffer {', '.join(map(repr, unknown))}")
    values = {name: tensor for name, tensor in new.items() if name in places}
    if tie_weights:
        for names in by_id.values():
            told = [n for n in names if n in values]
            if len({id(values[n]) for n in told}) > 1:
                raise ValueError(f"functional_call: {', '.join(map(repr, told))} are one tensor of the module, but different ones are given")
            for n in names if told else ():
                values[n] = values[told[0]]
    missing = [name for name in places if name not in values]
    if strict and missing:
        raise RuntimeError(f"functional_call: strict, and nothing is given for {', '.join(map(repr, missing))}")
    old = {name: places[name][0][places[name][1]] for name in values}
    try:
        for name, tensor in values.items():
            table, own = places[name]
            table[own] = tensor
        return module(*args, **(kwargs or {}))
    finally:
        for name, tensor in old.items():
            table, own = places[name]
            table[own] = tensor


def _all_slots(module, table, prefix="", above=()):
    """Every place of a tensor under every dotted name: a part that is there twice comes twice."""
    for own, tensor in getattr(module, table).items():
        if tensor is not None:
            yield module, own, prefix + own
    for name, part in module._modules.items():
        if part is not None and part not in above:
            yield from _all_slots(part, table, f"{prefix}{name}.", (*above, module))


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of modules of one structure, each stacked along a new first dim, for ``vmap`` over models."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: expected at least one module, got none")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: the modules are of different classes")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: some modules are in training mode and some are not")
    made = []
    for of in ("named_parameters", "named_buffers"):
        each = [dict(getattr(m, of)()) for m in models]
        one = {}
        for name in each[0]:
            tensors = [d[name] for d in each]
            trained = of == "named_parameters" and tensors[0].requires_grad
            one[name] = oflow.stack([t.detach() for t in tensors]).requires_grad_(trained)
        made.append(one)
    return made[0], made[1]
