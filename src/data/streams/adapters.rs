//! Streams of streams.

use super::super::collate::check_batch;
use super::{Chained, DataStream, Filtered, Grouped, InTurn, Mapped, Paired, Prefetch, Shuffled, Skipped, Taken};
use crate::error::Result;

/// Methods that make streams of streams, of every [`DataStream`].
pub trait DataStreamExt: DataStream + Sized {
    /// Returns a stream of what `f` makes of each item. An item that is passed over is not made.
    fn map<T, F: FnMut(Self::Item) -> Result<T> + Send>(self, f: F) -> Mapped<Self, F> {
        Mapped { of: self, f }
    }
    /// Returns a stream of the items for which `keep` is true.
    fn filter<F: FnMut(&Self::Item) -> bool + Send>(self, keep: F) -> Filtered<Self, F> {
        Filtered { of: self, keep }
    }
    /// Returns a stream of lists of `n` items that follow each other. The last list may be shorter. An error takes the place of the list that
    /// it is in.
    ///
    /// # Errors
    /// If `n` is 0.
    fn batch(self, n: usize) -> Result<Grouped<Self>> {
        check_batch(n)?;
        Ok(Grouped { of: self, n })
    }
    /// Returns a stream of the first `n` items.
    fn take(self, n: usize) -> Taken<Self> {
        Taken { of: self, left: n }
    }
    /// Returns a stream of the items after the first `n`.
    fn skip(self, n: usize) -> Skipped<Self> {
        Skipped { of: self, left: n }
    }
    /// Returns a stream of these items, then those of another stream.
    fn concat<S: DataStream<Item = Self::Item>>(self, then: S) -> Chained<Self, S> {
        Chained::new(self, then)
    }
    /// Returns a stream of pairs of an item of this stream and one of another. It ends with the shorter one.
    fn zip<S: DataStream>(self, with: S) -> Paired<Self, S> {
        Paired { left: self, right: with }
    }
    /// Returns a stream of items of this stream and others in turn. One that has ended is left out.
    fn interleave(self, others: Vec<Self>) -> InTurn<Self> {
        InTurn::new(self, others)
    }
    /// Returns a stream that holds `buffer` items and gives one of them by chance, then takes the next one in its place. What makes items
    /// large, such as decoding, belongs behind it: then the buffer is small, and items that other ranks need are not made.
    ///
    /// The position has the position of each item that is held, so `seek` reads these items again.
    fn shuffle(self, buffer: usize, seed: u64) -> Shuffled<Self> {
        Shuffled::new(self, buffer, seed)
    }
    /// Returns a stream whose items are made on a thread, up to `ahead` before they are asked for. A panic there becomes an error of the
    /// item, and the stream ends. Items that are passed over are made too.
    fn prefetch(self, ahead: usize) -> Prefetch<Self>
    where
        Self: 'static,
        Self::Item: Send,
    {
        Prefetch::new(self, ahead)
    }
}

impl<S: DataStream> DataStreamExt for S {}
