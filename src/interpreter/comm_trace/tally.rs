//! Adding comm records up: one row per place, op, direction and plan.

use super::entry::{Entry, What};
use super::report::{Measured, Report, ReportHint, ReportLine, median};
use super::together::{Shared, links};
use crate::boxing::BoxingPlan;
use crate::error::CallSite;
use crate::intern::FixedMap;
use std::sync::Arc;

/// Rows kept; a program whose shapes change all the time must not grow a tally without bound.
const ROWS: usize = 4096;
/// Times kept per row, for the median: the last ones.
const TIMES: usize = 256;

/// Equal keys are equal boxings, carried out with the same others: a row holds both, so an address is not used again. A plan that was forgotten and made
/// anew gets a second row, which the report joins with the first.
type Key = (&'static str, CallSite, bool, [usize; 3], u64);

struct Row {
    /// Name of the exchange, for rows without a plan.
    name: &'static str,
    plan: Option<Arc<BoxingPlan>>,
    together: Shared,
    /// Whether this rank has a part in it; the times of the others say nothing.
    takes_part: bool,
    count: u64,
    predicted_ps: u64,
    measured: u64,
    total_ns: u64,
    times: Vec<u64>,
}

/// Sums over comm records, without end in time and bounded in memory.
pub(in super::super) struct Tally {
    rank: usize,
    world: usize,
    rows: FixedMap<Key, Row>,
    beyond: u64,
}

impl Tally {
    pub(in super::super) fn new(rank: usize, world: usize) -> Tally {
        Tally { rank, world, rows: FixedMap::default(), beyond: 0 }
    }

    pub(super) fn add(&mut self, e: &Entry) {
        let (plan, predicted_ps, together, bytes, name) = match &e.what {
            What::Boxing(plan, predicted_ps, together) => (Some(plan), *predicted_ps, together, 0, ""),
            What::Collective(bytes, name) => (None, 0, &None, *bytes, *name),
        };
        let (list, place) = together.as_ref().map_or((0, 0), |(t, place)| (Arc::as_ptr(t).addr(), *place));
        let key = (
            e.op,
            e.site,
            e.backward,
            [plan.map_or(name.as_ptr().addr(), |p| Arc::as_ptr(p).addr()), list, place],
            bytes,
        );
        if self.rows.len() >= ROWS && !self.rows.contains_key(&key) {
            self.beyond += 1;
            return;
        }
        let row = self.rows.entry(key).or_insert_with(|| Row {
            plan: plan.cloned(),
            name,
            together: together.clone(),
            takes_part: plan.is_none_or(|p| [&p.src, &p.dst].iter().any(|l| l.placement.position(self.rank).is_some())),
            count: 0,
            predicted_ps: 0,
            measured: 0,
            total_ns: 0,
            times: Vec::new(),
        });
        row.count += 1;
        row.predicted_ps = row.predicted_ps.saturating_add(predicted_ps);
        if let Some(ns) = e.measured_ns.filter(|_| row.takes_part) {
            match row.times.len() < TIMES {
                true => row.times.push(ns),
                false => row.times[row.measured as usize % TIMES] = ns,
            }
            row.measured += 1;
            row.total_ns += ns;
        }
    }

    /// The sums in the order of the program's lines.
    pub(super) fn report(&self, dropped: u64, hints: Vec<ReportHint>) -> Report {
        let lines = self.rows.iter().map(|((op, site, backward, _, bytes), row)| {
            let measured = median(&mut row.times.clone()).map(|median_ns| Measured {
                count: row.measured,
                median_ns,
                total_ns: row.total_ns,
            });
            let place = (*site, *op, *backward);
            match &row.plan {
                Some(plan) => {
                    let links = links(plan, &row.together);
                    ReportLine::of_boxing(place, plan, links, (row.count, row.predicted_ps), measured)
                }
                None => ReportLine::of_collective(place, (*bytes, row.name), row.count, measured),
            }
        });
        Report::new(self.world, vec![self.rank], lines.collect(), dropped + self.beyond, hints)
    }
}
