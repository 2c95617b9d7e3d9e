"""Helpers of training."""

from . import checkpoint

__all__ = ["checkpoint"]
