# SPDX-License-Identifier: Apache-2.0
"""Stable-Baselines3's DQN on CartPole with its own buffer or Rill's.

replay_buffer_class is all that differs.
"""

import argparse
import json
import time

import torch
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env


def train(buffer, seed, total_steps):
    """Returns of all episodes, in order."""
    if buffer == "rill":
        from rill.sb3 import ReplayBuffer
    else:
        from stable_baselines3.common.buffers import ReplayBuffer
    env = make_vec_env("CartPole-v1", n_envs=1, seed=seed)
    model = DQN(
        "MlpPolicy",
        env,
        replay_buffer_class=ReplayBuffer,
        learning_rate=2.3e-3,
        batch_size=64,
        buffer_size=100_000,
        learning_starts=1000,
        gamma=0.99,
        target_update_interval=10,
        train_freq=256,
        gradient_steps=128,
        exploration_fraction=0.16,
        exploration_final_eps=0.04,
        policy_kwargs={"net_arch": [256, 256]},
        stats_window_size=1_000_000,
        seed=seed,
        device="cpu",
    )
    model.learn(total_steps)
    return [episode["r"] for episode in model.ep_info_buffer]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buffer", choices=["rill", "original"], default="rill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--total_steps", type=int, default=50_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.perf_counter()
    returns = train(options.buffer, options.seed, options.total_steps)
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "returns": [float(r) for r in returns]}))


if __name__ == "__main__":
    main()
