# SPDX-License-Identifier: Apache-2.0
"""What a drawn row becomes: sample_unit= of a replay buffer, by TorchRL's names.

n-step returns and frame stacks go with single rows, slices and sequences, and
are made when rows are drawn: n may change under a stored buffer, and frames are
stored once. Trajectories end where "next/done" is true, or where
"collector/traj_ids" or "episode" changes.
"""

import weakref

from rill import _rill
from rill.keys import key_text, key_texts


class NStep:
    """The discounted reward of n steps, and next of the last of them.

    Adds "steps_to_next_obs" and "gamma": the target is
    reward + gamma * value(next) where next is not terminated.
    """

    def __init__(self, n_steps, gamma=0.99, *, reward_keys=(("next", "reward"),)):
        self.options = {
            "num_steps": n_steps,
            "gamma": gamma,
            "reward_keys": key_texts(reward_keys),
        }


class FrameStack:
    """The last N frames of a trajectory, oldest first, of frames that are stored once.

    dim: of the stack, from the back; new_dim: it is a new dimension.
    padding: before the first frame "same" repeats it, "constant" is padding_value.
    """

    def __init__(self, N, in_keys, dim=-1, *, new_dim=False, padding="same", padding_value=0.0):
        self.options = {
            "num_frames": N,
            "keys": key_texts(in_keys),
            "dim": dim,
            "new_dim": new_dim,
            "padding": padding,
            "value": float(padding_value),
        }


class SampleUnit:
    """The rows of an item of a batch, and what is computed of them."""

    _make = None

    def __init__(self, **options):
        for name in ("n_step", "frames"):
            if options.get(name) is not None:
                options[name] = options[name].options
        self._options = {name: value for name, value in options.items() if value is not None}

    def make(self, batch_size=0):
        """A new rill._rill.SampleUnit of these options."""
        return type(self)._make(self._given(batch_size))

    def _given(self, batch_size):
        del batch_size
        return self._options


class Transition(SampleUnit):
    """Single rows."""

    _make = staticmethod(_rill.transitions)

    def __init__(self, *, n_step=None, frames=None):
        super().__init__(n_step=n_step, frames=frames)


class Slice(SampleUnit):
    """Slices of consecutive rows of one trajectory; a batch is flat, and counts rows.

    slice_len or num_slices, a batch's. strict_length: shorter trajectories are
    never drawn. pad_output: shorter slices repeat their last row, and
    "collector/mask" tells. span: a slice may begin before its trajectory and end
    behind it, by so many rows (left, right); True: by all but one.
    starts: "trajectories" draws a trajectory and then a start in it, "rows" any
    start, "episode_starts" first rows, "recent" late ones more often.
    The last row of a slice is truncated and done.
    """

    _make = staticmethod(_rill.slices)

    def __init__(
        self,
        slice_len=None,
        num_slices=None,
        *,
        strict_length=True,
        pad_output=False,
        span=False,
        starts="trajectories",
        n_step=None,
        frames=None,
        has_marks=True,
    ):
        left, right = span if isinstance(span, (tuple, list)) else (span, span)
        super().__init__(
            length=slice_len,
            num_slices=num_slices,
            strict_length=strict_length,
            pad_output=pad_output,
            span_left=self._span(left, slice_len),
            span_right=self._span(right, slice_len),
            starts=starts,
            n_step=n_step,
            frames=frames,
            has_marks=has_marks,
        )

    @staticmethod
    def _span(span, slice_len):
        if isinstance(span, bool):
            return (slice_len or 1) - 1 if span else 0
        return span

    def _given(self, batch_size):
        if "num_slices" in self._options:
            return dict(self._options, batch_size=batch_size)
        return self._options


class Sequence(SampleUnit):
    """Sequences with burn-in, for recurrent networks; a batch is flat, and counts rows.

    A sequence is burn_in + length + bootstrap rows. episode_boundary: "pad"
    repeats the last row, "stop" begins earlier, "include_reset" goes on in the
    next trajectory, "shorten" ends, "strict" draws only whole ones. period:
    sequences begin at every period-th row. Each row says where it is:
    "sequence_id", "step_in_sequence", "learning_mask", "validity_mask".
    """

    _make = staticmethod(_rill.sequences)

    def __init__(
        self,
        length,
        *,
        episode_boundary="pad",
        burn_in=0,
        bootstrap=0,
        dilation=1,
        period=1,
        needs_burn_in=False,
        n_step=None,
        frames=None,
        has_marks=True,
    ):
        super().__init__(
            length=length,
            episode_boundary=episode_boundary,
            burn_in=burn_in,
            bootstrap=bootstrap,
            dilation=dilation,
            period=period,
            needs_burn_in=needs_burn_in,
            n_step=n_step,
            frames=frames,
            has_marks=has_marks,
        )


class Trajectory(SampleUnit):
    """Whole trajectories; a batch counts trajectories.

    Longer ones than max_rows are cut; only_complete: from reset to end.
    """

    _make = staticmethod(_rill.trajectories)

    def __init__(self, *, min_rows=1, max_rows=None, only_complete=False):
        super().__init__(min_rows=min_rows, max_rows=max_rows, only_complete=only_complete)


class Hindsight(SampleUnit):
    """Single rows, some of which get a goal that was reached: HERReplayBuffer's.

    reward_fn(achieved, desired): arrays [M, ...] of goals to the rewards [M, ...].
    terminated_fn: the same for the flag. her_ratio: how many rows get another
    goal. strategy: "future", "final", "episode" or "random".
    """

    _make = staticmethod(_rill.hindsight)

    def __init__(
        self,
        reward_fn,
        her_ratio=0.8,
        strategy="future",
        *,
        terminated_fn=None,
        achieved_goal_key=("next", "achieved_goal"),
        desired_goal_key="desired_goal",
        reward_key=("next", "reward"),
    ):
        super().__init__(
            reward_fn=reward_fn,
            terminated_fn=terminated_fn,
            her_ratio=float(her_ratio),
            strategy=strategy,
            achieved_goal_key=key_text(achieved_goal_key),
            desired_goal_key=key_text(desired_goal_key),
            reward_key=key_text(reward_key),
        )

    def _given(self, batch_size):
        # As of FunctionTransform: C++ holds no function itself.
        weak = weakref.proxy(self)
        return {
            name: (lambda *goals, name=name: weak._options[name](*goals)) if name.endswith("_fn") else value
            for name, value in self._options.items()
        }
