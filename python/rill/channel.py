# SPDX-License-Identifier: Apache-2.0
"""Rows of worker processes into one buffer, through shared memory."""
import threading

import numpy as np

from rill import _rill
from rill.data import as_arrays


class Channel:
    """Workers in other processes write rows; the owner of a buffer drains them into it.

        channel = rill.Channel({"observation": np.zeros(4, np.float32)}, producers=2)
        for i in range(2):
            multiprocessing.Process(target=work, args=(channel.writer(i),)).start()
        while channel.wait():
            channel.drain(buffer)

    step: one step, as add() takes it: keys, dtypes and shapes of all of them.
    bytes: of a worker's memory, and the largest batch.
    A batch arrives whole or not at all; a worker that is killed loses the batch
    at hand, and its trajectory ends there. The owner's calls are one thread's.
    """

    def __init__(self, step, *, producers=1, bytes=16 << 20):
        self._step = _numpy(as_arrays(step))
        self._options = (producers, bytes)
        self._handle = _rill.Channel(self._step, *self._options)

    def writer(self, producer):
        """The end of a worker: pass it to its process, which opens it with its first batch."""
        return ChannelWriter(self._handle, producer, self._step, self._options)

    def wait(self, timeout=None):
        """Waits for a batch: whether there is one.

        Raises UnavailableError where all workers were there and have gone.
        """
        return self._handle.wait(float("inf") if timeout is None else timeout)

    def drain(self, buffer):
        """Writes to the buffer what is there now; returns the number of batches."""
        return buffer._buffer.drain(self._handle)

    def __reduce__(self):
        raise TypeError("Channel: its owner's end stays in its process; pass a writer() to another")


class ChannelWriter:
    """The end of one worker, to pass to a process as it is started. Thread-safe."""

    def __init__(self, channel, producer, step, options):
        self._channel = channel  # A rill._rill.Channel, or the number of its file.
        self._producer = producer
        self._step = step
        self._options = options
        self._writer = None
        self._opening = threading.Lock()

    def extend(self, data):
        """Sends rows, a dict of arrays [time, ...]; waits where there is no space."""
        self._open().extend(as_arrays(data), False)

    def add(self, data):
        """Sends one row, a dict of arrays without the leading dimension."""
        self._open().extend(as_arrays(data), True)

    def cut(self):
        """Says that the trajectory has ended without a last step."""
        self._open().cut(self._producer)

    def close(self):
        """Ends a call that waits, by FailedPreconditionError."""
        if self._writer is not None:
            self._writer.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _open(self):
        with self._opening:
            if self._writer is not None:
                return self._writer
            if isinstance(self._channel, int):
                self._writer = _rill.attach_channel(
                    self._channel, self._producer, self._step, *self._options
                )
            else:
                self._writer = self._channel.open(self._producer, self._step)
        return self._writer

    def __reduce__(self):
        from multiprocessing import reduction  # Takes a while.

        # Only while a process is started: it inherits the file.
        file = reduction.DupFd(self._channel.fd)
        return _rebuild, (file, self._producer, self._step, self._options)


def _rebuild(file, producer, step, options):
    return ChannelWriter(file.detach(), producer, step, options)


def _numpy(value):
    if type(value) is dict:
        return {key: _numpy(each) for key, each in value.items()}
    array = np.asarray(value)
    # Plain numbers, as a buffer takes them.
    is_plain = isinstance(value, (float, int, list, tuple))
    return array.astype(np.float32) if is_plain and array.dtype == np.float64 else array
