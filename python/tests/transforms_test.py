# SPDX-License-Identifier: Apache-2.0
"""transform= of rill.ReplayBuffer."""
import concurrent.futures
import gc
import itertools
import pickle
import tempfile
import threading
import unittest

import numpy as np

import rill
from rill import transforms as T


def sample_of(rows, *transforms, **options):
    """All rows of a buffer with these transforms, in the order of writing."""
    count = len(next(iter(rows.values())))
    buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(count), batch_size=count,
                               sampler=rill.SamplerWithoutReplacement(shuffle=False),
                               transform=list(transforms), **options)
    buffer.extend(rows)
    return buffer.sample()


class TransformsTest(unittest.TestCase):
    def test_a_class_made_from_one_is_one(self):
        class Mine(T.RewardScaling):
            pass

        rows = {"x": np.arange(2), "next": {"reward": np.array([[1], [3]], np.float32), "done": np.ones((2, 1), bool)}}
        got, want = (sample_of(dict(rows), kind(1.0, 2.0))["next"]["reward"] for kind in (Mine, T.RewardScaling))
        np.testing.assert_array_equal(got, want)

    def test_values(self):
        rows = {"observation": np.array([[1, 2]], np.float32),
                "next": {"reward": np.array([[-3.0]], np.float32)}}
        batch = sample_of(rows, T.ObservationNorm(1.0, 2.0), T.RewardScaling(1.0, 2.0))
        np.testing.assert_array_equal(batch["observation"], [[3, 5]])
        np.testing.assert_array_equal(batch["next"]["reward"], [[-5]])
        batch = sample_of(rows, T.RewardClipping(-1.0, 1.0), T.SignTransform(["observation"]))
        np.testing.assert_array_equal(batch["next"]["reward"], [[-1]])
        np.testing.assert_array_equal(batch["observation"], [[1, 1]])
        batch = sample_of(rows, T.BinarizeReward(), T.ClipTransform("observation", low=1.5))
        np.testing.assert_array_equal(batch["next"]["reward"], [[0]])
        np.testing.assert_array_equal(batch["observation"], [[1.5, 2]])

    def test_structure(self):
        rows = {"b": np.array([[1.0]], np.float32), "a": np.array([[2.0]], np.float32)}
        batch = sample_of(rows, T.CatTensors(["b", "a"], "both"))
        np.testing.assert_array_equal(batch["both"], [[2, 1]])  # Sorted, as TorchRL's.
        batch = sample_of(rows, T.RenameTransform(["a"], ["c"]), T.SelectTransform("c"))
        self.assertIn("c", batch)
        self.assertNotIn("b", batch)
        batch = sample_of(rows, T.ExcludeTransform("b"), T.UnsqueezeTransform(-1, ["a"]))
        self.assertEqual(batch["a"].shape, (1, 1, 1))
        self.assertNotIn("b", batch)

    def test_what_needs_the_rows_behind(self):
        done = np.array([[False], [False], [True], [False]])
        rows = {"observation": np.arange(4, dtype=np.float32)[:, None], "action": np.arange(4),
                "next": {"done": done, "reward": np.ones((4, 1), np.float32)},
                "state_value": np.zeros((4, 1), np.float32)}
        rows["next"]["state_value"] = np.full((4, 1), 10, np.float32)
        buffer = rill.ReplayBuffer(
            storage=rill.LazyTensorStorage(4), batch_size=3, sample_unit=rill.Slice(3),
            transform=[T.NextStateReconstructor(traj_key="", fill_value=-1), T.ActionChunkTransform(2)])
        buffer.extend(rows)
        batch = buffer.sample()
        np.testing.assert_array_equal(batch["next"]["observation"][:, 0], [1, 2, -1])
        np.testing.assert_array_equal(batch["vla_action"]["chunk"], [[0, 1], [1, 2], [2, 2]])
        np.testing.assert_array_equal(batch["action_is_pad"][:, 1], [False, False, True])
        for transform, want in ((T.TD0Estimator(gamma=0.5), [6, 6, 1]), (T.TD1Estimator(gamma=0.5), [1.75, 1.5, 1])):
            buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(4), batch_size=3, sample_unit=rill.Slice(3),
                                       transform=transform)
            buffer.extend({**rows, "next": {**rows["next"], "terminated": done}})
            np.testing.assert_array_equal(buffer.sample()["value_target"][:, 0], want)

    def test_one_leaf_as_another(self):
        batch = sample_of({"a": np.ones((2, 1)), "b": np.zeros((2, 3))}, T.ExpandAs("a", "b", ("c", "d")))
        np.testing.assert_array_equal(batch["c"]["d"], np.ones((2, 3)))

    def test_they_can_be_added_later(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(2), batch_size=2,
                                   transform=[T.RewardScaling(1.0, 2.0, "x")])
        buffer.extend({"x": np.ones((2, 1), np.float32)})
        buffer.append_transform(T.RewardScaling(0.0, 10.0, "x"))
        buffer.insert_transform(0, T.RewardScaling(1.0, 1.0, "x"))
        self.assertEqual(buffer.sample()["x"][0, 0], ((1 + 1) * 2 + 1) * 10)
        with tempfile.TemporaryDirectory() as folder:
            buffer.dumps(folder + "/save")
            buffer.empty()
            buffer.loads(folder + "/save")
        self.assertEqual(buffer.sample()["x"][0, 0], 50)
        for index, text in ((4, r"index: got 4, want \[0, 3\]"), (-1, "index")):
            with self.assertRaisesRegex(rill.InvalidArgumentError, text):
                buffer.insert_transform(index, lambda batch: batch)
        with self.assertRaises(rill.Error):
            buffer.append_transform(T.RewardScaling(0.0, 10.0, "y"))
        self.assertEqual(buffer.sample()["x"][0, 0], 50)

    def test_dtypes_by_name_and_by_object(self):
        rows = {"count": np.array([[1], [2]], np.int64)}
        for dtype in ("float32", np.float32, np.dtype("float32")):
            batch = sample_of(rows, T.DTypeCastTransform("int64", dtype, ["count"]))
            self.assertEqual(batch["count"].dtype, np.float32)
        self.assertEqual(sample_of({"x": np.ones((2, 1))}, T.DoubleToFloat(["x"]))["x"].dtype, np.float32)

    def test_images(self):
        rows = {"pixels": np.full((2, 8, 6, 3), 255, np.uint8)}
        batch = sample_of(rows, T.ToTensorImage(), T.Resize(4, 2), T.GrayScale())
        self.assertEqual(batch["pixels"].shape, (2, 1, 2, 4))
        np.testing.assert_allclose(batch["pixels"], 0.9999, atol=1e-3)
        batch = sample_of(rows, T.ToTensorImage(), T.CenterCrop(2))
        self.assertEqual(batch["pixels"].shape, (2, 3, 2, 2))

    def test_estimators_beside_reads(self):
        rows = {"state_value": np.zeros((4, 1), np.float32),
                "next": {"reward": np.ones((4, 1), np.float32),
                         "state_value": np.zeros((4, 1), np.float32),
                         "done": np.array([[0], [0], [0], [1]], bool),
                         "terminated": np.array([[0], [0], [0], [1]], bool)}}
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(4), batch_size=4,
                                   sampler=rill.SliceSampler(slice_len=4),
                                   transform=[T.GAE(gamma=1.0, lmbda=1.0)])
        buffer.extend(rows)
        np.testing.assert_array_equal(buffer.sample()["advantage"][:, 0], [4, 3, 2, 1])

    def test_a_function_changes_samples(self):
        def double(batch):
            batch["x"] = batch["x"] * 2
            batch["y"] = batch["x"] + 1

        batch = sample_of({"x": np.ones((2, 1), np.float32)}, double)
        np.testing.assert_array_equal(batch["x"], [[2], [2]])
        np.testing.assert_array_equal(batch["y"], [[3], [3]])

    def test_a_function_gives_another_batch(self):
        batch = sample_of({"x": np.ones((2, 1), np.float32), "z": np.ones((2, 1), np.float32)},
                          lambda batch: {key: batch[key] for key in batch if key != "z"})
        self.assertNotIn("z", batch)

    def test_what_a_function_keeps_of_a_write_stays_as_it_is(self):
        kept = []

        def keep(batch):
            kept.append(batch["x"])

        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(10), transform=T.FunctionTransform(inverse=keep))
        for i in range(4):  # From the second one on rows are copied into memory that is used again.
            buffer.extend({"x": np.full((2, 1), i, np.float32)})
        self.assertEqual([array[0, 0] for array in kept], [0, 1, 2, 3])

    def test_an_inverse_changes_what_is_written(self):
        halve = T.FunctionTransform(inverse=lambda batch: {"x": batch["x"] / 2})
        batch = sample_of({"x": np.full((2, 1), 8, np.float32)}, halve)
        np.testing.assert_array_equal(batch["x"], [[4], [4]])

    def test_what_a_function_keeps_does_not_change_batches(self):
        kept = []

        def keep(batch):
            batch["y"] = np.array(batch["x"])
            kept.append(batch["y"])

        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(2), batch_size=2, transform=[keep])
        buffer.extend({"x": np.ones((2, 1), np.float32)})
        batch = buffer.sample()
        kept[0][:] = 7
        np.testing.assert_array_equal(batch["y"], [[1], [1]])

    def test_what_a_function_was_given_stays_as_it_is(self):
        for prefetch in (0, 2):
            for replaces in (False, True):
                with self.subTest(prefetch=prefetch, replaces=replaces):
                    given = []

                    def keep(batch, given=given, replaces=replaces):
                        given.append((batch["x"], batch["x"].copy()))
                        if replaces:
                            batch["x"] = batch["x"] * 2

                    buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(50), batch_size=4, seed=0,
                                               prefetch=prefetch, transform=keep)
                    buffer.extend({"x": np.arange(50, dtype=np.float32)})
                    for _ in range(8):
                        buffer.sample()
                    buffer.close()
                    for array, copy in given:
                        np.testing.assert_array_equal(array, copy)

    def test_samples_of_other_keys_may_come_between(self):
        counts = itertools.count(1)
        kept = []

        def vary(batch):
            kept.append(batch)  # So that dictionaries are made anew, which may run the collector.
            count = next(counts) % 23  # Once: the other thread may come in anywhere.
            batch["count"] = np.full(4, count)
            for i in range(count):
                batch["k%d" % i] = {"x": np.array(batch["x"])}

        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(50), batch_size=4, transform=vary)
        buffer.extend({"x": np.arange(50)})
        other = concurrent.futures.ThreadPoolExecutor(1)

        def sample_meanwhile(phase, info):
            if phase == "start" and threading.current_thread() is threading.main_thread():
                kept.extend(other.submit(buffer.sample).result() for _ in range(2))

        thresholds = gc.get_threshold()
        gc.callbacks.append(sample_meanwhile)
        gc.set_threshold(1, 1, 1)
        try:
            for _ in range(30):
                batch = buffer.sample()
                kept.append(batch)
                self.assertEqual(len([key for key in batch if key.startswith("k")]), batch["count"][0])
        finally:
            gc.set_threshold(*thresholds)
            gc.callbacks.remove(sample_meanwhile)
            other.shutdown()

    def test_arrays_of_a_function_are_not_to_be_written_to(self):
        def write(batch):
            batch["x"] *= 2

        with self.assertRaisesRegex(ValueError, "read-only"):
            sample_of({"x": np.ones((2, 1), np.float32)}, write)

    def test_an_exception_comes_back_as_it_was(self):
        class OwnError(Exception):
            pass

        error = OwnError("own", 5)

        def fail(batch):
            raise error

        with self.assertRaises(OwnError) as caught:
            sample_of({"x": np.ones((2, 1), np.float32)}, fail)
        self.assertIs(caught.exception, error)
        self.assertEqual(caught.exception.args, ("own", 5))

    def test_an_exception_of_a_batch_that_was_made_ahead_comes_with_it(self):
        calls = []

        def fail_third(batch):
            calls.append(1)
            if len(calls) == 3:
                raise KeyError("third")

        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(4), batch_size=2, prefetch=2,
                                   transform=[fail_third])
        buffer.extend({"x": np.ones((4, 1), np.float32)})
        outcomes = []
        for _ in range(5):
            try:
                buffer.sample()
                outcomes.append("batch")
            except KeyError as error:
                outcomes.append(error.args[0])
        self.assertEqual(outcomes.count("third"), 1)
        self.assertEqual(outcomes.count("batch"), 4)

    def test_an_exception_of_a_write_leaves_the_rows(self):
        refuse = T.FunctionTransform(inverse=lambda batch: 1 / 0)
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(4), transform=[refuse])
        with self.assertRaises(ZeroDivisionError):
            buffer.extend({"x": np.ones((2, 1), np.float32)})
        self.assertEqual(len(buffer), 0)

    def test_transforms_can_be_used_again_and_pickled(self):
        scaling = pickle.loads(pickle.dumps(T.RewardScaling(0.0, 2.0)))
        rows = {"next": {"reward": np.ones((1, 1), np.float32)}}
        for _ in range(2):
            np.testing.assert_array_equal(sample_of(rows, scaling)["next"]["reward"], [[2]])
        self.assertEqual(repr(scaling), "RewardScaling(loc=0.0, scale=2.0, standard_normal=False)")

    def test_bad_options_are_named(self):
        rows = {"x": np.ones((2, 1), np.float32)}
        with self.assertRaisesRegex(rill.InvalidArgumentError, "Resize: interpolation: got 'cubic'"):
            sample_of(rows, T.Resize(2, interpolation="cubic"))
        with self.assertRaisesRegex(ValueError, "DTypeCast: dtype_in: got 'f31'"):
            sample_of(rows, T.DTypeCastTransform("f31", "float32"))
        with self.assertRaisesRegex(ValueError, "GAE: got an option \"keys\""):
            sample_of(rows, T.GAE(keys=3))
        with self.assertRaisesRegex(rill.InvalidArgumentError, "want one of rill.transforms or a function"):
            sample_of(rows, 3)


if __name__ == "__main__":
    unittest.main()
