# SPDX-License-Identifier: Apache-2.0
"""Which rows a storage takes, and in whose place, by TorchRL's names.

A writer says what it is; the buffer that takes it makes it. One that two
buffers get is two.
"""
from rill import _rill
from rill.keys import key_text


class Writer:
    """What a buffer writes by."""

    def make(self, sampler):
        """A new rill._rill.Writer of these options, for a buffer with this rill._rill.Sampler."""
        raise NotImplementedError


class RoundRobinWriter(Writer):
    """Every row, in the place of the oldest."""

    def make(self, sampler):
        del sampler
        return _rill.round_robin_writer()


class TensorDictRoundRobinWriter(RoundRobinWriter):
    """The same: samples have "index", and rows need not."""


class ImmutableDatasetWriter(Writer):
    """No row: every write is refused."""

    def make(self, sampler):
        del sampler
        return _rill.immutable_writer()


class TensorDictMaxValueWriter(Writer):
    """The k rows of the highest rank that were ever offered; k is the storage's size without one.

    rank_key: the leaf that ranks, ("next", "reward") without one. reduction: how several values of a row
    become one: "sum", "mean", "median", "min" or "max". extend() gives the slots of rows that were kept.
    """

    def __init__(self, rank_key=None, reduction="sum", *, k=None):
        self._options = {"rank_key": key_text(("next", "reward") if rank_key is None else rank_key),
                         "reduction": reduction, "k": k}

    def make(self, sampler):
        del sampler
        return _rill.top_k_writer(self._options)


class RemovingWriter(Writer):
    """Every row, in the place of one that the remover names where the storage is full.

    remover: "fifo", "lifo", "uniform", or "min_heap" and "max_heap" by the priorities that rows came with.
    used_up_first: rows that a ConsumingSampler has used up go before others, full or not.
    """

    def __init__(self, remover="fifo", *, used_up_first=False, seed=0):
        self._options = {"remover": remover, "seed": seed}
        self._used_up_first = used_up_first

    def make(self, sampler):
        return _rill.removing_writer(self._options, sampler if self._used_up_first else None)
