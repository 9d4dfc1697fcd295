# SPDX-License-Identifier: Apache-2.0
"""MuJoCo's tasks: in C++ where the wheel was built with them, and by Gymnasium's package where that is."""
import importlib.util
import unittest

import numpy as np
import rill
from rill import envs
from rill import specs as S

IS_BUILT_IN = bool(rill._rill.mujoco_tasks())
HAS_GYMNASIUM = all(importlib.util.find_spec(name) is not None for name in ("gymnasium", "mujoco"))
# Sizes of observation and action, and the bound of the action.
TASKS = {"Ant": (105, 8, 1), "HalfCheetah": (17, 6, 1), "Hopper": (11, 3, 1), "Humanoid": (348, 17, 0.4),
         "InvertedPendulum": (4, 1, 3), "Walker2d": (17, 6, 1)}


class WithoutTest(unittest.TestCase):
    @unittest.skipIf(IS_BUILT_IN, "this wheel has MuJoCo's environments")
    def test_the_ways_out_are_named(self):
        with self.assertRaisesRegex(rill.UnimplementedError, r'^Ant: .*tools/wheel --mujoco.*GymEnv\("Ant-v5"\)'):
            envs.Ant(4)

    @unittest.skipUnless(HAS_GYMNASIUM, "there is no gymnasium with mujoco")
    def test_gymnasiums_own_step_in_processes(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(64, lanes=2), batch_size=8)
        env = envs.GymEnv("Ant-v5", 2, children=2)
        self.assertEqual((env.observation_spec["observation"].shape, env.action_spec), ((105,), S.Bounded(-1, 1, (8,))))
        with rill.SyncDataCollector(env, frames_per_batch=16, total_frames=32, replay_buffer=buffer) as collector:
            list(collector)
        self.assertTrue(np.isfinite(buffer.sample()["next"]["observation"]).all())


@unittest.skipUnless(IS_BUILT_IN, "this wheel has no MuJoCo; tools/wheel --mujoco --test")
class BuiltInTest(unittest.TestCase):
    def test_tasks(self):
        self.assertEqual(set(rill._rill.mujoco_tasks()), set(TASKS))
        for name, (observation, action, bound) in TASKS.items():
            with self.subTest(name):
                env = getattr(envs, name)(3, threads=2, seed=1)
                self.assertEqual((env.lanes, env.observation_spec["observation"].shape), (3, (observation,)))
                self.assertEqual(env.action_spec, S.Bounded(-bound, bound, (action,)))
                batch = env.rollout(20, break_when_any_done=False, seed=2)
                self.assertEqual(batch["observation"].shape, (3, 20, observation))
                self.assertTrue(np.isfinite(batch["next"]["observation"]).all())
                self.assertGreater(np.abs(np.diff(batch["observation"], axis=1)).max(), 0)
                again = getattr(envs, name)(3, seed=1).rollout(20, break_when_any_done=False, seed=2)
                np.testing.assert_array_equal(again["observation"], batch["observation"])

    def test_a_name_makes_one(self):
        for name in TASKS:
            self.assertIs(type(envs.make(name + "-v5", 2)), getattr(envs, name))

    def test_options_are_gymnasiums(self):
        env = envs.Hopper(1, healthy_reward=5.0, healthy_z_range=(0.5, 2.0), ctrl_cost_weight=0.0,
                          forward_reward_weight=0.0, exclude_current_positions_from_observation=False, max_episode_steps=3)
        batch = env.rollout(3, seed=1)
        self.assertEqual(batch["observation"].shape[-1], 12)
        np.testing.assert_array_equal(batch["next"]["reward"], np.full((1, 3, 1), 5.0))
        self.assertTrue(batch["next"]["truncated"][0, 2, 0])
        with self.assertRaisesRegex(rill.InvalidArgumentError, 'InvertedPendulum: got an option "healthy_reward"'):
            envs.InvertedPendulum(1, healthy_reward=5.0)
        with self.assertRaisesRegex(rill.InvalidArgumentError, "healthy_z_range: got 'high'"):
            envs.Hopper(1, healthy_z_range="high")
        with self.assertRaisesRegex(rill.Error, "nowhere.xml"):
            envs.Ant(1, xml_file="/nowhere.xml")

    def test_collectors_step_them(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(400, lanes=4), batch_size=8)
        with rill.MultiSyncDataCollector(["Hopper-v5", envs.Hopper()], lambda root: np.zeros((1, 3)), frames_per_batch=8,
                                         seed=1) as collector:
            self.assertEqual(collector.next()["observation"].shape, (2, 4, 11))
        with rill.SyncDataCollector(envs.Ant(4, threads=2), frames_per_batch=40, total_frames=80, replay_buffer=buffer) as collector:
            list(collector)
        rows = buffer[:]
        same = rows["collector"]["traj_ids"][1:] == rows["collector"]["traj_ids"][:-1]
        np.testing.assert_array_equal(rows["observation"][1:][same], rows["next"]["observation"][:-1][same])

    @unittest.skipUnless(HAS_GYMNASIUM, "there is no gymnasium with mujoco")
    def test_specs_are_those_of_gymnasium(self):
        for name in TASKS:
            ours, theirs = getattr(envs, name)(), envs.GymEnv(name + "-v5")
            self.assertEqual(ours.observation_spec, theirs.observation_spec)
            self.assertEqual(ours.action_spec, theirs.action_spec)
            self.assertEqual(ours.reward_spec, theirs.reward_spec)


if __name__ == "__main__":
    unittest.main()
