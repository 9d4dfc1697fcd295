# SPDX-License-Identifier: Apache-2.0
"""What performance.py makes of what benchmarks and peer_speed print."""
import unittest

import performance

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


if __name__ == "__main__":
    unittest.main()
