//! The singular value decomposition.

use crate::batch::{Real, Scratch, Source, batch_of, by_rows, each, finite, room, with_real, zeros};
use crate::rules::{DOMAIN, Words, cubes, matrices, split_batch};
use crate::signs::flips;
use faer::linalg::svd::{ComputeSvdVectors, svd as compute, svd_scratch};
use faer::{MatMut, MatRef, Par};
use oflow::kernels::Dims;
use oflow::ops::{DTypeRule, Grad, GradCtx, KernelCx, OpDef};
use oflow::prelude::*;
use smallvec::smallvec;

pub(crate) fn svd() -> Result<OpDef> {
    Ok(OpDef::new("svd(A: f32|f64[2..]; full_matrices: bool = true) -> (U, S, Vh)")?
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
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| split_batch(c, 3))
        .flops(|c| cubes(c, 14))
        .cpu(|cx| with_real!(cx, kernel))
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

fn kernel<T: Real>(cx: &KernelCx<'_>) -> Result<()> {
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
            let signs = flips(&w.u, rows, left);
            by_rows(left, u, |r, c| T::rounded(signs[c] * w.u[c * rows + r]));
            let sign = |k: usize| signs.get(k).copied().unwrap_or(1.0);
            by_rows(columns, vh, |r, c| T::rounded(sign(r) * w.v[r * columns + c]));
            Ok(())
        },
    )
}

/// The singular vectors of a matrix as columns, and what it takes to find them. They are found in double precision: faer's
/// decomposition of f32 matrices leaves errors of six times LAPACK's.
pub(crate) struct Vectors<T> {
    read: Vec<T>,
    a: Vec<f64>,
    s: Vec<f64>,
    pub(crate) u: Vec<f64>,
    pub(crate) v: Vec<f64>,
    scratch: Scratch,
    full: bool,
}

impl<T: Real> Vectors<T> {
    /// Room for those of the matrices of an input; `full` as in `svd`.
    pub(crate) fn new(a: &Source<'_, T>, full: bool) -> Result<Vectors<T>> {
        let (rows, columns, k) = (a.rows(), a.columns(), a.rows().min(a.columns()));
        let (left, right) = if full { (rows, columns) } else { (k, k) };
        let which = if full { ComputeSvdVectors::Full } else { ComputeSvdVectors::Thin };
        let need = svd_scratch::<f64>(rows, columns, which, which, Par::Seq, Default::default());
        let (s, u, v) = (zeros(k)?, zeros(rows * left)?, zeros(columns * right)?);
        Ok(Vectors { read: a.room()?, a: room(rows * columns)?, s, u, v, scratch: Scratch::new(need)?, full })
    }

    /// Decomposes matrix `index` of the batch; the singular values, from the greatest on, are written to `s`.
    pub(crate) fn decompose(&mut self, a: &Source<'_, T>, index: usize, s: &mut [T]) -> Result<(), String> {
        let (rows, columns, k) = (a.rows(), a.columns(), s.len());
        let (left, right) = if self.full { (rows, columns) } else { (k, k) };
        a.read(index, &mut self.read);
        self.a.clear();
        self.a.extend(self.read.iter().map(|x| x.wide()));
        if !finite(&self.a) {
            return Err("has an infinity or a NaN, so it has no singular values".to_string());
        }
        compute(
            MatRef::from_column_major_slice(&self.a, rows, columns),
            faer::diag::DiagMut::from_slice_mut(&mut self.s),
            Some(MatMut::from_column_major_slice_mut(&mut self.u, rows, left)),
            Some(MatMut::from_column_major_slice_mut(&mut self.v, columns, right)),
            Par::Seq,
            self.scratch.stack(),
            Default::default(),
        )
        .map_err(|_| "has singular values that did not converge".to_string())?;
        s.iter_mut().zip(&self.s).for_each(|(s, wide)| *s = T::rounded(*wide));
        Ok(())
    }
}

/// As PyTorch's: dA = U [(skew(Uᵀ dU) / E) S + S (skew(Vᵀ dV) / E) + diag(dS)] Vh with E the differences of the squared singular
/// values, and what lies outside of the space of the vectors, where they are fewer than rows or columns.
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
            let m = w.atb(u, du)?;
            let m = w.skew(m)?;
            let m = w.div(m, gaps)?;
            inner = Some(w.mul(m, along)?);
        }
        if let Some(dvh) = dvh {
            let m = w.abt(vh, dvh)?;
            let m = w.skew(m)?;
            let m = w.div(m, gaps)?;
            let m = w.mul(m, down)?;
            inner = Some(w.sum_of(inner, m)?);
        }
    }
    if let Some(ds) = ds {
        let m = w.diag(ds)?;
        inner = Some(w.sum_of(inner, m)?);
    }
    let Some(inner) = inner else { return Ok(()) };
    let mut left = w.ab(u, inner)?;
    if let Some(du) = du.filter(|_| rows > k) {
        let m = w.div(du, along)?;
        let inside = w.atb(u, m)?;
        let inside = w.ab(u, inside)?;
        let outside = w.sub(m, inside)?;
        left = w.add(left, outside)?;
    }
    let mut da = w.ab(left, vh)?;
    if let Some(dvh) = dvh.filter(|_| columns > k) {
        let m = w.div(dvh, down)?;
        let inside = w.abt(m, vh)?;
        let inside = w.ab(inside, vh)?;
        let outside = w.sub(m, inside)?;
        let outside = w.ab(u, outside)?;
        da = w.add(da, outside)?;
    }
    w.0.set(0, da)
}
