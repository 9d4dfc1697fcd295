# SPDX-License-Identifier: Apache-2.0
"""check_closure.py, on dependencies that are made up."""
import unittest

import check_closure

PAGE = """
| target | files | others | libraries |
|---|---|---|---|
| `@rill//storage:ring` | 2 | 1 | Abseil |
"""
LABELS = ["//storage:ring", "//storage:ring.cc", "//storage:ring.h", "//base:rng.cc", "//tools:cxx20",
          "@com_google_absl//absl/status:status.cc", "@bazel_tools//tools/def_parser:parser.cc"]


def problems(labels, packages=("base", "storage")):
    return check_closure.problems("//storage:ring", labels, PAGE, packages)


class CheckClosureTest(unittest.TestCase):
    def test_what_the_page_says_is_fine(self):
        self.assertEqual(problems(LABELS), [])
        self.assertEqual(problems(LABELS, ()), [])

    def test_names_of_bazel_7_are_the_same(self):
        seven = [label.replace("@com_google_absl//", "@@abseil-cpp~//") for label in LABELS]
        self.assertEqual(problems(["@@" + s if s.startswith("//") else s for s in seven]), [])

    def test_one_file_more_is_found(self):
        self.assertIn("of Rill: got 3, docs/build.md says at most 2",
                      problems(LABELS + ["//storage:more.cc"])[0])
        self.assertIn("of others: got 2, docs/build.md says at most 1",
                      problems(LABELS + ["@com_google_absl//absl/time:time.cc"])[0])

    def test_bound_far_above_is_found(self):
        page = PAGE.replace("| 2 |", "| 20 |")
        self.assertIn("got 2, docs/build.md says at most 20",
                      check_closure.problems("//storage:ring", LABELS, page, ())[0])

    def test_library_more_or_less_is_found(self):
        # Headers only: no file is compiled.
        self.assertIn("got Abseil, nlohmann/json", problems(LABELS + ["@nlohmann_json//:json"])[0])
        self.assertIn("docs/build.md says Abseil", problems([s for s in LABELS if "absl" not in s])[-1])

    def test_package_out_of_reach_is_found(self):
        self.assertIn("reaches //storage, want none but base", problems(LABELS, ("base",))[0])

    def test_target_without_a_row_is_refused(self):
        with self.assertRaises(SystemExit):
            check_closure.problems("//storage:other", LABELS, PAGE, ())
