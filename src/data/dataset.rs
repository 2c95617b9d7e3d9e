//! Data sets: rows by number.

use super::collate::check_batch;
use super::sampler::Sampler;
use super::streams::{DataStream, position_part};
use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Arc;

/// Items that are read by number, in any order and on any thread: the rows of a file, of files, of memory. Items are made when they are
/// asked for. A [`Loader`](super::Loader) makes batches of data sets of [`Row`](super::Row)s.
///
/// An error is one of an item: it names the source and the place in it, and other items can be read.
///
/// ```
/// use oflow::data::{Dataset, in_memory};
/// let numbers = in_memory((0..10).collect::<Vec<i64>>());
/// let even = numbers.filter(|n| n % 2 == 0)?.map(|n| Ok(n * 10));
/// let all = even.skip(1).concat(in_memory(vec![7, 8]));
/// let found: Vec<i64> = (0..all.len()).map(|i| all.get(i)).collect::<oflow::Result<_>>()?;
/// assert_eq!(found, [20, 40, 60, 80, 7, 8]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub trait Dataset: Send + Sync {
    /// Type of the items.
    type Item;
    /// Returns the number of items.
    fn len(&self) -> usize;
    /// Returns an item. It is the same at each call.
    ///
    /// # Errors
    /// If there is no such item, or it cannot be made.
    fn get(&self, index: usize) -> Result<Self::Item>;
    /// Returns whether there is no item.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns a data set of what `f` makes of each item.
    fn map<T, F: Fn(Self::Item) -> Result<T> + Send + Sync>(self, f: F) -> Map<Self, F>
    where
        Self: Sized,
    {
        Map { of: self, f }
    }
    /// Returns the items for which `keep` is true. Reads every item once, now, because items are counted; a
    /// [`DataStream`](super::DataStream) filters as it goes.
    ///
    /// # Errors
    /// The first error of an item.
    fn filter(self, keep: impl Fn(&Self::Item) -> bool) -> Result<Subset<Self>>
    where
        Self: Sized,
    {
        let mut rows = vec![];
        for i in 0..self.len() {
            if keep(&self.get(i)?) {
                rows.push(i);
            }
        }
        Ok(Subset { of: self, rows: rows.into() })
    }
    /// Returns the items of these numbers, in that order. A number may be there several times.
    ///
    /// # Errors
    /// If there is no item of a number.
    fn subset(self, rows: Vec<usize>) -> Result<Subset<Self>>
    where
        Self: Sized,
    {
        rows.iter().try_for_each(|r| check(*r, self.len()))?;
        Ok(Subset { of: self, rows: rows.into() })
    }
    /// Returns the first `n` items.
    fn take(self, n: usize) -> Window<Self>
    where
        Self: Sized,
    {
        let end = n.min(self.len());
        Window { of: self, rows: 0..end }
    }
    /// Returns the items after the first `n`.
    fn skip(self, n: usize) -> Window<Self>
    where
        Self: Sized,
    {
        let len = self.len();
        Window { of: self, rows: n.min(len)..len }
    }
    /// Returns these items, then those of another data set.
    fn concat<D: Dataset<Item = Self::Item>>(self, then: D) -> Concat<Self, D>
    where
        Self: Sized,
    {
        Concat { first: self, then }
    }
    /// Returns pairs of an item of this data set and one of another, as many as the shorter one has.
    fn zip<D: Dataset>(self, with: D) -> Zip<Self, D>
    where
        Self: Sized,
    {
        Zip { left: self, right: with }
    }
    /// Returns lists of `n` items that follow each other. The last list may be shorter.
    ///
    /// # Errors
    /// If `n` is 0.
    fn batch(self, n: usize) -> Result<Batched<Self>>
    where
        Self: Sized,
    {
        check_batch(n)?;
        Ok(Batched { of: self, n })
    }
    /// Returns a stream of the items in the order of a sampler, for the given epochs one after another: `0..1` for one,
    /// `0..u64::MAX` for a stream without end.
    ///
    /// # Errors
    /// If the sampler does not fit the number of items.
    fn stream(self, sampler: Sampler, epochs: Range<u64>) -> Result<Sampled<Self>>
    where
        Self: Sized,
    {
        Sampled::new(self, sampler, epochs)
    }
}

/// An error where an item is asked for that is not there.
pub(super) fn check(index: usize, len: usize) -> Result<()> {
    if index < len {
        return Ok(());
    }
    Err(Error::index(format!("item {index} is out of range; there are {len}")))
}

/// A data set of items in memory, which are cloned when they are read.
#[derive(Clone, Debug)]
pub struct InMemory<T>(Arc<[T]>);

/// Makes a data set of items in memory.
pub fn in_memory<T: Clone + Send + Sync>(items: Vec<T>) -> InMemory<T> {
    InMemory(items.into())
}

impl<T: Clone + Send + Sync> Dataset for InMemory<T> {
    type Item = T;
    fn len(&self) -> usize {
        self.0.len()
    }
    fn get(&self, index: usize) -> Result<T> {
        check(index, self.0.len())?;
        Ok(self.0[index].clone())
    }
}

macro_rules! by_pointer {
    ($($p:ident)*) => {$(
        impl<D: Dataset + ?Sized> Dataset for $p<D> {
            type Item = D::Item;
            fn len(&self) -> usize {
                (**self).len()
            }
            fn get(&self, index: usize) -> Result<D::Item> {
                (**self).get(index)
            }
        }
    )*};
}
by_pointer!(Arc Box);

/// Data set that [`Dataset::map`] makes.
#[derive(Clone, Debug)]
pub struct Map<D, F> {
    of: D,
    f: F,
}

impl<D: Dataset, T, F: Fn(D::Item) -> Result<T> + Send + Sync> Dataset for Map<D, F> {
    type Item = T;
    fn len(&self) -> usize {
        self.of.len()
    }
    fn get(&self, index: usize) -> Result<T> {
        (self.f)(self.of.get(index)?)
    }
}

/// Data set that [`Dataset::filter`] and [`Dataset::subset`] make.
#[derive(Clone, Debug)]
pub struct Subset<D> {
    of: D,
    rows: Arc<[usize]>,
}

impl<D> Subset<D> {
    /// Returns the numbers that the items have in the whole data set.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    type Item = D::Item;
    fn len(&self) -> usize {
        self.rows.len()
    }
    fn get(&self, index: usize) -> Result<D::Item> {
        check(index, self.rows.len())?;
        self.of.get(self.rows[index])
    }
}

/// Data set that [`Dataset::take`] and [`Dataset::skip`] make.
#[derive(Clone, Debug)]
pub struct Window<D> {
    of: D,
    rows: Range<usize>,
}

impl<D: Dataset> Dataset for Window<D> {
    type Item = D::Item;
    fn len(&self) -> usize {
        self.rows.len()
    }
    fn get(&self, index: usize) -> Result<D::Item> {
        check(index, self.rows.len())?;
        self.of.get(self.rows.start + index)
    }
}

/// Data set that [`Dataset::concat`] makes.
#[derive(Clone, Debug)]
pub struct Concat<A, B> {
    first: A,
    then: B,
}

impl<A: Dataset, B: Dataset<Item = A::Item>> Dataset for Concat<A, B> {
    type Item = A::Item;
    fn len(&self) -> usize {
        self.first.len().saturating_add(self.then.len())
    }
    fn get(&self, index: usize) -> Result<A::Item> {
        check(index, self.len())?;
        match index.checked_sub(self.first.len()) {
            None => self.first.get(index),
            Some(rest) => self.then.get(rest),
        }
    }
}

/// Data set that [`Dataset::zip`] makes.
#[derive(Clone, Debug)]
pub struct Zip<A, B> {
    left: A,
    right: B,
}

impl<A: Dataset, B: Dataset> Dataset for Zip<A, B> {
    type Item = (A::Item, B::Item);
    fn len(&self) -> usize {
        self.left.len().min(self.right.len())
    }
    fn get(&self, index: usize) -> Result<Self::Item> {
        check(index, self.len())?;
        Ok((self.left.get(index)?, self.right.get(index)?))
    }
}

/// Data set that [`Dataset::batch`] makes.
#[derive(Clone, Debug)]
pub struct Batched<D> {
    of: D,
    n: usize,
}

impl<D: Dataset> Dataset for Batched<D> {
    type Item = Vec<D::Item>;
    fn len(&self) -> usize {
        self.of.len().div_ceil(self.n)
    }
    fn get(&self, index: usize) -> Result<Self::Item> {
        check(index, self.len())?;
        let start = index * self.n;
        (start..self.of.len().min(start.saturating_add(self.n))).map(|i| self.of.get(i)).collect()
    }
}

/// Data sets in turn: an item of the first, one of the second and so on. One that has ended is left out.
#[derive(Clone, Debug)]
pub struct Interleaved<D> {
    sets: Vec<D>,
}

/// Makes a data set of items of several data sets in turn. One that has ended is left out.
///
/// ```
/// use oflow::data::{Dataset, in_memory, interleave};
/// let all = interleave(vec![in_memory(vec![1, 2, 3]), in_memory(vec![10]), in_memory(vec![20, 21])]);
/// let found: Vec<i64> = (0..all.len()).map(|i| all.get(i)).collect::<oflow::Result<_>>()?;
/// assert_eq!(found, [1, 10, 20, 2, 21, 3]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub fn interleave<D: Dataset>(sets: Vec<D>) -> Interleaved<D> {
    Interleaved { sets }
}

impl<D: Dataset> Dataset for Interleaved<D> {
    type Item = D::Item;
    fn len(&self) -> usize {
        self.sets.iter().map(D::len).sum()
    }
    fn get(&self, index: usize) -> Result<D::Item> {
        check(index, self.len())?;
        // Rounds in which the same sets take part have the same length. `done` items of each of them are in earlier rounds.
        let (mut rest, mut done) = (index, 0);
        loop {
            let active: Vec<&D> = self.sets.iter().filter(|s| s.len() > done).collect();
            let Some(until) = active.iter().map(|s| s.len()).min() else {
                return Err(Error::index(format!("item {index} is out of range")));
            };
            let here = (until - done) * active.len();
            if rest < here {
                return active[rest % active.len()].get(done + rest / active.len());
            }
            (rest, done) = (rest - here, until);
        }
    }
}

/// Stream that [`Dataset::stream`] makes. Its position is a number, so it is moved and passed over without reading.
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
            (position_part(position, "epoch")?, position_part(position, "row")?, position_part(position, "order")?);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn all<D: Dataset>(d: &D) -> Vec<D::Item> {
        (0..d.len()).map(|i| d.get(i).unwrap()).collect()
    }

    #[test]
    fn what_is_made_of_data_sets_has_the_items_of_iterators() {
        let n = |range: Range<i64>| in_memory(range.collect::<Vec<i64>>());
        for (a, b, k) in [(0, 3, 1), (5, 2, 2), (7, 7, 3), (4, 9, 20)] {
            assert_eq!(all(&n(0..a).take(k)), (0..a).take(k).collect::<Vec<_>>());
            assert_eq!(all(&n(0..a).skip(k)), (0..a).skip(k).collect::<Vec<_>>());
            assert_eq!(all(&n(0..a).concat(n(0..b))), (0..a).chain(0..b).collect::<Vec<_>>());
            assert_eq!(all(&n(0..a).zip(n(0..b))), (0..a).zip(0..b).collect::<Vec<_>>());
            let batches: Vec<Vec<i64>> = (0..a).collect::<Vec<_>>().chunks(k).map(<[i64]>::to_vec).collect();
            assert_eq!(all(&n(0..a).batch(k).unwrap()), batches);
            let odd = n(0..a).filter(|x| x % 2 == 1).unwrap();
            assert_eq!(all(&odd), (0..a).filter(|x| x % 2 == 1).collect::<Vec<_>>());
            // In turn: the oracle takes an item of each list while it has one.
            let mut lists: Vec<Vec<i64>> = [0..a, 100..100 + b, 200..200 + k as i64].map(Iterator::collect).to_vec();
            let interleaved = interleave(lists.iter().map(|l| in_memory(l.clone())).collect());
            let mut want = vec![];
            while lists.iter().any(|l| !l.is_empty()) {
                lists.iter_mut().filter(|l| !l.is_empty()).for_each(|l| want.push(l.remove(0)));
            }
            assert_eq!(all(&interleaved), want);
        }
    }

    #[test]
    fn items_that_are_not_there_are_errors() {
        let d = in_memory(vec![1, 2, 3]);
        let e = d.clone().take(2).get(2).unwrap_err();
        assert_eq!(e.message(), "item 2 is out of range; there are 2");
        assert!(d.clone().skip(1).get(2).is_err() && d.clone().concat(d.clone()).get(6).is_err());
        assert!(d.clone().subset(vec![0, 3]).is_err() && d.clone().batch(0).is_err());
        assert!(interleave(vec![d.clone(), d]).get(6).is_err());
        assert!(interleave::<InMemory<i64>>(vec![]).get(0).is_err());
    }
}
