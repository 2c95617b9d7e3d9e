//! Batches of the rows of a stream.

use super::collate::{Column, Target, arrays, check_batch, columns_of, copy_part, local_error};
use super::row::Row;
use super::streams::DataStream;
use crate::context::{RankCtx, current_rank};
use crate::error::{CallSite, Error, Result};
use crate::placement::{AxisRef, Device, Placement};
use crate::sbp::{NdSbp, Sbp};
use crate::state::{LoadState, SaveState, Stateful, notation};
use crate::tensor::Tensor;
use crate::trace::{self, What};
use std::sync::Arc;

/// Makes batches of the rows of a [`DataStream`], as a [`Loader`](super::Loader) does of a data set. Every rank goes over the whole stream, but
/// passes over the rows of other ranks without making them. Its state is the position of the stream, the same on every rank: a loaded feed
/// continues with the same rows on any number of ranks.
///
/// ```
/// use oflow::data::{DataStreamExt, Feed, Row, from_fn};
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 1)])?;
/// let rows = from_fn(|| (0..10i64).map(Ok)).filter(|n| n % 2 == 1).map(|n| Ok(Row::new().with("n", n)));
/// let feed = Feed::new(&mesh, 2, rows)?.split_along("dp")?;
/// let found: Vec<Vec<f64>> = feed.map(|b| b?[0].to_f64_vec()).collect::<Result<_>>()?;
/// assert_eq!(found, [vec![1.0, 3.0], vec![5.0, 7.0], vec![9.0]]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct Feed<S> {
    stream: S,
    target: Target,
    batch: usize,
    drop_last: bool,
    /// The line that made the feed.
    site: CallSite,
    /// Columns, from the row at the position where batches were first asked for.
    columns: Option<Arc<[Column]>>,
}

impl<S: DataStream<Item = Row>> Feed<S> {
    /// Makes a feed of global batches of `batch` rows, B on all axes of the placement.
    ///
    /// # Errors
    /// If batches have no rows.
    #[track_caller]
    pub fn new(placement: &Placement, batch: usize, stream: S) -> Result<Feed<S>> {
        let sbp = NdSbp::broadcast(placement.axes());
        Feed::to(Target::Global { placement: placement.clone(), sbp }, batch, stream)
    }
    /// Makes a feed of local tensors; each rank of the world gets its balanced part of each batch of `batch` rows.
    ///
    /// # Errors
    /// If batches have no rows.
    #[track_caller]
    pub fn local(device: Device, batch: usize, stream: S) -> Result<Feed<S>> {
        Feed::to(Target::Local(device), batch, stream)
    }
    #[track_caller]
    fn to(target: Target, batch: usize, stream: S) -> Result<Feed<S>> {
        check_batch(batch)?;
        Ok(Feed { stream, target, batch, drop_last: false, site: CallSite::here(), columns: None })
    }
    /// Splits batches along a mesh axis (S(0)).
    ///
    /// # Errors
    /// If the placement has no such axis, or batches are local.
    pub fn split_along(mut self, axis: impl AxisRef) -> Result<Feed<S>> {
        match &mut self.target {
            Target::Global { placement, sbp } => *sbp = sbp.with(placement.axis(axis)?.0, Sbp::Split(0)),
            Target::Local(_) => {
                return Err(Error::argument("local batches have no placement").help("make the feed with `Feed::new`"));
            }
        }
        Ok(self)
    }
    /// Drops the last batch of the stream if it has fewer than `batch` rows.
    #[must_use]
    pub fn drop_last(mut self) -> Feed<S> {
        self.drop_last = true;
        self
    }
    /// Returns the stream.
    pub fn stream(&self) -> &S {
        &self.stream
    }
    /// The columns, from the next row; the stream stays where it is. `None` at its end.
    fn columns(&mut self) -> Option<Result<Arc<[Column]>>> {
        if let Some(columns) = &self.columns {
            return Some(Ok(columns.clone()));
        }
        let start = self.stream.position();
        // A row that fails here fails on every rank, and is passed over on every rank.
        Some(self.stream.next()?.and_then(|row| columns_of(&row)).and_then(|columns| {
            columns.iter().try_for_each(|c| self.target.check(c))?;
            self.stream.seek(&start)?;
            Ok(self.columns.insert(columns.into()).clone())
        }))
    }
    /// Goes over the next `n` rows and makes those of this rank's share of a batch of `n`. Returns how many there were; the bytes are of use
    /// if there were `n`.
    fn make(&mut self, ctx: &RankCtx, columns: &[Column], n: usize) -> (usize, Result<Vec<Vec<u8>>>) {
        let share = |c| self.target.share(n, c, ctx.rank(), ctx.world());
        let shares: Vec<_> = columns.iter().map(share).collect();
        let mine = self.target.rows(n, columns, ctx.rank(), ctx.world());
        let mut made = Ok(vec![vec![]; columns.len()]);
        for at in 0..n {
            // Behind an error the rest is passed over: the next batch begins at the same row on every rank.
            let put = if mine.contains(&at) && made.is_ok() {
                self.stream.next().map(|row| {
                    let row = row?;
                    let arrays = arrays(&row, columns)?;
                    if let Ok(all) = &mut made {
                        for ((a, to), share) in arrays.iter().zip(all).zip(&shares) {
                            let part = share.as_deref().unwrap_or_default();
                            copy_part(a.bytes(), a.shape(), part.get(1..).unwrap_or_default(), to);
                        }
                    }
                    Ok(())
                })
            } else {
                // What fails in a row that is passed over is an error of the rank that has the row.
                self.stream.pass().map(|_| Ok(()))
            };
            match put {
                None => return (at, made),
                Some(Ok(())) => {}
                Some(Err(e)) => made = Err(e),
            }
        }
        (n, made)
    }
    fn batch(&mut self) -> Option<Result<Vec<Tensor>>> {
        let ctx = match current_rank() {
            Ok(ctx) => ctx,
            Err(e) => return Some(Err(e)),
        };
        let columns = match self.columns()? {
            Ok(columns) => columns,
            Err(e) => return Some(Err(e)),
        };
        let start = self.stream.position();
        let begin = trace::begin();
        let (mut n, mut made) = self.make(&ctx, &columns, self.batch);
        if n == 0 || (n < self.batch && self.drop_last) {
            return None;
        }
        if n < self.batch {
            // The stream ended: a rank's share of the shorter batch has other rows.
            if let Err(e) = self.stream.seek(&start) {
                return Some(Err(e));
            }
            (n, made) = self.make(&ctx, &columns, n);
        }
        begin.end(self.site, || What::BatchWait(n));
        let tensors = made.map_err(local_error).and_then(|bytes| {
            let tensor = |(c, b): (_, &Vec<u8>)| self.target.tensor(&ctx, n, c, b, self.site);
            columns.iter().zip(&bytes).map(tensor).collect()
        });
        Some(tensors)
    }
}

impl<S: DataStream<Item = Row>> Iterator for Feed<S> {
    type Item = Result<Vec<Tensor>>;
    fn next(&mut self) -> Option<Self::Item> {
        self.batch()
    }
}

impl<S: DataStream<Item = Row>> Stateful for Feed<S> {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        to.value("position", self.stream.position())
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        match from.notation("position") {
            Some(position) => self.stream.seek(&notation::to_json(position)?),
            None => Ok(()),
        }
    }
}
