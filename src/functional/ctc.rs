//! Connectionist temporal classification (Graves et al., 2006).
//!
//! With a blank before, between and behind the labels of a target, `alpha[t][s]` is the logarithm of the probability of all ways to
//! have come to symbol `s` at time `t`. One step adds the ways from `s`, from `s - 1`, and from `s - 2` where that skips a blank
//! between different labels. All sequences of a batch take their steps together, made of ops: gradients of any order follow, and a
//! split batch needs no communication.

use super::attend::filled;
use super::losses::Loss;
use super::{invoke1, op};
use crate::error::{CallSite, Error, Result};
use crate::tensor::Tensor;
use oflow_kernels::{DType, Scalar};
use smallvec::smallvec;

functions! {
    FUNCTIONS, "Losses";
    /// The negative log likelihood of target sequences under all their alignments with log-probabilities `[T, N, C]` (or `[T, C]`).
    /// Targets are `[N, S]`, or one list of all labels, one sequence after the other; both lengths are `[N]`. `zero_infinity` makes
    /// losses 0, and their gradients, where a target does not fit its input. The mean divides each loss by the length of its target
    /// first.
    ///
    /// The gradient is that of the log-probabilities as they are; PyTorch's is that of the logits behind them. Both are the same
    /// through `log_softmax`.
    "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, *, Int blank=0, String reduction=\"mean\", Bool zero_infinity=false) -> Tensor" = ctc_loss;
}

const LAST: i64 = -1;
/// The logarithm of what is impossible: finite, so that no difference of two is NaN.
const NEVER: f64 = -1e30;

/// `0, 1, …` along a line of `n`.
fn counted(n: usize, like: &Tensor, site: CallSite) -> Result<Tensor> {
    filled(&[n], Scalar::Int(1), DType::I64, like, site)?.cumsum(0)?.sub(1)
}

fn concat(parts: &[&Tensor], dim: i64, site: CallSite) -> Result<Tensor> {
    let inputs: Vec<Option<&Tensor>> = parts.iter().map(|t| Some(*t)).collect();
    invoke1(op!("concat"), &inputs, smallvec![dim.into()], smallvec![], site)
}

/// `[N, S]` of a list of all labels: S is the length of the list, because lengths are not read.
fn padded(targets: &Tensor, lengths: &Tensor, site: CallSite) -> Result<Tensor> {
    let (n, all) = (lengths.numel(), targets.numel());
    let starts = lengths.cumsum(0)?.sub(lengths)?.unsqueeze(LAST)?;
    let places = starts.add(&counted(all, targets, site)?.unsqueeze(0)?)?;
    let places = places.clamp_max(all as i64 - 1)?;
    targets.unsqueeze(0)?.expand([n as i64, all as i64])?.gather(1, &places)
}

// As many as the function has.
#[allow(clippy::too_many_arguments)]
pub(super) fn ctc_loss(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &Tensor,
    target_lengths: &Tensor,
    blank: i64,
    reduction: &str,
    zero_infinity: bool,
    site: CallSite,
) -> Result<Tensor> {
    let all = [log_probs, targets, input_lengths, target_lengths];
    let call = Loss::of("ctc_loss", &all, site);
    call.may_reduce(reduction)?;
    if !log_probs.dtype().is_float() || all[1..].iter().any(|t| !matches!(t.dtype(), DType::I64 | DType::I32)) {
        let e = Error::dtype("log-probabilities are floats; targets and lengths are i32 or i64");
        return Err(call.refused(e));
    }
    let single = log_probs.ndim() == 2;
    if !(2..=3).contains(&log_probs.ndim()) || log_probs.shape()[0] == 0 {
        let e = Error::shape(format!("log-probabilities have shape {:?}", log_probs.shape()));
        return Err(call.refused(e.help("they are [T, N, C] or [T, C], with at least one step")));
    }
    let (classes, n) = (log_probs.shape()[log_probs.ndim() - 1], if single { 1 } else { log_probs.shape()[1] });
    if !(0..classes as i64).contains(&blank) {
        return Err(call.refused(Error::argument(format!("the blank {blank} is not within the {classes} classes"))));
    }
    let listed = targets.ndim() == 1;
    let fits = input_lengths.numel() == n && target_lengths.numel() == n && input_lengths.ndim() <= 1;
    if !fits || target_lengths.ndim() > 1 || !(listed || (targets.ndim() == 2 && targets.shape()[0] == n)) {
        let e = Error::shape(format!(
            "targets {:?} and lengths {:?} and {:?} are not of {n} sequences",
            targets.shape(),
            input_lengths.shape(),
            target_lengths.shape()
        ));
        return Err(call.refused(e.help("targets are [N, S] or one list; lengths are [N]")));
    }
    let losses = {
        let _scope = site.scope();
        let probs = if single { log_probs.unsqueeze(1)? } else { log_probs.clone() };
        let whole = |t: &Tensor, shape: &[usize]| t.cast_at(DType::I64, site)?.reshape_at(shape, site);
        let (inputs, lengths) = (whole(input_lengths, &[n])?, whole(target_lengths, &[n])?);
        let steps = log_probs.shape()[0];
        super::count::check_within(&inputs, steps + 1, &format!("input lengths are at most {steps}"), site)?;
        let most = if listed { targets.numel() } else { targets.shape()[1] };
        super::count::check_within(&lengths, most + 1, &format!("target lengths are at most {most}"), site)?;
        let targets = targets.cast_at(DType::I64, site)?;
        let targets = if listed && targets.numel() > 0 {
            let help = format!("the target lengths name more labels than the {most} of the list");
            super::count::check_within(&lengths.sum(())?, most + 1, &help, site)?;
            padded(&targets, &lengths, site)?
        } else {
            targets.reshape_at(&[n, targets.numel() / n.max(1)], site)?
        };
        each(&probs, &targets, &inputs, &lengths, blank, zero_infinity, site)?
    };
    let losses = match reduction {
        "mean" => {
            let _scope = site.scope();
            losses.div(&target_lengths.reshape_at(&[n], site)?.clamp_min(1)?.cast_at(losses.dtype(), site)?)?
        }
        _ => losses,
    };
    let losses = if single && reduction == "none" { losses.reshape_at(&[], site)? } else { losses };
    call.reduced(losses, reduction)
}

/// The loss of each sequence.
fn each(
    probs: &Tensor,
    targets: &Tensor,
    inputs: &Tensor,
    lengths: &Tensor,
    blank: i64,
    zero_infinity: bool,
    site: CallSite,
) -> Result<Tensor> {
    let (steps, n, labels) = (probs.shape()[0], probs.shape()[1], targets.shape()[1]);
    let symbols = 2 * labels + 1;
    let ints = |shape: &[usize], v: i64| filled(shape, Scalar::Int(v), DType::I64, probs, site);
    let number = |shape: &[usize], v: f64| filled(shape, Scalar::Float(v), probs.dtype(), probs, site);
    // Blanks between the labels; what is behind a target is blank too, whatever it holds.
    let behind = counted(labels, probs, site)?.unsqueeze(0)?.ge(&lengths.unsqueeze(LAST)?)?;
    let targets = targets.masked_fill(&behind, blank)?;
    let blanks = ints(&[n, labels, 1], blank)?;
    let pairs = concat(&[&blanks, &targets.unsqueeze(LAST)?], 2, site)?.reshape_at(&[n, 2 * labels], site)?;
    let extended = concat(&[&pairs, &ints(&[n, 1], blank)?], 1, site)?;
    let never = number(&[n, 1], NEVER)?;
    // A blank may be skipped between different labels.
    let skip = if labels > 1 {
        let (now, before) = (extended.narrow(1, 2, symbols - 2)?, extended.narrow(1, 0, symbols - 2)?);
        let stays = now.eq(blank)?.logical_or(&now.eq(&before)?)?.cast_at(probs.dtype(), site)?.mul(NEVER)?;
        Some(stays)
    } else {
        None
    };
    let ids = extended.unsqueeze(0)?.expand([steps as i64, n as i64, symbols as i64])?;
    let emitted = probs.gather(2, &ids)?.clamp_min(NEVER)?;
    // The first symbol is the first blank or the first label.
    let late = counted(symbols, probs, site)?.ge(2)?.cast_at(probs.dtype(), site)?.mul(NEVER)?;
    let mut alpha = emitted.select(0, 0)?.add(&late)?;
    for t in 1..steps {
        let mut ways = alpha.clone();
        if symbols > 1 {
            let from_one = concat(&[&never, &alpha.narrow(1, 0, symbols - 1)?], 1, site)?;
            ways = ways.logaddexp(&from_one)?;
        }
        if let Some(stays) = &skip {
            let from_two = alpha.narrow(1, 0, symbols - 2)?.add(stays)?;
            ways = ways.logaddexp(&concat(&[&never, &never, &from_two], 1, site)?)?;
        }
        let next = ways.add(&emitted.select(0, t)?)?;
        // A sequence that has ended keeps what it has.
        alpha = crate::functional::where_(&inputs.gt(t as i64)?.unsqueeze(LAST)?, &next, &alpha)?;
    }
    let end = lengths.mul(2)?.unsqueeze(LAST)?;
    let last_blank = alpha.gather(1, &end)?.squeeze(1)?;
    let last_label = alpha.gather(1, &end.sub(1)?.clamp_min(0)?)?.squeeze(1)?;
    let last_label = last_label.masked_fill(&lengths.eq(0)?, NEVER)?;
    let likely = last_blank.logaddexp(&last_label)?;
    let impossible = likely.lt(NEVER / 2.0)?;
    likely.neg()?.masked_fill(&impossible, if zero_infinity { 0.0 } else { f64::INFINITY })
}
