//! A curve: its average, and the points that a picture of a width shows.

/// A value at a step. One that is not finite is a gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub step: f64,
    pub value: f64,
}

/// The exponential average of the values so far, in which the weights of `n` values sum to 1, as TensorBoard draws it. A gap stays a gap.
pub fn smoothed(points: &[Point], weight: f64) -> Vec<Point> {
    let (mut sum, mut total) = (0.0, 0.0);
    let average = |p: &Point| {
        if !p.value.is_finite() {
            return *p;
        }
        sum = sum * weight + p.value * (1.0 - weight);
        total = total * weight + (1.0 - weight);
        Point { value: sum / total, ..*p }
    };
    points.iter().map(average).collect()
}

/// The parts of a curve between gaps, in pixels: `to` gives the place of a point, or none for a gap. Of the points of a column of pixels the
/// first, the least, the largest and the last stay, so a curve of a million points looks as it would with all of them.
pub fn parts(points: &[Point], to: impl Fn(&Point) -> Option<(f64, f64)>) -> Vec<Vec<(f64, f64)>> {
    let (mut parts, mut part, mut column) = (vec![], vec![], vec![]);
    for p in points {
        let Some(at) = to(p) else {
            thin(&mut part, &mut column);
            if !part.is_empty() {
                parts.push(std::mem::take(&mut part));
            }
            continue;
        };
        if column.first().is_some_and(|first| first.0.floor() != at.0.floor()) {
            thin(&mut part, &mut column);
        }
        column.push(at);
        // Of a long column only the outer points matter.
        if column.len() == 1024 {
            let mut few = vec![];
            thin(&mut few, &mut column);
            column = few;
        }
    }
    thin(&mut part, &mut column);
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// Moves the outer points of a column to a part.
fn thin(part: &mut Vec<(f64, f64)>, column: &mut Vec<(f64, f64)>) {
    if column.len() > 4 {
        let by = |a: &&usize, b: &&usize| column[**a].1.total_cmp(&column[**b].1);
        let all: Vec<usize> = (0..column.len()).collect();
        let mut outer = vec![0, column.len() - 1];
        outer.extend(all.iter().min_by(by).into_iter().chain(all.iter().max_by(by)));
        outer.sort_unstable();
        outer.dedup();
        part.extend(outer.into_iter().map(|i| column[i]));
        column.clear();
    } else {
        part.append(column);
    }
}
