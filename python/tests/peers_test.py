# SPDX-License-Identifier: Apache-2.0
"""rill beside the real packages; what is not installed is skipped by name."""
import importlib
import pickle
import unittest

import numpy as np

import rill
from rill import estimators


def needs(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise unittest.SkipTest("there is no " + name) from None


class Sb3Test(unittest.TestCase):
    def setUp(self):
        needs("stable_baselines3")
        self.spaces = needs("gymnasium.spaces")
        self.sb3 = importlib.import_module("rill.sb3")
        self.original = importlib.import_module("stable_baselines3.common.buffers")

    def fill(self, buffer, steps, envs):
        generator = np.random.default_rng(1)
        for i in range(steps):
            observation = generator.normal(size=(envs, 3)).astype(np.float32)
            buffer.add(observation, observation + 1, np.arange(envs), np.full(envs, float(i)),
                       np.array([i % 3 == 2] * envs), [{"TimeLimit.truncated": i % 2 == 0}] * envs)
        return buffer

    def make(self, kind, envs=2, size=20, **options):
        return kind(size, self.spaces.Box(-9, 9, (3,), np.float32), self.spaces.Discrete(4), "cpu",
                    n_envs=envs, **options)

    def rows(self, sample):
        columns = [value.numpy().reshape(len(sample.rewards), -1) for value in sample[:5]]
        return {tuple(row) for row in np.concatenate(columns, axis=1).round(4)}

    def test_rows_are_those_of_the_original(self):
        for steps in (5, 25):  # Before the ring is full, and behind that.
            ours = self.fill(self.make(self.sb3.ReplayBuffer), steps, envs=2)
            theirs = self.fill(self.make(self.original.ReplayBuffer), steps, envs=2)
            self.assertEqual((ours.size(), ours.pos, ours.full), (theirs.size(), theirs.pos, theirs.full))
            got, want = ours.sample(1000), theirs.sample(1000)
            self.assertEqual(self.rows(got), self.rows(want))
            for mine, other in zip(got[:5], want[:5]):
                self.assertEqual((mine.dtype, mine.shape), (other.dtype, other.shape))

    def test_a_seed_of_numpy_makes_draws_repeatable(self):
        samples = []
        for _ in range(2):
            np.random.seed(3)
            samples.append(self.fill(self.make(self.sb3.ReplayBuffer), 9, envs=2).sample(32))
        np.testing.assert_array_equal(samples[0].rewards, samples[1].rewards)

    def test_a_pickle_goes_on_with_the_same_draws(self):
        buffer = self.fill(self.make(self.sb3.ReplayBuffer), 25, envs=2)
        copy = pickle.loads(pickle.dumps(buffer))
        np.testing.assert_array_equal(buffer.sample(64).observations, copy.sample(64).observations)
        self.fill(copy, 3, envs=2)
        self.assertEqual(copy.size(), 10)

    def test_dict_observations(self):
        space = self.spaces.Dict({"a": self.spaces.Box(-1, 1, (2,), np.float32), "b": self.spaces.Discrete(4)})
        buffer = self.sb3.ReplayBuffer(8, space, self.spaces.Box(-1, 1, (2,)), "cpu")
        observation = {"a": np.ones((1, 2)), "b": np.array([2])}
        buffer.add(observation, observation, np.ones((1, 2)), np.ones(1), np.zeros(1, bool), [{}])
        sample = buffer.sample(3)
        self.assertEqual(tuple(sample.observations["a"].shape), (3, 2))
        np.testing.assert_array_equal(sample.next_observations["b"], [[2]] * 3)

    def test_what_it_has_not_is_refused(self):
        with self.assertRaisesRegex(ValueError, "optimize_memory_usage"):
            self.make(self.sb3.ReplayBuffer, optimize_memory_usage=True)


class JaxTest(unittest.TestCase):
    def test_a_batch_by_dlpack_is_not_overwritten(self):
        jnp = needs("jax.numpy")
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(1000), batch_size=64, seed=1)
        buffer.extend({"x": np.arange(1000, dtype=np.float32)})
        batch = buffer.sample()
        address, want = batch["x"].ctypes.data, batch["x"].copy()
        shared = jnp.from_dlpack(batch["x"])
        self.assertEqual(shared.unsafe_buffer_pointer(), address)
        del batch
        for _ in range(10):
            buffer.sample()
        np.testing.assert_array_equal(np.asarray(shared), want)

    def test_a_jitted_function_takes_a_batch_as_it_is(self):
        jax = needs("jax")
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(1000), batch_size=64, seed=1)
        buffer.extend({"x": np.arange(1000, dtype=np.float32)})
        double = jax.jit(lambda x: 2 * x)
        got, want = [], []
        for _ in range(50):  # More than the memory of a few batches that serves again.
            batch = buffer.sample()
            want.append(2 * batch["x"].copy())
            got.append(double(batch["x"]))
        for ours, theirs in zip(got, want):
            np.testing.assert_array_equal(np.asarray(ours), theirs)


class TorchRlTest(unittest.TestCase):
    def test_estimators_are_those_of_torchrl(self):
        torch = needs("torch")
        theirs = needs("torchrl.objectives.value.functional")
        generator = torch.Generator().manual_seed(0)
        shape = (3, 20, 1)
        value, following, reward = (torch.randn(shape, generator=generator) for _ in range(3))
        terminated = torch.rand(shape, generator=generator) < 0.1
        done = terminated | (torch.rand(shape, generator=generator) < 0.1)
        steps = (value, following, reward, done, terminated)
        calls = {
            "generalized_advantage_estimate": (0.9, 0.8, *steps),
            "td_lambda_return_estimate": (0.9, 0.8, *steps[1:]),
            "td1_return_estimate": (0.9, *steps[1:]),
            "td0_return_estimate": (0.9, following, reward, terminated),
            "vtrace_advantage_estimate": (0.9, value, following, *steps),
        }
        for name, arguments in calls.items():
            got, want = getattr(estimators, name)(*arguments), getattr(theirs, name)(*arguments)
            if isinstance(want, torch.Tensor):
                got, want = (got,), (want,)
            for mine, other in zip(got, want):
                torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-5, msg=name)

    def test_a_loss_module_takes_samples(self):
        torch = needs("torch")
        objectives = needs("torchrl.objectives")
        modules = needs("torchrl.modules")
        data = needs("torchrl.data")
        tensordict = needs("tensordict")
        spec = data.Categorical(2)
        actor = modules.QValueActor(modules.MLP(in_features=3, out_features=2, num_cells=[8]), spec=spec)
        loss = objectives.DQNLoss(actor, action_space=spec)
        rows = tensordict.TensorDict({
            "observation": torch.randn(16, 3), "action": torch.randint(2, (16,)),
            "next": {"observation": torch.randn(16, 3), "reward": torch.randn(16, 1),
                     "done": torch.zeros(16, 1, dtype=torch.bool),
                     "terminated": torch.zeros(16, 1, dtype=torch.bool)}}, batch_size=[16])
        sampler = rill.PrioritizedSampler(alpha=0.7, beta=0.5)
        buffer = rill.TensorDictReplayBuffer(storage=rill.LazyTensorStorage(100), sampler=sampler, batch_size=8)
        buffer.extend(rows)
        batch = buffer.sample()
        loss(batch)["loss"].backward()
        buffer.update_tensordict_priority(batch)  # DQNLoss has written td_error.
        self.assertIn("priority_weight", buffer.sample().keys())


if __name__ == "__main__":
    unittest.main()
