#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a run folder's events with the real `tensorboard` package and compares
them with its curve.csv.

Not part of the suite, which needs no Python package:

  python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tensorboard
  /tmp/venv/bin/python check_tensorboard.py RUN_DIR
"""

import csv
import math
import sys

from tensorboard.backend.event_processing import event_accumulator


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_tensorboard.py RUN_DIR")
    run_dir = sys.argv[1]
    events = event_accumulator.EventAccumulator(
        run_dir, size_guidance={event_accumulator.SCALARS: 0})
    events.Reload()
    tags = {tag.split("/")[1]: tag for tag in events.Tags()["scalars"]}
    with open(f"{run_dir}/curve.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        sys.exit(f"{run_dir}/curve.csv has no rows")
    compared = 0
    for column in rows[0]:
        want = [(int(row["steps"]), float(row[column]))
                for row in rows if row[column]]
        if column == "steps" or not want:
            continue
        got = [(e.step, e.value) for e in events.Scalars(tags[column])]
        if [step for step, _ in got] != [step for step, _ in want]:
            sys.exit(f"{column}: steps differ: got {got}, want {want}")
        for (step, a), (_, b) in zip(got, want):
            # Events hold float32, the CSV ten digits.
            if not math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-30):
                sys.exit(f"{column} at step {step}: got {a}, want {b}")
            compared += 1
    print(f"{compared} scalars of {len(tags)} tags in {len(rows)} rows agree")


if __name__ == "__main__":
    main()
