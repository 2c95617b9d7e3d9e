"""Losses under PyTorch's names and with its arguments."""

import oflow

from .. import _core


def _reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}')


def cross_entropy(input, target, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Cross entropy of logits ``[C]``, ``[N, C]`` or ``[N, C, ...]`` and class indices (``[N, ...]``) or probabilities (of the shape of
    the logits). ``"mean"`` is over the rows that are not ignored, by their weights. ``oflow.cross_entropy`` is the same with another
    dim of classes, its ``dim``, where one is given, and ignores no index unless told."""
    return oflow.cross_entropy(
        input,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def mse_loss(input, target, *, reduction="mean"):
    """(input - target)² of each element, reduced."""
    return _reduced((input - target) ** 2, reduction)


def l1_loss(input, target, *, reduction="mean"):
    """|input - target| of each element, reduced."""
    return _reduced((input - target).abs(), reduction)


def huber_loss(input, target, reduction="mean", delta=1.0):
    """Half of the squared difference within ``delta``, and linear beyond, reduced."""
    if delta <= 0:
        raise ValueError(f"delta is above 0, not {delta}")
    apart = (input - target).abs()
    near = apart.clamp(0.0, delta)
    return _reduced(near * (apart - near * 0.5), reduction)


def smooth_l1_loss(input, target, *, reduction="mean", beta=1.0):
    """``huber_loss`` divided by ``beta``; ``l1_loss`` where beta is 0."""
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return huber_loss(input, target, reduction, beta) / beta


def binary_cross_entropy_with_logits(input, target, weight=None, *, reduction="mean", pos_weight=None):
    """Binary cross entropy of logits and probabilities, times ``weight``, reduced. ``pos_weight`` multiplies the losses of positive targets."""
    return oflow.binary_cross_entropy_with_logits(input, target, weight=weight, pos_weight=pos_weight, reduction=reduction)


def binary_cross_entropy(input, target, weight=None, *, reduction="mean"):
    """Binary cross entropy of probabilities and targets between 0 and 1, times ``weight``, reduced."""
    return oflow.binary_cross_entropy(input, target, weight=weight, reduction=reduction)


def kl_div(input, target, *, reduction="mean", log_target=False):
    """The Kullback-Leibler divergence of log-probabilities ``input`` from probabilities, or with ``log_target`` from log-probabilities.
    The reduction ``"batchmean"`` divides the sum by the size of dim 0."""
    return oflow.kl_div(input, target, reduction=reduction, log_target=log_target)


def soft_margin_loss(input, target, *, reduction="mean"):
    """log(1 + e^(-target input)) for targets 1 and -1, reduced."""
    return oflow.soft_margin_loss(input, target, reduction=reduction)


def hinge_embedding_loss(input, target, margin=1.0, *, reduction="mean"):
    """x where the target is 1, else max(0, margin - x), reduced."""
    return oflow.hinge_embedding_loss(input, target, margin=margin, reduction=reduction)


def margin_ranking_loss(input1, input2, target, margin=0.0, *, reduction="mean"):
    """max(0, margin - target (input1 - input2)), reduced."""
    return oflow.margin_ranking_loss(input1, input2, target, margin=margin, reduction=reduction)


def cosine_embedding_loss(input1, input2, target, margin=0.0, *, reduction="mean"):
    """1 - cos of the rows where the target is 1, else max(0, cos - margin), reduced."""
    return oflow.cosine_embedding_loss(input1, input2, target, margin=margin, reduction=reduction)


def poisson_nll_loss(input, target, log_input=True, full=False, *, eps=1e-8, reduction="mean"):
    """The negative log likelihood of counts under a Poisson distribution whose rate is x, or with ``log_input`` eˣ. ``full`` adds Stirling's
    approximation."""
    return oflow.poisson_nll_loss(input, target, log_input=log_input, full=full, eps=eps, reduction=reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """The negative log likelihood of targets under normal distributions with these means and variances: a number, or a tensor of which
    the last dim may be left out and one dim may be 1."""
    if not isinstance(var, oflow.Tensor):
        var = oflow.full([1] * input.ndim, float(var), dtype=input.dtype, **_core.beside(input))
    return oflow.gaussian_nll_loss(input, target, var, full=full, eps=eps, reduction=reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, *, reduction="mean"):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) of rows, d the p-norm of their difference, reduced. With ``swap`` the
    nearer of d(anchor, negative) and d(positive, negative) counts."""
    return oflow.triplet_margin_loss(
        anchor, positive, negative, margin=margin, p=p, eps=eps, swap=swap, reduction=reduction
    )


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """``triplet_margin_loss`` with any distance of two tensors; ``pairwise_distance`` unless given."""
    if not margin > 0:
        raise ValueError(f"the margin is greater than 0, not {margin}")
    distance = oflow.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    far = oflow.minimum(far, distance(positive, negative)) if swap else far
    return _reduced((near - far + margin).relu(), reduction)


def nll_loss(input, target, weight=None, *, ignore_index=-100, reduction="mean"):
    """Negative log likelihood of log probabilities ``[C]``, ``[N, C]`` or ``[N, C, ...]`` and class indices. ``"mean"`` is over the rows
    that are not ignored, by their weights."""
    return oflow.nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, *, reduction="mean"):
    """The mean over all classes but the target of max(0, margin - x[target] + x) to the power p, reduced over rows."""
    return oflow.multi_margin_loss(input, target, p=p, margin=margin, weight=weight, reduction=reduction)


def multilabel_margin_loss(input, target, *, reduction="mean"):
    """max(0, 1 - x[y] + x[c]) of labels y and classes c that are none, divided by the number of classes, reduced over rows. Labels
    end at the first -1 of a row."""
    return oflow.multilabel_margin_loss(input, target, reduction=reduction)


def multilabel_soft_margin_loss(input, target, weight=None, *, reduction="mean"):
    """Binary cross entropy of logits, its mean over the last dim, reduced over rows."""
    return oflow.multilabel_soft_margin_loss(input, target, weight=weight, reduction=reduction)


def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):
    """The negative log likelihood of targets under all their alignments with log-probabilities ``[T, N, C]``. Lengths are tensors,
    lists or tuples. The gradient is that of the log-probabilities as they are."""

    def lengths(of):
        if isinstance(of, oflow.Tensor):
            return of
        made = oflow.tensor(list(of) if hasattr(of, "__iter__") else of, dtype=oflow.int64)
        return oflow.distribute(made, **_core.beside(log_probs)) if log_probs.is_global else made

    return oflow.ctc_loss(
        log_probs,
        targets,
        lengths(input_lengths),
        lengths(target_lengths),
        blank=blank,
        reduction=reduction,
        zero_infinity=zero_infinity,
    )
