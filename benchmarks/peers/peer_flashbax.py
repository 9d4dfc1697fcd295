# SPDX-License-Identifier: Apache-2.0
"""flashbax: jitted, with the state's memory given to each call."""
import importlib.metadata

import flashbax
import jax
import jax.numpy as jnp

from cases import arrays_of
from prepared import Missing


def flat(rows, take):
    return {"_".join(key) if isinstance(key, tuple) else key: take(value) for key, value in rows.items()}


class Participant:
    version = "%s, jax %s" % (importlib.metadata.version("flashbax"), jax.__version__)

    def filled(self, row, capacity, batch):
        if row == "56KB":
            raise Missing("not measured")
        buffer = flashbax.make_item_buffer(max_length=capacity, min_length=1, sample_batch_size=batch, add_batches=True)
        state = buffer.init(flat(arrays_of(row, 1), lambda value: jnp.asarray(value[0])))
        self.add = jax.jit(buffer.add, donate_argnums=0)
        rows = flat(arrays_of(row, min(capacity, 10_000)), jnp.asarray)
        for _ in range(capacity // len(rows["action"])):
            state = self.add(state, rows)
        return buffer, state

    def sample(self, row, capacity, batch):
        buffer, state = self.filled(row, capacity, batch)
        draw = jax.jit(buffer.sample)
        keys = [jax.random.PRNGKey(0)]

        def step():
            keys[0], key = jax.random.split(keys[0])
            jax.block_until_ready(draw(state, key))
        return step

    def extend(self, row, capacity, count):
        _, state = self.filled(row, capacity, 1)
        rows = flat(arrays_of(row, count), jnp.asarray)
        states = [state]

        def step():
            states[0] = jax.block_until_ready(self.add(states[0], rows))
        return step
