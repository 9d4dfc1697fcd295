# SPDX-License-Identifier: Apache-2.0
"""rill.estimators against the recurrences, step by step."""
import unittest

import numpy as np

import rill
from rill import estimators


def make_steps(seed, lines=3, steps=17, dtype=np.float64):
    generator = np.random.default_rng(seed)
    shape = (lines, steps, 1)
    terminated = generator.random(shape) < 0.1
    return {
        "state_value": generator.normal(size=shape).astype(dtype),
        "next_state_value": generator.normal(size=shape).astype(dtype),
        "reward": generator.normal(size=shape).astype(dtype),
        "done": terminated | (generator.random(shape) < 0.1),
        "terminated": terminated,
    }


def lambda_return(steps, gamma, lmbda):
    made = np.zeros_like(steps["reward"])
    behind = steps["next_state_value"][:, -1] * ~steps["terminated"][:, -1]
    for t in reversed(range(made.shape[1])):
        value = steps["next_state_value"][:, t] * ~steps["terminated"][:, t]
        behind = np.where(steps["done"][:, t], value, behind)
        behind = steps["reward"][:, t] + gamma * ((1 - lmbda) * value + lmbda * behind)
        made[:, t] = behind
    return made


class EstimatorsTest(unittest.TestCase):
    def test_gae_is_its_recurrence(self):
        steps = make_steps(1)
        advantage, target = estimators.generalized_advantage_estimate(0.9, 0.8, **steps)
        wanted = np.zeros_like(advantage)
        behind = np.zeros((3, 1))
        for t in reversed(range(17)):
            at = {key: values[:, t] for key, values in steps.items()}
            delta = at["reward"] + 0.9 * at["next_state_value"] * ~at["terminated"] - at["state_value"]
            behind = delta + 0.9 * 0.8 * ~at["done"] * behind
            wanted[:, t] = behind
        np.testing.assert_allclose(advantage, wanted, atol=1e-12)
        np.testing.assert_allclose(target, wanted + steps["state_value"], atol=1e-12)

    def test_td_returns_are_their_recurrence(self):
        steps = make_steps(2)
        del steps["state_value"]
        for lmbda in (0.0, 0.7, 1.0):
            made = estimators.td_lambda_return_estimate(0.9, lmbda, **steps)
            np.testing.assert_allclose(made, lambda_return(steps, 0.9, lmbda), atol=1e-12)
        np.testing.assert_allclose(
            estimators.td1_return_estimate(0.9, **steps), lambda_return(steps, 0.9, 1.0), atol=1e-12)
        made = estimators.td0_return_estimate(
            0.9, steps["next_state_value"], steps["reward"], steps["terminated"])
        np.testing.assert_allclose(made, lambda_return(steps, 0.9, 0.0), atol=1e-12)

    def test_v_trace_on_policy_is_gae_of_lambda_one(self):
        steps = make_steps(3)
        log_prob = np.zeros_like(steps["reward"])
        _, target = estimators.vtrace_advantage_estimate(0.9, log_prob, log_prob, **steps)
        _, wanted = estimators.generalized_advantage_estimate(0.9, 1.0, **steps)
        np.testing.assert_allclose(target, wanted, atol=1e-12)

    def test_reward_to_go_stops_at_ends(self):
        reward = np.ones((4, 1), np.float32)
        done = np.array([[False], [True], [False], [False]])
        made = estimators.reward2go(reward, done, 0.5)
        np.testing.assert_array_equal(made[:, 0], [1.5, 1, 1.5, 1])
        self.assertEqual(made.dtype, np.float32)

    def test_n_steps_bootstrap_behind_their_window(self):
        reward = np.ones((3, 1), np.float32)
        flags = np.zeros((3, 1), bool)
        value = np.full((3, 1), 10, np.float32)
        made = estimators.n_step_return_estimate(2, 0.5, value, reward, flags)
        np.testing.assert_array_equal(made[:, 0], [4, 4, 6])

    def test_strided_arrays_are_read_in_order(self):
        steps = make_steps(4)
        turned = {key: np.ascontiguousarray(values[:, ::-1])[:, ::-1] for key, values in steps.items()}
        for got, want in zip(estimators.generalized_advantage_estimate(0.9, 0.8, **turned),
                             estimators.generalized_advantage_estimate(0.9, 0.8, **steps)):
            np.testing.assert_array_equal(got, want)

    def test_results_outlive_what_they_were_made_of(self):
        steps = make_steps(5)
        made, _ = estimators.generalized_advantage_estimate(0.9, 0.8, **steps)
        wanted = made.copy()
        del steps
        junk = [np.full(3 * 17, np.nan) for _ in range(100)]
        np.testing.assert_array_equal(made, wanted)
        del junk

    def test_thresholds_of_v_trace(self):
        zeros, ones, no = np.zeros((1, 2, 1), np.float32), np.ones((1, 2, 1), np.float32), np.zeros((1, 2, 1), bool)

        def target(rho_thresh, c_thresh):
            made = estimators.vtrace_advantage_estimate(1.0, np.log(4 * ones), zeros, zeros, zeros, ones, no,
                                                        rho_thresh=rho_thresh, c_thresh=c_thresh)
            return made[1][0, :, 0].tolist()

        # Of steps with the ratio 4: each weighs its own error by rho, and those behind it by c.
        self.assertEqual(target(3.0, 0.5), [4.5, 3])
        self.assertEqual(target(3.0, 2.0), [9, 3])

    def test_bad_arguments_are_named(self):
        steps = make_steps(6)
        with self.assertRaisesRegex(rill.InvalidArgumentError, "gamma: got 2"):
            estimators.generalized_advantage_estimate(2.0, 0.8, **steps)
        with self.assertRaisesRegex(ValueError, "done: got float64"):
            estimators.generalized_advantage_estimate(0.9, 0.8, **dict(steps, done=steps["reward"]))
        with self.assertRaisesRegex(ValueError, "next_value: got float64\\[3, 16, 1\\]"):
            estimators.generalized_advantage_estimate(
                0.9, 0.8, **dict(steps, next_state_value=steps["reward"][:, 1:]))
        with self.assertRaisesRegex(ValueError, "\"reward\": got a ndarray of dtype object"):
            estimators.reward2go(np.array([None, None]), np.zeros(2, bool), 0.9)


if __name__ == "__main__":
    unittest.main()
