//! Memory reports: who holds the memory of a rank's devices now, held it at the peak, and held it when an allocation failed.

use super::owner::{MemoryOwner, MemoryUse, Share};
use super::stats::MemoryStats;
use oflow_base::text::{bytes, percent, short_path, tail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Rows of each table of a printed report.
const ROWS: usize = 12;
/// Width of the names in a printed report: with the numbers the lines have 80 columns.
const NAMES: usize = 55;

/// Memory that one line of the program holds through one op.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryHolder {
    /// Use of the memory: a name of [`MemoryUse`], or `small blocks` for all blocks of less than 4 KiB.
    pub used_for: String,
    /// Name of the op that made it; empty for small blocks.
    pub op: String,
    /// Source file of the line; empty for small blocks.
    pub file: String,
    /// Line, from 1; in backward that of the forward call.
    pub line: u32,
    /// Name scope of the call, which is the path of a module; for a parameter that of the module that first used it.
    pub scope: String,
    /// Bytes of whole blocks.
    pub bytes: u64,
    /// Number of blocks; 0 where it is not counted.
    pub blocks: u64,
}

impl MemoryHolder {
    /// Whether the owner of the memory is known by a line of the program.
    pub fn is_named(&self) -> bool {
        !self.file.is_empty()
    }

    fn line_text(&self) -> String {
        match self.file.is_empty() {
            true => self.used_for.clone(),
            false => format!("{} {} {}:{}", self.used_for, self.op, short_path(&self.file), self.line),
        }
    }
}

/// An allocation that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryFailure {
    /// Bytes that were asked for.
    pub bytes: usize,
    /// Name of the op that asked.
    pub op: String,
    /// The line of that call, with the name scope.
    pub line: String,
    /// Bytes in use then.
    pub live: usize,
    /// Holders then, the largest first.
    pub held: Vec<MemoryHolder>,
}

/// Memory of one device of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceMemory {
    /// Name of the device.
    pub device: String,
    /// Counters of the allocator.
    pub stats: MemoryStats,
    /// Holders now, the largest first. Their bytes together are `stats.live`.
    pub now: Vec<MemoryHolder>,
    /// Holders at the peak, the largest first. Their bytes together are `stats.peak`.
    pub peak: Vec<MemoryHolder>,
    /// The last allocation that failed, if one has.
    pub failure: Option<MemoryFailure>,
}

/// Holders of the memory of a rank; made by [`memory_report`](crate::memory_report). Prints as tables of 80 columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryReport {
    /// Number of the rank.
    pub rank: usize,
    /// Devices that the rank has used.
    pub devices: Vec<DeviceMemory>,
}

/// Rows of a report, the largest first; what the owners do not have of `all` is in small blocks.
pub(super) fn holders(shares: &[(MemoryOwner, Share)], all: usize) -> Vec<MemoryHolder> {
    // Lines of one text at two addresses, and parameters named by several modules, may be several owners.
    let mut sums: BTreeMap<(MemoryUse, &str, &str, u32, &str), Share> = BTreeMap::new();
    for (o, share) in shares {
        let sum = sums.entry((o.used_for, o.op, o.site.file, o.site.line, o.site.scope.path())).or_default();
        sum.bytes += share.bytes;
        sum.blocks += share.blocks;
    }
    let owned: usize = sums.values().map(|s| s.bytes).sum();
    let mut rows: Vec<MemoryHolder> = sums
        .into_iter()
        .map(|((used_for, op, file, line, scope), share)| MemoryHolder {
            used_for: used_for.name().to_string(),
            op: op.to_string(),
            file: file.to_string(),
            line,
            scope: scope.to_string(),
            bytes: share.bytes as u64,
            blocks: share.blocks as u64,
        })
        .collect();
    if all > owned {
        let small =
            MemoryHolder { used_for: SMALL.to_string(), bytes: (all - owned) as u64, ..MemoryHolder::default() };
        rows.push(small);
    }
    rows.sort_by_key(|r| std::cmp::Reverse(r.bytes));
    rows
}

/// Blocks that are counted together.
const SMALL: &str = "small blocks";

/// The largest holders, as the end of a sentence.
pub(super) fn largest(held: &[MemoryHolder]) -> String {
    let rows = held.iter().filter(|h| h.is_named()).take(5).map(|h| {
        let scope = if h.scope.is_empty() { String::new() } else { format!(" in {}", h.scope) };
        format!("\n  {:>9}  {}{scope}", bytes(h.bytes), h.line_text())
    });
    let rows: String = rows.collect();
    if rows.is_empty() { rows } else { format!("; the most memory is held by{rows}") }
}

/// Bytes by a key, the largest first.
fn summed<'a>(held: &'a [MemoryHolder], key: impl Fn(&'a MemoryHolder) -> Option<String>) -> Vec<(String, u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (key, h) in held.iter().filter_map(|h| Some((key(h)?, h))) {
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + h.bytes, sum.1 + h.blocks);
    }
    let mut rows: Vec<_> = sums.into_iter().map(|(name, (bytes, blocks))| (name, bytes, blocks)).collect();
    rows.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
    rows
}

/// Bytes of holders by use, the largest first.
pub(crate) fn by_use(held: &[MemoryHolder]) -> Vec<(String, u64)> {
    summed(held, |h| Some(h.used_for.clone())).into_iter().map(|(name, bytes, _)| (name, bytes)).collect()
}

/// Writes the three tables of some holders: by use, by module, by line.
pub(crate) fn write_tables(f: &mut fmt::Formatter<'_>, held: &[MemoryHolder]) -> fmt::Result {
    let whole: u64 = held.iter().map(|h| h.bytes).sum();
    let tables = [
        ("by use", summed(held, |h| Some(h.used_for.clone()))),
        ("by module", summed(held, |h| (!h.scope.is_empty()).then(|| h.scope.clone()))),
        ("by line", summed(held, |h| Some(h.line_text()))),
    ];
    for (title, rows) in &tables {
        if rows.is_empty() {
            continue;
        }
        writeln!(f, "  {title:<NAMES$} {:>9} {:>5} {:>6}", "bytes", "share", "blocks")?;
        for (name, size, blocks) in rows.iter().take(ROWS) {
            let blocks = if *blocks == 0 { "-".to_string() } else { blocks.to_string() };
            let name = tail(name, NAMES - 2);
            writeln!(f, "    {name:<0$} {1:>9} {2:>5} {blocks:>6}", NAMES - 2, bytes(*size), percent(*size, whole))?;
        }
        if rows.len() > ROWS {
            let rest: u64 = rows[ROWS..].iter().map(|(_, size, _)| size).sum();
            writeln!(f, "    {:<1$} {2:>9}", format!("{} more", rows.len() - ROWS), NAMES - 2, bytes(rest))?;
        }
    }
    Ok(())
}

impl fmt::Display for DeviceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryStats { live, cached, peak, .. } = self.stats;
        let (live, cached, peak) = (bytes(live as u64), bytes(cached as u64), bytes(peak as u64));
        writeln!(f, "{}: {live} in use, at most {peak}; {cached} kept for later", self.device)?;
        if let Some(failure) = &self.failure {
            let asked = bytes(failure.bytes as u64);
            writeln!(f, "\nno memory for {asked} of {} at {}; in use then:", failure.op, failure.line)?;
            write_tables(f, &failure.held)?;
        }
        writeln!(f, "\nat the peak of {peak}:")?;
        write_tables(f, &self.peak)?;
        if self.now != self.peak {
            writeln!(f, "\nnow, {live}:")?;
            write_tables(f, &self.now)?;
        }
        Ok(())
    }
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.devices.is_empty() {
            return writeln!(f, "memory of rank {}: no device was used", self.rank);
        }
        self.devices.iter().try_for_each(|d| write!(f, "memory of rank {}, {d}", self.rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{CallSite, name_scope};
    use crate::memory::{Allocator, AllocatorOptions};

    fn sum(held: &[MemoryHolder]) -> usize {
        held.iter().map(|h| h.bytes as usize).sum()
    }

    #[test]
    fn a_report_names_uses_modules_and_lines() {
        let a = Allocator::cpu(AllocatorOptions { cache_bytes: 1 << 30, poison_on_free: false });
        let of = |used_for, op, line, scope: &str, n: usize| {
            let _scope = name_scope(scope);
            MemoryOwner { used_for, op, site: CallSite::in_scope("/home/x/src/train.rs", line) }.begin();
            a.alloc(n).unwrap()
        };
        let weight = of(MemoryUse::Activation, "randn", 3, "", 1 << 20);
        weight.set_use(MemoryUse::Parameter);
        weight.name_owner(CallSite::told("", 0, "net.fc").scope);
        let hidden = of(MemoryUse::Activation, "linear", 9, "net.fc", 2 << 20);
        let small = of(MemoryUse::Activation, "sum", 12, "net", 8);
        drop(hidden);
        MemoryOwner { used_for: MemoryUse::Workspace, op: "matmul", site: CallSite::at("a.rs", 5) }.begin();
        let e = a.alloc(1 << 46).unwrap_err();
        assert!(e.to_string().contains("held by\n     1.0 MB  parameters randn src/train.rs:3 in net.fc"), "{e}");
        let report = a.report();
        assert_eq!((sum(&report.now), sum(&report.peak)), (report.stats.live, report.stats.peak));
        assert_eq!(
            report.failure.as_ref().map(|f| (f.live, sum(&f.held))),
            Some((report.stats.live, report.stats.live))
        );
        let shown = MemoryReport { rank: 3, devices: vec![report.clone()] }.to_string();
        expect_test::expect![[r#"
            memory of rank 3, cpu: 1.0 MB in use, at most 3.1 MB; 0 B kept for later

            no memory for 70368.74 GB of matmul at a.rs:5; in use then:
              by use                                                      bytes share blocks
                parameters                                               1.0 MB 100 %      1
                small blocks                                               64 B 0.0 %      -
              by module                                                   bytes share blocks
                net.fc                                                   1.0 MB 100 %      1
              by line                                                     bytes share blocks
                parameters randn src/train.rs:3                          1.0 MB 100 %      1
                small blocks                                               64 B 0.0 %      -

            at the peak of 3.1 MB:
        "#]]
        .assert_eq(&shown[..shown.find("at the peak").map_or(0, |at| at + 23)]);
        assert!(shown.lines().all(|l| l.chars().count() <= 84), "{shown}");
        drop((weight, small));
        let later = a.report();
        assert_eq!((sum(&later.now), later.peak.len()), (0, report.peak.len()));
        a.reset_peak();
        assert_eq!((a.stats().peak, a.report().peak), (0, vec![]));
    }

    /// Random programs that allocate, rename, replace and drop, some on another thread, beside a list of what each block should be.
    #[test]
    fn every_byte_has_the_owner_that_was_said_last() {
        let scopes = ["", "a", "a.b", "c"].map(|s| CallSite::told("", 0, s).scope);
        let mut random = oflow_base::Random::new(11);
        for round in 0..60 {
            let a = match round % 2 {
                0 => Allocator::cpu(AllocatorOptions { cache_bytes: 1 << 20, poison_on_free: false }),
                _ => Allocator::dry(
                    crate::placement::Device::Cpu,
                    crate::memory::Origin::dry_run(0, 1),
                    Default::default(),
                ),
            };
            let mut blocks: Vec<(crate::memory::Storage, MemoryOwner)> = vec![];
            let mut peak = 0;
            for _ in 0..150 {
                let site = CallSite { scope: *random.of(&scopes), ..CallSite::at("f.rs", random.below(5) as u32) };
                let owner = MemoryOwner { used_for: *random.of(&MemoryUse::ALL), op: "op", site };
                match (random.below(8), blocks.len()) {
                    (0..=3, _) | (_, 0) => {
                        owner.begin();
                        blocks.push((a.alloc(random.below(20_000)).unwrap(), owner));
                    }
                    (4, n) => {
                        let (block, is) = &mut blocks[random.below(n)];
                        block.set_use(owner.used_for);
                        is.used_for = owner.used_for;
                    }
                    (5, n) => {
                        let (block, is) = &mut blocks[random.below(n)];
                        block.name_owner(site.scope);
                        if is.site.scope == scopes[0] {
                            is.site.scope = site.scope;
                        }
                    }
                    (6, n) => {
                        let (from, to) = (random.below(n), random.below(n));
                        blocks[to].0.inherit_owner(&blocks[from].0);
                        if blocks[from].0.owner().is_some() {
                            blocks[to].1 = blocks[from].1;
                        }
                    }
                    (_, n) => {
                        let gone = blocks.swap_remove(random.below(n)).0;
                        if random.one_in(4) {
                            std::thread::scope(|s| drop(s.spawn(move || drop(gone))));
                        }
                    }
                }
                let report = a.report();
                peak = peak.max(report.stats.live);
                assert_eq!((sum(&report.now), sum(&report.peak)), (report.stats.live, peak));
                let mut wanted: BTreeMap<String, u64> = BTreeMap::new();
                for (block, is) in &blocks {
                    let bytes = crate::memory::block_bytes(block.bytes()) as u64;
                    let named = format!("{} {} {}", is.used_for, is.site.line, is.site.scope.path());
                    let key = if bytes < 4096 { "small blocks 0 ".to_string() } else { named };
                    *wanted.entry(key).or_default() += bytes;
                }
                let found = report.now.iter().map(|h| (format!("{} {} {}", h.used_for, h.line, h.scope), h.bytes));
                assert_eq!(found.collect::<BTreeMap<_, _>>(), wanted);
            }
        }
    }
}
