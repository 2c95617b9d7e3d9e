//! Exponential moving averages of weights.

use super::many::groups;
use super::master::zeros_of;
use crate::context::no_grad;
use crate::error::{CallSite, Error, Result};
use crate::functional::op;
use crate::interpreter::{Call, HostObject, HostSource, address_of, host_of_capture};
use crate::ops::RuntimeAttrs;
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::sync::{Arc, Mutex, MutexGuard};

/// An exponential moving average of parameters (PyTorch's `AveragedModel` with `get_ema_multi_avg_fn`). The averages lie as the
/// parameters do; those of halves are f32.
///
/// ```
/// use oflow::optim::Ema;
/// use oflow::prelude::*;
/// let w = ones([1], Device::Cpu)?.requires_grad_(true)?;
/// let mut ema = Ema::new(vec![w.clone()], 0.75)?;
/// {
///     let _quiet = no_grad();
///     w.zero_()?;
/// }
/// ema.update()?;
/// ema.swap()?; // for an evaluation with the averages
/// assert_eq!(w.to_vec::<f32>()?, [0.75]);
/// ema.swap()?;
/// assert_eq!(w.to_vec::<f32>()?, [0.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct Ema {
    parameters: Vec<Tensor>,
    means: Vec<Tensor>,
    numbers: Arc<Numbers>,
    /// The values of the parameters while they hold the averages.
    held: Option<Vec<Tensor>>,
}

/// Decay and number of updates, which graphs that have captured an update share with the average.
struct Numbers(Mutex<(f64, u64)>);

impl Numbers {
    fn get(&self) -> MutexGuard<'_, (f64, u64)> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl HostObject for Numbers {
    fn advance(&self, _site: CallSite) -> Result<()> {
        self.get().1 += 1;
        Ok(())
    }
    fn numbers(&self, _call: u32) -> Result<RuntimeAttrs> {
        Ok(smallvec![self.get().0.into()])
    }
    fn done(&self) {}
    fn address(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }
    fn saved(&self) -> String {
        String::new()
    }
}

/// Averages, as graphs that are loaded take their numbers.
struct AverageSource(Arc<Numbers>);

impl HostSource for AverageSource {
    fn address(&self) -> usize {
        address_of(&self.0)
    }
    fn restore(&self, _saved: &str) -> Result<Arc<dyn HostObject>> {
        Ok(self.0.clone())
    }
}

impl Ema {
    /// Makes averages that start with the values of the parameters. Each update keeps the part `decay` of them.
    ///
    /// # Errors
    /// Those of a copy of a parameter.
    pub fn new(parameters: Vec<Tensor>, decay: f64) -> Result<Ema> {
        let _quiet = no_grad();
        let mean = |p: &Tensor| {
            let mean = zeros_of(p)?;
            mean.copy_(p)?;
            Ok(mean)
        };
        Ok(Ema {
            means: parameters.iter().map(mean).collect::<Result<_>>()?,
            parameters,
            numbers: Arc::new(Numbers(Mutex::new((decay, 0)))),
            held: None,
        })
    }
    /// Moves the averages towards the parameters. Call it after each step of the optimizer.
    ///
    /// # Errors
    /// While the parameters hold the averages ([`Ema::swap`]), and those of the op, which a parameter of another layout raises.
    #[track_caller]
    pub fn update(&mut self) -> Result<()> {
        let (_quiet, site) = (no_grad(), CallSite::here());
        if self.held.is_some() {
            let e = Error::argument("the parameters hold the averages, which cannot be updated with themselves");
            return Err(e.at(site).help("call `swap` once more first"));
        }
        let numbers: Arc<dyn HostObject> = self.numbers.clone();
        let host = host_of_capture("average_many", &numbers, site)?;
        let pairs = self.means.iter().zip(&self.parameters);
        for group in groups(pairs, |(mean, _)| mean, |_| ()) {
            let inputs: Vec<Option<&Tensor>> = group.iter().flat_map(|(mean, p)| [Some(*mean), Some(*p)]).collect();
            let call = Call::new(op!("average_many")?, &inputs).runtime(numbers.numbers(0)?);
            call.host(host.map(|h| h.call(0))).at(site).run()?;
        }
        // A graph that captures the update counts it when it runs.
        if host.is_some() { Ok(()) } else { numbers.advance(site) }
    }
    /// Gives the parameters the values of the averages (those of halves rounded); a second call gives them their own values back.
    ///
    /// # Errors
    /// Those of a copy.
    #[track_caller]
    pub fn swap(&mut self) -> Result<()> {
        let (_quiet, _scope) = (no_grad(), CallSite::here().scope());
        match self.held.take() {
            Some(held) => self.parameters.iter().zip(&held).try_for_each(|(p, own)| p.copy_(own).map(drop)),
            None => {
                self.held = Some(self.parameters.iter().map(|p| p.detach().copy()).collect::<Result<_>>()?);
                self.parameters.iter().zip(&self.means).try_for_each(|(p, mean)| p.copy_(mean).map(drop))
            }
        }
    }
    /// Returns the averages, in the order of the parameters.
    pub fn averages(&self) -> &[Tensor] {
        &self.means
    }
    /// Returns the number of updates.
    pub fn updates(&self) -> u64 {
        self.numbers.get().1
    }
    /// Sets the number of updates, for a state that the program keeps itself.
    pub fn set_updates(&mut self, updates: u64) {
        self.numbers.get().1 = updates;
    }
    /// Sets the decay of later updates.
    pub fn set_decay(&mut self, decay: f64) {
        self.numbers.get().0 = decay;
    }
}

/// Saves the averages by number of the parameter, `3.mean`, and the number of updates.
impl Stateful for Ema {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        self.means.iter().enumerate().for_each(|(i, m)| to.tensor(&format!("{i}.mean"), m));
        to.host("average", Arc::new(AverageSource(self.numbers.clone())));
        to.value("updates", self.updates())
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        self.means.iter().enumerate().for_each(|(i, m)| from.fill(&format!("{i}.mean"), m));
        let updates = from.value("updates")?.unwrap_or(self.updates());
        self.set_updates(updates);
        Ok(())
    }
}
