"""The optimizers, as the library declares them. Written by `cargo xtask codegen`: edit `src/optim/kinds` instead."""

from .optimizer import Optimizer

__all__ = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lamb", "Lion", "Muon", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]


class ASGD(Optimizer):
    """Averaged SGD (Polyak and Juditsky, 1992), with PyTorch's formula. The state `average` is the average of a parameter.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "asgd"
    _state = ("average", "master")
    _values = ("steps",)
    _options = {"lr": 0.01, "lambd": 0.0001, "alpha": 0.75, "t0": 1000000.0, "weight_decay": 0.0, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.01,
        lambd=0.0001,
        alpha=0.75,
        t0=1000000.0,
        weight_decay=0.0,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012), with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "adadelta"
    _state = ("square", "change", "master")
    _values = ()
    _options = {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.0, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0.0,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018), with PyTorch's formula: of a matrix it keeps one number a row and one a column.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "adafactor"
    _state = ("row", "column", "square", "master")
    _reduced = {"row": -1, "column": -2}
    _values = ("steps",)
    _options = {"lr": 0.01, "beta2_decay": -0.8, "eps": (None, 0.001), "d": 1.0, "weight_decay": 0.0, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.01,
        beta2_decay=-0.8,
        eps=(None, 0.001),
        d=1.0,
        weight_decay=0.0,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011), with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "adagrad"
    _state = ("sum", "master")
    _values = ("steps",)
    _options = {"lr": 0.01, "lr_decay": 0.0, "weight_decay": 0.0, "initial_accumulator_value": 0.0, "eps": 1e-10, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.01,
        lr_decay=0.0,
        weight_decay=0.0,
        initial_accumulator_value=0.0,
        eps=1e-10,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with PyTorch's formula: weight decay is added to the gradient.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "adam"
    _state = ("mean", "square", "largest", "master")
    _values = ("steps",)
    _options = {"lr": 0.001, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, "amsgrad": False, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.001,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class AdamW(Optimizer):
    """AdamW (Loshchilov and Hutter, 2019), with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "adamw"
    _state = ("mean", "square", "largest", "master")
    _values = ("steps",)
    _options = {"lr": 0.001, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01, "amsgrad": False, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.001,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.01,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class Adamax(Optimizer):
    """Adamax (Kingma and Ba, 2015), with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "adamax"
    _state = ("mean", "largest", "master")
    _values = ("steps",)
    _options = {"lr": 0.002, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.002,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class Lamb(Optimizer):
    """LAMB (You et al., 2020), for large batches. The norms are those of logical parameters, whatever their layouts.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "lamb"
    _state = ("mean", "square", "master")
    _values = ("steps",)
    _options = {"lr": 0.001, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.0, "bias_correction": True, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.001,
        betas=(0.9, 0.999),
        eps=1e-6,
        weight_decay=0.0,
        bias_correction=True,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "bias_correction": bias_correction,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class Lion(Optimizer):
    """Lion (Chen et al., 2023): the sign of a mix of momentum and gradient is the direction.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "lion"
    _state = ("momentum", "master")
    _values = ()
    _options = {"lr": 0.0001, "betas": (0.9, 0.99), "weight_decay": 0.0, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.0001,
        betas=(0.9, 0.99),
        weight_decay=0.0,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "betas": betas,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class Muon(Optimizer):
    """Muon (Jordan, 2024), with PyTorch's formula, for matrices; give other parameters to another optimizer, such as AdamW.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "muon"
    _state = ("momentum", "master")
    _values = ()
    _options = {"lr": 0.001, "weight_decay": 0.1, "momentum": 0.95, "nesterov": True, "ns_coefficients": (3.4445, -4.775, 2.0315), "eps": 1e-7, "ns_steps": 5, "adjust_lr_fn": None, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.001,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.775, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class NAdam(Optimizer):
    """NAdam (Dozat, 2016), with PyTorch's formula: Adam with Nesterov momentum.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "nadam"
    _state = ("mean", "square", "master")
    _values = ("steps",)
    _options = {"lr": 0.002, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, "momentum_decay": 0.004, "decoupled_weight_decay": False, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.002,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        momentum_decay=0.004,
        decoupled_weight_decay=False,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class RAdam(Optimizer):
    """RAdam (Liu et al., 2020), with PyTorch's formula: Adam whose step is corrected for the variance of the mean of squares.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "radam"
    _state = ("mean", "square", "master")
    _values = ("steps",)
    _options = {"lr": 0.001, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, "decoupled_weight_decay": False, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.001,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        decoupled_weight_decay=False,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class RMSprop(Optimizer):
    """RMSprop (Hinton), with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "rmsprop"
    _state = ("square", "mean", "momentum", "master")
    _values = ()
    _options = {"lr": 0.01, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0.0, "momentum": 0.0, "centered": False, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.01,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0.0,
        momentum=0.0,
        centered=False,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class Rprop(Optimizer):
    """Rprop (Riedmiller and Braun, 1993), with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "rprop"
    _state = ("previous", "size", "master")
    _values = ()
    _options = {"lr": 0.01, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50.0), "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.01,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50.0),
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)


class SGD(Optimizer):
    """Stochastic gradient descent with momentum, with PyTorch's formula.

    The state of half-precision parameters is float32; with ``master_weights`` so is a copy of each, which is updated and
    rounded into the parameter. ``foreach``, ``fused`` and ``capturable`` choose nothing here; ``differentiable=True`` is refused."""

    _kind = "sgd"
    _state = ("momentum", "master")
    _values = ()
    _options = {"lr": 0.001, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False, "maximize": False, "master_weights": True}

    def __init__(
        self,
        params,
        lr=0.001,
        momentum=0.0,
        dampening=0.0,
        weight_decay=0.0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        fused=None,
        capturable=False,
        differentiable=False,
        master_weights=True,
    ):
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "master_weights": master_weights,
        }
        super().__init__(params, options, foreach=foreach, fused=fused, capturable=capturable, differentiable=differentiable)
