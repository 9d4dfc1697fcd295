#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a run folder's events with the real `tensorboard` package and compares
them with its curve.csv, whose first column counts steps.

Not part of the suite, which needs no Python package:

  python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tensorboard
  /tmp/venv/bin/python check_tensorboard.py RUN_DIR
"""

import csv
import math
import sys


def compare(rows, scalars):
    """How many scalars agree; SystemExit where some do not.

    `rows`: dictionaries of texts; `scalars`: {column: [(step, value)]}.
    """
    steps, *columns = rows[0]
    compared = 0
    for column in columns:
        want = [(int(row[steps]), float(row[column]))
                for row in rows if row[column]]
        if not want:
            continue
        got = scalars.get(column, [])
        if [step for step, _ in got] != [step for step, _ in want]:
            raise SystemExit(f"{column}: steps differ: got {got}, want {want}")
        for (step, a), (_, b) in zip(got, want):
            # Events hold float32, the CSV ten digits.
            if not math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-30):
                raise SystemExit(f"{column} at step {step}: got {a}, want {b}")
            compared += 1
    return compared


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_tensorboard.py RUN_DIR")
    from tensorboard.backend.event_processing import event_accumulator

    run_dir = sys.argv[1]
    events = event_accumulator.EventAccumulator(
        run_dir, size_guidance={event_accumulator.SCALARS: 0})
    events.Reload()
    scalars = {tag.split("/")[-1]: [(e.step, e.value) for e in events.Scalars(tag)]
               for tag in events.Tags()["scalars"]}
    with open(f"{run_dir}/curve.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        sys.exit(f"{run_dir}/curve.csv has no rows")
    print(f"{compare(rows, scalars)} scalars of {len(scalars)} tags in {len(rows)} rows agree")


if __name__ == "__main__":
    main()
