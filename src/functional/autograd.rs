//! Gradients: backward, grad, hooks.

use super::rules::InRules;
use super::shape::in_method;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::{self, BackwardOptions};
use crate::tensor::{Edge, Hook, HookFn, HookMoment, LeafSlot, Tensor};
use std::borrow::Borrow;
use std::sync::{Arc, Weak};

/// Removes its hook when [`HookHandle::remove`] is called; dropping it leaves the hook in place.
#[must_use = "keep the handle to be able to remove the hook"]
pub struct HookHandle {
    slot: Weak<LeafSlot>,
    hook: Weak<HookFn>,
}

impl HookHandle {
    /// Removes the hook.
    pub fn remove(self) {
        if let (Some(slot), Some(hook)) = (self.slot.upgrade(), self.hook.upgrade()) {
            slot.hooks.lock().unwrap_or_else(|e| e.into_inner()).retain(|h| !Arc::ptr_eq(&h.call, &hook));
        }
    }
}

impl Tensor {
    /// Gradients of this number with respect to all leaves it depends on, added to their `grad()`.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 2.0], [2], Device::Cpu)?.requires_grad_(true)?;
    /// x.square()?.sum(())?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        self.backward_at(&BackwardOptions::default(), CallSite::here())
    }
    /// Backward with options: a gradient to start from, keeping the graph, recording the pass, the only leaves that get gradients.
    #[track_caller]
    pub fn backward_with(&self, options: &BackwardOptions) -> Result<()> {
        self.backward_at(options, CallSite::here())
    }
    fn backward_at(&self, options: &BackwardOptions, site: CallSite) -> Result<()> {
        let (output, gradient) = (std::slice::from_ref(self), std::slice::from_ref(&options.gradient));
        backward_at(output, gradient, options, site).map_err(in_method("backward", self, site))
    }
    fn slot(&self) -> Option<Arc<LeafSlot>> {
        match self.edge() {
            Edge::None => None,
            Edge::Leaf(s) => Some(s),
            Edge::Node(n, i) => {
                let w = n.watched.lock().unwrap_or_else(|e| e.into_inner());
                w.iter().find(|(k, ..)| *k == i).map(|(_, s, _)| s.clone())
            }
        }
    }
    /// The accumulated gradient: of a leaf, or of a result that `retain_grad` was called on.
    pub fn grad(&self) -> Option<Tensor> {
        let slot = self.slot()?;
        let found = slot.grad.lock().unwrap_or_else(|e| e.into_inner()).clone();
        if found.is_none() {
            interpreter::note_no_gradient(&slot);
        }
        found
    }
    /// Sets (or with `None` clears) the gradient. The nd-SBP of a global one is free: its logical value counts.
    ///
    /// # Errors
    /// If the gradient has not the shape, dtype, device or placement of the tensor, or if the tensor does not require a gradient.
    #[track_caller]
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        let site = CallSite::here();
        let Some(grad) = grad else {
            self.put_grad(None);
            return Ok(());
        };
        let grad = interpreter::in_capture(grad, site).map_err(|e| e.at(site))?;
        let slot = self.watch(false).map_err(|e| e.at(site))?;
        interpreter::note_assigned(&slot);
        let mut have = slot.grad.lock().unwrap_or_else(|e| e.into_inner());
        interpreter::check_assigned(&grad, self, have.as_ref()).map_err(|e| e.at(site))?;
        *have = Some(grad);
        Ok(())
    }
    /// Sets or clears the gradient, which the library itself has made.
    pub(crate) fn put_grad(&self, grad: Option<Tensor>) {
        if let Some(s) = self.slot() {
            interpreter::note_assigned(&s);
            *s.grad.lock().unwrap_or_else(|e| e.into_inner()) = grad;
        }
    }
    fn watch(&self, retain: bool) -> Result<Arc<LeafSlot>> {
        match self.edge() {
            Edge::None => Err(Error::autograd(format!("{self:?} does not require a gradient"))),
            Edge::Leaf(s) => Ok(s),
            Edge::Node(n, i) => {
                let mut w = n.watched.lock().unwrap_or_else(|e| e.into_inner());
                if let Some((_, s, r)) = w.iter_mut().find(|(k, ..)| *k == i) {
                    *r |= retain;
                    return Ok(s.clone());
                }
                let s = Arc::new(LeafSlot::default());
                w.push((i, s.clone(), retain));
                Ok(s)
            }
        }
    }
    /// Keeps the gradient of a result of an op, for [`Tensor::grad`] after backward.
    #[track_caller]
    pub fn retain_grad(&self) -> Result<()> {
        let site = CallSite::here();
        self.watch(true).map(drop).map_err(|e| e.at(site))
    }
    /// Calls `hook` with this tensor's gradient when it is complete. What it returns takes its place, and must have the shape, dtype and
    /// device or placement of the gradient; backward fails otherwise.
    #[track_caller]
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        let site = CallSite::here();
        let slot = self.watch(false).map_err(|e| e.at(site))?;
        Ok(add_hook(&slot, HookMoment::Complete, Arc::new(hook), site))
    }
    /// Calls `hook` with this leaf whenever backward has added to its `grad()`. The hook may read and clear the gradient, so that an optimizer
    /// steps within backward. It is not called once the program has dropped the leaf.
    ///
    /// # Errors
    /// If the tensor does not require a gradient, or is the result of an op.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 2.0], [2], Device::Cpu)?.requires_grad_(true)?;
    /// let hook = x.register_post_accumulate_grad_hook(|leaf| leaf.set_grad(None))?;
    /// x.square()?.sum(())?.backward()?;
    /// assert!(x.grad().is_none());
    /// hook.remove();
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn register_post_accumulate_grad_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<()> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        let site = CallSite::here();
        if matches!(self.edge(), Edge::Node(..)) {
            return Err(Error::autograd(format!(
                "{self:?} is the result of an op: only the gradients of leaves are accumulated"
            ))
            .at(site)
            .help("see its gradient with `register_hook`"));
        }
        let slot = self.watch(false).map_err(|e| e.at(site))?;
        // The slot holds the hook: the hook must not hold the leaf.
        let leaf = self.weak();
        let call = move |_: &Tensor| leaf.get().map_or(Ok(()), |leaf| hook(&leaf)).map(|()| None);
        Ok(add_hook(&slot, HookMoment::Accumulated, Arc::new(call), site))
    }
}

fn add_hook(slot: &Arc<LeafSlot>, moment: HookMoment, call: Arc<HookFn>, site: CallSite) -> HookHandle {
    let handle = HookHandle { slot: Arc::downgrade(slot), hook: Arc::downgrade(&call) };
    slot.hooks.lock().unwrap_or_else(|e| e.into_inner()).push(Hook { moment, call, site });
    handle
}

/// Gradients of the sum of `outputs`, each from a gradient of its own or of single numbers, added to the `grad()` of all leaves or of
/// `options.inputs`. `options.gradient` is not read.
///
/// ```
/// use oflow::{BackwardOptions, functional, prelude::*};
/// let [a, b] = [1.0f32, 2.0].map(|v| from_vec(vec![v], [1], Device::Cpu).and_then(|t| t.requires_grad_(true)));
/// let (a, b) = (a?, b?);
/// let only_a = BackwardOptions { inputs: Some(vec![a.clone()]), ..Default::default() };
/// functional::backward_from(&[a.mul(&b)?, a.square()?], &[], &only_a)?;
/// assert_eq!(a.grad().unwrap().item()?, 4.0);
/// assert!(b.grad().is_none());
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn backward_from<O: Borrow<Tensor>>(
    outputs: impl AsRef<[O]>,
    gradients: &[Option<Tensor>],
    options: &BackwardOptions,
) -> Result<()> {
    let outputs: Vec<Tensor> = outputs.as_ref().iter().map(|t| t.borrow().clone()).collect();
    backward_at(&outputs, gradients, options, CallSite::here())
}

fn backward_at(
    outputs: &[Tensor],
    gradients: &[Option<Tensor>],
    options: &BackwardOptions,
    site: CallSite,
) -> Result<()> {
    let mut results = options.inputs.iter().flatten().filter(|t| !t.is_leaf());
    results.try_for_each(|t| t.watch(true).map(drop)).map_err(|e| e.at(site))?;
    interpreter::backward(outputs, gradients, options, &InRules, site)
}

/// Gradients of `outputs` (single numbers) with respect to `inputs`, without touching any `grad()`. With `create_graph`
/// they can be differentiated again. None where an input has no influence.
///
/// ```
/// use oflow::{BackwardOptions, functional, prelude::*};
/// let x = from_vec(vec![3.0f64], [1], Device::Cpu)?.requires_grad_(true)?;
/// let y = x.pow(3.0)?.sum(())?;
/// let again = BackwardOptions { create_graph: true, ..Default::default() };
/// let d = functional::grad(&[y], &[x.clone()], &again)?[0].clone().unwrap();
/// let dd = functional::grad(&[d.sum(())?], &[x], &BackwardOptions::default())?[0].clone().unwrap();
/// assert_eq!((d.item()?, dd.item()?), (27.0, 18.0));
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn grad<O: Borrow<Tensor>, I: Borrow<Tensor>>(
    outputs: impl AsRef<[O]>,
    inputs: impl AsRef<[I]>,
    options: &BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    grad_from(outputs, inputs, std::slice::from_ref(&options.gradient), options)
}

/// [`grad`] from a gradient for each output; an output without one must be a single number. `options.gradient` is not read.
///
/// ```
/// use oflow::{BackwardOptions, functional, prelude::*};
/// let x = from_vec(vec![1.0f32, 2.0], [2], Device::Cpu)?.requires_grad_(true)?;
/// let start = [Some(from_vec(vec![3.0f32, 1.0], [2], Device::Cpu)?), None];
/// let found = functional::grad_from(&[x.square()?, x.sum(())?], &[x], &start, &BackwardOptions::default())?;
/// assert_eq!(found[0].clone().unwrap().to_vec::<f32>()?, [7.0, 5.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn grad_from<O: Borrow<Tensor>, I: Borrow<Tensor>>(
    outputs: impl AsRef<[O]>,
    inputs: impl AsRef<[I]>,
    gradients: &[Option<Tensor>],
    options: &BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    let outputs: Vec<Tensor> = outputs.as_ref().iter().map(|t| t.borrow().clone()).collect();
    let inputs: Vec<Tensor> = inputs.as_ref().iter().map(|t| t.borrow().clone()).collect();
    grad_at(&outputs, &inputs, gradients, options, CallSite::here())
}

/// [`grad_from`] on behalf of a call at `site`, which errors name.
///
/// # Errors
/// Those of [`grad_from`].
pub fn grad_at(
    outputs: &[Tensor],
    inputs: &[Tensor],
    gradients: &[Option<Tensor>],
    options: &BackwardOptions,
    site: CallSite,
) -> Result<Vec<Option<Tensor>>> {
    interpreter::grad(outputs, inputs, gradients, options, &InRules, site)
}
