//! Kernels over batches: matrices are read from inputs of any strides into memory by columns, computed one by one, and written to
//! contiguous outputs. The matrices of a batch are spread over the threads of the rank.

use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::traits::RealField;
use num_traits::Float;
use oflow::kernels::parallel::parallel_for;
use oflow::kernels::{Element, View};
use oflow::ops::KernelCx;
use oflow::prelude::*;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

/// f32 and f64.
pub(crate) trait Real: RealField + Element + Float {
    /// The same number in double precision.
    fn wide(self) -> f64;
    /// The number, rounded.
    fn rounded(x: f64) -> Self;
}
impl Real for f32 {
    fn wide(self) -> f64 {
        f64::from(self)
    }
    fn rounded(x: f64) -> f32 {
        x as f32
    }
}
impl Real for f64 {
    fn wide(self) -> f64 {
        self
    }
    fn rounded(x: f64) -> f64 {
        x
    }
}

/// Runs a generic kernel in the dtype of input 0.
macro_rules! with_real {
    ($cx:expr, $kernel:ident) => {
        match $cx.input(0)?.dtype() {
            DType::F64 => $kernel::<f64>($cx),
            _ => $kernel::<f32>($cx),
        }
    };
}
pub(crate) use with_real;

/// Why a matrix is not computed.
pub(crate) enum Wrong {
    /// Fault of the matrix, in words that follow "the matrix": "is singular".
    Matrix(String),
    /// An error that is not the fault of the matrix.
    Other(Error),
}

impl From<String> for Wrong {
    fn from(why: String) -> Wrong {
        Wrong::Matrix(why)
    }
}

impl From<Error> for Wrong {
    fn from(e: Error) -> Wrong {
        Wrong::Other(e)
    }
}

fn no_memory(bytes: usize) -> Error {
    Error::memory(format!("out of memory: one matrix needs {bytes} bytes to be computed"))
}

/// An empty vector with room for `count` numbers.
///
/// # Errors
/// There is no memory. A view of few numbers may be a matrix larger than the memory.
pub(crate) fn room<T>(count: usize) -> Result<Vec<T>> {
    let mut v = vec![];
    match v.try_reserve_exact(count) {
        Ok(()) => Ok(v),
        Err(_) => Err(no_memory(count.saturating_mul(size_of::<T>()))),
    }
}

/// `count` zeros.
///
/// # Errors
/// As [`room`].
pub(crate) fn zeros<T: Float>(count: usize) -> Result<Vec<T>> {
    let mut v = room(count)?;
    v.resize(count, T::zero());
    Ok(v)
}

/// The matrices of an input.
pub(crate) struct Source<'a, T> {
    view: &'a View,
    /// Sizes and strides of the batch that is computed; 0 where the input repeats.
    batch: Vec<(usize, isize)>,
    /// Rows and columns, with their strides.
    rows: (usize, isize),
    columns: (usize, isize),
    /// Of each matrix the lower triangle counts twice.
    mirrored: bool,
    of: PhantomData<T>,
}

impl<'a, T: Real> Source<'a, T> {
    /// The matrices of a view, whose batch dims broadcast to `batch`. With `vectors` each vector of the last dim is a matrix of one
    /// column.
    pub(crate) fn new(view: &'a View, batch: &[usize], vectors: bool) -> Result<Source<'a, T>> {
        let own = if vectors { 1 } else { 2 };
        let dims = || view.dims().iter().copied().zip(view.strides().iter().copied());
        let lead = view.rank().checked_sub(own).filter(|lead| *lead <= batch.len() && view.dtype() == T::DTYPE);
        let lead = lead.ok_or_else(|| Error::shape(format!("a kernel was given {:?} for {batch:?}", view.dims())))?;
        let missing = batch.len() - lead;
        let strides = (0..missing).map(|_| 0).chain(dims().take(lead).map(|(n, s)| if n == 1 { 0 } else { s }));
        let batch = batch.iter().copied().zip(strides).collect();
        let of: Vec<(usize, isize)> = dims().skip(lead).collect();
        Ok(Source {
            view,
            batch,
            rows: of[0],
            columns: of.get(1).copied().unwrap_or((1, 1)),
            mirrored: false,
            of: PhantomData,
        })
    }

    /// The same matrices, transposed.
    pub(crate) fn transposed(self, if_so: bool) -> Source<'a, T> {
        match if_so {
            true => Source { rows: self.columns, columns: self.rows, ..self },
            false => self,
        }
    }

    /// The symmetric matrices whose lower triangles these have; they are square.
    pub(crate) fn mirrored(self, if_so: bool) -> Source<'a, T> {
        Source { mirrored: if_so, ..self }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.0
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns.0
    }

    /// Room for one matrix, for [`read`](Source::read).
    pub(crate) fn room(&self) -> Result<Vec<T>> {
        room(self.rows.0 * self.columns.0)
    }

    /// Matrix `index` of the batch, by columns.
    pub(crate) fn read(&self, mut index: usize, into: &mut Vec<T>) {
        let mut at = 0;
        for (n, stride) in self.batch.iter().rev() {
            at += (index % n) as isize * stride;
            index /= n;
        }
        let ((rows, down), (columns, along)) = (self.rows, self.columns);
        into.clear();
        let first = self.view.ptr() as *const T;
        // A few columns at a time, so that the lines of a matrix that lies by rows are read once.
        const TILE: usize = 16;
        for c0 in (0..columns).step_by(TILE) {
            let c1 = columns.min(c0 + TILE);
            into.resize(rows * c1, T::zero());
            for r in 0..rows {
                for c in c0..c1 {
                    // SAFETY: an element of the view, which has dtype T (checked in `new`) and is live while the kernel runs.
                    into[c * rows + r] = unsafe { *first.offset(at + r as isize * down + c as isize * along) };
                }
            }
        }
        for c in 0..if self.mirrored { columns } else { 0 } {
            for r in 0..c {
                into[c * rows + r] = into[r * rows + c];
            }
        }
    }
}

/// The parts of an output that belong to the matrices of a batch.
struct Sink<'a, T> {
    first: *mut T,
    each: usize,
    count: usize,
    of: PhantomData<&'a View>,
}

// SAFETY: a sink is a pointer into an output of the call; its parts do not overlap, and `part` asks that each has one user.
unsafe impl<T: Send> Send for Sink<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Sink<'_, T> {}

impl<'a, T: Element> Sink<'a, T> {
    /// The output in `count` equal parts.
    fn new(view: &'a View, count: usize) -> Result<Sink<'a, T>> {
        if view.dtype() != T::DTYPE || !view.is_contiguous() || (count > 0 && !view.len().is_multiple_of(count)) {
            return Err(Error::shape(format!("a kernel was given an output {:?} for {count} matrices", view.dims())));
        }
        Ok(Sink { first: view.ptr() as *mut T, each: view.len() / count.max(1), count, of: PhantomData })
    }

    /// The part of matrix `index`.
    ///
    /// # Safety
    /// No other slice of this part is alive.
    #[allow(clippy::mut_from_ref)]
    unsafe fn part(&self, index: usize) -> &mut [T] {
        assert!(index < self.count);
        // SAFETY: inside the output (`new` divides its length), typed and live while the kernel runs, exclusive by the contract.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(index * self.each), self.each) }
    }
}

/// Writes a matrix that lies by columns into a row-major part of an output.
pub(crate) fn by_rows<T: Copy>(columns: usize, part: &mut [T], at: impl Fn(usize, usize) -> T) {
    if columns > 0 {
        for (r, row) in part.chunks_exact_mut(columns).enumerate() {
            row.iter_mut().enumerate().for_each(|(c, y)| *y = at(r, c));
        }
    }
}

/// Computes the matrices of a batch on the threads of the rank: calls `f` for each with its parts of outputs 0 to N - 1, whose leading dims
/// are the batch, and with a workspace that `make` makes once for several matrices. The product of `work` is about the count of operations
/// of a matrix.
///
/// # Errors
/// Of the matrices that were not computed the first one is named, if it is its fault.
pub(crate) fn each<T: Element, W, const N: usize>(
    cx: &KernelCx<'_>,
    batch: &[usize],
    work: &[usize],
    make: impl Fn() -> Result<W> + Sync,
    f: impl Fn(&mut W, usize, [&mut [T]; N]) -> Result<(), Wrong> + Sync,
) -> Result<()> {
    const GRAIN: usize = 1 << 17;
    let count: usize = batch.iter().product();
    let sinks = (0..N).map(|k| Sink::<T>::new(cx.output(k), count)).collect::<Result<Vec<_>>>()?;
    let work = work.iter().fold(1, |product: usize, n| product.saturating_mul(*n));
    let first_wrong: Mutex<Option<(usize, Wrong)>> = Mutex::new(None);
    parallel_for(count, (GRAIN / work.max(1)).max(1), &|range| {
        let wrong = |i: usize, why: Wrong| {
            let mut first = first_wrong.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|(k, _)| i < *k) {
                *first = Some((i, why));
            }
        };
        let mut w = match make() {
            Ok(w) => w,
            Err(e) => return wrong(range.start, e.into()),
        };
        for i in range {
            // SAFETY: the ranges do not overlap, so this is the one call for matrix i.
            let parts = std::array::from_fn(|k| unsafe { sinks[k].part(i) });
            if let Err(why) = f(&mut w, i, parts) {
                return wrong(i, why);
            }
        }
    });
    let (mut i, why) = match first_wrong.into_inner().unwrap_or_else(PoisonError::into_inner) {
        None => return Ok(()),
        Some((_, Wrong::Other(e))) => return Err(e),
        Some((_, Wrong::Matrix(why))) if batch.is_empty() => return Err(Error::value(format!("the matrix {why}"))),
        Some((i, Wrong::Matrix(why))) => (i, why),
    };
    // The index in the whole tensor, of which this rank has a shard.
    let mut index = vec![0; batch.len()];
    for d in (0..batch.len()).rev() {
        index[d] = i % batch[d] + cx.output_box(0).offset[d];
        i /= batch[d];
    }
    Err(Error::value(format!("matrix {index:?} of the batch {why}")))
}

/// Sizes of the batch of an input of matrices, as this rank has it.
pub(crate) fn batch_of<'a>(cx: &'a KernelCx<'_>) -> Result<&'a [usize]> {
    let dims = cx.input(0)?.dims();
    Ok(&dims[..dims.len().saturating_sub(2)])
}

/// Memory for what faer needs besides its arguments.
pub(crate) struct Scratch(MemBuffer);

impl Scratch {
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn new(need: StackReq) -> Result<Scratch> {
        let made = MemBuffer::try_new(need);
        made.map(Scratch).map_err(|_| no_memory(need.unaligned_bytes_required()))
    }
    pub(crate) fn stack(&mut self) -> &mut MemStack {
        MemStack::new(&mut self.0)
    }
}

/// Whether all elements are finite.
pub(crate) fn finite<T: Float>(x: &[T]) -> bool {
    x.iter().all(|x| x.is_finite())
}
