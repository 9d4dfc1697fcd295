# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/compare makes of programs that answer, that lack a case, and that end."""
import os
import re
import subprocess
import sys
import textwrap
import unittest
import xml.dom.minidom

import compare
from cases import GROUPS, Case
from chart import chart
from report import report

CASE = Case("sample 47B 1000 256", "a sample")


def program(us, more=""):
    """A participant that takes `us` for all."""
    text = textwrap.dedent("""
        import sys
        print("ready 1.0", flush=True)
        for line in sys.stdin:
            %s
            print("ready" if line.startswith("prepare") else "us %g", flush=True)
        """) % (more or "pass", us)
    return compare.Participant("with %g" % us, "%s -c '%s'" % (sys.executable, text.replace("'", '"')), 0)


def results_of(participants, found):
    return {"machine": "a core", "turns": 3, "seconds": 0.1, "probes": [{"copy GB/s": 10.0}],
            "participants": [{"name": one.name, "version": one.version, "missing": one.missing}
                             for one in participants],
            "groups": [{"title": "Samples", "cases": [{"title": CASE.title, "operation": CASE.operation, "frames": 0,
                                                       "us": found}]}]}


class CompareTest(unittest.TestCase):

    def setUp(self):
        self.participants = []

    def tearDown(self):
        for one in self.participants:
            one.stop()

    def measure(self, *participants):
        # Whatever cores this test may use.
        for one in participants:
            one.core = min(os.sched_getaffinity(0))
        self.participants = participants
        return compare.measure_case(CASE, participants, 3, 0.01)

    def test_each_turn_has_a_figure_of_each(self):
        self.assertEqual(self.measure(program(2), program(3)), {"with 2": [2, 2, 2], "with 3": [3, 3, 3]})

    def test_one_that_is_missing_is_named_and_the_others_are_measured(self):
        gone = compare.Participant("gone", "-:pip: no such version", 0)
        found = self.measure(program(2), gone)
        self.assertEqual(found, {"with 2": [2, 2, 2], "gone": "pip: no such version"})
        self.assertIn("**gone is missing:** pip: no such version", report(results_of(self.participants, found)))

    def test_one_that_ends_has_no_figure_and_is_begun_anew_for_the_next_case(self):
        fragile = program(3, more='if line.startswith("measure"): sys.exit(1)')
        self.assertEqual(self.measure(program(2), fragile)["with 3"], "it ended")
        self.assertEqual(fragile.ask("prepare again"), "ready")

    def test_one_that_does_not_answer_is_given_up(self):
        silent = program(3, more="import time; time.sleep(60)")
        silent.core = min(os.sched_getaffinity(0))
        self.participants = [silent]
        patience, compare.PATIENCE = compare.PATIENCE, 1
        try:
            self.assertEqual(silent.ask("prepare x"), "missing it took longer than 1 s")
        finally:
            compare.PATIENCE = patience

    def test_a_case_that_somebody_else_wins_is_shown(self):
        slow, fast = program(4), program(2)
        text = report(results_of((slow, fast), {"with 4": [4.0], "with 2": [2.0]}))
        self.assertIn("- Samples, a sample: with 2 takes 0.50 of with 4's time.", text)
        self.assertIn("Nowhere", report(results_of((fast, slow), {"with 2": [2.0], "with 4": [4.0]})))

    def test_a_cell_has_median_spread_and_ratio(self):
        text = report(results_of((program(2), program(3)), {"with 2": [1.9, 2.0, 2.1], "with 3": [30, 30, 30]}))
        self.assertIn("| a sample | 2 us ± 5 % | 30 us ± 0 %, **15 x** |", text)

    def test_the_chart_is_xml_with_a_dot_a_figure(self):
        found = {"with 2": [2.0], "with 3": [3.0], "gone": "it has none"}
        drawn = xml.dom.minidom.parseString(chart(results_of((program(2), program(3)), found)))
        dots = [dot for dot in drawn.getElementsByTagName("circle") if dot.getElementsByTagName("title")]
        self.assertEqual(len(dots), 2)

    def test_rill_answers_each_case(self):
        cases = [re.sub(r"\b\d{4,}\b", "1000", case.operation) for _, group in GROUPS for case in group]
        asked = "".join("prepare %s\nmeasure 0.0001\n" % case for case in cases)
        said = subprocess.run(["benchmarks/peers/compare_main"], input=asked, stdout=subprocess.PIPE, check=True,
                              text=True).stdout.splitlines()
        for case, ready, us in zip(cases, said[::2], said[1::2]):
            self.assertEqual(ready, "ready", case)
            self.assertRegex(us, r"^us [\d.e+-]+$", case)
        self.assertEqual(len(said), 2 * len(cases))


if __name__ == "__main__":
    unittest.main()
