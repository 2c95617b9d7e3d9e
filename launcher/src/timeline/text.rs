//! A timeline as lines of text: for each rank what it did most in the time of each character.

use std::collections::BTreeMap;

use oflow::text::{head, percent};

use super::read::{Kind, Slice};
use super::{Part, Steps, median_step, time};
use crate::terminal::visible;

/// Columns of a line.
const COLUMNS: usize = 80;
/// Steps that are named as the longest.
const LONGEST: usize = 3;

/// Classes of a rank's time, with the character for each.
const CLASSES: [(char, &str); 5] =
    [('#', "compute"), ('=', "communication"), ('!', "late ranks"), ('d', "data"), ('s', "saving")];
const REST: char = '.';

fn class(kind: Kind) -> Option<usize> {
    match kind {
        Kind::Kernel => Some(0),
        Kind::Collective => Some(1),
        Kind::Late => Some(2),
        Kind::Data => Some(3),
        Kind::Checkpoint => Some(4),
        Kind::Call | Kind::Wait | Kind::Span | Kind::Scope | Kind::Boxing | Kind::Step => None,
    }
}

/// The parts of the slices of a track in which no other slice of it lies. The slices come by begin, those that contain others first.
fn innermost(slices: &[Slice], mut take: impl FnMut(Kind, u64, u64)) {
    // Open slices, and up to where each has been told.
    let mut open: Vec<(&Slice, u64)> = vec![];
    let close = |open: &mut Vec<(&Slice, u64)>, until: u64, take: &mut dyn FnMut(Kind, u64, u64)| {
        while let Some((slice, told)) = open.pop_if(|(s, _)| s.end <= until) {
            if slice.end > told {
                take(slice.kind, told, slice.end);
            }
            if let Some((_, outer)) = open.last_mut() {
                *outer = (*outer).max(slice.end);
            }
        }
    };
    for slice in slices {
        close(&mut open, slice.begin, &mut take);
        if let Some((outer, told)) = open.last_mut() {
            if slice.begin > *told {
                take(outer.kind, *told, slice.begin);
            }
            *told = (*told).max(slice.begin);
        }
        open.push((slice, slice.begin));
    }
    close(&mut open, u64::MAX, &mut take);
}

/// The times of each class in each column, of one rank.
struct Bar {
    columns: Vec<[u64; CLASSES.len()]>,
    window: (u64, u64),
}

impl Bar {
    /// When a column begins.
    fn begin(&self, column: usize) -> u64 {
        let (from, to) = self.window;
        from + ((to - from) as u128 * column as u128 / self.columns.len() as u128) as u64
    }

    fn add(&mut self, class: usize, begin: u64, end: u64) {
        let (from, to) = self.window;
        let (begin, end) = (begin.max(from), end.min(to));
        if begin >= end {
            return;
        }
        let of = |at: u64| ((at - from) as u128 * self.columns.len() as u128 / (to - from) as u128) as usize;
        for column in of(begin)..=of(end).min(self.columns.len() - 1) {
            let part = end.min(self.begin(column + 1)).saturating_sub(begin.max(self.begin(column)));
            self.columns[column][class] = self.columns[column][class].saturating_add(part);
        }
    }

    /// A character for each column.
    fn text(&self) -> String {
        let character = |(i, sums): (usize, &[u64; CLASSES.len()])| {
            let whole = self.begin(i + 1) - self.begin(i);
            let rest = sums.iter().fold(whole, |rest, ns| rest.saturating_sub(*ns));
            match sums.iter().enumerate().max_by_key(|(_, ns)| **ns) {
                Some((class, ns)) if *ns > 0 && *ns >= rest => CLASSES[class].0,
                _ => REST,
            }
        };
        self.columns.iter().enumerate().map(character).collect()
    }
}

/// Draws the ranks.
pub fn draw(part: &Part, steps: &BTreeMap<usize, Steps>) -> String {
    let mut out = String::new();
    if let Some(steps) = part.ranks.iter().find_map(|(n, _)| steps.get(n)) {
        out += &of_steps(steps);
    }
    out += &format!("{}\n", part.title);
    let longest = part.ranks.iter().map(|(_, name)| visible(name).chars().count()).max().unwrap_or(0).min(24);
    let wide = COLUMNS - longest - 1;
    let mut seen = [0u64; CLASSES.len()];
    for (rank, name) in &part.ranks {
        let mut bar = Bar { columns: vec![[0; CLASSES.len()]; wide], window: part.window };
        for ((of, _), slices) in &part.slices {
            // A thread that makes batches beforehand does not keep the rank from its work.
            if of != rank || slices.iter().all(|s| s.kind == Kind::Data && &*s.name == "make a batch") {
                continue;
            }
            innermost(slices, |kind, begin, end| {
                if let Some(class) = class(kind) {
                    bar.add(class, begin, end);
                }
            });
        }
        for sums in &bar.columns {
            seen.iter_mut().zip(sums).for_each(|(all, ns)| *all = all.saturating_add(*ns));
        }
        out += &format!("{:<longest$} {}\n", head(&visible(name), longest), bar.text());
    }
    let whole = (part.window.1 - part.window.0).saturating_mul(part.ranks.len() as u64);
    let classes = CLASSES.iter().zip(seen).filter(|(_, ns)| ns.saturating_mul(2000) > whole);
    let named = classes.map(|((c, name), ns)| format!("{c} {name} {}", percent(ns, whole)));
    out + &listed(named.chain([format!("{REST} rest")]))
}

/// Texts with commas between them, in lines that fit.
fn listed(texts: impl Iterator<Item = String>) -> String {
    let (mut out, mut used) = (String::new(), 0);
    for text in texts {
        let length = text.chars().count() + 2;
        if used > 0 {
            out += if used + length > COLUMNS { ",\n" } else { ", " };
            used = if used + length > COLUMNS { 0 } else { used };
        }
        out += &text;
        used += length;
    }
    out + "\n"
}

/// A line about all steps of a rank.
fn of_steps(steps: &Steps) -> String {
    let length = |(_, begin, end): &(u64, u64, u64)| end - begin;
    let median = median_step(steps);
    let typical = steps.iter().find(|(n, ..)| *n == median).map_or(0, length);
    let mut by_length: Vec<_> = steps.iter().collect();
    by_length.sort_by_key(|s| std::cmp::Reverse(length(s)));
    let longest = by_length.iter().filter(|s| length(s) > typical.saturating_add(typical / 4)).take(LONGEST);
    let longest: Vec<String> = longest.map(|s| format!("step {} {}", s.0, time(length(s)))).collect();
    let longest = if longest.is_empty() { String::new() } else { format!("the longest: {}\n", longest.join(", ")) };
    let count = if steps.len() == 1 { "1 step".to_string() } else { format!("{} steps", steps.len()) };
    format!("{count}, {} at the median\n{longest}", time(typical))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(kind: Kind, begin: u64, end: u64) -> Slice {
        Slice { rank: 0, track: 0, kind, name: "x".into(), begin, end, line: None, notes: vec![], flows: vec![] }
    }

    #[test]
    fn times_within_others_are_told_once() {
        let slices = [
            slice(Kind::Call, 0, 100),
            slice(Kind::Kernel, 10, 30),
            slice(Kind::Collective, 30, 90),
            slice(Kind::Late, 30, 70),
            slice(Kind::Call, 100, 110),
        ];
        let mut told = vec![];
        innermost(&slices, |kind, begin, end| told.push((kind, begin, end)));
        let expected = [
            (Kind::Call, 0, 10),
            (Kind::Kernel, 10, 30),
            (Kind::Late, 30, 70),
            (Kind::Collective, 70, 90),
            (Kind::Call, 90, 100),
            (Kind::Call, 100, 110),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_column_shows_what_took_most_of_it() {
        let mut bar = Bar { columns: vec![Default::default(); 4], window: (100, 140) };
        bar.add(0, 90, 115);
        bar.add(2, 125, 130);
        bar.add(1, 136, 200);
        assert_eq!(bar.text(), "##!.");
        assert_eq!(bar.columns, [[10, 0, 0, 0, 0], [5, 0, 0, 0, 0], [0, 0, 5, 0, 0], [0, 4, 0, 0, 0]]);
    }
}
