# SPDX-License-Identifier: Apache-2.0
"""The run as a job of MPI, in short: a rank is killed, which ends the job, and
the same command goes on.

usage: mpi_test.py RUN_RANKS MPIRUN PROGRAM
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

RUN_RANKS, MPIRUN, PROGRAM = sys.argv[1:]
RANKS = 4  # A learner, a shard, two collectors.
KILLS = int(os.environ.get("RILL_KILLS", 1))


def pids_of(run_dir):
    """Processes of the job by rank."""
    pids = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            environ = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # It has gone.
        ranks = [word.split("=")[1] for word in environ
                 if word.startswith(("OMPI_COMM_WORLD_RANK=", "PMI_RANK="))]
        if ranks and words[0] == PROGRAM and f"--run_dir={run_dir}" in words:
            pids[int(ranks[0])] = int(folder.name)
    return pids


class MpiTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_dir = pathlib.Path(folder.name, "run")

    def start(self, *flags):
        return subprocess.Popen(
            ["sh", RUN_RANKS, MPIRUN, str(RANKS), PROGRAM, f"--run_dir={self.run_dir}",
             "--shards=1", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def read_until(self, job, words):
        for line in job.stdout:
            if words in line:
                return line
        self.fail(f"the job ended before it said \"{words}\": {job.stderr.read()}")

    def test_killed_ranks_end_the_job_and_resume_goes_on(self):
        # No start is to end by itself, however many there are.
        endless = ["--solve_return=1000", "--max_updates=10000000"]
        reached, flags = 0, endless
        for kill in range(KILLS):
            job = self.start(*flags)
            if kill > 0:
                resumed = int(self.read_until(job, "goes on from update").split()[-1])
                self.assertGreaterEqual(resumed, reached)
            # What a line says is behind a checkpoint.
            reached = int(self.read_until(job, "updates ").split()[1])
            pids = pids_of(self.run_dir)
            self.assertEqual(sorted(pids), list(range(RANKS)))
            os.kill(pids[(kill + RANKS - 1) % RANKS], signal.SIGKILL)
            job.communicate()
            self.assertNotEqual(job.returncode, 0)
            flags = [*endless, "--resume"]

        out, _ = self.start().communicate()  # Without --resume.
        self.assertNotIn("serving", out)

        job = self.start(*flags, f"--max_updates={reached + 100}")
        out, err = job.communicate()
        self.assertEqual(job.returncode, 0, err)
        resumed = int(re.search(r"goes on from update (\d+)", out).group(1))
        self.assertGreaterEqual(resumed, reached)
        self.assertIn(f"after {max(resumed, reached + 100)} updates", out)
        rows = re.search(r"(\d+) rows acknowledged, (\d+) stored", out)
        acknowledged, stored = map(int, rows.groups())
        self.assertGreater(stored, acknowledged)  # Those from before the kill.

    def test_ranks_that_make_no_run_are_refused(self):
        job = self.start("--shards=2")
        _, err = job.communicate()
        self.assertNotEqual(job.returncode, 0)
        self.assertIn("--shards: got 2 of 4 ranks", err)
