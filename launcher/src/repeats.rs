//! Prints an error once if several ranks return the same one. The logs of the ranks (`--log-dir`) have every copy.
//!
//! An error is a line `Error: …` on stderr with the lines after it that are indented, as Rust prints what `main` returns, or a
//! traceback of Python. The first error of a kind is printed line by line, as it arrives. A later error of another rank with the same first
//! line is held back until it is complete: if all its lines are the same, only its rank is noted; if not, it is printed.

use std::collections::{BTreeMap, BTreeSet};

use crate::traceback::Reading;

/// Largest number of different errors that are remembered, and of lines of one error.
const MOST: usize = 64;

/// An error that a rank has printed.
struct Known {
    lines: Vec<Vec<u8>>,
    /// The rank that printed it first.
    first: usize,
    /// The other ranks that have printed the same.
    others: BTreeSet<usize>,
}

/// The error that a rank is printing.
struct Printing {
    lines: Lines,
    /// State of the traceback that the lines belong to; `None` for an error that is not a traceback.
    reading: Option<Reading>,
}

/// Lines of an error that a rank is printing.
enum Lines {
    /// The first error with this first line, printed as it arrives: its number among the known ones.
    First(usize),
    /// An error with a known first line: the lines held back so far.
    Held(Vec<Vec<u8>>),
}

/// The errors that ranks have printed, and those that they are printing.
#[derive(Default)]
pub struct Repeats {
    known: Vec<Known>,
    ranks: BTreeMap<usize, Printing>,
}

impl Repeats {
    /// Takes a line of a rank's stderr, and returns the lines to print now.
    pub fn pass(&mut self, rank: usize, line: Vec<u8>) -> Vec<Vec<u8>> {
        if let Some(printing) = self.ranks.get_mut(&rank) {
            let goes_on = match printing.reading {
                None => line.starts_with(b"  "),
                Some(reading) => {
                    printing.reading = reading.next(&line);
                    printing.reading.is_some()
                }
            };
            match &mut printing.lines {
                Lines::First(known) if goes_on => {
                    let lines = &mut self.known[*known].lines;
                    if lines.len() < MOST {
                        lines.push(line.clone());
                    }
                    return vec![line];
                }
                Lines::Held(lines) if goes_on && lines.len() < MOST => {
                    lines.push(line);
                    return Vec::new();
                }
                _ => {}
            }
        }
        let mut now = self.end(rank);
        let reading = Reading::begins(&line);
        if reading.is_some() || line.starts_with(b"Error: ") {
            if self.known.iter().any(|k| k.lines[0] == line) {
                self.ranks.insert(rank, Printing { lines: Lines::Held(vec![line]), reading });
                return now;
            }
            if self.known.len() < MOST {
                self.ranks.insert(rank, Printing { lines: Lines::First(self.known.len()), reading });
                self.known.push(Known { lines: vec![line.clone()], first: rank, others: BTreeSet::new() });
            }
        }
        now.push(line);
        now
    }

    /// Ends the error that a rank is printing, at the end of its stderr or at a line that is not part of it. Returns the held-back lines to
    /// print.
    pub fn end(&mut self, rank: usize) -> Vec<Vec<u8>> {
        match self.ranks.remove(&rank).map(|printing| printing.lines) {
            Some(Lines::Held(lines)) => match self.known.iter_mut().find(|k| k.lines == lines) {
                Some(known) => {
                    known.others.insert(rank);
                    Vec::new()
                }
                None => lines,
            },
            _ => Vec::new(),
        }
    }

    /// Returns what remains to be printed at the end of the job: held-back lines with their ranks, and a line for each error that several
    /// ranks have printed.
    pub fn finish(mut self) -> (Vec<(usize, Vec<u8>)>, Vec<String>) {
        let open: Vec<usize> = self.ranks.keys().copied().collect();
        let held = open.into_iter().flat_map(|rank| self.end(rank).into_iter().map(move |line| (rank, line))).collect();
        let several = self.known.iter().filter(|k| !k.others.is_empty());
        let line = |known: &Known| {
            let ranks: Vec<String> = known.others.iter().map(usize::to_string).collect();
            let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
            format!("[{noun} {}] the same error as rank {}", ranks.join(", "), known.first)
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
        let (held, notes) = repeats.finish();
        held.into_iter().for_each(|(rank, line)| text(rank, vec![line]));
        shown.extend(notes);
        shown
    }

    #[test]
    fn the_same_error_is_printed_once_however_the_lines_arrive() {
        let one = [(0, "Error: no"), (0, "  at a.rs:1"), (1, "Error: no"), (1, "  at a.rs:1")];
        let mixed = [one[0], one[2], one[3], one[1]];
        for lines in [one, mixed] {
            assert_eq!(show(&lines), ["0 Error: no", "0   at a.rs:1", "[rank 1] the same error as rank 0"]);
        }
    }

    #[test]
    fn a_traceback_is_printed_once_with_the_one_before_it() {
        let text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nKeyError: 'x'\n\nDuring handling \
                    of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", \
                    line 3, in f\nValueError: no\n  at a.py:3\n  help: do not";
        let all: Vec<&str> = text.split('\n').collect();
        let both: Vec<(usize, &str)> = all.iter().flat_map(|line| [(0, *line), (1, *line)]).collect();
        let first: Vec<String> = all.iter().map(|line| format!("0 {line}")).collect();
        let notes = |rest: &[&str]| first.iter().cloned().chain(rest.iter().map(|l| l.to_string())).collect::<Vec<_>>();
        assert_eq!(show(&both), notes(&["[rank 1] the same error as rank 0"]));
        // Another error at the end, or another line in it.
        let other = text.replace("ValueError: no", "ValueError: yes");
        let after: Vec<(usize, &str)> = all.iter().map(|l| (0, *l)).chain(other.split('\n').map(|l| (1, l))).collect();
        let own: Vec<String> = other.split('\n').map(|line| format!("1 {line}")).collect();
        assert_eq!(show(&after), notes(&own.iter().map(String::as_str).collect::<Vec<_>>()));
    }

    #[test]
    fn what_differs_or_is_no_error_is_printed() {
        let lines =
            [(0, "Error: no"), (0, "  at a.rs:1"), (1, "Error: no"), (1, "  at a.rs:2"), (1, "end"), (2, "warning")];
        assert_eq!(show(&lines), ["0 Error: no", "0   at a.rs:1", "1 Error: no", "1   at a.rs:2", "2 warning"]);
        // A rank that goes on after the error; a second error of the same rank.
        let lines = [(0, "Error: no"), (1, "Error: no"), (1, "more"), (1, "more"), (0, "Error: no"), (2, "Error: no")];
        let wanted = ["0 Error: no", "1 more", "1 more", "[ranks 0, 1, 2] the same error as rank 0"];
        assert_eq!(show(&lines), wanted);
    }
}
