# SPDX-License-Identifier: Apache-2.0
from typing import Self

class RateLimiter:
    def __init__(
        self,
        samples_per_insert: float = 1.0,
        *,
        min_size_to_sample: int = 1,
        min_diff: float = ...,
        max_diff: float = ...,
    ) -> None: ...
    @classmethod
    def min_size(cls, rows: int) -> Self: ...
    @property
    def inserts(self) -> int: ...
    @property
    def samples(self) -> int: ...
    def close(self) -> None: ...
