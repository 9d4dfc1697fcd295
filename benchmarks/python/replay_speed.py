#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What calls of rill.ReplayBuffer take from Python, beside plain NumPy, cpprb and TorchRL.

usage: replay_speed.py [--cpp=PROGRAM] [NAME ...]

One core. Rows: "small" has 7 leaves of 47 B in all, "wide" 3 KB. Each figure is the least of 7 rounds, a
call's mean in each. cpprb and TorchRL are measured where they are installed. Run it in an environment
with the wheel (tools/wheel). --cpp names //benchmarks:replay_sample_main, which makes the same samples
without Python; it is measured in turns with rill:
    bazel build -c opt --force_pic //benchmarks:replay_sample_main   # As the wheel.
"""
import os
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np  # noqa: E402: behind the number of threads.

import rill  # noqa: E402

CAPACITY = 100_000
BATCH = 256
SMALL = {"observation": ((4,), np.float32), "action": ((), np.int64), "reward": ((1,), np.float32),
         "next_observation": ((4,), np.float32), "done": ((1,), bool), "terminated": ((1,), bool)}
SMALL["truncated"] = ((1,), bool)
WIDE = {"pixels": ((3072,), np.uint8)}


def rows_of(kind, count):
    random = np.random.default_rng(0)
    return {key: random.integers(0, 2, (count, *shape)).astype(dtype) for key, (shape, dtype) in kind.items()}


def seconds(call, rounds=7, budget=0.05):
    """The least of some rounds, of a call's mean in each."""
    call()
    start = time.perf_counter()
    call()
    number = max(3, int(budget / max(time.perf_counter() - start, 1e-7)))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(number):
            call()
        best = min(best, (time.perf_counter() - start) / number)
    return best


class Rill:
    name = "rill"

    def filled(self, kind, **options):
        make = rill.PrioritizedReplayBuffer if "alpha" in options else rill.ReplayBuffer
        buffer = make(storage=rill.LazyTensorStorage(CAPACITY), batch_size=BATCH, seed=1, **options)
        for _ in range(10):
            buffer.extend(rows_of(kind, CAPACITY // 10))
        return buffer

    def sample(self, kind):
        return self.filled(kind).sample

    def sample_out(self, kind):
        buffer = self.filled(kind)
        batch = buffer.sample()
        return lambda: buffer.sample(out=batch)

    def prioritized(self, kind):
        buffer = self.filled(kind, alpha=0.6, beta=0.4)
        priority = np.random.default_rng(1).random(BATCH).astype(np.float32)

        def step():
            buffer.update_priority(buffer.sample(), priority)
        return step

    def add(self, kind):
        buffer = self.filled(kind)
        row = {key: value[0] for key, value in rows_of(kind, 1).items()}
        return lambda: buffer.add(row)

    def add_numbers(self, kind):
        buffer = self.filled(kind)
        row = {key: value[0] if value.size > 1 else value.item() for key, value in rows_of(kind, 1).items()}
        return lambda: buffer.add(row)

    def extend(self, kind):
        buffer = self.filled(kind)
        rows = rows_of(kind, BATCH)
        return lambda: buffer.extend(rows)


class PlainNumPy:
    """What people write by hand: an array a key, and a ring."""
    name = "numpy"

    def __init__(self):
        self.random = np.random.default_rng(1)

    def sample(self, kind):
        rows = rows_of(kind, CAPACITY)

        def step():
            index = self.random.integers(0, CAPACITY, BATCH)
            return {key: value[index] for key, value in rows.items()}
        return step

    def add(self, kind):
        rows = rows_of(kind, CAPACITY)
        row = {key: value[0] for key, value in rows_of(kind, 1).items()}
        place = [0]

        def step():
            for key, value in row.items():
                rows[key][place[0]] = value
            place[0] = (place[0] + 1) % CAPACITY
        return step

    def extend(self, kind):
        rows = rows_of(kind, CAPACITY)
        new = rows_of(kind, BATCH)
        place = [0]

        def step():
            for key, value in new.items():
                rows[key][place[0]:place[0] + BATCH] = value
            place[0] = (place[0] + BATCH) % (CAPACITY - BATCH)
        return step


class Cpprb:
    name = "cpprb"

    def __init__(self):
        import cpprb
        self.cpprb = cpprb

    def filled(self, kind, prioritized=False):
        make = self.cpprb.PrioritizedReplayBuffer if prioritized else self.cpprb.ReplayBuffer
        shapes = {key: {"shape": shape or 1, "dtype": dtype} for key, (shape, dtype) in kind.items()}
        buffer = make(CAPACITY, shapes)
        buffer.add(**rows_of(kind, CAPACITY))
        return buffer

    def sample(self, kind):
        buffer = self.filled(kind)
        return lambda: buffer.sample(BATCH)

    def prioritized(self, kind):
        buffer = self.filled(kind, prioritized=True)
        priority = np.random.default_rng(1).random(BATCH).astype(np.float32)

        def step():
            buffer.update_priorities(buffer.sample(BATCH, beta=0.4)["indexes"], priority)
        return step

    def add(self, kind):
        buffer = self.filled(kind)
        row = {key: value[0] for key, value in rows_of(kind, 1).items()}
        return lambda: buffer.add(**row)

    def extend(self, kind):
        buffer = self.filled(kind)
        rows = rows_of(kind, BATCH)
        return lambda: buffer.add(**rows)


class TorchRL:
    name = "torchrl"

    def __init__(self):
        import tensordict
        import torch
        import torchrl.data
        torch.set_num_threads(1)
        self.torch, self.data, self.tensordict = torch, torchrl.data, tensordict

    def rows(self, kind, count):
        return self.tensordict.TensorDict(
            {key: self.torch.from_numpy(value) for key, value in rows_of(kind, count).items()}, batch_size=[count])

    def filled(self, kind, **options):
        make = self.data.TensorDictPrioritizedReplayBuffer if options else self.data.TensorDictReplayBuffer
        buffer = make(storage=self.data.LazyTensorStorage(CAPACITY), batch_size=BATCH, **options)
        buffer.extend(self.rows(kind, CAPACITY))
        return buffer

    def sample(self, kind):
        return self.filled(kind).sample

    def prioritized(self, kind):
        buffer = self.filled(kind, alpha=0.6, beta=0.4)
        priority = self.torch.rand(BATCH)

        def step():
            buffer.update_priority(buffer.sample()["index"], priority)
        return step

    def add(self, kind):
        buffer = self.filled(kind)
        row = self.rows(kind, 1)[0]
        return lambda: buffer.add(row)

    def extend(self, kind):
        buffer = self.filled(kind)
        rows = self.rows(kind, BATCH)
        return lambda: buffer.extend(rows)


def import_seconds():
    """Of `import rill` behind NumPy's, the least of 7."""
    code = ("import numpy, time; start = time.perf_counter(); import rill; "
            "print(time.perf_counter() - start)")
    return min(float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)
               for _ in range(7))


def beside_cpp(program):
    """us of rill's sample and of C++'s, the least of five turns each, by a row's bytes.

    Each turn of either is a process of its own: where its memory lies makes a difference.
    """
    least = {}
    for _ in range(5):
        for i, command in enumerate(([sys.executable, __file__, "--samples"], [program])):
            lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
            for size, us in (line.split() for line in lines):
                pair = least.setdefault(int(size), [float("inf")] * 2)
                pair[i] = min(pair[i], float(us))
    return least


CASES = (
    ("sample 256 x 47 B", "sample", SMALL), ("sample 256 x 47 B, out=", "sample_out", SMALL),
    ("prioritized sample and update, 256 x 47 B", "prioritized", SMALL), ("sample 256 x 3 KB", "sample", WIDE),
    ("sample 256 x 3 KB, out=", "sample_out", WIDE), ("add 47 B", "add", SMALL),
    ("add 47 B, plain numbers", "add_numbers", SMALL), ("add 3 KB", "add", WIDE), ("extend 256 x 47 B", "extend", SMALL),
    ("extend 256 x 3 KB", "extend", WIDE))


def main(names):
    if names == ["--samples"]:  # What --cpp's program prints.
        for size, kind in ((47, SMALL), (3072, WIDE)):
            print("%d %.2f" % (size, seconds(Rill().sample(kind)) * 1e6))
        return
    programs = [name[len("--cpp="):] for name in names if name.startswith("--cpp=")]
    names = [name for name in names if not name.startswith("--")]
    for program in programs:
        for size, (ours, theirs) in beside_cpp(program).items():
            print("sample 256 x %d B: %.2f us, C++ %.2f us, %.2f times" % (size, ours, theirs, ours / theirs))
    libraries = []
    for library in (Rill, PlainNumPy, Cpprb, TorchRL):
        try:
            libraries.append(library())
        except ImportError:
            print("%s: not installed" % library.name)
    print("%-44s" % "us a call" + "".join("%10s" % library.name for library in libraries))
    for name, method, kind in CASES:
        if names and not any(wanted in name for wanted in names):
            continue
        cells = ["%10.2f" % (seconds(getattr(library, method)(kind)) * 1e6) if hasattr(library, method) else "%10s" % "-"
                 for library in libraries]
        print("%-44s" % name + "".join(cells), flush=True)
    if not names:
        print("%-44s%10.1f ms" % ("import rill", import_seconds() * 1e3))


if __name__ == "__main__":
    main(sys.argv[1:])
