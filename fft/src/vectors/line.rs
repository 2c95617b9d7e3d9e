//! The transform of one line.

use super::butterflies::{Block, Lanes};
use super::lane::{Lane, instructions, parts, parts_mut};
use super::passes::{Passes, join};
use crate::halves::root;
use pulp::NullaryFnOnce;
use pulp::x86::V4;
use rustfft::num_complex::Complex as Z;
use rustfft::{Direction, Fft, FftDirection, Length};
use std::marker::PhantomData;
use std::sync::Arc;

/// Lengths that are faster by this than by rustfft's vectors of 256 bits: shorter ones have little to do between transpositions, and
/// the columns of longer ones leave the second-level cache.
const LENGTHS: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 16;

/// A planned transform of one line.
pub(crate) struct Line<T: Lane> {
    instructions: V4,
    n: usize,
    inverse: bool,
    columns: Passes<T>,
    /// Of each row of the transformed columns the factors of its lanes.
    twiddles: Vec<Block<T::V>>,
    /// Of the second pass over rows of 16.
    of_rows: Vec<[T; 2]>,
}

impl<T: Lane> Line<T> {
    /// None where lines of this length, or this CPU, are left to others.
    pub(crate) fn new(n: usize, inverse: bool) -> Option<Line<T>> {
        let instructions = instructions()?;
        if !LENGTHS.contains(&n) || !n.is_multiple_of(T::LANES * T::LANES) {
            return None;
        }
        let columns = Passes::new(n / T::LANES)?;
        let zero = T::splat(instructions, T::zero());
        let mut twiddles = vec![Block([zero; 2]); n / T::LANES];
        for (k, w) in twiddles.iter_mut().enumerate() {
            for lane in 0..T::LANES {
                let root = root::<T>(k * lane, n);
                (0..2).for_each(|p| T::numbers_mut(&mut w.0[p..=p])[lane] = root[p]);
            }
        }
        let of_rows = (0..4).flat_map(|j| (1..4).map(move |k| root(j * k, 16))).collect();
        Some(Line { instructions, n, inverse, columns, twiddles, of_rows })
    }

    /// Numbers of scratch memory: all rows twice, two squares, and what aligns them.
    fn scratch(&self) -> usize {
        2 * self.n + 2 * T::LANES * T::LANES + 128 / size_of::<Z<T>>()
    }
}

impl<T: Lane> Length for Line<T> {
    fn len(&self) -> usize {
        self.n
    }
}

impl<T: Lane> Direction for Line<T> {
    fn fft_direction(&self) -> FftDirection {
        if self.inverse { FftDirection::Inverse } else { FftDirection::Forward }
    }
}

impl<T: Lane> Fft<T> for Line<T> {
    fn process_with_scratch(&self, buffer: &mut [Z<T>], scratch: &mut [Z<T>]) {
        for line in buffer.chunks_exact_mut(self.n) {
            self.instructions.vectorize(Call { line: self, x: None, y: line, scratch });
        }
    }
    fn process_outofplace_with_scratch(&self, x: &mut [Z<T>], y: &mut [Z<T>], scratch: &mut [Z<T>]) {
        self.process_immutable_with_scratch(x, y, scratch);
    }
    fn process_immutable_with_scratch(&self, x: &[Z<T>], y: &mut [Z<T>], scratch: &mut [Z<T>]) {
        for (x, y) in x.chunks_exact(self.n).zip(y.chunks_exact_mut(self.n)) {
            self.instructions.vectorize(Call { line: self, x: Some(x), y, scratch });
        }
    }
    fn get_inplace_scratch_len(&self) -> usize {
        self.scratch()
    }
    fn get_outofplace_scratch_len(&self) -> usize {
        self.scratch()
    }
    fn get_immutable_scratch_len(&self) -> usize {
        self.scratch()
    }
}

/// A planned transform of one line, where that is faster than rustfft's.
pub(crate) fn line<T: Lane>(n: usize, inverse: bool) -> Option<Arc<dyn Fft<T>>> {
    Line::new(n, inverse).map(|line| Arc::new(line) as Arc<dyn Fft<T>>)
}

/// One transform, in place where there is no x.
struct Call<'a, T: Lane> {
    line: &'a Line<T>,
    x: Option<&'a [Z<T>]>,
    y: &'a mut [Z<T>],
    scratch: &'a mut [Z<T>],
}

impl<T: Lane> NullaryFnOnce for Call<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Call { line, x, y, scratch } = self;
        let (s, q) = (line.instructions, line.n / T::LANES);
        let lanes = Lanes::<T>(s, PhantomData);
        // SAFETY: a block is as many numbers as it has lanes, of any bits.
        let (_, scratch, _) = unsafe { scratch.align_to_mut::<Block<T::V>>() };
        let (rows, scratch) = scratch.split_at_mut(q);
        let (made, scratch) = scratch.split_at_mut(q);
        let (square, scratch) = scratch.split_at_mut(T::LANES);
        let done = &mut scratch[..T::LANES];
        // The transform back is that of the numbers with their parts exchanged, exchanged again.
        let ordered = |[re, im]: [T::V; 2]| if line.inverse { [im, re] } else { [re, im] };

        // Numbers l, l + LANES, l + 2 LANES ... are column l.
        let x = parts(x.unwrap_or(y));
        for (row, x) in rows.iter_mut().zip(x.chunks_exact(2 * T::LANES)) {
            *row = Block(ordered(T::split(s, [T::load(x), T::load(&x[T::LANES..])])));
        }
        line.columns.run(lanes, rows, made);
        let y = parts_mut(y);
        let of_rows = line.of_rows.as_slice();
        for (i, (made, w)) in made.chunks_exact(T::LANES).zip(line.twiddles.chunks_exact(T::LANES)).enumerate() {
            for p in 0..2 {
                T::turned(
                    s,
                    #[inline(always)]
                    |k| lanes.product(made[k], w[k]).0[p],
                    #[inline(always)]
                    |k, v| square[k].0[p] = v,
                );
            }
            match T::LANES {
                8 => {
                    let mut eight = [square[0]; 8];
                    eight.copy_from_slice(&square[..8]);
                    done.copy_from_slice(&lanes.of_eight(eight));
                }
                _ => {
                    for k in 0..4 {
                        let of_four = lanes.of_four([square[k], square[k + 4], square[k + 8], square[k + 12]]);
                        done[4 * k..4 * k + 4].copy_from_slice(&of_four);
                    }
                    join(
                        lanes,
                        done,
                        of_rows,
                        #[inline(always)]
                        |a| lanes.of_four(a),
                    );
                }
            }
            for (k, done) in done.iter().enumerate() {
                let both = T::join(s, ordered(done.0));
                T::store(both, &mut y[2 * (k * q + i * T::LANES)..]);
            }
        }
    }
}
