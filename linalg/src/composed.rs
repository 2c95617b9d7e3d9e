//! Functions of several ops, with the names and the meaning of `torch.linalg`, and the same by name.

use crate::functions::{eigh, inv, output, outputs, registered, solve, svd};
use crate::rules::real_of;
use crate::shapes::{identity, matrices, named, size, square};
use oflow::CallSite;
use oflow::op;
use oflow::prelude::*;
use smallvec::smallvec;

/// Below which a singular value counts as zero: at `atol`, or at `rtol` times the largest one, whichever is larger. Without both, at
/// the larger size of the matrix times the dtype's epsilon times the largest one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    /// Absolute tolerance for singular values.
    pub atol: Option<f64>,
    /// Relative to the largest singular value.
    pub rtol: Option<f64>,
    /// The matrices are symmetric: their lower triangles are read, and eigenvalues take the place of singular values.
    pub hermitian: bool,
}

impl Tolerance {
    /// Absolute and relative, for matrices of this tensor.
    fn of(&self, a: &Tensor) -> (f64, f64) {
        let epsilon = if real_of(a.dtype()) == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let size = a.shape().iter().rev().take(2).max().copied().unwrap_or(1);
        let usual = if self.atol.is_some_and(|t| t > 0.0) { 0.0 } else { size as f64 * epsilon };
        (self.atol.unwrap_or(0.0), self.rtol.unwrap_or(usual))
    }
}

/// The singular values of matrices `[.., m, n]`, from the greatest on, as `[.., k]`, k the smaller of m and n.
///
/// # Errors
/// As [`svd`](crate::svd).
#[track_caller]
pub fn svdvals(a: &Tensor) -> Result<Tensor> {
    CallSite::here().run(|| Ok(named("svdvals", svd(a))?.1))
}

/// The eigenvalues `[.., n]` of symmetric matrices `[.., n, n]`, of which the lower triangle is read, from the least on.
///
/// # Errors
/// As [`eigh`](crate::eigh).
#[track_caller]
pub fn eigvalsh(a: &Tensor) -> Result<Tensor> {
    CallSite::here().run(|| eigenvalues(a, "L"))
}

pub(crate) fn eigenvalues(a: &Tensor, triangle: &str) -> Result<Tensor> {
    registered()?;
    let [values, _] = named("eigvalsh", outputs(op!("linalg.eigh")?, &[a], smallvec![triangle.into()]))?;
    Ok(values)
}

/// The pseudo-inverses `[.., n, m]` of matrices `[.., m, n]`.
///
/// ```
/// use oflow::prelude::*;
/// let a = from_vec(vec![1.0, 0.0, 0.0, 2.0, 0.0, 0.0], [3, 2], Device::Cpu)?;
/// let p = oflow_linalg::pinv(&a, Default::default())?;
/// assert!(p.matmul(&a)?.sub(&eye(2, Device::Cpu.dtype(DType::F64))?)?.abs()?.amax(())?.item()? < 1e-12);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// The tensor is no batch of matrices, or of a dtype that linear algebra has not; a matrix has an infinity or a NaN.
#[track_caller]
pub fn pinv(a: &Tensor, tolerance: Tolerance) -> Result<Tensor> {
    CallSite::here().run(|| {
        registered()?;
        let (atol, rtol) = tolerance.of(a);
        let attrs = smallvec![atol.into(), rtol.into(), tolerance.hermitian.into()];
        named("pinv", output(op!("linalg.pseudo_inverse")?, &[a], attrs))
    })
}

/// Tolerances as tensors: one for each matrix, which broadcast to the batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tolerances<'a> {
    pub(crate) atol: Option<&'a Tensor>,
    pub(crate) rtol: Option<&'a Tensor>,
    pub(crate) hermitian: bool,
}

impl Tolerances<'_> {
    /// The least singular value that counts, of those of `a`, from the greatest on.
    fn least(&self, a: &Tensor, s: &Tensor) -> Result<Tensor> {
        let most = s.amax_keepdim(-1)?;
        let each = |t: &Tensor| t.detach().cast(s.dtype())?.unsqueeze(-1);
        let usual = Tolerance::default().of(a).1;
        let relative = match (self.rtol, self.atol) {
            (Some(r), _) => most.mul(&each(r)?)?,
            (None, None) => most.mul(usual)?,
            // The usual one counts where no absolute one is given.
            (None, Some(atol)) => most.mul(usual)?.masked_fill(&each(atol)?.gt(0.0)?.expand_as(&most)?, 0.0)?,
        };
        match self.atol {
            Some(atol) => relative.maximum(&each(atol)?),
            None => Ok(relative),
        }
    }
}

/// The pseudo-inverses by tolerances that are tensors.
pub(crate) fn pinv_by(a: &Tensor, tolerances: Tolerances<'_>) -> Result<Tensor> {
    matrices("pinv", a)?;
    // A = U diag(s) Vh, of Hermitian matrices by their eigenvalues, which may be negative.
    let (u, s, vh) = match tolerances.hermitian {
        true => {
            let (l, q) = named("pinv", eigh(a))?;
            let vh = q.adjoint()?;
            (q, l, vh)
        }
        false => named("pinv", svd(a))?,
    };
    if size(&s, 1) == 0 {
        return vh.adjoint()?.matmul(&u.adjoint()?);
    }
    let sizes = s.detach().abs()?;
    let none = sizes.le(&tolerances.least(a, &sizes)?)?;
    let inverse = s.masked_fill(&none, f64::INFINITY)?.reciprocal()?;
    vh.adjoint()?.mul(&inverse.unsqueeze(-2)?)?.matmul(&u.adjoint()?)
}

/// The absolute values that a rank counts.
fn sizes(a: &Tensor, hermitian: bool) -> Result<Tensor> {
    match hermitian {
        true => named("matrix_rank", eigvalsh(&a.detach()))?.abs(),
        false => named("matrix_rank", svdvals(&a.detach())),
    }
}

/// The ranks of matrices: how many singular values are above the tolerance, as i64 `[..]`.
///
/// # Errors
/// As [`svd`](crate::svd).
#[track_caller]
pub fn matrix_rank(a: &Tensor, tolerance: Tolerance) -> Result<Tensor> {
    CallSite::here().run(|| {
        let (atol, rtol) = tolerance.of(a);
        let s = sizes(a, tolerance.hermitian)?;
        if size(&s, 1) == 0 {
            return s.sum(-1)?.cast(DType::I64);
        }
        let least = s.amax_keepdim(-1)?.mul(rtol)?.clamp_min(atol)?;
        s.gt(&least)?.sum(-1)
    })
}

/// The ranks by tolerances that are tensors.
pub(crate) fn rank_by(a: &Tensor, tolerances: Tolerances<'_>) -> Result<Tensor> {
    let s = sizes(a, tolerances.hermitian)?;
    if size(&s, 1) == 0 {
        return s.sum(-1)?.cast(DType::I64);
    }
    s.gt(&tolerances.least(a, &s)?)?.sum(-1)
}

/// A solution of least squares; see [`lstsq`].
#[derive(Clone, Debug)]
pub struct LeastSquares {
    /// `[.., n, k]`, or `[.., n]` for vectors: of the X with the least |A X - B| the one with the least |X|.
    pub solution: Tensor,
    /// The sum of the squares of A X - B for each column, `[.., k]`; no elements where m <= n.
    pub residuals: Tensor,
    /// The rank of each A, i64 `[..]`.
    pub rank: Tensor,
    /// The singular values of each A.
    pub singular_values: Tensor,
}

/// Solves `A X = B` in least squares, for matrices A `[.., m, n]` of any rank and B `[.., m, k]`, or vectors: one `[m]`, or one for each
/// matrix. Singular values of `rcond` times the largest and less count as zero (none given: the larger size times epsilon).
///
/// # Errors
/// Sizes or dtypes do not fit; A has an infinity or a NaN.
#[track_caller]
pub fn lstsq(a: &Tensor, b: &Tensor, rcond: Option<f64>) -> Result<LeastSquares> {
    CallSite::here().run(|| {
        matrices("lstsq", a)?;
        let tolerance = Tolerance { rtol: rcond, ..Tolerance::default() };
        let vectors = b.ndim() == 1 || (b.ndim() + 1 == a.ndim() && b.shape() == &a.shape()[..b.ndim()]);
        if b.ndim() == 0 || size(b, if vectors { 1 } else { 2 }) != size(a, 2) || a.dtype() != b.dtype() {
            return Err(Error::shape(format!(
                "lstsq: {a:?} and {b:?} do not fit: B has as many rows as A, and its dtype"
            )));
        }
        let columns = if vectors { b.unsqueeze(-1)? } else { b.clone() };
        let x = named("lstsq", pinv(a, tolerance))?.matmul(&columns)?;
        let residuals = match size(a, 2) > size(a, 1) {
            true => a.matmul(&x)?.sub(&columns)?.abs()?.square()?.sum(-2)?,
            false => none_of(&x)?,
        };
        Ok(LeastSquares {
            solution: if vectors { x.squeeze(-1)? } else { x },
            residuals,
            rank: matrix_rank(a, tolerance)?,
            singular_values: svdvals(a)?,
        })
    })
}

/// No elements, with the real dtype and the layout of matrices.
fn none_of(x: &Tensor) -> Result<Tensor> {
    x.narrow(-2, 0, 0)?.reshape([0])?.cast(real_of(x.dtype()))
}

/// Results of [`lstsq`] without those that a driver of LAPACK leaves out: gels the rank and the singular values, gelsy the singular
/// values and the residuals.
pub(crate) fn lstsq_by(a: &Tensor, b: &Tensor, rcond: Option<f64>, driver: Option<&str>) -> Result<LeastSquares> {
    let Some(driver) = driver else { return lstsq(a, b, rcond) };
    if !["gels", "gelsy", "gelsd", "gelss"].contains(&driver) {
        return Err(Error::argument(format!("lstsq: the driver '{driver}' is none of gels, gelsy, gelsd and gelss")));
    }
    let found = lstsq(a, b, rcond)?;
    let none = none_of(&a.detach())?;
    Ok(LeastSquares {
        residuals: if driver == "gelsy" { none_of(a)? } else { found.residuals },
        rank: if driver == "gels" { none.cast(DType::I64)? } else { found.rank },
        singular_values: if matches!(driver, "gels" | "gelsy") { none } else { found.singular_values },
        solution: found.solution,
    })
}

/// The powers of square matrices, by squaring; of a negative `n` those of the inverse, of 0 the identity.
///
/// # Errors
/// The matrices are not square; for a negative `n` as [`inv`](crate::inv).
#[track_caller]
pub fn matrix_power(a: &Tensor, n: i64) -> Result<Tensor> {
    CallSite::here().run(|| {
        square("matrix_power", a)?;
        let mut factor = if n < 0 { named("matrix_power", inv(a))? } else { a.clone() };
        let mut left = n.unsigned_abs();
        if left == 0 {
            return match a.numel() {
                0 => a.copy(),
                // The slope is 0, and not none: the result depends on `a`, as in PyTorch.
                _ => identity(a)?.add(&a.norm_keepdim(0.0, [-2, -1])?.mul(0.0)?),
            };
        }
        let mut made: Option<Tensor> = None;
        loop {
            if left & 1 == 1 {
                made = Some(match made {
                    Some(m) => m.matmul(&factor)?,
                    None => factor.clone(),
                });
            }
            left >>= 1;
            match made {
                Some(m) if left == 0 => return m.copy(),
                _ => factor = factor.matmul(&factor)?,
            }
        }
    })
}

/// The product of matrices in the order of the least count of operations (Cormen et al., matrix-chain multiplication). The first may
/// be a vector, a row, and the last one a vector, a column.
///
/// # Errors
/// There are fewer than two tensors, one between is not a matrix, or sizes do not fit.
#[track_caller]
pub fn multi_dot(tensors: &[&Tensor]) -> Result<Tensor> {
    CallSite::here().run(|| {
        let [first, .., last] = tensors else {
            return Err(Error::argument(format!("multi_dot needs two tensors or more, not {}", tensors.len())));
        };
        let outer = |t: &Tensor| matches!(t.ndim(), 1 | 2);
        let inner = &tensors[1..tensors.len() - 1];
        if let Some(t) = inner.iter().find(|t| t.ndim() != 2).or([first, last].into_iter().find(|t| !outer(t))) {
            return Err(Error::shape(format!(
                "multi_dot takes matrices, the first and the last may be vectors; not {t:?}"
            )));
        }
        let mut chain: Vec<Tensor> = tensors.iter().map(|t| (*t).clone()).collect();
        let n = chain.len();
        let (row, column) = (first.ndim() == 1, last.ndim() == 1);
        if row {
            chain[0] = first.unsqueeze(0)?;
        }
        if column {
            chain[n - 1] = last.unsqueeze(-1)?;
        }
        let sizes: Vec<u128> =
            chain.iter().map(|t| t.shape()[0]).chain([size(&chain[n - 1], 1)]).map(|n| n as u128).collect();
        if let Some(i) = (0..n - 1).find(|i| size(&chain[*i], 1) != chain[i + 1].shape()[0]) {
            return Err(Error::shape(format!("multi_dot: {:?} and {:?} do not fit", tensors[i], tensors[i + 1])));
        }
        // The least cost of the products from i to j, and where the last of them is.
        let mut best = vec![vec![(0u128, 0usize); n]; n];
        for len in 1..n {
            for i in 0..n - len {
                let j = i + len;
                let cost = |k: usize| best[i][k].0 + best[k + 1][j].0 + sizes[i] * sizes[k + 1] * sizes[j + 1];
                let found = (i..j).map(|k| (cost(k), k)).min();
                best[i][j] = found.unwrap_or_default();
            }
        }
        fn product(chain: &[Tensor], best: &[Vec<(u128, usize)>], i: usize, j: usize) -> Result<Tensor> {
            if i == j {
                return Ok(chain[i].clone());
            }
            let k = best[i][j].1;
            product(chain, best, i, k)?.matmul(&product(chain, best, k + 1, j)?)
        }
        let mut y = product(&chain, &best, 0, n - 1)?;
        if column {
            y = y.squeeze(-1)?;
        }
        if row { y.squeeze(0) } else { Ok(y) }
    })
}

/// The tensor X with `tensordot(X, A, ind)` the identity: the inverse of A as a matrix of its first `ind` dims and the others.
///
/// # Errors
/// The product of the first `ind` sizes is not that of the others; as [`inv`](crate::inv).
#[track_caller]
pub fn tensorinv(a: &Tensor, ind: usize) -> Result<Tensor> {
    CallSite::here().run(|| {
        let shape = a.shape();
        if ind == 0
            || ind > shape.len()
            || shape[..ind].iter().product::<usize>() != shape[ind..].iter().product::<usize>()
        {
            return Err(Error::shape(format!(
                "tensorinv: the first {ind} dims of {a:?} have not as many elements as the others"
            )));
        }
        let n = shape[..ind].iter().product::<usize>();
        let whole: Vec<usize> = shape[ind..].iter().chain(&shape[..ind]).copied().collect();
        named("tensorinv", inv(&a.reshape([n, n])?))?.reshape(whole)
    })
}

/// The inner products of vectors along a dim, whose other dims broadcast: the sum of the products of y's elements and the conjugates
/// of x's.
///
/// ```
/// use oflow::prelude::*;
/// let x = from_vec(vec![3.0, 4.0], [2], Device::Cpu)?;
/// assert_eq!(oflow_linalg::vecdot(&x, &x, -1)?.item()?, 25.0);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// The shapes do not broadcast, or there is no such dim.
#[track_caller]
pub fn vecdot(x: &Tensor, y: &Tensor, dim: i64) -> Result<Tensor> {
    CallSite::here().run(|| {
        let x = if x.dtype().is_complex() { x.conj()? } else { x.clone() };
        x.mul(y)?.sum(dim)
    })
}

/// [`tensorsolve`] of A with the given dims moved behind the others.
pub(crate) fn tensorsolve_along(a: &Tensor, b: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let behind: Vec<i64> = (-(dims.len() as i64)..0).collect();
    tensorsolve(&a.movedim(dims, behind.as_slice())?, b)
}

/// The X with `tensordot(A, X, X.ndim())` equal to B, whose dims are the first ones of A.
///
/// # Errors
/// The sizes of A do not make a square matrix; as [`solve`](crate::solve).
#[track_caller]
pub fn tensorsolve(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    CallSite::here().run(|| {
        let n = b.numel();
        let (first, rest) = a.shape().split_at(b.ndim().min(a.ndim()));
        if first.iter().product::<usize>() != n || rest.iter().product::<usize>() != n {
            return Err(Error::shape(format!(
                "tensorsolve: the first {} dims of {a:?} have not the {n} elements of {b:?}, or the others have not",
                b.ndim()
            )));
        }
        named("tensorsolve", solve(&a.reshape([n, n])?, &b.reshape([n])?))?.reshape(rest)
    })
}
