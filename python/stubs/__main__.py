"""Writes the stubs (`.pyi`) of the modules of the package that are written in Python, from their sources.

    python python/stubs            writes them
    python python/stubs --check    says which are not as they would be written, and fails if there are some

It reads the sources and imports nothing of them, so it needs no built module. A type is, in this order: the annotation of the source, what
the tables say of the name, the type of the default, what an expression shows, else `Any`. What a table says of a name holds for all modules; a
type that one function needs is an annotation in its source. `_oflow.pyi`, `fft.pyi` and `linalg.pyi` are written by `cargo xtask codegen`;
the names of the first are in `__init__.pyi`, so run this after it.
"""

import argparse
import sys

from modules import stubs
from sources import PACKAGE


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--check", action="store_true", help="write nothing; fail if a stub is not as it would be written")
    check = args.parse_args().check
    wrong = []
    for path, text in stubs().items():
        if not path.exists() or path.read_text() != text:
            wrong.append(path)
            if not check:
                path.write_text(text)
    for path in wrong:
        print(f"{'differs' if check else 'written'}: {path.relative_to(PACKAGE.parent)}")
    return int(check and bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
