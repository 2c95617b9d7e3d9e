//! Loss functions: a loss for each element or row, reduced to its mean or sum, or left as it is.

use super::{invoke1, op};
use crate::context::{FromNumber, inner_calls};
use crate::error::{CallSite, Error, Result};
use crate::ops::{Op, RuntimeAttrs, broadcast_shapes};
use crate::tensor::Tensor;
use oflow_kernels::{DType, DTypeKind};
use smallvec::{SmallVec, smallvec};

functions! {
    FUNCTIONS, "Losses";
    /// The squared error (x - target)²: its mean, or what `reduction` says: `none`, `mean` or `sum`.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let (x, t) = (arange(4, Device::Cpu.dtype(DType::F32))?, ones([4], Device::Cpu)?);
    /// assert_eq!(x.mse_loss(&t)?.to_vec::<f32>()?, [1.5]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "mse_loss(Tensor x, Tensor target, *, String reduction=\"mean\") -> Tensor" = mse_loss;
    /// The absolute error |x - target|.
    "l1_loss(Tensor x, Tensor target, *, String reduction=\"mean\") -> Tensor" = l1_loss;
    /// The squared error over 2 `beta` where |x - target| is below `beta`, else the absolute error less `beta` / 2.
    "smooth_l1_loss(Tensor x, Tensor target, *, Float beta=1.0, String reduction=\"mean\") -> Tensor" = smooth_l1_loss;
    /// Half the squared error where |x - target| is at most `delta`, else `delta` times the absolute error less `delta` / 2.
    "huber_loss(Tensor x, Tensor target, *, Float delta=1.0, String reduction=\"mean\") -> Tensor" = huber_loss;
    /// The cross entropy of probabilities x of one of two classes, and targets between 0 and 1.
    "binary_cross_entropy(Tensor x, Tensor target, *, Tensor? weight, String reduction=\"mean\") -> Tensor" = binary_cross_entropy;
    /// The same of logits, exact also for large ones. `pos_weight` weighs positive targets.
    "binary_cross_entropy_with_logits(Tensor x, Tensor target, *, Tensor? weight, Tensor? pos_weight, String reduction=\"mean\") -> Tensor" = binary_cross_entropy_with_logits;
    /// The Kullback-Leibler divergence target (log target - x) of log-probabilities x from probabilities, or with `log_target` from
    /// log-probabilities. The reduction `batchmean` divides the sum by the size of dim 0.
    "kl_div(Tensor x, Tensor target, *, String reduction=\"mean\", Bool log_target=false) -> Tensor" = kl_div;
    /// log(1 + e^(-target x)), for targets 1 and -1.
    "soft_margin_loss(Tensor x, Tensor target, *, String reduction=\"mean\") -> Tensor" = soft_margin_loss;
    /// x where the target is 1, max(0, margin - x) where it is -1, and the sum of both elsewhere.
    "hinge_embedding_loss(Tensor x, Tensor target, *, Float margin=1.0, String reduction=\"mean\") -> Tensor" = hinge_embedding_loss;
    /// max(0, margin - target (x1 - x2)): with the target 1, x1 is to be larger by `margin`.
    "margin_ranking_loss(Tensor x1, Tensor x2, Tensor target, *, Float margin=0.0, String reduction=\"mean\") -> Tensor" = margin_ranking_loss;
    /// The negative log likelihood of counts under a Poisson distribution whose rate is x, or with `log_input` eˣ. `full` adds
    /// Stirling's approximation for targets above 1.
    "poisson_nll_loss(Tensor x, Tensor target, *, Bool log_input=true, Bool full=false, Float eps=1e-8, String reduction=\"mean\") -> Tensor" = poisson_nll_loss;
    /// The negative log likelihood of targets under normal distributions with these means and variances. Targets broadcast; the
    /// variances may lack the last dim of x, or have dims of size 1. `full` adds the constant log(2π) / 2.
    "gaussian_nll_loss(Tensor x, Tensor target, Tensor var, *, Bool full=false, Float eps=1e-6, String reduction=\"mean\") -> Tensor" = gaussian_nll_loss;
    /// The cosine of the angle between two tensors along a dim; norms below `eps` count as `eps`.
    "cosine_similarity(Tensor x1, Tensor x2, Int dim=1, *, Float eps=1e-8) -> Tensor" = cosine_similarity;
    /// 1 - cos(x1, x2) where the target is 1, else max(0, cos(x1, x2) - margin).
    "cosine_embedding_loss(Tensor x1, Tensor x2, Tensor target, *, Float margin=0.0, String reduction=\"mean\") -> Tensor" = cosine_embedding_loss;
    /// The p-norm of x1 - x2 + eps along the last dim.
    "pairwise_distance(Tensor x1, Tensor x2, *, Float p=2.0, Float eps=1e-6, Bool keepdim=false) -> Tensor" = pairwise_distance;
    /// max(0, d(anchor, positive) - d(anchor, negative) + margin) of rows, d the p-norm of their difference. With `swap` the nearer of
    /// d(anchor, negative) and d(positive, negative) counts.
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, *, Float margin=1.0, Float p=2.0, Float eps=1e-6, Bool swap=false, String reduction=\"mean\") -> Tensor" = triplet_margin_loss;
}

/// A call of a loss function: what errors say of it, and what is asked of its result, which is not asked of what it calls.
pub(super) struct Loss<'a> {
    name: &'static str,
    tensors: &'a [&'a Tensor],
    pub(super) site: CallSite,
    inner: Option<FromNumber>,
}

impl<'a> Loss<'a> {
    pub(super) fn of(name: &'static str, tensors: &'a [&'a Tensor], site: CallSite) -> Loss<'a> {
        Loss { name, tensors, site, inner: Some(inner_calls()) }
    }

    /// The same for its last call, of which a layout may be asked.
    pub(super) fn outermost(self) -> Loss<'a> {
        Loss { inner: None, ..self }
    }

    pub(super) fn refused(&self, e: Error) -> Error {
        let text =
            || format!("{}({})", self.name, self.tensors.iter().map(|t| t.short()).collect::<Vec<_>>().join(", "));
        e.in_call(text).at(self.site)
    }

    /// Shapes must be equal: that of the loss would not be what it seems where one was broadcast.
    pub(super) fn same_shapes(self) -> Result<Loss<'a>> {
        let first = self.tensors[0].shape();
        match self.tensors.iter().find(|t| t.shape() != first) {
            None => Ok(self),
            Some(t) => {
                let e = Error::shape(format!("the shapes {first:?} and {:?} differ", t.shape()));
                Err(self.refused(e.help("`reshape`, `squeeze` or `expand` one of them")))
            }
        }
    }

    /// An op on these tensors.
    pub(super) fn each(&self, op: Result<&'static Op>, tensors: &[&Tensor], runtime: RuntimeAttrs) -> Result<Tensor> {
        let inputs: Vec<Option<&Tensor>> = tensors.iter().map(|t| Some(*t)).collect();
        invoke1(op, &inputs, smallvec![], runtime, self.site)
    }

    /// Refuses a reduction that there is not.
    pub(super) fn may_reduce(&self, reduction: &str) -> Result<()> {
        match reduction {
            "none" | "mean" | "sum" => Ok(()),
            _ => {
                let e = Error::argument(format!("unknown reduction '{reduction}'"));
                Err(self.refused(e.help("it is none, mean or sum")))
            }
        }
    }

    /// The losses of elements, reduced.
    pub(super) fn reduced(self, losses: Tensor, reduction: &str) -> Result<Tensor> {
        self.may_reduce(reduction)?;
        let _scope = self.site.scope();
        drop(self.inner);
        match reduction {
            "mean" => losses.mean(()),
            "sum" => losses.sum(()),
            _ => Ok(losses),
        }
    }
}

/// A loss that is one op on the elements of tensors of one shape.
fn of_elements(
    name: &'static str,
    op: Result<&'static Op>,
    tensors: &[&Tensor],
    runtime: RuntimeAttrs,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    let call = Loss::of(name, tensors, site).same_shapes()?;
    // Targets may be integers.
    let (first, last) = (tensors[0].dtype(), tensors[tensors.len() - 1]);
    let target = match first.is_float() && !last.dtype().is_float() {
        true => last.cast_at(first, site)?,
        false => last.clone(),
    };
    let mut given: SmallVec<[&Tensor; 3]> = tensors.into();
    given[tensors.len() - 1] = &target;
    let y = call.each(op, &given, runtime)?;
    call.reduced(y, reduction)
}

pub(super) fn mse_loss(x: &Tensor, target: &Tensor, reduction: &str, site: CallSite) -> Result<Tensor> {
    of_elements("mse_loss", op!("mse_each"), &[x, target], smallvec![], reduction, site)
}

pub(super) fn l1_loss(x: &Tensor, target: &Tensor, reduction: &str, site: CallSite) -> Result<Tensor> {
    of_elements("l1_loss", op!("l1_each"), &[x, target], smallvec![], reduction, site)
}

pub(super) fn smooth_l1_loss(
    x: &Tensor,
    target: &Tensor,
    beta: f64,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    let both = [x, target];
    let call = Loss::of("smooth_l1_loss", &both, site).same_shapes()?;
    if beta.is_nan() || beta < 0.0 {
        return Err(call.refused(Error::argument(format!("beta is {beta}")).help("beta is at least 0")));
    }
    let y = call.each(op!("smooth_l1_each"), &both, smallvec![beta.into()])?;
    call.reduced(y, reduction)
}

pub(super) fn huber_loss(x: &Tensor, target: &Tensor, delta: f64, reduction: &str, site: CallSite) -> Result<Tensor> {
    let both = [x, target];
    let call = Loss::of("huber_loss", &both, site).same_shapes()?;
    if delta.is_nan() || delta <= 0.0 {
        return Err(call.refused(Error::argument(format!("delta is {delta}")).help("delta is greater than 0")));
    }
    let y = call.each(op!("huber_each"), &both, smallvec![delta.into()])?;
    call.reduced(y, reduction)
}

/// Times a weight, which may broadcast.
pub(super) fn weighted(call: &Loss<'_>, y: Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    let Some(w) = weight else { return Ok(y) };
    let y = call.each(op!("mul"), &[&y, w], smallvec![])?;
    if y.shape() == call.tensors[0].shape() {
        return Ok(y);
    }
    Err(call.refused(Error::shape(format!("a weight {:?} does not broadcast to the losses", w.shape()))))
}

pub(super) fn binary_cross_entropy(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    let both = [x, target];
    let call = Loss::of("binary_cross_entropy", &both, site).same_shapes()?;
    let y = call.each(op!("bce_each"), &both, smallvec![])?;
    let y = weighted(&call, y, weight)?;
    call.reduced(y, reduction)
}

pub(super) fn binary_cross_entropy_with_logits(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    pos_weight: Option<&Tensor>,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    let both = [x, target];
    let call = Loss::of("binary_cross_entropy_with_logits", &both, site).same_shapes()?;
    let y = match pos_weight {
        None => call.each(op!("bce_logits_each"), &both, smallvec![])?,
        Some(w) => call.each(op!("bce_logits_weighted_each"), &[x, target, w], smallvec![])?,
    };
    let y = weighted(&call, y, weight)?;
    call.reduced(y, reduction)
}

pub(super) fn kl_div(x: &Tensor, target: &Tensor, reduction: &str, log_target: bool, site: CallSite) -> Result<Tensor> {
    let both = [x, target];
    let call = Loss::of("kl_div", &both, site).same_shapes()?;
    let each = if log_target { op!("kl_log_each") } else { op!("kl_each") };
    let y = call.each(each, &both, smallvec![])?;
    if reduction != "batchmean" {
        return call.reduced(y, reduction);
    }
    let rows = x.shape().first().copied().unwrap_or(1);
    let _scope = site.scope();
    let total = y.sum(())?;
    drop(call.inner);
    total.div(rows as f64)
}

pub(super) fn soft_margin_loss(x: &Tensor, target: &Tensor, reduction: &str, site: CallSite) -> Result<Tensor> {
    of_elements("soft_margin_loss", op!("soft_margin_each"), &[x, target], smallvec![], reduction, site)
}

pub(super) fn hinge_embedding_loss(
    x: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    of_elements("hinge_embedding_loss", op!("hinge_each"), &[x, target], smallvec![margin.into()], reduction, site)
}

/// Integers and bools as f32, which a loss of them is.
fn of_floats<const N: usize>(tensors: [&Tensor; N], site: CallSite) -> Result<[Tensor; N]> {
    let inner = inner_calls();
    let mut made = tensors.map(Clone::clone);
    for t in &mut made {
        if matches!(t.dtype().kind(), DTypeKind::Int | DTypeKind::Bool) {
            *t = t.cast_at(DType::F32, site)?;
        }
    }
    drop(inner);
    Ok(made)
}

pub(super) fn margin_ranking_loss(
    x1: &Tensor,
    x2: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    let [x1, x2, target] = &of_floats([x1, x2, target], site)?;
    of_elements(
        "margin_ranking_loss",
        op!("ranking_each"),
        &[x1, x2, target],
        smallvec![margin.into()],
        reduction,
        site,
    )
}

pub(super) fn poisson_nll_loss(
    x: &Tensor,
    target: &Tensor,
    log_input: bool,
    full: bool,
    eps: f64,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    let both = [x, target];
    let call = Loss::of("poisson_nll_loss", &both, site).same_shapes()?;
    let y = {
        let _scope = site.scope();
        let y = match log_input {
            true => x.exp()?.sub(&target.mul(x)?)?,
            false => x.sub(&target.mul(&x.add(eps)?.log()?)?)?,
        };
        match full {
            false => y,
            true => {
                let stirling = target.mul(&target.log()?)?.sub(target)?;
                let stirling = stirling.add(&target.mul(std::f64::consts::TAU)?.log()?.mul(0.5)?)?;
                y.add(&stirling.masked_fill(&target.le(1.0)?, 0.0)?)?
            }
        }
    };
    call.reduced(y, reduction)
}

pub(super) fn gaussian_nll_loss(
    x: &Tensor,
    target: &Tensor,
    var: &Tensor,
    full: bool,
    eps: f64,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    let both = [x, target];
    let call = Loss::of("gaussian_nll_loss", &both, site);
    let fits = |v: &[usize]| v.len() == x.ndim() && v.iter().zip(x.shape()).all(|(v, n)| v == n || *v == 1);
    let lacks_last = x.ndim() > 0 && var.shape() == &x.shape()[..x.ndim() - 1];
    if !lacks_last && !fits(var.shape()) {
        let e = Error::shape(format!("the variances have shape {:?}", var.shape()));
        return Err(call.refused(e.help("they have the shape of x, without its last dim, or with dims of size 1")));
    }
    let y = {
        let _scope = site.scope();
        let var = &if lacks_last { var.unsqueeze(-1)? } else { var.clone() };
        // The gradient of the variance passes also where it was raised to eps, as in PyTorch.
        let raised = var.add(&var.detach().clamp_min(eps)?.sub(&var.detach())?)?;
        let y = raised.log()?.add(&x.sub(target)?.square()?.div(&raised)?)?.mul(0.5)?;
        if full { y.add(0.5 * std::f64::consts::TAU.ln())? } else { y }
    };
    call.reduced(y, reduction)
}

pub(super) fn cosine_similarity(x1: &Tensor, x2: &Tensor, dim: i64, eps: f64, site: CallSite) -> Result<Tensor> {
    let _scope = site.scope();
    let inner = inner_calls();
    // What broadcasts counts as often as it is repeated.
    let (mut x1, mut x2) = (x1.clone(), x2.clone());
    if x1.shape() != x2.shape() {
        let named = |e: Error| e.in_call(|| format!("cosine_similarity({}, {})", x1.short(), x2.short())).at(site);
        let shape: Vec<i64> =
            broadcast_shapes([x1.shape(), x2.shape()]).map_err(named)?.iter().map(|n| *n as i64).collect();
        (x1, x2) = (x1.expand(&shape[..])?, x2.expand(&shape[..])?);
    }
    let product = x1.mul(&x2)?.sum(dim)?;
    let length = |x: &Tensor| {
        let squares = x.square()?.sum(dim)?;
        let length = invoke1(op!("root"), &[Some(&squares)], smallvec![], smallvec![], site)?;
        length.clamp_min(eps)
    };
    let lengths = length(&x1)?.mul(&length(&x2)?)?;
    drop(inner);
    product.div(&lengths)
}

pub(super) fn cosine_embedding_loss(
    x1: &Tensor,
    x2: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    let all = [x1, x2, target];
    let call = Loss::of("cosine_embedding_loss", &all, site);
    if x1.shape() != x2.shape()
        || x1.ndim() != target.ndim() + 1
        || !x1.shape().starts_with(&target.shape()[..target.ndim().min(1)])
    {
        let e = Error::shape(format!(
            "{:?}, {:?} and targets {:?} do not belong together",
            x1.shape(),
            x2.shape(),
            target.shape()
        ));
        return Err(call.refused(e.help("it takes rows `[N, D]` and targets `[N]`, or vectors `[D]` and one target")));
    }
    let y = {
        let [x1, x2] = &of_floats([x1, x2], site)?;
        let cosine = cosine_similarity(x1, x2, -1, 1e-8, site)?;
        let _scope = site.scope();
        let zero = cosine.mul(0.0)?;
        let alike = crate::functional::where_(&target.eq(1.0)?, &cosine.rsub(1.0)?, &zero)?;
        let apart = crate::functional::where_(&target.eq(-1.0)?, &cosine.sub(margin)?.relu()?, &zero)?;
        alike.add(&apart)?
    };
    call.reduced(y, reduction)
}

pub(super) fn pairwise_distance(
    x1: &Tensor,
    x2: &Tensor,
    p: f64,
    eps: f64,
    keepdim: bool,
    site: CallSite,
) -> Result<Tensor> {
    distance_in("pairwise_distance", [x1, x2], p, eps, keepdim, site)
}

/// The distance, for the function of that name.
fn distance_in(name: &str, [x1, x2]: [&Tensor; 2], p: f64, eps: f64, keepdim: bool, site: CallSite) -> Result<Tensor> {
    let inner = inner_calls();
    let difference = {
        let _scope = site.scope();
        x1.sub(x2)?.add(eps)?
    };
    drop(inner);
    super::reduce::norm_in(name, &difference, p, &[-1], keepdim, site)
}

// As many as the function has.
#[allow(clippy::too_many_arguments)]
pub(super) fn triplet_margin_loss(
    anchor: &Tensor,
    positive: &Tensor,
    negative: &Tensor,
    margin: f64,
    p: f64,
    eps: f64,
    swap: bool,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    let all = [anchor, positive, negative];
    let call = Loss::of("triplet_margin_loss", &all, site).same_shapes()?;
    if margin.is_nan() || margin <= 0.0 {
        return Err(call.refused(Error::argument(format!("the margin is {margin}")).help("it is greater than 0")));
    }
    let distance = |a: &Tensor, b: &Tensor| distance_in("triplet_margin_loss", [a, b], p, eps, false, site);
    let (near, far) = (distance(anchor, positive)?, distance(anchor, negative)?);
    let y = {
        let _scope = site.scope();
        let far = match swap {
            true => far.minimum(&distance(positive, negative)?)?,
            false => far,
        };
        near.sub(&far)?.add(margin)?.relu()?
    };
    call.reduced(y, reduction)
}
