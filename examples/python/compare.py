# SPDX-License-Identifier: Apache-2.0
"""Runs a program of this folder with Rill's buffer and with the original.

usage: python3 compare.py PROGRAM [--seeds N] [--last N] [--svg FILE] [FLAG ...]
       python3 compare.py PROGRAM --pairs N --total_steps N
FLAGs go to the program. Each seed runs with both, one after the other. Seconds are those of the
processor that the whole program took, which others on the machine do not change much. FILE gets the
curves of all runs. With --pairs both run N times in turns in this process, with seed 1: where the
returns are the same, the ratio of their seconds is the buffers' alone.
"""

import argparse
import json
import math
import resource
import runpy
import statistics
import subprocess
import sys
import time


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


def curve(report):
    """Returns as the mean of up to 10 episodes, or losses."""
    if "losses" in report:
        return report["losses"]
    returns = report["returns"]
    return [statistics.fmean(returns[max(0, i - 9) : i + 1]) for i in range(len(returns))]


def draw(curves, unit):
    """An SVG: a line a run, the original's broad and below. Values that are not finite are left out."""
    width, height, left, top = 640, 300, 60, 20
    styles = {"original": "stroke:#f2a65a;stroke-width:5", "rill": "stroke:#1f4e79;stroke-width:1.5"}
    values = [value for runs in curves.values() for run in runs for value in run if math.isfinite(value)] or [0.0]
    low, high = min(values), max(values)
    last = max(len(run) for runs in curves.values() for run in runs) - 1

    def point(i, value):
        x = left + (width - left - 20) * i / max(last, 1)
        y = top + (height - top - 40) * (high - value) / ((high - low) or 1)
        return f"{x:.1f},{y:.1f}"

    lines = [
        f'<polyline style="{style}" points="{" ".join(point(i, v) for i, v in enumerate(run) if math.isfinite(v))}"/>'
        for buffer, style in styles.items()
        for run in curves[buffer]
    ]
    texts = [
        (left - 8, top + 4, "end", f"{high:.3g}"),
        (left - 8, height - 36, "end", f"{low:.3g}"),
        (left, height - 20, "middle", "1"),
        (width - 20, height - 20, "middle", str(last + 1)),
        ((width + left) / 2, height - 4, "middle", f"{unit}; Rill thin, the original broad, a line a seed"),
    ]
    labels = [f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{text}</text>' for x, y, anchor, text in texts]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<g fill="none" stroke-linejoin="round" stroke-opacity="0.8">', *lines, "</g>", *labels, "</svg>\n",
    ])


def print_ratio(program, pairs, total_steps):
    """The mean of the pairs' ratios of processor time, and its standard error."""
    train = runpy.run_path(program)["train"]
    ratios = []
    for i in range(-1, pairs):  # The first pair imports, and does not count.
        seconds = {}
        for buffer in ("rill", "original") if i % 2 else ("original", "rill"):
            began = time.process_time()
            train(buffer, 1, total_steps)
            seconds[buffer] = time.process_time() - began
        ratios.append(seconds["rill"] / seconds["original"])
    error = statistics.stdev(ratios[1:]) / pairs**0.5
    print(f"rill takes {statistics.fmean(ratios[1:]):.3f} +- {error:.3f} times the original's seconds")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--last", type=int, default=20, help="episodes of the mean return")
    parser.add_argument("--svg", help="a file for the curves")
    parser.add_argument("--pairs", type=int, help="2 or more; with OMP_NUM_THREADS=1")
    options, flags = parser.parse_known_args()
    if options.pairs:
        steps = argparse.ArgumentParser()
        steps.add_argument("--total_steps", type=int, required=True)
        print_ratio(options.program, options.pairs, steps.parse_args(flags).total_steps)
        return
    scores = {"rill": [], "original": []}
    seconds = {"rill": [], "original": []}
    curves = {"rill": [], "original": []}
    for seed in range(options.seeds):
        for buffer in scores:
            report = run(options.program, buffer, seed, flags)
            scores[buffer].append(score(report, options.last))
            seconds[buffer].append(report["seconds"])
            curves[buffer].append(curve(report))
            print(
                f"seed {seed} {buffer:8} {scores[buffer][-1]:10.4g} in {seconds[buffer][-1]:6.1f} s", flush=True
            )
    for buffer, values in scores.items():
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        print(
            f"{buffer:8} {statistics.fmean(values):10.4g} +- {spread:.3g}, "
            f"median {statistics.median(seconds[buffer]):.1f} s"
        )
    if options.svg:
        unit = "episode, the mean return of ten" if "returns" in report else "loss of each report"
        with open(options.svg, "w", encoding="utf-8") as file:
            file.write(draw(curves, unit))


if __name__ == "__main__":
    main()
