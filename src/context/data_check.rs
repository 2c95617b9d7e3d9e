//! How far ranks compare the values that all of them give alike.

use crate::control::CHECK_VARIABLE;

/// Check of the values that all ranks give alike, as part of the dispatch stream: of `from_vec`, `distribute`, and of the
/// parameters that are B at an optimizer's first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataCheck {
    /// Nothing (`OFLOW_CHECK=0`).
    Off,
    /// A sample of the bytes of each value that lies in host memory: what is cheap enough for every call.
    Sample,
    /// All bytes, and partial sums that meet infinities are looked for (`OFLOW_CHECK=1`).
    All,
}

impl DataCheck {
    pub(super) fn of_environment() -> DataCheck {
        match std::env::var(CHECK_VARIABLE).as_deref() {
            Ok("0") => DataCheck::Off,
            Ok("1") => DataCheck::All,
            // A job whose variable says something else is refused when it starts.
            _ => DataCheck::Sample,
        }
    }
}
