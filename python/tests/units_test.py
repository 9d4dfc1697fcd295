# SPDX-License-Identifier: Apache-2.0
"""sample_unit= of rill.ReplayBuffer: what drawn rows become."""
import unittest

import numpy as np

import rill


def make_rows(lengths):
    """Episodes of so many steps; observation is the row's number, reward 1 + that."""
    total = sum(lengths)
    ends = np.cumsum(lengths) - 1
    done = np.zeros((total, 1), bool)
    done[ends] = True
    observation = np.arange(total, dtype=np.float32)[:, None]
    return {
        "observation": observation,
        "next": {
            "observation": observation + 1,
            "reward": observation + 1,
            "done": done,
            "terminated": done,
            "truncated": np.zeros((total, 1), bool),
        },
    }


def make_buffer(lengths, batch_size, **options):
    buffer = rill.ReplayBuffer(
        storage=rill.LazyTensorStorage(100), batch_size=batch_size, seed=1, **options)
    buffer.extend(make_rows(lengths))
    return buffer


class UnitsTest(unittest.TestCase):
    def test_n_step_sums_rewards_up_to_the_end(self):
        buffer = make_buffer([3, 4], 64, sample_unit=rill.Transition(n_step=rill.NStep(2, gamma=0.5)))
        batch = buffer.sample()
        for i in range(64):
            row = int(batch["observation"][i, 0])
            is_last = row in (2, 6)
            reward = row + 1 + (0 if is_last else 0.5 * (row + 2))
            self.assertEqual(batch["next"]["reward"][i, 0], reward)
            self.assertEqual(batch["steps_to_next_obs"][i, 0], 1 if is_last else 2)
            self.assertEqual(batch["gamma"][i, 0], 0.5 if is_last else 0.25)
            self.assertEqual(batch["next"]["done"][i, 0], row in (1, 2, 5, 6))

    def test_frames_are_stacked_within_their_episode(self):
        buffer = make_buffer(
            [3, 4], 64, sample_unit=rill.Transition(frames=rill.FrameStack(3, ["observation"])))
        for stack in buffer.sample()["observation"]:
            newest = int(stack[-1])
            first = 0 if newest < 3 else 3
            wanted = [max(newest - 2, first), max(newest - 1, first), newest]
            self.assertEqual(list(stack), wanted)

    def test_slices_are_steps_of_one_episode(self):
        buffer = make_buffer([5, 7], 24, sampler=rill.SliceSampler(slice_len=3))
        batch = buffer.sample()
        rows = batch["observation"].reshape(8, 3)
        np.testing.assert_array_equal(np.diff(rows, axis=1), np.ones((8, 2)))
        self.assertTrue(((rows < 5).all(axis=1) | (rows >= 5).all(axis=1)).all())
        cut = batch["next"]["truncated"].reshape(8, 3)
        self.assertTrue(cut[:, -1].all() and not cut[:, :-1].any())

    def test_num_slices_divide_the_batch(self):
        buffer = make_buffer([5, 7], 24, sampler=rill.SliceSampler(num_slices=12))
        rows = buffer.sample()["observation"].reshape(12, 2)
        np.testing.assert_array_equal(np.diff(rows, axis=1), np.ones((12, 1)))

    def test_slices_without_replacement_take_each_episode_once(self):
        buffer = make_buffer(
            [4, 4, 4, 4], 8, sampler=rill.SliceSamplerWithoutReplacement(slice_len=2))
        seen = [int(row) // 4 for _ in range(2)
                for row in buffer.sample()["observation"].reshape(4, 2)[:, 0]]
        self.assertEqual([sorted(seen[:4]), sorted(seen[4:])], [[0, 1, 2, 3]] * 2)

    def test_prioritized_slices_begin_where_priorities_are(self):
        sampler = rill.PrioritizedSliceSampler(slice_len=2, alpha=1.0, beta=1.0)
        buffer = make_buffer([4, 4], 16, sampler=sampler)
        batch = buffer.sample()
        self.assertIn("priority_weight", batch)
        priority = np.where(batch["observation"] == 5, 1.0, 0.0).astype(np.float32)
        for _ in range(20):
            buffer.update_priority(batch, priority)
            batch = buffer.sample()
            priority = np.where(batch["observation"] == 5, 1.0, 0.0).astype(np.float32)
        self.assertGreater((batch["observation"].reshape(8, 2)[:, 0] == 5).mean(), 0.9)

    def test_sequences_mark_their_burn_in(self):
        buffer = make_buffer([12], 18, sample_unit=rill.Sequence(4, burn_in=2))
        batch = buffer.sample()
        mask = batch["learning_mask"].reshape(3, 6)
        np.testing.assert_array_equal(mask[:, :2], np.zeros((3, 2), bool))
        self.assertIn("sequence_id", batch)
        self.assertIn("step_in_sequence", batch)

    def test_sequences_without_their_burn_in_are_drawn_unless_it_is_needed(self):
        options = {"burn_in": 2, "episode_boundary": "strict"}
        mask = make_buffer([6], 8, sample_unit=rill.Sequence(6, **options)).sample()["collector"]["mask"]
        self.assertEqual([int(flag) for flag in mask], [0, 0, 1, 1, 1, 1, 1, 1])
        buffer = make_buffer([6], 8, sample_unit=rill.Sequence(6, needs_burn_in=True, **options))
        with self.assertRaises(rill.FailedPreconditionError):
            buffer.sample()

    def test_sequences_at_the_end_of_an_episode_begin_earlier(self):
        buffer = make_buffer([6, 6], 32, sample_unit=rill.Sequence(4, episode_boundary="stop"))
        rows = buffer.sample()["observation"].reshape(8, 4)
        np.testing.assert_array_equal(np.diff(rows, axis=1), np.ones((8, 3)))

    def test_trajectories_come_whole(self):
        buffer = make_buffer([3, 5], 2, sample_unit=rill.Trajectory(only_complete=True))
        rows = buffer.sample()["observation"][:, 0]
        self.assertIn(len(rows), (6, 8, 10))
        self.assertEqual(sum(row in (0, 3) for row in rows), 2)

    def test_hindsight_gives_goals_that_were_reached(self):
        goals = np.arange(6, dtype=np.float32)[:, None]
        rows = make_rows([6])
        rows["desired_goal"] = np.full((6, 1), 99, np.float32)
        rows["next"]["achieved_goal"] = goals
        seen = []

        def reward_of(achieved, desired):
            seen.append((achieved.copy(), desired.copy()))
            return np.where(achieved == desired, 0, -1).astype(np.float32)

        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(10), batch_size=64, seed=1,
                                   sample_unit=rill.Hindsight(reward_of, her_ratio=0.5))
        buffer.extend(rows)
        batch = buffer.sample()
        other = batch["desired_goal"][:, 0] != 99
        self.assertTrue(16 < other.sum() < 48)
        achieved = batch["next"]["achieved_goal"][other]
        desired = batch["desired_goal"][other]
        self.assertTrue((desired >= achieved).all())  # Of a later step, or its own.
        np.testing.assert_array_equal(
            batch["next"]["reward"][other], np.where(achieved == desired, 0, -1))
        self.assertEqual(len(seen), 1)

    def test_goals_are_not_to_be_written_to(self):
        def spoil(achieved, desired):
            desired[:] = 0

        rows = make_rows([6])
        rows["desired_goal"] = rows["next"]["achieved_goal"] = rows["observation"]
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(10), batch_size=8,
                                   sample_unit=rill.Hindsight(spoil, her_ratio=1.0))
        buffer.extend(rows)
        with self.assertRaisesRegex(ValueError, "read-only"):
            buffer.sample()

    def test_an_exception_of_a_reward_is_that_of_sample(self):
        def fail(achieved, desired):
            raise ZeroDivisionError("no reward today")

        rows = make_rows([6])
        rows["desired_goal"] = rows["next"]["achieved_goal"] = rows["observation"]
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(10), batch_size=8,
                                   sample_unit=rill.Hindsight(fail, her_ratio=1.0))
        buffer.extend(rows)
        with self.assertRaisesRegex(ZeroDivisionError, "^no reward today$"):
            buffer.sample()
        self.assertEqual(len(buffer), 6)

    def test_priorities_go_with_units(self):
        buffer = make_buffer([8], 32, sampler=rill.PrioritizedSampler(alpha=1.0, beta=1.0),
                             sample_unit=rill.Transition(n_step=rill.NStep(3)))
        batch = buffer.sample()
        buffer.update_priority(batch, np.where(batch["observation"] == 2, 1.0, 0.0).astype(np.float32))
        self.assertIn("priority_weight", buffer.sample())

    def test_bad_options_are_named(self):
        with self.assertRaisesRegex(rill.InvalidArgumentError, "episode_boundary: got 'never', want one of pad"):
            make_buffer([4], 4, sample_unit=rill.Sequence(2, episode_boundary="never"))
        with self.assertRaisesRegex(ValueError, "length"):
            make_buffer([4], 4, sample_unit=rill.Sequence(0))
        with self.assertRaisesRegex(ValueError, "num_steps: got 'two'"):
            make_buffer([4], 4, sample_unit=rill.Transition(n_step=rill.NStep("two")))


if __name__ == "__main__":
    unittest.main()
