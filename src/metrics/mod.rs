//! Metrics: numbers that tell how good a model is, over any number of batches and ranks.
//!
//! A metric takes batches with `update` and keeps sums. Tensors may be global in any layout: then every rank has the same sums. Of local
//! tensors each rank has sums of its own until [`Metric::sync`] adds them up over the world. Metrics are
//! [`Stateful`]: checkpoints save them. [The page on data](crate::docs::data) has a table of them.
//!
//! [`log`] writes metrics by step to files; [the page on metrics](crate::docs::metrics) leads through it.

mod auc;
mod classes;
mod log;
mod mean;
mod top_k;
mod totals;

pub use auc::Auc;
pub use classes::{Average, ClassScores, ConfusionMatrix};
pub use log::{Format, Log, LogOptions, LogValue, Logged, OverRanks, flush_log, log};
pub use mean::{Mean, Perplexity, RunningMean};
pub use top_k::Accuracy;

use crate::error::Result;
use crate::state::Stateful;

/// Methods of all metrics. The sums of several batches are those of their rows, not means of means, so a short last batch counts by its
/// rows.
///
/// ```
/// use oflow::metrics::{Accuracy, Mean, Metric};
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?;
/// let scores = from_vec(vec![0.1f32, 0.9, 0.6, 0.4, 0.7, 0.3], [3, 2], (&mesh, sbp![S(0)]))?;
/// let labels = from_vec(vec![1i64, 0, 1], [3], (&mesh, sbp![S(0)]))?;
/// let (mut accuracy, mut loss) = (Accuracy::new(), Mean::new());
/// accuracy.update(&scores, &labels)?;
/// loss.update(&scores.cross_entropy(&labels)?)?;
/// assert_eq!(accuracy.value(), 2.0 / 3.0);
/// for metric in [&mut accuracy as &mut dyn Metric, &mut loss] {
///     metric.sync()?; // nothing to add up: the tensors were global
///     metric.reset();
/// }
/// # Ok::<(), oflow::Error>(())
/// ```
pub trait Metric: Stateful {
    /// Returns the metric of all batches since the last reset, as far as this rank knows them; NaN where it is not defined, as the mean of
    /// nothing.
    fn value(&self) -> f64;
    /// Adds up over all ranks the sums of local tensors. A collective of the world: every rank calls it. Afterwards every rank has the same
    /// value. What has been added up is not added up again.
    ///
    /// # Errors
    /// If communication fails.
    fn sync(&mut self) -> Result<()>;
    /// Forgets all batches.
    fn reset(&mut self);
}
