# SPDX-License-Identifier: Apache-2.0
"""Rill over an engine beside the engine alone, in turns: the table of
benchmarks/distributed.

usage: distributed_table.py [--quick] ENGINE COMMAND [ARG...]

COMMAND ARG... bare, walk and rill run one side (distributed_cases.h): the engine
alone with few blocks of memory, with as much memory as Rill's table has, and
Rill. A figure is the median of the turns, a ratio that of the turns' ratios:
Rill to each of the others.
"""
import os
import platform
import statistics
import subprocess
import sys

MANY_BYTES = 100_000  # From here on a case is a rate, below it a time.


def read_side(output):
    """(seconds, bytes) by case, and a share by case of one column."""
    cases, shares = {}, {}
    for line in output.splitlines():
        name, *columns = line.split("\t")
        if len(columns) == 2:
            cases[name] = (float(columns[0]), int(columns[1]))
        elif len(columns) == 1:
            shares[name] = float(columns[0])
    return cases, shares


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return names[0] if names else platform.machine()


def table(engine, turns):
    """Lines. `turns`: what read_side gave for the sides bare, walk and rill."""
    yield "%s, %s, %d cores, Linux %s; medians of %d turns" % (
        engine, processor(), len(os.sched_getaffinity(0)), platform.release(), len(turns))
    yield "  %-42s %15s %15s %15s %8s %8s" % ("", "bare", "walking bare", "Rill", "to bare", "to walk")
    for name, (_, size) in turns[0][0][0].items():
        sides = [[cases[name][0] for cases, _ in side] for side in zip(*turns)]
        is_rate = size >= MANY_BYTES
        figures = ["%10.0f MB/s" % (size / statistics.median(side) / 1e6) if is_rate else
                   "%12.1f us" % (statistics.median(side) * 1e6) for side in sides]
        ratios = [statistics.median(bare / rill if is_rate else rill / bare for bare, rill in zip(side, sides[-1]))
                  for side in sides[:-1]]
        yield "  %-42s %15s %15s %15s %8.2f %8.2f" % (name, *figures, *ratios)
    for name in turns[0][-1][1]:
        share = statistics.median(rill[1][name] for *_, rill in turns)
        yield "  %-42s %47s" % (name + ": waits", "%.2f %%" % (100 * share))


def main(arguments):
    is_quick = arguments[:1] == ["--quick"]
    engine, *command = arguments[is_quick:]

    def run(side):
        done = subprocess.run(command + [side] + ["--quick"] * is_quick, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit("distributed: %s: %s ended with exit status %d" % (engine, side, done.returncode))
        return read_side(done.stdout)

    turns = [(run("bare"), run("walk"), run("rill")) for _ in range(1 if is_quick else 3)]
    for line in table(engine, turns):
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
