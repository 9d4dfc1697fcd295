# SPDX-License-Identifier: Apache-2.0
"""What holds writers and learners to a ratio."""
import math

from rill import _rill


class RateLimiter:
    """Calls of a buffer that has it wait for their turn, as with Reverb's. Buffers may share one.

    With diff = inserts * samples_per_insert - samples, in rows: an insert waits where diff would be above
    max_diff after it, a sample where it would be below min_diff, or where fewer than min_size_to_sample
    rows were inserted.
    """

    def __init__(self, samples_per_insert=1.0, *, min_size_to_sample=1, min_diff=-math.inf, max_diff=math.inf):
        self._handle = _rill.rate_limiter(samples_per_insert, min_size_to_sample, min_diff, max_diff)

    @classmethod
    def min_size(cls, rows):
        """Samples wait for so many rows, and inserts for nothing."""
        return cls(min_size_to_sample=rows)

    @property
    def inserts(self):
        """Rows that were inserted."""
        return self._handle.inserts

    @property
    def samples(self):
        """Rows that were sampled."""
        return self._handle.samples

    def close(self):
        """Nobody waits any more: calls that would are cancelled."""
        self._handle.close()
