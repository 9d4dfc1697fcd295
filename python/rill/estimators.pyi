# SPDX-License-Identifier: Apache-2.0
from typing import Any

# Arrays of NumPy's, or torch's tensors: what comes back is of the same kind.
def generalized_advantage_estimate(
    gamma: float,
    lmbda: float,
    state_value: Any,
    next_state_value: Any,
    reward: Any,
    done: Any,
    terminated: Any = None,
) -> tuple[Any, Any]: ...
def vtrace_advantage_estimate(
    gamma: float,
    log_pi: Any,
    log_mu: Any,
    state_value: Any,
    next_state_value: Any,
    reward: Any,
    done: Any,
    terminated: Any = None,
    rho_thresh: float = 1.0,
    c_thresh: float = 1.0,
) -> tuple[Any, Any]: ...
def td_lambda_return_estimate(
    gamma: float, lmbda: float, next_state_value: Any, reward: Any, done: Any, terminated: Any = None
) -> Any: ...
def td0_return_estimate(gamma: float, next_state_value: Any, reward: Any, terminated: Any) -> Any: ...
def td1_return_estimate(
    gamma: float, next_state_value: Any, reward: Any, done: Any, terminated: Any = None
) -> Any: ...
def n_step_return_estimate(
    n_steps: int, gamma: float, next_state_value: Any, reward: Any, done: Any, terminated: Any = None
) -> Any: ...
def reward2go(reward: Any, done: Any, gamma: float) -> Any: ...
