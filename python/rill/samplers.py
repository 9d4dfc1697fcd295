# SPDX-License-Identifier: Apache-2.0
"""Which rows a batch is made of, by TorchRL's names.

A sampler says what it is; the buffer that takes it makes it. One that two
buffers get is two.
"""
from rill import _rill


class Sampler:
    """What a buffer draws by."""

    def make(self):
        """A new rill._rill.Sampler of these options."""
        raise NotImplementedError


class RandomSampler(Sampler):
    """Every row with the same probability, with replacement."""

    def make(self):
        return _rill.random_sampler()


class SamplerWithoutReplacement(Sampler):
    """Every row once an epoch."""

    def __init__(self, drop_last=False, shuffle=True):
        self.drop_last = drop_last
        self.shuffle = shuffle

    def make(self):
        return _rill.sampler_without_replacement(self.drop_last, self.shuffle)


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

    def make(self):
        return _rill.prioritized_sampler(self.alpha, self.beta, self.eps,
                                         self.max_priority_within_buffer)
