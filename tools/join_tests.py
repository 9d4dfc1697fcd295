#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests as one source, so that what they share is compiled once.

usage: join_tests.py TEST.cc ... >JOINED.cc

What a test has lies in a namespace of its file's name there, so two tests may
have helpers of one name. Messages of the compiler and failures
name the tests' own lines.
"""
import os
import re
import sys

_OPENS = re.compile(r"^namespace \w[\w:]* \{$", re.M)
_CLOSES = re.compile(r"^\}  // namespace \w[\w:]*$", re.M)


def joined(path, text):
    """The text of the test at `path` as a part of a joined source."""
    name = os.path.splitext(os.path.basename(path))[0]
    opens, closes = len(_OPENS.findall(text)), len(_CLOSES.findall(text))
    if opens != 1 or closes != 1:
        sys.exit("%s: %d lines \"namespace NAME {\" and %d lines \"}  // namespace NAME\", not one of each; "
                 "a test of another shape is declared with `alone = True`" % (path, opens, closes))
    text = _OPENS.sub(r"\g<0> namespace %s {" % name, text)
    return '#line 1 "%s"\n%s\n' % (path, _CLOSES.sub(r"} \g<0>", text))


def main(paths):
    for path in paths:
        with open(path, encoding="utf-8") as f:
            sys.stdout.write(joined(path, f.read()))


if __name__ == "__main__":
    main(sys.argv[1:])
