//! Choice: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, IntList, invoke, invoke1, op};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::smallvec;

/// Options of [`Tensor::sort_with`](crate::Tensor::sort_with).
#[derive(Clone, Debug, Default)]
pub struct SortOptions {
    /// `Bool stable=false`. `false` by default.
    pub stable: bool,
}

/// Options of [`Tensor::searchsorted_with`](crate::Tensor::searchsorted_with).
#[derive(Clone, Debug, Default)]
pub struct SearchsortedOptions {
    /// `Bool out_int32=false`. `false` by default.
    pub out_int32: bool,
    /// `Bool right=false`. `false` by default.
    pub right: bool,
}

/// Options of [`Tensor::index_add_with`](crate::Tensor::index_add_with).
#[derive(Clone, Debug)]
pub struct IndexAddOptions {
    /// `Scalar alpha=1`. `Scalar::Int(1)` by default.
    pub alpha: Scalar,
}

impl Default for IndexAddOptions {
    fn default() -> IndexAddOptions {
        IndexAddOptions {
            alpha: Scalar::Int(1),
        }
    }
}

/// Options of [`Tensor::index_reduce_with`](crate::Tensor::index_reduce_with).
#[derive(Clone, Debug)]
pub struct IndexReduceOptions {
    /// `Bool include_self=true`. `true` by default.
    pub include_self: bool,
}

impl Default for IndexReduceOptions {
    fn default() -> IndexReduceOptions {
        IndexReduceOptions {
            include_self: true,
        }
    }
}

/// Options of [`Tensor::scatter_reduce_with`](crate::Tensor::scatter_reduce_with).
#[derive(Clone, Debug)]
pub struct ScatterReduceOptions {
    /// `Bool include_self=true`. `true` by default.
    pub include_self: bool,
}

impl Default for ScatterReduceOptions {
    fn default() -> ScatterReduceOptions {
        ScatterReduceOptions {
            include_self: true,
        }
    }
}

/// Options of [`functional::runs_of_with`](crate::functional::runs_of_with).
#[derive(Clone, Debug, Default)]
pub struct RunsOfOptions {
    /// `Bool return_inverse=false`. `false` by default.
    pub return_inverse: bool,
    /// `Bool return_counts=false`. `false` by default.
    pub return_counts: bool,
}

/// Options of [`Tensor::argsort_with`](crate::Tensor::argsort_with).
#[derive(Clone, Debug, Default)]
pub struct ArgsortOptions {
    /// `Bool stable=false`. `false` by default.
    pub stable: bool,
}

/// Options of [`Tensor::bucketize_with`](crate::Tensor::bucketize_with).
#[derive(Clone, Debug, Default)]
pub struct BucketizeOptions {
    /// `Bool out_int32=false`. `false` by default.
    pub out_int32: bool,
    /// `Bool right=false`. `false` by default.
    pub right: bool,
}

/// Options of [`Tensor::bincount_with`](crate::Tensor::bincount_with).
#[derive(Clone, Debug, Default)]
pub struct BincountOptions {
    /// `Tensor? weights`. Not given by default.
    pub weights: Option<Tensor>,
    /// `Int minlength=0`. `0` by default.
    pub minlength: i64,
}

/// Options of [`functional::unique_of_with`](crate::functional::unique_of_with).
#[derive(Clone, Debug)]
pub struct UniqueOfOptions {
    /// `Bool sorted=true`. `true` by default.
    pub sorted: bool,
    /// `Bool return_inverse=false`. `false` by default.
    pub return_inverse: bool,
    /// `Bool return_counts=false`. `false` by default.
    pub return_counts: bool,
}

impl Default for UniqueOfOptions {
    fn default() -> UniqueOfOptions {
        UniqueOfOptions {
            sorted: true,
            return_inverse: false,
            return_counts: false,
        }
    }
}

/// The first element of each run of equal elements, in order; then, where asked for, which run each element belongs to, in the shape
/// of x, and how long each is. The call waits for the number of runs.
///
/// ```text
/// unique_consecutive(Tensor x, *, Bool return_inverse=false, Bool return_counts=false) -> TensorTuple
/// ```
#[track_caller]
pub fn runs_of(x: &Tensor) -> Result<Vec<Tensor>> {
    super::super::choose::unique_consecutive(x, false, false, CallSite::here())
}

/// [`functional::runs_of`](crate::functional::runs_of) with its options.
#[track_caller]
pub fn runs_of_with(x: &Tensor, options: &crate::functional::RunsOfOptions) -> Result<Vec<Tensor>> {
    super::super::choose::unique_consecutive(x, options.return_inverse, options.return_counts, CallSite::here())
}

/// The coordinates in a tensor of that shape of places in row-major order: one tensor for each dim.
///
/// ```text
/// unravel_index(Tensor ids, IntList shape) -> TensorTuple
/// ```
#[track_caller]
pub fn unravel_index(ids: &Tensor, shape: impl IntList) -> Result<Vec<Tensor>> {
    super::super::choose::unravel_index(ids, &shape.ints(), CallSite::here())
}

/// The median of all elements, of an even number the lower one of the two. NaN wins, and of no floats at all it is NaN. Equal
/// elements share the gradient.
///
/// ```text
/// median(Tensor x) -> Tensor
/// ```
#[track_caller]
pub fn median_of_all(x: &Tensor) -> Result<Tensor> {
    super::super::sort::median_of_all(x, CallSite::here())
}

/// The distinct values, smallest first; then, where asked for, the place among them of each element, in the shape of x, and how
/// often each occurs. NaN come last; no two are equal. The call waits for the number of values. They are always `sorted`.
///
/// ```text
/// unique(Tensor x, *, Bool sorted=true, Bool return_inverse=false, Bool return_counts=false) -> TensorTuple
/// ```
#[track_caller]
pub fn unique_of(x: &Tensor) -> Result<Vec<Tensor>> {
    super::super::count::unique_of(x, true, false, false, CallSite::here())
}

/// [`functional::unique_of`](crate::functional::unique_of) with its options.
#[track_caller]
pub fn unique_of_with(x: &Tensor, options: &crate::functional::UniqueOfOptions) -> Result<Vec<Tensor>> {
    super::super::count::unique_of(x, options.sorted, options.return_inverse, options.return_counts, CallSite::here())
}

impl Tensor {
    /// How many elements over dims (none given: all) are not zero; NaN is not. The result is i64.
    ///
    /// ```text
    /// count_nonzero(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn count_nonzero(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("count_nonzero"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::count_nonzero`](crate::Tensor::count_nonzero) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn count_nonzero_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("count_nonzero"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints()), true.into()], smallvec![], CallSite::here())
    }

    /// The indices of the elements that are not zero (NaN is not): i64, `[count, rank]`, in row-major order. A tensor split along dim 0 gives indices split along dim 0. The call waits for the count, which decides the shape of the result.
    ///
    /// ```text
    /// nonzero(Tensor x) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![0.0f32, 3.0, 4.0, 0.0], [2, 2], Device::Cpu)?;
    /// assert_eq!(x.nonzero()?.to_vec::<i64>()?, [0, 1, 1, 0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// In a dry run, whose tensors have no values.
    #[track_caller]
    pub fn nonzero(&self) -> Result<Tensor> {
        invoke1(op!("nonzero"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The distinct values, smallest first, as a tensor of one dim. NaN come last; no two are equal. A global result is B. It has no gradient, and no kernel for GPUs.
    ///
    /// ```text
    /// unique(Tensor x) -> Tensor
    /// ```
    ///
    /// # Errors
    /// On a GPU; in a dry run.
    #[track_caller]
    pub fn unique(&self) -> Result<Tensor> {
        invoke1(op!("unique"), &[Some(self)], smallvec![], smallvec![], CallSite::here())
    }

    /// The elements of each of the dims in reverse order, in new memory.
    ///
    /// ```text
    /// flip(Tensor x, IntList dims) -> Tensor
    /// ```
    #[track_caller]
    pub fn flip(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("flip"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints())], smallvec![], CallSite::here())
    }

    /// The elements of each line along a dim from the smallest to the largest, or with `descending` from the largest, and where they stood. NaN count as the largest. Equal elements always keep their order, so `stable` changes nothing.
    ///
    /// ```text
    /// sort(Tensor x, Int dim=-1, Bool descending=false, *, Bool stable=false) -> (Tensor values, Tensor indices)
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![3.0f32, 1.0, 2.0], [3], Device::Cpu)?;
    /// let sorted = x.sort(0, false)?;
    /// assert_eq!(sorted[0].to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// assert_eq!(sorted[1].to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn sort(&self, dim: impl IntLike, descending: bool) -> Result<Vec<Tensor>> {
        Ok(invoke(op!("sort"), &[Some(self)], smallvec![dim.int().into(), descending.into(), false.into()], smallvec![], CallSite::here())?.into_vec())
    }

    /// [`Tensor::sort`](crate::Tensor::sort) with its options.
    #[track_caller]
    pub fn sort_with(
        &self,
        dim: impl IntLike,
        descending: bool,
        options: &crate::functional::SortOptions,
    ) -> Result<Vec<Tensor>> {
        Ok(invoke(op!("sort"), &[Some(self)], smallvec![dim.int().into(), descending.into(), options.stable.into()], smallvec![], CallSite::here())?.into_vec())
    }

    /// The k largest elements of each line along a dim, or with `largest=false` the smallest, and where they stood. They are always sorted, so `sorted` changes nothing; of equal ones the first are taken. NaN count as the largest.
    ///
    /// ```text
    /// topk(Tensor x, Int k, Int dim=-1, Bool largest=true, Bool sorted=true) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn topk(&self, k: impl IntLike, dim: impl IntLike, largest: bool, sorted: bool) -> Result<Vec<Tensor>> {
        Ok(invoke(op!("topk"), &[Some(self)], smallvec![k.int().into(), dim.int().into(), largest.into(), sorted.into()], smallvec![], CallSite::here())?.into_vec())
    }

    /// The k-th smallest element of each line along a dim, k counted from 1, and where it stood. NaN count as the largest.
    ///
    /// ```text
    /// kthvalue(Tensor x, Int k, Int dim=-1, Bool keepdim=false) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn kthvalue(&self, k: impl IntLike, dim: impl IntLike) -> Result<Vec<Tensor>> {
        Ok(invoke(op!("kthvalue"), &[Some(self)], smallvec![k.int().into(), dim.int().into(), false.into()], smallvec![], CallSite::here())?.into_vec())
    }

    /// [`Tensor::kthvalue`](crate::Tensor::kthvalue) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn kthvalue_keepdim(&self, k: impl IntLike, dim: impl IntLike) -> Result<Vec<Tensor>> {
        Ok(invoke(op!("kthvalue"), &[Some(self)], smallvec![k.int().into(), dim.int().into(), true.into()], smallvec![], CallSite::here())?.into_vec())
    }

    /// The median of each line along a dim, of an even number of elements the lower one of the two, and where it stood. NaN wins.
    ///
    /// ```text
    /// median(Tensor x, Int dim, Bool keepdim=false) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn median(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        Ok(invoke(op!("median"), &[Some(self)], smallvec![dim.int().into(), false.into()], smallvec![], CallSite::here())?.into_vec())
    }

    /// [`Tensor::median`](crate::Tensor::median) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn median_keepdim(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        Ok(invoke(op!("median"), &[Some(self)], smallvec![dim.int().into(), true.into()], smallvec![], CallSite::here())?.into_vec())
    }

    /// For each value the place where it can be inserted into a sorted sequence: how many of its elements are smaller, or with `right` not greater. The sequence has one dim, or there is one for each row of x: then all dims but the last are those of x. NaN count as the largest. Places are i64, or i32 with `out_int32`. A split sequence gives P(sum).
    ///
    /// ```text
    /// searchsorted(Tensor sorted, Tensor x, *, Bool out_int32=false, Bool right=false) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let sorted = from_vec(vec![1.0f32, 3.0, 5.0], [3], Device::Cpu)?;
    /// let x = from_vec(vec![0.0f32, 3.0, 4.0], [3], Device::Cpu)?;
    /// assert_eq!(sorted.searchsorted(&x)?.to_vec::<i64>()?, [0, 1, 2]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn searchsorted(&self, x: &Tensor) -> Result<Tensor> {
        invoke1(op!("searchsorted"), &[Some(self), Some(x)], smallvec![false.into(), false.into()], smallvec![], CallSite::here())
    }

    /// [`Tensor::searchsorted`](crate::Tensor::searchsorted) with its options.
    #[track_caller]
    pub fn searchsorted_with(
        &self,
        x: &Tensor,
        options: &crate::functional::SearchsortedOptions,
    ) -> Result<Tensor> {
        invoke1(op!("searchsorted"), &[Some(self), Some(x)], smallvec![options.out_int32.into(), options.right.into()], smallvec![], CallSite::here())
    }

    /// The elements where the bool tensor `mask` is true, in row-major order, as a tensor of one dim. Shapes broadcast. The gradient
    /// goes to the elements that were chosen. The call waits for the count, which decides the shape of the result.
    ///
    /// ```text
    /// masked_select(Tensor x, Tensor mask) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, -2.0, 3.0], [3], Device::Cpu)?;
    /// assert_eq!(x.masked_select(&x.gt(0.0)?)?.to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast or the mask is no bool tensor; in a dry run.
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        super::super::select::masked_select(self, mask, CallSite::here())
    }

    /// For each index the element of x that it names along `dim`: `y[i][j] = x[ids[i][j]][j]` for dim 0. The indices may be fewer than the
    /// elements of x in other dims too; the first are meant.
    ///
    /// ```text
    /// gather(Tensor x, Int dim, Tensor ids) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], Device::Cpu)?;
    /// let ids = from_vec(vec![1i64, 1, 0, 1], [2, 2], Device::Cpu)?;
    /// assert_eq!(x.gather(1, &ids)?.to_vec::<f32>()?, [2.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an index is not within 0 and the size of the dim. The kernel finds it, so only ranks that hold the index return the error.
    #[track_caller]
    pub fn gather(&self, dim: impl IntLike, ids: &Tensor) -> Result<Tensor> {
        super::super::gather::gather(self, dim.int(), ids, CallSite::here())
    }

    /// `gather` with indices that broadcast with x in the other dims.
    ///
    /// ```text
    /// take_along_dim(Tensor x, Tensor ids, Int dim) -> Tensor
    /// ```
    #[track_caller]
    pub fn take_along_dim(&self, ids: &Tensor, dim: impl IntLike) -> Result<Tensor> {
        super::super::gather::take_along_dim(self, ids, dim.int(), CallSite::here())
    }

    /// The elements of a dim by index. The dims of `ids` take the place of the dim; a list, as in PyTorch, keeps the rank.
    ///
    /// ```text
    /// index_select(Tensor x, Int dim, Tensor ids) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If an index is not within 0 and the size of the dim. The kernel finds it, so only ranks that hold the index return the error.
    #[track_caller]
    pub fn index_select(&self, dim: impl IntLike, ids: &Tensor) -> Result<Tensor> {
        super::super::gather::index_select(self, dim.int(), ids, CallSite::here())
    }

    /// x with each element of `src` written at its index along `dim`; of several at one place the last stands.
    ///
    /// ```text
    /// scatter(Tensor x, Int dim, Tensor ids, Tensor src) -> Tensor
    /// ```
    #[track_caller]
    pub fn scatter(&self, dim: impl IntLike, ids: &Tensor, src: &Tensor) -> Result<Tensor> {
        super::super::gather::scatter(self, dim.int(), ids, src, CallSite::here())
    }

    /// x with each element of `src` added at its index along `dim`.
    ///
    /// ```text
    /// scatter_add(Tensor x, Int dim, Tensor ids, Tensor src) -> Tensor
    /// ```
    #[track_caller]
    pub fn scatter_add(&self, dim: impl IntLike, ids: &Tensor, src: &Tensor) -> Result<Tensor> {
        super::super::gather::scatter_add(self, dim.int(), ids, src, CallSite::here())
    }

    /// x with `alpha` times each slice of `src` added at its index along `dim`: `ids` is a list.
    ///
    /// ```text
    /// index_add(Tensor x, Int dim, Tensor ids, Tensor src, *, Scalar alpha=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn index_add(&self, dim: impl IntLike, ids: &Tensor, src: &Tensor) -> Result<Tensor> {
        super::super::gather::index_add(self, dim.int(), ids, src, Scalar::Int(1), CallSite::here())
    }

    /// [`Tensor::index_add`](crate::Tensor::index_add) with its options.
    #[track_caller]
    pub fn index_add_with(
        &self,
        dim: impl IntLike,
        ids: &Tensor,
        src: &Tensor,
        options: &crate::functional::IndexAddOptions,
    ) -> Result<Tensor> {
        super::super::gather::index_add(self, dim.int(), ids, src, options.alpha, CallSite::here())
    }

    /// x with each slice of `src` written at its index along `dim`: `ids` is a list. Of several at one place the last stands.
    ///
    /// ```text
    /// index_copy(Tensor x, Int dim, Tensor ids, Tensor src) -> Tensor
    /// ```
    #[track_caller]
    pub fn index_copy(&self, dim: impl IntLike, ids: &Tensor, src: &Tensor) -> Result<Tensor> {
        super::super::gather::index_copy(self, dim.int(), ids, src, CallSite::here())
    }

    /// The largest elements along `dim`, and where they are: among equals the first.
    ///
    /// ```text
    /// max(Tensor x, Int dim, Bool keepdim=false) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn max(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::gather::max(self, dim.int(), false, CallSite::here())
    }

    /// [`Tensor::max`](crate::Tensor::max) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn max_keepdim(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::gather::max(self, dim.int(), true, CallSite::here())
    }

    /// The smallest elements along `dim`, and where they are: among equals the first.
    ///
    /// ```text
    /// min(Tensor x, Int dim, Bool keepdim=false) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn min(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::gather::min(self, dim.int(), false, CallSite::here())
    }

    /// [`Tensor::min`](crate::Tensor::min) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn min_keepdim(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::gather::min(self, dim.int(), true, CallSite::here())
    }

    /// x with each slice of `src` combined with what is at its index along `dim`: `reduce` is `prod`, `mean`, `amax` or `amin`. Without
    /// `include_self` what x has there does not count.
    ///
    /// ```text
    /// index_reduce(Tensor x, Int dim, Tensor ids, Tensor src, String reduce, *, Bool include_self=true) -> Tensor
    /// ```
    #[track_caller]
    pub fn index_reduce(&self, dim: impl IntLike, ids: &Tensor, src: &Tensor, reduce: &str) -> Result<Tensor> {
        super::super::by_place::index_reduce(self, dim.int(), ids, src, reduce, true, CallSite::here())
    }

    /// [`Tensor::index_reduce`](crate::Tensor::index_reduce) with its options.
    #[track_caller]
    pub fn index_reduce_with(
        &self,
        dim: impl IntLike,
        ids: &Tensor,
        src: &Tensor,
        reduce: &str,
        options: &crate::functional::IndexReduceOptions,
    ) -> Result<Tensor> {
        super::super::by_place::index_reduce(self, dim.int(), ids, src, reduce, options.include_self, CallSite::here())
    }

    /// x with the elements of `src` at these places, counted row-major; with `accumulate` they are added.
    ///
    /// ```text
    /// put(Tensor x, Tensor ids, Tensor src, Bool accumulate=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn put(&self, ids: &Tensor, src: &Tensor, accumulate: bool) -> Result<Tensor> {
        super::super::by_place::put(self, ids, src, accumulate, CallSite::here())
    }

    /// x with `src` as the diagonal of two dims.
    ///
    /// ```text
    /// diagonal_scatter(Tensor x, Tensor src, Int offset=0, Int dim1=0, Int dim2=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn diagonal_scatter(
        &self,
        src: &Tensor,
        offset: impl IntLike,
        dim1: impl IntLike,
        dim2: impl IntLike,
    ) -> Result<Tensor> {
        super::super::by_place::diagonal_scatter(self, src, offset.int(), dim1.int(), dim2.int(), CallSite::here())
    }

    /// x with each slice along `dim` whose p-norm is above `maxnorm` scaled to have that norm.
    ///
    /// ```text
    /// renorm(Tensor x, Float p, Int dim, Float maxnorm) -> Tensor
    /// ```
    #[track_caller]
    pub fn renorm(&self, p: f64, dim: impl IntLike, maxnorm: f64) -> Result<Tensor> {
        super::super::by_place::renorm(self, p, dim.int(), maxnorm, CallSite::here())
    }

    /// The middle value along `dim` of those that are not NaN (the lower of two), and where it is; NaN where all are.
    ///
    /// ```text
    /// nanmedian(Tensor x, Int dim, Bool keepdim=false) -> (Tensor values, Tensor indices)
    /// ```
    #[track_caller]
    pub fn nanmedian(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::by_place::nanmedian(self, dim.int(), false, CallSite::here())
    }

    /// [`Tensor::nanmedian`](crate::Tensor::nanmedian) with the reduced dims kept, with size 1.
    #[track_caller]
    pub fn nanmedian_keepdim(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::by_place::nanmedian(self, dim.int(), true, CallSite::here())
    }

    /// The elements at these places of x in row-major order, in the shape of the indices. Negative ones count from the end.
    ///
    /// ```text
    /// take(Tensor x, Tensor ids) -> Tensor
    /// ```
    #[track_caller]
    pub fn take(&self, ids: &Tensor) -> Result<Tensor> {
        super::super::choose::take(self, ids, CallSite::here())
    }

    /// x with `value` in each slice at an index along `dim`: `ids` is a list.
    ///
    /// ```text
    /// index_fill(Tensor x, Int dim, Tensor ids, Scalar value) -> Tensor
    /// ```
    #[track_caller]
    pub fn index_fill(&self, dim: impl IntLike, ids: &Tensor, value: impl Into<Scalar>) -> Result<Tensor> {
        super::super::choose::index_fill(self, dim.int(), ids, value.into(), CallSite::here())
    }

    /// x with the elements of `src`, in row-major order, at the places where the bool tensor `mask` is true. The call waits for their
    /// number.
    ///
    /// ```text
    /// masked_scatter(Tensor x, Tensor mask, Tensor src) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = zeros([4], Device::Cpu)?;
    /// let mask = from_vec(vec![false, true, true, false], [4], Device::Cpu)?;
    /// let src = from_vec(vec![5.0f32, 6.0, 7.0], [3], Device::Cpu)?;
    /// assert_eq!(x.masked_scatter(&mask, &src)?.to_vec::<f32>()?, [0.0, 5.0, 6.0, 0.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the mask is true at more places than there are elements; in a dry run.
    #[track_caller]
    pub fn masked_scatter(&self, mask: &Tensor, src: &Tensor) -> Result<Tensor> {
        super::super::choose::masked_scatter(self, mask, src, CallSite::here())
    }

    /// x with the elements of `src` reduced at their indices along `dim`: `reduce` is `sum`, `mean`, `amax` or `amin`. With `include_self` the
    /// element of x counts as one of them, else it stays only where no index is. Equal extremes share the gradient.
    ///
    /// ```text
    /// scatter_reduce(Tensor x, Int dim, Tensor ids, Tensor src, String reduce, *, Bool include_self=true) -> Tensor
    /// ```
    #[track_caller]
    pub fn scatter_reduce(&self, dim: impl IntLike, ids: &Tensor, src: &Tensor, reduce: &str) -> Result<Tensor> {
        super::super::choose::scatter_reduce(self, dim.int(), ids, src, reduce, true, CallSite::here())
    }

    /// [`Tensor::scatter_reduce`](crate::Tensor::scatter_reduce) with its options.
    #[track_caller]
    pub fn scatter_reduce_with(
        &self,
        dim: impl IntLike,
        ids: &Tensor,
        src: &Tensor,
        reduce: &str,
        options: &crate::functional::ScatterReduceOptions,
    ) -> Result<Tensor> {
        super::super::choose::scatter_reduce(self, dim.int(), ids, src, reduce, options.include_self, CallSite::here())
    }

    /// The first element of each run of equal elements, in order. The call waits for the number of runs.
    ///
    /// ```text
    /// unique_consecutive(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn unique_consecutive(&self) -> Result<Tensor> {
        super::super::choose::runs(self, CallSite::here())
    }

    /// The indices that sort each line along `dim`: those of `sort`.
    ///
    /// ```text
    /// argsort(Tensor x, Int dim=-1, Bool descending=false, *, Bool stable=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn argsort(&self, dim: impl IntLike, descending: bool) -> Result<Tensor> {
        super::super::sort::argsort(self, dim.int(), descending, false, CallSite::here())
    }

    /// [`Tensor::argsort`](crate::Tensor::argsort) with its options.
    #[track_caller]
    pub fn argsort_with(
        &self,
        dim: impl IntLike,
        descending: bool,
        options: &crate::functional::ArgsortOptions,
    ) -> Result<Tensor> {
        super::super::sort::argsort(self, dim.int(), descending, options.stable, CallSite::here())
    }

    /// x sorted along its first dim.
    ///
    /// ```text
    /// msort(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn msort(&self) -> Result<Tensor> {
        super::super::sort::msort(self, CallSite::here())
    }

    /// `searchsorted` of the elements of x in one sorted sequence of boundaries.
    ///
    /// ```text
    /// bucketize(Tensor x, Tensor boundaries, *, Bool out_int32=false, Bool right=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn bucketize(&self, boundaries: &Tensor) -> Result<Tensor> {
        super::super::count::bucketize(self, boundaries, false, false, CallSite::here())
    }

    /// [`Tensor::bucketize`](crate::Tensor::bucketize) with its options.
    #[track_caller]
    pub fn bucketize_with(
        &self,
        boundaries: &Tensor,
        options: &crate::functional::BucketizeOptions,
    ) -> Result<Tensor> {
        super::super::count::bucketize(self, boundaries, options.out_int32, options.right, CallSite::here())
    }

    /// How often each number from 0 on occurs in a list of integers, at least up to `minlength`; with `weights` the sums of what stands
    /// beside each. Counts are i64, sums f32 of f32 and f64 of anything else. The call waits for the greatest number, which decides the
    /// length.
    ///
    /// ```text
    /// bincount(Tensor x, *, Tensor? weights, Int minlength=0) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1i64, 3, 1], [3], Device::Cpu)?;
    /// assert_eq!(x.bincount()?.to_vec::<i64>()?, [0, 2, 0, 1]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If x is not a list of integers or one of them is negative; in a dry run.
    #[track_caller]
    pub fn bincount(&self) -> Result<Tensor> {
        super::super::count::bincount(self, None, 0, CallSite::here())
    }

    /// [`Tensor::bincount`](crate::Tensor::bincount) with its options.
    #[track_caller]
    pub fn bincount_with(&self, options: &crate::functional::BincountOptions) -> Result<Tensor> {
        super::super::count::bincount(self, options.weights.as_ref(), options.minlength, CallSite::here())
    }

    /// How many elements lie in each of `bins` equal intervals from `min` to `max`, which belongs to the last one. Where both are the same,
    /// they are the smallest and the largest element, for which the call waits. Other elements, and NaN, are not counted. The result has
    /// the dtype of x.
    ///
    /// ```text
    /// histc(Tensor x, Int bins=100, Float min=0.0, Float max=0.0) -> Tensor
    /// ```
    #[track_caller]
    pub fn histc(&self, bins: impl IntLike, min: f64, max: f64) -> Result<Tensor> {
        super::super::count::histc(self, bins.int(), min, max, CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("masked_select(Tensor x, Tensor mask) -> Tensor", |b| Ok(vec![super::super::select::masked_select(b.given(0)?, b.given(1)?, b.site)?])),
    ("gather(Tensor x, Int dim, Tensor ids) -> Tensor", |b| Ok(vec![super::super::gather::gather(b.given(0)?, b.int(1)?, b.given(2)?, b.site)?])),
    ("take_along_dim(Tensor x, Tensor ids, Int dim) -> Tensor", |b| Ok(vec![super::super::gather::take_along_dim(b.given(0)?, b.given(1)?, b.int(2)?, b.site)?])),
    ("index_select(Tensor x, Int dim, Tensor ids) -> Tensor", |b| Ok(vec![super::super::gather::index_select(b.given(0)?, b.int(1)?, b.given(2)?, b.site)?])),
    ("scatter(Tensor x, Int dim, Tensor ids, Tensor src) -> Tensor", |b| Ok(vec![super::super::gather::scatter(b.given(0)?, b.int(1)?, b.given(2)?, b.given(3)?, b.site)?])),
    ("scatter_add(Tensor x, Int dim, Tensor ids, Tensor src) -> Tensor", |b| Ok(vec![super::super::gather::scatter_add(b.given(0)?, b.int(1)?, b.given(2)?, b.given(3)?, b.site)?])),
    ("index_add(Tensor x, Int dim, Tensor ids, Tensor src, *, Scalar alpha=1) -> Tensor", |b| Ok(vec![super::super::gather::index_add(b.given(0)?, b.int(1)?, b.given(2)?, b.given(3)?, b.scalar(4)?, b.site)?])),
    ("index_copy(Tensor x, Int dim, Tensor ids, Tensor src) -> Tensor", |b| Ok(vec![super::super::gather::index_copy(b.given(0)?, b.int(1)?, b.given(2)?, b.given(3)?, b.site)?])),
    ("max(Tensor x, Int dim, Bool keepdim=false) -> (Tensor values, Tensor indices)", |b| super::super::gather::max(b.given(0)?, b.int(1)?, b.bool(2)?, b.site)),
    ("min(Tensor x, Int dim, Bool keepdim=false) -> (Tensor values, Tensor indices)", |b| super::super::gather::min(b.given(0)?, b.int(1)?, b.bool(2)?, b.site)),
    ("index_reduce(Tensor x, Int dim, Tensor ids, Tensor src, String reduce, *, Bool include_self=true) -> Tensor", |b| Ok(vec![super::super::by_place::index_reduce(b.given(0)?, b.int(1)?, b.given(2)?, b.given(3)?, b.text(4)?, b.bool(5)?, b.site)?])),
    ("put(Tensor x, Tensor ids, Tensor src, Bool accumulate=false) -> Tensor", |b| Ok(vec![super::super::by_place::put(b.given(0)?, b.given(1)?, b.given(2)?, b.bool(3)?, b.site)?])),
    ("diagonal_scatter(Tensor x, Tensor src, Int offset=0, Int dim1=0, Int dim2=1) -> Tensor", |b| Ok(vec![super::super::by_place::diagonal_scatter(b.given(0)?, b.given(1)?, b.int(2)?, b.int(3)?, b.int(4)?, b.site)?])),
    ("renorm(Tensor x, Float p, Int dim, Float maxnorm) -> Tensor", |b| Ok(vec![super::super::by_place::renorm(b.given(0)?, b.float(1)?, b.int(2)?, b.float(3)?, b.site)?])),
    ("nanmedian(Tensor x, Int dim, Bool keepdim=false) -> (Tensor values, Tensor indices)", |b| super::super::by_place::nanmedian(b.given(0)?, b.int(1)?, b.bool(2)?, b.site)),
    ("take(Tensor x, Tensor ids) -> Tensor", |b| Ok(vec![super::super::choose::take(b.given(0)?, b.given(1)?, b.site)?])),
    ("index_fill(Tensor x, Int dim, Tensor ids, Scalar value) -> Tensor", |b| Ok(vec![super::super::choose::index_fill(b.given(0)?, b.int(1)?, b.given(2)?, b.scalar(3)?, b.site)?])),
    ("masked_scatter(Tensor x, Tensor mask, Tensor src) -> Tensor", |b| Ok(vec![super::super::choose::masked_scatter(b.given(0)?, b.given(1)?, b.given(2)?, b.site)?])),
    ("scatter_reduce(Tensor x, Int dim, Tensor ids, Tensor src, String reduce, *, Bool include_self=true) -> Tensor", |b| Ok(vec![super::super::choose::scatter_reduce(b.given(0)?, b.int(1)?, b.given(2)?, b.given(3)?, b.text(4)?, b.bool(5)?, b.site)?])),
    ("unique_consecutive(Tensor x) -> Tensor", |b| Ok(vec![super::super::choose::runs(b.given(0)?, b.site)?])),
    ("unique_consecutive(Tensor x, *, Bool return_inverse=false, Bool return_counts=false) -> TensorTuple", |b| super::super::choose::unique_consecutive(b.given(0)?, b.bool(1)?, b.bool(2)?, b.site)),
    ("unravel_index(Tensor ids, IntList shape) -> TensorTuple", |b| super::super::choose::unravel_index(b.given(0)?, b.ints(1)?, b.site)),
    ("argsort(Tensor x, Int dim=-1, Bool descending=false, *, Bool stable=false) -> Tensor", |b| Ok(vec![super::super::sort::argsort(b.given(0)?, b.int(1)?, b.bool(2)?, b.bool(3)?, b.site)?])),
    ("msort(Tensor x) -> Tensor", |b| Ok(vec![super::super::sort::msort(b.given(0)?, b.site)?])),
    ("median(Tensor x) -> Tensor", |b| Ok(vec![super::super::sort::median_of_all(b.given(0)?, b.site)?])),
    ("bucketize(Tensor x, Tensor boundaries, *, Bool out_int32=false, Bool right=false) -> Tensor", |b| Ok(vec![super::super::count::bucketize(b.given(0)?, b.given(1)?, b.bool(2)?, b.bool(3)?, b.site)?])),
    ("bincount(Tensor x, *, Tensor? weights, Int minlength=0) -> Tensor", |b| Ok(vec![super::super::count::bincount(b.given(0)?, b.tensor(1), b.int(2)?, b.site)?])),
    ("histc(Tensor x, Int bins=100, Float min=0.0, Float max=0.0) -> Tensor", |b| Ok(vec![super::super::count::histc(b.given(0)?, b.int(1)?, b.float(2)?, b.float(3)?, b.site)?])),
    ("unique(Tensor x, *, Bool sorted=true, Bool return_inverse=false, Bool return_counts=false) -> TensorTuple", |b| super::super::count::unique_of(b.given(0)?, b.bool(1)?, b.bool(2)?, b.bool(3)?, b.site)),
];
