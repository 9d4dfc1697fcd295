# SPDX-License-Identifier: Apache-2.0
"""rill.envs: environments of C++, Python objects as environments, and Gymnasium's."""
import importlib
import os
import sys
import tempfile
import unittest

import numpy as np

import rill
from rill import envs
from rill import specs as S


class Space:
    def __init__(self, **fields):
        self.__dict__.update(fields)


# As Gymnasium's, by the names of the classes.
Box, Discrete, Dict, Tuple = (type(name, (Space,), {}) for name in ("Box", "Discrete", "Dict", "Tuple"))


def box(low, high, shape, dtype=np.float32):
    return Box(low=np.full(shape, low, dtype), high=np.full(shape, high, dtype), shape=shape, dtype=np.dtype(dtype))


class Counter:
    """Counts steps. Ends after `length` of them."""

    observation_space = box(0, 1000, (2,))
    action_space = Discrete(n=3, start=0)

    def __init__(self, length=3):
        self.length, self.seeds, self.actions, self.closed = length, [], [], False

    def observation(self):
        return np.array([self.count, len(self.seeds)], np.float32)

    def reset(self, seed=None):
        self.count = 0
        self.seeds.append(seed)
        return self.observation(), {}

    def step(self, action):
        self.count += 1
        self.actions.append(action)
        return self.observation(), float(self.count), self.count == self.length, False, {}

    def close(self):
        self.closed = True


class BuiltInTest(unittest.TestCase):
    def test_specs_and_steps(self):
        for make, observation, action in (
                (envs.CartPole, 4, S.Categorical(2)), (envs.MountainCar, 2, S.Categorical(3)),
                (envs.MountainCarContinuous, 2, S.Bounded(-1, 1, (1,))), (envs.Acrobot, 6, S.Categorical(3)),
                (envs.Pendulum, 3, S.Bounded(-2, 2, (1,)))):
            env = make(3, max_episode_steps=7, seed=1)
            self.assertEqual((env.lanes, env.action_spec), (3, action))
            self.assertEqual(env.observation_spec["observation"].shape, (observation,))
            self.assertEqual(env.reward_spec, S.Unbounded())
            batch = env.rollout(20, break_when_any_done=False, seed=2)
            self.assertEqual(batch["observation"].shape, (3, 20, observation))
            self.assertTrue(action.is_in(batch["action"]))
            self.assertEqual(np.flatnonzero(batch["next"]["truncated"][0]).tolist(), [6, 13])
            again = make(3, max_episode_steps=7, seed=1).rollout(20, break_when_any_done=False, seed=2)
            np.testing.assert_array_equal(batch["observation"], again["observation"])

    def test_a_rollout_with_a_policy_ends_where_it_is_asked_to(self):
        env = envs.CartPole(2)
        batch = env.rollout(500, lambda root: np.zeros(2, np.int64))
        self.assertTrue(batch["next"]["done"][:, -1].any())
        self.assertFalse(batch["next"]["done"][:, :-1].any())
        np.testing.assert_array_equal(batch["action"], 0)
        np.testing.assert_array_equal(batch["observation"][:, 1:], batch["next"]["observation"][:, :-1])
        env.set_seed(5)
        first = env.rollout(1)["observation"]
        env.set_seed(5)
        np.testing.assert_array_equal(env.rollout(1)["observation"], first)

    def test_wrong_options_and_uses(self):
        with self.assertRaisesRegex(rill.InvalidArgumentError, "lanes"):
            envs.CartPole(0)
        env = envs.CartPole()
        with self.assertRaisesRegex(rill.InvalidArgumentError, "max_steps"):
            env.rollout(0)
        with self.assertRaisesRegex(rill.FailedPreconditionError, "one at a time"):
            env.rollout(1, lambda root: env.rollout(1))
        with self.assertRaisesRegex(rill.FailedPreconditionError, "one at a time"):
            env.rollout(1, lambda root: env.close())
        rill.SyncDataCollector(env, frames_per_batch=1)
        for call in (lambda: env.rollout(1), lambda: env.set_seed(1),
                     lambda: rill.SyncDataCollector(env, frames_per_batch=1)):
            with self.assertRaisesRegex(rill.FailedPreconditionError, "has taken"):
                call()
        self.assertEqual((env.lanes, env.action_spec), (1, S.Categorical(2)))
        with self.assertRaisesRegex(TypeError, "another process"):
            importlib.import_module("pickle").dumps(env)

    def test_names_functions_and_lists_are_environments(self):
        for given, kind, lanes in (
                ("Pendulum-v1", envs.Pendulum, 1), (lambda: envs.CartPole(3), envs.CartPole, 3), (Counter, envs.PythonEnv, 1),
                (Counter(), envs.PythonEnv, 1), ([Counter, Counter()], envs.PythonEnv, 2),
                ([envs.CartPole(2), "CartPole-v1"], envs.VectorEnv, 3)):
            env = envs.as_env(given)
            self.assertIsInstance(env, kind)
            self.assertEqual(env.lanes, lanes)
            self.assertEqual(env.rollout(1)["action"].shape[:2], (lanes, 1))
        with self.assertRaisesRegex(rill.InvalidArgumentError, "got a int"):
            envs.as_env(3)
        parts = [envs.CartPole(), envs.Pendulum(), envs.CartPole()]
        for given, text in ((parts, r"parts\[1\]: observation"), ([parts[0]] * 2, "one environment twice"), ([], "none")):
            with self.assertRaisesRegex(rill.InvalidArgumentError, text):
                envs.VectorEnv(given)
        # They are still there.
        self.assertEqual(envs.VectorEnv(parts[::2]).rollout(1)["action"].shape, (2, 1))

    def test_a_class_made_from_one_is_one(self):
        class Mine(envs.CartPole):
            pass

        self.assertEqual(Mine(3).lanes, 3)

    def test_without_a_seed_episodes_are_others_each_time(self):
        for make in (lambda: envs.CartPole(2), lambda: envs.VectorEnv([envs.CartPole(), envs.CartPole()]),
                     lambda: envs.as_env(["CartPole-v1", "CartPole-v1"])):
            first, second = make().rollout(1)["observation"], make().rollout(1)["observation"]
            self.assertTrue((first != second).any())
            self.assertTrue((first[0] != first[1]).any())
        actions = [envs.CartPole(64).rollout(1)["action"] for _ in range(2)]
        self.assertTrue((actions[0] != actions[1]).any())
        seeds = [Counter(), Counter()]
        for counter in seeds:
            envs.PythonEnv(counter).rollout(1)
        self.assertNotEqual(seeds[0].seeds, seeds[1].seeds)


class PythonEnvTest(unittest.TestCase):
    def test_steps_are_those_of_the_objects(self):
        objects = [Counter(3), Counter(2)]
        env = envs.PythonEnv(objects)
        self.assertEqual((env.name, env.lanes, env.action_spec), ("Counter", 2, S.Categorical(3)))
        self.assertEqual(env.observation_spec, S.Composite(observation=S.Bounded(0, 1000, (2,))))
        batch = env.rollout(6, lambda root: np.array([1, 2]), break_when_any_done=False)
        np.testing.assert_array_equal(batch["observation"][0, :, 0], [0, 1, 2, 0, 1, 2])
        np.testing.assert_array_equal(batch["next"]["observation"][1, :, 0], [1, 2, 1, 2, 1, 2])
        np.testing.assert_array_equal(batch["next"]["reward"][1, :, 0], [1, 2, 1, 2, 1, 2])
        np.testing.assert_array_equal(batch["next"]["terminated"][0, :, 0], [0, 0, 1, 0, 0, 1])
        self.assertFalse(batch["next"]["truncated"].any())
        self.assertEqual((objects[0].actions, objects[1].actions), ([1] * 6, [2] * 6))
        self.assertNotEqual(objects[0].seeds[0], objects[1].seeds[0])
        env.close()
        self.assertTrue(objects[0].closed)

    def test_seeds_are_those_of_the_environment(self):
        seeds = []
        for _ in range(2):
            counter = Counter(2)
            env = envs.PythonEnv(counter)
            env.set_seed(3)
            env.rollout(6, break_when_any_done=False)
            seeds.append(counter.seeds)
        self.assertEqual(seeds[0], seeds[1])
        self.assertEqual(len(set(seeds[0])), len(seeds[0]))
        self.assertTrue(all(0 <= seed < 2**31 for seed in seeds[0]))

    def test_nested_spaces(self):
        class Robot(Counter):
            observation_space = Dict(spaces={"joints": box(-1, 1, (2,)), "mode": Discrete(n=5, start=10)})
            action_space = Tuple(spaces=(Discrete(n=2, start=-1), box(-1, 1, (3,))))

            def observation(self):
                return {"joints": [0.5, 0.25], "mode": 10 + self.count}

        robot = Robot(3)
        batch = envs.PythonEnv(robot).rollout(3, seed=1)
        np.testing.assert_array_equal(batch["observation"]["mode"], [[0, 1, 2]])
        np.testing.assert_array_equal(batch["next"]["observation"]["mode"], [[1, 2, 3]])
        np.testing.assert_array_equal(batch["observation"]["joints"][0, 0], [0.5, 0.25])
        for step, (option, force) in enumerate(robot.actions):
            self.assertEqual(option, batch["action"]["0"][0, step] - 1)
            np.testing.assert_array_equal(force, batch["action"]["1"][0, step])

    def test_specs_in_place_of_spaces(self):
        class Mine:
            observation_spec = S.Composite({"pixels": S.Bounded(0, 255, (2, 2), np.uint8), "info/step": S.Unbounded((), "int64")})
            action_spec = S.Bounded(-1, 1, (2,))

            def reset(self, seed):
                self.count = 0
                return {"pixels": np.full((2, 2), 7, np.uint8), "info": {"step": 0}}, {}

            def step(self, action):
                self.count += 1
                return {"pixels": np.full((2, 2), 8, np.uint8), "info": {"step": self.count}}, 0, False, self.count > 1, {}

        env = envs.PythonEnv(Mine())
        self.assertEqual(env.action_spec, S.Bounded(-1, 1, (2,)))
        batch = env.rollout(5)
        self.assertEqual((batch["pixels"].dtype, batch["pixels"].shape), (np.uint8, (1, 2, 2, 2)))
        np.testing.assert_array_equal(batch["next"]["info"]["step"], [[1, 2]])
        self.assertTrue(batch["next"]["truncated"][0, -1])

    def test_keys_of_a_composite_may_have_a_slash(self):
        class Slash(Counter):
            observation_spec = S.Composite({"a\\/b": S.Unbounded((2,))})

            def observation(self):
                return {"a/b": super().observation()}

        np.testing.assert_array_equal(envs.PythonEnv(Slash()).rollout(2)["a/b"][0, :, 0], [0, 1])

    def test_objects_have_the_same_spaces(self):
        def of(**fields):
            return type("Other", (Counter,), fields)()

        nested = Tuple(spaces=(Discrete(n=3, start=0),))
        for other, text in (
                (of(observation_space=box(0, 1000, (3,))), "object 1: observation"),
                (of(observation_space=box(0, 999, (2,))), "object 1: observation"),
                (of(observation_space=box(0, 1000, (2,), np.float64)), "object 1: observation"),
                (of(action_space=Discrete(n=2, start=0)), "object 1: action"),
                (of(action_space=Discrete(n=3, start=1)), "object 1: action"),
                (of(action_space=nested), "object 1: action")):
            with self.subTest(text), self.assertRaisesRegex(rill.InvalidArgumentError, text):
                envs.PythonEnv([Counter(), other])

    def test_values_change_in_no_cast(self):
        def first(space, value):
            made = type("Given", (Counter,), {"observation_space": space, "observation": lambda self: value})()
            return envs.PythonEnv(made).rollout(1)["observation"][0, 0]

        for space, value in (
                (box(0, 255, (1,), np.uint8), [7]), (box(0, 255, (), np.uint8), 255),
                (box(-5, 5, (1,), np.int8), np.array([-5])), (box(0, 9, (1,), np.int64), np.array([9], np.uint64)),
                (box(-1, 1, (1,)), [0.5]), (box(-1, 1, (1,)), [3]), (box(-np.inf, np.inf, (1,)), np.array([np.inf])),
                (Discrete(n=3, start=0), 2), (Discrete(n=3, start=0), np.uint8(2))):
            with self.subTest(space=vars(space), value=value):
                np.testing.assert_array_equal(first(space, value), value)
        self.assertEqual(first(Discrete(n=3, start=5), np.uint8(7)), 2)
        for space, value in (
                (box(0, 100, (1,), np.int8), [300]), (box(0, 255, (1,), np.uint8), np.array([-1])),
                (box(0, 255, (1,), np.int32), np.array([2**40])), (box(-1, 1, (1,)), [1e300]),
                (box(0, 9, (1,), np.int64), np.array([2**64 - 1], np.uint64)),
                (Discrete(n=3, start=0), 7), (Discrete(n=3, start=0), -1), (Discrete(n=3, start=5), 2),
                (S.OneHot(2, dtype="int8"), np.array([1, 1], np.int8))):
            with self.subTest(value=value), self.assertRaisesRegex(rill.InvalidArgumentError, "observation: got"):
                first(space, value)
        for space, value in ((box(0, 255, (1,), np.uint8), [0.5]), (Discrete(n=3, start=0), 1.0),
                             (Discrete(n=3, start=5), 6.0)):
            with self.subTest(value=value), self.assertRaises(TypeError):
                first(space, value)

    def test_closing_closes_each_object_once(self):
        class Faulty(Counter):
            def close(self):
                self.closed += 1
                raise ValueError("of close")

        objects = [Faulty(), Counter(), Faulty()]
        env = envs.VectorEnv([envs.PythonEnv(objects[:2]), envs.PythonEnv(objects[2])])
        with self.assertRaisesRegex(ValueError, "of close"):
            env.close()
        env.close()
        self.assertEqual([each.closed for each in objects], [1, True, 1])

    def test_an_exception_without_a_text_is_the_same(self):
        class Silent(Exception):
            def __str__(self):
                raise ValueError("no text")

        error = Silent()

        def policy(root):
            raise error

        with self.assertRaises(Silent) as caught:
            envs.CartPole().rollout(1, policy)
        self.assertIs(caught.exception, error)

    def test_nothing_is_shared_with_an_object(self):
        class Keeper(Counter):
            action_space = box(-1, 1, (2,))

            def observation(self):
                self.kept = getattr(self, "kept", np.zeros(2, np.float32))
                self.kept[0] = self.count
                return self.kept

        keeper = Keeper(5)
        batch = envs.PythonEnv(keeper).rollout(4, seed=3)
        np.testing.assert_array_equal(batch["observation"][0, :, 0], [0, 1, 2, 3])
        np.testing.assert_array_equal(np.stack(keeper.actions), batch["action"][0])

    def test_an_exception_is_the_same_and_a_reset_goes_on(self):
        error = KeyError("out of fuel")

        class Faulty(Counter):
            def step(self, action):
                if self.count == 1 and len(self.seeds) == 1:
                    raise error
                return super().step(action)

        for objects in ([Faulty()], [Counter(), Faulty()]):
            env = envs.PythonEnv(objects)
            with self.assertRaises(KeyError) as caught:
                env.rollout(3)
            self.assertIs(caught.exception, error)
            self.assertEqual(env.rollout(2)["observation"].shape, (len(objects), 2, 2))
        vector = envs.VectorEnv([envs.PythonEnv(Counter()), envs.PythonEnv(Faulty())])
        with self.assertRaises(KeyError) as caught:
            vector.rollout(3)
        self.assertIs(caught.exception, error)

    def test_what_an_object_gives_is_checked(self):
        def of(**methods):
            return envs.PythonEnv(type("Bad", (Counter,), methods)())

        four = np.zeros(4, np.float32)
        for env, kind, text in (
                (of(step=lambda self, action: (0, 0, False, {})), rill.InvalidArgumentError, "got a tuple of 4, want the five"),
                (of(step=lambda self, action: None), rill.InvalidArgumentError, "got a NoneType"),
                (of(observation=lambda self: four), rill.InvalidArgumentError, r"observation: got shape \(4,\), want \(2,\)"),
                (of(observation=lambda self: ["a", "b"]), TypeError, "same_kind"),
                (of(reset=lambda self, seed: None), TypeError, "subscriptable"),
                (of(reset=lambda self: None), TypeError, "seed"),
                (of(step=lambda self, action: (self.observation(), "much", False, False, {})), TypeError, "real number"),
                (of(step=lambda self, action: (self.observation(), np.nan, False, False, {})), rill.InternalError, "finite"),
                (of(step=lambda self, action: (self.observation(), 0.0, np.ones(2), False, {})), ValueError, "ambiguous")):
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                env.rollout(2)
        for make, text in ((lambda: envs.PythonEnv([]), "no object"), (lambda: envs.PythonEnv([Counter()] * 2), "twice"),
                           (lambda: envs.PythonEnv(object()), "observation_space"),
                           (lambda: envs.PythonEnv([Counter(), Space(observation_space=Counter.observation_space,
                                                                      action_space=Counter.action_space)]), "reset")):
            with self.subTest(text), self.assertRaisesRegex((rill.InvalidArgumentError, AttributeError), text):
                make()


class StandInTest(unittest.TestCase):
    """With the stand-in for Gymnasium that the tests of C++ have."""

    def setUp(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../envs/gymnasium/testdata")
        sys.path.insert(0, folder)
        self.addCleanup(sys.path.remove, folder)

    def test_a_step_has_a_time_limit_beside_a_rate_limiter(self):
        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(100), rate_limiter=rill.RateLimiter.min_size(1))
        env = envs.GymEnv("Count-v0", faults={"*": "hang"}, step_timeout=0.2)
        collector = rill.SyncDataCollector(env, frames_per_batch=8, replay_buffer=buffer)
        with self.assertRaisesRegex(rill.DeadlineExceededError, "no answer in time"):
            collector.next()
        collector.shutdown()

    def test_processes_end_by_themselves_beside_a_forked_one(self):
        with tempfile.TemporaryDirectory() as folder:
            env = envs.GymEnv("Count-v0", closed=folder + "/closed")
            end, may_end = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(may_end)
                os.read(end, 1)
                os._exit(0)
            os.close(end)
            env.close()
            self.assertTrue(os.path.exists(folder + "/closed"))
            os.close(may_end)
            os.waitpid(child, 0)


class GymnasiumTest(unittest.TestCase):
    def setUp(self):
        try:
            self.gymnasium = importlib.import_module("gymnasium")
        except ImportError:
            self.skipTest("there is no gymnasium")

    def test_an_object_steps_as_the_built_in_one(self):
        made = self.gymnasium.make("CartPole-v1")
        env = envs.PythonEnv(made)
        self.assertEqual(env.name, "CartPoleEnv")
        self.assertEqual(env.action_spec, envs.CartPole().action_spec)
        batch = env.rollout(500, lambda root: np.array([1]))
        observation, _ = made.reset(seed=1)
        self.assertEqual(observation.dtype, batch["observation"].dtype)
        self.assertTrue(batch["next"]["terminated"][0, -1])

    def test_by_name_in_processes(self):
        env = envs.GymEnv("CartPole-v1", 3, children=2, seed=1)
        batch = env.rollout(10, break_when_any_done=False)
        self.assertEqual(batch["observation"].shape, (3, 10, 4))
        env.close()
        with self.assertRaisesRegex(rill.Error, "Nothing"):
            envs.make("Nothing-v0")
        longer = envs.GymEnv("CartPole-v1", max_episode_steps=3)
        self.assertEqual(longer.rollout(9)["action"].shape, (1, 3))


if __name__ == "__main__":
    unittest.main()
