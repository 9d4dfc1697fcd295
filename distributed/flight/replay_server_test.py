# SPDX-License-Identifier: Apache-2.0
"""The server's program and the client for Python, as a person runs them.

usage: replay_server_test.py SERVER   (the program)
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

# Before Debian's NumPy, which is too old for pyarrow.
sys.path[:0] = filter(None, [os.environ.get("RILL_PYARROW_PATH")])
try:
    import numpy as np
    import pyarrow as pa
except ImportError:
    pa = None
else:
    from replay_client import ReplayClient

SERVER = sys.argv[1]


class Program:
    """A server on a free port of the loopback."""

    def __init__(self, folder, *flags, table=None):
        config = pathlib.Path(folder, "tables.json")
        config.write_text(json.dumps({
            "checkpoint": {"directory": str(pathlib.Path(folder, "checkpoint"))},
            "tables": {"replay": table or {"capacity": 1000, "sampler": {"kind": "prioritized"}}}}))
        self.process = subprocess.Popen([SERVER, f"--config={config}", *flags],
                                        stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[-1]

    def end(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        self.process.stdout.close()
        return self.process.wait()


class ServerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def test_a_wrong_config_is_named(self):
        config = pathlib.Path(self.folder.name, "wrong.json")
        config.write_text('{"tables": {"a": {"capcity": 5}}}')
        done = subprocess.run([SERVER, f"--config={config}"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("tables.a.capacity: is missing", done.stderr)
        done = subprocess.run([SERVER], capture_output=True, text=True)
        self.assertIn("--config: is missing", done.stderr)

    def test_health_is_asked_for_with_the_token(self):
        token = pathlib.Path(self.folder.name, "token")
        token.write_text("secret\n")
        program = Program(self.folder.name, f"--token_file={token}")
        ask = [SERVER, f"--health={program.address}"]
        done = subprocess.run([*ask, f"--token_file={token}"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "SERVING, 0 checkpoints failed\n"))
        done = subprocess.run(ask, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("UNAUTHENTICATED", done.stderr)
        program.end()
        done = subprocess.run([*ask, f"--token_file={token}"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("UNAVAILABLE", done.stderr)

    @unittest.skipIf(pa is None, "no pyarrow")
    def test_python_writes_samples_and_updates(self):
        program = Program(self.folder.name)
        client = ReplayClient(program.address)
        client.write(steps(0, 20), lanes=1, steps=20)
        client.write(steps(20, 10), lanes=1, steps=10)
        self.assertEqual(client.stats()["size"], 30)
        batch = client.sample(64)
        self.assertEqual(batch.num_rows, 64)
        actions = batch.column("action").to_numpy()
        observations = batch.column("observation").to_numpy_ndarray()
        self.assertEqual(observations.shape, (64, 3))
        np.testing.assert_array_equal(observations[:, 0], actions)
        # All weight on step 7.
        for _ in range(20):
            batch = client.sample(64)
            actions = batch.column("action").to_numpy()
            self.assertEqual(client.update_priorities(batch, np.where(actions == 7, 1e6, 0)), 0)
        self.assertEqual(set(client.sample(64).column("action").to_pylist()), {7})
        # By these several servers are drawn from as one.
        mass = client.call("replay/sample", {"batch_size": 4})[0]
        self.assertAlmostEqual(mass["priority_sum"], 1e6 ** 0.6, delta=30)
        self.assertGreater(mass["priority_min"], 0)
        self.assertEqual(mass["beta"], 0.4)
        # A number that was used is carried out no second time.
        client.number -= 1
        client.write(steps(20, 10), lanes=1, steps=10)
        self.assertEqual(client.stats()["size"], 30)
        client.close()
        self.assertEqual(program.end(), 0)

    @unittest.skipIf(pa is None, "no pyarrow")
    def test_errors_of_the_server_are_exceptions_and_the_stream_goes_on(self):
        program = Program(self.folder.name)
        client = ReplayClient(program.address)
        with self.assertRaisesRegex(RuntimeError, "FAILED_PRECONDITION"):
            client.sample(4)
        client.write(steps(0, 5), lanes=1, steps=5)
        self.assertEqual(client.sample(4).num_rows, 4)
        other = ReplayClient(program.address, table="other")
        with self.assertRaisesRegex(RuntimeError, "want one of replay"):
            other.stats()
        client.close()
        other.close()
        self.assertEqual(program.end(), 0)

    @unittest.skipIf(pa is None, "no pyarrow")
    def test_a_signal_makes_a_checkpoint_that_a_kill_leaves(self):
        program = Program(self.folder.name)
        client = ReplayClient(program.address)
        client.write(steps(0, 5), lanes=1, steps=5)
        program.process.send_signal(signal.SIGUSR1)
        checkpoint = pathlib.Path(self.folder.name, "checkpoint", "rill.json")
        while not checkpoint.exists():
            os.sched_yield()
        self.assertEqual(program.end(signal.SIGKILL), -signal.SIGKILL)
        program = Program(self.folder.name)
        self.assertEqual(ReplayClient(program.address).stats()["size"], 5)
        self.assertEqual(program.end(), 0)

    @unittest.skipIf(pa is None, "no pyarrow")
    def test_a_token_is_asked_for(self):
        token = pathlib.Path(self.folder.name, "token")
        token.write_text("secret\n")
        program = Program(self.folder.name, f"--token_file={token}")
        with self.assertRaisesRegex(Exception, "(?i)unauthenticated"):
            ReplayClient(program.address).stats()
        with self.assertRaisesRegex(Exception, "(?i)unauthenticated"):
            ReplayClient(program.address, token="wrong").stats()
        self.assertEqual(ReplayClient(program.address, token="secret").stats()["size"], 0)
        self.assertEqual(program.end(), 0)


def steps(first, count):
    """Steps first, first + 1, ... whose leaves tell their number."""
    numbers = np.arange(first, first + count)
    observation = np.repeat(numbers[:, None], 3, axis=1).astype(np.float32)
    return pa.RecordBatch.from_arrays(
        [pa.FixedShapeTensorArray.from_numpy_ndarray(observation), pa.array(numbers)],
        names=["observation", "action"])
