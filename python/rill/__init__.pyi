# SPDX-License-Identifier: Apache-2.0
from rill import envs as envs, estimators as estimators, specs as specs, transforms as transforms
from rill.channel import Channel as Channel
from rill.collectors import Collector as Collector, SyncDataCollector as SyncDataCollector
from rill.errors import *
from rill.errors import Error as Error
from rill.rate_limiter import RateLimiter as RateLimiter
from rill.readers import MemmapReader as MemmapReader
from rill.replay_buffers import (
    PrioritizedReplayBuffer as PrioritizedReplayBuffer,
    ReplayBuffer as ReplayBuffer,
    TensorDictReplayBuffer as TensorDictReplayBuffer,
)
from rill.samplers import (
    PrioritizedSampler as PrioritizedSampler,
    PrioritizedSliceSampler as PrioritizedSliceSampler,
    RandomSampler as RandomSampler,
    SamplerWithoutReplacement as SamplerWithoutReplacement,
    SliceSampler as SliceSampler,
    SliceSamplerWithoutReplacement as SliceSamplerWithoutReplacement,
)
from rill.storages import LazyMemmapStorage as LazyMemmapStorage, LazyTensorStorage as LazyTensorStorage
from rill.units import (
    FrameStack as FrameStack,
    Hindsight as Hindsight,
    NStep as NStep,
    Sequence as Sequence,
    Slice as Slice,
    Trajectory as Trajectory,
    Transition as Transition,
)

__version__: str
