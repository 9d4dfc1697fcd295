# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/collectors measures, with TorchRL's collector and PufferLib's
vectoriser, on one core.

Reads what collectors_main has printed, for the ratios; what cannot be imported
is left out, with its reason.

usage: collectors_peers.py [--quick] <TABLE
"""
import functools
import importlib
import logging
import os
import re
import sys
import time
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
if os.environ.get("RILL_GYMNASIUM_PATH"):
    sys.path.append(os.environ["RILL_GYMNASIUM_PATH"])

LANES = 64
TIME = 16  # Shorter batches than Rill's: a step of all lanes takes milliseconds.
NOWHERE = "to nowhere"
STORED = "with StepCounter and RewardSum, into one"


def read_rill(lines):
    """M frames/s by name."""
    found = (re.match(r"  (\S.*?) {2,}([0-9.]+) M frames/s", line) for line in lines)
    return {match[1]: float(match[2]) for match in found if match}


def load(name):
    """The module, or None with a line that says why there is none."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # Whatever it is, there is nothing to measure.
        print("%s: skipped: %s" % (name.split(".")[0], error), flush=True)
        return None


def show(name, run, turns, rill):
    """The fastest of `turns` runs, which make LANES * TIME frames each.

    CPU time: a run takes longer than a busy machine leaves a core alone.
    """
    run()
    best = 0
    for _ in range(turns):
        begin = time.process_time()
        run()
        best = max(best, LANES * TIME / (time.process_time() - begin) / 1e6)
    ratio = "%9.1f" % (rill / best) if rill else "        -"
    print("  %-44s %10.4f M frames/s %s" % (name, best, ratio), flush=True)


def make_cart_pole(torch, lanes):
    """CartPole-v1, all lanes in one tensor: the form that is fastest in TorchRL."""
    from tensordict import TensorDict
    from torchrl.data import Binary, Categorical, Composite, Unbounded
    from torchrl.envs import EnvBase

    class CartPole(EnvBase):
        def __init__(self):
            super().__init__(batch_size=[lanes])
            self.observation_spec = Composite(observation=Unbounded((lanes, 4)), shape=(lanes,))
            self.action_spec = Categorical(2, (lanes,))
            self.reward_spec = Unbounded((lanes, 1))
            flag = Binary(1, (lanes, 1), dtype=torch.bool)
            self.done_spec = Composite(done=flag, terminated=flag.clone(), truncated=flag.clone(), shape=(lanes,))
            self.state = torch.zeros(lanes, 4)
            self.steps = torch.zeros(lanes, 1, dtype=torch.int64)

        def _set_seed(self, seed):
            torch.manual_seed(seed)

        def _reset(self, tensordict, **_):
            fresh = torch.rand(lanes, 4) * 0.1 - 0.05
            if tensordict is None or "_reset" not in tensordict:
                self.state, self.steps = fresh, torch.zeros_like(self.steps)
            else:
                mask = tensordict["_reset"]
                self.state = torch.where(mask, fresh, self.state)
                self.steps = torch.where(mask, 0, self.steps)
            return TensorDict({"observation": self.state}, batch_size=[lanes])

        def _step(self, tensordict):
            x, speed, angle, turn = self.state.unbind(-1)
            force = tensordict["action"].float() * 20 - 10
            cosine, sine = angle.cos(), angle.sin()
            common = (force + 0.05 * turn**2 * sine) / 1.1
            turning = (9.8 * sine - cosine * common) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
            moving = common - 0.05 * turning * cosine / 1.1
            self.state = torch.stack(
                (x + 0.02 * speed, speed + 0.02 * moving, angle + 0.02 * turn, turn + 0.02 * turning), -1)
            self.steps = self.steps + 1
            far = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 0.20943951)
            terminated = far.unsqueeze(-1)
            truncated = self.steps >= 500
            return TensorDict(
                {"observation": self.state, "reward": torch.ones(lanes, 1), "terminated": terminated,
                 "truncated": truncated, "done": terminated | truncated}, batch_size=[lanes])

    return CartPole()


def torchrl_speeds(rill, turns):
    torchrl = load("torchrl.envs")
    if not torchrl:
        return
    import torch
    from torchrl.collectors import Collector
    from torchrl.data import LazyTensorStorage, ReplayBuffer
    from torchrl.envs import Compose, RewardSum, StepCounter, TransformedEnv

    torch.set_num_threads(1)
    print("TorchRL, Collector, CartPole, 64 lanes, random actions; times Rill")

    def show_both(what, make):
        buffer = ReplayBuffer(storage=LazyTensorStorage(LANES * 4096))
        for name, env, use in (
            (NOWHERE, make, lambda batch: None),
            (STORED, lambda: TransformedEnv(make(), Compose(StepCounter(), RewardSum())),
             lambda batch: buffer.extend(batch.reshape(-1))),
        ):
            collector = Collector(env, None, frames_per_batch=LANES * TIME, total_frames=-1)
            batches = iter(collector)
            show("%s, %s" % (what, "to nowhere" if name == NOWHERE else "transforms, into a buffer"),
                 lambda: use(next(batches)), turns, rill.get(name))
            collector.shutdown()

    show_both("lanes in a tensor", lambda: make_cart_pole(torch, LANES))
    if load("gymnasium"):
        from torchrl.envs import GymEnv, SerialEnv

        show_both("SerialEnv", lambda: SerialEnv(LANES, lambda: GymEnv("CartPole-v1")))


def pufferlib_speeds(rill, turns):
    vector = load("pufferlib.vector")
    if not vector:
        return
    import gymnasium
    import numpy as np
    from pufferlib.emulation import GymnasiumPufferEnv

    print("PufferLib, Serial, Gymnasium's CartPole, 64 environments; times Rill")
    env = vector.make(
        lambda **options: GymnasiumPufferEnv(
            env_creator=functools.partial(gymnasium.make, "CartPole-v1"), **options),
        backend=vector.Serial, num_envs=LANES)
    actions = np.random.default_rng(0).integers(0, 2, (TIME, LANES))
    observations = np.empty((TIME, LANES, 4), np.float32)
    env.async_reset(seed=0)
    env.recv()

    def run():
        for t in range(TIME):
            env.send(actions[t])
            observations[t] = env.recv()[0]

    show("into an array of observations", run, turns, rill.get(NOWHERE))
    env.close()


def main():
    rill = read_rill(sys.stdin)
    turns = 3 if "--quick" in sys.argv[1:] else 15
    torchrl_speeds(rill, turns)
    pufferlib_speeds(rill, turns)


if __name__ == "__main__":
    main()
