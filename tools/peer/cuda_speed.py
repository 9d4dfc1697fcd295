#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What torch takes for the reads of //replay/devices:replay_buffer_cuda_benchmark.

usage: cuda_speed.py    (with torch and a CUDA device)

A TorchRL storage on a device is one tensor a leaf, and a sample is an index of
each. "ReadColumns" enqueues a hundred such samples and waits once; "SampleOnDevice"
draws the indices on the device and waits for each sample, as RandomSampler with
LazyTensorStorage does below its Python; "SampleFromHost" indexes pageable host
memory, pins the batch and copies it; "Extend" moves rows of the host there and
writes them by index. Medians of nine.
"""
import statistics
import time

import torch

KINDS = {
    "HalfCheetah": (torch.float32, 17, 1_000_000),
    "Humanoid": (torch.float32, 376, 100_000),
    "Atari": (torch.uint8, 28_224, 10_000),
}
IN_FLIGHT = 100


def filled(dtype, observation, capacity, device):
    def seen():
        if dtype == torch.uint8:
            return torch.randint(0, 256, (capacity, observation), dtype=dtype, device=device)
        return torch.rand(capacity, observation, device=device)
    return [seen(), torch.rand(capacity, 6, device=device), seen(),
            torch.rand(capacity, 1, device=device),
            torch.zeros(capacity, 1, dtype=torch.bool, device=device)]


def median_seconds(run, least=9):
    run()
    times = []
    for _ in range(least):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def report(name, seconds, size):
    print(f"{name:34} {seconds * 1e6:10.1f} us {size / seconds / 1e9:9.1f} GB/s", flush=True)


def main():
    print(torch.__version__, torch.cuda.get_device_name())
    for name, (dtype, observation, capacity) in KINDS.items():
        leaves = filled(dtype, observation, capacity, "cuda")
        host = filled(dtype, observation, capacity, "cpu")
        for batch in (256, 4096):
            size = sum(leaf[0].numel() * leaf.element_size() for leaf in leaves) * batch
            rows = [torch.randint(0, capacity, (batch,), device="cuda") for _ in range(IN_FLIGHT)]

            def reads():
                for row in rows:
                    for leaf in leaves:
                        leaf[row]

            def sample():
                row = torch.randint(0, capacity, (batch,), device="cuda")
                return [leaf[row] for leaf in leaves]

            def samples():
                for _ in range(20):
                    sample()
                    torch.cuda.synchronize()

            def from_host():
                for _ in range(5):
                    row = torch.randint(0, capacity, (batch,))
                    moved = [leaf[row].pin_memory().to("cuda", non_blocking=True) for leaf in host]
                    torch.cuda.synchronize()
                    del moved

            report(f"ReadColumns/{name}/{batch}", median_seconds(reads) / IN_FLIGHT, size)
            report(f"SampleOnDevice/{name}/{batch}", median_seconds(samples) / 20, size)
            report(f"SampleFromHost/{name}/{batch}", median_seconds(from_host) / 5, size)

        for rows in (1, 1000):
            batch = [torch.rand(rows, *leaf.shape[1:]).to(leaf.dtype) for leaf in leaves]
            size = sum(leaf.numel() * leaf.element_size() for leaf in batch)

            def extends():
                for _ in range(20):
                    at = torch.arange(rows)
                    for leaf, new in zip(leaves, batch):
                        leaf[at] = new.to("cuda")
                    torch.cuda.synchronize()

            report(f"Extend/{name}/{rows}", median_seconds(extends) / 20, size)


if __name__ == "__main__":
    main()
