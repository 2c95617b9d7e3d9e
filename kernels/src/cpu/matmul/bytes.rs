//! Products of 8-bit integers less their zero points, summed in i32 and added up in i32 or i64: what quantised products are made of.
//!
//! Differences of 8-bit integers fit into 16 bits. Both operands are packed as pairs of these, neighbours along k, as in [`super::bf16`];
//! pairs are multiplied and added by one instruction (AVX-512 VNNI), by two (AVX2), or by plain code. All sums are exact, so every way
//! gives the same integers.

use super::{PARALLEL_FLOPS, Product};
use crate::parallel::parallel_for;
use crate::{DType, KernelError, Result, View};
use std::cell::RefCell;
use std::ops::Range;

/// The part of k that is summed in i32: 1024 products of 16 bits each are below 2^26.
const DEPTH: usize = 1024;
/// Columns of `b` that are packed at a time: with [`DEPTH`] they fill half a second-level cache of 1 MiB.
const COLUMNS: usize = 256;
/// Panels of rows that are packed at a time.
const PANELS: usize = 8;
/// Blocks of rows for which columns are packed once.
const BLOCKS: usize = 4;
/// Columns of a tile of registers.
const NR: usize = 32;
/// Rows of a tile of registers at most.
const MR: usize = 14;

/// Adds the product of a panel of rows and a panel of columns of so many pairs to rows of sums.
///
/// # Safety
/// The CPU has the instructions; the panels have `pairs` steps of the kernel's rows and of [`NR`] pairs.
type Multiply = unsafe fn(*const u32, *const u32, usize, &mut [[i32; NR]]);

/// Rows of a panel, and what multiplies it.
#[derive(Clone, Copy)]
struct Kernel {
    rows: usize,
    multiply: Multiply,
}

/// The kernels whose instructions this CPU has, the quickest first.
fn kernels() -> impl Iterator<Item = Kernel> {
    let plain = Kernel { rows: 4, multiply: plain };
    #[cfg(target_arch = "x86_64")]
    {
        let vnni = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni");
        let vnni = vnni.then_some(Kernel { rows: MR, multiply: native::vnni });
        let avx2 = is_x86_feature_detected!("avx2").then_some(Kernel { rows: 6, multiply: native::avx2 });
        vnni.into_iter().chain(avx2).chain([plain])
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::iter::once(plain)
}

/// An 8-bit operand and the number that stands for zero in it.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    /// The stored integers: i8 or u8.
    pub view: &'a View,
    /// A number that is subtracted from each: -128 to 255.
    pub zero: i64,
}

/// `out = (a - zero of a) x (b - zero of b)`: `[..., m, k] x [..., k, n] -> [..., m, n]`, with batch dims and ranks as
/// [`super::matmul`] has them. `out` is i32, whose sums wrap, or i64.
///
/// # Errors
/// If dims do not match, an operand is neither i8 nor u8, a zero is no 8-bit number, or `out` is neither i32 nor i64.
pub fn matmul_bytes(a: Bytes<'_>, b: Bytes<'_>, out: &View) -> Result<()> {
    match kernels().next() {
        Some(kernel) => run(kernel, a, b, out),
        None => Err(KernelError::new("no kernel for products of bytes")),
    }
}

/// Every kernel of [`matmul_bytes`] that this CPU has, the quickest first.
///
/// # Panics
/// Where the operands do not fit together.
pub fn byte_kernels() -> impl Iterator<Item = impl Fn(Bytes<'_>, Bytes<'_>, &View)> {
    kernels().map(|kernel| {
        move |a: Bytes<'_>, b: Bytes<'_>, out: &View| run(kernel, a, b, out).unwrap_or_else(|e| panic!("{e}"))
    })
}

impl Product {
    /// The product of such operands, for the CPU and for GPUs.
    pub(crate) fn of_bytes(a: Bytes<'_>, b: Bytes<'_>, out: &View) -> Result<Product> {
        for of in [a, b] {
            if !matches!(of.view.dtype(), DType::I8 | DType::U8) {
                return Err(KernelError::new(format!("operands are i8 or u8, not {}", of.view.dtype())));
            }
            if !(-128..=255).contains(&of.zero) {
                return Err(KernelError::new(format!("the zero of 8-bit numbers is not {}", of.zero)));
            }
        }
        if !matches!(out.dtype(), DType::I32 | DType::I64) {
            return Err(KernelError::new(format!("sums of products of bytes are i32 or i64, not {}", out.dtype())));
        }
        Product::of_dims(a.view, b.view, out)
    }
}

fn run(kernel: Kernel, a: Bytes<'_>, b: Bytes<'_>, out: &View) -> Result<()> {
    let product = Product::of_bytes(a, b, out)?;
    if out.is_empty() {
        return Ok(());
    }
    let Product { m, n, k, .. } = product;
    let height = kernel.rows * PANELS * BLOCKS;
    let (down, across) = (m.div_ceil(height), n.div_ceil(COLUMNS));
    let compute = |index: usize| {
        let (oa, ob, oc) = product.offsets(index / (down * across));
        let (i, j) = (index / across % down * height, index % across * COLUMNS);
        let whole = Operands {
            a: Side { of: a, start: oa, lane: product.a.0, step: product.a.1 },
            b: Side { of: b, start: ob, lane: product.b.1, step: product.b.0 },
            out: Out { view: out, start: oc, strides: product.c },
        };
        PACKED.with_borrow_mut(|packed| {
            // SAFETY: the ranges lie inside the operands; tiles of the output do not overlap.
            unsafe { tile(kernel, packed, &whole, i..m.min(i + height), j..n.min(j + COLUMNS), k) }
        });
    };
    let tiles = product.count() * down * across;
    if product.flops().saturating_mul(product.count()) < PARALLEL_FLOPS {
        (0..tiles).for_each(compute);
    } else {
        parallel_for(tiles, 1, &|range| range.for_each(compute));
    }
    Ok(())
}

/// Panels of one thread.
#[derive(Default)]
struct Packed {
    a: Vec<u32>,
    b: Vec<u32>,
}

thread_local! {
    static PACKED: RefCell<Packed> = RefCell::default();
}

/// An operand as lanes (rows of `a`, columns of `b`) of steps along k.
struct Side<'a> {
    of: Bytes<'a>,
    start: isize,
    lane: isize,
    step: isize,
}

struct Out<'a> {
    view: &'a View,
    start: isize,
    strides: (isize, isize),
}

struct Operands<'a> {
    a: Side<'a>,
    b: Side<'a>,
    out: Out<'a>,
}

/// Computes a tile of the output.
///
/// # Safety
/// The ranges lie inside the operands; nothing else touches the tile. The CPU has the instructions of the kernel.
unsafe fn tile(
    kernel: Kernel,
    packed: &mut Packed,
    of: &Operands<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    k: usize,
) {
    let mut sums = [[0i32; NR]; MR];
    // One block at least: a sum of nothing is written, too.
    for first in (0..k.max(1)).step_by(DEPTH) {
        let steps = first..k.min(first + DEPTH);
        let pairs = steps.len().div_ceil(2);
        // SAFETY: lanes and steps of the operand.
        unsafe { of.b.pack(NR, columns.clone(), steps.clone(), &mut packed.b) };
        for top in rows.clone().step_by(kernel.rows * PANELS) {
            let block = top..rows.end.min(top + kernel.rows * PANELS);
            // SAFETY: as above.
            unsafe { of.a.pack(kernel.rows, block.clone(), steps.clone(), &mut packed.a) };
            for j in columns.clone().step_by(NR) {
                let b = packed.b.as_ptr().wrapping_add((j - columns.start) * pairs);
                for i in block.clone().step_by(kernel.rows) {
                    let a = packed.a.as_ptr().wrapping_add((i - block.start) * pairs);
                    let sums = &mut sums[..kernel.rows];
                    sums.fill([0; NR]);
                    // SAFETY: panels of `pairs` steps, packed above.
                    unsafe { (kernel.multiply)(a, b, pairs, sums) };
                    let width = NR.min(columns.end - j);
                    for (r, sums) in sums.iter().enumerate().take(block.end - i) {
                        // SAFETY: a row of the tile.
                        unsafe { of.out.add(i + r, j, &sums[..width], first > 0) };
                    }
                }
            }
        }
    }
}

impl Side<'_> {
    /// Packs lanes in panels of `width`, pair by pair along k. What is missing in a panel is zero.
    ///
    /// # Safety
    /// The lanes and steps exist.
    unsafe fn pack(&self, width: usize, lanes: Range<usize>, steps: Range<usize>, to: &mut Vec<u32>) {
        // SAFETY: the caller's promise.
        match self.of.view.dtype() {
            DType::U8 => unsafe { self.pack_as::<u8>(width, lanes, steps, to) },
            _ => unsafe { self.pack_as::<i8>(width, lanes, steps, to) },
        }
    }

    /// # Safety
    /// As [`Side::pack`]; the elements are `T`.
    unsafe fn pack_as<T: Copy + Into<i16>>(
        &self,
        width: usize,
        lanes: Range<usize>,
        steps: Range<usize>,
        to: &mut Vec<u32>,
    ) {
        let zero = self.of.zero as i16;
        let base = self.of.view.ptr().cast::<T>().cast_const().wrapping_offset(self.start);
        let pairs = steps.len().div_ceil(2);
        to.clear();
        to.resize(lanes.len().next_multiple_of(width) * pairs, 0);
        for (panel, first) in to.chunks_exact_mut((width * pairs).max(1)).zip(lanes.clone().step_by(width)) {
            let count = width.min(lanes.end - first);
            for (p, row) in panel.chunks_exact_mut(width).enumerate() {
                let at = steps.start + 2 * p;
                let from = |k: usize| base.wrapping_offset(first as isize * self.lane + k as isize * self.step);
                let (low, high) = (from(at), from(at + 1));
                let both = at + 1 < steps.end;
                if self.lane == 1 && both {
                    // SAFETY: lanes side by side, at two steps.
                    let (low, high) =
                        unsafe { (std::slice::from_raw_parts(low, count), std::slice::from_raw_parts(high, count)) };
                    for ((to, low), high) in row.iter_mut().zip(low).zip(high) {
                        *to = pair((*low).into() - zero, (*high).into() - zero);
                    }
                    continue;
                }
                for (l, to) in row[..count].iter_mut().enumerate() {
                    let l = l as isize * self.lane;
                    // SAFETY: the lane and the step exist; a step behind the last is not read.
                    let (low, high) = unsafe {
                        let low: i16 = low.wrapping_offset(l).read().into();
                        (low - zero, if both { high.wrapping_offset(l).read().into() - zero } else { 0 })
                    };
                    *to = pair(low, high);
                }
            }
        }
    }
}

fn pair(low: i16, high: i16) -> u32 {
    u32::from(low as u16) | u32::from(high as u16) << 16
}

impl Out<'_> {
    /// Writes sums from (i, j) on, or adds them.
    ///
    /// # Safety
    /// The elements exist and nothing else touches them.
    unsafe fn add(&self, i: usize, j: usize, sums: &[i32], keep: bool) {
        let at = self.start + i as isize * self.strides.0 + j as isize * self.strides.1;
        for (l, sum) in sums.iter().enumerate() {
            let at = at + l as isize * self.strides.1;
            // SAFETY: the caller's promise.
            unsafe {
                if self.view.dtype() == DType::I32 {
                    let to = self.view.ptr().cast::<i32>().wrapping_offset(at);
                    to.write(if keep { to.read().wrapping_add(*sum) } else { *sum });
                } else {
                    let to = self.view.ptr().cast::<i64>().wrapping_offset(at);
                    to.write(if keep { to.read().wrapping_add(i64::from(*sum)) } else { i64::from(*sum) });
                }
            }
        }
    }
}

/// See [`Multiply`].
unsafe fn plain(a: *const u32, b: *const u32, pairs: usize, sums: &mut [[i32; NR]]) {
    let rows = sums.len();
    let halves = |x: u32| (i32::from(x as i16), (x as i32) >> 16);
    for p in 0..pairs {
        // SAFETY: a step of both panels.
        let (a, b) = unsafe {
            (std::slice::from_raw_parts(a.add(p * rows), rows), std::slice::from_raw_parts(b.add(p * NR), NR))
        };
        for (sums, a) in sums.iter_mut().zip(a) {
            let (a0, a1) = halves(*a);
            for (sum, b) in sums.iter_mut().zip(b) {
                let (b0, b1) = halves(*b);
                *sum = sum.wrapping_add(a0 * b0 + a1 * b1);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod native {
    use super::{MR, NR};
    use std::arch::x86_64::*;

    /// AVX-512 VNNI: 28 vectors of sums, two of `b`, and the pair of `a` comes from memory. See [`super::Multiply`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) unsafe fn vnni(mut a: *const u32, mut b: *const u32, pairs: usize, sums: &mut [[i32; NR]]) {
        debug_assert_eq!(sums.len(), MR);
        let mut acc = [[_mm512_setzero_si512(); 2]; MR];
        // SAFETY: inside the panels and the sums.
        unsafe {
            for _ in 0..pairs {
                let columns = [_mm512_loadu_si512(b.cast()), _mm512_loadu_si512(b.add(NR / 2).cast())];
                for (i, acc) in acc.iter_mut().enumerate() {
                    let row = _mm512_set1_epi32(a.add(i).read() as i32);
                    acc[0] = _mm512_dpwssd_epi32(acc[0], row, columns[0]);
                    acc[1] = _mm512_dpwssd_epi32(acc[1], row, columns[1]);
                }
                (a, b) = (a.add(MR), b.add(NR));
            }
            for (sums, acc) in sums.iter_mut().zip(acc) {
                _mm512_storeu_si512(sums.as_mut_ptr().cast(), acc[0]);
                _mm512_storeu_si512(sums.as_mut_ptr().add(NR / 2).cast(), acc[1]);
            }
        }
    }

    /// AVX2: 6 rows, 16 columns at a time. See [`super::Multiply`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn avx2(a: *const u32, b: *const u32, pairs: usize, sums: &mut [[i32; NR]]) {
        const ROWS: usize = 6;
        const LANES: usize = 8;
        debug_assert_eq!(sums.len(), ROWS);
        for half in (0..NR).step_by(2 * LANES) {
            let mut acc = [[_mm256_setzero_si256(); 2]; ROWS];
            // SAFETY: inside the panels and the sums.
            unsafe {
                let (mut a, mut b) = (a, b.add(half));
                for _ in 0..pairs {
                    let columns = [_mm256_loadu_si256(b.cast()), _mm256_loadu_si256(b.add(LANES).cast())];
                    for (i, acc) in acc.iter_mut().enumerate() {
                        let row = _mm256_set1_epi32(a.add(i).read() as i32);
                        acc[0] = _mm256_add_epi32(acc[0], _mm256_madd_epi16(row, columns[0]));
                        acc[1] = _mm256_add_epi32(acc[1], _mm256_madd_epi16(row, columns[1]));
                    }
                    (a, b) = (a.add(ROWS), b.add(NR));
                }
                for (sums, acc) in sums.iter_mut().zip(acc) {
                    _mm256_storeu_si256(sums.as_mut_ptr().add(half).cast(), acc[0]);
                    _mm256_storeu_si256(sums.as_mut_ptr().add(half + LANES).cast(), acc[1]);
                }
            }
        }
    }
}
