//! Decompositions of matrices of low rank by random projections: N. Halko, P. Martinsson, J. Tropp, "Finding structure with randomness",
//! 2009.

use crate::functions::{qr, svd};
use crate::shapes::{matrices, named, size};
use oflow::CallSite;
use oflow::prelude::*;

/// A basis of q columns of about the range of a.
fn basis(a: &Tensor, q: i64, iterations: i64) -> Result<Tensor> {
    let columns = a.detach().abs()?.transpose(-2, -1)?.narrow(-1, 0, q)?;
    let random = oflow::functional::randn_like(&columns)?.cast(a.dtype())?;
    let mut basis = qr(&a.matmul(&random)?)?.0;
    let h = a.adjoint()?;
    for _ in 0..iterations {
        basis = qr(&h.matmul(&basis)?)?.0;
        basis = qr(&a.matmul(&basis)?)?.0;
    }
    Ok(basis)
}

/// The `q` largest singular values of matrices `[.., m, n]`, about, and their vectors: `(U, S, V)` of `[.., m, q]`, `[.., q]` and
/// `[.., n, q]`. `m` is subtracted from the matrices first. The projections are random; each of the `iterations` makes the result more
/// precise.
///
/// # Errors
/// q is larger than m or n.
#[track_caller]
pub fn svd_lowrank(a: &Tensor, q: i64, iterations: i64, m: Option<&Tensor>) -> Result<(Tensor, Tensor, Tensor)> {
    CallSite::here().run(|| {
        matrices("svd_lowrank", a)?;
        let most = size(a, 1).min(size(a, 2)) as i64;
        if !(0..=most).contains(&q) || iterations < 0 {
            return Err(Error::argument(format!(
                "svd_lowrank: q is {q} and niter {iterations}, of {a:?} they are 0 to {most} and at least 0"
            )));
        }
        let a = match m {
            Some(m) => a.sub(m)?,
            None => a.clone(),
        };
        let wide = size(&a, 2) < size(&a, 1);
        let tall = if wide { a.adjoint()? } else { a };
        let made = || {
            let basis = basis(&tall, q, iterations)?;
            let (u, s, vh) = svd(&basis.adjoint()?.matmul(&tall)?)?;
            Ok((basis.matmul(&u)?, s, vh.adjoint()?))
        };
        let (u, s, v) = named("svd_lowrank", made())?;
        Ok(if wide { (v, s, u) } else { (u, s, v) })
    })
}

/// [`svd_lowrank`] of the rows of matrices less their mean: principal components as columns of V. `q` of `None` is 6, or the smaller
/// of m and n.
///
/// # Errors
/// As [`svd_lowrank`].
#[track_caller]
pub fn pca_lowrank(a: &Tensor, q: Option<i64>, center: bool, iterations: i64) -> Result<(Tensor, Tensor, Tensor)> {
    CallSite::here().run(|| {
        matrices("pca_lowrank", a)?;
        let q = q.unwrap_or_else(|| size(a, 1).min(size(a, 2)).min(6) as i64);
        let centred = if center { a.sub(&a.mean_keepdim(-2)?)? } else { a.clone() };
        named("pca_lowrank", svd_lowrank(&centred, q, iterations, None))
    })
}
