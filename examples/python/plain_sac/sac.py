# SPDX-License-Identifier: Apache-2.0
"""SAC on Pendulum in one file of torch, with Stable-Baselines3's buffer or Rill's.

The import of ReplayBuffer is all that differs.
"""

import argparse
import json
import math
import time

import gymnasium
import numpy as np
import torch
from torch import nn


class Actor(nn.Module):
    """A normal distribution of actions, squashed into [low, high]."""

    def __init__(self, space, num_inputs):
        super().__init__()
        num_actions = space.shape[0]
        self.body = nn.Sequential(nn.Linear(num_inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 2 * num_actions)
        self.register_buffer("scale", torch.as_tensor((space.high - space.low) / 2))
        self.register_buffer("middle", torch.as_tensor((space.high + space.low) / 2))

    def forward(self, observations):
        """Actions, and the logarithm of their density."""
        mean, spread = self.head(self.body(observations)).chunk(2, -1)
        spread = torch.tanh(spread) * 3.5 - 1.5  # The logarithm of the deviation, in [-5, 2].
        noise = torch.randn_like(mean)
        unsquashed = mean + spread.exp() * noise
        squashed = torch.tanh(unsquashed)
        log_density = -0.5 * noise**2 - spread - 0.5 * math.log(2 * math.pi)
        log_density = log_density - torch.log(self.scale * (1 - squashed**2) + 1e-6)
        return self.middle + self.scale * squashed, log_density.sum(-1, keepdim=True)


def make_critic(num_inputs):
    return nn.Sequential(nn.Linear(num_inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))


class Learner:
    def __init__(self, env, gamma=0.99, tau=0.005):
        self.gamma, self.tau = gamma, tau
        num_inputs, num_actions = env.observation_space.shape[0], env.action_space.shape[0]
        self.actor = Actor(env.action_space, num_inputs)
        self.critics = nn.ModuleList(make_critic(num_inputs + num_actions) for _ in range(2))
        self.targets = nn.ModuleList(make_critic(num_inputs + num_actions) for _ in range(2))
        self.targets.load_state_dict(self.critics.state_dict())
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.wanted_entropy = -float(num_actions)
        self.critic_optimizer = torch.optim.Adam(self.critics.parameters(), lr=1e-3)
        self.actor_optimizer = torch.optim.Adam([*self.actor.parameters(), self.log_alpha], lr=1e-3)

    def least(self, critics, observations, actions):
        pairs = torch.cat([observations, actions], -1)
        return torch.minimum(critics[0](pairs), critics[1](pairs))

    def update(self, batch):
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            following, density = self.actor(batch.next_observations)
            value = self.least(self.targets, batch.next_observations, following) - alpha * density
            wanted = batch.rewards + self.gamma * (1 - batch.dones) * value
        pairs = torch.cat([batch.observations, batch.actions], -1)
        loss = sum(nn.functional.mse_loss(critic(pairs), wanted) for critic in self.critics)
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()

        actions, density = self.actor(batch.observations)
        loss = (alpha * density - self.least(self.critics, batch.observations, actions)).mean()
        loss = loss - self.log_alpha.exp().mean() * (density.detach() + self.wanted_entropy).mean()
        self.actor_optimizer.zero_grad()
        loss.backward()
        self.actor_optimizer.step()
        with torch.no_grad():
            for ours, theirs in zip(self.targets.parameters(), self.critics.parameters()):
                ours.lerp_(theirs, self.tau)


def train(buffer, seed, total_steps, learning_starts=500):
    """Returns of all episodes, in order."""
    if buffer == "rill":
        from rill.sb3 import ReplayBuffer
    else:
        from stable_baselines3.common.buffers import ReplayBuffer
    np.random.seed(seed)
    torch.manual_seed(seed)
    env = gymnasium.make("Pendulum-v1")
    env.action_space.seed(seed)
    learner = Learner(env)
    replay = ReplayBuffer(
        50_000, env.observation_space, env.action_space, "cpu", handle_timeout_termination=False
    )

    returns, episode_return = [], 0.0
    observation, _ = env.reset(seed=seed)
    for step in range(total_steps):
        if step < learning_starts:
            action = env.action_space.sample()
        else:
            with torch.no_grad():
                action = learner.actor(torch.from_numpy(observation)[None])[0][0].numpy()
        next_observation, reward, terminated, truncated, info = env.step(action)
        replay.add(
            observation[None], next_observation[None], action[None], np.array([reward]), np.array([terminated]), [info]
        )
        episode_return += float(reward)
        observation = next_observation
        if terminated or truncated:
            returns.append(episode_return)
            episode_return = 0.0
            observation, _ = env.reset()
        if step >= learning_starts:
            learner.update(replay.sample(128))
    return returns


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buffer", choices=["rill", "original"], default="rill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--total_steps", type=int, default=6000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.perf_counter()
    returns = train(options.buffer, options.seed, options.total_steps)
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "returns": returns}))


if __name__ == "__main__":
    main()
