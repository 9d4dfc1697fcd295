#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures benchmarks of two builds in turns: what tools/compare_speed runs.

usage: compare_speed.py --targets [FIGURE ...]
       compare_speed.py [--quick] BASE NEW [FIGURE ...]

The first prints the targets that the figures want. In the second BASE and NEW
are files with a line "TARGET PATH" for each program that was built. In a turn
each benchmark runs in both builds, one right after the other; which is first
alternates. The ratio is the median of the turns' ratios of new to base, its
spread their quartiles. The exit status is 1 if a ratio is above 1.05 and so is
its lower quartile, or if nothing could be compared.
"""
import os
import statistics
import sys
import time

from benchmark_runs import in_words, run_program

# Each is a target and a filter. They use one thread, and memory that is larger
# than the caches where the name says a million rows.
FIGURES = {
    "uniform": ("//replay:replay_buffer_benchmark", "BM_Sample/0/.*"),
    "prioritized": ("//replay:replay_buffer_benchmark", "BM_PrioritizedSampleAndUpdate/1000000"),
    "slices": ("//samplers/units:prioritized_slices_benchmark", "BM_PlanAndUpdate/20000"),
    "extend": ("//storage:dense_storage_benchmark", "Extend/0/[0-9]+/1000/0"),
    "gather": ("//storage:dense_storage_benchmark", "Gather/0/[0-9]+/0"),
    "tensordict": ("//tensordict:tensor_dict_benchmark",
                   "BM_(Get|CreateTyped|CopyFrom|StackInto64|GatherInto32/4096)"),
    "collection": ("//collectors:sync_collector_benchmark", "BM_CounterAndSum/lanes:16/.*"),
}
LIMIT = 1.05
TURNS = 15
SECONDS = "0.3s"  # Of a benchmark in a turn.
QUICK_TURNS = 9
QUICK_SECONDS = "0.1s"
QUICK_FEWEST = 3
# No turn begins that would end later; the rest of 3 minutes is Bazel's, which
# looks whether anything is to be built.
QUICK_BUDGET = 130


def read_list(path):
    with open(path) as lines:
        return dict(line.split(None, 1) for line in lines.read().splitlines())


def measure(figures, builds, is_quick, run=run_program, clock=time.monotonic):
    """{(figure, benchmark): ([base ns of a turn, ...], [new ns, ...])}."""
    taken = {}
    begin = clock()
    longest = 0
    for turn in range(QUICK_TURNS if is_quick else TURNS):
        start = clock()
        if is_quick and turn >= QUICK_FEWEST and start - begin + longest > QUICK_BUDGET:
            break
        for figure in figures:
            target, pattern = FIGURES[figure]
            for side in ((0, 1), (1, 0))[turn % 2]:
                if target not in builds[side]:
                    continue
                runs = run(builds[side][target], pattern, QUICK_SECONDS if is_quick else SECONDS)
                for name, of in runs.items():
                    taken.setdefault((figure, name), ([], []))[side].append(of["ns"])
        longest = max(longest, clock() - start)
    return taken


def compare(base, new):
    """(lower quartile, median, upper quartile) of the turns' ratios new / base."""
    ratios = [n / b for b, n in zip(base, new)]
    if len(ratios) == 1:
        return tuple(3 * ratios)
    return tuple(statistics.quantiles(ratios, n=4, method="inclusive"))


def report(figures, taken, say=print):
    """Prints a line a benchmark; the exit status."""
    line = "%-11s  %-42s  %9s  %9s  %5s  %s"
    say(line % ("figure", "benchmark", "base", "new", "ratio", "quartiles"))
    compared, slower, unclear = 0, [], []
    for figure in figures:
        names = [name for of, name in taken if of == figure]
        if not names:
            say(line % (figure, "in neither", "-", "-", "-", "-"))
        for name in names:
            base, new = taken[figure, name]
            sides = [in_words(statistics.median(side)) if side else "none" for side in (base, new)]
            if not base or not new:
                say(line % (figure, name, *sides, "-", "only in %s" % ("new" if new else "base")))
                continue
            low, ratio, high = compare(base, new)
            compared += 1
            if low > LIMIT:
                slower.append(name)
            elif ratio > LIMIT:
                unclear.append(name)
            say(line % (figure, name, *sides, "%.3f" % ratio, "%.3f .. %.3f" % (low, high)))
    if unclear:
        say("above %.2f, but not beyond the spread: %s" % (LIMIT, ", ".join(unclear)))
    if slower:
        say("above %.2f beyond the spread: %s" % (LIMIT, ", ".join(slower)))
    say("%d compared, %d slower" % (compared, len(slower)))
    return 0 if compared and not slower else 1


def main(argv):
    is_quick = "--quick" in argv
    rest = [arg for arg in argv if arg != "--quick"]
    lists = []
    if rest[:1] == ["--targets"]:
        rest = rest[1:]
    else:
        lists, rest = rest[:2], rest[2:]
    figures = list(dict.fromkeys(rest)) or list(FIGURES)
    for figure in figures:
        if figure not in FIGURES:
            raise SystemExit("compare_speed: got figure %s, want one of %s" % (figure, ", ".join(FIGURES)))
    if not lists:
        print("\n".join(sorted({FIGURES[figure][0] for figure in figures})))
        return 0
    # The programs inherit it.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    taken = measure(figures, [read_list(path) for path in lists], is_quick)
    turns = max((len(side) for sides in taken.values() for side in sides), default=0)
    print("%d turns on processor %d" % (turns, min(os.sched_getaffinity(0))))
    return report(figures, taken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
