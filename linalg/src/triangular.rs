//! Systems with a triangular matrix.

use crate::batch::{Real, Source, by_rows, each, with_real};
use crate::rules::{DOMAIN, Triangular, Words, matrices, one_dtype, square};
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
fn batch(c: &InferCtx<'_>) -> Result<Dims> {
    let ((a, n, _), (b, rows, columns)) = (matrices(c, 0)?, matrices(c, 1)?);
    let (height, side) = if c.bool("left")? { (rows, "rows") } else { (columns, "columns") };
    if height != n {
        return Err(Error::shape(format!("B has {height} {side}, A is {n} by {n}")));
    }
    broadcast_shapes([a, b])
}

fn shape(c: &InferCtx<'_>) -> Result<Dims> {
    let (_, rows, columns) = matrices(c, 1)?;
    let mut shape = batch(c)?;
    shape.extend([rows, columns]);
    Ok(shape)
}

pub(crate) fn solve_triangular() -> Result<OpDef> {
    let attrs = "upper: bool, left: bool = true, unitriangular: bool = false, transpose: bool = false";
    let flags = "Bool upper, Bool left=true, Bool unitriangular=false, Bool transpose=false";
    Ok(OpDef::new(&format!("solve_triangular(A: f32|f64[2..], B: f32|f64[2..]; {attrs}) -> x"))?
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
            one_dtype(c)?;
            batch(c).map(drop)
        })
        .shape1(shape)
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| {
            // The dims of A are summed over one after the other and stay whole.
            let rule = if c.bool("left")? { "..., ...xk -> ...xk" } else { "..., ...kx -> ...kx" };
            let out = shape(c)?;
            let (a, b) = (c.shape(0)?, c.shape(1)?);
            let rows = FactorRule::parse(rule)?.signatures(&[Some(&a[..a.len() - 2]), Some(b)], &[&out]);
            let whole = if c.bool("left")? { out.len() - 2 } else { out.len() - 1 };
            let mut rows: Vec<Signature> =
                rows.into_iter().filter(|s| s.outputs[0] != Sbp::Split(whole)).collect();
            rows.push(Signature::new(&[Sbp::Broadcast, Sbp::PARTIAL_SUM], &[Sbp::PARTIAL_SUM]));
            Ok(rows)
        })
        .flops(|c| {
            let (_, n, _) = matrices(c, 0)?;
            Ok((shape(c)?.iter().product::<usize>() as u64).saturating_mul(n as u64))
        })
        .cpu(|cx| with_real!(cx, kernel))
        .grad(Grad::rule_saving(&[0], &[0], gradient))
        .samples(&[
            "f32[3, 3]~ f32[3, 2]; upper=false",
            "f64[2, 3, 3]~ f64[2, 3, 4]; upper=true",
            "f64[3, 3]~ f64[2, 4, 3]; upper=true, left=false",
            "f64[2, 3, 3]~ f64[3, 2]; upper=false, transpose=true",
            "f64[3, 3]~ f64[4, 3]; upper=true, left=false, unitriangular=true, transpose=true",
        ]))
}

fn kernel<T: Real>(cx: &KernelCx<'_>) -> Result<()> {
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
