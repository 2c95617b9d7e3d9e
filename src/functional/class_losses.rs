//! Losses of rows of classes: cross entropy and its like, the margins of classes and labels.

use super::losses::Loss;
use super::{invoke, invoke1, op};
use crate::context::{autocast_mode, inner_calls};
use crate::error::{CallSite, Error, Result};
use crate::interpreter::Outputs;
use crate::ops::{AttrValue, Autocast, normalize_dim};
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;
use std::borrow::Cow;

functions! {
    FUNCTIONS, "Losses";
    /// The cross entropy of logits whose classes lie along `dim`, as in PyTorch dim 1 unless given (dim 0 of a single row), and targets:
    /// class indices (integers, with the other dims), or probabilities (with all dims).
    ///
    /// `weight` has a factor for each class. Rows whose target is `ignore_index` have the loss 0. `label_smoothing` ε mixes the targets
    /// with ε of the uniform distribution. The reduction is `mean`, `sum` or `none`; the mean of indices divides by the weights of the
    /// targets that are not ignored, that of probabilities by the number of rows.
    ///
    /// The loss of half logits is a half, rounded at the end; under autocast it is f32. PyTorch ignores the target -100 unless told
    /// otherwise.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = zeros([2, 4], Device::Cpu)?;
    /// let target = from_vec(vec![3i64, 0], [2], Device::Cpu)?;
    /// assert_eq!(x.cross_entropy(&target)?.to_vec::<f32>()?, [4f32.ln()]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "cross_entropy(Tensor logits, Tensor target, *, Tensor? weight, Int? ignore_index, String reduction=\"mean\", Float label_smoothing=0.0, Int dim=1) -> Tensor" = cross_entropy;
    /// The negative log likelihood of log-probabilities whose classes lie along `dim`, as in PyTorch, and class indices with the other
    /// dims. `weight`, `ignore_index` and `reduction` are those of `cross_entropy`.
    "nll_loss(Tensor x, Tensor target, *, Tensor? weight, Int? ignore_index, String reduction=\"mean\", Int dim=1) -> Tensor" = nll_loss;
    /// Per row the mean over all classes but the target of max(0, margin - x\[target\] + x)ᵖ, times the weight of the target. p is 1 or 2.
    "multi_margin_loss(Tensor x, Tensor target, *, Int p=1, Float margin=1.0, Tensor? weight, String reduction=\"mean\") -> Tensor" = multi_margin_loss;
    /// Per row the sum over labels y and classes c that are none of max(0, 1 - x\[y\] + x\[c\]), divided by the number of classes. The labels of
    /// a row are those before its first -1.
    "multilabel_margin_loss(Tensor x, Tensor target, *, String reduction=\"mean\") -> Tensor" = multilabel_margin_loss;
    /// Per row the mean over the last dim of the binary cross entropy of logits, times `weight`.
    "multilabel_soft_margin_loss(Tensor x, Tensor target, *, Tensor? weight, String reduction=\"mean\") -> Tensor" = multilabel_soft_margin_loss;
}

/// An index that no target has: nothing is ignored.
const NONE: i64 = i64::MIN;
const LAST: i64 = -1;

/// The classes as the last dim.
fn classes_last(call: &Loss<'_>, x: &Tensor, dim: i64) -> Result<Tensor> {
    let rank = x.ndim();
    if rank == 0 {
        return Err(call.refused(Error::shape("a tensor without dims has no classes")));
    }
    // The dim of a single row is 0, which the default of PyTorch's form is not.
    let dim = if rank == 1 && dim == 1 { 0 } else { dim };
    let dim = normalize_dim(dim, rank).map_err(|e| call.refused(e))?;
    if dim + 1 == rank {
        return Ok(x.clone());
    }
    let order: Vec<i64> = (0..rank).filter(|d| *d != dim).chain([dim]).map(|d| d as i64).collect();
    invoke1(op!("permute"), &[Some(x)], smallvec![AttrValue::from(&order[..])], smallvec![], call.site)
}

/// Targets have the dims of the rows.
/// Indices of classes as i64: those of other integers are converted.
fn indices(target: &Tensor, site: CallSite) -> Result<Cow<'_, Tensor>> {
    let dtype = target.dtype();
    Ok(if dtype != DType::I64 && dtype.kind() == DType::I64.kind() {
        Cow::Owned(target.cast_at(DType::I64, site)?)
    } else {
        Cow::Borrowed(target)
    })
}

fn of_rows(call: &Loss<'_>, x: &Tensor, target: &Tensor) -> Result<()> {
    let rows = &x.shape()[..x.ndim() - 1];
    if target.shape() == rows {
        return Ok(());
    }
    let e = Error::shape(format!("the target has shape {:?}, the rows of classes {rows:?}", target.shape()));
    Err(call.refused(e.help("`dim` says along which dim the classes lie")))
}

/// Weights of classes are as many as there are classes.
fn of_classes(call: &Loss<'_>, x: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    let classes = x.shape()[x.ndim() - 1];
    match weight {
        Some(w) if w.shape() != [classes] => {
            let e = Error::shape(format!("the weight has shape {:?} for {classes} classes", w.shape()));
            Err(call.refused(e.help("it has one element for each class")))
        }
        Some(w) if !w.dtype().is_float() => {
            Err(call.refused(Error::dtype(format!("the weight must be a float tensor, not {}", w.dtype()))))
        }
        _ => Ok(()),
    }
}

fn picked(call: &Loss<'_>, x: &Tensor, target: &Tensor, ignore: i64) -> Result<Tensor> {
    invoke1(op!("nll_pick"), &[Some(x), Some(target)], smallvec![ignore.into()], smallvec![], call.site)
}

/// The weight of each row's target, 0 where it is ignored.
fn weights_of(call: &Loss<'_>, x: &Tensor, target: &Tensor, weight: &Tensor, ignore: i64) -> Result<Tensor> {
    let shape: Vec<i64> = x.shape().iter().map(|n| *n as i64).collect();
    picked(call, &weight.expand(shape)?, target, ignore)
}

/// The losses of rows, reduced: the mean divides by the weights, or by the number of rows that count.
fn reduced(
    call: Loss<'_>,
    losses: Tensor,
    target: &Tensor,
    weights: Option<&Tensor>,
    ignore: Option<i64>,
    reduction: &str,
) -> Result<Tensor> {
    let site = call.site;
    let sum = |x: &Tensor| {
        let all = smallvec![AttrValue::Ints(smallvec![]), false.into()];
        invoke1(op!("sum"), &[Some(x)], all, smallvec![], site)
    };
    if reduction != "mean" {
        return call.reduced(losses, reduction);
    }
    let total = sum(&losses)?;
    let count = match (weights, ignore) {
        (Some(w), _) => Some(sum(w)?),
        (None, Some(i)) => {
            let taken = invoke1(op!("ne_scalar"), &[Some(target)], smallvec![], smallvec![i.into()], site)?;
            Some(sum(&taken)?)
        }
        (None, None) => None,
    };
    drop(call);
    match count {
        Some(count) => invoke1(op!("div"), &[Some(&total), Some(&count)], smallvec![], smallvec![], site),
        // The count is known without looking: P(sum) stays P(sum).
        None => {
            let s = Scalar::Float(1.0 / losses.numel() as f64);
            invoke1(op!("mul_scalar"), &[Some(&total)], smallvec![], smallvec![s], site)
        }
    }
}

/// How a cross entropy is taken.
struct Entropy<'a> {
    weight: Option<&'a Tensor>,
    ignore_index: Option<i64>,
    reduction: &'a str,
    label_smoothing: f64,
    dim: i64,
}

// As many as the function has.
#[allow(clippy::too_many_arguments)]
pub(super) fn cross_entropy(
    logits: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignore_index: Option<i64>,
    reduction: &str,
    label_smoothing: f64,
    dim: i64,
    site: CallSite,
) -> Result<Tensor> {
    let options = Entropy { weight, ignore_index, reduction, label_smoothing, dim };
    // Losses of halves are f32 until they are reduced. Under autocast, whose cross entropy is f32, they stay so.
    if !logits.dtype().is_half() || autocast_mode() != Autocast::Off {
        return entropy(logits, target, &options, site);
    }
    let inner = inner_calls();
    let wide = entropy(logits, target, &options, site)?;
    drop(inner);
    if wide.dtype() == logits.dtype() { Ok(wide) } else { wide.cast_at(logits.dtype(), site) }
}

/// The cross entropy, of half logits and class indices in f32.
fn entropy(logits: &Tensor, target: &Tensor, options: &Entropy<'_>, site: CallSite) -> Result<Tensor> {
    let Entropy { weight, ignore_index, reduction, label_smoothing, dim } = *options;
    let both = [logits, target];
    let call = Loss::of("cross_entropy", &both, site);
    call.may_reduce(reduction)?;
    if !(0.0..=1.0).contains(&label_smoothing) {
        let e = Error::argument(format!("label_smoothing is {label_smoothing}")).help("it is within 0 and 1");
        return Err(call.refused(e));
    }
    let x = classes_last(&call, logits, dim)?;
    of_classes(&call, &x, weight)?;
    if target.dtype().is_float() {
        return of_probabilities(call, &x, target, options);
    }
    of_rows(&call, &x, target)?;
    let target = &*indices(target, site)?;
    let ignore = ignore_index.unwrap_or(NONE);
    // The kernel smooths what has no weights.
    let smoothing = if weight.is_none() { label_smoothing } else { 0.0 };
    let rows = |call: &Loss<'_>| -> Result<Outputs> {
        let attrs = smallvec![ignore.into(), smoothing.into()];
        invoke(op!("cross_entropy"), &[Some(&x), Some(target)], attrs, smallvec![], call.site)
    };
    let Some(weight) = weight else {
        if reduction == "none" {
            // This is the last op: a layout may be asked of it.
            let call = call.outermost();
            return Ok(rows(&call)?.swap_remove(0));
        }
        let losses = rows(&call)?.swap_remove(0);
        return reduced(call, losses, target, None, ignore_index, reduction);
    };
    let mut outs = rows(&call)?;
    let (lse, losses) = (outs.swap_remove(1), outs.swap_remove(0));
    let weights = weights_of(&call, &x, target, weight, ignore)?;
    let losses = {
        let _scope = site.scope();
        let losses = losses.mul(&weights)?;
        if label_smoothing == 0.0 {
            losses
        } else {
            let classes = weight.shape()[0].max(1) as f64;
            let (wide, weight) = (x.cast_at(lse.dtype(), site)?, weight.cast_at(lse.dtype(), site)?);
            let all = lse.mul(&weight.sum(())?)?.sub(&wide.matmul(&weight)?)?;
            let all = all.masked_fill(&target.eq(ignore)?, 0.0)?;
            losses.mul(1.0 - label_smoothing)?.add(&all.mul(label_smoothing / classes)?)?
        }
    };
    reduced(call, losses, target, Some(&weights), ignore_index, reduction)
}

/// Cross entropy with a distribution for each row.
fn of_probabilities(call: Loss<'_>, x: &Tensor, target: &Tensor, options: &Entropy<'_>) -> Result<Tensor> {
    let Entropy { weight, ignore_index, reduction, label_smoothing, dim } = *options;
    if ignore_index.is_some_and(|i| i >= 0) {
        return Err(call.refused(Error::argument("probabilities have no index to ignore")));
    }
    if target.ndim() + 1 == x.ndim() {
        let (shape, dtype) = (target.shape(), target.dtype());
        let e = Error::dtype(format!("the targets {shape:?} have no dim of classes, and are {dtype}"));
        return Err(call.refused(
            e.help("indices of classes are integers: `cast` them to i64; probabilities have the shape of x"),
        ));
    }
    let call = call.same_shapes()?;
    let target = classes_last(&call, target, dim)?;
    let classes = x.shape()[x.ndim() - 1].max(1) as f64;
    let losses = {
        let _scope = call.site.scope();
        let target = match label_smoothing {
            0.0 => target,
            s => target.mul(1.0 - s)?.add(s / classes)?,
        };
        let each = x.log_softmax(LAST)?.mul(&target)?;
        let each = weight.map_or(Ok(each.clone()), |w| each.mul(w))?;
        each.sum(LAST)?.neg()?
    };
    call.reduced(losses, reduction)
}

pub(super) fn nll_loss(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignore_index: Option<i64>,
    reduction: &str,
    dim: i64,
    site: CallSite,
) -> Result<Tensor> {
    let both = [x, target];
    let call = Loss::of("nll_loss", &both, site);
    call.may_reduce(reduction)?;
    let x = classes_last(&call, x, dim)?;
    of_classes(&call, &x, weight)?;
    of_rows(&call, &x, target)?;
    let target = &*indices(target, site)?;
    let ignore = ignore_index.unwrap_or(NONE);
    let weights = weight.map(|w| weights_of(&call, &x, target, w, ignore)).transpose()?;
    let losses = {
        let picked = picked(&call, &x, target, ignore)?;
        let _scope = site.scope();
        let losses = picked.neg()?;
        weights.as_ref().map_or(Ok(losses.clone()), |w| losses.mul(w))?
    };
    reduced(call, losses, target, weights.as_ref(), ignore_index, reduction)
}

pub(super) fn multi_margin_loss(
    x: &Tensor,
    target: &Tensor,
    p: i64,
    margin: f64,
    weight: Option<&Tensor>,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    let both = [x, target];
    let call = Loss::of("multi_margin_loss", &both, site);
    if !(1..=2).contains(&p) {
        return Err(call.refused(Error::argument(format!("p is {p}")).help("it is 1 or 2")));
    }
    // One row may have a target with or without a dim, and a number is a row of one class.
    let shaped = |t: &Tensor, shape: &[usize]| Ok::<_, Error>(t.reshape_at(shape, site)?.into_result());
    let (x, target) = match (x.ndim(), target.ndim()) {
        (0, 0) => (&shaped(x, &[1])?, target),
        (1, 1) if target.numel() == 1 => (x, &shaped(target, &[])?),
        _ => (x, target),
    };
    let x = classes_last(&call, x, LAST)?;
    of_classes(&call, &x, weight)?;
    of_rows(&call, &x, target)?;
    let classes = x.shape()[x.ndim() - 1];
    let losses = {
        let wanted = picked(&call, &x, target, NONE)?;
        let _scope = site.scope();
        let short = x.sub(&wanted.unsqueeze(LAST)?)?.add(margin)?.relu()?;
        let short = if p == 2 { short.square()? } else { short };
        let attrs = smallvec![AttrValue::from(classes), DType::Bool.into()];
        let own = invoke1(op!("one_hot"), &[Some(target)], attrs, smallvec![], site)?;
        let losses = short.masked_fill(&own, 0.0)?.sum(LAST)?.div(classes as f64)?;
        match weight {
            Some(w) => losses.mul(&weights_of(&call, &x, target, w, NONE)?)?,
            None => losses,
        }
    };
    call.reduced(losses, reduction)
}

pub(super) fn multilabel_margin_loss(x: &Tensor, target: &Tensor, reduction: &str, site: CallSite) -> Result<Tensor> {
    let both = [x, target];
    let call = Loss::of("multilabel_margin_loss", &both, site).same_shapes()?;
    // A number is a row of one class.
    let row = |t: &Tensor| -> Result<Tensor> {
        match t.ndim() {
            0 => Ok(t.reshape_at(&[1], site)?.into_result()),
            _ => Ok(t.clone()),
        }
    };
    let (x, target) = (row(x)?, row(target)?);
    let (x, target) = (classes_last(&call, &x, LAST)?, &target);
    let classes = x.shape()[x.ndim() - 1].max(1) as f64;
    let losses = {
        let _scope = site.scope();
        // Below -1 there is no label; -1 ends a row.
        super::count::check_within(
            &target.add(1)?,
            x.shape()[x.ndim() - 1] + 1,
            "labels are classes, or -1 behind the last one",
            site,
        )?;
        let none = target.lt(0)?.cast_at(DType::I64, site)?.cumsum(LAST)?.ne(0)?;
        let labels = target.masked_fill(&none, 0)?;
        // Which classes are labels: how often each is one.
        let real = none.logical_not()?.cast_at(DType::I64, site)?;
        let rows = AttrValue::from(x.shape()[x.ndim() - 1]);
        let attrs = smallvec![LAST.into(), rows];
        let counts = invoke1(op!("scatter_sum"), &[Some(&real), Some(&labels)], attrs, smallvec![], site)?;
        let wanted = x.gather(LAST, &labels)?;
        let short = x.unsqueeze(-2)?.sub(&wanted.unsqueeze(LAST)?)?.add(1.0)?.relu()?;
        let left_out = none.unsqueeze(LAST)?.logical_or(&counts.ne(0)?.unsqueeze(-2)?)?;
        short.masked_fill(&left_out, 0.0)?.sum([-2, LAST])?.div(classes)?
    };
    call.reduced(losses, reduction)
}

pub(super) fn multilabel_soft_margin_loss(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: &str,
    site: CallSite,
) -> Result<Tensor> {
    let both = [x, target];
    let call = Loss::of("multilabel_soft_margin_loss", &both, site).same_shapes()?;
    if x.ndim() == 0 {
        return Err(call.refused(Error::shape("a tensor without dims has no labels")));
    }
    // Labels may be integers.
    let target = if target.dtype().is_float() { target.clone() } else { target.cast_at(x.dtype(), site)? };
    let each = call.each(op!("bce_logits_each"), &[x, &target], smallvec![])?;
    let each = super::losses::weighted(&call, each, weight)?;
    let losses = {
        let _scope = site.scope();
        each.mean(LAST)?
    };
    call.reduced(losses, reduction)
}
