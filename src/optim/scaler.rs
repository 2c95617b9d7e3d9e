//! Dynamic loss scaling for f16 (Micikevicius et al., 2018).
//!
//! Gradients of f16 results are f16 during backward, and values below 6e-8 underflow to 0. The loss is therefore multiplied by a large
//! scale before backward, and the gradients are divided by it, in f32, before the optimizer step. If a gradient is infinite or NaN, the
//! step is skipped and the scale is halved; after many finite steps it is doubled.
//!
//! All ranks take the same decision: each reads the sum of the squares of all gradient elements (the one that clipping computes), which
//! is infinite or NaN if an element is, or if an element exceeds about 1e19. That is the only read; with it the host waits for backward
//! once per step. A dry run has no values to read, so gradients count as finite. A graph has the step under a guard.

use super::Optimizer;
use super::clip::total_of_squares;
use super::many::groups;
use crate::context::no_grad;
use crate::error::{CallSite, Error, Result};
use crate::functional::{invoke, op};
use crate::interpreter::{
    Call, HostCalls, HostNumbers, HostObject, HostSource, Target, address_of, guarded, host_of_capture, is_capturing,
};
use crate::ops::{AttrValue, RuntimeAttrs};
use crate::sbp::NdSbp;
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use serde::{Deserialize, Serialize};
use smallvec::smallvec;
use std::sync::{Arc, Mutex, MutexGuard};

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
    numbers: Shared,
    /// For each optimizer whose gradients are unscaled: its parameters, and the sum of the squares of their gradients.
    unscaled: Vec<(Vec<Tensor>, Tensor)>,
}

/// The numbers of a scaler, which graphs that have captured its calls share with it.
struct Numbers {
    options: GradScalerOptions,
    scale: f64,
    /// Number of steps with finite gradients since the scale last changed.
    good: usize,
    /// Whether a gradient that is not finite was found since the last update; `None` before any was read.
    found: Option<bool>,
    skipped: u64,
    /// In a run of a graph: whether the step that begins has been taken.
    taken: bool,
}

impl Numbers {
    /// Notes whether the gradients of a step were finite: whether it was taken.
    fn stepped(&mut self, finite: bool) {
        self.found = Some(self.found.unwrap_or(false) || !finite);
        self.skipped += u64::from(!finite);
    }
    fn update(&mut self) {
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
}

type Shared = Arc<Mutex<Numbers>>;

fn lock(numbers: &Shared) -> MutexGuard<'_, Numbers> {
    numbers.lock().unwrap_or_else(|e| e.into_inner())
}

/// Event of a scaler, when a run of a graph comes to it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    /// Calls read the scale, and its reciprocal.
    Read,
    /// A step begins, which may be skipped.
    Begin,
    /// The step is taken.
    Take,
    /// The step has ended.
    End,
    /// `update` was called.
    Update,
}

/// An event of a scaler in a captured graph.
struct CapturedEvent(Shared, Event);

impl HostObject for CapturedEvent {
    fn advance(&self, _site: CallSite) -> Result<()> {
        let mut numbers = lock(&self.0);
        match self.1 {
            Event::Read => {}
            Event::Begin => numbers.taken = false,
            Event::Take => numbers.taken = true,
            Event::End => {
                let taken = numbers.taken;
                numbers.stepped(taken);
            }
            Event::Update => numbers.update(),
        }
        Ok(())
    }
    fn numbers(&self, call: u32) -> Result<RuntimeAttrs> {
        let scale = lock(&self.0).scale;
        Ok(smallvec![if call == 0 { scale } else { 1.0 / scale }.into()])
    }
    fn done(&self) {}
    fn address(&self) -> usize {
        address_of(&self.0)
    }
    fn saved(&self) -> String {
        // A word: always JSON.
        serde_json::to_string(&self.1).unwrap_or_default()
    }
}

/// A scaler, as graphs that are loaded take its scale.
struct ScalerSource(Shared);

impl HostSource for ScalerSource {
    fn address(&self) -> usize {
        address_of(&self.0)
    }
    fn restore(&self, saved: &str) -> Result<Arc<dyn HostObject>> {
        let wrong = |e| Error::parse("the graph has no event of a gradient scaler here").because(e);
        Ok(Arc::new(CapturedEvent(self.0.clone(), serde_json::from_str(saved).map_err(wrong)?)))
    }
}

impl GradScaler {
    /// Makes a scaler with these settings.
    pub fn new(options: GradScalerOptions) -> GradScaler {
        let numbers = Numbers { scale: options.scale, options, good: 0, found: None, skipped: 0, taken: true };
        GradScaler { numbers: Arc::new(Mutex::new(numbers)), unscaled: vec![] }
    }
    /// Returns the scale of the next loss.
    pub fn current(&self) -> f64 {
        lock(&self.numbers).scale
    }
    /// Returns the number of skipped steps.
    pub fn skipped(&self) -> u64 {
        lock(&self.numbers).skipped
    }
    /// Enters an event into the graph that is captured, if one is.
    fn captured(&self, event: Event, site: CallSite) -> Result<Option<HostCalls>> {
        let object: Arc<dyn HostObject> = Arc::new(CapturedEvent(self.numbers.clone(), event));
        host_of_capture("grad_scaler", &object, site)
    }

    /// Returns the loss times the scale, in f32 or wider; call `backward` on it. If the loss is a sum of f16 results instead of a
    /// mean, their gradient is the scale itself: the initial 65,536 is infinite in f16, so the first step is skipped.
    #[track_caller]
    pub fn scale(&self, loss: &Tensor) -> Result<Tensor> {
        let site = CallSite::here();
        let loss = if loss.dtype().is_half() { loss.cast(DType::F32)? } else { loss.clone() };
        match self.captured(Event::Read, site)? {
            None => loss.mul(self.current()),
            // A tensor, because the gradient needs it too.
            Some(host) => {
                let scale =
                    no_grad().run(|| number_like(&loss, loss.dtype(), self.current(), Some(host.call(0)), site))?;
                loss.mul(&scale)
            }
        }
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
        let (host, factor) = (self.captured(Event::Read, site)?, 1.0 / self.current());
        scale_all(&grads, factor, host.map(|h| h.call(1)), site)?;
        self.unscaled.push((opt.parameters().to_vec(), total_of_squares(&grads, site)?));
        Ok(())
    }

    /// Steps the optimizer if all its gradients are finite, and returns whether it did. The decision is the same on all ranks. The
    /// host waits for backward. While a graph is captured the answer is `true`; each run of the graph decides for itself.
    #[track_caller]
    pub fn step(&mut self, opt: &mut dyn Optimizer) -> Result<bool> {
        let site = CallSite::here();
        if self.squares(opt).is_none() {
            self.unscale_(opt)?;
        }
        if is_capturing() {
            return self.captured_step(opt, site).map(|()| true);
        }
        let finite = match self.squares(opt) {
            Some(squares) if !squares.is_meta() => squares.item()?.is_finite(),
            // A dry run has no values: the step is taken.
            Some(_) => true,
            None => true,
        };
        lock(&self.numbers).stepped(finite);
        if finite {
            opt.step_at(site)?;
        }
        Ok(finite)
    }

    /// The step under a guard, for a graph that is captured.
    fn captured_step(&mut self, opt: &mut dyn Optimizer, site: CallSite) -> Result<()> {
        let _scope = site.scope();
        let squares = self.squares(opt).ok_or_else(|| Error::argument("the gradients are not unscaled"))?;
        let finite = no_grad().run(|| squares.isfinite())?;
        self.captured(Event::Begin, site)?;
        guarded(&finite, site, || {
            self.captured(Event::Take, site)?;
            opt.step_at(site)
        })?;
        self.captured(Event::End, site).map(drop)
    }

    /// Grows or shrinks the scale, depending on the steps since the last call. Call it after each step.
    #[track_caller]
    pub fn update(&mut self) {
        self.unscaled.clear();
        // Entering an event into a capture does not fail; outside of one there is nothing to enter.
        if !matches!(self.captured(Event::Update, CallSite::here()), Ok(Some(_))) {
            lock(&self.numbers).update();
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
        to.host("scaler", Arc::new(ScalerSource(self.numbers.clone())));
        let numbers = lock(&self.numbers);
        to.value("scale", numbers.scale)?;
        to.value("good", numbers.good)?;
        to.value("skipped", numbers.skipped)
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        let mut numbers = lock(&self.numbers);
        numbers.scale = from.value("scale")?.unwrap_or(numbers.scale);
        numbers.good = from.value("good")?.unwrap_or(numbers.good);
        numbers.skipped = from.value("skipped")?.unwrap_or(numbers.skipped);
        numbers.found = None;
        drop(numbers);
        self.unscaled.clear();
        Ok(())
    }
}

/// A number as a tensor without dims, whole on the placement or device of another one.
fn number_like(t: &Tensor, dtype: DType, number: f64, host: Option<HostNumbers>, site: CallSite) -> Result<Tensor> {
    let target = match t.placement() {
        Ok(p) => Target::Global(p.clone(), NdSbp::broadcast(p.axes())),
        Err(_) => Target::Local(t.device()),
    };
    let attrs = [AttrValue::from(&[] as &[usize]), dtype.into()];
    Call::new(op!("full")?, &[]).attrs(attrs).runtime([number]).target(&target).host(host).at(site).run1()
}

/// Multiplies gradients by a number in place, one call for each group of gradients with the same placement and SBP, or device.
fn scale_all(grads: &[Tensor], factor: f64, host: Option<HostNumbers>, site: CallSite) -> Result<()> {
    for group in groups(grads, |g| g, |_| ()) {
        let f = number_like(group[0], DType::F32, factor, host, site)?;
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
