# SPDX-License-Identifier: Apache-2.0
"""Collectors with policies of Python in processes of their own, which send their rows to one buffer."""
import multiprocessing
import unittest

import numpy as np
import rill
from process_workers import collector_of, rows_of, work

WORKERS = 2


class ProcessCollectorsTest(unittest.TestCase):

    def check(self, context):
        weight, has_changed = context.Value("d", 1.0), context.Event()
        with collector_of(weight, seed=9) as collector:
            first_row = rows_of(collector.next(), 0)
        channel = rill.Channel(first_row, producers=WORKERS)
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(8000, lanes=WORKERS), batch_size=32, prefetch=2)
        processes = [context.Process(target=work, args=(channel.writer(i), i, weight, has_changed), daemon=True)
                     for i in range(WORKERS)]
        for process in processes:
            process.start()
        with self.assertRaises(rill.UnavailableError):
            while channel.wait():
                channel.drain(buffer)
                if buffer.sample()["weight"].max() > 0:
                    weight.value = -1.0  # The learner's, which policies see with their next step.
                    has_changed.set()
        for process in processes:
            process.join()
        self.assertEqual([process.exitcode for process in processes], [0] * WORKERS)
        self.assertEqual(len(buffer), 8000)
        rows = buffer[:]
        np.testing.assert_array_equal(rows["action"], rows["observation"][:, 2] * rows["weight"][:, 0] > 0)
        self.assertIn(1.0, rows["weight"])
        for last in (3999, 7999):
            self.assertEqual(rows["weight"][last, 0], -1.0)
        for lane in (slice(0, 4000), slice(4000, 8000)):
            ids = rows["collector"]["traj_ids"][lane]
            same = ids[1:] == ids[:-1]
            self.assertGreater((~same).sum(), 10)
            np.testing.assert_array_equal(rows["observation"][lane][1:][same], rows["next"]["observation"][lane][:-1][same])
            np.testing.assert_array_equal(rows["next"]["done"][lane][:-1, 0], ~same)
        # Each worker's episodes are its own.
        self.assertFalse(np.array_equal(rows["observation"][:4000], rows["observation"][4000:]))
        self.assertEqual({each.lane for each in buffer.query(only_whole=True, limit=500)}, {0, 1})
        buffer.close()

    def test_forked(self):
        self.check(multiprocessing.get_context("fork"))

    def test_spawned(self):
        self.check(multiprocessing.get_context("spawn"))

    def test_what_cannot_cross_says_so(self):
        with collector_of(multiprocessing.Value("d", 1.0), seed=1) as collector:
            with self.assertRaisesRegex(TypeError, "make it there, and send its rows by a rill.Channel"):
                multiprocessing.get_context("spawn").Process(target=work, args=(collector, 0, None, None)).start()


if __name__ == "__main__":
    unittest.main()
