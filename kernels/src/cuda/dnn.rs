//! Convolutions by cuDNN, where it is there and has an algorithm that gives the same bits each time; else [`super::conv`] has kernels.

use super::Queue;
use super::blas::{WORKSPACE, scalar};
pub(super) use super::cudnn::Form;
use super::cudnn::{Pointer, done};
use super::matmul::tf32_allowed;
use super::probe::{Optional, optional};
use crate::conv::{Sizes, Sliding};
use crate::{Result, View};

/// Computes one of image, weight and result of the other two, and adds a bias for each of its channels. False, and nothing done, where
/// there is no library or no algorithm.
pub(super) fn convolve(
    q: &Queue,
    form: Form,
    sizes: &Sizes,
    s: &Sliding,
    [image, weight, result]: [&View; 3],
    bias: Option<&View>,
) -> Result<bool> {
    if [image, weight, result].into_iter().any(View::is_empty) || optional(Optional::Cudnn).is_err() {
        return Ok(false);
    }
    let dnn = q.gpu().dnn()?;
    let mut state = dnn.locked();
    let plan = dnn.plan(&mut state, form, image.dtype(), tf32_allowed(), sizes, s);
    let Some(plan) = plan else { return Ok(false) };
    // Convolutions and products of one stream follow each other, so they share the memory that it has for them.
    let (work, _held) = match plan.scratch <= WORKSPACE {
        true => (q.stream().for_blas()?.workspace, None),
        false => {
            let scratch = q.stream().scratch(plan.scratch)?;
            (scratch.data(), Some(scratch))
        }
    };
    let (f, h, work) = (dnn.functions, state.handle, work.cast());
    let (one, zero) = (scalar(1.0, plan.double), scalar(0.0, plan.double));
    let (one, zero): (Pointer, Pointer) = (one.as_ptr().cast_mut().cast(), zero.as_ptr().cast_mut().cast());
    let (x, w, y): (Pointer, Pointer, Pointer) = (image.ptr().cast(), weight.ptr().cast(), result.ptr().cast());
    let (dx, dw, dy, c, algo, bytes) = (plan.image, plan.weight, plan.result, plan.conv, plan.algo, plan.scratch);
    // SAFETY: a live handle and stream of this GPU; contiguous tensors of the sizes that are described (`Sizes::of`), scratch memory of the
    // size that the algorithm asks for, and factors in the type that the library reads.
    unsafe {
        done("cudnnSetStream", (f.cudnnSetStream)(h, q.stream().raw().cast()))?;
        let ran = match form {
            Form::Result => (f.cudnnConvolutionForward)(h, one, dx, x, dw, w, c, algo, work, bytes, zero, dy, y),
            Form::Image => (f.cudnnConvolutionBackwardData)(h, one, dw, w, dy, y, c, algo, work, bytes, zero, dx, x),
            Form::Weight => (f.cudnnConvolutionBackwardFilter)(h, one, dx, x, dy, y, c, algo, work, bytes, zero, dw, w),
        };
        done("a convolution by cuDNN", ran)?;
        if let Some(bias) = bias {
            let (to, at) = if form == Form::Image { (dx, x) } else { (dy, y) };
            done("cudnnAddTensor", (f.cudnnAddTensor)(h, one, plan.bias, bias.ptr().cast(), one, to, at))?;
        }
    }
    Ok(true)
}
