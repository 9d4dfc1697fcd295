# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/envs measures, with gymnasium, EnvPool and PufferLib.

Reads what envs_main and mujoco_benchmark have printed, for the ratios; a
library that cannot be imported is left out.

usage: envs_peers.py [--quick] <TABLES
"""
import importlib
import logging
import os
import re
import sys
import time
import warnings

warnings.filterwarnings("ignore")
if os.environ.get("RILL_GYMNASIUM_PATH"):
    sys.path.append(os.environ["RILL_GYMNASIUM_PATH"])

CLASSICS = ("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1", "Pendulum-v1")
MUJOCO = ("InvertedPendulum", "Hopper", "HalfCheetah", "Walker2d", "Ant", "Humanoid")
LANES = 64


def read_rill(lines):
    """Frames a second by name, of both programs' tables."""
    speeds = {}
    for line in lines:
        table = re.match(r"  (\S.*?) {2,}([0-9.]+) M frames/s", line)
        counter = re.match(r"(\w+)/lanes:16/\S* .*\bframes/s=([0-9.]+)([kM]?)", line)
        if table:
            speeds[table[1]] = float(table[2]) * 1e6
        elif counter:
            speeds[counter[1]] = float(counter[2]) * {"": 1, "k": 1e3, "M": 1e6}[counter[3]]
    return speeds


def load(name):
    """The module, or None with a line that says why there is none."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print("%s: skipped: %s" % (name.split(".")[0], error), flush=True)
        return None


def fastest(step, actions, frames, turns):
    """Frames a second of the fastest of `turns` slices; `frames` a step."""
    best = 0
    for _ in range(turns):
        begin = time.perf_counter()
        for action in actions:
            step(action)
        best = max(best, frames * len(actions) / (time.perf_counter() - begin))
    return best


def show(name, speed, rill):
    ratio = "%8.1f" % (rill / speed) if rill else "       -"
    print("  %-44s %10.3f M frames/s %s" % (name, speed / 1e6, ratio), flush=True)


def gymnasium_speeds(rill, turns):
    gymnasium = load("gymnasium")
    if not gymnasium:
        return
    print("gymnasium %s; times Rill into a batch" % gymnasium.__version__)
    env = gymnasium.make("CartPole-v1")
    env.action_space.seed(0)
    env.reset(seed=0)

    def step(action):
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()

    actions = [env.action_space.sample() for _ in range(1000)]
    speed = fastest(step, actions, 1, turns)
    show("CartPole, one environment", speed, rill.get("CartPole, 1 lane, into a batch"))
    for name, mode in (("sync", "sync"), ("NumPy", "vector_entry_point")):
        env = gymnasium.make_vec("CartPole-v1", num_envs=LANES, vectorization_mode=mode)
        env.action_space.seed(0)
        env.reset(seed=0)
        actions = [env.action_space.sample() for _ in range(64)]
        show("CartPole, %d environments, %s" % (LANES, name),
             fastest(env.step, actions, LANES, turns), rill.get("CartPole, into a batch"))


def envpool_speeds(rill, turns):
    envpool = load("envpool")
    if not envpool:
        return
    import numpy as np

    print("EnvPool %s, one thread; times Rill into a batch" % envpool.__version__)
    logging.disable(logging.WARNING)
    for name in CLASSICS + tuple(task + "-v5" for task in MUJOCO):
        task = name.split("-")[0]
        lanes = 16 if task in MUJOCO else LANES
        env = envpool.make(name, env_type="gymnasium", num_envs=lanes, num_threads=1, seed=0)
        env.reset()
        env.action_space.seed(0)
        actions = [np.array([env.action_space.sample() for _ in range(lanes)])
                   for _ in range(8 if task in MUJOCO else 64)]
        show("%s, %d environments" % (task, lanes), fastest(env.step, actions, lanes, turns),
             rill.get(task if task in MUJOCO else task + ", into a batch"))
        env.close()


def pufferlib_speeds(rill, turns):
    module = load("pufferlib.ocean.cartpole.cartpole")
    if not module:
        return
    import numpy as np

    print("PufferLib; times Rill into a batch")
    env = module.Cartpole(num_envs=LANES, report_interval=1000)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 2, (1000, LANES))
    show("CartPole, %d environments" % LANES, fastest(env.step, actions, LANES, turns),
         rill.get("CartPole, into a batch"))
    env.close()


def main():
    rill = read_rill(sys.stdin)
    turns = 5 if "--quick" in sys.argv[1:] else 50
    for speeds in (gymnasium_speeds, envpool_speeds, pufferlib_speeds):
        speeds(rill, turns)


if __name__ == "__main__":
    main()
