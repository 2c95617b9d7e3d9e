//! Batches from rows in memory.

use super::order::permutation;
use super::stream::Stream;
use crate::context::current_rank;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::from_bytes;
use crate::ops::TensorType;
use crate::placement::{AxisRef, Placement};
use crate::sbp::{NdSbp, Sbp};
use crate::tensor::{Tensor, intern_global};
use oflow_kernels::{DType, Element};
use std::ops::Deref;

/// One value per row: a feature vector, a label.
struct Column {
    dtype: DType,
    /// Shape of one row's value.
    shape: Vec<usize>,
    /// Bytes of one row's value.
    size: usize,
    bytes: Vec<u8>,
}

/// Makes global batches from rows in memory. Every rank must hold the same rows. Each rank builds only its shard of a batch, without
/// communication.
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
    placement: Placement,
    sbp: NdSbp,
    batch: usize,
    columns: Vec<Column>,
    rows: Option<usize>,
    seed: Option<u64>,
    drop_last: bool,
}

impl Loader {
    /// Makes a loader of global batches of `batch` rows, B on all axes of the placement, in the order of the rows.
    pub fn new(placement: &Placement, batch: usize) -> Loader {
        Loader {
            placement: placement.clone(),
            sbp: NdSbp::broadcast(placement.axes()),
            batch,
            columns: vec![],
            rows: None,
            seed: None,
            drop_last: false,
        }
    }
    /// Splits batches along a mesh axis (S(0)): data parallelism.
    ///
    /// # Errors
    /// If the placement has no such axis.
    pub fn split_along(mut self, axis: impl AxisRef) -> Result<Loader> {
        let axis = self.placement.axis(axis)?;
        self.sbp = self.sbp.with(axis.0, Sbp::Split(0));
        Ok(self)
    }
    /// Adds a column: one value of shape `shape` per row. `values` has the elements of all rows, one row after another.
    ///
    /// # Errors
    /// If the number of rows differs from that of the other columns, `values` is not a whole number of rows, or batches have no rows.
    #[track_caller]
    pub fn column<T: Element>(mut self, values: Vec<T>, shape: &[usize]) -> Result<Loader> {
        let (site, each) = (CallSite::here(), shape.iter().product::<usize>());
        if self.batch == 0 {
            return Err(Error::argument("the loader makes batches of 0 rows")
                .at(site)
                .help("a batch has at least 1 row"));
        }
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
        let size = each * std::mem::size_of::<T>();
        self.columns.push(Column { dtype: T::DTYPE, shape: shape.to_vec(), size, bytes });
        self.rows = counted;
        Ok(self)
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
        self.seed = Some(seed);
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
    /// Returns the number of batches per epoch.
    pub fn batches(&self) -> usize {
        let batch = self.batch.max(1);
        if self.drop_last { self.rows() / batch } else { self.rows().div_ceil(batch) }
    }
    /// Returns the batches of one epoch.
    pub fn epoch(&self, epoch: u64) -> Batches<&Loader> {
        Batches::new(self, epoch)
    }
    /// Returns the batches of all epochs, without end. A checkpoint can save its position.
    pub fn stream(&self) -> Stream<&Loader> {
        Stream::new(self)
    }
    /// The settings that decide the order of rows: number of rows, seed, rows of a batch.
    pub(super) fn order(&self) -> (usize, Option<u64>, usize) {
        (self.rows(), self.seed, self.batch)
    }
    /// Makes one column of the batch that consists of the given rows.
    fn tensor(&self, column: &Column, rows: &[usize]) -> Result<Tensor> {
        let ctx = current_rank()?;
        let mut shape = vec![rows.len()];
        shape.extend(&column.shape);
        let ty = intern_global(TensorType::new(&shape, column.dtype), &self.placement, &self.sbp);
        let Some(mine) = ty.box_of(ctx.rank()) else { return Ok(Tensor::from_shard(ty, None)) };
        let mut bytes = Vec::with_capacity(mine.size[0] * column.size);
        for row in &rows[mine.offset[0]..mine.offset[0] + mine.size[0]] {
            bytes.extend_from_slice(&column.bytes[row * column.size..][..column.size]);
        }
        let local = from_bytes(&ctx, &bytes, &mine.size, column.dtype, self.placement.device())?;
        Ok(Tensor::from_shard(ty, local.data()?))
    }
}

/// The batches of one epoch. Each batch has one global tensor per column, `[batch, shape…]`. `L` is a reference to the loader, or an `Arc`
/// where the batches are to outlive the place where they are made.
#[derive(Clone)]
pub struct Batches<L> {
    loader: L,
    order: Vec<usize>,
    next: usize,
}

impl<L: Deref<Target = Loader>> Batches<L> {
    /// Makes the batches of an epoch of the loader.
    pub fn new(loader: L, epoch: u64) -> Batches<L> {
        let order = match loader.seed {
            Some(seed) => permutation(loader.rows(), seed, epoch),
            None => (0..loader.rows()).collect(),
        };
        Batches { loader, order, next: 0 }
    }
    /// Skips `n` batches without making them.
    pub(super) fn leave_out(&mut self, n: usize) {
        self.next = self.next.saturating_add(n).min(self.loader.batches());
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
        let l = &*self.loader;
        if self.next == l.batches() {
            return None;
        }
        let start = self.next * l.batch;
        self.next += 1;
        let rows = &self.order[start..(start + l.batch).min(self.order.len())];
        Some(l.columns.iter().map(|c| l.tensor(c, rows)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Device;
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
