# SPDX-License-Identifier: Apache-2.0
"""Replay buffers, by TorchRL's names."""
import math
import os

import numpy as np

from rill import _rill
from rill.data import as_arrays, as_tensordict, as_torch
from rill.endings import ended_at_exit
from rill.errors import InvalidArgumentError
from rill.keys import key_text, key_texts
from rill.samplers import ConsumingSampler, PrioritizedSampler, RandomSampler
from rill.storages import LazyTensorStorage
from rill.transforms import as_transform, as_transforms
from rill.writers import RemovingWriter, RoundRobinWriter


class StoredTrajectory:
    """Stored steps of one episode, oldest first: what ReplayBuffer.query() finds.

    rows: a batch [steps]. slots: of the rows. id: of the rows' trajectory ids, or None. is_closed: its last step ends
    it. is_cut: its first steps are gone, or may be.
    """

    def __init__(self, rows, slots, lane, id, is_closed, is_cut):
        self.rows, self.slots, self.lane, self.id = rows, slots, lane, id
        self.is_closed, self.is_cut = is_closed, is_cut

    def __len__(self):
        return len(self.slots)

    def __getitem__(self, key):
        """The leaf of this key."""
        value = self.rows
        for part in key_text(key).split("/"):
            value = value[part]
        return value


class ReplayBuffer:
    """Experience replay: a storage that remembers and a sampler that chooses.

    storage, sampler: by default LazyTensorStorage(1_000) and RandomSampler().
    batch_size: of sample() without a number.
    writer: which rows are kept (rill.writers), by default RoundRobinWriter().
    consume_after_n_samples: a row is drawn so often at most, then a new one takes its place; ConsumingSampler
    and RemovingWriter, in place of a sampler and a writer.
    sample_unit: what a drawn row becomes (rill.units): n-step returns, sequences, ...; without it a row.
    transform: one or a list of rill.transforms, or functions of samples.
    prefetch: how many batches are made ahead, by threads; needs batch_size.
    seed: the same seed and order of calls give the same batches; without it, another one each time.
    rate_limiter: a RateLimiter that extend, add and sample wait for, rate_limit_timeout seconds at most.
    output: "numpy" gives dicts of arrays, "torch" dicts of tensors, "tensordict" TensorDicts.

    Thread-safe. The interpreter's lock is not held while rows are copied, or waited for.
    """

    def __init__(self, *, storage=None, sampler=None, writer=None, sample_unit=None, transform=None,
                 batch_size=None, prefetch=0, seed=None, output="numpy", prefetch_threads=1, rate_limiter=None,
                 rate_limit_timeout=math.inf, consume_after_n_samples=None, _directory=None):
        if consume_after_n_samples is not None:
            if sampler is not None or writer is not None:
                raise InvalidArgumentError("ReplayBuffer: consume_after_n_samples: got a sampler or a writer beside "
                                           "it, want neither: it is ConsumingSampler and RemovingWriter")
            sampler = ConsumingSampler(consume_after_n_samples)
            writer = RemovingWriter(used_up_first=True)
        self._storage = LazyTensorStorage(1_000) if storage is None else storage
        self._sampler = RandomSampler() if sampler is None else sampler
        self._writer = RoundRobinWriter() if writer is None else writer
        self._unit = sample_unit
        self._transforms = as_transforms(transform)
        if output not in _CONVERT:
            raise InvalidArgumentError("ReplayBuffer: output: got %r, want one of %s" % (output, ", ".join(_CONVERT)))
        self._convert = _CONVERT[output]
        self.batch_size = batch_size
        self._options = (batch_size or 0, int.from_bytes(os.urandom(8), "little") if seed is None else seed,
                         prefetch or 0, prefetch_threads, rate_limiter and rate_limiter._handle, rate_limit_timeout)
        self._rate_limiter = rate_limiter
        self._buffer = self._make(_directory)
        _open.add(self)

    def _make(self, directory=None):
        sampler = self._sampler.make(self._unit, self._options[0])
        return _rill.Buffer(self._storage._handle, sampler, self._writer.make(sampler), *self._options, [each.make() for each in self._transforms], directory)

    def extend(self, data):
        """Appends rows: a dict of arrays [time, ...]. Returns their slots, as an array.

        Of more rows than there is space for only the last are kept, whose slots these are. A list of rows is
        added row by row, as their sizes may differ (ListStorage).
        """
        if isinstance(data, list) and data and all(hasattr(row, "keys") for row in data):
            return np.array([self.add(row) for row in data], np.int64)
        return self._buffer.extend(data if type(data) is dict else as_arrays(data))

    def add(self, data):
        """Appends one row: a dict of arrays without the leading dimension. Returns its slot."""
        return self._buffer.add(data if type(data) is dict else as_arrays(data))

    def sample(self, batch_size=None, return_info=False, out=None):
        """A batch; with return_info (batch, what tells its rows).

        out: a batch whose memory serves again.
        """
        if batch_size is None:
            batch_size = self.batch_size
            if batch_size is None:
                raise InvalidArgumentError("ReplayBuffer::sample: batch_size: got none, want a number here "
                                           "or in the buffer")
        if out is not None:
            self._buffer.sample_into(batch_size, out if type(out) is dict else as_arrays(out))
            return (out, _info(out)) if return_info else out
        batch = self._buffer.sample(batch_size)
        if self._convert is not None:
            batch = self._convert(batch)
        return (batch, _info(batch)) if return_info else batch

    def __getitem__(self, index):
        """The stored rows of these slots, an array or a number; not through the transforms.

        A slice is one of all rows that are there, lane by lane.
        """
        if isinstance(index, slice):
            index = self._storage._handle.live_slots()[index]
        return self._buffer.read(list(index) if isinstance(index, range) else index)

    def __getitems__(self, index):
        # What torch's DataLoader calls, with numbers below len(): slots, but where lanes have space left.
        storage = self._storage._handle
        if storage.lanes > 1 and len(storage) < storage.capacity:
            index = storage.live_slots()[index]
        return self[index]

    def query(self, predicate=None, *, keys=None, min_rows=1, max_rows=None, only_whole=False, limit=None):
        """The stored trajectories of which predicate(trajectory) is true, as a list; all without one.

        keys: leaves to read, all without them. only_whole: from reset to end. limit: so many at most. Rows are as they
        are stored, not through the transforms. predicate may call the buffer, and keep what it gets.
        """
        convert = self._convert or (lambda rows: rows)

        def made(rows, *fields):
            return StoredTrajectory(convert(rows), *fields)

        where = None if predicate is None else lambda *fields: predicate(made(*fields))
        return [made(*fields) for fields in self._buffer.query(where, {
            "keys": key_texts(keys), "min_rows": min_rows, "max_rows": max_rows, "only_whole": bool(only_whole),
            "limit": limit})]

    def iter_trajectories(self, **options):
        """The stored trajectories one after the other; options as query()'s."""
        return iter(self.query(**options))

    def update_priority(self, index, priority):
        """New priorities of rows: of a batch that was sampled, or of its "index"."""
        if hasattr(index, "keys"):
            self._buffer.update_priority(index["index"], index["index_generation"], priority)
        else:
            self._buffer.update_priority(index, None, priority)

    def append_transform(self, transform):
        """Adds one behind the others, for what is written and sampled from here on."""
        self.insert_transform(len(self._transforms), transform)

    def insert_transform(self, index, transform):
        """The same at this place among them."""
        transform = as_transform(transform)
        if not 0 <= index <= len(self._transforms):
            raise InvalidArgumentError("ReplayBuffer::insert_transform: index: got %r, want [0, %d]" %
                                       (index, len(self._transforms)))
        self._buffer.insert_transform(index, transform.make())
        self._transforms.insert(index, transform)

    def empty(self):
        """Forgets all rows."""
        self._buffer.clear()

    def dumps(self, path):
        """Saves rows, sampler and random state to a folder, which is replaced at once or not at all."""
        self._buffer.save(os.fspath(path))

    def loads(self, path):
        """Goes on from what dumps() wrote. The buffer is empty."""
        self._buffer.close()
        try:
            self._buffer = self._make(os.fspath(path))
        except BaseException:
            self._buffer = self._make()
            raise

    save = dump = dumps
    load = loads

    def close(self):
        """Ends threads and waiting calls, and lets the storage go."""
        self._buffer.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __len__(self):
        return len(self._buffer)

    def __iter__(self):
        while True:
            yield self.sample()

    @property
    def storage(self):
        return self._storage

    @property
    def sampler(self):
        return self._sampler

    @property
    def writer(self):
        return self._writer

    @property
    def alpha(self):
        """The exponent of priorities, of a PrioritizedSampler."""
        return self._buffer.alpha

    @alpha.setter
    def alpha(self, value):
        self._buffer.alpha = value

    @property
    def beta(self):
        """The exponent of importance weights, of a PrioritizedSampler."""
        return self._buffer.beta

    @beta.setter
    def beta(self, value):
        self._buffer.beta = value

    def __reduce__(self):
        raise TypeError("%s: does not cross to another process; share a LazyMemmapStorage of a named "
                        "scratch_dir, or use dumps() and loads()" % type(self).__name__)


class PrioritizedReplayBuffer(ReplayBuffer):
    """A buffer whose rows are drawn in proportion to their priorities."""

    def __init__(self, *, alpha, beta, eps=1e-8, reduction="max", storage=None, **options):
        super().__init__(storage=storage, sampler=PrioritizedSampler(None, alpha, beta, eps, reduction), **options)


class TensorDictReplayBuffer(ReplayBuffer):
    """A buffer of TensorDicts, which takes priorities by their key.

    priority_key: the leaf that update_tensordict_priority() reads, and extend() where rows have it. It is the
    storage's.
    """

    def __init__(self, *, priority_key="td_error", output="tensordict", storage=None, **options):
        if storage is None:
            storage = LazyTensorStorage(1_000, priority_key=priority_key)
        if storage.priority_key != key_text(priority_key):
            raise InvalidArgumentError("%s: priority_key: got %r for a storage of %r, want one; say %s(..., "
                                       "priority_key=%r)" % (type(self).__name__, priority_key, storage.priority_key,
                                                             type(storage).__name__, priority_key))
        super().__init__(storage=storage, output=output, **options)
        self.priority_key = priority_key

    def update_tensordict_priority(self, data):
        """New priorities, of the leaf `priority_key` of a batch that was sampled."""
        self.update_priority(data, data[self.priority_key])


class TensorDictPrioritizedReplayBuffer(TensorDictReplayBuffer):
    """A PrioritizedReplayBuffer of TensorDicts."""

    def __init__(self, *, alpha, beta, eps=1e-8, reduction="max", **options):
        super().__init__(sampler=PrioritizedSampler(None, alpha, beta, eps, reduction), **options)


def _end(buffer):
    """Its threads: one in a transform would not survive the interpreter's end."""
    buffer.close()
    return buffer._buffer


_open = ended_at_exit(_end)


_CONVERT = {"numpy": None, "torch": as_torch, "tensordict": as_tensordict}
_INFO = ("index", "index_generation", "priority_weight")


def _info(batch):
    return {key: batch[key] for key in _INFO if key in batch.keys()}
