# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/transforms measures, with TorchRL on one core.

usage: transforms_torchrl.py [--quick]
"""
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import torch
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, ReplayBuffer, SliceSampler
from torchrl.envs.transforms import ObservationNorm, ToTensorImage
from torchrl.objectives.value.functional import (
    vec_generalized_advantage_estimate)


def median_us(run, turns):
    """The median of the times of `turns` calls, after one that is not counted."""
    times = []
    for turn in range(-1, turns):
        begin = time.perf_counter()
        run()
        if turn >= 0:
            times.append(time.perf_counter() - begin)
    return sorted(times)[turns // 2] * 1e6


def show(name, microseconds):
    print("  %-44s %10.2f us" % (name, microseconds), flush=True)


def filled(rows, columns, **options):
    """A buffer on a storage with `rows` rows of the leaves `columns`."""
    buffer = ReplayBuffer(storage=LazyTensorStorage(rows), **options)
    for first in range(0, rows, 10000):
        count = min(10000, rows - first)
        buffer.extend(TensorDict({key: make(count) for key, make in columns.items()}, [count]))
    return buffer


def main(quick):
    torch.set_num_threads(1)
    turns = 5 if quick else 21
    print("TorchRL, one core")
    frames = filled(
        10000 if quick else 100000,
        {"pixels": lambda n: torch.randint(0, 256, (n, 84, 84, 1), dtype=torch.uint8),
         ("next", "done"): lambda n: torch.zeros(n, 1, dtype=torch.bool)},
        sampler=SliceSampler(slice_len=4, end_key=("next", "done"), cache_values=True),
        transform=ToTensorImage(in_keys=["pixels"]), batch_size=1024)
    show("256 slices of 4 frames, ToTensorImage", median_us(frames.sample, turns))
    rows = filled(20000 if quick else 1000000,
                  {"observation": lambda n: torch.randn(n, 376)},
                  transform=ObservationNorm(loc=-0.5, scale=1.5, in_keys=["observation"]),
                  batch_size=4096)
    show("4096 rows of 376 float32, ObservationNorm", median_us(rows.sample, turns))
    value, next_value, reward = torch.randn(3, 256, 128, 1)
    done = torch.rand(256, 128, 1) < 0.01
    show("GAE of [256, 128]", median_us(
        lambda: vec_generalized_advantage_estimate(
            0.99, 0.95, value, next_value, reward, done, done), turns))


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
