"""What the sources do not say: types by the names of parameters, results, and definitions that a type checker needs in other words."""

# Parameters without a default, or with the default None, whose name says what they are.
PARAMETERS = {
    "device": "device | str",
    "foreach": "bool",
    "fused": "bool",
    "generator": "Generator",
    "module": "Module",
    "optimizer": "Optimizer",
    # A narrower type would be wrong of what a checker knows of lists of dicts, and of `filter`.
    "params": "Iterable[Any]",
    "placement": "placement",
    "parameters": "Tensor | Iterable[Tensor]",
    **dict.fromkeys(
        "d_model embed_dim embedding_dim heads hidden hidden_size in1_features in2_features in_channels in_features input_size nhead "
        "num_channels num_classes num_embeddings num_features num_groups num_heads num_layers out_channels out_features width".split(),
        "int",
    ),
}
# The same, in the functions and the calls of modules of `oflow.nn`: tensors.
TENSORS = set(
    "anchor attn_mask bias cos grid indices input input1 input2 key_padding_mask linear_bias linear_weight log_probs logits memory "
    "memory_key_padding_mask memory_mask mask negative offsets per_sample_weights pos_weight positive query running_mean running_var sin "
    "src src_key_padding_mask src_mask target tensor tgt tgt_key_padding_mask tgt_mask theta weight x x1 x2".split()
)
# Parameters whose default is of a narrower type than what may be given.
WIDER = {
    "base_momentum": "float | Sequence[float]",
    "betas": "tuple[float | Tensor, float | Tensor]",
    "dilation": "Any",
    "lr": "float | Tensor",
    "max_momentum": "float | Sequence[float]",
    "min_lr": "float | Sequence[float]",
    "momentum": "Any",
    "output_padding": "Any",
    "padding": "Any",
    "stride": "Any",
}
# Modules whose functions return a tensor.
OF_TENSORS = {f"oflow.nn.{m}" for m in "functional dropping init linear_cross_entropy losses multihead pools tables".split()}
# What other functions, and the calls of modules, return.
RESULTS = {
    "multi_head_attention_forward": "tuple[Tensor, Tensor | Any]",
    "MultiheadAttention.forward": "tuple[Tensor, Tensor | Any]",
    "LSTM.forward": "tuple[Tensor, tuple[Tensor, Tensor]]",
    "GRU.forward": "tuple[Tensor, Tensor]",
    "RNN.forward": "tuple[Tensor, Tensor]",
    "LSTMCell.forward": "tuple[Tensor, Tensor]",
    "Transformer.generate_square_subsequent_mask": "Tensor",
    **{f"Module.{m}": "Self" for m in ("bfloat16", "cpu", "cuda", "double", "float", "half", "to")},
}
METHODS = {
    "extra_repr": "str",
    "__init__": "None",
    "__new__": "Self",
    "__call__": "Any",
    "__enter__": "Self",
    "__exit__": "None",
    "__len__": "int",
    "__iter__": "Any",
    "__getitem__": "Any",
    "__setitem__": "None",
    "__delitem__": "None",
    "__contains__": "bool",
    "__getattr__": "Any",
    "__setattr__": "None",
    "__get__": "Any",
}
# Methods with an underscore that subclasses may define.
PROTECTED = {"Module._save_to_state_dict", "Module._load_from_state_dict"}
# A subclass takes other arguments than its base.
OTHER_ARGUMENTS = {"ChainedScheduler.step", "LBFGS.step", "ReduceLROnPlateau.step", "SequentialLR.step"}

# Names that stubs use and sources do not import.
KNOWN = {
    **dict.fromkeys(("IO", "Any", "Generic", "Literal", "NamedTuple", "ParamSpec", "Protocol", "TypeVar", "overload"), "typing"),
    **dict.fromkeys(("Callable", "Iterable", "Iterator", "Mapping", "Sequence"), "collections.abc"),
    "Self": "typing_extensions",
    **dict.fromkeys(("Generator", "Tensor", "device", "dtype", "placement", "Sbp"), "oflow._oflow"),
    "Module": "oflow.nn.module",
    "Parameter": "oflow.nn.parameter",
    "Optimizer": "oflow.optim.optimizer",
}

# Text in the place of a definition, or of a method.
TEXTS = {
    # `no_grad()` is a mode, `no_grad(function)` the function.
    "_modes._Mode": """\
class _Mode:
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def __call__(self, function: _F) -> _F: ...

class _Plain(_Mode):
    @overload
    def __new__(cls, function: _F, /) -> _F: ...  # type: ignore[misc]
    @overload
    def __new__(cls) -> Self: ...
""",
    "_modes.inference_mode": """\
class inference_mode(_Mode):
    @overload
    def __new__(cls, mode: _F) -> _F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
""",
    "_modes.autocast": """\
class autocast(_Mode):
    @overload
    def __new__(cls, dtype: _F) -> _F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, device_type: Any = ..., dtype: Any = ..., enabled: bool = True, cache_enabled: bool | None = None) -> Self: ...
""",
    "_modes.name_scope": """\
class name_scope(_Mode):
    def __init__(self, value: str) -> None: ...
""",
    "_modes.span": """\
class span(_Mode):
    def __init__(self, value: str) -> None: ...
""",
    "_modes.set_grad_enabled.__call__": "    def __call__(self, function: _F) -> _F: ...\n",
    # A module is called as its `forward` is.
    "nn.module.Module.__call__": """\
    def __call__(self: _HasForward[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
""",
    # Subclasses say which gradients.
    "autograd.function.Function.backward": """\
    @staticmethod
    def backward(ctx: Any, *grads: Any, **_: Any) -> Any: ...
""",
    "_graph.Graph.__init__": """\
    def __init__(
        self, function: Callable[_P, _R], *, passes: bool | dict[str, bool] = True, memory: int | str = "cheap", variables: Iterable[Tensor] = ()
    ) -> None: ...
""",
    "_graph.Graph.__call__": """\
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
""",
    "_graph.Graph.__get__": """\
    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[..., _R]: ...
""",
    # A step, or a tensor.
    "metrics.log": """\
@overload
def log(step: int, values: Mapping[str, Any] | None = None, /, **named: Any) -> None: ...
@overload
def log(x: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
""",
    "_graph.graph": """\
@overload
def graph(
    function: Callable[_P, _R], *, passes: bool | dict[str, bool] = True, memory: int | str = "cheap", variables: Iterable[Tensor] = ()
) -> Graph[_P, _R]: ...
@overload
def graph(
    function: None = None, *, passes: bool | dict[str, bool] = True, memory: int | str = "cheap", variables: Iterable[Tensor] = ()
) -> Callable[[Callable[_P, _R]], Graph[_P, _R]]: ...
""",
    "special.__getattr__": "def __getattr__(name: str) -> Callable[..., Tensor]: ...\n",
    "signal.windows.__getattr__": "def __getattr__(name: str) -> Callable[..., Tensor]: ...\n",
}
# Bases that classes have for type checkers only.
# Classes in the stub of the module in Rust that the module does not have.
STUB_ONLY = {"HookHandle", "MemoryStats"}
BASES = {"_graph.Graph": "Generic[_P, _R]"}
def _of_packed(state):
    """The call of a recurrent layer, which takes packed sequences too."""
    return f"""\
    @overload
    def __call__(self, input: Tensor, hx: Any = None) -> tuple[Tensor, {state}]: ...
    @overload
    def __call__(self, input: PackedSequence, hx: Any = None) -> tuple[PackedSequence, {state}]: ...
"""


# Methods that classes have for type checkers only: attributes of any name may be set.
MORE = {
    "nn.recurrent.LSTM": _of_packed("tuple[Tensor, Tensor]"),
    "nn.recurrent.GRU": _of_packed("Tensor"),
    "nn.recurrent.RNN": _of_packed("Tensor"),
    "autograd.function.FunctionCtx": """\
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
""",
}
# Text before all definitions of a module.
BEFORE = {
    "_graph": '_P = ParamSpec("_P")\n_R = TypeVar("_R")\n',
    "_modes": '_F = TypeVar("_F", bound=Callable[..., Any])\n',
    "nn.module": """\
_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)

class _HasForward(Protocol[_P, _R]):
    def forward(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
""",
}
