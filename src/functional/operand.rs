//! The right operand of a function of two tensors, one of which may be a number.

use crate::tensor::Tensor;
use oflow_kernels::{Complex, Scalar};

/// The right operand of a binary function: a tensor, which broadcasts with the left one, or a number.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// A tensor of a shape that broadcasts with the left operand.
    Tensor(&'a Tensor),
    /// A number; of a weaker type than any tensor of its kind, as in PyTorch.
    Scalar(Scalar),
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(t: &'a Tensor) -> Self {
        Operand::Tensor(t)
    }
}
macro_rules! operand {
    ($($t:ty),*) => {$(impl From<$t> for Operand<'_> { fn from(x: $t) -> Self { Operand::Scalar(x.into()) } })*};
}
operand!(f32, f64, i32, i64, bool, Complex<f32>, Complex<f64>, Scalar);
