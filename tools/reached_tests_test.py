# SPDX-License-Identifier: Apache-2.0
"""What reached_tests.py asks Bazel for, for each kind of change."""
import contextlib
import io
import os
import subprocess
import tempfile
import unittest

import reached_tests

PACKAGES = ("base", "storage", "storage/list", "tools")
FIXED = ["//base/...", "//storage:ring_test"]


class ReachedTestsTest(unittest.TestCase):

    def choose(self, files, answers=(), tag="", limit=100):
        """The choice, where Bazel gives `answers` in turn; keeps the questions."""
        self.asked = []
        left = list(answers)

        def ask(expression):
            self.asked.append(expression)
            return left.pop(0)

        with contextlib.redirect_stderr(io.StringIO()) as err:
            chosen = reached_tests.choose(files, FIXED, tag, limit, ask, PACKAGES.__contains__)
        self.said = err.getvalue()
        return chosen

    def test_file_belongs_to_the_nearest_package(self):
        self.assertEqual(self.choose(["storage/list/a.h", "storage/testdata/x/y.bin"], [["//t"]]), ["//t"])
        self.assertIn('rdeps(//..., "//storage/list:a.h" + "//storage:testdata/x/y.bin")', self.asked[0])

    def test_build_file_stands_for_its_package(self):
        self.choose(["storage/BUILD"], [["//t"]])
        self.assertIn('"//storage:all"', self.asked[0])

    def test_without_a_known_change_it_is_the_fixed_choice(self):
        for files in (None, []):
            self.assertEqual(self.choose(files, [["//f"]]), ["//f"])
            self.assertIn("//base/... + //storage:ring_test", self.asked[0])
            self.assertNotIn("rdeps", self.asked[0])

    def test_what_concerns_everything_is_the_fixed_choice(self):
        for path in (".bazelrc", "WORKSPACE", "WORKSPACE.bzlmod", "MODULE.bazel", "BUILD", ".ci/run",
                     "tools/sanitize", "tools/pins.bzl", "storage/own.bzl", "tools/third_party/a.patch"):
            self.assertEqual(self.choose(["base/a.cc", path], [["//f"]]), ["//f"])
            self.assertNotIn("rdeps", self.asked[0])
            self.assertIn(path, self.said)

    def test_prose_and_outside_projects_reach_nothing(self):
        files = ["README.md", "docs/a.md", "storage/README.md", "testing/consumer/BUILD"]
        self.assertEqual(self.choose(files), [])
        self.assertEqual(self.asked, [])

    def test_many_are_cut_down_to_changed_packages_and_the_fixed_choice(self):
        self.assertEqual(self.choose(["storage/a.h"], [["//1", "//2", "//3"], ["//1"]], limit=2), ["//1"])
        self.assertIn("intersect (//storage:all + //base/... + //storage:ring_test)", self.asked[1])

    def test_a_change_of_too_many_packages_is_the_fixed_choice(self):
        answers = [["//1", "//2", "//3"], ["//1", "//2", "//3"], ["//f"]]
        self.assertEqual(self.choose(["storage/a.h"], answers, limit=2), ["//f"])
        self.assertNotIn("rdeps", self.asked[2])

    def test_tag_limits_the_answer(self):
        self.choose(["base/a.cc"], [[]], tag="threads")
        self.assertIn("threads", self.asked[0])

    def test_what_is_not_built_here_is_left_out(self):
        self.choose(["base/a.cc"], [[]])
        self.assertIn("except attr(target_compatible_with, 'is off', ", self.asked[0])

    def test_changes_are_counted_from_the_fork_and_with_what_is_not_committed(self):
        with tempfile.TemporaryDirectory() as folder:
            def run(command):
                subprocess.run(command, shell=True, cwd=folder, check=True, stdout=subprocess.DEVNULL)

            run("git init -q -b main . && git config user.name a && git config user.email a@b"
                " && touch old moved && git add . && git commit -qm one"
                " && git checkout -q -b work && git mv moved to && git commit -qm two"
                " && git checkout -q main && touch elsewhere && git add . && git commit -qm three"
                " && git checkout -q work && echo x >old && touch new")
            here = os.getcwd()
            os.chdir(folder)
            try:
                self.assertEqual(reached_tests.changed_since("main"), ["moved", "new", "old", "to"])
                self.assertIsNone(reached_tests.changed_since("no_such_commit"))
            finally:
                os.chdir(here)
