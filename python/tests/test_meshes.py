"""Every layer and every function of networks on meshes of one, two and three axes: values and gradients are those of local tensors."""

import copy
import inspect

import numpy as np
import oflow as flow
import oflow.nn.functional as F
import pytest
from oflow import nn

N = flow.world_size()


def layouts(split):
    """Meshes of one, two and three axes with a layout: split over the axis that has the ranks where a dim may be split, and whole."""
    line = flow.placement.all("cpu")
    rows = "B" if split is None else f"S({split})"
    return [(line, (rows,)), (line.mesh(a=1, b=N), ("B", "B")), (line.mesh(a=1, b=N, c=1), ("B", rows, "B"))]


def floats(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def positive(*shape):
    return np.abs(floats(*shape)) + 0.5


IDS = np.array([[0, 3, 1], [2, 2, 4], [1, 0, 3], [4, 1, 2]])
CLASSES = np.array([0, 2, 1, 1])
LOGS = floats(6, 4, 5) - np.log(np.exp(floats(6, 4, 5)).sum(-1, keepdims=True))
LABELS = np.array([[1, 2], [3, 1], [2, 2], [4, 1]])
ROW, SEQUENCE, IMAGE1, IMAGE2, IMAGE3 = floats(4, 6), floats(4, 5, 6), floats(4, 6, 8), floats(4, 4, 6, 8), floats(4, 2, 4, 6, 4)
IMAGES = {1: IMAGE1, 2: IMAGE2, 3: IMAGE3}
CHANNELS = {1: 6, 2: 4, 3: 2}

# Name: the layer, its inputs, and the dim of them that may be split (None: their layout is B).
LAYERS = {}
# Classes that run no forward of their own; lazy layers become others at their first call. SyncBatchNorm refuses local tensors on several
# ranks: test_more_layers.py has it.
NO_LAYERS = {"ModuleRow", "ParameterRow", "Summary", "Module", "ModuleDict", "ModuleList", "ParameterList", "ParameterDict", "Parameter", "Buffer", "Replicas", "LinearCrossEntropyOptions"}
NO_LAYERS |= {"SyncBatchNorm"}
NO_LAYERS |= {name for name in nn.__all__ if name.startswith("Lazy")}
# Where the elements of pools of two are, and these.
POOLED = {
    n: [np.array(t.tolist(), np.float32 if i == 0 else np.int64) for i, t in enumerate(getattr(F, f"max_pool{n}d")(flow.tensor(x), 2, return_indices=True))]
    for n, x in IMAGES.items()
}
SIGNS, ROWS = np.float32(np.sign(ROW)), np.float32([1, -1, -1, 1])
OTHER, THIRD = floats(4, 6, seed=1), floats(4, 6, seed=2)
SAMPLES = {n: np.float32(np.random.default_rng(5).uniform(size=(4, CHANNELS[n], n))) for n in (2, 3)}
# The sizes of an attention with 6 elements: packed weights, bias, keys and values that are added, the last projection.
ATTENTION = (floats(18, 6), floats(18), floats(1, 1, 6), floats(1, 1, 6, seed=1))


def layer(name, *args, inputs=(ROW,), split=0, **options):
    LAYERS.setdefault(name, []).append((args, options, inputs, split))


for name in (
    "ELU CELU SELU GELU ReLU ReLU6 LeakyReLU SiLU Mish Sigmoid Tanh Softsign Softplus Softshrink Hardshrink Hardsigmoid Hardswish "
    "Hardtanh Tanhshrink LogSigmoid Identity Flatten"
).split():
    layer(name)
layer("GLU", 1), layer("Softmax", 1), layer("LogSoftmax", 1), layer("Threshold", 0.1, -2.0), layer("Dropout", 0.0)
layer("PReLU"), layer("PReLU", 6), layer("Linear", 6, 3), layer("Linear", 6, 3, bias=False)
layer("LayerNorm", 6), layer("RMSNorm", 6), layer("MLP", 6, 8, inputs=(SEQUENCE,))
layer("SelfAttention", 6, 2, inputs=(SEQUENCE,)), layer("TransformerBlock", 6, 2, 8, inputs=(SEQUENCE,))
layer("RotaryEmbedding", 6, 9, inputs=(SEQUENCE,))
layer("MultiheadAttention", 6, 2, batch_first=True, inputs=(SEQUENCE, SEQUENCE, SEQUENCE))
layer("MultiheadAttention", 6, 2, inputs=(SEQUENCE, SEQUENCE, SEQUENCE), split=1)
layer("Embedding", 5, 6, inputs=(IDS,)), layer("Embedding", 5, 6, padding_idx=1, inputs=(IDS,))
for mode in ("sum", "mean", "max"):
    layer("EmbeddingBag", 5, 6, mode=mode, inputs=(IDS,))
    layer("EmbeddingBag", 5, 6, mode=mode, padding_idx=-1, inputs=(IDS,))
layer("EmbeddingBag", 5, 6, inputs=(IDS.ravel(), np.array([0, 3, 5])), split=None)
for kind in ("LSTM", "GRU", "RNN"):
    layer(kind, 6, 3, inputs=(SEQUENCE,), split=1)
    layer(kind, 6, 3, num_layers=2, batch_first=True, bidirectional=True, inputs=(SEQUENCE,))
    layer(kind, 6, 3, inputs=(ROW,), split=None)
    layer(f"{kind}Cell", 6, 3)
for n, x in IMAGES.items():
    c = CHANNELS[n]
    layer(f"Conv{n}d", c, 2, 3, padding=1, inputs=(x,)), layer(f"Conv{n}d", c, 2, 2, padding=1, padding_mode="reflect", inputs=(x,))
    layer(f"ConvTranspose{n}d", c, 2, 3, inputs=(x,)), layer(f"BatchNorm{n}d", c, inputs=(x,))
    layer(f"InstanceNorm{n}d", c, inputs=(x,)), layer(f"InstanceNorm{n}d", c, affine=True, track_running_stats=True, inputs=(x,))
    layer(f"MaxPool{n}d", 2, inputs=(x,)), layer(f"AvgPool{n}d", 2, inputs=(x,))
    layer(f"AdaptiveMaxPool{n}d", 3, inputs=(x,)), layer(f"AdaptiveAvgPool{n}d", 3, inputs=(x,))
    layer(f"ConstantPad{n}d", 1, 0.5, inputs=(x,))
    for kind in ("Zero", "Circular", "Reflection", "Replication"):
        layer(f"{kind}Pad{n}d", 1, inputs=(x,))
layer("GroupNorm", 2, 4, inputs=(IMAGE2,)), layer("ChannelShuffle", 2, inputs=(IMAGE2,)), layer("PixelShuffle", 2, inputs=(IMAGE2,))
layer("PixelUnshuffle", 2, inputs=(IMAGE2,)), layer("Unfold", 2, inputs=(IMAGE2,)), layer("Fold", (3, 4), 2, inputs=(floats(4, 8, 6),))
layer("Upsample", scale_factor=2, inputs=(IMAGE2,)), layer("Upsample", size=(5, 3), mode="bicubic", inputs=(IMAGE2,))
layer("UpsamplingBilinear2d", scale_factor=2, inputs=(IMAGE2,)), layer("UpsamplingNearest2d", scale_factor=2, inputs=(IMAGE2,))
for name in ("MSELoss", "L1Loss", "HuberLoss", "SmoothL1Loss", "BCEWithLogitsLoss"):
    layer(name, inputs=(ROW, positive(4, 6)))
for name in ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"):
    layer(name, inputs=(ROW, CLASSES))
layer("AdaptiveLogSoftmaxWithLoss", 6, 8, [2, 4], div_value=2.0, inputs=(ROW, np.array([0, 3, 7, 5])))
layer("MultiLabelMarginLoss", inputs=(ROW, np.array([[1, 3, -1, 0, 0, 0]] * 4)))
layer("MultiLabelSoftMarginLoss", inputs=(ROW, np.float32(ROW > 0)))
layer("CTCLoss", inputs=(LOGS, LABELS, [6, 5, 4, 6], [2, 1, 2, 2]), split=None)
layer("CTCLoss", inputs=(LOGS, LABELS, (6, 5, 4, 6), (2, 1, 2, 2)), split=None)
layer("Sequential", nn.Linear(6, 4), nn.Tanh())
layer("Softmin", 1), layer("Softmax2d", inputs=(IMAGE2,)), layer("RReLU", 0.2, 0.2), layer("Unflatten", 1, (2, 3))
layer("CosineSimilarity", inputs=(ROW, OTHER)), layer("PairwiseDistance", inputs=(ROW, OTHER))
for name in ("AlphaDropout", "Dropout2d"):
    layer(name, 0.0, inputs=(IMAGE2,))
layer("Dropout1d", 0.0, inputs=(IMAGE1,)), layer("Dropout3d", 0.0, inputs=(IMAGE3,)), layer("FeatureAlphaDropout", 0.0, inputs=(IMAGE1,))
layer("LocalResponseNorm", 2, inputs=(IMAGE2,)), layer("Bilinear", 6, 6, 3, inputs=(ROW, OTHER))
layer("Embedding", 5, 6, max_norm=1.0, scale_grad_by_freq=True, inputs=(IDS,)), layer("LSTM", 6, 4, proj_size=3, inputs=(SEQUENCE,), split=1)
layer("MultiheadAttention", 6, 2, add_bias_kv=True, add_zero_attn=True, inputs=(SEQUENCE, SEQUENCE, SEQUENCE), split=1)
layer("TransformerEncoderLayer", 6, 2, 8, 0.0, inputs=(SEQUENCE,), split=1), layer("TransformerDecoderLayer", 6, 2, 8, 0.0, norm_first=True, inputs=(SEQUENCE, SEQUENCE), split=1)
layer("TransformerEncoder", nn.TransformerEncoderLayer(6, 2, 8, 0.0), 2, nn.LayerNorm(6), inputs=(SEQUENCE,), split=1)
layer("TransformerDecoder", nn.TransformerDecoderLayer(6, 2, 8, 0.0), 2, inputs=(SEQUENCE, SEQUENCE), split=1)
layer("Transformer", 6, 2, 1, 1, 8, 0.0, inputs=(SEQUENCE, SEQUENCE), split=1)
for n, x in IMAGES.items():
    layer(f"LPPool{n}d", 2.0, 2, inputs=(x,)), layer(f"MaxUnpool{n}d", 2, inputs=(*POOLED[n],))
    layer(f"BatchNorm{n}d", CHANNELS[n], momentum=None, inputs=(x,))
for n, samples in SAMPLES.items():
    layer(f"FractionalMaxPool{n}d", 2, 3, _random_samples=flow.tensor(samples), inputs=(IMAGES[n],))
for name in ("BCELoss", "KLDivLoss"):
    layer(name, inputs=(np.float32(1 / (1 + np.exp(-ROW))), np.float32(1 / (1 + np.exp(-OTHER)))))
layer("BCEWithLogitsLoss", flow.tensor(positive(6)), pos_weight=flow.tensor(positive(6)), inputs=(ROW, positive(4, 6)))
layer("SoftMarginLoss", inputs=(ROW, SIGNS)), layer("HingeEmbeddingLoss", inputs=(ROW, SIGNS)), layer("MarginRankingLoss", 0.3, inputs=(ROW, OTHER, SIGNS))
layer("CosineEmbeddingLoss", 0.3, inputs=(ROW, OTHER, ROWS)), layer("PoissonNLLLoss", inputs=(ROW, positive(4, 6)))
layer("GaussianNLLLoss", inputs=(ROW, OTHER, positive(4, 1)))
layer("TripletMarginLoss", inputs=(ROW, OTHER, THIRD)), layer("TripletMarginWithDistanceLoss", swap=True, inputs=(ROW, OTHER, THIRD))
layer("LinearCrossEntropyLoss", 6, 5, bias=True, inputs=(ROW, CLASSES))
layer("LinearCrossEntropyLoss", 6, 5, options=nn.LinearCrossEntropyOptions(batch_chunk_size=3), inputs=(ROW, CLASSES))

FUNCTIONS = {}


def function(name, *args, split=0, **options):
    FUNCTIONS.setdefault(name, []).append((args, options, split))


for name in (
    "relu silu mish sigmoid tanh softsign hardsigmoid hardswish tanhshrink selu relu6 logsigmoid gelu leaky_relu elu celu hardtanh "
    "hardshrink softshrink softplus glu normalize"
).split():
    function(name, ROW)
function("gelu", ROW, "tanh"), function("softmax", ROW, 1), function("log_softmax", ROW, 1), function("threshold", ROW, 0.1, -1.0)
function("dropout", ROW, 0.0), function("dropout", ROW, 0.7, False), function("prelu", ROW, floats(6), split=None)
function("linear", ROW, floats(3, 6), floats(3), split=None), function("embedding", IDS, floats(5, 6), 1, split=None)
function("embedding", IDS, floats(5, 6), split=None)
for mode in ("sum", "mean", "max"):
    function("embedding_bag", IDS, floats(5, 6), mode=mode, padding_idx=2, split=None)
function("embedding_bag", IDS.ravel(), floats(5, 6), np.array([0, 3, 5]), split=None)
function("one_hot", CLASSES, 5), function("rms_norm", ROW, (6,), floats(6), split=None), function("layer_norm", ROW, (6,), floats(6), split=None)
function("batch_norm", IMAGE2, floats(4), positive(4), split=None), function("batch_norm", IMAGE2, None, None, training=True)
function("instance_norm", IMAGE2), function("group_norm", IMAGE2, 2), function("rotary_embedding", SEQUENCE, floats(5, 3), floats(5, 3), split=None)
for causal in (False, True):
    function("scaled_dot_product_attention", floats(4, 2, 5, 3), floats(4, 2, 5, 3), floats(4, 2, 5, 3), is_causal=causal)
for n, x in IMAGES.items():
    c, k = CHANNELS[n], (3,) * n
    function(f"conv{n}d", x, floats(2, c, *k), floats(2), split=None), function(f"conv_transpose{n}d", x, floats(c, 2, *k), split=None)
    function(f"max_pool{n}d", x, 2), function(f"avg_pool{n}d", x, 2), function(f"max_pool{n}d", x, 2, return_indices=True)
    function(f"adaptive_max_pool{n}d", x, 3), function(f"adaptive_avg_pool{n}d", x, 3)
for mode in ("constant", "reflect", "replicate", "circular"):
    function("pad", IMAGE2, [1, 2, 1, 0], mode=mode)
for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area"):
    function("interpolate", IMAGE2, (5, 3), mode=mode)
function("interpolate", IMAGE3, scale_factor=1.5, mode="trilinear"), function("interpolate", IMAGE1, 5, mode="linear")
function("grid_sample", IMAGE2, np.tanh(floats(4, 3, 3, 2))), function("affine_grid", floats(4, 2, 3), [4, 4, 3, 3])
function("unfold", IMAGE2, 2), function("fold", floats(4, 8, 6), (3, 4), 2), function("pixel_shuffle", IMAGE2, 2)
function("pixel_unshuffle", IMAGE2, 2), function("channel_shuffle", IMAGE2, 2)
for name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits"):
    for reduction in ("mean", "sum", "none"):
        function(name, ROW, positive(4, 6), reduction=reduction)
for name in ("cross_entropy", "nll_loss", "multi_margin_loss"):
    for reduction in ("mean", "sum", "none"):
        function(name, ROW, CLASSES, reduction=reduction)
        function(name, ROW, CLASSES, weight=positive(6), reduction=reduction, split=None)
function("cross_entropy", ROW, positive(4, 6) / 6, label_smoothing=0.1)
function("multilabel_margin_loss", ROW, np.array([[1, 3, -1, 0, 0, 0]] * 4)), function("multilabel_soft_margin_loss", ROW, np.float32(ROW > 0))
function("ctc_loss", LOGS, LABELS, [6, 5, 4, 6], [2, 1, 2, 2], split=None)
function("ctc_loss", LOGS, LABELS, (6, 5, 4, 6), (2, 1, 2, 2), split=None)
function("ctc_loss", LOGS, LABELS, np.array([6, 5, 4, 6]), np.array([2, 1, 2, 2]), split=None)
for name in ("relu_", "selu_", "celu_", "elu_", "hardtanh_", "leaky_relu_", "rrelu_", "softmin", "rrelu", "pairwise_distance", "cosine_similarity"):
    function(name, ROW, *((OTHER,) if name[0] in "pc" and name != "celu_" else ()), **({"dim": 1} if name == "softmin" else {}))
function("threshold_", ROW, 0.1, -1.0)
# So hot that the noise does not matter.
function("gumbel_softmax", ROW, 1e9), function("bilinear", ROW, OTHER, floats(3, 6, 6), floats(3), split=None), function("pdist", ROW)
for name, image in (("alpha_dropout", ROW), ("feature_alpha_dropout", IMAGE1), ("dropout1d", IMAGE1), ("dropout2d", IMAGE2), ("dropout3d", IMAGE3)):
    function(name, image, 0.0, True), function(name, image, 0.3, False)
function("embedding", IDS, floats(5, 6), max_norm=1.0, scale_grad_by_freq=True, split=None)
function("embedding_bag", IDS, floats(5, 6), max_norm=1.0, scale_grad_by_freq=True, mode="sum", split=None)
for n, x in IMAGES.items():
    function(f"lp_pool{n}d", x, 2.0, 2), function(f"max_unpool{n}d", *POOLED[n], 2)
    function(f"adaptive_max_pool{n}d", x, 3, True)
for n, samples in SAMPLES.items():
    function(f"fractional_max_pool{n}d", IMAGES[n], 2, 3, _random_samples=samples)
function("local_response_norm", IMAGE2, 3, 0.1), function("upsample", IMAGE2, scale_factor=2), function("upsample_nearest", IMAGE2, 5)
function("upsample_bilinear", IMAGE2, 5)
function("multi_head_attention_forward", *[SEQUENCE] * 3, 6, 2, *ATTENTION, True, 0.0, floats(6, 6), floats(6), split=None)
PROBABLE, LIKELY = (np.float32(1 / (1 + np.exp(-x))) for x in (ROW, OTHER))
for reduction in ("mean", "sum", "none"):
    how = {"reduction": reduction}
    function("binary_cross_entropy", PROBABLE, LIKELY, **how), function("kl_div", ROW, LIKELY, **how), function("soft_margin_loss", ROW, SIGNS, **how)
    function("hinge_embedding_loss", ROW, SIGNS, **how), function("margin_ranking_loss", ROW, OTHER, SIGNS, 0.3, **how)
    function("cosine_embedding_loss", ROW, OTHER, ROWS, 0.3, **how), function("poisson_nll_loss", ROW, positive(4, 6), full=True, **how)
    function("gaussian_nll_loss", ROW, OTHER, positive(4, 1), **how), function("triplet_margin_loss", ROW, OTHER, THIRD, swap=True, **how)
    function("triplet_margin_with_distance_loss", ROW, OTHER, THIRD, **how)
    for options in (None, nn.LinearCrossEntropyOptions(batch_chunk_size=3)):
        function("linear_cross_entropy", ROW, floats(5, 6), CLASSES, linear_bias=floats(5), options=options, split=None, **how)


def test_each_class_and_function_has_a_row():
    classes = {name for name in nn.__all__ if inspect.isclass(getattr(nn, name))} - NO_LAYERS
    assert set(LAYERS) == classes
    functions = {name for name in dir(F) if not name.startswith("_") and callable(getattr(F, name))}
    assert set(FUNCTIONS) == functions


def given(x, place):
    """An array as a tensor that records; other arguments as they are."""
    if not isinstance(x, np.ndarray):
        return x
    t = place(flow.tensor(x))
    return t.requires_grad_() if t.dtype.is_floating_point else t


def results(call, args, leaves=()):
    """Values, and gradients of the sum of those that have one."""
    out = call(*args)
    flat, todo = [], [out]
    while todo:
        one = todo.pop()
        if isinstance(one, flow.Tensor):
            flat.append(one)
        elif one is not None:
            todo += list(one)
    live = [t for t in flat if t.requires_grad]
    if live:
        sum((t.sin().sum() for t in live[1:]), live[0].sin().sum()).backward()
    leaves = [*leaves, *(x for x in args if isinstance(x, flow.Tensor))]
    return [np.array(t.tolist()) for t in [*flat, *(x.grad for x in leaves if x.grad is not None)]]


def alike(ours, theirs, what):
    assert len(ours) == len(theirs), what
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(mine, other, rtol=2e-4, atol=2e-5, err_msg=str(what))


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    for args, options, inputs, split in LAYERS[name]:
        plain = getattr(nn, name)(*args, **options)
        numbers = np.random.default_rng(0)
        plain.load_state_dict({k: np.abs(numbers.normal(size=t.shape)).astype(t.dtype.name) for k, t in plain.state_dict().items()})
        state = plain.state_dict()
        want = results(copy.deepcopy(plain), [given(x, lambda t: t) for x in inputs])
        # A layout among the arguments, also where a subclass hands it on.
        makes_on_mesh = "placement" in str(inspect.signature(getattr(nn, name).__init__)) or name[:4] in ("Inst", "RNN", "RNNC")
        for mesh, sbp in layouts(split):
            whole = ("B",) * len(mesh.shape)
            laid = [copy.deepcopy(plain).to_global(mesh)]
            if makes_on_mesh and sbp == whole and any(True for _ in plain.parameters()):
                laid.append(getattr(nn, name)(*args, placement=mesh, sbp=whole, **options))
                laid[-1].load_state_dict(state)
            for net in laid:
                placed = [given(x, lambda t: flow.distribute(t, mesh, sbp)) for x in inputs]  # noqa: B023
                alike(results(net, placed), want, (name, args, options, mesh, sbp))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    for args, options, split in FUNCTIONS[name]:
        options = dict(options)
        named = [k for k, v in options.items() if isinstance(v, np.ndarray)]
        inputs = [*args, *(options.pop(k) for k in named)]

        def call(*given, options=options, named=named):
            rest = len(given) - len(named)
            # What is written over is not a leaf.
            given = (given[0] * 1, *given[1:]) if name.endswith("_") else given
            return getattr(F, name)(*given[:rest], **dict(zip(named, given[rest:])), **options)

        want = results(call, [given(x, lambda t: t) for x in inputs])
        for mesh, sbp in layouts(split):
            placed = [given(x, lambda t: flow.distribute(t, mesh, sbp)) for x in inputs]  # noqa: B023
            alike(results(call, placed), want, (name, args, options, mesh, sbp))


@pytest.mark.parametrize("sbp", ["B", "S(0)", "S(1)"])
def test_a_layer_takes_the_sbp_of_its_weight(sbp):
    """Layers of a matrix and vectors: the vectors are whole where the SBP splits a dim that they do not have."""
    x = flow.tensor(SEQUENCE)
    kinds = {
        "Linear": (6, 4), "Conv1d": (6, 4, 3), "LSTM": (6, 4), "GRU": (6, 4), "RNN": (6, 4), "TransformerBlock": (6, 2, 8), "MLP": (6, 4),
        "SelfAttention": (6, 2), "Embedding": (5, 6), "EmbeddingBag": (5, 6), "GRUCell": (6, 4), "LSTMCell": (6, 4), "RNNCell": (6, 4),
        "MultiheadAttention": (6, 2), "ConvTranspose1d": (6, 4, 3), "Conv2d": (6, 4, 3), "Conv3d": (6, 4, 3),
    }  # fmt: skip
    line = flow.placement.all("cpu")
    for name, args in kinds.items():
        net = getattr(nn, name)(*args, placement=line, sbp=sbp)
        for key, p in net.named_parameters():
            want = "B" if sbp == "S(1)" and p.ndim == 1 else sbp
            assert str(p.sbp[0]) == want, (name, key)
        if name in ("Linear", "MLP", "LSTM", "TransformerBlock"):
            plain = getattr(nn, name)(*args)
            plain.load_state_dict({k: flow.tensor(t.tolist()) for k, t in net.state_dict().items()})
            alike(results(net, [flow.distribute(x, line, "B")]), results(plain, [x]), name)
    for bad in ("S(2)", "S(7)"):
        with pytest.raises(flow.SbpError):
            nn.Linear(6, 4, placement=line, sbp=bad)
    mesh = line.mesh(a=1, b=N)
    assert [str(s) for s in nn.Linear(6, 4, placement=mesh, sbp=("S(0)", "S(1)")).bias.sbp] == ["S(0)", "B"]


# Each optimizer, average, scaler and clipping: what it does to parameters with these gradients in two steps.
STEPS = {
    "SGD": lambda ps: flow.optim.SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.1),
    "Adam": lambda ps: flow.optim.Adam(ps, lr=0.1),
    "AdamW": lambda ps: flow.optim.AdamW(ps, lr=0.1),
    "RMSprop": lambda ps: flow.optim.RMSprop(ps, lr=0.1),
    "Adagrad": lambda ps: flow.optim.Adagrad(ps, lr=0.1),
    "Adadelta": lambda ps: flow.optim.Adadelta(ps, lr=0.1),
    "Adamax": lambda ps: flow.optim.Adamax(ps, lr=0.1),
    "NAdam": lambda ps: flow.optim.NAdam(ps, lr=0.1),
    "RAdam": lambda ps: flow.optim.RAdam(ps, lr=0.1),
    "ASGD": lambda ps: flow.optim.ASGD(ps, lr=0.1, t0=1),
    "Rprop": lambda ps: flow.optim.Rprop(ps, lr=0.1),
    "Adafactor": lambda ps: flow.optim.Adafactor(ps, lr=0.1),
    "Muon": lambda ps: flow.optim.Muon(ps[:1], lr=0.1),
    "Lion": lambda ps: flow.optim.Lion(ps, lr=0.1),
    "Lamb": lambda ps: flow.optim.Lamb(ps, lr=0.1),
    "EMA": lambda ps: flow.optim.EMA(ps, 0.5),
    "GradScaler": lambda ps: flow.optim.GradScaler(),
    "clip_grad_norm_": lambda ps: None,
}
# No rows of their own: a base class, an optimizer of closures (test_optim.py), a schedule of numbers, a function that sorts parameters into
# groups, a module.
NO_STEPS = {"LBFGS", "Optimizer", "Schedule", "by_decay", "lr_scheduler"}


def test_each_optimizer_has_a_row():
    assert set(STEPS) == set(flow.optim.__all__) - NO_STEPS


def stepped(name, place):
    """The parameters after two steps, and what else the thing tells."""
    ps = [place(flow.tensor(floats(4, 6))).requires_grad_(), place(flow.tensor(floats(4))).requires_grad_()]
    thing, told = STEPS[name](ps), []
    opt = thing if hasattr(thing, "zero_grad") else flow.optim.SGD(ps, lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        loss = sum(((p * p * p).sum() for p in ps[1:]), (ps[0] ** 2).sum())
        (thing.scale(loss) if name == "GradScaler" else loss).backward()
        if name == "clip_grad_norm_":
            told.append(flow.optim.clip_grad_norm_(ps, 0.5))
        if name == "GradScaler":
            thing.step(opt)
            thing.update()
        else:
            opt.step()
        if name == "EMA":
            thing.update()
            told = thing.averages
    return [np.array(t.tolist()) for t in [*ps, *told]]


@pytest.mark.parametrize("name", STEPS)
def test_optimizers(name):
    want = stepped(name, lambda t: t)
    for mesh, sbp in layouts(0):
        alike(stepped(name, lambda t: flow.distribute(t, mesh, sbp)), want, (name, mesh, sbp))  # noqa: B023
