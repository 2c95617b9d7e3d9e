//! Kernels of complex numbers as pairs of real ones: copies to an output whose memory is seen with the dtype of the input.

use super::{On, Row, both, run};
use crate::error::{Error, Result};
use crate::ops::KernelCx;
use oflow_kernels::View;
use oflow_kernels::view::contiguous_strides;

/// The output as elements of the dtype and with the dims of the input.
fn as_input(cx: &KernelCx<'_>) -> Result<View> {
    let (x, out) = (cx.input(0)?, cx.output(0));
    if !out.is_contiguous() || x.len() * x.dtype().size() != out.len() * out.dtype().size() {
        return Err(Error::shape(format!("a kernel was given {:?} for {:?}", out.dims(), x.dims())));
    }
    // SAFETY: the same bytes, all of them in their order; a complex number is aligned as its parts are, and memory of tensors more.
    Ok(unsafe { View::from_raw(out.ptr(), x.dtype(), x.dims().into(), contiguous_strides(x.dims())) })
}

pub(super) fn rows() -> Vec<Row> {
    ["view_as_real", "view_as_complex"]
        .map(|op| both(op, |on, cx| run!(on, copy::copy(cx.input(0)?, &as_input(cx)?))))
        .into_iter()
        .collect()
}
