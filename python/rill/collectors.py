# SPDX-License-Identifier: Apache-2.0
"""Collectors: environments and a policy into batches, by TorchRL's names."""

import atexit
import math
import os
import weakref

from rill import _rill
from rill.endings import wait_for_calls
from rill.envs import as_env
from rill.errors import InvalidArgumentError
from rill.policies import converter, make_act
from rill.replay_buffers import ReplayBuffer


class SyncDataCollector:
    """Steps an environment with a policy, and iterates over batches [lanes, time].

    create_env_fn: an Env, an object with reset and step, a name, a function that makes one, or a list of them.
    policy: a function that takes a dict of arrays [lanes, ...] and gives the action, or a dict with "action".
        Without one actions are random. Its attribute output_spec names further leaves that it gives.
    frames_per_batch: steps of all lanes together, rounded up to a multiple of the lanes.
    total_frames: of all batches; -1: without end.
    init_random_frames: so many steps first have random actions.
    max_frames_per_traj: the step of this number of an episode is truncated.
    reset_at_each_iter: each batch begins with a reset of all lanes.
    set_truncated: the last step of each batch is truncated.
    split_trajs: batches are [trajectories, longest], with zeros behind the ends and "collector/mask".
    replay_buffer: batches are written there, and iteration gives None.
    seed: the same one gives the same batches; without it, others each time.
    output: "numpy" gives dicts of arrays, to the policy too; "torch" dicts of tensors, "tensordict" TensorDicts.

    Not thread-safe: a call beside another one raises FailedPreconditionError, but for shutdown().
    """

    def __init__(self, create_env_fn, policy=None, *, frames_per_batch, total_frames=-1, init_random_frames=None,
                 max_frames_per_traj=None, reset_at_each_iter=False, set_truncated=False, split_trajs=False,
                 replay_buffer=None, seed=None, output="numpy"):
        if replay_buffer is not None and not isinstance(replay_buffer, ReplayBuffer):
            raise InvalidArgumentError("SyncDataCollector: replay_buffer: got a %s, want a rill.ReplayBuffer" %
                                       type(replay_buffer).__name__)
        if replay_buffer is not None and split_trajs:
            raise InvalidArgumentError("SyncDataCollector: split_trajs: got True beside a replay_buffer, want one of "
                                       "them: a buffer keeps trajectories apart itself")
        self._convert = converter(output, "SyncDataCollector")
        self._env = as_env(create_env_fn)
        self._splits = bool(split_trajs)
        self._replay_buffer = replay_buffer
        self._is_open = True
        self.policy = policy
        self.total_frames = -1 if total_frames is None else total_frames
        act, outputs = None, _rill.SpecDict([])
        if policy is not None:
            keys = [key for key, _ in self._env._handle.action_spec.leaves()]
            self._act, outputs = make_act(policy, keys, self._convert)
            # As of FunctionTransform: C++ holds no function itself.
            weak = weakref.proxy(self)
            act = lambda root: weak._act(root)  # noqa: E731
        self._collector = _rill.Collector(self._env._handle, act, outputs, {
            "frames_per_batch": frames_per_batch,
            "total_frames": self.total_frames,
            "init_random_frames": init_random_frames,
            "max_frames_per_traj": max_frames_per_traj,
            "reset_at_each_batch": bool(reset_at_each_iter),
            "set_truncated": bool(set_truncated),
            "seed": int.from_bytes(os.urandom(8), "little") if seed is None else seed,
        })
        _open.add(self)

    def __iter__(self):
        while self.total_frames < 0 or self.frames < self.total_frames or self._collector.has_pending:
            yield self.next()

    def next(self):
        """The next batch; None where it went to the replay buffer."""
        try:
            if self._replay_buffer is not None:
                self._replay_buffer._buffer.collect(self._collector)
                return None
            batch = self._collector.next(self._splits)
        finally:
            if self._collector.is_closed:
                self._close_env()
        return batch if self._convert is None else self._convert(batch, 2)

    def __len__(self):
        """The number of batches. TypeError where there is no end."""
        if self.total_frames < 0:
            raise TypeError("SyncDataCollector: total_frames: got -1, want a number for len()")
        return math.ceil(self.total_frames / self.frames_per_batch)

    @property
    def replay_buffer(self):
        """Where batches go; None: to the caller."""
        return self._replay_buffer

    @property
    def frames(self):
        """Steps so far, of all lanes together. Those that the next call brings after an interrupt count already."""
        return self._collector.frames

    @property
    def frames_per_batch(self):
        """As it was rounded up."""
        return self._collector.frames_per_batch

    @property
    def env(self):
        return self._env

    def update_policy_weights_(self, *args, **kwargs):
        """Nothing to do: the policy is the caller's own object. For programs of TorchRL's."""

    def shutdown(self):
        """Ends a call in another thread. The environment is closed, behind the step of that call."""
        self._collector.close()
        self._close_env()

    def _close_env(self):
        """Once, when nobody steps it."""
        if self._is_open and self._collector.calls_in_flight == 0:
            self._is_open = False
            self._env.close()

    close = shutdown

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.shutdown()

    def __reduce__(self):
        raise TypeError("SyncDataCollector: does not cross to another process; make it there, and send its rows "
                        "by a rill.Channel")


# TorchRL's newer name of it.
Collector = SyncDataCollector

_open = weakref.WeakSet()


@atexit.register
def _close_all():
    """Ends calls of daemon threads, which would not survive the interpreter's end."""
    collectors = [collector._collector for collector in _open]
    for collector in collectors:
        collector.close()
    wait_for_calls(collectors)
