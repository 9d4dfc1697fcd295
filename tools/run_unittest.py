#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a file of unittest cases as a Bazel test, with each case in its XML.

usage: run_unittest.py TEST_FILE [ARG ...]

Without the XML, Bazel would write one that knows a single case. The file's own
folder is on its import path in place of this one, whose folders torch/ and
mujoco/ are no packages, and sys.argv holds the ARGs.
"""
import os
import runpy
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree


class RecordingResult(unittest.TextTestResult):
    """Keeps what JUnit's XML wants to know of each case."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cases = ElementTree.Element("testsuite", name="unittest")

    def startTest(self, test):
        super().startTest(test)
        parts = test.id().rsplit(".", 1)
        self._case = ElementTree.SubElement(
            self.cases, "testcase", classname=parts[0].split(".", 1)[-1], name=parts[-1])
        self._start = time.monotonic()

    def stopTest(self, test):
        self._case.set("time", "%.3f" % (time.monotonic() - self._start))
        super().stopTest(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        ElementTree.SubElement(self._case, "failure", message=str(err[1])[:200])

    def addError(self, test, err):
        super().addError(test, err)
        ElementTree.SubElement(self._case, "error", message=str(err[1])[:200])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        ElementTree.SubElement(self._case, "skipped", message=reason)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            ElementTree.SubElement(self._case, "failure", message=str(err[1])[:200])


def main(argv):
    path = os.path.realpath(argv[0])
    sys.path[0] = os.path.dirname(path)
    sys.argv = argv
    namespace = runpy.run_path(argv[0], run_name="unittest_file")
    suite = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromTestCase(c) for c in namespace.values()
        if isinstance(c, type) and issubclass(c, unittest.TestCase))
    result = unittest.TextTestRunner(verbosity=2, resultclass=RecordingResult).run(suite)
    if "XML_OUTPUT_FILE" in os.environ:
        ElementTree.ElementTree(result.cases).write(os.environ["XML_OUTPUT_FILE"])
    if not result.testsRun:
        raise SystemExit("%s holds no test" % argv[0])
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
