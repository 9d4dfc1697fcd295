#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it takes until a sample is JAX's, on its device of the CPU.

usage: jax_speed.py

As replay_speed.py, whose rows these are: the least of 7 rounds, a call's mean in each. Run it in an
environment with the wheel and jax.
"""
import jax
import numpy as np

from replay_speed import SMALL, WIDE, Rill, seconds


def by_dlpack(batch):
    """Arrays that share the batch's memory."""
    return {key: jax.numpy.from_dlpack(value) for key, value in batch.items()}


def main():
    cases = (("sample", lambda batch: batch), ("and jax.numpy.from_dlpack of each leaf", by_dlpack),
             ("and jax.device_put", jax.device_put),
             ("and jax.numpy.array of each leaf, a copy", lambda batch: jax.tree.map(jax.numpy.array, batch)),
             ("and a jitted sum of all leaves", jax.jit(lambda batch: jax.tree.map(lambda x: x.sum(), batch))))
    jax.config.update("jax_enable_x64", True)  # Rows have int64.
    print("%-44s%10s%10s" % ("us", "256x47B", "256x3KB"))
    for name, move in cases:
        cells = []
        for kind in (SMALL, WIDE):
            sample = Rill().sample(kind)
            cells.append(seconds(lambda: jax.block_until_ready(move(sample()))) * 1e6)
        print("%-44s" % name + "".join("%10.1f" % cell for cell in cells), flush=True)
    shared = Rill().sample(WIDE)()["pixels"]
    there = jax.numpy.from_dlpack(shared)
    print("shares memory: %s" % (there.unsafe_buffer_pointer() == shared.ctypes.data))
    assert np.array_equal(there, shared)


if __name__ == "__main__":
    main()
