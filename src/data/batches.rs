//! The batches of an epoch.

use super::collate::Share;
use super::loader::{Loader, Maker};
use super::threads::InOrder;
use crate::context::current_rank;
use crate::error::Result;
use crate::tensor::Tensor;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The batches of one epoch. Each batch has one tensor per column, `[batch, shape…]`. `L` is a reference to the loader, or an `Arc`
/// where the batches are to outlive the place where they are made.
pub struct Batches<L> {
    loader: L,
    order: Arc<[usize]>,
    next: usize,
    /// Threads that make the batches from `next` on, once one is asked for.
    made: Option<InOrder<Vec<Vec<u8>>>>,
}

/// What is needed to make the bytes of any batch of the epoch.
struct Work {
    maker: Arc<Maker>,
    order: Arc<[usize]>,
    target: super::collate::Target,
    batch: usize,
    rank: usize,
    world: usize,
}

impl Work {
    fn rows(&self, number: usize) -> Range<usize> {
        let start = number * self.batch;
        start..self.order.len().min(start.saturating_add(self.batch))
    }
    fn bytes(&self, number: usize) -> Result<Vec<Vec<u8>>> {
        let all = &self.order[self.rows(number)];
        let share = |c| self.target.share(all.len(), c, self.rank, self.world);
        let shares: Vec<Option<Share>> = self.maker.columns.iter().map(share).collect();
        let mine = self.target.rows(all.len(), &self.maker.columns, self.rank, self.world);
        self.maker.bytes(&all[mine], &shares)
    }
}

impl<L: Clone> Clone for Batches<L> {
    /// The clone has threads of its own.
    fn clone(&self) -> Batches<L> {
        Batches { loader: self.loader.clone(), order: self.order.clone(), next: self.next, made: None }
    }
}

impl<L: Deref<Target = Loader>> Batches<L> {
    /// Makes the batches of an epoch of the loader.
    pub fn new(loader: L, epoch: u64) -> Batches<L> {
        // The sampler fits: the loader has checked it.
        let order = loader.sampler.order(loader.rows(), epoch).unwrap_or_default().into();
        Batches { loader, order, next: 0, made: None }
    }
    /// Skips `n` batches without making them.
    pub(super) fn leave_out(&mut self, n: usize) {
        if n > 0 {
            self.made = None;
        }
        self.next = self.next.saturating_add(n).min(self.loader.batches());
    }
    fn batch(&mut self, number: usize) -> Result<Vec<Tensor>> {
        let (ctx, l) = (current_rank()?, &*self.loader);
        let work = Work {
            maker: l.maker.clone(),
            order: self.order.clone(),
            target: l.target.clone(),
            batch: l.batch,
            rank: ctx.rank(),
            world: ctx.world(),
        };
        let rows = work.rows(number).len();
        let bytes = match l.ahead {
            None => work.bytes(number)?,
            Some((threads, ahead)) => {
                let made = match self.made.take() {
                    Some(made) => made,
                    None => InOrder::start(number, l.batches(), threads, ahead, move |n| work.bytes(n))?,
                };
                self.made.insert(made).take()?
            }
        };
        let tensor = |(c, b): (_, &Vec<u8>)| l.target.tensor(&ctx, rows, c, b);
        l.maker.columns.iter().zip(&bytes).map(tensor).collect()
    }
}

impl<L: Deref<Target = Loader>> Iterator for Batches<L> {
    type Item = Result<Vec<Tensor>>;

    /// Skips `n` batches without making them, and returns the next one.
    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.leave_out(n);
        self.next()
    }

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.loader.batches() {
            return None;
        }
        self.next += 1;
        Some(self.batch(self.next - 1))
    }
}
