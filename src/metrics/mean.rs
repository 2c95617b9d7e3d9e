//! Means, and the perplexity.

use super::Metric;
use super::totals::{Totals, check_labels, of_totals, sync};
use crate::context::{inner_calls, no_grad};
use crate::error::{CallSite, Error, Result};
use crate::functional::CrossEntropyOptions;
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;
use oflow_kernels::DType;
use std::collections::VecDeque;

/// The sum of all elements, and their number.
fn sum_of(x: &Tensor) -> Result<[f64; 2]> {
    let (_inner, _no_grad) = (inner_calls(), no_grad());
    let sum = if x.numel() == 0 { 0.0 } else { x.cast(DType::F64)?.sum(())?.item()? };
    Ok([sum, x.numel() as f64])
}

/// The mean of all elements of all tensors given, or of numbers with weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean(Totals);

impl Default for Mean {
    fn default() -> Mean {
        Mean::new()
    }
}

impl Mean {
    /// Makes a mean of nothing.
    pub fn new() -> Mean {
        Mean(Totals::new(2))
    }
    /// Adds the elements of a tensor, which is read.
    ///
    /// # Errors
    /// If the tensor has no real numbers, or cannot be read.
    #[track_caller]
    pub fn update(&mut self, x: &Tensor) -> Result<()> {
        self.0.add(&sum_of(x)?, x.is_global());
        Ok(())
    }
    /// Adds a number of this rank, such as a loss that has been read, with the number of rows that it is the mean of.
    pub fn add(&mut self, value: f64, weight: f64) {
        self.0.add(&[value * weight, weight], false);
    }
}

of_totals!(Mean, 0, "sums", |metric| metric.0.ratio());

/// The mean over the last updates, such as the loss of the last 100 steps.
///
/// ```
/// use oflow::metrics::{Metric, RunningMean};
/// let mut loss = RunningMean::new(2);
/// [8.0, 4.0, 2.0].into_iter().for_each(|l| loss.add(l, 1.0));
/// assert_eq!(loss.value(), 3.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RunningMean {
    window: usize,
    last: VecDeque<Totals>,
}

impl RunningMean {
    /// Makes the mean over the last `window` updates, 1 at least.
    pub fn new(window: usize) -> RunningMean {
        RunningMean { window: window.max(1), last: VecDeque::new() }
    }
    fn push(&mut self, sums: [f64; 2], of_all: bool) {
        let mut totals = Totals::new(2);
        totals.add(&sums, of_all);
        if self.last.len() == self.window {
            self.last.pop_front();
        }
        self.last.push_back(totals);
    }
    /// Adds the elements of a tensor as one update.
    ///
    /// # Errors
    /// If the tensor has no real numbers, or cannot be read.
    #[track_caller]
    pub fn update(&mut self, x: &Tensor) -> Result<()> {
        self.push(sum_of(x)?, x.is_global());
        Ok(())
    }
    /// Adds a number of this rank with a weight as one update.
    pub fn add(&mut self, value: f64, weight: f64) {
        self.push([value * weight, weight], false);
    }
}

/// Every rank must have made as many updates when [`Metric::sync`] is called.
impl Metric for RunningMean {
    fn value(&self) -> f64 {
        let all: Vec<Vec<f64>> = self.last.iter().map(Totals::all).collect();
        all.iter().map(|t| t[0]).sum::<f64>() / all.iter().map(|t| t[1]).sum::<f64>()
    }
    #[track_caller]
    fn sync(&mut self) -> Result<()> {
        sync(&mut self.last.iter_mut().collect::<Vec<_>>())
    }
    fn reset(&mut self) {
        self.last.clear();
    }
}

impl Stateful for RunningMean {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        to.value("updates", self.last.len())?;
        self.last.iter().enumerate().try_for_each(|(i, t)| t.save(&i.to_string(), to))
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        let Some(updates) = from.value::<usize>("updates")? else { return Ok(()) };
        let mut last = VecDeque::new();
        for i in 0..updates {
            let mut totals = Totals::new(2);
            if from.has(&i.to_string()) {
                totals.load(&i.to_string(), from)?;
                last.push_back(totals);
            }
        }
        // A smaller window keeps the later ones.
        self.last = last.split_off(last.len().saturating_sub(self.window));
        Ok(())
    }
}

/// The perplexity of a language model: e to the mean negative log likelihood of the targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Perplexity {
    totals: Totals,
    ignore_index: Option<i64>,
}

impl Perplexity {
    /// Makes one that has seen nothing. Targets equal to `ignore_index` do not count.
    pub fn new(ignore_index: Option<i64>) -> Perplexity {
        Perplexity { totals: Totals::new(2), ignore_index }
    }
    /// Adds logits `[…, classes]` and targets `[…]`.
    ///
    /// # Errors
    /// If shapes do not fit, or targets are no classes.
    #[track_caller]
    pub fn update(&mut self, logits: &Tensor, targets: &Tensor) -> Result<()> {
        let site = CallSite::here();
        let of_all = logits.is_global();
        let sums = self.sums(logits, targets).map_err(|e| e.at(site))?;
        self.totals.add(&sums, of_all);
        Ok(())
    }
    fn sums(&self, logits: &Tensor, targets: &Tensor) -> Result<[f64; 2]> {
        check_labels("the targets", targets)?;
        if logits.ndim() == 0 || logits.shape()[..logits.ndim() - 1] != *targets.shape() {
            return Err(Error::shape(format!(
                "the targets are {}, the logits {}: expected one target for each row of logits",
                targets.short(),
                logits.short()
            )));
        }
        if targets.numel() == 0 {
            return Ok([0.0; 2]);
        }
        let (_inner, _no_grad) = (inner_calls(), no_grad());
        let targets = targets.cast(DType::I64)?;
        let options = CrossEntropyOptions {
            ignore_index: self.ignore_index,
            reduction: "sum",
            dim: logits.ndim() as i64 - 1,
            ..CrossEntropyOptions::default()
        };
        // In f64 the sum of a million tokens keeps its digits.
        let sum = logits.cast(DType::F64)?.cross_entropy_with(&targets, &options)?.item()?;
        let count = match self.ignore_index {
            None => targets.numel() as f64,
            Some(ignored) => targets.ne(ignored)?.cast(DType::I64)?.sum(())?.item()?,
        };
        Ok([sum, count])
    }
    /// Adds a negative log likelihood summed over `tokens` tokens of this rank.
    pub fn add(&mut self, sum: f64, tokens: f64) {
        self.totals.add(&[sum, tokens], false);
    }
}

of_totals!(Perplexity, totals, "sums", |metric| metric.totals.ratio().exp());
