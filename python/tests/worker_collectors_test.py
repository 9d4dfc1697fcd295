# SPDX-License-Identifier: Apache-2.0
"""rill.MultiSyncDataCollector and MultiaSyncDataCollector: workers, their batches, errors and ends."""
import gc
import itertools
import subprocess
import sys
import threading
import unittest
import weakref

import numpy as np
import rill
from rill import envs
from collectors_test import keys_of, push_left, shut_in_a_call
from envs_test import Counter
from waiting_test import exit_code_of_child, interrupt_soon


def sync_of(policy=None, workers=2, lanes=2, frames_per_batch=16, seed=1, **options):
    return rill.MultiSyncDataCollector(lambda: envs.CartPole(lanes), policy, num_workers=workers,
                                       frames_per_batch=frames_per_batch, seed=seed, **options)


def async_of(policy=None, workers=2, lanes=2, frames_per_batch=8, seed=1, **options):
    return rill.MultiaSyncDataCollector([lambda: envs.CartPole(lanes)] * workers, policy,
                                        frames_per_batch=frames_per_batch, seed=seed, **options)


def first_of_workers(collector, is_joined):
    """The first batch of each of two workers, in their order."""
    if is_joined:
        return collector.next()["observation"]
    first = {}
    while len(first) < 2:
        batch = collector.next()
        first.setdefault(batch["collector"]["traj_ids"][0, 0] >> 40, batch["observation"])
    return np.concatenate([first[worker] for worker in sorted(first)])


class BatchesTest(unittest.TestCase):
    def test_a_batch_is_of_all_workers(self):
        with sync_of(push_left, total_frames=40) as collector:
            batches = list(collector)
            self.assertEqual((len(batches), len(collector), collector.frames, collector.num_workers), (3, 3, 48, 2))
        self.assertEqual(keys_of(batches[0])["observation"], (4, 4, 4))
        whole = np.concatenate([batch["observation"] for batch in batches], axis=1)
        following = np.concatenate([batch["next"]["observation"] for batch in batches], axis=1)
        ends = np.concatenate([batch["next"]["done"] for batch in batches], axis=1)[:, :-1, 0]
        np.testing.assert_array_equal(whole[:, 1:][~ends], following[:, :-1][~ends])
        np.testing.assert_array_equal(whole[:, :12], np.concatenate(
            [batch["observation"] for batch in sync_of(push_left, total_frames=48)], axis=1))
        self.assertEqual(len(set(whole[:, 0, 0])), 4)

    def test_how_they_are_joined(self):
        lanes = sync_of().next()["observation"]
        self.assertEqual(lanes.shape, (4, 4, 4))
        stacked = sync_of(cat_results="stack").next()["observation"]
        np.testing.assert_array_equal(stacked.reshape(4, 4, 4), lanes)
        in_time = sync_of(cat_results=-1).next()["observation"]
        np.testing.assert_array_equal(in_time, np.concatenate([lanes[:2], lanes[2:]], axis=1))
        parts = sync_of(frames_per_batch=[8, 4], cat_results=-1).next()["observation"]
        self.assertEqual(parts.shape, (2, 6, 4))
        with self.assertRaisesRegex(rill.InvalidArgumentError, "cat_results: got '1', want one of 0, stack, -1"):
            sync_of(cat_results=1)

    def test_a_batch_stays_as_it_is(self):
        collector = sync_of()
        batches = list(itertools.islice(collector, 2))
        copies = [batch["observation"].copy() for batch in batches]
        list(itertools.islice(collector, 3))
        for batch, copy in zip(batches, copies):
            np.testing.assert_array_equal(batch["observation"], copy)

    def test_batches_of_workers_come_as_they_are_made(self):
        collector = async_of(push_left)
        seen = {}
        while len(seen) < 2 or min(map(len, seen.values())) < 3:
            batch = collector.next()
            self.assertEqual(batch["observation"].shape, (2, 4, 4))
            seen.setdefault(batch["collector"]["traj_ids"][0, 0] >> 40, []).append(batch["observation"])
        self.assertEqual(collector.frames_per_batch, 8)
        self.assertEqual(collector.frames, 8 * sum(map(len, seen.values())))
        collector.shutdown()

    def test_a_total_ends_them(self):
        with async_of(total_frames=30) as collector:
            self.assertEqual(sum(batch["action"].size for batch in collector), 32)

    def test_trajectories_apart_and_other_options(self):
        with sync_of(max_frames_per_traj=2, split_trajs=True) as collector:
            self.assertEqual(collector.next()["observation"].shape, (8, 2, 4))
        with async_of(max_frames_per_traj=2, split_trajs=True) as collector:
            self.assertEqual(collector.next()["observation"].shape, (4, 2, 4))
        batch = sync_of(set_truncated=True, init_random_frames=16, reset_at_each_iter=True).next()
        self.assertTrue(batch["next"]["truncated"][:, -1].all())
        self.assertEqual(set(sync_of(push_left, init_random_frames=16).next()["action"].ravel()), {0, 1})

    def test_they_write_to_a_buffer(self):
        for make in (sync_of, async_of):
            buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(400, lanes=4), batch_size=8)
            collector = make(push_left, replay_buffer=buffer, total_frames=160)
            self.assertEqual(set(collector), {None})
            self.assertEqual(len(buffer), collector.frames)
            rows = buffer[:]
            same = rows["collector"]["traj_ids"][1:] == rows["collector"]["traj_ids"][:-1]
            np.testing.assert_array_equal(rows["observation"][1:][same], rows["next"]["observation"][:-1][same])
            collector.shutdown()

    def test_a_full_limiter_is_waited_for(self):
        limiter = rill.RateLimiter(min_size_to_sample=8, max_diff=8.0)
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(400, lanes=4), batch_size=8, rate_limiter=limiter)
        collector = sync_of(replay_buffer=buffer, total_frames=40)  # In the middle of a round.
        thread = threading.Thread(target=lambda: list(collector))
        thread.start()
        while len(buffer) < 48:
            if len(buffer) >= 8:
                buffer.sample()
        thread.join()
        self.assertEqual(collector.frames, 48)

    def test_iteration_ends_behind_a_whole_round(self):
        limiter = rill.RateLimiter(min_size_to_sample=8, max_diff=8.0)
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(400, lanes=4), batch_size=8, rate_limiter=limiter,
                                   rate_limit_timeout=0.0)
        collector = sync_of(replay_buffer=buffer, total_frames=8)
        with self.assertRaises(rill.DeadlineExceededError):
            list(collector)
        self.assertEqual(collector.frames, 8)
        buffer.sample()
        self.assertEqual(list(collector), [None])
        self.assertEqual((collector.frames, list(collector)), (16, []))
        collector.shutdown()

    def test_batches_that_differ_have_no_number(self):
        self.assertEqual(len(sync_of(frames_per_batch=[4, 8], total_frames=24)), 2)
        self.assertEqual(len(async_of(frames_per_batch=[8, 8], total_frames=24)), 3)
        for collector in (async_of(frames_per_batch=[4, 8], total_frames=24),
                          sync_of(preemptive_threshold=0.5, total_frames=24)):
            with self.assertRaisesRegex(TypeError, "batches differ"):
                len(collector)
            self.assertGreaterEqual(len(list(collector)), 2)

    def test_late_ones_end_early(self):
        may_step = threading.Event()

        class Slow(Counter):
            def step(self, action):
                may_step.wait()
                return super().step(action)

        collector = rill.MultiSyncDataCollector([Counter, Slow], frames_per_batch=8, preemptive_threshold=0.5)
        threading.Timer(0.1, may_step.set).start()
        batch = collector.next()
        steps = batch["collector"]["mask"].reshape(2, -1).sum(axis=1)
        self.assertEqual(steps[0], 4)
        self.assertIn(steps[1], (1, 2, 3, 4))
        collector.shutdown()

    def test_wrong_options(self):
        for options, text in (
                ({"workers": 0}, "workers: got 0"),
                ({"frames_per_batch": 0}, "frames_per_batch"),
                ({"frames_per_batch": [4]}, "one a worker"),
                ({"preemptive_threshold": 2.0}, "preemptive_threshold"),
                ({"policy_factory": lambda: push_left, "policy": push_left}, "policy_factory: got one beside a policy"),
                ({"replay_buffer": 3}, "replay_buffer: got a int"),
                ({"split_trajs": True, "cat_results": "stack"}, "split_trajs")):
            with self.assertRaisesRegex(rill.InvalidArgumentError, text):
                sync_of(**options)
        with self.assertRaisesRegex(rill.InvalidArgumentError, "num_workers: got 3 for 2"):
            rill.MultiaSyncDataCollector([Counter, Counter], num_workers=3, frames_per_batch=2)
        with self.assertRaisesRegex(rill.InvalidArgumentError, "without num_workers"):
            rill.MultiaSyncDataCollector(Counter, frames_per_batch=2)
        one = envs.CartPole()
        with self.assertRaisesRegex(rill.InvalidArgumentError, "one environment twice"):
            rill.MultiSyncDataCollector([one, one], frames_per_batch=2)
        with self.assertRaisesRegex(rill.InvalidArgumentError, "frames_per_batch"):
            rill.MultiSyncDataCollector([one], frames_per_batch=0)
        one.rollout(2)  # It is its owner's.
        with self.assertRaisesRegex(rill.InvalidArgumentError, "worker [01]: .*lanes: got [23]"):
            rill.MultiSyncDataCollector([envs.CartPole(2), envs.CartPole(3)], frames_per_batch=12)

    def test_environments_that_differ_stay_their_owners(self):
        for other, text in ((envs.CartPole(3), "worker 1: lanes: got 3, want the first worker's, 2"),
                            (envs.Acrobot(2), "worker 1: rows differ from the first worker's: .*observation")):
            one = envs.CartPole(2)
            with self.assertRaisesRegex(rill.InvalidArgumentError, text):
                rill.MultiSyncDataCollector([one, other], frames_per_batch=12)
            one.rollout(2), other.rollout(2)


class PolicyTest(unittest.TestCase):
    def test_each_worker_may_have_its_own(self):
        made = []

        class Agent:
            def __init__(self):
                self.threads = set()
                made.append(self)

            def __call__(self, root):
                self.threads.add(threading.get_ident())
                return push_left(root)

        collector = sync_of(policy_factory=Agent)
        collector.next(), collector.next()
        self.assertEqual([len(agent.threads) for agent in made], [1, 1])
        self.assertEqual(len(made[0].threads | made[1].threads), 2)

    def test_an_exception_is_the_same_and_collection_goes_on(self):
        calls, error = itertools.count(), ZeroDivisionError("no action")

        def policy(root):
            if next(calls) == 5:
                raise error
            return push_left(root)

        for make in (sync_of, async_of):
            calls = itertools.count()
            collector = make(policy)
            with self.assertRaises(ZeroDivisionError) as raised:
                for _ in range(8):
                    collector.next()
            self.assertIs(raised.exception, error)
            for _ in range(4):
                self.assertTrue((collector.next()["action"] == 0).all())
            collector.shutdown()

    def test_an_exception_of_an_environment_too(self):
        class Failing(Counter):
            def step(self, action):
                raise LookupError("no step")

        collector = rill.MultiaSyncDataCollector([Failing], frames_per_batch=2)
        for _ in range(3):
            with self.assertRaisesRegex(LookupError, "^no step$"):
                collector.next()

    def test_each_failure_is_its_own(self):
        class Failing(Counter):
            made = itertools.count()

            def __init__(self):
                super().__init__()
                self.lane, self.tries = next(self.made), itertools.count()

            def step(self, action):
                raise LookupError("lane %d, try %d" % (self.lane % 20, next(self.tries)))

        collector = rill.MultiaSyncDataCollector([[Failing] * 20], frames_per_batch=40)
        for i in range(3):
            with self.assertRaisesRegex(LookupError, "^lane 0, try %d$" % i):
                collector.next()
        collector.shutdown()

    def test_an_old_failure_is_no_new_one(self):
        class Same(Counter):
            raised = []

            def step(self, action):
                self.raised.append(LookupError("no step"))
                raise self.raised[-1]

        collector = rill.MultiaSyncDataCollector([[Same, Same]], frames_per_batch=4)
        for _ in range(3):
            before = len(Same.raised)
            with self.assertRaises(LookupError) as error:
                collector.next()
            self.assertIs(error.exception, Same.raised[before])
        collector.shutdown()

    def test_a_worker_is_one_thread_of_pythons(self):
        kept = threading.local()

        def policy(root):
            kept.calls = getattr(kept, "calls", 0) + 1
            seen.append(kept.calls)
            return push_left(root)

        for make in (sync_of, async_of):
            seen = []
            with make(policy, workers=1) as collector:
                collector.next()
            self.assertEqual(seen[:4], [1, 2, 3, 4])

    def test_a_wrong_action_names_the_worker(self):
        with self.assertRaisesRegex(rill.InvalidArgumentError, "worker [01]: .*action"):
            sync_of(lambda root: np.zeros(7, np.int64)).next()


class EndingTest(unittest.TestCase):
    def test_an_interrupt_loses_nothing(self):
        for make in (sync_of, async_of):
            may_act = threading.Event()
            self.addCleanup(may_act.set)  # A worker that waits would keep the test.

            def policy(root):
                may_act.wait()
                return push_left(root)

            collector = make(policy)
            with self.assertRaises(KeyboardInterrupt), interrupt_soon(lambda: collector._collector.calls_in_flight > 0):
                collector.next()
            self.assertEqual(collector.frames, 0)
            may_act.set()
            same = make(push_left)
            np.testing.assert_array_equal(*(first_of_workers(each, make is sync_of) for each in (collector, same)))
            collector.shutdown()

    def test_an_interrupt_ends_the_wait_for_workers(self):
        may_act, in_policy = threading.Event(), threading.Event()

        def policy(root):
            in_policy.set()
            may_act.wait()
            return push_left(root)

        counter = Counter()
        collector = rill.MultiaSyncDataCollector([counter], policy, frames_per_batch=2)
        with self.assertRaises(KeyboardInterrupt), interrupt_soon(in_policy.is_set):
            collector.next()
        with self.assertRaises(KeyboardInterrupt), interrupt_soon(lambda: collector._collector.is_closed):
            collector.shutdown()
        self.assertFalse(counter.closed)
        may_act.set()
        collector.shutdown()
        self.assertTrue(counter.closed)

    def test_shutdown_ends_a_call_of_another_thread(self):
        collector = shut_in_a_call(self, lambda policy: sync_of(policy, frames_per_batch=400_000),
                                   "MultiSyncDataCollector: .*one at a time")
        with self.assertRaisesRegex(rill.FailedPreconditionError, "closed"):
            collector.next()

    def test_a_policy_may_shut_down(self):
        calls, outside, shut = itertools.count(), threading.Event(), threading.Event()

        def policy(root):
            if next(calls) == 4:
                outside.wait()
                collector.shutdown()
                shut.set()
            return np.zeros(1, np.int64)

        class Closing(Counter):
            def close(self):
                super().close()
                closed.set()

        closed, counter = threading.Event(), Closing()
        collector = rill.MultiaSyncDataCollector([counter], policy, frames_per_batch=2)
        collector.next()  # The worker is two batches ahead.
        outside.set()
        self.assertTrue(shut.wait(60))
        self.assertTrue(closed.wait(60))
        with self.assertRaisesRegex(rill.FailedPreconditionError, "closed collector"):
            collector.next()

    def test_a_worker_may_find_that_nobody_holds_it(self):
        steps, may_look, gone = itertools.count(), threading.Event(), threading.Event()

        class Looking(Counter):
            def step(self, action):
                if next(steps) == 4:
                    may_look.wait()
                    gc.collect()
                return super().step(action)

        class Agent:
            def __init__(self):
                self.collector = rill.MultiaSyncDataCollector([Looking], self.act, frames_per_batch=2)

            def act(self, root):
                return np.zeros(1, np.int64)

        agent = Agent()
        agent.collector.next()
        weakref.finalize(agent, gone.set)
        gc.disable()
        try:
            del agent
            may_look.set()
            self.assertTrue(gone.wait(60))
        finally:
            gc.enable()

    def test_objects_are_closed_once(self):
        objects = [Counter(), Counter()]
        with rill.MultiaSyncDataCollector(objects, frames_per_batch=2) as collector:
            collector.next()
        self.assertEqual([each.closed for each in objects], [True, True])

    def test_a_child_is_told_that_workers_stayed_behind(self):
        for make in (sync_of, async_of):
            collector = make(push_left)
            collector.next()

            def child():
                nonlocal collector
                try:
                    collector.next()
                except rill.FailedPreconditionError as error:
                    collector.shutdown()
                    del collector
                    gc.collect()
                    return 7 if "threads stayed there" in str(error) else 1
                return 2

            self.assertEqual(exit_code_of_child(child), 7)
            collector.next()
            collector.shutdown()

    def test_processes_of_gymnasium_step_at_the_same_time(self):
        try:
            import gymnasium  # noqa: F401
        except ImportError:
            self.skipTest("there is no gymnasium")
        with rill.MultiSyncDataCollector(lambda: envs.GymEnv("CartPole-v1", 2), push_left, num_workers=2,
                                         frames_per_batch=16) as collector:
            self.assertEqual(collector.next()["observation"].shape, (4, 4, 4))

    def test_it_cannot_cross(self):
        import pickle
        with self.assertRaisesRegex(TypeError, "MultiSyncDataCollector: does not cross"):
            pickle.dumps(sync_of())

    def test_the_interpreter_may_end_beside_workers(self):
        for policy in ("lambda root: numpy.zeros(1, numpy.int64)", "lambda root: threading.Event().wait()"):
            code = ("import numpy, rill, threading, time\n"
                    "rill.endings.GRACE = 0.5\n"
                    "policy = %s\n"
                    "c = rill.MultiaSyncDataCollector(['CartPole-v1'] * 2, policy, frames_per_batch=200_000)\n"
                    "threading.Thread(target=c.next, daemon=True).start()\n"
                    "time.sleep(0.2)\n" % policy)
            self.assertEqual(subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True).returncode, 0)


if __name__ == "__main__":
    unittest.main()
