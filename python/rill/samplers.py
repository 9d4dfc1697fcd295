# SPDX-License-Identifier: Apache-2.0
"""Which rows a batch is made of, by TorchRL's names.

A sampler says what it is; the buffer that takes it makes it. One that two
buffers get is two.
"""
from rill import _rill
from rill.errors import InvalidArgumentError
from rill.units import Slice


class Sampler:
    """What a buffer draws by."""

    def make(self, unit=None, batch_size=0):
        """A new rill._rill.Sampler of these options, over such items (rill.units)."""
        raise NotImplementedError


class RandomSampler(Sampler):
    """Every row with the same probability, with replacement."""

    def make(self, unit=None, batch_size=0):
        return _rill.random_sampler(_made(unit, batch_size))


class SamplerWithoutReplacement(Sampler):
    """Every row once an epoch."""

    def __init__(self, drop_last=False, shuffle=True):
        self.drop_last = drop_last
        self.shuffle = shuffle

    def make(self, unit=None, batch_size=0):
        return _rill.sampler_without_replacement(
            self.drop_last, self.shuffle, _made(unit, batch_size))


class PrioritizedSampler(Sampler):
    """In proportion to priorities, with importance weights.

    max_capacity is the storage's, and need not be given.
    """

    def __init__(self, max_capacity=None, alpha=0.6, beta=0.4, eps=1e-8, *,
                 max_priority_within_buffer=False):
        del max_capacity
        self.alpha = alpha
        self.beta = beta
        self.eps = eps
        self.max_priority_within_buffer = max_priority_within_buffer

    def make(self, unit=None, batch_size=0):
        return _rill.prioritized_sampler(self.alpha, self.beta, self.eps,
                                         self.max_priority_within_buffer, _made(unit, batch_size))


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

    def __init__(self, max_capacity=None, alpha=0.6, beta=0.4, eps=1e-8, *, num_slices=None,
                 slice_len=None, max_priority_within_buffer=False, **options):
        super().__init__(max_capacity, alpha, beta, eps,
                         max_priority_within_buffer=max_priority_within_buffer)
        self.unit = Slice(slice_len, num_slices, **options)


def _made(unit, batch_size):
    return None if unit is None else unit.make(batch_size)
