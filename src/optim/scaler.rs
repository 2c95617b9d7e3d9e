//! Dynamic loss scaling for f16 (Micikevicius et al., 2018).
//!
//! Gradients of f16 results are f16 during backward, and values below 6e-8 underflow to 0. The loss is therefore multiplied by a large
//! scale before backward, and the gradients are divided by it, in f32, before the optimizer step. If a gradient is infinite or NaN, the
//! step is skipped and the scale is halved; after many finite steps it is doubled.
//!
//! All ranks take the same decision: each reads the sum of the squares of all gradient elements (the one that clipping computes), which
//! is infinite or NaN if an element is, or if an element exceeds about 1e19. That is the only read; with it the host waits for backward
//! once per step. A dry run has no values to read, so gradients count as finite.

use super::Optimizer;
use super::clip::total_of_squares;
use super::many::groups;
use crate::context::no_grad;
use crate::error::{CallSite, Error, Result};
use crate::functional::{full, invoke, op};
use crate::interpreter::is_capturing;
use crate::sbp::NdSbp;
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

/// Settings of [`GradScaler`]; PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GradScalerOptions {
    /// Scale of the loss at the start.
    pub scale: f64,
    /// Factor of the scale after `growth_interval` steps with finite gradients.
    pub growth: f64,
    /// Factor of the scale after a step with an infinite or NaN gradient.
    pub backoff: f64,
    /// Number of steps without an infinite gradient after which the scale grows.
    pub growth_interval: usize,
}

impl Default for GradScalerOptions {
    fn default() -> GradScalerOptions {
        GradScalerOptions { scale: 65536.0, growth: 2.0, backoff: 0.5, growth_interval: 2000 }
    }
}

/// Loss scaling for f16: scales losses and skips steps whose gradients are not finite.
///
/// ```
/// use oflow::optim::{GradScaler, GradScalerOptions, Optimizer, Sgd, SgdOptions};
/// use oflow::prelude::*;
/// let w = ones([2, 2], Device::Cpu)?.requires_grad_(true)?;
/// let mut opt = Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, ..Default::default() });
/// let mut scaler = GradScaler::new(GradScalerOptions::default());
/// let loss = {
///     let _amp = autocast(Autocast::F16);
///     ones([1, 2], Device::Cpu)?.matmul(&w)?.mean(())?
/// };
/// scaler.scale(&loss)?.backward()?;
/// scaler.unscale_(&opt)?; // only if gradients are used before the step, for example clipped
/// assert!(scaler.step(&mut opt)?);
/// scaler.update();
/// assert_eq!(w.to_vec::<f32>()?, [0.75; 4]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct GradScaler {
    options: GradScalerOptions,
    scale: f64,
    /// Number of steps with finite gradients since the scale last changed.
    good: usize,
    /// For each optimizer whose gradients are unscaled: its parameters, and the sum of the squares of their gradients.
    unscaled: Vec<(Vec<Tensor>, Tensor)>,
    /// Whether a gradient that is not finite was found since the last update; `None` before any was read.
    found: Option<bool>,
    skipped: u64,
}

impl GradScaler {
    /// Makes a scaler with these settings.
    pub fn new(options: GradScalerOptions) -> GradScaler {
        GradScaler { scale: options.scale, options, good: 0, unscaled: vec![], found: None, skipped: 0 }
    }
    /// Returns the scale of the next loss.
    pub fn current(&self) -> f64 {
        self.scale
    }
    /// Returns the number of skipped steps.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the loss times the scale, in f32 or wider; call `backward` on it. If the loss is a sum of f16 results instead of a
    /// mean, their gradient is the scale itself: the initial 65,536 is infinite in f16, so the first step is skipped.
    #[track_caller]
    pub fn scale(&self, loss: &Tensor) -> Result<Tensor> {
        not_captured().map_err(|e| e.at(CallSite::here()))?;
        let loss = if loss.dtype().is_half() { loss.cast(DType::F32)? } else { loss.clone() };
        loss.mul(self.scale)
    }

    /// Divides the gradients of an optimizer's parameters by the scale. Gradients of half-precision parameters become f32.
    /// Needed before gradients are clipped or read; otherwise [`step`] does it.
    ///
    /// # Errors
    /// If the gradients are already unscaled since the last [`update`], or if no parameter has a gradient.
    ///
    /// [`step`]: GradScaler::step
    /// [`update`]: GradScaler::update
    #[track_caller]
    pub fn unscale_(&mut self, opt: &dyn Optimizer) -> Result<()> {
        // One shared parameter is enough: another optimizer may have it too, or this one had fewer groups when it was unscaled.
        let theirs = |all: &[Tensor]| opt.parameters().iter().any(|p| all.iter().any(|q| q.same(p)));
        if self.unscaled.iter().any(|(all, _)| theirs(all)) {
            return Err(Error::argument("gradients of this optimizer are unscaled already since the last update")
                .help("call `update()` after each step; add groups of parameters before gradients are unscaled"));
        }
        let (_quiet, site) = (no_grad(), CallSite::here());
        let mut grads = vec![];
        for p in opt.parameters() {
            let Some(mut g) = p.grad() else { continue };
            if g.dtype().is_half() {
                g = g.cast(DType::F32)?;
                p.put_grad(Some(g.clone()));
            }
            grads.push(g);
        }
        if grads.is_empty() {
            return Err(Error::argument("no parameter has a gradient to unscale")
                .help("call `backward()` first")
                .at(site));
        }
        scale_all(&grads, 1.0 / self.scale, site)?;
        self.unscaled.push((opt.parameters().to_vec(), total_of_squares(&grads, site)?));
        Ok(())
    }

    /// Steps the optimizer if all its gradients are finite, and returns whether it did. The decision is the same on all ranks. The
    /// host waits for backward.
    #[track_caller]
    pub fn step(&mut self, opt: &mut dyn Optimizer) -> Result<bool> {
        let site = CallSite::here();
        not_captured().map_err(|e| e.at(site))?;
        if self.squares(opt).is_none() {
            self.unscale_(opt)?;
        }
        let finite = match self.squares(opt) {
            Some(squares) if !squares.is_meta() => squares.item()?.is_finite(),
            // A dry run has no values: the step is taken.
            Some(_) => true,
            None => true,
        };
        self.found = Some(self.found.unwrap_or(false) || !finite);
        if finite {
            opt.step_at(site)?;
        } else {
            self.skipped += 1;
        }
        Ok(finite)
    }

    /// Grows or shrinks the scale, depending on the steps since the last call. Call it after each step.
    pub fn update(&mut self) {
        self.unscaled.clear();
        match self.found.take() {
            Some(true) => {
                self.scale *= self.options.backoff;
                self.good = 0;
            }
            Some(false) => {
                self.good += 1;
                if self.good >= self.options.growth_interval {
                    self.scale *= self.options.growth;
                    self.good = 0;
                }
            }
            None => {}
        }
    }

    fn squares(&self, opt: &dyn Optimizer) -> Option<&Tensor> {
        let same = |all: &[Tensor]| {
            all.len() == opt.parameters().len() && all.iter().zip(opt.parameters()).all(|(a, b)| a.same(b))
        };
        self.unscaled.iter().find(|(all, _)| same(all)).map(|(_, squares)| squares)
    }
}

/// Saves the scale, the number of steps since it last changed, and the number of skipped steps.
impl Stateful for GradScaler {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        to.value("scale", self.scale)?;
        to.value("good", self.good)?;
        to.value("skipped", self.skipped)
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        self.scale = from.value("scale")?.unwrap_or(self.scale);
        self.good = from.value("good")?.unwrap_or(self.good);
        self.skipped = from.value("skipped")?.unwrap_or(self.skipped);
        self.unscaled.clear();
        self.found = None;
        Ok(())
    }
}

/// Refuses a scaler in a graph, whose decision reads a value and whose scale is a number of the host.
fn not_captured() -> Result<()> {
    match is_capturing() {
        false => Ok(()),
        true => Err(Error::unsupported("a graph cannot scale gradients with a GradScaler yet")
            .help("train in bf16, which needs no scaler, or call the step without a graph")),
    }
}

/// Multiplies gradients by a number in place, one call for each group of gradients with the same placement and SBP, or device.
fn scale_all(grads: &[Tensor], factor: f64, site: CallSite) -> Result<()> {
    for group in groups(grads, |g| g, |_| ()) {
        let f = match group[0].placement() {
            Ok(p) => full([], factor, (p, NdSbp::broadcast(p.axes())))?,
            Err(_) => full([], factor, group[0].device())?,
        };
        let inputs: Vec<Option<&Tensor>> = [&f].into_iter().chain(group).map(Some).collect();
        invoke(op!("scale_many"), &inputs, smallvec![], smallvec![], site)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functional::{IntoTarget, ones};
    use crate::optim::{Sgd, SgdOptions};
    use crate::placement::{Device, Placement};
    use crate::{run_ranks, sbp};

    fn sgd(ps: &[Tensor]) -> Sgd {
        Sgd::new(ps.to_vec(), SgdOptions { lr: 1.0, ..Default::default() })
    }

    #[test]
    fn one_rank_s_infinity_leaves_the_step_out_on_all() {
        run_ranks(3, |w| {
            let mesh = Placement::all(Device::Cpu)?;
            let a = ones([6], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
            let b = ones([2], (&mesh, sbp![B]))?.requires_grad_(true)?;
            let mut opt = sgd(&[a.clone(), b.clone()]);
            let mut s = GradScaler::new(GradScalerOptions { scale: 8.0, growth_interval: 2, ..Default::default() });
            let mut backward = |bad: bool| -> Result<()> {
                opt.zero_grad();
                s.scale(&a.sum(())?.add(&b.sum(())?)?)?.backward()?;
                if bad {
                    // Only one rank's shard has it.
                    let g = a.grad().unwrap();
                    g.write_shard(&g.to_local()?.mul(if w.rank() == 1 { f64::INFINITY } else { 1.0 })?)?;
                }
                let did = s.step(&mut opt)?;
                s.update();
                assert_eq!(did, !bad);
                Ok(())
            };
            backward(true)?;
            backward(false)?;
            backward(false)?;
            assert_eq!((s.current(), s.skipped()), (8.0, 1), "halved once, doubled after two good steps");
            assert_eq!(a.to_vec::<f32>()?, [-1.0; 6]);
            assert_eq!(b.to_vec::<f32>()?, [-1.0; 2]);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn gradients_of_half_parameters_are_unscaled_in_f32() {
        let p = ones([1], Device::Cpu.dtype(DType::F16)).unwrap().requires_grad_(true).unwrap();
        let opt = sgd(std::slice::from_ref(&p));
        // The gradient of an f16 loss is the scale: 65,536 would be infinite.
        let mut s = GradScaler::new(GradScalerOptions { scale: 1024.0, ..Default::default() });
        s.scale(&p.mul(1e-3).unwrap().sum(()).unwrap()).unwrap().backward().unwrap();
        s.unscale_(&opt).unwrap();
        let g = p.grad().unwrap();
        assert_eq!(g.dtype(), DType::F32);
        assert!((g.item().unwrap() - 1e-3).abs() < 1e-5);
        assert!(s.unscale_(&opt).unwrap_err().to_string().contains("already"));
    }

    #[test]
    fn without_gradients_there_is_nothing_to_unscale() {
        let p = ones([1], Device::Cpu).unwrap().requires_grad_(true).unwrap();
        let e = GradScaler::new(GradScalerOptions::default()).step(&mut sgd(&[p])).unwrap_err();
        assert!(e.to_string().contains("no parameter has a gradient"), "{e}");
    }
}
