# SPDX-License-Identifier: Apache-2.0
"""Tensors and TensorDicts go in and come out, where torch and tensordict are installed."""
import importlib.util
import unittest

import numpy as np
import rill

HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_TENSORDICT = importlib.util.find_spec("tensordict") is not None


def buffer_of(output, **options):
    return rill.ReplayBuffer(storage=rill.LazyTensorStorage(100), batch_size=32, seed=1, output=output, **options)


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class TorchTest(unittest.TestCase):

    def test_tensors_share_the_memory_of_a_batch(self):
        import torch
        buffer = buffer_of("torch")
        buffer.extend({"x": torch.arange(100), "next": {"reward": torch.ones(100, 1)}})
        batch = buffer.sample()
        self.assertIsInstance(batch["next"]["reward"], torch.Tensor)
        self.assertTrue(torch.equal(batch["x"], batch["index"]))
        held, copy = batch["x"], batch["x"].clone()
        del batch
        for _ in range(10):
            buffer.sample()
        self.assertTrue(torch.equal(held, copy))

    def test_add_and_priorities_take_tensors(self):
        import torch
        buffer = rill.PrioritizedReplayBuffer(alpha=1.0, beta=1.0, eps=0.0, storage=rill.LazyTensorStorage(4),
                                              output="torch", seed=1)
        for i in range(4):
            buffer.add({"x": torch.tensor(i), "y": torch.ones(3, 2).T})
        batch = buffer.sample(64)
        buffer.update_priority(batch, (batch["x"] == 2).float())
        self.assertEqual(set(buffer.sample(20)["x"].tolist()), {2})
        batch = buffer.sample(20)
        buffer.update_priority(batch["index"], torch.zeros(20))
        with self.assertRaises(rill.FailedPreconditionError):
            buffer.sample(20)

    def test_what_has_no_bytes_to_share_is_refused(self):
        import torch
        buffer = buffer_of("torch")
        for value, pattern in ((torch.ones(3, requires_grad=True), "detach"), (torch.ones(3).to_sparse(), "sparse"),
                               (torch.ones(3, dtype=torch.bfloat16), "BFloat16"), (torch.ones(3, device="meta"), "meta")):
            with self.subTest(pattern), self.assertRaisesRegex(rill.InvalidArgumentError, '^"x": got a Tensor that is no array: (Runtime|Type|Value)Error: .*(?i:%s)' % pattern):
                buffer.extend({"x": value})


@unittest.skipUnless(HAS_TENSORDICT, "tensordict is not installed")
class TensorDictTest(unittest.TestCase):

    def test_a_tensordict_goes_in_and_comes_out(self):
        import torch
        from tensordict import TensorDict
        buffer = rill.TensorDictReplayBuffer(storage=rill.LazyTensorStorage(100), batch_size=32, seed=1,
                                             sampler=rill.PrioritizedSampler(100, 1.0, 1.0))
        data = TensorDict({"x": torch.arange(100), ("next", "reward"): torch.ones(100, 1)}, batch_size=[100])
        self.assertEqual(len(buffer.extend(data)), 100)
        batch = buffer.sample()
        self.assertIsInstance(batch, TensorDict)
        self.assertEqual(batch.batch_size, torch.Size([32]))
        self.assertEqual(batch["next", "reward"].shape, (32, 1))
        self.assertTrue(torch.equal(batch["x"], batch["index"]))
        batch["td_error"] = (batch["x"] == batch["x"][0]).float()
        buffer.update_tensordict_priority(batch)
        buffer.add(data[5])
        np.testing.assert_array_equal(buffer.sample(16)["priority_weight"].shape, (16,))


if __name__ == "__main__":
    unittest.main()
