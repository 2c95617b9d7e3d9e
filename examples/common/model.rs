//! The GPT of `gpt.rs`, `dry_run.rs` and the bench `cuda_speed`: a decoder-only transformer.

use oflow::nn::{Block, BlockOptions, Embedding, LayerNorm, Linear, checkpoint, init};
use oflow::prelude::*;

/// Sizes of a model.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Size of the vocabulary.
    pub vocab: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Sizes of a block.
    pub block: BlockOptions,
    /// Context length in tokens.
    pub seq: usize,
    /// Whether the output layer shares the weight of the token embedding.
    pub tied: bool,
    /// Whether blocks run again in backward, instead of keeping what is inside.
    pub recompute: bool,
}

impl Config {
    /// A model without dropout and with separate output weights; hidden layers are 4 `width`.
    pub fn new(vocab: usize, layers: usize, width: usize, heads: usize, seq: usize) -> Config {
        let block = BlockOptions { width, heads, hidden: 4 * width, dropout: 0.0 };
        Config { vocab, layers, block, seq, tied: false, recompute: false }
    }
}

/// The nd-SBP that is `sbp` on one mesh axis and B on the others.
pub fn on_axis(mesh: &Placement, axis: &str, sbp: Sbp) -> Result<NdSbp> {
    let axis = mesh.axis(axis)?.0;
    Ok((0..mesh.axes()).map(|a| if a == axis { sbp } else { Sbp::Broadcast }).collect())
}

/// Token and position embeddings, blocks, layer norm and a linear output layer.
#[derive(oflow::nn::Module)]
pub struct Gpt {
    wte: Embedding,
    wpe: Embedding,
    h: Vec<Block>,
    lnf: LayerNorm,
    head: Linear,
    recompute: bool,
}

impl Gpt {
    /// A model with random weights in `target`'s layout.
    pub fn new(c: &Config, target: impl IntoTarget) -> Result<Gpt> {
        let (t, width) = (target.into_target(), c.block.width);
        let wte = Embedding::with_std(c.vocab, width, 0.02, &t)?;
        let wpe = Embedding::with_std(c.seq, width, 0.02, &t)?;
        let h = (0..c.layers).map(|_| Block::new(&c.block, &t)).collect::<Result<_>>()?;
        let lnf = LayerNorm::new(width, &t)?;
        let weight = if c.tied { wte.weight.clone() } else { init::normal([c.vocab, width], 0.02, &t)? };
        Ok(Gpt { wte, wpe, h, lnf, head: Linear { weight, bias: None }, recompute: c.recompute })
    }
    /// Rules for [`to_global`](oflow::nn::Module::to_global) that split attention heads and hidden units over mesh axis `tp`.
    /// Each block then has two all-reduces in forward, after `attn.o` and `mlp.pr`, and two in backward.
    pub fn split_rules(mesh: &Placement) -> Result<Vec<(&'static str, NdSbp)>> {
        let whole = NdSbp::broadcast(mesh.axes());
        let split = |dim| on_axis(mesh, "tp", Sbp::Split(dim));
        Ok(vec![
            ("h.*.attn.o.weight", split(1)?),
            ("h.*.attn.o.bias", whole),
            ("h.*.attn.*", split(0)?),
            ("h.*.mlp.fc.*", split(0)?),
            ("h.*.mlp.pr.weight", split(1)?),
        ])
    }
    /// Logits `[B, T, vocab]` of the next token at each position of `ids`, `i64[B, T]`.
    pub fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        let place = ids.placement()?;
        let positions = arange(ids.shape()[1] as i64, (place, NdSbp::broadcast(place.axes())))?;
        let mut x = self.wte.forward(ids)?.add(&self.wpe.forward(&positions)?)?;
        for (i, block) in self.h.iter().enumerate() {
            // Reports show the parts of the block as `h.3.attn.q`, which are the names of their parameters.
            let _scope = oflow::name_scope(&format!("h.{i}"));
            x = if self.recompute { checkpoint(|x| block.forward(x), &x)? } else { block.forward(&x)? };
        }
        self.head.forward(&self.lnf.forward(&x)?)
    }
}
