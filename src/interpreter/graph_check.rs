//! Comparison of a graph's programs between ranks, by the control plane, before the first run.
//!
//! The ranks of the program's placements exchange its hash. If the hashes differ, they compare the programs as they were captured, before passes, and find the first line that differs by bisection over the
//! hashes of the first n lines, so that each message has a few bytes whatever the size of the program. All of them get the same error.
//!
//! An entry in the dispatch stream comes before, the same on every rank: a rank that does something else instead is found as always, by the
//! marks of its heartbeats.

use crate::context::RankCtx;
use crate::error::{CallSite, Error, Place, Result};
use crate::program::Program;
use serde::{Deserialize, Serialize};

/// Longest text of a line that a rank tells.
const MOST_TEXT: usize = 1000;
/// Longest path in the name of a meeting.
const MOST_PATH: usize = 512;
const HELP: &str =
    "every rank must capture the same calls; look for a branch on the rank or on rank-local data in the closure";

/// A line of a rank's program, as it tells the others.
#[derive(Serialize, Deserialize)]
struct Told {
    op: String,
    text: String,
    file: String,
    line: u32,
}

/// Compares a program with that of the other ranks. Without a launcher, and where one rank has all of it, there is nothing to do. Lines that differ
/// are those of the programs as they were captured (`as_captured`), where these differ, and are known on all ranks.
///
/// # Errors
/// If it differs from that of another rank, on both, and if another rank does not come.
pub(super) fn compare(
    ctx: &RankCtx,
    (program, hash): (&Program, u64),
    as_captured: &dyn Fn() -> Option<Program>,
    site: CallSite,
) -> Result<()> {
    let Some(control) = ctx.control() else { return Ok(()) };
    let ranks = program.global_ranks();
    if ranks.len() < 2 {
        return Ok(());
    }
    let ordinal = ctx.next_op("graph check", 0, site).ordinal;
    if ranks.binary_search(&ctx.rank()).is_err() {
        return Ok(());
    }
    let path = &site.file[site.file.ceil_char_boundary(site.file.len().saturating_sub(MOST_PATH))..];
    let meet = |stage: &str, value: &[u8]| {
        control.meet_of(&format!("graph #{ordinal} ({path}:{}){stage}", site.line), &ranks, value)
    };
    if alike(&meet("", &hash.to_le_bytes())?) {
        return Ok(());
    }
    let captured = as_captured();
    let hash = captured.as_ref().and_then(Program::global_hash);
    let hashes = meet(", as captured", &hash.map_or(vec![], |h| h.to_le_bytes().to_vec()))?;
    let program = match &captured {
        Some(captured) if !alike(&hashes) && hashes.iter().all(|h| !h.is_empty()) => captured,
        _ => program,
    };
    let mine = program.alike_hashes();
    let longest = meet(", lines", &(mine.len() as u64).to_le_bytes())?.iter().map(|n| number(n)).max();
    // Up to the first they agree, and in the first of the second they do not.
    let (mut same, mut other) = (0, longest.unwrap_or_default());
    while other - same > 1 {
        let middle = same + (other - same) / 2;
        let of_first = mine.get(middle as usize - 1).copied().unwrap_or_default();
        match alike(&meet(&format!(", first {middle} lines"), &of_first.to_le_bytes())?) {
            true => same = middle,
            false => other = middle,
        }
    }
    let told = meet(", the line that differs", &serde_json::to_vec(&told(program, same as usize)).unwrap_or_default())?;
    Err(difference(&ranks, &told, ordinal))
}

fn alike(values: &[Vec<u8>]) -> bool {
    values.windows(2).all(|w| w[0] == w[1])
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// A line of the program; `None`: it has ended before.
fn told(program: &Program, n: usize) -> Option<Told> {
    let line = program.alike_line(n)?;
    let text = &line.text[..line.text.floor_char_boundary(MOST_TEXT)];
    let text = match line.node {
        Some(node) => format!("node {node}, {text}"),
        None => text.to_string(),
    };
    Some(Told { op: line.op, text, file: line.site.file.into(), line: line.site.line })
}

/// The error of ranks whose programs differ in these lines.
fn difference(ranks: &[usize], told: &[Vec<u8>], ordinal: u64) -> Error {
    let odd = told.iter().position(|t| *t != told[0]).unwrap_or_default();
    let sides = [0, odd].map(|i| (ranks[i], serde_json::from_slice::<Option<Told>>(&told[i]).ok().flatten()));
    let has = |(_, told): &(usize, Option<Told>)| match told {
        Some(t) => format!("has {} ({}:{})", t.text, t.file, t.line),
        None => "has no further node".to_string(),
    };
    let [a, b] = &sides;
    let text = format!(
        "ranks {} and {} have captured different graphs: rank {} {}, rank {} {}",
        a.0,
        b.0,
        a.0,
        has(a),
        b.0,
        has(b)
    );
    let places = sides.into_iter().filter_map(|(rank, told)| {
        let Told { op, file, line, .. } = told?;
        Some(Place { rank, op, ordinal, file, line })
    });
    Error::diverged(text).in_places(places).help(HELP)
}
