//! Reductions of what a program computes, which is not stored.

use super::fold::{self, Total};
use super::{Job, ROWS, Reduce, Source, run};
use crate::cpu::elementwise::{Computed, Line, Program, with_scratch};
use crate::{KernelError, Result, View};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// Reduces the result of a program over its last `last` dims. The result has `dims`, to which the inputs are broadcast; `out` has its rank with
/// size one in the reduced dims, and is contiguous. With `count` a sum is divided by it, as by [`mean`](super::mean).
///
/// The bits are those of [`Program::run`] and a reduction of what it stores.
///
/// # Errors
/// As of these two; where there are fewer dims, or `out` is not contiguous.
pub fn fused<V: Borrow<View>>(
    program: &Program,
    inputs: &[V],
    dims: &[usize],
    out: &View,
    op: Reduce,
    (last, count): (usize, Option<usize>),
) -> Result<()> {
    let Some(first) = dims.len().checked_sub(last).filter(|_| out.is_contiguous()) else {
        return Err(KernelError::new(format!("no fused reduction of {dims:?} over the last {last} dims")));
    };
    let zero = AtomicBool::new(false);
    let x = Computed::new(program, inputs, dims.into(), &zero)?;
    let reduced: SmallVec<[usize; 6]> = (first..dims.len()).collect();
    run(Source::Computed(&x), out, op, &reduced, count.map(|n| n as f64))?;
    x.checked()
}

thread_local! {
    /// Elements of a block, kept between calls.
    static ROOM: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Computes elements of a result, at most [`fold::BLOCK`], into room for as many.
fn compute(x: &Computed<'_>, elements: Range<usize>, room: *mut u8) -> *const u8 {
    debug_assert!(elements.len() <= fold::BLOCK);
    // SAFETY: the walks visit elements of the result; the room is large enough.
    unsafe { x.write(elements, room) };
    room
}

impl Job<'_> {
    /// As `fold_lines`, of elements that are computed, as many lines at a time as fit a block.
    pub(super) fn compute_lines<T: Total>(&self, x: &Computed<'_>, outputs: Range<usize>, count: usize) {
        let (inner, size) = (self.kept.inner(), x.dtype().size());
        let most = (fold::BLOCK / count).clamp(1, ROWS).min(outputs.len());
        with_scratch(&ROOM, most * count * size, |room: *mut u8| {
            let mut at = outputs.start;
            while at < outputs.end {
                let (row, first) = (at / inner, at % inner);
                let n = (inner - first).min(outputs.end - at).min(most);
                let start = self.offset(row, first) as usize;
                let base = compute(x, start..start + n * count, room);
                let starts: [*const u8; ROWS] = std::array::from_fn(|i| base.wrapping_add(i * count * size));
                let mut totals = [T::default(); ROWS];
                // SAFETY: the elements of these lines have been computed.
                unsafe { T::fold(self.op, self.dtypes[0], &starts[..n], 1, count, &mut totals[..n]) };
                self.store(row, first, &totals[..n]);
                at += n;
            }
        });
    }

    /// As `fold_one`, of elements that are computed block by block.
    pub(super) fn compute_one<T: Total>(
        &self,
        x: &Computed<'_>,
        row: usize,
        column: usize,
        elements: Range<usize>,
    ) -> T {
        let (start, most) = (self.offset(row, column) as usize, elements.len().min(fold::BLOCK));
        let mut total = T::identity(self.op);
        with_scratch(&ROOM, most * x.dtype().size(), |room: *mut u8| {
            for first in elements.clone().step_by(fold::BLOCK) {
                let n = fold::BLOCK.min(elements.end - first);
                let base = compute(x, start + first..start + first + n, room);
                let mut part = [T::default()];
                // SAFETY: the elements of the block have been computed.
                unsafe { T::fold(self.op, self.dtypes[0], &[base], 1, n, &mut part) };
                total = T::join(self.op, total, part[0]);
            }
        });
        total
    }
}
