//! Where the time of a rank went, as the rank sends it to the launcher at its end.

use crate::error::CallSite;
use crate::memory::{DeviceMemory, MemoryHolder};
use crate::trace::{Split, Totals};
use serde::{Deserialize, Serialize};

/// Lines sent of each kind: those that took longest.
const LINES: usize = 512;

/// Kernels of one op at one line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkLine {
    /// Source file of the line.
    pub file: String,
    /// Line, from 1; in backward that of the forward call.
    pub line: u32,
    /// Name scope of the call.
    pub scope: String,
    /// Name of the op.
    pub op: String,
    /// Number of kernels.
    pub count: u64,
    /// Time of all of them, in nanoseconds.
    pub ns: u64,
}

/// Batches of one loader.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DataLine {
    /// Source file of the line that gave the loader its rows; empty if it is not known.
    pub file: String,
    /// That line, from 1.
    pub line: u32,
    /// Batches that the program took.
    pub taken: u64,
    /// Time that the program waited for them, in nanoseconds.
    pub waited_ns: u64,
    /// Batches that were made.
    pub made: u64,
    /// Time that making them took on the threads that did, in nanoseconds, and the processor time in that.
    pub made_ns: u64,
    /// Processor time of making them.
    pub cpu_ns: u64,
    /// Threads beside the main one that made them.
    pub threads: usize,
}

/// Where the time of one rank went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RankTime {
    /// Number of the rank.
    pub rank: usize,
    /// Name of its host.
    pub host: String,
    /// Number of steps.
    pub steps: u64,
    /// Median time of a step in nanoseconds; 0 without steps.
    pub median_ns: u64,
    /// Parts of a step: the mean of the steps between the quartiles.
    pub step: Split,
    /// Time of boxings on other threads than the main one, in a step.
    pub beside_ns: u64,
    /// Rows of the batches of a step; of all ranks together.
    pub rows: Option<f64>,
    /// Share of the elapsed time in which the main thread was ready and had no processor.
    pub queued: f64,
    /// Cores of the host that no rank computes on.
    pub spare_cores: usize,
    /// Kernels, the longest first.
    pub work: Vec<WorkLine>,
    /// Batches by loader.
    pub data: Vec<DataLine>,
    /// Memory of the devices at their peaks, with its largest holders.
    pub memory: Vec<DeviceMemory>,
    /// Events that are missing in the sums.
    pub dropped: u64,
}

impl RankTime {
    /// The sums of a rank; numbers of the rank itself are the caller's.
    pub(super) fn of(totals: &Totals) -> RankTime {
        let mut work: Vec<WorkLine> = totals
            .of_kind("kernel")
            .map(|(op, site, busy)| {
                let (file, line, scope) = place(site);
                WorkLine { file, line, scope, op: op.to_string(), count: busy.count, ns: busy.ns }
            })
            .collect();
        work.sort_by_key(|w| std::cmp::Reverse(w.ns));
        work.truncate(LINES);
        let data = totals.batches().map(|(site, b)| {
            let (file, line, _) = place(site);
            DataLine {
                file,
                line,
                taken: b.taken.count,
                waited_ns: b.taken.ns,
                made: b.made.count,
                made_ns: b.made.ns,
                cpu_ns: b.cpu_ns,
                threads: b.threads(totals.main_thread()),
            }
        });
        RankTime {
            steps: totals.steps(),
            median_ns: totals.median_step(),
            step: totals.step().unwrap_or_default(),
            beside_ns: totals.beside() / totals.steps().max(1),
            rows: totals.rows_of_a_step(),
            data: data.take(LINES).collect(),
            work,
            dropped: totals.dropped(),
            ..RankTime::default()
        }
    }

    /// Time of the kernels of an op at a line and in a scope in a step, forward and backward.
    pub(super) fn work_at(&self, key: (&str, &str, u32, &str)) -> u64 {
        let here = self.work.iter().filter(|w| (w.op.as_str(), w.file.as_str(), w.line, w.scope.as_str()) == key);
        here.map(|w| w.ns).sum::<u64>() / self.steps.max(1)
    }

    /// Time of all kernels in a step.
    pub(super) fn works(&self) -> u64 {
        self.work.iter().map(|w| w.ns).sum::<u64>() / self.steps.max(1)
    }
}

/// The memory of a device at its peak, with as many holders as are sent: the others are one.
pub(super) fn at_peak(mut of: DeviceMemory) -> DeviceMemory {
    of.now.clear();
    of.failure = None;
    if of.peak.len() > LINES {
        let rest = of.peak.split_off(LINES - 1);
        let mut others = MemoryHolder::default();
        (others.used_for, others.bytes) = ("others".to_string(), rest.iter().map(|h| h.bytes).sum());
        of.peak.push(others);
    }
    of
}

/// Devices of a rank that are believed.
const DEVICES: usize = 64;

fn place(site: CallSite) -> (String, u32, String) {
    (site.file.to_string(), site.line, site.scope.path().to_string())
}

/// Ten days in nanoseconds, and more bytes than a host has.
const MOST: u64 = 1 << 50;

impl RankTime {
    /// Whether sums over it fit: another process may have written any numbers.
    pub(super) fn is_plausible(&self) -> bool {
        let Split { whole, compute, communication, late_ranks, data, checkpoint, .. } = self.step;
        let own =
            [whole, compute, communication, late_ranks, data, checkpoint, self.median_ns, self.beside_ns, self.steps];
        let work = self.work.iter().flat_map(|w| [w.count, w.ns]);
        let data = self.data.iter().flat_map(|d| [d.taken, d.waited_ns, d.made, d.made_ns, d.cpu_ns, d.threads as u64]);
        let devices = self.memory.iter();
        let memory = devices.flat_map(|d| d.peak.iter().flat_map(|h| [h.bytes, h.blocks]).chain([d.stats.peak as u64]));
        let small = own.into_iter().chain(work).chain(data).chain(memory).all(|n| n <= MOST);
        let shares = (0.0..=1.0).contains(&self.queued) && self.rows.is_none_or(|r| (0.0..=1e15).contains(&r));
        small
            && shares
            && self.work.len() <= LINES
            && self.data.len() <= LINES
            && self.memory.len() <= DEVICES
            && self.memory.iter().all(|d| d.peak.len() <= LINES)
    }
}
