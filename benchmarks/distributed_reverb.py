# SPDX-License-Identifier: Apache-2.0
"""Reverb's side of benchmarks/distributed: a server in a process of its own, and
the rows, batches and requests in flight of distributed_cases.cc.

usage: distributed_reverb.py [--quick]

Prints the lines of the programs beside it: a case, seconds for 256 rows, and
their bytes. Rows are items of one step, as Acme writes transitions: they are
written by a StructuredWriter and sampled by a TrajectoryDataset in batches.
Pixels are random, as Reverb compresses what it is given.
"""
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np  # pylint: disable=wrong-import-position
import reverb  # pylint: disable=wrong-import-position
import tensorflow as tf  # pylint: disable=wrong-import-position
from reverb import structured_writer  # pylint: disable=wrong-import-position

BATCH = 256
TABLE_ROWS = 16 * BATCH
# Name, bytes of pixels, whether rows are written, and batches ahead.
CASES = (
    ("insert, 256 rows of 3 KB", 55 * 55, True, 16),
    ("insert, 256 rows of 56 KB", 2 * 4 * 84 * 84, True, 16),
    ("sample, 256 rows of 3 KB", 55 * 55, False, 3),
    ("sample, 256 rows of 56 KB", 2 * 4 * 84 * 84, False, 3),
    ("sample, 256 rows of 47 B", 0, False, 9),
)


def make_row(pixels):
    row = {
        "observation": np.ones(4, np.float32),
        "action": np.ones(1, np.int64),
        "next": {
            "observation": np.ones(4, np.float32),
            "reward": np.ones(1, np.float32),
            "done": np.ones(1, bool),
            "terminated": np.ones(1, bool),
            "truncated": np.ones(1, bool),
        },
    }
    if pixels:
        row["pixels"] = np.random.default_rng(0).integers(0, 256, pixels, np.uint8)
    return row


def serve():
    """Until the standard input ends. The port is the first line."""
    tables = [
        reverb.Table(name=str(pixels), sampler=reverb.selectors.Uniform(), remover=reverb.selectors.Fifo(),
                     max_size=TABLE_ROWS, rate_limiter=reverb.rate_limiters.MinSize(1),
                     signature=tf.nest.map_structure(tf.TensorSpec.from_tensor, tf.nest.map_structure(tf.constant, make_row(pixels))))
        for pixels in sorted({pixels for _, pixels, _, _ in CASES})
    ]
    server = reverb.Server(tables)
    print(server.port, flush=True)
    sys.stdin.read()
    server.stop()


def write_rows(client, pixels, ahead, batches):
    row = make_row(pixels)
    pattern = tf.nest.map_structure(lambda column: column[-1], structured_writer.create_reference_step(row))
    writer = client.structured_writer([structured_writer.create_config(pattern=pattern, table=str(pixels))])
    for _ in range(batches):
        for _ in range(BATCH):
            writer.append(row)
        writer.flush(block_until_num_items=(ahead - 1) * BATCH)
    writer.flush()


def open_batches(client, pixels, ahead):
    return iter(reverb.TrajectoryDataset.from_table_signature(
        client.server_address, str(pixels), max_in_flight_samples_per_worker=ahead * BATCH).batch(BATCH).prefetch(1))


def seconds_of(run, count):
    begin = time.perf_counter()
    run(count)
    return time.perf_counter() - begin


def main(arguments):
    if arguments == ["serve"]:
        return serve()
    is_quick = arguments == ["--quick"]
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    client = reverb.Client("localhost:%d" % int(server.stdout.readline()))
    size = sum(leaf.nbytes for leaf in tf.nest.flatten(make_row(0)))
    for name, pixels, is_insert, ahead in CASES:
        if is_insert or pixels == 0:
            write_rows(client, pixels, ahead, TABLE_ROWS // BATCH)
        if is_insert:
            run = lambda count, p=pixels, a=ahead: write_rows(client, p, a, count)
        else:
            batches = open_batches(client, pixels, ahead)
            run = lambda count, b=batches: [next(b) for _ in range(count)]
        run(4)
        seconds = statistics.median(seconds_of(run, 4) for _ in range(3 if is_quick else 10)) / 4
        print("%s\t%.9f\t%d" % (name, seconds, BATCH * (pixels + size)), flush=True)
    server.stdin.close()
    server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
