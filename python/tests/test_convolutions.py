"""Convolutions, pooling and the norms of channels beside PyTorch's layers with the same weights."""

import numpy as np
import pytest

import oflow
import oflow.nn as nn
import oflow.nn.functional as F

torch = pytest.importorskip("torch")


def pairs():
    t = torch.nn
    yield nn.Conv1d(4, 6, 3, padding=1), t.Conv1d(4, 6, 3, padding=1), (2, 4, 9)
    yield nn.Conv2d(4, 6, (3, 2), stride=2, groups=2), t.Conv2d(4, 6, (3, 2), stride=2, groups=2), (2, 4, 9, 8)
    yield nn.Conv2d(3, 5, 3, padding="same", bias=False), t.Conv2d(3, 5, 3, padding="same", bias=False), (2, 3, 6, 7)
    yield nn.Conv3d(2, 3, 2, dilation=2), t.Conv3d(2, 3, 2, dilation=2), (2, 2, 5, 4, 6)
    yield nn.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1), t.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1), (2, 4, 5)
    yield nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2), t.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2), (2, 4, 4, 5)
    yield nn.ConvTranspose3d(2, 3, 2), t.ConvTranspose3d(2, 3, 2), (2, 2, 3, 4, 3)
    yield nn.MaxPool1d(3, 2, 1), t.MaxPool1d(3, 2, 1), (2, 3, 9)
    yield nn.MaxPool2d(2), t.MaxPool2d(2), (2, 3, 9, 8)
    yield nn.MaxPool3d(2, ceil_mode=True), t.MaxPool3d(2, ceil_mode=True), (2, 3, 5, 4, 3)
    yield nn.AvgPool1d(3, 2, 1, count_include_pad=False), t.AvgPool1d(3, 2, 1, count_include_pad=False), (2, 3, 9)
    yield nn.AvgPool2d(2, divisor_override=3), t.AvgPool2d(2, divisor_override=3), (2, 3, 9, 8)
    yield nn.AvgPool3d(2), t.AvgPool3d(2), (2, 3, 5, 4, 4)
    yield nn.AdaptiveAvgPool2d((3, 2)), t.AdaptiveAvgPool2d((3, 2)), (2, 3, 7, 5)
    yield nn.AdaptiveMaxPool1d(4), t.AdaptiveMaxPool1d(4), (2, 3, 7)
    yield nn.BatchNorm1d(5), t.BatchNorm1d(5), (6, 5)
    yield nn.BatchNorm2d(3, affine=False), t.BatchNorm2d(3, affine=False), (4, 3, 5, 6)
    yield nn.BatchNorm3d(3, momentum=0.3), t.BatchNorm3d(3, momentum=0.3), (4, 3, 2, 3, 4)
    yield nn.InstanceNorm2d(3, affine=True), t.InstanceNorm2d(3, affine=True), (4, 3, 5, 6)
    yield nn.GroupNorm(2, 6), t.GroupNorm(2, 6), (4, 6, 5)
    for mode, padding in (("reflect", 1), ("replicate", (2, 1)), ("circular", "same"), ("reflect", "valid")):
        same = dict(padding=padding, padding_mode=mode)
        yield nn.Conv2d(3, 5, 3, **same), t.Conv2d(3, 5, 3, **same), (2, 3, 6, 7)
    yield nn.Conv1d(3, 5, 4, padding="same", dilation=2, padding_mode="reflect"), t.Conv1d(3, 5, 4, padding="same", dilation=2, padding_mode="reflect"), (2, 3, 9)
    for make in (
        lambda l: l.ReflectionPad2d((1, 2, 0, 3)), lambda l: l.ReplicationPad2d(2), lambda l: l.CircularPad2d((1, 0, 2, 1)),
        lambda l: l.ConstantPad2d((1, -1, 2, 0), 2.5), lambda l: l.ZeroPad2d(1), lambda l: l.Upsample(scale_factor=1.7, mode="bilinear"),
        lambda l: l.Upsample(7, mode="bicubic", align_corners=True), lambda l: l.UpsamplingNearest2d((9, 3)),
        lambda l: l.UpsamplingBilinear2d(scale_factor=2), lambda l: l.PixelShuffle(2), lambda l: l.PixelUnshuffle(2),
        lambda l: l.ChannelShuffle(4), lambda l: l.Unfold((2, 3), padding=1, stride=2),
    ):
        yield make(nn), make(t), (2, 8, 6, 4)
    yield nn.Fold((4, 5), 2), t.Fold((4, 5), 2), (2, 12, 12)


@pytest.mark.parametrize("ours, theirs, shape", list(pairs()), ids=lambda v: type(v).__name__)
def test_a_layer_gives_pytorchs_numbers_and_gradients(ours, theirs, shape):
    state = {name: oflow.tensor(value.numpy()) for name, value in theirs.state_dict().items()}
    ours.load_state_dict(state)
    a = torch.randn(shape, requires_grad=True)
    b = oflow.tensor(a.detach().numpy()).requires_grad_(True)
    for _ in range(2):
        x, y = theirs(a), ours(b)
    assert np.allclose(y.detach().numpy(), x.detach().numpy(), atol=1e-4)
    (x * x).sum().backward()
    (y * y).sum().backward()
    assert np.allclose(b.grad.numpy(), a.grad.numpy(), atol=1e-3)
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters()):
        assert np.allclose(p.grad.numpy(), q.grad.numpy(), atol=1e-2), name
    for (name, p), q in zip(ours.named_buffers(), [b for b in theirs.buffers() if b.dtype.is_floating_point]):
        assert np.allclose(p.numpy(), q.numpy(), atol=1e-5), name
    ours.eval(), theirs.eval()
    assert np.allclose(ours(b).detach().numpy(), theirs(a).detach().numpy(), atol=1e-4)
    assert repr(ours)


def test_what_does_not_fit_is_refused():
    for make in (
        lambda: nn.Conv2d(4, 6, 3, groups=4),
        lambda: nn.Conv2d(4, 6, (3, 3, 3)),
        lambda: nn.GroupNorm(4, 6),
        lambda: nn.Conv1d(4, 6, 0),
        lambda: nn.Conv2d(4, 6, 3, padding_mode="mirror"),
        lambda: nn.ConvTranspose2d(4, 6, 3, padding_mode="reflect"),
        lambda: nn.ReflectionPad2d((1, 2, 3)),
    ):
        with pytest.raises(ValueError):
            make()
    with pytest.raises(oflow.Error):
        F.interpolate(oflow.zeros([1, 1, 4]), 2, mode="linear", antialias=True)
    with pytest.raises(ValueError):
        nn.BatchNorm2d(3)(oflow.zeros([2, 3]))
    y, at = F.max_pool2d(oflow.zeros([1, 1, 4, 4]), 2, return_indices=True)
    assert list(y.shape) == [1, 1, 2, 2] and at.numpy().tolist() == [[[[0, 2], [8, 10]]]]


def test_samples_of_a_grid_are_pytorchs():
    x, theta = torch.randn(2, 3, 5, 4), torch.randn(2, 2, 3)
    t = torch.nn.functional
    grid = t.affine_grid(theta, (2, 3, 3, 6))
    ours = F.affine_grid(oflow.tensor(theta.numpy()), (2, 3, 3, 6))
    assert np.allclose(ours.numpy(), grid.numpy(), atol=1e-5)
    for mode in ("bilinear", "nearest", "bicubic"):
        want = t.grid_sample(x, grid, mode, "reflection", False)
        assert np.allclose(F.grid_sample(oflow.tensor(x.numpy()), oflow.tensor(grid.numpy()), mode, "reflection", False).numpy(), want.numpy(), atol=1e-4)


def test_rotary_embedding_keeps_lengths_and_depends_on_distances():
    for interleaved in (False, True):
        rotary = nn.RotaryEmbedding(8, 32, interleaved=interleaved)
        assert not rotary.state_dict() and "32" in repr(rotary)
        x = oflow.randn([2, 3, 10, 8])
        y = rotary(x)
        assert np.allclose((y * y).sum(-1).numpy(), (x * x).sum(-1).numpy(), atol=1e-4)
        assert np.allclose(y[:, :, 7:].numpy(), rotary(x[:, :, 7:], offset=7).numpy(), atol=1e-5)
        q, k = oflow.randn([1, 8]), oflow.randn([1, 8])
        near = (rotary(q, 3) * rotary(k, 1)).sum().item()
        assert abs(near - (rotary(q, 23) * rotary(k, 21)).sum().item()) < 1e-3
    with pytest.raises(ValueError):
        rotary(x, offset=23)
    with pytest.raises(ValueError):
        nn.RotaryEmbedding(7, 32)
