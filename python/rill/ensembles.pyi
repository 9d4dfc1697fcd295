# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rill.data import _BatchLike
from rill.policies import _Output
from rill.replay_buffers import ReplayBuffer
from rill.samplers import Sampler
from rill.storages import Storage
from rill.transforms import _TransformLike
from rill.writers import Writer

class StorageEnsemble:
    parts: tuple[Storage, ...]
    def __init__(self, *storages: Storage) -> None: ...

class SamplerEnsemble:
    parts: tuple[Sampler, ...]
    dealt: dict[str, Any]
    def __init__(
        self,
        *samplers: Sampler,
        p: Sequence[float] | None = None,
        sample_from_all: bool = False,
        num_buffer_sampled: int | None = None,
    ) -> None: ...

class WriterEnsemble:
    parts: tuple[Writer, ...]
    def __init__(self, *writers: Writer) -> None: ...

class ReplayBufferEnsemble:
    batch_size: int | None
    def __init__(
        self,
        *buffers: ReplayBuffer,
        storages: StorageEnsemble | None = None,
        samplers: SamplerEnsemble | None = None,
        writers: WriterEnsemble | None = None,
        transform: _TransformLike | Sequence[_TransformLike] | None = None,
        batch_size: int | None = None,
        p: Sequence[float] | None = None,
        sample_from_all: bool = False,
        num_buffer_sampled: int | None = None,
        seed: int | None = None,
        output: _Output = "numpy",
        rate_limit_timeout: float = ...,
    ) -> None: ...
    def sample(self, batch_size: int | None = None, return_info: bool = False) -> Any: ...
    def update_priority(self, batch: Any, priority: ArrayLike) -> None: ...
    def set_p(self, p: Sequence[float]) -> None: ...
    def dumps(self, path: str | PathLike[str]) -> None: ...
    def loads(self, path: str | PathLike[str]) -> None: ...
    save = dumps
    dump = dumps
    load = loads
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: int) -> ReplayBuffer: ...
    def __iter__(self) -> Iterator[Any]: ...

class OfflineToOnlineReplayBuffer(ReplayBufferEnsemble):
    offline: ReplayBuffer
    online: ReplayBuffer
    def __init__(
        self,
        offline: ReplayBuffer,
        online: ReplayBuffer,
        *,
        offline_fraction: float | Callable[[int], float] = 0.5,
        min_online_rows: int = 1,
        **options: Any,
    ) -> None: ...
    def sample(self, batch_size: int | None = None, return_info: bool = False) -> Any: ...
    def extend(self, data: _BatchLike) -> NDArray[np.int64]: ...
    def add(self, data: _BatchLike) -> int: ...
