# SPDX-License-Identifier: Apache-2.0
"""What compare_speed.py makes of the times that benchmarks print."""
import contextlib
import io
import json
import os
import stat
import tempfile
import unittest

import compare_speed


def output(**ns_of):
    return json.dumps({"benchmarks": [
        {"name": name, "real_time": ns, "time_unit": "ns"} for name, ns in ns_of.items()]})


class CompareSpeedTest(unittest.TestCase):

    def report(self, taken, figures=("gather",)):
        lines = []
        status = compare_speed.report(figures, taken, lines.append)
        self.lines = lines
        return status

    def test_ratio_is_of_turns_and_not_of_medians(self):
        # The machine slows down threefold, both sides alike.
        self.assertEqual(compare_speed.compare([100, 200, 300], [110, 220, 330])[1], 1.1)

    def test_slower_beyond_its_spread_fails(self):
        self.assertEqual(self.report({("gather", "G"): ([100] * 5, [106, 107, 108, 109, 110])}), 1)
        self.assertIn("above 1.05 beyond the spread: G", self.lines)
        self.assertEqual(self.lines[-1], "1 compared, 1 slower")

    def test_slower_within_its_spread_passes_and_is_named(self):
        self.assertEqual(self.report({("gather", "G"): ([100] * 5, [95, 100, 108, 120, 130])}), 0)
        self.assertIn("above 1.05, but not beyond the spread: G", self.lines)

    def test_one_slow_turn_does_not_fail(self):
        self.assertEqual(self.report({("gather", "G"): ([100] * 5, [100, 100, 100, 100, 900])}), 0)
        self.assertEqual(self.lines[-1], "1 compared, 0 slower")

    def test_what_one_side_lacks_is_said(self):
        taken = {("gather", "G"): ([], [5]), ("gather", "H"): ([5], []), ("gather", "I"): ([5], [5])}
        self.assertEqual(self.report(taken, ("gather", "extend")), 0)
        self.assertIn("only in new", self.lines[1])
        self.assertIn("only in base", self.lines[2])
        self.assertIn("in neither", self.lines[4])

    def test_nothing_to_compare_fails(self):
        self.assertEqual(self.report({}), 1)

    def test_sides_alternate_within_a_turn(self):
        order = []

        def run(path, pattern, seconds):
            order.append(path)
            return {"G": {"ns": 1}}

        target = compare_speed.FIGURES["gather"][0]
        taken = compare_speed.measure(["gather"], [{target: "old"}, {target: "new"}], False, run)
        self.assertEqual(order[:4], ["old", "new", "new", "old"])
        self.assertEqual(len(taken["gather", "G"][0]), compare_speed.TURNS)

    def test_quick_ends_within_its_budget(self):
        now = [0]

        def run(path, pattern, seconds):
            now[0] += 10  # A turn takes 20 s.
            return {"G": {"ns": 1}}

        target = compare_speed.FIGURES["gather"][0]
        taken = compare_speed.measure(
            ["gather"], [{target: "old"}, {target: "new"}], True, run, lambda: now[0])
        self.assertEqual(len(taken["gather", "G"][0]), 6)
        self.assertLessEqual(now[0], compare_speed.QUICK_BUDGET)

    def test_programs_are_run_with_the_figure_s_filter(self):
        with tempfile.TemporaryDirectory() as folder:
            def program(name, ns):
                path = os.path.join(folder, name)
                with open(path, "w") as script:
                    script.write("#!/bin/sh\necho \"$*\" >>%s.args\ncat <<'END'\n%s\nEND\n" % (path, output(G=ns)))
                os.chmod(path, stat.S_IRWXU)
                with open(path + ".list", "w") as listing:
                    listing.write("%s %s\n" % (compare_speed.FIGURES["gather"][0], path))
                return path

            base, new = program("base", 100), program("new", 50)
            allowed = os.sched_getaffinity(0)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                try:
                    status = compare_speed.main([base + ".list", new + ".list", "gather"])
                finally:
                    os.sched_setaffinity(0, allowed)
            with open(new + ".args") as args:
                self.assertIn("--benchmark_filter=^(Gather/0/[0-9]+/0)$", args.read())
        self.assertEqual(status, 0)
        self.assertIn("0.500", out.getvalue())

    def test_unknown_figure_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "got figure gathers, want one of uniform"):
            compare_speed.main(["--targets", "gathers"])

    def test_targets_are_those_of_the_figures_once(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(compare_speed.main(["--targets", "uniform", "prioritized"]), 0)
        self.assertEqual(out.getvalue(), "//replay:replay_buffer_benchmark\n")
