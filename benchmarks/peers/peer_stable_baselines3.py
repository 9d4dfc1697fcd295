# SPDX-License-Identifier: Apache-2.0
"""Stable-Baselines3's buffer, whose samples are tensors of torch."""
import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.buffers import ReplayBuffer

from cases import OBSERVATIONS
from prepared import Missing


class Participant:
    version = stable_baselines3.__version__

    def __init__(self):
        torch.set_num_threads(1)

    def filled(self, row, capacity, lanes):
        shape, dtype = OBSERVATIONS[row]
        high = 255 if dtype == "uint8" else 1
        buffer = ReplayBuffer(capacity, gymnasium.spaces.Box(0, high, shape, np.dtype(dtype)),
                              gymnasium.spaces.Discrete(2), device="cpu", n_envs=lanes)
        seen = np.zeros((lanes, *shape), dtype)
        step = (seen, seen, np.zeros((lanes, 1), np.int64), np.ones(lanes, np.float32), np.zeros(lanes, bool),
                [{} for _ in range(lanes)])
        buffer.observations[:] = 0
        buffer.next_observations[:] = 0
        buffer.full = True
        return buffer, step

    def sample(self, row, capacity, batch):
        buffer, _ = self.filled(row, capacity, 1)
        return lambda: buffer.sample(batch)

    def extend(self, row, capacity, count):
        if count > 64:
            raise Missing("it writes one step of its environments")
        buffer, step = self.filled(row, capacity, count)
        return lambda: buffer.add(*step)
