# SPDX-License-Identifier: Apache-2.0
"""rill.specs: domains of arrays and of dicts, and Gymnasium's spaces."""
import pickle
import unittest

import numpy as np

import rill
from rill import specs as S

ALL = [
    S.Unbounded(),
    S.Unbounded((2, 3), np.float64),
    S.Bounded(-1, 1, (3,)),
    S.Bounded(np.array([0.0, -2.0], np.float32), np.array([1.0, np.inf], np.float32)),
    S.Categorical(5),
    S.Categorical(3, (2,), "int32"),
    S.Categorical(4, mask=[True, False, True, True]),
    S.OneHot(4),
    S.OneHot(3, (2, 3)),
    S.MultiCategorical([2, 3]),
    S.MultiOneHot([2, 3]),
    S.Binary(4),
    S.Binary(shape=(2, 2), dtype=bool),
]


class LeafTest(unittest.TestCase):
    def test_random_members_are_in_and_others_are_not(self):
        for spec in ALL:
            with self.subTest(spec):
                value = spec.rand((7,), seed=1)
                self.assertEqual((value.shape, value.dtype), ((7, *spec.shape), spec.dtype))
                self.assertTrue(spec.is_in(value))
                spec.assert_is_in(value)
                np.testing.assert_array_equal(value, spec.rand((7,), seed=1))
                self.assertFalse(spec.is_in(value.astype(np.complex64)))
                self.assertFalse(spec.is_in("text"))
        self.assertNotEqual(S.Unbounded().rand().item(), S.Unbounded().rand().item())

    def test_zero_and_one(self):
        for spec in ALL:
            self.assertEqual((spec.zero((2,)) == 0).sum(), 2 * np.prod(spec.shape, dtype=int))
            self.assertEqual((spec.one() == 1).sum(), np.prod(spec.shape, dtype=int))

    def test_what_is_outside_is_named_and_projected(self):
        spec = S.Bounded(-1, 1, (3,))
        outside = np.array([0, 2, -3], np.float32)
        with self.assertRaisesRegex(rill.InvalidArgumentError, "got 2"):
            spec.assert_is_in(outside)
        np.testing.assert_array_equal(spec.project(outside), [0, 1, -1])
        np.testing.assert_array_equal(outside, [0, 2, -3])
        np.testing.assert_array_equal(S.Categorical(3).project(np.array([5, -1, 1])), [2, 0, 1])
        with self.assertRaisesRegex(rill.InvalidArgumentError, r"\[2\]"):
            spec.assert_is_in(np.zeros(2, np.float32))

    def test_properties(self):
        spec = S.Bounded(np.array([0.0, -2.0]), np.array([1.0, np.inf]))
        self.assertEqual((spec.shape, spec.dtype), ((2,), np.float64))
        np.testing.assert_array_equal(spec.low, [0, -2])
        np.testing.assert_array_equal(spec.high, [1, np.inf])
        np.testing.assert_array_equal(S.Bounded(0, 255, (2,), np.uint8).high, [255, 255])
        whole = S.Bounded(-2**63, 2**63 - 1, (2,), dtype="int64")
        self.assertEqual((whole.low.tolist(), whole.high.tolist()), ([-2**63] * 2, [2**63 - 1] * 2))
        self.assertEqual(S.Bounded(0, 2**53 + 1, dtype="int64").high, 2**53 + 1)
        self.assertEqual(S.Categorical(5).n, 5)
        self.assertEqual(S.MultiCategorical([2, 3]).nvec, [2, 3])
        self.assertEqual(S.OneHot(3, (2, 3)).shape, (2, 3))
        self.assertIsNone(S.OneHot(3).mask)
        np.testing.assert_array_equal(ALL[6].mask, [True, False, True, True])
        self.assertEqual([spec.cardinality() for spec in ALL[4:]], [5, 9, 3, 4, 9, 6, 6, 16, 16])
        self.assertIsNone(S.Unbounded().cardinality())
        np.testing.assert_array_equal(ALL[6].enumerate(), [0, 2, 3])

    def test_options_as_rows_and_back(self):
        spec = S.Categorical(3)
        self.assertEqual(spec.to_one_hot_spec(), S.OneHot(3))
        self.assertEqual(S.MultiOneHot([2, 3]).to_categorical_spec(), S.MultiCategorical([2, 3]))
        rows = spec.to_one_hot(np.array([2, 0]))
        np.testing.assert_array_equal(rows, [[0, 0, 1], [1, 0, 0]])
        np.testing.assert_array_equal(S.OneHot(3).to_categorical(rows), [2, 0])

    def test_other_shapes(self):
        spec = S.Bounded([0, -1], [1, 2], dtype="float32")
        self.assertEqual(spec.expand(3, 2).shape, (3, 2))
        self.assertEqual(spec.expand((3, 2))[0], spec)
        self.assertEqual(spec[1], S.Bounded(-1, 2))

    def test_a_pickle_is_the_same(self):
        for spec in ALL + [S.Composite({"a": ALL[2], "next": {"b": ALL[6]}})]:
            self.assertEqual(pickle.loads(pickle.dumps(spec)), spec)
        self.assertNotEqual(S.Categorical(3), S.Categorical(4))

    def test_wrong_arguments(self):
        for make, text in ((lambda: S.Bounded(1, -1), "low"), (lambda: S.Categorical(0), "got 0"),
                           (lambda: S.OneHot(3, (2, 4)), "ends with 3"), (lambda: S.Binary(), "got none"),
                           (lambda: S.Bounded(0, 300, dtype=np.uint8), "high: got 300, want numbers of uint8"),
                           (lambda: S.Bounded(-np.inf, 1, dtype="int32"), "low: got -inf"),
                           (lambda: S.Unbounded(dtype="float31"), "float31"), (lambda: S.Unbounded((-1,)), "-1"),
                           (lambda: S.OneHot(3, mask=[True]), "mask"), (lambda: S.MultiCategorical([]), "nvec|choice"),
                           (lambda: S.Composite(a=3), 'a int'), (lambda: S.Categorical(3, mask=[False] * 3), "option")):
            with self.subTest(text), self.assertRaisesRegex(rill.InvalidArgumentError, text):
                make()


class CompositeTest(unittest.TestCase):
    def setUp(self):
        self.spec = S.Composite({"observation": S.Bounded(-1, 1, (3,)), ("next", "reward"): S.Unbounded()},
                                action=S.Categorical(2))

    def test_it_is_a_dict_of_specs(self):
        spec = self.spec
        self.assertEqual(list(spec), ["observation", "next", "action"])
        self.assertEqual(spec["next", "reward"], S.Unbounded())
        self.assertEqual(spec["next"], S.Composite(reward=S.Unbounded()))
        self.assertEqual(spec, S.Composite({"observation": S.Bounded(-1, 1, (3,)), "next/reward": S.Unbounded(),
                                            "action": S.Categorical(2)}))
        self.assertIn("next", spec)
        self.assertIn(("next", "reward"), spec)
        self.assertNotIn("reward", spec)
        with self.assertRaises(KeyError):
            spec["reward"]

    def test_values(self):
        batch = self.spec.rand((4,), seed=2)
        self.assertEqual(batch["next"]["reward"].shape, (4, 1))
        self.assertTrue(self.spec.is_in(batch))
        self.assertFalse(self.spec.zero((4,))["observation"].any())
        batch["observation"] = batch["observation"] + 5
        self.assertFalse(self.spec.is_in(batch))
        with self.assertRaisesRegex(rill.InvalidArgumentError, "observation"):
            self.spec.assert_is_in(batch)
        self.assertTrue(self.spec.is_in(self.spec.project(batch)))
        del batch["action"]
        with self.assertRaisesRegex(rill.InvalidArgumentError, "action"):
            self.spec.assert_is_in(batch)
        self.assertFalse(self.spec.is_in({}))


class Space:
    """As Gymnasium's, by the names of the classes."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


Box, Discrete, MultiDiscrete, MultiBinary, Dict, Tuple, Text = (
    type(name, (Space,), {}) for name in ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Dict", "Tuple", "Text"))


def box(low, high, shape, dtype):
    return Box(low=np.full(shape, low, dtype), high=np.full(shape, high, dtype), shape=shape, dtype=np.dtype(dtype))


class SpacesTest(unittest.TestCase):
    def test_each_space_has_its_spec(self):
        for space, spec in (
                (box(-1, 1, (3,), np.float32), S.Bounded(-1, 1, (3,))),
                (box(0, 255, (2, 2), np.uint8), S.Bounded(0, 255, (2, 2), np.uint8)),
                (box(-np.inf, np.inf, (3,), np.float64), S.Unbounded((3,), np.float64)),
                (Discrete(n=np.int64(4), start=2), S.Categorical(4)),
                (MultiDiscrete(nvec=np.array([2, 3])), S.MultiCategorical([2, 3])),
                (MultiBinary(shape=(3,)), S.Binary(3)),
                (Dict(spaces={"a": Discrete(n=2), "b/c": box(0, 1, (), np.float32)}),
                 S.Composite({"a": S.Categorical(2), "b\\/c": S.Bounded(0, 1)})),
                (Tuple(spaces=(Discrete(n=2), MultiBinary(shape=(1,)))),
                 S.Composite({"0": S.Categorical(2), "1": S.Binary(1)}))):
            with self.subTest(type(space).__name__):
                self.assertEqual(S.from_space(space), spec)
        with self.assertRaisesRegex(rill.InvalidArgumentError, "Text"):
            S.from_space(Text())
        self.assertEqual(S.from_space(Dict(spaces={"b/c": Discrete(n=2)})).zero()["b/c"], 0)

    def test_those_of_the_real_package(self):
        try:
            from gymnasium import spaces
        except ImportError:
            self.skipTest("there is no gymnasium")
        for space in (spaces.Box(-1, 1, (2,)), spaces.Discrete(3), spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(4),
                      spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(0, 1, (2,)))):
            spec = S.from_space(space)
            self.assertTrue(spec.is_in(space.sample()), space)
            value = spec.rand()
            self.assertTrue(space.contains(value), space)


if __name__ == "__main__":
    unittest.main()
