//! Norms over channels: batch norm and group norm.

use super::{Buffer, init};
use crate::error::{CallSite, Error, Result};
use crate::functional::{IntoTarget, full, zeros};
use crate::tensor::Tensor;
use oflow_kernels::DType;

/// Batch norm: normalises each channel, dim 1 of `[batch, channels, …]`, to mean 0 and variance 1, then scales and shifts it. Training
/// mode uses mean and variance of the whole logical batch, whatever its SBP, and updates the running statistics; evaluation mode
/// ([`Module::train`](super::Module::train)) uses the running statistics.
#[derive(crate::nn::Module)]
pub struct BatchNorm {
    /// Scale, one number a channel; ones at first.
    pub weight: Tensor,
    /// Shift, one number a channel; zeros at first.
    pub bias: Tensor,
    /// The running mean; zeros at first.
    pub running_mean: Buffer,
    /// The running variance, unbiased; ones at first.
    pub running_var: Buffer,
    /// How many batches the running statistics have seen: an i64 without dims.
    pub num_batches_tracked: Buffer,
    /// Weight of the new batch when the running statistics are updated; 0.1 at first.
    pub momentum: f64,
    /// Added to the variance; 1e-5 at first.
    pub eps: f64,
    /// Whether the statistics of the batch are used, or the running ones.
    pub training: Mode,
}

impl BatchNorm {
    /// Makes a norm for `channels` channels, in training mode.
    #[track_caller]
    pub fn new(channels: usize, target: impl IntoTarget) -> Result<BatchNorm> {
        let t = target.into_target();
        let mean = full([channels], 0.0, &t)?;
        let count = zeros([], mean.whole_target().dtype(DType::I64))?;
        Ok(BatchNorm {
            weight: init::constant([channels], 1.0, &t)?,
            bias: init::constant([channels], 0.0, &t)?,
            running_mean: Buffer::new(mean),
            running_var: Buffer::new(full([channels], 1.0, &t)?),
            num_batches_tracked: Buffer::new(count),
            momentum: 0.1,
            eps: 1e-5,
            training: Mode(true),
        })
    }
    /// Normalises the channels of x, `[batch, channels, …]`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (mean, var) = (self.running_mean.tensor(), self.running_var.tensor());
        let (weight, bias) = (Some(&self.weight), Some(&self.bias));
        if self.training.0 {
            self.num_batches_tracked.tensor().add_(1)?;
        }
        x.batch_norm(Some(mean), Some(var), weight, bias, self.training.0, self.momentum, self.eps)
    }
}

/// Whether a module is in training mode: a field of modules that compute differently in evaluation mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub bool);

impl super::Part for Mode {
    fn visit<'a>(&'a self, _: &str, _: &mut dyn FnMut(&str, &'a Tensor)) {}
    fn visit_mut(&mut self, _: &str, _: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        Ok(())
    }
    fn set_training(&mut self, on: bool) {
        self.0 = on;
    }
}

/// Group norm: divides the channels, dim 1 of `[batch, channels, …]`, into groups of equal size, normalises each group of each sample
/// to mean 0 and variance 1, then scales and shifts each channel.
#[derive(crate::nn::Module)]
pub struct GroupNorm {
    /// Scale, one number a channel; ones at first.
    pub weight: Tensor,
    /// Shift, one number a channel; zeros at first.
    pub bias: Tensor,
    /// Number of groups that the channels are divided into.
    pub groups: usize,
    /// Added to the variance; 1e-5 at first.
    pub eps: f64,
}

impl GroupNorm {
    /// Makes a norm of `groups` groups over `channels` channels.
    ///
    /// # Errors
    /// If the groups do not divide the channels.
    #[track_caller]
    pub fn new(groups: usize, channels: usize, target: impl IntoTarget) -> Result<GroupNorm> {
        if groups == 0 || !channels.is_multiple_of(groups) {
            let e =
                Error::argument(format!("GroupNorm: {channels} channels do not fall in {groups} groups of as many"));
            return Err(e.at(CallSite::here()));
        }
        let t = target.into_target();
        Ok(GroupNorm {
            weight: init::constant([channels], 1.0, &t)?,
            bias: init::constant([channels], 0.0, &t)?,
            groups,
            eps: 1e-5,
        })
    }
    /// Normalises the groups of x, `[batch, channels, …]`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.group_norm(self.groups, Some(&self.weight), Some(&self.bias), self.eps)
    }
}
