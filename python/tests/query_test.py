# SPDX-License-Identifier: Apache-2.0
"""query() and iter_trajectories(): the stored trajectories of a buffer."""
import unittest

import numpy as np
import rill


def episode(number, steps, is_closed=True):
    done = np.zeros((steps, 1), bool)
    done[-1] = is_closed
    return {"x": np.arange(steps) + 100 * number,
            "next": {"reward": np.full((steps, 1), number, np.float32), "done": done}}


def filled(*steps, size=100, **options):
    buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(size), **options)
    for number, count in enumerate(steps):
        buffer.extend(episode(number, count, is_closed=number < len(steps) - 1))
    return buffer


class QueryTest(unittest.TestCase):

    def test_all_of_them_in_order(self):
        buffer = filled(3, 5, 2)
        found = buffer.query()
        self.assertEqual([len(each) for each in found], [3, 5, 2])
        self.assertEqual([each.is_closed for each in found], [True, True, False])
        self.assertEqual([(each.lane, each.id, each.is_cut) for each in found], [(0, None, False)] * 3)
        for number, each in enumerate(found):
            np.testing.assert_array_equal(each["x"], episode(number, len(each))["x"])
            np.testing.assert_array_equal(each[("next", "reward")], each.rows["next"]["reward"])
            np.testing.assert_array_equal(buffer[each.slots]["x"], each["x"])
        self.assertEqual([len(each) for each in buffer.iter_trajectories(min_rows=3)], [3, 5])

    def test_those_that_a_function_wants(self):
        buffer = filled(3, 5, 2, 4, 1)
        asked = []

        def is_good(trajectory):
            asked.append(trajectory)
            return trajectory["next/reward"].sum() > 8

        self.assertEqual([len(each) for each in buffer.query(is_good)], [4])
        self.assertEqual([len(each) for each in asked], [3, 5, 2, 4, 1])
        np.testing.assert_array_equal(asked[0]["x"], [0, 1, 2])  # What it got stays as it was.
        self.assertEqual([len(each) for each in buffer.query(lambda each: len(each) > 2, limit=2)], [3, 5])
        self.assertEqual(buffer.query(limit=0), [])

    def test_what_is_wanted_of_them(self):
        buffer = filled(3, 5, 2, 4)
        self.assertEqual([len(each) for each in buffer.query(only_whole=True, max_rows=4)], [3, 2])
        only = buffer.query(keys=[("next", "reward")])[0]
        self.assertEqual((set(only.rows), set(only.rows["next"])), ({"next"}, {"reward"}))
        with self.assertRaisesRegex(rill.NotFoundError, "nothing"):
            buffer.query(keys=["nothing"])
        with self.assertRaisesRegex(rill.InvalidArgumentError, "limit: got -1"):
            buffer.query(limit=-1)

    def test_what_was_overwritten_is_cut(self):
        buffer = filled(6, 5, 3, size=10)
        found = buffer.query()
        self.assertEqual([(len(each), each.is_cut) for each in found], [(2, True), (5, False), (3, False)])
        self.assertEqual([len(each) for each in buffer.query(only_whole=True)], [5])

    def test_lanes_and_ids_of_a_collector(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(400, lanes=2))
        with rill.SyncDataCollector(rill.envs.CartPole(2), frames_per_batch=400, total_frames=400, seed=1,
                                    replay_buffer=buffer) as collector:
            list(collector)
        found = buffer.query()
        self.assertEqual(sum(map(len, found)), 400)
        self.assertEqual({each.lane for each in found}, {0, 1})
        for each in found:
            self.assertEqual(set(each[("collector", "traj_ids")].tolist()), {each.id})
            np.testing.assert_array_equal(each["observation"][1:], each["next/observation"][:-1])
            self.assertEqual(each.is_closed, bool(each["next/done"][-1, 0]))

    def test_a_function_may_use_the_buffer(self):
        buffer = filled(3, 5, 2, batch_size=4)

        def work(trajectory):
            buffer.extend(episode(9, 2))
            return len(buffer.sample()["x"]) == 4

        self.assertEqual([len(each) for each in buffer.query(work)], [3, 5, 4])  # The last one has grown.
        self.assertEqual(len(buffer), 16)

    def test_an_exception_is_that_of_the_call(self):
        buffer = filled(3, 5)
        error = ZeroDivisionError("today")

        def fail(trajectory):
            raise error

        with self.assertRaises(ZeroDivisionError) as raised:
            buffer.query(fail)
        self.assertIs(raised.exception, error)
        with self.assertRaisesRegex(ValueError, "ambiguous"):
            buffer.query(lambda each: each["x"] > 1)
        with self.assertRaises(KeyboardInterrupt):
            buffer.query(lambda each: (_ for _ in ()).throw(KeyboardInterrupt))

    def test_not_of_what_has_no_ends(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(10))
        buffer.extend({"x": np.arange(3)})
        with self.assertRaises(rill.Error):
            buffer.query()
        buffer.close()
        with self.assertRaisesRegex(rill.FailedPreconditionError, "query: got a closed buffer"):
            buffer.query()

    def test_not_in_a_function_of_the_buffer(self):
        raised = []

        def work(batch):
            try:
                buffer.query()
            except rill.FailedPreconditionError as error:
                raised.append(str(error))

        buffer = filled(3, transform=work)
        buffer.sample(2)
        self.assertIn("it would wait for itself", raised[0])


if __name__ == "__main__":
    unittest.main()
