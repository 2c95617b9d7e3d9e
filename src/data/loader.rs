//! Batches of the rows of a data set.

use super::collate::{Column, Share, Target, arrays, columns_of, copy_part, local_error};
use super::dataset::Dataset;
use super::row::Row;
use super::sampler::Sampler;
use super::stream::Stream;
use super::threads::InOrder;
use crate::context::current_rank;
use crate::error::{CallSite, Error, Result};
use crate::placement::{AxisRef, Device, Placement};
use crate::sbp::{NdSbp, Sbp};
use crate::tensor::Tensor;
use crate::trace::{self, What};
use oflow_kernels::Element;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Where rows come from.
pub(super) enum Source {
    /// Memory: the values of each column, one row after another.
    Memory(Vec<Vec<u8>>),
    /// A data set.
    Rows(Arc<dyn Dataset<Item = Row>>),
}

/// Maker of the bytes of batches, on any thread.
pub(super) struct Maker {
    pub columns: Vec<Column>,
    pub source: Source,
}

impl Maker {
    /// The bytes of this rank's share of each column, from the rows of which it holds something.
    pub fn bytes(&self, rows: &[usize], shares: &[Option<Share>]) -> Result<Vec<Vec<u8>>> {
        let room = |share: &Option<Share>, c: &Column| {
            let elements: usize = share.iter().map(|s| s.iter().map(|r| r.len()).product::<usize>()).sum();
            Vec::with_capacity(elements * c.dtype.size())
        };
        let mut all: Vec<Vec<u8>> = shares.iter().zip(&self.columns).map(|(s, c)| room(s, c)).collect();
        let mut put = |at: usize, value: &[u8]| {
            if let Some(share) = &shares[at] {
                copy_part(value, &self.columns[at].shape, &share[1..], &mut all[at]);
            }
        };
        for row in rows {
            match &self.source {
                Source::Memory(columns) => {
                    for (at, (values, c)) in columns.iter().zip(&self.columns).enumerate() {
                        let size = c.shape.iter().product::<usize>() * c.dtype.size();
                        put(at, &values[row * size..][..size]);
                    }
                }
                Source::Rows(dataset) => {
                    let fail = |e: Error| local_error(e.within(|| format!("row {row} of the data set")));
                    let made = dataset.get(*row).map_err(fail)?;
                    let values = arrays(&made, &self.columns).map_err(fail)?;
                    values.iter().enumerate().for_each(|(at, a)| put(at, a.bytes()));
                }
            }
        }
        Ok(all)
    }
}

/// Makes global batches of rows: of columns in memory ([`Loader::column`]), or of a data set ([`Loader::dataset`]). Every rank must have
/// the same rows. Each rank builds only its shard of a batch, without communication, and reads only the rows of it.
///
/// ```
/// use oflow::data::Loader;
/// use oflow::prelude::*;
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 1)])?;
/// let loader = Loader::new(&mesh, 4)
///     .split_along("dp")?
///     .column((0..20).map(|x| x as f32).collect(), &[2])?
///     .column((0..10i64).collect(), &[])?
///     .shuffled(7);
/// let sizes: Vec<usize> = loader.epoch(0).map(|b| Ok(b?[0].shape()[0])).collect::<Result<_>>()?;
/// assert_eq!(sizes, [4, 4, 2]);
/// # Ok::<(), oflow::Error>(())
/// ```
pub struct Loader {
    pub(super) target: Target,
    pub(super) batch: usize,
    pub(super) maker: Arc<Maker>,
    rows: Option<usize>,
    pub(super) sampler: Sampler,
    drop_last: bool,
    /// Threads, and batches made before they are asked for; none without threads.
    pub(super) ahead: Option<(usize, usize)>,
    /// Line that gave it its rows.
    site: CallSite,
}

impl Loader {
    /// Makes a loader of global batches of `batch` rows, B on all axes of the placement, in the order of the rows.
    pub fn new(placement: &Placement, batch: usize) -> Loader {
        let sbp = NdSbp::broadcast(placement.axes());
        Loader::to(Target::Global { placement: placement.clone(), sbp }, batch)
    }
    /// Makes a loader of local tensors. `batch` is the number of rows of all ranks together: each rank of the world gets its balanced part of
    /// a batch, so a rank may have a row more than another, and none of a short last batch.
    pub fn local(device: Device, batch: usize) -> Loader {
        Loader::to(Target::Local(device), batch)
    }
    fn to(target: Target, batch: usize) -> Loader {
        let maker = Arc::new(Maker { columns: vec![], source: Source::Memory(vec![]) });
        let sampler = Sampler::sequential();
        Loader { target, batch, maker, rows: None, sampler, drop_last: false, ahead: None, site: CallSite::at("", 0) }
    }
    /// Splits batches along a mesh axis (S(0)): data parallelism.
    ///
    /// # Errors
    /// If the placement has no such axis, or batches are local.
    pub fn split_along(self, axis: impl AxisRef) -> Result<Loader> {
        let Target::Global { placement, sbp } = &self.target else { return Err(is_local()) };
        let sbp = sbp.with(placement.axis(axis)?.0, Sbp::Split(0));
        self.with_sbp(sbp)
    }
    /// Sets the SBP of batches, which every column must be able to have: S(0) splits the rows, S(1) the first dim of each value, B neither.
    ///
    /// # Errors
    /// If batches cannot have the SBP, or are local.
    pub fn with_sbp(mut self, sbp: impl Into<NdSbp>) -> Result<Loader> {
        let Target::Global { sbp: own, .. } = &mut self.target else { return Err(is_local()) };
        let sbp = sbp.into();
        if sbp.has_partial() {
            return Err(Error::sbp(format!("batches cannot have {sbp}: rows are values, not parts of sums")));
        }
        *own = sbp;
        self.maker.columns.iter().try_for_each(|c| self.target.check(c))?;
        Ok(self)
    }
    /// Adds a column: one value of shape `shape` per row. `values` has the elements of all rows, one row after another.
    ///
    /// # Errors
    /// If the number of rows differs from that of the other columns, `values` is not a whole number of rows, or batches have no rows.
    #[track_caller]
    pub fn column<T: Element>(mut self, values: Vec<T>, shape: &[usize]) -> Result<Loader> {
        let (site, each) = (CallSite::here(), shape.iter().product::<usize>());
        self.check_batch(site)?;
        // If a value has 0 elements, the number of rows cannot be computed from the length of `values`.
        let counted = self.rows.or(values.len().checked_div(each));
        let rows = counted.unwrap_or(0);
        if rows * each != values.len() {
            return Err(Error::shape(format!("{} values do not make {rows} rows of shape {shape:?}", values.len()))
                .at(site)
                .help("every column has one value per row"));
        }
        // SAFETY: `Element` types are plain numbers (and bool) without padding; the slice covers the vector.
        let bytes = unsafe {
            std::slice::from_raw_parts(values.as_ptr() as *const u8, std::mem::size_of_val(&values[..])).to_vec()
        };
        let name = self.maker.columns.len().to_string();
        let column = Column { name, dtype: T::DTYPE, shape: shape.to_vec() };
        self.target.check(&column).map_err(|e| e.at(site))?;
        // Nobody else has it before batches are made.
        match Arc::get_mut(&mut self.maker) {
            Some(Maker { columns, source: Source::Memory(all) }) => {
                columns.push(column);
                all.push(bytes);
            }
            _ => return Err(two_sources().at(site)),
        }
        self.rows = counted;
        self.site = site;
        Ok(self)
    }
    /// Takes the rows of a data set. Their fields become the columns, in the order of the first row, which is read now. All rows must have
    /// numbers of the same dtypes and shapes.
    ///
    /// Each rank reads the rows of its shard of a batch when the batch is made. An error of a row comes with its batch; it is one of this
    /// rank alone. With [`Loader::prefetch`] rows are read on threads before.
    ///
    /// ```
    /// use oflow::data::{Array, Dataset, Loader, Row, Sampler, in_memory};
    /// use oflow::prelude::*;
    /// let _world = oflow::init()?;
    /// let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 1)])?;
    /// let rows = in_memory((0..100i64).collect::<Vec<_>>())
    ///     .map(|n| Ok(Row::new().with("x", Array::new(&[n as f32, 0.5], &[2])?).with("y", n % 10)));
    /// let loader = Loader::new(&mesh, 16).split_along("dp")?.dataset(rows)?.sampler(Sampler::random(3))?.prefetch(2, 4);
    /// let mut batches = loader.stream();
    /// let batch = batches.next()?;
    /// assert_eq!((batch[0].shape(), batch[1].shape()), (&[16, 2][..], &[16][..]));
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the loader has columns, if the first row cannot be read, or has text, or does not fit the layout.
    #[track_caller]
    pub fn dataset(mut self, dataset: impl Dataset<Item = Row> + 'static) -> Result<Loader> {
        let site = CallSite::here();
        self.check_batch(site)?;
        if self.rows.is_some() || !self.maker.columns.is_empty() {
            return Err(two_sources().at(site));
        }
        let rows = dataset.len();
        self.sampler.check(rows).map_err(|e| e.at(site))?;
        let columns = match rows {
            0 => vec![],
            _ => {
                let first = dataset.get(0).and_then(|row| columns_of(&row));
                first.map_err(|e| e.within(|| "row 0 of the data set".to_string()).at(site))?
            }
        };
        columns.iter().try_for_each(|c| self.target.check(c)).map_err(|e| e.at(site))?;
        self.rows = Some(rows);
        self.site = site;
        self.maker = Arc::new(Maker { columns, source: Source::Rows(Arc::new(dataset)) });
        Ok(self)
    }
    fn check_batch(&self, site: CallSite) -> Result<()> {
        match self.batch {
            0 => {
                let e = Error::argument("the loader makes batches of 0 rows").at(site);
                Err(e.help("a batch has at least 1 row"))
            }
            _ => Ok(()),
        }
    }
    /// Sets the number of rows. Needed only if every column has values of 0 elements, from which the number cannot be computed. Call it
    /// before adding columns.
    #[must_use]
    pub fn with_rows(mut self, rows: usize) -> Loader {
        self.rows = Some(rows);
        self
    }
    /// Shuffles the rows in each epoch, in the same order on every rank.
    #[must_use]
    pub fn shuffled(mut self, seed: u64) -> Loader {
        self.sampler = Sampler::random(seed);
        self
    }
    /// Takes the rows of each epoch from a sampler. Call it after adding columns or a data set.
    ///
    /// # Errors
    /// If the sampler does not fit the number of rows.
    pub fn sampler(mut self, sampler: Sampler) -> Result<Loader> {
        sampler.check(self.rows())?;
        self.sampler = sampler;
        Ok(self)
    }
    /// Makes up to `ahead` batches on `threads` threads before they are asked for. They come in the same order. A panic in a closure
    /// of the data set becomes an error of its batch. 0 threads make each batch when it is asked for.
    #[must_use]
    pub fn prefetch(mut self, threads: usize, ahead: usize) -> Loader {
        self.ahead = (threads > 0).then_some((threads, ahead));
        self
    }
    /// Drops the last batch of an epoch if it has fewer than `batch` rows.
    #[must_use]
    pub fn drop_last(mut self) -> Loader {
        self.drop_last = true;
        self
    }
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows.unwrap_or(0)
    }
    /// Returns the names of the columns, in the order of a batch's tensors.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.maker.columns.iter().map(|c| &c.name[..])
    }
    /// Returns the number of rows that an epoch has: that of the sampler.
    pub fn epoch_rows(&self) -> usize {
        self.sampler.len(self.rows())
    }
    /// Returns the number of batches per epoch.
    pub fn batches(&self) -> usize {
        let batch = self.batch.max(1);
        if self.drop_last { self.epoch_rows() / batch } else { self.epoch_rows().div_ceil(batch) }
    }
    /// Returns the batches of one epoch.
    pub fn epoch(&self, epoch: u64) -> Batches<&Loader> {
        Batches::new(self, epoch)
    }
    /// Returns the batches of all epochs, without end. A checkpoint can save its position.
    pub fn stream(&self) -> Stream<&Loader> {
        Stream::new(self)
    }
}

/// The batches of one epoch. Each batch has one tensor per column, `[batch, shape…]`. `L` is a reference to the loader, or an `Arc`
/// where the batches are to outlive the place where they are made.
pub struct Batches<L> {
    loader: L,
    /// Rows of the epoch, or why the sampler has none: it may have been chosen before the rows were known.
    order: std::result::Result<Arc<[usize]>, String>,
    next: usize,
    /// Threads that make the batches from `next` on, once one is asked for.
    made: Option<InOrder<Vec<Vec<u8>>>>,
}

/// All that is needed to make the bytes of any batch of the epoch.
struct Work {
    maker: Arc<Maker>,
    order: Arc<[usize]>,
    target: Target,
    batch: usize,
    rank: usize,
    world: usize,
    site: CallSite,
}

impl Work {
    fn rows(&self, number: usize) -> Range<usize> {
        let start = number * self.batch;
        start..self.order.len().min(start.saturating_add(self.batch))
    }
    fn bytes(&self, number: usize) -> Result<Vec<Vec<u8>>> {
        let begin = trace::begin();
        let cpu = begin.cpu_ns();
        let all = &self.order[self.rows(number)];
        let share = |c| self.target.share(all.len(), c, self.rank, self.world);
        let shares: Vec<Option<Share>> = self.maker.columns.iter().map(share).collect();
        let mine = self.target.rows(all.len(), &self.maker.columns, self.rank, self.world);
        let made = self.maker.bytes(&all[mine], &shares);
        begin.end(self.site, || What::Batch { rows: all.len(), cpu_ns: begin.cpu_ns().saturating_sub(cpu) });
        made
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
        let order = loader.sampler.order(loader.rows(), epoch).map(Into::into).map_err(|e| e.message().to_string());
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
        let order = self.order.clone().map_err(Error::argument)?;
        let work = Work {
            maker: l.maker.clone(),
            order,
            target: l.target.clone(),
            batch: l.batch,
            rank: ctx.rank(),
            world: ctx.world(),
            site: l.site,
        };
        let rows = work.rows(number).len();
        let begin = trace::begin();
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
        begin.end(l.site, || What::BatchWait(rows));
        let tensor = |(c, b): (_, &Vec<u8>)| l.target.tensor(&ctx, rows, c, b, l.site);
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

fn two_sources() -> Error {
    Error::argument("the loader has rows already: it takes one data set, or columns")
        .help("use `zip` and `map` on data sets")
}

fn is_local() -> Error {
    Error::argument("local batches have no placement").help("make the loader with `Loader::new` and a placement")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_ranks;

    #[test]
    fn batches_of_no_rows_are_refused() {
        run_ranks(1, |_| {
            let e = Loader::new(&Placement::all(Device::Cpu)?, 0).column(vec![1.0f32], &[]).err().unwrap().to_string();
            assert!(e.contains("batches of 0 rows") && e.contains("loader.rs"), "{e}");
            assert_eq!(Loader::new(&Placement::all(Device::Cpu)?, 0).with_rows(3).batches(), 3);
            Ok(())
        })
        .unwrap();
    }

    /// All batches of two epochs, as logical values.
    fn read(mesh: &Placement, axis: Option<&str>) -> Result<Vec<Vec<f64>>> {
        let mut l = Loader::new(mesh, 4);
        if let Some(a) = axis {
            l = l.split_along(a)?;
        }
        let l = l.column((0..22).map(|x| x as f32).collect(), &[2])?.column((0..11i64).collect(), &[])?.shuffled(5);
        let mut seen = vec![];
        for epoch in 0..2 {
            for b in l.epoch(epoch) {
                let b = b?;
                let (x, y) = (b[0].to_f64_vec()?, b[1].to_f64_vec()?);
                assert!(y.iter().enumerate().all(|(i, y)| x[2 * i] == 2.0 * y), "columns stay together");
                seen.push(y);
            }
        }
        Ok(seen)
    }

    #[test]
    fn batches_do_not_depend_on_the_mesh() {
        let want = run_ranks(1, |_| read(&Placement::all(Device::Cpu)?, None)).unwrap().remove(0);
        assert_eq!(want.iter().map(|b| b.len()).collect::<Vec<_>>(), [4, 4, 3, 4, 4, 3]);
        let mut all: Vec<f64> = want[..3].concat();
        all.sort_by(f64::total_cmp);
        assert_eq!(all, (0..11).map(f64::from).collect::<Vec<_>>());
        assert_ne!(want[..3], want[3..]);
        let got = run_ranks(6, |_| {
            let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 3), ("tp", 2)])?;
            // Ranks outside the placement take part in reading.
            let some = Placement::new(Device::Cpu, &[1, 3, 4, 5, 0], &[5])?.mesh(&[("dp", 5)])?;
            Ok((read(&mesh, Some("dp"))?, read(&some, Some("dp"))?))
        })
        .unwrap();
        assert!(got.iter().all(|(a, b)| *a == want && *b == want));
    }

    #[test]
    fn columns_must_agree() {
        let p = Placement::of_world(Device::Cpu, 1).unwrap();
        let l = Loader::new(&p, 2).column(vec![0f32; 6], &[2]).unwrap();
        let e = l.column(vec![0i64; 4], &[]).err().unwrap().to_string();
        assert!(e.contains("4 values do not make 3 rows"), "{e}");
    }
}
