# SPDX-License-Identifier: Apache-2.0
"""rill.MemmapReader: rows of another process, or of this one."""
import multiprocessing
import multiprocessing.reduction
import os
import tempfile
import unittest

import numpy as np

import rill


def sums_of(reader, slots):
    return reader[slots]["x"].sum(axis=1)


def read_in_process(reader, slots, results):
    results.send(sums_of(reader, slots))


class ReadersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "rows")
        self.buffer = rill.ReplayBuffer(storage=rill.LazyMemmapStorage(100, self.path), batch_size=4)
        self.addCleanup(self.buffer.close)

    def write(self, first, count):
        numbers = np.arange(first, first + count, dtype=np.float32)
        self.buffer.extend({"x": np.stack([numbers, numbers], axis=1)})

    def test_rows_are_there_as_they_are_written(self):
        self.write(0, 10)
        reader = rill.MemmapReader(self.path)
        self.assertEqual((len(reader), reader.max_size), (10, 100))
        self.write(10, 10)
        self.assertEqual(len(reader), 20)
        np.testing.assert_array_equal(sums_of(reader, [19, 3]), [38, 6])
        np.testing.assert_array_equal(reader[2:4]["x"][:, 0], [2, 3])

    def test_a_slice_is_of_the_rows_that_are_there(self):
        path = os.path.join(self.folder.name, "lanes")
        buffer = rill.ReplayBuffer(storage=rill.LazyMemmapStorage(12, path, lanes=3))
        self.addCleanup(buffer.close)
        buffer.extend({"x": np.arange(6).reshape(3, 2)})
        reader = rill.MemmapReader(path)
        self.assertEqual(reader[:]["x"].tolist(), [0, 1, 2, 3, 4, 5])
        self.assertEqual(reader[-2::-2]["x"].tolist(), [4, 2, 0])
        self.assertEqual(reader.__getitems__([5, 2])["x"].tolist(), [5, 2])
        self.assertEqual(reader[[9, 4]]["x"].tolist(), [5, 2])  # Slots.

    def test_another_process_reads_beside_the_owner(self):
        self.write(0, 10)
        reader = rill.MemmapReader(self.path)
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=read_in_process, args=(reader, [1, 2], theirs))
        process.start()
        np.testing.assert_array_equal(ours.recv(), [2, 4])
        process.join()

    def test_a_pickle_opens_the_folder_again(self):
        self.write(0, 3)
        copy = multiprocessing.reduction.ForkingPickler.loads(
            multiprocessing.reduction.ForkingPickler.dumps(rill.MemmapReader(self.path)))
        self.assertEqual(len(copy), 3)

    def test_what_is_not_there_is_named(self):
        with self.assertRaises(rill.NotFoundError):
            rill.MemmapReader(os.path.join(self.folder.name, "none"))
        self.write(0, 3)
        with self.assertRaisesRegex(IndexError, "3"):
            rill.MemmapReader(self.path)[[3]]

    def test_a_data_loader_goes_through_it(self):
        try:
            from torch.utils.data import DataLoader
        except ImportError:
            self.skipTest("there is no torch")
        self.write(0, 64)
        loader = DataLoader(rill.MemmapReader(self.path), batch_size=16, shuffle=True,
                            collate_fn=lambda batch: batch["x"][:, 0], num_workers=2)
        self.assertEqual(sorted(np.concatenate(list(loader))), list(range(64)))


if __name__ == "__main__":
    unittest.main()
