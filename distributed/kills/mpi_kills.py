#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a rank of a run over MPI, which ends the job, and starts the same job
again, which goes on from the last checkpoints. Judges what became of every row
(judge.py).

usage: mpi_kills.py [--kills=N] [--seed=N] RUN_RANKS MPIRUN PROGRAM
"""
import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import judge

PATIENCE = 120  # Seconds.
RANKS = ["learner-0", "shard-0", "shard-1", *(f"collector-{i}" for i in range(4))]


def lives(pid):
    """Nobody may look after a zombie."""
    try:
        return pathlib.Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Broken(Exception):
    """A job did not go on."""


class Job:
    def __init__(self, flags, directory, start):
        self.directory, self.start = directory, start
        self.process = subprocess.Popen(
            ["sh", flags.run_ranks, flags.mpirun, str(len(RANKS)), flags.program,
             f"--directory={directory}", f"--start={start}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def lines(self, rank):
        try:
            return judge.parse((self.directory / f"{rank}-{self.start}").read_text())
        except FileNotFoundError:
            return []

    def pids(self):
        return [line.numbers[0] for rank in RANKS for line in self.lines(rank)[:1]]

    def wait_for(self, what, is_there):
        deadline = time.monotonic() + PATIENCE
        while not is_there():
            if self.process.poll() is not None:
                raise Broken(f"job {self.start} ended before {what}: {self.process.stdout.read().decode()}")
            if time.monotonic() > deadline:
                raise Broken(f"job {self.start}: {what} did not come")
            time.sleep(0.02)

    def await_progress(self):
        """All collectors have rows acknowledged, and the learner has batches."""
        self.wait_for("its first batch", lambda: any(line.word == "batches" for line in self.lines("learner-0")))
        for rank in RANKS[3:]:
            self.wait_for(f"the first row of {rank}", lambda rank=rank: any(
                line.word == "rows" and line.numbers[0] > 0 for line in self.lines(rank)))

    def kill(self, rng):
        """Kills a rank; the job is gone when this returns."""
        pids = self.pids()
        os.kill(rng.choice(pids), signal.SIGKILL)
        try:
            self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Broken(f"job {self.start} goes on {PATIENCE} s behind a kill") from None
        if self.process.returncode == 0:
            raise Broken(f"job {self.start} ended in order, though a rank of it was killed")
        deadline = time.monotonic() + PATIENCE
        while any(map(lives, self.pids())):
            if time.monotonic() > deadline:
                raise Broken(f"ranks of job {self.start} are still there {PATIENCE} s behind its end")
            time.sleep(0.01)

    def end(self):
        for role in ("collector", "learner", "shard"):
            (self.directory / f"stop-{role}").touch()
            for rank in RANKS:
                if rank.startswith(role):
                    self.wait_for(f"the end of {rank}", lambda rank=rank: self.lines(rank)[-1].word == "end")
        out, _ = self.process.communicate(timeout=PATIENCE)
        if self.process.returncode != 0:
            raise Broken(f"the last job: {out.decode()}")

    def clear(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of the kills")
    parser.add_argument("run_ranks")
    parser.add_argument("mpirun")
    parser.add_argument("program")
    flags = parser.parse_args()
    print(f"seed {flags.seed}", flush=True)
    rng = random.Random(flags.seed)
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        job = None
        try:
            for start in range(flags.kills):
                job = Job(flags, pathlib.Path(folder), start)
                # Else the ranks are not all there yet.
                if start == 0 or rng.random() < 0.8:
                    job.await_progress()
                job.wait_for("its first rank", job.pids)
                time.sleep(rng.random() * 2)
                job.kill(rng)
                if (start + 1) % 10 == 0:
                    print(f"{start + 1} of {flags.kills} kills", flush=True)
            job = Job(flags, pathlib.Path(folder), flags.kills)
            job.await_progress()
            job.end()
        except Broken as error:
            faults.append(str(error))
        finally:
            if job is not None:
                job.clear()
        wrong, report = judge.judge(judge.read_ledgers(folder))
    faults += wrong
    print(judge.sentence(report))
    for fault in faults:
        print(f"FAILED: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
