# SPDX-License-Identifier: Apache-2.0
"""rill.SyncDataCollector: batches, policies in Python, replay buffers, and how calls end."""
import contextlib
import gc
import itertools
import subprocess
import sys
import threading
import traceback
import unittest
import weakref

import numpy as np
import rill
from rill import envs
from rill import specs as S
from envs_test import Counter
from waiting_test import exit_code_of_child, interrupt_soon


def collector_of(policy=None, lanes=2, frames_per_batch=8, seed=1, **options):
    return rill.SyncDataCollector(envs.CartPole(lanes), policy, frames_per_batch=frames_per_batch, seed=seed, **options)


def keys_of(batch):
    return {key: keys_of(value) if isinstance(value, dict) else value.shape for key, value in batch.items()}


def push_left(root):
    return np.zeros(len(root["observation"]), np.int64)


def shut_in_a_call(test, make, busy):
    """A collector that was shut down while another thread was in a long call of it."""
    in_call, raised = threading.Event(), []

    def policy(root):
        in_call.set()
        return push_left(root)

    collector = make(policy)

    def collect():
        try:
            collector.next()
        except rill.Error as error:
            raised.append(type(error))

    thread = threading.Thread(target=collect)
    thread.start()
    in_call.wait()
    with test.assertRaisesRegex(rill.FailedPreconditionError, busy):
        collector.next()
    collector.shutdown()
    thread.join()
    test.assertEqual(raised, [rill.CancelledError])
    return collector


class BatchesTest(unittest.TestCase):
    def test_random_actions_are_the_default(self):
        with collector_of(total_frames=20) as collector:
            batches = list(collector)
            self.assertEqual((len(batches), len(collector), collector.frames), (3, 3, 24))
        self.assertEqual(keys_of(batches[0]), {
            "observation": (2, 4, 4), "action": (2, 4), "done": (2, 4, 1), "terminated": (2, 4, 1),
            "truncated": (2, 4, 1), "policy_version": (2, 4, 1), "collector": {"traj_ids": (2, 4)},
            "next": {"observation": (2, 4, 4), "reward": (2, 4, 1), "done": (2, 4, 1), "terminated": (2, 4, 1),
                     "truncated": (2, 4, 1)}})
        whole = np.concatenate([batch["observation"] for batch in batches], axis=1)
        following = np.concatenate([batch["next"]["observation"] for batch in batches], axis=1)
        np.testing.assert_array_equal(whole[:, 1:], following[:, :-1])
        self.assertEqual(set(np.concatenate([batch["action"].ravel() for batch in batches])), {0, 1})
        with self.assertRaises(TypeError):
            len(collector_of())

    def test_a_seed_makes_batches_repeatable(self):
        def actions(seed):
            return np.concatenate([batch["action"] for batch in itertools.islice(collector_of(seed=seed), 4)])

        np.testing.assert_array_equal(actions(3), actions(3))
        self.assertTrue((actions(None) != actions(None)).any())

    def test_an_array_keeps_its_values_and_memory_serves_again(self):
        collector = collector_of()
        kept = collector.next()["observation"]
        values = kept.copy()
        addresses = {collector.next()["observation"].ctypes.data for _ in range(8)}
        np.testing.assert_array_equal(kept, values)
        self.assertNotIn(kept.ctypes.data, addresses)
        self.assertLessEqual(len(addresses), 3)

    def test_episodes_end_as_they_are_asked_to(self):
        batch = collector_of(max_frames_per_traj=3, frames_per_batch=16).next()
        self.assertEqual(np.flatnonzero(batch["next"]["truncated"][0]).tolist(), [2, 5])
        ids = batch["collector"]["traj_ids"]
        self.assertEqual([len(set(lane)) for lane in ids.tolist()], [3, 3])
        self.assertEqual(len(set(ids.ravel())), 6)
        collector = collector_of(set_truncated=True)
        self.assertTrue(collector.next()["next"]["truncated"][:, -1].all())
        for resets in (False, True):
            collector = rill.SyncDataCollector(Counter(100), frames_per_batch=5, reset_at_each_iter=resets)
            collector.next()
            self.assertEqual(collector.next()["observation"][0, 0, 0], 0 if resets else 5)

    def test_trajectories_apart(self):
        collector = rill.SyncDataCollector([Counter(3), Counter(2)], frames_per_batch=10, split_trajs=True)
        for _ in range(3):
            batch = collector.next()
            self.assertEqual(batch["observation"].shape[1:], (3, 2))
            mask = batch["collector"]["mask"]
            self.assertEqual(mask.sum(), 10)
            self.assertFalse(batch["next"]["reward"][~mask].any())
            for row in range(len(mask)):
                counts = batch["observation"][row, mask[row], 0]
                np.testing.assert_array_equal(np.diff(counts), 1)

    def test_wrong_options(self):
        make = rill.SyncDataCollector
        for call, text in (
                (lambda: collector_of(frames_per_batch=0), "frames_per_batch: got 0"),
                (lambda: collector_of(frames_per_batch="many"), "frames_per_batch"),
                (lambda: collector_of(total_frames=0), "total_frames"),
                (lambda: collector_of(max_frames_per_traj=0), "max_frames_per_traj"),
                (lambda: collector_of(init_random_frames=-1), "init_random_frames"),
                (lambda: collector_of(output="jax"), "output: got 'jax'"),
                (lambda: collector_of(replay_buffer=[]), "replay_buffer: got a list"),
                (lambda: collector_of(replay_buffer=rill.ReplayBuffer(), split_trajs=True), "split_trajs"),
                (lambda: make(3, frames_per_batch=1), "got a int")):
            with self.subTest(text), self.assertRaisesRegex(rill.InvalidArgumentError, text):
                call()
        with self.assertRaisesRegex(TypeError, "another process"):
            collector_of().__reduce__()
        with self.assertRaises(AttributeError):
            collector_of().replay_buffer = rill.ReplayBuffer()

    def test_a_refused_option_leaves_the_environment(self):
        env = envs.CartPole(2)
        for options in ({"frames_per_batch": 0}, {"frames_per_batch": 4, "max_frames_per_traj": 0}):
            with self.assertRaises(rill.InvalidArgumentError):
                rill.SyncDataCollector(env, **options)
        self.assertEqual(rill.SyncDataCollector(env, frames_per_batch=4).next()["action"].shape, (2, 2))

    def test_without_a_total_there_is_no_end(self):
        self.assertEqual(len(list(itertools.islice(collector_of(total_frames=None), 3))), 3)

    def test_no_trajectory_has_the_number_of_another_collector(self):
        ids = [set(collector_of().next()["collector"]["traj_ids"].ravel().tolist()) for _ in range(3)]
        self.assertEqual(len(set.union(*ids)), sum(map(len, ids)))


class PolicyTest(unittest.TestCase):
    def test_it_gets_the_state_and_gives_the_action(self):
        seen = []

        def policy(root):
            seen.append(root)
            return (root["observation"][:, 2] > 0).astype(np.int64)

        batch = collector_of(policy, frames_per_batch=20).next()
        self.assertEqual(keys_of(seen[0]), {"observation": (2, 4), "done": (2, 1), "terminated": (2, 1),
                                            "truncated": (2, 1)})
        # They are copies, which nobody writes any more.
        np.testing.assert_array_equal(np.stack([root["observation"] for root in seen], axis=1), batch["observation"])
        np.testing.assert_array_equal(batch["action"], batch["observation"][:, :, 2] > 0)

    def test_forms_of_an_action(self):
        ones = np.ones(2, np.int64)
        for made in (ones, {"action": ones}, {("action",): ones, "more": 3}, [1, 1], ones.astype(np.int8),
                     ones.astype(np.uint8)):
            batch = collector_of(lambda root, made=made: made).next()
            np.testing.assert_array_equal(batch["action"], 1)
        np.testing.assert_array_equal(collector_of(lambda root: 1, lanes=1).next()["action"], 1)
        collector = rill.SyncDataCollector(envs.Pendulum(2), lambda root: np.full((2, 1), 0.5), frames_per_batch=2)
        np.testing.assert_array_equal(collector.next()["action"], np.full((2, 1, 1), 0.5, np.float32))

    def test_wrong_actions_name_both_sides(self):
        for made, text in (
                (np.zeros(3, np.int64), r'"action": got int64\[3\], want int64\[2\]'),
                (np.zeros(2), r'"action": got float64\[2\], want int64\[2\]'),
                (np.zeros(2, bool), r"got bool\[2\]"), ([0.5, 0.5], "float"), (np.full(2, 7), "action.*7"),
                ({"actions": 1}, 'got no "action", want one among actions'), (None, "None"), ("left", "str")):
            collector = collector_of(lambda root, made=made: made)
            with self.subTest(text), self.assertRaisesRegex(rill.InvalidArgumentError, text):
                collector.next()

    def test_an_exception_is_the_same_and_collection_goes_on(self):
        error = ZeroDivisionError("of the policy")
        calls = itertools.count()

        def policy(root):
            if next(calls) == 2:
                raise error
            return push_left(root)

        collector = collector_of(policy)
        try:
            collector.next()
        except ZeroDivisionError as caught:
            self.assertIs(caught, error)
            self.assertIn("policy", [frame.name for frame in traceback.extract_tb(caught.__traceback__)])
        self.assertEqual(collector.frames, 0)
        batch = collector.next()
        self.assertEqual((batch["action"].shape, collector.frames), ((2, 4), 8))

    def test_random_frames_come_first(self):
        calls = []

        def policy(root):
            calls.append(1)
            return np.full(2, 1)

        collector = collector_of(policy, init_random_frames=80, frames_per_batch=40)
        batches = [collector.next() for _ in range(4)]
        self.assertEqual(len(calls), 40)
        self.assertFalse(batches[1]["action"].all())
        self.assertTrue(batches[2]["action"].all())

    def test_further_leaves_and_a_memory_of_its_own(self):
        class Recurrent:
            output_spec = S.Composite({"value": S.Unbounded((1,)), ("next", "hidden"): S.Unbounded((2,))})

            def __call__(self, root):
                return {"action": push_left(root), "value": root["observation"][:, :1],
                        "next": {"hidden": root["hidden"] + 1}}

        batch = collector_of(Recurrent(), max_frames_per_traj=3, frames_per_batch=10).next()
        np.testing.assert_array_equal(batch["value"], batch["observation"][:, :, :1])
        np.testing.assert_array_equal(batch["next"]["hidden"][0, :, 0], [1, 2, 3, 1, 2])

    def test_other_libraries(self):
        try:
            import torch
            import tensordict
        except ImportError:
            self.skipTest("there is no torch")
        layer = torch.nn.Linear(4, 2)
        collector = collector_of(lambda root: layer(root["observation"]).argmax(-1), output="torch")
        self.assertEqual(collector.next()["action"].dtype, torch.int64)

        def policy(root):
            self.assertEqual(root.batch_size, torch.Size([2]))
            return root.set("action", layer(root["observation"]).argmax(-1))

        def in_place(root):
            policy(root)

        self.assertIsInstance(collector_of(in_place, output="tensordict").next(), tensordict.TensorDict)
        batch = collector_of(policy, output="tensordict").next()
        self.assertIsInstance(batch, tensordict.TensorDict)
        self.assertEqual((batch.batch_size, batch["next", "reward"].shape), (torch.Size([2, 4]), torch.Size([2, 4, 1])))


class BufferTest(unittest.TestCase):
    def test_batches_go_to_a_buffer(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(100, lanes=2), batch_size=16,
                                   sample_unit=rill.Transition(n_step=rill.NStep(3)))
        collector = collector_of(replay_buffer=buffer, total_frames=40)
        for batch in collector:
            self.assertIsNone(batch)
        self.assertEqual(len(buffer), 40)
        same = collector_of(total_frames=40)
        np.testing.assert_array_equal(buffer[:]["observation"].reshape(2, 20, 4),
                                      np.concatenate([batch["observation"] for batch in same], axis=1))
        self.assertEqual(buffer.sample()["observation"].shape, (16, 4))

    def test_one_lane_and_a_memmap(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            buffer = rill.ReplayBuffer(storage=rill.LazyMemmapStorage(100, folder + "/rows"), batch_size=4)
            with rill.SyncDataCollector(Counter(3), frames_per_batch=6, replay_buffer=buffer) as collector:
                collector.next()
            np.testing.assert_array_equal(buffer[:]["observation"][:, 0], [0, 1, 2, 0, 1, 2])
            buffer.close()

    def test_lanes_that_differ_are_told(self):
        collector = collector_of(replay_buffer=rill.ReplayBuffer(batch_size=4))
        with self.assertRaisesRegex(rill.InvalidArgumentError, "lanes?"):
            collector.next()

    def test_a_full_limiter_is_waited_for(self):
        limiter = rill.RateLimiter(min_size_to_sample=8, max_diff=8.0)
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(100, lanes=2), batch_size=8, rate_limiter=limiter)
        collector = collector_of(replay_buffer=buffer)
        collector.next()
        thread = threading.Thread(target=lambda: [collector.next() for _ in range(5)])
        thread.start()
        for _ in range(5):
            buffer.sample()
        thread.join()
        self.assertEqual(len(buffer), 48)

    def test_a_batch_that_a_limiter_refused_is_not_lost(self):
        limiter = rill.RateLimiter(min_size_to_sample=8, max_diff=8.0)
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(100, lanes=2), batch_size=8, rate_limiter=limiter,
                                   rate_limit_timeout=0.0)
        collector = collector_of(replay_buffer=buffer, total_frames=16)
        with self.assertRaises(rill.DeadlineExceededError):
            list(collector)
        self.assertEqual((len(buffer), collector.frames), (8, 16))
        buffer.sample()
        self.assertEqual(list(collector), [None])
        self.assertEqual((len(buffer), list(collector)), (16, []))

    def test_a_refused_batch_is_a_copy(self):
        closed = rill.ReplayBuffer(storage=rill.LazyTensorStorage(100))
        collector, same = collector_of(), collector_of()
        collector.next()
        kept = collector.next()
        with self.assertRaises(rill.Error):
            closed._buffer.collect(collector._collector)  # Of other lanes.
        batches = [collector.next() for _ in range(3)]
        del kept
        same.next(), same.next()
        for batch in batches:
            np.testing.assert_array_equal(batch["observation"], same.next()["observation"])

    def test_a_closed_buffer_and_an_exception_on_the_way(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(100, lanes=2), batch_size=8)
        calls = itertools.count()

        def policy(root):
            return 1 / 0 if next(calls) == 6 else push_left(root)

        collector = collector_of(policy, replay_buffer=buffer)
        collector.next()
        with self.assertRaises(ZeroDivisionError):
            collector.next()
        self.assertEqual(len(buffer), 8)
        collector.next()
        self.assertEqual(len(buffer), 16)
        buffer.close()
        with self.assertRaisesRegex(rill.FailedPreconditionError, "closed buffer"):
            collector.next()


class EndingTest(unittest.TestCase):
    def test_an_interrupt_keeps_what_was_collected(self):
        collector = rill.SyncDataCollector(envs.Acrobot(), frames_per_batch=1_000_000)
        with self.assertRaises(KeyboardInterrupt), interrupt_soon(lambda: collector._collector.calls_in_flight > 0):
            collector.next()
        frames = collector.frames
        self.assertLess(frames, 1_000_000)
        self.assertEqual(collector.next()["action"].shape, (1, frames))

    def test_an_interrupt_behind_the_total_loses_nothing(self):
        collector = rill.SyncDataCollector(envs.Acrobot(), frames_per_batch=1_000_000, total_frames=1)
        with self.assertRaises(KeyboardInterrupt), interrupt_soon():
            list(collector)
        self.assertGreaterEqual(collector.frames, 1)
        self.assertEqual([batch["action"].shape[1] for batch in collector], [collector.frames])

    def test_an_interrupt_leaves_a_buffer_whole(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(1_000_000))
        collector = collector_of(lanes=1, frames_per_batch=50_000, replay_buffer=buffer)
        with self.assertRaises(KeyboardInterrupt), interrupt_soon():
            while True:
                collector.next()
        collector.next()
        self.assertEqual(len(buffer), min(collector.frames, 1_000_000))

    def test_an_interrupt_in_a_policy_keeps_the_steps_before(self):
        calls, exit = itertools.count(), SystemExit(3)

        def policy(root):
            raised = {0: KeyboardInterrupt(), 3: KeyboardInterrupt(), 4: KeyboardInterrupt(), 9: exit}.get(next(calls))
            if raised is not None:
                raise raised
            return push_left(root)

        def joined(batches):
            return (np.concatenate([batch["observation"] for batch in batches], axis=1),
                    np.concatenate([batch["collector"]["traj_ids"] for batch in batches], axis=1))

        for replay_buffer in (None, rill.ReplayBuffer(storage=rill.LazyTensorStorage(100, lanes=2))):
            calls = itertools.count()
            collector = collector_of(policy, total_frames=24, replay_buffer=replay_buffer)
            batches, raised = [], []
            while not raised or collector.frames < 24 or collector._collector.has_pending:
                try:
                    batches.append(collector.next())
                except BaseException as error:
                    raised.append(error)
            self.assertEqual([type(error) for error in raised], [KeyboardInterrupt] * 3 + [SystemExit])
            self.assertIs(raised[3], exit)
            same = joined(list(collector_of(push_left, total_frames=24)))
            if replay_buffer is None:
                got = joined(batches)
            else:
                self.assertEqual(set(batches), {None})
                rows = replay_buffer[:]
                got = rows["observation"].reshape(2, -1, 4), rows["collector"]["traj_ids"].reshape(2, -1)
            np.testing.assert_array_equal(got[0][:, :12], same[0])
            # Trajectories begin where they do.
            np.testing.assert_array_equal(np.diff(got[1][:, :12]), np.diff(same[1]))

    def test_an_interrupt_in_an_environment_keeps_the_steps_before(self):
        class Interrupted(Counter):
            calls = 0

            def step(self, action):
                self.calls += 1
                if self.calls == 3:
                    raise KeyboardInterrupt
                return super().step(action)

        collector = rill.SyncDataCollector(Interrupted(), frames_per_batch=4)
        with self.assertRaises(KeyboardInterrupt):
            collector.next()
        first, second = collector.next(), collector.next()
        self.assertEqual(first["observation"][0, :, 0].tolist(), [0, 1])
        self.assertEqual(second["observation"][0, :, 0].tolist()[:1], [0])
        self.assertNotIn(first["collector"]["traj_ids"][0, 0], second["collector"]["traj_ids"])

    def test_an_interrupt_in_a_policy_is_one(self):
        def policy(root):
            raise KeyboardInterrupt

        collector = collector_of(policy)
        with self.assertRaises(KeyboardInterrupt):
            collector.next()
        with self.assertRaises(KeyboardInterrupt):
            envs.PythonEnv(type("Interrupted", (Counter,), {"step": lambda self, action: policy(0)})()).rollout(1)

    def test_a_rollout_can_be_interrupted(self):
        with self.assertRaises(KeyboardInterrupt), interrupt_soon():
            envs.Acrobot().rollout(1_000_000, break_when_any_done=False)

    def test_shutdown_ends_a_call_of_another_thread(self):
        collector = shut_in_a_call(self, lambda policy: collector_of(policy, frames_per_batch=1_000_000),
                                   "one at a time")
        with self.assertRaisesRegex(rill.FailedPreconditionError, "closed collector"):
            collector.next()
        collector.shutdown()

    def test_a_policy_cannot_collect_but_may_shut_down(self):
        collector = collector_of(lambda root: collector.next())
        with self.assertRaisesRegex(rill.FailedPreconditionError, "its own policy"):
            collector.next()
        other = collector_of(lambda root: other.shutdown() or push_left(root))
        with self.assertRaises(rill.CancelledError):
            other.next()

    def test_shutdown_closes_objects(self):
        counter = Counter()
        with rill.SyncDataCollector(counter, frames_per_batch=2) as collector:
            collector.next()
        self.assertTrue(counter.closed)

    def test_shutdown_closes_objects_behind_a_step(self):
        in_step, may_end, seen = threading.Event(), threading.Event(), []

        class Slow(Counter):
            def step(self, action):
                in_step.set()
                may_end.wait()
                seen.append(self.closed)
                return super().step(action)

        slow = Slow()
        collector = rill.SyncDataCollector(slow, frames_per_batch=100)

        def collect():
            with contextlib.suppress(rill.CancelledError):
                collector.next()

        thread = threading.Thread(target=collect)
        thread.start()
        in_step.wait()
        collector.shutdown()
        may_end.set()
        thread.join()
        self.assertEqual((seen, slow.closed), ([False], True))

    def test_a_collector_goes_with_what_its_functions_hold(self):
        class Agent(Counter):
            def __init__(self):
                super().__init__()
                self.collector = rill.SyncDataCollector(self, self.act, frames_per_batch=2)

            def act(self, root):
                return push_left(root)

        agent = Agent()
        agent.collector.next()
        weak = weakref.ref(agent)
        del agent
        for _ in range(100):
            gc.collect()
            if weak() is None:
                break
        self.assertIsNone(weak())

    def test_the_interpreter_may_end_in_a_call(self):
        done = subprocess.run([sys.executable, "-c", """
import threading
import numpy as np
import rill

started = threading.Event()

def policy(root):
    started.set()
    return np.zeros(2, np.int64)

def collect(collector):
    try:
        while True:
            collector.next()
    except rill.Error:
        pass

for act in (policy, None):
    collector = rill.SyncDataCollector(rill.envs.CartPole(2), act, frames_per_batch=1_000_000)
    threading.Thread(target=collect, args=[collector], daemon=True).start()
started.wait()
"""], timeout=120, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


    def test_the_interpreter_may_end_in_a_rollout(self):
        done = subprocess.run([sys.executable, "-c", """
import threading
import rill

started = threading.Event()

def roll(env):
    started.set()
    env.rollout(10**8, break_when_any_done=False)

threading.excepthook = lambda args: None
threading.Thread(target=roll, args=[rill.envs.CartPole(2)], daemon=True).start()
started.wait()
"""], timeout=120, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_interpreter_may_end_in_a_function_that_does_not(self):
        for call in ("rill.envs.CartPole(2).rollout(8, policy)",
                     "rill.SyncDataCollector(rill.envs.CartPole(2), policy, frames_per_batch=8).next()",
                     "rill.envs.PythonEnv(Endless()).rollout(8)"):
            with self.subTest(call):
                done = subprocess.run([sys.executable, "-c", """
import threading
import time
import rill

rill.endings.GRACE = 0.1
started = threading.Event()

def policy(root):
    started.set()
    while True:
        time.sleep(0.0001)

class Endless:
    observation_spec = rill.specs.Unbounded((1,))
    action_spec = rill.specs.Categorical(2)

    def reset(self, seed):
        policy(seed)

    step = reset

threading.Thread(target=lambda: %s, daemon=True).start()
started.wait()
raise SystemExit(7)
""" % call], timeout=120, capture_output=True, text=True)
                self.assertEqual(done.returncode, 7, done.stderr)


class ForkTest(unittest.TestCase):
    def test_a_child_goes_on_with_a_copy(self):
        collector, same = collector_of(), collector_of()
        collector.next()
        same.next()
        expected = same.next()["observation"]

        def child():
            return 7 if (collector.next()["observation"] == expected).all() else 1

        self.assertEqual(exit_code_of_child(child), 7)
        self.assertEqual(collector.frames, 8)
        np.testing.assert_array_equal(collector.next()["observation"], expected)

    def test_a_child_is_told_of_a_call_in_flight(self):
        in_call, may_end = threading.Event(), threading.Event()

        def policy(root):
            in_call.set()
            may_end.wait()
            return push_left(root)

        collector = collector_of(policy)
        thread = threading.Thread(target=collector.next)
        thread.start()
        in_call.wait()

        def child():
            try:
                collector.next()
            except rill.FailedPreconditionError as error:
                collector.shutdown()
                return 7 if "call of another thread" in str(error) else 1
            return 2

        code = exit_code_of_child(child)
        may_end.set()
        thread.join()
        self.assertEqual(code, 7)

    def test_processes_of_an_environment_stay_with_the_parent(self):
        try:
            import gymnasium  # noqa: F401
        except ImportError:
            self.skipTest("there is no gymnasium")
        collector = rill.SyncDataCollector(envs.GymEnv("CartPole-v1", 2), frames_per_batch=8)
        env = envs.GymEnv("CartPole-v1")
        collector.next()

        def child():
            nonlocal env
            try:
                collector.next()
            except rill.FailedPreconditionError as error:
                collector.shutdown()
                env.close()
                del env
                gc.collect()
                return 7 if "stayed there" in str(error) else 1
            return 2

        self.assertEqual(exit_code_of_child(child), 7)
        self.assertEqual(collector.next()["observation"].shape, (2, 4, 4))
        self.assertEqual(env.rollout(1)["action"].shape, (1, 1))
        collector.shutdown()


if __name__ == "__main__":
    unittest.main()
