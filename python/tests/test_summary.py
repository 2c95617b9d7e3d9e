"""Summaries of models, beside torchinfo's."""

import oflow as flow
import pytest
from oflow import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.ReLU()
        )
        self.fc1 = nn.Linear(16 * 8 * 8, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = self.features(x)
        return self.fc2(flow.relu(self.fc1(x.flatten(1))))


def test_modules_and_parameters():
    net = Net()
    net.fc2.bias.requires_grad_(False)
    s = nn.summary(net, flow.ones(4, 3, 16, 16))
    rows = {m.path: m for m in s.modules}
    assert [m.path for m in s.modules][:3] == ["", "features", "features.0"]
    assert rows[""].kind == "Net" and rows["features.0"].kind == "Conv2d" and rows[""].output == "f32[4, 10]"
    assert rows["features.2"].output == "f32[4, 8, 8, 8]" and rows["fc1"].output == "f32[4, 32]"
    assert rows["features"].parameters == 8 * 27 + 8 + 16 * 72
    assert rows["features.3"].mult_adds == 4 * 16 * 64 * 72 and rows["fc1"].mult_adds == 4 * 32 * 1024
    assert [p.name for p in s.parameters] == [name for name, _ in net.named_parameters()]
    assert sum(p.elements for p in s.parameters) == sum(p.numel() for p in net.parameters())
    assert [p.trained for p in s.parameters] == [True] * 6 + [False]
    text = str(s)
    assert all(len(line) <= 100 for line in text.splitlines()), text
    assert "fc2.bias (frozen)" in text and repr(s) == f"Summary({len(s.modules)} modules, 7 parameters)"


def test_beside_torchinfo():
    torch, torchinfo = pytest.importorskip("torch"), pytest.importorskip("torchinfo")
    tn = torch.nn
    theirs = tn.Sequential(
        tn.Conv2d(3, 8, 3, padding=1, bias=False), tn.ReLU(), tn.MaxPool2d(2), tn.Conv2d(8, 16, 3, stride=2, bias=False),
        tn.Flatten(), tn.Linear(144, 32, bias=False), tn.ReLU(), tn.Linear(32, 10, bias=False),
    )  # fmt: skip
    ours = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, stride=2, bias=False),
        nn.Flatten(), nn.Linear(144, 32, bias=False), nn.ReLU(), nn.Linear(32, 10, bias=False),
    )  # fmt: skip
    info = torchinfo.summary(theirs, input_size=(4, 3, 16, 16), verbose=0)
    s = nn.summary(ours, flow.ones(4, 3, 16, 16))
    whole = s.modules[0]
    assert (whole.parameters, whole.mult_adds) == (info.total_params, info.total_mult_adds)
    for row, layer in zip(s.modules, info.summary_list):
        assert row.output == f"f32{list(layer.output_size)}", (row, layer)
        assert row.kind == layer.class_name and row.parameters == layer.num_params


def test_results_of_any_structure_and_errors():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, x, *, scale=1.0):
            return {"a": self.fc(x) * scale, "b": [x.sum(), 3]}

    s = nn.summary(Two(), flow.ones(5, 4), scale=2.0)
    assert s.modules[0].output == "f32[5, 2]" and s.modules[1].mult_adds == 5 * 4 * 2

    class Reads(nn.Module):
        def forward(self, x):
            return x if x.sum().item() > 0 else -x

    with pytest.raises(Exception, match="item"):
        nn.summary(Reads(), flow.ones(2))
    with pytest.raises(ValueError, match="my own"):

        class Raises(nn.Module):
            def forward(self, x):
                raise ValueError("my own")

        nn.summary(Raises(), flow.ones(2))


def test_graphs():
    net = nn.Linear(8, 4)
    opt = flow.optim.SGD(net.parameters(), lr=0.1)

    @flow.graph
    def step(x):
        opt.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        opt.step()
        return loss

    with pytest.raises(ValueError, match="call it first"):
        step.summary()
    step(flow.ones(16, 8))
    s = step.summary()
    assert s.modules[0].mult_adds >= 2 * 16 * 8 * 4
    assert {p.tensor for p in s.parameters} == {"f32[4, 8]", "f32[4]"}
