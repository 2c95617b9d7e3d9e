//! Functions of several ops, with the names and the meaning of `torch.linalg`, and the same by name.

use crate::functions::{inv, output, outputs, register, solve, svd};
use oflow::CallSite;
use oflow::functional::{Bound, FnBody, FnDef, register_function};
use oflow::op;
use oflow::prelude::*;
use smallvec::smallvec;
use std::sync::Arc;

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
        let epsilon = if a.dtype() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let size = a.shape().iter().rev().take(2).max().copied().unwrap_or(1);
        let usual = if self.atol.is_some_and(|t| t > 0.0) { 0.0 } else { size as f64 * epsilon };
        (self.atol.unwrap_or(0.0), self.rtol.unwrap_or(usual))
    }
}

/// A matrix dim counted from the end.
fn size(a: &Tensor, back: usize) -> usize {
    a.ndim().checked_sub(back).map_or(1, |d| a.shape()[d])
}

/// Errors of the ops inside say which function called them.
fn named<R>(name: &str, made: Result<R>) -> Result<R> {
    made.map_err(|e| e.within(|| name.to_string()))
}

/// Refuses what is no batch of matrices, for functions whose first op would name another.
fn matrices(name: &str, a: &Tensor) -> Result<()> {
    match a.ndim() {
        0 | 1 => Err(Error::shape(format!("{name} needs a matrix or a batch of matrices, not {a:?}"))),
        _ => Ok(()),
    }
}

pub(crate) fn square(name: &str, a: &Tensor) -> Result<()> {
    matrices(name, a)?;
    match size(a, 1) == size(a, 2) {
        true => Ok(()),
        false => Err(Error::shape(format!("{name} needs square matrices, not {a:?}"))),
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

fn eigenvalues(a: &Tensor, triangle: &str) -> Result<Tensor> {
    register()?;
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
/// The tensor is no batch of matrices, or neither f32 nor f64; a matrix has an infinity or a NaN.
#[track_caller]
pub fn pinv(a: &Tensor, tolerance: Tolerance) -> Result<Tensor> {
    CallSite::here().run(|| {
        register()?;
        let (atol, rtol) = tolerance.of(a);
        let attrs = smallvec![atol.into(), rtol.into(), tolerance.hermitian.into()];
        named("pinv", output(op!("linalg.pseudo_inverse")?, &[a], attrs))
    })
}

/// The ranks of matrices: how many singular values are above the tolerance, as i64 `[..]`.
///
/// # Errors
/// As [`svd`](crate::svd).
#[track_caller]
pub fn matrix_rank(a: &Tensor, tolerance: Tolerance) -> Result<Tensor> {
    CallSite::here().run(|| {
        let (atol, rtol) = tolerance.of(a);
        let s = match tolerance.hermitian {
            true => named("matrix_rank", eigvalsh(&a.detach()))?.abs()?,
            false => named("matrix_rank", svdvals(&a.detach()))?,
        };
        if size(&s, 1) == 0 {
            return s.sum(-1)?.cast(DType::I64);
        }
        let least = s.amax_keepdim(-1)?.mul(rtol)?.clamp_min(atol)?;
        s.gt(&least)?.sum(-1)
    })
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
            true => a.matmul(&x)?.sub(&columns)?.square()?.sum(-2)?,
            false => x.narrow(-2, 0, 0)?.reshape([0])?,
        };
        Ok(LeastSquares {
            solution: if vectors { x.squeeze(-1)? } else { x },
            residuals,
            rank: matrix_rank(a, tolerance)?,
            singular_values: svdvals(a)?,
        })
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
                _ => crate::exponential::identity(a)?.add(&a.norm_keepdim(0.0, [-2, -1])?.mul(0.0)?),
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

/// Norm of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixNorm {
    /// The root of the sum of squares.
    Frobenius,
    /// The sum of the singular values.
    Nuclear,
    /// 2 and -2: the largest and the least singular value. 1 and -1: the largest and the least sum of absolute values of a column, inf and
    /// -inf of a row.
    P(f64),
}

impl MatrixNorm {
    fn named(name: &str) -> Result<MatrixNorm> {
        match name {
            "fro" => Ok(MatrixNorm::Frobenius),
            "nuc" => Ok(MatrixNorm::Nuclear),
            other => Err(Error::argument(format!("the norm '{other}' is neither 'fro' nor 'nuc'"))
                .help("the others are numbers: 1, -1, 2, -2, inf, -inf")),
        }
    }
}

/// Norms of the matrices in two dims of a tensor.
///
/// # Errors
/// The dims are not two of the tensor's, or there is no norm of that number.
#[track_caller]
pub fn matrix_norm(a: &Tensor, ord: MatrixNorm, dims: [i64; 2], keepdim: bool) -> Result<Tensor> {
    CallSite::here().run(|| {
        matrices("matrix_norm", a)?;
        let m = a.movedim(dims.as_slice(), [-2, -1].as_slice())?;
        let ends = |sums: Tensor, largest: bool| if largest { sums.amax(-1) } else { sums.amin(-1) };
        let norm = match ord {
            MatrixNorm::Frobenius => m.norm(2.0, [-2, -1])?,
            MatrixNorm::Nuclear => named("matrix_norm", svdvals(&m))?.sum(-1)?,
            MatrixNorm::P(p) if p.abs() == 2.0 => ends(named("matrix_norm", svdvals(&m))?, p > 0.0)?,
            MatrixNorm::P(p) if p.abs() == 1.0 => ends(m.abs()?.sum(-2)?, p > 0.0)?,
            MatrixNorm::P(p) if p.is_infinite() => ends(m.abs()?.sum(-1)?, p > 0.0)?,
            MatrixNorm::P(p) => {
                return Err(Error::argument(format!("matrix_norm has no norm of {p}"))
                    .help("there are 1, -1, 2, -2, inf, -inf, 'fro' and 'nuc'"));
            }
        };
        match keepdim {
            true => norm.unsqueeze(-1)?.unsqueeze(-1)?.movedim([-2, -1].as_slice(), dims.as_slice()),
            false => Ok(norm),
        }
    })
}

/// The condition numbers of matrices: the largest singular value by the least, or for another norm, of square ones, that of the matrix
/// times that of its inverse.
///
/// # Errors
/// As [`matrix_norm`] and, for another norm than 2 and -2, [`inv`](crate::inv).
#[track_caller]
pub fn cond(a: &Tensor, ord: MatrixNorm) -> Result<Tensor> {
    CallSite::here().run(|| {
        matrices("cond", a)?;
        match ord {
            MatrixNorm::P(p) if p.abs() == 2.0 => {
                let s = named("cond", svdvals(a))?;
                let (largest, least) = (s.amax(-1)?, s.amin(-1)?);
                if p > 0.0 { largest.div(&least) } else { least.div(&largest) }
            }
            _ => {
                square("cond", a)?;
                let of = |m: &Tensor| matrix_norm(m, ord, [-2, -1], false);
                named("cond", of(a).and_then(|norm| norm.mul(&of(&inv(a)?)?)))
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

/// The X with `tensordot(A, X, X.ndim())` equal to B, whose dims are the first ones of A.
///
/// # Errors
/// The sizes of A do not make a square matrix; as [`solve`](crate::solve).
#[track_caller]
pub fn tensorsolve(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    CallSite::here().run(|| {
        let n = b.numel();
        let fits = a.ndim() >= b.ndim() && a.shape()[..b.ndim()] == *b.shape();
        let rest = if fits { &a.shape()[b.ndim()..] } else { &[] };
        if !fits || rest.iter().product::<usize>() != n {
            return Err(Error::shape(format!(
                "tensorsolve: {a:?} has not the dims of {b:?} and as many elements in the others"
            )));
        }
        named("tensorsolve", solve(&a.reshape([n, n])?, &b.reshape([n])?))?.reshape(rest)
    })
}

/// The functions by name.
pub(crate) fn by_name() -> Result<()> {
    fn tolerance(b: &Bound, first: usize) -> Result<Tolerance> {
        let of = |i: usize| b.attr(i).map(|_| b.float(i)).transpose();
        Ok(Tolerance { atol: of(first)?, rtol: of(first + 1)?, hermitian: b.bool(first + 2)? })
    }
    fn dims(b: &Bound, i: usize) -> Result<[i64; 2]> {
        let given = b.ints(i)?;
        given.try_into().map_err(|_| Error::argument(format!("matrix_norm: dim names two dims, not {given:?}")))
    }
    type Code = fn(&Bound) -> Result<Vec<Tensor>>;
    let all: [(&str, &str, Code); 17] = [
        ("svdvals(Tensor A) -> Tensor", "The singular values, from the greatest on.", |b| {
            Ok(vec![svdvals(b.given(0)?)?])
        }),
        (
            "eigvalsh(Tensor A, String UPLO=\"L\") -> Tensor",
            "The eigenvalues of symmetric matrices, of which the lower (L) or the upper (U) triangle is read, from the least on.",
            |b| Ok(vec![eigenvalues(b.given(0)?, b.text(1)?)?]),
        ),
        (
            "pinv(Tensor A, *, Float? atol, Float? rtol, Bool hermitian=false) -> Tensor",
            "The pseudo-inverse of each matrix of a batch.\n\nSingular values that are not above `atol` and `rtol` times the largest count \
             as zero; without both, `rtol` is the larger size times epsilon.",
            |b| Ok(vec![pinv(b.given(0)?, tolerance(b, 1)?)?]),
        ),
        (
            "matrix_rank(Tensor A, *, Float? atol, Float? rtol, Bool hermitian=false) -> Tensor",
            "How many singular values of each matrix are above the tolerance, which is as in `pinv`.",
            |b| Ok(vec![matrix_rank(b.given(0)?, tolerance(b, 1)?)?]),
        ),
        (
            "lstsq(Tensor A, Tensor B, Float? rcond) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
            "The X with the least |A X - B|, and of several the least one.\n\nResiduals are there where A has more rows than columns, \
             whatever its rank.",
            |b| {
                let found = lstsq(b.given(0)?, b.given(1)?, b.attr(2).map(|_| b.float(2)).transpose()?)?;
                Ok(vec![found.solution, found.residuals, found.rank, found.singular_values])
            },
        ),
        (
            "matrix_power(Tensor A, Int n) -> Tensor",
            "The power of square matrices, of a negative n that of the inverse.",
            |b| Ok(vec![matrix_power(b.given(0)?, b.int(1)?)?]),
        ),
        ("matrix_exp(Tensor A) -> Tensor", "The exponential of square matrices.", |b| {
            Ok(vec![crate::matrix_exp(b.given(0)?)?])
        }),
        (
            "logdet(Tensor A) -> Tensor",
            "The logarithms of determinants: of a negative one NaN, of 0 minus infinity.",
            |b| Ok(vec![crate::logdet(b.given(0)?)?]),
        ),
        (
            "matrix_norm(Tensor A, Float ord, IntList dim=[-2, -1], Bool keepdim=false) -> Tensor",
            "The norm of matrices: 2 and -2 for the largest and least singular value, 1 and -1 for sums of columns, inf and -inf of rows.",
            |b| Ok(vec![matrix_norm(b.given(0)?, MatrixNorm::P(b.float(1)?), dims(b, 2)?, b.bool(3)?)?]),
        ),
        (
            "matrix_norm(Tensor A, String ord=\"fro\", IntList dim=[-2, -1], Bool keepdim=false) -> Tensor",
            "The norm of Frobenius (fro), or the sum of the singular values (nuc).",
            |b| Ok(vec![matrix_norm(b.given(0)?, MatrixNorm::named(b.text(1)?)?, dims(b, 2)?, b.bool(3)?)?]),
        ),
        (
            "vector_norm(Tensor x, Float ord=2.0, IntList dim=[], Bool keepdim=false) -> Tensor",
            "The norm of vectors along dims; none given: of all elements.",
            |b| {
                let (x, p, dims) = (b.given(0)?, b.float(1)?, b.ints(2)?);
                Ok(vec![if b.bool(3)? { x.norm_keepdim(p, dims)? } else { x.norm(p, dims)? }])
            },
        ),
        ("cond(Tensor A, Float p=2.0) -> Tensor", "The condition number in the norm p.", |b| {
            Ok(vec![cond(b.given(0)?, MatrixNorm::P(b.float(1)?))?])
        }),
        ("cond(Tensor A, String p) -> Tensor", "The condition number in the norm fro or nuc.", |b| {
            Ok(vec![cond(b.given(0)?, MatrixNorm::named(b.text(1)?)?)?])
        }),
        (
            "multi_dot(TensorTuple tensors) -> Tensor",
            "The product of matrices, in the order of the fewest operations.",
            |b| Ok(vec![multi_dot(&b.tensors(0)?.iter().collect::<Vec<_>>())?]),
        ),
        ("tensorinv(Tensor A, Int ind=2) -> Tensor", "The inverse for `tensordot` over the last dims.", |b| {
            let ind = usize::try_from(b.int(1)?).map_err(|_| Error::argument("tensorinv: ind must be positive"))?;
            Ok(vec![tensorinv(b.given(0)?, ind)?])
        }),
        ("tensorsolve(Tensor A, Tensor B) -> Tensor", "The X with `tensordot(A, X, X.ndim)` equal to B.", |b| {
            Ok(vec![tensorsolve(b.given(0)?, b.given(1)?)?])
        }),
        (
            "vecdot(Tensor x, Tensor y, Int dim=-1) -> Tensor",
            "The inner product along a dim: the sum of the products of y's elements and the conjugates of x's.",
            |b| Ok(vec![vecdot(b.given(0)?, b.given(1)?, b.int(2)?)?]),
        ),
    ];
    for (text, doc, code) in all {
        let def = FnDef::new(&format!("linalg.{text}"), FnBody::Code(Arc::new(code)))?;
        register_function(def.doc(doc))?;
    }
    Ok(())
}
