//! The singular value decomposition.

use crate::batch::{Field, Scratch, Source, batch_of, by_rows, each, finite, with_field, zeros};
use crate::rules::{DOMAIN, FIELDS, Words, cubes, dtypes_of, matrices, real_of, split_batch};
use crate::signs::phases;
use faer::linalg::svd::{ComputeSvdVectors, SvdParams, svd as compute, svd_scratch};
use faer::{Auto, MatMut, MatRef, Par, Spec};
use oflow::kernels::Dims;
use oflow::ops::{Grad, GradCtx, KernelCx, OpDef};
use oflow::prelude::*;
use smallvec::smallvec;

pub(crate) fn svd() -> Result<OpDef> {
    Ok(OpDef::new(&format!("svd(A: {FIELDS}[2..]; full_matrices: bool = true) -> (U, S, Vh)"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .function("svd(Tensor A, Bool full_matrices=true) -> (Tensor U, Tensor S, Tensor Vh)")
        .doc(
            "The singular values S, from the greatest on, and the singular vectors: the columns of U and the rows of Vh, with \
             `A = U diag(S) Vh`.\n\nOf `[m, n]` and k the smaller of both, U is `[m, k]` and Vh `[k, n]`; with `full_matrices` U is \
             `[m, m]` and Vh `[n, n]`. Of each pair of vectors, that of U has a positive element where it is largest. The gradient of the \
             vectors needs distinct singular values; only the first k have one.",
        )
        .check(|c| matrices(c, 0).map(drop))
        .shapes(|c| {
            let (batch, rows, columns) = matrices(c, 0)?;
            let k = rows.min(columns);
            let full = c.bool("full_matrices")?;
            let of = |dims: &[usize]| batch.iter().chain(dims).copied().collect::<Dims>();
            let (left, right) = if full { (rows, columns) } else { (k, k) };
            Ok(smallvec![of(&[rows, left]), of(&[k]), of(&[right, columns])])
        })
        .dtype(dtypes_of(|d| [d, real_of(d), d]))
        .strided()
        .get_sbp(|c| split_batch(c, 3))
        .flops(|c| cubes(c, 14))
        .cpu(|cx| with_field!(cx, kernel))
        .cuda(crate::cuda::svd)
        .grad(Grad::rule_saving(&[], &[0, 1, 2], gradient))
        .samples(&[
            "f32[3, 3]~; full_matrices=false",
            "f64[2, 3, 3]~",
            "f64[4, 2]; full_matrices=false",
            "f64[2, 4]; full_matrices=false",
            "f64[1, 1]",
            "f64[2, 3, 0]; full_matrices=false",
        ]))
}

fn kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let (rows, columns) = (a.rows(), a.columns());
    let k = rows.min(columns);
    let full = cx.bool("full_matrices")?;
    let left = if full { rows } else { k };
    each(
        cx,
        batch,
        &[14, rows, columns, k],
        || Vectors::new(&a, full),
        |w, i, [u, s, vh]| {
            w.decompose(&a, i, s)?;
            let phases = phases(&w.u, rows, left);
            by_rows(left, u, |r, c| phases[c] * w.u[c * rows + r]);
            let phase = |k: usize| phases.get(k).copied().unwrap_or_else(T::one);
            by_rows(columns, vh, |r, c| (phase(r) * w.v[r * columns + c]).conjugate());
            Ok(())
        },
    )
}

/// The singular vectors of a matrix as columns, and what it takes to find them.
pub(crate) struct Vectors<T> {
    a: Vec<T>,
    pub(crate) u: Vec<T>,
    pub(crate) v: Vec<T>,
    scratch: Scratch,
    full: bool,
}

/// Bidiagonal matrices of so many columns are divided. faer iterates by QR below 128, whose errors are ten times as large: of f32
/// matrices they were six times LAPACK's, and of these they are as small.
const DIVIDED: usize = 8;

fn params<T: Field>() -> Spec<SvdParams, T> {
    Spec::new(SvdParams { recursion_threshold: DIVIDED, ..<SvdParams as Auto<T>>::auto() })
}

impl<T: Field> Vectors<T> {
    /// Room for those of the matrices of an input; `full` as in `svd`.
    pub(crate) fn new(a: &Source<'_, T>, full: bool) -> Result<Vectors<T>> {
        let (rows, columns, k) = (a.rows(), a.columns(), a.rows().min(a.columns()));
        let (left, right) = if full { (rows, columns) } else { (k, k) };
        let which = if full { ComputeSvdVectors::Full } else { ComputeSvdVectors::Thin };
        let need = svd_scratch::<T>(rows, columns, which, which, Par::Seq, params::<T>());
        let (u, v) = (zeros(rows * left)?, zeros(columns * right)?);
        Ok(Vectors { a: a.room()?, u, v, scratch: Scratch::new(need)?, full })
    }

    /// Decomposes matrix `index` of the batch; the singular values, from the greatest on, are written to `s`.
    pub(crate) fn decompose(&mut self, a: &Source<'_, T>, index: usize, s: &mut [T]) -> Result<(), String> {
        let (rows, columns, k) = (a.rows(), a.columns(), s.len());
        let (left, right) = if self.full { (rows, columns) } else { (k, k) };
        a.read(index, &mut self.a);
        if !finite(&self.a) {
            return Err("has an infinity or a NaN, so it has no singular values".to_string());
        }
        compute(
            MatRef::from_column_major_slice(&self.a, rows, columns),
            faer::diag::DiagMut::from_slice_mut(s),
            Some(MatMut::from_column_major_slice_mut(&mut self.u, rows, left)),
            Some(MatMut::from_column_major_slice_mut(&mut self.v, columns, right)),
            Par::Seq,
            self.scratch.stack(),
            params::<T>(),
        )
        .map_err(|_| "has singular values that did not converge".to_string())
    }
}

/// As PyTorch's: dA = U [(skew(Uᴴ dU) / E) S + S (skew(Vᴴ dV) / E) + diag(dS)] Vh with E the differences of the squared singular
/// values, and what lies outside of the space of the vectors, where they are fewer than rows or columns. Of complex vectors the diagonal
/// has diag(skew(Uᴴ dU)) / 2S too: a pair of vectors has one phase, which the loss does not depend on.
fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let (du, ds, dvh) = (g.grad(0), g.grad(1), g.grad(2));
    let shape = g.input_shape(0);
    let [.., rows, columns] = shape[..] else { return Ok(()) };
    let k = rows.min(columns);
    let (u, s, vh) = (g.output(0)?, g.output(1)?, g.output(2)?);
    let full = g.bool("full_matrices")?;
    let mut w = Words(g);
    let first = |w: &mut Words<'_>, x: Option<oflow::ops::Value>, dim: i64, of: usize| match x {
        Some(x) if full && of > k => w.narrow(x, dim, 0, k).map(Some),
        x => Ok(x),
    };
    let (u, vh) = (first(&mut w, Some(u), -1, rows)?.unwrap_or(u), first(&mut w, Some(vh), -2, columns)?.unwrap_or(vh));
    let (du, dvh) = (first(&mut w, du, -1, rows)?, first(&mut w, dvh, -2, columns)?);
    let (along, down) = (w.unsqueeze(s, -2)?, w.unsqueeze(s, -1)?);
    let mut inner = None;
    if du.is_some() || dvh.is_some() {
        let squares = w.mul(s, s)?;
        let gaps = w.gaps(squares)?;
        if let Some(du) = du {
            let m = w.ahb(u, du)?;
            let m = w.skew(m)?;
            if dvh.is_some() && w.is_complex(m) {
                let turns = w.0.call("diagonal", &[m], &[("dim1", (-2i64).into()), ("dim2", (-1i64).into())])?;
                let turns = w.div(turns, s)?;
                let turns = w.times(turns, 0.5)?;
                inner = Some(w.diag(turns)?);
            }
            let m = w.div(m, gaps)?;
            let m = w.mul(m, along)?;
            inner = Some(w.sum_of(inner, m)?);
        }
        if let Some(dvh) = dvh {
            let m = w.abh(vh, dvh)?;
            let m = w.skew(m)?;
            let m = w.div(m, gaps)?;
            let m = w.mul(m, down)?;
            inner = Some(w.sum_of(inner, m)?);
        }
    }
    let mut left = inner.map(|inner| w.ab(u, inner)).transpose()?;
    if let Some(ds) = ds {
        let ds = w.unsqueeze(ds, -2)?;
        let m = w.mul(u, ds)?;
        left = Some(w.sum_of(left, m)?);
    }
    let Some(mut left) = left else { return Ok(()) };
    if let Some(du) = du.filter(|_| rows > k) {
        let m = w.div(du, along)?;
        let inside = w.ahb(u, m)?;
        let inside = w.ab(u, inside)?;
        let outside = w.sub(m, inside)?;
        left = w.add(left, outside)?;
    }
    let mut da = w.ab(left, vh)?;
    if let Some(dvh) = dvh.filter(|_| columns > k) {
        let m = w.div(dvh, down)?;
        let inside = w.abh(m, vh)?;
        let inside = w.ab(inside, vh)?;
        let outside = w.sub(m, inside)?;
        let outside = w.ab(u, outside)?;
        da = w.add(da, outside)?;
    }
    w.0.set(0, da)
}
