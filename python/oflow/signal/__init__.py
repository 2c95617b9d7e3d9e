"""Signals: ``oflow.signal.windows.hann(64)``, with the names and the meaning of ``torch.signal``."""

from . import windows
