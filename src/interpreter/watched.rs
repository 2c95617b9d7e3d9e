//! Hooks that see each call of an op on a thread before it runs.

use super::call::Call;
use crate::error::Result;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

type Hook = Rc<dyn Fn(&Call<'_>) -> Result<()>>;

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

/// Ends a [`watch_calls`] when dropped.
#[must_use = "the hook is removed when the guard is dropped: give it a name, `let _guard = …` (`let _ = …` drops it at once), or call `.run(|| …)`"]
pub struct WatchGuard {
    hook: Hook,
}

crate::context::runs_closures!(WatchGuard);

impl Drop for WatchGuard {
    fn drop(&mut self) {
        // Gone only when the thread ends.
        let _ = HOOKS.try_with(|hooks| {
            hooks.borrow_mut().retain(|hook| !Rc::ptr_eq(hook, &self.hook));
            WATCHING.set(WATCHING.get() && !hooks.borrow().is_empty());
        });
    }
}

/// Calls `hook` with each call of an op that this thread makes, before the call runs, until the guard is dropped: local and global
/// ones, changes of layout, those that a function makes for its caller, and those of gradients and autocast. An error that the hook
/// returns is that of the call, which does not run. The hook's own calls are not seen. PyTorch's dispatch modes serve the same
/// purpose; unlike these, a hook cannot replace the result.
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
    let hook: Hook = Rc::new(hook);
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

/// Shows a call to the hooks, the oldest first.
#[cold]
pub(super) fn show(call: &Call<'_>) -> Result<()> {
    // None are left when the thread ends.
    let hooks = HOOKS.try_with(|hooks| hooks.borrow().clone()).unwrap_or_default();
    WATCHING.set(false);
    let _running = Running;
    hooks.iter().try_for_each(|hook| hook(call))
}
