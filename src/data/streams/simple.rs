//! Streams that keep no items.

use super::{DataStream, position_part};
use crate::error::{Error, Result};
use serde_json::{Value, json};

/// Stream that [`from_fn`] makes.
pub struct FromFn<I, F> {
    make: F,
    items: I,
    given: u64,
}

/// Makes a stream of the items of an iterator. The function makes the iterator anew where an earlier position is asked for; items before a
/// position are made and dropped.
pub fn from_fn<T, I, F>(make: F) -> FromFn<I, F>
where
    I: Iterator<Item = Result<T>> + Send,
    F: Fn() -> I + Send,
{
    FromFn { items: make(), make, given: 0 }
}

impl<T, I: Iterator<Item = Result<T>> + Send, F: Fn() -> I + Send> DataStream for FromFn<I, F> {
    type Item = T;
    fn next(&mut self) -> Option<Result<T>> {
        let item = self.items.next()?;
        self.given += 1;
        Some(item)
    }
    fn position(&self) -> Value {
        json!({ "item": self.given })
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        let to: u64 = position_part(position, "item")?;
        if to < self.given {
            (self.items, self.given) = ((self.make)(), 0);
        }
        while self.given < to {
            if self.items.next().is_none() {
                let has = self.given;
                return Err(Error::argument(format!("the position is item {to}; the stream has {has} items")));
            }
            self.given += 1;
        }
        Ok(())
    }
}

/// Stream that [`DataStreamExt::map`](super::DataStreamExt::map) makes.
pub struct Mapped<S, F> {
    pub(super) of: S,
    pub(super) f: F,
}

impl<S: DataStream, T, F: FnMut(S::Item) -> Result<T> + Send> DataStream for Mapped<S, F> {
    type Item = T;
    fn next(&mut self) -> Option<Result<T>> {
        Some(self.of.next()?.and_then(&mut self.f))
    }
    fn pass(&mut self) -> Option<Result<()>> {
        self.of.pass()
    }
    fn position(&self) -> Value {
        self.of.position()
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        self.of.seek(position)
    }
}

/// Stream that [`DataStreamExt::filter`](super::DataStreamExt::filter) makes.
pub struct Filtered<S, F> {
    pub(super) of: S,
    pub(super) keep: F,
}

impl<S: DataStream, F: FnMut(&S::Item) -> bool + Send> DataStream for Filtered<S, F> {
    type Item = S::Item;
    fn next(&mut self) -> Option<Result<S::Item>> {
        loop {
            match self.of.next()? {
                Ok(item) if !(self.keep)(&item) => {}
                found => return Some(found),
            }
        }
    }
    fn position(&self) -> Value {
        self.of.position()
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        self.of.seek(position)
    }
}

/// Stream that [`DataStreamExt::batch`](super::DataStreamExt::batch) makes.
pub struct Grouped<S> {
    pub(super) of: S,
    pub(super) n: usize,
}

/// Goes on to the `n`-th item, also behind an error, so that each list begins at a multiple of `n`. `None` where there is no item.
fn gather<T>(n: usize, mut next: impl FnMut() -> Option<Result<T>>) -> Option<Result<Vec<T>>> {
    let mut all = Ok(vec![]);
    for i in 0..n {
        match (next(), &mut all) {
            (None, _) if i == 0 => return None,
            (None, _) => break,
            (Some(Ok(item)), Ok(list)) => list.push(item),
            (Some(Err(e)), Ok(_)) => all = Err(e),
            (Some(_), Err(_)) => {}
        }
    }
    Some(all)
}

impl<S: DataStream> DataStream for Grouped<S> {
    type Item = Vec<S::Item>;
    fn next(&mut self) -> Option<Result<Self::Item>> {
        gather(self.n, || self.of.next())
    }
    fn pass(&mut self) -> Option<Result<()>> {
        Some(gather(self.n, || self.of.pass())?.map(drop))
    }
    fn position(&self) -> Value {
        self.of.position()
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        self.of.seek(position)
    }
}

/// Stream that [`DataStreamExt::take`](super::DataStreamExt::take) makes.
pub struct Taken<S> {
    pub(super) of: S,
    pub(super) left: usize,
}

impl<S: DataStream> DataStream for Taken<S> {
    type Item = S::Item;
    fn next(&mut self) -> Option<Result<S::Item>> {
        self.left = self.left.checked_sub(1)?;
        self.of.next()
    }
    fn pass(&mut self) -> Option<Result<()>> {
        self.left = self.left.checked_sub(1)?;
        self.of.pass()
    }
    fn position(&self) -> Value {
        json!({ "left": self.left, "of": self.of.position() })
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        let left = position_part(position, "left")?;
        self.of.seek(&position_part(position, "of")?)?;
        self.left = left;
        Ok(())
    }
}

/// Stream that [`DataStreamExt::skip`](super::DataStreamExt::skip) makes.
pub struct Skipped<S> {
    pub(super) of: S,
    /// Items still to pass over; they are at the first use.
    pub(super) left: usize,
}

impl<S: DataStream> Skipped<S> {
    /// Passes over the first items. An error there is none of the items that are asked for.
    fn begin(&mut self) -> Option<()> {
        while self.left > 0 {
            drop(self.of.pass()?);
            self.left -= 1;
        }
        Some(())
    }
}

impl<S: DataStream> DataStream for Skipped<S> {
    type Item = S::Item;
    fn next(&mut self) -> Option<Result<S::Item>> {
        self.begin()?;
        self.of.next()
    }
    fn pass(&mut self) -> Option<Result<()>> {
        self.begin()?;
        self.of.pass()
    }
    fn position(&self) -> Value {
        json!({ "to_skip": self.left, "of": self.of.position() })
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        let left = position_part(position, "to_skip")?;
        self.of.seek(&position_part(position, "of")?)?;
        self.left = left;
        Ok(())
    }
}
