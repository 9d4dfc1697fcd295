#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What collecting CartPole-v1 with random actions takes from Python, beside Gymnasium's SyncVectorEnv and TorchRL.

usage: collect_speed.py [NAME ...]

One core; ns a step of a lane, the least of 5 rounds, 1,024 steps a batch. Gymnasium's loop writes what it gets into
arrays that are made once, as a rollout buffer does. Run it in an environment with an optimised wheel (tools/wheel)
and gymnasium; TorchRL is measured where it is installed.
"""
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np  # noqa: E402: behind the number of threads.

import rill  # noqa: E402

FRAMES = 1024


def nanoseconds(step, frames=FRAMES, rounds=5, budget=0.4):
    """The least of some rounds, of a step's mean in each."""
    step()
    best = float("inf")
    for _ in range(rounds):
        start, calls = time.perf_counter(), 0
        while time.perf_counter() - start < budget:
            step()
            calls += 1
        best = min(best, (time.perf_counter() - start) / calls / frames * 1e9)
    return best


def built_in(lanes):
    return rill.SyncDataCollector(rill.envs.CartPole(lanes), frames_per_batch=FRAMES, seed=1).next


def into_a_buffer(lanes):
    buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(64 * FRAMES, lanes=lanes))
    return rill.SyncDataCollector(rill.envs.CartPole(lanes), frames_per_batch=FRAMES, seed=1, replay_buffer=buffer).next


def with_a_policy(lanes):
    """A function in Python that takes no time of its own."""
    actions = np.random.default_rng(1).integers(0, 2, lanes)
    return rill.SyncDataCollector(rill.envs.CartPole(lanes), lambda root: actions, frames_per_batch=FRAMES, seed=1).next


def python_objects(lanes):
    import gymnasium
    envs = [gymnasium.make("CartPole-v1", disable_env_checker=True) for _ in range(lanes)]
    return rill.SyncDataCollector(envs, frames_per_batch=FRAMES, seed=1).next


def gymnasium_sync(lanes):
    import gymnasium
    envs = gymnasium.make_vec("CartPole-v1", lanes, vectorization_mode="sync")
    time_steps = FRAMES // lanes
    observations = np.zeros((time_steps, lanes, 4), np.float32)
    following = np.zeros_like(observations)
    actions = np.zeros((time_steps, lanes), np.int64)
    rewards = np.zeros((time_steps, lanes), np.float32)
    ends = np.zeros((2, time_steps, lanes), bool)
    state = [envs.reset(seed=1)[0]]

    def batch():
        for t in range(time_steps):
            observations[t] = state[0]
            actions[t] = envs.action_space.sample()
            state[0], rewards[t], ends[0, t], ends[1, t], _ = envs.step(actions[t])
            following[t] = state[0]
    return batch


def torchrl(lanes):
    import torch
    from torchrl.collectors import Collector
    from torchrl.envs import GymEnv, SerialEnv
    torch.set_num_threads(1)
    env = SerialEnv(lanes, lambda: GymEnv("CartPole-v1"))
    batches = iter(Collector(env, frames_per_batch=FRAMES, total_frames=-1))
    return lambda: next(batches)


KINDS = {"rill": built_in, "rill into a buffer": into_a_buffer, "rill, policy in Python": with_a_policy,
         "rill, Gymnasium's objects": python_objects, "Gymnasium SyncVectorEnv": gymnasium_sync, "TorchRL": torchrl}


def main():
    wanted = sys.argv[1:] or list(KINDS)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print("%-28s %10s %10s" % ("ns a step", "8 lanes", "64 lanes"))
    for name in wanted:
        try:
            print("%-28s %10.0f %10.0f" % (name, *(nanoseconds(KINDS[name](lanes)) for lanes in (8, 64))), flush=True)
        except ImportError as error:
            print("%-28s %s" % (name, error))


if __name__ == "__main__":
    main()
