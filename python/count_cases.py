#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints "PASSED FAILED SKIPPED" of a file that run_unittest.py wrote; "0 1 0" where there is none."""
import sys
import xml.etree.ElementTree as ElementTree


def main(path):
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return "0 1 0"
    counts = [0, 0, 0]
    for case in cases:
        has = {child.tag for child in case}
        counts[1 if has & {"failure", "error"} else 2 if "skipped" in has else 0] += 1
    return "%d %d %d" % tuple(counts)


if __name__ == "__main__":
    print(main(sys.argv[1]))
