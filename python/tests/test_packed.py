"""Packed sequences and recurrent layers over them, beside PyTorch's."""

import numpy as np
import oflow as flow
import pytest

torch = pytest.importorskip("torch")
rnn, theirs = flow.nn.utils.rnn, torch.nn.utils.rnn

LENGTHS = {"sorted": [4, 4, 2, 1], "unsorted": [2, 4, 1, 4], "one": [3], "alike": [3, 3], "steps": [1, 2, 3, 4]}
X = np.random.default_rng(0).normal(size=(4, 4, 3)).astype(np.float32)


def given(m, lengths, requires_grad=False):
    x = X[: max(lengths), : len(lengths)].copy()
    return m.tensor(x, requires_grad=requires_grad)


def same(x, y):
    assert (x is None) == (y is None)
    if x is not None:
        assert tuple(x.shape) == tuple(y.shape)
        np.testing.assert_allclose(np.asarray(x.tolist()), np.asarray(y.tolist()), rtol=1e-4, atol=1e-5)


def same_packed(a, b):
    for x, y in zip(a, b):
        same(x, y)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("name", LENGTHS)
def test_packing(name, batch_first):
    lengths, enforce = LENGTHS[name], name in ("sorted", "one", "alike")
    packed = []
    for m, of in ((flow, rnn), (torch, theirs)):
        x = given(m, lengths)
        x = x.transpose(0, 1) if batch_first else x
        packed.append(of.pack_padded_sequence(x, m.tensor(lengths), batch_first, enforce_sorted=enforce))
    same_packed(*packed)
    for total in (None, 6):
        for x, y in zip(*(of.pad_packed_sequence(p, batch_first, -1.0, total) for of, p in zip((rnn, theirs), packed))):
            same(x, y)
    for x, y in zip(*(of.unpack_sequence(p) for of, p in zip((rnn, theirs), packed)), strict=True):
        same(x, y)
    same_packed(*(of.pack_sequence(of.unpack_sequence(p), enforce_sorted=enforce) for of, p in zip((rnn, theirs), packed)))
    if not enforce:
        same(rnn.invert_permutation(packed[0].sorted_indices), theirs.invert_permutation(packed[1].sorted_indices))


KINDS = {
    "LSTM": ("LSTM", {}),
    "LSTM deep": ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    "LSTM projected": ("LSTM", {"proj_size": 2, "num_layers": 2, "bias": False}),
    "GRU": ("GRU", {"bidirectional": True}),
    "RNN": ("RNN", {"num_layers": 3, "nonlinearity": "relu"}),
}


@pytest.mark.parametrize("layout", [None, "B", "S(0)"])
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("name", ["sorted", "unsorted", "steps"])
@pytest.mark.parametrize("kind", KINDS)
def test_recurrent_layers(kind, name, states, layout):
    cls, options = KINDS[kind]
    torch.manual_seed(1)
    model = getattr(torch.nn, cls)(3, 5, **options)
    mine = getattr(flow.nn, cls)(3, 5, **options)
    mine.load_state_dict({k: t.detach().numpy() for k, t in model.state_dict().items()})
    mesh = flow.placement.all("cpu")
    place = (lambda t: t) if layout is None else lambda t: flow.distribute(t, mesh, layout)
    if layout is not None:
        mine.to_global(mesh)
    lengths = LENGTHS[name]
    results = []
    for m, of, layer, put in ((flow, rnn, mine, place), (torch, theirs, model, lambda t: t)):
        x = put(given(m, lengths)).detach().requires_grad_()
        packed = of.pack_padded_sequence(x, lengths, enforce_sorted=False)
        deep = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        start = [put(m.tensor(np.linspace(-1, 1, deep * len(lengths) * w).reshape(deep, len(lengths), w).astype(np.float32))) for w in (options.get("proj_size", 5), 5)]
        hx = (tuple(start) if cls == "LSTM" else start[0]) if states else None
        y, h = layer(packed, hx)
        padded, _ = of.pad_packed_sequence(y)
        h = h if cls == "LSTM" else (h,)
        (padded.square().sum() + sum((s * s).sum() for s in h)).backward()
        results.append([padded, *h, x.grad, *(p.grad for _, p in sorted(layer.named_parameters()))])
    for x, y in zip(*results, strict=True):
        same(x, y)


def test_dropout_between_layers_drops_in_training_only():
    flow.manual_seed(0)
    layer = flow.nn.GRU(3, 5, num_layers=2, dropout=0.5)
    packed = rnn.pack_padded_sequence(given(flow, [4, 2]), [4, 2])
    first, again = layer(packed)[0].data, layer(packed)[0].data
    assert first.tolist() != again.tolist()
    layer.eval()
    assert layer(packed)[0].data.tolist() == layer(packed)[0].data.tolist()


REFUSED = [
    (lambda x: rnn.pack_padded_sequence(x, [1, 2, 4, 4]), RuntimeError, "the lengths increase"),
    (lambda x: rnn.pack_padded_sequence(x, [4, 2, 1, 0]), ValueError, "at least one element"),
    (lambda x: rnn.pack_padded_sequence(x, [5, 2, 1, 1]), ValueError, "a length is 5"),
    (lambda x: rnn.pack_padded_sequence(x, [4]), ValueError, "1 lengths are given for 4"),
    (lambda x: rnn.pack_padded_sequence(x[0, 0], [1]), ValueError, "not 1 dims"),
    (lambda x: rnn.pad_packed_sequence(rnn.pack_sequence([x]), total_length=2), ValueError, "total_length is 2"),
    (lambda x: flow.nn.GRU(3, 5)(rnn.pack_padded_sequence(x, [4] * 4), flow.zeros(1, 3, 5)), ValueError, r"\(1, 4, 5\), not \(1, 3, 5\)"),
    (lambda x: flow.nn.GRU(3, 5)(rnn.pack_sequence([x])), ValueError, "not 3 dims"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(case):
    call, kind, text = REFUSED[case]
    with pytest.raises(kind, match=text):
        call(given(flow, [4, 4, 4, 4]))
