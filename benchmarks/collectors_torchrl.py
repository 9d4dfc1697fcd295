# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/collectors measures, with TorchRL's collector on one core.

usage: collectors_torchrl.py [--quick]
"""
import os
import sys
import time
import warnings

warnings.filterwarnings("ignore")
if os.environ.get("RILL_GYMNASIUM_PATH"):
    sys.path.append(os.environ["RILL_GYMNASIUM_PATH"])

import torch
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer

LANES = 64
TIME = 16  # Shorter batches than Rill's: a step of all lanes takes milliseconds.


def fastest(collector, use, turns):
    """Frames a second of the fastest of `turns` batches."""
    best = 0
    batches = iter(collector)
    use(next(batches))
    for _ in range(turns):
        begin = time.perf_counter()
        use(next(batches))
        best = max(best, LANES * TIME / (time.perf_counter() - begin))
    return best


def main(quick):
    torch.set_num_threads(1)
    try:
        from torchrl.envs import Compose, GymEnv, RewardSum, SerialEnv, StepCounter, TransformedEnv

        def make():
            return SerialEnv(LANES, lambda: GymEnv("CartPole-v1"))

        GymEnv("CartPole-v1")
    except Exception as error:  # Whatever it is, there is nothing to measure.
        print("TorchRL: skipped: %s" % error)
        return
    turns = 3 if quick else 15
    print("TorchRL, Collector, CartPole, 64 lanes, random actions, one core")
    transformed = lambda: TransformedEnv(make(), Compose(StepCounter(), RewardSum()))
    buffer = ReplayBuffer(storage=LazyTensorStorage(LANES * 4096))
    for name, env, use in (
        ("to nowhere", make, lambda batch: None),
        ("with StepCounter and RewardSum, into one", transformed, lambda batch: buffer.extend(batch.reshape(-1))),
    ):
        collector = Collector(env, None, frames_per_batch=LANES * TIME, total_frames=-1)
        print("  %-44s %10.4f M frames/s" % (name, fastest(collector, use, turns) / 1e6), flush=True)
        collector.shutdown()


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
