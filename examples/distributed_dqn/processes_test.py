# SPDX-License-Identifier: Apache-2.0
"""The run as processes over Arrow Flight, in short: a shard and a collector are
killed on the way, and it goes on.

usage: processes_test.py PROGRAM
"""
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]


class ProcessesTest(unittest.TestCase):
    def setUp(self):
        self.processes = []
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
        self.folder.cleanup()

    def start(self, role, **flags):
        words = [f"--{name}={value}" for name, value in flags.items()]
        process = subprocess.Popen([PROGRAM, f"--role={role}", *words],
                                   stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def serve(self, role, **flags):
        """The process and its address."""
        process = self.start(role, **flags)
        return process, process.stdout.readline().split()[-1]

    def shard(self, number, address=""):
        return self.serve("shard", number=number, collectors=2, shards="a,b", address=address,
                          checkpoint=pathlib.Path(self.folder.name, str(number)))

    def test_killed_programs_are_started_again_and_the_run_goes_on(self):
        shards = [self.shard(0), self.shard(1)]
        addresses = ",".join(address for _, address in shards)
        learner, address = self.serve("learner", shards=addresses, max_updates=2000)
        collectors = [self.start("collector", number=number, shards=addresses, learner=address)
                      for number in (0, 1)]
        lines = [learner.stdout.readline()]  # After 1,000 updates.
        self.assertIn("updates 1000", lines[0])
        shards[0][0].kill()
        shards[0][0].wait()
        collectors[1].kill()
        self.assertEqual(self.shard(0, shards[0][1])[1], shards[0][1])
        again = self.start("collector", number=1, shards=addresses, learner=address)
        lines += learner.stdout.readlines()
        self.assertEqual(learner.wait(), 0)
        self.assertIn("after 2000 updates", lines[-1])
        for collector in (collectors[0], again):
            collector.send_signal(signal.SIGTERM)
            self.assertIn("rows acknowledged", collector.stdout.read())
            self.assertEqual(collector.wait(), 0)

    def test_a_learner_that_is_stopped_has_not_ended(self):
        learner, _ = self.serve("learner", shards="grpc://127.0.0.1:1")
        learner.send_signal(signal.SIGTERM)
        self.assertIn("after 0 updates", learner.stdout.read())
        self.assertEqual(learner.wait(), 1)

    def test_a_wrong_role_is_named(self):
        done = subprocess.run([PROGRAM, "--role=actor"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn('got "actor", want shard, collector or learner', done.stderr)
