//! Low-rank adaptation of linear layers.

use super::module::own;
use super::{Dropout, Linear, Module, init};
use crate::context::no_grad;
use crate::error::{CallSite, Error, Result};
use crate::functional::IntoTarget;
use crate::sbp::Sbp;
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;

/// Settings of a [`Lora`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoraOptions {
    /// Rank of the product that is added to the weight; 8 at first.
    pub rank: usize,
    /// The product is multiplied by alpha / rank; 16 at first.
    pub alpha: f64,
    /// Probability with which elements of the input of the product are dropped in training; 0 at first.
    pub dropout: f64,
    /// The product is multiplied by alpha / √rank instead (Kalajdzievski, 2023); at first it is not.
    pub rank_stabilized: bool,
}

impl Default for LoraOptions {
    fn default() -> LoraOptions {
        LoraOptions { rank: 8, alpha: 16.0, dropout: 0.0, rank_stabilized: false }
    }
}

/// A linear layer that is trained by a product of two small matrices added to its weight (Hu et al., 2021): `base(x) + scale · x Aᵀ Bᵀ`. The
/// layer itself is frozen. B is 0 at first, so the layer computes what it did before.
///
/// ```
/// use oflow::nn::{Linear, Lora, LoraOptions, Module};
/// use oflow::prelude::*;
/// let base = Linear::new(64, 32, Device::Cpu)?;
/// let mut layer = Lora::new(base, LoraOptions { rank: 4, ..Default::default() })?;
/// let trained: Vec<String> =
///     layer.named_parameters().into_iter().filter(|(_, t)| t.requires_grad()).map(|(name, _)| name).collect();
/// assert_eq!(trained, ["lora_a", "lora_b"]);
/// let x = randn([2, 64], Device::Cpu)?;
/// let y = layer.forward(&x)?;
/// layer.merge()?; // for inference: one product instead of three
/// assert!(layer.forward(&x)?.sub(&y)?.abs()?.amax(())?.item()? < 1e-4);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// The layouts of A and B follow that of the weight, so that the product has the weight's layout and nothing is communicated for it: where
/// S(0) splits the outputs B is S(0), where S(1) splits the inputs A is S(1), otherwise they are B. [`Module::to_global`] sets them by name as for
/// other parameters. A checkpoint of [`Trained`] has A and B alone.
#[derive(crate::nn::Module)]
pub struct Lora {
    /// The layer that is adapted. It is frozen.
    pub base: Linear,
    /// First matrix, A: `[rank, in]`.
    pub lora_a: Tensor,
    /// Second matrix, B: `[out, rank]`.
    pub lora_b: Tensor,
    dropout: Dropout,
    scale: f64,
    merged: bool,
}

impl Lora {
    /// Adapts a layer, which is frozen. A is uniform as a layer's weight is, B is 0.
    ///
    /// # Errors
    /// If the rank is 0, a number is not finite, or the weight has no two dims.
    #[track_caller]
    pub fn new(base: Linear, options: LoraOptions) -> Result<Lora> {
        let site = CallSite::here();
        let LoraOptions { rank, alpha, dropout, rank_stabilized } = options;
        if rank == 0 || !alpha.is_finite() {
            return Err(Error::argument(format!("Lora: rank {rank} and alpha {alpha}"))
                .at(site)
                .help("the rank is 1 or more, alpha is finite"));
        }
        let &[outputs, inputs] = base.weight.shape() else {
            return Err(Error::shape(format!("Lora: the weight {} has no two dims", base.weight.short())).at(site));
        };
        base.freeze("*")?;
        let bound = 1.0 / (inputs.max(1) as f64).sqrt();
        let made = |shape, dim| match base.weight.global() {
            // The dim of the other matrix is split where the weight's is.
            Some(g) => {
                let follow = |s: Sbp| if s == Sbp::Split(dim) { s } else { Sbp::Broadcast };
                let target = (&g.placement, g.sbp.map(follow)).dtype(base.weight.dtype());
                init::uniform(shape, bound, target)
            }
            None => init::uniform(shape, bound, base.weight.device().dtype(base.weight.dtype())),
        };
        let lora_a = made([rank, inputs], 1)?;
        let lora_b = own(made([outputs, rank], 0)?.detach().mul(0.0)?).requires_grad_(true)?;
        let over = if rank_stabilized { (rank as f64).sqrt() } else { rank as f64 };
        Ok(Lora { base, lora_a, lora_b, dropout: Dropout::new(dropout), scale: alpha / over, merged: false })
    }
    /// Maps `[…, in]` to `[…, out]`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let site = CallSite::here();
        let _scope = CallSite::in_scope(site.file, site.line).scope();
        let y = self.base.forward(x)?;
        if self.merged {
            return Ok(y);
        }
        let low = self.dropout.forward(x)?.linear(&self.lora_a, None)?;
        y.add(&low.linear(&self.lora_b, None)?.mul(self.scale)?)
    }
    /// Returns what is added to the weight: `scale · B A`, `[out, in]`.
    ///
    /// # Errors
    /// If the product cannot be computed.
    #[track_caller]
    pub fn delta(&self) -> Result<Tensor> {
        self.lora_b.matmul(&self.lora_a)?.mul(self.scale)
    }
    /// Returns whether the product is in the weight.
    pub fn merged(&self) -> bool {
        self.merged
    }
    /// Adds the product to the weight. `forward` then costs as much as that of the layer, and A and B get no gradients.
    ///
    /// # Errors
    /// If the weight cannot be written.
    #[track_caller]
    pub fn merge(&mut self) -> Result<()> {
        self.put(true)
    }
    /// Takes the product out of the weight, which is as before but for rounding.
    ///
    /// # Errors
    /// If the weight cannot be written.
    #[track_caller]
    pub fn unmerge(&mut self) -> Result<()> {
        self.put(false)
    }
    #[track_caller]
    fn put(&mut self, merged: bool) -> Result<()> {
        if self.merged == merged {
            return Ok(());
        }
        let _no_grad = no_grad();
        let delta = self.delta()?;
        if merged {
            self.base.weight.add_(&delta)?
        } else {
            self.base.weight.sub_(&delta)?
        };
        self.merged = merged;
        Ok(())
    }
    /// Returns the layer with the product in its weight.
    ///
    /// # Errors
    /// If the weight cannot be written.
    #[track_caller]
    pub fn into_linear(mut self) -> Result<Linear> {
        self.merge()?;
        Ok(self.base)
    }
}

/// The parameters of a module that are trained, alone: a section of a checkpoint without those that are frozen. It loads them into a module of
/// which the same are trained; the others must come from elsewhere.
///
/// ```
/// use oflow::nn::{Linear, Lora, LoraOptions, Trained};
/// use oflow::prelude::*;
/// use oflow::state::{SaveState, Stateful};
/// let layer = Lora::new(Linear::new(8, 8, Device::Cpu)?, LoraOptions::default())?;
/// let mut saved = SaveState::new();
/// Trained(&layer).save_state(&mut saved)?;
/// let names: Vec<String> = saved.into_parts().0.into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["lora_a", "lora_b"]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct Trained<'a, M>(pub &'a M);

impl<M: Module> Trained<'_, M> {
    fn tensors(&self) -> impl Iterator<Item = (String, Tensor)> {
        self.0.named_parameters().into_iter().filter(|(_, t)| t.requires_grad())
    }
}

impl<M: Module> Stateful for Trained<'_, M> {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        self.tensors().for_each(|(name, t)| to.tensor(&name, &t));
        Ok(())
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        self.tensors().for_each(|(name, t)| from.fill(&name, &t));
        Ok(())
    }
}
