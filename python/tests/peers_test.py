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

    def draw(self, buffer, rows):
        np.random.seed(3)
        return [buffer.sample(rows) for _ in range(2)]

    def check_same(self, ours, theirs):
        """Sizes and samples are those of the original, and so is what they take from the generator."""
        self.assertEqual((ours.size(), ours.pos, ours.full), (theirs.size(), theirs.pos, theirs.full))
        for got, want in zip(self.draw(ours, 64), self.draw(theirs, 64)):
            for mine, other in zip(got[:5], want[:5]):
                self.assertEqual((mine.dtype, mine.shape), (other.dtype, other.shape))
                np.testing.assert_array_equal(mine, other)

    def test_samples_are_those_of_the_original(self):
        for envs in (1, 2):
            for steps in (5, 45):  # Before the ring is full, and behind that.
                with self.subTest(envs=envs, steps=steps):
                    pair = [self.fill(self.make(kind.ReplayBuffer, envs), steps, envs)
                            for kind in (self.sb3, self.original)]
                    self.check_same(*pair)
                    for buffer in pair:
                        buffer.reset()
                        self.fill(buffer, 3, envs)
                    self.check_same(*pair)

    def test_to_make_one_takes_nothing_from_the_generator(self):
        np.random.seed(3)
        self.make(self.sb3.ReplayBuffer)
        after = np.random.random()
        np.random.seed(3)
        self.assertEqual(np.random.random(), after)

    def test_a_pickle_has_the_same_rows_and_goes_on(self):
        buffer = self.fill(self.make(self.sb3.ReplayBuffer), 25, envs=2)
        copy = pickle.loads(pickle.dumps(buffer))
        for steps in (0, 3):
            for each in (buffer, copy):
                self.fill(each, steps, envs=2)
            self.check_same(copy, buffer)

    def test_dict_observations(self):
        space = self.spaces.Dict({"a": self.spaces.Box(-1, 1, (2,), np.float32), "b": self.spaces.Discrete(4)})
        samples = []
        for kind in (self.sb3.ReplayBuffer, self.original.DictReplayBuffer):
            buffer = kind(8, space, self.spaces.Box(-1, 1, (2,)), "cpu", n_envs=2)
            for i in range(5):
                observation = {"a": np.full((2, 2), i / 5), "b": np.array([i % 4, 3 - i % 4])}
                buffer.add(observation, observation, np.ones((2, 2)), np.ones(2), np.zeros(2, bool), [{}, {}])
            samples.append(self.draw(buffer, 16)[1])
        for key in space.spaces:
            for got, want in zip(*((s.observations[key], s.next_observations[key]) for s in samples)):
                self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
                np.testing.assert_array_equal(got, want)

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
