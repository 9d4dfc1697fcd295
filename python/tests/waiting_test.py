# SPDX-License-Identifier: Apache-2.0
"""Threads, forks and interrupts: calls wait without the interpreter's lock, and end when they should."""
import _thread
import concurrent.futures
import contextlib
import os
import signal
import threading
import time
import unittest

import numpy as np
import rill


def buffer_of(**options):
    return rill.ReplayBuffer(storage=rill.LazyTensorStorage(1000), batch_size=32, seed=1, **options)


def rows(count, start=0):
    number = np.arange(start, start + count, dtype=np.int64)
    return {"x": number, "y": np.repeat(number[:, None], 8, axis=1)}


def exit_code_of_child(body):
    """Forks; what `body` returns in the child."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = body()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class ThreadsTest(unittest.TestCase):

    def test_no_row_is_torn_beside_a_writer(self):
        for prefetch in (0, 2):
            with self.subTest(prefetch), buffer_of(prefetch=prefetch) as buffer:
                buffer.extend(rows(1000))
                errors = []

                def learn(buffer=buffer, errors=errors):
                    for _ in range(300):
                        batch = buffer.sample()
                        if not (batch["y"] == batch["x"][:, None]).all():
                            errors.append(batch)

                with concurrent.futures.ThreadPoolExecutor(3) as pool:
                    learners = [pool.submit(learn) for _ in range(3)]
                    for i in range(300):
                        buffer.extend(rows(16, start=i))
                    for learner in learners:
                        learner.result()
                self.assertEqual(errors, [])

    def test_writers_beside_each_other_lose_nothing(self):
        buffer = buffer_of()

        def write(first):
            for i in range(first, first + 100):
                buffer.add({key: value[0] for key, value in rows(1, i).items()})

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(0, 400, 100)))  # Raises what they did.
        self.assertEqual(len(buffer), 400)
        self.assertLessEqual(set(buffer.sample(256)["x"].tolist()), set(range(400)))

    def test_slots_may_change_while_their_rows_are_read(self):
        buffer = buffer_of()
        buffer.extend(rows(1000))
        slots = np.zeros(200_000, np.int64)
        ended = threading.Event()

        def change():
            while not ended.is_set():
                slots[:] = 1 << 40
                slots[:] = 0

        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(100):
                try:
                    self.assertFalse(buffer[slots]["x"].any())
                except rill.OutOfRangeError:
                    pass
        finally:
            ended.set()
            thread.join()

    def test_one_thread_waits_for_another(self):
        limiter = rill.RateLimiter.min_size(10)
        buffer = buffer_of(rate_limiter=limiter)
        batches = []
        learner = threading.Thread(target=lambda: batches.append(buffer.sample()))
        learner.start()
        buffer.extend(rows(5))
        self.assertEqual(batches, [])
        buffer.extend(rows(5))
        learner.join()
        self.assertEqual(len(batches[0]["x"]), 32)
        self.assertEqual((limiter.inserts, limiter.samples), (10, 32))

    def test_closing_ends_a_wait(self):
        buffer = buffer_of(rate_limiter=rill.RateLimiter.min_size(10))
        raised = []

        def learn():
            try:
                buffer.sample()
            except rill.Error as error:
                raised.append(type(error))
        learner = threading.Thread(target=learn)
        learner.start()
        while buffer._buffer.calls_in_flight == 0:
            pass
        buffer.close()
        learner.join()
        self.assertEqual(raised, [rill.CancelledError])

    def test_a_wait_has_its_limit(self):
        buffer = buffer_of(rate_limiter=rill.RateLimiter.min_size(10), rate_limit_timeout=0.0)
        with self.assertRaisesRegex(rill.DeadlineExceededError, "min_size_to_sample"):
            buffer.sample()
        self.assertTrue(issubclass(rill.DeadlineExceededError, TimeoutError))


@contextlib.contextmanager
def interrupt_soon(is_in_call=lambda: True):
    """As Ctrl-C, while what is inside is at work."""
    def interrupt():
        while not is_in_call():
            pass
        time.sleep(0.1)  # Something of it is done then.
        _thread.interrupt_main()

    # A job in the background has been started with this signal ignored.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        signal.signal(signal.SIGINT, handler)


class InterruptTest(unittest.TestCase):

    def test_an_interrupt_ends_a_wait(self):
        buffer = buffer_of(rate_limiter=rill.RateLimiter.min_size(10))
        with self.assertRaises(KeyboardInterrupt), interrupt_soon():
            buffer.sample()
        buffer.extend(rows(10))
        self.assertEqual(len(buffer.sample()["x"]), 32)


class ForkTest(unittest.TestCase):

    def test_a_child_goes_on_with_a_copy(self):
        buffer = buffer_of()
        buffer.extend(rows(10))

        def child():
            buffer.extend(rows(10))
            return len(buffer) + (buffer.sample()["x"].max() < 10)
        self.assertEqual(exit_code_of_child(child), 21)
        self.assertEqual(len(buffer), 10)

    def test_a_child_is_told_that_workers_stayed_behind(self):
        with buffer_of(prefetch=2) as buffer:
            buffer.extend(rows(10))
            buffer.sample()

            def child():
                try:
                    buffer.sample()
                except rill.FailedPreconditionError as error:
                    return 7 if "threads stayed there" in str(error) else 1
                return 2
            self.assertEqual(exit_code_of_child(child), 7)
            self.assertEqual(len(buffer.sample()["x"]), 32)

    def test_a_child_is_told_of_a_call_in_flight(self):
        is_in_call, may_end = threading.Event(), threading.Event()

        def transform(batch):
            is_in_call.set()
            may_end.wait()

        buffer = buffer_of(transform=transform)
        buffer.extend(rows(10))
        learner = threading.Thread(target=buffer.sample)
        learner.start()
        is_in_call.wait()

        def child():
            try:
                buffer.extend(rows(10))
            except rill.FailedPreconditionError as error:
                return 7 if "call of another thread" in str(error) else 1
            return 2
        code = exit_code_of_child(child)
        may_end.set()
        learner.join()
        self.assertEqual(code, 7)


if __name__ == "__main__":
    unittest.main()
