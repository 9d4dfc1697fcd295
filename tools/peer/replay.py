# SPDX-License-Identifier: Apache-2.0
"""Replay buffers between TorchRL and Rill, in both directions.

TorchRL saves a buffer; copy_replay reads it and writes it again, as it is
("rewrite") or through a ReplayBuffer ("reload"); TorchRL loads that into a new
buffer, which must be what the first one is, and go on like it. Then it loads
what Rill made from nothing.
"""
import os
import shutil

import torch
from tensordict import TensorDict

import torchrl
import torchrl.data as rl
from torchrl.data.replay_buffers.checkpointers import FlatStorageCheckpointer, NestedStorageCheckpointer
from torchrl.data.replay_buffers.samplers import StalenessAwareSampler
from torchrl.data.replay_buffers.writers import TensorDictMaxValueWriter, TensorDictRoundRobinWriter
from torchrl.envs.transforms import ObservationNorm

torchrl.torchrl_logger.setLevel("WARNING")
CAPACITY = 10


def steps(first, count, lanes=()):
    """Numbered steps; one ends at each multiple of 4."""
    number = torch.arange(first, first + count).expand(*lanes, count)
    if lanes:
        number = number + 100 * torch.arange(lanes[0]).unsqueeze(-1)
    obs = number.float().unsqueeze(-1)
    batch = [*lanes, count]
    return TensorDict({"obs": obs, "action": number.clone(),
                       "next": TensorDict({"obs": obs + 1, "reward": 2 * obs, "done": (obs + 1) % 4 == 0}, batch)},
                      batch)


def versioned(first, count, lanes=()):
    td = steps(first, count)
    td["policy_version"] = torch.arange(first, first + count) // 4
    return td


def tensors(first, count, lanes=()):
    return steps(first, count)["obs"]


def trees(first, count, lanes=()):
    td = steps(first, count)
    return {"a": td["obs"], "b": [td["action"], {"c": td["next", "obs"]}]}


class Kind:
    """A kind of buffer, made anew by calling it."""

    def __init__(self, storage=rl.LazyTensorStorage, sampler=None, writer=None, cls=rl.ReplayBuffer, data=steps,
                 lanes=(), checkpointer=None, is_seeded=False, sizes=(7, 17)):
        self.storage, self.sampler, self.writer, self.cls = storage, sampler, writer, cls
        self.data, self.lanes, self.checkpointer, self.is_seeded, self.sizes = data, lanes, checkpointer, is_seeded, sizes

    def __call__(self):
        options = {"batch_size": 2}
        for name in ("sampler", "writer"):
            if getattr(self, name):
                options[name] = getattr(self, name)()
        if self.lanes:
            storage = self.storage(CAPACITY * self.lanes[0], ndim=2)
            options["dim_extend"] = 1
        else:
            storage = self.storage(CAPACITY)
        if self.checkpointer:
            options["checkpointer"] = self.checkpointer()
        if self.is_seeded:
            options["generator"] = torch.Generator().manual_seed(3)
        return self.cls(storage=storage, **options)

    @property
    def places(self):
        return CAPACITY * (self.lanes[0] if self.lanes else 1)


def prioritized(capacity=CAPACITY):
    return lambda: rl.PrioritizedSampler(capacity, alpha=0.7, beta=0.5)


LANES = {"lanes": (2,)}
FLAT = {"storage": rl.LazyMemmapStorage, "checkpointer": FlatStorageCheckpointer}
NESTED = {"storage": rl.LazyMemmapStorage, "checkpointer": NestedStorageCheckpointer}

KINDS = {
    "tensors": Kind(),
    "memmap": Kind(storage=rl.LazyMemmapStorage),
    "generator": Kind(is_seeded=True),
    "TensorDict": Kind(cls=rl.TensorDictReplayBuffer),
    "lanes": Kind(**LANES),
    "lanes of TensorDict": Kind(cls=rl.TensorDictReplayBuffer, **LANES),
    "generations": Kind(writer=lambda: TensorDictRoundRobinWriter(track_generations=True), **LANES),
    "prioritized": Kind(sampler=prioritized()),
    "prioritized lanes": Kind(sampler=prioritized(2 * CAPACITY), **LANES),
    "without replacement": Kind(sampler=rl.SamplerWithoutReplacement, is_seeded=True),
    "drop last": Kind(sampler=lambda: rl.SamplerWithoutReplacement(drop_last=True), is_seeded=True),
    "slices": Kind(sampler=lambda: rl.SliceSampler(slice_len=1, end_key=("next", "done"))),
    "staleness": Kind(sampler=lambda: StalenessAwareSampler(max_staleness=90), data=versioned),
    "single tensor": Kind(data=tensors),
    "tree": Kind(data=trees),
    "largest": Kind(writer=lambda: TensorDictMaxValueWriter(rank_key="obs")),
    "flat": Kind(**FLAT),
    "flat lanes": Kind(**FLAT, **LANES),
    "nested": Kind(**NESTED),
    "nested lanes": Kind(**NESTED, **LANES),
}


def leaves(value):
    """Tensors of rows by path; the ends at the root, which flat checkpointers
    make, left out."""
    if isinstance(value, torch.Tensor):
        return {(): value}
    if isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        items = value.items()
    return {(name,) + path: leaf for name, inner in items for path, leaf in leaves(inner).items()
            if (name,) != ("done",)}


def check_rows(want, got):
    want, got = leaves(want), leaves(got)
    assert want.keys() == got.keys(), (list(want), list(got))
    for path, leaf in want.items():
        assert leaf.dtype == got[path].dtype and torch.equal(leaf, got[path]), (path, leaf, got[path])


def check_close(want, got):
    assert torch.allclose(torch.as_tensor(want), torch.as_tensor(got), rtol=1e-7, atol=0), (want, got)


def tree_values(tree, count):
    return torch.as_tensor([float(tree[i]) for i in range(count)], dtype=torch.float64)


def check_sampler(want, got, rows):
    assert type(want) is type(got)
    if isinstance(want, rl.PrioritizedSampler):
        for name in ("_alpha", "_beta", "_eps"):
            assert getattr(want, name) == getattr(got, name), name
        check_close(float(want._max_priority[0]), float(got._max_priority[0]))
        # Within a float32's last bit, where both keep their numbers.
        for tree in ("_sum_tree", "_min_tree"):
            a, b = (tree_values(getattr(s, tree), rows) for s in (want, got))
            assert torch.allclose(a, b, rtol=1.2e-7, atol=0), (tree, a, b)
    if isinstance(want, rl.SamplerWithoutReplacement):
        assert want.len_storage == got.len_storage and want.drop_last == got.drop_last
        assert want.ran_out == got.ran_out
        if want._sample_list is None:
            assert got._sample_list is None
        else:
            assert torch.equal(want._sample_list, got._sample_list)
    if isinstance(want, StalenessAwareSampler):
        assert want.state_dict() == got.state_dict()


def check_same(want, got):
    assert len(want) == len(got), (len(want), len(got))
    check_rows(want[:], got[:])
    check_sampler(want._sampler, got._sampler, len(want))
    a, b = want._writer, got._writer
    assert (a._cursor, a._write_count) == (b._cursor, b._write_count), (a._cursor, b._cursor, b._write_count)
    assert getattr(a, "_current_top_values", None) == getattr(b, "_current_top_values", None)
    if getattr(a, "_generation", None) is not None:
        assert torch.equal(a._generation, b._generation)
    assert want._batch_size == got._batch_size


def fill(kind, size):
    buffer = kind()
    buffer.extend(kind.data(0, size // 2, kind.lanes))
    buffer.extend(kind.data(size // 2, size - size // 2, kind.lanes))
    if isinstance(buffer._sampler, rl.PrioritizedSampler) and not kind.lanes:
        buffer.update_priority(torch.arange(0, len(buffer), 2), torch.arange(0, len(buffer), 2) + 0.3)
        buffer.update_priority(torch.tensor([4]), torch.tensor([12.5]))
        buffer.update_priority(torch.tensor([4]), torch.tensor([0.25]))
    if isinstance(buffer._sampler, StalenessAwareSampler):
        buffer._sampler.load_state_dict({"consumer_version": 80, "max_staleness": 85})
    if isinstance(buffer._sampler, rl.SamplerWithoutReplacement):
        buffer.sample()
    return buffer


def load(kind, path):
    buffer = kind()
    if kind.data in (tensors, trees):  # loaded into what is there
        buffer.extend(kind.data(50, 1))
    buffer.loads(path)
    return buffer


class Exchange:
    def __init__(self, folder, copy_replay, run):
        self.folder, self.copy_replay, self.run = folder, copy_replay, run

    def copy(self, how, *paths):
        status, _, error = self.run(self.copy_replay, how, *paths)
        assert status == 0, error

    def there_and_back(self, name, kind, size, how):
        path = os.path.join(self.folder, "%s_%d" % (name.replace(" ", "_"), size))
        first = fill(kind, size)
        if not os.path.exists(path):
            first.dumps(path)
        assert os.path.exists(os.path.join(path, "storage", "_storage_shape")) == bool(kind.checkpointer)
        again = path + "_" + how
        self.copy(how, path, again)
        want, got = load(kind, path), load(kind, again)  # what both sides see on the disk
        check_same(want, got)
        check_same(first, got)
        if kind.is_seeded:
            for _ in range(4):
                a, b = (buffer.sample(return_info=True)[1]["index"] for buffer in (want, got))
                assert torch.equal(torch.as_tensor(a), torch.as_tensor(b)), (a, b)
        # The next extend goes on at the cursor. (TensorDictReplayBuffer takes no
        # single step of several lanes.)
        for count in (3 if kind.lanes else 1, 5):
            for buffer in (want, got):
                buffer.extend(kind.data(200 + size + count, count, kind.lanes))
            check_same(want, got)
        got.sample()

    def pickles(self):
        path = os.path.join(self.folder, "pickles")
        transform = ObservationNorm(loc=1.0, scale=2.0, in_keys=["obs"])
        buffer = rl.ReplayBuffer(storage=rl.LazyTensorStorage(CAPACITY), batch_size=2, prefetch=2, transform=transform)
        buffer.extend(steps(0, 5))
        buffer.sample()
        buffer.dumps(path)
        status, _, error = self.run(self.copy_replay, "rewrite", path, path + "_again")
        assert status == 1 and "refused: prefetch.pkl, transform.t" in error, error
        # The rest is there.
        got = load(KINDS["tensors"], path + "_again")
        check_rows(steps(0, 5), got[:])

    def made(self, name, steps_written, lanes, checkpointer):
        kind = Kind(sampler=lambda: rl.PrioritizedSampler(CAPACITY * max(lanes, 1), alpha=0.5, beta=0.4),
                    lanes=(2,) if lanes == 2 else (), checkpointer=checkpointer)
        buffer = kind()
        buffer.loads(os.path.join(self.folder, "made", name))
        first = kind()
        made = steps(0, steps_written, kind.lanes).exclude("action", ("next", "reward"))
        for part in made.split(5, dim=-1):
            first.extend(part)
        for b in (first, buffer):
            assert b._writer._cursor == steps_written % CAPACITY
            assert b._writer._write_count == steps_written
        check_rows(first[:], buffer[:])
        assert buffer._batch_size == 4
        sampler = buffer._sampler
        assert (sampler._alpha, sampler._beta, sampler._eps) == (0.5, 0.4, 1e-8)
        # Rows were given their place + 1, those that were not drawn kept 1.
        values = tree_values(sampler._sum_tree, len(buffer))
        place = torch.arange(len(buffer)) // max(lanes, 1)
        was_given = torch.isclose(values, (place + 1.0).double().sqrt(), rtol=1e-6)
        assert (was_given | torch.isclose(values, torch.ones(()).double(), rtol=1e-6)).all(), values
        assert was_given.sum() > len(buffer) // 2
        buffer.extend(made[..., :3])
        first.extend(made[..., :3])
        check_rows(first[:], buffer[:])
        sample, info = buffer.sample(64, return_info=True)
        assert torch.isfinite(torch.as_tensor(info["priority_weight"])).all() and len(sample) == 64
        assert len(buffer.sample()) == 4

    def loaded_as_the_page_says(self, name, lanes):
        """docs/formats/torchrl_replay_buffer.md, "In Python"."""
        path = os.path.join(self.folder, "made", name)
        slots = CAPACITY * lanes

        def storage():
            return rl.LazyMemmapStorage(slots, ndim=2) if lanes > 1 else rl.LazyMemmapStorage(slots)
        sampler = rl.PrioritizedSampler(slots, alpha=0.5, beta=0.4)
        prioritized_buffer = rl.ReplayBuffer(storage=storage(), sampler=sampler, batch_size=32)
        prioritized_buffer.loads(path)
        plain = path + "_plain"
        shutil.copytree(path, plain)
        shutil.rmtree(os.path.join(plain, "sampler"))
        uniform_buffer = rl.ReplayBuffer(storage=storage(), batch_size=32)
        uniform_buffer.loads(plain)
        for buffer in (prioritized_buffer, uniform_buffer):
            batch = buffer.sample()
            assert batch.batch_size == torch.Size([4]), batch
            assert torch.equal(batch["next", "obs"], batch["obs"] + 1)


def run(exchange, copy_replay, run_command):
    folder = os.path.join(exchange.folder, "replay_buffers")
    os.makedirs(folder)
    replay = Exchange(folder, copy_replay, run_command)
    for name, kind in KINDS.items():
        for size in kind.sizes:
            for how in ("rewrite", "reload"):
                exchange.check("replay buffer, %s, %d steps, %s" % (name, size, how),
                               lambda: replay.there_and_back(name, kind, size, how))
    exchange.check("replay buffer with pickles", replay.pickles)
    if not exchange.check("replay buffers, made by Rill", lambda: replay.copy("make", os.path.join(folder, "made"))):
        return
    for made, count, lanes in (("part", 7, 1), ("full", 17, 1), ("lanes", 17, 2)):
        for form, checkpointer in (("dict", None), ("flat", FlatStorageCheckpointer),
                                   ("nested", NestedStorageCheckpointer)):
            name = made + "_" + form
            exchange.check("replay buffer %s, loaded by TorchRL" % name,
                           lambda: replay.made(name, count, lanes, checkpointer))
        exchange.check("replay buffer %s, loaded by the page's lines" % made,
                       lambda: replay.loaded_as_the_page_says(made + "_dict", lanes))
