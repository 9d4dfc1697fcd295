# SPDX-License-Identifier: Apache-2.0
"""What test_summary.py counts, for each way that a test can end."""
import contextlib
import io
import json
import os
import tempfile
import unittest

import test_summary


class TestSummaryTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.events = []

    def add(self, label, status=None, cases=None, shard=1, attempt=1):
        """One test target; without a status it did not build."""
        if attempt == shard == 1:
            self.events.append({"id": {"targetConfigured": {"label": label}},
                                "configured": {"testSize": "SMALL"}})
        if cases is not None:
            path = os.path.join(self.folder, "%d.xml" % len(self.events))
            with open(path, "w", encoding="utf-8") as f:
                f.write(cases)
            self.events.append({
                "id": {"testResult": {"label": label, "run": 1, "shard": shard, "attempt": attempt}},
                "testResult": {"testActionOutput": [{"name": "test.xml", "uri": "file://" + path}]}})
        if status:
            self.events.append({"id": {"testSummary": {"label": label}},
                                "testSummary": {"overallStatus": status}})

    def counts(self, bazel_status=0, complete=True):
        path = os.path.join(self.folder, "bep.json")
        with open(path, "w", encoding="utf-8") as f:
            for event in self.events + [{"id": {"progress": {}}, "lastMessage": complete}]:
                f.write(json.dumps(event) + "\n")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            test_summary.main(["%d:%s" % (bazel_status, path)])
        self.errors = err.getvalue()
        return out.getvalue().strip()

    def test_cases_of_gtest_are_counted_one_by_one(self):
        self.add("//a", "FAILED", """<testsuites><testsuite>
            <testcase name="A" status="run" result="completed" classname="S"/>
            <testcase name="B" status="run" result="completed" classname="S"><failure/></testcase>
            <testcase name="C" status="run" result="skipped" classname="S"><skipped/></testcase>
            <testcase name="D" status="notrun" result="suppressed" classname="S"/>
            </testsuite></testsuites>""")
        self.assertEqual(self.counts(3), "1 1 2")
        self.assertIn("//a: S.B", self.errors)

    def test_target_without_cases_is_one(self):
        self.add("//a", "PASSED")
        self.add("//b", "PASSED", "")
        self.add("//c", "FAILED")
        self.assertEqual(self.counts(3), "2 1 0")

    def test_crash_after_good_cases_is_a_failure(self):
        self.add("//a", "FAILED", "<testsuite><testcase name='A' status='run'/></testsuite>")
        self.add("//b", "TIMEOUT", "<testsuite><testcase na")
        self.assertEqual(self.counts(3), "1 2 0")

    def test_target_that_did_not_build_is_a_failure(self):
        self.add("//a", "PASSED")
        self.add("//b")
        self.assertEqual(self.counts(1), "1 1 0")
        self.assertIn("//b: did not build", self.errors)

    def test_incompatible_target_is_skipped(self):
        self.add("//a", "PASSED")
        self.add("//b")
        self.events.append({"id": {"targetCompleted": {"label": "//b"}},
                            "aborted": {"reason": "SKIPPED"}})
        self.assertEqual(self.counts(), "1 0 1")

    def test_shards_add_up_and_the_last_attempt_counts(self):
        good = "<testsuite><testcase name='A' status='run'/></testsuite>"
        bad = "<testsuite><testcase name='A' status='run'><failure/></testcase></testsuite>"
        self.add("//a", None, good, shard=1)
        self.add("//a", None, bad, shard=2)
        self.add("//a", "FLAKY", good, shard=2, attempt=2)
        self.assertEqual(self.counts(), "2 0 0")

    def test_broken_run_is_a_failure_even_if_all_tests_passed(self):
        self.add("//a", "PASSED")
        self.assertEqual(self.counts(1), "1 1 0")
        self.assertEqual(self.counts(0, complete=False), "1 1 0")

    def test_missing_report_is_a_failure(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            test_summary.main(["2:" + os.path.join(self.folder, "none.json")])
        self.assertEqual(out.getvalue().strip(), "0 1 0")
