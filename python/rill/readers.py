# SPDX-License-Identifier: Apache-2.0
"""The rows of a LazyMemmapStorage, while another process writes them."""
import os

from rill import _rill


class MemmapReader:
    """Reads rows of the folder of a LazyMemmapStorage whose owner may be another process.

    reader[slots] gives rows as a dict of arrays, whole ones, as they are at the
    call; reader[:] those that are there, lane by lane. It is a data set for torch's DataLoader, and pickled it opens the
    folder again.
    """

    def __init__(self, scratch_dir):
        self.scratch_dir = os.fspath(scratch_dir)
        self._handle = _rill.MemmapReader(self.scratch_dir)

    def __len__(self):
        """The rows that are there now."""
        return len(self._handle)

    @property
    def max_size(self):
        return self._handle.capacity

    def __getitem__(self, index):
        if isinstance(index, slice):
            index = self._handle.live_slots()[index]
        return self._handle.read(index)

    def __getitems__(self, index):
        # What torch's DataLoader calls, with numbers below len(): slots, but where lanes have space left.
        if self._handle.lanes > 1 and len(self) < self.max_size:
            index = self._handle.live_slots()[index]
        return self[index]

    def __reduce__(self):
        return MemmapReader, (self.scratch_dir,)
