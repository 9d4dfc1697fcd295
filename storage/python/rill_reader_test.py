# SPDX-License-Identifier: Apache-2.0
"""rill_reader beside a writer in another process, and over damaged files.

usage: rill_reader_test.py WRITE_NUMBERED README   (the writer's program, and a
  page whose Python lines are run)
"""
import importlib
import itertools
import os
import random
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

try:
    import numpy as np
except ImportError:
    np = None
else:
    import rill_reader
try:
    import torch
except ImportError:
    torch = None

LANES, CAPACITY = 3, 32
FORMS = list(itertools.product(("rows", "columns"), ("lane_major", "time_major")))
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64", "uint16", "uint32", "uint64", "complex64", "complex128"]


class Writer:
    """write_numbered, told what to do."""

    def __init__(self, path, layout="columns", order="lane_major", lanes=LANES, capacity=CAPACITY,
                 hold_timeout=None):
        self.process = subprocess.Popen(
            [sys.argv[1], path, layout, order, str(lanes), str(capacity)] +
            ([hold_timeout] if hold_timeout else []), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        assert self.process.stdout.readline() == "made\n"

    def begin(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def end(self):
        line = self.process.stdout.readline()
        assert line, "the writer has ended"
        return [int(word) for word in line.split()]

    def do(self, command):
        self.begin(command)
        return self.end()

    def close(self):
        """Lets it end; its status."""
        self.process.stdin.close()
        status = self.process.wait()
        self.process.stdout.close()
        return status

    def kill(self):
        self.process.kill()
        self.close()


@unittest.skipIf(np is None, "no NumPy for %s" % sys.executable)
class ReaderTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "storage")

    def writer(self, *args, **kwargs):
        writer = Writer(self.path, *args, **kwargs)
        self.addCleanup(writer.kill)
        return writer

    def expect_whole(self, batch):
        """Every row is the one that it says it is, to its last byte."""
        number = batch.lane.astype(np.int64) * (1 << 40) + batch.step
        if "next/id" in batch:
            number += batch["next/id"][..., 0] & ~((1 << 52) - 1)  # Changes.
            np.testing.assert_array_equal(batch["next/id"][..., 0], number)
        if "observation" in batch:
            np.testing.assert_array_equal(
                batch["observation"], np.broadcast_to(number[..., None], batch["observation"].shape))

    def expect_steps(self, batch, windows):
        """The rows are steps [first, end) of each lane."""
        want = [(lane, step) for lane, (first, end) in enumerate(windows) for step in range(first, end)]
        self.assertEqual(list(zip(batch.lane.ravel().tolist(), batch.step.ravel().tolist())), want)
        self.expect_whole(batch)


class LiveRowsTest(ReaderTest):

    def test_which_rows_are_live_and_in_which_order(self):
        for layout, order in FORMS:
            with self.subTest(layout=layout, order=order):
                writer = self.writer(layout, order)
                reader = rill_reader.Reader(self.path)
                self.assertEqual((reader.lanes, reader.lane_capacity, reader.capacity), (3, 32, 96))
                self.assertEqual(reader.size, 0)
                self.assertEqual(reader.read()["observation"].shape, (0, 512))
                self.assertEqual(reader.read(layout="lanes")["observation"].shape, (3, 0, 512))
                writer.do("extend 0 3 10")
                self.expect_steps(reader.read(), [(0, 10)] * 3)
                writer.do("extend 1 1 5")
                self.assertEqual(reader.cursors().tolist(), [10, 15, 10])
                self.assertEqual(reader.size, 35)
                self.expect_steps(reader.read(), [(0, 10), (0, 15), (0, 10)])
                self.expect_steps(reader.read(layout="lanes"), [(0, 10), (5, 15), (0, 10)])
                self.expect_steps(reader.read(last=4), [(6, 10), (11, 15), (6, 10)])
                self.expect_steps(reader.read("next/id", layout="lanes", last=4),
                                  [(6, 10), (11, 15), (6, 10)])
                writer.do("extend 0 3 40")  # Goes round.
                self.expect_steps(reader.read(), [(18, 50), (23, 55), (18, 50)])
                self.expect_steps(reader.read(layout="lanes"), [(18, 50), (23, 55), (18, 50)])
                self.assertEqual(reader.read(layout="lanes")["observation"].shape, (3, 32, 512))
                writer.do("clear")
                self.assertEqual(reader.size, 0)
                writer.do("extend 2 1 3")
                writer.do("save")
                writer.do("extend 2 1 5")
                writer.do("back")
                self.expect_steps(reader.read(), [(0, 0), (0, 0), (0, 3)])
                self.assertEqual(writer.close(), 0)
                self.expect_steps(reader.read(), [(0, 0), (0, 0), (0, 3)])  # Closed.
                shutil.rmtree(self.path)

    def test_one_lane(self):
        writer = self.writer(lanes=1)
        writer.do("extend 0 1 40")
        reader = rill_reader.Reader(self.path)
        self.expect_steps(reader.read(), [(8, 40)])
        self.assertEqual(reader.read(layout="lanes", last=5)["observation"].shape, (1, 5, 512))

    def test_every_dtype_and_key(self):
        for layout, order in FORMS:
            writer = self.writer(layout, order)
            writer.do("extend 0 3 20")
            reader = rill_reader.Reader(self.path)
            self.assertEqual(reader.keys[:4], ("observation", "next/id", "next/reward", "none"))
            batch = reader.read()
            self.assertEqual(batch["none"].shape, (60, 0, 2))
            number = batch.lane * (1 << 40) + batch.step
            want = (number % 100)[:, None] + np.zeros((60, 3), np.int64)
            for dtype in DTYPES:
                key = "next/a b:" + dtype
                self.assertEqual(repr(reader.spec[key]), dtype + "[3]")
                values = want != 0 if dtype == "bool" else want
                if dtype == "bfloat16":  # Its bits.
                    values = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
                elif dtype == "complex128":
                    values = values * 1j
                self.assertEqual(batch[key].dtype, reader.spec[key].numpy_dtype)
                np.testing.assert_array_equal(batch[key], values.astype(batch[key].dtype), key)
            writer.close()
            shutil.rmtree(self.path)

    def test_rows_of_a_killed_append_are_not_offered(self):
        writer = self.writer()
        writer.do("extend 0 3 40")
        writer.begin("die 1 1 6")
        self.assertEqual(writer.close(), 7)
        reader = rill_reader.Reader(self.path)
        self.expect_steps(reader.read(), [(8, 40), (14, 40), (8, 40)])
        steps = reader.sample(2000).step[reader.sample(2000).lane == 1]
        self.assertGreater(len(steps), 0)
        batch = reader.sample(2000)
        self.assertEqual(batch.step[batch.lane == 1].min(), 14)

    def test_samples_are_uniform_over_live_rows(self):
        writer = self.writer("rows", "time_major")
        writer.do("extend 0 3 20")
        writer.do("extend 1 1 30")
        reader = rill_reader.Reader(self.path)
        batch = reader.sample(30000, rng=np.random.default_rng(5))
        self.expect_whole(batch)
        count = np.bincount(batch.lane * 64 + batch.step, minlength=192).reshape(3, 64)
        self.assertEqual(count[:, 50:].sum() + count[0, 20:].sum() + count[1, :18].sum(), 0)
        drawn = np.concatenate([count[0, :20], count[1, 18:50], count[2, :20]])
        # 417 of each of 72, with a deviation of 20.
        self.assertTrue((abs(drawn - 30000 / 72) < 6 * 20).all(), drawn)
        self.assertEqual(reader.sample(0)["observation"].shape, (0, 512))
        writer.do("clear")
        with self.assertRaisesRegex(rill_reader.UnavailableError, "got 0"):
            reader.sample(1)

    def test_bad_arguments_are_named(self):
        self.writer()
        reader = rill_reader.Reader(self.path)
        for call in (reader.read, reader.views):
            with self.assertRaisesRegex(KeyError, "got 'reward', want some of observation, next/id"):
                call(["observation", "reward"])
            with self.assertRaisesRegex(ValueError, "last: got -1"):
                call(last=-1)
        with self.assertRaisesRegex(ValueError, "layout: got 'time'"):
            reader.read(layout="time")


class StepsTest(ReaderTest):

    def test_a_range_of_steps_is_whole_or_an_error(self):
        rng = random.Random(3)
        for layout, order in FORMS:
            writer = self.writer(layout, order)
            reader = rill_reader.Reader(self.path, timeout=0)
            ends = [0] * LANES
            for _ in range(30):
                lane, count, steps = rng.choice([(0, 3, 7), (0, 3, 1), (1, 1, 5), (2, 1, 40)])
                ends = writer.do("extend %d %d %d" % (lane, count, steps))
                first = [rng.randrange(end + 2) for end in ends]
                end = [rng.randrange(f, min(f + 20, e + 3) + 1) if f <= e else f
                       for f, e in zip(first, ends)]
                wanted = [(f, e, cursor) for f, e, cursor in zip(first, end, ends)]
                if any(e > cursor for _, e, cursor in wanted):
                    with self.assertRaisesRegex(rill_reader.UnavailableError, "wait"):
                        reader.read(steps=(first, end))
                elif any(f < max(0, cursor - CAPACITY) and f < e for f, e, cursor in wanted):
                    with self.assertRaisesRegex(rill_reader.LostError, "no longer there"):
                        reader.read(steps=(first, end))
                else:
                    self.expect_steps(reader.read(steps=(first, end)), list(zip(first, end)))
            writer.do("clear")
            writer.do("extend 0 3 20")
            self.expect_steps(reader.read(steps=(3, 9), layout="lanes"), [(3, 9)] * 3)
            self.assertEqual(reader.read(steps=(3, 9), layout="lanes")["next/id"].shape, (3, 6, 1))
            self.assertEqual(reader.read(steps=(20, 20), layout="lanes")["next/id"].shape, (3, 0, 1))
            writer.close()
            shutil.rmtree(self.path)

    def test_steps_that_go_while_they_are_copied_are_an_error(self):
        writer = self.writer()
        writer.do("extend 0 3 32")
        reader = rill_reader.Reader(self.path)
        copy = reader._copy_steps
        commands = ["extend 1 1 5"]

        def copy_and_write(*args):
            copy(*args)
            if commands:
                writer.do(commands.pop())
        with mock.patch.object(reader, "_copy_steps", copy_and_write):
            self.expect_steps(reader.read(steps=(5, 20)), [(5, 20)] * 3)
            commands.append("extend 1 1 5")
            with self.assertRaisesRegex(rill_reader.LostError, r"\[5, ...\) of lane 1, .* below 10"):
                reader.read(steps=(5, 20))
            commands.append("clear")
            with self.assertRaises(rill_reader.UnavailableError):
                reader.read(steps=(10, 20))

    def test_a_learner_reads_every_step_once_while_the_writer_goes_on(self):
        writer = self.writer()
        reader = rill_reader.Reader(self.path, timeout=60)
        seen = 0
        for first in range(0, 96, 8):
            writer.begin("extend 0 3 8")
            self.assertTrue((reader.wait(first + 8) >= first + 8).all())
            batch = reader.read(steps=(first, first + 8), layout="lanes")
            self.expect_steps(batch, [(first, first + 8)] * 3)
            seen += batch.step.shape[1]
            writer.end()
        self.assertEqual(seen, 96)

    def test_waiting_ends(self):
        writer = self.writer()
        writer.do("extend 0 3 4")
        writer.do("extend 1 1 1")
        reader = rill_reader.Reader(self.path, timeout=0)
        self.assertEqual(reader.wait([4, 5, 0]).tolist(), [4, 5, 4])
        with self.assertRaisesRegex(rill_reader.UnavailableError, "step 5 of lane 0: got 4"):
            reader.wait(5, timeout=0.01)

    def test_bad_arguments_are_named(self):
        self.writer()
        reader = rill_reader.Reader(self.path)
        for steps in ((3, 2), (-1, 2), ([0, 0, 0], [1, 1, -1])):
            with self.assertRaisesRegex(ValueError, "want 0 <= first <= end"):
                reader.read(steps=steps)
        with self.assertRaisesRegex(ValueError, "as many in each lane"):
            reader.read(steps=(0, [1, 1, 2]), layout="lanes")
        with self.assertRaisesRegex(ValueError, "one for each of 3 lanes"):
            reader.read(steps=(0, [1, 1]))
        with self.assertRaisesRegex(ValueError, "one of them"):
            reader.read(last=1, steps=(0, 1))


class HoldTest(ReaderTest):

    def test_nothing_is_overwritten_that_is_held(self):
        for form in FORMS:
            writer = self.writer(*form, hold_timeout="0")
            writer.do("extend 0 3 32")
            reader = rill_reader.Reader(self.path)
            with reader.hold(0) as hold:
                self.assertEqual(hold.first.tolist(), [0] * 3)
                self.assertEqual(writer.do("extend 0 3 1"), [-1])
                self.assertEqual(writer.do("extend 1 1 1"), [-1])
                self.expect_steps(reader.read(steps=(0, 32)), [(0, 32)] * 3)
                hold.move([5, 10, 5])
                self.assertEqual(writer.do("extend 1 1 10"), [32, 42, 32])
                self.assertEqual(writer.do("extend 1 1 1"), [-1])
                self.assertEqual(writer.do("extend 0 3 1"), [-1])
                self.assertEqual(writer.do("extend 0 1 5"), [37, 42, 32])
                self.expect_steps(reader.read(steps=([5, 10, 5], [37, 42, 32])),
                                  [(5, 37), (10, 42), (5, 32)])
                # Steps to come, and rows in place, are no matter.
                hold.move([40, 42, 70])
                writer.do("patch")
                self.assertEqual(writer.do("extend 0 3 32"), [69, 74, 64])
                self.assertEqual(writer.do("extend 0 3 4"), [-1])
            writer.close()
            shutil.rmtree(self.path)

    def test_a_random_history_loses_no_step_that_is_held(self):
        rng = random.Random(8)
        writer = self.writer(hold_timeout="0")
        reader = rill_reader.Reader(self.path)
        ends, holds = [0] * LANES, []
        for _ in range(400):
            what = rng.randrange(6)
            if what == 0 and len(holds) < 4:
                holds.append(reader.hold([max(0, end - rng.randrange(12)) for end in ends]))
            elif what == 1 and holds:
                holds.pop(rng.randrange(len(holds))).release()
            elif what == 2 and holds:
                hold = rng.choice(holds)
                hold.move(hold.first + [rng.randrange(9) for _ in range(LANES)])
            else:
                lane, count = rng.choice([(0, 3), (0, 1), (1, 2), (2, 1)])
                steps = rng.randrange(1, 12)
                after = [end + steps * (lane <= i < lane + count) for i, end in enumerate(ends)]
                fits = all(hold.first[i] >= after[i] - CAPACITY for hold in holds
                           for i in range(lane, lane + count) if after[i] > CAPACITY)
                self.assertEqual(writer.do("extend %d %d %d" % (lane, count, steps)),
                                 after if fits else [-1])
                ends = after if fits else ends
            for hold in holds:
                first = np.minimum(hold.first, ends)
                self.expect_steps(reader.read(steps=(first, ends)), list(zip(first.tolist(), ends)))

    def test_the_writer_waits(self):
        writer = self.writer(hold_timeout="60s")
        writer.do("extend 0 3 32")
        reader = rill_reader.Reader(self.path)
        hold = reader.hold(0)
        for first in range(0, 96, 8):
            writer.begin("extend 0 3 8")
            self.expect_steps(reader.read(steps=(first, first + 8), layout="lanes"),
                              [(first, first + 8)] * 3)
            self.assertEqual(reader.cursors().tolist(), [first + 32] * 3)
            hold.move(first + 8)
            self.assertEqual(writer.end(), [first + 40] * 3)

    def test_it_ends_with_the_process_whatever_way_that_ends(self):
        writer = self.writer(hold_timeout="0")
        writer.do("extend 0 3 32")
        for _ in range(20):  # More than there are.
            child = subprocess.Popen(
                [sys.executable, "-c", "import sys, rill_reader\n"
                 "hold = rill_reader.Reader(sys.argv[1]).hold()\n"
                 "print('held', flush=True)\nsys.stdin.read()", self.path],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                cwd=os.path.dirname(rill_reader.__file__))
            self.assertEqual(child.stdout.readline(), "held\n")
            self.assertNotEqual(writer.do("extend 0 3 32"), [-1])
            self.assertEqual(writer.do("extend 0 3 1"), [-1])
            child.kill()
            child.wait()
            child.stdin.close()
            child.stdout.close()
        self.assertNotEqual(writer.do("extend 0 3 32"), [-1])

    def test_a_process_that_is_forked_has_no_part_in_it(self):
        writer = self.writer(hold_timeout="0")
        writer.do("extend 0 3 32")
        hold = rill_reader.Reader(self.path).hold(0)
        (away, there), (begun, begins) = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            hold.release()  # Of the parent's it is not.
            os.close(there)
            os.write(begins, b"x")
            os.read(away, 1)
            os._exit(0)
        os.close(away)
        self.assertEqual(os.read(begun, 1), b"x")
        os.close(begun)
        os.close(begins)
        self.assertEqual(writer.do("extend 0 3 1"), [-1])
        # As where the parent dies: its files are closed, and nothing else.
        os.close(hold._fd)
        hold._fd = -1
        self.assertEqual(writer.do("extend 0 3 1"), [33] * 3)
        os.close(there)
        os.waitpid(child, 0)

    def test_what_cannot_be_held_is_an_error(self):
        writer = self.writer()
        writer.do("extend 0 3 40")
        reader = rill_reader.Reader(self.path, timeout=0)
        with self.assertRaisesRegex(rill_reader.UnavailableError, "hold_timeout"):
            reader.hold()
        writer.close()
        writer = self.writer(hold_timeout="0")
        with self.assertRaisesRegex(rill_reader.LostError, "step 7 of lane 0, want one from 8 on"):
            reader.hold(7)
        with self.assertRaisesRegex(ValueError, "want >= 0"):
            reader.hold(-1)
        hold = reader.hold(8)
        self.assertEqual(writer.do("extend 0 3 1"), [-1])
        with self.assertRaisesRegex(ValueError, "got 7 of lane 0, want 8 or more"):
            hold.move(7)
        hold.release()
        hold.release()
        with self.assertRaisesRegex(rill_reader.RillError, "was released"):
            hold.move(9)
        holds = [reader.hold() for _ in range(16)]
        with self.assertRaisesRegex(rill_reader.UnavailableError, "16 readers"):
            reader.hold()
        for hold in holds:
            hold.release()
        writer.do("clear")  # Goes by no hold; steps are counted anew.
        with reader.hold(0):
            writer.do("extend 0 3 32")
            self.assertEqual(writer.do("extend 0 3 1"), [-1])
        writer.close()
        with self.assertRaisesRegex(rill_reader.UnavailableError, "no writer that waits"):
            reader.hold()
        # A writer that waits for nobody, behind one that did.
        writer = self.writer()
        with self.assertRaisesRegex(rill_reader.UnavailableError, "no writer that waits"):
            reader.hold()

    def test_damaged_files_are_named(self):
        writer = self.writer(hold_timeout="0")
        reader = rill_reader.Reader(self.path, timeout=0)
        path = os.path.join(self.path, "rill.holds")
        with open(path, "rb") as file:
            whole = file.read()
        for broken, error in [(b"", rill_reader.UnavailableError),
                              (bytes(len(whole)), rill_reader.UnavailableError),
                              (whole[:-8], rill_reader.DamagedError),
                              (whole[:8] + b"\4" + whole[9:], rill_reader.DamagedError),
                              (whole[:16] + b"\xff" * 8 + whole[24:], rill_reader.DamagedError)]:
            with open(path, "wb") as file:
                file.write(broken)
            with self.assertRaises(error):
                reader.hold()
        with open(path, "wb") as file:
            file.write(whole)
        reader.hold().release()


class MadeAnewTest(ReaderTest):

    def test_a_directory_that_is_made_anew_is_another(self):
        writer = self.writer()
        reader = rill_reader.Reader(self.path, timeout=0)
        writer.do("extend 0 3 20")
        writer.close()
        writer = self.writer()  # The next owner of the same one.
        writer.do("extend 0 3 1")
        self.expect_steps(reader.read(), [(0, 21)] * 3)
        writer.do("extend 0 3 1")  # Which the reader has not seen.
        writer.close()
        shutil.rmtree(self.path)
        for made_anew in (False, True):
            if made_anew:
                self.writer().do("extend 0 3 2")
            for call in (lambda: reader.size, reader.cursors, reader.read, reader.views,
                         lambda: reader.sample(4), lambda: reader.read(steps=(0, 1)),
                         lambda: reader.wait(1)):
                with self.assertRaisesRegex(rill_reader.ReplacedError, "open another Reader"):
                    call()
        self.expect_steps(rill_reader.Reader(self.path).read(), [(0, 2)] * 3)


@unittest.skipIf(np is None, "no NumPy for %s" % sys.executable)
class EndsTest(unittest.TestCase):

    def batch(self, flags, stored=None):
        lane = np.zeros(20, np.int64)
        return rill_reader.Batch(flags, lane, np.arange(20), dict.fromkeys(stored or flags))

    def test_parts_count_where_done_is_not_stored(self):
        rng = np.random.default_rng(0)
        for group, width in ((None, 1), ("agents", 2)):
            prefix = "next/agents/" if group else "next/"
            terminated, truncated = rng.random((2, 20, width, 1)) < 0.3
            flags = {"terminated": terminated, "truncated": truncated, "done": terminated | truncated}
            for count in (1, 2, 3):
                for names in itertools.combinations(flags, count):
                    batch = self.batch({prefix + name: flags[name] for name in names})
                    want = flags["done"] if "done" in names else np.logical_or.reduce(
                        [flags[name] for name in names])
                    np.testing.assert_array_equal(batch.ends(group), want)

    def test_flags_that_are_missing_are_no_flags_that_are_false(self):
        none = np.zeros((20, 1), bool)
        with self.assertRaisesRegex(rill_reader.RillError, "got none of .*next/truncated"):
            self.batch({"next/reward": none}).ends()
        with self.assertRaisesRegex(rill_reader.RillError, "next/truncated"):
            self.batch({"next/terminated": none}, ["next/terminated", "next/truncated"]).ends()
        with self.assertRaisesRegex(rill_reader.RillError, "next/guard/done"):
            self.batch({"next/done": none}).ends("guard")


class ExampleTest(ReaderTest):
    """The lines that users copy."""

    def run_lines(self, lines):
        self.writer(hold_timeout="0").do("extend 0 3 400")
        names = {"directory": self.path, "rill_reader": rill_reader}
        torch_or_not = mock.patch.object(rill_reader.Batch, "torch", lambda batch: batch) if torch is None \
            else mock.patch.object(rill_reader, "_torch", torch)
        with torch_or_not:
            exec(lines, names)
        self.assertEqual(names["batch"]["next/reward"].shape, (256, 1))
        self.assertEqual(names["recent"]["observation"].shape, (3, 32, 512))
        return names

    def test_of_the_readme(self):
        with open(sys.argv[2], encoding="utf-8") as page:
            lines = re.findall("```python\n(.*?)```", page.read(), re.S)
        self.assertEqual(len(lines), 1)
        self.assertIn("mean", self.run_lines(lines[0]))

    def test_of_the_file(self):
        lines = re.findall("^    (.*)$", rill_reader.__doc__, re.M)
        self.assertGreater(len(lines), 4)
        lines = "\n".join(lines).replace('"/data/storage"', "directory")
        self.run_lines(lines.replace("reader.hold(0)", "reader.hold()").replace(
            "range(0, total, 128)", "()"))


class ViewTest(ReaderTest):

    def test_views_are_the_rows_in_place(self):
        for layout, order in FORMS:
            writer = self.writer(layout, order)
            writer.do("extend 0 3 40")
            reader = rill_reader.Reader(self.path)
            views = reader.views()
            self.assertEqual([len(v.step) for v in views], [24, 8] * 3)
            for view in views:
                self.expect_whole(view)
                self.assertTrue(view.valid())
                with self.assertRaises(ValueError):
                    view["observation"][0] = 0
            self.expect_steps(reader.read(), [(8, 40)] * 3)
            recent = reader.views(last=5)
            writer.do("extend 1 1 1")  # Overwrites step 8 of lane 1.
            self.assertEqual([v.valid() for v in views], [True, True, False, True, True, True])
            self.assertTrue(all(v.valid() for v in recent))
            writer.do("patch")
            self.assertFalse(any(v.valid() for v in views + recent))
            recent = reader.views("next/id", last=5)
            writer.do("clear")
            self.assertFalse(any(v.valid() for v in recent))
            writer.close()
            shutil.rmtree(self.path)

    def test_a_view_knows_of_an_append_that_has_only_begun(self):
        writer = self.writer()
        writer.do("extend 0 3 32")
        reader = rill_reader.Reader(self.path)
        views = reader.views()
        writer.begin("die 1 2 1")
        self.assertEqual(writer.close(), 7)
        self.assertEqual([v.valid() for v in views], [True, False, False])


class BesideAWriterTest(ReaderTest):
    """The writer appends as fast as it can; no row is ever half or another."""

    def beside(self, command, form, read):
        writer = self.writer(*form)
        writer.do("extend 0 3 32")
        reader = rill_reader.Reader(self.path)
        rows = 0
        for _ in range(50):  # The writer may end before the first look.
            writer.begin(command)
            done = []
            while not done:
                try:
                    batch = read(reader, rows)
                except rill_reader.UnavailableError:
                    batch = None
                if batch is not None:
                    self.expect_whole(batch)
                    rows += batch.step.size
                # Whether it has answered, without waiting.
                done = select.select([writer.process.stdout], [], [], 0)[0]
            cursors = writer.end()
            if rows:
                break
        self.assertEqual(reader.cursors().tolist(), cursors)
        self.expect_whole(reader.read())
        writer.close()
        shutil.rmtree(self.path)
        self.assertGreater(rows, 0)

    def test_copies(self):
        for form in FORMS:
            for layout in ("flat", "lanes"):
                def read(reader, _):
                    batch = reader.read(layout=layout)
                    self.assertEqual(batch["observation"].shape[:-1], batch.step.shape)
                    for lane in range(LANES):
                        steps = batch.step[batch.lane == lane]
                        self.assertTrue((np.diff(steps) == 1).all(), steps)
                    return batch
                self.beside("run 1500", form, read)

    def test_samples(self):
        rng = np.random.default_rng(1)
        for form in FORMS:
            self.beside("run 1500", form, lambda reader, _: reader.sample(16, rng=rng))

    def test_views(self):
        def read(reader, _):
            for view in reader.views():
                copies = {key: array.copy() for key, array in view.items()}
                if view.valid():
                    view.update(copies)
                    self.expect_whole(view)
            return reader.read(last=1)
        for form in FORMS:
            self.beside("run 1500", form, read)

    def test_clears_and_writes_in_place(self):
        for form in FORMS:
            for read in (lambda reader, _: reader.read(),
                         lambda reader, _: reader.sample(16) if reader.size else None):
                self.beside("mix 600", form, read)

    def test_many_rounds_of_small_looks(self):
        """Copies of one look each, so that rows are lost between looks."""
        with mock.patch.object(rill_reader, "_COPY_BYTES", 1):
            self.beside("run 1500", FORMS[0], lambda reader, _: reader.read())

    def test_killed_writers_leave_whole_rows(self):
        for round_ in range(5):
            writer = self.writer(*FORMS[round_ % 4])
            writer.begin("run 1000000000")
            reader = rill_reader.Reader(self.path)
            while reader.cursors().min() < 100 * (round_ + 1):
                self.assertIsNone(writer.process.poll())
            writer.kill()
            self.expect_whole(reader.read())
            self.expect_whole(reader.sample(100))
            shutil.rmtree(self.path)


class LostRowsTest(ReaderTest):
    """Writes at a chosen moment of a copy."""

    def test_what_is_overwritten_meanwhile_is_left_out(self):
        writer = self.writer()
        writer.do("extend 0 3 32")
        reader = rill_reader.Reader(self.path)
        copy = reader._copy_steps
        commands = ["extend 1 1 5"]

        def copy_and_write(*args):
            copy(*args)
            if commands:
                writer.do(commands.pop())
        for layout, want in (("flat", [(0, 32), (5, 32), (0, 32)]), 
                             ("lanes", [(5, 32), (10, 37), (5, 32)])):
            with mock.patch.object(reader, "_copy_steps", copy_and_write):
                self.expect_steps(reader.read(layout=layout), want)
            commands.append("extend 1 1 5")
        # All of a lane: no [lanes, time] can be made, so it is read again.
        commands[:] = ["extend 1 1 40"]
        with mock.patch.object(reader, "_copy_steps", copy_and_write):
            self.expect_steps(reader.read(layout="lanes"), [(0, 32), (50, 82), (0, 32)])
        # One step of each lane between two looks: two lanes go on without one.
        writer.do("clear")
        writer.do("extend 0 3 32")
        commands[:] = ["extend 1 1 5"]
        with mock.patch.object(reader, "_copy_steps", copy_and_write), \
                mock.patch.object(rill_reader, "_COPY_BYTES", 1):
            self.expect_steps(reader.read(), [(0, 32), (5, 32), (0, 32)])
        # Another generation: all again.
        commands[:] = ["extend 0 3 4", "clear"]
        with mock.patch.object(reader, "_copy_steps", copy_and_write):
            self.expect_steps(reader.read(), [(0, 4)] * 3)

    def test_samples_are_drawn_again_when_all_rows_are_others(self):
        writer = self.writer()
        writer.do("extend 0 3 32")
        reader = rill_reader.Reader(self.path)
        look = reader._record.look
        # At the first look, behind the copy, and before rows are drawn again.
        commands = [["clear", "extend 0 3 5"], ["extend 0 3 31"], []]

        def write_and_look():
            for command in commands.pop() if commands else []:
                writer.do(command)
            return look()
        with mock.patch.object(reader._record, "look", write_and_look):
            batch = reader.sample(1000)
        self.assertLess(batch.step.max(), 5)
        self.expect_whole(batch)

    def test_a_writer_that_dies_in_place_is_reported(self):
        writer = self.writer()
        writer.do("extend 0 3 32")
        reader = rill_reader.Reader(self.path, timeout=0)
        view = reader._record.look()
        view.generation += 1
        with mock.patch.object(reader._record, "look", lambda: view):
            with self.assertRaisesRegex(rill_reader.UnavailableError, "in place"):
                reader.read()


class DamageTest(ReaderTest):

    def setUp(self):
        super().setUp()
        writer = self.writer()
        writer.do("extend 0 3 20")
        writer.do("extend 1 1 20")
        writer.close()
        self.random = random.Random(11)

    def try_all(self):
        reader = rill_reader.Reader(self.path)
        self.expect_whole(reader.read(["observation", "next/id"]))
        return reader

    def damaged(self, pattern):
        return self.assertRaisesRegex(rill_reader.DamagedError, pattern)

    def change(self, name, function):
        path = os.path.join(self.path, name)
        with open(path, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(function(bytearray(content)))
        return content

    def restore(self, name, content):
        with open(os.path.join(self.path, name), "wb") as file:
            file.write(content)

    def test_missing_files(self):
        with self.assertRaisesRegex(rill_reader.NotFoundError, "rill.json"):
            rill_reader.Reader(self.path + "/not/there")
        for name in ("rill.commit", "observation.memmap", "next/id.memmap"):
            path = os.path.join(self.path, name)
            os.rename(path, path + ".away")
            with self.damaged(os.path.basename(name)):
                self.try_all()
            os.mkdir(path)
            with self.damaged(os.path.basename(name)):
                self.try_all()
            os.rmdir(path)
            os.symlink(path + ".away", path)
            with self.damaged(os.path.basename(name)):
                self.try_all()
            os.remove(path)
            os.rename(path + ".away", path)
        self.try_all()

    def test_files_of_other_sizes(self):
        for name in ("rill.json", "rill.commit", "observation.memmap", "next/a%20b%3Abool.memmap"):
            for function in (lambda c: c[:-1], lambda c: c + b"x", lambda c: c[:10], lambda c: b""):
                content = self.change(name, function)
                with self.damaged(name[-10:]):
                    self.try_all()
                self.restore(name, content)
        self.try_all()

    def test_any_bit_of_the_description(self):
        name = "rill.json"
        for _ in range(150):
            def flip(content):
                content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
                return content
            content = self.change(name, flip)
            with self.damaged(name):
                self.try_all()
            self.restore(name, content)

    def seal(self, text):
        return text + b',"crc32c":"%08x"}\n' % rill_reader._crc32c(text)

    def test_descriptions_whose_checksum_fits(self):
        """Every member replaced by what it must not be."""
        original = self.change("rill.json", lambda c: c)
        text = original[:-22]
        for old, new, pattern in [
                (b'"version":1', b'"version":2', "version 2, want .* version 1; take the reader"),
                (b'"kind":"storage_directory"', b'"kind":"storage"', "Load"),
                (b'"lanes":"3"', b'"lanes":"0"', "lanes: got 0"),
                (b'"lanes":"3"', b'"lanes":"--3"', "lanes"),
                (b'"lanes":"3"', b'"lanes":"4"', "memmap"),
                (b'"lane_capacity":"32"', b'"lane_capacity":"%d"' % (1 << 62), "lane_capacity"),
                (b'"lane_capacity":"32"', b'"lane_capacity":"31"', "31|bytes|memmap"),
                (b'"columns"', b'"stripes"', "layout"),
                (b'lane_major', b'lane_minor', "order"),
                (b'"fields":{', b'"fields":[{', "JSON"),
                (b'rill_spec', b'rill_spic', "format"),
                (b'"fields"', b'"felder"', "fields"),
                (b'[512]', b'[-512]', "shape"),
                (b'[512]', b'[99999999999999]', "shape"),
                (b'[512]', b'[512,1,1,1,1,1,1,1,1]', "rank"),
                (b'\\"float16\\"', b'\\"float17\\"', "dtype")]:
            self.assertIn(old, text)
            self.restore("rill.json", self.seal(text.replace(old, new, 1)))
            with self.damaged(pattern):
                self.try_all()
        # Members of any other type.
        for _ in range(150):
            start = self.random.randrange(len(text))
            broken = bytearray(text)
            broken[start:start + self.random.randrange(4)] = self.random.choice(
                [b"", b"{", b"]", b'"', b"\\\\", b"9", b"-1", b"null", b"1e400", b"\xff", b"[" * 5000])
            self.restore("rill.json", self.seal(bytes(broken)))
            try:
                rill_reader.Reader(self.path).read(last=1)
            except rill_reader.RillError:
                pass
        self.restore("rill.json", original)
        self.try_all()

    def test_any_bit_of_the_record(self):
        """Where the later slot is damaged the earlier one counts, whose rows are
        whole too; where both are, nothing is read."""
        half = os.path.getsize(os.path.join(self.path, "rill.commit")) // 2
        used = 128 + 16 * LANES

        def flip(content, slot):
            content[slot * half + self.random.randrange(80)] ^= 1 << self.random.randrange(8)
            return content
        for _ in range(150):
            slot = self.random.randrange(2)
            content = self.change("rill.commit", lambda c: flip(c, slot))
            reader = self.try_all()
            self.assertIn(reader.size, (52, 72))
            self.change("rill.commit", lambda c: flip(c, 1 - slot))
            with self.damaged("rill.commit"):
                self.try_all()
            self.restore("rill.commit", content)
        for _ in range(150):  # Anything anywhere, marks too.
            def scatter(content):
                for _ in range(self.random.choice((1, 2, 8, 200))):
                    at = self.random.randrange(2) * half + self.random.randrange(used)
                    content[at] = self.random.randrange(256)
                return content
            content = self.change("rill.commit", scatter)
            try:
                self.try_all()
            except rill_reader.DamagedError:
                pass
            self.restore("rill.commit", content)
        self.change("rill.commit", lambda c: bytes(len(c)))
        with self.damaged("checksums"):
            self.try_all()

    def test_records_whose_checksums_fit_around_nonsense(self):
        record = rill_reader._Record(os.path.join(self.path, "rill.commit"), LANES, CAPACITY)

        def slot(number, written, first, append=(0, 0, 0), more=()):
            marks = np.array([[written, first]] * LANES, np.int64)
            sum_ = record._hash(marks.view(np.uint64))
            head = struct.pack("<8sQqqqqqQQ", b"RILLREC1", number, LANES, CAPACITY, *append, sum_, 2)
            tail = struct.pack("<L", len(more) // 3) + struct.pack("<6q", *(more + (0,) * 6)[:6])
            crc = rill_reader._crc32c(head + (tail if more else b""))
            return head + struct.pack("<L", crc) + tail + marks.tobytes()

        def state(*args):
            self.change("rill.commit", lambda c: slot(*args).ljust(len(c) // 2, b"\0") +
                        bytes(len(c) // 2))
            return rill_reader.Reader(self.path)
        self.assertEqual(state(5, 20, 3).size, 3 * 17)
        self.assertEqual(state(5, 40, 0, (1, 2, 4), (0, 1, 3, 1, 1, 2)).size, 29 + 26 + 28)
        for args in [(5, 5, 6), (5, -1, 0), (5, 5, -1), (5, (1 << 62) + 1, 0), (5, 5, 0, (0, 4, 1)),
                     (5, 5, 0, (-1, 1, 1)), (5, 5, 0, (0, 1, -1)), (5, 5, 0, (0, 1, (1 << 63) - 1)),
                     (0, 5, 0)]:
            with self.damaged("checksums"):
                state(*args)

    def test_numbers_go_round(self):
        """The later of two numbers, modulo 2^64."""
        def two(first, second):
            def change(content):
                half = len(content) // 2
                for i, number in enumerate((first, second)):
                    at = i * half
                    content[at + 8:at + 16] = struct.pack("<Q", number)
                    content[at + 72:at + 76] = struct.pack(
                        "<L", rill_reader._crc32c(bytes(content[at:at + 72])))
                    content[at + 76:at + 80] = bytes(4)
                return content
            original = self.change("rill.commit", change)
            number = rill_reader.Reader(self.path)._record.look().number
            self.restore("rill.commit", original)
            return number
        self.assertEqual(two(7, 8), 8)
        self.assertEqual(two(8, 7), 8)
        self.assertEqual(two((1 << 64) - 1, 1), 1)
        self.assertEqual(two(1, (1 << 64) - 1), 1)
        self.assertEqual(two(0, 3), 3)


@unittest.skipIf(np is None or torch is None, "no torch for %s" % sys.executable)
class TorchTest(ReaderTest):

    def test_tensors_share_the_arrays_bytes(self):
        writer = self.writer()
        writer.do("extend 0 3 20")
        reader = rill_reader.Reader(self.path)
        keys = [key for key in reader.keys
                if key.startswith("next/a") and hasattr(torch, reader.spec[key].dtype)]
        for batch in [reader.sample(8, keys)] + reader.views(keys):
            tensors = batch.torch()
            for key in keys:
                tensor = tensors[key]
                self.assertEqual(str(tensor.dtype), "torch." + reader.spec[key].dtype)
                self.assertEqual(tensor.shape, batch[key].shape)
                self.assertEqual(tensor.data_ptr(), batch[key].ctypes.data)
                values = tensor.imag if key.endswith("complex128") else \
                    tensor.real if tensor.is_complex() else tensor
                want = torch.from_numpy((batch.lane * (1 << 40) + batch.step) % 100)
                want = want[:, None].expand(-1, 3)
                want = want != 0 if key.endswith("bool") else want
                self.assertTrue(torch.equal(values.to(torch.int64), want), key)


class NoTorchTest(ReaderTest):

    def test_it_says_so(self):
        self.writer().do("extend 0 3 1")
        with mock.patch.object(rill_reader, "_torch", None):
            with self.assertRaisesRegex(rill_reader.RillError, "got no torch"):
                rill_reader.Reader(self.path).read().torch()

    def test_a_folder_named_torch_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "torch"))
            with mock.patch.object(sys, "path", [folder, os.path.dirname(rill_reader.__file__)]), \
                    mock.patch.dict(sys.modules):
                sys.modules.pop("torch", None)
                sys.modules.pop("rill_reader")
                self.assertIsNone(importlib.import_module("rill_reader")._torch)
