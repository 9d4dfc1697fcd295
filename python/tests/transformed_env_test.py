# SPDX-License-Identifier: Apache-2.0
"""rill.envs.TransformedEnv: transforms beside an environment."""
import unittest

import numpy as np
import rill
from rill import envs
from rill import transforms as T
from envs_test import Counter


def push_left(root):
    return np.zeros(len(root["observation"]), np.int64)


def rollout(env, steps=60, **options):
    return env.rollout(steps, push_left, break_when_any_done=False, **options)


class TransformedEnvTest(unittest.TestCase):

    def test_steps_are_those_of_the_environment_transformed(self):
        plain = rollout(envs.CartPole(2, seed=1))
        env = envs.TransformedEnv(envs.CartPole(2, seed=1), [
            T.ObservationNorm(0.5, 2.0, in_keys=["observation"], standard_normal=True),
            T.RewardScaling(0.0, 10.0), T.StepCounter(), T.RewardSum(), T.InitTracker(), T.TrajCounter()])
        batch = rollout(env)
        for root, wanted in ((batch, plain), (batch["next"], plain["next"])):
            np.testing.assert_allclose(root["observation"], (wanted["observation"] - 0.5) / 2.0, rtol=1e-6)
        np.testing.assert_array_equal(batch["next"]["reward"], 10 * plain["next"]["reward"])
        np.testing.assert_array_equal(batch["next"]["done"], plain["next"]["done"])
        for lane in range(2):
            count = total = 0
            for t in range(60):
                self.assertEqual(batch["step_count"][lane, t, 0], count)
                self.assertEqual(batch["is_init"][lane, t, 0], count == 0)
                count, total = count + 1, total + batch["next"]["reward"][lane, t, 0]
                self.assertEqual(batch["next"]["step_count"][lane, t, 0], count)
                self.assertEqual(batch["next"]["episode_reward"][lane, t, 0], total)
                if batch["next"]["done"][lane, t, 0]:
                    count = total = 0
        self.assertEqual(set(env.observation_spec.leaves()),
                         {"observation", "step_count", "episode_reward", "is_init", "traj_count"})
        ends = plain["next"]["done"][:, :-1].sum()
        self.assertGreater(ends, 4)
        self.assertEqual(len(np.unique(batch["traj_count"])), 2 + ends)

    def test_a_counter_ends_episodes(self):
        batch = rollout(envs.TransformedEnv(Counter(100), T.StepCounter(max_steps=4)), 12)
        self.assertEqual(np.flatnonzero(batch["next"]["truncated"][0, :, 0]).tolist(), [3, 7, 11])
        self.assertEqual(batch["observation"][0, :, 0].tolist(), [0, 1, 2, 3] * 3)

    def test_running_statistics(self):
        plain = rollout(envs.CartPole(4, seed=2))["observation"]
        env = envs.TransformedEnv(envs.CartPole(4, seed=2), T.VecNorm(["observation"], [(4,)], decay=1.0))
        batch = rollout(env)["observation"]
        first = plain[:, 0]
        np.testing.assert_allclose(batch[:, 0], (first - first.mean(0)) / np.maximum(first.std(0), 1e-4), rtol=1e-3, atol=1e-4)
        self.assertLess(np.abs(batch[:, -1]).max(), 10)

    def test_a_collector_has_it_and_its_state(self):
        def make(seed):
            env = envs.TransformedEnv(envs.CartPole(2), [T.VecNorm(["observation"], [(4,)]), T.StepCounter(max_steps=7)])
            return rill.SyncDataCollector(env, push_left, frames_per_batch=20, seed=seed)

        with make(1) as collector, make(2) as other:
            collector.next(), collector.next()
            other.load_state_dict(collector.state_dict())
            want, got = collector.next(), other.next()
        np.testing.assert_array_equal(got["observation"], want["observation"])
        np.testing.assert_array_equal(got["step_count"], want["step_count"])
        self.assertLess(want["step_count"].max(), 7)

    def test_it_closes_what_is_inside(self):
        counter = Counter()
        with rill.SyncDataCollector(envs.TransformedEnv(counter, T.InitTracker()), frames_per_batch=2) as collector:
            collector.next()
        self.assertTrue(counter.closed)

    def test_what_is_refused(self):
        with self.assertRaisesRegex(rill.InvalidArgumentError, "got GAE, want one with an E"):
            envs.TransformedEnv(envs.CartPole(), T.GAE(gamma=0.9, lmbda=0.9))
        with self.assertRaisesRegex(rill.InvalidArgumentError, "want one with an E"):
            envs.TransformedEnv(envs.CartPole(), lambda batch: batch)
        with self.assertRaisesRegex(rill.InvalidArgumentError, "max_steps: got 0"):
            envs.TransformedEnv(envs.CartPole(), T.StepCounter(max_steps=0))
        with self.assertRaisesRegex(rill.Error, "nothing"):
            envs.TransformedEnv(envs.CartPole(), T.DoubleToFloat(in_keys=["nothing"]))
        with self.assertRaisesRegex(rill.InvalidArgumentError, "got StepCounter, which works beside an environment alone"):
            rill.ReplayBuffer(transform=T.StepCounter())
        buffer = rill.ReplayBuffer()
        with self.assertRaisesRegex(rill.InvalidArgumentError, "rill.envs.TransformedEnv"):
            buffer.append_transform(T.InitTracker())
        with self.assertRaisesRegex(rill.InvalidArgumentError, "got VecNorm, which works beside"):
            rill.ReplayBufferEnsemble(buffer, transform=T.VecNorm(["x"], [(1,)]))


if __name__ == "__main__":
    unittest.main()
