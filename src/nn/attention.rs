//! Self-attention with several heads.

use super::Linear;
use super::module::part;
use crate::error::{CallSite, Error, Result};
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// Causal self-attention over `[B, T, width]`. Queries, keys and values have separate projections, so that splitting their
/// outputs (S(0)) splits the heads. With the inputs of `o` split (S(1)) no communication is needed in between.
#[derive(crate::nn::Module)]
pub struct SelfAttention {
    /// Projection to queries, weight `[width, width]`.
    pub q: Linear,
    /// Projection to keys, weight `[width, width]`.
    pub k: Linear,
    /// Projection to values, weight `[width, width]`.
    pub v: Linear,
    /// Projection of the concatenated heads, weight `[width, width]`.
    pub o: Linear,
    heads: usize,
}

impl SelfAttention {
    /// Makes a layer with `heads` heads of size `width / heads` and new random parameters.
    ///
    /// # Errors
    /// If `heads` does not divide `width`.
    #[track_caller]
    pub fn new(width: usize, heads: usize, target: impl IntoTarget) -> Result<SelfAttention> {
        if heads == 0 || !width.is_multiple_of(heads) {
            return Err(Error::argument(format!("a width of {width} cannot be cut into {heads} heads"))
                .at(CallSite::here())
                .help("choose a width that is a multiple of the number of heads"));
        }
        let t = target.into_target();
        let layer = || Linear::new(width, width, &t);
        Ok(SelfAttention { q: layer()?, k: layer()?, v: layer()?, o: layer()?, heads })
    }
    /// Maps `[B, T, width]` to `[B, T, width]`. Each position attends to itself and earlier positions.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let heads = |name, l: &Linear| part(name, || l.forward(x)?.reshape(self.apart(x)?)?.permute([0, 2, 1, 3]));
        let (q, k, v) = (heads("q", &self.q)?, heads("k", &self.k)?, heads("v", &self.v)?);
        let [b, t, ..] = self.apart(x)?;
        let y = q.attention(&k, &v, true)?.permute([0, 2, 1, 3])?.reshape([b, t, -1])?;
        part("o", || self.o.forward(&y))
    }
    /// `[B, T, H, D]`.
    fn apart(&self, x: &Tensor) -> Result<[i64; 4]> {
        match x.shape() {
            [b, t, _] => Ok([*b as i64, *t as i64, self.heads as i64, -1]),
            _ => Err(Error::shape(format!("self-attention takes [B, T, width], not {x:?}"))),
        }
    }
}
