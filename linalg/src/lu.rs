//! Ops on the LU decomposition with row pivots: determinants, inverses, solutions.

use crate::batch::{Real, Scratch, Source, Wrong, batch_of, by_rows, each, finite, room, with_real, zeros};
use crate::rules::{DOMAIN, Words, cubes, matrices, one_dtype, split_batch, square};
use faer::linalg::lu::partial_pivoting::{factor, inverse, solve};
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::perm::PermRef;
use faer::{Conj, MatMut, MatRef, Par};
use num_traits::Float;
use oflow::kernels::Dims;
use oflow::ops::{DTypeRule, Grad, GradCtx, InferCtx, KernelCx, OpDef, broadcast_shapes};
use oflow::prelude::*;
use oflow::sbp::{Sbp, Signature};
use smallvec::smallvec;

/// A matrix with its decomposition, and what stays from one matrix of a batch to the next.
struct Lu<T> {
    n: usize,
    /// L below the diagonal, whose own diagonal is ones, and U; by columns.
    both: Vec<T>,
    rows: Vec<usize>,
    back: Vec<usize>,
    /// How often two rows changed places.
    swaps: usize,
    /// Whether all elements of the matrix are.
    finite: bool,
    scratch: Scratch,
}

impl<T: Real> Lu<T> {
    /// Room for matrices of n rows that are then solved for `columns` right sides.
    fn new(n: usize, columns: usize) -> Result<Lu<T>> {
        let par = Par::Seq;
        let need = factor::lu_in_place_scratch::<usize, T>(n, n, par, Default::default())
            .or(solve::solve_in_place_scratch::<usize, T>(n, columns, par))
            .or(inverse::inverse_scratch::<usize, T>(n, par));
        let both = room(n * n)?;
        Ok(Lu { n, both, rows: vec![0; n], back: vec![0; n], swaps: 0, finite: true, scratch: Scratch::new(need)? })
    }

    /// Decomposes the matrix that lies in `both`.
    fn decompose(&mut self) {
        let n = self.n;
        self.finite = finite(&self.both);
        let a = MatMut::from_column_major_slice_mut(&mut self.both, n, n);
        let (rows, back, stack) = (&mut self.rows, &mut self.back, self.scratch.stack());
        self.swaps = factor::lu_in_place(a, rows, back, Par::Seq, stack, Default::default()).0.transposition_count;
    }

    /// The first pivot that is zero, if the matrix is finite. What follows it divides by zero and means nothing.
    fn null(&self) -> Option<usize> {
        self.diagonal().position(|x| x == T::zero()).filter(|_| self.finite)
    }

    fn diagonal(&self) -> impl Iterator<Item = T> + '_ {
        self.both.iter().step_by(self.n + 1).copied()
    }

    /// -1 if an odd number of rows changed places.
    fn sign(&self) -> T {
        if self.swaps.is_multiple_of(2) { T::one() } else { -T::one() }
    }

    fn determinant(&self) -> T {
        if self.null().is_some() {
            return T::zero();
        }
        self.diagonal().fold(self.sign(), |p, x| p * x)
    }

    /// Why there is no inverse.
    fn regular(&self) -> Result<(), String> {
        match self.null() {
            Some(k) => Err(format!("is singular: pivot {k} of its LU decomposition is zero")),
            None => Ok(()),
        }
    }

    /// Writes the inverse by columns.
    fn invert(&mut self, out: &mut [T]) {
        let n = self.n;
        let lu = MatRef::from_column_major_slice(&self.both, n, n);
        // SAFETY: `decompose` has written a permutation and its inverse.
        let perm = unsafe { PermRef::new_unchecked(&self.rows, &self.back, n) };
        let y = MatMut::from_column_major_slice_mut(out, n, n);
        inverse::inverse(y, lu, lu, perm, Par::Seq, self.scratch.stack());
    }

    /// Puts the solutions in the place of the right sides.
    fn solve(&mut self, b: &mut [T], columns: usize) {
        let n = self.n;
        let lu = MatRef::from_column_major_slice(&self.both, n, n);
        // SAFETY: as in `invert`.
        let perm = unsafe { PermRef::new_unchecked(&self.rows, &self.back, n) };
        let b = MatMut::from_column_major_slice_mut(b, n, columns);
        solve::solve_in_place_with_conj(lu, lu, perm, Conj::No, b, Par::Seq, self.scratch.stack());
    }
}

fn without_matrix(c: &InferCtx<'_>) -> Result<Dims> {
    Ok(matrices(c, 0)?.0.into())
}

pub(crate) fn ops() -> Vec<Result<OpDef>> {
    vec![det(), cofactor(), slogdet(), inv(), solve_op()]
}

fn det() -> Result<OpDef> {
    Ok(OpDef::new("det(A: f32|f64[2..]) -> y")?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "The determinant of each matrix of a batch `[.., n, n]`.\n\nThat of a singular matrix is 0 and has a gradient: the \
             cofactors, which are exact where the inverse is not there. Its second derivative needs the inverse.",
        )
        .check(square)
        .shape1(without_matrix)
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| split_batch(c, 1))
        .flops(|c| cubes(c, 1))
        .cpu(|cx| with_real!(cx, det_kernel))
        .grad(Grad::rule_saving(&[0], &[], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let a = g.input(0)?;
            let cofactors = g.call("linalg.cofactor", &[a], &[])?;
            let mut w = Words(g);
            let dy = w.unsqueeze(dy, -1)?;
            let dy = w.unsqueeze(dy, -1)?;
            let da = w.mul(dy, cofactors)?;
            g.set(0, da)
        }))
        .samples(&["f32[3, 3]", "f64[2, 3, 3]", "f64[1, 1]", "f64[2, 0, 0]", "f64[4, 3, 2, 2]"]))
}

fn det_kernel<T: Real>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let n = a.rows();
    each(
        cx,
        batch,
        &[n, n, n],
        || Lu::<T>::new(n, 0),
        |lu, i, [det]| {
            a.read(i, &mut lu.both);
            lu.decompose();
            det[0] = lu.determinant();
            Ok(())
        },
    )
}

fn cofactor() -> Result<OpDef> {
    Ok(OpDef::new("cofactor(A: f32|f64[2..]) -> y")?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "The matrices of cofactors, which are the gradients of the determinants.\n\nElement `[i, j]` is the determinant without row \
             i and column j, with the sign of `(-1)^(i + j)`. Singular matrices have them too. The gradient needs the inverse.",
        )
        .by_name_only()
        .check(square)
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| split_batch(c, 1))
        .flops(|c| cubes(c, 4))
        .cpu(|cx| with_real!(cx, cofactor_kernel))
        .grad(Grad::rule_saving(&[0], &[0], |g| {
            // C = det(A) A⁻ᵀ, so the gradient of <G, C> is <G, C> A⁻ᵀ - A⁻ᵀ Gᵀ C.
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let (a, c) = (g.input(0)?, g.output(0)?);
            let inverse = g.call("linalg.inv", &[a], &[])?;
            let mut w = Words(g);
            let product = w.mul(dy, c)?;
            let total = w.total(product)?;
            let it = w.t(inverse)?;
            let first = w.mul(total, it)?;
            let second = w.atbt(inverse, dy)?;
            let second = w.ab(second, c)?;
            let da = w.sub(first, second)?;
            g.set(0, da)
        }))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]", "f64[1, 1]", "f64[2, 2]"]))
}

fn cofactor_kernel<T: Real>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let n = a.rows();
    each(
        cx,
        batch,
        &[4, n, n, n],
        || Ok((Lu::<T>::new(n, 0)?, zeros(n * n)?)),
        |(lu, inverse), i, [part]| {
            a.read(i, &mut lu.both);
            lu.decompose();
            let (least, most) = lu.diagonal().fold((T::infinity(), T::zero()), |(l, m), x| {
                (Float::min(l, Float::abs(x)), Float::max(m, Float::abs(x)))
            });
            // Far from singular, the inverse is as good and much cheaper.
            let near = Float::sqrt(T::epsilon());
            if least > near * most || !lu.finite {
                let det = lu.determinant();
                lu.invert(inverse);
                // By columns, so this transposes: C = det A⁻ᵀ.
                part.iter_mut().zip(inverse).for_each(|(y, x)| *y = det * *x);
            } else {
                a.read(i, &mut lu.both);
                let c = cofactors_by_svd(n, &lu.both)?;
                by_rows(n, part, |r, col| T::from(c[col * n + r]).unwrap_or_else(T::nan));
            }
            Ok(())
        },
    )
}

/// The cofactors of any finite matrix, in f64, from A = U S Vᵀ: det(U) det(V) U diag(the products of the other singular values) Vᵀ.
fn cofactors_by_svd<T: Real>(n: usize, a: &[T]) -> Result<Vec<f64>, Wrong> {
    let mut wide = room(n * n)?;
    wide.extend(a.iter().map(|x| x.to_f64().unwrap_or(f64::NAN)));
    let (mut u, mut v, mut s) = (zeros(n * n)?, zeros(n * n)?, zeros(n)?);
    let thin = ComputeSvdVectors::Thin;
    let mut scratch = Scratch::new(svd_scratch::<f64>(n, n, thin, thin, Par::Seq, Default::default()))?;
    svd(
        MatRef::from_column_major_slice(&wide, n, n),
        faer::diag::DiagMut::from_slice_mut(&mut s),
        Some(MatMut::from_column_major_slice_mut(&mut u, n, n)),
        Some(MatMut::from_column_major_slice_mut(&mut v, n, n)),
        Par::Seq,
        scratch.stack(),
        Default::default(),
    )
    .map_err(|_| "has cofactors that did not converge".to_string())?;
    let mut lu = Lu::<f64>::new(n, 0)?;
    let mut sign = |q: &[f64]| {
        lu.both.clear();
        lu.both.extend_from_slice(q);
        lu.decompose();
        lu.determinant().signum()
    };
    let sign = sign(&u) * sign(&v);
    let others = |k: usize| s.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, s)| s).product::<f64>();
    let mut c = zeros(n * n)?;
    for k in 0..n {
        let by = sign * others(k);
        for col in 0..n {
            for r in 0..n {
                c[col * n + r] += by * u[k * n + r] * v[k * n + col];
            }
        }
    }
    Ok(c)
}

fn slogdet() -> Result<OpDef> {
    Ok(OpDef::new("slogdet(A: f32|f64[2..]) -> (sign, logabsdet)")?
        .domain(DOMAIN)
        .subject("Linear algebra")
        .doc(
            "The sign and the logarithm of the absolute value of each determinant, where the determinant itself may not be \
             representable.\n\nA singular matrix gives 0 and -inf; its gradient is an error.",
        )
        .check(square)
        .shapes(|c| without_matrix(c).map(|s| smallvec![s.clone(), s]))
        .dtype(DTypeRule::Input(0))
        .strided()
        .get_sbp(|c| split_batch(c, 2))
        .flops(|c| cubes(c, 1))
        .cpu(|cx| with_real!(cx, slogdet_kernel))
        .grad(Grad::rule_saving(&[0], &[], |g| {
            // The slope of the sign is 0 everywhere.
            let Some(dy) = g.grad(1) else { return Ok(()) };
            let a = g.input(0)?;
            let inverse = g.call("linalg.inv", &[a], &[])?;
            let mut w = Words(g);
            let dy = w.unsqueeze(dy, -1)?;
            let dy = w.unsqueeze(dy, -1)?;
            let it = w.t(inverse)?;
            let da = w.mul(dy, it)?;
            g.set(0, da)
        }))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]~", "f64[1, 1]", "f64[2, 2, 2]", "f64[2, 0, 0]"]))
}

fn slogdet_kernel<T: Real>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let n = a.rows();
    each(
        cx,
        batch,
        &[n, n, n],
        || Lu::<T>::new(n, 0),
        |lu, i, [sign, log]| {
            a.read(i, &mut lu.both);
            lu.decompose();
            let of = |x: T| if x == T::zero() || Float::is_nan(x) { x } else { Float::signum(x) };
            (sign[0], log[0]) = match lu.null() {
                Some(_) => (T::zero(), T::neg_infinity()),
                None => (
                    lu.diagonal().fold(lu.sign(), |p, x| p * of(x)),
                    lu.diagonal().fold(T::zero(), |l, x| l + Float::ln(Float::abs(x))),
                ),
            };
            Ok(())
        },
    )
}

fn inv() -> Result<OpDef> {
    Ok(OpDef::new("inv(A: f32|f64[2..]) -> y")?
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
        .cpu(|cx| with_real!(cx, inv_kernel))
        .grad(Grad::rule_saving(&[], &[0], |g| {
            let Some(dy) = g.grad(0) else { return Ok(()) };
            let y = g.output(0)?;
            let mut w = Words(g);
            let right = w.abt(dy, y)?;
            let both = w.atb(y, right)?;
            let da = w.neg(both)?;
            g.set(0, da)
        }))
        .samples(&["f32[3, 3]~", "f64[2, 3, 3]~", "f64[1, 1]", "f64[2, 2, 2]", "f64[2, 0, 0]"]))
}

fn inv_kernel<T: Real>(cx: &KernelCx<'_>) -> Result<()> {
    let batch = batch_of(cx)?;
    let a = Source::<T>::new(cx.input(0)?, batch, false)?;
    let n = a.rows();
    each(
        cx,
        batch,
        &[2, n, n, n],
        || Ok((Lu::<T>::new(n, 0)?, zeros(n * n)?)),
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

fn solve_op() -> Result<OpDef> {
    Ok(OpDef::new("solve(A: f32|f64[2..], B: f32|f64[1..]; left: bool = true, transpose: bool = false) -> x")?
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
            one_dtype(c)?;
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
        .cpu(|cx| with_real!(cx, solve_kernel))
        .grad(Grad::rule_saving(&[0], &[0], solve_gradient))
        .samples(&[
            "f32[3, 3]~ f32[3, 2]",
            "f64[2, 3, 3]~ f64[2, 3, 4]",
            "f64[2, 3, 3]~ f64[2, 3]",
            "f64[3, 3]~ f64[3]",
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

fn solve_kernel<T: Real>(cx: &KernelCx<'_>) -> Result<()> {
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
        || Ok(Work { lu: Lu::<T>::new(n, columns)?, b: b.room()?, ready: false }),
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
