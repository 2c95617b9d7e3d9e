//! Fits the constants of the cost model to measured times.
//!
//! A price is linear in the constants, so this is a least-squares fit of non-negative constants. It minimises *relative* errors,
//! so that small steps are predicted as well as large ones. The square of `(predicted − measured) / √(predicted · measured)` is
//! the same for half and double; outliers have less weight. If bytes beyond some size cost more, because they exceed the caches,
//! that size is one of the measured sizes.

use oflow::boxing::{Algorithm, Model, Rate};
use serde::Serialize;

use super::measure::{ConstantGroup, Point};

/// Share of a latency that is the first peer's, where one group size only was measured: that of the default constants.
const PEER_SHARE: f64 = 1.0 / 11.0;
/// Caches of fewer bytes than this are of no interest: latency hides them.
const LEAST_KNEE_KIB: u64 = 64;
/// A bend must make the squared error so much smaller.
const WORTH_A_KNEE: f64 = 0.8;
/// Rounds of weighing the points anew.
const ROUNDS: usize = 8;
/// Relative errors beyond this weigh less.
const OUTLIER: f64 = 0.25;

/// The quality of a fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quality {
    /// The constants fitted.
    pub kind: ConstantGroup,
    /// Number of points.
    pub points: usize,
    /// Median of the relative errors.
    pub median_error: f64,
    /// 90th percentile of the relative errors.
    pub most_errors: f64,
}

/// Returns the model that fits the points best. Constants that were not measured keep their default values.
pub fn fit(points: &[Point]) -> (Model, Vec<Quality>) {
    let mut model = Model::default();
    fit_local(points, &mut model);
    for a in Algorithm::ALL {
        let own: Vec<&Point> = points.iter().filter(|p| p.kind == ConstantGroup::Wire(a)).collect();
        if let Some(rate) = fit_rate(&own, &model) {
            model.same_host.rates[a as usize] = rate;
        }
    }
    let kinds =
        [ConstantGroup::Local, ConstantGroup::LocalExchange].into_iter().chain(Algorithm::ALL.map(ConstantGroup::Wire));
    let quality = kinds.filter_map(|kind| quality(kind, points, &model)).collect();
    (model, quality)
}

/// The prediction of the model for a point.
pub fn predicted(p: &Point, model: &Model) -> u64 {
    let copied = model.copied(p.copied);
    copied
        + match p.kind {
            ConstantGroup::Local => model.local_ps,
            ConstantGroup::LocalExchange => model.local_exchange_ps,
            ConstantGroup::Wire(a) => model.same_host.rates[a as usize].price(p.peers, p.wire),
        }
}

fn quality(kind: ConstantGroup, points: &[Point], model: &Model) -> Option<Quality> {
    let error = |p: &Point| (predicted(p, model) as f64 / p.time_ps.max(1) as f64 - 1.0).abs();
    let mut errors: Vec<f64> = points.iter().filter(|p| p.kind == kind).map(error).collect();
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| errors.get((errors.len() as f64 * share) as usize).copied();
    Some(Quality { kind, points: errors.len(), median_error: at(0.5)?, most_errors: at(0.9)? })
}

fn fit_local(points: &[Point], model: &mut Model) {
    let own: Vec<&Point> = points.iter().filter(|p| !matches!(p.kind, ConstantGroup::Wire(_))).collect();
    let rows = |knee: u64| -> Vec<Row> {
        let row = |p: &&Point| {
            let is = |kind| f64::from(u8::from(p.kind == kind));
            Row {
                x: [is(ConstantGroup::Local), is(ConstantGroup::LocalExchange), kib(p.copied), beyond(p.copied, knee)],
                y: p.time_ps as f64,
            }
        };
        own.iter().map(row).collect()
    };
    let Some((knee, [local, exchange, per_kib, extra])) = fit_bent(own.iter().map(|p| p.copied), rows) else { return };
    *model = Model {
        local_ps: constant(local),
        local_exchange_ps: constant(exchange),
        per_kib_copied_ps: constant(per_kib),
        extra_copied_beyond_kib: knee,
        extra_per_kib_copied_ps: extra as u64,
        ..*model
    };
}

fn fit_rate(points: &[&Point], model: &Model) -> Option<Rate> {
    let several = points.iter().any(|p| p.peers != points[0].peers);
    let rows = |knee: u64| -> Vec<Row> {
        let row = |p: &&Point| {
            // What is copied has its price already; it is never all of a communication.
            let y = (p.time_ps as f64 - model.copied(p.copied) as f64).max(p.time_ps as f64 / 10.0);
            let peers = if several { p.peers as f64 } else { 0.0 };
            Row { x: [1.0, peers, kib(p.wire), beyond(p.wire, knee)], y }
        };
        points.iter().map(row).collect()
    };
    let (knee, [mut latency, mut per_peer, per_kib, extra]) = fit_bent(points.iter().map(|p| p.wire), rows)?;
    if !several {
        let peers = points[0].peers as f64;
        per_peer = latency * PEER_SHARE / peers.max(1.0);
        latency -= per_peer * peers;
    }
    Some(Rate {
        latency_ps: constant(latency),
        per_peer_ps: per_peer as u64,
        // What crosses is copied at least once; where all sizes were small the fit does not know.
        per_kib_ps: constant(per_kib).max(model.per_kib_copied_ps),
        extra_beyond_kib: knee,
        extra_per_kib_ps: extra as u64,
    })
}

/// Never free: a search for the cheapest plan shall not take detours that cost nothing.
fn constant(x: f64) -> u64 {
    (x.round() as u64).max(1)
}

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

fn beyond(bytes: u64, knee_kib: u64) -> f64 {
    if knee_kib == 0 { 0.0 } else { kib(bytes.saturating_sub(knee_kib << 10)) }
}

/// One equation: the sum of `x` times the constants shall be `y`.
struct Row {
    x: [f64; 4],
    y: f64,
}

/// The constants, with a bend at the best of the sizes (in KiB; 0: none). The last column is that of the bend.
fn fit_bent(sizes: impl Iterator<Item = u64>, rows: impl Fn(u64) -> Vec<Row>) -> Option<(u64, [f64; 4])> {
    let mut knees: Vec<u64> = sizes.map(|bytes| bytes >> 10).filter(|kib| *kib >= LEAST_KNEE_KIB).collect();
    knees.sort_unstable();
    knees.dedup();
    // With one size beyond it a bend would fit that size and say nothing.
    knees.truncate(knees.len().saturating_sub(2));
    let (mut best, error) = solve(&rows(0)).map(|(x, error)| ((0, x), error))?;
    let mut least = error * WORTH_A_KNEE;
    for knee in knees {
        if let Some((x, error)) = solve(&rows(knee)).filter(|(_, error)| *error < least) {
            (best, least) = ((knee, x), error);
        }
    }
    Some(best)
}

/// Non-negative constants with the least squared relative error, and that error.
fn solve(rows: &[Row]) -> Option<([f64; 4], f64)> {
    if rows.is_empty() {
        return None;
    }
    let weigh = |row: &Row, guess: Option<&[f64; 4]>| {
        let now = guess.map_or(row.y, |c| product(row, c)).max(row.y / 8.0);
        let off = (now - row.y).abs() / (now * row.y).sqrt();
        (OUTLIER / off.max(OUTLIER)) / (now * row.y)
    };
    let mut constants: Option<[f64; 4]> = None;
    for _ in 0..ROUNDS {
        let weights: Vec<f64> = rows.iter().map(|r| weigh(r, constants.as_ref())).collect();
        constants = Some(non_negative(rows, &weights)?);
    }
    let c = constants?;
    let error = rows.iter().map(|r| {
        let now = product(r, &c).max(r.y / 8.0);
        // Huber's: square near zero, straight beyond.
        let off = (now - r.y).abs() / (now * r.y).sqrt();
        if off < OUTLIER { off * off } else { OUTLIER * (2.0 * off - OUTLIER) }
    });
    Some((c, error.sum()))
}

fn product(row: &Row, constants: &[f64; 4]) -> f64 {
    row.x.iter().zip(constants).map(|(x, c)| x * c).sum()
}

/// Weighted least squares over non-negative constants: the best of all sets of constants that are not zero.
fn non_negative(rows: &[Row], weights: &[f64]) -> Option<[f64; 4]> {
    let mut best: Option<([f64; 4], f64)> = None;
    for set in 1u32..16 {
        let columns: Vec<usize> = (0..4).filter(|c| set >> c & 1 == 1).collect();
        let Some(solution) = normal_equations(rows, weights, &columns) else { continue };
        if solution.iter().any(|x| *x < 0.0) {
            continue;
        }
        let mut all = [0.0; 4];
        columns.iter().zip(&solution).for_each(|(c, x)| all[*c] = *x);
        let error = rows.iter().zip(weights).map(|(r, w)| w * (product(r, &all) - r.y).powi(2)).sum();
        if best.is_none_or(|(_, least)| error < least) {
            best = Some((all, error));
        }
    }
    best.map(|(constants, _)| constants)
}

/// Solves `Xᵀ W X c = Xᵀ W y` for some columns; none if they are not independent.
fn normal_equations(rows: &[Row], weights: &[f64], columns: &[usize]) -> Option<Vec<f64>> {
    let n = columns.len();
    // Columns differ by orders of magnitude: each is brought to length 1.
    let length = |c: usize| rows.iter().zip(weights).map(|(r, w)| w * r.x[c] * r.x[c]).sum::<f64>().sqrt();
    let lengths: Vec<f64> = columns.iter().map(|c| length(*c)).collect();
    if lengths.contains(&0.0) {
        return None;
    }
    let x = |r: &Row, i: usize| r.x[columns[i]] / lengths[i];
    let sum = |f: &dyn Fn(&Row) -> f64| rows.iter().zip(weights).map(|(r, w)| w * f(r)).sum::<f64>();
    let mut m: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| sum(&|r| x(r, i) * x(r, j))).chain([sum(&|r| x(r, i) * r.y)]).collect())
        .collect();
    for i in 0..n {
        let pivot = (i..n).max_by(|a, b| m[*a][i].abs().total_cmp(&m[*b][i].abs()))?;
        m.swap(i, pivot);
        if m[i][i].abs() < 1e-9 {
            return None;
        }
        for j in (0..n).filter(|j| *j != i) {
            let factor = m[j][i] / m[i][i];
            let row = m[i].clone();
            m[j].iter_mut().zip(row).for_each(|(a, b)| *a -= factor * b);
        }
    }
    Some((0..n).map(|i| m[i][n] / m[i][i] / lengths[i]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a model, with errors of up to `noise` that do not depend on chance.
    fn points(model: &Model, peers: &[u64], noise: f64) -> Vec<Point> {
        let sizes = (2..25).map(|i| 1u64 << i);
        let mut all = Vec::new();
        for (i, bytes) in sizes.enumerate() {
            let mut add = |kind, peers, wire, copied| {
                let mut p = Point { kind, members: 2, peers, wire, copied, time_ps: 0 };
                let off = 1.0 + noise * (((i * 7 + all.len() * 5) % 11) as f64 / 5.0 - 1.0);
                p.time_ps = (predicted(&p, model) as f64 * off) as u64;
                all.push(p);
            };
            add(ConstantGroup::Local, 0, 0, bytes);
            add(ConstantGroup::LocalExchange, 0, 0, bytes);
            for a in Algorithm::ALL {
                for &k in peers {
                    add(ConstantGroup::Wire(a), k, k * bytes, if a == Algorithm::Exchange { bytes } else { 0 });
                }
            }
        }
        all
    }

    fn truth() -> Model {
        let mut model =
            Model { local_ps: 300_000, local_exchange_ps: 700_000, per_kib_copied_ps: 30_000, ..Model::default() };
        model.extra_copied_beyond_kib = 512;
        model.extra_per_kib_copied_ps = 40_000;
        for (i, rate) in model.same_host.rates.iter_mut().enumerate() {
            *rate = Rate {
                latency_ps: 400_000 + 100_000 * i as u64,
                per_peer_ps: 90_000 + 10_000 * i as u64,
                per_kib_ps: 60_000 + 9_000 * i as u64,
                extra_beyond_kib: if i % 2 == 0 { 1024 } else { 0 },
                extra_per_kib_ps: if i % 2 == 0 { 200_000 } else { 0 },
            };
        }
        model
    }

    fn close(a: u64, b: u64, share: f64) -> bool {
        (a as f64 - b as f64).abs() <= share * b as f64
    }

    #[test]
    fn constants_are_found_again() {
        let truth = truth();
        let (found, quality) = fit(&points(&truth, &[1, 3, 7], 0.0));
        assert!(quality.iter().all(|q| q.most_errors < 0.01), "{quality:?}");
        assert_eq!(quality.len(), 9);
        for (f, t) in found.same_host.rates.iter().zip(&truth.same_host.rates) {
            assert!(
                close(f.latency_ps, t.latency_ps, 0.02) && close(f.per_peer_ps, t.per_peer_ps, 0.05),
                "{f:?} {t:?}"
            );
            assert!(close(f.per_kib_ps, t.per_kib_ps, 0.02) && close(f.extra_per_kib_ps, t.extra_per_kib_ps, 0.02));
            assert_eq!(f.extra_beyond_kib, t.extra_beyond_kib);
        }
        assert_eq!((found.network, found.nvlink), (truth.network, truth.nvlink));
    }

    #[test]
    fn noise_and_outliers_do_little() {
        let truth = truth();
        let mut noisy = points(&truth, &[1, 3], 0.2);
        for p in noisy.iter_mut().step_by(9) {
            p.time_ps *= 20;
        }
        let (found, quality) = fit(&noisy);
        assert!(quality.iter().all(|q| q.median_error < 0.25), "{quality:?}");
        for p in points(&truth, &[1, 3], 0.0) {
            let ratio = predicted(&p, &found) as f64 / p.time_ps as f64;
            assert!((0.6..1.7).contains(&ratio), "{p:?}: {ratio}");
        }
    }

    #[test]
    fn one_group_size_keeps_the_share_of_a_peer() {
        let (found, _) = fit(&points(&truth(), &[1], 0.0));
        let (rate, truth) = (found.same_host.rates[0], truth().same_host.rates[0]);
        assert!(close(rate.latency_ps + rate.per_peer_ps, truth.latency_ps + truth.per_peer_ps, 0.02), "{rate:?}");
        assert!(close(rate.latency_ps, 10 * rate.per_peer_ps, 0.01), "{rate:?}");
    }

    #[test]
    fn what_was_not_measured_stays() {
        assert_eq!(fit(&[]), (Model::default(), vec![]));
        let local: Vec<Point> =
            points(&truth(), &[1], 0.0).into_iter().filter(|p| !matches!(p.kind, ConstantGroup::Wire(_))).collect();
        let (found, quality) = fit(&local);
        assert_eq!((found.same_host, quality.len()), (Model::default().same_host, 2));
        assert!(close(found.local_ps, 300_000, 0.02), "{found:?}");
    }
}
