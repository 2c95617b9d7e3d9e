//! f16 and bf16 products: tiles of the output, summed in f32, rounded once. Operands are widened to f32 tile by tile, but
//! where the CPU multiplies bf16 ([`bf16`]).

use std::cell::RefCell;

use super::{Mat, PARALLEL_FLOPS, Product, bf16, gemm_serial};
use crate::View;
use crate::cpu::acc::{load, store};
use crate::parallel::parallel_for;

/// Rows and columns of a tile of the output, and the part of k that is widened at a time. Fixed: they decide the order of
/// summation.
const ROWS: usize = 256;
const COLUMNS: usize = 512;
const DEPTH: usize = 512;

/// Tiles of one thread: of the operands, widened or packed, and of sums.
#[derive(Default)]
pub(super) struct Tiles {
    pub(super) a: Vec<f32>,
    pub(super) b: Vec<f32>,
    pub(super) c: Vec<f32>,
}

thread_local! {
    static TILES: RefCell<Tiles> = RefCell::default();
}

pub(super) fn run(product: &Product, a: &View, b: &View, out: &View, keep: bool) {
    run_by(bf16::kernel(a.dtype()).unwrap_or(WIDENED), product, a, b, out, keep);
}

/// The kernel for any CPU.
pub(super) const WIDENED: bf16::Kernel = (ROWS, COLUMNS, widened);

/// Computes a product by a kernel for these dtypes.
pub(super) fn run_by(kernel: bf16::Kernel, product: &Product, a: &View, b: &View, out: &View, keep: bool) {
    let Product { m, n, k, .. } = *product;
    let (height, width, tile) = kernel;
    let (down, across) = (m.div_ceil(height), n.div_ceil(width));
    let compute = |index: usize| {
        let (oa, ob, oc) = product.offsets(index / (down * across));
        let (i, j) = (index / across % down * height, index % across * width);
        let (rows, columns) = (height.min(m - i), width.min(n - j));
        let a = PanelWindow { view: a, offset: oa, strides: product.a }.at(i, 0);
        let b = PanelWindow { view: b, offset: ob, strides: product.b }.at(0, j);
        let c = PanelWindow { view: out, offset: oc, strides: product.c }.at(i, j);
        TILES.with_borrow_mut(|tiles| {
            // SAFETY: the windows lie inside the views; tiles of the output do not overlap.
            unsafe { tile(tiles, [rows, columns, k], a, b, keep, c) }
        });
    };
    let tiles = product.count() * down * across;
    if product.flops().saturating_mul(product.count()) < PARALLEL_FLOPS {
        (0..tiles).for_each(compute);
    } else {
        let each = 2usize.saturating_mul(height.min(m)).saturating_mul(width.min(n)).saturating_mul(k.max(1));
        let grain = (PARALLEL_FLOPS / each).clamp(1, tiles);
        parallel_for(tiles, grain, &|range| range.for_each(compute));
    }
}

/// Computes a tile by an f32 product of widened tiles. See [`bf16::Tile`].
///
/// # Safety
/// The windows have the elements that the sizes say; nothing else touches those of `c`.
unsafe fn widened(
    tiles: &mut Tiles,
    [m, n, k]: [usize; 3],
    a: PanelWindow,
    b: PanelWindow,
    keep: bool,
    c: PanelWindow,
) {
    let Tiles { a: ta, b: tb, c: tc } = tiles;
    tc.resize(m * n, 0.0);
    let sum = Mat { ptr: tc.as_mut_ptr(), rs: n as isize, cs: 1 };
    if keep {
        // SAFETY: the caller's promise.
        unsafe { c.read_rows(n, tc) };
    } else {
        tc.fill(0.0);
    }
    for p in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - p);
        // SAFETY: parts of the caller's windows; the tiles are three different vectors.
        unsafe {
            let wide_a = a.at(0, p).read(m, depth, ta);
            let wide_b = b.at(p, 0).read(depth, n, tb);
            gemm_serial(m, n, depth, 1.0, wide_a, wide_b, true, sum);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { c.write_rows(n, tc) };
}

/// A matrix inside a view.
#[derive(Clone, Copy)]
pub(super) struct PanelWindow<'a> {
    pub(super) view: &'a View,
    offset: isize,
    pub(super) strides: (isize, isize),
}

impl PanelWindow<'_> {
    pub(super) fn at(self, i: usize, j: usize) -> Self {
        PanelWindow { offset: self.offset + i as isize * self.strides.0 + j as isize * self.strides.1, ..self }
    }

    pub(super) fn address(self, i: usize, j: usize) -> *mut u8 {
        self.view.ptr().wrapping_offset(self.at(i, j).offset * self.view.dtype().size() as isize)
    }

    /// Widens into `to`, in whichever order the elements lie side by side; says where element (i, j) came to lie.
    unsafe fn read(self, m: usize, n: usize, to: &mut Vec<f32>) -> Mat<f32> {
        to.resize(m * n, 0.0);
        let transposed = self.strides.0.unsigned_abs() < self.strides.1.unsigned_abs();
        if transposed {
            for (j, column) in to.chunks_exact_mut(m).enumerate() {
                // SAFETY: column j of the window.
                unsafe { load(self.view.dtype(), self.address(0, j), self.strides.0, column) };
            }
            return Mat { ptr: to.as_mut_ptr(), rs: 1, cs: m as isize };
        }
        // SAFETY: the rows of the window.
        unsafe { self.read_rows(n, to) };
        Mat { ptr: to.as_mut_ptr(), rs: n as isize, cs: 1 }
    }

    unsafe fn read_rows(self, n: usize, to: &mut [f32]) {
        for (i, row) in to.chunks_exact_mut(n).enumerate() {
            // SAFETY: row i of the window.
            unsafe { load(self.view.dtype(), self.address(i, 0), self.strides.1, row) };
        }
    }

    /// Rounds the row-major tile `from` into the window.
    unsafe fn write_rows(self, n: usize, from: &[f32]) {
        for (i, row) in from.chunks_exact(n).enumerate() {
            // SAFETY: row i of the window.
            unsafe { store(self.view.dtype(), self.address(i, 0), self.strides.1, row) };
        }
    }
}
