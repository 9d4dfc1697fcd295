# SPDX-License-Identifier: Apache-2.0
"""usage: own_network_test.py OWN_NETWORK"""
import subprocess
import sys
import unittest

OWN_NETWORK = sys.argv[1]
SERVE_AND_CALL = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).sendall(b"called")
print(server.accept()[0].recv(6).decode())
print([line.split(":")[0].strip() for line in open("/proc/self/net/dev").readlines()[2:]])
"""


class OwnNetworkTest(unittest.TestCase):
    def run_in_it(self, *command):
        done = subprocess.run([sys.executable, OWN_NETWORK, *command], capture_output=True, text=True)
        if "not in a network namespace of its own" in done.stderr:
            self.skipTest(done.stderr)
        return done

    def test_programs_have_the_loopback_and_nothing_else(self):
        done = self.run_in_it(sys.executable, "-c", SERVE_AND_CALL)
        self.assertEqual(done.stdout, "called\n['lo']\n", done.stderr)

    def test_the_status_is_that_of_the_program(self):
        self.assertEqual(self.run_in_it("sh", "-c", "exit 7").returncode, 7)

    def test_within_one_it_changes_nothing(self):
        link = ["readlink", "/proc/self/ns/net"]
        both = self.run_in_it("sh", "-c", " ".join(link) + f"; {sys.executable} {OWN_NETWORK} " + " ".join(link))
        first, second = both.stdout.split()
        self.assertEqual(first, second)
