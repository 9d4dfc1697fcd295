# SPDX-License-Identifier: Apache-2.0
"""Gymnasium workers write into one buffer while a learner samples it.

Rows go through shared memory (rill.Channel), or through a multiprocessing.Queue
into the same buffer.
"""

import argparse
import json
import multiprocessing
import time

import gymnasium
import numpy as np

import rill

STEP = {
    "observation": np.zeros(4, np.float32),
    "action": np.zeros((), np.int64),
    "next": {
        "observation": np.zeros(4, np.float32),
        "reward": np.zeros(1, np.float32),
        "terminated": np.zeros(1, bool),
        "truncated": np.zeros(1, bool),
        "done": np.zeros(1, bool),
    },
}


def steps_of(seed):
    """Steps of random play, for ever."""
    env = gymnasium.make("CartPole-v1")
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    while True:
        action = env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
        yield {
            "observation": observation,
            "action": action,
            "next": {
                "observation": following,
                "reward": [reward],
                "terminated": [terminated],
                "truncated": [truncated],
                "done": [done],
            },
        }
        observation = env.reset()[0] if done else following


def work(writer, seed, num_steps):
    """A worker's process."""
    steps = steps_of(seed)
    with writer:
        for _ in range(num_steps):
            writer.add(next(steps))


def work_by_queue(queue, seed, num_steps):
    steps = steps_of(seed)
    for _ in range(num_steps):
        queue.put(next(steps))
    queue.put(None)


def start(target, ends, num_steps):
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=target, args=(end, seed, num_steps), daemon=True)
        for seed, end in enumerate(ends)
    ]
    for worker in workers:
        worker.start()
    return workers


def collect(buffer, num_workers, num_steps):
    """Drains and samples until all workers are done; the number of samples."""
    channel = rill.Channel(STEP, producers=num_workers)
    start(work, [channel.writer(i) for i in range(num_workers)], num_steps)
    samples = 0
    try:
        while channel.wait():
            channel.drain(buffer)
            buffer.sample(256)
            samples += 1
    except rill.UnavailableError:  # All workers have gone.
        pass
    return samples


def collect_by_queue(buffer, num_workers, num_steps):
    queue = multiprocessing.get_context("spawn").Queue()
    start(work_by_queue, [queue] * num_workers, num_steps)
    samples = 0
    while num_workers > 0:
        step = queue.get()
        if step is None:
            num_workers -= 1
            continue
        # Lane 0 of all of them: a queue does not say whose a step is.
        buffer.add(step)
        if queue.empty():
            buffer.sample(256)
            samples += 1
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buffer", choices=["rill", "original"], default="rill")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--total_steps", type=int, default=50_000)
    options = parser.parse_args()
    by_channel = options.buffer == "rill"
    lanes = options.workers if by_channel else 1
    buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(100_000, lanes=lanes))
    started = time.perf_counter()
    samples = (collect if by_channel else collect_by_queue)(
        buffer, options.workers, options.total_steps // options.workers
    )
    print(
        json.dumps(
            {"seconds": time.perf_counter() - started, "samples": samples, "rows": len(buffer)}
        )
    )


if __name__ == "__main__":
    main()
