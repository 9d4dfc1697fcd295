# SPDX-License-Identifier: Apache-2.0
"""What write_samples.cc makes from nothing, and that tensordict reads it."""
import json
import os

import torch
from tensordict import LazyStackedTensorDict, NonTensorData, NonTensorStack, TensorDict, lazy_stack

from cases import FLOATS, FORMS, INTEGERS
from describe import describe, difference

ENDINGS = {"directory": "", "tdz": ".tdz", "consolidated": ".bin"}


def every_dtype():
    counted = torch.arange(6).reshape(3, 2)
    td = TensorDict({name: counted.to(getattr(torch, name))
                     for name in INTEGERS + FLOATS + ("complex64", "complex128")}, [3])
    td["bool"] = counted % 2 == 1
    return td


def nested():
    x = torch.arange(12.).reshape(2, 2, 3)
    td = TensorDict({"observation": x, "next": {"observation": x.transpose(0, 1)}, "a/b c": {"d.e": x},
                     "none": TensorDict({}, [2, 2, 5]), "empty": torch.zeros(2, 2, 0, dtype=torch.int64),
                     "info": {}}, [2, 2])
    td["info", "task"] = NonTensorData({"name": "reach", "ids": [1, None]}, batch_size=[2, 2])
    return td


def episodes():
    return LazyStackedTensorDict(*[TensorDict({"next": {"x": torch.arange(float(n))}}, []) for n in (2, 3)], stack_dim=0)


def uneven():
    return lazy_stack([TensorDict({"next": {"x": torch.arange(2. * n).reshape(n, 2)}}, [n]) for n in (3, 1, 4)], 0)


def rare():
    rows = torch.nested.nested_tensor([torch.arange(6, dtype=torch.int32).reshape(2, 3),
                                       torch.arange(3, dtype=torch.int32).reshape(1, 3)])
    return TensorDict({"names": NonTensorStack("left", {"a": [1, None]}), "in": {"episodes": episodes()},
                       "rows": rows}, [2])


# What each is; all are saved in every form.
SAMPLES = {
    "dtypes": every_dtype,
    "nested": nested,
    "nothing": lambda: TensorDict({}, [4]),
    "rare": rare,
    "episodes": episodes,
    "uneven": uneven,
    "below": lambda: TensorDict({"data": {"episodes": uneven()}}, [3]),
}


def check(want, got):
    found = difference(want, got)
    if found:
        raise AssertionError(found)


def created(folder):
    got = TensorDict.load_memmap(os.path.join(folder, "created"))
    want = TensorDict({"x": torch.zeros(5, 2, dtype=torch.int16),
                       "next": {"y": torch.zeros(5, dtype=torch.bool)}}, [5])
    check(describe(want), describe(got))
    got["x"].fill_(3)  # The files are the tensors of both.
    check([3] * 10, torch.from_file(os.path.join(folder, "created", "x.memmap"), size=10,
                                    dtype=torch.int16).tolist())


def replay(folder, inspect, run):
    """The rows of a saved replay buffer, as both sides see them."""
    path = os.path.join(folder, "replay")
    status, out, error = run(inspect, "--json", "--values", path)
    assert status == 0, error
    got = json.loads(out)
    assert got["manifest"]["kind"] == "replay_buffer", got["manifest"]
    assert "storage" in got["parts"], got["parts"]
    chunk = os.path.join(path, "storage", "rows", "0-0.bin")
    status, out, error = run(inspect, "--json", "--values", chunk)
    assert status == 0, error
    rows = json.loads(out)
    assert rows["batch_shape"] == [32] and rows["leaves"], rows["batch_shape"]
    check(describe(TensorDict.from_consolidated(chunk)), rows)


def run(exchange, write_samples, read, run_command):
    folder = os.path.join(exchange.folder, "samples")

    def write():
        status, _, error = run_command(write_samples, folder)
        assert status == 0, error

    if not exchange.check("samples, written by Rill", write):
        return
    for name, make in SAMPLES.items():
        for form in FORMS:
            path = os.path.join(folder, name + ENDINGS[form])
            exchange.check("sample %s as %s, read by tensordict" % (name, form),
                           lambda: check(describe(make()), describe(read(path, form))))
    exchange.check("sample created from a spec", lambda: created(folder))
    exchange.check("sample replay buffer", lambda: replay(folder, exchange.inspect, run_command))
