//! Hooks that see each call of an op on a thread, before it runs or with its results.

use super::call::{Call, Outputs};
use super::observers::{Observer, Scope, hide, observe};
use crate::context::Moments;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use std::rc::Rc;

/// The moments at which hooks look.
pub(super) const HOOKS: Moments = Moments::BEFORE.and(Moments::RESULTS);

/// A hook before calls.
struct Before<F>(F);

impl<F: Fn(&Call<'_>) -> Result<()>> Observer for Before<F> {
    fn moments(&self) -> Moments {
        Moments::BEFORE
    }
    fn before(&self, call: &Call<'_>) -> Result<()> {
        let _own_calls = hide(HOOKS);
        (self.0)(call)
    }
}

/// A hook on results.
struct After<F>(F);

impl<F: Fn(&Call<'_>, &mut Outputs) -> Result<()>> Observer for After<F> {
    fn moments(&self) -> Moments {
        Moments::RESULTS
    }
    fn results(&self, call: &Call<'_>, outs: &mut Outputs) -> Result<()> {
        let made = outs.clone();
        {
            let _own_calls = hide(HOOKS);
            (self.0)(call, outs)?;
        }
        check_replaced(call, &made, outs)
    }
}

/// Ends a [`watch_calls`] or [`watch_results`] when dropped.
#[must_use = "the hook is removed when the guard is dropped: give it a name, `let _guard = …` (`let _ = …` drops it at once), or call `.run(|| …)`"]
pub struct WatchGuard {
    _scope: Scope,
}

crate::context::runs_closures!(WatchGuard);

/// Calls `hook` with each call of an op that this thread makes, before the call runs, until the guard is dropped: local and global
/// ones, changes of layout, those that a function makes for its caller, and those of gradients and autocast. An error that the hook
/// returns is that of the call, which does not run. The hook's own calls are not seen. [`watch_results`] sees what a call returns, and
/// may replace it. PyTorch's dispatch modes serve the same purpose.
///
/// On global tensors hooks must refuse the same calls on every rank.
///
/// ```
/// use oflow::{interpreter::watch_calls, prelude::*};
/// use std::{cell::RefCell, rc::Rc};
/// let x = ones([2, 2], Device::Cpu)?;
/// let seen = Rc::new(RefCell::new(vec![]));
/// let names = seen.clone();
/// let watch = watch_calls(move |call| {
///     names.borrow_mut().push(call.op.name().to_string());
///     Ok(())
/// });
/// x.softmax(1)?.select(0, 1)?;
/// drop(watch);
/// x.relu()?;
/// assert_eq!(*seen.borrow(), ["softmax", "slice", "reshape"]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn watch_calls(hook: impl Fn(&Call<'_>) -> Result<()> + 'static) -> WatchGuard {
    WatchGuard { _scope: observe(Rc::new(Before(hook))) }
}

/// Calls `hook` with each call of an op that this thread makes and its results, after the call and after it is recorded for backward,
/// until the guard is dropped. The hook sees the calls that one of [`watch_calls`] sees, if they succeed, and may put other tensors in
/// the place of the results: those of the same shape, dtype and layout. Gradients flow to what the new tensors were made of. An
/// error that the hook returns is that of the call. The hook's own calls are not seen.
///
/// On global tensors hooks must replace and refuse the same results on every rank.
///
/// ```
/// use oflow::{interpreter::watch_results, prelude::*};
/// let x = ones([2], Device::Cpu)?;
/// let watch = watch_results(|call, outputs| {
///     if call.op.name() == "exp" {
///         outputs[0] = outputs[0].round()?;
///     }
///     Ok(())
/// });
/// assert_eq!(x.exp()?.to_vec::<f32>()?, [3.0; 2]);
/// drop(watch);
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn watch_results(hook: impl Fn(&Call<'_>, &mut Outputs) -> Result<()> + 'static) -> WatchGuard {
    WatchGuard { _scope: observe(Rc::new(After(hook))) }
}

/// Refuses results that whoever called does not expect.
fn check_replaced(call: &Call<'_>, made: &[Tensor], now: &[Tensor]) -> Result<()> {
    if made.len() != now.len() {
        let text = format!("a hook of its results left {} tensors of {}", now.len(), made.len());
        return Err(Error::argument(text).help("put a tensor in the place of each result that it does not keep"));
    }
    for (i, (old, new)) in made.iter().zip(now).enumerate() {
        if old.same(new) {
            continue;
        }
        if call.given.is_some() && i == 0 {
            return Err(Error::argument("a hook replaced the result of a call in place")
                .help("write into the tensor, or refuse the call"));
        }
        let layout = |t: &Tensor| t.global().map(|g| (g.placement.clone(), g.sbp.clone()));
        let place = |t: &Tensor| (t.is_meta(), t.device(), layout(t));
        if old.ty() != new.ty() || place(old) != place(new) {
            return Err(Error::argument(format!("a hook replaced result {i}, {old:?}, by {new:?}"))
                .help("a replacement has the same shape, dtype and layout: `cast` it, or move it with `to_device` or `to_global`"));
        }
    }
    Ok(())
}
