# SPDX-License-Identifier: Apache-2.0
"""The Slurm script with an srun that only writes down how it is called.

usage: slurm_test.py SCRIPT PROGRAM_MAIN
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv[1]
TEXT = pathlib.Path(SCRIPT).read_text()
FLAGS = re.findall(r"ABSL_FLAG\(\s*[\w:<>]+, (\w+),", pathlib.Path(sys.argv[2]).read_text())


class SlurmTest(unittest.TestCase):
    def run_script(self, *words, failures=0, **environ):
        """Its exit status, and the words of each srun, the first `failures` of which fail."""
        with tempfile.TemporaryDirectory() as folder:
            srun = pathlib.Path(folder, "srun")
            srun.write_text('#!/bin/sh\necho "$@" >>"$CALLS"\n[ "$(wc -l <"$CALLS")" -gt "$FAILURES" ]\n')
            srun.chmod(0o755)
            calls = pathlib.Path(folder, "calls")
            done = subprocess.run(["bash", SCRIPT, *words], capture_output=True, text=True, env=dict(
                os.environ, PATH=f"{folder}:{os.environ['PATH']}", CALLS=str(calls), FAILURES=str(failures), **environ))
            return done.returncode, calls.read_text().splitlines() if calls.exists() else []

    def test_bash_accepts_it(self):
        self.assertEqual(subprocess.run(["bash", "-n", SCRIPT]).returncode, 0)

    def test_the_run_begins_once_where_it_ends_in_order(self):
        status, calls = self.run_script("/opt/program", "/scratch/run", "--seed=3")
        self.assertEqual(status, 0)
        self.assertEqual(calls, ["--mpi=pmix --kill-on-bad-exit=1 /opt/program --run_dir=/scratch/run --resume "
                                 "--shards=2 --seed=3"])

    def test_a_step_that_dies_is_begun_again_with_the_same_command(self):
        status, calls = self.run_script("/opt/program", "/scratch/run", failures=2)
        self.assertEqual((status, len(calls), len(set(calls))), (0, 3, 1))

    def test_it_gives_up(self):
        status, calls = self.run_script("/opt/program", "/scratch/run", failures=9, RILL_ATTEMPTS="4")
        self.assertEqual((status, len(calls)), (1, 4))

    def test_without_a_folder_it_says_how_it_is_called(self):
        status, calls = self.run_script("/opt/program")
        self.assertEqual((status, calls), (2, []))

    def test_the_program_has_the_flags(self):
        used = re.findall(r" --(\w+)(?:=\S+)?", TEXT[TEXT.index('"$program" --'):TEXT.index('"$@" &&')])
        self.assertEqual(used, ["run_dir", "resume", "shards"])
        self.assertLessEqual(set(used), set(FLAGS))

    def test_the_ranks_are_a_learner_two_shards_and_four_collectors(self):
        self.assertIn("#SBATCH --ntasks=7\n", TEXT)
        self.assertIn("--shards=2", TEXT)
