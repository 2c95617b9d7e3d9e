//! Last message of a rank whose program calls `exit()` while its [`Local`](super::Local) lives: no destructor runs then. The
//! kernel tells nobody whether a process was killed or has ended by itself, so the rank tells it.

use std::sync::{Mutex, Once, PoisonError};

type Action = Box<dyn FnOnce() + Send>;

static ACTION: Mutex<Option<Action>> = Mutex::new(None);

unsafe extern "C" {
    safe fn atexit(function: extern "C" fn()) -> i32;
}

/// Sets what is done at `exit()`. The action must not panic and must not wait for the calling thread.
pub(super) fn set(action: impl FnOnce() + Send + 'static) {
    let rank = std::process::id();
    // A fork of the rank that ends is not the rank.
    let action = move || {
        if std::process::id() == rank {
            action();
        }
    };
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // Where there is no room for it the rank counts as killed.
        let _registered = atexit(run);
    });
    *ACTION.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
}

/// The rank leaves by itself.
pub(super) fn clear() {
    drop(ACTION.lock().unwrap_or_else(PoisonError::into_inner).take());
}

extern "C" fn run() {
    let action = ACTION.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(action) = action {
        action();
    }
}
