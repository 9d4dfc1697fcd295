#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What TorchRL's samplers take for what benchmarks/slices and
samplers:prioritized_sampler_benchmark measure.

usage: python tools/peer/torchrl_speed.py [--slices=STORED/CAPACITY ...]
    (with torchrl; the arguments are rows, 5000000/6000000 unless told)

One thread; medians in ms. Rows as there: 16 bytes for slices, with episodes of
1,000 steps; CartPole's with priorities.
"""
import statistics
import sys
import time

import torch
import torchrl
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import (
    PrioritizedSampler, PrioritizedSliceSampler, SliceSampler)

torch.set_num_threads(1)
EPISODE = 1000


def episodes(first, rows):
    step = torch.arange(first, first + rows)
    at = step % EPISODE
    observation = torch.stack((step // EPISODE, at), -1).float()
    return TensorDict({
        "observation": observation,
        "next": {"reward": torch.ones(rows, 1),
                 "done": (at == EPISODE - 1).unsqueeze(-1)},
    }, [rows])


def cart_pole(rows):
    flag = torch.zeros(rows, 1, dtype=torch.bool)
    return TensorDict({
        "observation": torch.zeros(rows, 4),
        "action": torch.zeros(rows, dtype=torch.int64),
        "next": {"observation": torch.zeros(rows, 4),
                 "reward": torch.zeros(rows, 1), "done": flag,
                 "terminated": flag, "truncated": flag},
    }, [rows])


def median_ms(operation, rounds, before=lambda: None):
    times = []
    for i in range(rounds + 3):
        before()
        start = time.perf_counter()
        operation()
        if i >= 3:
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def fill(buffer, stored, make, piece=1_000_000):
    done = 0
    while done < stored:
        rows = min(piece, stored - done)
        buffer.extend(make(done, rows))
        done += rows
    return done


def slices(stored, capacity):
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(capacity),
        sampler=SliceSampler(slice_len=16, end_key=("next", "done"),
                             truncated_key=None),
        batch_size=256 * 16)
    written = fill(buffer, stored, episodes)

    def write():
        nonlocal written
        buffer.extend(episodes(written, 1000))
        written += 1000

    rounds = 10 if stored > 50_000_000 else 100
    print(f"slices 256x16, {stored} of {capacity}: "
          f"{median_ms(buffer.sample, rounds, write):.3f} while writing, "
          f"{median_ms(buffer.sample, rounds):.3f} without", flush=True)


def prioritized(rows):
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(rows),
        sampler=PrioritizedSampler(rows, alpha=0.6, beta=0.4),
        priority_key="td_error", batch_size=256)
    fill(buffer, rows, lambda first, n: cart_pole(n))
    buffer.update_priority(torch.arange(rows), torch.rand(rows))
    priorities = torch.rand(256)

    def both():
        buffer.update_priority(buffer.sample()["index"], priorities)

    print(f"prioritized sample and update, {rows}: "
          f"{median_ms(both, 300):.3f}, sample "
          f"{median_ms(buffer.sample, 300):.3f}", flush=True)


def prioritized_slices(rows):
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(rows),
        sampler=PrioritizedSliceSampler(
            rows, alpha=0.6, beta=0.4, slice_len=16, end_key=("next", "done"),
            truncated_key=None),
        priority_key="td_error", batch_size=256 * 16)
    fill(buffer, rows, episodes)
    print(f"prioritized slices 256x16, {rows}: "
          f"{median_ms(buffer.sample, 30):.3f}", flush=True)


def main():
    print("torchrl", torchrl.__version__, "torch", torch.__version__)
    wanted = [arg.removeprefix("--slices=") for arg in sys.argv[1:]]
    for text in wanted or ["5000000/6000000"]:
        stored, capacity = (int(number) for number in text.split("/"))
        slices(stored, capacity)
    if wanted:
        return
    prioritized(1_000_000)
    prioritized_slices(5_000_000)


if __name__ == "__main__":
    main()
