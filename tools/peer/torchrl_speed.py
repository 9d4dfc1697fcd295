#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What samples take TorchRL and Rill, in turns in one run: tools/peer_speed.

usage: torchrl_speed.py SLICES_MAIN REPLAY_BUFFER_BENCHMARK PRIORITIZED_SLICES_BENCHMARK [STORED/CAPACITY]
    (with torchrl; the last is slices of so many rows, and nothing else)

One thread each; medians of turns in us, and how many times as long TorchRL
takes. Rows are 16 bytes for slices, with episodes of 1,000 steps, else
CartPole's. TorchRL's call makes a batch, which for prioritized slices Rill's
figure, a plan, does not.
"""
import json
import re
import statistics
import subprocess
import sys
import time

import torch
import torchrl
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import (
    PrioritizedSampler, PrioritizedSliceSampler, RandomSampler, SliceSampler)

torchrl.torchrl_logger.setLevel("WARNING")
torch.set_num_threads(1)
EPISODE = 1000
TURNS = 5


def episodes(first, rows):
    step = torch.arange(first, first + rows)
    at = step % EPISODE
    observation = torch.stack((step // EPISODE, at), -1).float()
    return TensorDict({
        "observation": observation,
        "next": {"reward": torch.ones(rows, 1),
                 "done": (at == EPISODE - 1).unsqueeze(-1)},
    }, [rows])


def cart_pole(_, rows):
    flag = torch.zeros(rows, 1, dtype=torch.bool)
    return TensorDict({
        "observation": torch.zeros(rows, 4),
        "action": torch.zeros(rows, dtype=torch.int64),
        "next": {"observation": torch.zeros(rows, 4),
                 "reward": torch.zeros(rows, 1), "done": flag,
                 "terminated": flag, "truncated": flag},
    }, [rows])


def filled(stored, make, batch_size, sampler, capacity=0, **options):
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(capacity or stored), sampler=sampler,
                                    batch_size=batch_size, **options)
    for first in range(0, stored, 1_000_000):
        buffer.extend(make(first, min(1_000_000, stored - first)))
    return buffer


def median_us(operation, rounds, before=lambda: None):
    times = []
    for i in range(rounds + 3):
        before()
        start = time.perf_counter()
        operation()
        if i >= 3:
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def benchmark(program, name):
    """The one benchmark of that name: its counters, and time in us."""
    found = json.loads(output_of(program, "--benchmark_filter=^%s$" % name, "--benchmark_format=json"))["benchmarks"]
    result = found[0]
    result["us"] = result["real_time"] * {"ns": 1e-3, "us": 1, "ms": 1e3}[result["time_unit"]]
    return result


def compare(name, ours, peers, target="", turns=TURNS):
    """Turn after turn, so that both meet the same machine."""
    pairs = [(ours(), peers()) for _ in range(turns)]
    a, b = (statistics.median(side) for side in zip(*pairs))
    print("%-44s Rill %8.1f   TorchRL %9.1f   %6.1f times%s" % (name, a, b, b / a, target), flush=True)


def uniform(program):
    buffer = filled(1_000_000, cart_pole, 256, RandomSampler())
    compare("uniform sample of 256, 1M",
            lambda: benchmark(program, "BM_Sample/0/manual_time")["sample_us"],
            lambda: median_us(buffer.sample, 200))


def prioritized(program, rows, target):
    buffer = filled(rows, cart_pole, 256, PrioritizedSampler(rows, alpha=0.6, beta=0.4), priority_key="td_error")
    buffer.update_priority(torch.arange(rows), torch.rand(rows))
    priorities = torch.rand(256)
    compare("prioritized sample and update of 256, %dM" % (rows // 1_000_000),
            lambda: benchmark(program, "BM_PrioritizedSampleAndUpdate/%d" % rows)["us"],
            lambda: median_us(lambda: buffer.update_priority(buffer.sample()["index"], priorities), 200), target)


def slices(program, stored, capacity):
    buffer = filled(stored, episodes, 256 * 16,
                    SliceSampler(slice_len=16, end_key=("next", "done"), truncated_key=None), capacity)
    written = stored

    def write():
        nonlocal written
        buffer.extend(episodes(written, 1000))
        written += 1000

    is_large = stored > 50_000_000
    runs = []  # Of Rill's program, each with both figures.

    def ours(at, turn):
        if len(runs) == turn:
            out = output_of(program, "--stored=%d" % stored, "--capacity=%d" % capacity)
            runs.append([float(number) for number in re.findall(r"[\d.]+(?= ms| us)", out.strip().splitlines()[-1])])
        return runs[turn][at] * 1e3

    for at, (name, before) in enumerate((("while writing", write), ("without writes", lambda: None))):
        turn = iter(range(TURNS))
        compare("slices 256x16, %dM of %dM, %s" % (stored // 1e6, capacity // 1e6, name),
                lambda: ours(at, next(turn)), lambda: median_us(buffer.sample, 5 if is_large else 40, before),
                turns=1 if is_large else TURNS)


def prioritized_slices(program, rows):
    sampler = PrioritizedSliceSampler(rows, alpha=0.6, beta=0.4, slice_len=16, end_key=("next", "done"),
                                      truncated_key=None)
    buffer = filled(rows, episodes, 256 * 16, sampler, priority_key="td_error")
    compare("prioritized slices 256x16, %dM" % (rows // 1_000_000),
            lambda: benchmark(program, "BM_Plan/%d" % rows)["us"], lambda: median_us(buffer.sample, 10))


def main(slices_main, replay_buffer, prioritized_slices_of, rows=None):
    print("torchrl %s, torch %s; us, medians of turns" % (torchrl.__version__, torch.__version__))
    if rows:
        stored, capacity = (int(number) for number in rows.split("/"))
        slices(slices_main, stored, capacity)
        return
    uniform(replay_buffer)
    prioritized(replay_buffer, 1_000_000, " (asked: 308 / 20 = 15.4)")
    prioritized(replay_buffer, 10_000_000, " (asked: 368 / 35 = 10.5)")
    slices(slices_main, 5_000_000, 6_000_000)
    prioritized_slices(prioritized_slices_of, 5_000_000)


if __name__ == "__main__":
    main(*sys.argv[1:])
