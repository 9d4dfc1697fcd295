# SPDX-License-Identifier: Apache-2.0
"""Rows go in and come out, by the classes that every program begins with."""
import gc
import subprocess
import sys
import unittest

import numpy as np
import rill


def steps(count, start=0):
    number = np.arange(start, start + count, dtype=np.float32)
    return {
        "observation": np.stack([number, -number], axis=1),
        "action": np.arange(start, start + count, dtype=np.int64),
        "next": {"reward": number[:, None] * 2, "done": np.zeros((count, 1), bool)},
    }


def buffer_of(capacity=10, **options):
    options.setdefault("seed", 1)
    return rill.ReplayBuffer(storage=rill.LazyTensorStorage(capacity), **options)


class ExtendTest(unittest.TestCase):

    def test_a_batch_holds_rows_that_belong_together(self):
        buffer = buffer_of(capacity=100, batch_size=64)
        buffer.extend(steps(50))
        batch = buffer.sample()
        self.assertEqual(batch["observation"].shape, (64, 2))
        self.assertEqual(batch["observation"].dtype, np.float32)
        np.testing.assert_array_equal(batch["observation"][:, 0], batch["action"])
        np.testing.assert_array_equal(batch["next"]["reward"][:, 0], batch["action"] * 2)
        np.testing.assert_array_equal(batch["index"], batch["action"])
        self.assertGreater(len(set(batch["action"].tolist())), 10)

    def test_slots_come_back_and_go_round(self):
        buffer = buffer_of(capacity=10)
        self.assertEqual(buffer.extend(steps(7)).tolist(), [0, 1, 2, 3, 4, 5, 6])
        self.assertEqual(buffer.extend(steps(5)).tolist(), [7, 8, 9, 0, 1])
        self.assertEqual(len(buffer), 10)

    def test_add_takes_a_row_and_plain_numbers(self):
        buffer = buffer_of()
        first = {"observation": np.zeros(3, np.float32), "reward": np.zeros(1, np.float32), "done": np.zeros(1, bool)}
        self.assertEqual(buffer.add(first), 0)
        self.assertEqual(buffer.add({"observation": [1, 2, 3], "reward": 1.5, "done": True}), 1)
        self.assertEqual(buffer.add({"observation": np.ones(3, np.float32), "reward": np.float64(2.5), "done": False}), 2)
        batch = buffer.sample(64)
        rewards = {int(i): float(r) for i, r in zip(batch["index"], batch["reward"][:, 0])}
        self.assertEqual(rewards, {0: 0.0, 1: 1.5, 2: 2.5})
        self.assertEqual(set(batch["done"][batch["index"] == 1].ravel().tolist()), {True})

    def test_keys_are_texts_tuples_and_dicts(self):
        buffer = buffer_of()
        value = np.ones((2, 1), np.float32)
        buffer.extend({"next": {"reward": value}, "obs": value})
        buffer.extend({"next/reward": value * 2, "obs": value})
        buffer.extend({("next", "reward"): value * 3, "obs": value})
        self.assertEqual(set(buffer.sample(100)["next"]["reward"].ravel().tolist()), {1.0, 2.0, 3.0})

    def test_every_dtype_comes_back_bit_for_bit(self):
        for dtype in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "uint16",
                      "uint32", "uint64", "complex64", "complex128"):
            with self.subTest(dtype):
                value = np.array([[0, 1], [2, 3]]).astype(dtype)
                buffer = buffer_of(capacity=2)
                buffer.extend({"x": value})
                batch = buffer.sample(8)
                self.assertEqual(batch["x"].dtype, value.dtype)
                np.testing.assert_array_equal(batch["x"], value[batch["index"]])

    def test_gaps_and_negative_strides_are_copied(self):
        buffer = buffer_of(capacity=4)
        buffer.extend({"x": np.arange(8, dtype=np.float32)[::-2]})
        batch = buffer.sample(32)
        np.testing.assert_array_equal(batch["x"], np.array([7, 5, 3, 1], np.float32)[batch["index"]])
        buffer.extend({"x": np.arange(12, dtype=np.float32).reshape(4, 3)[:, 1]})
        batch = buffer.sample(32)
        np.testing.assert_array_equal(batch["x"], np.array([1, 4, 7, 10], np.float32)[batch["index"]])

    def test_the_array_may_change_when_the_call_is_over(self):
        buffer = buffer_of(capacity=100_000)
        large = np.ones((50_000, 4), np.float32)
        buffer.extend({"x": large})
        large[:] = 2
        del large
        self.assertEqual(set(buffer.sample(64)["x"].ravel().tolist()), {1.0})


    def test_a_large_batch_is_not_copied_on_its_way(self):
        script = """
import resource, numpy as np, rill
buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(10))
buffer.extend({"x": np.zeros((5, 1000), np.float32)})
large = np.zeros((100_000, 1000), np.float32)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + large.nbytes // 2, resource.RLIM_INFINITY))
print(len(buffer.extend({"x": large})))
"""
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (0, "10\n"), run.stderr)


class SampleTest(unittest.TestCase):

    def test_equal_seeds_give_equal_batches(self):
        batches = []
        for _ in range(2):
            buffer = buffer_of(capacity=50, seed=7, batch_size=20)
            buffer.extend(steps(50))
            batches.append([buffer.sample()["index"].copy() for _ in range(3)])
        np.testing.assert_array_equal(batches[0], batches[1])
        other = buffer_of(capacity=50, seed=8, batch_size=20)
        other.extend(steps(50))
        self.assertNotEqual(other.sample()["index"].tolist(), batches[0][0].tolist())

    def test_a_batch_stays_as_it_is_while_it_is_held(self):
        buffer = buffer_of(capacity=50, batch_size=20)
        buffer.extend(steps(50))
        held = [buffer.sample() for _ in range(10)]
        copies = [batch["action"].copy() for batch in held]
        for _ in range(10):
            buffer.sample()
        for batch, copy in zip(held, copies):
            np.testing.assert_array_equal(batch["action"], copy)
        self.assertEqual(len({batch["action"].ctypes.data for batch in held}), 10)

    def test_an_array_outlives_its_batch_and_the_buffer(self):
        buffer = buffer_of(capacity=50, batch_size=20)
        buffer.extend(steps(50))
        part = buffer.sample()["next"]["reward"][3:5]
        value = part.copy()
        for _ in range(10):
            buffer.sample()
        buffer.close()
        del buffer
        gc.collect()
        np.testing.assert_array_equal(part, value)

    def test_the_memory_of_a_batch_that_nobody_holds_serves_again(self):
        buffer = buffer_of(capacity=50, batch_size=20)
        buffer.extend(steps(50))
        places = set()
        for _ in range(20):
            places.add(buffer.sample()["action"].ctypes.data)
        self.assertLessEqual(len(places), 3)

    def test_out_is_written_in_place(self):
        buffer = buffer_of(capacity=50, batch_size=20)
        buffer.extend(steps(50))
        batch = buffer.sample()
        action, old = batch["action"], batch["action"].copy()
        self.assertIs(buffer.sample(out=batch), batch)
        self.assertIs(batch["action"], action)
        self.assertNotEqual(action.tolist(), old.tolist())
        np.testing.assert_array_equal(batch["next"]["reward"][:, 0], action * 2)
        own = {"observation": np.zeros((20, 2), np.float32), "action": np.zeros(20, np.int64),
               "next": {"reward": np.zeros((20, 1), np.float32), "done": np.ones((20, 1), bool)},
               "index": np.zeros(20, np.int64), "index_generation": np.zeros(20, np.int64)}
        buffer.sample(out=own)
        np.testing.assert_array_equal(own["observation"][:, 0], own["action"])
        self.assertGreater(own["action"].max(), 0)
        del own["next"]["reward"]
        with self.assertRaisesRegex(rill.InvalidArgumentError, 'out: got none of "next/reward"'):
            buffer.sample(out=own)

    def test_out_that_cannot_be_written_in_place_is_refused(self):
        for prefetch in (0, 2):
            with buffer_of(capacity=50, batch_size=4, prefetch=prefetch) as buffer:
                buffer.extend(steps(50))
                batch = buffer.sample()
                read_only = np.zeros(4, np.int64)
                read_only.flags.writeable = False
                for key, place, pattern in (
                        ("action", np.zeros((4, 2), np.int64)[:, 0], '"action": got a ndarray, want a writable, C-contig'),
                        ("action", np.zeros(33, np.uint8)[1:].view(np.int64), '"action": got a ndarray, want a writable'),
                        ("action", read_only, '"action": got a ndarray, want a writable'),
                        ("action", [0, 0, 0, 0], '"action": got a list, want a writable'),
                        ("action", bytes(32), '"action": got a bytes, want a writable'),
                        ("action", np.zeros(4, np.int32), 'action'),
                        ("action", np.zeros(5, np.int64), 'action'),
                        ("extra", np.zeros(4), 'out: got "extra", want leaves of the batch alone')):
                    with self.subTest(pattern, prefetch=prefetch):
                        with self.assertRaisesRegex(rill.InvalidArgumentError, pattern):
                            buffer.sample(out={**batch, key: place})

    def test_out_through_the_protocol_of_arrays(self):
        class Copying:
            def __array__(self, dtype=None, copy=None):
                return np.zeros(4, np.int64)

        class Sharing:
            values = np.zeros(4, np.int64)

            def __array__(self, dtype=None, copy=None):
                return self.values[:]

        buffer = buffer_of(capacity=50, batch_size=4)
        buffer.extend(steps(50))
        batch = buffer.sample()
        with self.assertRaisesRegex(rill.InvalidArgumentError, '"action": got a Copying, want a writable'):
            buffer.sample(out={**batch, "action": Copying()})
        buffer.sample(out={**batch, "action": Sharing()})
        np.testing.assert_array_equal(Sharing.values, batch["index"])

    def test_info_tells_the_rows(self):
        buffer = buffer_of(capacity=50)
        buffer.extend(steps(50))
        batch, info = buffer.sample(5, return_info=True)
        self.assertIs(info["index"], batch["index"])

    def test_prefetched_batches_are_those_of_no_prefetch(self):
        indices = []
        for prefetch in (0, 3):
            with buffer_of(capacity=50, batch_size=20, prefetch=prefetch) as buffer:
                buffer.extend(steps(50))
                held = [buffer.sample() for _ in range(8)]
                indices.append([batch["index"].tolist() for batch in held])
                for batch in held:
                    np.testing.assert_array_equal(batch["index"], batch["action"])
                out = buffer.sample(out=held[0])
                np.testing.assert_array_equal(out["index"], out["action"])
        self.assertEqual(indices[0], indices[1])

    def test_without_replacement_an_epoch_has_every_row(self):
        buffer = buffer_of(capacity=50, batch_size=10, sampler=rill.SamplerWithoutReplacement())
        buffer.extend(steps(50))
        seen = np.concatenate([buffer.sample()["index"] for _ in range(5)])
        self.assertEqual(sorted(seen.tolist()), list(range(50)))

    def test_without_replacement_rows_are_shuffled_or_not_and_the_rest_dropped_or_not(self):
        for drop_last, sizes in ((False, [4, 4, 2, 4]), (True, [4, 4, 4, 4])):
            for shuffle in (False, True):
                buffer = buffer_of(batch_size=4, sampler=rill.SamplerWithoutReplacement(drop_last, shuffle))
                buffer.extend(steps(10))
                batches = [buffer.sample()["index"].tolist() for _ in range(4)]
                self.assertEqual([len(batch) for batch in batches], sizes)
                self.assertEqual(batches[:2] == [[0, 1, 2, 3], [4, 5, 6, 7]], not shuffle)

    def test_iterating_gives_batches(self):
        buffer = buffer_of(capacity=50, batch_size=10)
        buffer.extend(steps(50))
        for i, batch in enumerate(buffer):
            self.assertEqual(len(batch["index"]), 10)
            if i == 3:
                break


class ErrorsTest(unittest.TestCase):

    def test_a_status_is_an_exception_of_one_family(self):
        with self.assertRaises(ValueError) as caught:
            rill.LazyTensorStorage(0)
        self.assertIsInstance(caught.exception, rill.Error)
        self.assertIsInstance(caught.exception, rill.InvalidArgumentError)
        self.assertRegex(str(caught.exception), "DenseStorage.*capacity: got 0")

    def test_batches_that_do_not_fit_name_the_key(self):
        buffer = buffer_of()
        buffer.extend(steps(3))
        for change, pattern in (
                ({"action": np.zeros(3, np.int32)}, '"action".*int32.*int64'),
                ({"action": np.zeros(2, np.int64)}, '"action"'),
                ({"observation": np.zeros((3, 3), np.float32)}, '"observation"'),
                ({"extra": np.zeros(3)}, 'unknown {extra}'),
                ({"action": np.array([None] * 3)}, '"action": got a ndarray of dtype object, want numbers'),
                ({"action": np.array(["a"] * 3)}, '"action": got a ndarray of dtype <U1'),
                ({"action": np.zeros(3, ">i8")}, '"action": got a ndarray of dtype >i8'),
                ({"action": None}, '"action": got a NoneType'),
                ({"action": "text"}, '"action": got a str'),
                ({"action": [[1], [2, 3], []]}, '"action": got a list that is no array'),
                ({"action": np.int64(3)}, '"action"'),
                ({"next/reward": np.zeros((3, 1), np.float32)}, '"next/reward": got it twice'),
                ({3: np.zeros(3)}, "key: got 3, want a text"),
                ({"a//b": np.zeros(3)}, "a//b")):
            with self.subTest(pattern):
                with self.assertRaisesRegex(rill.InvalidArgumentError, pattern):
                    buffer.extend({**steps(3), **change})
                self.assertEqual(len(buffer), 3)
        missing = steps(3)
        del missing["action"]
        with self.assertRaisesRegex(rill.InvalidArgumentError, 'no {action}'):
            buffer.extend(missing)
        with self.assertRaisesRegex(rill.InvalidArgumentError, "got a list, want a dict"):
            buffer.extend([1])
        with self.assertRaisesRegex(rill.InvalidArgumentError, "without arrays"):
            buffer.extend({})

    def test_options_that_are_refused_raise_the_same_family(self):
        for call, error, pattern in (
                (lambda: rill.ReplayBuffer(output="jax"), rill.InvalidArgumentError, "output: got 'jax'"),
                (lambda: rill.ReplayBuffer(transform=[3]), rill.InvalidArgumentError, "want one of rill.transforms"),
                (lambda: rill.ReplayBuffer(sampler=rill.SliceSampler(slice_len=2), sample_unit=rill.NStep(2)),
                 rill.InvalidArgumentError, "sample_unit: got one"),
                (lambda: rill.LazyTensorStorage(3, device="cuda"), rill.UnimplementedError, "device: got 'cuda'"),
                (lambda: rill.LazyTensorStorage(3, ndim=2), rill.InvalidArgumentError, "ndim: got 2"),
                (lambda: rill.ReplayBuffer().add(3), rill.InvalidArgumentError, "batch: got a int")):
            with self.subTest(pattern), self.assertRaisesRegex(error, pattern):
                call()

    def test_a_sample_of_nothing_is_refused(self):
        with self.assertRaises(rill.FailedPreconditionError):
            buffer_of(batch_size=4).sample()
        with self.assertRaisesRegex(rill.InvalidArgumentError, "batch_size"):
            buffer_of().sample()

    def test_a_closed_buffer_says_so(self):
        buffer = buffer_of(batch_size=4)
        buffer.extend(steps(3))
        buffer.close()
        buffer.close()
        for call in (buffer.sample, lambda: len(buffer), lambda: buffer.extend(steps(3)), buffer.empty):
            with self.assertRaisesRegex(rill.FailedPreconditionError, "closed buffer"):
                call()


if __name__ == "__main__":
    unittest.main()
