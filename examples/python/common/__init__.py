"""Support for the example programs: options, checkpoints, measurements and output. Read the programs first; nothing here is needed
to write a program of your own. The options, files and numbers are those of the Rust programs in the folder above."""

from .options import Parser
from .training import Setup

__all__ = ["Parser", "Setup"]
