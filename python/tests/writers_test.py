# SPDX-License-Identifier: Apache-2.0
"""Which rows are kept, in whose place, and how often they are drawn."""
import os
import tempfile
import unittest

import numpy as np
import rill


def rows(values, key="x"):
    values = np.asarray(values, np.int64)
    return {key: values, "next": {"reward": values.astype(np.float32)[:, None]}}


def stored(buffer):
    return sorted(buffer[:]["x"].tolist())


class MaxValueTest(unittest.TestCase):

    def test_the_highest_stay(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(4), writer=rill.TensorDictMaxValueWriter())
        self.assertEqual(len(buffer.extend(rows([3, 9, 1, 7]))), 4)
        self.assertEqual(len(buffer.extend(rows([8, 0]))), 1)  # 0 is kept nowhere.
        self.assertEqual(stored(buffer), [3, 7, 8, 9])
        self.assertEqual(buffer.add({"x": 1, "next": {"reward": 1.0}}), -1)

    def test_reduction_and_key(self):
        first = {"x": np.arange(2), "rank": np.array([[1, 8], [4, 4]], np.float32)}
        later = {"x": np.array([2]), "rank": np.array([[5, 5]], np.float32)}
        for reduction, want in (("sum", [0, 2]), ("mean", [0, 2]), ("max", [0, 2]), ("min", [1, 2])):
            with self.subTest(reduction):
                buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(2),
                                           writer=rill.TensorDictMaxValueWriter("rank", reduction))
                buffer.extend(first)
                buffer.extend(later)
                self.assertEqual(stored(buffer), want)

    def test_k_is_less_than_the_storage(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(9), writer=rill.TensorDictMaxValueWriter(k=2))
        buffer.extend(rows([3, 9, 1, 7]))
        self.assertEqual(stored(buffer), [7, 9])

    def test_what_is_wrong_is_named(self):
        for options, pattern in (({"reduction": "best"}, "TensorDictMaxValueWriter: reduction: got 'best'"),
                                 ({"k": -1}, "k: got -1"), ({"k": "many"}, "k: got 'many'")):
            with self.subTest(pattern), self.assertRaisesRegex(rill.InvalidArgumentError, pattern):
                rill.ReplayBuffer(writer=rill.TensorDictMaxValueWriter(**options))
        with self.assertRaisesRegex(rill.InvalidArgumentError, "lanes"):
            rill.ReplayBuffer(storage=rill.LazyTensorStorage(4, lanes=2), writer=rill.TensorDictMaxValueWriter())
        buffer = rill.ReplayBuffer(writer=rill.TensorDictMaxValueWriter())
        with self.assertRaisesRegex(rill.InvalidArgumentError, "(?i)nan"):
            buffer.extend({"next": {"reward": np.array([[1.0], [np.nan]], np.float32)}})
        self.assertEqual(len(buffer), 0)

    def test_a_save_goes_on(self):
        def make():
            return rill.ReplayBuffer(storage=rill.LazyTensorStorage(3), writer=rill.TensorDictMaxValueWriter())
        with tempfile.TemporaryDirectory() as folder:
            buffer = make()
            buffer.extend(rows([1, 2, 3]))
            buffer.dumps(os.path.join(folder, "save"))
            other = make()
            other.loads(os.path.join(folder, "save"))
            other.extend(rows([0, 9]))
            self.assertEqual(stored(other), [2, 3, 9])
            with self.assertRaisesRegex(rill.FailedPreconditionError, "writer"):
                rill.ReplayBuffer(storage=rill.LazyTensorStorage(3)).loads(os.path.join(folder, "save"))


class OtherWritersTest(unittest.TestCase):

    def test_the_default_is_a_ring(self):
        for writer in (None, rill.RoundRobinWriter(), rill.TensorDictRoundRobinWriter()):
            buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(3), writer=writer)
            buffer.extend(rows([1, 2, 3]))
            self.assertEqual(buffer.extend(rows([4])).tolist(), [0])
            self.assertEqual(stored(buffer), [2, 3, 4])

    def test_a_data_set_is_not_written(self):
        storage = rill.LazyTensorStorage(3)
        rill.ReplayBuffer(storage=storage).extend(rows([1, 2]))
        buffer = rill.ReplayBuffer(storage=storage, writer=rill.ImmutableDatasetWriter())
        with self.assertRaises(rill.FailedPreconditionError):
            buffer.extend(rows([3]))
        self.assertEqual(stored(buffer), [1, 2])

    def test_removers_choose_what_goes(self):
        for remover, want in (("fifo", [2, 3, 9]), ("lifo", [1, 2, 9]), ("min_heap", [1, 3, 9]), ("max_heap", [2, 3, 9])):
            with self.subTest(remover):
                buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(3, priority_key="p"),
                                           writer=rill.RemovingWriter(remover))
                buffer.extend({"x": np.array([1, 2, 3]), "p": np.array([7, 5, 6], np.float32)})
                buffer.extend({"x": np.array([9]), "p": np.array([8], np.float32)})
                self.assertEqual(stored(buffer), want)
        with self.assertRaisesRegex(rill.InvalidArgumentError, "RemovingWriter: remover: got 'eldest', want one of fifo"):
            rill.ReplayBuffer(writer=rill.RemovingWriter("eldest"))
        with self.assertRaisesRegex(rill.InvalidArgumentError, "RemovingWriter with .* Slice"):
            rill.ReplayBuffer(writer=rill.RemovingWriter(), sampler=rill.SliceSampler(slice_len=2))


class ConsumingTest(unittest.TestCase):

    def test_rows_are_drawn_so_often_at_most(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(8), sampler=rill.ConsumingSampler(2), seed=1)
        buffer.extend(rows([1, 2, 3]))
        drawn = buffer.sample(100)["x"].tolist()
        self.assertEqual(sorted(drawn), [1, 1, 2, 2, 3, 3])
        with self.assertRaises(rill.FailedPreconditionError):
            buffer.sample(1)
        buffer.extend(rows([4]))
        self.assertEqual(buffer.sample(5)["x"].tolist(), [4, 4])
        with self.assertRaisesRegex(rill.InvalidArgumentError, "max_times_sampled: got 0"):
            rill.ReplayBuffer(sampler=rill.ConsumingSampler(0))

    def test_used_up_rows_make_room(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(4), consume_after_n_samples=1, seed=1)
        buffer.extend(rows([1, 2, 3, 4]))
        drawn = buffer.sample(2)["x"].tolist()
        buffer.extend(rows([5, 6]))
        self.assertEqual(stored(buffer), sorted({1, 2, 3, 4, 5, 6} - set(drawn)))
        self.assertEqual(sorted(buffer.sample(4)["x"].tolist()), stored(buffer))
        with self.assertRaisesRegex(rill.InvalidArgumentError, "consume_after_n_samples"):
            rill.ReplayBuffer(consume_after_n_samples=1, sampler=rill.RandomSampler())


class StalenessTest(unittest.TestCase):
    ROWS = {"x": np.arange(4), "policy_version": np.array([0, 1, 2, 3])}

    def draw(self, count=4000, **options):
        buffer = rill.ReplayBuffer(sampler=rill.StalenessAwareSampler(**options), seed=2)
        buffer.extend(self.ROWS)
        return np.bincount(buffer.sample(count)["x"], minlength=4) / count

    def test_newer_policies_are_drawn_more_often(self):
        np.testing.assert_allclose(self.draw(), np.array([1 / 4, 1 / 3, 1 / 2, 1]) / (25 / 12), atol=0.03)
        self.assertEqual(np.flatnonzero(self.draw(max_staleness=1)).tolist(), [2, 3])
        weights = self.draw(staleness_weight_fn=lambda staleness: 2.0 ** -staleness)
        np.testing.assert_allclose(weights, np.array([1, 2, 4, 8]) / 15, atol=0.03)

    def test_an_exception_of_the_weight_is_that_of_the_call(self):
        raised = ZeroDivisionError("no weight today")

        def refuse(staleness):
            raise raised
        buffer = rill.ReplayBuffer(sampler=rill.StalenessAwareSampler(staleness_weight_fn=refuse))
        buffer.extend(self.ROWS)
        with self.assertRaises(ZeroDivisionError) as caught:
            buffer.sample(3)
        self.assertIs(caught.exception, raised)
        buffer.sampler.staleness_weight_fn = lambda staleness: -1.0
        with self.assertRaisesRegex(rill.InvalidArgumentError, "-1"):
            buffer.sample(3)

    def test_another_key_is_refused(self):
        with self.assertRaisesRegex(rill.InvalidArgumentError, "version_key: got 'version'"):
            rill.StalenessAwareSampler(version_key="version")


if __name__ == "__main__":
    unittest.main()
