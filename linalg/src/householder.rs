//! Products of Householder reflections.

use crate::functions::{outputs, registered, solve_triangular};
use crate::rules::Triangular;
use crate::shapes::{diagonal_ones, size};
use oflow::CallSite;
use oflow::op;
use oflow::prelude::*;
use smallvec::smallvec;

/// The QR decomposition of matrices `[.., m, n]` in LAPACK's form: R with the vectors of reflections below its diagonal, and their
/// factors tau `[.., k]`, k the smaller of m and n. [`ormqr`] and [`householder_product`] take them. It has no gradient; [`qr`](crate::qr)
/// has.
///
/// # Errors
/// The tensor is no batch of matrices of f32, f64, c64 or c128.
#[track_caller]
pub fn geqrf(a: &Tensor) -> Result<(Tensor, Tensor)> {
    CallSite::here().run(|| {
        registered()?;
        let [both, tau] = outputs(op!("linalg.reflections")?, &[a], smallvec![])?;
        Ok((both, tau))
    })
}

/// Reflections as one product `I - V T Vᴴ` (Schreiber and Van Loan, 1989).
struct Product {
    v: Tensor,
    t: Tensor,
}

impl Product {
    /// Of the vectors below the diagonal of `a` and their factors.
    fn of(name: &str, a: &Tensor, tau: &Tensor) -> Result<Product> {
        let fits =
            a.ndim() >= 2 && tau.ndim() + 1 == a.ndim() && tau.shape()[..tau.ndim() - 1] == a.shape()[..a.ndim() - 2];
        let (m, n, k) = (a.shape().iter().rev().nth(1), a.shape().last(), tau.shape().last());
        let (Some(m), Some(n), Some(k)) = (m.filter(|_| fits), n, k) else {
            return Err(Error::shape(format!(
                "{name} takes matrices [.., m, n] and as many vectors tau, not {a:?} and {tau:?}"
            )));
        };
        if k > n || k > m {
            return Err(Error::shape(format!("{name}: {a:?} has not as many rows and columns as factors {tau:?}")));
        }
        if a.dtype() != tau.dtype() {
            return Err(Error::dtype(format!("{name}: the vectors are {}, tau is {}", a.dtype(), tau.dtype())));
        }
        let low = a.narrow(-1, 0, *k as i64)?.tril(-1)?;
        let v = low.add(&diagonal_ones(&low)?)?;
        // T⁻¹ = diag(1/tau) + the strict upper triangle of Vᴴ V; multiplied by diag(tau), where tau may be 0.
        let strict = v.adjoint()?.matmul(&v)?.triu(1)?;
        let how = Triangular { upper: true, unitriangular: true, ..Triangular::default() };
        let t = solve_triangular(&strict.mul(&tau.unsqueeze(-1)?)?, &tau.diag_embed(0)?, how)?;
        Ok(Product { v, t })
    }
}

/// The first n columns of the product of reflections, whose vectors stand below the diagonal of `a` `[.., m, n]` and whose factors are
/// tau `[.., k]`: of [`geqrf`]'s results the Q of the reduced QR decomposition.
///
/// # Errors
/// Sizes or dtypes do not fit.
#[track_caller]
pub fn householder_product(a: &Tensor, tau: &Tensor) -> Result<Tensor> {
    CallSite::here().run(|| {
        let Product { v, t } = Product::of("householder_product", a, tau)?;
        if size(a, 2) < size(a, 1) {
            return Err(Error::shape(format!("householder_product needs at least as many rows as columns, not {a:?}")));
        }
        let first = v.narrow(-2, 0, a.shape()[a.ndim() - 1] as i64)?.adjoint()?;
        diagonal_ones(a)?.sub(&v.matmul(&t.matmul(&first)?)?)
    })
}

/// The product of `other` with the m by m matrix Q of [`geqrf`]'s results: Q other, or other Q if not `left`; with `adjoint` Qᴴ stands
/// in the place of Q.
///
/// # Errors
/// Sizes or dtypes do not fit.
#[track_caller]
pub fn ormqr(a: &Tensor, tau: &Tensor, other: &Tensor, left: bool, adjoint: bool) -> Result<Tensor> {
    CallSite::here().run(|| {
        let Product { v, t } = Product::of("ormqr", a, tau)?;
        let size = other.shape().iter().rev().nth(usize::from(left)).copied();
        let batch = |x: &Tensor| x.shape()[..x.ndim() - 2].to_vec();
        if other.ndim() != a.ndim() || batch(other) != batch(a) || size != Some(v.shape()[v.ndim() - 2]) {
            return Err(Error::shape(format!("ormqr: {other:?} does not fit the reflections {a:?}")));
        }
        if other.dtype() != a.dtype() {
            return Err(Error::dtype(format!("ormqr: the vectors are {}, other is {}", a.dtype(), other.dtype())));
        }
        let t = if adjoint { t.adjoint()? } else { t };
        let vh = v.adjoint()?;
        match left {
            true => other.sub(&v.matmul(&t.matmul(&vh.matmul(other)?)?)?),
            false => other.sub(&other.matmul(&v)?.matmul(&t)?.matmul(&vh)?),
        }
    })
}
