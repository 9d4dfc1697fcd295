# SPDX-License-Identifier: Apache-2.0
"""Writers, a reader, a learner and its checkpoints in four processes, for RILL_SOAK_SECONDS (12).

Each row tells its own bytes, and all that are read are checked. Memory of a process's own and its
descriptors stay what they were.
"""
import multiprocessing
import os
import tempfile
import time
import unittest

import numpy as np
import rill

SECONDS = float(os.environ.get("RILL_SOAK_SECONDS", "12"))
WRITERS = 2
CAPACITY = 8_000
WIDTH = 64
FIRST = 1 << 40  # The number of rows that are there before the writers'.
# Bytes; a leak of 1 KB a batch would be 100 times that in ten minutes. A sanitizer
# keeps what was freed, and looks for leaks itself.
MOST_GROWTH = 512 << 20 if "libclang_rt" in os.environ.get("LD_PRELOAD", "") else 16 << 20


def rows_of(writer, first, count):
    number = np.arange(first, first + count, dtype=np.int64)
    return {"writer": np.full(count, writer, np.int64), "number": number, "payload": payload_of(writer, number),
            "next": {"done": (number % 50 == 49)[:, None], "truncated": np.zeros((count, 1), bool)}}


def payload_of(writer, number):
    return ((number * 2654435761 + np.asarray(writer) * 97)[:, None] + np.arange(WIDTH)) % 65521


def check(batch):
    """How many rows they are; all of them are as they were written."""
    number = batch["number"]
    wrong = (batch["payload"] != payload_of(batch["writer"], number)).any(1)
    # The first rows are of another source than those behind them, before which the last is cut.
    cut = batch["next"]["truncated"][:, 0] & (number >= FIRST)
    wrong |= batch["next"]["done"][:, 0] != (cut | (number % 50 == 49))
    if wrong.any():
        rows = zip(batch["writer"][wrong].tolist(), number[wrong].tolist())
        raise AssertionError("not what was written: rows (writer, number) %s" % list(rows))
    return len(number)


class Footprint:
    """What a process takes, from its third look on."""

    def __init__(self):
        self.looks = 0
        self.first = self.last = (0, 0)

    def look(self):
        with open("/proc/self/status", encoding="utf-8") as file:
            memory = next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))
        self.last = (memory, len(os.listdir("/proc/self/fd")))
        self.looks += 1
        if self.looks <= 3:
            self.first = self.last


def run_until(stopped, results, step):
    """What `step` counts, summed up, and the process's footprint."""
    footprint, count, next_look = Footprint(), 0, 0.0
    try:
        while not stopped.is_set():
            count += step()
            if time.monotonic() >= next_look:
                footprint.look()
                next_look = time.monotonic() + SECONDS / 20
        results.send((count, footprint.first, footprint.last, None))
    except BaseException as error:
        results.send((count, footprint.first, footprint.last, repr(error)))
        raise


def write(writer, number, stopped, results):
    state = {"first": 0}

    def step():
        writer.extend(rows_of(number, state["first"], 32))
        state["first"] += 32
        return 32
    with writer:
        run_until(stopped, results, step)


def read(folder, stopped, results):
    generator = np.random.default_rng(1)
    reader = rill.MemmapReader(folder)

    def step():
        # A slot that is overwritten meanwhile has its new row; one of a batch in flight is not there.
        try:
            return check(reader[generator.integers(len(reader), size=256)])
        except (rill.OutOfRangeError, rill.UnavailableError):
            return 0
    run_until(stopped, results, step)


class Learner:
    """Drains, samples, updates, saves, and loads what it has saved."""

    def __init__(self, folder, channel, first_rows):
        self.folder, self.channel = folder, channel
        self.buffer = self.make(rill.LazyMemmapStorage(CAPACITY, os.path.join(folder, "rows"), lanes=WRITERS))
        self.buffer.extend(first_rows)
        self.samples = self.saves = 0
        self.next_save = time.monotonic() + SECONDS / 10

    def make(self, storage):
        return rill.PrioritizedReplayBuffer(alpha=0.7, beta=0.5, storage=storage, batch_size=256, seed=1, prefetch=2)

    def step(self):
        self.channel.drain(self.buffer)
        count = 0
        for _ in range(20):
            batch = self.buffer.sample()
            self.buffer.update_priority(batch, np.abs(batch["payload"][:, 0]) + 1.0)
            count += check(batch)
        self.samples += 20
        if time.monotonic() >= self.next_save:
            self.save()
            self.next_save = time.monotonic() + max(SECONDS / 40, 2.0)
        return count

    def save(self):
        path = os.path.join(self.folder, "save")
        self.buffer.dumps(path)
        with self.make(rill.LazyTensorStorage(CAPACITY, lanes=WRITERS)) as other:
            other.loads(path)
            check(other.sample(512))
            if len(other) != len(self.buffer):
                raise AssertionError("a save has %d rows of %d" % (len(other), len(self.buffer)))
        self.saves += 1


class SoakTest(unittest.TestCase):

    def test_every_row_is_right_and_nothing_grows(self):
        context = multiprocessing.get_context("fork")
        with tempfile.TemporaryDirectory() as folder:
            one = {key: value[0] if not isinstance(value, dict) else {k: v[0] for k, v in value.items()}
                   for key, value in rows_of(0, 0, 1).items()}
            channel = rill.Channel(one, producers=WRITERS)
            stopped = context.Event()
            pipes, processes = [], []

            def start(target, *args):
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=target, args=(*args, stopped, theirs), daemon=True)
                self.addCleanup(process.terminate)
                process.start()
                theirs.close()
                pipes.append(ours)
                processes.append(process)

            for i in range(WRITERS):  # Before there are threads to lose in a fork.
                start(write, channel.writer(i), i)
            first = [rows_of(i, FIRST, 2) for i in range(WRITERS)]
            stacked = {key: np.stack([rows[key] for rows in first]) for key in ("writer", "number", "payload")}
            stacked["next"] = {key: np.stack([rows["next"][key] for rows in first]) for key in ("done", "truncated")}
            rows_folder = os.path.join(folder, "rows")
            owner = Learner(folder, channel, stacked)
            start(read, rows_folder)
            results, learner = context.Pipe(duplex=False)
            end = time.monotonic() + SECONDS

            class UntilTheEnd:
                def is_set(self):
                    return time.monotonic() >= end or not all(process.is_alive() for process in processes)
            run_until(UntilTheEnd(), learner, owner.step)
            stopped.set()
            while any(process.is_alive() for process in processes):  # Writers may wait for space.
                try:
                    channel.drain(owner.buffer)
                except rill.UnavailableError:
                    pass
                for process in processes:
                    process.join(0.01)
            owner.buffer.close()
            names = ["writer %d" % i for i in range(WRITERS)] + ["reader", "learner"]
            for name, pipe in zip(names, pipes + [results]):
                count, before, after, error = pipe.recv()
                print("%s: %d rows, memory %.1f to %.1f MB, descriptors %d to %d" % (
                    name, count, before[0] / 1e6, after[0] / 1e6, before[1], after[1]))
                self.assertIsNone(error, name)
                self.assertGreater(count, 0, name)
                self.assertLess(after[0] - before[0], MOST_GROWTH, name)
                self.assertEqual(after[1], before[1], name)
            print("learner: %d samples, %d saves loaded again" % (owner.samples, owner.saves))
            self.assertGreater(owner.saves, 0)


if __name__ == "__main__":
    unittest.main()
