//! A user's own differentiable function: forward and backward in Rust.

use super::emit::EagerEmit;
use super::record::record_custom;
use crate::context::{grad_enabled, no_grad};
use crate::error::{CallSite, Result};
use crate::op;
use crate::tensor::{Custom, Tensor, share_memory};
use std::sync::Arc;

/// Runs a differentiable function that is written in Rust; messages call it `name`.
///
/// `forward` computes the outputs; its inner calls are not recorded. If an input requires a gradient, `backward` is recorded as
/// the gradient: it is given the gradients of the outputs and returns those of the inputs, `None` where there is none. A
/// closure captures the tensors that backward needs. A gradient may be of another dtype than its input, to which it is cast, and of a
/// shape to which that of the input broadcasts: then it is summed.
///
/// # Errors
/// Those of `forward`. Backward fails where `backward` does, where it returns not one gradient for each input, and where a gradient is of
/// another shape, or in another place than its input.
///
/// ```
/// use oflow::prelude::*;
/// let x = full([2], 3.0, Device::Cpu)?.requires_grad_(true)?;
/// let saved = x.detach();
/// let y = oflow::apply_custom(
///     "square",
///     &[&x],
///     |ins| Ok(vec![ins[0].mul(ins[0])?]),
///     move |grads| Ok(vec![grads[0].as_ref().map(|g| g.mul(&saved)?.mul(2.0)).transpose()?]),
/// )?;
/// y[0].sum(())?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [6.0, 6.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[track_caller]
pub fn apply_custom(
    name: &str,
    inputs: &[&Tensor],
    forward: impl FnOnce(&[&Tensor]) -> Result<Vec<Tensor>>,
    backward: impl Fn(&[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
) -> Result<Vec<Tensor>> {
    let site = CallSite::here();
    let recording = grad_enabled() && inputs.iter().any(|t| t.requires_grad());
    let outs: Vec<Tensor> = {
        let _quiet = no_grad();
        let own = |t: Tensor| match !t.is_global() && inputs.iter().any(|i| share_memory(i, &t)) {
            // A write to it must not change the input behind the graph's back.
            true => Ok(EagerEmit::new("apply_custom", site).run("copy", &[Some(&t)], &[])?[0].clone()),
            false => Ok(t.value()),
        };
        forward(inputs)?.into_iter().map(own).collect::<Result<_>>()?
    };
    if recording {
        let custom = Custom { name: name.into(), backward: Arc::new(backward) };
        record_custom(op!("apply_custom")?, inputs, &outs, site, custom);
    }
    Ok(outs)
}
