"""ZeRO, activation checkpointing, and data parallelism of local tensors: over all ranks of the world."""

import numpy as np
import oflow as flow
import pytest
from oflow import nn, optim
from oflow.utils.checkpoint import checkpoint


def values(tensors):
    return [np.array(t.tolist()) for t in tensors]


def same(a, b):
    assert len(a) == len(b) and all((x == y).all() for x, y in zip(a, b))


def trained(stage):
    flow.manual_seed(3)
    mesh = flow.placement.all("cpu")
    net = nn.Sequential(
        nn.Linear(6, 16, placement=mesh, sbp="B"), nn.Dropout(0.25), nn.Linear(16, 3, placement=mesh, sbp="B")
    )
    assert nn.zero(net, stage, axis=0, min_elements=10) is net
    opt = optim.AdamW(net.parameters(), lr=0.1)
    x = flow.randn((8, 6), placement=mesh, sbp="S(0)")
    losses = []
    for _ in range(4):
        opt.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return net, losses


def test_every_stage_has_the_losses_of_a_run_without():
    want = trained(0)
    for stage in (1, 2, 3):
        net, losses = trained(stage)
        assert losses == want[1]
        same(values(net.parameters()), values(want[0].parameters()))
        assert isinstance(net[0].weight, nn.Parameter)
        assert net[0].weight.sbp == (flow.sbp.split(0) if flow.world_size() > 1 else flow.sbp.broadcast,)
        assert net[2].bias.sbp == (flow.sbp.broadcast,)
        net.load_state_dict(want[0].state_dict())
    with pytest.raises(flow.Error, match="unknown stage 4 of ZeRO"):
        nn.zero(net, 4)
    with pytest.raises(flow.Error, match="parameter 'weight'.*is local"):
        nn.zero(nn.Linear(2, 2), 1)


def test_a_checkpointed_part_has_the_gradients_of_a_plain_one():
    def run(call):
        flow.manual_seed(5)
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.GELU(), nn.Linear(8, 4))
        x = flow.randn(6, 4).requires_grad_()
        y, twice = call(lambda x, scale=1.0: (net(x) * scale, x * 2), x)
        (y.sum() + twice.sum()).backward()
        return values([y, x.grad, *(p.grad for p in net.parameters()), net[1].running_mean])

    plain = run(lambda f, x: f(x, scale=3.0))
    same(run(lambda f, x: checkpoint(f, x, use_reentrant=False, scale=3.0)), plain)
    same(run(lambda f, x: checkpoint(lambda x: checkpoint(f, x, scale=3.0), x)), plain)
    with pytest.raises(ValueError, match="use_reentrant is False or None"):
        checkpoint(lambda x: x, 1, use_reentrant=True)
    x = flow.ones(2).requires_grad_()
    with pytest.raises(ZeroDivisionError):
        checkpoint(lambda x: x / 0 if x is None else 1 // 0, x)
    x.exp().sum().backward()
    assert x.grad is not None


def test_replicas_of_local_modules_have_mean_gradients():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.never = nn.Linear(3, 1), nn.Linear(3, 1), nn.Linear(3, 1)

        def forward(self, x, last):
            return self.two(x) if last else self.one(x)

    net = Net()
    replicas = nn.Replicas(net)
    rank, ranks = flow.rank(), flow.world_size()
    last = rank == ranks - 1
    replicas(flow.ones(2, 3) * (rank + 1), last).sum().backward()
    unused = replicas.reduce_gradients()
    want = ["never.weight", "never.bias"] if ranks > 1 else ["one.weight", "one.bias", "never.weight", "never.bias"]
    assert unused == want and net.never.weight.grad is None
    assert net.two.weight.grad.tolist()[0] == pytest.approx([2.0] * 3)
    if ranks > 1:
        mean = sum(2.0 * (r + 1) for r in range(ranks - 1)) / ranks
        assert net.one.weight.grad.tolist()[0] == pytest.approx([mean] * 3)
    optim.SGD(net.parameters(), lr=0.1).step()
