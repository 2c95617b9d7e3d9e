//! The accuracy of scores.

use super::totals::{Totals, check_labels, of_totals};
use crate::context::{inner_calls, no_grad};
use crate::error::{CallSite, Error, Result};
use crate::functional::{arange, stack};
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::DType;

/// The part of rows whose target is among the k classes with the highest scores; among equal scores the lower class is the higher one.
#[derive(Clone, Debug, PartialEq)]
pub struct Accuracy {
    totals: Totals,
    k: usize,
    ignore_index: Option<i64>,
}

impl Default for Accuracy {
    fn default() -> Accuracy {
        Accuracy::new()
    }
}

impl Accuracy {
    /// Makes the accuracy of the class with the highest score.
    pub fn new() -> Accuracy {
        Accuracy::top(1)
    }
    /// Makes the accuracy of the `k` classes with the highest scores.
    pub fn top(k: usize) -> Accuracy {
        Accuracy { totals: Totals::new(2), k, ignore_index: None }
    }
    /// Leaves out rows whose target is this number.
    #[must_use]
    pub fn ignoring(mut self, index: i64) -> Accuracy {
        self.ignore_index = Some(index);
        self
    }
    /// Adds scores `[…, classes]` and targets `[…]`. NaN is the highest score, and a row whose target has the score NaN is wrong.
    ///
    /// # Errors
    /// If shapes do not fit, or a target is no class.
    #[track_caller]
    pub fn update(&mut self, scores: &Tensor, targets: &Tensor) -> Result<()> {
        let site = CallSite::here();
        let sums = self.sums(scores, targets).map_err(|e| e.at(site))?;
        self.totals.add(&sums, scores.is_global());
        Ok(())
    }
    fn sums(&self, scores: &Tensor, targets: &Tensor) -> Result<[f64; 2]> {
        check_labels("the targets", targets)?;
        let classes = scores.shape().last().copied().unwrap_or(0);
        if classes == 0 || scores.shape()[..scores.ndim() - 1] != *targets.shape() {
            return Err(Error::shape(format!(
                "the targets are {}, the scores {}: expected one target for each row of scores",
                targets.short(),
                scores.short()
            )));
        }
        if targets.numel() == 0 {
            return Ok([0.0; 2]);
        }
        let (_inner, _no_grad) = (inner_calls(), no_grad());
        let targets = targets.cast(DType::I64)?;
        let counted = match self.ignore_index {
            Some(ignored) => targets.ne(ignored)?,
            None => targets.eq(&targets)?,
        };
        let bad = targets.lt(0)?.logical_or(&targets.ge(classes as i64)?)?.logical_and(&counted)?;
        let known = targets.clamp(0, classes as i64 - 1)?.unsqueeze(-1)?;
        // The target is right if fewer than k classes are before it. `le` is false for NaN, which is so before everything.
        let of_target = scores.gather(-1, &known)?;
        let higher = scores.le(&of_target)?.logical_not()?;
        let numbers = match scores.global() {
            Some(g) => arange(classes, (&g.placement, NdSbp::broadcast(g.placement.axes())))?,
            None => arange(classes, scores.device())?,
        };
        let first = scores.eq(&of_target)?.logical_and(&numbers.cast(DType::I64)?.lt(&known)?)?;
        let before = higher.logical_or(&first)?.cast(DType::I64)?.sum(-1)?;
        // Where the target's score is NaN no class is at most as high, itself included: `before` counts all of them.
        let is_number = of_target.eq(&of_target)?.squeeze(-1)?;
        let right = before.lt(self.k as i64)?.logical_and(&is_number)?.logical_and(&counted)?;
        let sums = [&right, &counted, &bad].map(|t| t.cast(DType::I64)?.sum(()));
        let [right, counted, bad] = sums;
        let read = stack([&right?, &counted?, &bad?], 0)?.to_f64_vec()?;
        if read[2] > 0.0 {
            return Err(Error::value(format!("{} targets are none of the {classes} classes", read[2]))
                .help("leave out rows with `ignoring`"));
        }
        Ok([read[0], read[1]])
    }
}

of_totals!(Accuracy, totals, "sums", |metric| metric.totals.ratio());
