//! Streams of several streams.

use super::{DataStream, position_part};
use crate::error::{Error, Result};
use serde_json::{Value, json};

/// Stream that [`DataStreamExt::concat`](super::DataStreamExt::concat) makes.
pub struct Chained<A, B> {
    first: A,
    then: B,
    in_second: bool,
}

impl<A, B> Chained<A, B> {
    pub(super) fn new(first: A, then: B) -> Chained<A, B> {
        Chained { first, then, in_second: false }
    }
}

impl<A: DataStream, B: DataStream<Item = A::Item>> Chained<A, B> {
    fn either<T>(
        &mut self,
        first: impl FnOnce(&mut A) -> Option<T>,
        then: impl FnOnce(&mut B) -> Option<T>,
    ) -> Option<T> {
        if !self.in_second {
            match first(&mut self.first) {
                Some(found) => return Some(found),
                None => self.in_second = true,
            }
        }
        then(&mut self.then)
    }
}

impl<A: DataStream, B: DataStream<Item = A::Item>> DataStream for Chained<A, B> {
    type Item = A::Item;
    fn next(&mut self) -> Option<Result<A::Item>> {
        self.either(A::next, B::next)
    }
    fn pass(&mut self) -> Option<Result<()>> {
        self.either(A::pass, B::pass)
    }
    fn position(&self) -> Value {
        json!({ "in_second": self.in_second, "first": self.first.position(), "then": self.then.position() })
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        let in_second = position_part(position, "in_second")?;
        self.first.seek(&position_part(position, "first")?)?;
        self.then.seek(&position_part(position, "then")?)?;
        self.in_second = in_second;
        Ok(())
    }
}

/// Stream that [`DataStreamExt::zip`](super::DataStreamExt::zip) makes.
pub struct Paired<A, B> {
    pub(super) left: A,
    pub(super) right: B,
}

impl<A: DataStream, B: DataStream> DataStream for Paired<A, B> {
    type Item = (A::Item, B::Item);
    fn next(&mut self) -> Option<Result<Self::Item>> {
        // Both go on also where one has an error: later pairs stay pairs.
        let (left, right) = (self.left.next()?, self.right.next()?);
        Some(left.and_then(|l| Ok((l, right?))))
    }
    fn pass(&mut self) -> Option<Result<()>> {
        let (left, right) = (self.left.pass()?, self.right.pass()?);
        Some(left.and(right))
    }
    fn position(&self) -> Value {
        json!({ "left": self.left.position(), "right": self.right.position() })
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        self.left.seek(&position_part(position, "left")?)?;
        self.right.seek(&position_part(position, "right")?)
    }
}

/// Stream that [`DataStreamExt::interleave`](super::DataStreamExt::interleave) makes.
pub struct InTurn<S> {
    streams: Vec<S>,
    ended: Vec<bool>,
    turn: usize,
}

impl<S: DataStream> InTurn<S> {
    pub(super) fn new(first: S, others: Vec<S>) -> InTurn<S> {
        let streams: Vec<S> = std::iter::once(first).chain(others).collect();
        InTurn { ended: vec![false; streams.len()], streams, turn: 0 }
    }
    fn each<T>(&mut self, mut next: impl FnMut(&mut S) -> Option<T>) -> Option<T> {
        for _ in 0..self.streams.len() {
            let at = self.turn;
            self.turn = (at + 1) % self.streams.len();
            if self.ended[at] {
                continue;
            }
            match next(&mut self.streams[at]) {
                Some(found) => return Some(found),
                None => self.ended[at] = true,
            }
        }
        None
    }
}

impl<S: DataStream> DataStream for InTurn<S> {
    type Item = S::Item;
    fn next(&mut self) -> Option<Result<S::Item>> {
        self.each(S::next)
    }
    fn pass(&mut self) -> Option<Result<()>> {
        self.each(S::pass)
    }
    fn position(&self) -> Value {
        let of: Vec<Value> = self.streams.iter().map(S::position).collect();
        json!({ "turn": self.turn, "ended": self.ended, "streams": of })
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        let (turn, ended): (usize, Vec<bool>) = (position_part(position, "turn")?, position_part(position, "ended")?);
        let of: Vec<Value> = position_part(position, "streams")?;
        let n = self.streams.len();
        if of.len() != n || ended.len() != n || turn >= n {
            return Err(Error::argument(format!("the position is one of {} interleaved streams, not {n}", of.len())));
        }
        self.streams.iter_mut().zip(&of).try_for_each(|(s, p)| s.seek(p))?;
        (self.turn, self.ended) = (turn, ended);
        Ok(())
    }
}
