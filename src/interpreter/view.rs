//! View ops on local tensors: their result is another window onto the memory of the input.

use super::call::Call;
use crate::context::grad_enabled;
use crate::error::Result;
use crate::plan::{Plan, Step};
use crate::tensor::{LocalTensor, Tensor};

/// The result of a view op on a local tensor: another window onto its memory. None where strides cannot say it, in memory
/// or in the elements of the base; then the kernel copies.
pub(super) fn local_view(call: &Call<'_>, plan: &Plan) -> Result<Option<Tensor>> {
    let (None, Some(view)) = (call.given, &call.op.view) else { return Ok(None) };
    let (Some(Some(source)), [made], [Step::Kernel(step)]) =
        (call.inputs.first(), plan.outputs.as_slice(), plan.steps.as_slice())
    else {
        return Ok(None);
    };
    let Some(ty) = &plan.buffers[made.index()].local else { return Ok(None) };
    // A result without elements has no kernel, and is a view all the same.
    let attrs = step.kernel.as_ref().map_or(&call.attrs, |k| &k.attrs);
    let (offset, strides) = source.place_in_base();
    let window = |input: &LocalTensor| {
        let see = |strides: &[isize]| view(input.dims(), strides, attrs, &ty.ty.shape);
        let memory = see(&input.strides)?;
        let place = if strides == input.strides { memory.clone() } else { see(&strides)? };
        // Without elements nothing is addressed, and the place may lie outside.
        let by = if ty.ty.shape.contains(&0) { 0 } else { memory.0 };
        Some(input.window(ty, by, memory.1).map(|window| (window, place)))
    };
    let Some((window, place)) = source.with_data(|l| l.and_then(window))?.transpose()? else { return Ok(None) };
    let place = ((offset as isize + place.0) as usize, place.1);
    Ok(Some(Tensor::view_of(source, window, place, grad_enabled(), call.site)))
}
