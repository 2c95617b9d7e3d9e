//! Losses: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::IntLike;
use crate::tensor::Tensor;

/// Options of [`Tensor::mse_loss_with`](crate::Tensor::mse_loss_with).
#[derive(Clone, Debug)]
pub struct MseLossOptions {
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for MseLossOptions {
    fn default() -> MseLossOptions {
        MseLossOptions {
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::l1_loss_with`](crate::Tensor::l1_loss_with).
#[derive(Clone, Debug)]
pub struct L1LossOptions {
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for L1LossOptions {
    fn default() -> L1LossOptions {
        L1LossOptions {
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::smooth_l1_loss_with`](crate::Tensor::smooth_l1_loss_with).
#[derive(Clone, Debug)]
pub struct SmoothL1LossOptions {
    /// `Float beta=1.0`. `1.0` by default.
    pub beta: f64,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for SmoothL1LossOptions {
    fn default() -> SmoothL1LossOptions {
        SmoothL1LossOptions {
            beta: 1.0,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::huber_loss_with`](crate::Tensor::huber_loss_with).
#[derive(Clone, Debug)]
pub struct HuberLossOptions {
    /// `Float delta=1.0`. `1.0` by default.
    pub delta: f64,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for HuberLossOptions {
    fn default() -> HuberLossOptions {
        HuberLossOptions {
            delta: 1.0,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::binary_cross_entropy_with`](crate::Tensor::binary_cross_entropy_with).
#[derive(Clone, Debug)]
pub struct BinaryCrossEntropyOptions {
    /// `Tensor? weight`. Not given by default.
    pub weight: Option<Tensor>,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for BinaryCrossEntropyOptions {
    fn default() -> BinaryCrossEntropyOptions {
        BinaryCrossEntropyOptions {
            weight: None,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::binary_cross_entropy_with_logits_with`](crate::Tensor::binary_cross_entropy_with_logits_with).
#[derive(Clone, Debug)]
pub struct BinaryCrossEntropyWithLogitsOptions {
    /// `Tensor? weight`. Not given by default.
    pub weight: Option<Tensor>,
    /// `Tensor? pos_weight`. Not given by default.
    pub pos_weight: Option<Tensor>,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for BinaryCrossEntropyWithLogitsOptions {
    fn default() -> BinaryCrossEntropyWithLogitsOptions {
        BinaryCrossEntropyWithLogitsOptions {
            weight: None,
            pos_weight: None,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::kl_div_with`](crate::Tensor::kl_div_with).
#[derive(Clone, Debug)]
pub struct KlDivOptions {
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
    /// `Bool log_target=false`. `false` by default.
    pub log_target: bool,
}

impl Default for KlDivOptions {
    fn default() -> KlDivOptions {
        KlDivOptions {
            reduction: "mean",
            log_target: false,
        }
    }
}

/// Options of [`Tensor::soft_margin_loss_with`](crate::Tensor::soft_margin_loss_with).
#[derive(Clone, Debug)]
pub struct SoftMarginLossOptions {
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for SoftMarginLossOptions {
    fn default() -> SoftMarginLossOptions {
        SoftMarginLossOptions {
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::hinge_embedding_loss_with`](crate::Tensor::hinge_embedding_loss_with).
#[derive(Clone, Debug)]
pub struct HingeEmbeddingLossOptions {
    /// `Float margin=1.0`. `1.0` by default.
    pub margin: f64,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for HingeEmbeddingLossOptions {
    fn default() -> HingeEmbeddingLossOptions {
        HingeEmbeddingLossOptions {
            margin: 1.0,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::margin_ranking_loss_with`](crate::Tensor::margin_ranking_loss_with).
#[derive(Clone, Debug)]
pub struct MarginRankingLossOptions {
    /// `Float margin=0.0`. `0.0` by default.
    pub margin: f64,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for MarginRankingLossOptions {
    fn default() -> MarginRankingLossOptions {
        MarginRankingLossOptions {
            margin: 0.0,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::poisson_nll_loss_with`](crate::Tensor::poisson_nll_loss_with).
#[derive(Clone, Debug)]
pub struct PoissonNllLossOptions {
    /// `Bool log_input=true`. `true` by default.
    pub log_input: bool,
    /// `Bool full=false`. `false` by default.
    pub full: bool,
    /// `Float eps=1e-8`. `1e-8` by default.
    pub eps: f64,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for PoissonNllLossOptions {
    fn default() -> PoissonNllLossOptions {
        PoissonNllLossOptions {
            log_input: true,
            full: false,
            eps: 1e-8,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::gaussian_nll_loss_with`](crate::Tensor::gaussian_nll_loss_with).
#[derive(Clone, Debug)]
pub struct GaussianNllLossOptions {
    /// `Bool full=false`. `false` by default.
    pub full: bool,
    /// `Float eps=1e-6`. `1e-6` by default.
    pub eps: f64,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for GaussianNllLossOptions {
    fn default() -> GaussianNllLossOptions {
        GaussianNllLossOptions {
            full: false,
            eps: 1e-6,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::cosine_similarity_with`](crate::Tensor::cosine_similarity_with).
#[derive(Clone, Debug)]
pub struct CosineSimilarityOptions {
    /// `Float eps=1e-8`. `1e-8` by default.
    pub eps: f64,
}

impl Default for CosineSimilarityOptions {
    fn default() -> CosineSimilarityOptions {
        CosineSimilarityOptions {
            eps: 1e-8,
        }
    }
}

/// Options of [`Tensor::cosine_embedding_loss_with`](crate::Tensor::cosine_embedding_loss_with).
#[derive(Clone, Debug)]
pub struct CosineEmbeddingLossOptions {
    /// `Float margin=0.0`. `0.0` by default.
    pub margin: f64,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for CosineEmbeddingLossOptions {
    fn default() -> CosineEmbeddingLossOptions {
        CosineEmbeddingLossOptions {
            margin: 0.0,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::pairwise_distance_with`](crate::Tensor::pairwise_distance_with).
#[derive(Clone, Debug)]
pub struct PairwiseDistanceOptions {
    /// `Float p=2.0`. `2.0` by default.
    pub p: f64,
    /// `Float eps=1e-6`. `1e-6` by default.
    pub eps: f64,
}

impl Default for PairwiseDistanceOptions {
    fn default() -> PairwiseDistanceOptions {
        PairwiseDistanceOptions {
            p: 2.0,
            eps: 1e-6,
        }
    }
}

/// Options of [`Tensor::triplet_margin_loss_with`](crate::Tensor::triplet_margin_loss_with).
#[derive(Clone, Debug)]
pub struct TripletMarginLossOptions {
    /// `Float margin=1.0`. `1.0` by default.
    pub margin: f64,
    /// `Float p=2.0`. `2.0` by default.
    pub p: f64,
    /// `Float eps=1e-6`. `1e-6` by default.
    pub eps: f64,
    /// `Bool swap=false`. `false` by default.
    pub swap: bool,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for TripletMarginLossOptions {
    fn default() -> TripletMarginLossOptions {
        TripletMarginLossOptions {
            margin: 1.0,
            p: 2.0,
            eps: 1e-6,
            swap: false,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::cross_entropy_with`](crate::Tensor::cross_entropy_with).
#[derive(Clone, Debug)]
pub struct CrossEntropyOptions {
    /// `Tensor? weight`. Not given by default.
    pub weight: Option<Tensor>,
    /// `Int? ignore_index`. Not given by default.
    pub ignore_index: Option<i64>,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
    /// `Float label_smoothing=0.0`. `0.0` by default.
    pub label_smoothing: f64,
    /// `Int dim=1`. `1` by default.
    pub dim: i64,
}

impl Default for CrossEntropyOptions {
    fn default() -> CrossEntropyOptions {
        CrossEntropyOptions {
            weight: None,
            ignore_index: None,
            reduction: "mean",
            label_smoothing: 0.0,
            dim: 1,
        }
    }
}

/// Options of [`Tensor::nll_loss_with`](crate::Tensor::nll_loss_with).
#[derive(Clone, Debug)]
pub struct NllLossOptions {
    /// `Tensor? weight`. Not given by default.
    pub weight: Option<Tensor>,
    /// `Int? ignore_index`. Not given by default.
    pub ignore_index: Option<i64>,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
    /// `Int dim=1`. `1` by default.
    pub dim: i64,
}

impl Default for NllLossOptions {
    fn default() -> NllLossOptions {
        NllLossOptions {
            weight: None,
            ignore_index: None,
            reduction: "mean",
            dim: 1,
        }
    }
}

/// Options of [`Tensor::multi_margin_loss_with`](crate::Tensor::multi_margin_loss_with).
#[derive(Clone, Debug)]
pub struct MultiMarginLossOptions {
    /// `Int p=1`. `1` by default.
    pub p: i64,
    /// `Float margin=1.0`. `1.0` by default.
    pub margin: f64,
    /// `Tensor? weight`. Not given by default.
    pub weight: Option<Tensor>,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for MultiMarginLossOptions {
    fn default() -> MultiMarginLossOptions {
        MultiMarginLossOptions {
            p: 1,
            margin: 1.0,
            weight: None,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::multilabel_margin_loss_with`](crate::Tensor::multilabel_margin_loss_with).
#[derive(Clone, Debug)]
pub struct MultilabelMarginLossOptions {
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for MultilabelMarginLossOptions {
    fn default() -> MultilabelMarginLossOptions {
        MultilabelMarginLossOptions {
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::multilabel_soft_margin_loss_with`](crate::Tensor::multilabel_soft_margin_loss_with).
#[derive(Clone, Debug)]
pub struct MultilabelSoftMarginLossOptions {
    /// `Tensor? weight`. Not given by default.
    pub weight: Option<Tensor>,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
}

impl Default for MultilabelSoftMarginLossOptions {
    fn default() -> MultilabelSoftMarginLossOptions {
        MultilabelSoftMarginLossOptions {
            weight: None,
            reduction: "mean",
        }
    }
}

/// Options of [`Tensor::ctc_loss_with`](crate::Tensor::ctc_loss_with).
#[derive(Clone, Debug)]
pub struct CtcLossOptions {
    /// `Int blank=0`. `0` by default.
    pub blank: i64,
    /// `String reduction="mean"`. `"mean"` by default.
    pub reduction: &'static str,
    /// `Bool zero_infinity=false`. `false` by default.
    pub zero_infinity: bool,
}

impl Default for CtcLossOptions {
    fn default() -> CtcLossOptions {
        CtcLossOptions {
            blank: 0,
            reduction: "mean",
            zero_infinity: false,
        }
    }
}

impl Tensor {
    /// The squared error (x - target)²: its mean, or what `reduction` says: `none`, `mean` or `sum`.
    ///
    /// ```text
    /// mse_loss(Tensor x, Tensor target, *, String reduction="mean") -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let (x, t) = (arange(4, Device::Cpu.dtype(DType::F32))?, ones([4], Device::Cpu)?);
    /// assert_eq!(x.mse_loss(&t)?.to_vec::<f32>()?, [1.5]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn mse_loss(&self, target: &Tensor) -> Result<Tensor> {
        super::super::losses::mse_loss(self, target, "mean", CallSite::here())
    }

    /// [`Tensor::mse_loss`](crate::Tensor::mse_loss) with its options.
    #[track_caller]
    pub fn mse_loss_with(&self, target: &Tensor, options: &crate::functional::MseLossOptions) -> Result<Tensor> {
        super::super::losses::mse_loss(self, target, options.reduction, CallSite::here())
    }

    /// The absolute error |x - target|.
    ///
    /// ```text
    /// l1_loss(Tensor x, Tensor target, *, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn l1_loss(&self, target: &Tensor) -> Result<Tensor> {
        super::super::losses::l1_loss(self, target, "mean", CallSite::here())
    }

    /// [`Tensor::l1_loss`](crate::Tensor::l1_loss) with its options.
    #[track_caller]
    pub fn l1_loss_with(&self, target: &Tensor, options: &crate::functional::L1LossOptions) -> Result<Tensor> {
        super::super::losses::l1_loss(self, target, options.reduction, CallSite::here())
    }

    /// The squared error over 2 `beta` where |x - target| is below `beta`, else the absolute error less `beta` / 2.
    ///
    /// ```text
    /// smooth_l1_loss(Tensor x, Tensor target, *, Float beta=1.0, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn smooth_l1_loss(&self, target: &Tensor) -> Result<Tensor> {
        super::super::losses::smooth_l1_loss(self, target, 1.0, "mean", CallSite::here())
    }

    /// [`Tensor::smooth_l1_loss`](crate::Tensor::smooth_l1_loss) with its options.
    #[track_caller]
    pub fn smooth_l1_loss_with(
        &self,
        target: &Tensor,
        options: &crate::functional::SmoothL1LossOptions,
    ) -> Result<Tensor> {
        super::super::losses::smooth_l1_loss(self, target, options.beta, options.reduction, CallSite::here())
    }

    /// Half the squared error where |x - target| is at most `delta`, else `delta` times the absolute error less `delta` / 2.
    ///
    /// ```text
    /// huber_loss(Tensor x, Tensor target, *, Float delta=1.0, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn huber_loss(&self, target: &Tensor) -> Result<Tensor> {
        super::super::losses::huber_loss(self, target, 1.0, "mean", CallSite::here())
    }

    /// [`Tensor::huber_loss`](crate::Tensor::huber_loss) with its options.
    #[track_caller]
    pub fn huber_loss_with(
        &self,
        target: &Tensor,
        options: &crate::functional::HuberLossOptions,
    ) -> Result<Tensor> {
        super::super::losses::huber_loss(self, target, options.delta, options.reduction, CallSite::here())
    }

    /// The cross entropy of probabilities x of one of two classes, and targets between 0 and 1.
    ///
    /// ```text
    /// binary_cross_entropy(Tensor x, Tensor target, *, Tensor? weight, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn binary_cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        super::super::losses::binary_cross_entropy(self, target, None, "mean", CallSite::here())
    }

    /// [`Tensor::binary_cross_entropy`](crate::Tensor::binary_cross_entropy) with its options.
    #[track_caller]
    pub fn binary_cross_entropy_with(
        &self,
        target: &Tensor,
        options: &crate::functional::BinaryCrossEntropyOptions,
    ) -> Result<Tensor> {
        super::super::losses::binary_cross_entropy(self, target, options.weight.as_ref(), options.reduction, CallSite::here())
    }

    /// The same of logits, exact also for large ones. `pos_weight` weighs positive targets.
    ///
    /// ```text
    /// binary_cross_entropy_with_logits(Tensor x, Tensor target, *, Tensor? weight, Tensor? pos_weight, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn binary_cross_entropy_with_logits(&self, target: &Tensor) -> Result<Tensor> {
        super::super::losses::binary_cross_entropy_with_logits(self, target, None, None, "mean", CallSite::here())
    }

    /// [`Tensor::binary_cross_entropy_with_logits`](crate::Tensor::binary_cross_entropy_with_logits) with its options.
    #[track_caller]
    pub fn binary_cross_entropy_with_logits_with(
        &self,
        target: &Tensor,
        options: &crate::functional::BinaryCrossEntropyWithLogitsOptions,
    ) -> Result<Tensor> {
        super::super::losses::binary_cross_entropy_with_logits(self, target, options.weight.as_ref(), options.pos_weight.as_ref(), options.reduction, CallSite::here())
    }

    /// The Kullback-Leibler divergence target (log target - x) of log-probabilities x from probabilities, or with `log_target` from
    /// log-probabilities. The reduction `batchmean` divides the sum by the size of dim 0.
    ///
    /// ```text
    /// kl_div(Tensor x, Tensor target, *, String reduction="mean", Bool log_target=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn kl_div(&self, target: &Tensor) -> Result<Tensor> {
        super::super::losses::kl_div(self, target, "mean", false, CallSite::here())
    }

    /// [`Tensor::kl_div`](crate::Tensor::kl_div) with its options.
    #[track_caller]
    pub fn kl_div_with(&self, target: &Tensor, options: &crate::functional::KlDivOptions) -> Result<Tensor> {
        super::super::losses::kl_div(self, target, options.reduction, options.log_target, CallSite::here())
    }

    /// log(1 + e^(-target x)), for targets 1 and -1.
    ///
    /// ```text
    /// soft_margin_loss(Tensor x, Tensor target, *, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn soft_margin_loss(&self, target: &Tensor) -> Result<Tensor> {
        super::super::losses::soft_margin_loss(self, target, "mean", CallSite::here())
    }

    /// [`Tensor::soft_margin_loss`](crate::Tensor::soft_margin_loss) with its options.
    #[track_caller]
    pub fn soft_margin_loss_with(
        &self,
        target: &Tensor,
        options: &crate::functional::SoftMarginLossOptions,
    ) -> Result<Tensor> {
        super::super::losses::soft_margin_loss(self, target, options.reduction, CallSite::here())
    }

    /// x where the target is 1, max(0, margin - x) where it is -1, and the sum of both elsewhere.
    ///
    /// ```text
    /// hinge_embedding_loss(Tensor x, Tensor target, *, Float margin=1.0, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn hinge_embedding_loss(&self, target: &Tensor) -> Result<Tensor> {
        super::super::losses::hinge_embedding_loss(self, target, 1.0, "mean", CallSite::here())
    }

    /// [`Tensor::hinge_embedding_loss`](crate::Tensor::hinge_embedding_loss) with its options.
    #[track_caller]
    pub fn hinge_embedding_loss_with(
        &self,
        target: &Tensor,
        options: &crate::functional::HingeEmbeddingLossOptions,
    ) -> Result<Tensor> {
        super::super::losses::hinge_embedding_loss(self, target, options.margin, options.reduction, CallSite::here())
    }

    /// max(0, margin - target (x1 - x2)): with the target 1, x1 is to be larger by `margin`.
    ///
    /// ```text
    /// margin_ranking_loss(Tensor x1, Tensor x2, Tensor target, *, Float margin=0.0, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn margin_ranking_loss(&self, x2: &Tensor, target: &Tensor) -> Result<Tensor> {
        super::super::losses::margin_ranking_loss(self, x2, target, 0.0, "mean", CallSite::here())
    }

    /// [`Tensor::margin_ranking_loss`](crate::Tensor::margin_ranking_loss) with its options.
    #[track_caller]
    pub fn margin_ranking_loss_with(
        &self,
        x2: &Tensor,
        target: &Tensor,
        options: &crate::functional::MarginRankingLossOptions,
    ) -> Result<Tensor> {
        super::super::losses::margin_ranking_loss(self, x2, target, options.margin, options.reduction, CallSite::here())
    }

    /// The negative log likelihood of counts under a Poisson distribution whose rate is x, or with `log_input` eˣ. `full` adds
    /// Stirling's approximation for targets above 1.
    ///
    /// ```text
    /// poisson_nll_loss(Tensor x, Tensor target, *, Bool log_input=true, Bool full=false, Float eps=1e-8, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn poisson_nll_loss(&self, target: &Tensor) -> Result<Tensor> {
        super::super::losses::poisson_nll_loss(self, target, true, false, 1e-8, "mean", CallSite::here())
    }

    /// [`Tensor::poisson_nll_loss`](crate::Tensor::poisson_nll_loss) with its options.
    #[track_caller]
    pub fn poisson_nll_loss_with(
        &self,
        target: &Tensor,
        options: &crate::functional::PoissonNllLossOptions,
    ) -> Result<Tensor> {
        super::super::losses::poisson_nll_loss(self, target, options.log_input, options.full, options.eps, options.reduction, CallSite::here())
    }

    /// The negative log likelihood of targets under normal distributions with these means and variances. Targets broadcast; the
    /// variances may lack the last dim of x, or have dims of size 1. `full` adds the constant log(2π) / 2.
    ///
    /// ```text
    /// gaussian_nll_loss(Tensor x, Tensor target, Tensor var, *, Bool full=false, Float eps=1e-6, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn gaussian_nll_loss(&self, target: &Tensor, var: &Tensor) -> Result<Tensor> {
        super::super::losses::gaussian_nll_loss(self, target, var, false, 1e-6, "mean", CallSite::here())
    }

    /// [`Tensor::gaussian_nll_loss`](crate::Tensor::gaussian_nll_loss) with its options.
    #[track_caller]
    pub fn gaussian_nll_loss_with(
        &self,
        target: &Tensor,
        var: &Tensor,
        options: &crate::functional::GaussianNllLossOptions,
    ) -> Result<Tensor> {
        super::super::losses::gaussian_nll_loss(self, target, var, options.full, options.eps, options.reduction, CallSite::here())
    }

    /// The cosine of the angle between two tensors along a dim; norms below `eps` count as `eps`.
    ///
    /// ```text
    /// cosine_similarity(Tensor x1, Tensor x2, Int dim=1, *, Float eps=1e-8) -> Tensor
    /// ```
    #[track_caller]
    pub fn cosine_similarity(&self, x2: &Tensor, dim: impl IntLike) -> Result<Tensor> {
        super::super::losses::cosine_similarity(self, x2, dim.int(), 1e-8, CallSite::here())
    }

    /// [`Tensor::cosine_similarity`](crate::Tensor::cosine_similarity) with its options.
    #[track_caller]
    pub fn cosine_similarity_with(
        &self,
        x2: &Tensor,
        dim: impl IntLike,
        options: &crate::functional::CosineSimilarityOptions,
    ) -> Result<Tensor> {
        super::super::losses::cosine_similarity(self, x2, dim.int(), options.eps, CallSite::here())
    }

    /// 1 - cos(x1, x2) where the target is 1, else max(0, cos(x1, x2) - margin).
    ///
    /// ```text
    /// cosine_embedding_loss(Tensor x1, Tensor x2, Tensor target, *, Float margin=0.0, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn cosine_embedding_loss(&self, x2: &Tensor, target: &Tensor) -> Result<Tensor> {
        super::super::losses::cosine_embedding_loss(self, x2, target, 0.0, "mean", CallSite::here())
    }

    /// [`Tensor::cosine_embedding_loss`](crate::Tensor::cosine_embedding_loss) with its options.
    #[track_caller]
    pub fn cosine_embedding_loss_with(
        &self,
        x2: &Tensor,
        target: &Tensor,
        options: &crate::functional::CosineEmbeddingLossOptions,
    ) -> Result<Tensor> {
        super::super::losses::cosine_embedding_loss(self, x2, target, options.margin, options.reduction, CallSite::here())
    }

    /// The p-norm of x1 - x2 + eps along the last dim.
    ///
    /// ```text
    /// pairwise_distance(Tensor x1, Tensor x2, *, Float p=2.0, Float eps=1e-6, Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn pairwise_distance(&self, x2: &Tensor) -> Result<Tensor> {
        super::super::losses::pairwise_distance(self, x2, 2.0, 1e-6, false, CallSite::here())
    }

    /// [`Tensor::pairwise_distance`](crate::Tensor::pairwise_distance) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn pairwise_distance_keepdim(&self, x2: &Tensor) -> Result<Tensor> {
        super::super::losses::pairwise_distance(self, x2, 2.0, 1e-6, true, CallSite::here())
    }

    /// [`Tensor::pairwise_distance`](crate::Tensor::pairwise_distance) with its options.
    #[track_caller]
    pub fn pairwise_distance_with(
        &self,
        x2: &Tensor,
        options: &crate::functional::PairwiseDistanceOptions,
    ) -> Result<Tensor> {
        super::super::losses::pairwise_distance(self, x2, options.p, options.eps, false, CallSite::here())
    }

    /// max(0, d(anchor, positive) - d(anchor, negative) + margin) of rows, d the p-norm of their difference. With `swap` the nearer of
    /// d(anchor, negative) and d(positive, negative) counts.
    ///
    /// ```text
    /// triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, *, Float margin=1.0, Float p=2.0, Float eps=1e-6, Bool swap=false, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn triplet_margin_loss(&self, positive: &Tensor, negative: &Tensor) -> Result<Tensor> {
        super::super::losses::triplet_margin_loss(self, positive, negative, 1.0, 2.0, 1e-6, false, "mean", CallSite::here())
    }

    /// [`Tensor::triplet_margin_loss`](crate::Tensor::triplet_margin_loss) with its options.
    #[track_caller]
    pub fn triplet_margin_loss_with(
        &self,
        positive: &Tensor,
        negative: &Tensor,
        options: &crate::functional::TripletMarginLossOptions,
    ) -> Result<Tensor> {
        super::super::losses::triplet_margin_loss(self, positive, negative, options.margin, options.p, options.eps, options.swap, options.reduction, CallSite::here())
    }

    /// The cross entropy of logits whose classes lie along `dim`, as in PyTorch dim 1 unless given (dim 0 of a single row), and targets:
    /// class indices (integers, with the other dims), or probabilities (with all dims).
    ///
    /// ```text
    /// cross_entropy(Tensor logits, Tensor target, *, Tensor? weight, Int? ignore_index, String reduction="mean", Float label_smoothing=0.0, Int dim=1) -> Tensor
    /// ```
    ///
    /// `weight` has a factor for each class. Rows whose target is `ignore_index` have the loss 0. `label_smoothing` ε mixes the targets
    /// with ε of the uniform distribution. The reduction is `mean`, `sum` or `none`; the mean of indices divides by the weights of the
    /// targets that are not ignored, that of probabilities by the number of rows.
    ///
    /// The loss of half logits is a half, rounded at the end; under autocast it is f32. PyTorch ignores the target -100 unless told
    /// otherwise.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = zeros([2, 4], Device::Cpu)?;
    /// let target = from_vec(vec![3i64, 0], [2], Device::Cpu)?;
    /// assert_eq!(x.cross_entropy(&target)?.to_vec::<f32>()?, [4f32.ln()]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        super::super::class_losses::cross_entropy(self, target, None, None, "mean", 0.0, 1, CallSite::here())
    }

    /// [`Tensor::cross_entropy`](crate::Tensor::cross_entropy) with its options.
    #[track_caller]
    pub fn cross_entropy_with(
        &self,
        target: &Tensor,
        options: &crate::functional::CrossEntropyOptions,
    ) -> Result<Tensor> {
        super::super::class_losses::cross_entropy(self, target, options.weight.as_ref(), options.ignore_index, options.reduction, options.label_smoothing, options.dim, CallSite::here())
    }

    /// The negative log likelihood of log-probabilities whose classes lie along `dim`, as in PyTorch, and class indices with the other
    /// dims. `weight`, `ignore_index` and `reduction` are those of `cross_entropy`.
    ///
    /// ```text
    /// nll_loss(Tensor x, Tensor target, *, Tensor? weight, Int? ignore_index, String reduction="mean", Int dim=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn nll_loss(&self, target: &Tensor) -> Result<Tensor> {
        super::super::class_losses::nll_loss(self, target, None, None, "mean", 1, CallSite::here())
    }

    /// [`Tensor::nll_loss`](crate::Tensor::nll_loss) with its options.
    #[track_caller]
    pub fn nll_loss_with(&self, target: &Tensor, options: &crate::functional::NllLossOptions) -> Result<Tensor> {
        super::super::class_losses::nll_loss(self, target, options.weight.as_ref(), options.ignore_index, options.reduction, options.dim, CallSite::here())
    }

    /// Per row the mean over all classes but the target of max(0, margin - x\[target\] + x)ᵖ, times the weight of the target. p is 1 or 2.
    ///
    /// ```text
    /// multi_margin_loss(Tensor x, Tensor target, *, Int p=1, Float margin=1.0, Tensor? weight, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn multi_margin_loss(&self, target: &Tensor) -> Result<Tensor> {
        super::super::class_losses::multi_margin_loss(self, target, 1, 1.0, None, "mean", CallSite::here())
    }

    /// [`Tensor::multi_margin_loss`](crate::Tensor::multi_margin_loss) with its options.
    #[track_caller]
    pub fn multi_margin_loss_with(
        &self,
        target: &Tensor,
        options: &crate::functional::MultiMarginLossOptions,
    ) -> Result<Tensor> {
        super::super::class_losses::multi_margin_loss(self, target, options.p, options.margin, options.weight.as_ref(), options.reduction, CallSite::here())
    }

    /// Per row the sum over labels y and classes c that are none of max(0, 1 - x\[y\] + x\[c\]), divided by the number of classes. The labels of
    /// a row are those before its first -1.
    ///
    /// ```text
    /// multilabel_margin_loss(Tensor x, Tensor target, *, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn multilabel_margin_loss(&self, target: &Tensor) -> Result<Tensor> {
        super::super::class_losses::multilabel_margin_loss(self, target, "mean", CallSite::here())
    }

    /// [`Tensor::multilabel_margin_loss`](crate::Tensor::multilabel_margin_loss) with its options.
    #[track_caller]
    pub fn multilabel_margin_loss_with(
        &self,
        target: &Tensor,
        options: &crate::functional::MultilabelMarginLossOptions,
    ) -> Result<Tensor> {
        super::super::class_losses::multilabel_margin_loss(self, target, options.reduction, CallSite::here())
    }

    /// Per row the mean over the last dim of the binary cross entropy of logits, times `weight`.
    ///
    /// ```text
    /// multilabel_soft_margin_loss(Tensor x, Tensor target, *, Tensor? weight, String reduction="mean") -> Tensor
    /// ```
    #[track_caller]
    pub fn multilabel_soft_margin_loss(&self, target: &Tensor) -> Result<Tensor> {
        super::super::class_losses::multilabel_soft_margin_loss(self, target, None, "mean", CallSite::here())
    }

    /// [`Tensor::multilabel_soft_margin_loss`](crate::Tensor::multilabel_soft_margin_loss) with its options.
    #[track_caller]
    pub fn multilabel_soft_margin_loss_with(
        &self,
        target: &Tensor,
        options: &crate::functional::MultilabelSoftMarginLossOptions,
    ) -> Result<Tensor> {
        super::super::class_losses::multilabel_soft_margin_loss(self, target, options.weight.as_ref(), options.reduction, CallSite::here())
    }

    /// The negative log likelihood of target sequences under all their alignments with log-probabilities `[T, N, C]` (or `[T, C]`).
    /// Targets are `[N, S]`, or one list of all labels, one sequence after the other; both lengths are `[N]`. `zero_infinity` makes
    /// losses 0, and their gradients, where a target does not fit its input. The mean divides each loss by the length of its target
    /// first.
    ///
    /// ```text
    /// ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, *, Int blank=0, String reduction="mean", Bool zero_infinity=false) -> Tensor
    /// ```
    ///
    /// The gradient is that of the log-probabilities as they are; PyTorch's is that of the logits behind them. Both are the same
    /// through `log_softmax`.
    #[track_caller]
    pub fn ctc_loss(&self, targets: &Tensor, input_lengths: &Tensor, target_lengths: &Tensor) -> Result<Tensor> {
        super::super::ctc::ctc_loss(self, targets, input_lengths, target_lengths, 0, "mean", false, CallSite::here())
    }

    /// [`Tensor::ctc_loss`](crate::Tensor::ctc_loss) with its options.
    #[track_caller]
    pub fn ctc_loss_with(
        &self,
        targets: &Tensor,
        input_lengths: &Tensor,
        target_lengths: &Tensor,
        options: &crate::functional::CtcLossOptions,
    ) -> Result<Tensor> {
        super::super::ctc::ctc_loss(self, targets, input_lengths, target_lengths, options.blank, options.reduction, options.zero_infinity, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("mse_loss(Tensor x, Tensor target, *, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::mse_loss(b.given(0)?, b.given(1)?, b.text(2)?, b.site)?])),
    ("l1_loss(Tensor x, Tensor target, *, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::l1_loss(b.given(0)?, b.given(1)?, b.text(2)?, b.site)?])),
    ("smooth_l1_loss(Tensor x, Tensor target, *, Float beta=1.0, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::smooth_l1_loss(b.given(0)?, b.given(1)?, b.float(2)?, b.text(3)?, b.site)?])),
    ("huber_loss(Tensor x, Tensor target, *, Float delta=1.0, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::huber_loss(b.given(0)?, b.given(1)?, b.float(2)?, b.text(3)?, b.site)?])),
    ("binary_cross_entropy(Tensor x, Tensor target, *, Tensor? weight, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::binary_cross_entropy(b.given(0)?, b.given(1)?, b.tensor(2), b.text(3)?, b.site)?])),
    ("binary_cross_entropy_with_logits(Tensor x, Tensor target, *, Tensor? weight, Tensor? pos_weight, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::binary_cross_entropy_with_logits(b.given(0)?, b.given(1)?, b.tensor(2), b.tensor(3), b.text(4)?, b.site)?])),
    ("kl_div(Tensor x, Tensor target, *, String reduction=\"mean\", Bool log_target=false) -> Tensor", |b| Ok(vec![super::super::losses::kl_div(b.given(0)?, b.given(1)?, b.text(2)?, b.bool(3)?, b.site)?])),
    ("soft_margin_loss(Tensor x, Tensor target, *, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::soft_margin_loss(b.given(0)?, b.given(1)?, b.text(2)?, b.site)?])),
    ("hinge_embedding_loss(Tensor x, Tensor target, *, Float margin=1.0, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::hinge_embedding_loss(b.given(0)?, b.given(1)?, b.float(2)?, b.text(3)?, b.site)?])),
    ("margin_ranking_loss(Tensor x1, Tensor x2, Tensor target, *, Float margin=0.0, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::margin_ranking_loss(b.given(0)?, b.given(1)?, b.given(2)?, b.float(3)?, b.text(4)?, b.site)?])),
    ("poisson_nll_loss(Tensor x, Tensor target, *, Bool log_input=true, Bool full=false, Float eps=1e-8, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::poisson_nll_loss(b.given(0)?, b.given(1)?, b.bool(2)?, b.bool(3)?, b.float(4)?, b.text(5)?, b.site)?])),
    ("gaussian_nll_loss(Tensor x, Tensor target, Tensor var, *, Bool full=false, Float eps=1e-6, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::gaussian_nll_loss(b.given(0)?, b.given(1)?, b.given(2)?, b.bool(3)?, b.float(4)?, b.text(5)?, b.site)?])),
    ("cosine_similarity(Tensor x1, Tensor x2, Int dim=1, *, Float eps=1e-8) -> Tensor", |b| Ok(vec![super::super::losses::cosine_similarity(b.given(0)?, b.given(1)?, b.int(2)?, b.float(3)?, b.site)?])),
    ("cosine_embedding_loss(Tensor x1, Tensor x2, Tensor target, *, Float margin=0.0, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::cosine_embedding_loss(b.given(0)?, b.given(1)?, b.given(2)?, b.float(3)?, b.text(4)?, b.site)?])),
    ("pairwise_distance(Tensor x1, Tensor x2, *, Float p=2.0, Float eps=1e-6, Bool keepdim=false) -> Tensor", |b| Ok(vec![super::super::losses::pairwise_distance(b.given(0)?, b.given(1)?, b.float(2)?, b.float(3)?, b.bool(4)?, b.site)?])),
    ("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, *, Float margin=1.0, Float p=2.0, Float eps=1e-6, Bool swap=false, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::losses::triplet_margin_loss(b.given(0)?, b.given(1)?, b.given(2)?, b.float(3)?, b.float(4)?, b.float(5)?, b.bool(6)?, b.text(7)?, b.site)?])),
    ("cross_entropy(Tensor logits, Tensor target, *, Tensor? weight, Int? ignore_index, String reduction=\"mean\", Float label_smoothing=0.0, Int dim=1) -> Tensor", |b| Ok(vec![super::super::class_losses::cross_entropy(b.given(0)?, b.given(1)?, b.tensor(2), b.int(3).ok(), b.text(4)?, b.float(5)?, b.int(6)?, b.site)?])),
    ("nll_loss(Tensor x, Tensor target, *, Tensor? weight, Int? ignore_index, String reduction=\"mean\", Int dim=1) -> Tensor", |b| Ok(vec![super::super::class_losses::nll_loss(b.given(0)?, b.given(1)?, b.tensor(2), b.int(3).ok(), b.text(4)?, b.int(5)?, b.site)?])),
    ("multi_margin_loss(Tensor x, Tensor target, *, Int p=1, Float margin=1.0, Tensor? weight, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::class_losses::multi_margin_loss(b.given(0)?, b.given(1)?, b.int(2)?, b.float(3)?, b.tensor(4), b.text(5)?, b.site)?])),
    ("multilabel_margin_loss(Tensor x, Tensor target, *, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::class_losses::multilabel_margin_loss(b.given(0)?, b.given(1)?, b.text(2)?, b.site)?])),
    ("multilabel_soft_margin_loss(Tensor x, Tensor target, *, Tensor? weight, String reduction=\"mean\") -> Tensor", |b| Ok(vec![super::super::class_losses::multilabel_soft_margin_loss(b.given(0)?, b.given(1)?, b.tensor(2), b.text(3)?, b.site)?])),
    ("ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, *, Int blank=0, String reduction=\"mean\", Bool zero_infinity=false) -> Tensor", |b| Ok(vec![super::super::ctc::ctc_loss(b.given(0)?, b.given(1)?, b.given(2)?, b.given(3)?, b.int(4)?, b.text(5)?, b.bool(6)?, b.site)?])),
];
