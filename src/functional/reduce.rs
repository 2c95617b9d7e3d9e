//! Reductions. Dims are an [`IntList`]: one, several, or `()` for all; negative ones count from the end.

use super::{IntList, invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Result};
use crate::ops::{AttrValue, normalize_dim};
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

macro_rules! reductions {
    ($($(#[$m:meta])* $name:ident $keep:ident;)*) => {
        impl Tensor {$(
            $(#[$m])*
            #[track_caller]
            pub fn $name(&self, dims: impl IntList) -> Result<Tensor> {
                let attrs = smallvec![AttrValue::Ints(dims.ints()), false.into()];
                invoke1(op!(stringify!($name)), &[Some(self)], attrs, smallvec![], CallSite::here())
            }
            /// The same with the reduced dims kept as size 1.
            #[track_caller]
            pub fn $keep(&self, dims: impl IntList) -> Result<Tensor> {
                let attrs = smallvec![AttrValue::Ints(dims.ints()), true.into()];
                invoke1(op!(stringify!($name)), &[Some(self)], attrs, smallvec![], CallSite::here())
            }
        )*}
    };
}

reductions! {
    /// Sum over dims. Over a split dim the result is P(sum): nothing is communicated until somebody needs the value.
    sum sum_keepdim;
    /// Product over dims.
    prod prod_keepdim;
    /// Largest over dims; over a split dim the result is P(max).
    amax amax_keepdim;
    /// Smallest over dims; over a split dim the result is P(min).
    amin amin_keepdim;
    /// True if some element is not zero.
    any any_keepdim;
    /// True if no element is zero.
    all all_keepdim;
}

impl Tensor {
    /// Mean over dims (none given: all).
    #[track_caller]
    pub fn mean(&self, dims: impl IntList) -> Result<Tensor> {
        self.mean_impl(dims.ints(), false, CallSite::here())
    }
    /// The same with the reduced dims kept as size 1.
    #[track_caller]
    pub fn mean_keepdim(&self, dims: impl IntList) -> Result<Tensor> {
        self.mean_impl(dims.ints(), true, CallSite::here())
    }
    fn mean_impl(&self, dims: SmallVec<[i64; 6]>, keepdim: bool, site: CallSite) -> Result<Tensor> {
        // One division by the logical count: a P(sum) stays P(sum).
        let mut n = 1;
        if dims.is_empty() {
            n = self.numel();
        }
        for d in &dims {
            n *= self.shape().get(normalize_dim(*d, self.ndim()).map_err(|e| e.at(site))?).copied().unwrap_or(1);
        }
        let sum =
            invoke1(op!("sum"), &[Some(self)], smallvec![AttrValue::Ints(dims), keepdim.into()], smallvec![], site)?;
        invoke1(op!("mul_scalar"), &[Some(&sum)], smallvec![], smallvec![(1.0 / n as f64).into()], site)
    }
    /// Variance over dims, divided by n (biased).
    #[track_caller]
    pub fn var(&self, dims: impl IntList) -> Result<Tensor> {
        let (dims, site) = (dims.ints(), CallSite::here());
        let inner = inner_calls();
        let m = self.mean_impl(dims.clone(), true, site)?;
        let d = invoke1(op!("sub"), &[Some(self), Some(&m)], smallvec![], smallvec![], site)?;
        let sq = invoke1(op!("square"), &[Some(&d)], smallvec![], smallvec![], site)?;
        drop(inner);
        sq.mean_impl(dims, false, site)
    }
    /// Index of the largest element along a dim; among equals the first.
    #[track_caller]
    pub fn argmax(&self, dim: i64) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("argmax"), &[Some(self)], smallvec![dim.into(), false.into()], smallvec![], site)
    }
    /// Index of the smallest element along a dim; among equals the first.
    #[track_caller]
    pub fn argmin(&self, dim: i64) -> Result<Tensor> {
        let site = CallSite::here();
        invoke1(op!("argmin"), &[Some(self)], smallvec![dim.into(), false.into()], smallvec![], site)
    }
    /// Running sum along a dim.
    #[track_caller]
    pub fn cumsum(&self, dim: i64) -> Result<Tensor> {
        invoke1(op!("cumsum"), &[Some(self)], smallvec![dim.into()], smallvec![], CallSite::here())
    }
}
