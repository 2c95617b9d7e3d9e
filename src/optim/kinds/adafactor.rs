//! Adafactor: the squares of gradients of a matrix are estimated by means of its rows and of its columns.
//!
//! A step is composed of ops on logical tensors, so that means of rows that are split are those of whole rows, in any layout.

use crate::error::{Error, Result};
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, ParamState, Scalars, StateShape, StepCall, StepCount, options_fields};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`Adafactor`](super::Adafactor); PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdafactorOptions {
    /// Learning rate, at first 1e-2. Step n takes at most 1 / √n, and multiplies it by the root mean square of the parameter.
    pub lr: f64,
    /// Power of the step that is the part of new squares in their means.
    pub beta2_decay: f64,
    /// Least value of means of squares, at first that of the dtype's rounding, and least root mean square of a parameter.
    pub eps: (Option<f64>, f64),
    /// Largest root mean square of an update; a larger one is scaled down.
    pub d: f64,
    /// Weight decay: each step multiplies a parameter by 1 - lr · weight_decay.
    pub weight_decay: f64,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

impl Default for AdafactorOptions {
    fn default() -> AdafactorOptions {
        AdafactorOptions {
            lr: 1e-2,
            beta2_decay: -0.8,
            eps: (None, 1e-3),
            d: 1.0,
            weight_decay: 0.0,
            maximize: false,
            master_weights: true,
        }
    }
}

/// Numbers of the [`scalars`](OptimizerRule::scalars).
const NEW_PART: usize = 0;
const RATE: usize = 1;
const DECAY: usize = 2;

impl OptimizerRule for AdafactorOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("row", true), ("column", true), ("square", true)]
    }
    fn shape_of_state(&self, state: &str, rank: usize) -> StateShape {
        match (state, rank) {
            ("square", 0 | 1) => StateShape::Same,
            ("square", _) | (_, 0 | 1) => StateShape::Absent,
            ("row", rank) => StateShape::Reduced(rank - 1),
            (_, rank) => StateShape::Reduced(rank - 2),
        }
    }
    fn counts_steps(&self) -> bool {
        true
    }
    fn check(&self) -> Result<()> {
        let AdafactorOptions { beta2_decay, eps, d, .. } = *self;
        if beta2_decay.is_nan() || beta2_decay > 0.0 {
            return Err(Error::argument(format!("beta2_decay is a power of at most 0, not {beta2_decay}")));
        }
        if d.is_nan() || d < 1.0 {
            return Err(Error::argument(format!("d is a threshold of at least 1, not {d}")));
        }
        match [eps.0.unwrap_or_default(), eps.1].into_iter().find(|e| e.is_nan() || *e < 0.0) {
            Some(e) => Err(Error::argument(format!("eps are two numbers of at least 0, not {e}"))),
            None => Ok(()),
        }
    }
    fn op(&self) -> Result<&'static Op> {
        op!("mul_scalar")
    }
    fn settings(&self, _: StepCount) -> RuntimeAttrs {
        RuntimeAttrs::new()
    }
    fn scalars(&self, at: StepCount) -> Scalars {
        let steps = at.steps as f64;
        smallvec![steps.powf(self.beta2_decay), self.lr.min(1.0 / steps.sqrt()), self.lr * self.weight_decay]
    }
    fn captured_settings(&self) -> String {
        let AdafactorOptions { eps, d, weight_decay, maximize, .. } = *self;
        format!("eps: {eps:?}, d: {d}, weight decay: {}, maximize: {maximize}", weight_decay != 0.0)
    }
    fn run(&self, due: &[ParamState], call: StepCall) -> Result<()> {
        let scalars = self.scalars(due[0].count);
        due.iter().try_for_each(|p| self.one(p, call, &scalars))
    }
}

impl AdafactorOptions {
    /// The step of one parameter.
    fn one(&self, p: &ParamState, call: StepCall, scalars: &Scalars) -> Result<()> {
        let dtype = p.target.dtype();
        let wide = if dtype.is_half() { DType::F32 } else { dtype };
        let (x, grad) = (p.target.detach().cast(wide)?, p.grad.cast(wide)?);
        let least = self.eps.0.unwrap_or_else(|| rounding(dtype));
        let root = (x.numel() as f64).sqrt();
        let size = x.norm(2.0, ())?.div(root)?.clamp_min(self.eps.1)?;
        let rate = call.times(&size, scalars, RATE)?;

        let squares = grad.square()?;
        let follow = |mean: &Tensor, new: &Tensor| -> Result<()> {
            mean.add_(&call.times(&new.sub(mean)?, scalars, NEW_PART)?).map(drop)
        };
        let estimate = match &p.state[..] {
            [Some(row), Some(column), _] => {
                follow(row, &squares.mean_keepdim(-1)?)?;
                follow(column, &squares.mean_keepdim(-2)?)?;
                row.mul(column)?.div(&row.mean_keepdim(-2)?.clamp_min(least)?)?
            }
            [_, _, Some(square)] => {
                follow(square, &squares)?;
                square.detach()
            }
            _ => return Err(Error::registry("a parameter of Adafactor has no means of squares")),
        };
        let update = estimate.clamp_min(least * least)?.rsqrt()?.mul(&grad)?;
        // An update of a larger root mean square than `d` is scaled down to it.
        let over = update.norm(2.0, ())?.div(root * self.d)?.clamp_min(1.0)?;
        let step = update.mul(&rate.div(&over)?)?;
        let kept = match self.weight_decay != 0.0 {
            true => x.sub(&call.times(&x, scalars, DECAY)?)?,
            false => x,
        };
        p.target.copy_(&kept.sub(&step)?).map(drop)
    }
}

/// The distance of 1 to the next number of a dtype.
fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => f32::EPSILON.into(),
    }
}
