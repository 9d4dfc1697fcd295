# SPDX-License-Identifier: Apache-2.0
"""A torch.utils.data.DataLoader over a replay buffer: one step ahead of Pendulum.

A network learns the next observation from rows of random play. The rows lie in
a Rill buffer, or as tensors in torch's own TensorDataset.
"""

import argparse
import json
import time

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def play(num_rows, seed):
    """Rows of random play, as arrays."""
    env = gymnasium.make("Pendulum-v1")
    env.action_space.seed(seed)
    rows = {"observation": [], "action": [], "next_observation": []}
    observation, _ = env.reset(seed=seed)
    for _ in range(num_rows):
        action = env.action_space.sample()
        next_observation, _, terminated, truncated, _ = env.step(action)
        rows["observation"].append(observation)
        rows["action"].append(action)
        rows["next_observation"].append(next_observation)
        observation = next_observation
        if terminated or truncated:
            observation, _ = env.reset()
    return {key: np.asarray(values, dtype=np.float32) for key, values in rows.items()}


def make_loader(dataset, rows, batch_size):
    if dataset == "rill":
        from rill import LazyTensorStorage, ReplayBuffer

        buffer = ReplayBuffer(storage=LazyTensorStorage(len(rows["observation"])))
        buffer.extend(rows)
        # A batch comes out of the buffer as one: nothing is left to collate.
        return DataLoader(buffer, batch_size=batch_size, shuffle=True, collate_fn=as_tensors)
    return DataLoader(
        TensorDataset(*[torch.from_numpy(rows[key]) for key in ("observation", "action", "next_observation")]),
        batch_size=batch_size,
        shuffle=True,
    )


def as_tensors(batch):
    return [torch.from_numpy(batch[key]) for key in ("observation", "action", "next_observation")]


def train(dataset, seed, num_rows, num_epochs):
    """The mean loss of each epoch, and the seconds that all of them took."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    loader = make_loader(dataset, play(num_rows, seed), batch_size=256)
    losses = []
    started = time.perf_counter()
    for _ in range(num_epochs):
        total = 0.0
        for observation, action, next_observation in loader:
            guess = observation + network(torch.cat([observation, action], -1))
            loss = nn.functional.mse_loss(guess, next_observation)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / len(loader))
    return losses, time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buffer", choices=["rill", "original"], default="rill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--total_steps", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    losses, seconds = train(options.buffer, options.seed, options.total_steps, options.epochs)
    print(json.dumps({"seconds": seconds, "losses": losses}))


if __name__ == "__main__":
    main()
