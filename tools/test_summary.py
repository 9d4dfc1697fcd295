#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the test cases of `bazel test` runs.

usage: test_summary.py STATUS:BEP_JSON ...

BEP_JSON is what --build_event_json_file wrote, STATUS what bazel ended with.
Prints "PASSED FAILED SKIPPED" on standard output and names what failed on
standard error. Cases come from each test's XML; a test without cases of its
own counts as one. Each of these counts as one failed case: a test target that
did not build, a test that failed outside its cases (crash, time limit), a run
that ended badly although no test failed (a target that is no test did not
build, or Bazel itself failed).
"""
import collections
import json
import os
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

GOOD = ("PASSED", "FLAKY")
# Bazel: all well; tests failed. Anything else is a failure of the run.
EXPECTED_STATUS = {0: "all passed", 3: "tests failed"}


def case_counts(path):
    """Counter of passed, failed, skipped and the failed names in a test's XML."""
    counts, failed = collections.Counter(), []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        if case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
            failed.append(name)
        elif (case.find("skipped") is not None or case.get("result") in ("skipped", "suppressed")
              or case.get("status") == "notrun"):
            counts["skipped"] += 1
        else:
            counts["passed"] += 1
    return counts, failed


class Run:
    """What one build event file says."""

    def __init__(self, path):
        self.tests = set()      # configured test targets
        self.status = {}        # label -> overall status
        self.xml = {}           # label -> {(run, shard): last attempt's XML}
        self.not_run = set()    # labels skipped as incompatible
        self.complete = False
        with open(path, encoding="utf-8") as f:
            for line in f:
                self._take(json.loads(line))

    def _take(self, event):
        self.complete = self.complete or event.get("lastMessage", False)
        eid = event["id"]
        if "targetConfigured" in eid and event.get("configured", {}).get("testSize"):
            self.tests.add(eid["targetConfigured"]["label"])
        if "testSummary" in eid and "testSummary" in event:
            self.status[eid["testSummary"]["label"]] = event["testSummary"].get("overallStatus")
        if "testResult" in eid and "testResult" in event:
            self._take_result(eid["testResult"], event["testResult"])
        if event.get("aborted", {}).get("reason") == "SKIPPED":
            self.not_run.add(eid.get("targetCompleted", {}).get("label"))

    def _take_result(self, eid, result):
        for output in result.get("testActionOutput", []):
            uri = urllib.parse.urlsplit(output.get("uri", ""))
            if output["name"] == "test.xml" and uri.scheme == "file":
                shards = self.xml.setdefault(eid["label"], {})
                # Attempts come in order: the last one is what counts.
                shards[eid.get("run"), eid.get("shard")] = urllib.parse.unquote(uri.path)

    def counts(self):
        """Counter over all tests, and a line for each failure."""
        total, problems = collections.Counter(), []
        for label in sorted(self.tests):
            if label in self.status:
                counts, lines = self._counts_of(label)
                total += counts
                problems += lines
            elif label in self.not_run:
                total["skipped"] += 1
            else:
                total["failed"] += 1
                problems.append("%s: did not build" % label)
        return total, problems

    def _counts_of(self, label):
        total, problems = collections.Counter(), []
        for path in self.xml.get(label, {}).values():
            try:
                counts, failed = case_counts(path) if os.path.getsize(path) else ({}, [])
            except (OSError, ElementTree.ParseError):
                continue  # cut off by a crash: the status below counts it
            total.update(counts)
            problems += ["%s: %s" % (label, name) for name in failed]
        good = self.status[label] in GOOD
        if not good and not total["failed"]:
            total["failed"] += 1
            problems.append("%s: %s" % (label, self.status[label]))
        if good and not sum(total.values()):
            total["passed"] += 1
        return total, problems


def main(arguments):
    total, problems = collections.Counter(), []
    for argument in arguments:
        status, path = argument.split(":", 1)
        run = Run(path) if os.path.exists(path) else None
        counts, lines = run.counts() if run else (collections.Counter(), [])
        cut_off = not run or not run.complete
        if not counts["failed"] and (cut_off or int(status) not in EXPECTED_STATUS):
            counts["failed"] += 1
            lines.append("bazel ended with status %s: see its messages above" % status)
        total += counts
        problems += lines
    for line in problems:
        print("failed: " + line, file=sys.stderr)
    print(total["passed"], total["failed"], total["skipped"])


if __name__ == "__main__":
    main(sys.argv[1:])
