"""Activations and losses as modules, under PyTorch's names."""

from .._oflow import Tensor
from . import functional as F
from .module import Module


def _plain(name, function):
    """A module without parameters that calls a function of one tensor."""

    def forward(self, input):
        return function(input)

    return type(name, (Module,), {"forward": forward, "__doc__": function.__doc__, "__module__": __name__})


Sigmoid = _plain("Sigmoid", F.sigmoid)
Tanh = _plain("Tanh", F.tanh)
Softsign = _plain("Softsign", F.softsign)
Tanhshrink = _plain("Tanhshrink", F.tanhshrink)
LogSigmoid = _plain("LogSigmoid", F.logsigmoid)


class _WithOptions(Module):
    """Keeps the options of a function and gives them to it."""

    _function = None
    _defaults = {}
    # How many options may be given by position: those that stand in the same places in PyTorch.
    _positional = 0

    def __init__(self, *args, **kwargs):
        super().__init__()
        names = list(self._defaults)
        if len(args) > self._positional:
            more = f"; {', '.join(names[self._positional :])} by name" if len(names) > self._positional else ""
            raise TypeError(f"{type(self).__name__} takes {self._positional} arguments by position, not {len(args)}{more}")
        given = {**self._defaults, **dict(zip(names, args))}
        for name, value in kwargs.items():
            if name not in given:
                raise TypeError(f"{type(self).__name__} has no argument '{name}'; it has {', '.join(names) or 'none'}")
            if name in names[: len(args)]:
                raise TypeError(f"{type(self).__name__} got '{name}' twice")
            given[name] = value
        for name, value in given.items():
            if isinstance(value, Tensor):
                # Weights of classes go where the module goes, and are saved with it, as in PyTorch.
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def _options(self):
        return {name: getattr(self, name) for name in self._defaults}

    def forward(self, *inputs, **named):
        return type(self)._function(*inputs, **named, **self._options())

    def extra_repr(self):
        return ", ".join(f"{name}={value!r}" for name, value in self._options().items())


def _with_options(name, function, by_position=None, **defaults):
    members = {
        "_function": staticmethod(function),
        "_defaults": defaults,
        "_positional": len(defaults) if by_position is None else by_position,
        "__doc__": function.__doc__,
        "__module__": __name__,
    }
    return type(name, (_WithOptions,), members)


def _weighted(name, function, **defaults):
    """A loss whose first option is the weight of each class. PyTorch has options of old before the others, which go by name here."""
    return _with_options(name, function, 1, weight=None, **defaults)


def _reduced(name, function, **defaults):
    """A loss whose options go by name: PyTorch has options of old before them."""
    return _with_options(name, function, 0, **defaults)


ReLU = _with_options("ReLU", F.relu, inplace=False)
SiLU = _with_options("SiLU", F.silu, inplace=False)
Mish = _with_options("Mish", F.mish, inplace=False)
Hardsigmoid = _with_options("Hardsigmoid", F.hardsigmoid, inplace=False)
Hardswish = _with_options("Hardswish", F.hardswish, inplace=False)
SELU = _with_options("SELU", F.selu, inplace=False)
ReLU6 = _with_options("ReLU6", F.relu6, inplace=False)
GELU = _with_options("GELU", F.gelu, approximate="none")
LeakyReLU = _with_options("LeakyReLU", F.leaky_relu, negative_slope=0.01, inplace=False)
ELU = _with_options("ELU", F.elu, alpha=1.0, inplace=False)
CELU = _with_options("CELU", F.celu, alpha=1.0, inplace=False)
GLU = _with_options("GLU", F.glu, dim=-1)
Softplus = _with_options("Softplus", F.softplus, beta=1.0, threshold=20.0)
Hardtanh = _with_options("Hardtanh", F.hardtanh, min_val=-1.0, max_val=1.0, inplace=False)
Hardshrink = _with_options("Hardshrink", F.hardshrink, lambd=0.5)
Softshrink = _with_options("Softshrink", F.softshrink, lambd=0.5)
Softmax = _with_options("Softmax", F.softmax, dim=None)
Softmin = _with_options("Softmin", F.softmin, dim=None)
LogSoftmax = _with_options("LogSoftmax", F.log_softmax, dim=None)
CosineSimilarity = _with_options("CosineSimilarity", F.cosine_similarity, dim=1, eps=1e-8)
PairwiseDistance = _with_options("PairwiseDistance", F.pairwise_distance, p=2.0, eps=1e-6, keepdim=False)


class Softmax2d(Module):
    """Softmax over the channels of ``[batch, channels, height, width]``, or without the batch."""

    def forward(self, input):
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d takes 3 or 4 dims, not {input.ndim}")
        return F.softmax(input, -3)


class RReLU(Module):
    """x, or a slope times x where x is not above 0: in training mode each element has a random one between the two bounds, in evaluation
    mode all have their mean."""

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}"


CrossEntropyLoss = _weighted("CrossEntropyLoss", F.cross_entropy, ignore_index=-100, reduction="mean", label_smoothing=0.0)
NLLLoss = _weighted("NLLLoss", F.nll_loss, ignore_index=-100, reduction="mean")
CTCLoss = _with_options("CTCLoss", F.ctc_loss, blank=0, reduction="mean", zero_infinity=False)
MultiMarginLoss = _with_options("MultiMarginLoss", F.multi_margin_loss, 3, p=1, margin=1.0, weight=None, reduction="mean")
MultiLabelMarginLoss = _reduced("MultiLabelMarginLoss", F.multilabel_margin_loss, reduction="mean")
MultiLabelSoftMarginLoss = _weighted("MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, reduction="mean")
MSELoss = _reduced("MSELoss", F.mse_loss, reduction="mean")
L1Loss = _reduced("L1Loss", F.l1_loss, reduction="mean")
HuberLoss = _with_options("HuberLoss", F.huber_loss, reduction="mean", delta=1.0)
SmoothL1Loss = _reduced("SmoothL1Loss", F.smooth_l1_loss, reduction="mean", beta=1.0)
BCELoss = _weighted("BCELoss", F.binary_cross_entropy, reduction="mean")
BCEWithLogitsLoss = _weighted("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, reduction="mean", pos_weight=None)
KLDivLoss = _reduced("KLDivLoss", F.kl_div, reduction="mean", log_target=False)
SoftMarginLoss = _reduced("SoftMarginLoss", F.soft_margin_loss, reduction="mean")
HingeEmbeddingLoss = _with_options("HingeEmbeddingLoss", F.hinge_embedding_loss, 1, margin=1.0, reduction="mean")
MarginRankingLoss = _with_options("MarginRankingLoss", F.margin_ranking_loss, 1, margin=0.0, reduction="mean")
CosineEmbeddingLoss = _with_options("CosineEmbeddingLoss", F.cosine_embedding_loss, 1, margin=0.0, reduction="mean")
PoissonNLLLoss = _with_options("PoissonNLLLoss", F.poisson_nll_loss, 2, log_input=True, full=False, eps=1e-8, reduction="mean")
GaussianNLLLoss = _reduced("GaussianNLLLoss", F.gaussian_nll_loss, full=False, eps=1e-6, reduction="mean")
TripletMarginLoss = _with_options(
    "TripletMarginLoss", F.triplet_margin_loss, 4, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"
)
TripletMarginWithDistanceLoss = _reduced(
    "TripletMarginWithDistanceLoss",
    F.triplet_margin_with_distance_loss,
    distance_function=None,
    margin=1.0,
    swap=False,
    reduction="mean",
)
