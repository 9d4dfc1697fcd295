# SPDX-License-Identifier: Apache-2.0
"""Whether a process stays as large as it is."""
import os
import pathlib
import statistics

NAMES = ("memory in KiB", "descriptors", "threads")


def sample(pid):
    """Anonymous memory in KiB, open descriptors, threads."""
    folder = pathlib.Path("/proc", str(pid))
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return (int(status["RssAnon"].split()[0]), len(os.listdir(folder / "fd")), int(status["Threads"]))


def medians(samples):
    """Of each number: in the second third of the samples, and in the last one.
    Medians, since connections come and go."""
    third = len(samples) // 3
    return [tuple(statistics.median(one[i] for one in part) for part in (samples[third:2 * third], samples[2 * third:]))
            for i in range(len(NAMES))]


def summary(samples):
    return ", ".join(f"{name} {warm:g} to {last:g}" for name, (warm, last) in zip(NAMES, medians(samples)))


def growth(samples):
    """What grew, as sentences. Allocators take a little more."""
    faults = []
    for i, (name, (warm, last)) in enumerate(zip(NAMES, medians(samples))):
        most = warm * 1.03 + 1024 if i == 0 else warm + 1
        if last > most:
            faults.append(f"{name}: got {last:g} at the end, want at most {most:g}, of {warm:g} before")
    return faults
