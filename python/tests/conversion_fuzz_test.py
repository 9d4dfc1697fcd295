# SPDX-License-Identifier: Apache-2.0
"""Random batches: each is stored as NumPy has it, or refused as a whole by a rill.Error or TypeError."""
import random
import subprocess
import sys
import unittest

import numpy as np
import rill

DTYPES = ("bool", "uint8", "int16", "int64", "float16", "float32", "float64", "complex64", ">f4", "O", "U3", "M8[s]",
          "f4,i4", "S2", "V3")


class Restless:
    """An array only when asked, which changes the batch that it is in."""

    def __init__(self, batch, array):
        self.batch, self.array = batch, array

    def __array__(self, dtype=None, copy=None):
        self.batch.pop("a", None)
        self.batch["late"] = self.array
        return self.array


class Angry:

    def __array__(self, dtype=None, copy=None):
        raise ZeroDivisionError("no array today")


def random_array(draw, count):
    dtype = np.dtype(draw.choice(DTYPES) if draw.random() < 0.3 else draw.choice(("float32", "int64", "bool")))
    shape = (count,) + tuple(draw.choice((0, 1, 2, 3)) for _ in range(draw.choice((0, 0, 1, 1, 2, 9, 40))))
    if np.prod(shape) * dtype.itemsize > 1e6:
        shape = (count,)
    array = np.zeros(shape, dtype)
    if dtype.kind in "bifuc":
        array = np.array(np.random.RandomState(draw.randrange(1 << 30)).randint(0, 2, shape)).astype(dtype)
    layout = draw.choice(("plain", "reversed", "strided", "transposed", "read only", "unaligned", "broadcast"))
    if layout == "reversed":
        return array[::-1]
    if layout == "strided":
        return np.repeat(array, 2, axis=0)[::2]
    if layout == "transposed" and array.ndim > 2:
        return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)
    if layout == "read only":
        array.flags.writeable = False
    if layout == "unaligned" and dtype.kind in "if" and array.size:
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
        raw[:] = np.frombuffer(array.tobytes(), np.uint8)
        return raw.view(dtype).reshape(shape)
    if layout == "broadcast":
        return np.broadcast_to(array[:1], shape) if count else array
    return array


def random_value(draw, count, batch):
    kind = draw.random()
    if kind < 0.8:
        return random_array(draw, count if draw.random() < 0.95 else count + 1)
    return draw.choice((None, 3, 2.5, True, "text", b"bytes", [0.5] * count, [[1], [1, 2]], (), {}, object(),
                        np.float64(1), np.int32(1), Restless(batch, np.zeros(count)), Angry(), memoryview(bytes(count)),
                        bytearray(count), range(count), 1 << 70, float("nan"), np.ma.masked_array([1.0] * count)))


def random_batch(draw, count):
    batch = {}
    for key in draw.sample(("a", "b", ("next", "r"), "next/d", "next", "é", "", "/", "a/", 7), draw.randrange(1, 4)):
        batch[key] = random_value(draw, count, batch) if draw.random() < 0.9 else {"x": random_value(draw, count, batch)}
    return batch


def output_of(script):
    """What a process of its own prints, as a fault would end this one."""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else "%d %s" % (run.returncode, run.stderr)


def leaf(batch, key):
    for part in (key if isinstance(key, tuple) else key.split("/")):
        batch = batch[part]
    return batch


class ConversionFuzzTest(unittest.TestCase):

    def test_batches_are_stored_as_they_are_or_refused(self):
        draw = random.Random(20)
        stored = refused = 0
        for round in range(1500):
            count = draw.choice((0, 1, 2, 5))
            buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(8), seed=round)
            for _ in range(3):
                batch = random_batch(draw, count)
                before, items = len(buffer), list(batch.items())
                is_step = draw.random() < 0.2
                try:
                    slots = [buffer.add(batch)] if is_step else buffer.extend(batch)
                except (rill.Error, TypeError):
                    refused += 1
                    self.assertEqual(len(buffer), before)
                    continue
                stored += 1
                if not len(slots):
                    continue
                sample = buffer.sample(16)
                order = {slot: i for i, slot in enumerate(slots)}
                for key, value in items:
                    if not isinstance(value, np.ndarray) or value.dtype.kind not in "bifuc":
                        continue
                    got = leaf(sample, key)
                    for i, slot in enumerate(sample["index"]):
                        if int(slot) in order:
                            np.testing.assert_array_equal(got[i], value if is_step else value[order[int(slot)]])
        self.assertGreater(stored, 200)
        self.assertGreater(refused, 200)

    def test_plain_numbers_lose_nothing_of_themselves(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(8))
        row = {"i": np.array([1, 2]), "u": np.array([1, 2], np.uint8), "f": np.array([1, 2], np.float32),
               "b": np.array([True, False])}
        buffer.add(row)
        for key, value, pattern in (("i", [1.7, 2], '"i": got a list of dtype float64, want int64'),
                                    ("i", 1.7, '"i": got a float, want int64'),
                                    ("i", np.float64(1), '"i": got a float64, want int64'),
                                    ("i", [True, False], '"i": got a list of dtype bool, want int64'),
                                    ("i", ["1", "2"], '"i": got a list of dtype <U1, want int64'),
                                    ("u", [1, 300], '"u": got a list that is no array: OverflowError'),
                                    ("f", [None, 1], '"f": got a list of dtype object, want float32'),
                                    ("f", ("1", "2"), '"f": got a tuple of dtype <U1, want float32'),
                                    ("f", [1j, 2], '"f": got a list of dtype complex128, want float32'),
                                    ("f", b"abc", '"f": got a bytes, want numbers'),
                                    ("b", [1, 0], '"b": got a list of dtype int64, want bool'),
                                    ("b", 1, '"b": got a int, want bool')):
            with self.subTest(pattern), self.assertRaisesRegex(rill.InvalidArgumentError, pattern):
                buffer.add({**row, key: value})
        with self.assertRaisesRegex(rill.InvalidArgumentError, '"x": got a bytes, want numbers'):
            rill.ReplayBuffer().extend({"x": b"abc"})
        slot = buffer.add({"i": [3, 4], "u": (3, 255), "f": [3, True], "b": [False, True]})
        got = buffer[slot]
        self.assertEqual({key: got[key][0].tolist() for key in got},
                         {"i": [3, 4], "u": [3, 255], "f": [3.0, 1.0], "b": [False, True]})

    def test_only_integers_are_slots(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(8))
        buffer.extend({"x": np.arange(6)})
        for index in ([1.9, 2.9], 1.0, [True, False, True], True, ["4"], [None], np.array([True]), np.array([1.0])):
            with self.subTest(index), self.assertRaisesRegex(rill.InvalidArgumentError, "index"):
                buffer[index]
        self.assertEqual(buffer[[]]["x"].tolist(), [])
        self.assertEqual(buffer[[4, np.int32(2)]]["x"].tolist(), [4, 2])
        self.assertEqual(buffer[3]["x"].tolist(), [3])

    def test_an_exception_of_an_array_is_the_reason(self):
        with self.assertRaisesRegex(rill.InvalidArgumentError, '"x": got a Angry that is no array: ZeroDivisionError: no array today'):
            rill.ReplayBuffer().extend({"x": Angry()})

    def test_interrupts_go_through(self):
        class Interrupted:
            def __array__(self, dtype=None, copy=None):
                raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            rill.ReplayBuffer().extend({"x": Interrupted()})

    def test_what_a_conversion_drops_from_the_batch_is_stored(self):
        script = """
import numpy as np, rill
buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(3))
buffer.extend({"a": np.zeros(3), "b": np.zeros((3, 4))})
class Dropping:
    def __array__(self, dtype=None, copy=None):
        batch["b"] = None
        self.others = [bytes(96) for _ in range(1000)]
        return np.zeros(3)
for _ in range(500):
    batch = {"a": Dropping()}
    batch["b"] = np.ones((3, 4))
    buffer.extend(batch)
print(buffer[0:3]["b"].sum())
"""
        self.assertEqual(output_of(script), "12.0")

    def test_a_batch_that_holds_itself_is_refused(self):
        script = """
import numpy as np, rill
batch = {"x": np.zeros(3)}
buffer = rill.ReplayBuffer(batch_size=3)
buffer.extend(batch)
batch["self"] = batch
for call in (lambda: buffer.extend(batch), lambda: buffer.sample(out=batch)):
    try:
        call()
    except rill.InvalidArgumentError as error:
        print(error)
"""
        refusal = "batch: dictionaries inside one another: got 65, want at most 64"
        self.assertEqual(output_of(script), "%s\n%s" % (refusal, refusal))


if __name__ == "__main__":
    unittest.main()
