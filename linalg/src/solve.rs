//! Inverses and solutions of linear systems, by the LU decomposition.

use crate::batch::{Field, Source, batch_of, by_rows, each, with_field, zeros};
use crate::lu::Lu;
use crate::rules::{DOMAIN, FIELDS, Words, cubes, matrices, one_dtype, split_batch, square};
use oflow::kernels::Dims;
use oflow::ops::{DTypeRule, Grad, GradCtx, InferCtx, KernelCx, OpDef, broadcast_shapes};
use oflow::prelude::*;
use oflow::sbp::{Sbp, Signature};

pub(crate) fn inv() -> Result<OpDef> {
    Ok(OpDef::new(&format!("inv(A: {FIELDS}[2..]) -> y"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .function("inv(Tensor A) -> Tensor")
        .function("inverse(Tensor A) -> Tensor")
        .doc("The inverse of each matrix of a batch `[.., n, n]`.\n\nA singular matrix is an error that names it.")
        .check(square)
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| split_batch(c, 1))
        .flops(|c| cubes(c, 2))
        .cpu(|cx| with_field!(cx, inv_kernel))
        .cuda(crate::cuda::inv)
        .grad(Grad::rule_saving(&[], &[0], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let y = g.output(0)?;
            let mut w = Words(g);
            let right = w.abh(dy, y)?;
            let both = w.ahb(y, right)?;
            let da = w.neg(both)?;
            g.set(0, da)
        }))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]~", "f64[1, 1]", "f64[2, 2, 2]", "f64[2, 0, 0]", "c128[3, 3]"]))
}

fn inv_kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let n = a.rows();
    each(
        cx,
        batch,
        &[2, n, n, n],
        || Ok((Lu::<T>::new(n, n, 0)?, zeros(n * n)?)),
        |(lu, inverse), i, [part]| {
            a.read(i, &mut lu.both);
            lu.decompose();
            lu.regular()?;
            lu.invert(inverse);
            by_rows(n, part, |r, c| inverse[c * n + r]);
            Ok(())
        },
    )
}

/// A linear system: the batch of its solution, n, the right sides of each matrix, and whether these are vectors.
struct System {
    batch: Dims,
    n: usize,
    columns: usize,
    vectors: bool,
}

/// Reads the shapes of `A x = b`, or of `x A = b` if not `left`. b is vectors where it has one dim or one dim of n for each matrix.
fn system(a: &[usize], b: &[usize], left: bool) -> Result<System> {
    let [batch @ .., n, _] = a else { return Err(Error::shape("needs square matrices")) };
    let vectors = b.len() == 1 || b == &a[..a.len() - 1];
    if vectors {
        let no = |why: String| Err(Error::shape(why));
        return match left {
            false => no(format!("b of shape {b:?} is vectors, which stand on the right: `left` is for matrices")),
            true if b[b.len() - 1] != *n => no(format!("b has vectors of {}, A has {n} rows", b[b.len() - 1])),
            true => {
                let batch = broadcast_shapes([batch, &b[..b.len() - 1]])?;
                Ok(System { batch, n: *n, columns: 1, vectors })
            }
        };
    }
    let [others @ .., rows, columns] = b else { return Err(Error::shape("b needs a dim at least")) };
    let (height, columns) = if left { (rows, columns) } else { (columns, rows) };
    if height != n {
        let side = if left { "rows" } else { "columns" };
        return Err(Error::shape(format!("b has {height} {side}, A is {n} by {n}")));
    }
    Ok(System { batch: broadcast_shapes([batch, others])?, n: *n, columns: *columns, vectors })
}

pub(crate) fn solve() -> Result<OpDef> {
    Ok(OpDef::new(&format!(
        "solve(A: {FIELDS}[2..], B: {FIELDS}[1..]; left: bool = true, transpose: bool = false) -> x"
    ))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .function("solve(Tensor A, Tensor B, *, Bool left=true, Bool transpose=false) -> Tensor")
        .doc(
            "The x of `A x = B`, or of `x A = B` if not `left`.\n\nA is `[.., n, n]`; B is matrices `[.., n, k]`, or vectors: one \
             `[n]`, or one for each matrix of A. Batch dims broadcast. `transpose` takes the transposed A. A singular matrix is an \
             error that names it.",
        )
        .check(|c| {
            square(c)?;
            one_dtype(c, 1)?;
            system(c.shape(0)?, c.shape(1)?, c.bool("left")?).map(drop)
        })
        .shape1(|c| {
            let s = system(c.shape(0)?, c.shape(1)?, c.bool("left")?)?;
            let mut shape = s.batch;
            match (s.vectors, c.bool("left")?) {
                (true, _) => shape.push(s.n),
                (false, true) => shape.extend([s.n, s.columns]),
                (false, false) => shape.extend([s.columns, s.n]),
            }
            Ok(shape)
        })
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(solve_signatures)
        .flops(|c| {
            let (_, n, _) = matrices(c, 0)?;
            Ok(cubes(c, 1)?.saturating_add((c.input(1)?.len() as u64).saturating_mul(2 * n as u64)))
        })
        .cpu(|cx| with_field!(cx, solve_kernel))
        .cuda(crate::cuda::solve)
        .grad(Grad::rule_saving(&[0], &[0], solve_gradient))
        .samples(&[
            "f32[3, 3]~ f32[3, 2]",
            "f64[2, 3, 3]~ f64[2, 3, 4]",
            "f64[2, 3, 3]~ f64[2, 3]",
            "f64[3, 3]~ f64[3]",
            "c128[3, 3] c128[3, 2]",
            "f64[2, 1, 3, 3]~ f64[5, 3, 2]",
            "f64[3, 3]~ f64[2, 4, 3]; left=false",
            "f64[2, 3, 3]~ f64[1, 3, 2]; transpose=true",
            "f64[3, 3]~ f64[2, 4, 3]; left=false, transpose=true",
        ]))
}

/// Batch dims, columns of B, and B in parts: x is linear in it.
fn solve_signatures(c: &InferCtx<'_>) -> Result<Vec<Signature>> {
    let (a, b, left) = (c.shape(0)?, c.shape(1)?, c.bool("left")?);
    let s = system(a, b, left)?;
    let mut rows = vec![];
    // A shard of B that may pass for vectors is not made: the same call on shards must mean the same. It cannot where the columns, or
    // the matrices of A's last batch dim, are fewer than n.
    let fewer = left && (s.columns < s.n || a.len() < 3 || a[a.len() - 3] < s.n);
    let unclear = !s.vectors && b.len() + 1 == a.len() && !fewer;
    let (last, out) = (if s.vectors { 1 } else { 2 }, s.batch.len());
    for d in 0..out {
        let side = |shape: &[usize], own: usize| {
            let lead = shape.len() - own;
            match oflow::sbp::broadcast_dim(&shape[..lead], &s.batch, d) {
                Some(k) => Sbp::Split(k),
                None => Sbp::Broadcast,
            }
        };
        let inputs = [side(a, 2), side(b, last)];
        if !unclear {
            rows.push(Signature::new(&inputs, &[Sbp::Split(d)]));
        }
    }
    if !s.vectors && !unclear {
        let own = if left { 1 } else { 2 };
        rows.push(Signature::new(&[Sbp::Broadcast, Sbp::Split(b.len() - own)], &[Sbp::Split(out + 2 - own)]));
    }
    rows.push(Signature::new(&[Sbp::Broadcast, Sbp::PARTIAL_SUM], &[Sbp::PARTIAL_SUM]));
    Ok(rows)
}

fn solve_kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let (left, transpose) = (cx.bool("left")?, cx.bool("transpose")?);
    // What B is depends on the whole tensors.
    let whole = system(&cx.input_box(0)?.logical, &cx.input_box(1)?.logical, left)?;
    let own = if whole.vectors { 1 } else { 2 };
    let out = cx.output(0).dims();
    let batch = &out[..out.len() - own];
    let a = Source::<T>::new(cx.input(0)?, batch, false)?.transposed(transpose == left);
    let b = Source::<T>::new(cx.input(1)?, batch, whole.vectors)?.transposed(!left);
    let (n, columns) = (a.rows(), b.columns());
    let shared = cx.input(0)?.dims()[..cx.input(0)?.rank() - 2].iter().all(|n| *n == 1);
    struct Work<T> {
        lu: Lu<T>,
        b: Vec<T>,
        ready: bool,
    }
    each(
        cx,
        batch,
        &[n, n, columns.saturating_mul(2).saturating_add(n)],
        || Ok(Work { lu: Lu::<T>::new(n, n, columns)?, b: b.room()?, ready: false }),
        |w, i, [part]| {
            // One matrix for the whole batch is decomposed once.
            if !(shared && w.ready) {
                a.read(i, &mut w.lu.both);
                w.lu.decompose();
                w.lu.regular()?;
                w.ready = true;
            }
            b.read(i, &mut w.b);
            w.lu.solve(&mut w.b, columns);
            match left {
                true => by_rows(columns, part, |r, c| w.b[c * n + r]),
                false => part.copy_from_slice(&w.b),
            }
            Ok(())
        },
    )
}

fn solve_gradient(g: &mut dyn GradCtx) -> Result<()> {
    let Some(dy) = g.grad(0) else { return Ok(()) };
    let (a, x) = (g.input(0)?, g.output(0)?);
    let (left, transpose) = (g.bool("left")?, g.bool("transpose")?);
    let vectors = system(&g.input_shape(0), &g.input_shape(1), left)?.vectors;
    let mut w = Words(g);
    // Vectors as columns: the gradient of B may have more batch dims than B, so that it would not pass for vectors.
    let (dy, x) = if vectors { (w.unsqueeze(dy, -1)?, w.unsqueeze(x, -1)?) } else { (dy, x) };
    let a = w.conj(a)?;
    let attrs = [("left", left.into()), ("transpose", (!transpose).into())];
    let db = g.emitter().call("linalg.solve", &[a, dy], &attrs)?;
    let mut w = Words(g);
    if w.0.needs(0) {
        let da = w.of_system(db, x, left, transpose)?;
        w.0.set(0, da)?;
    }
    if w.0.needs(1) {
        let db = if vectors { w.0.call("squeeze", &[db], &[("dim", (-1i64).into())])? } else { db };
        w.0.set(1, db)?;
    }
    Ok(())
}
