# SPDX-License-Identifier: Apache-2.0
"""Steps an environment of the real Gymnasium, to compare with GymnasiumEnv.

argv: id, modules to import, lanes, steps, file of seeds, file of actions.
Seeds are uint64 [lanes, episodes], actions [steps, lanes, ...].

Writes the observation of each lane after its reset. Then each step writes, lane
by lane, the observation, the reward (float64), terminated and truncated (uint8),
and then the observations after resets of the lanes that are done.
"""
import importlib
import os
import struct
import sys

import gymnasium
import numpy as np

OUT = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # What an environment prints is no part of it.


def main(name, modules, lanes, steps, seeds, actions):
    for module in filter(None, modules.split(",")):
        importlib.import_module(module)
    lanes, steps = int(lanes), int(steps)
    envs = [gymnasium.make(name) for _ in range(lanes)]
    seeds = [iter(row) for row in np.fromfile(seeds, np.uint64).reshape(lanes, -1)]
    space = envs[0].action_space
    is_choice = isinstance(space, gymnasium.spaces.Discrete)
    actions = np.fromfile(actions, np.int64 if is_choice else space.dtype).reshape((steps, lanes) + space.shape)
    dtype = envs[0].observation_space.dtype

    def write_reset(lane):
        observation, _ = envs[lane].reset(seed=int(next(seeds[lane])))
        OUT.write(np.asarray(observation, dtype).tobytes())

    for lane in range(lanes):
        write_reset(lane)
    for row in actions:
        ended = []
        for lane, env in enumerate(envs):
            action = row[lane] + space.start if is_choice else row[lane]
            observation, reward, terminated, truncated, _ = env.step(action)
            OUT.write(np.asarray(observation, dtype).tobytes() + struct.pack("<d??", reward, terminated, truncated))
            if terminated or truncated:
                ended.append(lane)
        for lane in ended:
            write_reset(lane)


main(*sys.argv[1:])
OUT.flush()
