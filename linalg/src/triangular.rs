//! Systems with a triangular matrix, and with a matrix given by its Cholesky factor.

use crate::batch::{Field, Source, by_rows, each, with_field};
use crate::rules::{DOMAIN, FIELDS, Triangular, Words, matrices, one_dtype, square};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_unit_lower_triangular_in_place_with_conj,
    solve_unit_upper_triangular_in_place_with_conj, solve_upper_triangular_in_place_with_conj,
};
use faer::{Conj, MatMut, MatRef, Par};
use oflow::kernels::Dims;
use oflow::ops::{DTypeRule, Grad, GradCtx, InferCtx, KernelCx, OpDef, broadcast_shapes};
use oflow::prelude::*;
use oflow::sbp::{FactorRule, Sbp, Signature};

/// The batch of the solution.
fn batch(c: &InferCtx<'_>, left: bool) -> Result<Dims> {
    let ((a, n, _), (b, rows, columns)) = (matrices(c, 0)?, matrices(c, 1)?);
    let (height, side) = if left { (rows, "rows") } else { (columns, "columns") };
    if height != n {
        return Err(Error::shape(format!("B has {height} {side}, A is {n} by {n}")));
    }
    broadcast_shapes([a, b])
}

fn shape(c: &InferCtx<'_>, left: bool) -> Result<Dims> {
    let (_, rows, columns) = matrices(c, 1)?;
    let mut shape = batch(c, left)?;
    shape.extend([rows, columns]);
    Ok(shape)
}

pub(crate) fn solve_triangular() -> Result<OpDef> {
    let attrs = "upper: bool, left: bool = true, unitriangular: bool = false, transpose: bool = false";
    let flags = "Bool upper, Bool left=true, Bool unitriangular=false, Bool transpose=false";
    Ok(OpDef::new(&format!("solve_triangular(A: {FIELDS}[2..], B: {FIELDS}[2..]; {attrs}) -> x"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .function(&format!("solve_triangular(Tensor A, Tensor B, *, {flags}) -> Tensor"))
        .doc(
            "The x of `A x = B`, or of `x A = B` if not `left`, for a triangular A.\n\nOnly the upper or the lower triangle of A is \
             read; with `unitriangular` its diagonal is taken for ones. `transpose` takes the transposed A, `upper` speaks of A as it is \
             given. Batch dims broadcast. As in PyTorch a zero on the diagonal gives inf and NaN and no error.",
        )
        .check(|c| {
            square(c)?;
            one_dtype(c, 1)?;
            batch(c, c.bool("left")?).map(drop)
        })
        .shape1(|c| shape(c, c.bool("left")?))
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| signatures(c, c.bool("left")?))
        .flops(|c| {
            let (_, n, _) = matrices(c, 0)?;
            Ok((shape(c, c.bool("left")?)?.iter().product::<usize>() as u64).saturating_mul(n as u64))
        })
        .cpu(|cx| with_field!(cx, kernel))
        .cuda(crate::cuda::triangular)
        .grad(Grad::rule_saving(&[0], &[0], gradient))
        .samples(&[
            "f32[3, 3]~ f32[3, 2]; upper=false",
            "f64[2, 3, 3]~ f64[2, 3, 4]; upper=true",
            "f64[3, 3]~ f64[2, 4, 3]; upper=true, left=false",
            "c128[3, 3] c128[3, 2]; upper=true",
            "f64[2, 3, 3]~ f64[3, 2]; upper=false, transpose=true",
            "f64[3, 3]~ f64[4, 3]; upper=true, left=false, unitriangular=true, transpose=true",
        ]))
}

/// Batch dims, and the columns of B, or its rows if not `left`; x is linear in B. The dims of A are summed over one after the other and
/// stay whole.
fn signatures(c: &InferCtx<'_>, left: bool) -> Result<Vec<Signature>> {
    let rule = if left { "..., ...xk -> ...xk" } else { "..., ...kx -> ...kx" };
    let out = shape(c, left)?;
    let (a, b) = (c.shape(0)?, c.shape(1)?);
    let rows = FactorRule::parse(rule)?.signatures(&[Some(&a[..a.len() - 2]), Some(b)], &[&out]);
    let whole = if left { out.len() - 2 } else { out.len() - 1 };
    let mut rows: Vec<Signature> = rows.into_iter().filter(|s| s.outputs[0] != Sbp::Split(whole)).collect();
    rows.push(Signature::new(&[Sbp::Broadcast, Sbp::PARTIAL_SUM], &[Sbp::PARTIAL_SUM]));
    Ok(rows)
}

fn kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let flag = |name: &str| cx.bool(name);
    let (left, transpose, unit) = (flag("left")?, flag("transpose")?, flag("unitriangular")?);
    let out = cx.output(0).dims();
    let batch = &out[..out.len() - 2];
    // x A = B is Aᵀ xᵀ = Bᵀ.
    let turned = transpose == left;
    let upper = flag("upper")? != turned;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?.transposed(turned);
    let b = Source::<T>::new(cx.input(1)?, batch, false)?.transposed(!left);
    let (n, columns) = (a.rows(), b.columns());
    each(
        cx,
        batch,
        &[n, n, columns],
        || Ok((a.room()?, b.room()?)),
        |(triangle, x), i, [part]| {
            a.read(i, triangle);
            b.read(i, x);
            let (t, rhs) =
                (MatRef::from_column_major_slice(triangle, n, n), MatMut::from_column_major_slice_mut(x, n, columns));
            match (upper, unit) {
                (false, false) => solve_lower_triangular_in_place_with_conj(t, Conj::No, rhs, Par::Seq),
                (false, true) => solve_unit_lower_triangular_in_place_with_conj(t, Conj::No, rhs, Par::Seq),
                (true, false) => solve_upper_triangular_in_place_with_conj(t, Conj::No, rhs, Par::Seq),
                (true, true) => solve_unit_upper_triangular_in_place_with_conj(t, Conj::No, rhs, Par::Seq),
            }
            match left {
                true => by_rows(columns, part, |r, c| x[c * n + r]),
                false => part.copy_from_slice(x),
            }
            Ok(())
        },
    )
}

fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dy) = g.grad(0) else { return Ok(()) };
    let (a, x) = (g.input(0)?, g.output(0)?);
    let (upper, left) = (g.bool("upper")?, g.bool("left")?);
    let (unitriangular, transpose) = (g.bool("unitriangular")?, g.bool("transpose")?);
    let mut w = Words(g);
    let a = w.conj(a)?;
    let db = w.triangular(a, dy, Triangular { upper, left, unitriangular, transpose: !transpose })?;
    if w.0.needs(0) {
        let da = w.of_system(db, x, left, transpose)?;
        let unit = i64::from(unitriangular);
        let da = if upper { w.triu(da, unit)? } else { w.tril(da, -unit)? };
        w.0.set(0, da)?;
    }
    if w.0.needs(1) {
        w.0.set(1, db)?;
    }
    Ok(())
}

pub(crate) fn cholesky_solution() -> Result<OpDef> {
    Ok(OpDef::new(&format!("cholesky_solution(L: {FIELDS}[2..], B: {FIELDS}[2..]; upper: bool = false) -> x"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "The x of `L Lᴴ x = B` for lower triangular L, or with `upper` of `Uᴴ U x = B`.\n\nBatch dims broadcast. The gradient of L is \
             that of the product, whose whole matrix counts, as in PyTorch.",
        )
        .by_name_only()
        .check(|c| {
            square(c)?;
            one_dtype(c, 1)?;
            batch(c, true).map(drop)
        })
        .shape1(|c| shape(c, true))
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| signatures(c, true))
        .flops(|c| {
            let (_, n, _) = matrices(c, 0)?;
            Ok((shape(c, true)?.iter().product::<usize>() as u64).saturating_mul(2 * n as u64))
        })
        .cpu(|cx| with_field!(cx, cholesky_kernel))
        .cuda(crate::cuda::cholesky_solution)
        .grad(Grad::rule_saving(&[0], &[0], cholesky_gradient))
        // The other triangle is not read and has a gradient, which differences do not show.
        .samples(&["f32[1, 1]~ f32[1, 2]", "f64[2, 1, 1]~ f64[1, 4]; upper=true", "c128[1, 1] c128[1, 2]"]))
}

fn cholesky_kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let upper = cx.bool("upper")?;
    let out = cx.output(0).dims();
    let batch = &out[..out.len() - 2];
    // Of Uᴴ U the transposed U is the lower factor, conjugated.
    let l = Source::<T>::new(cx.input(0)?, batch, false)?.transposed(upper);
    let b = Source::<T>::new(cx.input(1)?, batch, false)?;
    let (n, columns) = (l.rows(), b.columns());
    let conjugated = |yes: bool| if yes { Conj::Yes } else { Conj::No };
    each(
        cx,
        batch,
        &[2, n, n, columns],
        || Ok((l.room()?, b.room()?)),
        |(factor, x), i, [part]| {
            l.read(i, factor);
            b.read(i, x);
            let t = MatRef::from_column_major_slice(factor, n, n);
            let mut rhs = MatMut::from_column_major_slice_mut(x, n, columns);
            solve_lower_triangular_in_place_with_conj(t, conjugated(upper), rhs.as_mut(), Par::Seq);
            solve_upper_triangular_in_place_with_conj(t.transpose(), conjugated(!upper), rhs, Par::Seq);
            by_rows(columns, part, |r, c| x[c * n + r]);
            Ok(())
        },
    )
}

/// With G the gradient of x, dB solves the same system for G, and with C = dB xᴴ + x dBᴴ is dL = -C L, or dU = -U C.
fn cholesky_gradient(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dy) = g.grad(0) else { return Ok(()) };
    let (l, x) = (g.input(0)?, g.output(0)?);
    let upper = g.bool("upper")?;
    let db = g.call("linalg.cholesky_solution", &[l, dy], &[("upper", upper.into())])?;
    let mut w = Words(g);
    if w.0.needs(0) {
        let half = w.abh(db, x)?;
        let other = w.h(half)?;
        let both = w.add(half, other)?;
        let dl = if upper { w.ab(l, both)? } else { w.ab(both, l)? };
        let dl = w.neg(dl)?;
        w.0.set(0, dl)?;
    }
    if w.0.needs(1) {
        w.0.set(1, db)?;
    }
    Ok(())
}
