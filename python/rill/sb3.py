# SPDX-License-Identifier: Apache-2.0
"""Replay buffers for Stable-Baselines3: replay_buffer_class=rill.sb3.ReplayBuffer.

Rows lie in a Rill buffer. Draws come from NumPy's global generator as in the
original, so a run with the same seed is the same, bit for bit.
"""

import os
import pathlib
import tempfile

import numpy as np
from gymnasium import spaces
from stable_baselines3.common import buffers, type_aliases

import rill
from rill import _rill
from rill.keys import level_text


class ReplayBuffer(buffers.ReplayBuffer):
    """Stable-Baselines3's ReplayBuffer, and its DictReplayBuffer, on Rill's.

    The arrays of the original (observations, dones, ...) are not there. A pickle,
    as of save_replay_buffer(), holds the rows.
    """

    def __init__(
        self,
        buffer_size,
        observation_space,
        action_space,
        device="auto",
        n_envs=1,
        optimize_memory_usage=False,
        handle_timeout_termination=True,
    ):
        buffers.BaseBuffer.__init__(
            self, buffer_size, observation_space, action_space, device, n_envs=n_envs
        )
        if optimize_memory_usage:
            raise rill.InvalidArgumentError(
                "rill.sb3.ReplayBuffer: got optimize_memory_usage=True, want False; "
                "next observations are stored as they are"
            )
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        self._action_dtype = self._maybe_cast_dtype(action_space.dtype)
        self._is_dict = isinstance(self.obs_shape, dict)
        self._rows = self._make_rows()
        self._places, self._bound = self._make_places()

    def _make_rows(self):
        return rill.ReplayBuffer(storage=rill.LazyTensorStorage(self.buffer_size * self.n_envs))

    def __getstate__(self):
        state = self.__dict__.copy()
        del state["_places"], state["_bound"]
        with tempfile.TemporaryDirectory() as folder:
            self._rows.dumps(os.path.join(folder, "rows"))
            state["_rows"] = {
                os.path.relpath(path, folder): path.read_bytes()
                for path in pathlib.Path(folder).rglob("*")
                if path.is_file()
            }
        return state

    def __setstate__(self, state):
        files = state.pop("_rows")
        self.__dict__.update(state)
        self._rows = self._make_rows()
        self._places, self._bound = self._make_places()
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self._rows.loads(os.path.join(folder, "rows"))

    def _make_places(self):
        """The arrays of a step, which add() fills, and what appends them."""
        spaces_of = self.observation_space.spaces if self._is_dict else {None: self.observation_space}
        shape_of = self.obs_shape if self._is_dict else {None: self.obs_shape}

        def observations():
            return {key: np.zeros((self.n_envs, *shape_of[key]), space.dtype) for key, space in spaces_of.items()}

        def rows(arrays):
            if not self._is_dict:
                return arrays[None]
            return {level_text(key): array for key, array in arrays.items()}

        def with_spaces(arrays):
            return [(key, array, isinstance(spaces_of[key], spaces.Discrete)) for key, array in arrays.items()]

        now, after = observations(), observations()
        action = np.zeros((self.n_envs, self.action_dim), self._action_dtype)
        reward = np.zeros((self.n_envs, 1), np.float32)
        end = np.zeros((self.n_envs, 1), np.float32)
        bound = _rill.bind_rows({
            "observation": rows(now),
            "action": action,
            "next": {"observation": rows(after), "reward": reward, "end": end},
        })
        return (with_spaces(now), action, with_spaces(after), reward[:, 0], end[:, 0]), bound

    def add(self, obs, next_obs, action, reward, done, infos):
        observations, actions, next_observations, rewards, ends = self._places
        _fill(observations, obs)
        actions[...] = action.reshape(actions.shape)
        _fill(next_observations, next_obs)
        rewards[...] = reward
        ends[...] = done
        if self.handle_timeout_termination:
            timeouts = [info.get("TimeLimit.truncated", False) for info in infos]
            if any(timeouts) or len(timeouts) != self.n_envs:
                ends *= np.logical_not(timeouts)
        self._rows._buffer.append(self._bound)
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full = True
            self.pos = 0

    def reset(self):
        super().reset()
        self._rows.empty()

    def _get_samples(self, batch_inds, env=None):
        if self.n_envs == 1:  # The original's draw of environments takes nothing from the generator then.
            batch = self._rows[batch_inds]
        else:
            env_indices = np.random.randint(0, self.n_envs, size=len(batch_inds))
            batch = self._rows[batch_inds * self.n_envs + env_indices]
        after = batch["next"]
        make = type_aliases.DictReplayBufferSamples if self._is_dict else type_aliases.ReplayBufferSamples
        return make(
            observations=self._tensors(self._normalize_obs(batch["observation"], env)),
            actions=self._tensors(batch["action"]),
            next_observations=self._tensors(self._normalize_obs(after["observation"], env)),
            dones=self._tensors(after["end"]),
            rewards=self._tensors(self._normalize_reward(after["reward"], env)),
        )

    def _tensors(self, values):
        if isinstance(values, dict):
            return {key: self.to_torch(value, copy=False) for key, value in values.items()}
        return self.to_torch(values, copy=False)


def _fill(places, values):
    """Copies a step's observations to their places, as the original does."""
    for key, place, is_discrete in places:
        value = values if key is None else values[key]
        place[...] = np.reshape(value, place.shape) if is_discrete else value
