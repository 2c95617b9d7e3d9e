"""Command-line options, and the mesh that ``--parallel`` asks for."""

import argparse
import os
import sys

import oflow

PARALLEL = ("single", "dp", "tp", "2d")


class Parser(argparse.ArgumentParser):
    """Reads the options of a program and the common ones. Every rank reads them alike; rank 0 prints the help."""

    def __init__(self, description):
        super().__init__(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter, allow_abbrev=False)
        add = self.add_argument
        add("--parallel", choices=PARALLEL, help="dp splits the batch, tp the weights, 2d both; by default dp on several ranks")
        add("--device", default="cpu", help="cpu or cuda (one GPU for each rank)")
        add("--autocast", choices=("bf16", "f16", "off"), default="off", help="precision of products; weights stay f32")
        add("--dtype", choices=("f32", "f64"), default="f32", help="of weights and activations")
        add("--seed", type=int, default=0, help="of weights, dropout and order")
        add("--metrics", metavar="PATH", help="write the loss of every step to PATH.jsonl, PATH.csv and, for TensorBoard, to files in PATH")
        add("--log-every", type=count, default=1, help="print the loss every so many steps")
        add("--checkpoint", metavar="DIR", help="save model, optimizer, position in the data and random state")
        add("--save-every", type=count, default=100, help="save every so many steps")
        add("--keep", type=int, default=3, help="checkpoints to keep; 0 keeps all")
        add("--resume", action="store_true", help="resume from the latest checkpoint, if any, on any number of ranks")

    def print_help(self, file=None):
        if os.environ.get("RANK", "0") == "0":
            super().print_help(file)

    def error(self, message):
        if os.environ.get("RANK", "0") == "0":
            print(f"{self.prog}: {message}; --help lists the options", file=sys.stderr)
        self.exit(2)

    def parse(self):
        """The options of the command line."""
        options = self.parse_args()
        if options.resume and not options.checkpoint:
            self.error("--resume needs --checkpoint DIR")
        return options


def count(text):
    """A number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def mesh(parallel, device):
    """All ranks as a mesh [dp, tp]. ``2d`` takes the divisors of their number that are closest to its square root."""
    world = oflow.world_size()
    dp, tp = (world, 1) if parallel == "dp" else (1, world)
    if parallel == "2d":
        tp = max(t for t in range(1, world + 1) if world % t == 0 and t * t <= world)
        dp = world // tp
    return oflow.placement.all(device).mesh(dp=dp, tp=tp)
