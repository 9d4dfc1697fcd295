# SPDX-License-Identifier: Apache-2.0
"""cpprb: flat keys, priorities by index."""
import cpprb
import numpy as np

from cases import arrays_of, leaves_of


def flat(rows):
    return {"_".join(key) if isinstance(key, tuple) else key: value for key, value in rows.items()}


def filled(make, row, capacity):
    keys = {key: {"shape": shape or 1, "dtype": np.dtype(dtype)} for key, (shape, dtype) in flat(leaves_of(row)).items()}
    buffer = make(capacity, keys)
    rows = flat(arrays_of(row, min(capacity, 10_000)))
    for _ in range(capacity // len(rows["action"])):
        buffer.add(**rows)
    return buffer


class Participant:
    version = __import__("importlib.metadata").metadata.version("cpprb")

    def sample(self, row, capacity, batch):
        buffer = filled(cpprb.ReplayBuffer, row, capacity)
        return lambda: buffer.sample(batch)

    def extend(self, row, capacity, count):
        buffer = filled(cpprb.ReplayBuffer, row, capacity)
        rows = flat(arrays_of(row, count))
        return lambda: buffer.add(**rows)

    def prioritized(self, capacity, batch):
        buffer = filled(cpprb.PrioritizedReplayBuffer, "47B", capacity)
        priority = np.random.default_rng(1).random(batch).astype(np.float32)
        return lambda: buffer.update_priorities(buffer.sample(batch, beta=0.4)["indexes"], priority)
