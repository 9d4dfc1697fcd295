# SPDX-License-Identifier: Apache-2.0
"""Runs a program of this folder with Rill's buffer and with the original.

usage: python3 compare.py PROGRAM [--seeds N] [--last N] [FLAG ...]
FLAGs go to the program. Each seed runs with both, one after the other. Seconds are those of the
processor that the whole program took, which others on the machine do not change much.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys


def run(program, buffer, seed, flags):
    """What the program says of its run, its last line, with the processor's seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, program, "--buffer", buffer, "--seed", str(seed), *flags],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout.strip().splitlines()[-1])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    report["seconds"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return report


def score(report, last):
    """The mean of the last returns, or the last loss."""
    values = report["returns"][-last:] if "returns" in report else report["losses"][-1:]
    return statistics.fmean(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--last", type=int, default=20, help="episodes of the mean return")
    options, flags = parser.parse_known_args()
    scores = {"rill": [], "original": []}
    seconds = {"rill": [], "original": []}
    for seed in range(options.seeds):
        for buffer in scores:
            report = run(options.program, buffer, seed, flags)
            scores[buffer].append(score(report, options.last))
            seconds[buffer].append(report["seconds"])
            print(
                f"seed {seed} {buffer:8} {scores[buffer][-1]:10.4g} in {seconds[buffer][-1]:6.1f} s", flush=True
            )
    for buffer, values in scores.items():
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        print(
            f"{buffer:8} {statistics.fmean(values):10.4g} +- {spread:.3g}, "
            f"median {statistics.median(seconds[buffer]):.1f} s"
        )


if __name__ == "__main__":
    main()
