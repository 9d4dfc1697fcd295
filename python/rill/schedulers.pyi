# SPDX-License-Identifier: Apache-2.0
from typing import Any, Literal

class _Scheduler:
    def step(self) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...

class LinearScheduler(_Scheduler):
    def __init__(self, obj: Any, param_name: str, final_value: float, num_steps: int) -> None: ...

class StepScheduler(_Scheduler):
    def __init__(
        self,
        obj: Any,
        param_name: str,
        gamma: float = 0.9,
        n_steps: int = 1,
        mode: Literal["multiplicative", "additive"] = "multiplicative",
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None: ...
