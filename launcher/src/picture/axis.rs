//! Axes: the range of values, and round ticks.

/// An axis from `low` to `high`. If it is logarithmic these are exponents of ten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    pub log: bool,
}

impl Axis {
    /// The axis of values, with a margin on both sides; `None` without a value that it can show.
    pub fn of(values: impl Iterator<Item = f64>, log: bool, margin: f64) -> Option<Axis> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter_map(|v| placed(v, log)) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            return None;
        }
        // Halves, because the length of an axis may be more than the largest number.
        let half = high / 2.0 - low / 2.0;
        let room = if half > 0.0 { half * 2.0 * margin } else { (low.abs() * 0.1).max(if log { 0.5 } else { 1e-3 }) };
        let clamp = |x: f64| x.clamp(-f64::MAX / 4.0, f64::MAX / 4.0);
        Some(Axis { low: clamp(low - room), high: clamp(high + room), log })
    }

    /// Where a value lies, from 0 to 1.
    pub fn place(&self, value: f64) -> Option<f64> {
        let at = placed(value, self.log)?;
        Some(((at - self.low) / (self.high - self.low)).clamp(0.0, 1.0))
    }

    /// Round values of the axis, at most about `most`, with their texts.
    pub fn ticks(&self, most: usize, whole: bool) -> Vec<(f64, String)> {
        let decades = self.high - self.low;
        if self.log && decades >= 1.5 {
            let every = (decades / most as f64).ceil().max(1.0);
            let first = (self.low / every).ceil() * every;
            let all = (0..=most).map(|i| first + every * i as f64).take_while(|e| *e <= self.high);
            return all.map(|e| (10f64.powf(e), format!("1e{e:.0}"))).collect();
        }
        let (low, high) = if self.log { (10f64.powf(self.low), 10f64.powf(self.high)) } else { (self.low, self.high) };
        let step = round_step((high - low) / most as f64, whole);
        let first = (low / step).ceil();
        let all = (0..=2 * most).map(|i| (first + i as f64) * step).take_while(|v| *v <= high);
        all.map(|v| (v, text(v, step))).collect()
    }
}

/// The number by which an axis places a value.
fn placed(value: f64, log: bool) -> Option<f64> {
    let at = if log { value.log10() } else { value };
    at.is_finite().then_some(at)
}

/// 1, 2 or 5 times a power of ten, not under `least`.
fn round_step(least: f64, whole: bool) -> f64 {
    let power = 10f64.powf(least.max(f64::MIN_POSITIVE).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|f| f * power).into_iter().find(|s| *s >= least * 0.999_999);
    let step = step.unwrap_or(10.0 * power);
    if whole { step.max(1.0) } else { step }
}

/// A multiple of `step`, in as few digits as tell it from its neighbours.
fn text(value: f64, step: f64) -> String {
    let value = if value.abs() < step / 2.0 { 0.0 } else { value };
    let largest = value.abs().max(step);
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e6).contains(&largest) || step < 1e-6 {
        let digits = (largest.log10().floor() - step.log10().floor()).clamp(0.0, 6.0) as usize;
        return format!("{value:.digits$e}");
    }
    format!("{value:.*}", (-step.log10() - 1e-9).ceil().max(0.0) as usize)
}

/// A value in four digits.
pub fn short(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".into(),
        x if x != 0.0 && !(1e-3..1e5).contains(&x) => format!("{value:.2e}"),
        x if x >= 1000.0 => format!("{value:.0}"),
        x if x >= 1.0 || x == 0.0 => format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_string(),
        _ => format!("{value:.5}").trim_end_matches('0').to_string(),
    }
}
