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


class TieredTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "rows")

    def test_all_rows_are_read_whichever_tier_has_them(self):
        buffer = rill.ReplayBuffer(storage=rill.TieredStorage(10, 4, self.folder))
        for start in (0, 7):
            buffer.extend(rows(7, start))
        self.assertEqual(sorted(buffer[:]["x"].tolist()), list(range(4, 14)))
        del buffer
        gc.collect()
        # The files are those of a LazyMemmapStorage.
        self.assertEqual(length_and_sum(rill.LazyMemmapStorage(10, self.folder, existsok=True))[0], 10)

    def test_another_process_opens_it_by_its_pickle(self):
        storage = rill.TieredStorage(12, 3, self.folder, lanes=3, priority_key=("td", "error"))
        rill.ReplayBuffer(storage=storage).extend({"x": np.arange(6).reshape(3, 2)})
        text = pickle.dumps(storage)
        del storage
        gc.collect()
        other = pickle.loads(text)
        self.assertEqual((type(other), other.max_size, len(other), other.priority_key),
                         (rill.TieredStorage, 12, 6, "td/error"))

    def test_a_temporary_folder_goes_with_it_or_with_its_error(self):
        folders = set(os.listdir(tempfile.gettempdir()))
        storage = rill.TieredStorage(10, 4)
        self.assertTrue(os.path.isdir(storage.scratch_dir))
        del storage
        gc.collect()
        with self.assertRaisesRegex(rill.InvalidArgumentError, "fast_capacity: got 20"):
            rill.TieredStorage(10, 20)
        left = [name for name in set(os.listdir(tempfile.gettempdir())) - folders if name.startswith("rill_")]
        self.assertEqual(left, [])


class ListStorageTest(unittest.TestCase):

    def test_rows_of_different_sizes(self):
        buffer = rill.ReplayBuffer(storage=rill.ListStorage(4, ragged_keys=["tokens"]), batch_size=64, seed=1)
        slots = buffer.extend([{"tokens": np.arange(n), "n": np.int64(n)} for n in (2, 0, 3)])
        self.assertEqual(slots.tolist(), [0, 1, 2])
        batch = buffer[:]
        self.assertEqual(batch["tokens"].tolist(), [[0, 1, 0], [0, 0, 0], [0, 1, 2]])
        self.assertEqual(batch["mask"]["tokens"].sum(1).tolist(), [2, 0, 3])
        sample = buffer.sample()
        for tokens, mask, n in zip(sample["tokens"], sample["mask"]["tokens"], sample["n"]):
            self.assertEqual(tokens[mask].tolist(), list(range(n)))
        buffer.add({"tokens": np.arange(7), "n": 7})
        self.assertEqual(buffer[:]["tokens"].shape, (4, 7))

    def test_other_leaves_are_even(self):
        buffer = rill.ReplayBuffer(storage=rill.ListStorage(4))
        buffer.add({"x": np.zeros(2)})
        with self.assertRaisesRegex(rill.InvalidArgumentError, '"x"'):
            buffer.add({"x": np.zeros(3)})
        with self.assertRaisesRegex(rill.InvalidArgumentError, "ListStorage: mask_key: got 7"):
            rill.ListStorage(4, mask_key=7)


class CompressedListStorageTest(unittest.TestCase):

    def test_rows_are_as_they_were(self):
        buffer = rill.ReplayBuffer(storage=rill.CompressedListStorage(300, compression_level=1))
        frames = np.random.default_rng(1).integers(0, 3, (500, 40), np.uint8)
        buffer.extend({"frame": frames})
        self.assertEqual(sorted(map(bytes, buffer[:]["frame"])), sorted(map(bytes, frames[200:])))
        with self.assertRaisesRegex(rill.InvalidArgumentError, "level: got 99"):
            rill.CompressedListStorage(300, compression_level=99)


class OptionsTest(unittest.TestCase):

    def test_a_device_is_refused_with_the_ways_out(self):
        class Named:
            """As torch.device."""

            def __str__(self):
                return "cuda:0"

        for make in (rill.LazyTensorStorage, rill.ListStorage, rill.LazyMemmapStorage, rill.CompressedListStorage,
                     lambda size, device: rill.TieredStorage(size, 4, device=device)):
            for device in ("cuda", Named()):
                with self.assertRaisesRegex(rill.UnimplementedError,
                                            r'Storage: device: .*want "cpu": the wheel is built without devices; .*'
                                            r'tensor.to\(device\).*--config=cuda'):
                    make(8, device=device)
            make(8, device="cpu")

    def test_what_is_wrong_is_named(self):
        for make, pattern in ((lambda: rill.LazyTensorStorage(0), "capacity: got 0"),
                              (lambda: rill.LazyTensorStorage("7"), "LazyTensorStorage: max_size, lanes: got '7'"),
                              (lambda: rill.LazyTensorStorage(8, lanes=0), "max_size, lanes: got 8 and 0"),
                              (lambda: rill.LazyTensorStorage(8, ndim=2), "ndim: got 2 for 1 lanes; .* say lanes=N"),
                              (lambda: rill.LazyTensorStorage(8, ndim=3, lanes=2), "ndim: got 3 for 2 lanes"),
                              (lambda: rill.LazyMemmapStorage(8, ndim=2), "LazyMemmapStorage: ndim: got 2"),
                              (lambda: rill.LazyTensorStorage(8, 7), "device: got 7")):
            with self.subTest(pattern), self.assertRaisesRegex(rill.Error, pattern):
                make()

    def test_a_size_is_rounded_up_to_the_lanes(self):
        self.assertEqual(rill.LazyTensorStorage(10, lanes=4).max_size, 12)  # As TorchRL's ndim=2.


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
