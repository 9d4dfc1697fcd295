# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rill.data import _BatchLike
from rill.keys import _Key
from rill.policies import _Output
from rill.rate_limiter import RateLimiter
from rill.samplers import Sampler
from rill.storages import Storage
from rill.transforms import _TransformLike
from rill.units import SampleUnit
from rill.writers import Writer

class StoredTrajectory:
    rows: Any
    slots: NDArray[np.int64]
    lane: int
    id: int | None
    is_closed: bool
    is_cut: bool
    def __init__(
        self, rows: Any, slots: NDArray[np.int64], lane: int, id: int | None, is_closed: bool, is_cut: bool
    ) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: _Key) -> Any: ...

class ReplayBuffer:
    batch_size: int | None
    def __init__(
        self,
        *,
        storage: Storage | None = None,
        sampler: Sampler | None = None,
        writer: Writer | None = None,
        sample_unit: SampleUnit | None = None,
        transform: _TransformLike | Sequence[_TransformLike] | None = None,
        batch_size: int | None = None,
        prefetch: int | None = 0,
        seed: int | None = None,
        output: _Output = "numpy",
        prefetch_threads: int = 1,
        rate_limiter: RateLimiter | None = None,
        rate_limit_timeout: float = ...,
        consume_after_n_samples: int | None = None,
        _directory: str | None = None,
    ) -> None: ...
    def extend(self, data: _BatchLike) -> NDArray[np.int64]: ...
    def add(self, data: _BatchLike) -> int: ...
    # A dict of arrays, or what output= says; with return_info a pair.
    def sample(self, batch_size: int | None = None, return_info: bool = False, out: _BatchLike | None = None) -> Any: ...
    def __getitem__(self, index: slice | range | ArrayLike) -> dict[str, Any]: ...
    def __getitems__(self, index: ArrayLike) -> dict[str, Any]: ...
    def query(
        self,
        predicate: Callable[[StoredTrajectory], Any] | None = None,
        *,
        keys: Sequence[_Key] | None = None,
        min_rows: int = 1,
        max_rows: int | None = None,
        only_whole: bool = False,
        limit: int | None = None,
    ) -> list[StoredTrajectory]: ...
    def iter_trajectories(self, **options: Any) -> Iterator[StoredTrajectory]: ...
    def update_priority(self, index: _BatchLike | ArrayLike, priority: ArrayLike) -> None: ...
    def append_transform(self, transform: _TransformLike) -> None: ...
    def insert_transform(self, index: int, transform: _TransformLike) -> None: ...
    def empty(self) -> None: ...
    def dumps(self, path: str | PathLike[str]) -> None: ...
    def loads(self, path: str | PathLike[str]) -> None: ...
    save = dumps
    dump = dumps
    load = loads
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    @property
    def storage(self) -> Storage: ...
    @property
    def sampler(self) -> Sampler: ...
    @property
    def writer(self) -> Writer: ...
    @property
    def alpha(self) -> float: ...
    @alpha.setter
    def alpha(self, value: float) -> None: ...
    @property
    def beta(self) -> float: ...
    @beta.setter
    def beta(self, value: float) -> None: ...

class PrioritizedReplayBuffer(ReplayBuffer):
    def __init__(
        self,
        *,
        alpha: float,
        beta: float,
        eps: float = 1e-8,
        reduction: str = "max",
        storage: Storage | None = None,
        **options: Any,
    ) -> None: ...

class TensorDictReplayBuffer(ReplayBuffer):
    priority_key: _Key
    def __init__(
        self, *, priority_key: _Key = "td_error", output: _Output = "tensordict", storage: Storage | None = None, **options: Any
    ) -> None: ...
    def update_tensordict_priority(self, data: Any) -> None: ...

class TensorDictPrioritizedReplayBuffer(TensorDictReplayBuffer):
    def __init__(
        self, *, alpha: float, beta: float, eps: float = 1e-8, reduction: str = "max", **options: Any
    ) -> None: ...
