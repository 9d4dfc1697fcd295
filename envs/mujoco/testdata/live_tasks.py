# SPDX-License-Identifier: Apache-2.0
"""Gymnasium's MuJoCo tasks as "live/Hopper-v5", ..., which show their state.

The observation is a Dict: `task`, what the task observes; `state`
(mjSTATE_INTEGRATION); `position`, what the velocity of the reward is of.
"""
import gymnasium
import mujoco
import numpy as np
import record

STATE = mujoco.mjtState.mjSTATE_INTEGRATION


class ShowState(gymnasium.ObservationWrapper):
    def __init__(self, name):
        env = gymnasium.make(name)
        super().__init__(env)
        self.task_name = name
        size = mujoco.mj_stateSize(env.unwrapped.model, STATE)
        self.observation_space = gymnasium.spaces.Dict({
            "task": env.observation_space,
            "state": gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64),
            "position": gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64),
        })

    def observation(self, observation):
        task = self.env.unwrapped
        state = np.zeros(self.observation_space["state"].shape)
        mujoco.mj_getState(task.model, task.data, state, STATE)
        position = record.position(self.task_name, task)
        return {"task": observation, "state": state, "position": np.array([position])}


for name in record.OTHERS:
    gymnasium.register("live/" + name, lambda name=name: ShowState(name))
