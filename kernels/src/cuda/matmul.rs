//! Matrix products: `[..., m, k] x [..., k, n] -> [..., m, n]`, floats by cuBLASLt, the rest by a plain kernel.

use super::blas::{Gemm, Operand};
use super::{Args, Define, Epilogue, Launch, Queue, Source};
use crate::cpu::matmul::{BatchDim, Bytes, Product};
use crate::{KernelError, Result, View};
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) static MATMUL: Source = Source::file("matmul", include_str!("../../cuda/matmul.cu")).forms(&[
    "T=f32 U=f32 O=f32",
    "T=f64 U=f64 O=f64",
    "T=bf16 U=bf16 O={bf16,f32}",
    "T=i32 U=i32 O=i32",
    "T=i64 U=i64 O=i64",
    "T={i8,u8} U={i8,u8} O=i32",
]);
static TF32: AtomicBool = AtomicBool::new(false);

/// Whether f32 products on GPUs may round their operands to TF32 (10 bits of fraction instead of 23; several times as
/// fast). For the whole process; off at the start, so that numbers agree with the CPU's.
pub fn allow_tf32(allow: bool) {
    TF32.store(allow, Ordering::Relaxed);
}

/// Whether it is allowed.
pub fn tf32_allowed() -> bool {
    TF32.load(Ordering::Relaxed)
}

/// `out = a x b`, as [`crate::cpu::matmul::matmul`].
///
/// # Errors
/// Where dims do not fit together or dtypes are mixed; what cuBLASLt reports.
pub fn matmul(q: &Queue, a: &View, b: &View, out: &View) -> Result<()> {
    run(q, a, b, out, false, Epilogue::None, None)
}

/// [`matmul`] that adds to `out` instead of replacing it when `accumulate` is set.
///
/// # Errors
/// As [`matmul`].
pub fn matmul_into(q: &Queue, a: &View, b: &View, out: &View, accumulate: bool) -> Result<()> {
    run(q, a, b, out, accumulate, Epilogue::None, None)
}

/// `out = f(a x b + bias)` in one kernel: `bias` has `n` elements of `out`'s dtype and is there exactly where the epilogue
/// names one. The product is rounded once, after the epilogue.
///
/// # Errors
/// As [`matmul`]; for products that only the plain kernel can do, which has no epilogue but a bias.
pub fn matmul_with(q: &Queue, a: &View, b: &View, out: &View, epilogue: Epilogue, bias: Option<&View>) -> Result<()> {
    let named = matches!(epilogue, Epilogue::Bias | Epilogue::BiasGelu);
    if bias.is_some() != named {
        return Err(KernelError::new(format!("the epilogue {epilogue:?} and a bias do not go together")));
    }
    if let Some(bias) = bias
        && (bias.rank() != 1 || bias.dtype() != out.dtype() || out.dims().last() != Some(&bias.len()))
    {
        return Err(KernelError::new(format!(
            "a bias of {:?} {} does not fit a product of {:?} {}",
            bias.dims(),
            bias.dtype(),
            out.dims(),
            out.dtype()
        )));
    }
    if let (Epilogue::Bias, Some(b0)) = (epilogue, bias)
        && !b0.is_contiguous()
    {
        super::copy::copy(q, &repeated(b0, out), out)?;
        return run(q, a, b, out, true, Epilogue::None, None);
    }
    run(q, a, b, out, false, epilogue, bias)
}

fn run(
    q: &Queue,
    a: &View,
    b: &View,
    out: &View,
    accumulate: bool,
    epilogue: Epilogue,
    bias: Option<&View>,
) -> Result<()> {
    let mut p = Product::new(a, b, out)?;
    if out.is_empty() {
        return Ok(());
    }
    let (mut left, mut right) = (a, b);
    if p.c.1 != 1 && p.c.0 == 1 && bias.is_none() {
        // An output that lies column by column: its transpose is the product of the transposed operands.
        p.transpose();
        (left, right) = (b, a);
    }
    let plain = || {
        if let (Epilogue::Bias, Some(bias)) = (epilogue, bias) {
            super::copy::copy(q, &repeated(bias, out), out)?;
            return plain(q, &p, left, right, out, true);
        }
        if epilogue != Epilogue::None {
            return Err(KernelError::new(format!(
                "a product {:?} x {:?} of these strides or dtypes has no epilogue {epilogue:?}",
                a.dims(),
                b.dims()
            )));
        }
        plain(q, &p, left, right, out, accumulate)
    };
    if !a.dtype().is_float() || p.k == 0 {
        return plain();
    }
    let Some((one, outer)) = batched(&p) else { return plain() };
    let (Some(la), Some(lb), Some(lc)) = (lie(p.m, p.k, p.a), lie(p.k, p.n, p.b), lie(p.m, p.n, p.c)) else {
        return plain();
    };
    if lc.0 {
        return plain();
    }
    let at = |v: &View, offset: isize| v.ptr().wrapping_offset(offset * v.dtype().size() as isize);
    let blas = q.gpu().blas()?;
    let mut index = 0;
    let count: usize = outer.iter().map(|d| d.size).product();
    while index < count {
        let (mut rest, mut oa, mut ob, mut oc) = (index, 0, 0, 0);
        for d in outer.iter().rev() {
            let i = (rest % d.size) as isize;
            rest /= d.size;
            (oa, ob, oc) = (oa + i * d.a, ob + i * d.b, oc + i * d.c);
        }
        let operand = |at, (transposed, ld), batch: isize| Operand { at, transposed, ld, batch: batch as i64 };
        let call = Gemm {
            dtype: a.dtype().computed()?,
            out_dtype: out.dtype().computed()?,
            m: p.m,
            n: p.n,
            k: p.k,
            count: one.size,
            a: operand(at(left, oa), la, one.a),
            b: operand(at(right, ob), lb, one.b),
            c: operand(at(out, oc), lc, one.c),
            accumulate,
            tf32: a.dtype() == crate::DType::F32 && tf32_allowed(),
            epilogue,
            bias: bias.map_or(std::ptr::null(), |b| b.ptr()),
        };
        if !blas.run(|| q.stream().for_blas(), &call)? {
            if index == 0 {
                return plain();
            }
            return Err(KernelError::device(format!(
                "cuBLASLt did {index} of {count} products {:?} x {:?} and refuses the next",
                a.dims(),
                b.dims()
            )));
        }
        index += 1;
    }
    Ok(())
}

/// A vector as often as `out` has rows.
fn repeated(bias: &View, out: &View) -> View {
    let mut strides = crate::Strides::from_elem(0, out.rank());
    if let (Some(last), Some(step)) = (strides.last_mut(), bias.strides().first()) {
        *last = *step;
    }
    // SAFETY: dims of stride 0 address nothing new; the last one is the vector's own.
    unsafe { bias.restride(0, out.dims().into(), strides) }
}

/// How a matrix lies, as cuBLASLt can say it: column by column?, and the step from line to line.
fn lie(rows: usize, columns: usize, (row, column): (isize, isize)) -> Option<(bool, i64)> {
    if rows > i32::MAX as usize || columns > i32::MAX as usize {
        return None;
    }
    let line = |lines: usize, length: usize, step: isize, inner: isize| {
        let fits = (inner == 1 || length <= 1) && (lines <= 1 || step >= length.max(1) as isize);
        fits.then_some(if lines <= 1 { length.max(1) as i64 } else { step as i64 })
    };
    line(rows, columns, row, column)
        .map(|ld| (false, ld))
        .or_else(|| line(columns, rows, column, row).map(|ld| (true, ld)))
}

/// The longest dim of the batch, which one call does, and the others, which are calls of their own.
fn batched(p: &Product) -> Option<(BatchDim, Vec<BatchDim>)> {
    let mut outer: Vec<BatchDim> = p.batch.to_vec();
    let can = |d: &BatchDim| d.a >= 0 && d.b >= 0 && d.c > 0 && d.size <= i32::MAX as usize;
    let best = (0..outer.len()).filter(|i| can(&outer[*i])).max_by_key(|i| outer[*i].size);
    let one = best.map_or(BatchDim { size: 1, a: 0, b: 0, c: 0 }, |i| outer.remove(i));
    // So many small calls would take longer than the plain kernel.
    let calls: usize = outer.iter().map(|d| d.size).product();
    (calls <= 64 || p.m.saturating_mul(p.n).saturating_mul(p.k).saturating_mul(one.size) >= 1 << 22)
        .then_some((one, outer))
}

/// Dims of a batch that the plain kernel takes.
const DIMS: usize = 6;

/// `of_product` of the kernel.
#[repr(C)]
#[derive(Clone, Copy)]
struct Plain {
    sizes: [i64; 3],
    strides: [i64; 6],
    count: i64,
    size: [i64; DIMS],
    a_step: [i64; DIMS],
    b_step: [i64; DIMS],
    c_step: [i64; DIMS],
    accumulate: i32,
    zero_a: i32,
    zero_b: i32,
    pad: i32,
}

/// As [`crate::cpu::matmul::matmul_bytes`].
///
/// # Errors
/// Those of the CPU's; if the kernel cannot be compiled or launched.
pub fn matmul_bytes(q: &Queue, a: Bytes<'_>, b: Bytes<'_>, out: &View) -> Result<()> {
    let product = Product::of_bytes(a, b, out)?;
    if out.is_empty() {
        return Ok(());
    }
    plain_with(q, &product, (a.view, b.view, out), [a.zero as i32, b.zero as i32], false)
}

fn plain(q: &Queue, p: &Product, a: &View, b: &View, out: &View, accumulate: bool) -> Result<()> {
    plain_with(q, p, (a, b, out), [0; 2], accumulate)
}

/// The plain kernel with numbers that are subtracted from the operands.
fn plain_with(
    q: &Queue,
    p: &Product,
    (a, b, out): (&View, &View, &View),
    [zero_a, zero_b]: [i32; 2],
    accumulate: bool,
) -> Result<()> {
    let defines = [Define::dtype("T", a.dtype()), Define::dtype("U", b.dtype()), Define::dtype("O", out.dtype())];
    let f = q.function(&MATMUL, "matmul", &defines)?;
    if p.batch.len() > DIMS {
        return Err(KernelError::new(format!("a product with a batch of {} irregular dims", p.batch.len())));
    }
    let (mut size, mut steps) = ([1; DIMS], [[0; DIMS]; 3]);
    for (i, d) in p.batch.iter().rev().enumerate() {
        let i = DIMS - 1 - i;
        size[i] = d.size as i64;
        [steps[0][i], steps[1][i], steps[2][i]] = [d.a, d.b, d.c].map(|s| s as i64);
    }
    let count: usize = p.batch.iter().map(|d| d.size).product();
    let tiles = p.m.div_ceil(64).saturating_mul(p.n.div_ceil(64));
    let tiles = u32::try_from(tiles)
        .ok()
        .filter(|t| *t <= i32::MAX as u32)
        .ok_or_else(|| KernelError::new(format!("a product of {} x {} elements is too large", p.m, p.n)))?;
    let product = Plain {
        sizes: [p.m, p.n, p.k].map(|s| s as i64),
        strides: [p.a.0, p.a.1, p.b.0, p.b.1, p.c.0, p.c.1].map(|s| s as i64),
        count: count as i64,
        size,
        a_step: steps[0],
        b_step: steps[1],
        c_step: steps[2],
        accumulate: i32::from(accumulate),
        zero_a,
        zero_b,
        pad: 0,
    };
    let args = Args::new().view(a).view(b).view(out).value(product);
    q.launch(f, Launch::grid((tiles, count.min(65535) as u32, 1), 256), args)
}
