//! A table of vectors.

use super::init;
use crate::error::Result;
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// Vectors by index. S(0) splits the vocabulary, S(1) the vectors.
pub struct Embedding {
    /// `[rows, width]`.
    pub weight: Tensor,
}
crate::module!(Embedding { weight });

impl Embedding {
    /// Drawn from the normal distribution of standard deviation 1, PyTorch's default.
    #[track_caller]
    pub fn new(rows: usize, width: usize, target: impl IntoTarget) -> Result<Embedding> {
        Embedding::with_std(rows, width, 1.0, target)
    }
    /// Drawn with that standard deviation.
    #[track_caller]
    pub fn with_std(rows: usize, width: usize, std: f64, target: impl IntoTarget) -> Result<Embedding> {
        Ok(Embedding { weight: init::normal([rows, width], std, target)? })
    }
    /// The vectors of indices, along a new last dim.
    #[track_caller]
    pub fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        self.weight.embedding(ids)
    }
}
