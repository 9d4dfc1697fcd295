#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/performance.md: what tools/performance runs.

usage: performance.py --targets
       performance.py TARGET=PROGRAM ... [--torchrl=FILE]

The first prints the targets. In the second each has its program; FILE is the
output of tools/peer_speed. Every program runs several times, and a figure is
the median of its runs.
"""
import re
import statistics
import sys

from benchmark_runs import in_words, run_program

DENSE = "//storage:dense_storage_benchmark"
BUFFER = "//replay:replay_buffer_benchmark"
SLICES = "//benchmarks:slices_benchmark"
PLANS = "//samplers/units:prioritized_slices_benchmark"
DICTS = "//tensordict:tensor_dict_benchmark"
COLLECTOR = "//collectors:sync_collector_benchmark"
TURNS = 5
SECONDS = "0.2s"  # Of a benchmark in a turn.

# Operation, target, benchmark, its limit, what tools/peer_speed calls it. A
# limit is another benchmark, or a counter of the same; so is "NAME#COUNTER".
OPERATIONS = (
    ("gather 256 random rows, 47 B in 64 B records", DENSE, "Gather/0/1/0", "GatherByHand/47B/1048576", ""),
    ("gather 256 random rows of 28 KB", DENSE, "Gather/5/1/0", "GatherByHand/28KB/8192", ""),
    ("`Extend`, 1 row of 47 B", DENSE, "Extend/0/1/1/0", "ExtendByHand/1/1048576", ""),
    ("`Extend`, 1,000 rows of 47 B", DENSE, "Extend/0/1/1000/0", "ExtendByHand/1000/1048576", ""),
    ("uniform sample of 256, 47 B, 1M rows", BUFFER, "BM_Sample/0/manual_time#sample_us", "#by_hand_us",
     "uniform sample of 256, 1M"),
    ("uniform sample of 256, 3 KB", BUFFER, "BM_Sample/1/manual_time#sample_us", "#by_hand_us", ""),
    ("uniform sample of 256, 56 KB", BUFFER, "BM_Sample/2/manual_time#sample_us", "#by_hand_us", ""),
    ("prioritized sample and update of 256, 47 B, 1M rows", BUFFER, "BM_PrioritizedSampleAndUpdate/1000000", "",
     "prioritized sample and update of 256, 1M"),
    ("the same, 10M rows", BUFFER, "BM_PrioritizedSampleAndUpdate/10000000", "",
     "prioritized sample and update of 256, 10M"),
    ("slices 256 x 16, 5M of 6M rows, 1,000 written before each", SLICES, "BM_Slices/5000000/manual_time#sample_us",
     "#by_hand_us", "slices 256x16, 5M of 6M, while writing"),
    ("prioritized slices 256 x 16, 5M rows, the plan alone", PLANS, "BM_Plan/5000000", "", ""),
    ("`TensorDict` get", DICTS, "BM_Get", "", ""),
    ("typed get", DICTS, "BM_TypedGet", "", ""),
    ("stack 64 dictionaries of 6 keys", DICTS, "BM_StackInto64", "", ""),
    ("collect 64 steps of 16 CartPoles, random actions", COLLECTOR, "BM_RandomActions/lanes:16/time:64", "", ""),
    ("the same with `StepCounter` and `RewardSum`", COLLECTOR, "BM_CounterAndSum/lanes:16/time:64", "", ""),
)
SLOW = (
    ("`WriteAt` of 256 rows of 16 B", DENSE, "Scatter/6", "ScatterByHand/16B/1048576", ""),
    ("`WriteAt` of 256 rows of 47 B", DENSE, "Scatter/0", "ScatterByHand/47B/1048576", ""),
)


def names_of(operation):
    """(benchmark, counter) of Rill and of the limit, which may be none."""
    _, _, ours, limit, _ = operation
    name, _, counter = ours.partition("#")
    if not limit:
        return (name, counter), None
    other, _, other_counter = limit.partition("#")
    return (name, counter), (other or name, other_counter)


def measure(operations, programs, run=run_program):
    """{(target, benchmark, counter): nanoseconds}; counters are in microseconds."""
    wanted = {}
    for operation in operations:
        for figure in names_of(operation):
            if figure is not None:
                wanted.setdefault(operation[1], set()).add(figure)
    found = {}
    for target, figures in wanted.items():
        for _ in range(TURNS):
            runs = run(programs[target], "|".join(sorted({name for name, _ in figures})), SECONDS)
            for name, counter in figures:
                if name not in runs:
                    raise SystemExit("performance: %s has no benchmark %s" % (target, name))
                value = runs[name][counter] * 1e3 if counter else runs[name]["ns"]
                found.setdefault((target, name, counter), []).append(value)
    return {key: statistics.median(values) for key, values in found.items()}


def torchrl_times(text):
    """{name: nanoseconds} of what tools/peer_speed printed."""
    line = re.compile(r"^(.*?)\s+Rill\s+[\d.]+\s+TorchRL\s+([\d.]+)", re.M)
    return {name: float(us) * 1e3 for name, us in line.findall(text)}


def table(operations, times, torchrl):
    yield "| operation | Rill | limit | Rill / limit | TorchRL | times |"
    yield "|---|---|---|---|---|---|"
    for operation in operations:
        name, target, _, _, called = operation
        ours, limit = names_of(operation)
        mine = times[(target,) + ours]
        cells = [name, in_words(mine), "-", "-", "-", "-"]
        if limit is not None:
            theirs = times[(target,) + limit]
            cells[2:4] = in_words(theirs), "%.2f" % (mine / theirs)
        if called in torchrl:
            cells[4:6] = in_words(torchrl[called]), "%.3g" % (torchrl[called] / mine)
        yield "| %s |" % " | ".join(cells)


def main(argv):
    if argv == ["--targets"]:
        print("\n".join(sorted({operation[1] for operation in OPERATIONS + SLOW})))
        return
    torchrl = {}
    programs = {}
    for argument in argv:
        key, _, value = argument.partition("=")
        if key == "--torchrl":
            with open(value, encoding="utf-8") as output:
                torchrl = torchrl_times(output.read())
        else:
            programs[key] = value
    times = measure(OPERATIONS + SLOW, programs)
    for title, operations in (("What you get", OPERATIONS), ("What is slow", SLOW)):
        print("## %s\n" % title)
        print("\n".join(table(operations, times, torchrl)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
