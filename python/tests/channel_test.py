# SPDX-License-Identifier: Apache-2.0
"""rill.Channel: rows of other processes into one buffer."""
import multiprocessing
import multiprocessing.reduction
import os
import signal
import subprocess
import sys
import threading
import unittest

import numpy as np

import rill

from channel_workers import STEP, rows_of, write, write_and_die


def drain_all(channel, buffer):
    batches = 0
    try:
        while channel.wait(timeout=60):
            batches += channel.drain(buffer)
    except rill.UnavailableError:
        pass
    return batches


class ChannelTest(unittest.TestCase):
    def run_workers(self, method, target, channel, *args):
        context = multiprocessing.get_context(method)
        workers = [context.Process(target=target, args=(channel.writer(i), i, *args)) for i in range(2)]
        for worker in workers:
            worker.start()
        return workers

    def check_rows_of_workers(self, method):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(1000), batch_size=1000)
        channel = rill.Channel(STEP, producers=2)
        workers = self.run_workers(method, write, channel, 5)
        self.assertEqual(drain_all(channel, buffer), 10)
        for worker in workers:
            worker.join()
            self.assertEqual(worker.exitcode, 0)
        self.assertEqual(len(buffer), 100)
        rows = {tuple(row) for row in buffer.sample()["observation"]}
        self.assertLessEqual(rows, {(w, n) for w in range(2) for n in range(50)})

    def test_forked_workers(self):
        self.check_rows_of_workers("fork")

    def test_spawned_workers(self):
        self.check_rows_of_workers("spawn")

    def test_a_worker_that_is_killed_has_its_trajectory_cut(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(1000), batch_size=200,
                                   sampler=rill.SamplerWithoutReplacement())
        channel = rill.Channel(STEP, producers=2)
        workers = self.run_workers("fork", write_and_die, channel)
        drain_all(channel, buffer)
        for worker in workers:
            worker.join()
        self.assertEqual(len(buffer), 20)
        batch = buffer.sample(20)
        cut = batch["observation"][batch["next"]["truncated"][:, 0]]
        self.assertEqual({tuple(row) for row in cut}, {(0, 9), (1, 9)})

    def test_each_worker_has_a_lane_of_its_own(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(200, lanes=2), batch_size=40,
                                   sampler=rill.SliceSampler(slice_len=20))
        channel = rill.Channel(STEP, producers=2)
        workers = self.run_workers("fork", write, channel, 5)
        drain_all(channel, buffer)
        for worker in workers:
            worker.join()
        for rows in buffer.sample()["observation"].reshape(2, 20, 2):
            np.testing.assert_array_equal(np.diff(rows[:, 1]), np.ones(19))
            self.assertEqual(len(set(rows[:, 0])), 1)
        for worker in range(2):
            self.assertEqual(set(buffer[100 * worker + np.arange(50)]["observation"][:, 0]), {worker})

    def test_a_cut_is_of_the_workers_own_lane(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(200, lanes=2))
        channel = rill.Channel(STEP, producers=2)
        with channel.writer(0) as first, channel.writer(1) as second:
            first.extend(rows_of(0, 0, 3))
            second.extend(rows_of(1, 0, 3))
            second.cut()
            channel.drain(buffer)
            truncated = [buffer[[lane * 100 + 2]]["next"]["truncated"].item() for lane in range(2)]
        self.assertEqual(truncated, [False, True])

    def test_batches_are_counted_across_a_wait_for_the_rate_limiter(self):
        limiter = rill.RateLimiter(max_diff=25.0)
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(200), rate_limiter=limiter)
        channel = rill.Channel(STEP)
        writer = channel.writer(0)
        for i in range(10):
            writer.extend(rows_of(0, 10 * i, 10))

        def interrupt_the_wait():
            while len(buffer) < 20:
                pass
            os.kill(os.getpid(), signal.SIGUSR1)

        # A handler runs in the main thread, so between two looks at the limiter.
        before = signal.signal(signal.SIGUSR1, lambda *_: buffer.sample(80))
        thread = threading.Thread(target=interrupt_the_wait)
        thread.start()
        try:
            self.assertEqual(channel.drain(buffer), 10)
        finally:
            thread.join()
            signal.signal(signal.SIGUSR1, before)
        self.assertEqual(len(buffer), 100)

    def test_wait_ends_in_time(self):
        self.assertFalse(rill.Channel(STEP).wait(timeout=0))

    def test_a_batch_of_another_spec_is_refused(self):
        channel = rill.Channel(STEP)
        with channel.writer(0) as writer:
            with self.assertRaisesRegex(rill.InvalidArgumentError, "observation"):
                writer.extend(dict(rows_of(0, 0, 3), observation=np.zeros((3, 5), np.float32)))
            writer.add(STEP)
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(10))
        self.assertEqual(channel.drain(buffer), 1)
        self.assertEqual(len(buffer), 1)

    def test_closing_ends_a_wait_for_space(self):
        script = """
import threading, numpy as np, rill
channel = rill.Channel({"x": np.zeros(1000, np.float32)}, bytes=1 << 16)
writer, is_full, raised = channel.writer(0), threading.Event(), []
def fill():
    try:
        for i in range(17):  # 16 have space.
            if i == 16:
                is_full.set()
            writer.add({"x": np.zeros(1000, np.float32)})
    except rill.FailedPreconditionError as error:
        raised.append(error)
thread = threading.Thread(target=fill)
thread.start()
is_full.wait()
writer.close()
thread.join()
print(*raised)
"""
        for _ in range(3):
            run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(run.stdout, "ChannelWriter::extend: got a closed writer, want an open one\n")

    def test_a_cut_waits_for_space(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(100))
        channel = rill.Channel({"x": np.zeros(1000, np.float32)}, bytes=1 << 16)
        writer = channel.writer(0)
        for _ in range(16):
            writer.add({"x": np.zeros(1000, np.float32)})
        drain = threading.Timer(0.2, channel.drain, args=(buffer,))
        drain.start()
        writer.cut()
        drain.join()
        self.assertEqual(len(buffer), 16)

    def test_plain_numbers_take_the_steps_dtypes(self):
        for step, more in (({"r": 0.0, "a": 1, "o": [0.0, 1.0]}, {"r": 0.5, "a": 2, "o": [1, 2]}),
                           ({"r": np.zeros(1, np.float32), "a": np.int32(1)}, {"r": 0.5, "a": 2})):
            with self.subTest(step):
                channel = rill.Channel(step)
                with channel.writer(0) as writer:
                    writer.add(more)
                buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(10))
                channel.drain(buffer)
                self.assertEqual(buffer[0]["r"].dtype, np.float32)
                self.assertEqual((buffer[0]["r"].item(), buffer[0]["a"].item()), (0.5, 2))

    def test_threads_share_a_writer(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(1000))
        channel = rill.Channel(STEP, bytes=1 << 14)
        writer = channel.writer(0)
        raised = []

        def write_all(worker):
            try:
                for i in range(100):
                    writer.extend(rows_of(worker, i, 1))
            except rill.Error as error:
                raised.append(error)
        threads = [threading.Thread(target=write_all, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        while len(buffer) < 300 and not raised and channel.wait(timeout=60):
            channel.drain(buffer)
        for thread in threads:
            thread.join()
        self.assertEqual(raised, [])
        rows = {tuple(row) for row in buffer[:]["observation"].tolist()}
        self.assertEqual(rows, {(worker, i) for worker in range(3) for i in range(100)})

    def test_the_owners_end_does_not_cross(self):
        with self.assertRaisesRegex(TypeError, "pass a writer"):
            multiprocessing.reduction.ForkingPickler.dumps(rill.Channel(STEP))


if __name__ == "__main__":
    unittest.main()
