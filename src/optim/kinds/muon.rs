//! Muon: the momentum of a matrix is made orthogonal by Newton-Schulz iterations in bf16.
//!
//! The iterations need the whole matrix. A momentum that is split is gathered in bf16, once a step, and each rank iterates alike; so
//! the result is the same in any layout.

use crate::error::{Error, Result};
use crate::functional::op;
use crate::ops::{Op, RuntimeAttrs};
use crate::optim::rule::{OptimizerRule, ParamState, Scalars, StepCall, StepCount, options_fields};
use crate::placement::Device;
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::DType;
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`Muon`](super::Muon); PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MuonOptions {
    /// Learning rate, at first 1e-3.
    pub lr: f64,
    /// Weight decay: each step multiplies a parameter by 1 - lr · weight_decay.
    pub weight_decay: f64,
    /// Part of the previous momentum in the new one.
    pub momentum: f64,
    /// Whether to use Nesterov momentum.
    pub nesterov: bool,
    /// Coefficients of the iteration: of the matrix, of its cube and of its fifth power.
    pub ns_coefficients: (f64, f64, f64),
    /// Least norm by which the momentum is divided before the iterations.
    pub eps: f64,
    /// Number of iterations, below 100.
    pub ns_steps: u32,
    /// Factor of the learning rate by the shape of a parameter; `Original` if not given.
    pub adjust_lr_fn: Option<MuonRate>,
    /// Whether to go along the gradient instead of against it, to maximize.
    pub maximize: bool,
    /// Whether to keep an f32 copy (master) of each bf16 or f16 parameter, update the master and round it into the parameter.
    pub master_weights: bool,
}

/// Factor of Muon's learning rate for a parameter of so many rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MuonRate {
    /// √max(1, rows / columns) (Jordan, 2024).
    Original,
    /// 0.2 · √max(rows, columns), at which updates are as large as those of AdamW (Liu et al., 2025).
    MatchRmsAdamw,
    /// √(rows / columns) (Bernstein, 2025).
    SpectralUnclamped,
}

impl MuonRate {
    fn factor(self, rows: f64, columns: f64) -> f64 {
        match self {
            MuonRate::Original => (rows / columns).max(1.0).sqrt(),
            MuonRate::MatchRmsAdamw => 0.2 * rows.max(columns).sqrt(),
            MuonRate::SpectralUnclamped => (rows / columns).sqrt(),
        }
    }
}

impl Default for MuonOptions {
    fn default() -> MuonOptions {
        MuonOptions {
            lr: 1e-3,
            weight_decay: 0.1,
            momentum: 0.95,
            nesterov: true,
            ns_coefficients: (3.4445, -4.775, 2.0315),
            eps: 1e-7,
            ns_steps: 5,
            adjust_lr_fn: None,
            maximize: false,
            master_weights: true,
        }
    }
}

/// Numbers of the [`scalars`](OptimizerRule::scalars).
const RATE: usize = 0;
const DECAY: usize = 1;

impl OptimizerRule for MuonOptions {
    options_fields!(weight_decay);
    fn state(&self) -> Vec<(&'static str, bool)> {
        vec![("momentum", true)]
    }
    fn check(&self) -> Result<()> {
        match self.ns_steps < 100 {
            true => Ok(()),
            false => Err(Error::argument(format!("ns_steps is a number below 100, not {}", self.ns_steps))),
        }
    }
    fn check_parameter(&self, p: &Tensor) -> Result<()> {
        match p.ndim() {
            2 => Ok(()),
            n => Err(Error::shape(format!("Muon steps matrices; {p:?} has {n} dims"))
                .help("give parameters of other shapes to another optimizer, such as AdamW")),
        }
    }
    fn op(&self) -> Result<&'static Op> {
        op!("mul_scalar")
    }
    fn settings(&self, _: StepCount) -> RuntimeAttrs {
        RuntimeAttrs::new()
    }
    fn scalars(&self, _: StepCount) -> Scalars {
        smallvec![self.lr, self.lr * self.weight_decay]
    }
    fn captured_settings(&self) -> String {
        format!("{:?}", MuonOptions { lr: 0.0, weight_decay: 0.0, ..*self })
    }
    fn run(&self, due: &[ParamState], call: StepCall) -> Result<()> {
        let scalars = self.scalars(due[0].count);
        due.iter().try_for_each(|p| self.one(p, call, &scalars))
    }
}

impl MuonOptions {
    /// The step of one parameter.
    fn one(&self, p: &ParamState, call: StepCall, scalars: &Scalars) -> Result<()> {
        let [Some(momentum)] = &p.state[..] else {
            return Err(Error::registry("a parameter of Muon has no momentum"));
        };
        let [rows, columns] = p.target.shape() else { return self.check_parameter(&p.target) };
        let factor = self.adjust_lr_fn.unwrap_or(MuonRate::Original).factor(*rows as f64, *columns as f64);
        let wide = momentum.dtype();
        let (x, grad) = (p.target.detach().cast(wide)?, p.grad.cast(wide)?);
        momentum.lerp_(&grad, 1.0 - self.momentum)?;
        let along = if self.nesterov { grad.lerp(momentum, self.momentum)? } else { momentum.detach() };
        let update = self.orthogonal(&along)?.cast(wide)?;
        let step = call.times(&update.mul(factor)?, scalars, RATE)?;
        let kept = x.sub(&call.times(&x, scalars, DECAY)?)?;
        p.target.copy_(&kept.sub(&step)?).map(drop)
    }

    /// A matrix with the same singular vectors, whose singular values are near 1.
    fn orthogonal(&self, of: &Tensor) -> Result<Tensor> {
        let half = of.cast(DType::BF16)?;
        let whole = match half.global() {
            Some(g) => half.to_global(NdSbp::broadcast(g.placement.axes()))?,
            None => half,
        };
        let tall = of.shape()[0] > of.shape()[1];
        let wide = |x: Tensor| if tall { x.t() } else { Ok(x) };
        let mut x = wide(whole)?;
        x = x.div(&x.norm(2.0, ())?.clamp_min(self.eps)?)?;
        let (a, b, c) = self.ns_coefficients;
        // Products in f32: of bf16 factors a GPU has quick ones, but a CPU has not.
        let device = of.device();
        let product = |x: &Tensor, y: &Tensor| match device {
            Device::Cpu => x.cast(DType::F32)?.matmul(&y.cast(DType::F32)?),
            _ => x.matmul(y)?.cast(DType::F32),
        };
        for _ in 0..self.ns_steps {
            let gram = product(&x, &x.t()?)?.cast(DType::BF16)?;
            let powers = product(&gram, &gram)?.mul(c)?.add(&gram.cast(DType::F32)?.mul(b)?)?.cast(DType::BF16)?;
            x = product(&powers, &x)?.add(&x.cast(DType::F32)?.mul(a)?)?.cast(DType::BF16)?;
        }
        wide(x)
    }
}
