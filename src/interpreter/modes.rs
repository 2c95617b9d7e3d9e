//! Modes that are in force on a thread, as text.

use super::hooks::HOOKS;
use crate::context::{Moments, described, is_observed};
use crate::error::CallSite;

/// Returns the modes that guards of this thread hold, as text: what differs from a thread that holds none. For messages and tests.
///
/// ```
/// use oflow::prelude::*;
/// let (first, second) = (no_grad(), oflow::name_scope("attn"));
/// assert_eq!(oflow::interpreter::modes(), ["no_grad", "name_scope attn"]);
/// drop(first); // each guard ends its own mode, in any order
/// assert_eq!(oflow::interpreter::modes(), ["name_scope attn"]);
/// drop(second);
/// assert!(oflow::interpreter::modes().is_empty());
/// ```
pub fn modes() -> Vec<String> {
    let mut all = described();
    let path = CallSite::in_scope("", 0).scope.path();
    if !path.is_empty() {
        all.push(format!("name_scope {path}"));
    }
    if is_observed(Moments::SAVED) {
        all.push("saved_tensors_hooks".into());
    }
    if is_observed(HOOKS) {
        all.push("watch_calls".into());
    }
    all
}
