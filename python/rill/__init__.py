# SPDX-License-Identifier: Apache-2.0
"""Rill: the data side of reinforcement learning, in C++, for Python.

    import numpy as np
    import rill

    buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(100_000), batch_size=256)
    buffer.extend({"observation": np.zeros((8, 4), np.float32),
                   "next": {"reward": np.ones((8, 1), np.float32)}})
    batch = buffer.sample()  # {"observation": ..., "next": {...}, "index": ...}

Names and defaults are TorchRL's; docs/python.md lists what differs.
"""
from rill import endings  # noqa: F401  First: see there.
from rill import envs, estimators, specs, transforms  # noqa: F401
from rill.channel import Channel  # noqa: F401
from rill.collectors import (  # noqa: F401
    Collector, MultiAsyncCollector, MultiaSyncDataCollector, MultiSyncCollector, MultiSyncDataCollector,
    SyncDataCollector)
from rill.ensembles import (  # noqa: F401
    OfflineToOnlineReplayBuffer, ReplayBufferEnsemble, SamplerEnsemble, StorageEnsemble, WriterEnsemble)
from rill.errors import *  # noqa: F401,F403
from rill.errors import Error  # noqa: F401
from rill.rate_limiter import RateLimiter  # noqa: F401
from rill.readers import MemmapReader  # noqa: F401
from rill.replay_buffers import (  # noqa: F401
    PrioritizedReplayBuffer, ReplayBuffer, TensorDictPrioritizedReplayBuffer, TensorDictReplayBuffer)
from rill.samplers import (  # noqa: F401
    ConsumingSampler, MixtureSampler, PrioritizedSampler, PrioritizedSliceSampler, RandomSampler, RecentSampler,
    SamplerWithoutReplacement, SliceSampler, SliceSamplerWithoutReplacement, StalenessAwareSampler)
from rill.schedulers import LinearScheduler, StepScheduler  # noqa: F401
from rill.storages import (  # noqa: F401
    CompressedListStorage, LazyMemmapStorage, LazyTensorStorage, ListStorage, TieredStorage)
from rill.units import FrameStack, Hindsight, NStep, Sequence, Slice, Trajectory, Transition  # noqa: F401
from rill.writers import (  # noqa: F401
    ImmutableDatasetWriter, RemovingWriter, RoundRobinWriter, TensorDictMaxValueWriter, TensorDictRoundRobinWriter)

__version__ = "0.3.0"
