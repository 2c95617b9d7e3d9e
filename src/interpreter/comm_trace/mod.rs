//! Comm records: which line of the program moved which bytes, and how long that took.
//!
//! Each boxing leaves one in a ring per rank (`ring.rs`), at the cost of a few stores and two readings of the clock.
//! Everything else, bytes and predictions included, is computed on request: [`take_comm_trace`] hands them out one by
//! one, [`report`] adds them up by line of the program (`tally.rs`, `report.rs`).
//!
//! The boxing gives the number of its entry to the vm, which adds the time when the plan has been carried out, on
//! whatever thread that happens. The time is the elapsed time less the time spent waiting for late members
//! (`comm::Traffic::waited_ns`; each post carries the latest arrival that its sender knows of). Bytes by kind of link
//! come from `boxing/links.rs`. Under `oflaunch --report`, entries that leave the ring are added up, and the sums are
//! sent when the rank says goodbye.

mod entry;
mod rank_time;
mod report;
mod ring;
mod run_time;
mod summary;
mod table;
mod tally;
mod together;

pub(super) use entry::{BackwardScope, in_backward};
pub use rank_time::{DataLine, RankTime, WorkLine};
pub use report::{Measured, Report, ReportHint, ReportLine};
pub use ring::COMM_TRACE_LIMIT;
pub(super) use ring::Ring;
pub use summary::Advice;
pub(super) use together::{KnownTogether, Together};

use super::state::state;
use crate::boxing::{BoxingPlan, LinkKind};
use crate::comm::{Communicator, Tag};
use crate::context::{RankCtx, check_collective, current};
use crate::error::{CallSite, Result};
use crate::vm::{Stopwatch, timed};
use entry::{Entry, What};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tally::Tally;
use together::{Shared, links};

/// One boxing that happened.
#[derive(Clone)]
pub struct CommRecord {
    /// The op that needed it; `gradient` for the complete gradient of a leaf, `to_global` or `to_vec` where the program
    /// asked for it.
    pub op: &'static str,
    /// The user's line. In backward that of the forward call; for the gradient of a leaf, of the call of backward.
    pub site: CallSite,
    /// Whether it happened in backward.
    pub backward: bool,
    /// Boxing or exchange that moved the bytes.
    pub moved: Moved,
    /// The time that the cost model predicts; zero of an exchange, which nobody predicts. A boxing that ran together with others has
    /// less than its plan alone.
    pub predicted: Duration,
    /// The time of this rank's part, from the arrival of the last participant, so that waiting for a late rank does not count
    /// as communication. None if it failed, and in a dry run.
    pub measured: Option<Duration>,
    together: Shared,
}

/// Communication that a comm record is about.
#[derive(Clone, Debug)]
pub enum Moved {
    /// A change of layout.
    Boxing(Arc<BoxingPlan>),
    /// An exchange that no change of layout stands behind: the rows beside a shard that a kernel reads, the lengths of parts, boxes.
    Exchange {
        /// Bytes that all ranks together sent.
        bytes: u64,
        /// Name of the exchange.
        name: &'static str,
    },
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moved::Boxing(plan) => plan.fmt(f),
            Moved::Exchange { bytes, name } => write!(f, "{name}: {bytes} B"),
        }
    }
}

impl CommRecord {
    /// The plan of a change of layout; none of an exchange.
    pub fn plan(&self) -> Option<&Arc<BoxingPlan>> {
        match &self.moved {
            Moved::Boxing(plan) => Some(plan),
            Moved::Exchange { .. } => None,
        }
    }
    /// The bytes that all ranks together sent.
    pub fn bytes_sent(&self) -> u64 {
        match &self.moved {
            Moved::Boxing(plan) => plan.bytes_sent(),
            Moved::Exchange { bytes, .. } => *bytes,
        }
    }
    /// The bytes that all ranks together sent, by the kind of link that they crossed: those of the plan
    /// ([`BoxingPlan::bytes_by_link`]), or its share where it went together with others. Those of an exchange are not told by link.
    pub fn bytes_by_link(&self) -> BTreeMap<LinkKind, u64> {
        self.plan().map_or_else(BTreeMap::new, |plan| links(plan, &self.together))
    }
}

impl fmt::Display for CommRecord {
    // Without the measured time: the comm records of all ranks read alike.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dir = if self.backward { "backward" } else { "forward" };
        write!(f, "{} {dir} of {}: {}", self.site, self.op, self.moved)
    }
}

/// Notes a boxing that is about to run; who is told how long it took.
pub(super) fn note(ctx: &RankCtx, plan: &Arc<BoxingPlan>, tag: &Tag) -> (Arc<dyn Stopwatch>, u64) {
    let ring = &state(ctx).comm_trace;
    (ring.clone(), ring.push(Entry::new(tag, What::Boxing(plan.clone(), plan.cost_ps, None))))
}

/// The list of plans that are about to run together; remembered, because a program boxes the same together again and again.
pub(super) fn together(ctx: &RankCtx, plans: &[Arc<BoxingPlan>]) -> Arc<Together> {
    Together::of(&mut state(ctx).together.lock().unwrap_or_else(PoisonError::into_inner), plans)
}

/// Notes boxings that are about to run together; who is told how long they took, and the number of the first there.
pub(super) fn note_together(
    ctx: &RankCtx,
    plans: &[Arc<BoxingPlan>],
    together: &Arc<Together>,
    tag: &Tag,
) -> (Arc<dyn Stopwatch>, u64) {
    let ring = &state(ctx).comm_trace;
    let note = |(i, plan): (usize, &Arc<BoxingPlan>)| {
        // One alone shares nothing.
        let shared = (plans.len() > 1).then(|| (together.clone(), i));
        Entry::new(tag, What::Boxing(plan.clone(), together.predicted[i], shared))
    };
    (ring.clone(), ring.push_all(plans.iter().enumerate().map(note)))
}

/// Notes an exchange of boxes that is about to run, in which all ranks together send so many bytes; who is told how long it took.
pub(super) fn note_exchange(ctx: &RankCtx, tag: &Tag, bytes: u64) -> (Arc<dyn Stopwatch>, u64) {
    let ring = &state(ctx).comm_trace;
    (ring.clone(), ring.push(Entry::new(tag, What::Collective(bytes, "exchange of boxes"))))
}

/// Runs a collective that no plan stands behind, with a comm record: `bytes` is what all ranks together send. In a dry run there
/// is the comm record alone.
pub(super) fn collective(
    ctx: &RankCtx,
    tag: &Tag,
    bytes: u64,
    run: impl FnOnce(&dyn Communicator) -> Result<()>,
) -> Result<()> {
    check_collective(tag.op, bytes)?;
    let ring = &state(ctx).comm_trace;
    let number = ring.push(Entry::new(tag, What::Collective(bytes, "collective without a plan")));
    if ctx.is_dry() {
        return Ok(());
    }
    let comm = ctx.comm()?;
    ring.done(number, timed(&**comm, || run(&**comm))?, 1);
    Ok(())
}

/// The rank's entries, oldest first, and how many had to be dropped. Waits until the boxings issued so far are done.
fn take() -> (Arc<RankCtx>, Vec<Entry>, u64) {
    let ctx = current();
    // A boxing that failed stays without its time; its error goes to who waits for its result.
    let _told_elsewhere = ctx.quiesce();
    let (entries, dropped) = state(&ctx).comm_trace.take();
    (ctx, entries, dropped)
}

/// Takes this rank's comm records, oldest first; the last [`COMM_TRACE_LIMIT`] are kept. Waits until the boxings issued so far
/// are done.
///
/// ```
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let x = zeros([4], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
/// x.to_global(sbp![B])?;
/// for record in oflow::take_comm_trace() {
///     println!("{record}");
/// }
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn take_comm_trace() -> Vec<CommRecord> {
    let (_, entries, _) = take();
    let record = |e: Entry| {
        let (moved, predicted_ps, together) = match e.what {
            What::Boxing(plan, predicted_ps, together) => (Moved::Boxing(plan), predicted_ps, together),
            What::Collective(bytes, name) => (Moved::Exchange { bytes, name }, 0, None),
        };
        CommRecord {
            op: e.op,
            site: e.site,
            backward: e.backward,
            moved,
            predicted: Duration::from_nanos(predicted_ps / 1000),
            measured: e.measured_ns.map(Duration::from_nanos),
            together,
        }
    };
    entries.into_iter().map(record).collect()
}

/// Communication of this rank since comm records were last taken, added up by line of the program; takes the comm records.
///
/// ```
/// use oflow::prelude::*;
/// let report = oflow::run_ranks(2, |_| {
///     let x = zeros([1024], (&Placement::all(Device::Cpu)?, sbp![S(0)]))?;
///     for _ in 0..3 {
///         x.to_global(sbp![B])?;
///     }
///     Ok(oflow::report())
/// })?
/// .remove(0);
/// assert_eq!((report.count(), report.bytes()), (3, 3 * 4096));
/// println!("{report}");
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn report() -> Report {
    let (ctx, entries, dropped) = take();
    let mut tally = Tally::new(ctx.rank(), ctx.world());
    entries.iter().for_each(|e| tally.add(e));
    tally.report(dropped, state(&ctx).comm_trace.hints())
}
