"""Modules with parameters, as in PyTorch: ``oflow.nn.Linear``, ``oflow.nn.Module``, ``oflow.nn.functional``."""

from . import functional, init
from ._summary import ModuleRow, ParameterRow, Summary, summary
from .activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    BCELoss,
    BCEWithLogitsLoss,
    CTCLoss,
    CosineEmbeddingLoss,
    CosineSimilarity,
    CrossEntropyLoss,
    GaussianNLLLoss,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    HingeEmbeddingLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    MSELoss,
    MarginRankingLoss,
    Mish,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    PairwiseDistance,
    PoissonNLLLoss,
    RReLU,
    ReLU,
    ReLU6,
    SiLU,
    Sigmoid,
    SmoothL1Loss,
    SoftMarginLoss,
    Softmax,
    Softmax2d,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from .adaptive import AdaptiveLogSoftmaxWithLoss
from .attention import MultiheadAttention, RotaryEmbedding
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout
from .encoder import Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer
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
from .layers import (
    Bilinear,
    Embedding,
    EmbeddingBag,
    Flatten,
    Identity,
    LayerNorm,
    Linear,
    LinearCrossEntropyLoss,
    PReLU,
    RMSNorm,
    Threshold,
    Unflatten,
)
from .lazy import (
    LazyBatchNorm1d,
    LazyBatchNorm2d,
    LazyBatchNorm3d,
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
    LazyInstanceNorm1d,
    LazyInstanceNorm2d,
    LazyInstanceNorm3d,
    LazyLinear,
)
from .linear_cross_entropy import LinearCrossEntropyOptions
from .module import Module
from .norms import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LocalResponseNorm,
    SyncBatchNorm,
)
from .parameter import Buffer, Parameter
from .pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    FractionalMaxPool2d,
    FractionalMaxPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from .transformer import MLP, SelfAttention, TransformerBlock
from .zero_redundancy import Replicas, zero
from . import utils

__all__ = [name for name in dir() if not name.startswith("_") and name not in (
    "activation", "adaptive", "attention", "containers", "conv", "drawn", "dropout", "dropping", "encoder", "hooks", "image", "layers", "lazy",
    "linear_cross_entropy", "losses", "module", "multihead", "norms", "parameter", "pooling", "pools", "recurrent", "state", "tables",
    "transformer", "zero_redundancy",
)]
