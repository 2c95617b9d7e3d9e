//! Curves as lines of a terminal.

use super::chart::Style;
use super::curve::{Point, smoothed};
use super::read::Run;
use crate::picture::axis::{Axis, short};
use crate::terminal::visible;
use oflow::text::{head, tail};

/// From the lowest to the highest.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws a line for each metric and run. Runs of a metric have one scale.
pub fn draw(runs: &[Run], keys: &[&str], style: &Style, columns: usize) -> String {
    let name_of = |run: &Run| tail(&visible(&run.name), 24);
    let longest = runs.iter().map(|run| name_of(run).chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for key in keys {
        let all = || runs.iter().filter_map(|run| run.curves.get(*key)).flatten();
        let (least, most) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), p| (a.min(p.step), b.max(p.step)));
        out += &format!("{}, steps {least} to {most}\n", head(&visible(key), columns.saturating_sub(24)));
        let values = Axis::of(all().map(|p| p.value), style.log, 0.0);
        let drawn: Vec<(&Run, Vec<Point>, String)> = runs
            .iter()
            .filter_map(|run| Some((run, run.curves.get(*key)?)))
            .map(|(run, points)| {
                let points = style.smooth.map_or_else(|| points.clone(), |weight| smoothed(points, weight));
                let numbers = numbers(&points);
                (run, points, numbers)
            })
            .collect();
        let numbers = drawn.iter().map(|(.., numbers)| numbers.len()).max().unwrap_or(0);
        let wide = columns.saturating_sub(longest + numbers + 4).max(8);
        for (run, points, numbers) in drawn {
            let line = match values {
                Some(axis) => sparkline(&points, &axis, (least, most), wide),
                None => " ".repeat(wide),
            };
            out += &format!("  {:<longest$} {line} {numbers}\n", name_of(run));
        }
    }
    out
}

fn numbers(points: &[Point]) -> String {
    let finite = || points.iter().map(|p| p.value).filter(|v| v.is_finite());
    let (first, last) = (finite().next().unwrap_or(f64::NAN), finite().next_back().unwrap_or(f64::NAN));
    format!("{} -> {}, least {}", short(first), short(last), short(finite().fold(f64::NAN, f64::min)))
}

/// A curve of that many characters: the mean of the values of each. Where there are fewer values than characters each lasts until the next; a gap
/// is a space.
fn sparkline(points: &[Point], axis: &Axis, (least, most): (f64, f64), wide: usize) -> String {
    let mut sums = vec![(0.0, 0usize); wide];
    let mut before = None;
    for p in points {
        let Some(at) = axis.place(p.value) else {
            before = None;
            continue;
        };
        let across = if most > least { (p.step - least) / (most - least) } else { 0.0 };
        let column = ((across * wide as f64) as usize).min(wide - 1);
        if let Some((from, value)) = before {
            sums[column.min(from + 1)..column].fill((value, 1));
        }
        let (sum, count) = &mut sums[column];
        (*sum, *count) = (*sum + at, *count + 1);
        before = Some((column, at));
    }
    let block = |(sum, count): (f64, usize)| match count {
        0 => ' ',
        _ => BLOCKS[((sum / count as f64 * BLOCKS.len() as f64) as usize).min(BLOCKS.len() - 1)],
    };
    sums.into_iter().map(block).collect()
}
