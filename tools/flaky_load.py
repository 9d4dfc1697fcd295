#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other programs' load on processors and disk, until it is ended.

usage: flaky_load.py --seed=N FOLDER

Plays one part after another: some processes that compute, some that write files
to FOLDER, sync and remove them, for some seconds; also none. What it plays is
random, and the same for the same seed and number of processors.
"""
import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time

MIB = 1 << 20


def parts(seed, processors):
    """Endless: (processes that compute, processes that write, seconds)."""
    rng = random.Random(seed)
    while True:
        yield rng.randint(0, 2 * processors), rng.randint(0, 2), rng.uniform(0.2, 5)


def compute(end):
    value = 1
    while time.monotonic() < end:
        for _ in range(10_000):
            value = value * 6364136223846793005 % 18446744073709551557


def write(end, folder, size):
    while time.monotonic() < end:
        with tempfile.TemporaryFile(dir=folder) as f:
            f.write(bytes(size))
            f.flush()
            os.fsync(f.fileno())


def play(part, folder, rng):
    """True if it was ended."""
    computing, writing, seconds = part
    end = time.monotonic() + seconds
    players = [multiprocessing.Process(target=compute, args=(end,)) for _ in range(computing)]
    players += [multiprocessing.Process(target=write, args=(end, folder, rng.randint(1, 64) * MIB))
                for _ in range(writing)]
    for player in players:
        player.start()
    ended = signal.sigtimedwait({signal.SIGTERM}, seconds) is not None
    for player in players:
        player.kill()
        player.join()
    return ended


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("folder")
    args = parser.parse_args(argv)
    # An end between the start of a player and the note of it would leave it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    rng = random.Random(args.seed)
    for part in parts(args.seed, os.cpu_count()):
        if play(part, args.folder, rng):
            break


if __name__ == "__main__":
    main(sys.argv[1:])
