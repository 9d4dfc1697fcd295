# SPDX-License-Identifier: Apache-2.0
from typing import Any

from stable_baselines3.common import buffers

class ReplayBuffer(buffers.ReplayBuffer):
    def __init__(
        self,
        buffer_size: int,
        observation_space: Any,
        action_space: Any,
        device: Any = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
    ) -> None: ...
    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: list[dict[str, Any]]) -> None: ...
    def reset(self) -> None: ...
