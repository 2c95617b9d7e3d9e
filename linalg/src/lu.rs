//! The LU decomposition with row pivots.

use crate::batch::{Field, Scratch, Source, batch_of, by_rows, each, finite, room, with_field, zeros};
use crate::rules::{DOMAIN, FIELDS, Triangular, Words, cubes, dtypes_of, matrices, split_batch};
use faer::linalg::lu::partial_pivoting::{factor, inverse, solve};
use faer::perm::PermRef;
use faer::{Conj, MatMut, MatRef, Par};
use oflow::kernels::{Complex, Dims, View};
use oflow::ops::{DTypeRule, Grad, GradCtx, InferCtx, KernelCx, OpDef, Value};
use oflow::prelude::*;
use oflow::sbp::{Sbp, Signature};
use smallvec::smallvec;

/// A matrix with its decomposition, and what stays from one matrix of a batch to the next.
pub(crate) struct Lu<T> {
    m: usize,
    n: usize,
    /// L below the diagonal, whose own diagonal is ones, and U; by columns.
    pub(crate) both: Vec<T>,
    rows: Vec<usize>,
    back: Vec<usize>,
    /// How often two rows changed places.
    swaps: usize,
    /// Whether all elements of the matrix are.
    pub(crate) finite: bool,
    scratch: Scratch,
}

impl<T: Field> Lu<T> {
    /// Room for matrices of m rows and n columns; square ones are then solved for `columns` right sides.
    pub(crate) fn new(m: usize, n: usize, columns: usize) -> Result<Lu<T>> {
        let par = Par::Seq;
        let mut need = factor::lu_in_place_scratch::<usize, T>(m, n, par, Default::default());
        if m == n {
            need = need
                .or(solve::solve_in_place_scratch::<usize, T>(n, columns, par))
                .or(inverse::inverse_scratch::<usize, T>(n, par));
        }
        let (both, rows, back) = (room(m * n)?, vec![0; m], vec![0; m]);
        Ok(Lu { m, n, both, rows, back, swaps: 0, finite: true, scratch: Scratch::new(need)? })
    }

    /// Decomposes the matrix that lies in `both`.
    pub(crate) fn decompose(&mut self) {
        self.finite = finite(&self.both);
        let a = MatMut::from_column_major_slice_mut(&mut self.both, self.m, self.n);
        let (rows, back, stack) = (&mut self.rows, &mut self.back, self.scratch.stack());
        self.swaps = factor::lu_in_place(a, rows, back, Par::Seq, stack, Default::default()).0.transposition_count;
    }

    /// Decomposes the singular matrix that lies in `both`: a column of zeros keeps its pivot, as in LAPACK, where `decompose` divides by
    /// zero.
    fn decompose_singular(&mut self) {
        let m = self.m;
        (0..m).for_each(|i| self.rows[i] = i);
        for k in 0..m.min(self.n) {
            let column = &self.both[k * m..(k + 1) * m];
            let larger = |best: usize, i: usize| {
                if column[i].size_of_parts() > column[best].size_of_parts() { i } else { best }
            };
            let pivot = (k..m).fold(k, larger);
            if column[pivot] == T::zero() {
                continue;
            }
            self.rows.swap(k, pivot);
            self.both.chunks_exact_mut(m).for_each(|column| column.swap(k, pivot));
            let by = self.both[k * m + k];
            self.both[k * m + k + 1..(k + 1) * m].iter_mut().for_each(|x| *x /= by);
            let (left, right) = self.both.split_at_mut((k + 1) * m);
            let below = &left[k * m + k + 1..];
            for column in right.chunks_exact_mut(m) {
                let factor = column[k];
                column[k + 1..].iter_mut().zip(below).for_each(|(x, l)| *x -= factor * *l);
            }
        }
    }

    /// The rows that changed places, in LAPACK's form: at step i row i and row `pivots[i]`, counted from 1.
    fn pivots(&self, mut put: impl FnMut(usize, usize)) {
        let mut at: Vec<usize> = (0..self.m).collect();
        for i in 0..self.m.min(self.n) {
            let j = (i..self.m).find(|j| at[*j] == self.rows[i]).unwrap_or(i);
            at.swap(i, j);
            put(i, j + 1);
        }
    }

    /// The first pivot that is zero, if the matrix is finite. What follows it divides by zero and means nothing.
    pub(crate) fn null(&self) -> Option<usize> {
        self.diagonal().position(|x| x == T::zero()).filter(|_| self.finite)
    }

    pub(crate) fn diagonal(&self) -> impl Iterator<Item = T> + '_ {
        self.both.iter().step_by(self.m + 1).take(self.m.min(self.n)).copied()
    }

    /// -1 if an odd number of rows changed places.
    pub(crate) fn sign(&self) -> T {
        if self.swaps.is_multiple_of(2) { T::one() } else { -T::one() }
    }

    pub(crate) fn determinant(&self) -> T {
        if self.null().is_some() {
            return T::zero();
        }
        self.diagonal().fold(self.sign(), |p, x| p * x)
    }

    /// Why there is no inverse.
    pub(crate) fn regular(&self) -> Result<(), String> {
        match self.null() {
            Some(k) => Err(format!("is singular: pivot {k} of its LU decomposition is zero")),
            None => Ok(()),
        }
    }

    /// Writes the inverse by columns.
    pub(crate) fn invert(&mut self, out: &mut [T]) {
        let n = self.n;
        let lu = MatRef::from_column_major_slice(&self.both, n, n);
        // SAFETY: `decompose` has written a permutation and its inverse.
        let perm = unsafe { PermRef::new_unchecked(&self.rows, &self.back, n) };
        let y = MatMut::from_column_major_slice_mut(out, n, n);
        inverse::inverse(y, lu, lu, perm, Par::Seq, self.scratch.stack());
    }

    /// Puts the solutions in the place of the right sides.
    pub(crate) fn solve(&mut self, b: &mut [T], columns: usize) {
        let n = self.n;
        let lu = MatRef::from_column_major_slice(&self.both, n, n);
        // SAFETY: as in `invert`.
        let perm = unsafe { PermRef::new_unchecked(&self.rows, &self.back, n) };
        let b = MatMut::from_column_major_slice_mut(b, n, columns);
        solve::solve_in_place_with_conj(lu, lu, perm, Conj::No, b, Par::Seq, self.scratch.stack());
    }
}

pub(crate) fn lu_factor() -> Result<OpDef> {
    Ok(OpDef::new(&format!("lu_decomposition(A: {FIELDS}[2..]) -> (LU, pivots: no_grad, info: no_grad)"))?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "The LU decomposition with row pivots of each matrix of a batch `[.., m, n]`: U and, below its diagonal, L without its \
             ones.\n\nAt step i row i and row `pivots[i]`, counted from 1, changed places. `info` is 0, or the number of the first pivot \
             that is zero. The gradient needs the first k columns and rows to be independent, k the smaller of m and n.",
        )
        .by_name_only()
        .check(|c| matrices(c, 0).map(drop))
        .shapes(|c| {
            let (batch, rows, columns) = matrices(c, 0)?;
            let pivots = batch.iter().chain(&[rows.min(columns)]).copied().collect::<Dims>();
            Ok(smallvec![c.shape(0)?.into(), pivots, batch.into()])
        })
        .dtype(dtypes_of(|d| [d, DType::I32, DType::I32]))
        .strided()
        .get_sbp(|c| split_batch(c, 3))
        .flops(|c| cubes(c, 1))
        .cpu(|cx| with_field!(cx, kernel))
        .cuda(crate::cuda::lu)
        .grad(Grad::rule_saving(&[], &[0, 1], gradient))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]~", "f64[4, 2]", "f64[2, 4]", "c128[3, 3]", "f64[2, 0, 0]"]))
}

fn kernel<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let (m, n) = (a.rows(), a.columns());
    each(
        cx,
        batch,
        &[m, n, m.min(n)],
        || Lu::<T>::new(m, n, 0),
        |lu, i, [both, pivots, info]| {
            a.read(i, &mut lu.both);
            lu.decompose();
            info[0] = T::zero();
            if let Some(k) = lu.null() {
                info[0] = T::real((k + 1) as f64);
                a.read(i, &mut lu.both);
                lu.decompose_singular();
            }
            lu.pivots(|i, j| pivots[i] = T::real(j as f64));
            by_rows(n, both, |r, c| lu.both[c * m + r]);
            Ok(())
        },
    )
}

/// As PyTorch's. With A = P L U, of which the first k rows and columns are square: of these
/// dA = P L⁻ᴴ (tril(Lᴴ dL - X, -1) + triu(dU Uᴴ - Y)) U⁻ᴴ. Of wide matrices the other columns have P L⁻ᴴ dU' and X is dU' U'ᴴ; of tall
/// ones the other rows have P dL' U⁻ᴴ and Y is L'ᴴ dL'.
fn gradient(g: &mut dyn GradCtx) -> Result<()> {
    let Some(d) = g.grad(0) else { return Ok(()) };
    let (lu, pivots) = (g.output(0)?, g.output(1)?);
    let shape = g.input_shape(0);
    let [.., m, n] = shape[..] else { return Ok(()) };
    let k = m.min(n);
    let mut w = Words(g);
    // The square parts.
    let of = |w: &mut Words<'_>, x: Value| match (m > k, n > k) {
        (true, _) => w.narrow(x, -2, 0, k),
        (_, true) => w.narrow(x, -1, 0, k),
        _ => Ok(x),
    };
    let (d1, both) = (of(&mut w, d)?, of(&mut w, lu)?);
    let (dl, du) = (w.tril(d1, -1)?, w.triu(d1, 0)?);
    let (strict, u) = (w.tril(both, -1)?, w.triu(both, 0)?);
    // Lᴴ dL, of L with its ones.
    let inner = w.ahb(strict, dl)?;
    let mut low = w.add(inner, dl)?;
    let mut up = w.abh(du, u)?;
    let conjugate = w.conj(both)?;
    let left = Triangular { upper: false, left: true, unitriangular: true, transpose: true };
    let right = Triangular { upper: true, left: false, unitriangular: false, transpose: true };
    let mut outside = None;
    if n > k {
        let (d2, u2) = (w.narrow(d, -1, k, n - k)?, w.narrow(lu, -1, k, n - k)?);
        let x = w.abh(d2, u2)?;
        low = w.sub(low, x)?;
        outside = Some(w.triangular(conjugate, d2, left)?);
    }
    if m > k {
        let (d2, l2) = (w.narrow(d, -2, k, m - k)?, w.narrow(lu, -2, k, m - k)?);
        let y = w.ahb(l2, d2)?;
        up = w.sub(up, y)?;
        outside = Some(w.triangular(conjugate, d2, right)?);
    }
    let (low, up) = (w.tril(low, -1)?, w.triu(up, 0)?);
    let inner = w.add(low, up)?;
    let inner = w.triangular(conjugate, inner, left)?;
    let mut da = w.triangular(conjugate, inner, right)?;
    if let Some(outside) = outside {
        da = w.joined(da, outside, if n > k { -1 } else { -2 })?;
    }
    let dtype = w.0.emitter().dtype(da);
    let attrs = [("rows", (m as i64).into()), ("dtype", dtype.into())];
    let p = w.0.call("linalg.permutation", &[pivots], &attrs)?;
    let da = w.ab(p, da)?;
    w.0.set(0, da)
}

pub(crate) fn permutation() -> Result<OpDef> {
    Ok(OpDef::new("permutation(pivots: no_grad i32|i64[1..]; rows: int, dtype: dtype, first: int = 1) -> P: no_grad")?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "The permutation matrices P `[.., rows, rows]` with `A = P L U`, of pivots `[.., k]` in LAPACK's form: at step i row i and row \
             `pivots[i]`, counted from `first`, change places.",
        )
        .by_name_only()
        .shape1(|c| {
            let (batch, rows) = pivots_of(c)?;
            Ok(batch.iter().chain(&[rows, rows]).copied().collect::<Dims>())
        })
        .dtype(DTypeRule::Attr)
        .get_sbp(|c| {
            let (batch, _) = pivots_of(c)?;
            Ok((0..batch.len()).map(|d| Signature::new(&[Sbp::Split(d)], &[Sbp::Split(d)])).collect())
        })
        .cpu(|cx| match cx.output(0).dtype() {
            DType::F32 => permute::<f32>(cx),
            DType::F64 => permute::<f64>(cx),
            _ => permute::<Complex<f64>>(cx),
        })
        .cuda(crate::cuda::permutation)
        .grad(Grad::None)
        .samples(&["i32[2, 3]<4; rows=4, dtype=f64, first=0", "i64[4, 2, 2]<2; rows=2, dtype=c64, first=0"]))
}

/// The batch of pivots, and the number of rows that they move.
fn pivots_of<'a>(c: &InferCtx<'a>) -> Result<(&'a [usize], usize)> {
    let (Some((k, batch)), rows) = (c.shape(0)?.split_last(), c.int("rows")?) else {
        return Err(Error::shape("pivots need a dim at least"));
    };
    match usize::try_from(rows) {
        Ok(rows) if rows >= *k => Ok((batch, rows)),
        _ => Err(Error::shape(format!("{k} pivots are not of {rows} rows"))),
    }
}

/// The elements of a contiguous input of i32 or i64.
pub(crate) fn integers(view: &View) -> Result<Vec<i64>> {
    Ok(match view.dtype() {
        DType::I32 => view.as_slice::<i32>()?.iter().map(|x| i64::from(*x)).collect(),
        _ => view.as_slice::<i64>()?.to_vec(),
    })
}

fn permute<T: Field>(cx: &KernelCx<'_>) -> Result<()> {
    let pivots = cx.input(0)?;
    let Some((k, batch)) = pivots.dims().split_last() else { return Err(Error::shape("pivots need a dim at least")) };
    let (at, base) = (integers(pivots)?, cx.int("first")?);
    let rows = cx.output(0).dims().last().copied().unwrap_or_default();
    each::<T, _, 1>(
        cx,
        batch,
        &[rows, rows],
        || zeros::<usize>(rows),
        |order, i, [p]| {
            order.iter_mut().enumerate().for_each(|(i, x)| *x = i);
            for (step, to) in at[i * k..(i + 1) * k].iter().enumerate() {
                let found = to.checked_sub(base).and_then(|to| usize::try_from(to).ok()).filter(|to| *to < rows);
                let found = found.ok_or_else(|| format!("has the pivot {to}; pivots count {rows} rows from {base}"))?;
                order.swap(step, found);
            }
            p.fill(T::zero());
            order.iter().enumerate().for_each(|(column, row)| p[row * rows + column] = T::one());
            Ok(())
        },
    )
}
