# SPDX-License-Identifier: Apache-2.0
"""What the processes of process_collectors_test.py do: each collects with a policy of Python."""
import numpy as np
import rill


class Policy:
    """Leans as the shared weight says, and gives it beside the action."""

    output_spec = rill.specs.Composite(weight=rill.specs.Unbounded((1,)))

    def __init__(self, weight):
        self.weight = weight

    def __call__(self, root):
        weight = self.weight.value
        return {"action": (root["observation"][:, 2] * weight > 0).astype(np.int64),
                "weight": np.full((len(root["observation"]), 1), weight, np.float32)}


def collector_of(weight, seed, total_frames=-1):
    return rill.SyncDataCollector(rill.envs.CartPole(1), Policy(weight), frames_per_batch=20, total_frames=total_frames,
                                  seed=seed)


def rows_of(batch, row=slice(None)):
    """The rows of the one lane of a batch; or one of them."""
    return {key: rows_of(value, row) if isinstance(value, dict) else value[0][row] for key, value in batch.items()}


def work(writer, worker, weight, has_changed):
    """Waits in the middle until the learner has changed the weight."""
    with writer, collector_of(weight, seed=worker, total_frames=4000) as collector:
        for batch in collector:
            writer.extend(rows_of(batch))
            if collector.frames == 2000:
                assert has_changed.wait(60)
