"""Values of PyTorch as values of oflow, and back."""

import torch
import torch.nn.functional as F

import oflow


def leaves(value):
    """The leaves of nested lists, tuples and dicts."""
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in leaves(each)]
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    return [value]


class Giver:
    """Gives oflow what PyTorch's samples hold. `layout` is the text of an SBP for a mesh of all ranks, or None for local tensors."""

    def __init__(self, layout=None):
        self.layout = layout

    def tensor(self, tensor, differentiable=False):
        plain = tensor.detach().resolve_conj().resolve_neg()
        if plain.dtype == torch.bool:
            ours = oflow.tensor(plain.to(torch.uint8).numpy(), dtype=oflow.uint8).to(oflow.bool)
        else:
            # An array of its own, with the strides of the sample.
            ours = oflow.from_dlpack(plain.clone())
        if self.layout:
            split = self.layout.startswith("S") and int(self.layout[2:-1]) < plain.dim()
            sbp = self.layout if split or not self.layout.startswith("S") else "B"
            ours = oflow.distribute(ours, oflow.placement.all("cpu"), (sbp,))
        if differentiable and tensor.requires_grad:
            ours = ours.detach().clone()
            ours.requires_grad_(True)
        return ours

    def __call__(self, value, differentiable=False):
        if isinstance(value, torch.Tensor):
            return self.tensor(value, differentiable)
        if isinstance(value, torch.dtype):
            return getattr(oflow, str(value).removeprefix("torch."))
        if isinstance(value, torch.device):
            return str(value)
        if isinstance(value, (torch.memory_format, torch.layout)):
            return getattr(oflow, str(value).removeprefix("torch."))
        if isinstance(value, torch.nn.Module):
            return module(value)
        if callable(value) and getattr(F, getattr(value, "__name__", ""), None) is value:
            return getattr(oflow.nn.functional, value.__name__)
        if isinstance(value, torch.nn.LinearCrossEntropyOptions):
            names = ("allow_retain_graph", "batch_chunk_size", "chunking_method")
            return oflow.nn.LinearCrossEntropyOptions(**{name: getattr(value, name) for name in names})
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, (list, tuple)):
            each = [self(v, differentiable) for v in value]
            return each if isinstance(value, list) else tuple(each)
        if isinstance(value, dict):
            return {key: self(v, differentiable) for key, v in value.items()}
        return value


def module(value):
    """The module of oflow of the same class and options: layers and distances, which are arguments of modules and functions."""
    here = getattr(oflow.nn, type(value).__name__)
    if isinstance(value, (torch.nn.TransformerEncoderLayer, torch.nn.TransformerDecoderLayer)):
        attention, one = value.self_attn, value.linear1
        return here(
            attention.embed_dim,
            attention.num_heads,
            one.out_features,
            value.dropout.p,
            Giver()(value.activation),
            value.norm1.eps,
            attention.batch_first,
            value.norm_first,
            one.bias is not None,
        )
    if isinstance(value, torch.nn.LayerNorm):
        return here(value.normalized_shape, value.eps, value.elementwise_affine, value.bias is not None)
    if isinstance(value, torch.nn.PairwiseDistance):
        return here(value.norm, value.eps, value.keepdim)
    # Without parameters: activations.
    return here()


def back(value):
    """A tensor of oflow as one of PyTorch; what is no tensor as it is."""
    if not isinstance(value, oflow.Tensor):
        return value
    if value.is_global:
        value = value.to_global(sbp="B").to_local()
    value = value.detach()
    if value.dtype == oflow.bool:
        return torch.from_dlpack(value.to(oflow.uint8)).bool()
    return torch.from_dlpack(value)


def described(*args, **kwargs):
    """The arguments of a call in short: types and shapes of tensors, `~` where one is not contiguous."""

    def one(value):
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype)[6:]}{list(value.shape)}" + ("" if value.is_contiguous() else "~")
        if isinstance(value, list):
            return "[" + ", ".join(map(one, value)) + "]"
        if isinstance(value, tuple):
            return "(" + ", ".join(map(one, value)) + ")"
        return str(value)[:40]

    return ", ".join([one(v) for v in args] + [f"{key}={one(v)}" for key, v in kwargs.items()])
