# SPDX-License-Identifier: Apache-2.0
from os import PathLike
from typing import Any

from rill._rill import Storage as _Handle

class Storage:
    def __init__(self, handle: _Handle) -> None: ...
    @property
    def max_size(self) -> int: ...
    def __len__(self) -> int: ...

class LazyTensorStorage(Storage):
    def __init__(self, max_size: int, device: Any = "cpu", ndim: int = 1, *, lanes: int = 1) -> None: ...

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
    ) -> None: ...
