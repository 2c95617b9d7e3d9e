//! Products of tensors with a certain number of dims, under PyTorch's names, and sums with them.

use super::shape::in_method;
use super::{algebra, invoke1, nn, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Products";
    /// The product of two matrices.
    "mm(Tensor a, Tensor b) -> Tensor" = mm;
    /// The products of two batches of matrices, `[B, m, k]` and `[B, k, n]`.
    "bmm(Tensor a, Tensor b) -> Tensor" = bmm;
    /// The product of a matrix and a vector.
    "mv(Tensor a, Tensor v) -> Tensor" = mv;
    /// The sum of the products of two vectors' elements, those of `a` conjugated.
    "vdot(Tensor a, Tensor b) -> Tensor" = vdot;
    /// `beta` x + `alpha` times the sum of the products of two batches of matrices.
    "addbmm(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor" = addbmm;
    /// `beta` x + `alpha` times the outer product of two vectors.
    "addr(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor" = addr;
    /// The p-norm of the difference of two tensors.
    "dist(Tensor x, Tensor other, Float p=2.0) -> Tensor" = dist;
}

by_name! {
    BY_NAME, "Products", ByName;
    /// The sums of products over the last dims of both: `[…, k]` and `[…, k]` give the dims before of a, then those of b. With a tensor
    /// without dims the product. In Rust `tensordot` over `[-1]` and `[-1]`.
    "inner(Tensor a, Tensor b) -> Tensor" = |b| Ok(vec![inner(b.given(0)?, b.given(1)?, b.site)?]);
}

/// Refuses other numbers of dims.
fn ranks(name: &str, (a, b): (&Tensor, &Tensor), want: [usize; 2], site: CallSite) -> Result<()> {
    if [a.ndim(), b.ndim()] == want {
        return Ok(());
    }
    let e = Error::shape(format!("it multiplies tensors of {} and {} dims", want[0], want[1]));
    Err(e.help("`matmul` takes any").in_call(|| format!("{name}({}, {})", a.short(), b.short())).at(site))
}

pub(super) fn mm(a: &Tensor, b: &Tensor, site: CallSite) -> Result<Tensor> {
    ranks("mm", (a, b), [2, 2], site)?;
    nn::matmul(a, b, false, false, site)
}

pub(super) fn bmm(a: &Tensor, b: &Tensor, site: CallSite) -> Result<Tensor> {
    ranks("bmm", (a, b), [3, 3], site)?;
    if a.shape()[0] != b.shape()[0] {
        let e = Error::shape(format!("the batches have {} and {} matrices", a.shape()[0], b.shape()[0]));
        let text = || format!("bmm({}, {})", a.short(), b.short());
        return Err(e.help("`matmul` repeats a batch of one").in_call(text).at(site));
    }
    nn::matmul(a, b, false, false, site)
}

pub(super) fn mv(a: &Tensor, v: &Tensor, site: CallSite) -> Result<Tensor> {
    ranks("mv", (a, v), [2, 1], site)?;
    nn::matmul(a, v, false, false, site)
}

fn inner(a: &Tensor, b: &Tensor, site: CallSite) -> Result<Tensor> {
    match a.ndim() == 0 || b.ndim() == 0 {
        true => invoke1(op!("mul"), &[Some(a), Some(b)], smallvec![], smallvec![], site),
        false => algebra::tensordot(a, b, &[-1], &[-1], site),
    }
}

pub(super) fn vdot(a: &Tensor, b: &Tensor, site: CallSite) -> Result<Tensor> {
    if !a.dtype().is_complex() {
        return algebra::dot(a, b, site);
    }
    let inner = inner_calls();
    let a = invoke1(op!("conj"), &[Some(a)], smallvec![], smallvec![], site)?;
    drop(inner);
    algebra::dot(&a, b, site)
}

pub(super) fn addbmm(
    x: &Tensor,
    a: &Tensor,
    b: &Tensor,
    beta: Scalar,
    alpha: Scalar,
    site: CallSite,
) -> Result<Tensor> {
    ranks("addbmm", (a, b), [3, 3], site)?;
    let (sa, sb) = (a.shape(), b.shape());
    if sa[0] != sb[0] || sa[2] != sb[1] {
        let e = Error::shape(format!("batches of matrices {sa:?} and {sb:?} have no products"));
        return Err(in_method("addbmm", x, site)(e));
    }
    algebra::combined(x, [a, b], [beta, alpha], "addbmm", site, || {
        // One product of the matrices side by side: [m, B k] and [B k, n].
        site.run(|| {
            let rows = a.permute([1, 0, 2])?.reshape([sa[1], sa[0] * sa[2]])?;
            rows.matmul(&b.reshape([sb[0] * sb[1], sb[2]])?)
        })
    })
}

pub(super) fn addr(x: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar, site: CallSite) -> Result<Tensor> {
    ranks("addr", (a, b), [1, 1], site)?;
    algebra::combined(x, [a, b], [beta, alpha], "addr", site, || algebra::outer(a, b, site))
}

pub(super) fn dist(x: &Tensor, other: &Tensor, p: f64, site: CallSite) -> Result<Tensor> {
    site.run(|| {
        let inner = inner_calls();
        let d = x.sub(other)?;
        drop(inner);
        d.norm(p, ())
    })
}
