//! Streams of items, one after another, with a position that can be saved.
//!
//! [`DataStream`] is the trait; the methods of [`DataStreamExt`] make streams of streams. `simple` has those that keep no items, `several`
//! those of more than one stream, `shuffle` and `prefetch` those that hold items back.

mod adapters;
mod prefetch;
mod several;
mod shuffle;
mod simple;

pub use adapters::DataStreamExt;
pub use prefetch::Prefetch;
pub use several::{Chained, InTurn, Paired};
pub use shuffle::Shuffled;
pub use simple::{Filtered, FromFn, Grouped, Mapped, Skipped, Taken, from_fn};

use crate::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Items that come one after another: the lines of a file, what a program computes, the rows of a [`Dataset`](super::Dataset) in the order of
/// a sampler. Every rank goes over the same items; a [`Feed`](super::Feed) makes batches of them, for which each rank makes only its own
/// rows.
///
/// A stream has a position. A stream made in the same way and moved to the position with [`DataStream::seek`] continues with the same items, on
/// any number of ranks. Functions given to streams must therefore give the same for the same item.
///
/// An error takes the place of one item; the next call gives the item after it.
///
/// ```
/// use oflow::data::{DataStream, DataStreamExt, from_fn};
/// let made = || from_fn(|| (0..100i64).map(Ok)).filter(|n| n % 3 == 0).map(|n| Ok(n * n)).shuffle(8, 1);
/// let mut stream = made();
/// (0..5).for_each(|_| drop(stream.next()));
/// let mut other = made();
/// other.seek(&stream.position())?;
/// assert!((0..29).all(|_| stream.next().unwrap().ok() == other.next().unwrap().ok()));
/// assert!(stream.next().is_none() && other.next().is_none());
/// # Ok::<(), oflow::Error>(())
/// ```
pub trait DataStream: Send {
    /// Type of the items.
    type Item;
    /// Returns the next item, or `None` at the end.
    fn next(&mut self) -> Option<Result<Self::Item>>;
    /// Passes over the next item, where possible without making it.
    fn pass(&mut self) -> Option<Result<()>> {
        Some(self.next()?.map(drop))
    }
    /// Returns the position: what comes next depends on it and on how the stream was made only.
    fn position(&self) -> Value;
    /// Moves to a position of a stream that was made in the same way.
    ///
    /// # Errors
    /// If the position is of another stream, or cannot be reached.
    fn seek(&mut self, position: &Value) -> Result<()>;
}

impl<S: DataStream + ?Sized> DataStream for Box<S> {
    type Item = S::Item;
    fn next(&mut self) -> Option<Result<S::Item>> {
        (**self).next()
    }
    fn pass(&mut self) -> Option<Result<()>> {
        (**self).pass()
    }
    fn position(&self) -> Value {
        (**self).position()
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        (**self).seek(position)
    }
}

/// Reads a part of a position.
///
/// # Errors
/// If the position has no such part: it was made by another stream.
pub fn position_part<T: DeserializeOwned>(position: &Value, name: &str) -> Result<T> {
    let found = position.get(name).and_then(|v| T::deserialize(v).ok());
    found.ok_or_else(|| {
        let shown: String = position.to_string().chars().take(80).collect();
        Error::argument(format!("a position of another stream: no '{name}' in {shown}"))
            .help("make the stream in the same way as the one whose position was saved")
    })
}

#[cfg(test)]
mod tests;
