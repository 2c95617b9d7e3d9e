//! Where the elements of a call's operands lie, and the part of them that a chunk takes.

use super::{MOST, Walk};
use crate::cpu::copy::convert_run;
use crate::{Builtin, View};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::sync::atomic::AtomicBool;

/// Where the elements of the operands lie; operand 0 is the output.
pub(super) trait OperandWalk: Sync {
    /// Length of a row: elements that lie at one stride.
    fn inner(&self) -> usize;
    /// Whether there is one row only.
    fn single(&self) -> bool;
    /// Elements from one to the next within a row.
    fn inner_stride(&self, operand: usize) -> isize;
    /// The first element of a row.
    fn row_offset(&self, operand: usize, row: usize) -> isize;
    /// Whether the operand has one element, for all of the output's.
    fn repeats(&self, operand: usize) -> bool;
    /// Whether the operand's elements lie side by side, also from row to row.
    fn flat(&self, operand: usize) -> bool;
}

/// Every operand is contiguous, or one element that is repeated.
pub(super) struct Flat {
    n: usize,
    /// A bit for each input that is one element.
    pub(super) repeated: u64,
}

impl Flat {
    /// The operands where they lie so.
    pub(super) fn of(inputs: &[impl Borrow<View>], out: &View, n: usize) -> Option<Flat> {
        if !out.is_contiguous() || inputs.len() > u64::BITS as usize {
            return None;
        }
        let mut repeated = 0;
        for (i, v) in inputs.iter().enumerate() {
            let v = v.borrow();
            match v.dims().iter().eq(out.dims()) && v.is_contiguous() {
                true => {}
                false if v.len() == 1 && v.rank() <= out.rank() => repeated |= 1 << i,
                false => return None,
            }
        }
        Some(Flat { n, repeated })
    }
}

impl OperandWalk for Flat {
    fn inner(&self) -> usize {
        self.n
    }
    fn single(&self) -> bool {
        true
    }
    fn inner_stride(&self, operand: usize) -> isize {
        !(operand > 0 && self.repeats(operand)) as isize
    }
    fn row_offset(&self, _operand: usize, _row: usize) -> isize {
        0
    }
    fn repeats(&self, operand: usize) -> bool {
        self.repeated >> (operand - 1) & 1 == 1
    }
    fn flat(&self, operand: usize) -> bool {
        self.inner_stride(operand) == 1
    }
}

impl OperandWalk for Walk {
    fn inner(&self) -> usize {
        self.inner()
    }
    fn single(&self) -> bool {
        self.dims.len() == 1
    }
    fn inner_stride(&self, operand: usize) -> isize {
        self.inner_stride(operand)
    }
    fn row_offset(&self, operand: usize, row: usize) -> isize {
        self.row_offset(operand, row)
    }
    fn repeats(&self, operand: usize) -> bool {
        self.strides[operand].iter().all(|s| *s == 0)
    }
    fn flat(&self, operand: usize) -> bool {
        let mut step = 1;
        self.dims.iter().zip(&self.strides[operand]).rev().all(|(n, s)| {
            let here = *s == step;
            step *= *n as isize;
            here
        })
    }
}

/// Where the elements of a call lie: the output is operand 0, input `i` operand `i + 1`.
pub(super) struct Operands<'a, W> {
    pub(super) way: W,
    pub(super) ptrs: SmallVec<[*mut u8; MOST + 1]>,
    /// Set where integers are divided by 0.
    pub(super) zero: &'a AtomicBool,
}

// SAFETY: pointers of views, which promise that worker threads may use the memory; tasks write disjoint elements.
unsafe impl<W: Sync> Sync for Operands<'_, W> {}

impl<'a, W: OperandWalk> Operands<'a, W> {
    pub(super) fn new(way: W, inputs: &[impl Borrow<View>], out: &View, zero: &'a AtomicBool) -> Self {
        let mut ptrs = SmallVec::new();
        ptrs.push(out.ptr());
        for v in inputs {
            ptrs.push(v.borrow().ptr());
        }
        Operands { way, ptrs, zero }
    }
}

/// Elements of an operand: the address of the first, and what they are.
pub(super) type Elements = (*mut u8, Builtin);

/// `n` elements from element `at`, which is number `first` of row `row`.
pub(super) struct Chunk<'a, W> {
    pub(super) way: &'a W,
    /// Whether each operand's elements lie side by side, also from row to row.
    pub(super) flat: &'a [bool],
    pub(super) at: usize,
    pub(super) row: usize,
    pub(super) first: usize,
    pub(super) n: usize,
}

impl<W: OperandWalk> Chunk<'_, W> {
    /// The address of the chunk's elements where they lie side by side in the given dtype.
    pub(super) fn direct(&self, operand: usize, (base, have): Elements, dtype: Builtin) -> Option<*mut u8> {
        let (row, first) = (self.row, self.first);
        if have == dtype && self.flat[operand] {
            return Some(base.wrapping_add(self.at * dtype.size()));
        }
        if have != dtype || self.way.inner_stride(operand) != 1 || first + self.n > self.way.inner() {
            return None;
        }
        let offset = self.way.row_offset(operand, row) + first as isize;
        Some(base.wrapping_offset(offset * dtype.size() as isize))
    }

    /// Calls `f(address, stride, position in the chunk, count)` for the part of the chunk in each row.
    fn rows(&self, operand: usize, (base, dtype): Elements, mut f: impl FnMut(*mut u8, isize, usize, usize)) {
        if self.flat[operand] {
            return f(base.wrapping_add(self.at * dtype.size()), 1, 0, self.n);
        }
        let inner = self.way.inner();
        let stride = self.way.inner_stride(operand);
        let mut done = 0;
        while done < self.n {
            let (row, first) = ((self.at + done) / inner, (self.at + done) % inner);
            let count = (inner - first).min(self.n - done);
            let offset = self.way.row_offset(operand, row) + first as isize * stride;
            f(base.wrapping_offset(offset * dtype.size() as isize), stride, done, count);
            done += count;
        }
    }

    /// # Safety
    /// `to` has room for the chunk's elements as `dtype`.
    pub(super) unsafe fn gather(&self, operand: usize, from: Elements, to: *mut u8, dtype: Builtin) {
        self.rows(operand, from, |p, stride, done, count| {
            let to = to.wrapping_add(done * dtype.size());
            // SAFETY: the walk visits elements of the view; room is given.
            unsafe { convert_run(p, from.1, stride, to, dtype, 1, count) }
        });
    }

    /// # Safety
    /// `from` holds the chunk's elements as `dtype`; the view is an output.
    pub(super) unsafe fn scatter(&self, to: Elements, from: *const u8, dtype: Builtin) {
        self.rows(0, to, |p, stride, done, count| {
            let from = from.wrapping_add(done * dtype.size());
            // SAFETY: the walk visits elements of the view; the elements are given.
            unsafe { convert_run(from, dtype, 1, p, to.1, stride, count) }
        });
    }
}
