"""``python -m beside_pytorch``: PyTorch's own samples given to oflow."""

import argparse
import collections
import json
import os
import pathlib
import sys
import warnings

# Some samples come in the order of a set: a job's ranks need one order.
if os.environ.get("PYTHONHASHSEED") != "0":
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, "-m", "beside_pytorch", *sys.argv[1:]])

import torch

from . import compared, modules, ops, optimizers, page
from .isolated import outcomes
from .lists import Lists
from .values import Giver

DTYPES = "float64,float32,int64,bool,complex128,bfloat16"


def arguments():
    parser = argparse.ArgumentParser(prog="python -m beside_pytorch", description=__doc__)
    parser.add_argument("--parts", default="ops,modules,optimizers", help="which of ops, modules and optimizers")
    parser.add_argument("--only", default="", help="a pattern of names")
    parser.add_argument("--dtypes", default=DTYPES)
    parser.add_argument("--limit", type=int, default=40, help="samples of an op and dtype")
    parser.add_argument("--no-gradients", action="store_true")
    parser.add_argument("--no-forms", action="store_true", help="functions only, no methods")
    parser.add_argument("--errors", action="store_true", help="what PyTorch refuses must be refused")
    parser.add_argument("--sbp", help="under oflaunch: inputs are global tensors of this layout on all ranks, as S(0)")
    parser.add_argument("--page", type=pathlib.Path, help="where to write the page")
    parser.add_argument("--out", type=pathlib.Path, help="where to write all outcomes, as JSON")
    parser.add_argument("--show", type=int, default=3, help="misses of each kind that are printed for each op")
    return parser.parse_args()


def part_jobs(part, options):
    """Triples of key, groups of samples and whether it is there."""
    dtypes = options.dtypes.split(",")
    if part == "ops":
        compared.in_parts = bool(options.sbp)
        runner = ops.Ops(Giver(options.sbp), options.limit)
        for op in ops.selected(options.only):
            groups = ops.jobs(op, dtypes, runner, not options.no_gradients, not (options.no_forms or options.sbp), options.errors)
            yield ops.key_of(op), groups, lambda op=op: ops.find(op)
    elif not (options.errors or options.sbp):
        infos = modules if part == "modules" else optimizers
        for info in infos.selected(options.only):
            key = info.name if part == "modules" else f"optim.{info.optim_cls.__name__}"
            yield key, infos.jobs(info, dtypes), lambda key=key: ops.at(key)


def run(part, options, lists):
    found, absent, reasons = {}, {}, collections.Counter()
    isolate = not options.sbp
    for key, groups, there in part_jobs(part, options):
        why = lists.why_absent(key)
        if why or not outcomes(lambda: iter([("there", "")] if there() else []), isolate):
            absent[key] = why
            continue
        found[key] = {}
        for label, job in groups:
            judged = []
            for kind, detail in outcomes(job, isolate):
                detail += f" under {options.sbp}" if detail and options.sbp else ""
                listed = None if kind == "right" else lists.why_different(key, kind, detail)
                if listed:
                    reasons[key, listed] += 1
                judged.append(("listed" if listed else kind, detail))
            found[key][label] = judged
            for kind in page.KINDS[2:]:
                for _, detail in [o for o in judged if o[0] == kind][: options.show]:
                    print(f"{kind}: {label}: {detail}", flush=True)
    return {"found": found, "absent": absent, "reasons": reasons}


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    options, lists = arguments(), Lists()
    results = {part: run(part, options, lists) for part in options.parts.split(",")}
    if options.out:
        plain = {part: {"found": r["found"], "absent": r["absent"]} for part, r in results.items()}
        options.out.write_text(json.dumps(plain, indent=0))
    if options.page:
        options.page.write_text(page.written(results, "cargo xtask pytorch"))
    for part, result in results.items():
        missing = [name for name, why in result["absent"].items() if not why]
        print(f"{part}: {len(result['found'])} there, {len(missing)} absent, {len(result['absent']) - len(missing)} refused by the list")
        print(f"  samples: {page.counted(page.totals(result['found']))}")
        if missing:
            print("  absent:", " ".join(missing))
    bad = sum(page.totals(r["found"])[kind] for r in results.values() for kind in ("wrong", "wrong gradient", "accepted", "died", "harness"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
