//! The area under the ROC curve.

use super::Metric;
use super::totals::{Totals, check_labels, check_synced, over_ranks, sync};
use crate::context::current;
use crate::error::{CallSite, Error, Result};
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;
use oflow_kernels::ReduceOp;

/// Numbers of negative and positive rows by score, lowest score first.
type Groups = Vec<(f64, f64, f64)>;

/// The area under the ROC curve of scores for two classes: the probability that a positive row has a higher score than a negative one, equal
/// scores counting half. It is NaN where one of the classes has no row.
///
/// ```
/// use oflow::metrics::{Auc, Metric};
/// use oflow::prelude::*;
/// let mut auc = Auc::new();
/// let scores = from_vec(vec![0.1f32, 0.4, 0.35, 0.8], [4], Device::Cpu)?;
/// auc.update(&scores, &from_vec(vec![0i64, 0, 1, 1], [4], Device::Cpu)?)?;
/// assert_eq!(auc.value(), 0.75);
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Auc(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Exact {
        shared: Groups,
        own: Groups,
    },
    /// Counts of negative rows by interval, then of positive ones.
    Binned(Totals, usize),
}

impl Default for Auc {
    fn default() -> Auc {
        Auc::new()
    }
}

/// Sorts by score and adds up what has the same one.
fn grouped(mut all: Groups) -> Groups {
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut groups: Groups = vec![];
    for (score, negative, positive) in all {
        match groups.last_mut() {
            Some(last) if last.0 == score => (last.1, last.2) = (last.1 + negative, last.2 + positive),
            _ => groups.push((score, negative, positive)),
        }
    }
    groups
}

impl Auc {
    /// Makes the exact area. It keeps the counts of each distinct score, 24 bytes for each.
    pub fn new() -> Auc {
        Auc(Kind::Exact { shared: vec![], own: vec![] })
    }
    /// Makes an approximation for scores from 0 to 1, in memory that does not grow: scores in one of `bins` equal intervals count as
    /// equal.
    ///
    /// # Errors
    /// If there is no interval.
    pub fn binned(bins: usize) -> Result<Auc> {
        if bins == 0 {
            return Err(Error::argument("an area of 0 intervals of scores"));
        }
        Ok(Auc(Kind::Binned(Totals::new(bins * 2), bins)))
    }
    /// Adds scores of the positive class and targets of the same shape, which are 0 or 1. Both are read.
    ///
    /// # Errors
    /// If shapes differ, a score is NaN, or a target is neither 0 nor 1; with intervals if a score is not from 0 to 1.
    #[track_caller]
    pub fn update(&mut self, scores: &Tensor, targets: &Tensor) -> Result<()> {
        let site = CallSite::here();
        let read = rows(scores, targets).map_err(|e| e.at(site))?;
        let of_all = scores.is_global();
        match &mut self.0 {
            Kind::Exact { shared, own } => {
                let to = if of_all { shared } else { own };
                *to = grouped(to.iter().copied().chain(read).collect());
            }
            Kind::Binned(totals, bins) => {
                let mut counts = vec![0.0; *bins * 2];
                for (score, negative, positive) in read {
                    if !(0.0..=1.0).contains(&score) {
                        let e = Error::value(format!("the score {score} is not from 0 to 1"));
                        return Err(e.help("apply `sigmoid`, or use `Auc::new`, which takes any scores").at(site));
                    }
                    let bin = ((score * *bins as f64) as usize).min(*bins - 1);
                    counts[bin] += negative;
                    counts[*bins + bin] += positive;
                }
                totals.add(&counts, of_all);
            }
        }
        Ok(())
    }
    fn groups(&self) -> Groups {
        match &self.0 {
            Kind::Exact { shared, own } => grouped(shared.iter().chain(own).copied().collect()),
            Kind::Binned(totals, bins) => {
                let all = totals.all();
                (0..*bins).map(|b| (b as f64, all[b], all[*bins + b])).collect()
            }
        }
    }
}

fn rows(scores: &Tensor, targets: &Tensor) -> Result<Groups> {
    if scores.shape() != targets.shape() {
        return Err(Error::shape(format!("the scores are {}, the targets {}", scores.short(), targets.short())));
    }
    check_labels("the targets", targets)?;
    let (scores, targets) = (scores.to_f64_vec()?, targets.to_f64_vec()?);
    let row = |(score, target): (f64, f64)| {
        if score.is_nan() {
            return Err(Error::value("a score is NaN"));
        }
        if target != 0.0 && target != 1.0 {
            return Err(Error::value(format!("the target {target} is neither 0 nor 1")));
        }
        // -0 is 0.
        Ok((score + 0.0, 1.0 - target, target))
    };
    scores.into_iter().zip(targets).map(row).collect()
}

impl Metric for Auc {
    fn value(&self) -> f64 {
        let (mut below, mut area, mut positives) = (0.0, 0.0, 0.0);
        for (_, negative, positive) in self.groups() {
            area += positive * (below + negative / 2.0);
            below += negative;
            positives += positive;
        }
        area / (positives * below)
    }
    #[track_caller]
    fn sync(&mut self) -> Result<()> {
        match &mut self.0 {
            Kind::Binned(totals, _) => sync(&mut [totals]),
            Kind::Exact { shared, own } => {
                // Ranks have different numbers of scores: each puts its own ones at its place of a vector of all.
                let ctx = current();
                let mut counts = vec![0.0; ctx.world()];
                counts[ctx.rank()] = own.len() as f64;
                let counts = over_ranks(counts, ReduceOp::Sum)?;
                let before: f64 = counts[..ctx.rank()].iter().sum();
                let all: f64 = counts.iter().sum();
                let mut flat = vec![0.0; 3 * all as usize];
                for (i, (score, negative, positive)) in own.iter().enumerate() {
                    flat[3 * (before as usize + i)..][..3].copy_from_slice(&[*score, *negative, *positive]);
                }
                let flat = over_ranks(flat, ReduceOp::Sum)?;
                let read = flat.chunks_exact(3).map(|g| (g[0], g[1], g[2]));
                *shared = grouped(shared.iter().copied().chain(read).collect());
                own.clear();
                Ok(())
            }
        }
    }
    fn reset(&mut self) {
        match &mut self.0 {
            Kind::Binned(totals, _) => totals.reset(),
            Kind::Exact { shared, own } => {
                shared.clear();
                own.clear();
            }
        }
    }
}

impl Stateful for Auc {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        match &self.0 {
            Kind::Binned(totals, _) => totals.save("counts", to),
            Kind::Exact { own, .. } => {
                check_synced(own.is_empty())?;
                to.value("scores", self.groups())
            }
        }
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        match &mut self.0 {
            Kind::Binned(totals, _) => totals.load("counts", from),
            Kind::Exact { shared, own } => {
                if let Some(saved) = from.value::<Groups>("scores")? {
                    (*shared, *own) = (grouped(saved), vec![]);
                }
                Ok(())
            }
        }
    }
}
