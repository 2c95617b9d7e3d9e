//! The right operand of a function of two tensors, one of which may be a number.

use crate::tensor::Tensor;
use oflow_kernels::{Complex, Scalar};

/// The right operand of a binary function, as it is given: a tensor by reference or by value, which broadcasts with the left one, or a
/// number.
///
/// ```
/// use oflow::prelude::*;
/// let (x, y) = (ones([2], Device::Cpu)?, ones([2], Device::Cpu)?);
/// assert_eq!(x.add(&y)?.mul(x.add(y)?)?.sub(1.0)?.to_vec::<f32>()?, [3.0, 3.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum RightOperand<'a> {
    /// A borrowed tensor.
    Borrowed(&'a Tensor),
    /// An owned tensor.
    Owned(Tensor),
    /// A number; of a weaker type than any tensor of its kind, as in PyTorch.
    Number(Scalar),
}

impl RightOperand<'_> {
    /// The tensor or the number.
    pub fn operand(&self) -> Operand<'_> {
        match self {
            RightOperand::Borrowed(t) => Operand::Tensor(t),
            RightOperand::Owned(t) => Operand::Tensor(t),
            RightOperand::Number(s) => Operand::Scalar(*s),
        }
    }
}

/// A right operand as functions read it.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// A tensor of a shape that broadcasts with the left operand.
    Tensor(&'a Tensor),
    /// A number, which takes the dtype of the tensor unless its kind is above.
    Scalar(Scalar),
}

impl<'a> From<&'a Tensor> for RightOperand<'a> {
    fn from(t: &'a Tensor) -> Self {
        RightOperand::Borrowed(t)
    }
}
impl From<Tensor> for RightOperand<'_> {
    fn from(t: Tensor) -> Self {
        RightOperand::Owned(t)
    }
}
macro_rules! operand {
    ($($t:ty),*) => {$(impl From<$t> for RightOperand<'_> { fn from(x: $t) -> Self { RightOperand::Number(x.into()) } })*};
}
operand!(f32, f64, i32, i64, bool, Complex<f32>, Complex<f64>, Scalar);
