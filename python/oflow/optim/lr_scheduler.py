"""Schedulers that set the learning rates of an optimizer's groups, with PyTorch's names. Call ``step()`` after each step of the
optimizer."""

from .schedule import Schedule


class LambdaLR:
    """Each group's learning rate is its base times ``lr_lambda(step)``; a list has one function for each group.

    The base is the group's ``initial_lr``, which is its rate when the first scheduler is made; the optimizer saves it with the group. With
    ``last_epoch``, the number of steps before the last one, the scheduler goes on where another one was: load the optimizer first."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * len(optimizer.param_groups)
        if len(lambdas) != len(optimizer.param_groups):
            raise ValueError(f"{len(lambdas)} functions for {len(optimizer.param_groups)} groups of parameters")
        self.optimizer, self._lambdas, self.last_epoch = optimizer, lambdas, last_epoch
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"group {number} of the optimizer has no 'initial_lr', which a scheduler with last_epoch={last_epoch} goes on from: load "
                    "the optimizer's state first, or set it to the rate before the first step"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def step(self):
        """Sets the learning rates of the next step."""
        self.last_epoch += 1
        self._set()

    def _set(self):
        for group, base, factor in zip(self.optimizer.param_groups, self.base_lrs, self._lambdas):
            group["lr"] = base * factor(self.last_epoch)

    def get_last_lr(self):
        """The learning rates that were set last, one for each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self):
        """What a checkpoint saves."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state):
        """Goes on from a state."""
        if len(state["base_lrs"]) != len(self.base_lrs):
            raise ValueError(f"the state is of {len(state['base_lrs'])} groups of parameters, not {len(self.base_lrs)}")
        self.last_epoch, self.base_lrs = state["last_epoch"], list(state["base_lrs"])
        self._set()


class StepLR(LambdaLR):
    """A factor of ``gamma`` after every ``step_size`` steps."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        super().__init__(optimizer, Schedule.step(step_size, gamma), last_epoch)


class WarmupCosineLR(LambdaLR):
    """Linear warm-up over ``warmup`` steps, then half a cosine down to ``floor`` of the base at step ``total``."""

    def __init__(self, optimizer, warmup, total, floor=0.0, last_epoch=-1):
        super().__init__(optimizer, Schedule.warmup_cosine(warmup, total, floor), last_epoch)
