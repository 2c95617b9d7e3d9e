//! Reductions of several ops.

use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Result};
use crate::ops::AttrValue;
use crate::tensor::Tensor;
use oflow_kernels::DType;
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Reductions";
    /// The biased variance over dims (none given: all): the sum of squares is divided by the number of elements.
    "var(Tensor x, IntList dims=[], Bool keepdim=false) -> Tensor" = var;
}

pub(super) fn var(x: &Tensor, dims: &[i64], keepdim: bool, site: CallSite) -> Result<Tensor> {
    let mean = |x: &Tensor, keepdim: bool| {
        let attrs = smallvec![AttrValue::from(dims), keepdim.into()];
        invoke1(op!("mean"), &[Some(x)], attrs, smallvec![], site)
    };
    let half = x.dtype().is_half();
    let inner = inner_calls();
    // Squares of halves are beyond their range where the variance is not.
    let wide = if half { x.cast_at(DType::F32, site)? } else { x.clone() };
    let m = mean(&wide, true)?;
    let d = invoke1(op!("sub"), &[Some(&wide), Some(&m)], smallvec![], smallvec![], site)?;
    let sq = invoke1(op!("square"), &[Some(&d)], smallvec![], smallvec![], site)?;
    if half {
        let v = mean(&sq, keepdim)?;
        drop(inner);
        return v.cast_at(x.dtype(), site);
    }
    drop(inner);
    mean(&sq, keepdim)
}
