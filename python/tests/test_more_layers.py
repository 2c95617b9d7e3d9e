"""Layers over many classes, batch norm over ranks, and buffers by assignment, beside PyTorch's."""

import numpy as np
import oflow as flow
import pytest

torch = pytest.importorskip("torch")

X = np.random.default_rng(0).normal(size=(12, 16)).astype(np.float32)
TARGETS = np.array([0, 1, 2, 5, 9, 10, 13, 19, 4, 3, 11, 0])


def pair(**options):
    torch.manual_seed(0)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10, 15], div_value=2.0, **options)
    ours = flow.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10, 15], div_value=2.0, **options)
    ours.load_state_dict({k: t.detach().numpy() for k, t in theirs.state_dict().items()})
    return ours, theirs


def same(x, y):
    assert tuple(x.shape) == tuple(y.shape)
    np.testing.assert_allclose(np.asarray(x.detach().tolist()), np.asarray(y.tolist()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", [None, "S(0)"])
@pytest.mark.parametrize("targets", [TARGETS, TARGETS % 4, TARGETS[:1]], ids=["all", "head", "one"])
@pytest.mark.parametrize("head_bias", [False, True])
def test_adaptive_softmax(head_bias, targets, layout):
    ours, theirs = pair(head_bias=head_bias)
    put = lambda t: t  # noqa: E731
    if layout is not None:
        mesh = flow.placement.all("cpu")
        ours.to_global(mesh)
        put = lambda t: flow.distribute(t, mesh, layout)  # noqa: E731
    rows = X[: len(targets)]
    x = put(flow.tensor(rows)).detach().requires_grad_()
    y = torch.tensor(rows, requires_grad=True)
    mine, its = ours(x, put(flow.tensor(targets))), theirs(y, torch.tensor(targets))
    same(mine.output, its.output)
    same(mine.loss, its.loss)
    mine.loss.backward()
    its.loss.backward()
    same(x.grad, y.grad)
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None), name
        if q.grad is not None:
            same(p.grad, q.grad)
    same(ours.log_prob(x), theirs.log_prob(y))
    same(ours.predict(x), theirs.predict(y))


def test_adaptive_softmax_of_one_row():
    ours, theirs = pair()
    same(ours(flow.tensor(X[0]), flow.tensor(7)).output, theirs(torch.tensor(X[0]), torch.tensor(7)).output)


@pytest.mark.parametrize("call, text", [
    (lambda: flow.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2, 2]), "increasing whole numbers from 1 to 4"),
    (lambda: flow.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [5]), "increasing"),
    (lambda: pair()[0](flow.tensor(X), flow.tensor(TARGETS[:3])), r"got \(12, 16\) and \(3,\)"),
    (lambda: pair()[0](flow.tensor(X), flow.tensor(TARGETS + 1)), "from 0 to 19, and these are from 1 to 20"),
    (lambda: flow.nn.SyncBatchNorm(3, process_group=1), "takes no process_group"),
    (lambda: flow.nn.SyncBatchNorm(3)(flow.ones(3)), "at least 2 dims"),
])  # fmt: skip
def test_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_batch_norm_over_ranks():
    mesh = flow.placement.all("cpu")
    model = flow.nn.Sequential(flow.nn.Conv2d(3, 4, 1), flow.nn.BatchNorm2d(4), flow.nn.Sequential(flow.nn.BatchNorm1d(4), flow.nn.ReLU()))
    norm = model[1]
    made = flow.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert made is model and isinstance(model[1], flow.nn.SyncBatchNorm) and isinstance(model[2][0], flow.nn.SyncBatchNorm)
    assert model[1].weight is norm.weight and model[1].running_mean is norm.running_mean and model[1].num_features == 4
    assert list(made.state_dict()) == list(flow.nn.Sequential(flow.nn.Conv2d(3, 4, 1), norm, flow.nn.Sequential(flow.nn.BatchNorm1d(4), flow.nn.ReLU())).state_dict())
    images = np.random.default_rng(1).normal(size=(8, 4, 3, 2)).astype(np.float32)
    theirs, ours = torch.nn.BatchNorm2d(4), flow.nn.SyncBatchNorm(4).to_global(mesh)
    same(ours(flow.distribute(flow.tensor(images), mesh, "S(0)")), theirs(torch.tensor(images)))
    same(ours.running_var, theirs.running_var)
    if flow.world_size() > 1:
        with pytest.raises(ValueError, match="the input is local"):
            flow.nn.SyncBatchNorm(4)(flow.tensor(images))


def test_buffers_by_assignment():
    for m in (flow, torch):
        module = m.nn.Module()
        module.kept = m.nn.Buffer(m.ones(2))
        module.other = m.nn.Buffer(m.zeros(2), persistent=False)
        assert list(module.state_dict()) == ["kept"] and [n for n, _ in module.named_buffers()] == ["kept", "other"]
        module.kept = m.zeros(2)
        assert module.kept.tolist() == [0.0, 0.0] and list(module.state_dict()) == ["kept"]
