//! Adam, RMSprop, Adagrad, Adadelta and Lion: their settings and steps.

use super::recipe::{Recipe, Stepper};
use crate::error::Result;
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// The parts of a [`Recipe`] that are fields of the settings.
macro_rules! fields {
    () => {
        fn lr(&self) -> f64 {
            self.lr
        }
        fn set_lr(&mut self, lr: f64) {
            self.lr = lr;
        }
        fn master_weights(&self) -> bool {
            self.master_weights
        }
        fn with_masters(self, master_weights: bool) -> Self {
            Self { master_weights, ..self }
        }
    };
}
pub(super) use fields;

/// Adam (Kingma and Ba, 2015), with PyTorch's formula: weight decay is added to the gradient. [`AdamW`](super::AdamW) decouples it.
pub type Adam = Stepper<AdamOptions>;

/// Settings of [`Adam`]; PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamOptions {
    /// Learning rate, at first 1e-3.
    pub lr: f64,
    /// Decay rate of the running mean of gradients.
    pub beta1: f64,
    /// Decay rate of the running mean of squared gradients.
    pub beta2: f64,
    /// Added to the root of the mean of squares, for numerical stability.
    pub eps: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// AMSGrad: divides by the root of the largest mean of squares so far.
    pub amsgrad: bool,
    /// Whether weight decay scales the parameter instead, as AdamW's does.
    pub decoupled: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for AdamOptions {
    fn default() -> AdamOptions {
        AdamOptions {
            lr: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.0,
            amsgrad: false,
            decoupled: false,
            master_weights: true,
        }
    }
}

impl Recipe for AdamOptions {
    fields!();
    fn kept(&self) -> Vec<Option<&'static str>> {
        vec![Some("mean"), Some("square"), self.amsgrad.then_some("largest")]
    }
    fn counts_steps(&self) -> bool {
        true
    }
    fn op(&self) -> Result<&'static Op> {
        op!("adam_many")
    }
    fn settings(&self, steps: i64) -> RuntimeAttrs {
        let AdamOptions { lr, beta1, beta2, eps, weight_decay, decoupled, .. } = *self;
        smallvec![
            lr.into(),
            beta1.into(),
            beta2.into(),
            eps.into(),
            weight_decay.into(),
            decoupled.into(),
            steps.into()
        ]
    }
}

/// RMSprop (Hinton), with PyTorch's formula.
pub type RmsProp = Stepper<RmsPropOptions>;

/// Settings of [`RmsProp`]; PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RmsPropOptions {
    /// Learning rate, at first 1e-2.
    pub lr: f64,
    /// Decay rate of the running mean of squared gradients.
    pub alpha: f64,
    /// Added to the root of the mean of squares, for numerical stability.
    pub eps: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Momentum: factor of the previous direction; 0 keeps no state.
    pub momentum: f64,
    /// Whether the root is of the variance: the square of the mean gradient is subtracted.
    pub centered: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for RmsPropOptions {
    fn default() -> RmsPropOptions {
        RmsPropOptions {
            lr: 1e-2,
            alpha: 0.99,
            eps: 1e-8,
            weight_decay: 0.0,
            momentum: 0.0,
            centered: false,
            master_weights: true,
        }
    }
}

impl Recipe for RmsPropOptions {
    fields!();
    fn kept(&self) -> Vec<Option<&'static str>> {
        vec![Some("square"), self.centered.then_some("mean"), (self.momentum > 0.0).then_some("momentum")]
    }
    fn op(&self) -> Result<&'static Op> {
        op!("rmsprop_many")
    }
    fn settings(&self, _: i64) -> RuntimeAttrs {
        let RmsPropOptions { lr, alpha, eps, weight_decay, momentum, centered, .. } = *self;
        smallvec![lr.into(), alpha.into(), eps.into(), weight_decay.into(), momentum.into(), centered.into()]
    }
}

/// Adagrad (Duchi et al., 2011), with PyTorch's formula.
pub type Adagrad = Stepper<AdagradOptions>;

/// Settings of [`Adagrad`]; PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdagradOptions {
    /// Learning rate, at first 1e-2.
    pub lr: f64,
    /// Decay of the learning rate: step n, counted from 0, divides it by 1 + n · lr_decay.
    pub lr_decay: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Initial value of the sums of squares.
    pub initial_accumulator_value: f64,
    /// Added to the root of the sum, for numerical stability.
    pub eps: f64,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for AdagradOptions {
    fn default() -> AdagradOptions {
        AdagradOptions {
            lr: 1e-2,
            lr_decay: 0.0,
            weight_decay: 0.0,
            initial_accumulator_value: 0.0,
            eps: 1e-10,
            master_weights: true,
        }
    }
}

impl Recipe for AdagradOptions {
    fields!();
    fn kept(&self) -> Vec<Option<&'static str>> {
        vec![Some("sum")]
    }
    fn initial(&self) -> f64 {
        self.initial_accumulator_value
    }
    fn counts_steps(&self) -> bool {
        true
    }
    fn op(&self) -> Result<&'static Op> {
        op!("adagrad_many")
    }
    fn settings(&self, steps: i64) -> RuntimeAttrs {
        let lr = self.lr / (1.0 + (steps - 1) as f64 * self.lr_decay);
        smallvec![lr.into(), self.eps.into(), self.weight_decay.into()]
    }
}

/// Adadelta (Zeiler, 2012), with PyTorch's formula.
pub type Adadelta = Stepper<AdadeltaOptions>;

/// Settings of [`Adadelta`]; PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdadeltaOptions {
    /// Learning rate: factor of the change.
    pub lr: f64,
    /// Decay rate of the running means.
    pub rho: f64,
    /// Added under the roots, for numerical stability.
    pub eps: f64,
    /// Weight decay: factor of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for AdadeltaOptions {
    fn default() -> AdadeltaOptions {
        AdadeltaOptions { lr: 1.0, rho: 0.9, eps: 1e-6, weight_decay: 0.0, master_weights: true }
    }
}

impl Recipe for AdadeltaOptions {
    fields!();
    fn kept(&self) -> Vec<Option<&'static str>> {
        vec![Some("square"), Some("change")]
    }
    fn op(&self) -> Result<&'static Op> {
        op!("adadelta_many")
    }
    fn settings(&self, _: i64) -> RuntimeAttrs {
        smallvec![self.lr.into(), self.rho.into(), self.eps.into(), self.weight_decay.into()]
    }
}

/// Lion (Chen et al., 2023): the sign of a mix of momentum and gradient is the direction.
pub type Lion = Stepper<LionOptions>;

/// Settings of [`Lion`]; the paper's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LionOptions {
    /// Learning rate, at first 1e-4.
    pub lr: f64,
    /// Part of the momentum in the direction.
    pub beta1: f64,
    /// Decay rate of the momentum.
    pub beta2: f64,
    /// Weight decay: each step multiplies a parameter by 1 - lr · weight_decay.
    pub weight_decay: f64,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for LionOptions {
    fn default() -> LionOptions {
        LionOptions { lr: 1e-4, beta1: 0.9, beta2: 0.99, weight_decay: 0.0, master_weights: true }
    }
}

impl Recipe for LionOptions {
    fields!();
    fn kept(&self) -> Vec<Option<&'static str>> {
        vec![Some("momentum")]
    }
    fn op(&self) -> Result<&'static Op> {
        op!("lion_many")
    }
    fn settings(&self, _: i64) -> RuntimeAttrs {
        smallvec![self.lr.into(), self.beta1.into(), self.beta2.into(), self.weight_decay.into()]
    }
}
