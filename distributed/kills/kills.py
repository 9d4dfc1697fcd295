#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the programs of a run over Arrow Flight at random, starts each again, and
judges what became of every row (judge.py). Or, as a soak, kills some of them
for a long time, and judges whether the others grow (flat.py).

usage: kills.py [--kills=N] [--soak=SECONDS] [--seed=N] PROGRAM
"""
import argparse
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

import flat
import judge

ROLES = ("learner", "shard", "collector")
PATIENCE = 120  # Seconds in which the run goes on behind a kill, however busy the machine is.


class Broken(Exception):
    """The run did not go on."""


def free_addresses(count):
    """Below the ports that a kernel gives to clients: one of these would take
    that of a killed server before it is back."""
    addresses, port = [], random.randrange(20000, 30000)
    while len(addresses) < count:
        port += 1
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        addresses.append(f"grpc://127.0.0.1:{port}")
    return addresses


class Part:
    """A program of the run, over all its starts."""

    def __init__(self, program, directory, role, number, **flags):
        self.role, self.number, self.starts = role, number, 0
        self.directory = directory
        self.command = [program, f"--role={role}", f"--number={number}", f"--directory={directory}",
                        *(f"--{name}={value}" for name, value in flags.items())]
        self.process = None

    def __str__(self):
        return f"{self.role} {self.number}"

    def start(self):
        self.process = subprocess.Popen([*self.command, f"--start={self.starts}"])
        self.starts += 1

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def newest(self):
        """The words of the newest lines of its ledger."""
        path = self.directory / f"{self.role}-{self.number}-{self.starts - 1}"
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - 4096))
                text = file.read().decode()
        except FileNotFoundError:
            return []
        return [line.split(" ") for line in text.split("\n")[:-1]]

    def last(self, word):
        """The first number of its newest line of that word; None without one."""
        return next((int(line[2]) for line in reversed(self.newest()) if len(line) > 2 and line[1] == word), None)

    def saves(self):
        """When its checkpoints were made, as far as its newest lines say."""
        return [line[0] for line in self.newest() if line[1:] == ["saved"]]


class Run:
    def __init__(self, program, directory, learners, **flags):
        addresses = free_addresses(2 + learners)
        shards, learning = ",".join(addresses[:2]), addresses[2:]

        def make(role, number, **more):
            return Part(program, directory, role, number, shards=shards, **more, **flags)
        self.directory = directory
        self.parts = {
            "shard": [make("shard", i, address=addresses[i]) for i in range(2)],
            "learner": [make("learner", i, address=learning[i]) for i in range(learners)],
            "collector": [make("collector", i, learner=learning[i % learners]) for i in range(4)]}

    def all(self):
        return [part for parts in self.parts.values() for part in parts]

    def check_alive(self):
        for part in self.all():
            if part.process.poll() is not None:
                raise Broken(f"{part} ended with {part.process.returncode}, though nobody killed it")

    def await_progress(self):
        """Rows of each collector are acknowledged, and each learner has batches."""
        waiting = [(part, word, part.last(word) or 0) for role, word in (("collector", "rows"), ("learner", "batches"))
                   for part in self.parts[role]]
        deadline = time.monotonic() + PATIENCE
        while waiting:
            self.check_alive()
            if time.monotonic() > deadline:
                raise Broken(f"{waiting[0][0]} has made no step for {PATIENCE} s")
            waiting = [one for one in waiting if (one[0].last(one[1]) or 0) <= one[2]]
            time.sleep(0.02)

    def await_save(self, shard):
        """Behind a checkpoint a shard has rows whose acknowledgement is on its way, and
        which are offered again where that is lost."""
        before, deadline = shard.saves(), time.monotonic() + PATIENCE
        while shard.saves() == before:
            self.check_alive()
            if time.monotonic() > deadline:
                raise Broken(f"{shard} has made no checkpoint for {PATIENCE} s")
            time.sleep(0.002)

    def restart(self, victim, rng):
        victim.kill()
        time.sleep(rng.random() * 0.1)
        victim.start()

    def end(self):
        """Collectors first: their last rows go to shards that are there."""
        for role in ("collector", "learner", "shard"):
            (self.directory / f"stop-{role}").touch()
            for part in self.parts[role]:
                if part.process.wait(PATIENCE) != 0:
                    raise Broken(f"{part} ended with {part.process.returncode}")


def kill_all_kinds(run, kills, rng):
    run.await_progress()
    order = kills * list(ROLES)
    rng.shuffle(order)
    for i, role in enumerate(order):
        time.sleep(rng.random() * 0.4)
        victim = rng.choice(run.parts[role])
        if role == "shard" and rng.random() < 0.5:
            run.await_save(victim)
            time.sleep(rng.random() * 0.02)
        run.restart(victim, rng)
        # Else the next one dies while this one is coming back.
        if rng.random() < 0.7:
            run.await_progress()
        if (i + 1) % 50 == 0:
            print(f"{i + 1} of {len(order)} kills", flush=True)
    run.await_progress()


def soak(run, seconds, rng):
    """Kills all that have odd numbers, and the last collector but one: those that
    stay have peers that go, and servers have clients that go. Returns samples."""
    run.await_progress()
    victims = [run.parts["shard"][1], run.parts["learner"][1], *run.parts["collector"][2:]]
    stay = [part for part in run.all() if part not in victims]
    samples = {str(part): [] for part in stay}
    start = time.monotonic()
    kills = 0
    while time.monotonic() < start + seconds:
        run.restart(rng.choice(victims), rng)
        kills += 1
        time.sleep(rng.random())
        run.check_alive()
        for part in stay:
            samples[str(part)].append(flat.sample(part.process.pid))
        if kills % 60 == 0:
            print(f"{time.monotonic() - start:4.0f} s, {kills} kills; " + "; ".join(
                "%s: %d KiB, %d descriptors, %d threads" % (name, *of_part[-1]) for name, of_part in samples.items()),
                flush=True)
    run.await_progress()
    print(f"{kills} kills")
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of each kind")
    parser.add_argument("--soak", type=int, default=0, help="seconds of a soak, in place of the kills")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of the kills")
    parser.add_argument("program")
    flags = parser.parse_args()
    print(f"seed {flags.seed}", flush=True)
    rng = random.Random(flags.seed)
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        # A soak's shards are full soon, so that rows are no growth.
        run = Run(flags.program, pathlib.Path(folder), **(
            {"learners": 2, "lane_rows": 2000} if flags.soak else {"learners": 1}))
        try:
            for part in run.all():
                part.start()
            if flags.soak:
                for name, samples in soak(run, flags.soak, rng).items():
                    print(f"{name}: {flat.summary(samples)}")
                    # Too few say nothing.
                    faults += [f"{name}: {one}" for one in flat.growth(samples) if flags.soak >= 60]
            else:
                kill_all_kinds(run, flags.kills, rng)
            run.end()
        except Broken as error:
            faults.append(str(error))
        finally:
            for part in run.all():
                part.kill()
        wrong, report = judge.judge(judge.read_ledgers(folder), is_ring=flags.soak > 0)
    faults += wrong
    starts = ", ".join(f"{sum(part.starts for part in run.parts[role])} of {role}s" for role in ROLES)
    print(f"starts: {starts}")
    print(judge.sentence(report, is_ring=flags.soak > 0))
    for fault in faults:
        print(f"FAILED: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
