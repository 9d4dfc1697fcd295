# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, Self

from rill.envs import Env, _EnvLike
from rill.policies import _Output, _Policy
from rill.replay_buffers import ReplayBuffer

class SyncDataCollector:
    policy: _Policy | None
    total_frames: int
    def __init__(
        self,
        create_env_fn: _EnvLike,
        policy: _Policy | None = None,
        *,
        frames_per_batch: int,
        total_frames: int | None = -1,
        init_random_frames: int | None = None,
        max_frames_per_traj: int | None = None,
        reset_at_each_iter: bool = False,
        set_truncated: bool = False,
        split_trajs: bool = False,
        replay_buffer: ReplayBuffer | None = None,
        seed: int | None = None,
        output: _Output = "numpy",
    ) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def next(self) -> Any: ...
    def __len__(self) -> int: ...
    @property
    def replay_buffer(self) -> ReplayBuffer | None: ...
    @property
    def frames(self) -> int: ...
    @property
    def frames_per_batch(self) -> int: ...
    @property
    def env(self) -> Env: ...
    def update_policy_weights_(self, *args: object, **kwargs: object) -> None: ...
    def dumps(self, path: str | PathLike[str]) -> None: ...
    def loads(self, path: str | PathLike[str]) -> None: ...
    def state_dict(self) -> dict[str, bytes]: ...
    def load_state_dict(self, state_dict: dict[str, bytes]) -> None: ...
    def shutdown(self) -> None: ...
    close = shutdown
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

class _WorkersCollector(SyncDataCollector):
    @property
    def num_workers(self) -> int: ...

class MultiSyncDataCollector(_WorkersCollector):
    def __init__(
        self,
        create_env_fn: _EnvLike,
        policy: _Policy | None = None,
        *,
        frames_per_batch: int | Sequence[int],
        num_workers: int | None = None,
        policy_factory: Callable[[], _Policy] | None = None,
        total_frames: int | None = -1,
        init_random_frames: int | None = None,
        max_frames_per_traj: int | None = None,
        reset_at_each_iter: bool = False,
        set_truncated: bool = False,
        split_trajs: bool = False,
        cat_results: Literal[0, -1, "stack"] = 0,
        preemptive_threshold: float | None = None,
        replay_buffer: ReplayBuffer | None = None,
        seed: int | None = None,
        output: _Output = "numpy",
    ) -> None: ...

class MultiaSyncDataCollector(_WorkersCollector):
    def __init__(
        self,
        create_env_fn: _EnvLike,
        policy: _Policy | None = None,
        *,
        frames_per_batch: int | Sequence[int],
        num_workers: int | None = None,
        policy_factory: Callable[[], _Policy] | None = None,
        total_frames: int | None = -1,
        init_random_frames: int | None = None,
        max_frames_per_traj: int | None = None,
        reset_at_each_iter: bool = False,
        set_truncated: bool = False,
        split_trajs: bool = False,
        replay_buffer: ReplayBuffer | None = None,
        seed: int | None = None,
        output: _Output = "numpy",
    ) -> None: ...

Collector = SyncDataCollector
MultiSyncCollector = MultiSyncDataCollector
MultiAsyncCollector = MultiaSyncDataCollector
