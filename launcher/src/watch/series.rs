//! Curves of numbers, bounded however long they become: neighbours are joined, and keep their lowest and highest value.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Parts of a curve.
const PARTS: usize = 512;
/// Curves of a job.
const CURVES: usize = 64;

/// Some neighbouring points of a curve.
#[derive(Clone, Copy)]
struct Part {
    /// Of the last point.
    at: f64,
    low: f64,
    high: f64,
    last: f64,
}

/// One curve.
#[derive(Default)]
pub(super) struct Curve {
    parts: Vec<Part>,
    /// Points that a part has when it is whole, as a power of two, and those that the last part has.
    joined: u32,
    open: usize,
}

impl Curve {
    /// Adds a point.
    pub(super) fn push(&mut self, at: f64, value: f64) {
        let new = Part { at, low: value, high: value, last: value };
        match self.parts.last_mut().filter(|_| self.open > 0 && self.open < 1 << self.joined) {
            Some(part) => {
                *part = join(part, &new);
                self.open += 1;
            }
            None => {
                if self.parts.len() == PARTS {
                    self.parts = self.parts.chunks(2).map(|two| join(&two[0], two.last().unwrap_or(&two[0]))).collect();
                    self.joined += 1;
                }
                self.parts.push(new);
                self.open = 1;
            }
        }
    }

    /// The last value.
    pub(super) fn last(&self) -> Option<f64> {
        self.parts.last().map(|p| p.last)
    }

    /// Where the last point lies.
    pub(super) fn end(&self) -> Option<f64> {
        self.parts.last().map(|p| p.at)
    }

    /// The last values, at most so many.
    pub(super) fn tail(&self, most: usize) -> impl Iterator<Item = f64> {
        self.parts[self.parts.len().saturating_sub(most)..].iter().map(|p| p.last)
    }

    /// Parts as `[at, low, high, last]`; null for what is not finite.
    pub(super) fn to_json(&self) -> Value {
        self.parts.iter().map(|p| json!([p.at, p.low, p.high, p.last])).collect()
    }
}

fn join(a: &Part, b: &Part) -> Part {
    // A value that is not finite stays visible as one.
    let of = |f: fn(f64, f64) -> f64, a: f64, b: f64| if a.is_finite() && b.is_finite() { f(a, b) } else { f64::NAN };
    Part { at: b.at, low: of(f64::min, a.low, b.low), high: of(f64::max, a.high, b.high), last: b.last }
}

/// The logged metrics, by name.
#[derive(Default)]
pub(super) struct Metrics {
    curves: BTreeMap<String, Curve>,
    /// Names that found no room.
    pub(super) beyond: bool,
    /// Grows with every point.
    pub(super) version: u64,
}

impl Metrics {
    /// Adds a point of a metric.
    pub(super) fn push(&mut self, name: &str, step: u64, value: f64) {
        self.version += 1;
        if !self.curves.contains_key(name) {
            if self.curves.len() == CURVES {
                self.beyond = true;
                return;
            }
            self.curves.insert(name.into(), Curve::default());
        }
        if let Some(curve) = self.curves.get_mut(name) {
            curve.push(step as f64, value);
        }
    }

    /// The curves in order: losses first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Curve)> {
        let is_loss = |name: &str| name.to_ascii_lowercase().contains("loss");
        let all = || self.curves.iter().map(|(name, curve)| (name.as_str(), curve));
        all().filter(move |(name, _)| is_loss(name)).chain(all().filter(move |(name, _)| !is_loss(name)))
    }

    /// All curves.
    pub(super) fn to_json(&self) -> Value {
        let curve = |(name, curve): (&str, &Curve)| {
            let last = curve.last().map_or(String::new(), |v| format!("{v}"));
            json!({ "name": name, "last": last, "points": curve.to_json() })
        };
        json!({ "curves": self.iter().map(curve).collect::<Vec<_>>(), "beyond": self.beyond })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_keeps_its_peaks_and_its_end() {
        let mut curve = Curve::default();
        for step in 0..100_000 {
            curve.push(f64::from(step), if step == 54_321 { 9.0 } else { 1.0 });
        }
        assert!(curve.parts.len() <= PARTS && curve.parts.len() >= PARTS / 2, "{}", curve.parts.len());
        assert_eq!(curve.parts.iter().filter(|p| p.high == 9.0).count(), 1);
        assert!(curve.parts.windows(2).all(|w| w[0].at < w[1].at));
        assert_eq!((curve.end(), curve.last()), (Some(99_999.0), Some(1.0)));
    }

    #[test]
    fn what_is_not_finite_is_a_gap_and_a_word() {
        let mut metrics = Metrics::default();
        metrics.push("acc", 1, 0.5);
        metrics.push("train/Loss", 1, f64::NAN);
        let text = metrics.to_json().to_string();
        assert!(text.contains(r#""last":"NaN","name":"train/Loss","points":[[1.0,null,null,null]]"#), "{text}");
        let names: Vec<&str> = metrics.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["train/Loss", "acc"]);
        (0..200).for_each(|i| metrics.push(&i.to_string(), 1, 0.0));
        assert!(metrics.beyond && metrics.curves.len() == CURVES);
    }
}
