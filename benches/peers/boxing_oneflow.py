"""Counts the bytes that OneFlow 0.9.0 moves between processes for the conversions of boxing_rows.txt.

Usage, in an environment that has it (see docs/performance/boxing.md), once for each number of processes:

    python -m oneflow.distributed.launch --nproc_per_node 4 boxing_oneflow.py RESULTS

Each process counts what it writes to its sockets (`wchar` of /proc/self/io; OneFlow's CPU transport uses write on TCP
sockets), before and after a conversion, with everything that was issued done. A conversion runs five times, the same steps without the
conversion five times; the difference of the medians is what is reported, summed over the processes. The value is compared
with NumPy's. RESULTS gets one line of JSON per conversion: the row as it stands in the file, bytes, or why there are none.
"""

import json
import os
import sys
import time

import numpy as np
import oneflow as flow

RUNS = 5
world, rank = flow.env.get_world_size(), flow.env.get_rank()


def rows():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boxing_rows.txt")
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            n, shape, src, dst = (part.strip() for part in line.split("|"))
            if int(n) == world:
                yield " | ".join([n, shape, src, dst]), tuple(map(int, shape.split("x"))), layout(src), layout(dst)


def layout(text):
    sbps, ranks = text.split(" on ")
    names = {"B": flow.sbp.broadcast, "P": flow.sbp.partial_sum, "S(0)": flow.sbp.split(0), "S(1)": flow.sbp.split(1)}
    return flow.placement("cpu", ranks=json.loads(ranks)), [names[s.strip()] for s in sbps.split(",")]


def written():
    return int(next(l for l in open("/proc/self/io") if l.startswith("wchar")).split()[1])


def settle():
    """Everything issued is done, everywhere."""
    flow._oneflow_internal.eager.Sync()
    flow.comm.barrier()
    flow._oneflow_internal.eager.Sync()


def source(value, placement, sbps):
    here = flow.tensor(value)
    if all(s == flow.sbp.partial_sum for s in sbps):
        # Shares that add up to the value: each member a different one.
        members = [int(r) for r in np.array(placement.ranks).reshape(-1)]
        share = members.index(rank) + 1 if rank in members else 0
        return flow.tensor(value * share).to_global(placement=placement, sbp=sbps), sum(range(1, len(members) + 1))
    whole = here.to_global(placement=placement, sbp=[flow.sbp.broadcast] * len(sbps))
    return whole.to_global(placement=placement, sbp=sbps), 1


def count(value, src, dst):
    x, times = source(value, *src)
    samples = {True: [], False: []}
    for convert in [False, True] * RUNS:
        settle()
        before = written()
        if convert:
            y = x.to_global(placement=dst[0], sbp=dst[1])
        settle()
        samples[convert].append(written() - before)
    # To a layout where every process can look at it.
    everywhere = flow.placement("cpu", ranks=list(range(world)))
    got = y.to_global(placement=everywhere, sbp=flow.sbp.broadcast).to_local().numpy()
    right = bool(np.array_equal(got, value * times))
    return int(np.median(samples[True]) - np.median(samples[False])), right


def main(results):
    rng = np.random.default_rng(0)
    for row, shape, src, dst in rows():
        # Small whole numbers: sums are exact.
        value = rng.integers(-100, 100, shape).astype(np.float32)
        flow_value = flow.tensor(value).to_global(
            placement=flow.placement("cpu", ranks=list(range(world))), sbp=flow.sbp.broadcast
        )
        value = flow_value.to_local().numpy()
        try:
            moved, right = count(value, src, dst)
            answer = {"bytes": moved, "right": right}
        except Exception as e:
            answer = {"error": str(e).strip().splitlines()[-1][:200]}
        with open(f"{results}.{world}.{rank}", "a") as f:
            f.write(json.dumps({"row": row, **answer}) + "\n")
    settle()
    if rank == 0:
        time.sleep(1)
        parts = [[json.loads(l) for l in open(f"{results}.{world}.{r}")] for r in range(world)]
        with open(results, "a") as f:
            for same in zip(*parts):
                errors = [p["error"] for p in same if "error" in p]
                answer = {"row": same[0]["row"]}
                if errors:
                    answer["error"] = errors[0]
                else:
                    answer["bytes"] = sum(p["bytes"] for p in same)
                    answer["right"] = all(p["right"] for p in same)
                f.write(json.dumps(answer) + "\n")
                print(json.dumps(answer), flush=True)
    settle()
    if rank == 0:
        for r in range(world):
            os.remove(f"{results}.{world}.{r}")


main(sys.argv[1])
