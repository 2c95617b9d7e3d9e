//! A view as a list of rows: what kernels that work along one dim, or along the trailing dims, loop over.
//!
//! A row that lies side by side in memory, in the type the kernel computes in, is used in place. Any other row is gathered
//! and widened into a buffer, and rounded and scattered back.

use smallvec::SmallVec;
use std::cell::RefCell;

use super::acc::{Acc, acc_dtype, load, store};
use super::bundle;
use crate::parallel::GRAIN;
use crate::{DType, KernelError, Result, View};

type DimList = SmallVec<[(usize, isize); 4]>;

/// The rows of a view.
pub(crate) struct Rows {
    ptr: *mut u8,
    dtype: DType,
    /// Sizes and strides of the dims that number the rows, neighbours merged.
    outer: DimList,
    /// Sizes and strides of the dims inside a row, neighbours merged.
    inner: DimList,
    /// Number of rows.
    pub(crate) count: usize,
    /// Elements of a row.
    pub(crate) len: usize,
}

// SAFETY: a pointer with a description made from a `View`, which promises that worker threads may use the memory.
unsafe impl Send for Rows {}
// SAFETY: as above.
unsafe impl Sync for Rows {}

impl Rows {
    /// The rows along dim `dim`, numbered by all other dims in order.
    pub(crate) fn along(view: &View, dim: usize) -> Rows {
        Self::new(view, |d| d == dim)
    }

    /// The rows made of the last `dims` dims.
    pub(crate) fn trailing(view: &View, dims: usize) -> Rows {
        let first = view.rank() - dims;
        Self::new(view, |d| d >= first)
    }

    /// Every element a row of its own.
    pub(crate) fn singles(view: &View) -> Rows {
        Self::new(view, |_| false)
    }

    fn new(view: &View, inside: impl Fn(usize) -> bool) -> Rows {
        let (mut outer, mut inner) = (DimList::new(), DimList::new());
        let (mut count, mut len) = (1, 1);
        for d in 0..view.rank() {
            let (size, stride) = (view.dims()[d], view.strides()[d]);
            let (list, total) = if inside(d) { (&mut inner, &mut len) } else { (&mut outer, &mut count) };
            *total *= size;
            if size == 1 {
                continue;
            }
            match list.last_mut() {
                Some(last) if last.1 == stride * size as isize => *last = (last.0 * size, stride),
                _ => list.push((size, stride)),
            }
        }
        if inner.is_empty() {
            inner.push((len, 1));
        }
        Rows { ptr: view.ptr(), dtype: view.dtype(), outer, inner, count, len }
    }

    /// How many rows a thread should take at a time.
    pub(crate) fn grain(&self) -> usize {
        (GRAIN / 2 / self.len.max(1)).max(1)
    }

    /// Address of the first element of a row.
    pub(crate) fn start(&self, row: usize) -> *mut u8 {
        let (mut rest, mut offset) = (row, 0);
        for (size, stride) in self.outer.iter().rev() {
            offset += (rest % size) as isize * stride;
            rest /= size;
        }
        self.ptr.wrapping_offset(offset * self.dtype.size() as isize)
    }

    /// The distance between the elements of a row, where it is constant.
    pub(crate) fn stride(&self) -> Option<isize> {
        if self.inner.len() == 1 { Some(self.inner[0].1) } else { None }
    }

    /// True where `count` rows from `first` start one element apart each, and a row has one constant stride.
    pub(crate) fn neighbours(&self, first: usize, count: usize) -> bool {
        match self.outer.last() {
            Some((size, 1)) => first % size + count <= *size && self.inner.len() == 1,
            _ => false,
        }
    }

    /// Reads all elements of `L` neighbouring rows from `first`: element `c` of row `l` to `[c][l]`.
    ///
    /// # Safety
    /// As [`Rows::read`] for these rows, which are [`Rows::neighbours`]; `to` has an array for each element of a row.
    pub(crate) unsafe fn read_across<A: Acc, const L: usize>(&self, first: usize, to: &mut [[A; L]]) {
        let step = self.inner[0].1 * self.dtype.size() as isize;
        let mut p = self.start(first);
        for to in to {
            // SAFETY: elements that lie side by side, by the contract of this function.
            unsafe {
                match self.dtype == A::DTYPE {
                    true => *to = p.cast::<[A; L]>().read_unaligned(),
                    false => load(self.dtype, p, 1, to),
                }
            }
            p = p.wrapping_offset(step);
        }
    }

    /// Writes what [`Rows::read_across`] reads.
    ///
    /// # Safety
    /// As [`Rows::write`] for these rows, which are [`Rows::neighbours`]; `from` has an array for each element of a row.
    pub(crate) unsafe fn write_across<A: Acc, const L: usize>(&self, first: usize, from: &[[A; L]]) {
        let step = self.inner[0].1 * self.dtype.size() as isize;
        let mut p = self.start(first);
        for from in from {
            // SAFETY: elements that lie side by side, by the contract of this function.
            unsafe {
                match self.dtype == A::DTYPE {
                    true => p.cast::<[A; L]>().write_unaligned(*from),
                    false => store(self.dtype, p, 1, from),
                }
            }
            p = p.wrapping_offset(step);
        }
    }

    fn in_place<A: Acc>(&self) -> bool {
        self.dtype == A::DTYPE && self.inner.len() == 1 && (self.inner[0].1 == 1 || self.len == 1)
    }

    /// Calls `f` with each run of elements a constant stride apart: address, stride and the range within the row.
    fn runs(&self, row: usize, mut f: impl FnMut(*mut u8, isize, std::ops::Range<usize>)) {
        let (last, before) = self.inner.split_last().expect("inner has at least one dim");
        let mut done = 0;
        while done < self.len {
            let (mut rest, mut offset) = (done / last.0, 0);
            for (size, stride) in before.iter().rev() {
                offset += (rest % size) as isize * stride;
                rest /= size;
            }
            let ptr = self.start(row).wrapping_offset(offset * self.dtype.size() as isize);
            f(ptr, last.1, done..done + last.0);
            done += last.0;
        }
    }

    /// Reads a row: in place where it lies as needed, else through `buffer`.
    ///
    /// # Safety
    /// `row < count`; nobody writes the row while the result lives; the dtype is a float.
    pub(crate) unsafe fn read<'a, A: Acc>(&self, row: usize, buffer: &'a mut Vec<A>) -> &'a [A] {
        if self.in_place::<A>() && self.len > 0 {
            // SAFETY: the row's elements lie side by side and have type A.
            return unsafe { std::slice::from_raw_parts(self.start(row) as *const A, self.len) };
        }
        buffer.resize(self.len, A::ZERO);
        // SAFETY: runs are parts of the row.
        self.runs(row, |ptr, stride, range| unsafe { load(self.dtype, ptr, stride, &mut buffer[range]) });
        &buffer[..self.len]
    }

    /// Lets `f` write a row. What `f` is given holds no meaningful values before.
    ///
    /// # Safety
    /// `row < count`; nobody else touches the row; the dtype is a float.
    pub(crate) unsafe fn write<A: Acc>(&self, row: usize, buffer: &mut Vec<A>, f: impl FnOnce(&mut [A])) {
        if self.in_place::<A>() && self.len > 0 {
            // SAFETY: the row's elements lie side by side, have type A and are ours alone.
            return f(unsafe { std::slice::from_raw_parts_mut(self.start(row) as *mut A, self.len) });
        }
        buffer.resize(self.len, A::ZERO);
        f(&mut buffer[..self.len]);
        // SAFETY: runs are parts of the row.
        self.runs(row, |ptr, stride, range| unsafe { store(self.dtype, ptr, stride, &buffer[range]) });
    }

    /// Lets `f` change a row.
    ///
    /// # Safety
    /// As [`Rows::write`].
    pub(crate) unsafe fn update<A: Acc>(&self, row: usize, buffer: &mut Vec<A>, f: impl FnOnce(&mut [A])) {
        if !self.in_place::<A>() {
            // SAFETY: the caller's promise.
            unsafe { self.read(row, buffer) };
        }
        // SAFETY: the caller's promise. Through the buffer, `write` hands out what was just read into it.
        unsafe { self.write(row, buffer, f) }
    }

    /// Reads element `index` of a row made along one dim.
    ///
    /// # Safety
    /// As [`Rows::read`]; `index < len`.
    pub(crate) unsafe fn get_at<A: Acc>(&self, row: usize, index: usize) -> A {
        let offset = index as isize * self.inner[0].1 * self.dtype.size() as isize;
        let mut value = [A::ZERO];
        // SAFETY: an element of the row.
        unsafe { load(self.dtype, self.start(row).wrapping_offset(offset), 1, &mut value) };
        value[0]
    }

    /// Reads the only element of row `row` (for rows of length one).
    ///
    /// # Safety
    /// As [`Rows::read`].
    pub(crate) unsafe fn get<A: Acc>(&self, row: usize) -> A {
        let mut value = [A::ZERO];
        // SAFETY: the row's first element.
        unsafe { load(self.dtype, self.start(row), 1, &mut value) };
        value[0]
    }

    /// Writes the only element of row `row` (for rows of length one).
    ///
    /// # Safety
    /// As [`Rows::write`].
    pub(crate) unsafe fn set<A: Acc>(&self, row: usize, value: A) {
        // SAFETY: the row's first element.
        unsafe { store(self.dtype, self.start(row), 1, &[value]) };
    }

    /// Reads the only element of row `row` of an i64 view.
    ///
    /// # Safety
    /// As [`Rows::read`], but the dtype is i64.
    pub(crate) unsafe fn get_i64(&self, row: usize) -> i64 {
        // SAFETY: the row's first element.
        unsafe { *(self.start(row) as *const i64) }
    }
}

/// Row buffers of one thread, one for each operand that may need widening.
#[derive(Default)]
pub(crate) struct Buffers<A> {
    pub(crate) a: Vec<A>,
    pub(crate) b: Vec<A>,
    pub(crate) c: Vec<A>,
    pub(crate) d: Vec<A>,
    pub(crate) more: [Vec<A>; 8],
    pub(crate) bundles: [Vec<[A; bundle::LANES]>; 2],
}

thread_local! {
    static BUFFERS_F32: RefCell<Buffers<f32>> = RefCell::default();
    static BUFFERS_F64: RefCell<Buffers<f64>> = RefCell::default();
}

/// Types that have row buffers.
pub(crate) trait Buffered: Acc {
    /// Lends this thread's buffers. `f` must not use more threads.
    fn with_buffers<R>(f: impl FnOnce(&mut Buffers<Self>) -> R) -> R;
}

impl Buffered for f32 {
    fn with_buffers<R>(f: impl FnOnce(&mut Buffers<f32>) -> R) -> R {
        BUFFERS_F32.with_borrow_mut(f)
    }
}

impl Buffered for f64 {
    fn with_buffers<R>(f: impl FnOnce(&mut Buffers<f64>) -> R) -> R {
        BUFFERS_F64.with_borrow_mut(f)
    }
}

/// Checks that a view has these dims.
pub(crate) fn check_dims(what: &str, view: &View, dims: &[usize]) -> Result<()> {
    if view.dims() == dims {
        return Ok(());
    }
    Err(KernelError::new(format!("{what} has dims {:?}, expected {dims:?}", view.dims())))
}

/// Checks that a view has this dtype.
pub(crate) fn check_dtype(what: &str, view: &View, dtype: DType) -> Result<()> {
    if view.dtype() == dtype {
        return Ok(());
    }
    Err(KernelError::new(format!("{what} is {}, expected {dtype}", view.dtype())))
}

/// Checks that a view has a float dtype.
pub(crate) fn check_float(what: &str, view: &View) -> Result<()> {
    if view.dtype().is_float() {
        return Ok(());
    }
    Err(KernelError::new(format!("{what} is {}, expected a float dtype", view.dtype())))
}

/// Checks what a norm takes and gives: `same` are like x, `statistics` have the dims given with them, `parameters` likewise, those that
/// there are; all are contiguous.
pub(crate) fn check_norm(
    x: &View,
    same: &[(&str, &View)],
    (statistics, of_rows): (&[(&str, &View)], &[usize]),
    (parameters, of_channels): (&[(&str, Option<&View>)], &[usize]),
) -> Result<()> {
    check_float("x", x)?;
    for (what, view) in same {
        check_dims(what, view, x.dims())?;
        check_dtype(what, view, x.dtype())?;
    }
    for (what, view) in statistics {
        check_dims(what, view, of_rows)?;
        check_dtype(what, view, acc_dtype(x.dtype())?)?;
    }
    for (what, view) in parameters {
        if let Some(view) = view {
            check_dims(what, view, of_channels)?;
            check_float(what, view)?;
        }
    }
    let all = same.iter().chain(statistics).map(|(_, v)| *v).chain([x]);
    match all.chain(parameters.iter().filter_map(|(_, v)| *v)).all(|v| v.is_contiguous()) {
        true => Ok(()),
        false => Err(KernelError::new("a tensor is not contiguous")),
    }
}

/// Checks that a view has a dim of this number.
pub(crate) fn check_dim(view: &View, dim: usize) -> Result<()> {
    if dim < view.rank() {
        return Ok(());
    }
    Err(KernelError::new(format!("dim {dim} is out of range for {:?}", view.dims())))
}
