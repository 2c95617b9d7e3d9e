//! Kernels of matrix products.

use super::{On, Row, both, run};
use crate::error::{Error, Result};
use crate::ops::KernelCx;
use oflow_kernels::cpu::matmul::Bytes;
use oflow_kernels::cuda::Epilogue;
use oflow_kernels::{Dims, View, cpu, cuda};
use smallvec::SmallVec;

/// The matrix dims exchanged, if asked.
fn transposed(v: &View, t: bool) -> View {
    if !t {
        return v.clone();
    }
    let r = v.rank();
    let (mut d, mut s): (Dims, SmallVec<[isize; 6]>) = (v.dims().into(), v.strides().into());
    d.swap(r - 2, r - 1);
    s.swap(r - 2, r - 1);
    // SAFETY: the same elements in another order.
    unsafe { v.restride(0, d, s) }
}

/// `[.., m, k]` as one matrix `[N, k]`, where the leading dims lie without gaps.
fn flattened(v: &View) -> Option<View> {
    let (d, s) = (v.dims(), v.strides());
    let last = d.len() - 1;
    let mut rows = 1;
    for i in (0..last).rev() {
        if d[i] != 1 && s[i] != s[last - 1] * rows as isize && d[last - 1] != 1 {
            return None;
        }
        if d[last - 1] == 1 && d[i] != 1 && !v.is_contiguous() {
            return None;
        }
        rows *= d[i];
    }
    let step = if d[last - 1] == 1 { d[last] as isize } else { s[last - 1] };
    let (dims, strides): (Dims, SmallVec<[isize; 6]>) =
        ([rows, d[last]].into_iter().collect(), [step, s[last]].into_iter().collect());
    // SAFETY: the rows are those of the view, in the same order (checked above).
    Some(unsafe { v.restride(0, dims, strides) })
}

/// The operands with their transposes as strides.
fn operands(cx: &KernelCx<'_>) -> Result<(View, View)> {
    let (ta, tb) = (cx.bool("transpose_a")?, cx.bool("transpose_b")?);
    Ok((transposed(cx.input(0)?, ta), transposed(cx.input(1)?, tb)))
}

/// `aᵀ b` summed over all leading dims into `out`, by a function that does `x y` and may add to what is there.
fn run_rows(a: &View, b: &View, product: &dyn Fn(&View, &View, bool) -> Result<()>) -> Result<()> {
    let flat = |v: &View| if v.rank() == 2 { Some(v.clone()) } else { flattened(v) };
    if let (Some(a), Some(b)) = (flat(a), flat(b)) {
        return product(&transposed(&a, true), &b, false);
    }
    // Leading dims with gaps: row block by row block, in order. Without rows, a product over nothing: zeros.
    let count: usize = a.dims()[..a.rank() - 2].iter().product();
    if count == 0 {
        let nothing = |v: &View| {
            let (d, s) = (&v.dims()[v.rank() - 1..], &v.strides()[v.rank() - 1..]);
            // SAFETY: without rows, no element.
            unsafe { v.restride(0, [0, d[0]].into_iter().collect(), [d[0] as isize, s[0]].into_iter().collect()) }
        };
        return product(&transposed(&nothing(a), true), &nothing(b), false);
    }
    (0..count).try_for_each(|i| product(&transposed(&block(a, i), true), &block(b, i), i > 0))
}

/// Matrix number `i` of a batch.
fn block(v: &View, mut i: usize) -> View {
    let r = v.rank();
    let mut offset = 0;
    for d in (0..r - 2).rev() {
        offset += (i % v.dims()[d]) as isize * v.strides()[d];
        i /= v.dims()[d];
    }
    // SAFETY: one matrix of the view.
    unsafe { v.restride(offset, v.dims()[r - 2..].into(), v.strides()[r - 2..].into()) }
}

/// `[out, in]` as `[in, out]`.
fn weight_transposed(w: &View) -> Result<View> {
    match (w.dims(), w.strides()) {
        ([r, c], [rs, cs]) => {
            // SAFETY: the same elements in another order.
            Ok(unsafe { w.restride(0, [*c, *r].into_iter().collect(), [*cs, *rs].into_iter().collect()) })
        }
        _ => Err(Error::shape("the weight is not a matrix")),
    }
}

/// The bias as often as `out` has rows.
fn repeated(bias: &View, out: &View) -> View {
    let mut strides = smallvec::SmallVec::from_elem(0, out.rank());
    if let (Some(last), Some(step)) = (strides.last_mut(), bias.strides().first()) {
        *last = *step;
    }
    // SAFETY: dims of stride 0 address nothing new; the last one is the bias's own.
    unsafe { bias.restride(0, out.dims().into(), strides) }
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        both("matmul", |on, cx| {
            let (a, b) = operands(cx)?;
            run!(on, matmul::matmul(&a, &b, cx.output(0)))
        }),
        both("quantized_product", |on, cx| {
            let stored = [cx.input(0)?.stored(), cx.input(1)?.stored()];
            let [a, b] = ["zero_a", "zero_b"].map(|name| cx.scalar(name).map(|zero| zero.to_i64()));
            let (a, b) = (Bytes { view: &stored[0], zero: a? }, Bytes { view: &stored[1], zero: b? });
            run!(on, matmul::matmul_bytes(a, b, cx.output(0)))
        }),
        both("matmul_rows", |on, cx| {
            let product = |a: &View, b: &View, add| run!(on, matmul::matmul_into(a, b, cx.output(0), add));
            run_rows(cx.input(0)?, cx.input(1)?, &product)
        }),
        both("linear", |on, cx| {
            let (x, w, bias, out) = (cx.input(0)?, weight_transposed(cx.input(1)?)?, cx.input(2)?, cx.output(0));
            match on {
                On::Cpu => {
                    cpu::copy::copy(&repeated(bias, out), out)?;
                    Ok(cpu::matmul::matmul_into(x, &w, out, true)?)
                }
                On::Cuda(q) => Ok(cuda::matmul::matmul_with(q, x, &w, out, Epilogue::Bias, Some(bias))?),
            }
        }),
    ]
}
