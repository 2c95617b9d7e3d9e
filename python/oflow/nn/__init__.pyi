# Made by `python python/stubs` from the source beside it; do not edit.

from . import functional as functional, init as init, utils as utils
from ._summary import ModuleRow as ModuleRow, ParameterRow as ParameterRow, Summary as Summary, summary as summary
from .activation import (
    BCELoss as BCELoss, BCEWithLogitsLoss as BCEWithLogitsLoss, CELU as CELU, CTCLoss as CTCLoss,
    CosineEmbeddingLoss as CosineEmbeddingLoss, CosineSimilarity as CosineSimilarity, CrossEntropyLoss as CrossEntropyLoss, ELU as ELU,
    GELU as GELU, GLU as GLU, GaussianNLLLoss as GaussianNLLLoss, Hardshrink as Hardshrink, Hardsigmoid as Hardsigmoid,
    Hardswish as Hardswish, Hardtanh as Hardtanh, HingeEmbeddingLoss as HingeEmbeddingLoss, HuberLoss as HuberLoss, KLDivLoss as KLDivLoss,
    L1Loss as L1Loss, LeakyReLU as LeakyReLU, LogSigmoid as LogSigmoid, LogSoftmax as LogSoftmax, MSELoss as MSELoss,
    MarginRankingLoss as MarginRankingLoss, Mish as Mish, MultiLabelMarginLoss as MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss, MultiMarginLoss as MultiMarginLoss, NLLLoss as NLLLoss,
    PairwiseDistance as PairwiseDistance, PoissonNLLLoss as PoissonNLLLoss, RReLU as RReLU, ReLU as ReLU, ReLU6 as ReLU6, SELU as SELU,
    SiLU as SiLU, Sigmoid as Sigmoid, SmoothL1Loss as SmoothL1Loss, SoftMarginLoss as SoftMarginLoss, Softmax as Softmax,
    Softmax2d as Softmax2d, Softmin as Softmin, Softplus as Softplus, Softshrink as Softshrink, Softsign as Softsign, Tanh as Tanh,
    Tanhshrink as Tanhshrink, TripletMarginLoss as TripletMarginLoss, TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss,
)
from .adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from .attention import MultiheadAttention as MultiheadAttention, RotaryEmbedding as RotaryEmbedding
from .containers import (
    ModuleDict as ModuleDict, ModuleList as ModuleList, ParameterDict as ParameterDict, ParameterList as ParameterList,
    Sequential as Sequential,
)
from .conv import (
    Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d, ConvTranspose1d as ConvTranspose1d, ConvTranspose2d as ConvTranspose2d,
    ConvTranspose3d as ConvTranspose3d,
)
from .dropout import (
    AlphaDropout as AlphaDropout, Dropout as Dropout, Dropout1d as Dropout1d, Dropout2d as Dropout2d, Dropout3d as Dropout3d,
    FeatureAlphaDropout as FeatureAlphaDropout,
)
from .encoder import (
    Transformer as Transformer, TransformerDecoder as TransformerDecoder, TransformerDecoderLayer as TransformerDecoderLayer,
    TransformerEncoder as TransformerEncoder, TransformerEncoderLayer as TransformerEncoderLayer,
)
from .image import (
    ChannelShuffle as ChannelShuffle, CircularPad1d as CircularPad1d, CircularPad2d as CircularPad2d, CircularPad3d as CircularPad3d,
    ConstantPad1d as ConstantPad1d, ConstantPad2d as ConstantPad2d, ConstantPad3d as ConstantPad3d, Fold as Fold,
    PixelShuffle as PixelShuffle, PixelUnshuffle as PixelUnshuffle, ReflectionPad1d as ReflectionPad1d, ReflectionPad2d as ReflectionPad2d,
    ReflectionPad3d as ReflectionPad3d, ReplicationPad1d as ReplicationPad1d, ReplicationPad2d as ReplicationPad2d,
    ReplicationPad3d as ReplicationPad3d, Unfold as Unfold, Upsample as Upsample, UpsamplingBilinear2d as UpsamplingBilinear2d,
    UpsamplingNearest2d as UpsamplingNearest2d, ZeroPad1d as ZeroPad1d, ZeroPad2d as ZeroPad2d, ZeroPad3d as ZeroPad3d,
)
from .layers import (
    Bilinear as Bilinear, Embedding as Embedding, EmbeddingBag as EmbeddingBag, Flatten as Flatten, Identity as Identity,
    LayerNorm as LayerNorm, Linear as Linear, LinearCrossEntropyLoss as LinearCrossEntropyLoss, PReLU as PReLU, RMSNorm as RMSNorm,
    Threshold as Threshold, Unflatten as Unflatten,
)
from .lazy import (
    LazyBatchNorm1d as LazyBatchNorm1d, LazyBatchNorm2d as LazyBatchNorm2d, LazyBatchNorm3d as LazyBatchNorm3d, LazyConv1d as LazyConv1d,
    LazyConv2d as LazyConv2d, LazyConv3d as LazyConv3d, LazyConvTranspose1d as LazyConvTranspose1d,
    LazyConvTranspose2d as LazyConvTranspose2d, LazyConvTranspose3d as LazyConvTranspose3d, LazyInstanceNorm1d as LazyInstanceNorm1d,
    LazyInstanceNorm2d as LazyInstanceNorm2d, LazyInstanceNorm3d as LazyInstanceNorm3d, LazyLinear as LazyLinear,
)
from .linear_cross_entropy import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from .module import Module as Module
from .norms import (
    BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, BatchNorm3d as BatchNorm3d, GroupNorm as GroupNorm,
    InstanceNorm1d as InstanceNorm1d, InstanceNorm2d as InstanceNorm2d, InstanceNorm3d as InstanceNorm3d,
    LocalResponseNorm as LocalResponseNorm, SyncBatchNorm as SyncBatchNorm,
)
from .parameter import Buffer as Buffer, Parameter as Parameter
from .pooling import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d, AdaptiveAvgPool2d as AdaptiveAvgPool2d, AdaptiveAvgPool3d as AdaptiveAvgPool3d,
    AdaptiveMaxPool1d as AdaptiveMaxPool1d, AdaptiveMaxPool2d as AdaptiveMaxPool2d, AdaptiveMaxPool3d as AdaptiveMaxPool3d,
    AvgPool1d as AvgPool1d, AvgPool2d as AvgPool2d, AvgPool3d as AvgPool3d, FractionalMaxPool2d as FractionalMaxPool2d,
    FractionalMaxPool3d as FractionalMaxPool3d, LPPool1d as LPPool1d, LPPool2d as LPPool2d, LPPool3d as LPPool3d, MaxPool1d as MaxPool1d,
    MaxPool2d as MaxPool2d, MaxPool3d as MaxPool3d, MaxUnpool1d as MaxUnpool1d, MaxUnpool2d as MaxUnpool2d, MaxUnpool3d as MaxUnpool3d,
)
from .recurrent import GRU as GRU, GRUCell as GRUCell, LSTM as LSTM, LSTMCell as LSTMCell, RNN as RNN, RNNCell as RNNCell
from .transformer import MLP as MLP, SelfAttention as SelfAttention, TransformerBlock as TransformerBlock
from .zero_redundancy import Replicas as Replicas, zero as zero
