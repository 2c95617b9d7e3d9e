"""Modules with parameters, as in PyTorch: ``oflow.nn.Linear``, ``oflow.nn.Module``, ``oflow.nn.functional``."""

from . import functional, init
from .activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    ReLU6,
    SELU,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    CTCLoss,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    HuberLoss,
    L1Loss,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    MSELoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    ReLU,
    Sigmoid,
    SiLU,
    SmoothL1Loss,
    Softmax,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
)
from .attention import MultiheadAttention, RotaryEmbedding
from .containers import ModuleDict, ModuleList, ParameterList, Sequential
from .conv import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from .image import (
    ChannelShuffle,
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    Fold,
    PixelShuffle,
    PixelUnshuffle,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    Unfold,
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from .layers import Dropout, Embedding, EmbeddingBag, Flatten, Identity, LayerNorm, Linear, PReLU, RMSNorm, Threshold
from .module import Module
from .parameter import Parameter
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from .transformer import MLP, SelfAttention, TransformerBlock
from .zero_redundancy import Replicas, zero
from . import utils

__all__ = [name for name in dir() if not name.startswith("_") and name not in (
    "activation", "attention", "containers", "conv", "image", "layers", "module", "parameter", "recurrent", "transformer",
    "zero_redundancy",
)]
