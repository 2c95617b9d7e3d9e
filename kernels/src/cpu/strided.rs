//! Iterates over several strided views of the same dims.

use crate::{Dims, KernelError, Result, Strides, View};
use smallvec::{SmallVec, smallvec};

/// The dims after merging neighbours, with the strides of each operand in elements.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Merged sizes, outermost first; at least one dim.
    pub dims: Dims,
    /// Strides per operand.
    pub strides: SmallVec<[Strides; 4]>,
}

impl Walk {
    /// Makes the walk over all elements of `dims`. Dims of size one are dropped, and neighbouring dims without a gap in every
    /// operand are merged. With `reorder`, dims are first sorted so that operand 0 is read forwards in memory; otherwise the
    /// order of elements is the logical one.
    pub fn new(dims: &[usize], operands: &[&[isize]], reorder: bool) -> Walk {
        let mut order: SmallVec<[usize; 6]> = (0..dims.len()).filter(|d| dims[*d] != 1).collect();
        if reorder && let Some(first) = operands.first() {
            // Stable, so that equal strides keep the logical order. Broadcast dims of operand 0 do not occur in outputs.
            order.sort_by_key(|d| std::cmp::Reverse(first[*d].unsigned_abs()));
        }
        let mut walk = Walk { dims: Dims::new(), strides: operands.iter().map(|_| Strides::new()).collect() };
        for d in order {
            let mergeable = walk.dims.last().is_some()
                && walk
                    .strides
                    .iter()
                    .zip(operands)
                    .all(|(kept, all)| kept.last().is_some_and(|outer| *outer == all[d] * dims[d] as isize));
            if mergeable {
                let last = walk.dims.len() - 1;
                walk.dims[last] *= dims[d];
                walk.strides.iter_mut().zip(operands).for_each(|(kept, all)| kept[last] = all[d]);
            } else {
                walk.dims.push(dims[d]);
                walk.strides.iter_mut().zip(operands).for_each(|(kept, all)| kept.push(all[d]));
            }
        }
        if walk.dims.is_empty() {
            walk.dims = smallvec![1];
            walk.strides.iter_mut().for_each(|s| *s = smallvec![0]);
        }
        walk
    }

    /// Returns the length of the innermost dim.
    pub fn inner(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }
    /// Returns the number of rows along the innermost dim.
    pub fn rows(&self) -> usize {
        self.dims[..self.dims.len() - 1].iter().product()
    }
    /// Returns the stride of an operand in the innermost dim.
    pub fn inner_stride(&self, operand: usize) -> isize {
        self.strides[operand][self.dims.len() - 1]
    }
    /// Returns a cursor at a row.
    pub(crate) fn cursor(&self, row: usize) -> Cursor<'_> {
        let offsets = (0..self.strides.len()).map(|operand| self.row_offset(operand, row)).collect();
        let (mut index, mut rest) = (Dims::from_slice(&self.dims[..self.dims.len() - 1]), row);
        for n in index.iter_mut().rev() {
            let size = *n;
            *n = rest % size;
            rest /= size;
        }
        Cursor { walk: self, index, offsets }
    }
    /// Returns the dim in which an operand's elements lie side by side, where that is not the innermost.
    pub(crate) fn crossing(&self, operand: usize) -> Option<usize> {
        let (inner, outer) = self.strides[operand].split_last()?;
        if matches!(inner, 0 | 1) { None } else { outer.iter().position(|s| *s == 1) }
    }
    /// Returns the offset in elements of the first element of row `row` for an operand.
    pub fn row_offset(&self, operand: usize, mut row: usize) -> isize {
        let strides = &self.strides[operand];
        let mut offset = 0;
        for d in (0..self.dims.len() - 1).rev() {
            offset += (row % self.dims[d]) as isize * strides[d];
            row /= self.dims[d];
        }
        offset
    }
}

/// The rows of a walk in order, without divisions.
pub(crate) struct Cursor<'a> {
    walk: &'a Walk,
    index: Dims,
    /// Where the row starts in each operand, in elements.
    pub(crate) offsets: SmallVec<[isize; 4]>,
}

impl Cursor<'_> {
    /// Moves on to the next row; from the last one to the first.
    pub(crate) fn next_row(&mut self) {
        for d in (0..self.index.len()).rev() {
            let steps = self.walk.strides.iter().map(|s| s[d]);
            self.index[d] += 1;
            if self.index[d] < self.walk.dims[d] {
                self.offsets.iter_mut().zip(steps).for_each(|(o, s)| *o += s);
                return;
            }
            let back = self.walk.dims[d] as isize - 1;
            self.offsets.iter_mut().zip(steps).for_each(|(o, s)| *o -= back * s);
            self.index[d] = 0;
        }
    }
    /// Of `most` rows from this one on, how many lie one behind the other along the innermost dim of rows, and the steps between
    /// them in the first two operands.
    pub(crate) fn run(&self, most: usize) -> (usize, [isize; 2]) {
        match self.index.len().checked_sub(1) {
            Some(d) => (most.min(self.walk.dims[d] - self.index[d]), [0, 1].map(|o| self.walk.strides[o][d])),
            None => (most.min(1), [0, 0]),
        }
    }
    /// Moves on by a number of rows that [`Cursor::run`] gave.
    pub(crate) fn skip(&mut self, rows: usize) {
        let Some(d) = self.index.len().checked_sub(1).filter(|_| rows > 0) else { return };
        let steps = rows - 1;
        self.index[d] += steps;
        self.offsets.iter_mut().zip(&self.walk.strides).for_each(|(o, s)| *o += steps as isize * s[d]);
        self.next_row();
    }
    /// Moves along the row.
    pub(crate) fn shift(&mut self, elements: isize) {
        let steps = (0..).map(|operand| self.walk.inner_stride(operand));
        self.offsets.iter_mut().zip(steps).for_each(|(o, s)| *o += elements * s);
    }
}

/// Returns the strides of a view broadcast to `dims`, by PyTorch's rule: missing leading dims and dims of size one repeat.
pub fn broadcast_strides(view: &View, dims: &[usize]) -> Result<Strides> {
    let lead = dims.len().checked_sub(view.rank());
    let fits = |lead: usize| view.dims().iter().zip(&dims[lead..]).all(|(a, b)| a == b || *a == 1);
    match lead {
        Some(lead) if fits(lead) => {
            let mut strides: Strides = SmallVec::from_elem(0, dims.len());
            for d in 0..view.rank() {
                if view.dims()[d] != 1 {
                    strides[lead + d] = view.strides()[d];
                }
            }
            Ok(strides)
        }
        _ => Err(KernelError::new(format!("dims {:?} do not broadcast to {dims:?}", view.dims()))),
    }
}

/// Starts to load `n` elements from `p` on, into the first-level cache if `near`, else into the second. They need not
/// exist.
pub fn prefetch<T>(p: *const T, n: usize, near: bool) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..n * size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let p = p.cast::<i8>().wrapping_add(line);
        // SAFETY: a prefetch changes nothing and never faults.
        unsafe { if near { _mm_prefetch::<_MM_HINT_T0>(p) } else { _mm_prefetch::<_MM_HINT_T1>(p) } };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (p, n, near);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_merge_only_without_gaps() {
        let w = Walk::new(&[2, 3, 4], &[&[12, 4, 1], &[12, 4, 1]], false);
        assert_eq!((w.dims.as_slice(), w.inner(), w.rows()), (&[24][..], 24, 1));
        let w = Walk::new(&[2, 3, 4], &[&[12, 4, 1], &[0, 4, 1]], false);
        assert_eq!((w.dims.as_slice(), w.row_offset(0, 1), w.row_offset(1, 1)), (&[2, 12][..], 12, 0));
        let w = Walk::new(&[3, 2], &[&[1, 3]], true);
        assert_eq!((w.dims.as_slice(), w.inner_stride(0)), (&[6][..], 1));
        let w = Walk::new(&[], &[&[]], false);
        assert_eq!((w.dims.as_slice(), w.rows()), (&[1][..], 1));
    }

    #[test]
    fn a_cursor_visits_the_rows_in_order() {
        let w = Walk::new(&[2, 3, 4], &[&[100, 10, 2], &[1, 7, 50]], false);
        for start in 0..w.rows() {
            let mut cursor = w.cursor(start);
            for row in start..w.rows() {
                assert_eq!(cursor.offsets.as_slice(), [w.row_offset(0, row), w.row_offset(1, row)]);
                cursor.shift(3);
                assert_eq!(cursor.offsets[1], w.row_offset(1, row) + 150);
                cursor.shift(-3);
                cursor.next_row();
            }
        }
    }

    #[test]
    fn broadcasting_rules() {
        let data = [0f32; 3];
        // SAFETY: `data` outlives the view, which is not written.
        let v = unsafe { View::from_slice(&data, &[3, 1]) };
        assert_eq!(broadcast_strides(&v, &[2, 3, 4]).unwrap().as_slice(), &[0, 1, 0]);
        let e = broadcast_strides(&v, &[2, 4]).unwrap_err();
        assert_eq!(e.0, "dims [3, 1] do not broadcast to [2, 4]");
        assert!(broadcast_strides(&v, &[3]).is_err());
    }
}
