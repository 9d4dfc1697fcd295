# SPDX-License-Identifier: Apache-2.0
"""What torch_peers.py makes of the times of both sides."""
import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import unittest
from unittest import mock

import torch_peers


def output(**of):
    return json.dumps({"benchmarks": [dict({"name": "BM_A", "cpu_time": 2.0, "time_unit": "us"}, **of)]})


# Stands for both benchmark programs: gives the benchmark that is asked for.
PROGRAM = """#!%s
import json, sys
name = sys.argv[1].split("^")[1].rstrip("$")
print(json.dumps({"benchmarks": [{"name": name, "cpu_time": 20000, "time_unit": "ns",
                                  "update_us": 500.0, "data_us": 10.0}]}))
""" % sys.executable


class TorchPeersTest(unittest.TestCase):

    def test_times_are_in_us_whatever_the_unit(self):
        self.assertEqual(torch_peers.benchmark_of(output(), "BM_A")["us"], 2)
        self.assertEqual(torch_peers.benchmark_of(output(time_unit="ns"), "BM_A")["us"], 0.002)
        self.assertEqual(torch_peers.benchmark_of(output(time_unit="ms"), "BM_A")["us"], 2000)

    def test_a_benchmark_that_failed_or_is_not_there_ends_the_run(self):
        with self.assertRaisesRegex(SystemExit, "BM_A: no buffer"):
            torch_peers.benchmark_of(output(error_occurred=True, error_message="no buffer"), "BM_A")
        with self.assertRaisesRegex(SystemExit, "want one benchmark BM_B, got 0"):
            torch_peers.benchmark_of(output(), "BM_B")

    def test_shares_are_of_medians_and_ratios_of_turns(self):
        # The machine slows down threefold, both sides alike.
        ours = [(100, 10), (200, 20), (300, 30)]
        theirs = [(400, 100), (800, 200), (1200, 300)]
        rill, torchrl, times = torch_peers.update_lines(ours, theirs)
        self.assertRegex(rill, r"Rill .* 200\.0 us .* 20\.0 us +10\.0 %$")
        self.assertRegex(torchrl, r"TorchRL .* 800\.0 us .* 200\.0 us +25\.0 %$")
        self.assertRegex(times, r"times +update +4\.00 +data part +10\.0$")

    def test_a_policy_is_compared_with_its_own_module(self):
        lines = torch_peers.policy_lines([[10, 30], [12, 33], [15, 35]], [[50, 60], [90, 100], [250, 260]])
        self.assertEqual([line.split()[-2] for line in lines], ["0.0", "2.5", "5.0", "0.0", "40.0", "200.0"])

    def test_without_torchrl_its_lines_are_left_out_with_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            with open(path, "w", encoding="utf-8") as file:
                file.write(PROGRAM)
            os.chmod(path, stat.S_IRWXU)
            out = io.StringIO()
            with contextlib.redirect_stdout(out), mock.patch.dict(sys.modules, torch=None):
                torch_peers.main(path, path, "--quick")
        lines = out.getvalue().splitlines()
        self.assertRegex(lines[0], "TorchRL: skipped: .*torch")
        self.assertEqual(sum("2.0 %" in line for line in lines), 2)
        self.assertEqual(sum("us   above it" in line for line in lines), 3)
        self.assertFalse([line for line in lines[1:] if "TorchRL" in line])


if __name__ == "__main__":
    unittest.main()
