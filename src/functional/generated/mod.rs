//! Methods and functions by subject: made by `cargo xtask codegen` from the texts of the functions; do not edit.

mod random_numbers;
mod elementwise;
mod in_place;
mod activations;
mod complex_numbers;
mod quantised_numbers;
mod reductions;
mod networks;
mod choice;
mod shapes;
mod creation;
mod products;
mod losses;
mod layouts;

/// Functions that are not methods of [`Tensor`](crate::Tensor).
pub mod functions {
    pub use super::random_numbers::{bernoulli, randint, DropoutOptions, rand, rand_with, RandOptions, randn, randn_with, RandnOptions, randperm, MultinomialOptions, normal, normal_of, normal_of_with, NormalOfOptions, GumbelSoftmaxOptions, FeatureDropoutOptions, AlphaDropoutOptions, FeatureAlphaDropoutOptions, RreluOptions};
    pub use super::elementwise::{where_, AddcmulOptions, AddcdivOptions, IsinOptions};
    pub use super::activations::SoftplusOptions;
    pub use super::reductions::{CumsumOptions, VarOptions, StdOptions, NormalizeOptions, VarMeanOptions, StdMeanOptions, CovOptions, QuantileOptions, quantiles, quantiles_keepdim, quantiles_with, QuantilesOptions, NanquantileOptions, HistogramOptions, histogram_within, histogram_within_with, HistogramWithinOptions, DiffOptions, TrapezoidOptions, CumulativeTrapezoidOptions};
    pub use super::networks::{OneHotOptions, RotaryEmbeddingOptions, LayerNormOptions, RmsNormOptions, AttentionOptions, InterpolateOptions, GridSampleOptions, AffineGridOptions, ScaledDotProductAttentionOptions, EmbeddingBagOptions, LstmOptions, GruOptions, RnnTanhOptions, RnnReluOptions};
    pub use super::choice::{SortOptions, SearchsortedOptions, IndexAddOptions, IndexReduceOptions, ScatterReduceOptions, runs_of, runs_of_with, RunsOfOptions, unravel_index, ArgsortOptions, median_of_all, BucketizeOptions, BincountOptions, unique_of, unique_of_with, UniqueOfOptions};
    pub use super::shapes::{cat, stack, view_dtype, split_sizes, squeeze_dims, RepeatInterleaveOptions, meshgrid, meshgrid_with, MeshgridOptions, hstack, vstack, tensor_split_at, column_stack, dstack, block_diag, broadcast_tensors, cartesian_prod, tril_indices, tril_indices_with, TrilIndicesOptions, triu_indices, triu_indices_with, TriuIndicesOptions, hsplit_at, vsplit_at, dsplit_at, PadOptions};
    pub use super::creation::{full, zeros, ones, empty, arange, range, linspace, logspace, logspace_with, LogspaceOptions, eye, eye_with, EyeOptions, scalar_tensor, zeros_like, ones_like, empty_like, randint_like, full_like, rand_like, randn_like, hann_window, hann_window_with, HannWindowOptions, hamming_window, hamming_window_with, HammingWindowOptions, blackman_window, blackman_window_with, BlackmanWindowOptions, bartlett_window, bartlett_window_with, BartlettWindowOptions, kaiser_window, kaiser_window_with, KaiserWindowOptions};
    pub use super::products::{MatmulOptions, AddmmOptions, AddmvOptions, BaddbmmOptions, AddbmmOptions, AddrOptions, einsum};
    pub use super::losses::{MseLossOptions, L1LossOptions, SmoothL1LossOptions, HuberLossOptions, BinaryCrossEntropyOptions, BinaryCrossEntropyWithLogitsOptions, KlDivOptions, SoftMarginLossOptions, HingeEmbeddingLossOptions, MarginRankingLossOptions, PoissonNllLossOptions, GaussianNllLossOptions, CosineSimilarityOptions, CosineEmbeddingLossOptions, PairwiseDistanceOptions, TripletMarginLossOptions, CrossEntropyOptions, NllLossOptions, MultiMarginLossOptions, MultilabelMarginLossOptions, MultilabelSoftMarginLossOptions, CtcLossOptions};
}

/// Text of each function of several ops, and the code that reads its arguments from a call by name.
pub(super) const BY_NAME: &[&[ByName]] = &[
    random_numbers::BY_NAME,
    elementwise::BY_NAME,
    in_place::BY_NAME,
    activations::BY_NAME,
    complex_numbers::BY_NAME,
    quantised_numbers::BY_NAME,
    reductions::BY_NAME,
    networks::BY_NAME,
    choice::BY_NAME,
    shapes::BY_NAME,
    creation::BY_NAME,
    products::BY_NAME,
    losses::BY_NAME,
    layouts::BY_NAME,
];

/// Text of a function and its code.
pub(super) type ByName = (&'static str, fn(&crate::functional::Bound) -> crate::Result<Vec<crate::Tensor>>);
