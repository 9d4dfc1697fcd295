# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Sequence
from typing import Any

from rill import _rill
from rill.units import SampleUnit, Slice

class Sampler:
    def make(self, unit: SampleUnit | None = None, batch_size: int = 0) -> _rill.Sampler: ...

class RandomSampler(Sampler): ...

class RecentSampler(Sampler): ...

class SamplerWithoutReplacement(Sampler):
    drop_last: bool
    shuffle: bool
    def __init__(self, drop_last: bool = False, shuffle: bool = True) -> None: ...

class PrioritizedSampler(Sampler):
    alpha: float
    beta: float
    eps: float
    reduction: str
    max_priority_within_buffer: bool
    def __init__(
        self,
        max_capacity: int | None = None,
        alpha: float = 0.6,
        beta: float = 0.4,
        eps: float = 1e-8,
        reduction: str = "max",
        *,
        max_priority_within_buffer: bool = False,
    ) -> None: ...

class ConsumingSampler(Sampler):
    max_sample_count: int
    def __init__(self, max_sample_count: int = 1) -> None: ...

class StalenessAwareSampler(Sampler):
    max_staleness: int
    staleness_weight_fn: Callable[[Any], Any] | None
    def __init__(
        self,
        max_staleness: int = -1,
        staleness_weight_fn: Callable[[Any], Any] | None = None,
        version_key: str = "policy_version",
    ) -> None: ...

class MixtureSampler(Sampler):
    samplers: tuple[Sampler, ...]
    p: list[float]
    def __init__(self, *samplers: Sampler, p: Sequence[float] | None = None) -> None: ...

class _OverSlices:
    def make(self, unit: None = None, batch_size: int = 0) -> _rill.Sampler: ...

class SliceSampler(_OverSlices, RandomSampler):  # type: ignore[misc]
    unit: Slice
    def __init__(self, *, num_slices: int | None = None, slice_len: int | None = None, **options: Any) -> None: ...

class SliceSamplerWithoutReplacement(_OverSlices, SamplerWithoutReplacement):  # type: ignore[misc]
    unit: Slice
    def __init__(
        self,
        *,
        num_slices: int | None = None,
        slice_len: int | None = None,
        drop_last: bool = False,
        shuffle: bool = True,
        **options: Any,
    ) -> None: ...

class PrioritizedSliceSampler(_OverSlices, PrioritizedSampler):  # type: ignore[misc]
    unit: Slice
    def __init__(
        self,
        max_capacity: int | None = None,
        alpha: float = 0.6,
        beta: float = 0.4,
        eps: float = 1e-8,
        reduction: str = "max",
        *,
        num_slices: int | None = None,
        slice_len: int | None = None,
        max_priority_within_buffer: bool = False,
        **options: Any,
    ) -> None: ...
