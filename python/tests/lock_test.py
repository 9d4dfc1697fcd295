# SPDX-License-Identifier: Apache-2.0
"""The interpreter's lock: each call that copies or waits lets other threads run meanwhile."""
import sys
import tempfile
import threading
import unittest

import numpy as np
import rill
from rill import envs, estimators


def rows(count):
    return {"x": np.zeros((count, 3072), np.uint8), "next": {"done": np.zeros((count, 1), bool)}}


class LockTest(unittest.TestCase):
    def setUp(self):
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        # A thread gets the lock where another gives it away, and nowhere else.
        sys.setswitchinterval(1e6)

    def check(self, call):
        """That another thread runs within one of some calls, each of which takes a while."""
        gate, seen = threading.Lock(), []
        gate.acquire()

        def wait():
            with gate:
                seen.append(True)

        thread = threading.Thread(target=wait)
        thread.start()
        gate.release()
        # It asks for the lock now. On a busy machine it may come too late for a call.
        for _ in range(20_000):
            call()
            if seen:
                break
        found = bool(seen)
        thread.join()
        self.assertTrue(found)

    def test_buffers(self):
        with tempfile.TemporaryDirectory() as folder:
            buffer = rill.PrioritizedReplayBuffer(alpha=0.6, beta=0.4, storage=rill.LazyTensorStorage(2000), batch_size=2000)
            buffer.extend(rows(2000))
            batch, more = buffer.sample(), rows(1000)
            bound = rill._rill.bind_rows(more)
            for call in (buffer.sample, lambda: buffer.sample(out=batch), lambda: buffer.extend(more),
                         lambda: buffer._buffer.append(bound),
                         lambda: buffer.update_priority(batch, 1.0), lambda: buffer[:1000],
                         lambda: buffer.dumps(folder + "/save")):
                with self.subTest(call=call):
                    self.check(call)

    def test_what_reads_beside_a_writer(self):
        with tempfile.TemporaryDirectory() as folder:
            buffer = rill.ReplayBuffer(storage=rill.LazyMemmapStorage(2000, folder + "/rows"))
            buffer.extend(rows(2000))
            reader, slots = rill.MemmapReader(folder + "/rows"), np.arange(1000)
            self.check(lambda: reader[slots])
            buffer.close()

    def test_ensembles(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(2000))
        buffer.extend(rows(2000))
        ensemble = rill.ReplayBufferEnsemble(buffer, batch_size=2000)
        self.check(ensemble.sample)

    def test_channels(self):
        row = {"x": np.zeros(3072, np.uint8)}
        channel, buffer = rill.Channel(row, producers=1), rill.ReplayBuffer(storage=rill.LazyTensorStorage(2000))
        with channel.writer(0) as writer:
            many = {"x": np.zeros((1000, 3072), np.uint8)}
            self.check(lambda: (writer.extend(many), channel.drain(buffer)))
            self.check(lambda: channel.wait(0.001))

    def test_estimators(self):
        values = [np.zeros((64, 1000, 1), np.float32)] * 3 + [np.zeros((64, 1000, 1), bool)] * 2
        self.check(lambda: rill._rill.gae(0.99, 0.95, *values))
        self.check(lambda: rill._rill.lambda_return(0.99, 0.95, *values[1:]))
        self.check(lambda: rill._rill.reward_to_go(0.99, values[2], values[3]))

    def test_environments_and_collectors(self):
        env = envs.CartPole(64)
        self.check(lambda: env.rollout(100, break_when_any_done=False))
        self.check(rill.SyncDataCollector(env, frames_per_batch=6400).next)
        self.check(rill.SyncDataCollector(envs.CartPole(64), frames_per_batch=6400, split_trajs=True).next)
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(64000, lanes=64))
        self.check(rill.SyncDataCollector(envs.CartPole(64), frames_per_batch=6400, replay_buffer=buffer).next)

        class Zero:
            def __call__(self, root):
                return np.zeros(4096, np.int64)

        # Beside a policy, where the state is copied for it.
        policy = rill.SyncDataCollector(envs.CartPole(4096), Zero(), frames_per_batch=8192)
        self.check(policy.next)


if __name__ == "__main__":
    unittest.main()
