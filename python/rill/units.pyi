# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

from rill import _rill
from rill.keys import _Key, _Keys

_Span = bool | int | tuple[bool | int, bool | int]
_Goals = Callable[[Any, Any], Any]

class NStep:
    options: dict[str, Any]
    def __init__(self, n_steps: int, gamma: float = 0.99, *, reward_keys: _Keys = (("next", "reward"),)) -> None: ...

class FrameStack:
    options: dict[str, Any]
    def __init__(
        self,
        N: int,
        in_keys: _Keys,
        dim: int = -1,
        *,
        new_dim: bool = False,
        padding: str = "same",
        padding_value: float = 0.0,
    ) -> None: ...

class SampleUnit:
    def __init__(self, **options: Any) -> None: ...
    def make(self, batch_size: int = 0) -> _rill.SampleUnit: ...

class Transition(SampleUnit):
    def __init__(self, *, n_step: NStep | None = None, frames: FrameStack | None = None) -> None: ...

class Slice(SampleUnit):
    def __init__(
        self,
        slice_len: int | None = None,
        num_slices: int | None = None,
        *,
        strict_length: bool = True,
        pad_output: bool = False,
        span: _Span = False,
        starts: str = "trajectories",
        n_step: NStep | None = None,
        frames: FrameStack | None = None,
        has_marks: bool = True,
    ) -> None: ...

class Sequence(SampleUnit):
    def __init__(
        self,
        length: int,
        *,
        episode_boundary: str = "pad",
        burn_in: int = 0,
        bootstrap: int = 0,
        dilation: int = 1,
        period: int = 1,
        needs_burn_in: bool = False,
        n_step: NStep | None = None,
        frames: FrameStack | None = None,
        has_marks: bool = True,
    ) -> None: ...

class Trajectory(SampleUnit):
    def __init__(self, *, min_rows: int = 1, max_rows: int | None = None, only_complete: bool = False) -> None: ...

class Hindsight(SampleUnit):
    def __init__(
        self,
        reward_fn: _Goals,
        her_ratio: float = 0.8,
        strategy: str = "future",
        *,
        terminated_fn: _Goals | None = None,
        achieved_goal_key: _Key = ("next", "achieved_goal"),
        desired_goal_key: _Key = "desired_goal",
        reward_key: _Key = ("next", "reward"),
    ) -> None: ...
