# SPDX-License-Identifier: Apache-2.0
"""Transforms beside an environment, of TorchRL and of Rill.

write_rollout.cc makes steps of an environment with transforms. An environment
of TorchRL's plays the same steps, with TorchRL's transforms beside it, which
must make the same of them, resets included. Random numbers are those that Rill
has drawn.
"""
import os

import torch
from tensordict import TensorDict

import torchrl.envs.transforms as rl
from torchrl.data import Binary, Bounded, Composite, Unbounded
from torchrl.envs import EnvBase

from transforms import REWARD, check_equal


class Played(EnvBase):
    """An environment that does what a rollout [lanes, steps] says. `terminated`
    is the key of the flag that the environment itself has set."""

    def __init__(self, rollout, terminated="terminated"):
        super().__init__(batch_size=rollout.shape[:1])
        self.rollout_, self.at, self.terminated = rollout, 0, terminated
        lanes = rollout.shape[0]
        observation = rollout["observation"].shape[2:]
        self.observation_spec = Composite(observation=Unbounded((lanes, *observation)), shape=(lanes,))
        self.action_spec = Unbounded((lanes, 1))
        self.reward_spec = Unbounded((lanes, 1))
        flags = {name: Binary(1, (lanes, 1), dtype=torch.bool) for name in ("done", "terminated", "truncated")}
        self.done_spec = Composite(flags, shape=(lanes,))

    def state(self, source, terminated):
        self.source, self.shown = source, self.at
        return TensorDict({"observation": source["observation"][:, self.at], "terminated": terminated,
                           "truncated": torch.zeros_like(terminated), "done": terminated}, self.batch_size)

    def lives(self):
        return self.source["lives"][:, self.shown]

    def _reset(self, tensordict=None, **options):
        # Behind the last step there is nothing to begin with.
        self.at = min(self.at, self.rollout_.shape[1] - 1)
        return self.state(self.rollout_, torch.zeros(*self.batch_size, 1, dtype=torch.bool))

    def _step(self, tensordict):
        following = self.rollout_["next"]
        state = self.state(following, following[self.terminated][:, self.at])
        state["reward"] = following["reward"][:, self.at]
        self.at += 1
        return state

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
    plain = rollout.clone().set(REWARD, torch.ones(*rollout.shape, 1))  # Cart poles earn 1.
    env = rl.TransformedEnv(Played(plain), rl.Compose(
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


MIN_HORIZON, MAX_HORIZON = 4, 12
ENDS = {
    "Terminate": ["terminated", ("next", "terminated")],
    "RandomTruncation": ["truncated", ("next", "truncated"), "done", ("next", "done")],
    "EndOfLife": ["end-of-life", ("next", "end-of-life")],
    "TensorDictPrimer": ["goal", ("next", "goal"), "hidden", ("next", "hidden")],
}


class Drawn(rl.RandomTruncationTransform):
    """Takes the horizons that another one has drawn."""

    def __init__(self, horizons, *args, **options):
        super().__init__(*args, **options)
        self.drawn = horizons

    def _reset(self, tensordict, tensordict_reset):
        tensordict_reset = super()._reset(tensordict, tensordict_reset)
        self._horizons = self.drawn().clone()  # It is written to.
        return tensordict_reset


def ended_again(rollout):
    """The same for what ends episodes and begins with them."""
    played = Played(rollout, terminated="fallen")
    lanes = rollout.shape[0]
    primers = Composite(goal=Unbounded((lanes, 2)), hidden=Unbounded((lanes, 3), dtype=torch.float64), shape=(lanes,))
    env = rl.TransformedEnv(played, rl.Compose(
        rl.TerminateTransform(lambda td: td["observation"][..., 1] > 1.25), rl.StepCounter(),
        Drawn(lambda: rollout["horizon"][:, played.at], MIN_HORIZON, MAX_HORIZON, prob=0.75),
        rl.EndOfLifeTransform(eol_attribute="lives"),
        rl.TensorDictPrimer(primers, default_value={"goal": 1.5, "hidden": 0.25})))
    return env.rollout(rollout.shape[1], break_when_any_done=False)


def check_ends_are_of_all_kinds(rollout):
    after = rollout["next"]
    assert (after["terminated"] & ~after["fallen"]).any(), "the predicate has ended nothing"
    assert (after["fallen"] & ~after["truncated"]).any(), "no cart pole fell by itself"
    assert (after["truncated"] & ~after["terminated"]).any(), "no horizon was reached"
    assert (after["end-of-life"] & ~after["done"]).any(), "no life was lost on the way"


def begins(rollout):
    """Which steps begin an episode."""
    return torch.cat([torch.ones_like(rollout["done"][:, :1]), rollout["next", "done"][:, :-1]], 1)


def check_horizons(rollout):
    """Draws are in TorchRL's bounds, and stay for an episode."""
    horizons, begin = rollout["horizon"], begins(rollout)
    assert ((horizons[:, 0] >= 1) & (horizons[:, 0] <= MAX_HORIZON)).all(), horizons[:, 0]
    later = horizons[:, 1:][begin[:, 1:]]
    assert ((later >= MIN_HORIZON) & (later <= MAX_HORIZON)).all(), later
    assert (begin[:, 1:] | (horizons[:, 1:] == horizons[:, :-1])).all(), "a horizon changed in an episode"


def check_random_primer(rollout):
    """Members of TorchRL's spec, which stay for an episode."""
    noise, begin = rollout["noise"], begins(rollout)
    spec = Bounded(-2, 3, (*rollout.shape, 2), dtype=torch.float32)
    assert spec.is_in(noise) and spec.is_in(rollout["next", "noise"]), noise
    assert (begin[:, 1:] == (noise[:, 1:] != noise[:, :-1]).any(-1, keepdim=True)).all(), "drawn at other steps"
    assert (noise == rollout["next", "noise"]).all()


WRAPPED = {
    "FrameSkip": ("not_skipped", "skipped", lambda env: rl.TransformedEnv(env, rl.FrameSkipTransform(3))),
    "NoopReset": ("from_reset", "after_noops", lambda env: rl.TransformedEnv(env, rl.NoopResetEnv(4, random=False))),
}


def check_wrapped(folder, single, wrapped, make_env):
    """TorchRL's wrapper over single steps makes what Rill's has made."""
    single, got = (TensorDict.load_memmap(os.path.join(folder, name)) for name in (single, wrapped))
    want = make_env(Played(single)).rollout(got.shape[1])
    keys = ["observation", ("next", "observation"), REWARD, ("next", "done")]
    check_equal(want.select(*keys), got.select(*keys), is_exact=True)


def compare_all(exchange, got, play, keys_of, reduce=lambda name, rollout: rollout):
    want = []
    if not exchange.check("rollout, played again by TorchRL", lambda: want.append(play(got))):
        return
    for name, keys in keys_of.items():
        exchange.check("transform %s beside an environment" % name,
                       lambda: check_equal(reduce(name, want[0]).select(*keys), reduce(name, got).select(*keys),
                                           is_exact=False))


def run(exchange, write_rollout, run_command):
    folder = os.path.join(exchange.folder, "rollout")

    def write():
        status, _, error = run_command(write_rollout, folder)
        assert status == 0, error

    if not exchange.check("rollout, written by Rill", write):
        return
    compare_all(exchange, TensorDict.load_memmap(os.path.join(folder, "steps")), played_again, BESIDE, compared)
    ends = TensorDict.load_memmap(os.path.join(folder, "ends"))
    exchange.check("ends of episodes, of all kinds", lambda: check_ends_are_of_all_kinds(ends))
    compare_all(exchange, ends, ended_again, ENDS)
    exchange.check("draws of RandomTruncation", lambda: check_horizons(ends))
    exchange.check("draws of TensorDictPrimer", lambda: check_random_primer(ends))
    for name, parts in WRAPPED.items():
        exchange.check("wrapper %s" % name, lambda: check_wrapped(folder, *parts))
