//! Shapes: made by `cargo xtask codegen` from the texts of the functions; do not edit.

use crate::error::{CallSite, Result};
use crate::functional::{IntLike, IntList, IntoTarget, invoke1, op};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::{SmallVec, smallvec};
use std::borrow::Borrow;

/// Options of [`Tensor::repeat_interleave_with`](crate::Tensor::repeat_interleave_with).
#[derive(Clone, Debug, Default)]
pub struct RepeatInterleaveOptions {
    /// `Int? dim`. Not given by default.
    pub dim: Option<i64>,
}

/// Options of [`functional::meshgrid_with`](crate::functional::meshgrid_with).
#[derive(Clone, Debug)]
pub struct MeshgridOptions {
    /// `String indexing="ij"`. `"ij"` by default.
    pub indexing: &'static str,
}

impl Default for MeshgridOptions {
    fn default() -> MeshgridOptions {
        MeshgridOptions {
            indexing: "ij",
        }
    }
}

/// Options of [`functional::tril_indices_with`](crate::functional::tril_indices_with).
#[derive(Clone, Debug, Default)]
pub struct TrilIndicesOptions {
    /// `Int offset=0`. `0` by default.
    pub offset: i64,
}

/// Options of [`functional::triu_indices_with`](crate::functional::triu_indices_with).
#[derive(Clone, Debug, Default)]
pub struct TriuIndicesOptions {
    /// `Int offset=0`. `0` by default.
    pub offset: i64,
}

/// Options of [`Tensor::pad_with`](crate::Tensor::pad_with).
#[derive(Clone, Debug)]
pub struct PadOptions {
    /// `String mode="constant"`. `"constant"` by default.
    pub mode: &'static str,
    /// `Scalar value=0`. `Scalar::Int(0)` by default.
    pub value: Scalar,
}

impl Default for PadOptions {
    fn default() -> PadOptions {
        PadOptions {
            mode: "constant",
            value: Scalar::Int(0),
        }
    }
}

/// The tensors one after another along a dim. Their other sizes must be equal. An empty list is left out, as a program may begin with one.
///
/// ```text
/// cat(TensorTuple xs, Int dim=0) -> Tensor
/// ```
///
/// ```
/// use oflow::prelude::*;
/// let parts = arange(6, Device::Cpu)?.split(4, 0)?;
/// assert_eq!(cat(&parts, 0)?.shape(), [6]);
/// assert_eq!(cat([&parts[1], &parts[0]], 0)?.to_vec::<i64>()?, [4, 5, 0, 1, 2, 3]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn cat<T: Borrow<Tensor>>(xs: impl AsRef<[T]>, dim: impl IntLike) -> Result<Tensor> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::shape::cat(&xs, dim.int(), CallSite::here())
}

/// Tensors of one shape along a new dim at position `dim`.
///
/// ```text
/// stack(TensorTuple xs, Int dim=0) -> Tensor
/// ```
#[track_caller]
pub fn stack<T: Borrow<Tensor>>(xs: impl AsRef<[T]>, dim: impl IntLike) -> Result<Tensor> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::shape::stack(&xs, dim.int(), CallSite::here())
}

/// The same bytes as elements of another dtype, without gradient, in the same memory. Where the elements have another size, so has the last dim.
///
/// ```text
/// view(Tensor x, DataType dtype) -> Tensor
/// ```
///
/// # Errors
/// If the last dim does not divide, is split, or its elements do not lie side by side; if a dtype is registered, or the new one is bool; in a graph.
#[track_caller]
pub fn view_dtype(x: &Tensor, dtype: DType) -> Result<Tensor> {
    super::super::views::view_dtype(x, dtype, CallSite::here())
}

/// Parts of a dim with these sizes, which add up to its size.
///
/// ```text
/// split(Tensor x, IntList sizes, Int dim=0) -> TensorTuple
/// ```
#[track_caller]
pub fn split_sizes(x: &Tensor, sizes: impl IntList, dim: impl IntLike) -> Result<Vec<Tensor>> {
    super::super::views::split_sizes(x, &sizes.ints(), dim.int(), CallSite::here())
}

/// Without those of the dims that have size 1.
///
/// ```text
/// squeeze(Tensor x, IntList dims) -> Tensor
/// ```
#[track_caller]
pub fn squeeze_dims(x: &Tensor, dims: impl IntList) -> Result<Tensor> {
    super::super::views::squeeze_dims(x, &dims.ints(), CallSite::here())
}

/// Tensors of one dim as coordinates of a grid: output i varies along dim i. With the indexing `xy`, the first two dims are
/// exchanged.
///
/// ```text
/// meshgrid(TensorTuple xs, *, String indexing="ij") -> TensorTuple
/// ```
#[track_caller]
pub fn meshgrid<T: Borrow<Tensor>>(xs: impl AsRef<[T]>) -> Result<Vec<Tensor>> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::arrange::meshgrid(&xs, "ij", CallSite::here())
}

/// [`functional::meshgrid`](crate::functional::meshgrid) with its options.
#[track_caller]
pub fn meshgrid_with<T: Borrow<Tensor>>(
    xs: impl AsRef<[T]>,
    options: &crate::functional::MeshgridOptions,
) -> Result<Vec<Tensor>> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::arrange::meshgrid(&xs, options.indexing, CallSite::here())
}

/// Tensors side by side: along dim 1, or dim 0 where they have one dim.
///
/// ```text
/// hstack(TensorTuple xs) -> Tensor
/// ```
#[track_caller]
pub fn hstack<T: Borrow<Tensor>>(xs: impl AsRef<[T]>) -> Result<Tensor> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::arrange::hstack(&xs, CallSite::here())
}

/// Tensors as rows: along dim 0; tensors of one dim are rows of a matrix.
///
/// ```text
/// vstack(TensorTuple xs) -> Tensor
/// ```
#[track_caller]
pub fn vstack<T: Borrow<Tensor>>(xs: impl AsRef<[T]>) -> Result<Tensor> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::arrange::vstack(&xs, CallSite::here())
}

/// The parts of a dim between these places. Negative ones count from the end; a part that ends before it begins is empty.
///
/// ```text
/// tensor_split(Tensor x, IntList indices, Int dim=0) -> TensorTuple
/// ```
#[track_caller]
pub fn tensor_split_at(x: &Tensor, indices: impl IntList, dim: impl IntLike) -> Result<Vec<Tensor>> {
    super::super::pieces::tensor_split_at(x, &indices.ints(), dim.int(), CallSite::here())
}

/// Tensors as columns of a matrix: those of one dim become one column each, the others are put side by side.
///
/// ```text
/// column_stack(TensorTuple xs) -> Tensor
/// ```
#[track_caller]
pub fn column_stack<T: Borrow<Tensor>>(xs: impl AsRef<[T]>) -> Result<Tensor> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::pieces::column_stack(&xs, CallSite::here())
}

/// Tensors behind each other along dim 2; those of fewer dims get dims of size 1.
///
/// ```text
/// dstack(TensorTuple xs) -> Tensor
/// ```
#[track_caller]
pub fn dstack<T: Borrow<Tensor>>(xs: impl AsRef<[T]>) -> Result<Tensor> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::pieces::dstack(&xs, CallSite::here())
}

/// A matrix with these matrices along its diagonal and zeros elsewhere. A list is a row, a number a matrix of one element.
///
/// ```text
/// block_diag(TensorTuple xs) -> Tensor
/// ```
#[track_caller]
pub fn block_diag<T: Borrow<Tensor>>(xs: impl AsRef<[T]>) -> Result<Tensor> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::pieces::block_diag(&xs, CallSite::here())
}

/// Tensors repeated up to their common shape.
///
/// ```text
/// broadcast_tensors(TensorTuple xs) -> TensorTuple
/// ```
#[track_caller]
pub fn broadcast_tensors<T: Borrow<Tensor>>(xs: impl AsRef<[T]>) -> Result<Vec<Tensor>> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::pieces::broadcast_tensors(&xs, CallSite::here())
}

/// All combinations of an element of each list: the rows of a matrix, the last list fastest. Of one list its elements.
///
/// ```text
/// cartesian_prod(TensorTuple xs) -> Tensor
/// ```
#[track_caller]
pub fn cartesian_prod<T: Borrow<Tensor>>(xs: impl AsRef<[T]>) -> Result<Tensor> {
    let xs: SmallVec<[&Tensor; 8]> = xs.as_ref().iter().map(|t| t.borrow()).collect();
    super::super::pieces::cartesian_prod(&xs, CallSite::here())
}

/// Where the elements on and below a diagonal of a matrix are: a row of row numbers and a row of column numbers.
///
/// ```text
/// tril_indices(Int rows, Int columns, Target target, *, Int offset=0, DataType dtype=i64) -> Tensor
/// ```
#[track_caller]
pub fn tril_indices(rows: impl IntLike, columns: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::pieces::tril_indices(rows.int(), columns.int(), &target, 0, CallSite::here())
}

/// [`functional::tril_indices`](crate::functional::tril_indices) with its options.
#[track_caller]
pub fn tril_indices_with(
    rows: impl IntLike,
    columns: impl IntLike,
    target: impl IntoTarget,
    options: &crate::functional::TrilIndicesOptions,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::pieces::tril_indices(rows.int(), columns.int(), &target, options.offset, CallSite::here())
}

/// Where the elements on and above a diagonal of a matrix are: a row of row numbers and a row of column numbers.
///
/// ```text
/// triu_indices(Int rows, Int columns, Target target, *, Int offset=0, DataType dtype=i64) -> Tensor
/// ```
#[track_caller]
pub fn triu_indices(rows: impl IntLike, columns: impl IntLike, target: impl IntoTarget) -> Result<Tensor> {
    let target = target.into_target();
    super::super::pieces::triu_indices(rows.int(), columns.int(), &target, 0, CallSite::here())
}

/// [`functional::triu_indices`](crate::functional::triu_indices) with its options.
#[track_caller]
pub fn triu_indices_with(
    rows: impl IntLike,
    columns: impl IntLike,
    target: impl IntoTarget,
    options: &crate::functional::TriuIndicesOptions,
) -> Result<Tensor> {
    let target = target.into_target();
    super::super::pieces::triu_indices(rows.int(), columns.int(), &target, options.offset, CallSite::here())
}

/// The parts along dim 1 between these places, or along dim 0 of a tensor with one dim.
///
/// ```text
/// hsplit(Tensor x, IntList indices) -> TensorTuple
/// ```
#[track_caller]
pub fn hsplit_at(x: &Tensor, indices: impl IntList) -> Result<Vec<Tensor>> {
    super::super::pieces::hsplit_at(x, &indices.ints(), CallSite::here())
}

/// The parts along dim 0 between these places.
///
/// ```text
/// vsplit(Tensor x, IntList indices) -> TensorTuple
/// ```
#[track_caller]
pub fn vsplit_at(x: &Tensor, indices: impl IntList) -> Result<Vec<Tensor>> {
    super::super::pieces::vsplit_at(x, &indices.ints(), CallSite::here())
}

/// The parts along dim 2 between these places.
///
/// ```text
/// dsplit(Tensor x, IntList indices) -> TensorTuple
/// ```
#[track_caller]
pub fn dsplit_at(x: &Tensor, indices: impl IntList) -> Result<Vec<Tensor>> {
    super::super::pieces::dsplit_at(x, &indices.ints(), CallSite::here())
}

impl Tensor {
    /// The dims in the order `dims`.
    ///
    /// ```text
    /// permute(Tensor x, IntList dims) -> Tensor
    /// ```
    #[track_caller]
    pub fn permute(&self, dims: impl IntList) -> Result<Tensor> {
        invoke1(op!("permute"), &[Some(self)], smallvec![AttrValue::Ints(dims.ints())], smallvec![], CallSite::here())
    }

    /// The diagonal of two dims, as the last dim of the result. A positive offset lies above the main diagonal.
    ///
    /// ```text
    /// diagonal(Tensor x, Int offset=0, Int dim1=0, Int dim2=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn diagonal(&self, offset: impl IntLike, dim1: impl IntLike, dim2: impl IntLike) -> Result<Tensor> {
        invoke1(op!("diagonal"), &[Some(self)], smallvec![offset.int().into(), dim1.int().into(), dim2.int().into()], smallvec![], CallSite::here())
    }

    /// Zeros above a diagonal of the last two dims. Diagonal 0 is the main one; positive ones lie above it.
    ///
    /// ```text
    /// tril(Tensor x, Int diagonal=0) -> Tensor
    /// ```
    #[track_caller]
    pub fn tril(&self, diagonal: impl IntLike) -> Result<Tensor> {
        invoke1(op!("tril"), &[Some(self)], smallvec![diagonal.int().into()], smallvec![], CallSite::here())
    }

    /// Zeros below a diagonal of the last two dims. Diagonal 0 is the main one; positive ones lie above it.
    ///
    /// ```text
    /// triu(Tensor x, Int diagonal=0) -> Tensor
    /// ```
    #[track_caller]
    pub fn triu(&self, diagonal: impl IntLike) -> Result<Tensor> {
        invoke1(op!("triu"), &[Some(self)], smallvec![diagonal.int().into()], smallvec![], CallSite::here())
    }

    /// The same elements, in row-major order, as another shape. One size may be -1: it follows from the others.
    ///
    /// ```text
    /// reshape(Tensor x, IntList shape) -> Tensor
    /// ```
    #[track_caller]
    pub fn reshape(&self, shape: impl IntList) -> Result<Tensor> {
        super::super::shape::reshape(self, &shape.ints(), CallSite::here())
    }

    /// The dims from `start` to `end`, inclusive, as one. Negative dims count from the end.
    ///
    /// ```text
    /// flatten(Tensor x, Int start=0, Int end=-1) -> Tensor
    /// ```
    #[track_caller]
    pub fn flatten(&self, start: impl IntLike, end: impl IntLike) -> Result<Tensor> {
        super::super::shape::flatten(self, start.int(), end.int(), CallSite::here())
    }

    /// Exchanges two dims.
    ///
    /// ```text
    /// transpose(Tensor x, Int dim0, Int dim1) -> Tensor
    /// ```
    #[track_caller]
    pub fn transpose(&self, dim0: impl IntLike, dim1: impl IntLike) -> Result<Tensor> {
        super::super::shape::transpose(self, dim0.int(), dim1.int(), CallSite::here())
    }

    /// Exchanges the last two dims: the transpose of a matrix.
    ///
    /// ```text
    /// t(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn t(&self) -> Result<Tensor> {
        super::super::shape::t(self, CallSite::here())
    }

    /// Dims of size 1 repeated up to `shape`; -1 keeps the size of a dim.
    ///
    /// ```text
    /// expand(Tensor x, IntList shape) -> Tensor
    /// ```
    #[track_caller]
    pub fn expand(&self, shape: impl IntList) -> Result<Tensor> {
        super::super::shape::expand(self, &shape.ints(), CallSite::here())
    }

    /// A dim of size 1 more, at position `dim`.
    ///
    /// ```text
    /// unsqueeze(Tensor x, Int dim) -> Tensor
    /// ```
    #[track_caller]
    pub fn unsqueeze(&self, dim: impl IntLike) -> Result<Tensor> {
        super::super::shape::unsqueeze(self, dim.int(), CallSite::here())
    }

    /// Without `dim`, if its size is 1; otherwise the tensor unchanged, as in PyTorch.
    ///
    /// ```text
    /// squeeze(Tensor x, Int dim) -> Tensor
    /// ```
    #[track_caller]
    pub fn squeeze(&self, dim: impl IntLike) -> Result<Tensor> {
        super::super::shape::squeeze(self, dim.int(), CallSite::here())
    }

    /// Elements `start`, `start + step`, … below `end` of a dim. Negative bounds count from the end; bounds are clamped to the size.
    ///
    /// ```text
    /// slice(Tensor x, Int dim, Int start, Int end, Int step=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn slice(
        &self,
        dim: impl IntLike,
        start: impl IntLike,
        end: impl IntLike,
        step: impl IntLike,
    ) -> Result<Tensor> {
        super::super::shape::slice(self, dim.int(), start.int(), end.int(), step.int(), CallSite::here())
    }

    /// `len` elements of a dim from `start` on.
    ///
    /// ```text
    /// narrow(Tensor x, Int dim, Int start, Int len) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If `start..start + len` is not within the size of the dim.
    #[track_caller]
    pub fn narrow(&self, dim: impl IntLike, start: impl IntLike, len: impl IntLike) -> Result<Tensor> {
        super::super::shape::narrow(self, dim.int(), start.int(), len.int(), CallSite::here())
    }

    /// The element `index` along `dim`, which is removed. A negative index counts from the end.
    ///
    /// ```text
    /// select(Tensor x, Int dim, Int index) -> Tensor
    /// ```
    #[track_caller]
    pub fn select(&self, dim: impl IntLike, index: impl IntLike) -> Result<Tensor> {
        super::super::shape::select(self, dim.int(), index.int(), CallSite::here())
    }

    /// Parts of a dim with `size` elements; the last part may be smaller.
    ///
    /// ```text
    /// split(Tensor x, Int size, Int dim=0) -> TensorTuple
    /// ```
    #[track_caller]
    pub fn split(&self, size: impl IntLike, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::shape::split(self, size.int(), dim.int(), CallSite::here())
    }

    /// At most `parts` parts of a dim with equal size (the last may be smaller), as PyTorch's `chunk`.
    ///
    /// ```text
    /// chunk(Tensor x, Int parts, Int dim=0) -> TensorTuple
    /// ```
    #[track_caller]
    pub fn chunk(&self, parts: impl IntLike, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::shape::chunk(self, parts.int(), dim.int(), CallSite::here())
    }

    /// The same elements as another shape, without a copy: a view. One size may be -1.
    ///
    /// ```text
    /// view(Tensor x, IntList shape) -> Tensor
    /// ```
    ///
    /// # Errors
    /// As `reshape`; and where a local tensor lies in memory in an order of which the shape is no view.
    #[track_caller]
    pub fn view(&self, shape: impl IntList) -> Result<Tensor> {
        super::super::views::view(self, &shape.ints(), CallSite::here())
    }

    /// `view` with the shape of another tensor.
    ///
    /// ```text
    /// view_as(Tensor x, Tensor other) -> Tensor
    /// ```
    #[track_caller]
    pub fn view_as(&self, other: &Tensor) -> Result<Tensor> {
        super::super::views::view_as(self, other, CallSite::here())
    }

    /// `reshape` to the shape of another tensor.
    ///
    /// ```text
    /// reshape_as(Tensor x, Tensor other) -> Tensor
    /// ```
    #[track_caller]
    pub fn reshape_as(&self, other: &Tensor) -> Result<Tensor> {
        super::super::views::reshape_as(self, other, CallSite::here())
    }

    /// `expand` to the shape of another tensor.
    ///
    /// ```text
    /// expand_as(Tensor x, Tensor other) -> Tensor
    /// ```
    #[track_caller]
    pub fn expand_as(&self, other: &Tensor) -> Result<Tensor> {
        super::super::views::expand_as(self, other, CallSite::here())
    }

    /// Dims of size 1 repeated up to a shape.
    ///
    /// ```text
    /// broadcast_to(Tensor x, IntList shape) -> Tensor
    /// ```
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntList) -> Result<Tensor> {
        super::super::views::broadcast_to(self, &shape.ints(), CallSite::here())
    }

    /// All elements as one dim.
    ///
    /// ```text
    /// ravel(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn ravel(&self) -> Result<Tensor> {
        super::super::views::ravel(self, CallSite::here())
    }

    /// The tensor in memory in row-major order: itself where it is, else a copy.
    ///
    /// ```text
    /// contiguous(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn contiguous(&self) -> Result<Tensor> {
        super::super::views::contiguous(self, CallSite::here())
    }

    /// x summed over the dims along which a tensor of that shape would be repeated to have the shape of x.
    ///
    /// ```text
    /// sum_to_size(Tensor x, IntList size) -> Tensor
    /// ```
    #[track_caller]
    pub fn sum_to_size(&self, size: impl IntList) -> Result<Tensor> {
        super::super::views::sum_to_size(self, &size.ints(), CallSite::here())
    }

    /// The dims `source` at the places `destination`; the others keep their order.
    ///
    /// ```text
    /// movedim(Tensor x, IntList source, IntList destination) -> Tensor
    /// ```
    ///
    /// # Errors
    /// If a dim is named twice, or the lists differ in length.
    #[track_caller]
    pub fn movedim(&self, source: impl IntList, destination: impl IntList) -> Result<Tensor> {
        super::super::arrange::movedim(self, &source.ints(), &destination.ints(), CallSite::here())
    }

    /// The dim `dim` as several dims of these sizes. One size may be -1: it follows from the others.
    ///
    /// ```text
    /// unflatten(Tensor x, Int dim, IntList sizes) -> Tensor
    /// ```
    #[track_caller]
    pub fn unflatten(&self, dim: impl IntLike, sizes: impl IntList) -> Result<Tensor> {
        super::super::arrange::unflatten(self, dim.int(), &sizes.ints(), CallSite::here())
    }

    /// The tensor repeated along each dim. More counts than dims make new dims in front.
    ///
    /// ```text
    /// repeat(Tensor x, IntList repeats) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(2, Device::Cpu)?;
    /// assert_eq!(x.repeat([2, 2])?.to_vec::<i64>()?, [0, 1, 0, 1, 0, 1, 0, 1]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// On fewer counts than dims, or a negative one.
    #[track_caller]
    pub fn repeat(&self, repeats: impl IntList) -> Result<Tensor> {
        super::super::arrange::repeat(self, &repeats.ints(), CallSite::here())
    }

    /// `repeat`, with 1 for the leading dims that have no count.
    ///
    /// ```text
    /// tile(Tensor x, IntList dims) -> Tensor
    /// ```
    #[track_caller]
    pub fn tile(&self, dims: impl IntList) -> Result<Tensor> {
        super::super::arrange::tile(self, &dims.ints(), CallSite::here())
    }

    /// Each element `repeats` times in a row along `dim`; without `dim`, of the flattened tensor.
    ///
    /// ```text
    /// repeat_interleave(Tensor x, Int repeats, *, Int? dim) -> Tensor
    /// ```
    #[track_caller]
    pub fn repeat_interleave(&self, repeats: impl IntLike) -> Result<Tensor> {
        super::super::arrange::repeat_interleave(self, repeats.int(), None, CallSite::here())
    }

    /// [`Tensor::repeat_interleave`](crate::Tensor::repeat_interleave) with its options.
    #[track_caller]
    pub fn repeat_interleave_with(
        &self,
        repeats: impl IntLike,
        options: &crate::functional::RepeatInterleaveOptions,
    ) -> Result<Tensor> {
        super::super::arrange::repeat_interleave(self, repeats.int(), options.dim, CallSite::here())
    }

    /// The slices along `dim`, without that dim.
    ///
    /// ```text
    /// unbind(Tensor x, Int dim=0) -> TensorTuple
    /// ```
    #[track_caller]
    pub fn unbind(&self, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::arrange::unbind(self, dim.int(), CallSite::here())
    }

    /// Elements moved by `shifts` places along `dims`; what leaves at the end comes in at the front. Without dims, the flattened tensor
    /// is rolled and keeps its shape.
    ///
    /// ```text
    /// roll(Tensor x, IntList shifts, IntList dims=[]) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(4, Device::Cpu)?;
    /// assert_eq!(x.roll(1, ())?.to_vec::<i64>()?, [3, 0, 1, 2]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn roll(&self, shifts: impl IntList, dims: impl IntList) -> Result<Tensor> {
        super::super::arrange::roll(self, &shifts.ints(), &dims.ints(), CallSite::here())
    }

    /// The plane of two dims turned by `k` quarters, from the first towards the second.
    ///
    /// ```text
    /// rot90(Tensor x, Int k=1, IntList dims=[0, 1]) -> Tensor
    /// ```
    #[track_caller]
    pub fn rot90(&self, k: impl IntLike, dims: impl IntList) -> Result<Tensor> {
        super::super::arrange::rot90(self, k.int(), &dims.ints(), CallSite::here())
    }

    /// The last dim as the diagonal of the two last dims of the result, with zeros elsewhere.
    ///
    /// ```text
    /// diag_embed(Tensor x, Int offset=0) -> Tensor
    /// ```
    #[track_caller]
    pub fn diag_embed(&self, offset: impl IntLike) -> Result<Tensor> {
        super::super::arrange::diag_embed(self, offset.int(), CallSite::here())
    }

    /// The diagonal of a matrix, or the matrix that has a vector on its diagonal.
    ///
    /// ```text
    /// diag(Tensor x, Int diagonal=0) -> Tensor
    /// ```
    #[track_caller]
    pub fn diag(&self, diagonal: impl IntLike) -> Result<Tensor> {
        super::super::arrange::diag(self, diagonal.int(), CallSite::here())
    }

    /// The sum of the diagonal of a matrix.
    ///
    /// ```text
    /// trace(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn trace(&self) -> Result<Tensor> {
        super::super::arrange::trace(self, CallSite::here())
    }

    /// `sections` parts of a dim, of sizes that differ by one at most: the first ones are the larger ones.
    ///
    /// ```text
    /// tensor_split(Tensor x, Int sections, Int dim=0) -> TensorTuple
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let parts = arange(5, Device::Cpu)?.tensor_split(3, 0)?;
    /// assert_eq!(parts.iter().map(|t| t.numel()).collect::<Vec<_>>(), [2, 2, 1]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn tensor_split(&self, sections: impl IntLike, dim: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::pieces::tensor_split(self, sections.int(), dim.int(), CallSite::here())
    }

    /// All elements as the diagonal of a matrix.
    ///
    /// ```text
    /// diagflat(Tensor x, Int offset=0) -> Tensor
    /// ```
    #[track_caller]
    pub fn diagflat(&self, offset: impl IntLike) -> Result<Tensor> {
        super::super::pieces::diagflat(self, offset.int(), CallSite::here())
    }

    /// Dim 1 from the end to the start: columns from right to left.
    ///
    /// ```text
    /// fliplr(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn fliplr(&self) -> Result<Tensor> {
        super::super::pieces::fliplr(self, CallSite::here())
    }

    /// Dim 0 from the end to the start: rows from the last to the first.
    ///
    /// ```text
    /// flipud(Tensor x) -> Tensor
    /// ```
    #[track_caller]
    pub fn flipud(&self) -> Result<Tensor> {
        super::super::pieces::flipud(self, CallSite::here())
    }

    /// x with `src` in the place of its slice `index` along `dim`.
    ///
    /// ```text
    /// select_scatter(Tensor x, Tensor src, Int dim, Int index) -> Tensor
    /// ```
    #[track_caller]
    pub fn select_scatter(&self, src: &Tensor, dim: impl IntLike, index: impl IntLike) -> Result<Tensor> {
        super::super::pieces::select_scatter(self, src, dim.int(), index.int(), CallSite::here())
    }

    /// x with `src` in the place of its slice `start`, `start + step`, … below `end` along `dim`.
    ///
    /// ```text
    /// slice_scatter(Tensor x, Tensor src, Int dim=0, Int? start, Int? end, Int step=1) -> Tensor
    /// ```
    #[track_caller]
    pub fn slice_scatter(
        &self,
        src: &Tensor,
        dim: impl IntLike,
        start: Option<i64>,
        end: Option<i64>,
        step: impl IntLike,
    ) -> Result<Tensor> {
        super::super::pieces::slice_scatter(self, src, dim.int(), start, end, step.int(), CallSite::here())
    }

    /// All choices of `r` elements of a list, as rows, in the order of their places; `with_replacement` an element may come again.
    ///
    /// ```text
    /// combinations(Tensor x, Int r=2, Bool with_replacement=false) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let pairs = arange(3, Device::Cpu)?.combinations(2, false)?;
    /// assert_eq!(pairs.to_vec::<i64>()?, [0, 1, 0, 2, 1, 2]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn combinations(&self, r: impl IntLike, with_replacement: bool) -> Result<Tensor> {
        super::super::pieces::combinations(self, r.int(), with_replacement, CallSite::here())
    }

    /// The powers of each element of a list, one row each: `columns` of them (as many as elements unless given), from the highest to
    /// the power 0, or with `increasing` the other way round.
    ///
    /// ```text
    /// vander(Tensor x, Int? columns, Bool increasing=false) -> Tensor
    /// ```
    #[track_caller]
    pub fn vander(&self, columns: Option<i64>, increasing: bool) -> Result<Tensor> {
        super::super::pieces::vander(self, columns, increasing, CallSite::here())
    }

    /// So many parts along dim 1, or along dim 0 of a tensor with one dim.
    ///
    /// ```text
    /// hsplit(Tensor x, Int sections) -> TensorTuple
    /// ```
    #[track_caller]
    pub fn hsplit(&self, sections: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::pieces::hsplit(self, sections.int(), CallSite::here())
    }

    /// So many parts along dim 0.
    ///
    /// ```text
    /// vsplit(Tensor x, Int sections) -> TensorTuple
    /// ```
    #[track_caller]
    pub fn vsplit(&self, sections: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::pieces::vsplit(self, sections.int(), CallSite::here())
    }

    /// So many parts along dim 2.
    ///
    /// ```text
    /// dsplit(Tensor x, Int sections) -> TensorTuple
    /// ```
    #[track_caller]
    pub fn dsplit(&self, sections: impl IntLike) -> Result<Vec<Tensor>> {
        super::super::pieces::dsplit(self, sections.int(), CallSite::here())
    }

    /// x with elements around it: `pad` has a number before and one after for the last dim, then for the one before it, and so on. The
    /// mode `constant` puts `value` there, and cuts where a number is negative; `reflect` mirrors the tensor at its first and last
    /// elements, `replicate` repeats these, and `circular` goes around: these three for at most 3 dims.
    ///
    /// ```text
    /// pad(Tensor x, IntList pad, *, String mode="constant", Scalar value=0) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(3, Device::Cpu)?;
    /// assert_eq!(x.pad([1, 2])?.to_vec::<i64>()?, [0, 0, 1, 2, 0, 0]);
    /// let reflect = oflow::functional::PadOptions { mode: "reflect", ..Default::default() };
    /// assert_eq!(x.pad_with([1, 2], &reflect)?.to_vec::<i64>()?, [1, 0, 1, 2, 1, 0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more numbers than dims have sides, or more elements are asked for than the mode can give: `reflect` has one less
    /// than the dim, `circular` as many as it.
    #[track_caller]
    pub fn pad(&self, pad: impl IntList) -> Result<Tensor> {
        super::super::image::pad(self, &pad.ints(), "constant", Scalar::Int(0), CallSite::here())
    }

    /// [`Tensor::pad`](crate::Tensor::pad) with its options.
    #[track_caller]
    pub fn pad_with(&self, pad: impl IntList, options: &crate::functional::PadOptions) -> Result<Tensor> {
        super::super::image::pad(self, &pad.ints(), options.mode, options.value, CallSite::here())
    }

    /// The windows of `size` elements of `dim`, which begin `step` elements apart; the elements of a window are the last dim of the result.
    ///
    /// ```text
    /// unfold(Tensor x, Int dim, Int size, Int step) -> Tensor
    /// ```
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(5, Device::Cpu)?;
    /// assert_eq!(x.unfold(0, 3, 2)?.to_vec::<i64>()?, [0, 1, 2, 2, 3, 4]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn unfold(&self, dim: impl IntLike, size: impl IntLike, step: impl IntLike) -> Result<Tensor> {
        super::super::image::unfold(self, dim.int(), size.int(), step.int(), CallSite::here())
    }
}

/// By name.
pub(super) const BY_NAME: &[super::ByName] = &[
    ("reshape(Tensor x, IntList shape) -> Tensor", |b| Ok(vec![super::super::shape::reshape(b.given(0)?, b.ints(1)?, b.site)?])),
    ("flatten(Tensor x, Int start=0, Int end=-1) -> Tensor", |b| Ok(vec![super::super::shape::flatten(b.given(0)?, b.int(1)?, b.int(2)?, b.site)?])),
    ("transpose(Tensor x, Int dim0, Int dim1) -> Tensor", |b| Ok(vec![super::super::shape::transpose(b.given(0)?, b.int(1)?, b.int(2)?, b.site)?])),
    ("t(Tensor x) -> Tensor", |b| Ok(vec![super::super::shape::t(b.given(0)?, b.site)?])),
    ("expand(Tensor x, IntList shape) -> Tensor", |b| Ok(vec![super::super::shape::expand(b.given(0)?, b.ints(1)?, b.site)?])),
    ("unsqueeze(Tensor x, Int dim) -> Tensor", |b| Ok(vec![super::super::shape::unsqueeze(b.given(0)?, b.int(1)?, b.site)?])),
    ("squeeze(Tensor x, Int dim) -> Tensor", |b| Ok(vec![super::super::shape::squeeze(b.given(0)?, b.int(1)?, b.site)?])),
    ("slice(Tensor x, Int dim, Int start, Int end, Int step=1) -> Tensor", |b| Ok(vec![super::super::shape::slice(b.given(0)?, b.int(1)?, b.int(2)?, b.int(3)?, b.int(4)?, b.site)?])),
    ("narrow(Tensor x, Int dim, Int start, Int len) -> Tensor", |b| Ok(vec![super::super::shape::narrow(b.given(0)?, b.int(1)?, b.int(2)?, b.int(3)?, b.site)?])),
    ("select(Tensor x, Int dim, Int index) -> Tensor", |b| Ok(vec![super::super::shape::select(b.given(0)?, b.int(1)?, b.int(2)?, b.site)?])),
    ("split(Tensor x, Int size, Int dim=0) -> TensorTuple", |b| super::super::shape::split(b.given(0)?, b.int(1)?, b.int(2)?, b.site)),
    ("chunk(Tensor x, Int parts, Int dim=0) -> TensorTuple", |b| super::super::shape::chunk(b.given(0)?, b.int(1)?, b.int(2)?, b.site)),
    ("cat(TensorTuple xs, Int dim=0) -> Tensor", |b| Ok(vec![super::super::shape::cat(&b.tensors(0)?.iter().collect::<Vec<_>>(), b.int(1)?, b.site)?])),
    ("stack(TensorTuple xs, Int dim=0) -> Tensor", |b| Ok(vec![super::super::shape::stack(&b.tensors(0)?.iter().collect::<Vec<_>>(), b.int(1)?, b.site)?])),
    ("view(Tensor x, IntList shape) -> Tensor", |b| Ok(vec![super::super::views::view(b.given(0)?, b.ints(1)?, b.site)?])),
    ("view(Tensor x, DataType dtype) -> Tensor", |b| Ok(vec![super::super::views::view_dtype(b.given(0)?, b.given_dtype(1)?, b.site)?])),
    ("view_as(Tensor x, Tensor other) -> Tensor", |b| Ok(vec![super::super::views::view_as(b.given(0)?, b.given(1)?, b.site)?])),
    ("reshape_as(Tensor x, Tensor other) -> Tensor", |b| Ok(vec![super::super::views::reshape_as(b.given(0)?, b.given(1)?, b.site)?])),
    ("expand_as(Tensor x, Tensor other) -> Tensor", |b| Ok(vec![super::super::views::expand_as(b.given(0)?, b.given(1)?, b.site)?])),
    ("broadcast_to(Tensor x, IntList shape) -> Tensor", |b| Ok(vec![super::super::views::broadcast_to(b.given(0)?, b.ints(1)?, b.site)?])),
    ("ravel(Tensor x) -> Tensor", |b| Ok(vec![super::super::views::ravel(b.given(0)?, b.site)?])),
    ("contiguous(Tensor x) -> Tensor", |b| Ok(vec![super::super::views::contiguous(b.given(0)?, b.site)?])),
    ("sum_to_size(Tensor x, IntList size) -> Tensor", |b| Ok(vec![super::super::views::sum_to_size(b.given(0)?, b.ints(1)?, b.site)?])),
    ("split(Tensor x, IntList sizes, Int dim=0) -> TensorTuple", |b| super::super::views::split_sizes(b.given(0)?, b.ints(1)?, b.int(2)?, b.site)),
    ("squeeze(Tensor x, IntList dims) -> Tensor", |b| Ok(vec![super::super::views::squeeze_dims(b.given(0)?, b.ints(1)?, b.site)?])),
    ("movedim(Tensor x, IntList source, IntList destination) -> Tensor", |b| Ok(vec![super::super::arrange::movedim(b.given(0)?, b.ints(1)?, b.ints(2)?, b.site)?])),
    ("unflatten(Tensor x, Int dim, IntList sizes) -> Tensor", |b| Ok(vec![super::super::arrange::unflatten(b.given(0)?, b.int(1)?, b.ints(2)?, b.site)?])),
    ("repeat(Tensor x, IntList repeats) -> Tensor", |b| Ok(vec![super::super::arrange::repeat(b.given(0)?, b.ints(1)?, b.site)?])),
    ("tile(Tensor x, IntList dims) -> Tensor", |b| Ok(vec![super::super::arrange::tile(b.given(0)?, b.ints(1)?, b.site)?])),
    ("repeat_interleave(Tensor x, Int repeats, *, Int? dim) -> Tensor", |b| Ok(vec![super::super::arrange::repeat_interleave(b.given(0)?, b.int(1)?, b.int(2).ok(), b.site)?])),
    ("unbind(Tensor x, Int dim=0) -> TensorTuple", |b| super::super::arrange::unbind(b.given(0)?, b.int(1)?, b.site)),
    ("roll(Tensor x, IntList shifts, IntList dims=[]) -> Tensor", |b| Ok(vec![super::super::arrange::roll(b.given(0)?, b.ints(1)?, b.ints(2)?, b.site)?])),
    ("rot90(Tensor x, Int k=1, IntList dims=[0, 1]) -> Tensor", |b| Ok(vec![super::super::arrange::rot90(b.given(0)?, b.int(1)?, b.ints(2)?, b.site)?])),
    ("meshgrid(TensorTuple xs, *, String indexing=\"ij\") -> TensorTuple", |b| super::super::arrange::meshgrid(&b.tensors(0)?.iter().collect::<Vec<_>>(), b.text(1)?, b.site)),
    ("diag_embed(Tensor x, Int offset=0) -> Tensor", |b| Ok(vec![super::super::arrange::diag_embed(b.given(0)?, b.int(1)?, b.site)?])),
    ("diag(Tensor x, Int diagonal=0) -> Tensor", |b| Ok(vec![super::super::arrange::diag(b.given(0)?, b.int(1)?, b.site)?])),
    ("trace(Tensor x) -> Tensor", |b| Ok(vec![super::super::arrange::trace(b.given(0)?, b.site)?])),
    ("hstack(TensorTuple xs) -> Tensor", |b| Ok(vec![super::super::arrange::hstack(&b.tensors(0)?.iter().collect::<Vec<_>>(), b.site)?])),
    ("vstack(TensorTuple xs) -> Tensor", |b| Ok(vec![super::super::arrange::vstack(&b.tensors(0)?.iter().collect::<Vec<_>>(), b.site)?])),
    ("tensor_split(Tensor x, Int sections, Int dim=0) -> TensorTuple", |b| super::super::pieces::tensor_split(b.given(0)?, b.int(1)?, b.int(2)?, b.site)),
    ("tensor_split(Tensor x, IntList indices, Int dim=0) -> TensorTuple", |b| super::super::pieces::tensor_split_at(b.given(0)?, b.ints(1)?, b.int(2)?, b.site)),
    ("column_stack(TensorTuple xs) -> Tensor", |b| Ok(vec![super::super::pieces::column_stack(&b.tensors(0)?.iter().collect::<Vec<_>>(), b.site)?])),
    ("dstack(TensorTuple xs) -> Tensor", |b| Ok(vec![super::super::pieces::dstack(&b.tensors(0)?.iter().collect::<Vec<_>>(), b.site)?])),
    ("block_diag(TensorTuple xs) -> Tensor", |b| Ok(vec![super::super::pieces::block_diag(&b.tensors(0)?.iter().collect::<Vec<_>>(), b.site)?])),
    ("diagflat(Tensor x, Int offset=0) -> Tensor", |b| Ok(vec![super::super::pieces::diagflat(b.given(0)?, b.int(1)?, b.site)?])),
    ("fliplr(Tensor x) -> Tensor", |b| Ok(vec![super::super::pieces::fliplr(b.given(0)?, b.site)?])),
    ("flipud(Tensor x) -> Tensor", |b| Ok(vec![super::super::pieces::flipud(b.given(0)?, b.site)?])),
    ("broadcast_tensors(TensorTuple xs) -> TensorTuple", |b| super::super::pieces::broadcast_tensors(&b.tensors(0)?.iter().collect::<Vec<_>>(), b.site)),
    ("select_scatter(Tensor x, Tensor src, Int dim, Int index) -> Tensor", |b| Ok(vec![super::super::pieces::select_scatter(b.given(0)?, b.given(1)?, b.int(2)?, b.int(3)?, b.site)?])),
    ("slice_scatter(Tensor x, Tensor src, Int dim=0, Int? start, Int? end, Int step=1) -> Tensor", |b| Ok(vec![super::super::pieces::slice_scatter(b.given(0)?, b.given(1)?, b.int(2)?, b.int(3).ok(), b.int(4).ok(), b.int(5)?, b.site)?])),
    ("cartesian_prod(TensorTuple xs) -> Tensor", |b| Ok(vec![super::super::pieces::cartesian_prod(&b.tensors(0)?.iter().collect::<Vec<_>>(), b.site)?])),
    ("combinations(Tensor x, Int r=2, Bool with_replacement=false) -> Tensor", |b| Ok(vec![super::super::pieces::combinations(b.given(0)?, b.int(1)?, b.bool(2)?, b.site)?])),
    ("vander(Tensor x, Int? columns, Bool increasing=false) -> Tensor", |b| Ok(vec![super::super::pieces::vander(b.given(0)?, b.int(1).ok(), b.bool(2)?, b.site)?])),
    ("tril_indices(Int rows, Int columns, Target target, *, Int offset=0, DataType dtype=i64) -> Tensor", |b| Ok(vec![super::super::pieces::tril_indices(b.int(0)?, b.int(1)?, &b.target_of(2, Some(4))?, b.int(3)?, b.site)?])),
    ("triu_indices(Int rows, Int columns, Target target, *, Int offset=0, DataType dtype=i64) -> Tensor", |b| Ok(vec![super::super::pieces::triu_indices(b.int(0)?, b.int(1)?, &b.target_of(2, Some(4))?, b.int(3)?, b.site)?])),
    ("hsplit(Tensor x, Int sections) -> TensorTuple", |b| super::super::pieces::hsplit(b.given(0)?, b.int(1)?, b.site)),
    ("hsplit(Tensor x, IntList indices) -> TensorTuple", |b| super::super::pieces::hsplit_at(b.given(0)?, b.ints(1)?, b.site)),
    ("vsplit(Tensor x, Int sections) -> TensorTuple", |b| super::super::pieces::vsplit(b.given(0)?, b.int(1)?, b.site)),
    ("vsplit(Tensor x, IntList indices) -> TensorTuple", |b| super::super::pieces::vsplit_at(b.given(0)?, b.ints(1)?, b.site)),
    ("dsplit(Tensor x, Int sections) -> TensorTuple", |b| super::super::pieces::dsplit(b.given(0)?, b.int(1)?, b.site)),
    ("dsplit(Tensor x, IntList indices) -> TensorTuple", |b| super::super::pieces::dsplit_at(b.given(0)?, b.ints(1)?, b.site)),
    ("pad(Tensor x, IntList pad, *, String mode=\"constant\", Scalar value=0) -> Tensor", |b| Ok(vec![super::super::image::pad(b.given(0)?, b.ints(1)?, b.text(2)?, b.scalar(3)?, b.site)?])),
    ("unfold(Tensor x, Int dim, Int size, Int step) -> Tensor", |b| Ok(vec![super::super::image::unfold(b.given(0)?, b.int(1)?, b.int(2)?, b.int(3)?, b.site)?])),
];
