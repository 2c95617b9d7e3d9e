"""The page of all samples: totals, what is absent and what differs on purpose, and a row for each op."""

import collections
import re

import torch

KINDS = ("right", "listed", "refused", "wrong", "no gradient", "wrong gradient", "accepted", "died", "slow", "harness")
TITLES = {"ops": "Functions and methods", "modules": "Modules", "optimizers": "Optimizers"}


def totals(found):
    """How many samples of each kind, of `found`: outcomes by key, then by label."""
    count = collections.Counter()
    for groups in found.values():
        for outcomes in groups.values():
            count.update(kind for kind, _ in outcomes)
    return count


def counted(count):
    return ", ".join(f"{count[kind]} {kind}" for kind in KINDS if count[kind])


def reason(detail):
    """The message of an outcome without its call."""
    return re.sub(r"\s+", " ", re.split(r"\)(?: in evaluation)?: ", detail)[-1])[:110].replace("|", "\\|")


def cell(outcomes):
    right = sum(kind in ("right", "listed") for kind, _ in outcomes)
    return f"{right}" if right == len(outcomes) else f"**{right}/{len(outcomes)}**"


def table(found):
    """A row for each key: how many samples of each group are right, and the most frequent reason of the others."""
    labels = list(dict.fromkeys(label for groups in found.values() for label in groups))
    lines = ["| | " + " | ".join(labels) + " | most of the others |", "|---|" + "---|" * (len(labels) + 1)]
    for key, groups in sorted(found.items()):
        misses = collections.Counter(
            f"{kind}: {reason(detail)}" for outcomes in groups.values() for kind, detail in outcomes if kind not in ("right", "listed")
        )
        most = misses.most_common(1)[0][0] if misses else ""
        cells = [cell(groups[label]) if groups.get(label) else "" for label in labels]
        lines.append(f"| `{key}` | " + " | ".join(cells) + f" | {most} |")
    return lines


def written(results, command):
    """The page. `results` has for each part the outcomes, the names that are absent, and the listed reasons."""
    lines = [
        "# PyTorch's own samples",
        "",
        f"PyTorch {torch.__version__.split('+')[0]} tests itself with samples of each function, module and optimizer (OpInfo, ModuleInfo, OptimizerInfo).",
        "Here the same calls are made in oflow. Made by",
        "",
        f"    {command}",
        "",
        "A number says how many samples are right: value, dtype and shape as PyTorch's, and gradients where the column says so. In bold, of how many.",
        "",
    ]
    for part, result in results.items():
        found, absent = result["found"], result["absent"]
        whole = sum(all(kind in ("right", "listed") for o in groups.values() for kind, _ in o) for groups in found.values())
        lines += [
            f"## {TITLES[part]}",
            "",
            f"{len(found)} of {len(found) + len([a for a, why in absent.items() if not why])} are there, {whole} right in every sample; "
            f"samples: {counted(totals(found))}.",
            "",
        ]
        lines += table(found) + [""]
        missing = sorted(name for name, why in absent.items() if not why)
        if missing:
            lines += ["Absent: " + ", ".join(f"`{name}`" for name in missing) + ".", ""]
        listed = sorted((why, name) for name, why in absent.items() if why)
        if listed:
            lines += ["Not in oflow:", "", "| | why, and what to use |", "|---|---|"]
            by_reason = collections.defaultdict(list)
            for why, name in listed:
                by_reason[why].append(name)
            lines += [f"| {', '.join(f'`{name}`' for name in names)} | {why} |" for why, names in by_reason.items()]
            lines.append("")
        if result["reasons"]:
            lines += ["Different on purpose (`listed` above):", "", "| | samples | why |", "|---|---|---|"]
            lines += [f"| `{key}` | {count} | {why} |" for (key, why), count in sorted(result["reasons"].items())]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"
