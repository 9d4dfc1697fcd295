#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tensordict takes for the operations of tensordict:tensor_dict_benchmark.

usage: python tools/peer/tensordict_speed.py    (with tensordict and torch)

Six keys of [64, 4] float32, one thread; medians of many rounds, in us.
"""
import statistics
import time

import tensordict
import torch
from tensordict import TensorDict

torch.set_num_threads(1)
KEYS = ("observation", "action", "reward", "done", "value", "log_prob")


def make():
    return TensorDict({key: torch.zeros(64, 4) for key in KEYS}, [64])


def median_us(operation, rounds=40, seconds=0.02):
    operation()
    start = time.perf_counter()
    operation()
    once = max(time.perf_counter() - start, 1e-7)
    calls = max(1, int(seconds / once))
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            operation()
        times.append((time.perf_counter() - start) / calls)
    return statistics.median(times) * 1e6


def main():
    td, other = make(), make()
    tensors = {key: torch.zeros(64, 4) for key in KEYS}
    nested = TensorDict({"next": make()}, [64])
    rows = torch.randint(0, 64, (32,))
    mask = torch.arange(64) % 2 == 0
    dicts = [make() for _ in range(64)]
    print("tensordict", tensordict.__version__, "torch", torch.__version__)
    for name, operation in (
            ("get", lambda: td.get("log_prob")),
            ("get, nested key", lambda: nested.get(("next", "log_prob"))),
            ("create of given tensors", lambda: TensorDict(tensors, [64])),
            ("create with its tensors", make),
            ("index a row", lambda: td[17]),
            ("slice", lambda: td[8:40]),
            ("index 32 rows", lambda: td[rows]),
            ("mask", lambda: td[mask]),
            ("clone", td.clone),
            ("copy (shares bytes)", lambda: td.clone(False)),
            ("copy from", lambda: td.update_(other)),
            ("stack 64 dictionaries", lambda: torch.stack(dicts)),
            ("add", lambda: td + other),
            ("apply", lambda: td.apply(lambda x: x)),
            ("unbind 64", lambda: td.unbind(0)),
            ("permute-like view", lambda: td.reshape(8, 8)),
            ("flatten keys", lambda: nested.flatten_keys("."))):
        print("%-26s %10.2f" % (name, median_us(operation)), flush=True)


if __name__ == "__main__":
    main()
