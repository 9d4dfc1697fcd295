# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/lanes measures, with TorchRL on one core, CPU time.

Writes of one step of many lanes are extensions of as many rows: to its storages a
lane is nothing but a column. A write for slices is one for uniform samples, as it
looks for trajectories when it samples. Transforms stand beside an environment whose
steps are the same tensors each time.

usage: lanes_torchrl.py [--quick]
"""
import os
import sys
import time
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("RL_LOGGING_LEVEL", "ERROR")

import torch
from tensordict import TensorDict
from torchrl.data import (Binary, Composite, LazyTensorStorage, PrioritizedSampler, RandomSampler, ReplayBuffer,
                          Unbounded)
from torchrl.envs import EnvBase, RewardSum, StepCounter, TransformedEnv, VecNorm


def median_ns(run, rows, turns):
    """The median CPU time of `turns` calls by the row, after one that is not counted."""
    times = []
    for turn in range(-1, turns):
        begin = time.process_time()
        run()
        if turn >= 0:
            times.append(time.process_time() - begin)
    return sorted(times)[turns // 2] * 1e9 / rows


def show(name, lanes, nanoseconds):
    print("  %-36s %7d lanes %8.1f ns" % (name, lanes, nanoseconds), flush=True)


def steps_of(lanes):
    """One step of the lanes: HalfCheetah's 97 bytes, without the next observation."""
    return TensorDict({"observation": torch.randn(lanes, 17), "action": torch.randn(lanes, 6),
                       ("next", "reward"): torch.randn(lanes, 1),
                       ("next", "done"): torch.rand(lanes, 1) < 1e-3}, [lanes])


def writes(slots, lanes, turns):
    samplers = {"uniform": RandomSampler(), "prioritized": PrioritizedSampler(slots, 0.6, 0.4)}
    for name, sampler in samplers.items():
        buffer = ReplayBuffer(storage=LazyTensorStorage(slots), sampler=sampler, batch_size=256)
        batch = steps_of(lanes)
        for _ in range(slots // lanes):
            buffer.extend(batch)
        show("write, " + name, lanes, median_ns(lambda: buffer.extend(batch), lanes, turns))


class SameSteps(EnvBase):
    """CartPole's leaves; each step is the same."""

    def __init__(self, lanes):
        super().__init__(batch_size=[lanes])
        self.observation_spec = Composite(observation=Unbounded((lanes, 4)), shape=[lanes])
        self.action_spec = Binary(2, (lanes, 2), dtype=torch.int64)
        self.reward_spec = Unbounded((lanes, 1))
        flag = torch.zeros(lanes, 1, dtype=torch.bool)
        self._next = {"observation": torch.randn(lanes, 4), "reward": torch.ones(lanes, 1), "done": flag,
                      "terminated": flag}

    def _reset(self, tensordict=None, **kwargs):
        return TensorDict({"observation": self._next["observation"]}, self.batch_size)

    def _step(self, tensordict):
        return TensorDict(self._next, self.batch_size)

    def _set_seed(self, seed):
        pass


def transforms(lanes, turns):
    def took(env):
        step = env.rand_action(env.reset())
        return median_ns(lambda: env.step(step), lanes, turns)

    alone = took(SameSteps(lanes))
    for name, transform in (("StepCounter", StepCounter()), ("RewardSum", RewardSum()),
                            ("VecNorm", VecNorm(in_keys=["observation"]))):
        show("beside an environment, " + name, lanes,
             took(TransformedEnv(SameSteps(lanes), transform)) - alone)


def main(quick):
    torch.set_num_threads(1)
    print("TorchRL, one core, a row or a lane and step")
    for lanes in (1024,) if quick else (1024, 4096, 16384, 65536):
        writes(1 << 16 if quick else 1 << 22, lanes, 5 if quick else 31)
        transforms(lanes, 5 if quick else 101)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
