//! A table of vectors.

use super::init;
use crate::error::Result;
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// A table of vectors, read by index. S(0) splits the vocabulary, S(1) splits each vector.
pub struct Embedding {
    /// The table, `[rows, width]`.
    pub weight: Tensor,
}
crate::module!(Embedding { weight });

impl Embedding {
    /// Makes a table of `rows` vectors with normally distributed elements of standard deviation 1, PyTorch's default.
    #[track_caller]
    pub fn new(rows: usize, width: usize, target: impl IntoTarget) -> Result<Embedding> {
        Embedding::with_std(rows, width, 1.0, target)
    }
    /// Makes a table with normally distributed elements of standard deviation `std`.
    #[track_caller]
    pub fn with_std(rows: usize, width: usize, std: f64, target: impl IntoTarget) -> Result<Embedding> {
        Ok(Embedding { weight: init::normal([rows, width], std, target)? })
    }
    /// Returns the vectors of integer `ids` of any shape, `[ids…, width]`.
    #[track_caller]
    pub fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        self.weight.embedding(ids)
    }
}
