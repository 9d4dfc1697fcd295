# SPDX-License-Identifier: Apache-2.0
"""What performance.py makes of what benchmarks and peer_speed print, and what
performance_chart.py draws of the page."""
import unittest
import xml.dom.minidom

import performance
import performance_chart

DENSE = performance.DENSE
GATHER = ("gather", DENSE, "Gather", "ByHand", "uniform")
SAMPLE = ("sample", DENSE, "Sample/rows:4#sample_us", "#by_hand_us", "")


class PerformanceTest(unittest.TestCase):

    def test_figures_are_medians_in_nanoseconds(self):
        turns = iter([5, 1, 4, 2, 3])

        def run(path, pattern, seconds):
            self.assertEqual((path, pattern), ("program", "ByHand|Gather|Sample/rows:4"))
            return {"Gather": {"ns": next(turns)}, "ByHand": {"ns": 0.5},
                    "Sample/rows:4": {"ns": 9, "sample_us": 7, "by_hand_us": 14}}

        times = performance.measure((GATHER, SAMPLE), {DENSE: "program"}, run)
        self.assertEqual(times, {(DENSE, "Gather", ""): 3, (DENSE, "ByHand", ""): 0.5,
                                 (DENSE, "Sample/rows:4", "sample_us"): 7000, (DENSE, "Sample/rows:4", "by_hand_us"): 14000})

    def test_benchmark_that_is_not_there_ends_the_run(self):
        with self.assertRaisesRegex(SystemExit, "has no benchmark"):
            performance.measure((GATHER,), {DENSE: "program"}, lambda path, pattern, seconds: {})

    def test_rows_have_ratios_where_there_are_two_figures(self):
        times = {(DENSE, "Gather", ""): 2000, (DENSE, "ByHand", ""): 500}
        self.assertEqual(list(performance.table((GATHER,), times, {"uniform": 30000.0}))[2],
                         "| gather | 2 us | 500 ns | 4.00 | 30 us | 15 |")
        self.assertEqual(list(performance.table((GATHER,), times, {}))[2],
                         "| gather | 2 us | 500 ns | 4.00 | - | - |")

    def test_times_of_torchrl_are_read(self):
        text = "uniform sample of 256, 1M        Rill      5.8   TorchRL     194.0     33.4 times\n"
        self.assertEqual(performance.torchrl_times(text), {"uniform sample of 256, 1M": 194000.0})


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class PerformanceChartTest(unittest.TestCase):
    page = read("docs/performance.md")

    def test_chart_is_the_one_of_the_page(self):
        self.assertEqual(read("docs/performance.svg"), performance_chart.chart(self.page),
                         "the tables have changed: run tools/performance --chart")

    def test_figures_are_those_of_the_table(self):
        rows = performance_chart.rows_of(
            "## What you get\n\n| operation | Rill | limit | Rill / limit | TorchRL | times |\n|---|---|---|---|---|---|\n" +
            "\n".join("| %s | 2 us | 1,500 ns | 9 | - | - |" % name for name in performance_chart.SHOWN) +
            "\n| another | 2 us | 3 us | 9 | - | - |\n\n| operation | Rill |\n")
        self.assertEqual([times for _, times in rows],
                         [{"rill": 2e-6, "limit": 1.5e-6}] * len(performance_chart.SHOWN))

    def test_row_that_is_drawn_is_one_that_is_measured(self):
        self.assertLessEqual(set(performance_chart.SHOWN), {operation[0] for operation in performance.OPERATIONS})

    def test_row_that_is_gone_is_named(self):
        for name in performance_chart.SHOWN:
            with self.assertRaisesRegex(SystemExit, "no row \"%s\"" % name):
                performance_chart.chart(self.page.replace("| %s |" % name, "| other |"))

    def test_chart_is_xml(self):
        root = xml.dom.minidom.parseString(performance_chart.chart(self.page)).documentElement
        self.assertEqual(len(root.getElementsByTagName("circle")), 1 + len(performance_chart.SHOWN))  # One in the legend.


if __name__ == "__main__":
    unittest.main()
