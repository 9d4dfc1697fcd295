# SPDX-License-Identifier: Apache-2.0
"""Arrays that are not contiguous: their values count, wherever the bytes lie."""
import importlib.util
import tempfile
import unittest

import numpy as np
import rill
from rill import envs, estimators
from rill import specs as S

HAS_TORCH = importlib.util.find_spec("torch") is not None


def apart(x):
    """In every second place of each dimension, with other numbers between."""
    wide = np.full([2 * size for size in x.shape], 77).astype(x.dtype)
    wide[tuple(slice(None, None, 2) for _ in x.shape)] = x
    return wide[tuple(slice(None, None, 2) for _ in x.shape)]


def of_records(x):
    """A field of records, which are of an odd size."""
    records = np.full(len(x), 1, [("head", "u1"), ("x", x.dtype, x.shape[1:]), ("tail", "u1", 3)])
    records["x"] = x
    return records["x"]


def reversed_in(*dims):
    def layout(x):
        places = tuple(slice(None, None, -1 if d in dims else 1) for d in range(x.ndim))
        return x[places].copy()[places]
    return layout


# Views with the values of a contiguous array [rows, a, b], but for the last ones.
SAME = {
    "reversed rows": reversed_in(0),
    "reversed columns": reversed_in(2),
    "reversed": reversed_in(0, 1, 2),
    "apart": apart,
    "apart and reversed": lambda x: apart(x[::-1, :, ::-1])[::-1, :, ::-1],
    "Fortran order": np.asfortranarray,
    "transposed rows": lambda x: x.swapaxes(1, 2).copy().swapaxes(1, 2),
    "transposed batch": lambda x: x.swapaxes(0, 1).copy().swapaxes(0, 1),
    "a field of records": of_records,
    "part of a row": lambda x: np.concatenate([x + x, x, x + x], axis=2)[:, :, x.shape[2]:2 * x.shape[2]],
}
OTHER = {
    "one row": lambda x: np.broadcast_to(x[:1], x.shape),
    "one column": lambda x: np.broadcast_to(x[:, :, :1], x.shape),
    "one number": lambda x: np.broadcast_to(x[:1, :1, :1], x.shape),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(np.ravel(x)[:len(x) + 11], 12).reshape(
        len(x), 3, 4) if x.shape[1:] == (3, 4) else x[::-1],
}
DTYPES = ("float32", "int64", "uint8", "bool", "float16", "complex64")


def numbers(count, dtype="float32", row=(3, 4)):
    """All different, as far as the dtype allows."""
    return (np.arange(count * int(np.prod(row))).reshape(count, *row) % 251).astype(dtype)


class Dlpack:
    """What gives its memory by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def buffer_of(size=10_000, **options):
    return rill.ReplayBuffer(storage=rill.LazyTensorStorage(size, **options))


class LayoutsTest(unittest.TestCase):

    def check_views(self, count, check, dtype="float32"):
        for name, layout in {**SAME, **OTHER}.items():
            view = layout(numbers(count, dtype))
            with self.subTest(name, dtype=dtype, count=count):
                self.assertFalse(view.flags.c_contiguous)
                if name in SAME:
                    np.testing.assert_array_equal(view, numbers(count, dtype))
                check(view)

    def test_writes(self):
        def check(view):
            buffer = buffer_of()
            for _ in range(3):
                rows = buffer[buffer.extend({"a": view, "next": {"b": {"c": view[::-1]}, "d": view[:, 0]}})]
                self.assertEqual(rows["a"].dtype, view.dtype)
                np.testing.assert_array_equal(rows["a"], view)
                np.testing.assert_array_equal(rows["next"]["b"]["c"], view[::-1])
                np.testing.assert_array_equal(rows["next"]["d"], view[:, 0])

        # The first write is read without a schema, a small one into memory that stays, a large one as it is.
        for dtype in DTYPES:
            self.check_views(5, check, dtype)
        self.check_views(3000, check)

    def test_single_steps(self):
        def check(view):
            buffer = buffer_of()
            for row in view:
                slot = buffer.add({"a": row, "next": {"b": row.T, "c": row[:, 1], "d": row[1, ::-1]}})
                stored = buffer[[slot]]
                np.testing.assert_array_equal(stored["a"][0], row)
                np.testing.assert_array_equal(stored["next"]["b"][0], row.T)
                np.testing.assert_array_equal(stored["next"]["c"][0], row[:, 1])
                np.testing.assert_array_equal(stored["next"]["d"][0], row[1, ::-1])

        self.check_views(5, check)

    def test_batches_of_lanes_whose_time_comes_first(self):
        for count in (8, 2048):
            of_time = numbers(count).reshape(count // 4, 4, 3, 4)  # [time, lanes, ...]
            for view in (of_time.swapaxes(0, 1), of_time[::-1].swapaxes(0, 1), np.asfortranarray(of_time.swapaxes(0, 1))):
                buffer = buffer_of(lanes=4)
                for _ in range(2):
                    slots = buffer.extend({"a": view, "next": {"b": view[..., 0, :]}})
                    rows = buffer[slots]
                    np.testing.assert_array_equal(rows["a"], view.reshape(-1, 3, 4))
                    np.testing.assert_array_equal(rows["next"]["b"], view[..., 0, :].reshape(-1, 4))

    def test_what_speaks_dlpack_alone(self):
        def check(view):
            if not view.flags.writeable or view.strides[0] % 4:
                return  # DLPack has neither.
            buffer = buffer_of()
            for _ in range(2):
                np.testing.assert_array_equal(buffer[buffer.extend({"a": Dlpack(view)})]["a"], view)

        self.check_views(5, check)

    def test_channels(self):
        def check(view):
            before = len(buffer)
            writer.extend({"a": view})
            writer.add({"a": view[1].T.copy().T})
            channel.drain(buffer)
            np.testing.assert_array_equal(buffer[before:]["a"], [*view, view[1]])

        buffer, channel = buffer_of(), rill.Channel({"a": numbers(1)[0]}, producers=1)
        with channel.writer(0) as writer:
            self.check_views(5, check)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            buffer = rill.ReplayBuffer(storage=rill.LazyMemmapStorage(1000, folder + "/rows"))
            buffer.extend({"a": numbers(5)})
            reader = rill.MemmapReader(folder + "/rows")
            self.check_views(5, lambda view: np.testing.assert_array_equal(reader[buffer.extend({"a": view})]["a"], view))
            buffer.close()

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_tensors(self):
        import torch
        for dtype in (torch.float32, torch.int64, torch.bool):
            whole = torch.from_numpy(numbers(5)).to(dtype)
            for view in (whole.transpose(1, 2).contiguous().transpose(1, 2), whole[::2], whole[:, 1:, ::2],
                         whole[:1].expand(5, 3, 4), whole.permute(2, 0, 1), whole.as_strided((5, 3, 4), (1, 2, 3))):
                buffer = buffer_of()
                for _ in range(2):
                    slots = buffer.extend({"a": view, "next": {"b": view[:, 0]}})
                    rows = buffer[slots]
                    np.testing.assert_array_equal(rows["a"], view.numpy())
                    np.testing.assert_array_equal(rows["next"]["b"], view[:, 0].numpy())
                np.testing.assert_array_equal(buffer[[buffer.add({"a": view[0], "next": {"b": view[0, 0]}})]]["a"][0], view[0])


class ArgumentsTest(unittest.TestCase):

    def test_slots_and_priorities(self):
        buffer = rill.PrioritizedReplayBuffer(alpha=1.0, beta=1.0, eps=0.0, storage=rill.LazyTensorStorage(8), seed=1)
        buffer.extend({"x": np.arange(8)})
        for index in (np.arange(8)[::-1], np.arange(8)[1::3], np.broadcast_to(np.int64(3), 4)):
            np.testing.assert_array_equal(buffer[index]["x"], index)
        batch = buffer.sample(64)
        wanted = np.where(batch["x"] == 5, 2.0, 0.0)
        for form in (apart, lambda x: x[::-1].copy()[::-1]):
            for dtype in (np.float32, np.float64):
                buffer.update_priority(batch, np.ones(64))
                strided = {"index": form(batch["index"]), "index_generation": form(batch["index_generation"])}
                buffer.update_priority(strided, form(wanted.astype(dtype)))
                self.assertEqual(set(buffer.sample(20)["x"].tolist()), {5})
        # Several of a row, one below the other.
        of_time = np.stack([wanted, np.zeros(64)])  # [T, rows]
        buffer.update_priority(batch, np.ones(64))
        buffer.update_priority(batch, of_time.T)
        self.assertEqual(set(buffer.sample(20)["x"].tolist()), {5})

    def test_places_of_a_sample(self):
        buffer = buffer_of()
        buffer.extend({"x": numbers(5)})
        batch = buffer.sample(4)
        for layout in SAME.values():
            out = {**batch, "x": layout(np.zeros((4, 3, 4), np.float32))}
            with self.assertRaisesRegex(rill.InvalidArgumentError, '"x": got a ndarray, want a writable, C-contiguous'):
                buffer.sample(4, out=out)
            self.assertFalse(out["x"].any())

    def test_what_functions_give(self):
        square = np.arange(64, dtype=np.float32).reshape(4, 4, 4)
        for name, layout in SAME.items():
            with self.subTest(name):
                buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(4), transform=lambda batch: {
                    **batch, "x": batch["x"].swapaxes(0, 2), "y": layout(batch["x"] + 1), "z": batch["x"][::-1]})
                buffer.extend({"x": square})
                batch = buffer.sample(4)
                rows = square[batch["index"]]
                np.testing.assert_array_equal(batch["x"], rows.swapaxes(0, 2))
                np.testing.assert_array_equal(batch["y"], rows + 1)
                np.testing.assert_array_equal(batch["z"], rows[::-1])

    def test_goals(self):
        def reward(achieved, desired):
            return apart(achieved)

        buffer = rill.ReplayBuffer(storage=rill.LazyTensorStorage(8), sample_unit=rill.Hindsight(reward, her_ratio=1.0))
        goal = np.arange(8, dtype=np.float32)[:, None]
        buffer.extend({"desired_goal": goal, "next": {"achieved_goal": goal + 1, "reward": goal, "done": goal == 7}})
        batch = buffer.sample(32)
        np.testing.assert_array_equal(batch["next"]["reward"], batch["next"]["achieved_goal"])

    def test_actions_and_observations(self):
        class Echo:
            observation_spec, action_spec = S.Unbounded((3, 4)), S.Unbounded((2, 3))

            def reset(self, seed):
                return numbers(1)[0].T.copy().T, {}

            def step(self, action):
                self.actions.append(action.copy())
                return apart(numbers(1)[0] + action[0, 0]), 0.0, False, False, {}

        wanted = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
        for layout in SAME.values():
            lanes = [Echo(), Echo()]
            for lane in lanes:
                lane.actions = []
            with rill.SyncDataCollector(envs.PythonEnv(lanes), lambda root: layout(wanted), frames_per_batch=2) as collector:
                batch = collector.next()
            np.testing.assert_array_equal(batch["action"][:, 0], wanted)
            np.testing.assert_array_equal([lane.actions[0] for lane in lanes], wanted)
            np.testing.assert_array_equal(batch["observation"][0, 0], numbers(1)[0])
            np.testing.assert_array_equal(batch["next"]["observation"][1, 0], numbers(1)[0] + 6)

    def test_specs(self):
        high = numbers(1)[0] + 1
        for layout in (apart, np.asfortranarray, reversed_in(0, 1)):
            spec = S.Bounded(np.zeros((3, 4), np.float32), layout(high))
            np.testing.assert_array_equal(spec.high, high)
            rows = np.stack([high, high + 1])
            np.testing.assert_array_equal(spec.project(apart(rows)), [high, high])
            self.assertTrue(spec.is_in(apart(rows[:1])))
            self.assertFalse(spec.is_in(apart(rows[1:])))
        one = S.OneHot(4)
        np.testing.assert_array_equal(S.Categorical(4).to_one_hot(np.arange(8)[::-2] // 2), np.eye(4)[[3, 2, 1, 0]])
        self.assertTrue(one.is_in(np.asfortranarray(np.eye(4)[[2, 0]].astype(one.dtype))))

    def test_estimators(self):
        generator = np.random.default_rng(0)
        values = [generator.normal(size=(3, 5, 1)).astype(np.float32) for _ in range(3)]
        ends = [generator.random((3, 5, 1)) < 0.3 for _ in range(2)]
        wanted = estimators.generalized_advantage_estimate(0.9, 0.8, *values, *ends)
        for layout in SAME.values():
            got = estimators.generalized_advantage_estimate(0.9, 0.8, *map(layout, values), *map(layout, ends))
            np.testing.assert_array_equal(got[0], wanted[0])
            np.testing.assert_array_equal(got[1], wanted[1])


if __name__ == "__main__":
    unittest.main()
