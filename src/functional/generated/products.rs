//! Products: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, IntList};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::SmallVec;
use std::borrow::Borrow;

/// Options of [`Tensor::matmul_with`](crate::Tensor::matmul_with).
#[derive(Clone, Debug, Default)]
pub struct MatmulOptions {
    /// `Bool transpose_a=false`. `false` by default.
    pub transpose_a: bool,
    /// `Bool transpose_b=false`. `false` by default.
    pub transpose_b: bool,
}

/// Options of [`Tensor::addmm_with`](crate::Tensor::addmm_with).
#[derive(Clone, Debug)]
pub struct AddmmOptions {
    /// `Scalar beta=1`. `Scalar::Int(1)` by default.
    pub beta: Scalar,
    /// `Scalar alpha=1`. `Scalar::Int(1)` by default.
    pub alpha: Scalar,
}

impl Default for AddmmOptions {
    fn default() -> AddmmOptions {
        AddmmOptions {
            beta: Scalar::Int(1),
            alpha: Scalar::Int(1),
        }
    }
}

/// Options of [`Tensor::addmv_with`](crate::Tensor::addmv_with).
#[derive(Clone, Debug)]
pub struct AddmvOptions {
    /// `Scalar beta=1`. `Scalar::Int(1)` by default.
    pub beta: Scalar,
    /// `Scalar alpha=1`. `Scalar::Int(1)` by default.
    pub alpha: Scalar,
}

impl Default for AddmvOptions {
    fn default() -> AddmvOptions {
        AddmvOptions {
            beta: Scalar::Int(1),
            alpha: Scalar::Int(1),
        }
    }
}

/// Options of [`Tensor::baddbmm_with`](crate::Tensor::baddbmm_with).
#[derive(Clone, Debug)]
pub struct BaddbmmOptions {
    /// `Scalar beta=1`. `Scalar::Int(1)` by default.
    pub beta: Scalar,
    /// `Scalar alpha=1`. `Scalar::Int(1)` by default.
    pub alpha: Scalar,
}

impl Default for BaddbmmOptions {
    fn default() -> BaddbmmOptions {
        BaddbmmOptions {
            beta: Scalar::Int(1),
            alpha: Scalar::Int(1),
        }
    }
}

/// Options of [`Tensor::addbmm_with`](crate::Tensor::addbmm_with).
#[derive(Clone, Debug)]
pub struct AddbmmOptions {
    /// `Scalar beta=1`. `Scalar::Int(1)` by default.
    pub beta: Scalar,
    /// `Scalar alpha=1`. `Scalar::Int(1)` by default.
    pub alpha: Scalar,
}

impl Default for AddbmmOptions {
    fn default() -> AddbmmOptions {
        AddbmmOptions {
            beta: Scalar::Int(1),
            alpha: Scalar::Int(1),
        }
    }
}

/// Options of [`Tensor::addr_with`](crate::Tensor::addr_with).
#[derive(Clone, Debug)]
pub struct AddrOptions {
    /// `Scalar beta=1`. `Scalar::Int(1)` by default.
    pub beta: Scalar,
    /// `Scalar alpha=1`. `Scalar::Int(1)` by default.
    pub alpha: Scalar,
}

impl Default for AddrOptions {
    fn default() -> AddrOptions {
        AddrOptions {
            beta: Scalar::Int(1),
            alpha: Scalar::Int(1),
        }
    }
}

/// The sum of products that `equation` describes: for each tensor the letters of its dims, after `->` those of the result. Letters that
/// the result lacks are summed over; a letter twice in one tensor takes its diagonal; `...` stands for leading dims that
/// broadcast. Without `->` the result has the letters that occur once, in alphabetical order. Products of integers keep their dtype;
/// where letters of one tensor alone are summed over, integers and bools give i64, as `sum` does.
///
/// ```text
/// einsum(String equation, TensorTuple xs) -> Tensor
/// ```
///
/// ```
/// use oflow::prelude::*;
/// let a = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], Device::Cpu)?;
/// assert_eq!(einsum("ij,kj->ik", [&a, &a])?.to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
/// assert_eq!(einsum("ii", [&a])?.to_vec::<f32>()?, [5.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// If the equation does not describe the tensors, or a letter stands for two sizes.
#[track_caller]
pub fn einsum<T: Borrow<Tensor>>(equation: &str, xs: impl AsRef<[T]>) -> Result<Tensor> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::einsum::einsum(equation, &xs, CallSite::here())
}

impl Tensor {
    /// The matrix product of `[..., m, k]` and `[..., k, n]`, of shape `[..., m, n]`. Leading dims broadcast; a vector is a matrix of one row
    /// or one column, as in PyTorch. Matrices may be transposed first.
    ///
    /// ```text
    /// matmul(Tensor a, Tensor b, *, Bool transpose_a=false, Bool transpose_b=false) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let a = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], Device::Cpu)?;
    /// let v = from_vec(vec![1.0f32, 1.0], [2], Device::Cpu)?;
    /// assert_eq!(a.matmul(&v)?.to_vec::<f32>()?, [3.0, 7.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn matmul(&self, b: &Tensor) -> Result<Tensor> {
        super::super::nn::matmul(self, b, false, false, CallSite::here())
    }

    /// [`Tensor::matmul`](crate::Tensor::matmul) with its options.
    #[track_caller]
    pub fn matmul_with(&self, b: &Tensor, options: &crate::functional::MatmulOptions) -> Result<Tensor> {
        super::super::nn::matmul(self, b, options.transpose_a, options.transpose_b, CallSite::here())
    }

    /// a bᵀ for `[..., m, k]` and `[..., n, k]`, of shape `[..., m, n]`.
    ///
    /// ```text
    /// matmul_t(Tensor a, Tensor b) -> Tensor
    /// ```
    #[track_caller]
    pub fn matmul_t(&self, b: &Tensor) -> Result<Tensor> {
        super::super::nn::matmul_t(self, b, CallSite::here())
    }

    /// x weightᵀ + bias for an input `[..., in]`, a weight `[out, in]` and a bias `[out]`, of shape `[..., out]`. Autocast casts all three.
    ///
    /// ```text
    /// linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor
    /// ```
    #[track_caller]
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        super::super::nn::linear(self, weight, bias, CallSite::here())
    }

    /// `beta` x + `alpha` (a b), a and b matrices; x broadcasts to the product.
    ///
    /// ```text
    /// addmm(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn addmm(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        super::super::algebra::addmm(self, a, b, Scalar::Int(1), Scalar::Int(1), CallSite::here())
    }

    /// [`Tensor::addmm`](crate::Tensor::addmm) with its options.
    #[track_caller]
    pub fn addmm_with(&self, a: &Tensor, b: &Tensor, options: &crate::functional::AddmmOptions) -> Result<Tensor> {
        super::super::algebra::addmm(self, a, b, options.beta, options.alpha, CallSite::here())
    }

    /// `beta` x + `alpha` (a b), a a matrix and b a vector.
    ///
    /// ```text
    /// addmv(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn addmv(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        super::super::algebra::addmv(self, a, b, Scalar::Int(1), Scalar::Int(1), CallSite::here())
    }

    /// [`Tensor::addmv`](crate::Tensor::addmv) with its options.
    #[track_caller]
    pub fn addmv_with(&self, a: &Tensor, b: &Tensor, options: &crate::functional::AddmvOptions) -> Result<Tensor> {
        super::super::algebra::addmv(self, a, b, options.beta, options.alpha, CallSite::here())
    }

    /// `beta` x + `alpha` (a b), a and b batches of matrices `[B, m, k]` and `[B, k, n]`.
    ///
    /// ```text
    /// baddbmm(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn baddbmm(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        super::super::algebra::baddbmm(self, a, b, Scalar::Int(1), Scalar::Int(1), CallSite::here())
    }

    /// [`Tensor::baddbmm`](crate::Tensor::baddbmm) with its options.
    #[track_caller]
    pub fn baddbmm_with(
        &self,
        a: &Tensor,
        b: &Tensor,
        options: &crate::functional::BaddbmmOptions,
    ) -> Result<Tensor> {
        super::super::algebra::baddbmm(self, a, b, options.beta, options.alpha, CallSite::here())
    }

    /// The sum of the products of two vectors' elements.
    ///
    /// ```text
    /// dot(Tensor a, Tensor b) -> Tensor
    /// ```
    #[track_caller]
    pub fn dot(&self, b: &Tensor) -> Result<Tensor> {
        super::super::algebra::dot(self, b, CallSite::here())
    }

    /// The products of all elements of one vector with all of another, a matrix.
    ///
    /// ```text
    /// outer(Tensor a, Tensor b) -> Tensor
    /// ```
    #[track_caller]
    pub fn outer(&self, b: &Tensor) -> Result<Tensor> {
        super::super::algebra::outer(self, b, CallSite::here())
    }

    /// The sum of products over the dims `dims_a` of a and `dims_b` of b. The result has the other dims of a, then those of b.
    ///
    /// ```text
    /// tensordot(Tensor a, Tensor b, IntList dims_a, IntList dims_b) -> Tensor
    /// ```
    #[track_caller]
    pub fn tensordot(&self, b: &Tensor, dims_a: impl IntList, dims_b: impl IntList) -> Result<Tensor> {
        super::super::algebra::tensordot(self, b, &dims_a.ints(), &dims_b.ints(), CallSite::here())
    }

    /// The Kronecker product: each element of a times the whole of b.
    ///
    /// ```text
    /// kron(Tensor a, Tensor b) -> Tensor
    /// ```
    #[track_caller]
    pub fn kron(&self, b: &Tensor) -> Result<Tensor> {
        super::super::algebra::kron(self, b, CallSite::here())
    }

    /// The cross product along a dim of 3 elements.
    ///
    /// ```text
    /// cross(Tensor a, Tensor b, Int dim=-1) -> Tensor
    /// ```
    #[track_caller]
    pub fn cross(&self, b: &Tensor, dim: impl IntLike) -> Result<Tensor> {
        super::super::algebra::cross(self, b, dim.int(), CallSite::here())
    }

    /// The product of two matrices.
    ///
    /// ```text
    /// mm(Tensor a, Tensor b) -> Tensor
    /// ```
    #[track_caller]
    pub fn mm(&self, b: &Tensor) -> Result<Tensor> {
        super::super::products::mm(self, b, CallSite::here())
    }

    /// The products of two batches of matrices, `[B, m, k]` and `[B, k, n]`.
    ///
    /// ```text
    /// bmm(Tensor a, Tensor b) -> Tensor
    /// ```
    #[track_caller]
    pub fn bmm(&self, b: &Tensor) -> Result<Tensor> {
        super::super::products::bmm(self, b, CallSite::here())
    }

    /// The product of a matrix and a vector.
    ///
    /// ```text
    /// mv(Tensor a, Tensor v) -> Tensor
    /// ```
    #[track_caller]
    pub fn mv(&self, v: &Tensor) -> Result<Tensor> {
        super::super::products::mv(self, v, CallSite::here())
    }

    /// The sum of the products of two vectors' elements, those of `a` conjugated.
    ///
    /// ```text
    /// vdot(Tensor a, Tensor b) -> Tensor
    /// ```
    #[track_caller]
    pub fn vdot(&self, b: &Tensor) -> Result<Tensor> {
        super::super::products::vdot(self, b, CallSite::here())
    }

    /// `beta` x + `alpha` times the sum of the products of two batches of matrices.
    ///
    /// ```text
    /// addbmm(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn addbmm(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        super::super::products::addbmm(self, a, b, Scalar::Int(1), Scalar::Int(1), CallSite::here())
    }

    /// [`Tensor::addbmm`](crate::Tensor::addbmm) with its options.
    #[track_caller]
    pub fn addbmm_with(
        &self,
        a: &Tensor,
        b: &Tensor,
        options: &crate::functional::AddbmmOptions,
    ) -> Result<Tensor> {
        super::super::products::addbmm(self, a, b, options.beta, options.alpha, CallSite::here())
    }

    /// `beta` x + `alpha` times the outer product of two vectors.
    ///
    /// ```text
    /// addr(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn addr(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        super::super::products::addr(self, a, b, Scalar::Int(1), Scalar::Int(1), CallSite::here())
    }

    /// [`Tensor::addr`](crate::Tensor::addr) with its options.
    #[track_caller]
    pub fn addr_with(&self, a: &Tensor, b: &Tensor, options: &crate::functional::AddrOptions) -> Result<Tensor> {
        super::super::products::addr(self, a, b, options.beta, options.alpha, CallSite::here())
    }

    /// The p-norm of the difference of two tensors.
    ///
    /// ```text
    /// dist(Tensor x, Tensor other, Float p=2.0) -> Tensor
    /// ```
    #[track_caller]
    pub fn dist(&self, other: &Tensor, p: f64) -> Result<Tensor> {
        super::super::products::dist(self, other, p, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("matmul(Tensor a, Tensor b, *, Bool transpose_a=false, Bool transpose_b=false) -> Tensor", |b| Ok(vec![super::super::nn::matmul(b.given(0)?, b.given(1)?, b.bool(2)?, b.bool(3)?, b.site)?])),
    ("matmul_t(Tensor a, Tensor b) -> Tensor", |b| Ok(vec![super::super::nn::matmul_t(b.given(0)?, b.given(1)?, b.site)?])),
    ("linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor", |b| Ok(vec![super::super::nn::linear(b.given(0)?, b.given(1)?, b.tensor(2), b.site)?])),
    ("addmm(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor", |b| Ok(vec![super::super::algebra::addmm(b.given(0)?, b.given(1)?, b.given(2)?, b.scalar(3)?, b.scalar(4)?, b.site)?])),
    ("addmv(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor", |b| Ok(vec![super::super::algebra::addmv(b.given(0)?, b.given(1)?, b.given(2)?, b.scalar(3)?, b.scalar(4)?, b.site)?])),
    ("baddbmm(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor", |b| Ok(vec![super::super::algebra::baddbmm(b.given(0)?, b.given(1)?, b.given(2)?, b.scalar(3)?, b.scalar(4)?, b.site)?])),
    ("dot(Tensor a, Tensor b) -> Tensor", |b| Ok(vec![super::super::algebra::dot(b.given(0)?, b.given(1)?, b.site)?])),
    ("outer(Tensor a, Tensor b) -> Tensor", |b| Ok(vec![super::super::algebra::outer(b.given(0)?, b.given(1)?, b.site)?])),
    ("tensordot(Tensor a, Tensor b, IntList dims_a, IntList dims_b) -> Tensor", |b| Ok(vec![super::super::algebra::tensordot(b.given(0)?, b.given(1)?, b.ints(2)?, b.ints(3)?, b.site)?])),
    ("kron(Tensor a, Tensor b) -> Tensor", |b| Ok(vec![super::super::algebra::kron(b.given(0)?, b.given(1)?, b.site)?])),
    ("cross(Tensor a, Tensor b, Int dim=-1) -> Tensor", |b| Ok(vec![super::super::algebra::cross(b.given(0)?, b.given(1)?, b.int(2)?, b.site)?])),
    ("mm(Tensor a, Tensor b) -> Tensor", |b| Ok(vec![super::super::products::mm(b.given(0)?, b.given(1)?, b.site)?])),
    ("bmm(Tensor a, Tensor b) -> Tensor", |b| Ok(vec![super::super::products::bmm(b.given(0)?, b.given(1)?, b.site)?])),
    ("mv(Tensor a, Tensor v) -> Tensor", |b| Ok(vec![super::super::products::mv(b.given(0)?, b.given(1)?, b.site)?])),
    ("vdot(Tensor a, Tensor b) -> Tensor", |b| Ok(vec![super::super::products::vdot(b.given(0)?, b.given(1)?, b.site)?])),
    ("addbmm(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor", |b| Ok(vec![super::super::products::addbmm(b.given(0)?, b.given(1)?, b.given(2)?, b.scalar(3)?, b.scalar(4)?, b.site)?])),
    ("addr(Tensor x, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1) -> Tensor", |b| Ok(vec![super::super::products::addr(b.given(0)?, b.given(1)?, b.given(2)?, b.scalar(3)?, b.scalar(4)?, b.site)?])),
    ("dist(Tensor x, Tensor other, Float p=2.0) -> Tensor", |b| Ok(vec![super::super::products::dist(b.given(0)?, b.given(1)?, b.float(2)?, b.site)?])),
    ("einsum(String equation, TensorTuple xs) -> Tensor", |b| Ok(vec![super::super::einsum::einsum(b.text(0)?, &b.tensors(1)?.iter().collect::<Vec<_>>(), b.site)?])),
];
