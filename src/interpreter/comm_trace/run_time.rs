//! Adds up where the time of a rank goes, from its first global op to its end.

use super::rank_time::{self, RankTime};
use super::report::ReportHint;
use crate::context::RankCtx;
use crate::memory::Allocator;
use crate::trace::{Session, Totals};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The sums of a rank that runs.
pub(super) struct RunTime {
    /// None where no thread could be started.
    session: Option<Session>,
    allocators: Arc<Mutex<Vec<Allocator>>>,
    totals: Arc<Mutex<Totals>>,
    rank: usize,
    since: Instant,
    queued_ns: u64,
}

impl RunTime {
    pub(super) fn start(ctx: &RankCtx) -> RunTime {
        let totals = Arc::new(Mutex::new(Totals::default()));
        let session = Session::start(ctx.owner(), 0..u64::MAX, totals.clone());
        if let Err(e) = &session {
            tracing::warn!("the report has no times: {e}");
        }
        let allocators = ctx.shared_allocators();
        RunTime {
            session: session.ok(),
            allocators,
            totals,
            rank: ctx.rank(),
            since: Instant::now(),
            queued_ns: queued_ns(),
        }
    }

    /// The sums. Counts the calls that hints are about.
    pub(super) fn end(self, hints: &mut [ReportHint]) -> RankTime {
        // What was recorded until now is in the sums then.
        drop(self.session);
        let totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        for (op, site, busy) in totals.of_kind("op") {
            let here = |h: &&mut ReportHint| {
                (h.op.as_str(), h.file.as_str(), h.line, h.scope.as_str())
                    == (op, site.file, site.line, site.scope.path())
            };
            hints.iter_mut().filter(here).for_each(|h| h.calls += busy.count);
        }
        let allocators = self.allocators.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = allocators.iter().map(|a| rank_time::at_peak(a.report())).collect();
        let queued = queued_ns().saturating_sub(self.queued_ns) as f64 / self.since.elapsed().as_nanos().max(1) as f64;
        RankTime {
            rank: self.rank,
            host: oflow_files::lock::host(),
            queued: queued.clamp(0.0, 1.0),
            memory,
            ..RankTime::of(&totals)
        }
    }
}

/// Time that this thread has been ready and waited for a processor; 0 if the system does not report it.
fn queued_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
