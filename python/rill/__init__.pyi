# SPDX-License-Identifier: Apache-2.0
from rill import endings as endings
from rill import envs as envs, estimators as estimators, specs as specs, transforms as transforms
from rill.channel import Channel as Channel
from rill.collectors import (
    Collector as Collector,
    MultiAsyncCollector as MultiAsyncCollector,
    MultiaSyncDataCollector as MultiaSyncDataCollector,
    MultiSyncCollector as MultiSyncCollector,
    MultiSyncDataCollector as MultiSyncDataCollector,
    SyncDataCollector as SyncDataCollector,
)
from rill.ensembles import (
    OfflineToOnlineReplayBuffer as OfflineToOnlineReplayBuffer,
    ReplayBufferEnsemble as ReplayBufferEnsemble,
    SamplerEnsemble as SamplerEnsemble,
    StorageEnsemble as StorageEnsemble,
    WriterEnsemble as WriterEnsemble,
)
from rill.errors import *
from rill.errors import Error as Error
from rill.rate_limiter import RateLimiter as RateLimiter
from rill.readers import MemmapReader as MemmapReader
from rill.replay_buffers import (
    PrioritizedReplayBuffer as PrioritizedReplayBuffer,
    ReplayBuffer as ReplayBuffer,
    TensorDictPrioritizedReplayBuffer as TensorDictPrioritizedReplayBuffer,
    TensorDictReplayBuffer as TensorDictReplayBuffer,
)
from rill.samplers import (
    ConsumingSampler as ConsumingSampler,
    MixtureSampler as MixtureSampler,
    PrioritizedSampler as PrioritizedSampler,
    PrioritizedSliceSampler as PrioritizedSliceSampler,
    RandomSampler as RandomSampler,
    RecentSampler as RecentSampler,
    SamplerWithoutReplacement as SamplerWithoutReplacement,
    SliceSampler as SliceSampler,
    SliceSamplerWithoutReplacement as SliceSamplerWithoutReplacement,
    StalenessAwareSampler as StalenessAwareSampler,
)
from rill.schedulers import LinearScheduler as LinearScheduler, StepScheduler as StepScheduler
from rill.storages import (
    CompressedListStorage as CompressedListStorage,
    LazyMemmapStorage as LazyMemmapStorage,
    LazyTensorStorage as LazyTensorStorage,
    ListStorage as ListStorage,
    TieredStorage as TieredStorage,
)
from rill.units import (
    FrameStack as FrameStack,
    Hindsight as Hindsight,
    NStep as NStep,
    Sequence as Sequence,
    Slice as Slice,
    Trajectory as Trajectory,
    Transition as Transition,
)
from rill.writers import (
    ImmutableDatasetWriter as ImmutableDatasetWriter,
    RemovingWriter as RemovingWriter,
    RoundRobinWriter as RoundRobinWriter,
    TensorDictMaxValueWriter as TensorDictMaxValueWriter,
    TensorDictRoundRobinWriter as TensorDictRoundRobinWriter,
)

__version__: str
