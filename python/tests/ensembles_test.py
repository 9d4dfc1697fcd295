# SPDX-License-Identifier: Apache-2.0
"""Batches of several buffers, and parts of a batch by several samplers."""
import threading
import unittest

import numpy as np
import rill
from waiting_test import interrupt_soon


def rows_of(first, count):
    return {"x": np.arange(first, first + count), "next": {"done": np.zeros((count, 1), bool)}}


def buffer_of(first, count=100, **options):
    """A buffer whose rows are numbered from `first` on."""
    buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(count), seed=1, **options)
    buffer.extend(rows_of(first, count))
    return buffer


class SamplersTest(unittest.TestCase):
    def test_recent_rows_come_more_often(self):
        x = buffer_of(0, 10, sampler=rill.RecentSampler(), batch_size=20_000).sample()["x"]
        got = np.bincount(x, minlength=10) / len(x)
        np.testing.assert_allclose(got, (2 * np.arange(10) + 1) / 100, atol=0.015)

    def test_parts_of_a_batch_have_exact_shares(self):
        # Of all rows, at first.
        sampler = rill.MixtureSampler(rill.RandomSampler(), rill.PrioritizedSampler(alpha=1.0, beta=1.0), p=[3, 1])
        buffer = buffer_of(0, sampler=sampler, batch_size=16)
        for _ in range(30):  # Until all rows had theirs.
            batch = buffer.sample()
            buffer.update_priority(batch, np.where(batch["x"] == 7, 1e6, 1e-6))
        for _ in range(10):
            batch = buffer.sample()
            self.assertEqual(batch["x"][12:].tolist(), [7] * 4)
            self.assertGreater(len(set(batch["x"][:12])), 3)
            self.assertEqual(batch["priority_weight"][:12].tolist(), [1.0] * 12)
        self.assertEqual((buffer.alpha, buffer.beta), (1.0, 1.0))

    def test_over_slices(self):
        buffer = rill.ReplayBuffer(
            storage=rill.LazyTensorStorage(100), batch_size=8, sample_unit=rill.Slice(4),
            sampler=rill.MixtureSampler(rill.RandomSampler(), rill.RecentSampler()))
        buffer.extend({"x": np.arange(100), "next": {"done": (np.arange(100) % 10 == 9)[:, None]}})
        x = buffer.sample()["x"].reshape(2, 4)
        np.testing.assert_array_equal(np.diff(x), 1)

    def test_wrong_parts(self):
        for make, text in ((lambda: rill.MixtureSampler(rill.RandomSampler(), p=[1, 2]), "2 shares for 1"),
                           (lambda: rill.MixtureSampler(rill.SliceSampler(slice_len=2)), "got a SliceSampler"),
                           (lambda: buffer_of(0, sampler=rill.MixtureSampler()), "parts?: got"),
                           (lambda: buffer_of(0, sampler=rill.MixtureSampler(rill.RandomSampler(), p=[0])), "share")):
            with self.assertRaisesRegex(rill.InvalidArgumentError, text):
                make()


class EnsembleTest(unittest.TestCase):
    def test_shares_of_a_batch(self):
        with rill.ReplayBufferEnsemble(buffer_of(0), buffer_of(1000), p=[0.75, 0.25], batch_size=32) as ensemble:
            self.assertEqual((len(ensemble), len(ensemble[1])), (200, 100))
            batch = ensemble.sample()
            np.testing.assert_array_equal(batch["buffer_ids"], np.repeat([0, 1], [24, 8]))
            np.testing.assert_array_equal(batch["x"] >= 1000, batch["buffer_ids"] == 1)
            ensemble.set_p([0, 1])
            self.assertTrue((ensemble.sample(4)["x"] >= 1000).all())
            batch, info = ensemble.sample(return_info=True)
            self.assertEqual(set(info), {"index", "index_generation"})

    def test_stacked(self):
        members = [buffer_of(1000 * i) for i in range(3)]
        batch = rill.ReplayBufferEnsemble(*members, sample_from_all=True, batch_size=12).sample()
        np.testing.assert_array_equal(batch["x"] // 1000, np.repeat([[0], [1], [2]], 4, axis=1))
        drawn = rill.ReplayBufferEnsemble(*members, num_buffer_sampled=2, batch_size=12, seed=3)
        pairs = {tuple(batch["buffer_ids"][:, 0]) for batch, _ in zip(drawn, range(30))}
        self.assertEqual(drawn.sample()["x"].shape, (2, 6))
        self.assertGreater(len(pairs), 1)
        with self.assertRaisesRegex(rill.InvalidArgumentError, "batch_size"):
            drawn.sample(11)

    def test_a_seed_makes_batches_repeatable(self):
        def x(seed):
            return rill.ReplayBufferEnsemble(buffer_of(0), buffer_of(1000), num_buffer_sampled=1, p=[1, 1],
                                             batch_size=4, seed=seed).sample()["x"]

        np.testing.assert_array_equal(x(3), x(3))

    def test_priorities_go_to_their_members(self):
        for options in ({}, {"sample_from_all": True}):
            members = [buffer_of(1000 * i, sampler=rill.PrioritizedSampler(alpha=1.0, beta=0.0)) for i in range(2)]
            ensemble = rill.ReplayBufferEnsemble(*members, batch_size=400, **options)
            for _ in range(4):  # Until all rows had theirs.
                batch = ensemble.sample()
                ensemble.update_priority(batch, np.where(batch["x"] % 1000 == 5, 1.0, 0.0))
            x = ensemble.sample()["x"].ravel()
            self.assertGreater(np.isin(x, [5, 1005]).mean(), 0.9)
            self.assertEqual({5, 1005} - set(x), set())
            ensemble.update_priority(batch, 2.0)

    def test_transforms_and_their_exceptions(self):
        def add(batch):
            batch["x"] = batch["x"] + 1
            if (batch["x"] > 2000).any():
                raise LookupError("too large")

        ensemble = rill.ReplayBufferEnsemble(buffer_of(0), buffer_of(1000), transform=add, batch_size=8)
        self.assertLessEqual(ensemble.sample()["x"].max(), 1100)
        with self.assertRaisesRegex(LookupError, "^too large$"):
            rill.ReplayBufferEnsemble(buffer_of(3000), transform=add, batch_size=8).sample()

    def test_parts_by_torchrls_names(self):
        ensemble = rill.ReplayBufferEnsemble(
            storages=rill.StorageEnsemble(rill.LazyTensorStorage(10), rill.LazyTensorStorage(10)),
            samplers=rill.SamplerEnsemble(rill.RandomSampler(), rill.RecentSampler(), p=[1, 3]),
            writers=rill.WriterEnsemble(rill.RoundRobinWriter(), rill.RoundRobinWriter()), batch_size=4)
        for i in range(2):
            ensemble[i].extend(rows_of(0, 10))
        self.assertEqual(ensemble.sample()["buffer_ids"].tolist(), [0, 1, 1, 1])
        with self.assertRaisesRegex(rill.InvalidArgumentError, "got 1 storages, 2 samplers"):
            rill.ReplayBufferEnsemble(storages=rill.StorageEnsemble(rill.LazyTensorStorage(10)),
                                      samplers=rill.SamplerEnsemble(rill.RandomSampler(), rill.RandomSampler()))

    def test_a_member_without_rows_is_named(self):
        ensemble = rill.ReplayBufferEnsemble(buffer_of(0), rill.ReplayBuffer(), batch_size=8)
        with self.assertRaisesRegex(rill.FailedPreconditionError, "member 1"):
            ensemble.sample()

    def test_a_limiter_of_a_member_is_waited_for(self):
        late = rill.ReplayBuffer(rate_limiter=rill.RateLimiter.min_size(2))
        ensemble = rill.ReplayBufferEnsemble(buffer_of(0), late, batch_size=4)
        with self.assertRaises(KeyboardInterrupt), interrupt_soon(lambda: ensemble._ensemble.calls_in_flight > 0):
            ensemble.sample()
        thread = threading.Timer(0.1, lambda: late.extend(
            rows_of(0, 2)))
        thread.start()
        self.assertEqual(ensemble.sample()["x"].shape, (4,))
        thread.join()
        with self.assertRaises(rill.DeadlineExceededError):
            rill.ReplayBufferEnsemble(rill.ReplayBuffer(rate_limiter=rill.RateLimiter.min_size(2)), batch_size=4,
                                      rate_limit_timeout=0.0).sample()

    def test_closing(self):
        def scale(batch):
            batch["x"] = batch["x"] * 2

        member = buffer_of(0, prefetch=2, batch_size=4, transform=scale)
        ensemble = rill.ReplayBufferEnsemble(member, batch_size=4)
        ensemble.sample()
        ensemble.close()
        for call in (ensemble.sample, member.sample, lambda: len(ensemble)):
            with self.assertRaisesRegex(rill.FailedPreconditionError, "closed"):
                call()
        # A member that is closed alone serves on.
        member = buffer_of(0)
        ensemble = rill.ReplayBufferEnsemble(member, batch_size=4)
        member.close()
        self.assertEqual(ensemble.sample()["x"].shape, (4,))
        with self.assertRaisesRegex(rill.FailedPreconditionError, "closed"):
            rill.ReplayBufferEnsemble(member, batch_size=4)

    def test_a_call_that_waits_ends_with_it(self):
        waiting = rill.ReplayBufferEnsemble(rill.ReplayBuffer(rate_limiter=rill.RateLimiter.min_size(2)), batch_size=4)
        raised = []

        def sample():
            try:
                waiting.sample()
            except rill.Error as error:
                raised.append(type(error))

        thread = threading.Thread(target=sample)
        thread.start()
        while not waiting._ensemble.calls_in_flight:
            pass
        waiting.close()
        thread.join()
        self.assertEqual(raised, [rill.CancelledError])

    def test_wrong_options(self):
        one = buffer_of(0)
        for make, text in ((lambda: rill.ReplayBufferEnsemble(), "got 0 buffers"),
                           (lambda: rill.ReplayBufferEnsemble(3), "got a int"),
                           (lambda: rill.ReplayBufferEnsemble(one, p=[1, 2]), "2 shares for 1"),
                           (lambda: rill.ReplayBufferEnsemble(one, p=[-1]), "share"),
                           (lambda: rill.ReplayBufferEnsemble(one, num_buffer_sampled=2), "buffers_sampled"),
                           (lambda: rill.ReplayBufferEnsemble(one, sample_from_all=True, num_buffer_sampled=2),
                            "beside sample_from_all"),
                           (lambda: rill.ReplayBufferEnsemble(one).sample(), "batch_size: got none"),
                           (lambda: rill.ReplayBufferEnsemble(one, output="list"), "output")):
            with self.assertRaisesRegex(rill.InvalidArgumentError, text):
                make()


class OfflineToOnlineTest(unittest.TestCase):
    def test_the_share_changes_and_waits_for_rows(self):
        online = rill.ReplayBuffer(storage=rill.LazyTensorStorage(100))
        buffer = rill.OfflineToOnlineReplayBuffer(
            buffer_of(0), online, offline_fraction=lambda batches: max(0.0, 1 - batches / 4), batch_size=8,
            min_online_rows=2)
        counts = [int(buffer.sample()["buffer_ids"].sum())]
        buffer.add({"x": 1000, "next": {"done": np.zeros(1, bool)}})
        counts.append(int(buffer.sample()["buffer_ids"].sum()))
        buffer.extend(rows_of(1000, 2))
        counts += [int(buffer.sample()["buffer_ids"].sum()) for _ in range(4)]
        self.assertEqual(counts, [0, 0, 4, 6, 8, 8])
        self.assertEqual(len(online), 3)

    def test_a_wrong_share(self):
        buffer = rill.OfflineToOnlineReplayBuffer(buffer_of(0), buffer_of(1), offline_fraction=2, batch_size=8)
        with self.assertRaisesRegex(rill.InvalidArgumentError, r"offline_fraction: got 2.0, want \[0, 1\]"):
            buffer.sample()


if __name__ == "__main__":
    unittest.main()
