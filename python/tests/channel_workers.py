# SPDX-License-Identifier: Apache-2.0
"""What the workers of channel_test.py do."""
import os
import signal

import numpy as np

STEP = {"observation": np.zeros(2, np.float32),
        "next": {"done": np.zeros(1, bool), "truncated": np.zeros(1, bool)}}


def rows_of(worker, first, count):
    numbers = np.arange(first, first + count, dtype=np.float32)
    return {"observation": np.stack([np.full(count, worker, np.float32), numbers], axis=1),
            "next": {"done": np.zeros((count, 1), bool), "truncated": np.zeros((count, 1), bool)}}


def write(writer, worker, batches):
    with writer:
        for i in range(batches):
            writer.extend(rows_of(worker, 10 * i, 10))


def write_and_die(writer, worker):
    writer.extend(rows_of(worker, 0, 10))
    os.kill(os.getpid(), signal.SIGKILL)
