//! Hooks that see each call of an op on a thread, before it runs or with its results.

use super::call::Call;
use super::dispatch::Outputs;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

type BeforeHook = dyn Fn(&Call<'_>) -> Result<()>;
type AfterHook = dyn Fn(&Call<'_>, &mut Outputs) -> Result<()>;

/// A hook of either kind.
#[derive(Clone)]
enum Hook {
    Before(Rc<BeforeHook>),
    After(Rc<AfterHook>),
}

impl Hook {
    fn same(&self, other: &Hook) -> bool {
        match (self, other) {
            (Hook::Before(a), Hook::Before(b)) => Rc::ptr_eq(a, b),
            (Hook::After(a), Hook::After(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }
}

thread_local! {
    static HOOKS: RefCell<Vec<Hook>> = const { RefCell::new(Vec::new()) };
    /// Whether there are hooks that see the next call. No mode of the thread: another guard that ends must not bring it back.
    static WATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Whether hooks see the next call.
#[inline]
pub(super) fn watching() -> bool {
    WATCHING.get()
}

/// Ends a [`watch_calls`] or [`watch_results`] when dropped.
#[must_use = "the hook is removed when the guard is dropped: give it a name, `let _guard = …` (`let _ = …` drops it at once), or call `.run(|| …)`"]
pub struct WatchGuard {
    hook: Hook,
}

crate::context::runs_closures!(WatchGuard);

impl Drop for WatchGuard {
    fn drop(&mut self) {
        // Gone only when the thread ends.
        let _ = HOOKS.try_with(|hooks| {
            hooks.borrow_mut().retain(|hook| !hook.same(&self.hook));
            WATCHING.set(WATCHING.get() && !hooks.borrow().is_empty());
        });
    }
}

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
    watch(Hook::Before(Rc::new(hook)))
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
    watch(Hook::After(Rc::new(hook)))
}

fn watch(hook: Hook) -> WatchGuard {
    HOOKS.with_borrow_mut(|hooks| hooks.push(hook.clone()));
    WATCHING.set(true);
    WatchGuard { hook }
}

/// While hooks run, which calls of their own do not show to hooks.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        WATCHING.set(HOOKS.try_with(|hooks| !hooks.borrow().is_empty()).unwrap_or(false));
    }
}

/// Runs `f` on each hook, the oldest first, while their own calls do not show.
fn each(f: impl FnMut(&Hook) -> Result<()>) -> Result<()> {
    // None are left when the thread ends.
    let hooks = HOOKS.try_with(|hooks| hooks.borrow().clone()).unwrap_or_default();
    WATCHING.set(false);
    let _running = Running;
    hooks.iter().try_for_each(f)
}

/// Shows a call to the hooks before it runs.
#[cold]
pub(super) fn show(call: &Call<'_>) -> Result<()> {
    each(|hook| match hook {
        Hook::Before(hook) => hook(call),
        Hook::After(_) => Ok(()),
    })
}

/// Shows the results of a call to the hooks, each with what those before it have put in their place.
#[cold]
pub(super) fn show_results(call: &Call<'_>, outs: &mut Outputs) -> Result<()> {
    each(|hook| match hook {
        Hook::Before(_) => Ok(()),
        Hook::After(hook) => {
            let made = outs.clone();
            hook(call, outs)?;
            check_replaced(call, &made, outs)
        }
    })
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
