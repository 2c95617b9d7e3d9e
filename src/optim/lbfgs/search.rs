//! The line search of L-BFGS: a length at which the loss has fallen enough and the slope has become flat enough.
//!
//! First a bracket is found, two lengths between which such a point lies, then it is narrowed. Each new length is the minimum of the cubic
//! through the losses and slopes of two others.

use super::{Problem, Vector, dot, largest};
use crate::context::no_grad;
use crate::error::Result;
use crate::tensor::Tensor;

/// Part of the slope by which the loss must fall.
const ENOUGH: f64 = 1e-4;
/// Part of the slope that may be left.
const FLAT: f64 = 0.9;

/// Where the search begins.
pub(super) struct Start<'a> {
    pub loss: f64,
    pub gradient: &'a Vector,
    /// Slope of the loss along the direction.
    pub slope: f64,
    /// The first length.
    pub length: f64,
}

/// Where it ends.
pub(super) struct Found {
    pub loss: f64,
    pub gradient: Vector,
    pub length: f64,
    pub evaluations: usize,
}

/// A length that was tried.
#[derive(Clone)]
struct Point {
    length: f64,
    loss: f64,
    gradient: Vector,
    slope: f64,
}

/// The minimum of the cubic through two points, within bounds: those of the points if not given.
fn minimum(a: &Point, b: &Point, bounds: Option<(f64, f64)>) -> f64 {
    let (least, most) = bounds.unwrap_or((a.length.min(b.length), a.length.max(b.length)));
    let d1 = a.slope + b.slope - 3.0 * (a.loss - b.loss) / (a.length - b.length);
    let square = d1 * d1 - a.slope * b.slope;
    if square.is_nan() || square < 0.0 {
        return f64::midpoint(least, most);
    }
    let d2 = square.sqrt();
    let at = match a.length <= b.length {
        true => b.length - (b.length - a.length) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2)),
        false => a.length - (a.length - b.length) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2.0 * d2)),
    };
    at.max(least).min(most)
}

/// Searches along a direction; evaluates at most `tries` points beyond the first. The parameters are where they were afterwards.
pub(super) fn strong_wolfe(
    problem: &mut Problem<'_>,
    direction: &Vector,
    start: Start<'_>,
    tries: usize,
    tolerance: f64,
) -> Result<Found> {
    let values: Vector = {
        let _quiet = no_grad();
        problem.parameters.iter().map(|p| p.detach().copy()).collect::<Result<_>>()?
    };
    let parameters = problem.parameters;
    let back = |values: &[Tensor]| -> Result<()> {
        let _quiet = no_grad();
        parameters.iter().zip(values).try_for_each(|(p, v)| p.copy_(v).map(drop))
    };
    let mut at = |length: f64| -> Result<Point> {
        problem.go(length, direction)?;
        let evaluated = problem.evaluate();
        back(&values)?;
        let (loss, gradient) = evaluated?;
        let slope = dot(&gradient, direction)?;
        Ok(Point { length, loss, gradient, slope })
    };
    let (loss, slope) = (start.loss, start.slope);
    let high = |p: &Point| p.loss > loss + ENOUGH * p.length * slope;
    let flat = |p: &Point| p.slope.abs() <= -FLAT * slope;
    let first = Point { length: 0.0, loss, gradient: start.gradient.clone(), slope };

    let mut now = at(start.length)?;
    let (mut evaluations, mut tried, mut done) = (1, 0, false);
    let mut before = first.clone();
    // One point that is good, or two between which one is.
    let mut bracket = loop {
        if tried >= tries {
            break [first, now];
        }
        if high(&now) || tried > 1 && now.loss >= before.loss {
            break [before, now];
        }
        if flat(&now) {
            done = true;
            break [now.clone(), now];
        }
        if now.slope >= 0.0 {
            break [before, now];
        }
        let bounds = (now.length + 0.01 * (now.length - before.length), now.length * 10.0);
        let next = minimum(&before, &now, Some(bounds));
        before = now;
        now = at(next)?;
        evaluations += 1;
        tried += 1;
    };

    let size = largest(direction)?;
    let mut low = usize::from(bracket[0].loss > bracket[1].loss);
    let mut stuck = false;
    while !done && tried < tries {
        let [a, b] = [bracket[0].length, bracket[1].length];
        if (b - a).abs() * size < tolerance {
            break;
        }
        let (least, most) = (a.min(b), a.max(b));
        let mut length = minimum(&bracket[0], &bracket[1], None);
        // Near an end of the bracket there is little progress: the second time, and at the end itself, it goes a tenth inwards.
        let margin = 0.1 * (most - least);
        if (most - length).min(length - least) < margin {
            let inwards = stuck || length >= most || length <= least;
            if inwards {
                length = if (length - most).abs() < (length - least).abs() { most - margin } else { least + margin };
            }
            stuck = !inwards;
        } else {
            stuck = false;
        }
        let new = at(length)?;
        evaluations += 1;
        tried += 1;
        if high(&new) || new.loss >= bracket[low].loss {
            bracket[1 - low] = new;
            low = usize::from(bracket[0].loss > bracket[1].loss);
        } else {
            if flat(&new) {
                done = true;
            } else if new.slope * (bracket[1 - low].length - bracket[low].length) >= 0.0 {
                bracket[1 - low] = bracket[low].clone();
            }
            bracket[low] = new;
        }
    }
    let Point { length, loss, gradient, .. } = bracket[low].clone();
    Ok(Found { loss, gradient, length, evaluations })
}
