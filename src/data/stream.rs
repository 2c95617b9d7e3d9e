//! An endless stream of batches, whose position a checkpoint saves.

use super::loader::{Batches, Loader};
use crate::error::{Error, Result};
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;
use std::ops::Deref;

/// The batches of a [`Loader`], epoch after epoch. Its state is the epoch and the number of rows already returned; a loaded stream
/// continues with the next batch, on any number of ranks.
///
/// ```
/// use oflow::data::Loader;
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?;
/// let loader = Loader::new(&mesh, 2).column((0..6i64).collect(), &[])?;
/// let mut batches = loader.stream();
/// let firsts: Vec<f64> = (0..4).map(|_| Ok(batches.next()?[0].to_f64_vec()?[0])).collect::<Result<_>>()?;
/// assert_eq!(firsts, [0.0, 2.0, 4.0, 0.0]);
/// assert_eq!((batches.epoch(), batches.batch()), (1, 1));
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// `L` is a reference to the loader, or an `Arc` where the stream is to outlive the place where it is made.
#[derive(Clone)]
pub struct Stream<L> {
    loader: L,
    epoch: u64,
    batch: usize,
    /// Iterator over the remaining batches of the epoch; `None` until a batch of the epoch is requested.
    rest: Option<Batches<L>>,
}

impl<L: Deref<Target = Loader> + Clone> Stream<L> {
    /// Makes the stream of a loader, at its first batch.
    pub fn new(loader: L) -> Stream<L> {
        Stream { loader, epoch: 0, batch: 0, rest: None }
    }
    /// Returns the epoch of the last batch that was returned.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
    /// Returns how many batches of the epoch have been returned.
    pub fn batch(&self) -> usize {
        self.batch
    }
    /// Returns whether the last batch of the epoch has been returned.
    pub fn at_end_of_epoch(&self) -> bool {
        self.batch == self.loader.batches()
    }
    /// Returns the next batch: one global tensor per column.
    ///
    /// # Errors
    /// If the loader has no batch, or if a row or a tensor of it cannot be made. The next call makes the same batch; [`Stream::skip`]
    /// passes over it.
    #[allow(clippy::should_implement_trait, reason = "it never ends: the `Option` of an iterator would be in the way")]
    pub fn next(&mut self) -> Result<Vec<Tensor>> {
        self.begin()?;
        let rest = self.rest.get_or_insert_with(|| {
            let mut rest = Batches::new(self.loader.clone(), self.epoch);
            rest.leave_out(self.batch);
            rest
        });
        let batch = rest.next().ok_or_else(|| Error::argument("the loader has no batch to give"))?;
        if batch.is_err() {
            // The batch that failed is the next one again; `skip` passes over it.
            self.rest = None;
        }
        self.batch += usize::from(batch.is_ok());
        batch
    }
    /// Passes over the next batch without making it.
    ///
    /// # Errors
    /// If the loader has no batch.
    pub fn skip(&mut self) -> Result<()> {
        self.begin()?;
        if let Some(rest) = &mut self.rest {
            rest.leave_out(1);
        }
        self.batch += 1;
        Ok(())
    }
    /// Begins the next epoch after the last batch of one.
    fn begin(&mut self) -> Result<()> {
        if self.loader.batches() == 0 {
            return Err(
                Error::argument("the loader has no batch to give").help("give it more rows, or smaller batches")
            );
        }
        if self.at_end_of_epoch() {
            (self.epoch, self.batch, self.rest) = (self.epoch + 1, 0, None);
        }
        Ok(())
    }
}

impl<L: Deref<Target = Loader> + Clone> Stateful for Stream<L> {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        let (rows, size) = (self.loader.epoch_rows(), self.loader.batch);
        to.value("epoch", self.epoch)?;
        to.value("row", if self.at_end_of_epoch() { rows } else { self.batch * size })?;
        to.value("order", (rows, self.loader.sampler.seed()))?;
        match self.loader.sampler.fingerprint() {
            Some(of) => to.value("sampler", of),
            None => Ok(()),
        }
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        let (rows, seed, size) = (self.loader.epoch_rows(), self.loader.sampler.seed(), self.loader.batch);
        let Some(epoch) = from.value("epoch")? else { return Ok(()) };
        let row: usize = from.value("row")?.unwrap_or(0);
        let (was_rows, was_seed): (usize, Option<u64>) = from.value("order")?.unwrap_or((rows, seed));
        let was_sampler = if from.has("sampler") { from.value("sampler")? } else { None };
        let way_out =
            "load without this section to start at the first row, or make the loader with the same rows and seed";
        let sampler = self.loader.sampler.fingerprint();
        if (was_rows, was_seed, &was_sampler) != (rows, seed, &sampler) {
            let show = |rows: usize, seed: Option<u64>, sampler: Option<String>| match (sampler, seed) {
                (Some(s), _) => s,
                (None, Some(s)) => format!("{rows} rows shuffled by seed {s}"),
                (None, None) => format!("{rows} rows in their order"),
            };
            let (was, is) = (show(was_rows, was_seed, was_sampler), show(rows, seed, sampler));
            return Err(Error::argument(format!("the position in the data was saved for {was}; this loader has {is}"))
                .help(way_out));
        }
        let batch = if row >= rows || self.loader.batches() * size <= row {
            self.loader.batches()
        } else if row.is_multiple_of(size) {
            row / size
        } else {
            return Err(Error::argument(format!(
                "the saved position is row {row}, at which no batch of {size} rows begins"
            ))
            .help(way_out));
        };
        (self.epoch, self.batch, self.rest) = (epoch, batch, None);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{Device, Placement};
    use std::collections::BTreeMap;

    fn loader(batch: usize, seed: u64) -> Result<Loader> {
        let mesh = Placement::of_world(Device::Cpu, 1)?;
        Ok(Loader::new(&mesh, batch).column((0..11i64).collect(), &[])?.shuffled(seed))
    }

    fn saved(s: &Stream<&Loader>) -> Result<BTreeMap<String, serde_json::Value>> {
        let mut to = SaveState::new();
        s.save_state(&mut to)?;
        Ok(to.into_parts().1)
    }

    #[test]
    fn a_stream_goes_on_where_it_was() {
        crate::run_ranks(1, |_| {
            let l = loader(4, 3)?;
            let mut all = l.stream();
            let want: Vec<Vec<f64>> = (0..9).map(|_| all.next()?[0].to_f64_vec()).collect::<Result<_>>()?;
            for stop in 0..9 {
                let mut first = l.stream();
                for n in 0..stop {
                    // What is passed over is the same as what is taken.
                    if n % 2 == 0 { first.skip()? } else { first.next().map(drop)? }
                }
                assert_eq!(first.clone().next()?[0].to_f64_vec()?, want[stop]);
                let values = saved(&first)?;
                let mut second = l.stream();
                second.load_state(&mut LoadState::new([], &values))?;
                let rest: Vec<Vec<f64>> = (stop..9).map(|_| second.next()?[0].to_f64_vec()).collect::<Result<_>>()?;
                assert_eq!(rest, want[stop..]);
            }
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn other_data_is_refused() {
        crate::run_ranks(1, |_| {
            let l = loader(4, 3)?;
            let mut s = l.stream();
            s.next()?;
            let values = saved(&s)?;
            let refused = |l: Loader| l.stream().load_state(&mut LoadState::new([], &values)).unwrap_err().to_string();
            assert!(
                refused(loader(4, 5)?)
                    .contains("saved for 11 rows shuffled by seed 3; this loader has 11 rows shuffled by seed 5")
            );
            assert!(refused(loader(3, 3)?).contains("the saved position is row 4, at which no batch of 3 rows begins"));
            let half = loader(2, 3)?;
            let mut s = half.stream();
            s.load_state(&mut LoadState::new([], &values))?;
            assert_eq!(s.batch(), 2, "half as large batches fit");
            Ok(())
        })
        .unwrap();
    }
}
