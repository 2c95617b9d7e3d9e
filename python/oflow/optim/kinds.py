"""The optimizers, as the library declares them. Written by `cargo xtask codegen`: edit `src/optim/kinds` instead."""

from .optimizer import Optimizer

__all__ = ["Adadelta", "Adagrad", "Adam", "AdamW", "Lamb", "Lion", "RMSprop", "SGD"]


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012), with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter."""

    _kind = "adadelta"
    _state = ("square", "change", "master")
    _values = ()

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, *, master_weights=True):
        options = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "master_weights": master_weights,
        }
        super().__init__(params, options)


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011), with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter."""

    _kind = "adagrad"
    _state = ("sum", "master")
    _values = ("steps",)

    def __init__(self, params, lr=0.01, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, *, master_weights=True):
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
            "master_weights": master_weights,
        }
        super().__init__(params, options)


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with PyTorch's formula: weight decay is added to the gradient.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter."""

    _kind = "adam"
    _state = ("mean", "square", "largest", "master")
    _values = ("steps",)

    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, *, master_weights=True):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "master_weights": master_weights,
        }
        super().__init__(params, options)


class AdamW(Optimizer):
    """AdamW (Loshchilov and Hutter, 2019), with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter."""

    _kind = "adamw"
    _state = ("mean", "square", "largest", "master")
    _values = ("steps",)

    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, amsgrad=False, *, master_weights=True):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "master_weights": master_weights,
        }
        super().__init__(params, options)


class Lamb(Optimizer):
    """LAMB (You et al., 2020), for large batches. The norms are those of logical parameters, whatever their layouts.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter."""

    _kind = "lamb"
    _state = ("mean", "square", "master")
    _values = ("steps",)

    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0, bias_correction=True, *, master_weights=True):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "bias_correction": bias_correction,
            "master_weights": master_weights,
        }
        super().__init__(params, options)


class Lion(Optimizer):
    """Lion (Chen et al., 2023): the sign of a mix of momentum and gradient is the direction.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter."""

    _kind = "lion"
    _state = ("momentum", "master")
    _values = ()

    def __init__(self, params, lr=0.0001, betas=(0.9, 0.99), weight_decay=0.0, *, master_weights=True):
        options = {
            "lr": lr,
            "betas": betas,
            "weight_decay": weight_decay,
            "master_weights": master_weights,
        }
        super().__init__(params, options)


class RMSprop(Optimizer):
    """RMSprop (Hinton), with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter."""

    _kind = "rmsprop"
    _state = ("square", "mean", "momentum", "master")
    _values = ()

    def __init__(self, params, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, *, master_weights=True):
        options = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "master_weights": master_weights,
        }
        super().__init__(params, options)


class SGD(Optimizer):
    """Stochastic gradient descent with momentum, with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter."""

    _kind = "sgd"
    _state = ("momentum", "master")
    _values = ()

    def __init__(self, params, lr=0.001, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, *, master_weights=True):
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "master_weights": master_weights,
        }
        super().__init__(params, options)
