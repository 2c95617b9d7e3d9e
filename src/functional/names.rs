//! Methods under PyTorch's names where those of the table differ, and short forms that Python has by default arguments.

use super::{empty, full, ones, zeros};
use crate::error::{CallSite, Result};
use crate::placement::Device;
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};

/// Dtypes, devices and tensors to which [`Tensor::to`] converts.
pub trait ToTarget {
    /// The converted tensor.
    ///
    /// # Errors
    /// As [`Tensor::cast`] and [`Tensor::to_device`].
    fn convert(&self, x: &Tensor) -> Result<Tensor>;
}
impl ToTarget for DType {
    fn convert(&self, x: &Tensor) -> Result<Tensor> {
        x.cast(*self)
    }
}
impl ToTarget for Device {
    fn convert(&self, x: &Tensor) -> Result<Tensor> {
        x.to_device(*self)
    }
}
impl ToTarget for (Device, DType) {
    fn convert(&self, x: &Tensor) -> Result<Tensor> {
        x.to_device(self.0)?.cast(self.1)
    }
}
/// The dtype and, of a local tensor, the device of another tensor.
impl ToTarget for &Tensor {
    fn convert(&self, x: &Tensor) -> Result<Tensor> {
        let here = if x.is_global() { x.clone() } else { x.to_device(self.device())? };
        here.cast(self.dtype())
    }
}

macro_rules! casts {
    ($($name:ident $dtype:ident)*) => {
        /// Conversions of the dtype, by the names that PyTorch has for them.
        impl Tensor {
            $(
                #[doc = concat!("Converts the elements to ", stringify!($dtype), ", as [`Tensor::cast`].")]
                ///
                /// # Errors
                /// As [`Tensor::cast`].
                #[track_caller]
                pub fn $name(&self) -> Result<Tensor> {
                    CallSite::here().run(|| self.cast(DType::$dtype))
                }
            )*
        }
    };
}
casts! { float F32 double F64 half F16 bfloat16 BF16 cfloat C64 cdouble C128 long I64 int I32 bool Bool }

macro_rules! of_all {
    ($($name:ident $of:ident $what:literal)*) => {
        /// Reductions of all elements to a tensor without dims.
        impl Tensor {
            $(
                #[doc = concat!("The ", $what, " of all elements: [`Tensor::", stringify!($of), "`] over all dims.")]
                ///
                /// # Errors
                #[doc = concat!("As [`Tensor::", stringify!($of), "`].")]
                #[track_caller]
                pub fn $name(&self) -> Result<Tensor> {
                    CallSite::here().run(|| self.$of(()))
                }
            )*
        }
    };
}
of_all! { sum_all sum "sum" mean_all mean "mean" max_all amax "largest" min_all amin "smallest" }

impl Tensor {
    /// Converts to a dtype, to a device, to both, or to those of another tensor.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = ones([2], Device::Cpu)?;
    /// assert_eq!(x.to(DType::F64)?.dtype(), DType::F64);
    /// assert_eq!(x.to((Device::Cpu, DType::I64))?.to(&x)?.dtype(), DType::F32);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::cast`] and [`Tensor::to_device`].
    #[track_caller]
    pub fn to(&self, target: impl ToTarget) -> Result<Tensor> {
        CallSite::here().run(|| target.convert(self))
    }
    /// Converts to the dtype of another tensor.
    ///
    /// # Errors
    /// As [`Tensor::cast`].
    #[track_caller]
    pub fn type_as(&self, other: &Tensor) -> Result<Tensor> {
        CallSite::here().run(|| self.cast(other.dtype()))
    }
    /// Returns the number of dims, as [`Tensor::ndim`].
    pub fn dim(&self) -> usize {
        self.ndim()
    }
    /// Returns the size of a dim; negative dims count from the end.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// assert_eq!(ones([2, 3], Device::Cpu)?.size(-1)?, 3);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such dim.
    #[track_caller]
    pub fn size(&self, dim: i64) -> Result<usize> {
        super::values::size(self, dim).map_err(super::shape::in_method("size", self, CallSite::here()))
    }
    /// Swaps the last two dims, as PyTorch's `mT`.
    ///
    /// # Errors
    /// The tensor has less than two dims.
    #[track_caller]
    pub fn mt(&self) -> Result<Tensor> {
        CallSite::here().run(|| self.transpose(-2, -1))
    }
    /// Makes a tensor of zeros with the dtype and the layout of this one, and another shape.
    ///
    /// # Errors
    /// The layout does not fit the shape; out of memory.
    #[track_caller]
    pub fn new_zeros(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        CallSite::here().run(|| zeros(shape.as_ref(), self.target().dtype(self.dtype())))
    }
    /// Makes a tensor of ones with the dtype and the layout of this one, and another shape.
    ///
    /// # Errors
    /// As [`Tensor::new_zeros`].
    #[track_caller]
    pub fn new_ones(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        CallSite::here().run(|| ones(shape.as_ref(), self.target().dtype(self.dtype())))
    }
    /// Makes a tensor of one number with the dtype and the layout of this one, and another shape.
    ///
    /// # Errors
    /// As [`Tensor::new_zeros`].
    #[track_caller]
    pub fn new_full(&self, shape: impl AsRef<[usize]>, value: impl Into<Scalar>) -> Result<Tensor> {
        CallSite::here().run(|| full(shape.as_ref(), value, self.target().dtype(self.dtype())))
    }
    /// Makes a tensor without values with the dtype and the layout of this one, and another shape.
    ///
    /// # Errors
    /// As [`Tensor::new_zeros`].
    #[track_caller]
    pub fn new_empty(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        CallSite::here().run(|| empty(shape.as_ref(), self.target().dtype(self.dtype())))
    }
}
