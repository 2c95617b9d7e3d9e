"""Norms of channels, with PyTorch's arguments and initial values."""

import oflow

from . import functional as F
from . import init
from .layers import _size
from .drawn import Drawn
from .module import Module


class _BatchNorm(Drawn):
    _ranks = ()

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        *,
        bias=True,
        device=None,
        placement=None,
        sbp=None,
        dtype=None,
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum = _size("num_features", num_features), eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        layout = init.where(device, placement, sbp, dtype)
        for name, value, wanted in (("weight", 1.0, affine), ("bias", 0.0, affine and bias)):
            self.register_parameter(name, init.constant([num_features], value, **layout) if wanted else None)
        for name, value in (("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, oflow.full([num_features], value, **layout) if track_running_stats else None)
        count = oflow.zeros([], **{**init.of_vectors(layout), "dtype": oflow.int64}) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)

    def reset_running_stats(self) -> None:
        """Sets the running mean to 0, the running variance to 1, and the number of batches to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1.0)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets the statistics, the weight and the bias to those of a new layer."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check(self, input):
        if input.ndim not in self._ranks:
            raise ValueError(f"{type(self).__name__} takes a tensor of {' or '.join(map(str, self._ranks))} dims, not {input.ndim}")

    def forward(self, input):
        self._check(input)
        tracked = self.training and self.track_running_stats
        if tracked:
            self.num_batches_tracked.add_(1)
        if tracked and self.momentum is None:
            return self._averaged(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        batch = self.training or self.running_mean is None
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, batch, momentum, self.eps)

    def _averaged(self, input):
        """Running statistics that are the averages over all batches: the weight of this one is 1 / their number, a tensor."""
        now = [oflow.zeros_like(running) for running in (self.running_mean, self.running_var)]
        y = F.batch_norm(input, *now, self.weight, self.bias, True, 1.0, self.eps)
        with oflow.no_grad():
            for running, value in zip((self.running_mean, self.running_var), now):
                running += (value - running) / self.num_batches_tracked.cast(running.dtype)
        return y

    def extra_repr(self):
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, track_running_stats={self.track_running_stats}"


class BatchNorm1d(_BatchNorm):
    """Batch norm of ``[batch, channels]`` or ``[batch, channels, length]``: statistics of the logical batch, however it is split."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of ``[batch, channels, height, width]``: statistics of the logical batch, however it is split."""

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch norm of three spatial dims: statistics of the logical batch, however it is split."""

    _ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch norm of ``[batch, channels, ...]`` with the statistics of the batches of all ranks together. On global tensors every batch norm
    has these: there this class is ``BatchNorm1d``, ``2d`` and ``3d`` in one. A local tensor is the batch of one rank alone, so it is refused in
    training on several ranks. ``process_group`` is not taken: the placement of the input says which ranks take part."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None, **layout):
        if process_group is not None:
            raise ValueError("SyncBatchNorm takes no process_group: the placement of the input says which ranks take part")
        super().__init__(num_features, eps, momentum, affine, track_running_stats, **layout)

    def _check(self, input):
        if input.ndim < 2:
            raise ValueError(f"SyncBatchNorm takes a tensor of at least 2 dims, not {input.ndim}")
        if self.training and not input.is_global and oflow.world_size() > 1:
            raise ValueError(
                "SyncBatchNorm normalises over all ranks, and the input is local: make it global, split along the batch "
                '(x.to_global(placement, "S(0)")), with the module on the same placement'
            )

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group=None) -> Module:
        """The module with a ``SyncBatchNorm`` of the same parameters and statistics in the place of each batch norm."""
        made = module
        if type(module) in (BatchNorm1d, BatchNorm2d, BatchNorm3d):
            made = cls(0, module.eps, module.momentum, False, False, process_group)
            made.num_features, made.affine = module.num_features, module.affine
            made.track_running_stats = module.track_running_stats
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.train(module.training)
        for name, part in module._modules.items():
            if part is not None:
                made.add_module(name, cls.convert_sync_batchnorm(part, process_group))
        return made


class _InstanceNorm(_BatchNorm):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, **layout):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, **layout)

    def forward(self, input):
        self._check(input)
        batched = input.ndim == self._ranks[1]
        x = input if batched else input.unsqueeze(0)
        own = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        y = F.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias, own, momentum, self.eps)
        return y if batched else y.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Instance norm of ``[batch, channels, length]``, or without the batch."""

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance norm of ``[batch, channels, height, width]``, or without the batch."""

    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance norm of three spatial dims, with or without the batch."""

    _ranks = (4, 5)


class GroupNorm(Drawn):
    """Group norm of ``[batch, channels, ...]``: each group of channels of each image with mean 0 and variance 1, then scale and shift."""

    def __init__(
        self, num_groups, num_channels, eps=1e-5, affine=True, *, bias=True, device=None, placement=None, sbp=None, dtype=None
    ):
        super().__init__()
        self.num_groups, self.num_channels = _size("num_groups", num_groups, 1), _size("num_channels", num_channels)
        if num_channels % num_groups:
            raise ValueError(f"{num_channels} channels do not fall in {num_groups} groups of as many")
        self.eps, self.affine = eps, affine
        layout = init.where(device, placement, sbp, dtype)
        for name, value, wanted in (("weight", 1.0, affine), ("bias", 0.0, affine and bias)):
            self.register_parameter(name, init.constant([num_channels], value, **layout) if wanted else None)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LocalResponseNorm(Module):
    """Divides each element of ``[batch, channels, ...]`` by (k + alpha a)^beta, where a is the mean of the squares at its place in ``size``
    channels around its own."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = _size("size", size, 1), alpha, beta, k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
