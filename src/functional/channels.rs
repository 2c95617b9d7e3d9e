//! Normalisation of images: batch norm, group norm, instance norm.

use super::{invoke, invoke1, op};
use crate::context::{inner_calls, no_grad};
use crate::error::{CallSite, Error, Result};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Networks";
    /// Batch normalisation: each channel (dim 1 of `[batch, channels, …]`) is normalised to mean 0 and variance 1, multiplied by `weight`
    /// and shifted by `bias`. With `training` the mean and the variance are those of x, over the global batch in every layout. Running
    /// statistics, if given, are then updated in place: `running_mean` to `(1 - momentum) * running_mean + momentum * mean`, and
    /// `running_var` in the same way with the unbiased variance. Without `training`, x is normalised by the running statistics.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = from_vec(vec![1.0f32, 3.0, 3.0, 9.0], [2, 2], Device::Cpu)?;
    /// let y = x.batch_norm(None, None, None, None, true, 0.1, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, -1.0, 1.0, 1.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// With `training`, if a channel has one element; without `training`, if a running statistic is missing.
    "batch_norm(Tensor x, Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? bias, Bool training=false, Float momentum=0.1, Float eps=1e-5) -> Tensor" = batch_norm;
    /// Group normalisation: the channels (dim 1) are divided into `num_groups` groups of equal size. Each group of each image is normalised
    /// to mean 0 and variance 1, multiplied by `weight` and shifted by `bias`, which have one element per channel.
    "group_norm(Tensor x, Int num_groups, Tensor? weight, Tensor? bias, Float eps=1e-5) -> Tensor" = group_norm;
    /// Instance normalisation: each channel of each image is normalised to mean 0 and variance 1, multiplied by `weight` and shifted by
    /// `bias`. Running statistics, if given, are updated as in `batch_norm`, with the statistics of the images averaged over the batch.
    /// Without `use_input_stats`, x is normalised by the running statistics.
    "instance_norm(Tensor x, Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? bias, Bool use_input_stats=true, Float momentum=0.1, Float eps=1e-5) -> Tensor" = instance_norm;
}

fn refused(name: &str, x: &Tensor, site: CallSite, e: Error) -> Error {
    e.in_call(|| format!("{name}({})", x.short())).at(site)
}

/// Reshapes a tensor with one element per channel to `[1, channels, 1, …]` of `rank` dims, so that it broadcasts over x.
fn beside(v: &Tensor, rank: usize, site: CallSite) -> Result<Tensor> {
    let shape: Vec<usize> = (0..rank).map(|d| if d == 1 { v.numel() } else { 1 }).collect();
    Ok(v.reshape_at(&shape, site)?.into_result())
}

/// `x * scale + shift` with one scale and shift per channel, as one elementwise op.
fn affine(x: &Tensor, scale: Option<&Tensor>, shift: Option<&Tensor>, site: CallSite) -> Result<Tensor> {
    let side = |v: &Tensor| beside(v, x.ndim(), site);
    match (scale, shift) {
        (None, None) => Ok(x.clone()),
        (Some(w), None) => invoke1(op!("mul"), &[Some(x), Some(&side(w)?)], smallvec![], smallvec![], site),
        (None, Some(b)) => invoke1(op!("add"), &[Some(x), Some(&side(b)?)], smallvec![], smallvec![], site),
        (Some(w), Some(b)) => {
            let one = smallvec![Scalar::Float(1.0)];
            invoke1(op!("addcmul"), &[Some(&side(b)?), Some(x), Some(&side(w)?)], smallvec![], one, site)
        }
    }
}

/// Checks that x has a channel dim, and that each given tensor of `numbers` has one element per channel. Returns the number of channels.
fn check(name: &str, x: &Tensor, numbers: &[(&str, Option<&Tensor>)], site: CallSite) -> Result<usize> {
    let [_, channels, ..] = x.shape() else {
        let e = Error::shape("x needs at least 2 dims, batch and channels");
        return Err(refused(name, x, site, e));
    };
    for (what, v) in numbers {
        if let Some(v) = v.filter(|v| v.shape() != [*channels]) {
            let e = Error::shape(format!("{what} has shape {:?}; x has {channels} channels", v.shape()));
            return Err(refused(name, x, site, e));
        }
    }
    Ok(*channels)
}

/// Updates a running statistic in place: `running += momentum * (now - running)`.
fn keep(running: &Tensor, now: &Tensor, momentum: f64, site: CallSite) -> Result<()> {
    let _quiet = no_grad();
    let inputs = [Some(running), Some(now)];
    super::inplace::write_over(op!("lerp_scalar"), &inputs, smallvec![], smallvec![Scalar::Float(momentum)], site)
}

/// Updates the given running mean and variance with those of a batch, whose biased variance `var` is over `n` elements per channel.
fn keep_both(
    running: [Option<&Tensor>; 2],
    [mean, var]: [&Tensor; 2],
    n: usize,
    momentum: f64,
    site: CallSite,
) -> Result<()> {
    let _quiet = no_grad();
    if let Some(r) = running[0] {
        keep(r, &mean.detach().cast(r.dtype())?, momentum, site)?;
    }
    if let Some(r) = running[1] {
        let unbiased = Scalar::Float(n as f64 / (n as f64 - 1.0));
        let var = invoke1(op!("mul_scalar"), &[Some(&var.detach())], smallvec![], smallvec![unbiased], site)?;
        keep(r, &var.cast(r.dtype())?, momentum, site)?;
    }
    Ok(())
}

/// Normalises x by the running statistics, both of which must be given.
fn with_statistics(
    name: &str,
    x: &Tensor,
    running: [Option<&Tensor>; 2],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
    site: CallSite,
) -> Result<Tensor> {
    let [Some(mean), Some(var)] = running else {
        let e = Error::argument("without training it normalises with running_mean and running_var: both are needed");
        return Err(refused(name, x, site, e));
    };
    let inner = inner_calls();
    let one = |name: Result<&'static crate::ops::Op>, inputs: &[Option<&Tensor>]| {
        invoke1(name, inputs, smallvec![], smallvec![], site)
    };
    let eps = Scalar::Float(eps);
    let added = invoke1(op!("add_scalar"), &[Some(var)], smallvec![], smallvec![eps], site)?;
    let mut scale = one(op!("rsqrt"), &[Some(&added)])?;
    if let Some(w) = weight {
        scale = one(op!("mul"), &[Some(&scale), Some(w)])?;
    }
    let moved = one(op!("mul"), &[Some(mean), Some(&scale)])?;
    let shift = match bias {
        Some(b) => one(op!("sub"), &[Some(b), Some(&moved)])?,
        None => one(op!("neg"), &[Some(&moved)])?,
    };
    if x.dtype() == scale.dtype() {
        drop(inner);
        return affine(x, Some(&scale), Some(&shift), site);
    }
    // Statistics of another dtype: the result is computed in the wider dtype and rounded once.
    let y = affine(x, Some(&scale), Some(&shift), site)?;
    drop(inner);
    y.cast(x.dtype())
}

#[allow(clippy::too_many_arguments)]
pub(super) fn batch_norm(
    x: &Tensor,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    training: bool,
    momentum: f64,
    eps: f64,
    site: CallSite,
) -> Result<Tensor> {
    let name = "batch_norm";
    let numbers =
        [("running_mean", running_mean), ("running_var", running_var), ("the weight", weight), ("the bias", bias)];
    let channels = check(name, x, &numbers, site)?;
    let running = [running_mean, running_var];
    if !training {
        return with_statistics(name, x, running, weight, bias, eps, site);
    }
    let n = x.numel() / channels.max(1);
    if n == 0 {
        // There is nothing to normalise, and no statistics to keep.
        return affine(x, weight, bias, site);
    }
    if n < 2 {
        let e = Error::shape(format!("a channel has {n} elements; training needs 2 or more"));
        return Err(refused(name, x, site, e));
    }
    let inputs = [Some(x), weight, bias];
    let out = invoke(op!("batch_norm_train"), &inputs, smallvec![], smallvec![Scalar::Float(eps)], site)?;
    let inner = inner_calls();
    keep_both(running, [&out[1], &out[2]], n, momentum, site)?;
    drop(inner);
    Ok(out[0].clone())
}

/// Normalises each group of channels of each image, then scales and shifts by channel.
fn grouped(
    x: &Tensor,
    groups: usize,
    [weight, bias]: [Option<&Tensor>; 2],
    eps: f64,
    site: CallSite,
) -> Result<Tensor> {
    let (shape, channels) = (x.shape().to_vec(), x.shape()[1] / groups.max(1));
    let inner = shape[2..].iter().product();
    let rows = x.reshape_at(&[shape[0], groups, channels, inner], site)?.into_result();
    let side = |v: Option<&Tensor>| -> Result<Option<Tensor>> {
        v.map(|v| Ok(v.reshape_at(&[groups, channels], site)?.into_result())).transpose()
    };
    let (weight, bias) = (side(weight)?, side(bias)?);
    let inputs = [Some(&rows), weight.as_ref(), bias.as_ref()];
    let out = invoke(op!("grouped_norm"), &inputs, smallvec![], smallvec![Scalar::Float(eps)], site)?;
    Ok(out[0].reshape_at(&shape, site)?.into_result())
}

pub(super) fn group_norm(
    x: &Tensor,
    num_groups: i64,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
    site: CallSite,
) -> Result<Tensor> {
    let channels = check("group_norm", x, &[("the weight", weight), ("the bias", bias)], site)?;
    let groups = usize::try_from(num_groups).ok().filter(|g| *g > 0 && channels.is_multiple_of(*g));
    let Some(groups) = groups else {
        let e = Error::argument(format!("{channels} channels do not fall in {num_groups} groups of as many"));
        return Err(refused("group_norm", x, site, e));
    };
    if let Some(d) = x.shape()[1..].iter().position(|n| *n == 0) {
        let e = Error::shape(format!("dim {} of x has 0 elements", d + 1)).help("only the batch may be empty");
        return Err(refused("group_norm", x, site, e));
    }
    let _inner = inner_calls();
    grouped(x, groups, [weight, bias], eps, site).map_err(|e| e.within(|| "group_norm".into()))
}

#[allow(clippy::too_many_arguments)]
pub(super) fn instance_norm(
    x: &Tensor,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    use_input_stats: bool,
    momentum: f64,
    eps: f64,
    site: CallSite,
) -> Result<Tensor> {
    let name = "instance_norm";
    let numbers =
        [("running_mean", running_mean), ("running_var", running_var), ("the weight", weight), ("the bias", bias)];
    let channels = check(name, x, &numbers, site)?;
    let running = [running_mean, running_var];
    if !use_input_stats {
        return with_statistics(name, x, running, weight, bias, eps, site);
    }
    let n = x.numel() / (channels * x.shape()[0]).max(1);
    if n < 2 && channels > 0 {
        let e = Error::shape(format!("a channel of an image has {n} elements; it needs 2 or more"));
        return Err(refused(name, x, site, e));
    }
    let inner = inner_calls();
    let y = grouped(x, channels, [weight, bias], eps, site).map_err(|e| e.within(|| name.into()))?;
    if running.iter().any(|r| r.is_some()) {
        let _quiet = no_grad();
        let _scope = site.scope();
        let rows = x.detach().reshape([x.shape()[0], channels, n])?;
        let mean = rows.mean([0, 2])?;
        let var = rows.var_with(2, &crate::functional::VarOptions { correction: 0.0 })?;
        keep_both(running, [&mean, &var.mean(0)?], n, momentum, site)?;
    }
    drop(inner);
    Ok(y)
}
