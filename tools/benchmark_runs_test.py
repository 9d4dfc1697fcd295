# SPDX-License-Identifier: Apache-2.0
"""What benchmark_runs.py reads of what benchmarks print."""
import json
import unittest

import benchmark_runs


class BenchmarkRunsTest(unittest.TestCase):

    def test_times_are_in_nanoseconds_whatever_the_unit(self):
        text = json.dumps({"benchmarks": [
            {"name": "a", "real_time": 2, "time_unit": "us", "by_hand_us": 7},
            {"name": "b", "real_time": 3, "time_unit": "ns"}]})
        runs = benchmark_runs.runs_of(text)
        self.assertEqual({name: run["ns"] for name, run in runs.items()}, {"a": 2000, "b": 3})
        self.assertEqual(runs["a"]["by_hand_us"], 7)

    def test_filter_that_matches_nothing_has_no_runs(self):
        self.assertEqual(benchmark_runs.runs_of("Failed to match any benchmarks\n"), {})

    def test_benchmark_that_skips_with_an_error_ends_the_run(self):
        text = json.dumps({"benchmarks": [
            {"name": "a", "error_occurred": True, "error_message": "Create"}]})
        with self.assertRaisesRegex(SystemExit, "a failed: Create"):
            benchmark_runs.runs_of(text)

    def test_program_that_fails_ends_the_run(self):
        with self.assertRaisesRegex(SystemExit, "ended with 1"):
            benchmark_runs.run_program("/bin/false", "G", "1s")

    def test_words_have_the_largest_unit_that_fits(self):
        self.assertEqual([benchmark_runs.in_words(ns) for ns in (0.5, 1250, 2e6, 3e9)],
                         ["0.5 ns", "1.25 us", "2 ms", "3 s"])


if __name__ == "__main__":
    unittest.main()
