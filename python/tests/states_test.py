# SPDX-License-Identifier: Apache-2.0
"""Saved states: what goes on from one gives, bit for bit, what a run without a break gives."""
import os
import pickle
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np
import rill
from rill import envs
from envs_test import Counter
from waiting_test import interrupt_soon


def lean(root):
    """Depends on the state."""
    return (root["observation"][:, 2] > 0).astype(np.int64)


class Remembering:
    """Has a memory beside the state, which goes through the rows."""

    output_spec = rill.specs.Composite({("next", "hidden"): rill.specs.Unbounded((2,))})

    def __call__(self, root):
        hidden = root["hidden"] * 0.5 + root["observation"][:, :2]
        return {"action": (hidden[:, 0] > 0).astype(np.int64), ("next", "hidden"): hidden}


def sync_of(policy=None, seed=1, **options):
    return rill.SyncDataCollector(envs.CartPole(3), policy, frames_per_batch=30, seed=seed, **options)


def multi_of(policy=None, seed=1, **options):
    return rill.MultiSyncDataCollector([lambda: envs.CartPole(2)] * 2, policy, frames_per_batch=40, seed=seed, **options)


def async_of(policy=None, seed=1, **options):
    return rill.MultiaSyncDataCollector([lambda: envs.CartPole(2)], policy, frames_per_batch=20, seed=seed, **options)


def leaves(batch, prefix=""):
    for key, value in batch.items():
        if isinstance(value, dict):
            yield from leaves(value, prefix + key + "/")
        else:
            yield prefix + key, value


class CollectorTest(unittest.TestCase):

    def assert_same(self, got, want):
        self.assertEqual(len(got), len(want))
        for one, other in zip(got, want):
            one, other = dict(leaves(one)), dict(leaves(other))
            self.assertEqual(set(one), set(other))
            # Collectors of one process have numbers of their own.
            one, other = ({**each, "collector/traj_ids": each["collector/traj_ids"] & (1 << 40) - 1} for each in (one, other))
            for key in one:
                np.testing.assert_array_equal(one[key], other[key], key)

    def test_batches_go_on_bit_for_bit(self):
        for make in (sync_of, multi_of, async_of):
            for policy, options in ((None, {}), (lean, {"init_random_frames": 100, "max_frames_per_traj": 7}),
                                    (Remembering(), {}), (lean, {"split_trajs": True})):
                with self.subTest(make.__name__, policy=policy, options=options):
                    with make(policy, **options) as collector:
                        for _ in range(3):
                            collector.next()
                        state = pickle.loads(pickle.dumps(collector.state_dict()))
                        frames = collector.frames
                        want = [collector.next() for _ in range(4)]
                    for _ in range(2):  # It is not used up.
                        with make(policy, seed=99, **options) as other:
                            other.next()
                            other.load_state_dict(state)
                            self.assertEqual(other.frames, frames)
                            self.assert_same([other.next() for _ in range(4)], want)

    def test_a_total_counts_the_frames_before(self):
        with sync_of(total_frames=150) as collector:
            collector.next()
            state = collector.state_dict()
        with sync_of(total_frames=150) as other:
            other.load_state_dict(state)
            self.assertEqual(len(list(other)), 4)

    def test_a_run_goes_on_in_another_process(self):
        script = """
import sys
sys.path.insert(0, %r)
import numpy as np, rill
from states_test import lean, sync_of
folder = sys.argv[1]
buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(300, lanes=3), batch_size=8, seed=5)
collector = sync_of(lean, replay_buffer=buffer)
if sys.argv[2] == "go on":
    buffer.loads(folder + "/buffer")
    collector.loads(folder + "/collector")
for _ in range(3):
    collector.next()
if sys.argv[2] == "save":
    buffer.dumps(folder + "/buffer")
    collector.dumps(folder + "/collector")
    for _ in range(3):
        collector.next()
rows = buffer[:]
print(rows["observation"].tobytes().hex(), rows["collector"]["traj_ids"].tolist(), buffer.sample()["index"], collector.frames)
""" % os.path.dirname(os.path.abspath(__file__))

        def line_of(what):
            return subprocess.run([sys.executable, "-B", "-c", script, folder, what], check=True, capture_output=True,
                                  text=True).stdout

        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(line_of("save"), line_of("go on"))

    def test_a_batch_that_a_buffer_refused_is_part_of_it(self):
        def buffer_of():
            limiter = rill.RateLimiter(min_size_to_sample=30, max_diff=30.0)
            return rill.ReplayBuffer(storage=rill.LazyTensorStorage(300, lanes=3), batch_size=30, rate_limiter=limiter,
                                     rate_limit_timeout=0.0)

        buffer = buffer_of()
        collector = sync_of(replay_buffer=buffer, total_frames=60)
        collector.next()
        with self.assertRaises(rill.DeadlineExceededError):
            collector.next()
        state = collector.state_dict()
        buffer.sample()
        list(collector)
        want = buffer[:]
        other = buffer_of()
        again = sync_of(replay_buffer=other, total_frames=60, seed=7)
        again.load_state_dict(state)
        self.assertEqual(again.frames, 60)
        self.assertEqual(list(again), [None])  # The batch that was refused.
        np.testing.assert_array_equal(other[:]["observation"].reshape(3, 10, 4), want["observation"].reshape(3, 20, 4)[:, 10:])

    def test_objects_of_python_begin_fresh_episodes(self):
        with rill.SyncDataCollector([Counter(100), Counter(100)], frames_per_batch=10, seed=1) as collector:
            collector.next()
            state = collector.state_dict()
        batches = []
        for _ in range(2):
            with rill.SyncDataCollector([Counter(100), Counter(100)], frames_per_batch=10) as other:
                other.load_state_dict(state)
                batches.append(other.next())
                self.assertEqual(other.frames, 20)
        self.assertEqual(batches[0]["observation"][:, 0, 0].tolist(), [0.0, 0.0])
        self.assert_same(batches[:1], batches[1:])

    def test_what_does_not_fit_changes_nothing(self):
        with sync_of(lean) as collector, multi_of() as workers:
            collector.next()
            state = collector.state_dict()
            others = [workers.state_dict(),
                      rill.SyncDataCollector(envs.CartPole(2), frames_per_batch=4).state_dict(),
                      rill.SyncDataCollector(envs.Acrobot(3), frames_per_batch=30).state_dict()]
            for other in others:
                with self.assertRaises(rill.FailedPreconditionError):
                    collector.load_state_dict(other)
            with self.assertRaises(rill.FailedPreconditionError):
                workers.load_state_dict(state)
            for spoilt in (state["rill"][:-9], b"", b"x" * 100):
                with self.assertRaises(rill.DataLossError):
                    collector.load_state_dict({"rill": spoilt})
            with self.assertRaises(rill.NotFoundError):
                collector.loads("/nowhere/state")
            got = collector.next()
        with sync_of(lean) as other:
            other.next()
            self.assert_same([got], [other.next()])

    def test_not_in_a_call_nor_closed(self):
        raised = []

        def policy(root):
            try:
                collector.state_dict()
            except rill.FailedPreconditionError as error:
                raised.append(str(error))
            return lean(root)

        collector = sync_of(policy)
        collector.next()
        self.assertIn("it would wait for itself", raised[0])
        collector.shutdown()
        with self.assertRaisesRegex(rill.FailedPreconditionError, "closed collector"):
            collector.state_dict()

    def test_a_batch_of_an_interrupt_is_taken_first(self):
        begun = []

        def policy(root):
            begun.append(root)
            return lean(root)

        collector = rill.SyncDataCollector(envs.CartPole(3), policy, frames_per_batch=3_000_000)
        with self.assertRaises(KeyboardInterrupt), interrupt_soon(lambda: begun):
            collector.next()
        with self.assertRaisesRegex(rill.FailedPreconditionError, r"call next\(\) first"):
            collector.state_dict()
        self.assertGreater(collector.next()["action"].size, 0)
        collector.state_dict()
        collector.shutdown()


def rows(first, count):
    return {"x": np.arange(first, first + count), "y": np.ones((count, 2), np.float32)}


class EnsembleTest(unittest.TestCase):

    def members(self, is_filled, seed):
        made = (rill.ReplayBuffer(storage=rill.LazyTensorStorage(100), seed=seed),
                rill.PrioritizedReplayBuffer(alpha=0.7, beta=0.5, storage=rill.LazyTensorStorage(100), seed=seed + 1))
        if is_filled:
            made[0].extend(rows(0, 50))
            made[1].extend(rows(1000, 80))
        return made

    def ensembles(self, is_filled, seed):
        fraction = lambda batches: 0.9 - 0.1 * min(batches, 8)  # noqa: E731
        for options in ({"p": [0.7, 0.3]}, {"num_buffer_sampled": 1}, {"sample_from_all": True}):
            yield rill.ReplayBufferEnsemble(*self.members(is_filled, seed), batch_size=10, seed=seed, **options)
        yield rill.OfflineToOnlineReplayBuffer(*self.members(is_filled, seed), batch_size=10, seed=seed,
                                               offline_fraction=fraction)

    def check(self, other, path, want):
        other.loads(path)
        for batch in want:
            got = other.sample()
            for key in batch:
                np.testing.assert_array_equal(got[key], batch[key], key)
            other.update_priority(got, 1.0 + got["x"].ravel() % 7)

    def test_batches_go_on_bit_for_bit(self):
        for ensemble, other, third in zip(self.ensembles(True, 1), self.ensembles(False, 50), self.ensembles(False, 90)):
            with self.subTest(type(ensemble), options=ensemble._options), tempfile.TemporaryDirectory() as folder:
                path = folder + "/ensemble"
                ensemble.dumps(path)  # Which the next one replaces.
                for _ in range(3):
                    batch = ensemble.sample()
                    ensemble.update_priority(batch, 1.0 + batch["x"].ravel() % 5)
                ensemble.dumps(path)
                self.assertEqual(os.listdir(folder), ["ensemble"])
                with mock.patch.object(ensemble, "_save", side_effect=KeyboardInterrupt):
                    self.assertRaises(KeyboardInterrupt, ensemble.dumps, path)
                self.assertEqual(os.listdir(folder), ["ensemble"])
                want = []
                for _ in range(6):
                    want.append(ensemble.sample())
                    ensemble.update_priority(want[-1], 1.0 + want[-1]["x"].ravel() % 7)
                self.check(other, path, want)
                self.check(third, path, want)

    def test_another_one_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second, third, _ = self.ensembles(True, 1)
            first.dumps(folder + "/saved")
            fresh, stacked, _, _ = self.ensembles(False, 2)
            with self.assertRaises(rill.FailedPreconditionError):
                stacked.loads(folder + "/saved")
            with self.assertRaises(rill.NotFoundError):
                fresh.loads(folder + "/nothing")
            fresh.loads(folder + "/saved")
            self.assertEqual(len(fresh), 130)

    def test_a_folder_with_other_files_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/thesis.txt", "w", encoding="ascii"):
                pass
            with self.assertRaises(rill.FailedPreconditionError):
                next(self.ensembles(True, 1)).dumps(folder)
            self.assertEqual(os.listdir(folder), ["thesis.txt"])

    def test_a_save_of_another_class_leaves_the_members_empty(self):
        with tempfile.TemporaryDirectory() as folder:
            *_, mixed = self.ensembles(False, 2)
            next(self.ensembles(True, 1)).dumps(folder + "/saved")
            with self.assertRaisesRegex(rill.NotFoundError, "batches"):
                mixed.loads(folder + "/saved")
            self.assertEqual(len(mixed), 0)


if __name__ == "__main__":
    unittest.main()
