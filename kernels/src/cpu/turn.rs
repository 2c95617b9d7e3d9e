//! Transposes blocks of elements.
//!
//! Reading along one dim and writing along another touches a cache line per element on one of the two sides. Squares that
//! fill vector registers are read and written in whole lines instead, and turned in between.

use super::strided::Walk;
use crate::parallel::GRAIN;

/// Bytes that a block takes of each row of an operand that crosses: a cache line.
const LINE: usize = 64;
/// Columns of a block: the operands that do not cross are walked in long runs.
pub(super) const COLUMNS: usize = 512;

/// A walk cut into blocks of dim `d` and the innermost one.
pub(super) struct Blocks {
    /// The walk over the other dims.
    rest: Walk,
    d: usize,
    /// Of the walk.
    rows: usize,
    columns: usize,
    /// Rows of a block.
    pub(super) height: usize,
}

impl Blocks {
    /// `size` is that of the smallest elements that cross.
    pub(super) fn new(walk: &Walk, d: usize, size: usize) -> Blocks {
        let mut rest = walk.clone();
        let last = walk.dims.len() - 1;
        (rest.dims[d], rest.dims[last]) = (1, 1);
        Blocks { rest, d, rows: walk.dims[d], columns: walk.inner(), height: LINE / size }
    }

    /// Number of blocks.
    pub(super) fn count(&self) -> usize {
        let planes: usize = self.rest.dims.iter().product();
        planes * self.rows.div_ceil(self.height) * self.columns.div_ceil(COLUMNS)
    }

    /// How many blocks a thread should take at a time.
    pub(super) fn grain(&self) -> usize {
        GRAIN / (self.height.min(self.rows) * COLUMNS.min(self.columns))
    }

    /// Where a block starts in an operand, in elements; and its rows and columns.
    pub(super) fn block<'a>(&'a self, walk: &'a Walk, block: usize) -> (impl Fn(usize) -> isize + 'a, [usize; 2]) {
        let (down, across) = (self.rows.div_ceil(self.height), self.columns.div_ceil(COLUMNS));
        let (plane, block) = (block / (down * across), block % (down * across));
        let (r, c) = (block / across * self.height, block % across * COLUMNS);
        let start = move |operand: usize| {
            let at = r as isize * walk.strides[operand][self.d] + c as isize * walk.inner_stride(operand);
            self.rest.row_offset(operand, plane) + at
        };
        (start, [self.height.min(self.rows - r), COLUMNS.min(self.columns - c)])
    }
}

/// Transposes one square of `SIDE` rows: `to[c][r] = from[r][c]`. Steps are in bytes, from row to row; no alignment is
/// asked for.
pub(super) type Square<T> = unsafe fn(from: *const T, from_step: isize, to: *mut T, to_step: isize);

/// Elements that a square of registers can hold.
pub(super) trait Turn: Copy + Default {
    /// The side of a square and what transposes it, where this CPU has the instructions.
    fn square() -> Option<(usize, Square<Self>)>;
}

impl Turn for u8 {
    fn square() -> Option<(usize, Square<u8>)> {
        None
    }
}

/// Of 16 bytes, as complex numbers of two f64 have.
impl Turn for [u64; 2] {
    fn square() -> Option<(usize, Square<[u64; 2]>)> {
        None
    }
}

macro_rules! squares {
    ($($name:ident $t:ident $side:literal $permute:ident;)*) => {$(
        /// Each round interleaves row i with row i + SIDE / 2. That turns the digits of an element's place (row, then
        /// column) left by one, so as many rounds as the row has digits exchange row and column.
        ///
        /// # Safety
        /// The rows exist; the CPU has AVX-512.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw")]
        unsafe fn $name(from: *const $t, from_step: isize, to: *mut $t, to_step: isize) {
            use std::arch::x86_64::*;
            const SIDE: usize = $side;
            const HALVES: [[$t; SIDE]; 2] = {
                let mut halves = [[0; SIDE]; 2];
                let mut i = 0;
                while i < SIDE {
                    let place = (i / 2 + i % 2 * SIDE) as $t;
                    halves[0][i] = place;
                    halves[1][i] = place + SIDE as $t / 2;
                    i += 1;
                }
                halves
            };
            // SAFETY: rows of SIDE elements, by the contract of this function.
            unsafe {
                let [low, high] = HALVES.map(|half| _mm512_loadu_si512(half.as_ptr().cast()));
                let mut rows: [__m512i; SIDE] =
                    std::array::from_fn(|r| _mm512_loadu_si512(from.wrapping_byte_offset(r as isize * from_step).cast()));
                let mut round = 1;
                while round < SIDE {
                    let last = rows;
                    for i in 0..SIDE / 2 {
                        rows[2 * i] = $permute(last[i], low, last[i + SIDE / 2]);
                        rows[2 * i + 1] = $permute(last[i], high, last[i + SIDE / 2]);
                    }
                    round *= 2;
                }
                for (c, row) in rows.into_iter().enumerate() {
                    _mm512_storeu_si512(to.wrapping_byte_offset(c as isize * to_step).cast(), row);
                }
            }
        }

        impl Turn for $t {
            fn square() -> Option<(usize, Square<$t>)> {
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                    return Some(($side, $name));
                }
                None
            }
        }
    )*};
}
squares! {
    square_u16 u16 32 _mm512_permutex2var_epi16;
    square_u32 u32 16 _mm512_permutex2var_epi32;
    square_u64 u64 8 _mm512_permutex2var_epi64;
}

/// Side of the squares that go through a buffer where there are no registers for them.
const SIDE: usize = 16;
/// Blocks with a shorter side go element by element: their lines are used again while they are in the cache.
const SHORT: usize = 8;
/// The longest side of all squares.
const LONGEST: usize = 32;

/// `to[c][r] = from[r][c]` for a block of `size` rows and columns of `from`. Steps are in elements, from row to row.
///
/// # Safety
/// The elements of `from` are readable, those of `to` writable, and the two do not overlap.
pub(super) unsafe fn turn<T: Turn>(from: *const T, from_step: isize, to: *mut T, to_step: isize, size: [usize; 2]) {
    if size[0].min(size[1]) < SHORT {
        for c in 0..size[1] as isize {
            for r in 0..size[0] as isize {
                // SAFETY: an element of the block.
                unsafe { to.wrapping_offset(c * to_step + r).write(from.wrapping_offset(r * from_step + c).read()) };
            }
        }
        return;
    }
    let (side, square) = match T::square() {
        Some((side, square)) => (side, Some(square)),
        None => (SIDE, None),
    };
    for c in (0..size[1]).step_by(side) {
        for r in (0..size[0]).step_by(side) {
            let from = from.wrapping_offset(r as isize * from_step + c as isize);
            let to = to.wrapping_offset(c as isize * to_step + r as isize);
            let part = [side.min(size[0] - r), side.min(size[1] - c)];
            // SAFETY: a part of the block, by the contract of this function.
            unsafe {
                match square {
                    Some(square) if part == [side; 2] => {
                        square(from, from_step * size_of::<T>() as isize, to, to_step * size_of::<T>() as isize)
                    }
                    _ => buffered(from, from_step, to, to_step, part),
                }
            }
        }
    }
}

/// Goes through a buffer, so that both sides are touched in runs: the rows of a large power of two share a cache set.
///
/// # Safety
/// As [`turn`].
unsafe fn buffered<T: Turn>(from: *const T, from_step: isize, to: *mut T, to_step: isize, size: [usize; 2]) {
    let mut buffer = [[T::default(); LONGEST]; LONGEST];
    for (r, line) in buffer[..size[0]].iter_mut().enumerate() {
        // SAFETY: row r of the block.
        unsafe {
            line[..size[1]].as_mut_ptr().copy_from_nonoverlapping(from.wrapping_offset(r as isize * from_step), size[1])
        };
    }
    for c in 0..size[1] {
        for (r, line) in buffer[..size[0]].iter().enumerate() {
            // SAFETY: element (r, c) of the block.
            unsafe { to.wrapping_offset(c as isize * to_step + r as isize).write(line[c]) };
        }
    }
}
