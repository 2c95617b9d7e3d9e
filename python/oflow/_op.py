"""Ops that a program declares: ``oflow.op``."""

import dataclasses
import inspect
import traceback
import types
import typing

from . import _oflow
from ._errors import ArgumentError
from ._namespace import _function


class SbpHints(typing.NamedTuple):
    """The layouts that a call has and is asked for: what the rules ``nd_infer`` and ``nd_choose`` of an op are given.

    nd-SBPs are texts such as ``"[S(0), B]"``, as in the rows that the rules return.
    """

    mesh: tuple[int, ...]
    """The size of each mesh axis."""
    shapes: list[tuple[int, ...] | None]
    """The logical shape of each input; None for one that was left out."""
    inputs: list[str | None]
    """The present nd-SBP of each input; None for one that was left out."""
    output: str | None
    """The nd-SBP that output 0 is to have in the end, if one is said: by ``with_sbp``, by ``pin_sbp`` or by the tensor that is written."""
    keep: bool
    """Whether inputs are to stay as they are where a signature takes them so (``keep_layouts``)."""


class _Value:
    """A tensor in a gradient rule: what is called on it is noted down, and runs where the gradient is computed."""

    def __init__(self, tape, number, shape=None):
        self._tape, self._number, self._shape = tape, number, shape

    @property
    def shape(self):
        """The logical shape of an input."""
        if self._shape is None:
            raise AttributeError("in a gradient rule the shapes of the inputs are known, and of no other values")
        return tuple(self._shape)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *values, **attrs: self._tape.call(name, (self, *values), attrs)

    def __repr__(self):
        return f"<value {self._number} of a gradient rule>"


def _binary(name, reflected):
    def forward(self, other):
        if isinstance(other, _Value):
            return self._tape.call(name, (self, other), {})
        return self._tape.call(name, (self,), {"s": other})

    def backward(self, other):
        return self._tape.call(reflected, (self,), {"s": other})

    return forward, backward


for _name, _reflected, _slot in (
    ("add", "add", "add"),
    ("sub", "rsub", "sub"),
    ("mul", "mul", "mul"),
    ("div", "rdiv", "truediv"),
    ("pow", "rpow", "pow"),
    ("eq", "eq", "eq"),
    ("ne", "ne", "ne"),
    ("lt", "gt", "lt"),
    ("le", "ge", "le"),
    ("gt", "lt", "gt"),
    ("ge", "le", "ge"),
):
    _forward, _backward = _binary(_name, _reflected)
    setattr(_Value, f"__{_slot}__", _forward)
    if _slot in ("add", "sub", "mul", "truediv", "pow"):
        setattr(_Value, f"__r{_slot}__", _backward)
_Value.__matmul__ = lambda self, other: self._tape.call("matmul", (self, other), {})
_Value.__neg__ = lambda self: self._tape.call("neg", (self,), {})
_Value.__hash__ = object.__hash__


class _Tape:
    """The calls of a gradient rule."""

    def __init__(self, count):
        self.count, self.steps = count, []

    def call(self, name, values, attrs):
        for value in values:
            if not isinstance(value, _Value) or value._tape is not self:
                raise TypeError(f"in a gradient rule {name} takes values of this rule by position, and anything else by name, not {value!r}")
        # None: an optional parameter that is not given.
        given = {name: value for name, value in attrs.items() if value is not None}
        self.steps.append((name, [value._number for value in values], given))
        self.count += 1
        return _Value(self, self.count - 1)


_WORDS = {
    float: "Float",
    int: "Int",
    bool: "Bool",
    str: "String",
    list[float]: "FloatList",
    list[int]: "IntList",
    list[bool]: "BoolList",
    list[str]: "StringList",
}


def _default(value):
    """A default as the text of a function writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(_default(v) for v in value) + "]"
    return repr(value)


def _parameters(params):
    """The fields of a dataclass as parameters of a function."""
    hints, found = typing.get_type_hints(params), []
    for field in dataclasses.fields(params):
        kind, optional = hints[field.name], ""
        if typing.get_origin(kind) in (typing.Union, types.UnionType):
            rest = [k for k in typing.get_args(kind) if k is not type(None)]
            kind, optional = (rest[0], "?") if len(rest) == 1 else (kind, "")
        word = _WORDS.get(kind)
        if word is None:
            known = ", ".join(getattr(k, "__name__", str(k)) if not typing.get_args(k) else str(k) for k in _WORDS)
            raise TypeError(f"the field {field.name} of {params.__name__} is {kind}; fields of parameters are {known}, or one of these or None")
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if optional and default is not None:
            raise TypeError(f"the field {field.name} of {params.__name__} may be None, so its default is None")
        said = default is not dataclasses.MISSING and default is not None
        found.append(f"{word}{optional} {field.name}" + (f"={_default(default)}" if said else ""))
    return found


def _with_parameters(signature, params):
    """The text of a function with the fields of a dataclass behind its tensors, by name only."""
    if not (isinstance(params, type) and dataclasses.is_dataclass(params)):
        raise TypeError(f"params must be a dataclass, not {params!r}")
    head, arrow, returned = signature.rpartition("->")
    tensors, close, _ = head.rpartition(")")
    if not arrow or not close or "*" in tensors:
        raise ValueError(f"with params, write the tensors only: 'leaky(Tensor x) -> Tensor', not {signature!r}")
    return f"{tensors.rstrip()}, *, {', '.join(_parameters(params))}) ->{returned}"


def _object(params, attrs):
    """The attributes of a call as an object of the dataclass."""
    return params(**{name: list(value) if isinstance(value, tuple) else value for name, value in attrs.items()})


def _plan(gradient, name, params):
    """The rule as ``_oflow`` calls it: from what is given to the calls and the gradients of the inputs."""

    def plan(given, shapes, attrs):
        tape = _Tape(len(given) + len(shapes))
        dys = [_Value(tape, i) if there else None for i, there in enumerate(given)]
        inputs = [None if shape is None else _Value(tape, len(given) + i, shape) for i, shape in enumerate(shapes)]
        result = gradient(*dys, *inputs, **attrs) if params is None else gradient(*dys, *inputs, _object(params, attrs))
        result = result if isinstance(result, (tuple, list)) else (result,)
        if len(result) != len(shapes):
            raise ValueError(f"the gradient of {name} returned {len(result)} gradients for {len(shapes)} inputs")
        for value in result:
            if value is not None and not isinstance(value, _Value):
                raise TypeError(f"the gradient of {name} returned {value!r}; it returns values of the rule, or None")
        return tape.steps, [None if value is None else value._number for value in result]

    return plan


def _rows(said):
    """A list of texts; one may stand alone."""
    return [said] if isinstance(said, str) else list(said or ())


def _by_hints(function, rule, name, params, returns):
    """A rule as ``_oflow`` calls it. What it raises, and a wrong type of what it returns, is an error that names the op, the rule and the line."""

    def told(*hints_and_attrs):
        *hints, attrs = hints_and_attrs
        try:
            found = function(SbpHints(*hints), attrs if params is None else _object(params, attrs))
        except Exception as e:
            last = traceback.extract_tb(e.__traceback__)[-1]
            raise ArgumentError(f"`{rule}` of op {name} raised {type(e).__name__}: {e} ({last.filename}:{last.lineno})") from e
        rows = found if rule == "nd_infer" else [] if found is None else [found]
        if not isinstance(rows, (list, tuple)) or not all(isinstance(row, str) for row in rows):
            raise ArgumentError(f"`{rule}` of op {name} returned {found!r}; it returns {returns}")
        return list(rows)

    return told


def op(
    signature: str,
    *,
    expression=None,
    kernel=None,
    domain="user",
    inputs=None,
    shape=None,
    dtype=None,
    factors=None,
    sbp=None,
    linear=None,
    nd_infer=None,
    nd_extra=None,
    nd_valid=None,
    nd_choose=None,
    params: type | None = None,
    gradient=None,
    samples=(),
    doc=None,
) -> typing.Callable[..., typing.Any]:
    """Declares an op and returns its function, which is also ``oflow.<domain>.<name>``.

    ``signature`` is the text of the function: ``"leaky(Tensor x, *, Float alpha=0.01) -> Tensor"``. Then either

    - ``expression``: a scalar expression of the tensors and numbers, as ``"select(x >= 0, x, alpha * x)"``. Shapes broadcast, dtypes
      promote; kernels, SBP signatures and the gradient follow from it;
    - or ``kernel(inputs, outputs, attrs)``: a function that reads a list of NumPy arrays, the shards of this rank, writes a list of arrays
      and is given the other arguments as a dict.

    Of an op with a kernel further parts say

    - ``shape(shapes, attrs)``: the shape of the output, or a list of one for each output; without it that of the first input;
    - ``dtype``: ``"promote"``, ``"promote_float"``, ``"same"`` (as the first input), or dtypes; ``inputs``: which dtypes it takes
      (``"float"``, ``"int"``, ``"num"``, ``"any"``, ``"f32|f64"``);
    - ``factors``, as ``"mn, m -> mn"``, or ``sbp``, a list of rows such as ``"S0, B -> S0"``: how it may be sharded; without it every
      rank computes all of it. ``linear``: the inputs in which every output is linear, which may be partial sums;
    - ``nd_extra``, a list of rows such as ``"[S(0), S(1)] -> [S(0), S(1)]"``: signatures over all axes of a mesh together, beside the
      products of those of one axis; ``nd_infer``: in their place; ``nd_valid``: which of all hold, as patterns with ``*``: a row such as
      ``"not [S(0), S(1)] -> *"`` forbids what it matches;
    - ``nd_infer(hints, attrs)`` as a function returns such rows for a call, from the layouts that it has and is asked for
      (``SbpHints``), and ``nd_choose(hints, attrs)`` returns the row that the call takes, one of its signatures, or None to leave the
      choice to the costs. Both return the same on every rank;
    - ``gradient(dy, x, ..., **attrs)``: the gradients of the inputs, from those of the outputs (None for one that nothing depends on) and
      the inputs. Functions and operators on these values are noted down and run in backward: tensors are given by position, anything
      else by name;
    - ``params``: a dataclass whose fields are the parameters besides the tensors, so that an op and its gradient op share them:
      ``op("leaky(Tensor x) -> Tensor", params=Leaky, ...)``. ``kernel`` and ``shape`` are given an object of it in the place of the dict,
      and ``gradient`` as its last argument. Call the op with ``**dataclasses.asdict(Leaky(alpha=0.5))``;
    - ``samples``: calls for ``oflow.testing.conformance``, as ``"f32[4, 6] f32[4]; alpha=0.5"``.
    """
    if (expression is None) == (kernel is None):
        raise TypeError("op() takes an expression or a kernel")
    for what, function in (("kernel", kernel), ("shape", shape), ("gradient", gradient), ("nd_choose", nd_choose)):
        if function is not None and not callable(function):
            raise TypeError(f"{what} must be a function, not {type(function).__name__}")
    if expression is not None:
        derived = [n for n, v in (("shape", shape), ("dtype", dtype), ("factors", factors), ("linear", linear)) if v is not None]
        if derived:
            raise TypeError(f"of an op with an expression these follow from it: {', '.join(derived)}")
    if params is not None:
        signature = _with_parameters(signature, params)
        run, rule = kernel, shape
        kernel = run and (lambda inputs, outputs, attrs: run(inputs, outputs, _object(params, attrs)))
        shape = rule and (lambda shapes, attrs: rule(shapes, _object(params, attrs)))
        doc = doc or (inspect.getdoc(run) if run is not None else None)
    name = f"{domain}.{signature.split('(')[0].strip()}"
    said = {
        "expression": expression,
        "kernel": kernel,
        "domain": domain,
        "inputs": inputs,
        "shape": shape,
        "dtype": dtype,
        "factors": factors,
        "signatures": _rows(sbp),
        "linear": _rows(linear),
        "nd_infer": [] if callable(nd_infer) else _rows(nd_infer),
        "nd_infer_rule": _by_hints(nd_infer, "nd_infer", name, params, "a list of rows as text") if callable(nd_infer) else None,
        "nd_extra": _rows(nd_extra),
        "nd_valid": _rows(nd_valid),
        "nd_choose": None if nd_choose is None else _by_hints(nd_choose, "nd_choose", name, params, "a row as text, or None"),
        "gradient": None if gradient is None else _plan(gradient, signature.split("(")[0].strip(), params),
        "samples": _rows(samples),
        "doc": doc or (inspect.getdoc(kernel) if kernel is not None else None),
    }
    return _function(_oflow._register_op(signature, said))
