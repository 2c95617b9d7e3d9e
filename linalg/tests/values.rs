//! Decompositions put together again, gradients against differences, and what is refused.

use oflow::functional::call;
use oflow::prelude::*;
use oflow::testing::{GradCheck, gradcheck_with};
use oflow::{BackwardOptions, ErrorKind};
use oflow_linalg as linalg;

/// Numbers in -1..1 that look random.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    (0..n as u64).map(|i| (oflow::testing::mix(&[seed, i]) % 20011) as f64 / 10005.5 - 1.0).collect()
}

fn random(shape: &[usize], seed: u64) -> Result<Tensor> {
    from_vec(numbers(shape.iter().product(), seed), shape, Device::Cpu)
}

/// The transposed matrices, of complex numbers conjugated.
fn t(x: &Tensor) -> Result<Tensor> {
    x.adjoint()
}

fn eye(like: &Tensor) -> Result<Tensor> {
    let n = like.shape()[like.ndim() - 1];
    eye_of(n, like.dtype())
}

fn eye_of(n: usize, dtype: DType) -> Result<Tensor> {
    let ones = (0..n * n).map(|i| if i % (n + 1) == 0 { 1.0 } else { 0.0 }).collect::<Vec<f64>>();
    from_vec(ones, [n, n], Device::Cpu)?.cast(dtype)
}

#[track_caller]
fn near(a: &Tensor, b: &Tensor, what: &str) -> Result<()> {
    let worst = a.sub(b)?.abs()?.to_f64_vec()?.into_iter().fold(0.0, |m: f64, x| if x.is_nan() { x } else { m.max(x) });
    let most = b.abs()?.to_f64_vec()?.into_iter().fold(1.0, f64::max);
    let limit = most * if matches!(a.dtype(), DType::F64 | DType::C128) { 1e-11 } else { 2e-4 };
    assert!(worst <= limit, "{what}: {worst} > {limit}");
    Ok(())
}

/// Shapes of one matrix, of batches, larger than the blocks of the algorithms, wide and tall.
const SHAPES: &[&[usize]] =
    &[&[1, 1], &[3, 3], &[2, 3, 4, 4], &[65, 65], &[140, 140], &[7, 3], &[3, 7], &[2, 90, 20], &[20, 90]];

fn of_each(f: impl Fn(&Tensor, &str) -> Result<()>) -> Result<()> {
    for (seed, shape) in SHAPES.iter().enumerate() {
        for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
            let mut x = random(shape, seed as u64)?;
            if dtype.is_complex() {
                x = x.complex(&random(shape, seed as u64 + 100)?)?;
            }
            let x = x.cast(dtype)?;
            f(&x, &format!("{dtype}{shape:?}"))?;
        }
    }
    Ok(())
}

#[test]
fn svd_and_qr_give_the_matrix_again() -> Result<()> {
    of_each(|x, what| {
        let (rows, columns) = (x.shape()[x.ndim() - 2], x.shape()[x.ndim() - 1]);
        let k = rows.min(columns);
        let (u, s, vh) = linalg::svd(x)?;
        near(&u.mul(&s.unsqueeze(-2)?)?.matmul(&vh)?, x, what)?;
        near(&t(&u)?.matmul(&u)?, &eye_of(k, x.dtype())?.expand(t(&u)?.matmul(&u)?.shape())?, what)?;
        let values = s.to_f64_vec()?;
        assert!(values.chunks(k).all(|v| v.windows(2).all(|w| w[0] >= w[1]) && v[k - 1] >= 0.0), "{what}");
        let (u, s2, vh) = linalg::svd_full(x)?;
        near(&s2, &s, what)?;
        near(&u.matmul(&t(&u)?)?, &eye(&u)?.expand(u.shape())?, what)?;
        near(&vh.matmul(&t(&vh)?)?, &eye(&vh)?.expand(vh.shape())?, what)?;
        for (q, r) in [linalg::qr(x)?, linalg::qr_complete(x)?] {
            near(&q.matmul(&r)?, x, what)?;
            let qtq = t(&q)?.matmul(&q)?;
            near(&qtq, &eye(&qtq)?.expand(qtq.shape())?, what)?;
            near(&r.triu(0)?, &r, what)?;
        }
        Ok(())
    })
}

#[test]
fn square_ones_are_solved_inverted_and_decomposed() -> Result<()> {
    of_each(|x, what| {
        let n = x.shape()[x.ndim() - 1];
        if x.shape()[x.ndim() - 2] != n {
            return Ok(());
        }
        // Far from singular.
        let a = x.add(&eye(x)?.mul((n as f64).sqrt() * 2.0)?)?;
        let inverse = linalg::inv(&a)?;
        near(&a.matmul(&inverse)?, &eye(x)?.expand(x.shape())?, what)?;
        let b = a.narrow(-1, 0, 1)?.mul(3.0)?;
        near(&a.matmul(&linalg::solve(&a, &b)?)?, &b, what)?;
        let b = t(&b)?;
        near(&linalg::solve_right(&a, &b)?.matmul(&a)?, &b, what)?;
        let gram = t(&a)?.matmul(&a)?;
        let l = linalg::cholesky(&gram)?;
        near(&l.matmul(&t(&l)?)?, &gram, what)?;
        near(&linalg::cholesky_upper(&gram)?, &t(&l)?, what)?;
        near(&l.tril(0)?, &l, what)?;
        let (values, q) = linalg::eigh(&gram)?;
        near(&q.mul(&values.unsqueeze(-2)?)?.matmul(&t(&q)?)?, &gram, what)?;
        let (sign, log) = linalg::slogdet(&a)?;
        if n < 10 {
            near(&sign.mul(&log.exp()?)?, &linalg::det(&a)?, what)?;
        }
        let of_l = linalg::slogdet(&l)?.1.mul(2.0)?;
        near(&linalg::slogdet(&gram)?.1, &of_l, what)
    })
}

/// Seen from another side: a transposed, a broadcast and a sliced input give what a copy of them gives.
#[test]
fn strided_inputs_are_read_as_they_are() -> Result<()> {
    let x = random(&[4, 4, 3], 5)?.add(&eye_of(4, DType::F64)?.narrow(1, 0, 3)?.mul(3.0)?)?;
    let square = x.slice_square()?;
    for v in [t(&square)?, square.narrow(0, 0, 1)?.expand([5, 3, 3])?, x.transpose(0, 2)?.narrow(1, 1, 2)?] {
        let c = v.copy()?;
        let (s, sc) = (linalg::svd(&v)?, linalg::svd(&c)?);
        assert_eq!(s.0.to_f64_vec()?, sc.0.to_f64_vec()?);
        assert_eq!(linalg::qr(&v)?.1.to_f64_vec()?, linalg::qr(&c)?.1.to_f64_vec()?);
        if v.shape()[1] == v.shape()[2] {
            assert_eq!(linalg::inv(&v)?.to_f64_vec()?, linalg::inv(&c)?.to_f64_vec()?);
            let b = t(&c)?;
            assert_eq!(linalg::solve(&v, &b)?.to_f64_vec()?, linalg::solve(&c, &b.copy()?)?.to_f64_vec()?);
        }
    }
    Ok(())
}

/// The forms of LAPACK put together again.
#[test]
fn factors_give_the_matrix_again() -> Result<()> {
    of_each(|x, what| {
        let (both, pivots, _) = linalg::lu_factor_ex(x)?;
        let (p, l, u) = linalg::lu_unpack(&both, &pivots)?;
        near(&p.matmul(&l)?.matmul(&u)?, x, what)?;
        let (rows, columns) = (x.shape()[x.ndim() - 2], x.shape()[x.ndim() - 1]);
        let (a, tau) = linalg::geqrf(x)?;
        near(&linalg::ormqr(&a, &tau, &a.triu(0)?, true, false)?, x, what)?;
        near(&linalg::ormqr(&a, &tau, x, true, true)?, &a.triu(0)?, what)?;
        if rows >= columns {
            let q = linalg::householder_product(&a, &tau)?;
            near(&q.matmul(&a.narrow(-2, 0, columns as i64)?.triu(0)?)?, x, what)?;
            let (u, h) = linalg::polar(x)?;
            near(&u.matmul(&h)?, x, what)?;
        }
        if rows != columns {
            return Ok(());
        }
        let (values, vectors) = linalg::eig(x)?;
        near(&x.cast(vectors.dtype())?.matmul(&vectors)?.abs()?, &vectors.mul(&values.unsqueeze(-2)?)?.abs()?, what)?;
        // Far from singular, and indefinite.
        let regular = x.add(&eye(x)?.mul((rows as f64).sqrt() * 2.0)?)?;
        let b = x.narrow(-1, 0, 1)?;
        for adjoint in [false, true] {
            let of = if adjoint { t(&regular)? } else { regular.clone() };
            let (both, pivots, _) = linalg::lu_factor_ex(&regular)?;
            near(&of.matmul(&linalg::lu_solve(&both, &pivots, &b, true, adjoint)?)?, &b, what)?;
            let right = linalg::lu_solve(&both, &pivots, &t(&b)?, false, adjoint)?;
            near(&right.matmul(&of)?, &t(&b)?, what)?;
        }
        let hermitian = x.add(&t(x)?)?;
        let (ld, pivots, _) = linalg::ldl_factor_ex(&hermitian, true)?;
        let solution = linalg::ldl_solve(&ld, &pivots, &hermitian.matmul(&b)?, true)?;
        near(&hermitian.matmul(&solution)?, &hermitian.matmul(&b)?, what)?;
        let symmetric = x.add(&x.transpose(-2, -1)?)?;
        let (ld, pivots, _) = linalg::ldl_factor_ex(&symmetric, false)?;
        let solution = linalg::ldl_solve(&ld, &pivots, &symmetric.matmul(&b)?, false)?;
        near(&symmetric.matmul(&solution)?, &symmetric.matmul(&b)?, what)
    })
}

trait Square {
    fn slice_square(&self) -> Result<Tensor>;
}
impl Square for Tensor {
    fn slice_square(&self) -> Result<Tensor> {
        self.narrow(1, 0, 3)
    }
}

#[test]
fn sizes_of_zero() -> Result<()> {
    let none = random(&[2, 0, 0], 0)?;
    assert_eq!(linalg::det(&none)?.to_f64_vec()?, [1.0, 1.0]);
    let (sign, log) = linalg::slogdet(&none)?;
    assert_eq!((sign.to_f64_vec()?, log.to_f64_vec()?), (vec![1.0, 1.0], vec![0.0, 0.0]));
    assert_eq!(linalg::inv(&none)?.shape(), [2, 0, 0]);
    assert_eq!(linalg::cholesky(&none)?.shape(), [2, 0, 0]);
    assert_eq!(linalg::eigh(&none)?.0.shape(), [2, 0]);
    assert_eq!(linalg::solve(&none, &random(&[2, 0, 3], 0)?)?.shape(), [2, 0, 3]);
    for (shape, u, vh) in [([3, 0], [3, 3], [0, 0]), ([0, 3], [0, 0], [3, 3])] {
        let x = random(&shape, 0)?;
        let full = linalg::svd_full(&x)?;
        assert_eq!((full.0.shape(), full.1.shape(), full.2.shape()), (&u[..], &[0][..], &vh[..]));
        for q in [&full.0, &full.2] {
            near(&q.matmul(&t(q)?)?, &eye(q)?, "an identity")?;
        }
        let (q, r) = linalg::qr_complete(&x)?;
        assert_eq!((q.shape(), r.shape()), (&u[..], &shape[..]));
        near(&q.matmul(&t(&q)?)?, &eye(&q)?, "an identity")?;
        let (u, s, vh) = linalg::svd(&x)?;
        assert_eq!([u.shape()[1], s.shape()[0], vh.shape()[0]], [0, 0, 0]);
    }
    let batch = random(&[0, 3, 3], 0)?;
    assert_eq!(linalg::det(&batch)?.shape(), [0]);
    assert_eq!(linalg::svd(&batch)?.0.shape(), [0, 3, 3]);
    assert_eq!(linalg::solve(&batch, &random(&[3, 2], 0)?)?.shape(), [0, 3, 2]);
    // And their gradients.
    let x = random(&[2, 0, 0], 0)?.requires_grad_(true)?;
    linalg::det(&x)?.sum(())?.backward()?;
    assert_eq!(x.grad().map(|g| g.shape().to_vec()), Some(vec![2, 0, 0]));
    Ok(())
}

/// Losses that do not depend on the signs of the vectors, in matrices that are not symmetric.
#[test]
fn gradients_of_general_matrices() -> Result<()> {
    let how = GradCheck { second: true, relative: 1e-5, absolute: 1e-5, ..GradCheck::default() };
    let of = |shape: &[usize], seed| random(shape, seed)?.requires_grad_(true);
    let regular = |shape: &[usize], seed| {
        let n = shape[shape.len() - 1];
        random(shape, seed)?.add(&eye_of(n, DType::F64)?.mul(2.0)?)?.requires_grad_(true)
    };
    gradcheck_with(how, |v| Ok(vec![linalg::det(&v[0])?]), &[of(&[2, 3, 3], 1)?])?;
    gradcheck_with(how, |v| Ok(vec![linalg::slogdet(&v[0])?.1]), &[regular(&[2, 3, 3], 2)?])?;
    gradcheck_with(how, |v| Ok(vec![linalg::inv(&v[0])?]), &[regular(&[2, 3, 3], 3)?])?;
    gradcheck_with(how, |v| Ok(vec![linalg::solve(&v[0], &v[1])?]), &[regular(&[2, 3, 3], 4)?, of(&[2, 3], 5)?])?;
    gradcheck_with(how, |v| Ok(vec![linalg::solve(&v[0], &v[1])?]), &[regular(&[2, 3, 3], 4)?, of(&[3], 5)?])?;
    gradcheck_with(how, |v| Ok(vec![linalg::solve_right(&v[0], &v[1])?]), &[regular(&[3, 3], 6)?, of(&[2, 3], 7)?])?;
    for flags in 0..16 {
        let bit = |k: usize| flags >> k & 1 == 1;
        let which = linalg::Triangular { upper: bit(0), left: bit(1), unitriangular: bit(2), transpose: bit(3) };
        let b = if which.left { [3, 2] } else { [2, 3] };
        let f = |v: &[Tensor]| Ok(vec![linalg::solve_triangular(&v[0], &v[1], which)?]);
        let count = gradcheck_with(how, f, &[regular(&[3, 3], 8)?, of(&b, 9)?])?;
        assert_eq!(count, 2 * (9 + 6));
    }
    gradcheck_with(
        how,
        |v| {
            let (q, r) = linalg::qr(&v[0])?;
            Ok(vec![q.mul(&r.sum([1])?.unsqueeze(0)?)?, r.mul(&r)?])
        },
        &[of(&[4, 3], 10)?],
    )?;
    gradcheck_with(how, |v| Ok(vec![linalg::qr(&v[0])?.1.square()?]), &[of(&[2, 4], 11)?])?;
    for shape in [&[3, 3][..], &[4, 2], &[2, 4], &[2, 3, 2]] {
        gradcheck_with(
            how,
            |v| {
                let (u, s, vh) = linalg::svd(&v[0])?;
                let near = u.mul(&s.exp()?.unsqueeze(-2)?)?.matmul(&vh)?;
                Ok(vec![near, s.clone(), u.square()?, vh.square()?])
            },
            &[of(shape, 12)?],
        )?;
    }
    // Symmetric by construction.
    let sym = |x: &Tensor| x.add(&t(x)?);
    gradcheck_with(
        how,
        |v| {
            let (l, q) = linalg::eigh(&sym(&v[0])?)?;
            Ok(vec![q.mul(&l.exp()?.unsqueeze(-2)?)?.matmul(&t(&q)?)?, q.square()?, l])
        },
        &[of(&[2, 3, 3], 13)?],
    )?;
    let gram = |x: &Tensor| x.matmul(&t(x)?)?.add(&eye(x)?);
    gradcheck_with(how, |v| Ok(vec![linalg::cholesky(&gram(&v[0])?)?]), &[of(&[2, 3, 3], 14)?])?;
    gradcheck_with(how, |v| Ok(vec![linalg::cholesky_upper(&gram(&v[0])?)?]), &[of(&[3, 3], 15)?])?;
    Ok(())
}

/// Rank n - 1, rank n - 2 and near singular, where the inverse is not there.
#[test]
fn the_determinant_of_singular_matrices_has_a_gradient() -> Result<()> {
    let singular = from_vec(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], [3, 3], Device::Cpu)?;
    let x = singular.detach().requires_grad_(true)?;
    linalg::det(&x)?.backward()?;
    let want = from_vec(vec![-3.0, 6.0, -3.0, 6.0, -12.0, 6.0, -3.0, 6.0, -3.0], [3, 3], Device::Cpu)?;
    near(&x.grad().ok_or_else(|| Error::autograd("no gradient"))?, &want, "rank 2")?;
    let x = singular.cast(DType::F32)?.requires_grad_(true)?;
    linalg::det(&x)?.backward()?;
    near(&x.grad().ok_or_else(|| Error::autograd("no gradient"))?, &want.cast(DType::F32)?, "rank 2 in f32")?;
    let x = ones([3, 3], Device::Cpu.dtype(DType::F64))?.requires_grad_(true)?;
    linalg::det(&x)?.backward()?;
    near(&x.grad().ok_or_else(|| Error::autograd("no gradient"))?, &x.detach().mul(0.0)?, "rank 1")?;
    Ok(())
}

#[track_caller]
fn refused<T>(result: Result<T>, kind: ErrorKind, parts: &[&str]) {
    let e = result.err().expect("an error");
    assert_eq!(e.kind(), kind, "{e}");
    for part in parts.iter().chain(&["linalg/tests/values.rs"]) {
        assert!(e.to_string().contains(part), "'{part}' is missing in\n{e}");
    }
}

#[test]
fn errors_name_op_matrix_and_line() -> Result<()> {
    let zeros_at_2 = random(&[2, 2, 3, 3], 1)?.mul(&from_vec(vec![1.0, 1.0, 0.0, 1.0], [2, 2, 1, 1], Device::Cpu)?)?;
    let wide = random(&[2, 3], 1)?;
    use ErrorKind::{DType as Kind, Shape, Value};
    refused(linalg::inv(&zeros_at_2), Value, &["linalg.inv", "matrix [1, 0] of the batch is singular: pivot 0"]);
    refused(linalg::solve(&zeros_at_2, &wide.t()?), Value, &["linalg.solve", "matrix [1, 0] of the batch is singular"]);
    let singular = ones([2, 2], Device::Cpu)?;
    refused(linalg::inv(&singular), Value, &["the matrix is singular: pivot 1 of its LU decomposition is zero"]);
    refused(
        linalg::cholesky(&singular),
        Value,
        &["linalg.cholesky", "is not positive definite: its leading minor of order 2"],
    );
    refused(linalg::cholesky(&zeros_at_2.matmul(&t(&zeros_at_2)?)?), Value, &["matrix [1, 0] of the batch"]);
    refused(linalg::det(&wide), Shape, &["linalg.det", "needs square matrices", "2 rows and 3 columns"]);
    refused(linalg::inv(&wide), Shape, &["linalg.inv", "needs square matrices"]);
    refused(linalg::cholesky(&wide), Shape, &["linalg.cholesky", "needs square matrices"]);
    refused(linalg::eigh(&wide), Shape, &["linalg.eigh", "needs square matrices"]);
    refused(linalg::svd(&singular.cast(DType::BF16)?), Kind, &["linalg.svd", "bf16"]);
    refused(linalg::det(&singular.cast(DType::F16)?), Kind, &["linalg.det", "f16"]);
    refused(linalg::det(&singular.cast(DType::I64)?), Kind, &["linalg.det", "i64"]);
    refused(linalg::solve(&singular, &singular.cast(DType::F64)?), Kind, &["linalg.solve", "A is f32, B is f64"]);
    refused(
        linalg::solve(&singular, &ones([3], Device::Cpu)?),
        Shape,
        &["linalg.solve", "b has vectors of 3, A has 2 rows"],
    );
    refused(
        linalg::solve_right(&singular, &ones([2], Device::Cpu)?),
        Shape,
        &["linalg.solve", "`left` is for matrices"],
    );
    refused(
        linalg::solve(&singular, &ones([3, 1], Device::Cpu)?),
        Shape,
        &["linalg.solve", "b has 3 rows, A is 2 by 2"],
    );
    // Gradients that are not there.
    let x = singular.detach().requires_grad_(true)?;
    refused(linalg::slogdet(&x)?.1.backward(), Value, &["is singular"]);
    let x = random(&[3, 2], 3)?.requires_grad_(true)?;
    refused(
        linalg::qr_complete(&x)?.0.sum(())?.backward(),
        ErrorKind::Autograd,
        &["complete QR of 3 rows and 2 columns"],
    );
    Ok(())
}

/// What the functions of several ops refuse by themselves or in one of these ops: the line is that of the call.
#[test]
fn composed_functions_name_the_line_of_their_call() -> Result<()> {
    let (wide, cube, row) = (random(&[2, 3], 1)?, random(&[2, 2, 2], 2)?, random(&[3], 3)?);
    let bad = from_vec(vec![f64::NAN; 4], [2, 2], Device::Cpu)?;
    let (none, fro) = (linalg::Tolerance::default(), linalg::MatrixNorm::Frobenius);
    let hermitian = linalg::Tolerance { hermitian: true, ..none };
    use ErrorKind::{Argument, Shape, Value};
    refused(linalg::svdvals(&bad), Value, &["svdvals"]);
    refused(linalg::eigvalsh(&bad), Value, &["eigvalsh"]);
    refused(linalg::pinv(&row, none), Shape, &["pinv"]);
    refused(linalg::pinv(&wide, hermitian), Shape, &["pinv"]);
    refused(linalg::matrix_rank(&bad, none), Value, &["matrix_rank"]);
    refused(linalg::lstsq(&wide, &row, None), Shape, &["lstsq"]);
    refused(linalg::matrix_power(&wide, 2), Shape, &["matrix_power"]);
    refused(linalg::matrix_power(&bad.mul(0.0)?.nansum([0, 1])?.expand([2, 2])?, -1), Value, &["matrix_power"]);
    refused(linalg::matrix_exp(&wide), Shape, &["matrix_exp", "square"]);
    refused(linalg::matrix_exp(&random(&[2, 2], 1)?.cast(DType::I64)?), ErrorKind::DType, &["matrix_exp", "i64"]);
    refused(linalg::logdet(&wide), Shape, &["logdet", "square"]);
    refused(linalg::matrix_norm(&wide, fro, [0, 5], false), Argument, &["dim"]);
    refused(linalg::matrix_norm(&wide, linalg::MatrixNorm::P(3.0), [0, 1], false), Argument, &["no norm of 3"]);
    refused(linalg::cond(&wide, fro), Shape, &["cond"]);
    refused(linalg::multi_dot(&[&wide, &wide]), Shape, &["multi_dot"]);
    refused(linalg::tensorinv(&cube, 1), Shape, &["tensorinv"]);
    refused(linalg::tensorsolve(&cube, &wide), Shape, &["tensorsolve"]);
    Ok(())
}

/// Infinities and NaN anywhere: an error or NaN, no panic and no endless loop.
#[test]
fn numbers_that_are_not_finite() -> Result<()> {
    for n in [1, 2, 5, 40, 150] {
        for (k, bad) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].into_iter().enumerate() {
            for at in [0, n * n / 2, n * n - 1] {
                for dtype in [DType::F32, DType::F64] {
                    let mut v = numbers(n * n, k as u64);
                    v[at] = bad;
                    let x = from_vec(v, [n, n], Device::Cpu)?.cast(dtype)?;
                    refused(linalg::svd(&x), ErrorKind::Value, &["linalg.svd", "has an infinity or a NaN"]);
                    let (q, r) = linalg::qr(&x)?;
                    assert!(q.to_f64_vec()?.iter().chain(&r.to_f64_vec()?).any(|x| x.is_nan()));
                    let d = linalg::det(&x)?.item();
                    assert!(d.is_ok_and(|d| !d.is_finite() || n == 1 || bad.is_infinite()), "det of {n}");
                    let _ = (linalg::slogdet(&x)?, linalg::inv(&x).is_ok(), linalg::solve(&x, &x).is_ok());
                    let _ = linalg::solve_triangular(&x, &x, linalg::Triangular::default())?;
                    if at == 0 || at == n * n - 1 {
                        refused(linalg::eigh(&x), ErrorKind::Value, &["linalg.eigh", "has an infinity or a NaN"]);
                        if bad.is_nan() {
                            refused(linalg::cholesky(&x.mul(&x)?), ErrorKind::Value, &["is not positive definite"]);
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// A view of one number in many places: the matrix has no room in memory, although its determinant has.
#[test]
fn matrices_larger_than_memory_are_errors() -> Result<()> {
    // More than the addresses of a process, so that no system grants it and hopes.
    for (n, dtype) in [(1 << 22, DType::F64), (3 << 21, DType::F32), (1 << 30, DType::F32)] {
        let x = ones([1, 1], Device::Cpu.dtype(dtype))?.expand([n, n])?;
        refused(linalg::det(&x), ErrorKind::Memory, &["linalg.det", "bytes"]);
        refused(linalg::slogdet(&x), ErrorKind::Memory, &["linalg.slogdet", "bytes"]);
        if n < 1 << 30 {
            let b = zeros([n, 1], Device::Cpu.dtype(dtype))?;
            refused(linalg::solve(&x, &b), ErrorKind::Memory, &["linalg.solve", "bytes"]);
            let how = linalg::Triangular::default();
            refused(linalg::solve_triangular(&x, &b, how), ErrorKind::Memory, &["linalg.solve_triangular", "bytes"]);
        }
    }
    Ok(())
}

/// Of a symmetric matrix both triangles are one, so the gradient is symmetric whichever is read, of first and of second order: the
/// derivative by a pair of elements is half theirs each, as differences of symmetric matrices have it. That of `pinv` is right for such
/// differences too, but not symmetric, as in PyTorch.
#[test]
fn gradients_of_symmetric_matrices_are_symmetric() -> Result<()> {
    type Function = fn(&Tensor) -> Result<Tensor>;
    let functions: [(&str, Function); 8] = [
        ("eigh, vectors", |a| Ok(linalg::eigh(a)?.1)),
        ("eigh of the upper triangle, vectors", |a| {
            linalg::register()?;
            Ok(call("linalg.eigh", &[a.into()], &[("UPLO", "U".into())])?.swap_remove(1))
        }),
        ("eigh, both", |a| {
            let (l, q) = linalg::eigh(a)?;
            q.mul(&l.unsqueeze(-2)?)
        }),
        ("eigvalsh", |a| linalg::eigvalsh(a)?.exp()),
        ("eigvalsh of the upper triangle", |a| {
            linalg::register()?;
            call("linalg.eigvalsh", &[a.into()], &[("UPLO", "U".into())])?.swap_remove(0).exp()
        }),
        ("pinv", |a| linalg::pinv(a, linalg::Tolerance { hermitian: true, ..Default::default() })),
        ("cholesky", linalg::cholesky),
        ("cholesky_upper", linalg::cholesky_upper),
    ];
    let weights = |shape: &[usize]| {
        let n = shape.iter().product::<usize>();
        from_vec((0..n).map(|i| (i * i % 7) as f64 / 2.0 - 1.0).collect(), shape, Device::Cpu)
    };
    for (name, f) in functions {
        for shape in [vec![2, 2], vec![2, 3, 3]] {
            let n = shape[shape.len() - 1];
            let x = random(&shape, 21)?;
            let a = x.matmul(&t(&x)?)?.add(&eye_of(n, DType::F64)?.mul(2.0)?)?.requires_grad_(true)?;
            let loss = |a: &Tensor| {
                let y = f(a)?;
                y.mul(&weights(y.shape())?)?.sum(())
            };
            let by_a = |y: Tensor| {
                let o = BackwardOptions { create_graph: true, ..Default::default() };
                let found = oflow::functional::grad([y], [&a], &o)?.swap_remove(0);
                found.ok_or_else(|| oflow::Error::autograd(format!("{name} has no gradient")))
            };
            let first = by_a(loss(&a)?)?;
            let second = by_a(first.mul(&weights(&shape)?)?.sum(())?)?;
            // By differences of symmetric matrices.
            let symmetric = |v: &Tensor| v.add(&t(v)?)?.mul(0.5);
            for (order, g) in [("first", &first), ("second", &second)].into_iter().filter(|_| name != "pinv") {
                near(g, &t(g)?, &format!("the gradient of {order} order of {name} is symmetric"))?;
            }
            let h = 1e-5;
            for k in 0..a.numel() {
                let mut step = vec![0.0; a.numel()];
                step[k] = h;
                let step = symmetric(&from_vec(step, shape.clone(), Device::Cpu)?)?;
                let (up, down) = (loss(&a.detach().add(&step)?)?.item()?, loss(&a.detach().sub(&step)?)?.item()?);
                let (want, have) = ((up - down) / (2.0 * h), symmetric(&first)?.to_f64_vec()?[k]);
                assert!(
                    (want - have).abs() < 1e-6 * (1.0 + want.abs()),
                    "{name} {shape:?} element {k}: {have}, not {want}"
                );
            }
        }
    }
    Ok(())
}

/// Singular values of f32 matrices beside those of the same matrices in f64: within four last bits of the largest; LAPACK's are within
/// eleven.
#[test]
fn singular_values_of_f32_matrices_are_nearer_than_those_of_lapack() -> Result<()> {
    type Function = fn(&Tensor) -> Result<Tensor>;
    let functions: [(&str, Function); 2] = [("svdvals", linalg::svdvals), ("svd", |a| Ok(linalg::svd(a)?.1))];
    for shape in [[90, 41], [41, 41], [64, 64], [100, 60], [3, 70]] {
        for seed in 0..3 {
            let a = random(&shape, 30 + seed)?.cast(DType::F32)?;
            for (name, f) in functions {
                let (have, want) = (f(&a)?, f(&a.cast(DType::F64)?)?);
                let largest = want.amax(())?.item()?;
                let off = have.cast(DType::F64)?.sub(&want)?.abs()?.amax(())?.item()?;
                assert!(
                    off <= 4.0 * f64::from(f32::EPSILON) * largest,
                    "{name} of {shape:?}: off by {off}, the largest is {largest}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn an_inner_product_conjugates_its_first_vector() -> Result<()> {
    let z =
        |parts: &[(f64, f64)]| from_vec(parts.iter().map(|(a, b)| Complex::new(*a, *b)).collect(), [2], Device::Cpu);
    let (x, y) = (z(&[(1.0, 2.0), (3.0, -1.0)])?, z(&[(2.0, -1.0), (1.0, 1.0)])?);
    assert_eq!(linalg::vecdot(&x, &y, -1)?.to_vec::<Complex<f64>>()?, [Complex::new(2.0, -1.0)]);
    assert_eq!(linalg::vecdot(&x, &x, 0)?.to_vec::<Complex<f64>>()?, [Complex::new(15.0, 0.0)]);
    let real = from_vec(vec![3.0, 4.0], [2], Device::Cpu)?;
    assert_eq!(linalg::vecdot(&real, &real, -1)?.item()?, 25.0);
    assert_eq!(linalg::vecdot(&real, &x, -1)?.to_vec::<Complex<f64>>()?, [Complex::new(15.0, 2.0)]);
    Ok(())
}

/// Matrices of full rank, which are solved by QR, and those with singular values that count as zero, beside the sum over all pairs of
/// vectors; a batch has both.
#[test]
fn a_pseudo_inverse_is_that_of_its_singular_values() -> Result<()> {
    for shape in [[7, 4], [4, 7], [5, 5], [1, 3], [40, 33]] {
        for (complex, rank) in [(false, 9), (false, 2), (true, 9), (true, 1)] {
            let k = shape[0].min(shape[1]).min(rank);
            let part = |rows: usize, columns: usize, seed| -> Result<Tensor> {
                let x = random(&[3, rows, columns], seed)?;
                if complex { x.complex(&random(&[3, rows, columns], seed + 9)?) } else { Ok(x) }
            };
            let lower = part(shape[0], k, 1)?.matmul(&part(k, shape[1], 2)?)?;
            let full = part(shape[0], shape[1], 3)?;
            for a in [&lower, &full, &oflow::functional::cat([&lower, &full], 0)?] {
                let (u, s, vh) = linalg::svd(a)?;
                let largest = s.amax_keepdim(-1)?;
                let counts = s.div(&largest)?.gt(1e-10)?;
                let inverse = oflow::functional::where_(&counts, &s.reciprocal()?, &s.mul(0.0)?)?;
                let want = t(&vh)?.mul(&inverse.unsqueeze(-2)?)?.matmul(&t(&u)?)?;
                let have = linalg::pinv(a, linalg::Tolerance { rtol: Some(1e-10), ..Default::default() })?;
                let off = have.sub(&want)?.abs()?.amax(())?.item()?;
                let size = want.abs()?.amax(())?.item()?;
                assert!(off <= 1e-9 * size, "pinv of {a:?}, rank {rank}: off by {off} of {size}");
            }
        }
    }
    Ok(())
}
