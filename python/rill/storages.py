# SPDX-License-Identifier: Apache-2.0
"""Where rows lie, by TorchRL's names."""
import os
import shutil
import tempfile
import weakref

from rill import _rill
from rill.errors import InvalidArgumentError, UnimplementedError
from rill.keys import key_text, key_texts


class Storage:
    """What a buffer stores rows in. Buffers may share one."""

    def __init__(self, make, options):
        self._options = options
        self._handle = make(options)

    @property
    def priority_key(self):
        """The leaf whose values are the priorities of rows that are written."""
        return self._options["priority_key"]

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

    lanes: parallel environments whose rows are kept apart; a batch is [lanes, time] then, and max_size is
    rounded up to a multiple of them.
    priority_key: a leaf that rows may have, float32 [1]. It is their priority in a PrioritizedSampler, from
    the write on.
    """

    def __init__(self, max_size, device="cpu", ndim=1, *, lanes=1, priority_key="td_error"):
        super().__init__(_rill.dense_storage, _options(type(self), max_size, device, ndim, lanes, priority_key))


class ListStorage(Storage):
    """In memory, each row by itself, with as many bytes as it has: for tokens, graphs, point clouds.

    ragged_keys: leaves whose sizes differ from row to row. Batches show them with zeros behind, and a bool
    mask at mask_key joined with their key.
    """

    def __init__(self, max_size, device="cpu", *, ragged_keys=(), mask_key="mask", lanes=1, priority_key="td_error"):
        options = _options(type(self), max_size, device, 1, lanes, priority_key)
        options.update(ragged_keys=key_texts(ragged_keys), mask_key=mask_key)
        super().__init__(_rill.list_storage, options)


class CompressedListStorage(Storage):
    """In memory, compressed with zstd: frames and masks take a fraction of their room.

    compression_level: up to 22; higher is smaller, and slower to write.
    """

    def __init__(self, max_size, compression_level=3, device="cpu", *, lanes=1, priority_key="td_error"):
        options = _options(type(self), max_size, device, 1, lanes, priority_key)
        super().__init__(_rill.compressed_storage, dict(options, compression_level=compression_level))


class LazyMemmapStorage(Storage):
    """In the files of a folder, which outlive the process unless it is a temporary one.

    scratch_dir: the folder, new or empty; without it a temporary one, which goes with the storage.
    existsok: opens what an earlier process left in scratch_dir.
    """

    def __init__(self, max_size, scratch_dir=None, device="cpu", ndim=1, existsok=False, *, lanes=1,
                 priority_key="td_error"):
        options = _options(type(self), max_size, device, ndim, lanes, priority_key)
        self._make_in(scratch_dir, existsok, _rill.memmap_storage, options)

    def _make_in(self, scratch_dir, existsok, make, options):
        is_temporary = scratch_dir is None
        if is_temporary:
            scratch_dir = os.path.join(tempfile.mkdtemp(prefix="rill_"), "rows")
        self.scratch_dir = os.fspath(scratch_dir)
        opens = existsok and os.path.isdir(self.scratch_dir) and bool(os.listdir(self.scratch_dir))
        try:
            Storage.__init__(self, make, dict(options, scratch_dir=self.scratch_dir, opens=opens))
        except BaseException:
            if is_temporary:
                _remove_own(os.path.dirname(self.scratch_dir), os.getpid())
            raise
        if is_temporary:
            self._cleanup = weakref.finalize(
                self, _remove_own, os.path.dirname(self.scratch_dir), os.getpid())

    def __reduce__(self):
        if hasattr(self, "_cleanup"):
            raise TypeError("%s: got one in a temporary folder, which ends with it; "
                            "name a scratch_dir to open it in another process" % type(self).__name__)
        given = dict(self._options)
        given.pop("opens")
        return _open_files, (type(self), dict(given, existsok=True))


class TieredStorage(LazyMemmapStorage):
    """All rows in files, as of a LazyMemmapStorage, and the newest of them in memory too.

    fast_size: rows of memory, a multiple of the lanes.
    fill: what is opened is copied up at once.
    """

    def __init__(self, max_size, fast_size, scratch_dir=None, device="cpu", existsok=False, *, fill=False, lanes=1,
                 priority_key="td_error"):
        options = _options(type(self), max_size, device, 1, lanes, priority_key)
        self._make_in(scratch_dir, existsok, _rill.tiered_storage, dict(options, fast_size=fast_size, fill=fill))


def _open_files(kind, options):
    return kind(**options)


def _remove_own(folder, process):
    # A forked child has the storage too, and not the folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _options(kind, max_size, device, ndim, lanes, priority_key):
    name = kind.__name__
    if str(device) != "cpu":
        raise UnimplementedError("%s: device: got %r, want \"cpu\": the wheel is built without devices; move batches, as "
                                 "those of a buffer with output=\"torch\" by tensor.to(device), or take the C++ core with "
                                 "--config=cuda" % (name, device))
    if ndim != 1 and (ndim != 2 or lanes == 1):
        raise InvalidArgumentError("%s: ndim: got %r for %r lanes; a storage of several lanes takes batches of "
                                   "[lanes, time]: say lanes=N" % (name, ndim, lanes))
    if not isinstance(max_size, int) or not isinstance(lanes, int) or lanes < 1:
        raise InvalidArgumentError("%s: max_size, lanes: got %r and %r, want integers, lanes at least 1" % (
            name, max_size, lanes))
    return {"max_size": -(-max_size // lanes) * lanes, "lanes": lanes, "priority_key": key_text(priority_key or "")}
