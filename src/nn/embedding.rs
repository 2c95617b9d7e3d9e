//! The module `Embedding`: a table of vectors, read by index.

use super::init;
use crate::context::no_grad;
use crate::error::{CallSite, Error, Result};
use crate::functional::{IntoTarget, scalar_tensor, where_};
use crate::interpreter::Target;
use crate::sbp::NdSbp;
use crate::tensor::Tensor;

/// A table of vectors, read by index. S(0) splits the vocabulary, S(1) splits each vector.
#[derive(crate::nn::Module)]
pub struct Embedding {
    /// The table, `[rows, width]`.
    pub weight: Tensor,
    /// Row that is not trained, if any: its gradient is 0.
    pub padding_idx: Option<usize>,
}

impl Embedding {
    /// Makes a table of `rows` vectors with normally distributed elements of standard deviation 1, PyTorch's default.
    #[track_caller]
    pub fn new(rows: usize, width: usize, target: impl IntoTarget) -> Result<Embedding> {
        Embedding::with_std(rows, width, 1.0, target)
    }
    /// Makes a table with normally distributed elements of standard deviation `std`.
    #[track_caller]
    pub fn with_std(rows: usize, width: usize, std: f64, target: impl IntoTarget) -> Result<Embedding> {
        Ok(Embedding { weight: init::normal([rows, width], std, target)?, padding_idx: None })
    }
    /// Sets row `index` to 0 and excludes it from training, for padding ids.
    ///
    /// # Errors
    /// If `index` is not a row of the table.
    #[track_caller]
    pub fn with_padding(self, index: usize) -> Result<Embedding> {
        let (_quiet, site) = (no_grad(), CallSite::here());
        let _scope = site.scope();
        let rows = self.weight.shape()[0];
        if index >= rows {
            return Err(
                Error::argument(format!("padding_idx {index} is not within the {rows} rows of the table")).at(site)
            );
        }
        let whole = match self.weight.global() {
            Some(g) => Target::Global(g.placement.clone(), NdSbp::broadcast(g.placement.axes())),
            None => Target::Local(self.weight.device()),
        };
        let zero = scalar_tensor(index as i64, whole)?.one_hot(rows)?.ne(0)?.unsqueeze(-1)?;
        self.weight.copy_(&self.weight.detach().masked_fill(&zero, 0.0)?)?;
        Ok(Embedding { padding_idx: Some(index), ..self })
    }
    /// Returns the vectors of integer `ids`, which may have any shape; the result's shape is `[ids…, width]`.
    #[track_caller]
    pub fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        let y = self.weight.embedding(ids)?;
        match self.padding_idx {
            None => Ok(y),
            Some(i) => where_(&ids.eq(i as i64)?.unsqueeze(-1)?, &y.detach(), &y),
        }
    }
}
