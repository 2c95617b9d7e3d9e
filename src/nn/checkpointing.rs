//! Activation checkpointing.

use crate::interpreter::recompute;

/// Calls `f` with `inputs` and keeps none of the values inside for backward (PyTorch's `torch.utils.checkpoint`, without re-entry).
/// Backward runs the calls that `f` made once more: less memory for more time. Returns what `f` returns.
///
/// Gradients are those of a plain call, bit for bit, of inputs and of captured parameters alike. `inputs` is whatever `f` takes: a
/// tensor, several as a tuple, or `()`. The calls run again, not `f`: so `f` may borrow, what it does besides calls of ops happens once
/// (running statistics are updated once), random calls draw the numbers that they drew, and the modes in force when it ran (autocast,
/// layouts that were asked for) count. Scopes nest. What is kept is what `f` takes from outside: inputs, and tensors made by other
/// means than ops. What `f` writes in place is kept too. Under `no_grad` nothing is kept anyway.
///
/// A second backward, with `retain_graph`, finds the values that the first has made. On global tensors the boxings of the calls run
/// again too.
///
/// ```
/// use oflow::nn::{Mlp, checkpoint};
/// use oflow::prelude::*;
/// let mlp = Mlp::new(4, 16, Device::Cpu)?;
/// let x = ones([2, 4], Device::Cpu)?.requires_grad_(true)?;
/// let y = checkpoint(|x| mlp.forward(x), &x)?;
/// y.sum(())?.backward()?;
/// let gradient = x.grad().unwrap().to_vec::<f32>()?;
/// x.set_grad(None)?;
/// mlp.forward(&x)?.sum(())?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, gradient);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// `f`'s own. Backward fails if a tensor that the calls take from outside was changed in place since.
pub fn checkpoint<X, R>(f: impl FnOnce(X) -> R, inputs: X) -> R {
    let _scope = recompute();
    f(inputs)
}
