# SPDX-License-Identifier: Apache-2.0
"""Transforms beside an environment, of TorchRL and of Rill.

write_rollout.cc makes steps of an environment with transforms. An environment
of TorchRL's plays the same steps, with TorchRL's transforms beside it, which
must make the same of them, resets included.
"""
import os

import torch
from tensordict import TensorDict

import torchrl.envs.transforms as rl
from torchrl.data import Binary, Composite, Unbounded
from torchrl.envs import EnvBase

from transforms import REWARD, check_equal


class Played(EnvBase):
    """An environment that does what a rollout [lanes, steps] says."""

    def __init__(self, rollout):
        super().__init__(batch_size=rollout.shape[:1])
        self.rollout_, self.at = rollout, 0
        lanes = rollout.shape[0]
        self.observation_spec = Composite(observation=Unbounded((lanes, 4)), shape=(lanes,))
        self.action_spec = Unbounded((lanes, 1))
        self.reward_spec = Unbounded((lanes, 1))
        flags = {name: Binary(1, (lanes, 1), dtype=torch.bool) for name in ("done", "terminated", "truncated")}
        self.done_spec = Composite(flags, shape=(lanes,))

    def state(self, source, terminated):
        return TensorDict({"observation": source["observation"][:, self.at], "terminated": terminated,
                           "truncated": torch.zeros_like(terminated), "done": terminated}, self.batch_size)

    def _reset(self, tensordict=None, **options):
        # Behind the last step there is nothing to begin with.
        self.at = min(self.at, self.rollout_.shape[1] - 1)
        return self.state(self.rollout_, torch.zeros(*self.batch_size, 1, dtype=torch.bool))

    def _step(self, tensordict):
        following = self.rollout_["next"]
        state = self.state(following, following["terminated"][:, self.at])
        self.at += 1
        return state.set("reward", torch.ones(*self.batch_size, 1))

    def _set_seed(self, seed):
        pass


BESIDE = {
    "RewardScaling": [REWARD],
    "ObservationNorm": ["normal", ("next", "normal")],
    "CatFrames": ["frames", ("next", "frames")],
    "StepCounter": ["step_count", ("next", "step_count"), ("next", "truncated"), ("next", "done")],
    "RewardSum": ["episode_reward", ("next", "episode_reward")],
    "TargetReturn": ["target_return", ("next", "target_return")],
    "InitTracker": ["is_init", ("next", "is_init")],
    "TrajCounter": ["traj_count", ("next", "traj_count")],
    "TimeMaxPool": ["largest", ("next", "largest")],
    "VecNorm": ["standard", ("next", "standard")],
}


def played_again(rollout):
    """Of a rollout that Rill made: what TorchRL's transforms make of its steps."""
    env = rl.TransformedEnv(Played(rollout), rl.Compose(
        rl.RewardScaling(0.1, 0.3), rl.ObservationNorm(0.5, 2.0, in_keys=["observation"], out_keys=["normal"],
                                                       standard_normal=True),
        rl.CatFrames(3, -1, in_keys=["observation"], out_keys=["frames"]), rl.StepCounter(9),
        rl.RewardSum(), rl.TargetReturn(5.0), rl.InitTracker(), rl.TrajCounter(),
        rl.ObservationNorm(10.0, 1.0, in_keys=["observation"], out_keys=["positive"]),
        rl.TimeMaxPool(["positive"], ["largest"], T=3),
        rl.VecNorm(["observation"], ["standard"], shapes=[(4,)], new_api=False)))
    return env.rollout(rollout.shape[1], break_when_any_done=False)


def compared(name, rollout):
    """The steps in which both do the same: a reset of some lanes counts for
    TorchRL's VecNorm as one of all."""
    if name != "VecNorm":
        return rollout
    return rollout[:, :int(rollout["next", "done"].any(0).squeeze(-1).nonzero()[0])]


def run(exchange, write_rollout, run_command):
    path = os.path.join(exchange.folder, "rollout")

    def write():
        status, _, error = run_command(write_rollout, path)
        assert status == 0, error

    if not exchange.check("rollout, written by Rill", write):
        return
    got, want = TensorDict.load_memmap(path), []
    if not exchange.check("rollout, played again by TorchRL", lambda: want.append(played_again(got))):
        return
    for name, keys in BESIDE.items():
        exchange.check("transform %s beside an environment" % name,
                       lambda: check_equal(compared(name, want[0]).select(*keys),
                                           compared(name, got).select(*keys), is_exact=False))
