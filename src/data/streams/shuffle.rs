//! A stream in random order, as far as a buffer allows.

use super::super::order::hashed;
use super::{DataStream, position_part};
use crate::error::{Error, Result};
use serde_json::{Value, json};

/// Stream that [`DataStreamExt::shuffle`](super::DataStreamExt::shuffle) makes.
pub struct Shuffled<S: DataStream> {
    of: S,
    seed: u64,
    buffer: usize,
    /// Items with the positions before them, from which they can be read again.
    held: Vec<(Value, S::Item)>,
    drawn: u64,
    ended: bool,
}

impl<S: DataStream> Shuffled<S> {
    pub(super) fn new(of: S, buffer: usize, seed: u64) -> Shuffled<S> {
        Shuffled { of, seed, buffer: buffer.max(1), held: vec![], drawn: 0, ended: false }
    }
}

impl<S: DataStream> DataStream for Shuffled<S>
where
    S::Item: Send,
{
    type Item = S::Item;
    fn next(&mut self) -> Option<Result<S::Item>> {
        while !self.ended && self.held.len() < self.buffer {
            let before = self.of.position();
            match self.of.next() {
                Some(Ok(item)) => self.held.push((before, item)),
                // It comes now, out of turn: to hold it would hide it.
                Some(Err(e)) => return Some(Err(e)),
                None => self.ended = true,
            }
        }
        if self.held.is_empty() {
            return None;
        }
        let at = hashed(self.seed, self.drawn) % self.held.len() as u64;
        self.drawn += 1;
        Some(Ok(self.held.swap_remove(at as usize).1))
    }
    fn position(&self) -> Value {
        let held: Vec<&Value> = self.held.iter().map(|(p, _)| p).collect();
        json!({ "drawn": self.drawn, "seed": self.seed, "held": held, "ended": self.ended, "of": self.of.position() })
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        let (drawn, seed, ended): (u64, u64, bool) =
            (position_part(position, "drawn")?, position_part(position, "seed")?, position_part(position, "ended")?);
        if seed != self.seed {
            return Err(Error::argument(format!(
                "the position is of a stream shuffled by seed {seed}; this one has seed {}",
                self.seed
            )));
        }
        let before: Vec<Value> = position_part(position, "held")?;
        let mut held = Vec::with_capacity(before.len().min(self.buffer));
        for p in before {
            self.of.seek(&p)?;
            let item = self.of.next().ok_or_else(|| {
                Error::argument(format!("the buffer of the saved position had the item at {p}, which is not there"))
            })??;
            held.push((p, item));
        }
        self.of.seek(&position_part(position, "of")?)?;
        (self.held, self.drawn, self.ended) = (held, drawn, ended);
        Ok(())
    }
}
