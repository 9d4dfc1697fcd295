# SPDX-License-Identifier: Apache-2.0
"""What people write by hand: an array a key, and a ring."""
import numpy as np

from cases import arrays_of


class Participant:
    version = np.__version__

    def __init__(self):
        self.random = np.random.default_rng(1)

    def sample(self, row, capacity, batch):
        rows = arrays_of(row, capacity)

        def step():
            index = self.random.integers(0, capacity, batch)
            return {key: value[index] for key, value in rows.items()}
        return step

    def extend(self, row, capacity, count):
        rows = arrays_of(row, capacity)
        new = arrays_of(row, count)
        place = [0]

        def step():
            for key, value in new.items():
                rows[key][place[0]:place[0] + count] = value
            place[0] = (place[0] + count) % (capacity - count)
        return step

    def dict(self, operation):
        dicts = [{key: np.zeros((64, 4), np.float32) for key in "abcdef"} for _ in range(64)]
        first = dicts[0]
        return {"create": lambda: {key: first[key] for key in "abcdef"},
                "get": lambda: first["f"],
                "clone": lambda: {key: value.copy() for key, value in first.items()},
                "stack": lambda: {key: np.stack([one[key] for one in dicts]) for key in first}}[operation]
