# SPDX-License-Identifier: Apache-2.0
"""DQN on CartPole with NumPy alone: Rill's collector steps 8 lanes and writes its buffer, which the learner samples."""

import argparse
import json
import time

import numpy as np
import rill


class Network:
    """Two layers, and Adam."""

    def __init__(self, generator, sizes=(4, 128, 2)):
        self.weights = [generator.normal(0, np.sqrt(2 / rows), (rows, columns)).astype(np.float32)
                        for rows, columns in zip(sizes, sizes[1:])]
        self.weights += [np.zeros(size, np.float32) for size in sizes[1:]]
        self.moments = [[np.zeros_like(weight) for weight in self.weights] for _ in range(2)]
        self.updates = 0

    def values(self, observation):
        first, second, bias, last_bias = self.weights
        self.hidden = np.maximum(observation @ first + bias, 0)
        return self.hidden @ second + last_bias

    def descend(self, observation, error, rate=1e-3):
        """One step down the gradient: `error` is that of each value."""
        at_hidden = (error @ self.weights[1].T) * (self.hidden > 0)
        gradients = [observation.T @ at_hidden, self.hidden.T @ error, at_hidden.sum(0), error.sum(0)]
        self.updates += 1
        scale = rate * np.sqrt(1 - 0.999**self.updates) / (1 - 0.9**self.updates)
        for weight, gradient, mean, square in zip(self.weights, gradients, *self.moments):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient * gradient - square)
            weight -= scale * mean / (np.sqrt(square) + 1e-8)


def train(seed, total_steps, lanes=8, gamma=0.99):
    """Mean returns of 10 greedy episodes, every 2,000 steps."""
    generator = np.random.default_rng(seed)
    network, target = Network(generator), Network(generator)
    epsilon = 1.0

    def policy(root):
        greedy = network.values(root["observation"]).argmax(1)
        return np.where(generator.random(lanes) < epsilon, generator.integers(0, 2, lanes), greedy)

    buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(50_000 // lanes * lanes, lanes=lanes), batch_size=128,
                               seed=seed)
    collector = rill.SyncDataCollector(rill.envs.CartPole(lanes), policy, frames_per_batch=4 * lanes, replay_buffer=buffer,
                                       total_frames=total_steps, init_random_frames=1000, seed=seed)
    returns = []
    for _ in collector:
        epsilon = max(0.05, 1 - collector.frames / (0.3 * total_steps))
        for _ in range(16 if collector.frames > 1000 else 0):
            batch = buffer.sample()
            following, rows = batch["next"], np.arange(128)
            alive = ~following["terminated"][:, 0]
            wanted = following["reward"][:, 0] + gamma * alive * target.values(following["observation"]).max(1)
            values = network.values(batch["observation"])
            error = np.zeros_like(values)
            error[rows, batch["action"]] = np.clip(values[rows, batch["action"]] - wanted, -1, 1) / 128
            network.descend(batch["observation"], error)
            for ours, theirs in zip(target.weights, network.weights):
                ours += 0.01 * (theirs - ours)
        if collector.frames // 2000 > len(returns):
            returns.append(evaluate(network, seed))
    return returns


def evaluate(network, seed, episodes=10):
    env = rill.envs.CartPole(episodes, seed=seed)
    batch = env.rollout(500, lambda root: network.values(root["observation"]).argmax(1), break_when_any_done=False)
    ends = batch["next"]["done"][..., 0]
    return float(np.where(ends.any(1), ends.argmax(1) + 1, 500).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--total_steps", type=int, default=30_000)
    options = parser.parse_args()
    started = time.perf_counter()
    returns = train(options.seed, options.total_steps)
    print(json.dumps({"seconds": time.perf_counter() - started, "returns": returns}))


if __name__ == "__main__":
    main()
