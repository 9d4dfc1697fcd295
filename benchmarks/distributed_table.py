# SPDX-License-Identifier: Apache-2.0
"""Rill over an engine beside the engine alone, in turns: the table of
benchmarks/distributed.

usage: distributed_table.py [--quick] [--reverb] ENGINE COMMAND [ARG...]

COMMAND ARG... bare, table and rill run one side (distributed_cases.h): the engine
alone, the engine with rows of a table as large as Rill's, and Rill. A figure is
the median of the turns, a ratio that of the turns' ratios: Rill to each of the
others. With --reverb distributed_reverb.py takes turns too.
"""
import os
import platform
import statistics
import subprocess
import sys

REVERB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "distributed_reverb.py")
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
    """Lines. `turns`: what read_side gave for the sides bare, table and rill, and
    perhaps for Reverb."""
    others = ["bare", "table"] + ["Reverb"] * (len(turns[0]) > 3)
    yield "%s, %s, %d cores, Linux %s; medians of %d turns" % (
        engine, processor(), len(os.sched_getaffinity(0)), platform.release(), len(turns))
    yield ("  %-42s" % "" + "".join("%16s" % name for name in ("bare", "bare, table", "Rill", *others[2:])) +
           "".join("%11s" % ("to " + name) for name in others)).rstrip()
    for name, (_, size) in turns[0][0][0].items():
        # Reverb has no call without a table.
        sides = [[cases[name][0] for cases, _ in side if name in cases] for side in zip(*turns)]
        is_rate = size >= MANY_BYTES
        figures = ["-" if not side else "%.0f MB/s" % (size / statistics.median(side) / 1e6) if is_rate else
                   "%.1f us" % (statistics.median(side) * 1e6) for side in sides]
        rill = sides.pop(2)
        ratios = ["-" if not side else "%.2f" % statistics.median(
            (other / own if is_rate else own / other) for other, own in zip(side, rill)) for side in sides]
        yield "  %-42s" % name + "".join("%16s" % one for one in figures) + "".join("%11s" % one for one in ratios)
    for name in turns[0][2][1]:
        share = statistics.median(turn[2][1][name] for turn in turns)
        yield "  %-42s%48s" % (name + ": waits", "%.2f %%" % (100 * share))


def main(arguments):
    is_quick = arguments[:1] == ["--quick"]
    del arguments[:is_quick]
    has_reverb = arguments[:1] == ["--reverb"]
    engine, *command = arguments[has_reverb:]

    def run(*side, **output):
        done = subprocess.run([*side, *["--quick"] * is_quick], stdout=subprocess.PIPE, text=True, check=False, **output)
        if done.returncode:
            sys.exit("distributed: %s: %s ended with exit status %d" % (engine, side[-1], done.returncode))
        return read_side(done.stdout)

    def run_turn():
        sides = [run(*command, side) for side in ("bare", "table", "rill")]
        if has_reverb:
            # It warns of each write that is ahead of the server.
            sides.append(run("python3", "-B", REVERB, stderr=subprocess.DEVNULL))
        return sides

    turns = [run_turn() for _ in range(1 if is_quick else 3)]
    for line in table(engine, turns):
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
