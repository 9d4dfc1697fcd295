# SPDX-License-Identifier: Apache-2.0
"""A buffer's end: beside calls, beside other buffers, and with the interpreter."""
import gc
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import numpy as np
import rill

# Batches are made ahead by threads that run Python code.
BUFFER = """
import threading
import numpy as np
import rill

def work(batch):
    for _ in range(100_000):
        pass

def buffer_of():
    buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(100), batch_size=4, prefetch=8, prefetch_threads=4,
                               transform=work)
    buffer.extend({"x": np.arange(50)})
    return buffer

def learn(buffer):
    try:
        while True:
            buffer.sample()
            sampled.set()
    except rill.Error:
        pass

sampled = threading.Event()
"""


class ClosingTest(unittest.TestCase):

    def check_script(self, text):
        done = subprocess.run([sys.executable, "-c", BUFFER + text], timeout=120, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_learner_may_be_in_a_call(self):
        self.check_script("""
for _ in range(3):
    sampled.clear()
    buffer = buffer_of()
    learner = threading.Thread(target=learn, args=[buffer])
    learner.start()
    sampled.wait()
    buffer.close()
    learner.join()
""")

    def test_an_open_buffer_does_not_outlive_the_interpreter(self):
        for _ in range(3):
            self.check_script("buffer = buffer_of()\nbuffer.sample()\n")

    def test_nor_does_one_in_a_call_of_a_daemon_thread(self):
        self.check_script("""
buffer = buffer_of()
threading.Thread(target=learn, args=[buffer], daemon=True).start()
sampled.wait()
""")

    def test_a_function_may_close_its_own_buffer(self):
        self.check_script("""
returned = threading.Event()

def work(batch):
    for _ in range(100_000):
        pass
    if returned.is_set():
        buffer.close()

for _ in range(3):
    returned.clear()
    buffer = buffer_of()
    buffer.sample()
    returned.set()
    for _ in range(1_000_000):  # Most often a thread of the buffer's comes first.
        if buffer._buffer.is_closed:
            break
    learn(buffer)
""")

    def test_a_wait_for_the_rate_limiter_ends(self):
        buffer = buffer_of(rill.RateLimiter.min_size(60))
        raised = []

        def learn():
            try:
                buffer.sample()
            except rill.Error as error:
                raised.append(error)

        learner = threading.Thread(target=learn)
        learner.start()
        while buffer._buffer.calls_in_flight == 0:
            pass
        buffer.close()
        learner.join()
        self.assertIsInstance(raised[0], rill.CancelledError)


class Agent:
    """Its buffer calls it: a cycle."""

    def __init__(self, **options):
        self.buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(50), batch_size=4, transform=self.scale,
                                        sample_unit=rill.Hindsight(self.reward), **options)
        self.buffer.extend({"x": np.arange(50), "desired_goal": np.zeros((50, 1)),
                            "next": {"achieved_goal": np.zeros((50, 1)), "reward": np.zeros((50, 1), np.float32),
                                     "done": np.zeros((50, 1), bool)}})

    def scale(self, batch):
        batch["x"] = batch["x"] * 2

    def reward(self, achieved, desired):
        return (achieved == desired).astype(np.float32)


class CollectionTest(unittest.TestCase):

    def test_a_buffer_goes_with_what_its_functions_hold(self):
        for prefetch in (0, 2):
            with self.subTest(prefetch):
                agent = Agent(prefetch=prefetch)
                self.assertTrue((agent.buffer.sample()["x"] % 2 == 0).all())
                storage = weakref.ref(agent.buffer.storage)
                del agent
                for _ in range(100):
                    gc.collect()  # A call of a function holds it for a moment.
                    if storage() is None:
                        break
                self.assertIsNone(storage())

    def test_a_function_is_held_by_its_buffer(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(50), batch_size=4,
                                   transform=rill.transforms.FunctionTransform(lambda batch: {"y": batch["x"]}))
        buffer.extend({"x": np.arange(50)})
        gc.collect()
        self.assertIn("y", buffer.sample())


def buffer_of(limiter, **options):
    return rill.ReplayBuffer(storage=rill.LazyTensorStorage(100), batch_size=4, rate_limiter=limiter, **options)


class SharedLimiterTest(unittest.TestCase):

    def test_it_outlives_a_buffer(self):
        limiter = rill.RateLimiter.min_size(60)
        buffer = buffer_of(limiter, rate_limit_timeout=0.0)
        buffer.extend({"x": np.arange(50)})
        other = buffer_of(limiter)
        other.close()
        other = buffer_of(limiter)
        del other
        gc.collect()
        with self.assertRaises(rill.DeadlineExceededError):
            buffer.sample()
        buffer.extend({"x": np.arange(10)})
        self.assertEqual(len(buffer.sample()["x"]), 4)

    def test_it_goes_on_after_loads(self):
        with tempfile.TemporaryDirectory() as folder:
            saved = buffer_of(rill.RateLimiter.min_size(60))
            saved.extend({"x": np.arange(50)})
            saved.dumps(folder + "/saved")
            buffer = buffer_of(rill.RateLimiter.min_size(60))
            buffer.loads(folder + "/saved")
            buffer.extend({"x": np.arange(10)})
            self.assertEqual(len(buffer.sample()["x"]), 4)


if __name__ == "__main__":
    unittest.main()
