# SPDX-License-Identifier: Apache-2.0
"""Returns and advantages of arrays: torchrl.objectives.value.functional.

Shapes: [*batch, time, 1], or [*batch, time] where time is not 1; numbers are
float32 or float64, flags bool. A line may hold several trajectories, one behind
the other. Given torch's tensors these give torch's tensors, else NumPy's arrays.
Values that a flag cuts off may be NaN.
"""

from rill import _rill


def _like(reward, made):
    """`made` as torch's tensors where the reward is one."""
    if type(reward).__module__.partition(".")[0] != "torch":
        return made
    import torch

    if isinstance(made, tuple):
        return tuple(torch.from_numpy(array) for array in made)
    return torch.from_numpy(made)


def _ends(done, terminated):
    return done if terminated is None else terminated


def generalized_advantage_estimate(
    gamma, lmbda, state_value, next_state_value, reward, done, terminated=None
):
    """GAE: (advantage, value_target)."""
    made = _rill.gae(
        gamma, lmbda, state_value, next_state_value, reward, done, _ends(done, terminated)
    )
    return _like(reward, made)


def vtrace_advantage_estimate(
    gamma,
    log_pi,
    log_mu,
    state_value,
    next_state_value,
    reward,
    done,
    terminated=None,
    rho_thresh=1.0,
    c_thresh=1.0,
):
    """V-trace: (advantage, value_target)."""
    made = _rill.v_trace(
        gamma,
        rho_thresh,
        c_thresh,
        log_pi,
        log_mu,
        state_value,
        next_state_value,
        reward,
        done,
        _ends(done, terminated),
    )
    return _like(reward, made)


def td_lambda_return_estimate(gamma, lmbda, next_state_value, reward, done, terminated=None):
    """TD(lambda): r + gamma ((1 - lmbda) v' + lmbda g') where g' is the next step's."""
    made = _rill.lambda_return(
        gamma, lmbda, next_state_value, reward, done, _ends(done, terminated)
    )
    return _like(reward, made)


def td0_return_estimate(gamma, next_state_value, reward, terminated):
    """TD(0): r + gamma v'."""
    made = _rill.lambda_return(gamma, 0.0, next_state_value, reward, terminated, terminated)
    return _like(reward, made)


def td1_return_estimate(gamma, next_state_value, reward, done, terminated=None):
    """TD(1): all rewards to the end, and the value there."""
    return td_lambda_return_estimate(gamma, 1.0, next_state_value, reward, done, terminated)


def n_step_return_estimate(n_steps, gamma, next_state_value, reward, done, terminated=None):
    """The rewards of n_steps steps, less before an end, and the value behind them."""
    made = _rill.n_step_return(
        n_steps, gamma, next_state_value, reward, done, _ends(done, terminated)
    )
    return _like(reward, made)


def reward2go(reward, done, gamma):
    """The discounted rewards to the end of the trajectory, or of the line."""
    return _like(reward, _rill.reward_to_go(gamma, reward, done))
