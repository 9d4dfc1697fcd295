# SPDX-License-Identifier: Apache-2.0
"""Rill's wheel."""
import numpy as np
import rill

from cases import WRITTEN_BEFORE_SLICES, arrays_of
from prepared import Prepared


def filled(buffer, row, stored):
    rows = arrays_of(row, min(stored, 1000))
    for _ in range(stored // len(rows["action"])):
        buffer.extend(rows)
    return buffer


class Participant:
    version = rill.__version__

    def sample(self, row, capacity, batch):
        return filled(rill.ReplayBuffer(storage=rill.LazyTensorStorage(capacity), batch_size=batch, seed=1), row,
                      capacity).sample

    def extend(self, row, capacity, count):
        buffer = filled(rill.ReplayBuffer(storage=rill.LazyTensorStorage(capacity), batch_size=1), row, capacity)
        rows = arrays_of(row, count)
        if count == 1:
            one = {key: value[0] for key, value in rows.items()}
            return lambda: buffer.add(one)
        return lambda: buffer.extend(rows)

    def prioritized(self, capacity, batch):
        buffer = filled(rill.PrioritizedReplayBuffer(alpha=0.6, beta=0.4, storage=rill.LazyTensorStorage(capacity),
                                                     batch_size=batch, seed=1), "47B", capacity)
        priority = np.random.default_rng(1).random(batch).astype(np.float32)
        return lambda: buffer.update_priority(buffer.sample(), priority)

    def slices(self, stored, capacity, slices, length):
        buffer = filled(rill.ReplayBuffer(storage=rill.LazyTensorStorage(capacity), seed=1,
                                          sampler=rill.SliceSampler(slice_len=length), batch_size=slices * length),
                        "47B", stored)
        rows = arrays_of("47B", WRITTEN_BEFORE_SLICES)
        return Prepared(buffer.sample, before=lambda: buffer.extend(rows))
