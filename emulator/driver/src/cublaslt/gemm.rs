//! The arithmetic of a product: packed panels, a 4 x 16 tile in registers, sums over k in order.

use half::{bf16, f16};

const TALL: usize = 4;
const WIDE: usize = 16;

/// A number that products are summed in.
pub trait Number: Copy + Default + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self> + PartialEq {
    fn of(x: f64) -> Self;
    fn to(self) -> f64;
}
impl Number for f32 {
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn to(self) -> f64 {
        self.into()
    }
}
impl Number for f64 {
    fn of(x: f64) -> f64 {
        x
    }
    fn to(self) -> f64 {
        self
    }
}

/// The element types, by cudaDataType.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Element {
    F16,
    BF16,
    F32,
    F64,
}

impl Element {
    pub fn of(code: i32) -> Option<Element> {
        [(2, Element::F16), (14, Element::BF16), (0, Element::F32), (1, Element::F64)]
            .into_iter()
            .find_map(|(known, element)| (known == code).then_some(element))
    }
    pub fn size(self) -> usize {
        match self {
            Element::F16 | Element::BF16 => 2,
            Element::F32 => 4,
            Element::F64 => 8,
        }
    }
    /// # Safety
    /// `base` plus `at` elements can be read.
    #[inline(always)]
    pub unsafe fn load<N: Number>(self, base: usize, at: usize) -> N {
        // SAFETY: by contract.
        unsafe {
            match self {
                Element::F16 => N::of((*(base as *const f16).add(at)).to_f64()),
                Element::BF16 => N::of((*(base as *const bf16).add(at)).to_f64()),
                Element::F32 => N::of((*(base as *const f32).add(at)).into()),
                Element::F64 => N::of(*(base as *const f64).add(at)),
            }
        }
    }
    /// # Safety
    /// `base` plus `at` elements can be written.
    #[inline(always)]
    pub unsafe fn store<N: Number>(self, base: usize, at: usize, value: N) {
        // SAFETY: by contract. From f32 by f64 to a half is rounded once, because f64 holds any f32.
        unsafe {
            match self {
                Element::F16 => *(base as *mut f16).add(at) = f16::from_f64(value.to()),
                Element::BF16 => *(base as *mut bf16).add(at) = bf16::from_f64(value.to()),
                Element::F32 => *(base as *mut f32).add(at) = value.to() as f32,
                Element::F64 => *(base as *mut f64).add(at) = value.to(),
            }
        }
    }
}

/// One matrix in memory, after its transpose: element (i, j) is at `i * down + j * right`.
#[derive(Clone, Copy)]
pub struct Matrix {
    pub element: Element,
    pub base: usize,
    pub down: usize,
    pub right: usize,
}

/// An f32 as tensor cores take it under TF32: ten bits of fraction, to nearest.
fn tf32(x: f32) -> f32 {
    if x.is_finite() { f32::from_bits(x.to_bits().wrapping_add(0x1000) & !0x1fff) } else { x }
}

/// Panels of `width` lines along `lines`: for each panel, for each k, `width` values.
///
/// # Safety
/// The matrix can be read for `lines` times `depth` elements; `line` and `step` are its strides.
unsafe fn pack<N: Number>(
    matrix: Matrix,
    (lines, line): (usize, usize),
    (depth, step): (usize, usize),
    width: usize,
    rounded: bool,
) -> Vec<N> {
    let mut panels = vec![N::default(); lines.div_ceil(width) * width * depth];
    for at in 0..lines {
        let start = at / width * width * depth + at % width;
        for k in 0..depth {
            // SAFETY: by contract.
            let value: N = unsafe { matrix.element.load(matrix.base, at * line + k * step) };
            panels[start + k * width] = if rounded { N::of(tf32(value.to() as f32).into()) } else { value };
        }
    }
    panels
}

#[inline(always)]
fn tile<N: Number>(a: &[N], b: &[N]) -> [[N; WIDE]; TALL] {
    let mut sum = [[N::default(); WIDE]; TALL];
    for (a, b) in a.chunks_exact(TALL).zip(b.chunks_exact(WIDE)) {
        for (row, &x) in sum.iter_mut().zip(a) {
            for (sum, &y) in row.iter_mut().zip(b) {
                *sum = *sum + x * y;
            }
        }
    }
    sum
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn tile_avx2<N: Number>(a: &[N], b: &[N]) -> [[N; WIDE]; TALL] {
    tile(a, b)
}

fn best_tile<N: Number>(a: &[N], b: &[N]) -> [[N; WIDE]; TALL] {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { tile_avx2(a, b) };
    }
    tile(a, b)
}

/// The product of an m x k and a k x n matrix; `each` gets row, column and sum.
///
/// # Safety
/// Both matrices can be read.
pub unsafe fn product<N: Number>(
    a: Matrix,
    b: Matrix,
    (m, n, k): (usize, usize, usize),
    rounded: bool,
    mut each: impl FnMut(usize, usize, N),
) {
    // SAFETY: by contract.
    let (left, right) = unsafe {
        let left = pack::<N>(a, (m, a.down), (k, a.right), TALL, rounded);
        (left, pack::<N>(b, (n, b.right), (k, b.down), WIDE, rounded))
    };
    for column in (0..n).step_by(WIDE) {
        let b = &right[column * k..(column + WIDE) * k];
        for row in (0..m).step_by(TALL) {
            let sum = best_tile(&left[row * k..(row + TALL) * k], b);
            for (i, line) in sum.iter().enumerate().take(m - row) {
                for (j, &value) in line.iter().enumerate().take(n - column) {
                    each(row + i, column + j, value);
                }
            }
        }
    }
}
