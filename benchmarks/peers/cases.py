# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/compare measures: the cases, and the rows that they are about."""
from typing import NamedTuple


class Case(NamedTuple):
    operation: str  # With its arguments, as compare_main.cc reads it.
    title: str
    quick: bool = False
    frames: int = 0  # Environment steps a call; a table shows a rate then.


GROUPS = (
    ("Uniform samples", (
        Case("sample 47B 1000000 256", "256 rows of 47 B, 1M stored", quick=True),
        Case("sample 47B 1000000 4096", "4,096 rows of 47 B, 1M stored"),
        Case("sample 3KB 100000 256", "256 rows of 3 KB, 100k stored", quick=True),
        Case("sample 3KB 100000 4096", "4,096 rows of 3 KB, 100k stored"),
        Case("sample 56KB 10000 256", "256 rows of 56 KB, 10k stored"),
    )),
    ("Writes", (
        Case("extend 47B 1000000 1", "1 row of 47 B", quick=True),
        Case("extend 47B 1000000 64", "64 rows of 47 B"),
        Case("extend 47B 1000000 1000", "1,000 rows of 47 B", quick=True),
        Case("extend 3KB 100000 1000", "1,000 rows of 3 KB"),
        Case("extend 56KB 10000 64", "64 rows of 56 KB"),
    )),
    ("Priorities: a sample of 256 and its update", (
        Case("prioritized 1000000 256", "1M rows of 47 B", quick=True),
        Case("prioritized 10000000 256", "10M rows of 47 B"),
    )),
    ("Slices, 1,000 rows written before each sample", (
        Case("slices 100000 1000000 256 16", "256 x 16 steps, 100k of 1M stored", quick=True),
        Case("slices 5000000 6000000 256 16", "256 x 16 steps, 5M of 6M stored"),
    )),
    ("A dictionary of six leaves", (
        Case("dict create", "create", quick=True),
        Case("dict get", "get"),
        Case("dict clone", "clone"),
        Case("dict stack", "stack 64 of them", quick=True),
    )),
    ("CartPole, random actions", (
        Case("step 64", "64 environments, a step", quick=True, frames=64),
        Case("collect 16 64", "a collector's batch of 16 x 64 steps", frames=16 * 64),
    )),
)

# Shape and dtype of a row's observation.
OBSERVATIONS = {"47B": ((4,), "float32"), "3KB": ((384,), "float32"), "56KB": ((4, 84, 84), "uint8")}
WRITTEN_BEFORE_SLICES = 1000


def leaves_of(row):
    """{key: (shape, dtype)}; a key of "next" is a pair."""
    seen = OBSERVATIONS[row]
    flag = ((1,), "bool")
    return {"observation": seen, "action": ((), "int64"), ("next", "observation"): seen,
            ("next", "reward"): ((1,), "float32"), ("next", "done"): flag, ("next", "terminated"): flag,
            ("next", "truncated"): flag}


def arrays_of(row, count):
    """{key: array of `count` rows}; the last one ends an episode."""
    import numpy as np
    # Not zeros: the system would map one page of them many times.
    rows = {key: np.ones((count, *shape), dtype) for key, (shape, dtype) in leaves_of(row).items()}
    for key in ("done", "terminated", "truncated"):
        rows["next", key][:] = False
    rows["next", "done"][-1] = True
    rows["next", "terminated"][-1] = True
    return rows
