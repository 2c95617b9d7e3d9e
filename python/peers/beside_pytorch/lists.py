"""What oflow does not have, and where it differs, each with its reason: `absent.tsv` and `different.tsv`."""

import pathlib
import re

HERE = pathlib.Path(__file__).parent


def rows(name, columns):
    """The rows of a list; lines that begin with `#` are comments."""
    found = []
    for line in (HERE / name).read_text().splitlines():
        if line and not line.startswith("#"):
            row = line.split("\t")
            if len(row) != columns:
                raise ValueError(f"{name}: {len(row)} columns, not {columns}: {line}")
            found.append(row)
    return found


class Lists:
    def __init__(self):
        # Patterns of names; why there is none, and what to use.
        self.absent = [(re.compile(name), reason) for name, reason in rows("absent.tsv", 2)]
        # Patterns of names, of the kinds and of the details of outcomes; why they differ.
        self.different = [(re.compile(name), re.compile(detail), reason) for name, detail, reason in rows("different.tsv", 3)]

    def why_absent(self, key):
        return next((reason for name, reason in self.absent if name.fullmatch(key)), None)

    def why_different(self, key, kind, detail):
        return next((reason for name, said, reason in self.different if name.fullmatch(key) and said.search(f"{kind}: {detail}")), None)
