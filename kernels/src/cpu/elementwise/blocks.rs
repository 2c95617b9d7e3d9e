//! Operands that lie side by side along another dim than the output does, as transposed views do.
//!
//! Gathered one run of the output at a time, each of their elements would be read from a cache line of its own. Here the
//! work goes in blocks of the two dims: such an operand's block is transposed into a buffer, from which the program then
//! reads it in order.

use super::super::lane::with_bits;
use super::super::turn::{Blocks, COLUMNS, turn};
use super::{Line, Operands, Program, Walk, with_scratch};
use crate::Scalar;
use crate::parallel::parallel_for;
use smallvec::{SmallVec, smallvec};
use std::cell::Cell;

/// Below so many rows or columns cache lines are used again soon enough.
const SIDE: usize = 8;
/// Below so many elements a block costs more than it saves.
const AREA: usize = 1024;
/// From row to row in the buffers: a cache line more, so that rows do not share a cache set.
const STEP: usize = COLUMNS + 16;

thread_local! {
    /// Transposed blocks, kept between calls.
    static BLOCKS: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

impl Program {
    /// The dim along which an operand lies side by side that does not in the innermost, where the two are worth blocks.
    pub(super) fn crossing(&self, walk: &Walk) -> Option<usize> {
        let d = (0..self.inputs.len()).filter(|i| self.used[*i]).find_map(|i| walk.crossing(i + 1))?;
        let size = [walk.dims[d], walk.inner()];
        (size[0].min(size[1]) >= SIDE && size[0] * size[1] >= AREA).then_some(d)
    }

    /// Computes all elements in blocks of dim `d` and the innermost.
    pub(super) fn dispatch_blocks(&self, operands: &Operands<'_, Walk>, d: usize, scalars: &[Scalar]) {
        let walk = &operands.way;
        let crosses =
            |i: usize| self.used[i] && walk.strides[i + 1][d] == 1 && !matches!(walk.inner_stride(i + 1), 0 | 1);
        let crossing: SmallVec<[usize; 4]> = (0..self.inputs.len()).filter(|i| crosses(*i)).collect();
        let sizes = || crossing.iter().map(|i| self.inputs[*i].dtype().size());
        let blocks = Blocks::new(walk, d, sizes().min().unwrap_or(1));
        // Words of a buffer: complex numbers of two f64 have two.
        let words = blocks.height * STEP * sizes().max().unwrap_or(1).div_ceil(size_of::<u64>());
        parallel_for(blocks.count(), blocks.grain(), &|range| {
            with_scratch(&BLOCKS, crossing.len() * words, |buffer: *mut u64| {
                for block in range {
                    let (start, [rows, columns]) = blocks.block(walk, block);
                    let inner = |operand: usize| smallvec![walk.strides[operand][d], walk.inner_stride(operand)];
                    let size =
                        |operand: usize| if operand == 0 { self.out } else { self.inputs[operand - 1] }.dtype().size();
                    let mut part = Operands {
                        way: Walk {
                            dims: smallvec![rows, columns],
                            strides: (0..operands.ptrs.len()).map(inner).collect(),
                        },
                        ptrs: operands
                            .ptrs
                            .iter()
                            .enumerate()
                            .map(|(o, p)| p.wrapping_offset(start(o) * size(o) as isize))
                            .collect(),
                        zero: operands.zero,
                    };
                    for (number, i) in crossing.iter().enumerate() {
                        let (from, to) = (part.ptrs[i + 1], buffer.wrapping_add(number * words));
                        let step = walk.inner_stride(i + 1);
                        // SAFETY: the block lies inside the input; the buffer has this much room for each that crosses.
                        unsafe {
                            with_bits!(self.inputs[*i].dtype(), T => {
                                turn::<T>(from.cast(), step, to.cast(), STEP as isize, [columns, rows])
                            });
                        }
                        part.ptrs[i + 1] = to.cast();
                        part.way.strides[i + 1] = smallvec![STEP as isize, 1];
                    }
                    self.compute(&part, part.ptrs[0], scalars, 0..rows * columns);
                }
            });
        });
    }
}
