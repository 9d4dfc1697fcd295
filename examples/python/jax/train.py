# SPDX-License-Identifier: Apache-2.0
"""JAX learns from a Rill buffer: a jitted update takes a batch's arrays as they are.

A network learns the next observation of Pendulum from rows of random play. The
rows lie in a Rill buffer, or in NumPy arrays that rows are chosen from.
"""

import argparse
import json
import time

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

KEYS = ("observation", "action", "next_observation")


def play(num_rows, seed):
    """Rows of random play, as arrays."""
    env = gymnasium.make("Pendulum-v1")
    env.action_space.seed(seed)
    rows = {key: [] for key in KEYS}
    observation, _ = env.reset(seed=seed)
    for _ in range(num_rows):
        action = env.action_space.sample()
        next_observation, _, terminated, truncated, _ = env.step(action)
        for key, value in zip(KEYS, (observation, action, next_observation)):
            rows[key].append(value)
        observation = next_observation
        if terminated or truncated:
            observation, _ = env.reset()
    return {key: np.asarray(values, dtype=np.float32) for key, values in rows.items()}


def make_sampler(buffer, rows, batch_size, seed):
    """A function that gives the next batch, as arrays."""
    if buffer == "rill":
        from rill import LazyTensorStorage, ReplayBuffer

        replay = ReplayBuffer(storage=LazyTensorStorage(len(rows["action"])), batch_size=batch_size, seed=seed)
        replay.extend(rows)

        def sample():
            batch = replay.sample()
            return [batch[key] for key in KEYS]

    else:
        generator = np.random.default_rng(seed)

        def sample():
            chosen = generator.integers(len(rows["action"]), size=batch_size)
            return [rows[key][chosen] for key in KEYS]

    return sample


def guess(parameters, observation, action):
    hidden = jnp.concatenate([observation, action], -1) @ parameters["w0"] + parameters["b0"]
    return observation + jax.nn.relu(hidden) @ parameters["w1"] + parameters["b1"]


@jax.jit
def update(parameters, observation, action, next_observation):
    def loss_of(parameters):
        return jnp.mean((guess(parameters, observation, action) - next_observation) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(parameters)
    return jax.tree.map(lambda p, g: p - 0.02 * g, parameters, gradients), loss


def train(buffer, seed, num_rows, num_updates):
    """The losses, and the seconds that all updates took."""
    keys = jax.random.split(jax.random.key(seed))
    parameters = {
        "w0": jax.random.normal(keys[0], (4, 64)) * 0.5,
        "b0": jnp.zeros(64),
        "w1": jax.random.normal(keys[1], (64, 3)) * 0.05,
        "b1": jnp.zeros(3),
    }
    sample = make_sampler(buffer, play(num_rows, seed), 256, seed)
    parameters, loss = update(parameters, *sample())  # Compiles.
    losses = []
    started = time.perf_counter()
    for _ in range(num_updates):
        parameters, loss = update(parameters, *sample())
        losses.append(loss)
    losses = [float(loss) for loss in losses]
    return losses, time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buffer", choices=["rill", "original"], default="rill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--total_steps", type=int, default=20_000)
    parser.add_argument("--updates", type=int, default=5000)
    options = parser.parse_args()
    losses, seconds = train(options.buffer, options.seed, options.total_steps, options.updates)
    tenth = max(len(losses) // 10, 1)
    means = [sum(losses[i : i + tenth]) / tenth for i in range(0, len(losses), tenth)]
    print(json.dumps({"seconds": seconds, "losses": means}))


if __name__ == "__main__":
    main()
