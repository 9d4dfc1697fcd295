# SPDX-License-Identifier: Apache-2.0
"""Where rows lie, by TorchRL's names."""
import os
import shutil
import tempfile
import weakref

from rill import _rill
from rill.errors import InvalidArgumentError, UnimplementedError


class Storage:
    """What a buffer stores rows in. Buffers may share one."""

    def __init__(self, handle):
        self._handle = handle

    @property
    def max_size(self):
        return self._handle.capacity

    def __len__(self):
        return len(self._handle)

    def __reduce__(self):
        raise TypeError(
            "%s: rows in this process's memory do not cross to another one; "
            "use LazyMemmapStorage, or a buffer's dumps() and loads()" % type(self).__name__)


class LazyTensorStorage(Storage):
    """In memory, allocated at the first write.

    lanes: parallel environments whose rows are kept apart; a batch is [lanes, time] then.
    """

    def __init__(self, max_size, device="cpu", ndim=1, *, lanes=1):
        _check_place(type(self), device, ndim, lanes)
        super().__init__(_rill.dense_storage(max_size, lanes))


class LazyMemmapStorage(Storage):
    """In the files of a folder, which outlive the process unless it is a temporary one.

    scratch_dir: the folder, new or empty; without it a temporary one, which goes with the storage.
    existsok: opens what an earlier process left in scratch_dir.
    """

    def __init__(self, max_size, scratch_dir=None, device="cpu", ndim=1, existsok=False, *, lanes=1):
        _check_place(type(self), device, ndim, lanes)
        is_temporary = scratch_dir is None
        if is_temporary:
            scratch_dir = os.path.join(tempfile.mkdtemp(prefix="rill_"), "rows")
        self.scratch_dir = os.fspath(scratch_dir)
        opens = existsok and os.path.isdir(self.scratch_dir) and bool(os.listdir(self.scratch_dir))
        super().__init__(_rill.memmap_storage(self.scratch_dir, max_size, lanes, opens))
        if is_temporary:
            self._cleanup = weakref.finalize(
                self, _remove_own, os.path.dirname(self.scratch_dir), os.getpid())

    def __reduce__(self):
        if hasattr(self, "_cleanup"):
            raise TypeError("LazyMemmapStorage: got one in a temporary folder, which ends with it; "
                            "name a scratch_dir to open it in another process")
        return _open_memmap, (self.max_size, self.scratch_dir, self._handle.lanes)


def _open_memmap(max_size, scratch_dir, lanes):
    return LazyMemmapStorage(max_size, scratch_dir, existsok=True, lanes=lanes)


def _remove_own(folder, process):
    # A forked child has the storage too, and not the folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _check_place(kind, device, ndim, lanes):
    if str(device) != "cpu":
        raise UnimplementedError("%s: device: got %r, want \"cpu\"" % (kind.__name__, device))
    if ndim != (1 if lanes == 1 else 2) and ndim != 1:
        raise InvalidArgumentError("%s: ndim: got %d for %d lanes; a storage of several lanes takes "
                                   "batches of [lanes, time]: say lanes=N" % (kind.__name__, ndim, lanes))
