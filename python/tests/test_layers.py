"""Layers beside PyTorch's: what they save, how they count, what lazy ones become, and what is dropped at random."""

import copy
import math

import numpy as np
import oflow as flow
import oflow.nn.functional as F
import pytest
from oflow import nn

torch = pytest.importorskip("torch")


def given(t):
    return flow.from_dlpack(t.detach().clone())


def near(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(np.array(ours.tolist()), np.array(theirs.tolist()), rtol=tolerance, atol=tolerance)


def loaded(ours, theirs):
    """Our module with the parameters and buffers of PyTorch's, whose names it must have."""
    ours.load_state_dict({name: given(t) for name, t in theirs.state_dict().items()})
    return ours


@pytest.mark.parametrize("momentum", [0.1, 0.7, None])
@pytest.mark.parametrize("kind, shape", [("BatchNorm1d", (4, 3)), ("BatchNorm2d", (4, 3, 2, 5))])
def test_running_statistics_over_several_batches(kind, shape, momentum):
    torch.manual_seed(0)
    theirs = getattr(torch.nn, kind)(3, momentum=momentum)
    ours = loaded(getattr(nn, kind)(3, momentum=momentum), theirs)
    for _ in range(3):
        x = torch.randn(shape)
        near(ours(given(x)), theirs(x))
    for name, t in theirs.state_dict().items():
        near(ours.state_dict()[name], t)
    assert ours.num_batches_tracked.dtype == flow.int64 and ours.num_batches_tracked.item() == 3
    ours.eval(), theirs.eval()
    near(ours(given(x)), theirs(x))
    assert ours.num_batches_tracked.item() == 3
    # A norm of images that keeps statistics has the same names and does not count.
    instance = loaded(nn.InstanceNorm1d(3, track_running_stats=True), torch.nn.InstanceNorm1d(3, track_running_stats=True))
    instance(flow.ones((2, 3, 4)))
    assert instance.num_batches_tracked.item() == 0


def test_the_count_of_batches_runs_in_a_graph():
    norm = nn.BatchNorm1d(3, momentum=None)

    @flow.graph
    def step(x):
        return norm(x).sum()

    batches = [flow.randn((4, 3)) for _ in range(3)]
    for x in batches:
        step(x)
    assert norm.num_batches_tracked.item() == 3
    near(norm.running_mean, flow.stack([x.mean(0) for x in batches]).mean(0))


@pytest.mark.parametrize(
    "kind, args, shape",
    [
        ("Linear", (4,), (2, 3)), ("Conv1d", (4, 3), (2, 3, 8)), ("Conv2d", (4, 3, 1, 0, 1, 2), (2, 6, 8, 7)), ("Conv3d", (2, 2), (2, 3, 4, 4, 4)),
        ("ConvTranspose1d", (4, 3), (2, 3, 5)), ("ConvTranspose2d", (4, 3), (3, 5, 5)), ("ConvTranspose3d", (4, 3), (2, 3, 3, 3, 3)),
        ("BatchNorm1d", (), (4, 3)), ("BatchNorm2d", (), (4, 3, 2, 2)), ("BatchNorm3d", (), (4, 3, 2, 2, 2)),
        ("InstanceNorm1d", (), (2, 3, 5)), ("InstanceNorm2d", (), (2, 3, 5, 5)), ("InstanceNorm3d", (), (2, 3, 2, 2, 2)),
    ],
)  # fmt: skip
def test_a_lazy_layer_becomes_the_other_at_its_first_call_or_by_a_state(kind, args, shape):
    x = torch.randn(shape, dtype=torch.float64)
    theirs = getattr(torch.nn, f"Lazy{kind}")(*args, dtype=torch.float64)
    want = theirs(x)
    by_call = getattr(nn, f"Lazy{kind}")(*args).double()
    with pytest.raises(RuntimeError, match=f"Lazy{kind}.*call the module once"):
        list(nn.Sequential(by_call).parameters())
    with pytest.raises(RuntimeError, match="call the module once"):
        by_call.state_dict()
    by_call(given(x))
    assert type(by_call) is getattr(nn, kind) and [n for n, _ in by_call.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    near(loaded(by_call, theirs)(given(x)), want)
    net = nn.Sequential(getattr(nn, f"Lazy{kind}")(*args)).double()
    net.load_state_dict({f"0.{name}": given(t) for name, t in theirs.state_dict().items()})
    assert type(net[0]) is getattr(nn, kind)
    near(net(given(x)), want)


def test_a_lazy_layer_keeps_its_mode_hooks_and_refuses_wrong_arguments():
    net, seen = nn.LazyBatchNorm1d().eval(), []
    net.register_forward_hook(lambda module, args, y: seen.append(type(module)))
    net(flow.ones((2, 3)))
    net(flow.ones((2, 3)))
    assert not net.training and net.num_batches_tracked.item() == 0 and seen == [nn.BatchNorm1d] * 2
    with pytest.raises(TypeError):
        nn.LazyLinear()
    assert "8" in repr(nn.LazyLinear(8))


def test_a_lazy_layer_whose_state_does_not_fit_is_refused():
    net = nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 2))
    with pytest.raises(RuntimeError, match="1.weight"):
        net.load_state_dict({"0.weight": flow.ones((4, 3)), "0.bias": flow.ones(4), "1.weight": flow.ones((9, 9)), "1.bias": flow.ones(2)})


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kv, zero", [(True, False), (False, True), (True, True)])
def test_attention_with_keys_that_are_added(kv, zero, batch_first):
    torch.manual_seed(0)
    options = dict(add_bias_kv=kv, add_zero_attn=zero, batch_first=batch_first)
    theirs = torch.nn.MultiheadAttention(6, 2, **options)
    ours = loaded(nn.MultiheadAttention(6, 2, **options), theirs)
    q, k = torch.randn(4, 4, 6), torch.randn(4, 4, 6)
    hidden, after = torch.rand(4, 4) > 0.6, torch.ones(4, 4).triu(1).bool()
    for masks in ({}, {"key_padding_mask": hidden}, {"attn_mask": after}, {"key_padding_mask": hidden, "attn_mask": after}):
        for more in ({}, {"need_weights": False}, {"average_attn_weights": False}):
            want = theirs(q, k, k, **masks, **more)
            found = ours(given(q), given(k), given(k), **{n: flow.tensor(m.tolist()) for n, m in masks.items()}, **more)
            near(found[0], want[0])
            assert (found[1] is None) == (want[1] is None)
            if want[1] is not None:
                near(found[1], want[1])


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_transformer_is_pytorchs(norm_first, activation):
    torch.manual_seed(0)
    options = dict(dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first)
    theirs, ours = torch.nn.Transformer(8, 2, 2, 2, 16, **options), nn.Transformer(8, 2, 2, 2, 16, **options)
    loaded(ours, theirs)
    src, tgt = torch.randn(3, 5, 8), torch.randn(3, 4, 8, requires_grad=True)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4)
    near(nn.Transformer.generate_square_subsequent_mask(4), mask)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
    want = theirs(src, tgt, tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding)
    x, hidden = given(tgt).requires_grad_(True), flow.tensor(padding.tolist())
    found = ours(given(src), x, tgt_mask=given(mask), src_key_padding_mask=hidden, memory_key_padding_mask=hidden)
    near(found, want)
    (want**2).sum().backward(), (found * found).sum().backward()
    near(x.grad, tgt.grad, 1e-4)
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters()):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-3, atol=1e-4, err_msg=name)


def test_layers_of_a_stack_are_copies():
    layer = nn.TransformerEncoderLayer(4, 1, 8)
    stack = nn.TransformerEncoder(layer, 2)
    assert len(list(stack.parameters())) == 2 * len(list(layer.parameters()))
    near(stack.layers[0].linear1.weight, layer.linear1.weight)
    with flow.no_grad():
        stack.layers[0].linear1.weight.zero_()
    assert stack.layers[1].linear1.weight.abs().sum().item() > 0 and layer.linear1.weight.abs().sum().item() > 0


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_proj_size_is_for_lstm(kind):
    if kind != "LSTM":
        with pytest.raises(ValueError, match="proj_size is for LSTM"):
            getattr(nn, kind)(3, 4, proj_size=2)
        return
    with pytest.raises(ValueError, match="less than hidden_size"):
        nn.LSTM(3, 4, proj_size=4)
    theirs = torch.nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True)
    ours, x = loaded(nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True), theirs), torch.randn(5, 2, 3)
    (y, (h, c)), (u, (v, w)) = ours(given(x)), theirs(x)
    near(y, u), near(h, v), near(c, w)


DROPS = [(F.dropout, None), (F.alpha_dropout, None), (F.dropout2d, 2), (F.feature_alpha_dropout, 2)]


@pytest.mark.parametrize("p", [0.2, 0.7])
@pytest.mark.parametrize("drop, channels", DROPS, ids=lambda v: getattr(v, "__name__", v))
def test_what_is_dropped(drop, channels, p):
    flow.manual_seed(3)
    x = flow.randn((40, 50, 2, 3))
    y = drop(x, p, True).numpy()
    alpha = "alpha" in drop.__name__
    values, counts = np.unique(y, return_counts=True)
    gone = y == values[counts.argmax()]
    # As many as asked for, within five standard deviations of independent draws; channels are dropped whole.
    draws = 40 * 50 * (1 if channels else 6)
    assert abs(gone.mean() - p) < 5 * math.sqrt(p * (1 - p) / draws)
    if channels:
        assert (gone.all((2, 3)) | ~gone.any((2, 3))).all()
    else:
        assert (gone.any((2, 3)) & ~gone.all((2, 3))).any()
    kept = x.numpy()[~gone]
    if alpha:
        limit = -1.7580993408473766
        scale = 1 / math.sqrt((1 - p) * (1 + p * limit**2))
        np.testing.assert_allclose(y[~gone], kept * scale - scale * limit * p, rtol=1e-4, atol=1e-5)
        assert abs(y.mean()) < 0.15 and abs(y.std() - 1) < 0.15
    else:
        np.testing.assert_allclose(y[~gone], kept / (1 - p), rtol=1e-5)
    near(drop(x, p, False), x)
    assert drop(x, p, True).tolist() != y.tolist()
    with pytest.raises(ValueError, match="between 0 and 1"):
        drop(x, 1.5, True)


def test_masks_do_not_depend_on_the_layout():
    mesh = flow.placement.all("cpu")
    made = []
    for sbp in ("B", "S(0)", "S(1)"):
        flow.manual_seed(5)
        x = flow.ones((4, 6, 2), placement=mesh, sbp=sbp)
        with_noise = -x
        made.append([d(x, 0.5, True).tolist() for d in (F.alpha_dropout, F.dropout1d, F.feature_alpha_dropout)] + [F.rrelu(with_noise, training=True).tolist()])
    assert made[0] == made[1] == made[2]


def test_random_slopes():
    x = flow.randn((100, 100))
    y = F.rrelu(x, 0.1, 0.4, training=True)
    slope = (y / x).numpy()[x.numpy() < 0]
    assert 0.1 <= slope.min() < 0.11 and 0.39 < slope.max() <= 0.4001
    near(F.rrelu(x, 0.1, 0.4), F.leaky_relu(x, 0.25))
    x = flow.tensor([-1.0, 2.0], requires_grad=True)
    y = F.rrelu(x, 0.1, 0.4, training=True)
    y.sum().backward()
    near(x.grad, flow.tensor([-y[0].item(), 1.0]))


def test_what_is_dropped_in_place_has_a_gradient():
    for drop in (F.dropout, F.alpha_dropout, F.feature_alpha_dropout, F.dropout1d, F.rrelu):
        grads = []
        for inplace in (False, True):
            flow.manual_seed(7)
            x = flow.randn((3, 4, 5)).requires_grad_(True)
            y = x * 2
            z = drop(y, training=True, inplace=inplace)
            assert (z is y) == inplace
            (z * z).sum().backward()
            grads.append(x.grad)
        near(*grads)


def test_activations_in_place():
    for name in ("relu", "silu", "mish", "hardsigmoid", "hardswish", "selu", "relu6", "leaky_relu", "elu", "celu", "hardtanh"):
        x = flow.randn((3, 4))
        want, y = getattr(F, name)(x), getattr(F, name)(x, inplace=True)
        assert y is x, name
        near(x, want)
    x = flow.randn((3, 4))
    want = nn.ReLU()(x)
    near(nn.ReLU(inplace=True)(x), want), near(x, want)


@pytest.mark.parametrize("norm_type", [1.0, 2.0])
def test_rows_of_a_table_are_shortened_and_weighed_by_frequency(norm_type):
    torch.manual_seed(0)
    options = dict(max_norm=1.0, norm_type=norm_type, scale_grad_by_freq=True)
    theirs = torch.nn.Embedding(5, 6, 1, **options)
    ours = loaded(nn.Embedding(5, 6, 1, **options), theirs)
    ids = torch.tensor([[0, 3, 1], [3, 3, 0]])
    want, found = theirs(ids), ours(given(ids))
    near(found, want), near(ours.weight, theirs.weight)
    (want**2).sum().backward(), (found * found).sum().backward()
    near(ours.weight.grad, theirs.weight.grad)


def test_a_module_of_complex_numbers():
    theirs = torch.nn.Conv2d(2, 3, 2, dtype=torch.complex128)
    ours, x = loaded(nn.Conv2d(2, 3, 2).to(flow.complex128), theirs), torch.randn(2, 2, 4, 4, dtype=torch.complex128, requires_grad=True)
    a = given(x).requires_grad_(True)
    y, z = ours(a), theirs(x)
    near(y.real, z.real), near(y.imag, z.imag)
    (y.abs() ** 2).sum().backward(), (z.abs() ** 2).sum().backward()
    near(a.grad.real, x.grad.real), near(a.grad.imag, x.grad.imag)
    near(ours.weight.grad.imag, theirs.weight.grad.imag)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("how", [{"batch_chunk_size": 2}, {"batch_chunk_size": 9}, {"chunking_method": "aspect_ratio:2"}, {}])
def test_chunks_of_a_linear_cross_entropy_change_nothing(how, reduction):
    x, w, b = (flow.randn(s, dtype=flow.float64).requires_grad_(True) for s in ((7, 3), (5, 2, 3), (5, 2)))
    options, found = nn.LinearCrossEntropyOptions(**how), []
    indices = flow.tensor([[n % 5, -100 if n == 3 else (3 * n) % 5] for n in range(7)])
    for t, weight in ((indices, None), (indices, flow.rand(5, dtype=flow.float64)), (flow.rand((7, 5, 2), dtype=flow.float64), None)):
        found = []
        for chunks in (None, options):
            y = F.linear_cross_entropy(x, w, t, linear_bias=b, weight=weight, reduction=reduction, label_smoothing=0.1, options=chunks)
            found.append([y, *flow.autograd.grad([(y * y).sum()], [x, w, b])])
        for mine, other in zip(*found):
            near(mine, other, 1e-9)


def test_options_of_chunks_that_mean_nothing_are_refused():
    for wrong in ({"batch_chunk_size": 0}, {"chunking_method": "aspect_ratio:0"}, {"chunking_method": "rows"}, {"batch_chunk_size": 2, "chunking_method": "aspect_ratio"}):
        with pytest.raises(ValueError):
            nn.LinearCrossEntropyOptions(**wrong)


def test_the_softmax_without_a_dim_is_pytorchs():
    for shape in ((4,), (2, 3), (2, 3, 4), (2, 3, 4, 2)):
        x = torch.randn(shape)
        with pytest.warns(UserWarning):
            near(nn.Softmax()(given(x)), torch.nn.Softmax()(x))


def test_a_dict_of_parameters():
    made = {name: nn.Parameter(flow.ones(n)) for n, name in enumerate("ab", 1)}
    net = nn.ParameterDict(made)
    net["c"] = nn.Parameter(flow.zeros(3))
    assert list(net) == ["a", "b", "c"] and "b" in net and len(net) == 3 and [n for n, _ in net.named_parameters()] == ["a", "b", "c"]
    del net["a"]
    assert set(net.state_dict()) == {"b", "c"} and net["b"].shape == (2,) and dict(net.items()).keys() == net.keys()
    with pytest.raises(NotImplementedError):
        net()


def test_a_deep_copy_of_a_lazy_layer_is_lazy():
    layer = nn.LazyLinear(3)
    twin = copy.deepcopy(layer)
    assert layer(flow.ones((1, 2))).shape == (1, 3) and twin(flow.ones((1, 5))).shape == (1, 3)
