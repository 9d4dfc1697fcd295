# SPDX-License-Identifier: Apache-2.0
"""Priorities: rows are drawn by them, and they find their rows again."""
import unittest

import numpy as np
import rill


def buffer_of(capacity=8, rows=4, **options):
    options = {"alpha": 1.0, "beta": 1.0, "eps": 0.0, "seed": 3, **options}
    buffer = rill.PrioritizedReplayBuffer(storage=rill.LazyTensorStorage(capacity), **options)
    buffer.extend({"x": np.arange(rows, dtype=np.int64)})
    return buffer


class PrioritiesTest(unittest.TestCase):

    def test_weights_are_those_of_the_paper(self):
        buffer = buffer_of()
        batch = buffer.sample(200)
        buffer.update_priority(batch, np.array([2.0, 4.0, 8.0, 16.0], np.float32)[batch["x"]])
        batch = buffer.sample(2000)
        np.testing.assert_allclose(batch["priority_weight"], np.array([1, .5, .25, .125], np.float32)[batch["x"]])
        shares = np.bincount(batch["x"], minlength=4) / 2000
        np.testing.assert_allclose(shares, np.array([2, 4, 8, 16]) / 30, atol=0.05)

    def test_rows_are_named_by_the_batch_its_info_or_its_index(self):
        for name in ("batch", "info", "index", "copy", "list"):
            with self.subTest(name):
                buffer = buffer_of()
                batch, info = buffer.sample(100, return_info=True)
                rows = {"batch": batch, "info": info, "index": batch["index"], "copy": batch["index"].copy(),
                        "list": batch["index"].tolist()}[name]
                buffer.update_priority(rows, np.where(batch["x"] == 2, 1.0, 0.0))
                self.assertEqual(set(buffer.sample(50)["x"].tolist()), {2})

    def test_one_number_is_for_all_rows(self):
        buffer = buffer_of(rows=8)
        batch = buffer.sample(4)
        buffer.update_priority(batch, 0.0)
        self.assertFalse(set(buffer.sample(100)["x"].tolist()) & set(batch["x"].tolist()))

    def test_a_priority_of_an_overwritten_row_is_dropped(self):
        buffer = buffer_of(capacity=4)
        old = buffer.sample(20)
        buffer.extend({"x": np.arange(10, 14, dtype=np.int64)})
        buffer.update_priority(old, np.zeros(20, np.float32))
        self.assertEqual(set(buffer.sample(200)["x"].tolist()), {10, 11, 12, 13})

    def test_generations_that_a_transform_has_changed_are_refused(self):
        def halve(batch):
            return {key: batch[key][:500].astype(np.int8 if key == "index_generation" else np.int64) for key in batch}

        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(1000), sampler=rill.PrioritizedSampler(),
                                   batch_size=1000, transform=halve)
        buffer.extend({"x": np.arange(1000)})
        batch = buffer.sample()
        with self.assertRaisesRegex(rill.InvalidArgumentError, "index_generation: got int8"):
            buffer.update_priority(batch["index"], 2.0)

    def test_several_priorities_of_a_row_become_one(self):
        values = np.array([[1, 2, 6], [4, 4, 5]], np.float32)
        for reduction, want in (("max", [6, 5]), ("min", [1, 4]), ("mean", [3, 13 / 3]), ("median", [2, 4])):
            with self.subTest(reduction):
                buffer = buffer_of(rows=2, reduction=reduction)
                batch = buffer.sample(2000)
                buffer.update_priority(batch, values[batch["x"]])
                weights = buffer.sample(2000)
                light = weights["priority_weight"][weights["x"] == (0 if want[0] > want[1] else 1)][0]
                self.assertAlmostEqual(light, min(want) / max(want), places=5)
        with self.assertRaisesRegex(rill.InvalidArgumentError, 'reduction: got "sum", want one of max'):
            buffer_of(reduction="sum")

    def test_rows_come_with_their_priority(self):
        td_error = np.array([0, 1, 2, 3], np.float32)[:, None]
        for make in (lambda **storage: rill.TensorDictPrioritizedReplayBuffer(alpha=0.7, beta=1.0, seed=3, **storage),
                     lambda **storage: rill.ReplayBuffer(sampler=rill.PrioritizedSampler(alpha=0.7, beta=1.0), seed=3,
                                                         **storage)):
            buffer = make(output="numpy")
            buffer.extend({"x": np.arange(4), "td_error": td_error})
            batch = buffer.sample(4000)
            shares = np.bincount(batch["x"], minlength=4) / 4000
            masses = (td_error[:, 0] + 1e-8) ** 0.7
            np.testing.assert_allclose(shares, masses / masses.sum(), atol=0.03)
            # A row whose own is none that can be has the largest so far.
            buffer.extend({"x": np.array([4]), "td_error": np.array([[np.nan]], np.float32)})
            shares = np.bincount(buffer.sample(4000)["x"], minlength=5) / 4000
            self.assertAlmostEqual(shares[4], shares[3], delta=0.04)

    def test_another_key_is_the_storages_too(self):
        buffer = rill.TensorDictReplayBuffer(priority_key=("a", "p"), sampler=rill.PrioritizedSampler(alpha=1.0),
                                             output="numpy", seed=3)
        buffer.extend({"x": np.arange(2), "a": {"p": np.array([0, 1], np.float32)}})
        self.assertEqual(set(buffer.sample(200)["x"].tolist()), {1})
        with self.assertRaisesRegex(rill.InvalidArgumentError,
                                    "priority_key: got 'p' for a storage of 'td_error'.*priority_key='p'"):
            rill.TensorDictReplayBuffer(priority_key="p", storage=rill.LazyTensorStorage(9))
        buffer = rill.ReplayBuffer()
        with self.assertRaisesRegex(rill.InvalidArgumentError, '"td_error": got float64.*want float32'):
            buffer.extend({"td_error": np.zeros(3)})
        rill.ReplayBuffer(storage=rill.LazyTensorStorage(9, priority_key=None)).extend({"td_error": np.zeros(3)})

    def test_exponents_may_change(self):
        buffer = buffer_of()
        self.assertEqual((buffer.alpha, buffer.beta), (1.0, 1.0))
        buffer.beta = 0.0
        batch = buffer.sample(40)
        buffer.update_priority(batch, np.where(batch["x"] == 2, 5.0, 1.0))
        self.assertEqual(set(buffer.sample(40)["priority_weight"].tolist()), {1.0})
        with self.assertRaisesRegex(rill.InvalidArgumentError, "alpha"):
            buffer.alpha = -1.0

    def test_wrong_priorities_change_nothing(self):
        buffer = buffer_of()
        batch = buffer.sample(5)
        for priority, pattern in ((np.zeros(4, np.float32), "4"), (np.full(5, np.nan), "nan"), ([-1.0] * 5, "-1"),
                                  (np.zeros(5, np.int32), "int32"), (None, "NoneType")):
            with self.subTest(pattern), self.assertRaisesRegex(rill.InvalidArgumentError, pattern):
                buffer.update_priority(batch, priority)
        with self.assertRaisesRegex(rill.FailedPreconditionError, "index: got one of none of the last batches"):
            buffer.update_priority(np.arange(3), np.ones(3))
        uniform = rill.ReplayBuffer()
        with self.assertRaisesRegex(rill.FailedPreconditionError, "without priorities"):
            uniform.alpha = 1.0

    def test_exponents_change_over_the_training(self):
        buffer = buffer_of(beta=0.4)
        linear = rill.LinearScheduler(buffer, "beta", final_value=1.0, num_steps=3)
        values = []
        for _ in range(4):
            linear.step()
            values.append(buffer.beta)
        np.testing.assert_allclose(values, [0.6, 0.8, 1.0, 1.0])
        falling = rill.StepScheduler(buffer, "alpha", gamma=0.5, n_steps=2, min_value=0.3)
        rising = rill.StepScheduler(buffer, "beta", gamma=0.25, mode="additive", max_value=1.4)
        values = []
        for _ in range(5):
            falling.step(), rising.step()
            values.append((buffer.alpha, buffer.beta))
        np.testing.assert_allclose(values, [(1, 1.25), (.5, 1.4), (.5, 1.4), (.3, 1.4), (.3, 1.4)])
        again = rill.LinearScheduler(buffer, "beta", final_value=1.0, num_steps=3)
        again.load_state_dict({**linear.state_dict(), "steps": 1})
        again.step()
        self.assertAlmostEqual(buffer.beta, 0.8)
        for make in (lambda: rill.LinearScheduler(buffer, "beta", 1.0, 0), lambda: rill.StepScheduler(buffer, "beta", mode="x")):
            with self.assertRaises(rill.InvalidArgumentError):
                make()
        with self.assertRaises(rill.FailedPreconditionError):
            rill.LinearScheduler(rill.ReplayBuffer(), "beta", 1.0, 3)


if __name__ == "__main__":
    unittest.main()
