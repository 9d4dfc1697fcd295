# SPDX-License-Identifier: Apache-2.0
"""TorchRL and tensordict, on one thread."""
import tensordict
import torch
import torchrl
from tensordict import TensorDict
from torchrl.data import (LazyTensorStorage, SliceSampler, TensorDictPrioritizedReplayBuffer, TensorDictReplayBuffer)

from cases import WRITTEN_BEFORE_SLICES, arrays_of
from prepared import Missing, Prepared


def rows_of(row, count):
    rows = TensorDict({key: torch.from_numpy(value) for key, value in arrays_of(row, count).items()},
                      batch_size=[count])
    return rows


def filled(buffer, row, stored):
    rows = rows_of(row, min(stored, 10_000))
    for _ in range(stored // len(rows)):
        buffer.extend(rows)
    return buffer


class Participant:
    version = "%s, tensordict %s, torch %s" % (torchrl.__version__, tensordict.__version__, torch.__version__)

    def __init__(self):
        torch.set_num_threads(1)

    def sample(self, row, capacity, batch):
        return filled(TensorDictReplayBuffer(storage=LazyTensorStorage(capacity), batch_size=batch), row,
                      capacity).sample

    def extend(self, row, capacity, count):
        buffer = filled(TensorDictReplayBuffer(storage=LazyTensorStorage(capacity), batch_size=1), row, capacity)
        rows = rows_of(row, count)
        if count == 1:
            one = rows[0]
            return lambda: buffer.add(one)
        return lambda: buffer.extend(rows)

    def prioritized(self, capacity, batch):
        buffer = filled(TensorDictPrioritizedReplayBuffer(alpha=0.6, beta=0.4, storage=LazyTensorStorage(capacity),
                                                          batch_size=batch), "47B", capacity)
        priority = torch.rand(batch)
        return lambda: buffer.update_priority(buffer.sample()["index"], priority)

    def slices(self, stored, capacity, slices, length):
        sampler = SliceSampler(slice_len=length, end_key=("next", "done"), cache_values=True)
        buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(capacity), sampler=sampler,
                                        batch_size=slices * length)
        rows = rows_of("47B", WRITTEN_BEFORE_SLICES)
        for _ in range(stored // WRITTEN_BEFORE_SLICES):
            buffer.extend(rows)
        return Prepared(buffer.sample, before=lambda: buffer.extend(rows))

    def dict(self, operation):
        dicts = [TensorDict({key: torch.zeros(64, 4) for key in "abcdef"}, batch_size=[64]) for _ in range(64)]
        first = dicts[0]
        leaves = dict(first.items())
        return {"create": lambda: TensorDict(leaves, batch_size=[64]),
                "get": lambda: first.get("f"),
                "clone": first.clone,
                "stack": lambda: torch.stack(dicts)}[operation]

    def collect(self, lanes, time):
        try:
            import gymnasium  # noqa: F401: TorchRL's environment is Gymnasium's.
        except ImportError as error:
            raise Missing("gymnasium is not installed") from error
        from torchrl.collectors import Collector
        from torchrl.envs import GymEnv, SerialEnv
        collector = Collector(SerialEnv(lanes, lambda: GymEnv("CartPole-v1")), None, frames_per_batch=lanes * time,
                              total_frames=-1)
        batches = iter(collector)
        return lambda: next(batches)
