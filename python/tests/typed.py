"""A program with types, which `mypy --strict` and `pyright` accept. It runs, too: what is annotated is so.

A line with `type: ignore` is wrong on purpose. `mypy` says if it is not: then a type was `Any`.
"""

import pathlib
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator

import oflow
import oflow as flow
import oflow.nn.functional as F
import oflow.optim as optim
from oflow import Tensor, device, dtype, nn, placement
from oflow.nn import Linear, Module, Parameter
from oflow.nn.utils import clip_grad_norm_, parameters_to_vector
from oflow.optim import SGD, Adam, AdamW
from oflow.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, OneCycleLR, ReduceLROnPlateau, StepLR
from oflow.utils.checkpoint import checkpoint


class Block(nn.Module):
    mask: Tensor

    def __init__(self, width: int, heads: int = 2, dropout: float = 0.1) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads, dropout=dropout, batch_first=True)
        self.ln = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))
        self.scale = nn.Parameter(flow.ones(width))
        self.register_buffer("mask", flow.zeros(width))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = self.ln(x)
        y, _ = self.attn(h, h, h, attn_mask=mask)
        x = x + y * self.scale + self.mask.sum()
        return x + self.mlp(x)


class Net(Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1, padding="same")
        self.conv2 = nn.Conv2d(4, 8, kernel_size=(3, 3), stride=(1, 1), padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2)
        self.blocks = nn.ModuleList([Block(8) for _ in range(2)])
        self.heads = nn.ModuleDict({"a": nn.Linear(6, 4)})
        self.lstm = nn.LSTM(8, 6, num_layers=2, batch_first=True)
        self.act: Callable[[Tensor], Tensor] = nn.ReLU()
        self.shifts = nn.ParameterList([nn.Parameter(flow.zeros(4))])
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)
            elif isinstance(m, (nn.Conv2d, nn.BatchNorm2d)):
                nn.init.constant_(m.weight, 0.1)
        nn.init.zeros_(self.conv1.bias)
        self.apply(self._shift)

    def _shift(self, m: nn.Module) -> None:
        if isinstance(m, nn.LayerNorm):
            nn.init.normal_(m.weight, mean=1.0, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.bn(self.conv2(F.relu(self.conv1(x)))))
        x, _ = F.max_pool2d(x, 2, return_indices=True)
        x = self.pool(F.avg_pool2d(x, 2)).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        out, (h, c) = self.lstm(x)
        x = F.dropout(out.mean(1), p=0.5, training=self.training) + h[-1] * c[-1]
        x = self.heads["a"](x) + self.shifts[0]
        return F.log_softmax(x, dim=1)


class Scaled(nn.Linear):
    """A layer of the library with another `forward`."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)
        self.gain = nn.Parameter(flow.ones(1))

    def forward(self, input: Tensor, times: int = 1) -> Tensor:
        return super().forward(input) * self.gain * times


class Several(nn.Module):
    def __init__(self, inner: nn.Module, norm: Callable[..., nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.inner, self.norm = inner, norm(4)

    def forward(self, *xs: Tensor, scale: float = 1.0) -> list[Tensor]:
        return [self.norm(self.inner(x)) * scale for x in xs]


class Square(flow.autograd.Function):
    @staticmethod
    def forward(ctx: flow.autograd.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.factor = 2
        return x * x

    @staticmethod
    def backward(ctx: flow.autograd.FunctionCtx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        factor: int = ctx.factor
        return factor * x * grad


def batches() -> Iterator[tuple[Tensor, Tensor]]:
    yield flow.randn(3, 1, 16, 16), flow.tensor([0, 1, 2])


def train(model: nn.Module, optimizer: optim.Optimizer, scheduler: LRScheduler) -> float:
    model.train()
    total = 0.0
    for data, target in batches():
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        norm: Tensor = clip_grad_norm_(model.parameters(), 1.0)
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        total += loss.item() + norm.item()
    return total


@flow.no_grad()
def evaluate(model: nn.Module, x: Tensor) -> float:
    model.eval()
    return float(model(x).sum().item())


@oflow.no_grad
def predict(model: Net, x: Tensor) -> Tensor:
    return model(x)


@flow.inference_mode()
def predict_again(model: Net, x: Tensor) -> Tensor:
    with flow.set_grad_enabled(False), flow.autocast(flow.bfloat16, enabled=False), flow.name_scope("x"):
        return model(x)


@flow.graph
def step(x: Tensor, factor: int = 1) -> Tensor:
    return x * factor


@flow.graph(memory="least")
def totals(x: Tensor) -> dict[str, Tensor]:
    return {"sum": x.sum()}


class Scaler:
    @flow.graph
    def scaled(self, x: Tensor) -> Tensor:
        return x * 2


@flow.function("typed.twice(Tensor x) -> Tensor")
def twice(x: Tensor) -> Tensor:
    return x * 2


model = Net().to("cpu")
images, classes = next(batches())
model.load_state_dict(model.state_dict())
decay = [p for name, p in model.named_parameters() if p.ndim > 1 and not name.endswith("bias")]
groups = [{"params": decay, "weight_decay": 0.1}, {"params": [model.bn.weight], "weight_decay": 0.0, "lr": 1e-4}]
for opt in (AdamW(groups, lr=1e-3, betas=(0.9, 0.95)), Adam(model.parameters()), SGD(model.parameters(), lr=0.1, momentum=0.9)):
    train(model, opt, StepLR(opt, 10, gamma=0.5))
SGD([{"params": model.conv1.parameters(), "lr": 1e-2}, {"params": [model.conv2.weight]}], lr=0.1, nesterov=True, momentum=0.5)
Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-2)
rms = optim.RMSprop(model.named_parameters(), lr=0.1)
for group in rms.param_groups:
    group["lr"] = 0.1
rate: float = LambdaLR(rms, lambda s: 0.9**s).get_last_lr()[0]
ReduceLROnPlateau(rms, "min", patience=3).step(0.5)
OneCycleLR(rms, max_lr=0.1, total_steps=10, cycle_momentum=False).step()
annealing: LRScheduler = CosineAnnealingLR(rms, T_max=10)

model.eval()
output: Tensor = model(images)
number: int = model(images)  # type: ignore[assignment]
if model.training:
    model(images, images, images)  # type: ignore[call-arg]
loss: Tensor = nn.CrossEntropyLoss(label_smoothing=0.1)(output, classes)
squares: Tensor = nn.MSELoss()(output, output) + F.mse_loss(output, output, reduction="sum")
value: float = loss.item()
best: Tensor = output.max(1).values
loss.backward()
evaluate(model, images)
shown: tuple[int, ...] = predict(model, images).shape + predict_again(model, images).shape
wrong: str = predict(model, images)  # type: ignore[assignment]

x = flow.randn((4, 4))
z: Tensor = 2 * x + x / 2 - x @ x.T
run: Tensor = step(x, factor=2) + totals(x)["sum"] + Scaler().scaled(x) + twice(x) + Square.apply(x)
bad: int = step(x)  # type: ignore[assignment]
everywhere: placement = flow.placement.all("cpu")
spread = flow.randn((4, 4), placement=everywhere, sbp=flow.sbp.broadcast)
whole: Tensor = (spread @ spread.to_global(sbp="B")).relu()
count: int = sum(p.numel() for p in model.parameters())
here: device = flow.device("cuda" if flow.cuda.is_available() else "cpu")
kind: dtype = flow.float32
sequence = nn.Sequential(OrderedDict([("fc", nn.Linear(4, 4)), ("relu", nn.ReLU())]))
sequence[0].weight.requires_grad_(False)
first: Tensor = sequence(x)
weight: Parameter = Linear(3, 3).weight
bias: Tensor | None = model.conv1.bias
features: int = Linear(3, 3).in_features
handle = model.register_forward_hook(lambda m, args, result: None)
handle.remove()
again: Tensor = checkpoint(sequence, x, use_reentrant=False)
special: Tensor = flow.special.expit(x) + flow.signal.windows.hann(4)
distinct, counts = flow.unique(x, return_counts=True)
like: Tensor = flow.zeros_like(x, device="cpu", requires_grad=True)
twofold: Tensor = Scaled(4, 4)(x, times=2)
several: list[Tensor] = Several(Scaled(4, 4))(x, x, scale=0.5)
nn.utils.clip_grad_norm_(filter(lambda p: p.requires_grad, model.parameters()), 1.0)
vector: Tensor = parameters_to_vector(model.parameters())
norm: Tensor = flow.linalg.vector_norm(x)
epsilon: float = flow.finfo(flow.float32).eps
hidden: Tensor = nn.GRUCell(4, 4)(x)
encoded: Tensor = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, batch_first=True), 2)(x.unsqueeze(0))
for function in (F.relu, F.gelu, oflow.tanh):
    x = function(x)
for columns in flow.data.Loader([flow.zeros(4, 2), flow.zeros(4)], everywhere, 2, seed=1):
    part: Tensor = columns[0]
averages = flow.optim.EMA(model.parameters(), 0.99)
with averages.averaged():
    evaluate(model, images)
try:
    flow.zeros(2, 3) @ flow.zeros(4, 5)  # pyright: ignore[reportUnusedExpression]
except flow.ShapeError as error:
    message: str = error.message
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "model.safetensors"
    flow.save(model, path)
    model.load_state_dict(flow.load(path))
    with flow.checkpoint.CheckpointManager(pathlib.Path(folder) / "all", keep=2) as manager:
        manager.save(1, {"model": model, "opt": rms})
        latest: int | None = manager.load_latest({"model": model, "opt": rms})

# PyTorch's names of parameters, tensors one by one, and results that are written.
means: Tensor = sequence(x).mean(dim=1, keepdim=True).clamp(min=0.0)
grid: Tensor = oflow.meshgrid(means.flatten(), means.flatten())[0]
with oflow.no_grad():
    total: Tensor = oflow.sum(input=grid, dim=(0, 1), out=oflow.zeros(()))

def habits(x: flow.Tensor) -> None:
    """What programs of PyTorch do by habit."""
    from oflow.utils.data import DataLoader, Dataset, TensorDataset, random_split

    class Rows(Dataset[flow.Tensor]):
        def __getitem__(self, index: int) -> flow.Tensor:
            return x[index]

        def __len__(self) -> int:
            return 2

    parts = random_split(Rows(), [1, 1])
    assert len(parts[0]) == 1
    for batch in DataLoader(TensorDataset(x, x), batch_size=2, shuffle=True, num_workers=1):
        assert batch[0].shape == x.shape
    layer = flow.nn.Linear(x.shape[1], 1)
    handle = layer.register_full_backward_hook(lambda module, given, wanted: None)
    handle.remove()
    layer.reset_parameters()
    y: flow.Tensor = layer.to("cpu", flow.float32)(x)
    packed = flow.nn.utils.rnn.pack_sequence([x, x])
    output, state = flow.nn.GRU(x.shape[1], 3)(packed)
    hidden: flow.Tensor = state
    g = flow.func.grad(lambda w: (w * w).sum())(x)
    assert g.shape == x.shape and flow.autograd.grad(y.sum(), layer.weight)[0].shape == layer.weight.shape


habits(flow.ones(2, 3))
