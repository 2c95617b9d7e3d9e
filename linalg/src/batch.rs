//! Kernels over batches: matrices are read from inputs of any strides into memory by columns, computed one by one, and written to
//! contiguous outputs. The matrices of a batch are spread over the threads of the rank.

use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::traits::ComplexField;
use num_traits::{NumAssign, Zero};
use oflow::kernels::parallel::parallel_for;
use oflow::kernels::{Complex, Element, View};
use oflow::ops::KernelCx;
use oflow::prelude::*;
use std::marker::PhantomData;
use std::ops::Neg;
use std::sync::{Mutex, PoisonError};

/// The numbers that kernels compute with: f32, f64, and c128, which stands for complex numbers of both sizes.
pub(crate) trait Field: ComplexField + Element + NumAssign + Neg<Output = Self> {
    /// A narrower element type that inputs and outputs may have: numbers are converted as they are read and written.
    type Narrow: Element;
    /// The narrower number.
    fn widened(x: Self::Narrow) -> Self;
    /// A real number, rounded.
    fn real(x: f64) -> Self;
    /// The real and the imaginary part.
    fn parts(self) -> (f64, f64);
    /// The complex conjugate.
    fn conjugate(self) -> Self;
    /// The number without its imaginary part.
    fn real_part(self) -> Self;
    /// The absolute value.
    fn size(self) -> f64 {
        let (re, im) = self.parts();
        if im == 0.0 { re.abs() } else { re.hypot(im) }
    }
    /// The sum of the absolute values of the parts, by which LAPACK compares pivots.
    fn size_of_parts(self) -> f64 {
        let (re, im) = self.parts();
        re.abs() + im.abs()
    }
    /// Of absolute value 1 in the direction of this number; 1 of zero.
    fn direction(self) -> Self {
        match self.size() {
            0.0 => Self::one(),
            size => self / Self::real(size),
        }
    }
    /// Whether both parts are finite.
    fn is_finite(self) -> bool {
        let (re, im) = self.parts();
        re.is_finite() && im.is_finite()
    }
}

macro_rules! real_field {
    ($t:ty, $narrow:ty) => {
        impl Field for $t {
            type Narrow = $narrow;
            fn widened(x: $narrow) -> $t {
                <$t>::from(x)
            }
            fn real(x: f64) -> $t {
                x as $t
            }
            fn parts(self) -> (f64, f64) {
                (f64::from(self), 0.0)
            }
            fn conjugate(self) -> $t {
                self
            }
            fn real_part(self) -> $t {
                self
            }
        }
    };
}
real_field!(f32, f32);
real_field!(f64, f32);

impl Field for Complex<f64> {
    type Narrow = Complex<f32>;
    fn widened(x: Complex<f32>) -> Complex<f64> {
        Complex::new(x.re.into(), x.im.into())
    }
    fn real(x: f64) -> Complex<f64> {
        x.into()
    }
    fn parts(self) -> (f64, f64) {
        (self.re, self.im)
    }
    fn conjugate(self) -> Complex<f64> {
        self.conj()
    }
    fn real_part(self) -> Complex<f64> {
        self.re.into()
    }
}

/// Runs a generic kernel in the dtype of input 0, complex numbers in double precision.
macro_rules! with_field {
    ($cx:expr, $kernel:ident) => {
        match $cx.input(0)?.dtype() {
            DType::F64 => $kernel::<f64>($cx),
            DType::F32 => $kernel::<f32>($cx),
            _ => $kernel::<oflow::kernels::Complex<f64>>($cx),
        }
    };
}
pub(crate) use with_field;

/// Runs a generic kernel in double precision.
macro_rules! with_wide {
    ($cx:expr, $kernel:ident) => {
        match $cx.input(0)?.dtype().is_complex() {
            false => $kernel::<f64>($cx),
            true => $kernel::<oflow::kernels::Complex<f64>>($cx),
        }
    };
}
pub(crate) use with_wide;

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
pub(crate) fn zeros<T: Copy + Zero>(count: usize) -> Result<Vec<T>> {
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
    /// Of each matrix the lower triangle counts twice, conjugated where it stands for the upper one.
    mirrored: bool,
    of: PhantomData<T>,
}

impl<'a, T: Field> Source<'a, T> {
    /// The matrices of a view, whose batch dims broadcast to `batch`. With `vectors` each vector of the last dim is a matrix of one
    /// column.
    pub(crate) fn new(view: &'a View, batch: &[usize], vectors: bool) -> Result<Source<'a, T>> {
        let own = if vectors { 1 } else { 2 };
        let dims = || view.dims().iter().copied().zip(view.strides().iter().copied());
        let lead = view
            .rank()
            .checked_sub(own)
            .filter(|lead| *lead <= batch.len() && [T::DTYPE, T::Narrow::DTYPE].contains(&view.dtype()));
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

    /// The symmetric or Hermitian matrices whose lower triangles these have; they are square.
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
        into.clear();
        match self.view.dtype() == T::DTYPE {
            true => self.copy(at, into, |x: T| x),
            false => self.copy(at, into, T::widened),
        }
        let rows = self.rows.0;
        if self.mirrored {
            real_diagonal(rows, into);
            for c in 0..self.columns.0 {
                for r in 0..c {
                    into[c * rows + r] = into[r * rows + c].conjugate();
                }
            }
        }
    }

    /// Appends the matrix whose first element is the `at`-th of the view. S is the dtype of the view.
    fn copy<S: Element>(&self, at: isize, into: &mut Vec<T>, convert: impl Fn(S) -> T) {
        assert!(self.view.dtype() == S::DTYPE);
        let ((rows, down), (columns, along)) = (self.rows, self.columns);
        let first = self.view.ptr() as *const S;
        // A few columns at a time, so that the lines of a matrix that lies by rows are read once.
        const TILE: usize = 16;
        for c0 in (0..columns).step_by(TILE) {
            let c1 = columns.min(c0 + TILE);
            into.resize(rows * c1, T::zero());
            for r in 0..rows {
                for c in c0..c1 {
                    // SAFETY: an element of the view, which has dtype S and is live while the kernel runs.
                    into[c * rows + r] = convert(unsafe { *first.offset(at + r as isize * down + c as isize * along) });
                }
            }
        }
    }
}

/// Leaves the imaginary parts of the diagonal of Hermitian matrices of n rows out, which count as zero.
pub(crate) fn real_diagonal<T: Field>(n: usize, matrix: &mut [T]) {
    matrix.iter_mut().step_by(n + 1).for_each(|x| *x = T::real_part(*x));
}

/// The parts of an output that belong to the matrices of a batch.
struct Sink<'a> {
    first: *mut u8,
    dtype: DType,
    each: usize,
    count: usize,
    of: PhantomData<&'a View>,
}

// SAFETY: a sink is a pointer into an output of the call; its parts do not overlap, and `part` asks that each has one user.
unsafe impl Send for Sink<'_> {}
// SAFETY: as above.
unsafe impl Sync for Sink<'_> {}

impl<'a> Sink<'a> {
    /// The output in `count` equal parts.
    fn new(view: &'a View, count: usize) -> Result<Sink<'a>> {
        if !view.is_contiguous() || (count > 0 && !view.len().is_multiple_of(count)) {
            return Err(Error::shape(format!("a kernel was given an output {:?} for {count} matrices", view.dims())));
        }
        let each = view.len() / count.max(1);
        Ok(Sink { first: view.ptr(), dtype: view.dtype(), each, count, of: PhantomData })
    }

    /// The part of matrix `index`.
    ///
    /// # Safety
    /// No other slice of this part is alive.
    #[allow(clippy::mut_from_ref)]
    unsafe fn part<S: Element>(&self, index: usize) -> &mut [S] {
        assert!(index < self.count && self.dtype == S::DTYPE);
        // SAFETY: inside the output (`new` divides its length), typed and live while the kernel runs, exclusive by the contract.
        unsafe { std::slice::from_raw_parts_mut((self.first as *mut S).add(index * self.each), self.each) }
    }

    /// Writes the part of matrix `index` in another dtype than that of the kernel: narrower, or the real parts, or integers.
    ///
    /// # Errors
    /// No kernel writes this dtype.
    ///
    /// # Safety
    /// No slice of this part is alive.
    unsafe fn store<T: Field>(&self, index: usize, values: &[T]) -> Result<()> {
        fn to<S, T: Field>(part: &mut [S], values: &[T], convert: impl Fn((f64, f64)) -> S) {
            part.iter_mut().zip(values).for_each(|(y, x)| *y = convert(x.parts()));
        }
        // SAFETY: by the contract of this function.
        unsafe {
            match self.dtype {
                DType::F32 => to(self.part::<f32>(index), values, |(re, _)| re as f32),
                DType::F64 => to(self.part::<f64>(index), values, |(re, _)| re),
                DType::C64 => to(self.part(index), values, |(re, im)| Complex::new(re as f32, im as f32)),
                DType::C128 => to(self.part(index), values, |(re, im)| Complex::new(re, im)),
                DType::I32 => to(self.part::<i32>(index), values, |(re, _)| re as i32),
                other => return Err(Error::dtype(format!("a kernel was given an output of {other}"))),
            }
        }
        Ok(())
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
/// are the batch, and with a workspace that `make` makes once for several matrices. Parts are of the kernel's numbers, whatever the dtype of
/// the output, which takes the real parts where it is real. The product of `work` is about the count of operations of a matrix.
///
/// # Errors
/// Of the matrices that were not computed the first one is named, if it is its fault.
pub(crate) fn each<T: Field, W, const N: usize>(
    cx: &KernelCx<'_>,
    batch: &[usize],
    work: &[usize],
    make: impl Fn() -> Result<W> + Sync,
    f: impl Fn(&mut W, usize, [&mut [T]; N]) -> Result<(), Wrong> + Sync,
) -> Result<()> {
    const GRAIN: usize = 1 << 17;
    let count: usize = batch.iter().product();
    let sinks = (0..N).map(|k| Sink::new(cx.output(k), count)).collect::<Result<Vec<_>>>()?;
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
        let direct = |k: usize| sinks[k].dtype == T::DTYPE;
        let rooms = (0..N).map(|k| if direct(k) { Ok(vec![]) } else { zeros(sinks[k].each) });
        let mut rooms = match rooms.collect::<Result<Vec<Vec<T>>>>() {
            Ok(rooms) => rooms.into_iter(),
            Err(e) => return wrong(range.start, e.into()),
        };
        let mut converted: [Vec<T>; N] = std::array::from_fn(|_| rooms.next().unwrap_or_default());
        for i in range {
            let mut k = 0;
            let parts = converted.each_mut().map(|room| {
                k += 1;
                match direct(k - 1) {
                    // SAFETY: the ranges do not overlap, so this is the one call for matrix i.
                    true => unsafe { sinks[k - 1].part::<T>(i) },
                    false => &mut room[..],
                }
            });
            if let Err(why) = f(&mut w, i, parts) {
                return wrong(i, why);
            }
            for k in (0..N).filter(|k| !direct(*k)) {
                // SAFETY: as above; the slices that `f` was given are gone.
                if let Err(e) = unsafe { sinks[k].store(i, &converted[k]) } {
                    return wrong(i, e.into());
                }
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

/// Sizes of the batch of input 0, of matrices, as this rank has it.
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
pub(crate) fn finite<T: Field>(x: &[T]) -> bool {
    x.iter().all(|x| Field::is_finite(*x))
}
