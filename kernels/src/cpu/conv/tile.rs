//! Sums of weighted lines, a tile of registers at a time: some rows of the result by some vectors of places.

use super::vector::{Plain, Vector};
use crate::cpu::acc::Acc;
use crate::vmath::Real;
use std::ops::Range;

/// Numbers of the longest vector.
pub(super) const LANES: usize = 16;
/// Places that are computed before the next rows at least: a multiple of all tiles.
pub(super) const COLUMNS: usize = 192;
/// Rows of the largest tile of any CPU.
pub(super) const ROWS: usize = 8;
/// Numbers of the largest tile's row.
const WIDEST: usize = 6 * LANES;

/// Rows of the result that are computed together, their weights packed: `weights[k * width + r]`.
pub(super) struct Block {
    /// The first of the result's rows, and how many: 8, 4, 2 or 1, or where vectors run along them at most [`FILTERS`].
    pub(super) first: usize,
    pub(super) rows: usize,
    /// Rows, and there zeros behind them up to whole vectors.
    pub(super) width: usize,
    /// Where its weights start.
    pub(super) at: usize,
}

/// Places of a strip that lie side by side in a row of the result too: the first one, how many, and the first element.
pub(super) struct Span {
    pub(super) first: usize,
    pub(super) n: usize,
    pub(super) element: usize,
}

/// Work on a block: weights and where each reads, relative to `line`; numbers added to each row; how many places, and which of them mean
/// something, in their order.
pub(super) struct Strip<'a, A> {
    pub(super) rows: usize,
    pub(super) weights: &'a [A],
    pub(super) offsets: &'a [usize],
    pub(super) line: *const A,
    pub(super) bias: &'a [A; ROWS],
    pub(super) places: usize,
    pub(super) spans: &'a [Span],
}

/// Takes the row, the span, the first of its places and values.
type Take<'a, A> = &'a mut dyn FnMut(usize, &Span, usize, &[A]);

/// Where a strip's results go.
pub(super) enum Target<'a, A> {
    /// Numbers as they are: element 0 of the first row, and from row to row. The elements of the spans exist in every row, and nobody else
    /// touches them.
    Rows(*mut A, usize),
    /// Tensors of another dtype or with gaps between elements: a function converts and stores them.
    Through(Take<'a, A>),
}

/// The instructions that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isa {
    /// AVX-512.
    Avx512,
    /// AVX2 with fused multiply-add.
    Avx2,
    /// Instructions that every CPU has.
    Plain,
}

impl Isa {
    /// The best of this CPU.
    pub(super) fn here() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return Isa::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Isa::Avx2;
            }
        }
        Isa::Plain
    }
    /// Rows of its largest tile.
    pub(super) fn rows(self) -> usize {
        if self == Isa::Avx512 { 8 } else { 4 }
    }

    /// Computes a strip and hands it to the target, a tile at a time.
    ///
    /// # Safety
    /// This CPU has the instructions. From `line + offsets[k]` on `places` elements exist, rounded up to [`LANES`]; there are `rows`
    /// weights for each offset, and `rows` is 8, where [`Isa::rows`] is that, or 4, 2 or 1. The target has the elements of the spans.
    pub(super) unsafe fn strip<A: Acc>(self, strip: &Strip<'_, A>, target: &mut Target<'_, A>) {
        // SAFETY (all): the caller's promise. The casts change nothing: the types are the same.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            match (self, size_of::<A>()) {
                (Isa::Avx512, 4) => return avx512_f32(cast(strip), cast_target(target)),
                (Isa::Avx512, _) => return avx512_f64(cast(strip), cast_target(target)),
                (Isa::Avx2, 4) => return avx2_f32(cast(strip), cast_target(target)),
                (Isa::Avx2, _) => return avx2_f64(cast(strip), cast_target(target)),
                _ => {}
            }
            by_rows::<Plain<A>>(strip, target);
        }
    }

    /// Adds to `sums[r]` the products of number `q` of line `r` with vector `q` of the columns, for all places `q`.
    ///
    /// # Safety
    /// This CPU has the instructions. Each line has the places of `runs`, and `columns` one row of `sums[r].len()` numbers for each
    /// of them, which is a multiple of [`LANES`], [`LANES`] to [`FILTERS`].
    pub(super) unsafe fn outer<A: Acc>(self, outer: &Outer<'_, A>, sums: &mut [A]) {
        // SAFETY (all): the caller's promise. The casts change nothing: the types are the same.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            match (self, size_of::<A>()) {
                (Isa::Avx512, 4) => return avx512_outer_f32(outer.cast(), cast_sums(sums)),
                (Isa::Avx512, _) => return avx512_outer_f64(outer.cast(), cast_sums(sums)),
                (Isa::Avx2, 4) => return avx2_outer_f32(outer.cast(), cast_sums(sums)),
                (Isa::Avx2, _) => return avx2_outer_f64(outer.cast(), cast_sums(sums)),
                _ => {}
            }
            lines::<Plain<A>, 6, 1>(outer, sums);
        }
    }

    /// Adds to `sums[r]` the products of the places of line `r` with the column.
    ///
    /// # Safety
    /// This CPU has the instructions. The places of the runs exist in each line and in the column, and there is a sum for each line.
    pub(super) unsafe fn dots<A: Acc>(self, of: &Dots<'_, A>, sums: &mut [A]) {
        // SAFETY (all): the caller's promise. The casts change nothing: the types are the same.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            match (self, size_of::<A>()) {
                (Isa::Avx512, 4) => return avx512_dots_f32(of.cast(), cast_sums(sums)),
                (Isa::Avx512, _) => return avx512_dots_f64(of.cast(), cast_sums(sums)),
                (Isa::Avx2, 4) => return avx2_dots_f32(of.cast(), cast_sums(sums)),
                (Isa::Avx2, _) => return avx2_dots_f64(of.cast(), cast_sums(sums)),
                _ => {}
            }
            dots::<Plain<A>, 9>(of, sums);
        }
    }
}

/// Most columns of [`Outer`].
pub(super) const FILTERS: usize = 4 * LANES;

/// Lines, and columns that they are multiplied with.
pub(super) struct Outer<'a, A> {
    pub(super) lines: &'a [*const A],
    /// First place of a run in a line, and its length. The columns have the runs one after the other.
    pub(super) runs: &'a [(usize, usize)],
    /// From place to place of a run.
    pub(super) step: usize,
    pub(super) columns: *const A,
    /// Numbers of a place in `columns`, and of a line in the sums.
    pub(super) width: usize,
}

/// Lines, and a column that each is multiplied with.
pub(super) struct Dots<'a, A> {
    pub(super) lines: &'a [*const A],
    /// First place of a run in a line and in the column, and its length.
    pub(super) runs: &'a [(usize, usize, usize)],
    pub(super) column: *const A,
}

#[cfg(target_arch = "x86_64")]
mod casts {
    use super::*;

    /// The strip as one of `B`, which is `A`.
    pub(super) unsafe fn cast<'a, 'b, A: Acc, B: Acc>(strip: &'b Strip<'a, A>) -> &'b Strip<'a, B> {
        assert_eq!(A::DTYPE, B::DTYPE);
        // SAFETY: there is one type for each dtype that sums are computed in.
        unsafe { &*std::ptr::from_ref(strip).cast() }
    }
    /// As [`cast`].
    pub(super) unsafe fn cast_target<'a, 'b, A: Acc, B: Acc>(target: &'b mut Target<'a, A>) -> &'b mut Target<'a, B> {
        assert_eq!(A::DTYPE, B::DTYPE);
        // SAFETY: as above.
        unsafe { &mut *std::ptr::from_mut(target).cast() }
    }
    /// As [`cast`].
    pub(super) unsafe fn cast_sums<A: Acc, B: Acc>(sums: &mut [A]) -> &mut [B] {
        assert_eq!(A::DTYPE, B::DTYPE);
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(sums.as_mut_ptr().cast(), sums.len()) }
    }
    impl<'a, A: Acc> Outer<'a, A> {
        /// As [`cast`].
        pub(super) unsafe fn cast<B: Acc>(&self) -> &Outer<'a, B> {
            assert_eq!(A::DTYPE, B::DTYPE);
            // SAFETY: as above.
            unsafe { &*std::ptr::from_ref(self).cast() }
        }
    }

    impl<'a, A: Acc> Dots<'a, A> {
        /// As [`cast`].
        pub(super) unsafe fn cast<B: Acc>(&self) -> &Dots<'a, B> {
            assert_eq!(A::DTYPE, B::DTYPE);
            // SAFETY: as above.
            unsafe { &*std::ptr::from_ref(self).cast() }
        }
    }

    macro_rules! isa {
        ($features:literal, $($strip:ident, $outer:ident, $dots:ident, $register:ty, $vectors:literal;)*) => {$(
            /// # Safety
            /// As [`Isa::strip`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $strip(
                strip: &Strip<'_, <$register as Vector>::Item>,
                target: &mut Target<'_, <$register as Vector>::Item>,
            ) {
                // SAFETY: the caller's promise.
                unsafe { by_rows::<$register>(strip, target) }
            }
            /// # Safety
            /// As [`Isa::outer`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $outer(
                outer: &Outer<'_, <$register as Vector>::Item>,
                sums: &mut [<$register as Vector>::Item],
            ) {
                // SAFETY: the caller's promise.
                unsafe { lines::<$register, 6, $vectors>(outer, sums) }
            }
            /// # Safety
            /// As [`Isa::dots`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $dots(
                of: &Dots<'_, <$register as Vector>::Item>,
                sums: &mut [<$register as Vector>::Item],
            ) {
                // SAFETY: the caller's promise.
                unsafe { dots::<$register, 9>(of, sums) }
            }
        )*};
    }
    use std::arch::x86_64::*;
    isa!("avx512f",
        avx512_f32, avx512_outer_f32, avx512_dots_f32, __m512, 4;
        avx512_f64, avx512_outer_f64, avx512_dots_f64, __m512d, 4;);
    isa!("avx2,fma",
        avx2_f32, avx2_outer_f32, avx2_dots_f32, __m256, 2;
        avx2_f64, avx2_outer_f64, avx2_dots_f64, __m256d, 2;);
}
#[cfg(target_arch = "x86_64")]
use casts::*;

#[inline(always)]
unsafe fn by_rows<V: Vector>(strip: &Strip<'_, V::Item>, target: &mut Target<'_, V::Item>) {
    // SAFETY (all): the caller's promise. No tile has more sums than the CPU has registers.
    unsafe {
        match strip.rows {
            8 => tiles::<V, 8, 3>(strip, target),
            4 => tiles::<V, 4, 3>(strip, target),
            2 => tiles::<V, 2, 6>(strip, target),
            _ => tiles::<V, 1, 6>(strip, target),
        }
    }
}

#[inline(always)]
unsafe fn tiles<V: Vector, const R: usize, const S: usize>(
    strip: &Strip<'_, V::Item>,
    target: &mut Target<'_, V::Item>,
) {
    let (mut q, n, mut spans) = (0, strip.places, strip.spans);
    while q < n {
        // What is left of a strip is computed by vectors.
        let fit = (n - q) / V::LEN;
        let vectors = if fit >= S { S } else { fit.clamp(1, 2) };
        let end = q + (vectors * V::LEN).min(n - q);
        while let Some((span, rest)) = spans.split_first().filter(|(span, _)| span.first + span.n <= q) {
            debug_assert!(span.n > 0);
            spans = rest;
        }
        let here = &spans[..spans.iter().take_while(|span| span.first < end).count()];
        // SAFETY: the elements of whole vectors exist.
        unsafe {
            match vectors {
                1 => put(&sums::<V, R, 1>(strip, q), q..end, here, target),
                2 => put(&sums::<V, R, 2>(strip, q), q..end, here, target),
                _ => put(&sums::<V, R, S>(strip, q), q..end, here, target),
            }
        }
        q = end;
    }
}

/// Writes the places of a tile that are in spans.
///
/// # Safety
/// As [`Isa::strip`].
#[inline(always)]
unsafe fn put<V: Vector, const R: usize, const S: usize>(
    sums: &[[V; S]; R],
    tile: Range<usize>,
    spans: &[Span],
    target: &mut Target<'_, V::Item>,
) {
    for span in spans {
        // Of the tile's places those of the span.
        let (start, end) = (span.first.max(tile.start) - tile.start, (span.first + span.n).min(tile.end) - tile.start);
        match target {
            Target::Rows(first, row) => {
                // The element of the tile's first place, which may lie in front of the result.
                let to = first.wrapping_add(span.element).wrapping_offset(tile.start as isize - span.first as isize);
                for (r, sums) in sums.iter().enumerate() {
                    for (s, v) in sums.iter().enumerate() {
                        let lanes = start.max(s * V::LEN)..end.min((s + 1) * V::LEN);
                        if lanes.start < lanes.end {
                            let lanes = lanes.start - s * V::LEN..lanes.end - s * V::LEN;
                            // SAFETY: elements of the span in row `r`, by the caller's promise.
                            unsafe { v.store_lanes(to.wrapping_add(r * *row + s * V::LEN), lanes) };
                        }
                    }
                }
            }
            Target::Through(store) => {
                for (r, sums) in sums.iter().enumerate() {
                    let mut row = [V::Item::ZERO; WIDEST];
                    // SAFETY: a row takes the widest tile.
                    unsafe { sums.iter().enumerate().for_each(|(s, v)| v.store(row.as_mut_ptr().add(s * V::LEN))) };
                    store(r, span, tile.start + start - span.first, &row[start..end]);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn sums<V: Vector, const R: usize, const S: usize>(strip: &Strip<'_, V::Item>, q: usize) -> [[V; S]; R] {
    // SAFETY: a vector of the line for each of S, and R weights, exist for each offset.
    unsafe {
        let mut sums: [[V; S]; R] = std::array::from_fn(|r| [V::splat(strip.bias[r]); S]);
        let line = strip.line.wrapping_add(q);
        let mut w = strip.weights.as_ptr();
        for offset in strip.offsets {
            let x: [V; S] = std::array::from_fn(|s| V::load(line.wrapping_add(offset + s * V::LEN)));
            for (r, sums) in sums.iter_mut().enumerate() {
                let w = V::splat(*w.add(r));
                for (sum, x) in sums.iter_mut().zip(&x) {
                    *sum = sum.add_product(w, *x);
                }
            }
            w = w.add(R);
        }
        sums
    }
}

/// By vectors of the columns, at most S together, and R lines.
#[inline(always)]
unsafe fn lines<V: Vector, const R: usize, const S: usize>(outer: &Outer<'_, V::Item>, sums: &mut [V::Item]) {
    let mut column = 0;
    while column < outer.width {
        let vectors = ((outer.width - column) / V::LEN).min(S);
        for (lines, sums) in outer.lines.chunks(R).zip(sums.chunks_mut(R * outer.width)) {
            // Where there are fewer lines, the last counts several times.
            let from: [*const V::Item; R] = std::array::from_fn(|r| lines[r.min(lines.len() - 1)]);
            // SAFETY (all): the caller's promise.
            unsafe {
                match vectors {
                    4 => add::<V, R, 4>(outer, &from, lines.len(), column, sums),
                    3 => add::<V, R, 3>(outer, &from, lines.len(), column, sums),
                    2 => add::<V, R, 2>(outer, &from, lines.len(), column, sums),
                    _ => add::<V, R, 1>(outer, &from, lines.len(), column, sums),
                }
            }
        }
        column += vectors.max(1) * V::LEN;
    }
}

#[inline(always)]
unsafe fn add<V: Vector, const R: usize, const S: usize>(
    outer: &Outer<'_, V::Item>,
    from: &[*const V::Item; R],
    count: usize,
    column: usize,
    sums: &mut [V::Item],
) {
    // SAFETY: places of the lines, vectors of the columns and of the sums, by the caller's promise.
    unsafe {
        let mut tile = [[V::splat(V::Item::ZERO); S]; R];
        let mut columns = outer.columns.wrapping_add(column);
        for (first, length) in outer.runs {
            for i in 0..*length {
                let q = first + i * outer.step;
                let x: [V; S] = std::array::from_fn(|s| V::load(columns.wrapping_add(s * V::LEN)));
                for (r, tile) in tile.iter_mut().enumerate() {
                    let w = V::splat(*from[r].wrapping_add(q));
                    for (sum, x) in tile.iter_mut().zip(&x) {
                        *sum = sum.add_product(w, *x);
                    }
                }
                columns = columns.wrapping_add(outer.width);
            }
        }
        let one = V::splat(V::Item::ONE);
        // Counted up to R, not to `count`, or the compiler keeps the tile in memory.
        for (r, tile) in tile.iter().enumerate() {
            for (s, v) in tile.iter().enumerate() {
                if r < count {
                    let to = sums.as_mut_ptr().add(r * outer.width + column + s * V::LEN);
                    V::load(to).add_product(*v, one).store(to);
                }
            }
        }
    }
}

/// Products of R lines and the column at a time.
#[inline(always)]
unsafe fn dots<V: Vector, const R: usize>(of: &Dots<'_, V::Item>, sums: &mut [V::Item]) {
    for (lines, sums) in of.lines.chunks(R).zip(sums.chunks_mut(R)) {
        // Where there are fewer lines, the last counts several times.
        let from: [*const V::Item; R] = std::array::from_fn(|r| lines[r.min(lines.len() - 1)]);
        // SAFETY (all): places of the lines and of the column, by the caller's promise; `part` takes a vector.
        unsafe {
            let mut tile = [V::splat(V::Item::ZERO); R];
            for (at, column, n) in of.runs {
                let whole = n / V::LEN * V::LEN;
                for q in (0..whole).step_by(V::LEN) {
                    let x = V::load(of.column.wrapping_add(column + q));
                    for (r, sum) in tile.iter_mut().enumerate() {
                        *sum = sum.add_product(V::load(from[r].wrapping_add(at + q)), x);
                    }
                }
                if whole < *n {
                    let x = V::load_first(of.column.wrapping_add(column + whole), n - whole);
                    for (r, sum) in tile.iter_mut().enumerate() {
                        *sum = sum.add_product(V::load_first(from[r].wrapping_add(at + whole), n - whole), x);
                    }
                }
            }
            let mut part = [V::Item::ZERO; LANES];
            for (r, sum) in tile.iter().enumerate() {
                if r < sums.len() {
                    sum.store(part.as_mut_ptr());
                    sums[r] = part[..V::LEN].iter().fold(sums[r], |s, x| s + *x);
                }
            }
        }
    }
}
