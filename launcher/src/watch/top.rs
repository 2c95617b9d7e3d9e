//! The state of a job as lines for a terminal.

use std::time::Instant;

use oflow::text;
use rustix::termios::tcgetwinsize;

use super::rank::Rank;
use super::state::State;
use crate::terminal::visible;

/// Size of a terminal that does not tell it, in characters.
const USUAL: (usize, usize) = (80, 24);
/// Least width that is drawn for.
const LEAST: usize = 40;
/// Most ranks that have a line each.
const RANKS: usize = 16;
/// Curves that are drawn.
const CURVES: usize = 4;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns and lines of the terminal at standard error.
pub(super) fn size() -> (usize, usize) {
    match tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL,
    }
}

/// The lines of a picture for a terminal of this size: no longer than it is wide, and at most half as many as it has.
pub(super) fn frame(state: &State, now: Instant, (columns, rows): (usize, usize)) -> Vec<String> {
    let width = columns.max(LEAST) - 1;
    let most = (rows / 2).max(4);
    let s = state.summary(now);
    let (status, why) = state.status();
    let mut lines = vec!["─".repeat(width)];
    let hosts = if s.hosts > 1 { format!(" on {} hosts", s.hosts) } else { String::new() };
    let mut head = format!("{}  {status}  {}  {} ranks{hosts}", state.program(), clock(s.seconds), s.world);
    if s.steps > 0.0 {
        head += &format!("  {} steps/s", short(s.steps));
    }
    if s.rows > 0.0 {
        head += &format!("  {} rows/s a rank", short(s.rows));
    }
    head += &format!("  {}  waiting {:.0} %", bytes(s.resident), s.waits * 100.0);
    lines.push(head);
    if !why.is_empty() {
        lines.push(why.lines().next().unwrap_or_default().into());
    }
    for held in &state.held {
        lines.push(format!("! {} (a stall ends the job after {:.0} s)", held.text, state.stall()));
    }
    let curves: Vec<String> = state
        .metrics
        .iter()
        .take(CURVES)
        .map(|(name, curve)| {
            let last = curve.last().map_or(String::new(), short);
            format!("{} {} {last}", text::head(name, 20), sparks(&curve.tail(24).collect::<Vec<_>>()))
        })
        .collect();
    let step = state
        .metrics
        .iter()
        .filter_map(|(_, c)| c.end())
        .fold(None, |most: Option<f64>, x| Some(most.map_or(x, |m| m.max(x))));
    if let Some(step) = step {
        lines.push(format!("step {step:.0}  {}", curves.join("   ")));
    }
    if s.world > RANKS {
        let counts: Vec<String> = s.phases.iter().map(|(phase, n)| format!("{n} {phase}")).collect();
        lines.push(format!("{}; the ranks that others wait for most:", counts.join(", ")));
    }
    lines.extend(ranks(state, now, most.saturating_sub(lines.len() + 1).min(RANKS)));
    lines.truncate(most);
    lines.iter().map(|line| text::head(&visible(&line.replace(['\n', '\t'], " ")), width)).collect()
}

/// A table of ranks: all of them, or those for which others wait most: they wait least themselves.
fn ranks(state: &State, now: Instant, most: usize) -> Vec<String> {
    let mut all: Vec<(&u32, &Rank, f64)> = state.ranks.iter().map(|(r, rank)| (r, rank, rank.waits())).collect();
    if all.is_empty() || most == 0 {
        return Vec::new();
    }
    if all.len() > most {
        let is_held = |r: u32| state.held.iter().any(|h| h.rank == r as usize);
        all.sort_by(|a, b| {
            let key = |x: &(&u32, &Rank, f64)| (x.1.left, !is_held(*x.0));
            key(a).cmp(&key(b)).then(a.2.total_cmp(&b.2))
        });
    }
    let mut lines = vec![format!("{:>5} {:<13} {:>5} {:>8}  {}", "rank", "doing", "waits", "memory", "op")];
    let rest = all.len().saturating_sub(most);
    for (number, rank, waits) in all.into_iter().take(most) {
        let (op, place) = rank.op();
        let waiting = rank.wait().filter(|w| w.since_ms >= 1000).map_or(String::new(), |w| {
            let whom: Vec<String> = w.ranks.iter().take(3).map(u32::to_string).collect();
            format!("  waits {:.0} s for {}", w.since_ms as f64 / 1e3, whom.join(", "))
        });
        lines.push(format!(
            "{number:>5} {:<13} {:>4.0}% {:>8}  {op} {}{waiting}",
            rank.phase(now),
            waits * 100.0,
            bytes(rank.glimpse.resident),
            short_place(&place),
        ));
    }
    if rest > 0
        && let Some(last) = lines.last_mut()
    {
        *last = format!("      … and {} more", rest + 1);
    }
    lines
}

/// A line of the program with the last folder of its file only, as `scripts/train.rs:7 in blocks.0`.
fn short_place(place: &str) -> &str {
    let file = place.find(" in ").unwrap_or(place.len());
    let from = place[..file].rmatch_indices('/').nth(1).map_or(0, |(slash, _)| slash + 1);
    &place[from..]
}

/// A curve as bars of one line.
fn sparks(values: &[f64]) -> String {
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let (low, high) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    let bar = |v: &f64| match v.is_finite() {
        true if high > low => BARS[(((v - low) / (high - low) * 7.0).round() as usize).min(7)],
        true => BARS[0],
        false => '×',
    };
    values.iter().map(bar).collect()
}

fn clock(seconds: f64) -> String {
    let s = seconds as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        h => format!("{h}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

/// A number in three to four digits.
fn short(x: f64) -> String {
    match x.abs() {
        a if !a.is_finite() => format!("{x}"),
        a if a >= 1e5 || (a < 1e-3 && a > 0.0) => format!("{x:.2e}"),
        a if a >= 100.0 => format!("{x:.0}"),
        a if a >= 1.0 => format!("{x:.2}"),
        _ => format!("{x:.4}"),
    }
}

fn bytes(n: u64) -> String {
    match n as f64 {
        b if b >= 1e9 => format!("{:.1} GB", b / 1e9),
        b if b >= 1e6 => format!("{:.0} MB", b / 1e6),
        b => format!("{:.0} kB", b / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oflow::control::service::{Glimpse, Held, HostPart, Sight};
    use oflow_proto::control as pb;
    use std::time::Duration;

    fn state(world: u32, program: &str) -> (State, Instant) {
        let mut state = State::new(program.into());
        let glimpse = |rank: u32| Glimpse {
            rank,
            resident: 300_000_000,
            last: Some(pb::OpRecord {
                op: "matmul\x1b[2J".into(),
                file: "train.rs".into(),
                line: 7,
                ..Default::default()
            }),
            points: vec![pb::Point { number: 1, name: "loss".into(), step: 3, value: 0.5 }],
            ..Default::default()
        };
        let text = "rank 0 has waited 9 s for rank 1\nand more".into();
        let sight = Sight {
            hosts: vec![HostPart { name: "a".into(), ranks: 0..world as usize }],
            glimpses: (0..world).map(glimpse).collect(),
            held: vec![Held { rank: 1, waiting: 1, since: Duration::from_secs(9), text }],
            stall: Duration::from_secs(300),
            ..Default::default()
        };
        let now = Instant::now();
        state.update(sight, None, now);
        (state, now)
    }

    #[test]
    fn a_frame_fits_and_commands_no_terminal() {
        for (world, size) in [(2, (80, 24)), (2, (200, 50)), (256, (80, 24)), (256, (20, 5)), (1000, (200, 70))] {
            let (state, now) = state(world, "train\x1b]0;x\x07");
            let lines = frame(&state, now, size);
            assert!(lines.len() <= (size.1 / 2).max(4), "{lines:#?}");
            for line in &lines {
                assert!(line.chars().count() < size.0.max(LEAST), "{line:?}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }

    #[test]
    fn a_frame_tells_ranks_metrics_and_stalls() {
        let (state, now) = state(2, "train");
        let text = frame(&state, now, (120, 40)).join("\n");
        for part in [
            "train  waiting  0:00  2 ranks",
            "600 MB",
            "! rank 0 has waited 9 s",
            "after 300 s",
            "step 3  loss ▁",
            "train.rs:7",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn many_ranks_are_counted_and_the_one_that_is_waited_for_is_named() {
        let (state, now) = state(256, "train");
        let lines = frame(&state, now, (100, 40));
        assert!(lines.iter().any(|l| l.starts_with("256 other") || l.contains("the ranks that others wait for most")));
        let first = lines.iter().position(|l| l.contains("doing")).unwrap() + 1;
        assert!(lines[first].starts_with("    1 "), "{lines:#?}");
        assert!(lines.last().unwrap().contains("more"), "{lines:#?}");
    }

    #[test]
    fn places_are_short() {
        assert_eq!(short_place("/a/b/c/train.rs:7 in x/y/z.0"), "c/train.rs:7 in x/y/z.0");
        assert_eq!(
            (short_place("src/train.rs:7"), short_place("train.rs:7"), short_place("")),
            ("src/train.rs:7", "train.rs:7", "")
        );
    }

    #[test]
    fn curves_are_bars() {
        assert_eq!(sparks(&[0.0, 1.0, f64::NAN, 0.5]), "▁█×▅");
        assert_eq!(sparks(&[2.0, 2.0]), "▁▁");
    }
}
