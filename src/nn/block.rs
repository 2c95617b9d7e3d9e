//! A transformer block.

use super::module::part;
use super::{Dropout, LayerNorm, Mlp, SelfAttention};
use crate::error::Result;
use crate::functional::{IntoLayout, IntoTarget};
use crate::sbp::Sbp;
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// Sizes of a [`Block`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockOptions {
    /// Width of the residual stream.
    pub width: usize,
    /// Number of attention heads; divides `width`.
    pub heads: usize,
    /// Hidden width of the MLP.
    pub hidden: usize,
    /// Probability of dropping an element that a branch adds to the residual stream.
    #[serde(default)]
    pub dropout: f64,
}

/// Pre-norm transformer block: `x + attn(ln1(x))`, then `x + mlp(ln2(x))`.
#[derive(crate::nn::Module)]
pub struct Block {
    /// Layer norm before attention.
    pub ln1: LayerNorm,
    /// Causal self-attention.
    pub attn: SelfAttention,
    /// Layer norm before the MLP.
    pub ln2: LayerNorm,
    /// Two-layer perceptron.
    pub mlp: Mlp,
    /// Dropout at the end of both branches.
    pub drop: Dropout,
}

impl Block {
    /// Makes a block with new random parameters in the layout of `target`.
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
    /// Maps `[B, T, width]` to `[B, T, width]`.
    ///
    /// The residual stream and its gradient keep the layout of the input; partial axes are reduced first. If weights are split,
    /// each branch therefore ends in one reduction, in forward and in backward. Without this rule the cheapest next op would
    /// split the stream by rows and gather the weights.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = match x.global().filter(|g| g.sbp.has_partial()) {
            Some(g) => x.to_global(g.sbp.map(|s| if s.is_partial() { Sbp::Broadcast } else { s }))?,
            None => x.clone(),
        };
        let h = part("ln1", || branch(&self.ln1.forward(&x)?))?;
        let y = part("attn", || laid(&self.attn.forward(&h)?, &x))?;
        let x = x.add(&self.drop.forward(&y)?)?;
        let h = part("ln2", || branch(&self.ln2.forward(&x)?))?;
        let y = part("mlp", || laid(&self.mlp.forward(&h)?, &x))?;
        x.add(&self.drop.forward(&y)?)
    }
}

/// The same value, whose gradient is laid out as the value is.
fn branch(h: &Tensor) -> Result<Tensor> {
    match h.global() {
        Some(g) => h.to_global((&g.sbp).grad_sbp(&g.sbp)),
        None => Ok(h.clone()),
    }
}

/// `y` in the layout of the residual stream.
fn laid(y: &Tensor, stream: &Tensor) -> Result<Tensor> {
    match stream.global() {
        Some(g) => y.to_global(&g.sbp),
        None => Ok(y.clone()),
    }
}
