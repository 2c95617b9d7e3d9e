//! A line of a log.

use std::sync::Arc;

/// The values of a step, as files have them.
pub(super) struct Row {
    pub step: usize,
    /// Seconds since 1970 when the step was first logged.
    pub time: f64,
    pub values: Vec<(Arc<str>, f64)>,
}
