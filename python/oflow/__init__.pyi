# Made by `python python/stubs` from the source beside it; do not edit.

from typing import Any
from ._comm_trace import CommRecord as CommRecord
from ._comm_trace import with_grad_sbp as with_grad_sbp
from ._comm_trace import with_sbp as with_sbp
from ._errors import ArgumentError as ArgumentError
from ._errors import AutogradError as AutogradError
from ._errors import CommError as CommError
from ._errors import ContextError as ContextError
from ._errors import DTypeError as DTypeError
from ._errors import DeniedError as DeniedError
from ._errors import DeviceError as DeviceError
from ._errors import DivergedError as DivergedError
from ._errors import Error as Error
from ._errors import InternalError as InternalError
from ._errors import IoError as IoError
from ._errors import LinkError as LinkError
from ._errors import OutOfMemoryError as OutOfMemoryError
from ._errors import OutOfRangeError as OutOfRangeError
from ._errors import ParseError as ParseError
from ._errors import PeerError as PeerError
from ._errors import PlacementError as PlacementError
from ._errors import RegistryError as RegistryError
from ._errors import SbpError as SbpError
from ._errors import ShapeError as ShapeError
from ._errors import StorageError as StorageError
from ._errors import UnsupportedError as UnsupportedError
from ._function import function as function
from ._graph import Graph as Graph
from ._graph import GraphPlan as GraphPlan
from ._graph import LoadedGraph as LoadedGraph
from ._graph import graph as graph
from ._graph import load_graph as load_graph
from ._graph import scan as scan
from ._modes import autocast as autocast
from ._modes import boxing_policy as boxing_policy
from ._modes import detect_anomaly as detect_anomaly
from ._modes import enable_grad as enable_grad
from ._modes import inference_mode as inference_mode
from ._modes import keep_layouts as keep_layouts
from ._modes import name_scope as name_scope
from ._modes import no_grad as no_grad
from ._modes import no_sync as no_sync
from ._modes import pin_sbp as pin_sbp
from ._modes import set_grad_enabled as set_grad_enabled
from ._modes import watch_calls as watch_calls
from ._numbers import e as e
from ._numbers import finfo as finfo
from ._numbers import iinfo as iinfo
from ._numbers import inf as inf
from ._numbers import nan as nan
from ._numbers import newaxis as newaxis
from ._numbers import pi as pi
from ._oflow import Generator as Generator
from ._oflow import Tensor as Tensor
from ._oflow import device as device
from ._oflow import dtype as dtype
from ._oflow import placement as placement
from ._op import SbpHints as SbpHints
from ._op import op as op
from ._session import Session as Session
from . import autograd as autograd
from . import checkpoint as checkpoint
from .checkpoint import load as load
from .checkpoint import save as save
from . import cuda as cuda
from . import data as data
from . import fft as fft
from . import functional as functional
from . import linalg as linalg
from . import nn as nn
from . import ops as ops
from . import optim as optim
from . import sbp as sbp
from . import signal as signal
from . import special as special
from . import testing as testing
from . import utils as utils
from ._pytorch_forms import (
    as_tensor as as_tensor, broadcast_shapes as broadcast_shapes, clone as clone, empty_like as empty_like, full_like as full_like,
    get_default_dtype as get_default_dtype, histogramdd as histogramdd, is_tensor as is_tensor, istft as istft, nonzero as nonzero,
    ones_like as ones_like, rand_like as rand_like, randint_like as randint_like, randn_like as randn_like,
    set_default_dtype as set_default_dtype, stft as stft, unique as unique, unique_consecutive as unique_consecutive,
    zeros_like as zeros_like,
)
from ._oflow import (
    Library as Library, OpCall as OpCall, Sbp as Sbp, WatchedCall as WatchedCall, abs as abs, abs_ as abs_, absolute as absolute,
    absolute_ as absolute_, acos as acos, acos_ as acos_, acosh as acosh, acosh_ as acosh_, adadelta_many as adadelta_many,
    adagrad_many as adagrad_many, adam_many as adam_many, adamax_many as adamax_many, adamw_many as adamw_many, adamw_step as adamw_step,
    adaptive_avg_pool as adaptive_avg_pool, adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d, adaptive_avg_pool_grad as adaptive_avg_pool_grad, adaptive_max_pool as adaptive_max_pool,
    adaptive_max_pool1d as adaptive_max_pool1d, adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d as adaptive_max_pool2d, adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d as adaptive_max_pool3d, adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices,
    adaptive_max_pool_index as adaptive_max_pool_index, add as add, add_ as add_, addbmm as addbmm, addbmm_ as addbmm_, addcdiv as addcdiv,
    addcdiv_ as addcdiv_, addcmul as addcmul, addcmul_ as addcmul_, addmm as addmm, addmm_ as addmm_, addmv as addmv, addmv_ as addmv_,
    addr as addr, addr_ as addr_, adjoint as adjoint, affine_grid as affine_grid, airy_ai as airy_ai, airy_ai_ as airy_ai_, all as all,
    allclose as allclose, alpha_dropout as alpha_dropout, amax as amax, amin as amin, aminmax as aminmax, angle as angle, any as any,
    arange as arange, arccos as arccos, arccos_ as arccos_, arccosh as arccosh, arccosh_ as arccosh_, arcsin as arcsin, arcsin_ as arcsin_,
    arcsinh as arcsinh, arcsinh_ as arcsinh_, arctan as arctan, arctan2 as arctan2, arctan2_ as arctan2_, arctan_ as arctan_,
    arctanh as arctanh, arctanh_ as arctanh_, argmax as argmax, argmin as argmin, argsort as argsort, argwhere as argwhere,
    asgd_many as asgd_many, asin as asin, asin_ as asin_, asinh as asinh, asinh_ as asinh_, assign as assign, atan as atan, atan2 as atan2,
    atan2_ as atan2_, atan_ as atan_, atanh as atanh, atanh_ as atanh_, atleast_1d as atleast_1d, atleast_2d as atleast_2d,
    atleast_3d as atleast_3d, attention as attention, attention_grad as attention_grad, attention_parts as attention_parts,
    average_many as average_many, avg_pool as avg_pool, avg_pool1d as avg_pool1d, avg_pool2d as avg_pool2d, avg_pool3d as avg_pool3d,
    avg_pool_grad as avg_pool_grad, baddbmm as baddbmm, baddbmm_ as baddbmm_, barrier as barrier, bartlett_window as bartlett_window,
    batch_norm as batch_norm, batch_norm_grad as batch_norm_grad, batch_norm_train as batch_norm_train, bce_each as bce_each,
    bce_logits_each as bce_logits_each, bce_logits_weighted_each as bce_logits_weighted_each, bernoulli as bernoulli,
    bernoulli_ as bernoulli_, bessel_j0 as bessel_j0, bessel_j0_ as bessel_j0_, bessel_j1 as bessel_j1, bessel_j1_ as bessel_j1_,
    bessel_y0 as bessel_y0, bessel_y0_ as bessel_y0_, bessel_y1 as bessel_y1, bessel_y1_ as bessel_y1_, bfloat16 as bfloat16,
    bilinear as bilinear, binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits, bincount as bincount, bitwise_and as bitwise_and,
    bitwise_and_ as bitwise_and_, bitwise_left_shift as bitwise_left_shift, bitwise_left_shift_ as bitwise_left_shift_,
    bitwise_not as bitwise_not, bitwise_not_ as bitwise_not_, bitwise_or as bitwise_or, bitwise_or_ as bitwise_or_,
    bitwise_right_shift as bitwise_right_shift, bitwise_right_shift_ as bitwise_right_shift_, bitwise_xor as bitwise_xor,
    bitwise_xor_ as bitwise_xor_, blackman_window as blackman_window, block_diag as block_diag, bmm as bmm, bool as bool,
    box_many as box_many, box_many_grad as box_many_grad, broadcast_tensors as broadcast_tensors, broadcast_to as broadcast_to,
    bucketize as bucketize, byte as byte, can_cast as can_cast, cartesian_prod as cartesian_prod, cast as cast, cat as cat,
    cauchy_ as cauchy_, cdist as cdist, cdouble as cdouble, ceil as ceil, ceil_ as ceil_, celu as celu, celu_ as celu_, cfloat as cfloat,
    channel_shuffle as channel_shuffle, channels_last as channels_last, channels_last_3d as channels_last_3d, char as char,
    chebyshev_polynomial_t as chebyshev_polynomial_t, chebyshev_polynomial_t_ as chebyshev_polynomial_t_,
    chebyshev_polynomial_u as chebyshev_polynomial_u, chebyshev_polynomial_u_ as chebyshev_polynomial_u_,
    chebyshev_polynomial_v as chebyshev_polynomial_v, chebyshev_polynomial_v_ as chebyshev_polynomial_v_,
    chebyshev_polynomial_w as chebyshev_polynomial_w, chebyshev_polynomial_w_ as chebyshev_polynomial_w_, cholesky as cholesky,
    cholesky_inverse as cholesky_inverse, cholesky_solve as cholesky_solve, chunk as chunk, clamp as clamp, clamp_ as clamp_,
    clamp_max as clamp_max, clamp_max_ as clamp_max_, clamp_min as clamp_min, clamp_min_ as clamp_min_, clip as clip, clip_ as clip_,
    close_to as close_to, col2im as col2im, column_stack as column_stack, combinations as combinations, complex as complex,
    complex128 as complex128, complex64 as complex64, concat as concat, concatenate as concatenate, conj as conj, conj_ as conj_,
    conj_physical as conj_physical, conj_physical_ as conj_physical_, constant_pad_nd as constant_pad_nd, contiguous as contiguous,
    contiguous_format as contiguous_format, conv as conv, conv1d as conv1d, conv2d as conv2d, conv3d as conv3d,
    conv_transpose as conv_transpose, conv_transpose1d as conv_transpose1d, conv_transpose2d as conv_transpose2d,
    conv_transpose3d as conv_transpose3d, conv_weight as conv_weight, copy as copy, copy_ as copy_, copysign as copysign,
    copysign_ as copysign_, corrcoef as corrcoef, cos as cos, cos_ as cos_, cosh as cosh, cosh_ as cosh_,
    cosine_embedding_loss as cosine_embedding_loss, cosine_similarity as cosine_similarity, count_index as count_index,
    count_nonzero as count_nonzero, cov as cov, cross as cross, cross_entropy as cross_entropy, cross_entropy_grad as cross_entropy_grad,
    ctc_loss as ctc_loss, cummax as cummax, cummin as cummin, cumprod as cumprod, cumprod_ as cumprod_, cumsum as cumsum,
    cumsum_ as cumsum_, cumulative_trapezoid as cumulative_trapezoid, deg2rad as deg2rad, deg2rad_ as deg2rad_, dequantize as dequantize,
    det as det, diag as diag, diag_embed as diag_embed, diagflat as diagflat, diagonal as diagonal, diagonal_scatter as diagonal_scatter,
    diff as diff, digamma as digamma, digamma_ as digamma_, dim as dim, dist as dist, distribute as distribute, div as div, div_ as div_,
    divide as divide, divide_ as divide_, dot as dot, double as double, dropout as dropout, dsplit as dsplit, dstack as dstack,
    einsum as einsum, element_size as element_size, elu as elu, elu_ as elu_, embedding as embedding, embedding_bag as embedding_bag,
    embedding_grad as embedding_grad, empty as empty, entr as entr, entr_ as entr_, eq as eq, eq_ as eq_, equal as equal, erf as erf,
    erf_ as erf_, erfc as erfc, erfc_ as erfc_, erfcx as erfcx, erfcx_ as erfcx_, erfinv as erfinv, erfinv_ as erfinv_, exp as exp,
    exp2 as exp2, exp2_ as exp2_, exp_ as exp_, expand as expand, expand_as as expand_as, expm1 as expm1, expm1_ as expm1_,
    exponential_ as exponential_, eye as eye, fake_quantize_per_tensor_affine as fake_quantize_per_tensor_affine,
    feature_alpha_dropout as feature_alpha_dropout, feature_dropout as feature_dropout, fill as fill, fill_ as fill_, fix as fix,
    fix_ as fix_, flatten as flatten, flip as flip, fliplr as fliplr, flipud as flipud, float as float, float16 as float16,
    float32 as float32, float64 as float64, float8_e4m3fn as float8_e4m3fn, float8_e5m2 as float8_e5m2, float_power as float_power,
    float_power_ as float_power_, floor as floor, floor_ as floor_, floor_divide as floor_divide, floor_divide_ as floor_divide_,
    fmax as fmax, fmax_ as fmax_, fmin as fmin, fmin_ as fmin_, fmod as fmod, fmod_ as fmod_, frac as frac, frac_ as frac_,
    fractional_max_pool2d as fractional_max_pool2d, fractional_max_pool3d as fractional_max_pool3d, frexp as frexp,
    frexp_exponent as frexp_exponent, frexp_mantissa as frexp_mantissa, from_boxes as from_boxes, from_dlpack as from_dlpack,
    from_numpy as from_numpy, full as full, gate as gate, gather as gather, gather_last as gather_last,
    gaussian_nll_loss as gaussian_nll_loss, gcd as gcd, gcd_ as gcd_, ge as ge, ge_ as ge_, gelu as gelu, gelu_ as gelu_,
    gelu_tanh as gelu_tanh, gelu_tanh_ as gelu_tanh_, geometric_ as geometric_, geqrf as geqrf, ger as ger, glu as glu, grad as grad,
    gradient as gradient, greater as greater, greater_ as greater_, greater_equal as greater_equal, greater_equal_ as greater_equal_,
    grid_sample as grid_sample, group_norm as group_norm, grouped_norm as grouped_norm, grouped_norm_grad as grouped_norm_grad, gru as gru,
    gru_cell as gru_cell, gt as gt, gt_ as gt_, gumbel_softmax as gumbel_softmax, half as half, hamming_window as hamming_window,
    hann_window as hann_window, hardshrink as hardshrink, hardshrink_ as hardshrink_, hardsigmoid as hardsigmoid,
    hardsigmoid_ as hardsigmoid_, hardswish as hardswish, hardswish_ as hardswish_, hardtanh as hardtanh, hardtanh_ as hardtanh_,
    heaviside as heaviside, heaviside_ as heaviside_, hermite_polynomial_h as hermite_polynomial_h,
    hermite_polynomial_h_ as hermite_polynomial_h_, hermite_polynomial_he as hermite_polynomial_he,
    hermite_polynomial_he_ as hermite_polynomial_he_, hinge_each as hinge_each, hinge_embedding_loss as hinge_embedding_loss,
    histc as histc, histogram as histogram, histogram_within as histogram_within, hsplit as hsplit, hstack as hstack,
    huber_each as huber_each, huber_loss as huber_loss, hypot as hypot, hypot_ as hypot_, i0 as i0, i0_ as i0_, i0e as i0e, i0e_ as i0e_,
    i1 as i1, i1_ as i1_, i1e as i1e, i1e_ as i1e_, igamma as igamma, igamma_ as igamma_, igammac as igammac, igammac_ as igammac_,
    im2col as im2col, imag as imag, index as index, index_add as index_add, index_add_ as index_add_, index_copy as index_copy,
    index_copy_ as index_copy_, index_fill as index_fill, index_fill_ as index_fill_, index_put as index_put, index_put_ as index_put_,
    index_reduce as index_reduce, index_reduce_ as index_reduce_, index_select as index_select, index_sum as index_sum, init as init,
    inner as inner, instance_norm as instance_norm, int as int, int16 as int16, int32 as int32, int64 as int64, int8 as int8,
    int_repr as int_repr, interpolate as interpolate, inverse as inverse, is_complex as is_complex, is_contiguous as is_contiguous,
    is_floating_point as is_floating_point, is_global as is_global, is_grad_enabled as is_grad_enabled, is_initialized as is_initialized,
    is_nonzero as is_nonzero, is_same_size as is_same_size, is_signed as is_signed, isclose as isclose, isfinite as isfinite, isin as isin,
    isinf as isinf, isnan as isnan, isneginf as isneginf, isposinf as isposinf, isreal as isreal, item as item,
    kaiser_window as kaiser_window, kl_div as kl_div, kl_each as kl_each, kl_log_each as kl_log_each, kron as kron, kthvalue as kthvalue,
    l1_each as l1_each, l1_loss as l1_loss, laguerre_polynomial_l as laguerre_polynomial_l,
    laguerre_polynomial_l_ as laguerre_polynomial_l_, lamb_direction_many as lamb_direction_many, last_index as last_index,
    layer_norm as layer_norm, layer_norm_grad as layer_norm_grad, lcm as lcm, lcm_ as lcm_, ldexp as ldexp, ldexp_ as ldexp_, le as le,
    le_ as le_, leaky_relu as leaky_relu, leaky_relu_ as leaky_relu_, legendre_polynomial_p as legendre_polynomial_p,
    legendre_polynomial_p_ as legendre_polynomial_p_, lerp as lerp, lerp_ as lerp_, less as less, less_ as less_, less_equal as less_equal,
    less_equal_ as less_equal_, lgamma as lgamma, lgamma_ as lgamma_, linear as linear, linear_scan as linear_scan, linspace as linspace,
    lion_many as lion_many, local_response_norm as local_response_norm, log as log, log10 as log10, log10_ as log10_, log1p as log1p,
    log1p_ as log1p_, log2 as log2, log2_ as log2_, log_ as log_, log_ndtr as log_ndtr, log_ndtr_ as log_ndtr_, log_normal_ as log_normal_,
    log_sigmoid as log_sigmoid, log_sigmoid_ as log_sigmoid_, log_softmax as log_softmax, log_softmax_grad as log_softmax_grad,
    logaddexp as logaddexp, logaddexp2 as logaddexp2, logaddexp2_ as logaddexp2_, logaddexp_ as logaddexp_, logcumsumexp as logcumsumexp,
    logdet as logdet, logical_and as logical_and, logical_and_ as logical_and_, logical_not as logical_not, logical_not_ as logical_not_,
    logical_or as logical_or, logical_or_ as logical_or_, logical_xor as logical_xor, logical_xor_ as logical_xor_, logit as logit,
    logit_ as logit_, logit_within as logit_within, logspace as logspace, logsumexp as logsumexp, long as long, lp_pool1d as lp_pool1d,
    lp_pool2d as lp_pool2d, lp_pool3d as lp_pool3d, lstm as lstm, lstm_cell as lstm_cell, lt as lt, lt_ as lt_, lu as lu,
    lu_solve as lu_solve, lu_unpack as lu_unpack, manual_seed as manual_seed, margin_ranking_loss as margin_ranking_loss,
    masked_fill as masked_fill, masked_fill_ as masked_fill_, masked_scatter as masked_scatter, masked_scatter_ as masked_scatter_,
    masked_select as masked_select, masked_spread as masked_spread, match_index as match_index, matmul as matmul,
    matmul_rows as matmul_rows, matmul_t as matmul_t, matrix_exp as matrix_exp, matrix_power as matrix_power, max as max,
    max_pool as max_pool, max_pool1d as max_pool1d, max_pool1d_with_indices as max_pool1d_with_indices, max_pool2d as max_pool2d,
    max_pool2d_with_indices as max_pool2d_with_indices, max_pool3d as max_pool3d, max_pool3d_with_indices as max_pool3d_with_indices,
    max_pool_index as max_pool_index, max_unpool1d as max_unpool1d, max_unpool2d as max_unpool2d, max_unpool3d as max_unpool3d,
    maximum as maximum, maximum_ as maximum_, mean as mean, median as median, memory_format as memory_format, memory_stats as memory_stats,
    meshgrid as meshgrid, middle as middle, min as min, minimum as minimum, minimum_ as minimum_, minus_sign as minus_sign, mish as mish,
    mish_ as mish_, mm as mm, mode as mode, modified_bessel_k0 as modified_bessel_k0, modified_bessel_k0_ as modified_bessel_k0_,
    modified_bessel_k1 as modified_bessel_k1, modified_bessel_k1_ as modified_bessel_k1_, moveaxis as moveaxis, movedim as movedim,
    mse_each as mse_each, mse_loss as mse_loss, msort as msort, mul as mul, mul_ as mul_, multi_margin_loss as multi_margin_loss,
    multilabel_margin_loss as multilabel_margin_loss, multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    multinomial as multinomial, multiply as multiply, multiply_ as multiply_, mv as mv, mvlgamma as mvlgamma, mvlgamma_ as mvlgamma_,
    nadam_many as nadam_many, nan_to_num as nan_to_num, nan_to_num_ as nan_to_num_, nanmean as nanmean, nanmedian as nanmedian,
    nanquantile as nanquantile, nansum as nansum, narrow as narrow, ndim as ndim, ndimension as ndimension, ndtr as ndtr, ndtr_ as ndtr_,
    ndtri as ndtri, ndtri_ as ndtri_, ne as ne, ne_ as ne_, neg as neg, neg_ as neg_, negative as negative, negative_ as negative_,
    nelement as nelement, next_half as next_half, nextafter as nextafter, nextafter_ as nextafter_, nll_loss as nll_loss,
    nll_pick as nll_pick, norm as norm, normal as normal, normal_ as normal_, normalize as normalize, not_equal as not_equal,
    not_equal_ as not_equal_, numel as numel, one_hot as one_hot, ones as ones, orgqr as orgqr, ormqr as ormqr, outer as outer, pad as pad,
    pad_constant as pad_constant, pairwise_distance as pairwise_distance, pca_lowrank as pca_lowrank, pdist as pdist, permute as permute,
    pinverse as pinverse, pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle, poisson_nll_loss as poisson_nll_loss,
    polar as polar, polygamma as polygamma, polygamma_ as polygamma_, positive as positive, pow as pow, pow_ as pow_, prelu as prelu,
    preserve_format as preserve_format, prod as prod, promote_types as promote_types, put as put, put_ as put_, q_scale as q_scale,
    q_zero_point as q_zero_point, qr as qr, quantile as quantile, quantize as quantize, quantize_per_tensor as quantize_per_tensor,
    quantized_matmul as quantized_matmul, quick_gelu as quick_gelu, quick_gelu_ as quick_gelu_, rad2deg as rad2deg, rad2deg_ as rad2deg_,
    radam_many as radam_many, rand as rand, randint as randint, randn as randn, randperm as randperm, rank as rank,
    ranking_each as ranking_each, ravel as ravel, rdiv as rdiv, rdiv_ as rdiv_, real as real, reciprocal as reciprocal,
    reciprocal_ as reciprocal_, relu as relu, relu6 as relu6, relu6_ as relu6_, relu_ as relu_, remainder as remainder,
    remainder_ as remainder_, renorm as renorm, renorm_ as renorm_, repeat as repeat, repeat_interleave as repeat_interleave,
    replace_not_finite as replace_not_finite, report as report, requires_grad as requires_grad, resample as resample,
    resample_grad as resample_grad, reshape as reshape, reshape_as as reshape_as, resolve_conj as resolve_conj, resolve_neg as resolve_neg,
    result_type as result_type, rms_norm as rms_norm, rms_norm_grad as rms_norm_grad, rmsprop_many as rmsprop_many, rnn_relu as rnn_relu,
    rnn_relu_cell as rnn_relu_cell, rnn_tanh as rnn_tanh, rnn_tanh_cell as rnn_tanh_cell, roll as roll, roll_along as roll_along,
    root as root, rot90 as rot90, rotary_embedding as rotary_embedding, round as round, round_ as round_, row_stack as row_stack,
    rpow as rpow, rpow_ as rpow_, rprop_many as rprop_many, rrelu as rrelu, rsqrt as rsqrt, rsqrt_ as rsqrt_, rsub as rsub, rsub_ as rsub_,
    scalar_tensor as scalar_tensor, scale_many as scale_many, scaled_dot_product_attention as scaled_dot_product_attention,
    scaled_modified_bessel_k0 as scaled_modified_bessel_k0, scaled_modified_bessel_k0_ as scaled_modified_bessel_k0_,
    scaled_modified_bessel_k1 as scaled_modified_bessel_k1, scaled_modified_bessel_k1_ as scaled_modified_bessel_k1_, scatter as scatter,
    scatter_ as scatter_, scatter_add as scatter_add, scatter_add_ as scatter_add_, scatter_fill as scatter_fill,
    scatter_into as scatter_into, scatter_reduce as scatter_reduce, scatter_reduce_ as scatter_reduce_, scatter_sum as scatter_sum,
    searchsorted as searchsorted, select as select, select_scatter as select_scatter, selu as selu, selu_ as selu_, sgd_many as sgd_many,
    sgd_step as sgd_step, sgn as sgn, sgn_ as sgn_, shape as shape, shards_to_global as shards_to_global,
    shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_t_ as shifted_chebyshev_polynomial_t_,
    shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u, shifted_chebyshev_polynomial_u_ as shifted_chebyshev_polynomial_u_,
    shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v, shifted_chebyshev_polynomial_v_ as shifted_chebyshev_polynomial_v_,
    shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w, shifted_chebyshev_polynomial_w_ as shifted_chebyshev_polynomial_w_,
    short as short, sigmoid as sigmoid, sigmoid_ as sigmoid_, sign as sign, sign_ as sign_, signbit as signbit, silu as silu,
    silu_ as silu_, sin as sin, sin_ as sin_, sinc as sinc, sinc_ as sinc_, sinh as sinh, sinh_ as sinh_, size as size, slice as slice,
    slice_grad as slice_grad, slice_scatter as slice_scatter, slogdet as slogdet, smooth_l1_each as smooth_l1_each,
    smooth_l1_loss as smooth_l1_loss, soft_margin_each as soft_margin_each, soft_margin_loss as soft_margin_loss, softmax as softmax,
    softmax_grad as softmax_grad, softplus as softplus, softplus_ as softplus_, softshrink as softshrink, softshrink_ as softshrink_,
    softsign as softsign, softsign_ as softsign_, sort as sort, spherical_bessel_j0 as spherical_bessel_j0,
    spherical_bessel_j0_ as spherical_bessel_j0_, split as split, split_with_sizes as split_with_sizes, sqrt as sqrt, sqrt_ as sqrt_,
    square as square, square_ as square_, squares_of_each as squares_of_each, squeeze as squeeze, stack as stack, std as std,
    std_mean as std_mean, strided as strided, sub as sub, sub_ as sub_, subtract as subtract, subtract_ as subtract_,
    subtract_many as subtract_many, sum as sum, sum_of_squares as sum_of_squares, sum_to_size as sum_to_size, svd as svd,
    svd_lowrank as svd_lowrank, swapaxes as swapaxes, swapdims as swapdims, t as t, take as take, take_along_dim as take_along_dim,
    take_comm_trace as take_comm_trace, tan as tan, tan_ as tan_, tanh as tanh, tanh_ as tanh_, tanhshrink as tanhshrink,
    tanhshrink_ as tanhshrink_, tensor as tensor, tensor_split as tensor_split, tensordot as tensordot, threshold as threshold,
    threshold_ as threshold_, tile as tile, to_device as to_device, to_global as to_global, to_global_grad as to_global_grad,
    to_local as to_local, to_local_grad as to_local_grad, topk as topk, trace as trace, transpose as transpose, trapezoid as trapezoid,
    trapz as trapz, triangular_solve as triangular_solve, tril as tril, tril_ as tril_, tril_indices as tril_indices,
    triplet_margin_loss as triplet_margin_loss, triu as triu, triu_ as triu_, triu_indices as triu_indices, true_divide as true_divide,
    true_divide_ as true_divide_, trunc as trunc, trunc_ as trunc_, uint16 as uint16, uint32 as uint32, uint8 as uint8, unbind as unbind,
    unflatten as unflatten, unfold as unfold, uniform_ as uniform_, unravel_index as unravel_index, unsafe_chunk as unsafe_chunk,
    unsafe_split as unsafe_split, unsafe_split_with_sizes as unsafe_split_with_sizes, unsqueeze as unsqueeze, vander as vander, var as var,
    var_mean as var_mean, vdot as vdot, view as view, view_as as view_as, view_as_complex as view_as_complex, view_as_real as view_as_real,
    vsplit as vsplit, vstack as vstack, where as where, world_size as world_size, wrap_index as wrap_index, xlog1py as xlog1py,
    xlog1py_ as xlog1py_, xlogy as xlogy, xlogy_ as xlogy_, zero_ as zero_, zeros as zeros, zeta as zeta, zeta_ as zeta_,
)

Placement = placement
cpu: device
def __getattr__(name: str) -> Any: ...
