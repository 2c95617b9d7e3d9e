//! Products of several steps: reshapes around the matrix product.

use super::shape::in_method;
use super::{invoke1, nn, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::{normalize_dim, scalar_of_kind};
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Products";
    /// `beta` x + `alpha` (a b), a and b matrices; x broadcasts to the product.
    "addmm(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor" = addmm;
    /// `beta` x + `alpha` (a b), a a matrix and b a vector.
    "addmv(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor" = addmv;
    /// `beta` x + `alpha` (a b), a and b batches of matrices `[B, m, k]` and `[B, k, n]`.
    "baddbmm(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor" = baddbmm;
    /// The sum of the products of two vectors' elements.
    "dot(Tensor a, Tensor b) -> Tensor" = dot;
    /// The products of all elements of one vector with all of another, a matrix.
    "outer(Tensor a, Tensor b) -> Tensor" = outer;
    /// The sum of products over the dims `dims_a` of a and `dims_b` of b. The result has the other dims of a, then those of b.
    "tensordot(Tensor a, Tensor b, IntList dims_a, IntList dims_b) -> Tensor" = tensordot;
    /// The Kronecker product: each element of a times the whole of b.
    "kron(Tensor a, Tensor b) -> Tensor" = kron;
    /// The cross product along a dim of 3 elements.
    "cross(Tensor a, Tensor b, Int dim=-1) -> Tensor" = cross;
}

by_name! {
    BY_NAME, "Products", ByName;
    /// The sum of products over the last `dims` dims of a and the first of b.
    "tensordot(Tensor a, Tensor b, Int dims=2) -> Tensor" = |b| {
        let (x, y, n) = (b.given(0)?, b.given(1)?, b.int(2)?);
        if n < 0 || n > x.ndim().min(y.ndim()) as i64 {
            let e = Error::argument(format!("cannot sum over {n} dims: both must have so many"));
            return Err(e.in_call(|| format!("tensordot({}, {})", x.short(), y.short())).at(b.site));
        }
        let last: Vec<i64> = (x.ndim() as i64 - n..x.ndim() as i64).collect();
        let first: Vec<i64> = (0..n).collect();
        Ok(vec![tensordot(x, y, &last, &first, b.site)?])
    };
}

/// `beta x + alpha (a b)` with ranks as the function says.
fn added(
    x: &Tensor,
    [a, b]: [&Tensor; 2],
    ranks: [usize; 2],
    factors: [Scalar; 2],
    method: &str,
    site: CallSite,
) -> Result<Tensor> {
    if [a.ndim(), b.ndim()] != ranks {
        let text = || format!("{method}({}, {}, {})", x.short(), a.short(), b.short());
        let e = Error::shape(format!("it multiplies tensors of {} and {} dims", ranks[0], ranks[1]));
        return Err(e.help("`matmul` takes any").in_call(text).at(site));
    }
    combined(x, [a, b], factors, method, site, || nn::matmul(a, b, false, false, site))
}

/// `beta x + alpha y`, where `y` is the product of a and b that `product` makes.
pub(super) fn combined(
    x: &Tensor,
    [a, b]: [&Tensor; 2],
    [beta, alpha]: [Scalar; 2],
    method: &str,
    site: CallSite,
    product: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    let text = || format!("{method}({}, {}, {})", x.short(), a.short(), b.short());
    for (name, s) in [("beta", beta), ("alpha", alpha)] {
        scalar_of_kind(name, s, [x, a, b].map(Tensor::dtype)).map_err(|e| e.in_call(text).at(site))?;
    }
    let scaled = |t: &Tensor, s: Scalar| match s.to_complex() {
        (1.0, 0.0) => Ok(t.clone()),
        _ => invoke1(op!("mul_scalar"), &[Some(t)], smallvec![], smallvec![s], site),
    };
    let inner = inner_calls();
    if [x, a, b].iter().all(|t| t.dtype() == DType::Bool) {
        // Of bools a sum is "or", a product "and".
        let product = product()?.cast_at(DType::Bool, site)?;
        let kept = |t: &Tensor, s: Scalar| -> Result<Tensor> {
            if s.to_bool() { Ok(t.clone()) } else { site.run(|| super::zeros_like(t)) }
        };
        let (x, product) = (kept(x, beta)?, kept(&product, alpha)?);
        drop(inner);
        return invoke1(op!("logical_or"), &[Some(&product), Some(&x)], smallvec![], smallvec![], site);
    }
    let product = scaled(&product()?, alpha)?;
    // A factor of 0 ignores x, also where it is not finite.
    let y = match beta.to_complex() == (0.0, 0.0) {
        true => product.clone(),
        false => {
            let x = scaled(x, beta)?;
            drop(inner);
            invoke1(op!("add"), &[Some(&product), Some(&x)], smallvec![], smallvec![], site)?
        }
    };
    if y.shape() == product.shape() {
        return Ok(y);
    }
    Err(Error::shape(format!("{:?} does not broadcast to the product {:?}", x.shape(), product.shape()))
        .in_call(text)
        .at(site))
}

pub(super) fn addmm(x: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar, site: CallSite) -> Result<Tensor> {
    added(x, [a, b], [2, 2], [beta, alpha], "addmm", site)
}

pub(super) fn addmv(x: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar, site: CallSite) -> Result<Tensor> {
    added(x, [a, b], [2, 1], [beta, alpha], "addmv", site)
}

pub(super) fn baddbmm(
    x: &Tensor,
    a: &Tensor,
    b: &Tensor,
    beta: Scalar,
    alpha: Scalar,
    site: CallSite,
) -> Result<Tensor> {
    added(x, [a, b], [3, 3], [beta, alpha], "baddbmm", site)
}

/// Refuses what is no vector.
fn vectors(a: &Tensor, b: &Tensor, method: &str, site: CallSite) -> Result<()> {
    if a.ndim() == 1 && b.ndim() == 1 {
        return Ok(());
    }
    let e = Error::shape("it takes two vectors").help("`flatten` makes a vector; `matmul` and `einsum` take more dims");
    Err(e.in_call(|| format!("{method}({}, {})", a.short(), b.short())).at(site))
}

pub(super) fn dot(a: &Tensor, b: &Tensor, site: CallSite) -> Result<Tensor> {
    vectors(a, b, "dot", site)?;
    nn::matmul(a, b, false, false, site)
}

pub(super) fn outer(a: &Tensor, b: &Tensor, site: CallSite) -> Result<Tensor> {
    vectors(a, b, "outer", site)?;
    let inner = inner_calls();
    let column = a.reshape_at(&[a.shape()[0], 1], site)?;
    drop(inner);
    invoke1(op!("mul"), &[Some(&column), Some(b)], smallvec![], smallvec![], site)
}

pub(super) fn tensordot(a: &Tensor, b: &Tensor, dims_a: &[i64], dims_b: &[i64], site: CallSite) -> Result<Tensor> {
    let refused = |e: Error| e.in_call(|| format!("tensordot({}, {})", a.short(), b.short())).at(site);
    let of =
        |x: &Tensor, list: &[i64]| list.iter().map(|d| normalize_dim(*d, x.ndim())).collect::<Result<Vec<usize>>>();
    let (da, db) = (of(a, dims_a).map_err(refused)?, of(b, dims_b).map_err(refused)?);
    let twice = |list: &[usize]| (1..list.len()).any(|i| list[..i].contains(&list[i]));
    let pairs = || da.iter().zip(&db);
    if da.len() != db.len() || twice(&da) || twice(&db) {
        return Err(refused(Error::argument(format!(
            "{dims_a:?} and {dims_b:?} do not pair up: expected as many dims on both sides, each once"
        ))));
    }
    for (x, dims) in [(a, &da), (b, &db)] {
        if x.ndim() == 0 && !dims.is_empty() {
            return Err(refused(Error::shape("a tensor without dims has none to sum over")));
        }
    }
    let differs = |i: usize, j: usize| a.shape()[i] != b.shape()[j];
    if let Some((i, j)) = pairs().find(|(i, j)| differs(**i, **j) && a.shape()[**i] != 1 && b.shape()[**j] != 1) {
        return Err(refused(Error::shape(format!(
            "dim {i} has {} elements, dim {j} {}",
            a.shape()[*i],
            b.shape()[*j]
        ))));
    }
    if pairs().any(|(i, j)| differs(*i, *j)) {
        // A dim of size 1 stands for all elements of the other, which are summed first.
        return site.run(|| {
            let inner = inner_calls();
            let (mut a, mut b) = (a.clone(), b.clone());
            for (i, j) in pairs().filter(|(i, j)| differs(**i, **j)) {
                match a.shape()[*i] {
                    1 => b = b.sum_keepdim(*j as i64)?,
                    _ => a = a.sum_keepdim(*i as i64)?,
                }
            }
            drop(inner);
            tensordot(&a, &b, dims_a, dims_b, site)
        });
    }
    let letter = |i: usize| i as u32;
    // The dims of a are numbered first; what is summed has one number in both.
    let labels_a: Vec<u32> = (0..a.ndim()).map(letter).collect();
    let labels_b: Vec<u32> = (0..b.ndim())
        .map(|j| match db.iter().position(|d| *d == j) {
            Some(at) => letter(da[at]),
            None => letter(a.ndim() + j),
        })
        .collect();
    let out: Vec<u32> = labels_a
        .iter()
        .filter(|l| !da.iter().any(|d| letter(*d) == **l))
        .chain(labels_b.iter().filter(|l| **l >= letter(a.ndim())))
        .copied()
        .collect();
    super::einsum::contract(&[(a.clone(), labels_a), (b.clone(), labels_b)], &out, site)
}

pub(super) fn kron(a: &Tensor, b: &Tensor, site: CallSite) -> Result<Tensor> {
    let rank = a.ndim().max(b.ndim());
    let full = |x: &Tensor| [vec![1; rank - x.ndim()], x.shape().to_vec()].concat();
    let (sa, sb) = (full(a), full(b));
    let apart = |s: &[usize], first: bool| -> Vec<usize> {
        s.iter().flat_map(|n| if first { [*n, 1] } else { [1, *n] }).collect()
    };
    let shape: Option<Vec<usize>> = sa.iter().zip(&sb).map(|(m, n)| m.checked_mul(*n)).collect();
    let shape =
        shape.ok_or_else(|| in_method("kron", a, site)(Error::shape("as many elements cannot be addressed")))?;
    let inner = inner_calls();
    let (a, b) = (a.reshape_at(&apart(&sa, true), site)?, b.reshape_at(&apart(&sb, false), site)?);
    let y = invoke1(op!("mul"), &[Some(&a), Some(&b)], smallvec![], smallvec![], site)?;
    drop(inner);
    Ok(y.reshape_at(&shape, site)?.into_result())
}

pub(super) fn cross(a: &Tensor, b: &Tensor, dim: i64, site: CallSite) -> Result<Tensor> {
    let refused = |e: Error| e.in_call(|| format!("cross({}, {})", a.short(), b.short())).at(site);
    let size = |x: &Tensor| normalize_dim(dim, x.ndim()).ok().and_then(|d| x.shape().get(d).copied());
    if a.ndim() != b.ndim() || size(a) != Some(3) || size(b) != Some(3) {
        return Err(refused(Error::shape(format!("dim {dim} of both must have 3 elements, and both as many dims"))));
    }
    let _scope = site.scope();
    let inner = inner_calls();
    let turned = |x: &Tensor, n: i64| super::arrange::roll(x, &[n], &[dim], site);
    let left = turned(a, -1)?.mul(&turned(b, -2)?)?;
    let right = turned(a, -2)?.mul(&turned(b, -1)?)?;
    drop(inner);
    left.sub(&right)
}
