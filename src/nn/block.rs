//! A transformer block.

use super::{Dropout, LayerNorm, Mlp, SelfAttention};
use crate::error::Result;
use crate::functional::IntoTarget;
use crate::tensor::Tensor;

/// Sizes of a [`Block`].
#[derive(Clone, Copy, Debug)]
pub struct BlockOptions {
    /// Width of the residual stream.
    pub width: usize,
    /// Number of heads.
    pub heads: usize,
    /// Width inside the MLP.
    pub hidden: usize,
    /// Probability of dropping what is added to the residual stream.
    pub dropout: f64,
}

/// Pre-norm transformer block: `x + attn(ln1(x))`, then `x + mlp(ln2(x))`.
pub struct Block {
    /// Before attention.
    pub ln1: LayerNorm,
    /// Attention.
    pub attn: SelfAttention,
    /// Before the MLP.
    pub ln2: LayerNorm,
    /// MLP.
    pub mlp: Mlp,
    /// On both branches.
    pub drop: Dropout,
}
crate::module!(Block { ln1, attn, ln2, mlp, drop });

impl Block {
    /// With parameters of their own.
    #[track_caller]
    pub fn new(o: &BlockOptions, target: impl IntoTarget) -> Result<Block> {
        let t = target.into_target();
        Ok(Block {
            ln1: LayerNorm::new(o.width, &t)?,
            attn: SelfAttention::new(o.width, o.heads, &t)?,
            ln2: LayerNorm::new(o.width, &t)?,
            mlp: Mlp::new(o.width, o.hidden, &t)?,
            drop: Dropout::new(o.dropout),
        })
    }
    /// Over `[B, T, width]`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.add(&self.drop.forward(&self.attn.forward(&self.ln1.forward(x)?)?)?)?;
        x.add(&self.drop.forward(&self.mlp.forward(&self.ln2.forward(&x)?)?)?)
    }
}
