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

    def steps(self, number, envs, space, action_space):
        """Arguments of add(): no two steps, environments or observations are alike."""
        generator = np.random.default_rng(1)

        def observation(of):
            if isinstance(of, self.spaces.Dict):
                return {key: observation(each) for key, each in of.items()}
            if isinstance(of, self.spaces.Discrete):
                return generator.integers(of.n, size=envs)
            return generator.normal(size=(envs, *of.shape)).astype(of.dtype)

        for i in range(number):
            action = np.array([action_space.sample() for _ in range(envs)])
            ends = np.array([(i + env) % 3 == 2 for env in range(envs)])
            infos = [{"TimeLimit.truncated": (i + env) % 2 == 0} for env in range(envs)]
            yield observation(space), observation(space), action, generator.normal(size=envs), ends, infos

    def fill(self, buffer, steps, envs):
        buffer.action_space.seed(1)
        for step in self.steps(steps, envs, buffer.observation_space, buffer.action_space):
            buffer.add(*step)
        return buffer

    def make(self, kind, envs=2, size=20, space=None, actions=None, **options):
        return kind(size, space or self.spaces.Box(-9, 9, (3,), np.float32), actions or self.spaces.Discrete(4), "cpu",
                    n_envs=envs, **options)

    def draw(self, buffer, rows, **options):
        np.random.seed(3)
        return [buffer.sample(rows, **options) for _ in range(2)]

    def check_same(self, ours, theirs, **options):
        """Sizes and samples are those of the original, and so is what they take from the generator."""
        self.assertEqual((ours.size(), ours.pos, ours.full), (theirs.size(), theirs.pos, theirs.full))
        for got, want in zip(self.draw(ours, 64, **options), self.draw(theirs, 64, **options)):
            for mine, other in zip(got[:5], want[:5]):
                if not isinstance(other, dict):
                    mine, other = {"": mine}, {"": other}
                self.assertEqual(set(mine), set(other))
                for key, value in other.items():
                    self.assertEqual((mine[key].dtype, mine[key].shape), (value.dtype, value.shape), key)
                    np.testing.assert_array_equal(mine[key], value, key)

    def pair(self, envs, **options):
        is_dict = isinstance(options.get("space"), self.spaces.Dict)
        original = self.original.DictReplayBuffer if is_dict else self.original.ReplayBuffer
        return [self.make(kind, envs, **options) for kind in (self.sb3.ReplayBuffer, original)]

    def test_samples_are_those_of_the_original(self):
        box = self.spaces.Box(-9, 9, (2, 3), np.float32)
        cases = (
            {},
            {"handle_timeout_termination": False},
            {"actions": self.spaces.Box(-1, 1, (2,), np.float64)},
            {"space": self.spaces.Discrete(5), "actions": self.spaces.MultiDiscrete([2, 3])},
            {"space": self.spaces.Dict({"a/b": box, "a": self.spaces.Discrete(4), r"\c": box})},
        )
        for case in cases:
            for envs in (1, 2):
                for steps in (5, 45):  # Before the ring is full, and behind that.
                    with self.subTest(case=case, envs=envs, steps=steps):
                        pair = [self.fill(buffer, steps, envs) for buffer in self.pair(envs, **case)]
                        self.check_same(*pair)
                        for buffer in pair:
                            buffer.reset()
                            self.fill(buffer, 3, envs)
                        self.check_same(*pair)

    def test_an_environment_normalises_what_the_original_has_normalised(self):
        class Halves:
            def normalize_obs(self, observations):
                return observations / 2

            def normalize_reward(self, rewards):
                return rewards / 4

        self.check_same(*[self.fill(buffer, 9, 2) for buffer in self.pair(2)], env=Halves())

    def test_what_the_original_refuses_is_refused(self):
        ours, theirs = self.pair(2)
        (step,) = self.steps(1, 2, ours.observation_space, ours.action_space)
        for place, wrong in ((0, np.zeros((3, 2))), (0, np.zeros(6)), (2, np.zeros(3)), (3, np.zeros(3)),
                             (5, []), (5, [{}] * 3)):
            with self.subTest(place=place, wrong=wrong):
                changed = [wrong if i == place else each for i, each in enumerate(step)]
                for buffer in (theirs, ours):
                    with self.assertRaises(ValueError):
                        buffer.add(*changed)
        self.assertEqual((ours.size(), len(ours._rows)), (0, 0))

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
