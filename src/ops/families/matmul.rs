//! Matrix products: factor rules give every S, B and P signature.

use crate::error::{Error, Result};
use crate::ops::{Grad, InferCtx, KernelCx, OpDef, Value, broadcast_shapes};
use crate::sbp::{FactorRule, Sbp, Signature};
use oflow_kernels::{Dims, View, cpu, cuda};
use smallvec::SmallVec;

/// The matrix dims of an operand after its transpose flag: (rows, columns).
fn matrix(shape: &[usize], transposed: bool) -> Result<(usize, usize)> {
    match shape {
        [.., r, c] => Ok(if transposed { (*c, *r) } else { (*r, *c) }),
        _ => Err(Error::shape(format!("a matrix product needs at least 2 dims, not {shape:?}"))
            .help("`Tensor::matmul` takes vectors too")),
    }
}

fn shape(c: &InferCtx<'_>) -> Result<Dims> {
    let (a, b) = (c.shape(0)?, c.shape(1)?);
    let (m, k) = matrix(a, c.bool("transpose_a")?)?;
    let (k2, n) = matrix(b, c.bool("transpose_b")?)?;
    if k != k2 {
        return Err(Error::shape(format!("inner dims differ: {k} and {k2}"))
            .help("the last dim of the first operand must equal the second-to-last of the second"));
    }
    let mut out = broadcast_shapes([&a[..a.len() - 2], &b[..b.len() - 2]])?;
    out.extend([m, n]);
    Ok(out)
}

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
fn run_rows(
    a: &View,
    b: &View,
    product: &dyn Fn(&View, &View, bool) -> oflow_kernels::Result<()>,
) -> oflow_kernels::Result<()> {
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

fn gradient(g: &mut dyn crate::ops::GradCtx) -> Result<()> {
    use crate::ops::AttrValue::Bool;
    let Some(dy) = g.grad(0) else { return Ok(()) };
    let (ta, tb) = (g.attr("transpose_a")? == Bool(true), g.attr("transpose_b")? == Bool(true));
    fn product(g: &mut dyn crate::ops::GradCtx, x: Value, tx: bool, y: Value, ty: bool) -> Result<Value> {
        g.call("matmul", &[x, y], &[("transpose_a", tx.into()), ("transpose_b", ty.into())])
    }
    if g.needs(0) {
        let b = g.input(1)?;
        let da = if ta { product(g, b, tb, dy, true)? } else { product(g, dy, false, b, !tb)? };
        g.set(0, da)?;
    }
    if g.needs(1) {
        let a = g.input(0)?;
        let (ra, rb) = (g.input_shape(0).len(), g.input_shape(1).len());
        let db = if rb == 2 && ra > 2 && !ta {
            // One matrix against a batch: its gradient is summed over all rows in one product.
            if tb { g.call("matmul_rows", &[dy, a], &[])? } else { g.call("matmul_rows", &[a, dy], &[])? }
        } else if tb {
            product(g, dy, true, a, ta)?
        } else {
            product(g, a, !ta, dy, false)?
        };
        g.set(1, db)?;
    }
    Ok(())
}

/// `[.., k] x [.., n] -> [k, n]`, summed over all leading dims: the gradient of a weight.
fn matmul_rows() -> Result<OpDef> {
    Ok(OpDef::new("matmul_rows(a: num, b: num) -> y")?
        .doc("aᵀ b summed over all leading dims: the gradient of a weight.")
        .strided()
        .check(|c| super::one_dtype(c, &[0, 1]))
        .shape1(|c| match (c.shape(0)?, c.shape(1)?) {
            ([_], _) | (_, [_]) => Err(Error::shape("a product of rows needs at least 2 dims")),
            ([la @ .., k], [lb @ .., n]) if la == lb => Ok([*k, *n].into_iter().collect()),
            (a, b) => Err(Error::shape(format!("leading dims differ: {a:?} and {b:?}"))),
        })
        .get_sbp(|c| {
            let last = c.shape(0)?.len() - 1;
            let mut s: Vec<Signature> =
                (0..last).map(|d| Signature::new(&[Sbp::Split(d), Sbp::Split(d)], &[Sbp::PARTIAL_SUM])).collect();
            for row in ["B, P -> P", "P, B -> P"] {
                s.push(row.parse()?);
            }
            s.push(Signature::new(&[Sbp::Split(last), Sbp::Broadcast], &[Sbp::Split(0)]));
            s.push(Signature::new(&[Sbp::Broadcast, Sbp::Split(last)], &[Sbp::Split(1)]));
            Ok(s)
        })
        .flops(|c| Ok((c.input(0)?.len() as u64).saturating_mul(2 * *c.shape(1)?.last().unwrap_or(&1) as u64)))
        .cpu(|cx| {
            let product = |a: &View, b: &View, add| cpu::matmul::matmul_into(a, b, cx.output(0), add);
            Ok(run_rows(cx.input(0)?, cx.input(1)?, &product)?)
        })
        .cuda(|cx| {
            let q = cx.queue()?;
            let product = |a: &View, b: &View, add| cuda::matmul::matmul_into(q, a, b, cx.output(0), add);
            Ok(run_rows(cx.input(0)?, cx.input(1)?, &product)?)
        })
        .grad(Grad::rule(|g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            if g.needs(0) {
                let b = g.input(1)?;
                let da = g.call("matmul", &[b, dy], &[("transpose_b", true.into())])?;
                g.set(0, da)?;
            }
            if g.needs(1) {
                let a = g.input(0)?;
                let db = g.call("matmul", &[a, dy], &[])?;
                g.set(1, db)?;
            }
            Ok(())
        }))
        .samples(&["f32[2, 3, 4] f32[2, 3, 5]", "f64[3, 4] f64[3, 2]", "i32[2, 2, 3, 4] i32[2, 2, 3, 5]"]))
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

pub(super) fn ops() -> Vec<Result<OpDef>> {
    vec![
        OpDef::new("matmul(a: num, b: num; transpose_a: bool = false, transpose_b: bool = false) -> y").map(|o| {
            o.doc("Matrix product over the last two dims; leading dims broadcast.")
                .strided()
                .check(|c| super::one_dtype(c, &[0, 1]))
                .shape1(shape)
                .get_sbp(|c| {
                    let a = if c.bool("transpose_a")? { "...km" } else { "...mk" };
                    let b = if c.bool("transpose_b")? { "...nk" } else { "...kn" };
                    let out = shape(c)?;
                    Ok(FactorRule::parse(&format!("{a}, {b} -> ...mn"))?
                        .signatures(&[c.shape(0)?, c.shape(1)?], &[&out]))
                })
                .flops(|c| {
                    let out = shape(c)?;
                    let (_, k) = matrix(c.shape(0)?, c.bool("transpose_a")?)?;
                    Ok(out.iter().fold(k.saturating_mul(2), |n, d| n.saturating_mul(*d)) as u64)
                })
                .cpu(|cx| {
                    let (a, b) = operands(cx)?;
                    Ok(cpu::matmul::matmul(&a, &b, cx.output(0))?)
                })
                .cuda(|cx| {
                    let (a, b) = operands(cx)?;
                    Ok(cuda::matmul::matmul(cx.queue()?, &a, &b, cx.output(0))?)
                })
                .grad(Grad::rule(gradient))
                .samples(&[
                    "f32[4, 6] f32[6, 5]",
                    "f32[6, 4] f32[5, 6]; transpose_a=true, transpose_b=true",
                    "f64[2, 3, 4] f64[4, 5]",
                    "f64[2, 3, 4] f64[5, 4]; transpose_b=true",
                    "f32[2, 1, 3, 4] f32[3, 4, 2]",
                    "bf16[4, 6] bf16[6, 5]",
                    "i32[3, 4] i32[4, 2]",
                ])
        }),
        matmul_rows(),
    ]
}
