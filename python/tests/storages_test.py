# SPDX-License-Identifier: Apache-2.0
"""Rows outlive a process in files, and a saved buffer goes on where it was."""
import gc
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import rill


def rows(count, start=0):
    return {"x": np.arange(start, start + count, dtype=np.int64)}


def length_and_sum(storage):
    buffer = rill.ReplayBuffer(storage=storage, batch_size=64, seed=1)
    return len(buffer), int(np.unique(buffer.sample(500)["x"]).sum())


class MemmapTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "rows")

    def test_rows_are_there_again(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyMemmapStorage(10, self.folder))
        buffer.extend(rows(10))
        buffer.close()
        del buffer
        gc.collect()
        storage = rill.LazyMemmapStorage(10, self.folder, existsok=True)
        self.assertEqual(length_and_sum(storage), (10, 45))

    def test_another_process_opens_them_by_the_pickled_storage(self):
        storage = rill.LazyMemmapStorage(10, self.folder)
        rill.ReplayBuffer(storage=storage).extend(rows(10))
        text = pickle.dumps(storage)
        with self.assertRaisesRegex(rill.FailedPreconditionError, "process"):
            pickle.loads(text)  # One owner at a time.
        del storage
        gc.collect()
        program = ("import pickle, sys, rill; "
                   "buffer = rill.ReplayBuffer(storage=pickle.loads(bytes.fromhex(sys.argv[1]))); "
                   "print(len(buffer), sorted(set(buffer.sample(500)['x'].tolist())))")
        output = subprocess.run([sys.executable, "-c", program, text.hex()], check=True, capture_output=True, text=True)
        self.assertEqual(output.stdout, "10 %s\n" % list(range(10)))

    def test_what_cannot_cross_says_so(self):
        for part, pattern in ((rill.LazyTensorStorage(3), "use LazyMemmapStorage"),
                              (rill.LazyMemmapStorage(3), "name a scratch_dir"),
                              (rill.ReplayBuffer(), "dumps")):
            with self.subTest(pattern), self.assertRaisesRegex(TypeError, pattern):
                pickle.dumps(part)

    def test_an_old_folder_is_not_taken_by_mistake(self):
        rill.ReplayBuffer(storage=rill.LazyMemmapStorage(10, self.folder)).extend(rows(3))
        gc.collect()
        with self.assertRaises(rill.FailedPreconditionError):
            rill.LazyMemmapStorage(10, self.folder)
        with self.assertRaisesRegex(rill.FailedPreconditionError, "capacity"):
            rill.LazyMemmapStorage(20, self.folder, existsok=True)

    def test_a_temporary_folder_goes_with_its_storage(self):
        storage = rill.LazyMemmapStorage(10)
        rill.ReplayBuffer(storage=storage).extend(rows(10))
        folder = storage.scratch_dir
        self.assertTrue(os.path.isdir(folder))
        del storage
        gc.collect()
        self.assertFalse(os.path.exists(folder))


    def test_a_temporary_folder_outlives_a_child(self):
        script = "import os, rill; storage = rill.LazyMemmapStorage(10); child = os.fork(); " \
                 "child and (os.waitpid(child, 0), print(os.path.isdir(storage.scratch_dir)))"
        output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        self.assertEqual(output.stdout, "True\n")

    def test_a_pickled_storage_has_its_lanes(self):
        storage = rill.LazyMemmapStorage(12, self.folder, lanes=3)
        rill.ReplayBuffer(storage=storage).extend({"x": np.arange(6).reshape(3, 2)})
        text = pickle.dumps(storage)
        del storage
        gc.collect()
        other = pickle.loads(text)
        self.assertEqual((other.max_size, len(other)), (12, 6))
        rill.ReplayBuffer(storage=other).extend({"x": np.arange(6).reshape(3, 2)})
        self.assertEqual(len(other), 12)


class SaveTest(unittest.TestCase):

    def test_a_buffer_goes_on_batch_for_batch(self):
        def buffer_of(seed):
            return rill.PrioritizedReplayBuffer(alpha=0.7, beta=0.5, storage=rill.LazyTensorStorage(20), batch_size=8,
                                                seed=seed)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "save")
            buffer = buffer_of(seed=3)
            buffer.extend(rows(20))
            buffer.update_priority(buffer.sample(), np.arange(8) + 1.0)
            buffer.dumps(path)
            other = buffer_of(seed=4)
            other.loads(path)
            for _ in range(3):
                want, got = buffer.sample(), other.sample()
                for key in want:
                    np.testing.assert_array_equal(got[key], want[key])
            other.extend(rows(1, start=100))
            self.assertEqual(len(other), 20)
            uniform = rill.ReplayBuffer(storage=rill.LazyTensorStorage(20), batch_size=8)
            with self.assertRaisesRegex(rill.FailedPreconditionError, "sampler"):
                uniform.loads(path)
            uniform.extend(rows(5))
            self.assertEqual(len(uniform), 5)
            with self.assertRaises(KeyError):
                uniform.loads(os.path.join(folder, "none"))


class StoredDtypesTest(unittest.TestCase):
    """Plain numbers take the dtype and the shape that are stored, whoever wrote the rows."""
    ROWS = {"a": np.arange(5, dtype=np.int32), "next": {"r": np.zeros((5, 1), np.float32)}}
    PLAIN = {"a": 3, "next": {"r": 1.0}}

    def check(self, buffer):
        row = buffer[buffer.add(self.PLAIN)]
        self.assertEqual((row["a"].dtype, row["next"]["r"].tolist()), (np.int32, [[1.0]]))
        buffer.add(self.PLAIN)

    def test_after_loads(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "save")
            buffer = rill.ReplayBuffer()
            buffer.extend(self.ROWS)
            buffer.dumps(path)
            other = rill.ReplayBuffer()
            other.loads(path)
            self.check(other)

    def test_of_another_buffer_of_the_storage(self):
        storage = rill.LazyTensorStorage(10)
        rill.ReplayBuffer(storage=storage).extend(self.ROWS)
        self.check(rill.ReplayBuffer(storage=storage))

    def test_after_drain(self):
        channel = rill.Channel({"a": np.int32(0), "next": {"r": np.zeros(1, np.float32)}})
        with channel.writer(0) as writer:
            writer.extend(self.ROWS)
        buffer = rill.ReplayBuffer()
        channel.drain(buffer)
        self.check(buffer)


class LanesTest(unittest.TestCase):

    def test_lanes_are_rings_of_their_own(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(12, lanes=3))
        step = {"x": np.array([0, 10, 20], dtype=np.int64), "next": {"reward": np.ones((3, 1), np.float32)}}
        self.assertEqual(buffer.add(step), 0)
        many = {"x": np.arange(6, dtype=np.int64).reshape(3, 2), "next": {"reward": np.ones((3, 2, 1), np.float32)}}
        self.assertEqual(buffer.extend(many).tolist(), [1, 2, 5, 6, 9, 10])
        self.assertEqual(buffer.add(step), 3)
        self.assertEqual(len(buffer), 12)
        batch = buffer.sample(100)
        self.assertEqual({(int(i), int(x)) for i, x in zip(batch["index"], batch["x"]) if i >= 8},
                         {(8, 20), (9, 4), (10, 5), (11, 20)})
        with self.assertRaisesRegex(rill.InvalidArgumentError, "lanes"):
            buffer.extend({"x": np.zeros((2, 2), np.int64), "next": {"reward": np.ones((2, 2, 1), np.float32)}})


    def test_a_slice_is_of_the_rows_that_are_there(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(12, lanes=3))
        buffer.extend({"x": np.arange(6).reshape(3, 2)})
        self.assertEqual(buffer[:]["x"].tolist(), [0, 1, 2, 3, 4, 5])
        self.assertEqual(buffer[-2::-2]["x"].tolist(), [4, 2, 0])
        self.assertEqual(buffer.__getitems__([5, 2])["x"].tolist(), [5, 2])
        self.assertEqual(buffer[[9, 4]]["x"].tolist(), [5, 2])  # Slots.
        for _ in range(2):
            buffer.extend({"x": np.arange(6).reshape(3, 2) + 10})
        self.assertEqual(len(buffer[:]["x"]), 12)


if __name__ == "__main__":
    unittest.main()
