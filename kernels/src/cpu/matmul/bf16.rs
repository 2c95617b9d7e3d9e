//! bf16 products on CPUs that multiply pairs of bf16 and add them to f32 (AVX-512 BF16).
//!
//! Both operands are packed: neighbours along k become one pair of 32 bits, and the rows of `a` and the columns of `b` that a
//! tile of registers takes lie side by side. Each number is summed in the order of k, in blocks of [`DEPTH`], whatever the
//! tile it lies in; tiles at the edges are filled up with zeros. The instruction takes denormal numbers as zeros.

use super::halves::{Tiles, Window};
use crate::DType;

/// Computes a tile of the output: `m`, `n` and `k`, the operands, whether to add to the output, the output.
///
/// # Safety
/// The windows have the elements that the sizes say; nothing else touches those of the output.
pub(super) type Tile = unsafe fn(&mut Tiles, [usize; 3], Window, Window, bool, Window);

/// Rows and columns of a tile, and what computes it, where this CPU has the instructions.
pub(super) fn kernel(dtype: DType) -> Option<(usize, usize, Tile)> {
    #[cfg(target_arch = "x86_64")]
    if dtype == DType::BF16
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512bf16")
    {
        return Some((4 * native::BLOCK, native::COLUMNS, native::tile));
    }
    let _ = dtype;
    None
}

#[cfg(target_arch = "x86_64")]
mod native {
    use super::{Tiles, Window};
    use crate::DType;
    use crate::cpu::acc::{load, store};
    use crate::cpu::turn::Turn;
    use std::arch::x86_64::*;

    /// Rows and columns of a tile of registers: 28 sums, two vectors of `b`, and the pair of `a` comes from memory.
    const MR: usize = 14;
    const NR: usize = 32;
    /// Columns of `b` that are packed at a time.
    pub(super) const COLUMNS: usize = 1024;
    /// Rows of `a` that are packed at a time: with [`DEPTH`] they fill a quarter of a second-level cache of 1 MiB.
    pub(super) const BLOCK: usize = 9 * MR;
    /// The part of k that is packed at a time. Fixed: it decides the order of summation.
    const DEPTH: usize = 1024;
    /// Elements in a vector of pairs.
    const LANES: usize = 16;

    /// See [`super::Tile`].
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    pub(super) unsafe fn tile(t: &mut Tiles, [m, n, k]: [usize; 3], a: Window, b: Window, keep: bool, c: Window) {
        // One block at least: a sum of nothing is written, too.
        let blocks = k.div_ceil(DEPTH).max(1);
        let pairs = k.min(DEPTH).div_ceil(2);
        t.a.resize(BLOCK * pairs + LANES, 0.0);
        t.b.resize(n.next_multiple_of(NR) * pairs, 0.0);
        t.c.resize(if blocks > 1 { m * n } else { 0 }, 0.0);
        let (packed_a, packed_b) = (t.a.as_mut_ptr().cast::<u32>(), t.b.as_mut_ptr().cast::<u32>());
        for block in 0..blocks {
            let first = block * DEPTH;
            let depth = DEPTH.min(k - first);
            let pairs = depth.div_ceil(2);
            let from = b.at(first, 0);
            // SAFETY: a part of the window; the buffer has room for whole panels.
            unsafe { pack::<NR>(from, from.strides.1, from.strides.0, [n, n], depth, packed_b) };
            for top in (0..m).step_by(BLOCK) {
                let height = BLOCK.min(m - top);
                let from = a.at(top, first);
                // SAFETY: as above.
                unsafe { pack::<MR>(from, from.strides.0, from.strides.1, [height, m - top], depth, packed_a) };
                for j in (0..n).step_by(NR) {
                    let columns = NR.min(n - j);
                    for i in (top..top + height).step_by(MR) {
                        let rows = MR.min(top + height - i);
                        let mut sums = [[0f32; NR]; MR];
                        for (r, sums) in sums[..rows].iter_mut().enumerate() {
                            if block > 0 {
                                sums[..columns].copy_from_slice(&t.c[(i + r) * n + j..][..columns]);
                            } else if keep {
                                // SAFETY: a row of the output's window.
                                unsafe {
                                    load(c.view.dtype(), c.address(i + r, j), c.strides.1, &mut sums[..columns]);
                                }
                            }
                        }
                        // SAFETY: panels of `pairs` steps, packed above.
                        unsafe { multiply(packed_a.add((i - top) * pairs), packed_b.add(j * pairs), pairs, &mut sums) };
                        for (r, sums) in sums[..rows].iter().enumerate() {
                            if block + 1 < blocks {
                                t.c[(i + r) * n + j..][..columns].copy_from_slice(&sums[..columns]);
                            } else {
                                // SAFETY: a row of the output's window, which is ours alone.
                                unsafe { write(c, i + r, j, sums, columns) };
                            }
                        }
                    }
                }
            }
        }
    }

    /// Adds the product of a panel of rows and a panel of columns.
    ///
    /// # Safety
    /// The panels have `pairs` steps of [`MR`] and [`NR`] pairs.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    unsafe fn multiply(mut a: *const u32, mut b: *const u32, pairs: usize, sums: &mut [[f32; NR]; MR]) {
        // SAFETY: inside the panels and the sums; vectors of 16 pairs are vectors of 32 bf16.
        unsafe {
            let mut acc: [[__m512; 2]; MR] = std::array::from_fn(|i| {
                let row = sums[i].as_ptr();
                [_mm512_loadu_ps(row), _mm512_loadu_ps(row.add(LANES))]
            });
            for _ in 0..pairs {
                let vector = |p: *const u32| std::mem::transmute::<__m512i, __m512bh>(_mm512_loadu_si512(p.cast()));
                let columns = [vector(b), vector(b.add(LANES))];
                for (i, acc) in acc.iter_mut().enumerate() {
                    let row = std::mem::transmute::<__m512i, __m512bh>(_mm512_set1_epi32(a.add(i).read() as i32));
                    acc[0] = _mm512_dpbf16_ps(acc[0], row, columns[0]);
                    acc[1] = _mm512_dpbf16_ps(acc[1], row, columns[1]);
                }
                (a, b) = (a.add(MR), b.add(NR));
            }
            for (sums, acc) in sums.iter_mut().zip(acc) {
                _mm512_storeu_ps(sums.as_mut_ptr(), acc[0]);
                _mm512_storeu_ps(sums.as_mut_ptr().add(LANES), acc[1]);
            }
        }
    }

    /// Rounds a row of a tile into the output.
    ///
    /// # Safety
    /// The `columns` elements from (i, j) exist and nobody else touches them.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    unsafe fn write(c: Window, i: usize, j: usize, sums: &[f32; NR], columns: usize) {
        let (to, stride) = (c.address(i, j), c.strides.1);
        if c.view.dtype() != DType::BF16 {
            // SAFETY: the caller's promise.
            return unsafe { store(c.view.dtype(), to, stride, &sums[..columns]) };
        }
        // SAFETY: 32 sums make 32 bf16, of which `columns` are written, by the caller's promise.
        unsafe {
            let halves = [_mm512_loadu_ps(sums.as_ptr()), _mm512_loadu_ps(sums.as_ptr().add(LANES))];
            let rounded = std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(halves[1], halves[0]));
            if stride == 1 {
                return _mm512_mask_storeu_epi16(to.cast(), u32::MAX >> (NR - columns), rounded);
            }
            let rounded: [u16; NR] = std::mem::transmute(rounded);
            for (l, x) in rounded[..columns].iter().enumerate() {
                to.cast::<u16>().wrapping_offset(l as isize * stride).write(*x);
            }
        }
    }

    /// Packs `lanes` rows (or columns) of `k` elements, of the `exist` that there are, into panels of `W`: the pair `p` of lane
    /// `l` of a panel lies at `p * W + l`. What is missing is zero.
    ///
    /// # Safety
    /// The elements exist, `lane` apart from lane to lane and `step` along k; `to` has room for whole panels and a vector.
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn pack<const W: usize>(
        from: Window,
        lane: isize,
        step: isize,
        [lanes, exist]: [usize; 2],
        k: usize,
        to: *mut u32,
    ) {
        let from = from.address(0, 0).cast::<u16>().cast_const();
        let pairs = k.div_ceil(2);
        // Vectors may write lanes past the end of a panel's step; those are written again by the next step or panel.
        for group in 0..lanes.div_ceil(W) * W.div_ceil(LANES) {
            let (panel, part) = (group / W.div_ceil(LANES), group % W.div_ceil(LANES) * LANES);
            let first = panel * W + part;
            let width = LANES.min(W - part);
            let from = from.wrapping_offset(first as isize * lane);
            let to = to.wrapping_add(panel * pairs * W + part);
            let mut p = 0;
            // SAFETY: all lanes of the vectors exist, and all pairs below k / 2.
            unsafe {
                if first + LANES <= exist && step == 1 {
                    let (side, square) = u32::square().expect("the CPU has AVX-512");
                    while p + side <= k / 2 {
                        let pairs = from.wrapping_add(2 * p).cast();
                        square(pairs, lane * size_of::<u16>() as isize, to.add(p * W), (W * size_of::<u32>()) as isize);
                        p += side;
                    }
                } else if first + LANES <= exist && lane == 1 {
                    while p < k / 2 {
                        let row = |i: usize| {
                            let row = from.wrapping_offset((2 * p + i) as isize * step);
                            _mm512_cvtepu16_epi32(_mm256_loadu_si256(row.cast()))
                        };
                        let both = _mm512_or_si512(row(0), _mm512_slli_epi32::<16>(row(1)));
                        _mm512_storeu_si512(to.add(p * W).cast(), both);
                        p += 1;
                    }
                }
            }
            for p in p..pairs {
                for l in 0..width {
                    // SAFETY: reads what exists; the panel has this pair.
                    unsafe {
                        let at = |k: usize| from.wrapping_offset(l as isize * lane + k as isize * step).read() as u32;
                        let exists = first + l < exist;
                        let low = if exists { at(2 * p) } else { 0 };
                        let high = if exists && 2 * p + 1 < k { at(2 * p + 1) } else { 0 };
                        to.add(p * W + l).write(low | high << 16);
                    }
                }
            }
        }
    }
}
