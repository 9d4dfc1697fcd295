# SPDX-License-Identifier: Apache-2.0
"""Which rows a batch is made of, by TorchRL's names.

A sampler says what it is; the buffer that takes it makes it. One that two
buffers get is two.
"""
import weakref

from rill import _rill
from rill.errors import InvalidArgumentError
from rill.units import Slice


class Sampler:
    """What a buffer draws by."""

    def make(self, unit=None, batch_size=0):
        """A new rill._rill.Sampler of these options, over such items (rill.units)."""
        return _rill.sampler(self._selector(), None if unit is None else unit.make(batch_size))

    def _selector(self):
        """A new rill._rill.Selector of these options."""
        raise NotImplementedError


class RandomSampler(Sampler):
    """Every row with the same probability, with replacement."""

    def _selector(self):
        return _rill.random_selector()


class RecentSampler(Sampler):
    """Newer rows more often, with replacement: the younger of two that are drawn.

    Of N rows of one lane the newest has twice the probability of a RandomSampler, the oldest 1 / N of it. Rows have
    an end flag, as ("next", "done"), or a trajectory's number.
    """

    def _selector(self):
        return _rill.recent_selector()


class SamplerWithoutReplacement(Sampler):
    """Every row once an epoch."""

    def __init__(self, drop_last=False, shuffle=True):
        self.drop_last = drop_last
        self.shuffle = shuffle

    def _selector(self):
        return _rill.without_replacement_selector(self.drop_last, self.shuffle)


class PrioritizedSampler(Sampler):
    """In proportion to priorities, with importance weights.

    max_capacity is the storage's, and need not be given. A new row has the priority that its leaf
    priority_key gives (rill.LazyTensorStorage), else the largest so far. max_priority_within_buffer: the
    largest of the rows that are stored, for all new rows.
    reduction: how several priorities of a row become one: "max", "min", "mean" or "median".
    """

    def __init__(self, max_capacity=None, alpha=0.6, beta=0.4, eps=1e-8, reduction="max", *,
                 max_priority_within_buffer=False):
        del max_capacity
        self.reduction = reduction
        self.alpha = alpha
        self.beta = beta
        self.eps = eps
        self.max_priority_within_buffer = max_priority_within_buffer

    def _selector(self):
        return _rill.prioritized_selector(self.alpha, self.beta, self.eps, self.reduction,
                                          self.max_priority_within_buffer)


class ConsumingSampler(Sampler):
    """Every row max_sample_count times at most, until another is written in its place.

    With RemovingWriter(used_up_first=True) new rows take the places of those that are used up;
    consume_after_n_samples= of a buffer is both.
    """

    def __init__(self, max_sample_count=1):
        self.max_sample_count = max_sample_count

    def _selector(self):
        return _rill.consuming_selector(self.max_sample_count)


class StalenessAwareSampler(Sampler):
    """Rows of newer policies more often, by their leaf "policy_version", int64 [1].

    staleness is the highest version that was written, minus the row's. max_staleness: older rows are not
    drawn; -1: all are. staleness_weight_fn(staleness) is in proportion to the probability; 1 / (staleness + 1)
    without one. It must not call the buffer.
    """

    def __init__(self, max_staleness=-1, staleness_weight_fn=None, version_key="policy_version"):
        if version_key != "policy_version":
            raise InvalidArgumentError("StalenessAwareSampler: version_key: got %r, want \"policy_version\"; "
                                       "rename the leaf" % (version_key,))
        self.max_staleness = max_staleness
        self.staleness_weight_fn = staleness_weight_fn

    def _selector(self):
        weigh = None
        if self.staleness_weight_fn is not None:
            # As of a function transform: C++ holds no function itself.
            weak = weakref.proxy(self)
            weigh = lambda staleness: weak.staleness_weight_fn(staleness)  # noqa: E731
        return _rill.staleness_selector(self.max_staleness, weigh)


class MixtureSampler(Sampler):
    """Parts of a batch by samplers of their own: half of it at random, half by priority.

    p: their shares of a batch, all alike without. A part has its share in every batch, to the next row; one whose
    share is below a row may never have one. "priority_weight" is 1 in the parts that have none.
    """

    def __init__(self, *samplers, p=None):
        self.samplers = samplers
        self.p = [1.0] * len(samplers) if p is None else list(p)
        for sampler in samplers:
            if not isinstance(sampler, Sampler) or isinstance(sampler, _OverSlices):
                raise InvalidArgumentError("MixtureSampler: got a %s, want samplers without a unit of their own; "
                                           "sample_unit= of the buffer is that of all parts" % type(sampler).__name__)
        if len(self.p) != len(samplers):
            raise InvalidArgumentError("MixtureSampler: p: got %d shares for %d samplers, want as many" %
                                       (len(self.p), len(samplers)))

    def _selector(self):
        return _rill.mixture_selector([sampler._selector() for sampler in self.samplers],
                                      [float(share) for share in self.p])


class _OverSlices:
    """A sampler of slices: its own unit."""

    def make(self, unit=None, batch_size=0):
        if unit is not None:
            raise InvalidArgumentError("%s: sample_unit: got one, want none: a sampler of slices has its own; "
                                       "give it n_step or frames" % type(self).__name__)
        return super().make(self.unit, batch_size)


class SliceSampler(_OverSlices, RandomSampler):
    """Slices of consecutive rows of one trajectory; the options are those of rill.Slice."""

    def __init__(self, *, num_slices=None, slice_len=None, **options):
        self.unit = Slice(slice_len, num_slices, **options)


class SliceSamplerWithoutReplacement(_OverSlices, SamplerWithoutReplacement):
    """One slice of each trajectory an epoch."""

    def __init__(self, *, num_slices=None, slice_len=None, drop_last=False, shuffle=True, **options):
        super().__init__(drop_last, shuffle)
        self.unit = Slice(slice_len, num_slices, starts="one_per_trajectory", **options)


class PrioritizedSliceSampler(_OverSlices, PrioritizedSampler):
    """Slices whose first row is drawn in proportion to its priority."""

    def __init__(self, max_capacity=None, alpha=0.6, beta=0.4, eps=1e-8, reduction="max", *, num_slices=None,
                 slice_len=None, max_priority_within_buffer=False, **options):
        super().__init__(max_capacity, alpha, beta, eps, reduction,
                         max_priority_within_buffer=max_priority_within_buffer)
        self.unit = Slice(slice_len, num_slices, **options)
