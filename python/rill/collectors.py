# SPDX-License-Identifier: Apache-2.0
"""Collectors: environments and a policy into batches, by TorchRL's names."""

import math
import os
import tempfile
import threading
import weakref

from rill import _rill
from rill.endings import ended_at_exit
from rill.envs import _close_each, as_env
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
        self._take(output, split_trajs, replay_buffer, policy, total_frames)
        self._env = as_env(create_env_fn)
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

    def _take(self, output, split_trajs, replay_buffer, policy, total_frames):
        """What collectors with workers and those without have."""
        name = type(self).__name__
        if replay_buffer is not None and not isinstance(replay_buffer, ReplayBuffer):
            raise InvalidArgumentError("%s: replay_buffer: got a %s, want a rill.ReplayBuffer" %
                                       (name, type(replay_buffer).__name__))
        if replay_buffer is not None and split_trajs:
            raise InvalidArgumentError("%s: split_trajs: got True beside a replay_buffer, want one of them: a buffer "
                                       "keeps trajectories apart itself" % name)
        self._convert = converter(output, name)
        self._splits = bool(split_trajs)
        self._replay_buffer = replay_buffer
        self._is_open = True
        self.policy = policy
        self.total_frames = -1 if total_frames is None else total_frames

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
                self.shutdown()
        return batch if self._convert is None else self._convert(batch, self._rank)

    _rank = 2  # Dimensions of a batch.
    _differ = False  # Batches in their size.

    def __len__(self):
        """The number of batches. TypeError where there is no end, or where batches differ."""
        if self.total_frames < 0:
            raise TypeError("%s: total_frames: got -1, want a number for len()" % type(self).__name__)
        if self._differ:
            raise TypeError("%s: batches differ, want ones of one size for len()" % type(self).__name__)
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

    def dumps(self, path):
        """Saves to a file, which is replaced at once, what the next batches depend on, but for the policy.

        Environments that cannot save their state (Python objects, GymEnv) begin fresh episodes after loads().
        """
        self._collector.save(os.fspath(path))

    def loads(self, path):
        """Goes on from what dumps() of a collector like this one wrote."""
        self._collector.load(os.fspath(path))

    def state_dict(self):
        """What dumps() writes, as bytes in a dict."""
        with tempfile.TemporaryDirectory() as folder:
            self.dumps(folder + "/state")
            with open(folder + "/state", "rb") as file:
                return {"rill": file.read()}

    def load_state_dict(self, state_dict):
        """Goes on from a state_dict() of a collector like this one."""
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/state", "wb") as file:
                file.write(state_dict["rill"])
            self.loads(folder + "/state")

    def shutdown(self):
        """Ends a call in another thread. The environment is closed, behind the step of that call."""
        self._collector.close()
        if self._collector.is_ending:
            # This thread is a worker, which cannot wait for itself.
            threading.Thread(target=self.shutdown, daemon=True).start()
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
        raise TypeError("%s: does not cross to another process; make it there, and send its rows by a rill.Channel" %
                        type(self).__name__)


class _WorkersCollector(SyncDataCollector):
    """Workers, a thread for each environment, that step it with the policy."""

    def _start(self, create_env_fn, policy, policy_factory, num_workers, frames_per_batch, seed, options, is_sync):
        name = type(self).__name__
        if isinstance(create_env_fn, (list, tuple)):
            makers = list(create_env_fn)
            if num_workers is not None and num_workers != len(makers):
                raise InvalidArgumentError("%s: num_workers: got %r for %d environments, want as many, or none" %
                                           (name, num_workers, len(makers)))
        elif num_workers is None:
            raise InvalidArgumentError("%s: create_env_fn: got one without num_workers, want a list, or how often to "
                                       "make it" % name)
        else:
            makers = [create_env_fn] * num_workers
        if policy is not None and policy_factory is not None:
            raise InvalidArgumentError("%s: policy_factory: got one beside a policy, want one of them" % name)
        self._envs = [as_env(make) for make in makers]
        policies = [policy] * len(self._envs)
        if policy_factory is not None:
            policies = [policy_factory() for _ in self._envs]
        acts, outputs = [], _rill.SpecDict([])
        if policies and policies[0] is not None:
            keys = [key for key, _ in self._envs[0]._handle.action_spec.leaves()]
            made = [make_act(each, keys, self._convert) for each in policies]
            self._acts, outputs = [act for act, _ in made], made[0][1]
            # As of FunctionTransform: C++ holds no function itself.
            weak = weakref.proxy(self)
            acts = [lambda root, i=i: weak._acts[i](root) for i in range(len(made))]
        frames = {"frames_per_batch": frames_per_batch}
        if isinstance(frames_per_batch, (list, tuple)):
            frames = {"frames_per_worker": list(frames_per_batch)}
            self._differ = self._differ or (not is_sync and len(set(frames_per_batch)) > 1)
        elif not is_sync:
            frames = {"frames_per_worker": [frames_per_batch] * len(self._envs)}
        self._collector = _rill.Collector([env._handle for env in self._envs], acts, outputs, {
            **frames, **options,
            "total_frames": self.total_frames,
            "seed": int.from_bytes(os.urandom(8), "little") if seed is None else seed,
        }, is_sync)
        _open.add(self)

    @property
    def env(self):
        """That of the first worker."""
        return self._envs[0]

    @property
    def num_workers(self):
        return len(self._envs)

    def _close_env(self):
        if self._is_open and self._collector.calls_in_flight == 0:
            self._is_open = False
            _close_each(list(reversed(self._envs)))


class MultiSyncDataCollector(_WorkersCollector):
    """Workers that step environments side by side, each its part of every batch.

    create_env_fn: a list, an environment a worker: each as SyncDataCollector takes one. Or one, with num_workers.
    policy: as SyncDataCollector's. Several threads call it, one at a time while it holds the interpreter's lock.
    policy_factory: a function that makes the policy of a worker, which no other one calls.
    frames_per_batch: steps of all workers together; a list has those of each worker.
    cat_results: batches are [workers * lanes, time] (0), [workers, lanes, time] ("stack") or
        [lanes, workers * time] (-1).
    preemptive_threshold: once this share of the workers has made its part, the others end theirs. What is missing
        in a batch is zeros then, which "collector/mask" tells; along time it is left out.

    Else as SyncDataCollector. C++ environments and processes step at the same time, Python code by turns.
    """

    def __init__(self, create_env_fn, policy=None, *, frames_per_batch, num_workers=None, policy_factory=None,
                 total_frames=-1, init_random_frames=None, max_frames_per_traj=None, reset_at_each_iter=False,
                 set_truncated=False, split_trajs=False, cat_results=0, preemptive_threshold=None,
                 replay_buffer=None, seed=None, output="numpy"):
        self._take(output, split_trajs, replay_buffer, policy, total_frames)
        if split_trajs and cat_results == "stack":
            raise InvalidArgumentError("MultiSyncDataCollector: split_trajs: got True for stacked batches, want "
                                       "cat_results=0, or -1")
        self._rank = 3 if cat_results == "stack" else 2
        self._differ = preemptive_threshold is not None
        self._start(create_env_fn, policy, policy_factory, num_workers, frames_per_batch, seed, {
            "init_random_frames": init_random_frames,
            "max_frames_per_traj": max_frames_per_traj,
            "reset_at_each_batch": bool(reset_at_each_iter),
            "set_truncated": bool(set_truncated),
            "cat_results": str(cat_results),
            "preemptive_threshold": preemptive_threshold,
        }, is_sync=True)


class MultiaSyncDataCollector(_WorkersCollector):
    """Workers that step environments without waiting for one another, or for the caller.

    A batch [lanes, time] is of one worker, whoever has one; a worker is two batches ahead at most. Options as
    MultiSyncDataCollector's, but frames_per_batch is that of each worker.
    """

    def __init__(self, create_env_fn, policy=None, *, frames_per_batch, num_workers=None, policy_factory=None,
                 total_frames=-1, init_random_frames=None, max_frames_per_traj=None, reset_at_each_iter=False,
                 set_truncated=False, split_trajs=False, replay_buffer=None, seed=None, output="numpy"):
        self._take(output, split_trajs, replay_buffer, policy, total_frames)
        self._start(create_env_fn, policy, policy_factory, num_workers, frames_per_batch, seed, {
            "init_random_frames": init_random_frames,
            "max_frames_per_traj": max_frames_per_traj,
            "reset_at_each_batch": bool(reset_at_each_iter),
            "set_truncated": bool(set_truncated),
        }, is_sync=False)


# TorchRL's newer names of them.
Collector = SyncDataCollector
MultiSyncCollector = MultiSyncDataCollector
MultiAsyncCollector = MultiaSyncDataCollector


def _end(collector):
    collector._collector.close(waits=False)
    return collector._collector


_open = ended_at_exit(_end)
