"""A softmax over many classes of which few are frequent."""

from typing import NamedTuple

import oflow

from .._oflow import Tensor
from . import functional as F
from .containers import ModuleList, Sequential
from .layers import Linear, _size
from .module import Module

_ASMoutput = NamedTuple("ASMoutput", [("output", Tensor), ("loss", Tensor)])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes that are sorted by frequency, the most frequent first (Grave et al., 2017). A head has the classes below
    ``cutoffs[0]`` and one class for each of the clusters that the other cutoffs bound; each cluster has a small matrix of its own, which
    runs only on the rows whose target is in it. ``div_value`` to the power of the cluster's number divides its width.

    A call ``(input [N, in_features], target [N])``, or without N, gives the log-probabilities of the targets and their mean, negated.
    """

    def __init__(
        self,
        in_features,
        n_classes,
        cutoffs,
        div_value=4.0,
        head_bias=False,
        device=None,
        dtype=None,
        *,
        placement=None,
        sbp=None,
    ):
        super().__init__()
        cutoffs = list(cutoffs)
        whole = all(isinstance(c, int) and not isinstance(c, bool) for c in cutoffs)
        if not cutoffs or not whole or cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(f"cutoffs are increasing whole numbers from 1 to {n_classes - 1}, the classes but one, not {cutoffs}")
        layout = {"device": device, "placement": placement, "sbp": sbp, "dtype": dtype}
        self.in_features, self.n_classes = _size("in_features", in_features, 1), _size("n_classes", n_classes, 1)
        self.cutoffs, self.div_value, self.head_bias = [*cutoffs, n_classes], div_value, bool(head_bias)
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=self.head_bias, **layout)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, width, bias=False, **layout), Linear(width, classes, bias=False, **layout)))

    def forward(self, input, target_):
        if input.ndim not in (1, 2) or target_.ndim != input.ndim - 1 or (input.ndim == 2 and input.shape[0] != target_.shape[0]):
            raise ValueError(f"expected input [N, {self.in_features}] and target [N], or both without N, got {tuple(input.shape)} and {tuple(target_.shape)}")
        batched = input.ndim == 2
        x, target = (input, target_) if batched else (input.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and (target.min().item() < 0 or target.max().item() >= self.n_classes):
            raise ValueError(f"the targets are from 0 to {self.n_classes - 1}, and these are from {target.min().item()} to {target.max().item()}")
        # The head's class of a target: itself, or that of its cluster.
        cluster = sum((target >= cutoff).to(target.dtype) for cutoff in self.cutoffs[:-1])
        in_head = oflow.where(cluster == 0, target, cluster + (self.shortlist_size - 1))
        output = self._log_probs_of_head(x).gather(1, in_head.unsqueeze(1)).squeeze(1)
        for i, part in enumerate(self.tail):
            rows = (cluster == i + 1).nonzero().squeeze(1)
            if rows.shape[0]:
                inside = target.index_select(0, rows) - self.cutoffs[i]
                found = F.log_softmax(part(x.index_select(0, rows)), dim=1).gather(1, inside.unsqueeze(1))
                output = output.index_add(0, rows, found.squeeze(1))
        return _ASMoutput(output if batched else output.squeeze(0), (-output).mean())

    def _log_probs_of_head(self, x):
        return F.log_softmax(self.head(x), dim=1)

    def log_prob(self, input):
        """The log-probabilities ``[N, n_classes]`` of all classes."""
        head = self._log_probs_of_head(input)
        parts = [head.narrow(1, 0, self.shortlist_size)]
        for i, part in enumerate(self.tail):
            parts.append(F.log_softmax(part(input), dim=1) + head.narrow(1, self.shortlist_size + i, 1))
        return oflow.cat(parts, 1)

    def predict(self, input):
        """The most probable class of each row, ``[N]``."""
        return self.log_prob(input).argmax(1)
