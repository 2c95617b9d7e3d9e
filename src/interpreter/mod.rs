//! Running calls: local, global, autograd around both; the dispatch cache; boxing; reading; backward.
//!
//! Knows ops, plans and devices; knows nothing of modules or optimizers. The way of one call starts at [`dispatch`].

mod autocast;
mod backward;
mod box_many;
mod boxes;
mod cache;
mod call;
mod convert;
mod copy;
mod custom;
mod dispatch;
mod emit;
mod grad_ctx;
mod plan;
mod policy;
mod read;
mod receipts;
mod record;

pub use autocast::{AutocastGuard, autocast};
pub use backward::{BackwardOptions, backward, grad};
pub use box_many::{BoxTo, box_many};
pub use boxes::from_boxes;
pub use cache::{CACHE_LIMIT, DispatchCache, DispatchPlan, cache};
pub use call::{Call, IntoValues, Mode, Target};
pub use convert::{batch_range, box_global, distribute, from_bytes, shard_to_global, to_local};
pub use custom::apply_custom;
pub use dispatch::Outputs;
pub use read::{local_bytes, logical_bytes, logical_bytes_on};
pub use receipts::{Measured, RECEIPTS_LIMIT, Receipt, Report, ReportLine, report, take_receipts};
