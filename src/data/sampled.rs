//! The stream of a data set in the order of a sampler.

use super::dataset::Dataset;
use super::sampler::Sampler;
use super::streams::{DataStream, part};
use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::ops::Range;

/// What [`Dataset::stream`] makes. Its position is a number, so it is moved and passed over without reading.
pub struct Sampled<D> {
    of: D,
    sampler: Sampler,
    epochs: Range<u64>,
    /// Epoch of the next item.
    epoch: u64,
    /// Number of items that the epoch has already given.
    given: usize,
    /// Order of the epoch, once an item of it is asked for.
    order: Option<Vec<usize>>,
}

impl<D: Dataset> Sampled<D> {
    pub(super) fn new(of: D, sampler: Sampler, epochs: Range<u64>) -> Result<Sampled<D>> {
        sampler.check(of.len())?;
        Ok(Sampled { epoch: epochs.start, of, sampler, epochs, given: 0, order: None })
    }
    /// Returns the epoch of the next item.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
    /// How the order is told: samplers of other data or seeds differ.
    fn order_name(&self) -> String {
        let rows = self.of.len();
        let all =
            || self.sampler.seed().map_or(format!("{rows} rows"), |s| format!("{rows} rows shuffled by seed {s}"));
        self.sampler.fingerprint().unwrap_or_else(all)
    }
    /// Whether there is an item; moves to the epoch that has it.
    fn begin(&mut self) -> bool {
        let rows = self.sampler.len(self.of.len());
        if rows == 0 {
            return false;
        }
        if self.given >= rows {
            (self.epoch, self.given, self.order) = (self.epoch.saturating_add(1), 0, None);
        }
        self.epoch < self.epochs.end
    }
}

impl<D: Dataset> DataStream for Sampled<D> {
    type Item = D::Item;
    fn next(&mut self) -> Option<Result<D::Item>> {
        if !self.begin() {
            return None;
        }
        if self.order.is_none() {
            match self.sampler.order(self.of.len(), self.epoch) {
                Ok(order) => self.order = Some(order),
                Err(e) => return Some(Err(e)),
            }
        }
        let row = self.order.as_ref().and_then(|o| o.get(self.given)).copied()?;
        self.given += 1;
        Some(self.of.get(row))
    }
    fn pass(&mut self) -> Option<Result<()>> {
        self.begin().then(|| self.given += 1).map(Ok)
    }
    fn position(&self) -> Value {
        json!({ "epoch": self.epoch, "row": self.given, "order": self.order_name() })
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        let (epoch, row, order): (u64, usize, String) =
            (part(position, "epoch")?, part(position, "row")?, part(position, "order")?);
        let own = self.order_name();
        if order != own {
            return Err(Error::argument(format!("the position is one in {order}; this stream has {own}"))
                .help("make the stream of the same rows with the same sampler"));
        }
        if epoch != self.epoch {
            self.order = None;
        }
        (self.epoch, self.given) = (epoch, row);
        Ok(())
    }
}
