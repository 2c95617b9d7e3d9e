"""PyTorch's own samples given to oflow.

PyTorch tests its functions, modules and optimizers with samples of its own: OpInfo, ModuleInfo and OptimizerInfo of
``torch.testing._internal``. This package makes the same calls in oflow, compares values, dtypes, shapes and gradients, and writes a
page of what is right, refused, wrong or absent. ``cargo xtask pytorch`` installs what it needs and runs it.
"""
