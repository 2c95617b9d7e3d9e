//! Gradients of any closure over tensors against finite differences.

use super::mix;
use crate::error::{CallSite, Error, Result};
use crate::functional::{IntoTarget, from_vec, grad_at, zeros};
use crate::interpreter::{BackwardOptions, Target};
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use oflow_kernels::DType;

/// How derivatives are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradCheck {
    /// Step of the differences, relative to the size of an element (0.02 at least, 1 at most).
    pub step: f64,
    /// Part of the derivative by which the two may differ.
    pub relative: f64,
    /// Absolute tolerance, added to the relative one.
    pub absolute: f64,
    /// Compares the second derivatives too.
    pub second: bool,
}

impl Default for GradCheck {
    fn default() -> GradCheck {
        GradCheck { step: 1e-3, relative: 1e-6, absolute: 1e-6, second: false }
    }
}

/// Compares the gradients of a function with finite differences, and returns how many derivatives were compared. The inputs that
/// require a gradient are the variables; they must be f64. They may be global: then every rank calls this alike. The outputs may
/// have any shapes: a fixed weighting of their elements is differentiated.
///
/// ```
/// use oflow::prelude::*;
/// use oflow::testing::gradcheck;
/// let x = from_vec(vec![0.5f64, -1.5], [2], Device::Cpu)?.requires_grad_(true)?;
/// assert_eq!(gradcheck(|v| Ok(vec![v[0].exp()?.mul(&v[0])?]), &[x])?, 2);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// The first derivative that differs: its input, its element, both values. Also what the function reports, and if no input requires a
/// gradient.
#[track_caller]
pub fn gradcheck(f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor]) -> Result<usize> {
    gradcheck_with(GradCheck::default(), f, inputs)
}

/// [`gradcheck`] with other tolerances, or with second derivatives.
///
/// # Errors
/// As [`gradcheck`].
#[track_caller]
pub fn gradcheck_with(
    how: GradCheck,
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[Tensor],
) -> Result<usize> {
    let site = CallSite::here();
    let check = || {
        let variables: Vec<usize> = (0..inputs.len()).filter(|i| inputs[*i].requires_grad()).collect();
        if variables.is_empty() {
            return Err(
                Error::argument("no input requires a gradient").help("call `requires_grad_(true)` on the variables")
            );
        }
        if let Some(i) = variables.iter().find(|i| inputs[**i].dtype() != DType::F64) {
            return Err(Error::dtype(format!("input {i} is {:?}; differences need f64", inputs[*i])));
        }
        let first = compare("the gradient", how, site, &|v| weighted(&f(v)?), inputs, &variables)?;
        if !how.second {
            return Ok(first);
        }
        let gradient = |v: &[Tensor]| {
            // Differences come without leaves; the gradient needs them.
            let leaf = |i: &usize| {
                let t = &v[*i];
                if t.requires_grad() { Ok(t.clone()) } else { t.detach().requires_grad_(true) }
            };
            let leaves: Vec<Tensor> = variables.iter().map(leaf).collect::<Result<_>>()?;
            let mut all = v.to_vec();
            variables.iter().zip(&leaves).for_each(|(i, t)| all[*i] = t.clone());
            let y = weighted(&f(&all)?)?;
            if !y.requires_grad() {
                return Ok(y);
            }
            let options = BackwardOptions { create_graph: true, ..Default::default() };
            let found = grad_at(&[y], &leaves, &[None], &options, site)?;
            weighted(&found.into_iter().flatten().collect::<Vec<_>>())
        };
        Ok(first + compare("the second derivative", how, site, &gradient, inputs, &variables)?)
    };
    check().map_err(|e: Error| e.in_call(|| "gradcheck".to_string()).at(site))
}

/// A fixed weighting of the float elements of some tensors, as a tensor of one element.
fn weighted(outs: &[Tensor]) -> Result<Tensor> {
    let mut sum: Option<Tensor> = None;
    for (k, t) in outs.iter().enumerate().filter(|(_, t)| t.dtype().is_float()) {
        let w: Vec<f64> = (0..t.numel() as u64).map(|i| (mix(&[i, k as u64, 3]) % 9) as f64 / 4.0 - 0.9).collect();
        let part = t.mul(&made(w, t, true)?)?.sum(())?;
        sum = Some(match sum {
            Some(s) => s.add(&part)?,
            None => part,
        });
    }
    match (sum, outs.first()) {
        (Some(s), _) => Ok(s),
        (None, Some(t)) => zeros([], t.device().dtype(DType::F64)),
        (None, None) => Err(Error::argument("the function returns no tensor")),
    }
}

/// Values where another tensor is: in its layout, or whole on each of its ranks.
fn made(values: Vec<f64>, like: &Tensor, whole: bool) -> Result<Tensor> {
    let target = match like.global() {
        None => Target::Local(like.device()),
        Some(g) if whole => Target::Global(g.placement.clone(), NdSbp::broadcast(g.placement.axes())),
        Some(g) => Target::Global(g.placement.clone(), g.sbp.clone()),
    };
    from_vec(values, like.shape(), target)
}

/// Differences of `f` in every element of the variables, against its gradient.
fn compare(
    what: &str,
    how: GradCheck,
    site: CallSite,
    f: &dyn Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
    variables: &[usize],
) -> Result<usize> {
    let mut leaves = inputs.to_vec();
    for i in variables {
        leaves[*i] = inputs[*i].detach().requires_grad_(true)?;
    }
    let y = f(&leaves)?;
    let wanted: Vec<Tensor> = variables.iter().map(|i| leaves[*i].clone()).collect();
    let found = match y.requires_grad() {
        true => grad_at(&[y], &wanted, &[None], &BackwardOptions::default(), site)?,
        false => vec![None; wanted.len()],
    };
    let mut count = 0;
    for (i, grad) in variables.iter().zip(found) {
        let at = inputs[*i].detach().to_f64_vec()?;
        let grad = grad.map_or_else(|| Ok(vec![0.0; at.len()]), |g| g.to_f64_vec())?;
        for (k, have) in grad.into_iter().enumerate() {
            let value = |h: f64| -> Result<f64> {
                let mut moved = at.clone();
                moved[k] += h;
                let mut all: Vec<Tensor> = inputs.iter().map(Tensor::detach).collect();
                all[*i] = made(moved, &inputs[*i], false)?;
                f(&all)?.item()
            };
            // Central differences with Richardson's step: error h^4.
            let h = how.step * at[k].abs().clamp(0.02, 1.0);
            let slope = |h: f64| -> Result<f64> { Ok((value(h)? - value(-h)?) / (2.0 * h)) };
            let want = (4.0 * slope(h / 2.0)? - slope(h)?) / 3.0;
            let near = (have - want).abs() <= how.absolute + how.relative * want.abs();
            if !near {
                return Err(Error::autograd(format!(
                    "{what} of input {i}, element {k} is {have}, differences give {want}"
                )));
            }
            count += 1;
        }
    }
    Ok(count)
}
