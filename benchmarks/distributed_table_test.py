# SPDX-License-Identifier: Apache-2.0
"""What distributed_table.py makes of the lines of both sides."""
import unittest

import distributed_table


def side(seconds, share=None):
    lines = "large\t%g\t1000000\nsmall\t%g\t500\n" % (seconds, seconds)
    return distributed_table.read_side(lines + ("" if share is None else "learner\t%g\n" % share))


class DistributedTableTest(unittest.TestCase):

    def test_ratios_are_of_turns_and_figures_are_medians(self):
        # The machine slows down tenfold, both sides alike.
        turns = [(side(t), side(1.6 * t), side(2 * t, share=t)) for t in (0.001, 0.002, 0.01)]
        _, _, large, small, learner = distributed_table.table("Engine", turns)
        self.assertRegex(large, r"large +500 MB/s +312 MB/s +250 MB/s +0\.50 +0\.80$")
        self.assertRegex(small, r"small +2000\.0 us +3200\.0 us +4000\.0 us +2\.00 +1\.25$")
        self.assertRegex(learner, r"learner: waits +0\.20 %$")

    def test_the_first_line_names_engine_and_machine(self):
        first = next(distributed_table.table("Engine", [(side(1), side(1), side(1))]))
        self.assertRegex(first, r"^Engine, .+, \d+ cores, Linux .+; medians of 1 turns$")

    def test_other_lines_are_left_out(self):
        self.assertEqual(distributed_table.read_side("a warning\nwith\ta\tb\tc\n"), ({}, {}))


if __name__ == "__main__":
    unittest.main()
