# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/distributed.md are what the program prints.

usage: distributed_model_test.py DISTRIBUTED_MODEL_MAIN PAGE
"""
import re
import subprocess
import sys
import unittest

PROGRAM, PAGE = sys.argv[1:3]


def run(*flags):
    return subprocess.run([PROGRAM, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class DistributedModelTest(unittest.TestCase):

    def test_the_page_has_what_its_commands_print(self):
        with open(PAGE, encoding="utf-8") as f:
            page = f.read()
        # A command, and the table behind it.
        shown = re.findall(r"^benchmarks/distributed_model(.*)\n```\n\n((?:\|.*\n)+)", page, re.MULTILINE)
        self.assertEqual(len(shown), 2)
        for flags, table in shown:
            self.assertEqual(table, run(*flags.split()).stdout, flags)

    def test_a_number_that_is_none_is_named(self):
        done = run("--shards=0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("shards: got 0, want > 0", done.stderr)


if __name__ == "__main__":
    unittest.main()
