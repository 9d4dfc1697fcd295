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

    def test_reverb_has_columns_where_it_ran(self):
        with_call = distributed_table.read_side("large\t0.002\t1000000\nsmall\t0.002\t500\ncall\t0.001\t47\n")
        turns = [(with_call, with_call, with_call, side(0.004))]
        _, names, large, small, call = distributed_table.table("Engine", turns)
        self.assertRegex(names, r"Rill +Reverb +to bare +to table +to Reverb$")
        self.assertRegex(large, r"large( +500 MB/s){3} +250 MB/s( +1\.00){2} +2\.00$")
        self.assertRegex(small, r"small( +2000\.0 us){3} +4000\.0 us( +1\.00){2} +0\.50$")
        self.assertRegex(call, r"call( +1000\.0 us){3} +-( +1\.00){2} +-$")

    def test_the_first_line_names_engine_and_machine(self):
        first = next(distributed_table.table("Engine", [(side(1), side(1), side(1))]))
        self.assertRegex(first, r"^Engine, .+, \d+ cores, Linux .+; medians of 1 turns$")

    def test_other_lines_are_left_out(self):
        self.assertEqual(distributed_table.read_side("a warning\nwith\ta\tb\tc\n"), ({}, {}))


if __name__ == "__main__":
    unittest.main()
