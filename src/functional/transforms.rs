//! Derivatives of functions: products with the Jacobian matrix from either side, and the matrix itself.
//!
//! Results are of no graph, so they cannot be differentiated again. For higher derivatives use [`grad`](super::grad) with
//! `create_graph`.

use super::{IntoTarget, from_vec, full, grad_at, stack, zeros_like};
use crate::error::{CallSite, Error, Result};
use crate::interpreter::BackwardOptions;
use crate::tensor::Tensor;

/// The inputs as leaves of a graph of their own, and what the function makes of them.
fn run(f: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor]) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let leaf = |x: &Tensor| x.detach().requires_grad_(true);
    let leaves = inputs.iter().map(leaf).collect::<Result<Vec<_>>>()?;
    let _recorded = crate::context::enable_grad();
    let outs = f(&leaves)?;
    Ok((leaves, outs))
}

/// Tensors of one shape and dtype each, as those beside them.
fn check_alike(what: &str, given: &[Tensor], like: &[Tensor], site: CallSite) -> Result<()> {
    let text = |t: &[Tensor]| t.iter().map(|t| t.short()).collect::<Vec<_>>().join(", ");
    let alike = |(a, b): (&Tensor, &Tensor)| a.shape() == b.shape() && a.dtype() == b.dtype();
    if given.len() == like.len() && given.iter().zip(like).all(alike) {
        return Ok(());
    }
    Err(Error::shape(format!("the {what} are {}, but must be like {}", text(given), text(like))).at(site))
}

/// Gradients of what depends on the inputs; zeros where an input has no influence.
fn gradients(
    outs: &[Tensor],
    inputs: &[Tensor],
    cotangents: &[Tensor],
    options: &BackwardOptions,
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let (outs, cotangents): (Vec<Tensor>, Vec<Option<Tensor>>) = outs
        .iter()
        .zip(cotangents)
        .filter(|(out, _)| out.requires_grad())
        .map(|(out, c)| (out.clone(), Some(c.clone())))
        .unzip();
    let found = match outs.is_empty() {
        true => vec![None; inputs.len()],
        false => grad_at(&outs, inputs, &cotangents, options, site)?,
    };
    inputs.iter().zip(found).map(|(x, g)| g.map_or_else(|| zeros_like(x), Ok)).collect()
}

/// Returns `f(inputs)` and the vector-Jacobian product: for each input the gradient of the sum of the outputs times their
/// `cotangents`. Zeros where an input has no influence. Touches no `grad()`. The results are of no graph: they cannot be
/// differentiated again ([`grad`](super::grad()) with `create_graph` can).
///
/// ```
/// use oflow::{functional::vjp, prelude::*};
/// let x = from_vec(vec![1.0f64, 2.0], [2], Device::Cpu)?;
/// let v = from_vec(vec![1.0f64, 10.0], [2], Device::Cpu)?;
/// let (y, g) = vjp(|x| Ok(vec![x[0].square()?]), &[x], &[v])?;
/// assert_eq!((y[0].to_vec::<f64>()?, g[0].to_vec::<f64>()?), (vec![1.0, 4.0], vec![2.0, 40.0]));
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// Those of `f`; an input that is no float; cotangents that are not like the outputs.
#[track_caller]
pub fn vjp(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[Tensor],
    cotangents: &[Tensor],
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let site = CallSite::here();
    let (leaves, outs) = run(&f, inputs)?;
    check_alike("cotangents", cotangents, &outs, site)?;
    let grads = gradients(&outs, &leaves, cotangents, &BackwardOptions::default(), site)?;
    Ok((outs.iter().map(Tensor::detach).collect(), grads))
}

/// Returns `f(inputs)` and the Jacobian-vector product: the derivative of the outputs in the direction of `tangents`.
///
/// It is the derivative of [`vjp`] with respect to its cotangents, in which it is linear, so every op that `f` calls needs a second
/// derivative. The results are of no graph.
///
/// ```
/// use oflow::{functional::jvp, prelude::*};
/// let x = from_vec(vec![1.0f64, 2.0], [2], Device::Cpu)?;
/// let u = from_vec(vec![1.0f64, 10.0], [2], Device::Cpu)?;
/// let (_, d) = jvp(|x| Ok(vec![x[0].square()?]), &[x], &[u])?;
/// assert_eq!(d[0].to_vec::<f64>()?, [2.0, 40.0]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// Those of `f`; an input that is no float; tangents that are not like the inputs; an op without a second derivative.
#[track_caller]
pub fn jvp(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[Tensor],
    tangents: &[Tensor],
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let site = CallSite::here();
    check_alike("tangents", tangents, inputs, site)?;
    let (leaves, outs) = run(&f, inputs)?;
    let float =
        |out: &Tensor| if out.dtype().is_float() { zeros_like(out)?.requires_grad_(true) } else { zeros_like(out) };
    let cotangents = outs.iter().map(float).collect::<Result<Vec<_>>>()?;
    let again = BackwardOptions { create_graph: true, ..BackwardOptions::default() };
    let grads = gradients(&outs, &leaves, &cotangents, &again, site)?;
    let mut found = vec![];
    for (out, cotangent) in outs.iter().zip(&cotangents) {
        found.push(match cotangent.requires_grad() && out.requires_grad() {
            true => gradients(&grads, std::slice::from_ref(cotangent), tangents, &retained(), site)?.remove(0),
            false => zeros_like(out)?,
        });
    }
    Ok((outs.iter().map(Tensor::detach).collect(), found))
}

fn retained() -> BackwardOptions {
    BackwardOptions { retain_graph: true, ..BackwardOptions::default() }
}

/// Returns the Jacobian matrix of `f` at `input`, of the output's shape followed by the input's: one backward pass for each element
/// of the output. The result is of no graph.
///
/// ```
/// use oflow::{functional::jacobian, prelude::*};
/// let x = from_vec(vec![1.0f64, 2.0], [2], Device::Cpu)?;
/// let j = jacobian(|x| x.square(), &x)?;
/// assert_eq!((j.shape(), j.to_vec::<f64>()?), (&[2, 2][..], vec![2.0, 0.0, 0.0, 4.0]));
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// Those of `f`; an input or output that is no float.
#[track_caller]
pub fn jacobian(f: impl Fn(&Tensor) -> Result<Tensor>, input: &Tensor) -> Result<Tensor> {
    let site = CallSite::here();
    let (leaves, outs) = run(&|x| Ok(vec![f(&x[0])?]), std::slice::from_ref(input))?;
    let out = &outs[0];
    if !out.dtype().is_float() {
        return Err(Error::dtype(format!("{} has no derivative", out.short())).at(site));
    }
    let n = out.numel();
    let shape: Vec<usize> = out.shape().iter().chain(input.shape()).copied().collect();
    let mut rows = vec![];
    for i in 0..n {
        let mut one = vec![0.0f64; n];
        one[i] = 1.0;
        let one = from_vec(one, out.shape(), out.whole_target())?.cast_at(out.dtype(), site)?;
        rows.push(gradients(&outs, &leaves, &[one], &retained(), site)?.remove(0));
    }
    match rows.is_empty() {
        true => full(&shape, 0.0, input.whole_target().dtype(input.dtype())),
        false => stack(&rows, 0)?.reshape_at(&shape, site),
    }
}
