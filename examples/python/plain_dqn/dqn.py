# SPDX-License-Identifier: Apache-2.0
"""DQN on CartPole in one file of torch, with Stable-Baselines3's buffer or Rill's.

The import of ReplayBuffer is all that differs.
"""

import argparse
import json
import random
import time

import gymnasium
import numpy as np
import torch
from torch import nn


def make_network(num_inputs, num_actions):
    return nn.Sequential(
        nn.Linear(num_inputs, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, num_actions)
    )


def train(buffer, seed, total_steps, learning_starts=1000, gamma=0.99):
    """Returns of all episodes, in order."""
    if buffer == "rill":
        from rill.sb3 import ReplayBuffer
    else:
        from stable_baselines3.common.buffers import ReplayBuffer
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    env = gymnasium.make("CartPole-v1")
    env.action_space.seed(seed)
    network = make_network(4, 2)
    target = make_network(4, 2)
    target.load_state_dict(network.state_dict())
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    replay = ReplayBuffer(
        50_000, env.observation_space, env.action_space, "cpu", handle_timeout_termination=False
    )

    returns, episode_return = [], 0.0
    observation, _ = env.reset(seed=seed)
    for step in range(total_steps):
        epsilon = max(0.05, 1 - 0.95 * step / (0.25 * total_steps))
        if random.random() < epsilon:
            action = env.action_space.sample()
        else:
            with torch.no_grad():
                action = int(network(torch.from_numpy(observation)).argmax())
        next_observation, reward, terminated, truncated, info = env.step(action)
        replay.add(
            observation[None], next_observation[None], np.array([action]), np.array([reward]), np.array([terminated]), [info]
        )
        episode_return += reward
        observation = next_observation
        if terminated or truncated:
            returns.append(episode_return)
            episode_return = 0.0
            observation, _ = env.reset()

        if step < learning_starts or step % 2:
            continue
        batch = replay.sample(128)
        with torch.no_grad():
            best = target(batch.next_observations).max(1, keepdim=True).values
            wanted = batch.rewards + gamma * best * (1 - batch.dones)
        loss = nn.functional.mse_loss(network(batch.observations).gather(1, batch.actions), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for ours, theirs in zip(target.parameters(), network.parameters()):
                ours.lerp_(theirs, 0.005)
    return returns


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buffer", choices=["rill", "original"], default="rill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--total_steps", type=int, default=30_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.perf_counter()
    returns = train(options.buffer, options.seed, options.total_steps)
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "returns": returns}))


if __name__ == "__main__":
    main()
