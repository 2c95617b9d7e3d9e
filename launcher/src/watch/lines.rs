//! The last lines that the ranks of this host printed.

use std::collections::{BTreeMap, VecDeque};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::output::Stream;
use crate::terminal::{Plain, visible};

/// Longest line, in bytes; the rest of a longer one is left out.
const LONGEST: usize = 1000;
/// Lines that are kept of all ranks together, and the least of each.
const LINES: usize = 8192;
const LEAST: usize = 16;
/// Most lines of an answer.
const MOST: usize = 400;

struct Line {
    number: u64,
    /// Seconds since 1970.
    time: f64,
    stream: Stream,
    text: String,
}

#[derive(Default)]
struct OfRank {
    lines: VecDeque<Line>,
    /// The line that each stream is in.
    open: [Vec<u8>; 2],
    plain: [Plain; 2],
}

/// The last lines of each rank. Lines are numbered from 1 in order of arrival.
#[derive(Default)]
pub(super) struct Lines {
    last: u64,
    ranks: BTreeMap<usize, OfRank>,
}

impl Lines {
    /// Adds output of a rank, in pieces of any size.
    pub(super) fn push(&mut self, rank: usize, stream: Stream, bytes: &[u8]) {
        let most = (LINES / (self.ranks.len() + 1)).max(LEAST);
        let of = self.ranks.entry(rank).or_default();
        for &byte in bytes {
            if !of.plain[stream as usize].keeps(byte) {
                continue;
            }
            let open = &mut of.open[stream as usize];
            if byte != b'\n' {
                // Text after a carriage return stands where the line was: of a progress bar the last state counts.
                if open.last() == Some(&b'\r') {
                    open.clear();
                }
                if open.len() < LONGEST || byte == b'\r' {
                    open.push(byte);
                }
                continue;
            }
            self.last += 1;
            let text = visible(String::from_utf8_lossy(open).trim_end()).into_owned();
            open.clear();
            of.lines.push_back(Line { number: self.last, time: now(), stream, text });
            while of.lines.len() > most {
                of.lines.pop_front();
            }
        }
    }

    /// The lines after a number, of one rank or of all, in order; at most the last [`MOST`].
    pub(super) fn to_json(&self, after: u64, rank: Option<usize>) -> Value {
        let mut found: Vec<(usize, &Line)> = Vec::new();
        for (of, lines) in self.ranks.iter().filter(|(r, _)| rank.is_none_or(|wanted| wanted == **r)) {
            let new = lines.lines.iter().rev().take_while(|l| l.number > after).take(MOST);
            found.extend(new.map(|l| (*of, l)));
        }
        found.sort_by_key(|(_, l)| l.number);
        let last = found.split_off(found.len().saturating_sub(MOST));
        let line = |(rank, l): &(usize, &Line)| json!([l.number, rank, l.stream == Stream::Err, l.time, l.text]);
        json!({ "last": self.last, "lines": last.iter().map(line).collect::<Vec<_>>() })
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &Lines, after: u64, rank: Option<usize>) -> Vec<(u64, u64, String)> {
        let json = lines.to_json(after, rank);
        let of = |l: &Value| Some((l[0].as_u64()?, l[1].as_u64()?, l[4].as_str()?.to_string()));
        json["lines"].as_array().unwrap().iter().map(|l| of(l).unwrap()).collect()
    }

    #[test]
    fn lines_come_in_order_and_by_rank() {
        let mut lines = Lines::default();
        lines.push(1, Stream::Out, b"on");
        lines.push(0, Stream::Err, b"\x1b[31mred\x1b[0m <b>\n");
        lines.push(1, Stream::Out, b"e\n 10%\r 20%\r\n");
        let all = [(1, 0, "red <b>".into()), (2, 1, "one".into()), (3, 1, " 20%".into())];
        assert_eq!(texts(&lines, 0, None), all);
        assert_eq!(texts(&lines, 1, None), all[1..]);
        assert_eq!(texts(&lines, 0, Some(0)), all[..1]);
    }

    #[test]
    fn long_lines_and_many_lines_are_cut() {
        let mut lines = Lines::default();
        lines.push(0, Stream::Out, &[b'x'; 50_000]);
        lines.push(0, Stream::Out, b"\n");
        assert_eq!(texts(&lines, 0, None)[0].2.len(), LONGEST);
        for rank in 0..1024 {
            (0..50).for_each(|_| lines.push(rank, Stream::Out, b"line\n"));
        }
        let kept: usize = lines.ranks.values().map(|r| r.lines.len()).sum();
        assert!(kept <= 1024 * 50 && lines.ranks[&1023].lines.len() == LEAST, "{kept}");
        assert_eq!(texts(&lines, 0, None).len(), MOST);
    }
}
