# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from os import PathLike
from typing import Any

from rill._rill import Storage as _Handle
from rill.keys import _Key, _Keys

class Storage:
    def __init__(self, make: Callable[[dict[str, Any]], _Handle], options: dict[str, Any]) -> None: ...
    @property
    def priority_key(self) -> str: ...
    @property
    def max_size(self) -> int: ...
    def __len__(self) -> int: ...

class LazyTensorStorage(Storage):
    def __init__(
        self, max_size: int, device: Any = "cpu", ndim: int = 1, *, lanes: int = 1, priority_key: _Key | None = "td_error"
    ) -> None: ...

class ListStorage(Storage):
    def __init__(
        self,
        max_size: int,
        device: Any = "cpu",
        *,
        ragged_keys: _Keys = (),
        mask_key: str = "mask",
        lanes: int = 1,
        priority_key: _Key | None = "td_error",
    ) -> None: ...

class CompressedListStorage(Storage):
    def __init__(
        self,
        max_size: int,
        compression_level: int = 3,
        device: Any = "cpu",
        *,
        lanes: int = 1,
        priority_key: _Key | None = "td_error",
    ) -> None: ...

class LazyMemmapStorage(Storage):
    scratch_dir: str
    def __init__(
        self,
        max_size: int,
        scratch_dir: str | PathLike[str] | None = None,
        device: Any = "cpu",
        ndim: int = 1,
        existsok: bool = False,
        *,
        lanes: int = 1,
        priority_key: _Key | None = "td_error",
    ) -> None: ...

class TieredStorage(LazyMemmapStorage):
    def __init__(
        self,
        max_size: int,
        fast_size: int,
        scratch_dir: str | PathLike[str] | None = None,
        device: Any = "cpu",
        existsok: bool = False,
        *,
        fill: bool = False,
        lanes: int = 1,
        priority_key: _Key | None = "td_error",
    ) -> None: ...
