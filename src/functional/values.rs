//! Properties of a tensor, by name. In Rust these are methods of [`Tensor`](crate::Tensor).

use crate::error::{Error, Result};
use crate::ops::{AttrValue, TensorType, broadcast_shapes, normalize_dim, promote_types, promoted};
use crate::tensor::Tensor;
use oflow_kernels::{DType, Dims, Scalar};

fn is_signed(d: DType) -> bool {
    d != DType::Bool && !d.is_unsigned()
}

/// The dtype of a number by itself.
fn of_number(s: Scalar) -> DType {
    DType::Bool.promote_scalar(s.kind())
}

by_name! {
    DTYPES, "Properties", Value;
    /// The dtype that a sum of these has. Tensors without dims count only if they are of a higher kind.
    "result_type(Tensor tensor1, Tensor tensor2) -> DataType" = |b| {
        let types = [0, 1].map(|i| b.given(i).map(|t| TensorType::new(t.shape(), t.dtype())));
        let [one, two] = types;
        Ok(promote_types([one?, two?].iter())?.into())
    };
    /// The dtype that a sum of a tensor and a number has.
    "result_type(Tensor tensor, Scalar scalar) -> DataType" = |b| Ok(b.given(0)?.dtype().promote_scalar(b.scalar(1)?.kind()).into());
    /// The dtype that a sum of a number and a tensor has.
    "result_type(Scalar scalar, Tensor tensor) -> DataType" = |b| Ok(b.given(1)?.dtype().promote_scalar(b.scalar(0)?.kind()).into());
    /// The dtype that a sum of two numbers has.
    "result_type(Scalar scalar1, Scalar scalar2) -> DataType" = |b| Ok(of_number(b.scalar(0)?).promote_scalar(b.scalar(1)?.kind()).into());
    /// The smallest dtype to which both can be converted: that of a sum of tensors of these.
    "promote_types(DataType type1, DataType type2) -> DataType" = |b| Ok(promoted(b.given_dtype(0)?, b.given_dtype(1)?)?.into());
    /// Whether a result of the first dtype may be written to a tensor of the second: to one of the same or of a higher kind.
    "can_cast(DataType from_, DataType to) -> Bool" = |b| {
        let (from, to) = (b.given_dtype(0)?.kind(), b.given_dtype(1)?.kind());
        Ok((from <= to).into())
    };
}

/// The size of a dim. A tensor without dims has dims 0 and -1 of size 1, as in PyTorch.
pub(super) fn size(x: &Tensor, dim: i64) -> Result<usize> {
    let dim = normalize_dim(dim, x.ndim())?;
    Ok(x.shape().get(dim).copied().unwrap_or(1))
}

by_name! {
    VALUES, "Properties", Value;
    /// The value of a tensor of one element. On a global tensor a collective of the world.
    "item(Tensor x) -> Scalar" = |b| Ok(b.given(0)?.item_at(b.site)?.into());
    /// The number of elements.
    "numel(Tensor x) -> Int" = |b| Ok(b.given(0)?.numel().into());
    /// The shape to which tensors of these shapes broadcast.
    "broadcast_shapes(IntLists shapes) -> IntList" = |b| {
        let AttrValue::List(lists) = b.attr(0).unwrap_or(&AttrValue::Absent) else {
            return Err(Error::argument("the shapes are lists of integers"));
        };
        let mut all: Vec<Dims> = vec![];
        for list in lists.iter() {
            let AttrValue::Ints(list) = list else { return Err(Error::argument("the shapes are lists of integers")) };
            let size = |n: &i64| usize::try_from(*n).map_err(|_| Error::shape(format!("a shape has no size {n}")));
            all.push(list.iter().map(size).collect::<Result<_>>()?);
        }
        Ok(broadcast_shapes(all.iter().map(|d| &d[..]))?.as_slice().into())
    };
    /// The number of dims.
    "ndim(Tensor x) -> Int" = |b| Ok(b.given(0)?.ndim().into());
    /// The size of a dim. Negative dims count from the end.
    "size(Tensor x, Int dim) -> Int" = |b| {
        Ok(size(b.given(0)?, b.int(1)?)?.into())
    };
    /// The logical shape.
    "size(Tensor x) -> Shape" = |b| Ok(b.given(0)?.shape().into());
    /// The number of dims.
    "dim(Tensor x) -> Int" = |b| Ok(b.given(0)?.ndim().into());
    /// The number of dims.
    "ndimension(Tensor x) -> Int" = |b| Ok(b.given(0)?.ndim().into());
    /// The number of elements.
    "nelement(Tensor x) -> Int" = |b| Ok(b.given(0)?.numel().into());
    /// Bytes of an element.
    "element_size(Tensor x) -> Int" = |b| Ok(b.given(0)?.dtype().size().into());
    /// Whether the elements are floats.
    "is_floating_point(Tensor x) -> Bool" = |b| Ok(b.given(0)?.dtype().is_float().into());
    /// Whether the elements are integers with a sign, floats or complex numbers.
    "is_signed(Tensor x) -> Bool" = |b| Ok(is_signed(b.given(0)?.dtype()).into());
    /// Whether a tensor of one element is not zero. On a global tensor a collective of the world.
    "is_nonzero(Tensor x) -> Bool" = |b| Ok((b.given(0)?.item_at(b.site)?.to_complex() != (0.0, 0.0)).into());
    /// Whether two tensors have the same shape.
    "is_same_size(Tensor x, Tensor other) -> Bool" = |b| Ok((b.given(0)?.shape() == b.given(1)?.shape()).into());
    /// Whether the elements lie in memory in row-major order without gaps.
    "is_contiguous(Tensor x) -> Bool" = |b| Ok(b.given(0)?.is_contiguous().into());
    /// The logical shape.
    "shape(Tensor x) -> Shape" = |b| Ok(b.given(0)?.shape().into());
    /// The element type.
    "dtype(Tensor x) -> DataType" = |b| Ok(b.given(0)?.dtype().into());
    /// The device; of a global tensor that of its placement.
    "device(Tensor x) -> Device" = |b| Ok(b.given(0)?.device().into());
    /// Whether it is a global tensor.
    "is_global(Tensor x) -> Bool" = |b| Ok(b.given(0)?.is_global().into());
    /// Whether it is a leaf that wants a gradient, or depends on one.
    "requires_grad(Tensor x) -> Bool" = |b| Ok(b.given(0)?.requires_grad().into());
    /// The placement of a global tensor.
    "placement(Tensor x) -> Placement" = |b| Ok(b.given(0)?.placement()?.into());
    /// The nd-SBP of a global tensor.
    "sbp(Tensor x) -> Sbp" = |b| Ok(b.given(0)?.sbp()?.into());
}
