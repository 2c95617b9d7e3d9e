//! Functions that programs call: PyTorch's `torch.linalg`.

use crate::rules::Triangular;
use oflow::interpreter::Call;
use oflow::op;
use oflow::ops::{Attrs, Op};
use oflow::prelude::*;
use smallvec::smallvec;
use std::sync::OnceLock;

/// The ops of this crate, registered once.
pub(crate) fn registered() -> Result<&'static [&'static Op]> {
    static DONE: OnceLock<Result<Vec<&'static Op>, String>> = OnceLock::new();
    let made = || {
        let defs = [
            crate::det::det(),
            crate::det::cofactor(),
            crate::det::slogdet(),
            crate::solve::inv(),
            crate::solve::solve(),
            crate::lu::lu_factor(),
            crate::lu::permutation(),
            crate::triangular::solve_triangular(),
            crate::triangular::cholesky_solution(),
            crate::cholesky::cholesky(),
            crate::cholesky::cholesky_with_info(),
            crate::qr::qr(),
            crate::svd::svd(),
            crate::pinv::pinv(),
            crate::eigh::eigh(),
            crate::eig::eig(),
            crate::reflections::reflections(),
            crate::ldl::decomposition(),
            crate::ldl::solution(),
        ];
        let defs = defs.into_iter().collect::<Result<Vec<_>>>();
        let ops = defs.and_then(|defs| defs.into_iter().map(oflow::ops::register).collect::<Result<Vec<_>>>());
        ops.map_err(|e| e.to_string())
    };
    match DONE.get_or_init(made) {
        Ok(ops) => Ok(ops),
        Err(why) => Err(Error::registry(format!("the ops of linalg are not registered: {why}"))),
    }
}

/// The op of that name, registered if need be.
macro_rules! linalg {
    ($name:literal) => {
        registered().and_then(|_| op!(concat!("linalg.", $name)))
    };
}

#[track_caller]
pub(crate) fn outputs<const N: usize>(op: &'static Op, inputs: &[&Tensor], attrs: Attrs) -> Result<[Tensor; N]> {
    let inputs: Vec<Option<&Tensor>> = inputs.iter().copied().map(Some).collect();
    let made = Call::new(op, &inputs).attrs(attrs).run()?.into_vec();
    made.try_into().map_err(|_| Error::registry(format!("{} has not made {N} tensors", op.name())))
}

#[track_caller]
pub(crate) fn output(op: &'static Op, inputs: &[&Tensor], attrs: Attrs) -> Result<Tensor> {
    let [y] = outputs(op, inputs, attrs)?;
    Ok(y)
}

/// The determinants of a batch of matrices `[.., n, n]`, as `[..]`. That of a singular matrix is 0, and has a gradient.
///
/// ```
/// use oflow::prelude::*;
/// let a = from_vec(vec![4.0, 1.0, 2.0, 3.0], [2, 2], Device::Cpu)?;
/// assert_eq!(oflow_linalg::det(&a)?.item()?, 10.0);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// The matrices are not square, or of a dtype that linear algebra has not.
#[track_caller]
pub fn det(a: &Tensor) -> Result<Tensor> {
    output(linalg!("det")?, &[a], smallvec![])
}

/// Signs and logarithms of the absolute values of the determinants of `[.., n, n]`, each `[..]`. A singular matrix has 0 and -inf.
///
/// # Errors
/// The matrices are not square, or of a dtype that linear algebra has not. The gradient of a singular matrix is an error.
#[track_caller]
pub fn slogdet(a: &Tensor) -> Result<(Tensor, Tensor)> {
    let [sign, log] = outputs(linalg!("slogdet")?, &[a], smallvec![])?;
    Ok((sign, log))
}

/// The inverses of a batch of matrices `[.., n, n]`. [`solve`] is faster and more precise where the inverse is only multiplied.
///
/// # Errors
/// The matrices are not square, or of a dtype that linear algebra has not; one is singular.
#[track_caller]
pub fn inv(a: &Tensor) -> Result<Tensor> {
    output(linalg!("inv")?, &[a], smallvec![])
}

/// The x of `a x = b` for matrices a `[.., n, n]`. b is matrices `[.., n, k]`, or vectors: one `[n]`, or one for each matrix of a. Batch
/// dims broadcast.
///
/// ```
/// use oflow::prelude::*;
/// let a = from_vec(vec![4.0, 1.0, 2.0, 3.0], [2, 2], Device::Cpu)?;
/// let b = from_vec(vec![6.0, 8.0], [2], Device::Cpu)?;
/// let x = oflow_linalg::solve(&a, &b)?;
/// assert!(a.matmul(&x)?.sub(&b)?.abs()?.amax(())?.item()? < 1e-12);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// Sizes or dtypes do not fit, or a matrix is singular.
#[track_caller]
pub fn solve(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    output(linalg!("solve")?, &[a, b], smallvec![true.into(), false.into()])
}

/// The x of `x a = b` for matrices a `[.., n, n]` and b `[.., k, n]`. Batch dims broadcast.
///
/// # Errors
/// Sizes or dtypes do not fit, or a matrix is singular.
#[track_caller]
pub fn solve_right(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    output(linalg!("solve")?, &[a, b], smallvec![false.into(), false.into()])
}

/// The x of `a x = b`, or `x a = b`, where a is triangular. As in PyTorch a zero on its diagonal gives inf and NaN and no error.
///
/// # Errors
/// Sizes or dtypes do not fit.
#[track_caller]
pub fn solve_triangular(a: &Tensor, b: &Tensor, how: Triangular) -> Result<Tensor> {
    let attrs = [how.upper, how.left, how.unitriangular, how.transpose].map(Into::into);
    output(linalg!("solve_triangular")?, &[a, b], attrs.into_iter().collect())
}

/// The lower triangular matrices L with `a = L Lᵀ`, of symmetric positive definite matrices `[.., n, n]`, of which the lower triangle is
/// read.
///
/// # Errors
/// The matrices are not square, or of a dtype that linear algebra has not; one is not positive definite.
#[track_caller]
pub fn cholesky(a: &Tensor) -> Result<Tensor> {
    output(linalg!("cholesky")?, &[a], smallvec![false.into()])
}

/// The upper triangular matrices U with `a = Uᵀ U`, of symmetric positive definite matrices, of which the upper triangle is read.
///
/// # Errors
/// As [`cholesky`].
#[track_caller]
pub fn cholesky_upper(a: &Tensor) -> Result<Tensor> {
    output(linalg!("cholesky")?, &[a], smallvec![true.into()])
}

/// The reduced QR decomposition of matrices `[.., m, n]`: Q `[.., m, k]` with orthonormal columns and R `[.., k, n]` upper triangular, k
/// the smaller of m and n.
///
/// # Errors
/// The tensor is no batch of matrices, or of a dtype that linear algebra has not.
#[track_caller]
pub fn qr(a: &Tensor) -> Result<(Tensor, Tensor)> {
    let [q, r] = outputs(linalg!("qr")?, &[a], smallvec!["reduced".into()])?;
    Ok((q, r))
}

/// The complete QR decomposition: Q is `[.., m, m]` and R `[.., m, n]`. It has a gradient where m <= n.
///
/// # Errors
/// As [`qr`].
#[track_caller]
pub fn qr_complete(a: &Tensor) -> Result<(Tensor, Tensor)> {
    let [q, r] = outputs(linalg!("qr")?, &[a], smallvec!["complete".into()])?;
    Ok((q, r))
}

/// The reduced singular value decomposition of matrices `[.., m, n]`: `(U, S, Vh)` of `[.., m, k]`, `[.., k]` and `[.., k, n]`, k the
/// smaller of m and n; S from the greatest on.
///
/// ```
/// use oflow::prelude::*;
/// let a = from_vec(vec![3.0, 0.0, 0.0, 0.0, 5.0, 0.0], [2, 3], Device::Cpu)?;
/// let (u, s, vh) = oflow_linalg::svd(&a)?;
/// assert_eq!((u.shape(), vh.shape()), (&[2, 2][..], &[2, 3][..]));
/// assert!(s.sub(&from_vec(vec![5.0, 3.0], [2], Device::Cpu)?)?.abs()?.amax(())?.item()? < 1e-12);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// The tensor is no batch of matrices, or of a dtype that linear algebra has not; a matrix has an infinity or a NaN.
#[track_caller]
pub fn svd(a: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    let [u, s, vh] = outputs(linalg!("svd")?, &[a], smallvec![false.into()])?;
    Ok((u, s, vh))
}

/// The full singular value decomposition: U is `[.., m, m]` and Vh `[.., n, n]`. The vectors after the first k have no gradient.
///
/// # Errors
/// As [`svd`].
#[track_caller]
pub fn svd_full(a: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    let [u, s, vh] = outputs(linalg!("svd")?, &[a], smallvec![true.into()])?;
    Ok((u, s, vh))
}

/// The eigenvalues `[.., n]` of symmetric matrices `[.., n, n]`, from the least on, and the eigenvectors as columns. The lower triangle
/// is read.
///
/// # Errors
/// The matrices are not square, or of a dtype that linear algebra has not; one has an infinity or a NaN.
#[track_caller]
pub fn eigh(a: &Tensor) -> Result<(Tensor, Tensor)> {
    let [values, vectors] = outputs(linalg!("eigh")?, &[a], smallvec!["L".into()])?;
    Ok((values, vectors))
}
