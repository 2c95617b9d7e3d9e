//! Reductions. Dims are an [`IntList`]: one, several, or `()` for all; negative ones count from the end.

use super::{IntList, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Result};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::smallvec;

macro_rules! reductions {
    ($($(#[$m:meta])* $name:ident $keep:ident;)*) => {
        impl Tensor {$(
            $(#[$m])*
            #[track_caller]
            pub fn $name(&self, dims: impl IntList) -> Result<Tensor> {
                let attrs = smallvec![AttrValue::Ints(dims.ints()), false.into()];
                invoke1(op!(stringify!($name)), &[Some(self)], attrs, smallvec![], CallSite::here())
            }
            /// The same reduction with the reduced dims kept, with size 1.
            #[track_caller]
            pub fn $keep(&self, dims: impl IntList) -> Result<Tensor> {
                let attrs = smallvec![AttrValue::Ints(dims.ints()), true.into()];
                invoke1(op!(stringify!($name)), &[Some(self)], attrs, smallvec![], CallSite::here())
            }
        )*}
    };
}

reductions! {
    /// Returns the sum over `dims`, which are removed. Over a split dim the result is P(sum): it is reduced when a later op needs it.
    sum sum_keepdim;
    /// Returns the mean over `dims`, which are removed; NaN for no elements. Integers and bools give f32. Over a split dim the
    /// result is P(sum).
    mean mean_keepdim;
    /// Returns the product over `dims`, which are removed.
    prod prod_keepdim;
    /// Returns the largest element over `dims`, which are removed. Over a split dim the result is P(max).
    amax amax_keepdim;
    /// Returns the smallest element over `dims`, which are removed. Over a split dim the result is P(min).
    amin amin_keepdim;
    /// Returns how many elements over `dims`, which are removed, are not zero (NaN is not), as i64. Over a split dim the result
    /// is P(sum).
    count_nonzero count_nonzero_keepdim;
    /// Returns a bool tensor: true where some element over `dims` is nonzero.
    any any_keepdim;
    /// Returns a bool tensor: true where all elements over `dims` are nonzero.
    all all_keepdim;
}

impl Tensor {
    /// Returns the biased variance (the sum of squares is divided by n) over `dims`, which are removed.
    #[track_caller]
    pub fn var(&self, dims: impl IntList) -> Result<Tensor> {
        let (dims, site) = (dims.ints(), CallSite::here());
        let mean = |x: &Tensor, keepdim: bool| {
            let attrs = smallvec![AttrValue::Ints(dims.clone()), keepdim.into()];
            invoke1(op!("mean"), &[Some(x)], attrs, smallvec![], site)
        };
        let half = self.dtype().is_half();
        let inner = inner_calls();
        // Squares of halves are beyond their range where the variance is not.
        let x = if half { self.cast_at(DType::F32, site)? } else { self.clone() };
        let m = mean(&x, true)?;
        let d = invoke1(op!("sub"), &[Some(&x), Some(&m)], smallvec![], smallvec![], site)?;
        let sq = invoke1(op!("square"), &[Some(&d)], smallvec![], smallvec![], site)?;
        if half {
            let v = mean(&sq, false)?;
            drop(inner);
            return v.cast_at(self.dtype(), site);
        }
        drop(inner);
        mean(&sq, false)
    }
    /// Returns the i64 index of the largest element along `dim`, which is removed; the first one among equals.
    #[track_caller]
    pub fn argmax(&self, dim: i64) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("argmax"), &[Some(self)], smallvec![dim.into(), false.into()], smallvec![], site)
    }
    /// Returns the i64 index of the smallest element along `dim`, which is removed; the first one among equals.
    #[track_caller]
    pub fn argmin(&self, dim: i64) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("argmin"), &[Some(self)], smallvec![dim.into(), false.into()], smallvec![], site)
    }
    /// Returns the cumulative sum along `dim`, in the shape of the input.
    #[track_caller]
    pub fn cumsum(&self, dim: i64) -> Result<Tensor> {
        invoke1(op!("cumsum"), &[Some(self)], smallvec![dim.into(), false.into()], smallvec![], CallSite::here())
    }
}
