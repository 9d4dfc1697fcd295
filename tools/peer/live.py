# SPDX-License-Identifier: Apache-2.0
"""tensordict looks at a storage while Rill writes it."""
import os
import subprocess

import torch
from tensordict import TensorDict

CAPACITY = 100  # Steps of a lane, as write_live has it.


def expected(order, lanes, written):
    """Ids of all slots, 0 where no row is yet: [C], [C, L] or [L, C]."""
    ids = torch.zeros(lanes, CAPACITY, dtype=torch.int64)
    for step in range(max(0, written - CAPACITY), written):
        ids[:, step % CAPACITY] = 1000 * torch.arange(lanes) + step
    if lanes == 1:
        return ids[0]
    return ids.T if order == "time_major" else ids


def check(td, want, written):
    assert td.batch_size == want.shape, (td.batch_size, want.shape)
    got = td["id"][..., 0]
    assert torch.equal(got, want), "id after %d steps: %s" % (written, got)
    values = td["next", "a b"]
    for i in range(3):
        is_there = (want != 0) | (values[..., 2] != 0)
        assert torch.equal(values[..., i], torch.where(is_there, want + i, 0).float()), written


def watch(exchange, write_live, order, lanes):
    path = os.path.join(exchange.folder, "live_%s_%d" % (order, lanes))
    with subprocess.Popen([write_live, path, order, str(lanes)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "0\n"
        sizes = {name: os.path.getsize(os.path.join(path, name)) for name in ("id.memmap", "rill.commit")}
        early = TensorDict.load_memmap(path)  # Mapped before anything is written.
        written = 0
        for steps in (1, 40, 59, 30, 250):
            writer.stdin.write("%d\n" % steps)
            writer.stdin.flush()
            written += steps
            assert writer.stdout.readline() == "%d\n" % written
            want = expected(order, lanes, written)
            check(early, want, written)
            check(TensorDict.load_memmap(path), want, written)
        writer.stdin.close()
        assert writer.wait() == 0
    for name, size in sizes.items():
        assert os.path.getsize(os.path.join(path, name)) == size, name + " was resized"


def run(exchange, write_live):
    for order in ("lane_major", "time_major"):
        for lanes in (1, 3):
            exchange.check("live storage, %s, %d lanes" % (order, lanes),
                           lambda: watch(exchange, write_live, order, lanes))
