//! Prints an error that several ranks return alike once. The logs of the ranks (`--log-dir`) have every copy.
//!
//! An error is a line `Error: …` on stderr with the lines after it that are indented, as Rust prints what `main` returns. The
//! first rank's is printed as it comes. One with the same first line is held back until it is whole: then it is counted if
//! another rank has printed the same, and printed otherwise.

use std::collections::{BTreeMap, BTreeSet};

/// Most different errors that are remembered, and most lines of one.
const MOST: usize = 64;

/// An error that a rank has printed.
struct Known {
    lines: Vec<Vec<u8>>,
    /// The other ranks that have printed the same.
    others: BTreeSet<usize>,
}

enum State {
    /// The rank prints this error, which nobody has printed before.
    First(usize),
    /// Lines that are held back.
    Held(Vec<Vec<u8>>),
}

/// The errors of the ranks.
#[derive(Default)]
pub struct Repeats {
    known: Vec<Known>,
    ranks: BTreeMap<usize, State>,
}

impl Repeats {
    /// Takes a line of a rank's stderr and returns what is to be printed now.
    pub fn pass(&mut self, rank: usize, line: Vec<u8>) -> Vec<Vec<u8>> {
        let goes_on = line.starts_with(b"  ");
        match self.ranks.get_mut(&rank) {
            Some(State::First(known)) if goes_on => {
                let lines = &mut self.known[*known].lines;
                if lines.len() < MOST {
                    lines.push(line.clone());
                }
                return vec![line];
            }
            Some(State::Held(lines)) if goes_on && lines.len() < MOST => {
                lines.push(line);
                return Vec::new();
            }
            _ => {}
        }
        let mut now = self.end(rank);
        if line.starts_with(b"Error: ") {
            if self.known.iter().any(|k| k.lines[0] == line) {
                self.ranks.insert(rank, State::Held(vec![line]));
                return now;
            }
            if self.known.len() < MOST {
                self.ranks.insert(rank, State::First(self.known.len()));
                self.known.push(Known { lines: vec![line.clone()], others: BTreeSet::new() });
            }
        }
        now.push(line);
        now
    }

    /// The stderr of a rank has ended. Returns what is still to be printed of it.
    pub fn end(&mut self, rank: usize) -> Vec<Vec<u8>> {
        match self.ranks.remove(&rank) {
            Some(State::Held(lines)) => match self.known.iter_mut().find(|k| k.lines == lines) {
                Some(known) => {
                    known.others.insert(rank);
                    Vec::new()
                }
                None => lines,
            },
            _ => Vec::new(),
        }
    }

    /// Returns what is still to be printed at the end: lines of ranks that were held back, and a line for each error of several
    /// ranks.
    pub fn finish(mut self) -> (Vec<(usize, Vec<u8>)>, Vec<String>) {
        let open: Vec<usize> = self.ranks.keys().copied().collect();
        let held = open.into_iter().flat_map(|rank| self.end(rank).into_iter().map(move |line| (rank, line))).collect();
        let several = self.known.iter().filter(|k| !k.others.is_empty());
        let line = |known: &Known| {
            let ranks: Vec<String> = known.others.iter().map(usize::to_string).collect();
            let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
            let first = String::from_utf8_lossy(&known.lines[0]);
            format!("[{noun} {}] the same: {}", ranks.join(", "), first.trim_end())
        };
        (held, several.map(line).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(lines: &[(usize, &str)]) -> Vec<String> {
        let mut repeats = Repeats::default();
        let mut shown = vec![];
        let mut text = |rank: usize, lines: Vec<Vec<u8>>| {
            shown.extend(lines.into_iter().map(|l| format!("{rank} {}", String::from_utf8(l).unwrap())));
        };
        for (rank, line) in lines {
            match *line {
                "end" => text(*rank, repeats.end(*rank)),
                line => text(*rank, repeats.pass(*rank, line.into())),
            }
        }
        let (held, told) = repeats.finish();
        held.into_iter().for_each(|(rank, line)| text(rank, vec![line]));
        shown.extend(told);
        shown
    }

    #[test]
    fn the_same_error_is_printed_once_however_the_lines_arrive() {
        let one = [(0, "Error: no"), (0, "  at a.rs:1"), (1, "Error: no"), (1, "  at a.rs:1")];
        let mixed = [one[0], one[2], one[3], one[1]];
        for lines in [one, mixed] {
            assert_eq!(show(&lines), ["0 Error: no", "0   at a.rs:1", "[rank 1] the same: Error: no"]);
        }
    }

    #[test]
    fn what_differs_or_is_no_error_is_printed() {
        let lines =
            [(0, "Error: no"), (0, "  at a.rs:1"), (1, "Error: no"), (1, "  at a.rs:2"), (1, "end"), (2, "warning")];
        assert_eq!(show(&lines), ["0 Error: no", "0   at a.rs:1", "1 Error: no", "1   at a.rs:2", "2 warning"]);
        // A rank that goes on after the error; a second error of the same rank.
        let lines = [(0, "Error: no"), (1, "Error: no"), (1, "more"), (1, "more"), (0, "Error: no"), (2, "Error: no")];
        let wanted = ["0 Error: no", "1 more", "1 more", "[ranks 0, 1, 2] the same: Error: no"];
        assert_eq!(show(&lines), wanted);
    }
}
