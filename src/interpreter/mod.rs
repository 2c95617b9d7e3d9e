//! Running calls: local, global, autograd around both; the dispatch cache; boxing; reading; backward.
//!
//! Knows ops, plans and devices; knows nothing of modules or optimizers. The way of one call starts at [`Call::run`].

mod alias;
mod anomaly;
mod autocast;
mod backward;
mod bind;
mod boxing;
mod by_parts;
mod cache;
mod call;
mod called;
mod counted;
mod custom;
mod dispatch;
mod emit;
mod engine;
mod gather;
mod grad_ctx;
mod key;
mod layout;
mod modes;
mod op_call;
mod policy;
mod read;
mod receipts;
mod record;
mod saved;
mod supplied;
mod tape;
mod watched;

pub use crate::plan::Target;
pub use autocast::{AutocastGuard, autocast};
pub use backward::{BackwardOptions, backward, grad};
pub use cache::{CACHE_LIMIT, DispatchCache, DispatchPlan, cache};
pub(crate) use call::first;
pub use call::{Call, IntoValues};
pub use called::{Called, list_called};
pub use custom::apply_custom;
pub use dispatch::Outputs;
pub(crate) use emit::serve_functions;
pub(crate) use layout::compare_replicas;
pub use layout::from_bytes;
pub use modes::modes;
pub use op_call::OpCall;
pub use read::{local_bytes, logical_bytes, logical_bytes_on};
pub use receipts::{Measured, Moved, RECEIPTS_LIMIT, Receipt, Report, ReportHint, ReportLine, report, take_receipts};
pub use saved::{RecomputeGuard, recompute, saved_tensors_hooks};
pub(crate) use supplied::check_assigned;
pub use watched::{WatchGuard, watch_calls, watch_results};
