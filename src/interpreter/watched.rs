//! Hooks that see each call of an op on a thread before it runs.

use super::call::Call;
use crate::context::{ModeGuard, unwatched, watched};
use crate::error::Result;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

type Hook = Rc<dyn Fn(&Call<'_>) -> Result<()>>;

thread_local! {
    static HOOKS: RefCell<Vec<Hook>> = const { RefCell::new(Vec::new()) };
}

/// Ends a [`watch_calls`] when dropped.
#[must_use = "the hook is removed when the guard is dropped"]
pub struct WatchGuard {
    open: usize,
    _mode: ModeGuard,
    // Hooks are per thread: the guard must be dropped where it was made.
    _not_send: PhantomData<*const ()>,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        // Gone only when the thread ends.
        let _ = HOOKS.try_with(|hooks| hooks.borrow_mut().truncate(self.open));
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
    let open = HOOKS.with_borrow_mut(|hooks| {
        hooks.push(Rc::new(hook));
        hooks.len() - 1
    });
    WatchGuard { open, _mode: watched(), _not_send: PhantomData }
}

/// Shows a call to the hooks, the oldest first.
#[cold]
pub(super) fn show(call: &Call<'_>) -> Result<()> {
    let hooks = HOOKS.with_borrow(|hooks| hooks.clone());
    let _own_calls = unwatched();
    hooks.iter().try_for_each(|hook| hook(call))
}
