//! The confusion matrix, and what follows from it: precision, recall, F1.

use super::totals::{Totals, check_labels, of_totals};
use crate::context::{inner_calls, no_grad};
use crate::error::{CallSite, Error, Result};
use crate::functional::BincountOptions;
use crate::tensor::Tensor;
use oflow_kernels::DType;

/// How the scores of classes become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// The score of all rows together. Where each row has one class it is the accuracy.
    Micro,
    /// The mean over the classes, including those that no row has.
    Macro,
    /// The mean over the classes, weighted by the number of rows that each has.
    Weighted,
}

/// Scores of one class. What would be divided by 0 is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassScores {
    /// Part of the rows predicted as the class that are of the class.
    pub precision: f64,
    /// Part of the rows of the class that are predicted as it.
    pub recall: f64,
    /// Harmonic mean of both.
    pub f1: f64,
    /// Number of rows of the class.
    pub support: f64,
}

/// Counts of predictions by class: precision, recall, F1 and accuracy follow from it. The definitions are scikit-learn's with
/// `labels=range(classes)` and `zero_division=0`.
///
/// ```
/// use oflow::metrics::{Average, ConfusionMatrix};
/// use oflow::prelude::*;
/// let mut m = ConfusionMatrix::new(3)?;
/// let of = |labels: [i64; 6]| from_vec(labels.to_vec(), [6], Device::Cpu);
/// m.update(&of([0, 2, 1, 0, 0, 1])?, &of([0, 1, 2, 0, 1, 2])?)?;
/// assert_eq!(m.counts(), [[2, 0, 0], [1, 0, 1], [0, 2, 0]]);
/// assert_eq!(m.recall(Average::Macro), 1.0 / 3.0);
/// assert_eq!(m.f1(Average::Micro), m.accuracy());
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ConfusionMatrix {
    totals: Totals,
    classes: usize,
    ignore_index: Option<i64>,
}

fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

impl ConfusionMatrix {
    /// Makes a matrix of zeros.
    ///
    /// # Errors
    /// If there is no class, or there are more than 32,768: the matrix has 8 bytes for each pair of classes.
    #[track_caller]
    pub fn new(classes: usize) -> Result<ConfusionMatrix> {
        if !(1..=1 << 15).contains(&classes) {
            return Err(Error::argument(format!("a confusion matrix of {classes} classes; it has 1 to 32,768"))
                .at(CallSite::here()));
        }
        Ok(ConfusionMatrix { totals: Totals::new(classes * classes), classes, ignore_index: None })
    }
    /// Leaves out rows whose target is this number.
    #[must_use]
    pub fn ignoring(mut self, index: i64) -> ConfusionMatrix {
        self.ignore_index = Some(index);
        self
    }
    /// Adds predictions and targets `[…]`. Predictions are classes, or scores `[…, classes]`, of which the highest one counts.
    ///
    /// # Errors
    /// If shapes do not fit, or a number is none of the classes.
    #[track_caller]
    pub fn update(&mut self, predicted: &Tensor, targets: &Tensor) -> Result<()> {
        let site = CallSite::here();
        let counts = self.count(predicted, targets).map_err(|e| e.at(site))?;
        self.totals.add(&counts, predicted.is_global());
        Ok(())
    }
    fn count(&self, predicted: &Tensor, targets: &Tensor) -> Result<Vec<f64>> {
        let scores = predicted.ndim() == targets.ndim() + 1 && predicted.shape().last() == Some(&self.classes);
        let rows = if scores { &predicted.shape()[..targets.ndim()] } else { predicted.shape() };
        if rows != targets.shape() {
            return Err(Error::shape(format!(
                "the predictions are {}, the targets {}: expected one prediction for each target, or one row of {} scores",
                predicted.short(),
                targets.short(),
                self.classes
            )));
        }
        check_labels("the targets", targets)?;
        if !scores {
            check_labels("the predictions", predicted)?;
        }
        let pairs = self.classes * self.classes;
        if targets.numel() == 0 {
            return Ok(vec![0.0; pairs]);
        }
        let (_inner, _no_grad) = (inner_calls(), no_grad());
        let (classes, ignored, wrong) = (self.classes as i64, pairs as i64, pairs as i64 + 1);
        let targets = targets.cast(DType::I64)?;
        let predicted = if scores { predicted.argmax(-1)? } else { predicted.cast(DType::I64)? };
        let outside = |t: &Tensor| t.lt(0)?.logical_or(&t.ge(classes)?);
        let bad = outside(&targets)?.logical_or(&outside(&predicted)?)?;
        // Two more places than pairs: one for rows that are left out, one for numbers that are no classes.
        let mut pair = targets.mul(classes)?.add(&predicted)?.masked_fill(&bad, wrong)?;
        if let Some(index) = self.ignore_index {
            pair = pair.masked_fill(&targets.eq(index)?, ignored)?;
        }
        let options = BincountOptions { minlength: wrong + 1, ..BincountOptions::default() };
        let mut counts = pair.flatten(0, -1)?.bincount_with(&options)?.to_f64_vec()?;
        match counts.pop() {
            Some(n) if n > 0.0 => Err(Error::value(format!(
                "{n} rows have a target or a prediction that is none of the {classes} classes"
            ))
            .help("leave out rows with `ignoring`")),
            _ => {
                counts.truncate(pairs);
                Ok(counts)
            }
        }
    }
    /// Returns the counts: one row for each class of targets, in which each class that was predicted has its number.
    pub fn counts(&self) -> Vec<Vec<u64>> {
        self.totals.all().chunks(self.classes).map(|row| row.iter().map(|n| *n as u64).collect()).collect()
    }
    /// Returns the part of the rows that are predicted as their class; NaN where there is no row.
    pub fn accuracy(&self) -> f64 {
        let all = self.totals.all();
        let right: f64 = all.iter().step_by(self.classes + 1).sum();
        right / all.iter().sum::<f64>()
    }
    /// Returns the scores of each class.
    pub fn by_class(&self) -> Vec<ClassScores> {
        let (all, n) = (self.totals.all(), self.classes);
        let of = |class: usize| {
            let right = all[class * n + class];
            let support: f64 = all[class * n..][..n].iter().sum();
            let predicted: f64 = all[class..].iter().step_by(n).sum();
            let (precision, recall) = (ratio(right, predicted), ratio(right, support));
            ClassScores { precision, recall, f1: ratio(2.0 * right, predicted + support), support }
        };
        (0..n).map(of).collect()
    }
    fn averaged(&self, average: Average, of: impl Fn(&ClassScores) -> f64) -> f64 {
        let scores = self.by_class();
        match average {
            // Each row has one target and one prediction: wrong ones are missed by one class and too many of another.
            Average::Micro => {
                if scores.iter().all(|s| s.support == 0.0) {
                    0.0
                } else {
                    self.accuracy()
                }
            }
            Average::Macro => scores.iter().map(of).sum::<f64>() / scores.len() as f64,
            Average::Weighted => {
                let rows: f64 = scores.iter().map(|s| s.support).sum();
                ratio(scores.iter().map(|s| of(s) * s.support).sum(), rows)
            }
        }
    }
    /// Returns the precision.
    pub fn precision(&self, average: Average) -> f64 {
        self.averaged(average, |s| s.precision)
    }
    /// Returns the recall.
    pub fn recall(&self, average: Average) -> f64 {
        self.averaged(average, |s| s.recall)
    }
    /// Returns the F1 score.
    pub fn f1(&self, average: Average) -> f64 {
        self.averaged(average, |s| s.f1)
    }
}

// The value is the accuracy.
of_totals!(ConfusionMatrix, totals, "counts", |metric| metric.accuracy());
