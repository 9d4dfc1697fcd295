# SPDX-License-Identifier: Apache-2.0
"""Batches of several replay buffers, by TorchRL's names."""

import math
import os
import threading

import numpy as np

from rill import _rill
from rill.endings import ended_at_exit
from rill.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from rill.policies import converter
from rill.replay_buffers import ReplayBuffer, _info
from rill.transforms import as_transforms


class StorageEnsemble:
    """The storages of a ReplayBufferEnsemble's members, in their order."""

    def __init__(self, *storages):
        self.parts = storages


class SamplerEnsemble:
    """The samplers of its members, and how a batch is dealt among them: as of ReplayBufferEnsemble."""

    def __init__(self, *samplers, p=None, sample_from_all=False, num_buffer_sampled=None):
        self.parts = samplers
        self.dealt = {"p": p, "sample_from_all": sample_from_all, "num_buffer_sampled": num_buffer_sampled}


class WriterEnsemble:
    """The writers of its members."""

    def __init__(self, *writers):
        self.parts = writers


class ReplayBufferEnsemble:
    """Batches that are part of one buffer, part of another. Rows are written to the members.

    buffers: the members, each with its own storage, sampler, unit and transforms. Or `storages`, `samplers` and
        `writers`, ensembles of parts, of which it makes them.
    p: the members' shares of a batch, all alike without. They are exact, not drawn.
    sample_from_all: batches are [members, batch_size / members].
    num_buffer_sampled: batches are [this, batch_size / this], of as many members, which p draws.
    transform: as ReplayBuffer's, behind what those of the members do.

    All leaves but weights must be the same in all members. "buffer_ids" tells whose a row is. Thread-safe.
    """

    def __init__(self, *buffers, storages=None, samplers=None, writers=None, transform=None, batch_size=None, p=None,
                 sample_from_all=False, num_buffer_sampled=None, seed=None, output="numpy",
                 rate_limit_timeout=math.inf):
        name = type(self).__name__
        if (not buffers) == (storages is None):
            raise InvalidArgumentError("%s: got %d buffers%s, want either buffers or storages=" %
                                       (name, len(buffers), "" if storages is None else " beside storages"))
        if storages is not None:
            buffers = _made(storages, samplers, writers)
            if samplers is not None:
                given = samplers.dealt
                p = given["p"] if p is None else p
                sample_from_all = sample_from_all or given["sample_from_all"]
                num_buffer_sampled = num_buffer_sampled or given["num_buffer_sampled"]
        for buffer in buffers:
            if not isinstance(buffer, ReplayBuffer):
                raise InvalidArgumentError("%s: got a %s, want rill.ReplayBuffers" % (name, type(buffer).__name__))
        if p is not None and len(p) != len(buffers):
            raise InvalidArgumentError("%s: p: got %d shares for %d buffers, want as many" %
                                       (name, len(p), len(buffers)))
        if sample_from_all and num_buffer_sampled not in (None, len(buffers)):
            raise InvalidArgumentError("%s: num_buffer_sampled: got %r beside sample_from_all, want one of them" %
                                       (name, num_buffer_sampled))
        self._buffers = list(buffers)
        self._convert = converter(output, name)
        self._rank = 2 if sample_from_all or num_buffer_sampled else 1
        self.batch_size = batch_size
        self._transforms = as_transforms(transform)
        self._options = ([float(share) for share in p or [1] * len(buffers)], batch_size or 0, self._rank == 2,
                         0 if sample_from_all else num_buffer_sampled or 0)
        self._seed = int.from_bytes(os.urandom(8), "little") if seed is None else seed
        self._timeout = rate_limit_timeout
        self._ensemble = self._make()
        _open.add(self)

    def _make(self):
        return _rill.Ensemble([buffer._buffer for buffer in self._buffers], *self._options,
                              [each.make() for each in self._transforms], self._seed, self._timeout)

    def sample(self, batch_size=None, return_info=False):
        """A batch; with return_info (batch, what tells its rows)."""
        if batch_size is None:
            batch_size = self.batch_size
            if batch_size is None:
                raise InvalidArgumentError("%s::sample: batch_size: got none, want a number here or in the ensemble" %
                                           type(self).__name__)
        batch = self._ensemble.sample(batch_size)
        if self._convert is not None:
            batch = self._convert(batch, self._rank)
        return (batch, _info(batch)) if return_info else batch

    def update_priority(self, batch, priority):
        """New priorities of the rows of a batch, each to its member: one a row, or one for all."""
        ids, index, generation = (np.asarray(batch[key]).ravel()
                                  for key in ("buffer_ids", "index", "index_generation"))
        priority = np.asarray(priority, np.float32)
        priority = np.broadcast_to(priority, ids.shape) if priority.ndim == 0 else priority.reshape(len(ids), -1)
        for i, buffer in enumerate(self._buffers):
            rows = ids == i
            if rows.any():
                buffer.update_priority({"index": index[rows], "index_generation": generation[rows]}, priority[rows])

    def set_p(self, p):
        """Other shares from the next batch on."""
        self._ensemble.set_shares([float(share) for share in p])

    def dumps(self, path):
        """Saves the members, each as by its own dumps(), and what the next batches depend on beside them.

        path: a folder, where nothing is or an ensemble's save, which stays until all is written. Nobody writes or samples meanwhile.
        """
        def write(folder):
            for i, buffer in enumerate(self._buffers):
                buffer.dumps(os.path.join(folder, str(i)))
            self._save(folder)

        _rill.replace_folder(os.path.abspath(os.fspath(path)), write)

    def loads(self, path):
        """Goes on from what dumps() of an ensemble like this one wrote. The members are empty.

        Where nothing of the kind is there all is as before. After another error some members may have been loaded, and
        batches begin anew.
        """
        path = os.path.abspath(os.fspath(path))
        for part in (*self._files, *map(str, range(len(self._buffers)))):
            if not os.path.exists(os.path.join(path, part)):
                raise NotFoundError("%s::loads: %s: got nothing there, want a folder that dumps() of %d buffers wrote" %
                                    (type(self).__name__, os.path.join(path, part), len(self._buffers)))
        self._ensemble.check_not_in_call("loads")
        self._ensemble.close()
        try:
            for i, buffer in enumerate(self._buffers):
                buffer.loads(os.path.join(path, str(i)))
        finally:
            self._ensemble = self._make()
        self._load(path)

    _files = ("ensemble",)  # Of a save, beside the members' folders.

    def _save(self, folder):
        self._ensemble.save(os.path.join(folder, "ensemble"))

    def _load(self, folder):
        self._ensemble.load(os.path.join(folder, "ensemble"))

    save = dump = dumps
    load = loads

    def close(self):
        """Ends calls that wait. The members are closed too."""
        self._ensemble.close()
        for buffer in self._buffers:
            buffer.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __len__(self):
        """Rows of all members."""
        return len(self._ensemble)

    def __getitem__(self, i):
        """The member of this number."""
        return self._buffers[i]

    def __iter__(self):
        while True:
            yield self.sample()

    def __reduce__(self):
        raise TypeError("%s: does not cross to another process" % type(self).__name__)


class OfflineToOnlineReplayBuffer(ReplayBufferEnsemble):
    """Batches of a data set and of rows that are collected meanwhile.

    offline, online: two buffers. Rows are written to the second one, also by a collector that has it.
    offline_fraction: a share, or a function that takes the number of batches drawn before and gives one.
    min_online_rows: with fewer of them a batch is all offline.

    "buffer_ids" is 0 in offline rows and 1 in online ones.
    """

    def __init__(self, offline, online, *, offline_fraction=0.5, min_online_rows=1, **options):
        super().__init__(offline, online, **options)
        self.offline, self.online = offline, online
        self._fraction = offline_fraction if callable(offline_fraction) else lambda batches: offline_fraction
        self._min_online_rows = min_online_rows
        self._batches = 0
        self._lock = threading.RLock()  # A share is set and used in one go.
        self._is_asking = False  # The fraction's function.

    def sample(self, batch_size=None, return_info=False):
        self._ensemble.check_not_in_call("sample")  # One that is refused waits for no lock.
        with self._lock:
            fraction = 1.0
            if len(self.online) >= self._min_online_rows:
                fraction = self._ask()
            if not 0 <= fraction <= 1:
                raise InvalidArgumentError("OfflineToOnlineReplayBuffer: offline_fraction: got %r, want [0, 1]" %
                                           fraction)
            self.set_p([fraction, 1 - fraction])
            batch = super().sample(batch_size, return_info)
            self._batches += 1
            return batch

    _files = ("ensemble", "batches")

    def _save(self, folder):
        super()._save(folder)
        with open(os.path.join(folder, "batches"), "w", encoding="ascii") as file:
            file.write("%d\n" % self._batches)

    def _load(self, folder):
        super()._load(folder)
        with open(os.path.join(folder, "batches"), encoding="ascii") as file:
            self._batches = int(file.read())

    def _ask(self):
        if self._is_asking:
            raise FailedPreconditionError("OfflineToOnlineReplayBuffer::sample: got a call from its offline_fraction, "
                                          "want one from elsewhere: it would wait for itself")
        self._is_asking = True
        try:
            return float(self._fraction(self._batches))
        finally:
            self._is_asking = False

    def extend(self, data):
        """Appends rows to the online buffer."""
        return self.online.extend(data)

    def add(self, data):
        """Appends one row to the online buffer."""
        return self.online.add(data)


def _made(storages, samplers, writers):
    """A buffer of each storage, with what is there for it."""
    count = len(storages.parts)
    parts = [[None] * count if each is None else each.parts for each in (samplers, writers)]
    if any(len(each) != count for each in parts):
        raise InvalidArgumentError("ReplayBufferEnsemble: got %d storages, %d samplers and %d writers, want as many" %
                                   (count, *map(len, parts)))
    return [ReplayBuffer(storage=storage, sampler=sampler, writer=writer)
            for storage, sampler, writer in zip(storages.parts, *parts)]


def _end(ensemble):
    ensemble._ensemble.close()
    return ensemble._ensemble


_open = ended_at_exit(_end)
