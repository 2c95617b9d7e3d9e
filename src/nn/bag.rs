//! Bags of embeddings.

use super::init;
use crate::error::Result;
use crate::functional::{EmbeddingBagOptions, IntoTarget};
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// How the vectors of a bag become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BagMode {
    /// Sum of the bag's rows.
    Sum,
    /// Mean of the bag's rows, PyTorch's default.
    #[default]
    Mean,
    /// The largest element of each column.
    Max,
}

/// A table of vectors, of which each bag of indices gives one. S(0) splits the vocabulary, S(1) splits each vector.
#[derive(crate::nn::Module)]
pub struct EmbeddingBag {
    /// The table, `[rows, width]`.
    pub weight: Tensor,
    /// How the vectors of a bag become one.
    #[module(skip)]
    pub mode: BagMode,
    /// Whether the last offset is the end of the last bag.
    pub include_last_offset: bool,
    /// Index whose vector does not count.
    pub padding_idx: Option<usize>,
}

impl EmbeddingBag {
    /// Makes a table of `rows` vectors with normally distributed elements of standard deviation 1, PyTorch's default.
    #[track_caller]
    pub fn new(rows: usize, width: usize, mode: BagMode, target: impl IntoTarget) -> Result<EmbeddingBag> {
        let weight = init::normal([rows, width], 1.0, target)?;
        Ok(EmbeddingBag { weight, mode, include_last_offset: false, padding_idx: None })
    }
    /// Returns a vector for each bag, `[bags, width]`: for rows of `ids` `[bags, n]`, or for a list `[n]` of ids and the `offsets` at
    /// which bags start.
    #[track_caller]
    pub fn forward(&self, ids: &Tensor, offsets: Option<&Tensor>) -> Result<Tensor> {
        self.forward_weighted(ids, offsets, None)
    }
    /// The same; the vectors of a sum are multiplied by weights of the shape of `ids` first.
    #[track_caller]
    pub fn forward_weighted(&self, ids: &Tensor, offsets: Option<&Tensor>, weights: Option<&Tensor>) -> Result<Tensor> {
        let mode = match self.mode {
            BagMode::Sum => "sum",
            BagMode::Mean => "mean",
            BagMode::Max => "max",
        };
        let options = EmbeddingBagOptions {
            mode,
            per_sample_weights: weights.cloned(),
            include_last_offset: self.include_last_offset,
            padding_idx: self.padding_idx.map(|i| i as i64),
        };
        self.weight.embedding_bag_with(ids, offsets, &options)
    }
}
