#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the project that a document shows: one file for each of its blocks.

usage: make_project.py DOCUMENT FOLDER [CONSUMER]

A block belongs to the file whose name ends the line above it, as in
"Bazel 7 reads `MODULE.bazel`:". FOLDER gets these files, word for word.
With CONSUMER, which is testing/consumer, its MODULE.bazel's overrides and their
patches too: what Bazel 7 wants on a machine that does not reach its registry.
"""
import os
import re
import shutil
import sys

BLOCK = re.compile(r"`([\w.]+)`:\n\n(?:<!--.*?-->\n)?```\w*\n(.*?)^```$", re.M | re.S)


def files_of(text):
    """{name: content}, in the order of the document."""
    found = {}
    for name, content in BLOCK.findall(text):
        if name in found:
            raise SystemExit("two blocks for %s" % name)
        found[name] = content
    return found


def overrides_of(module):
    """The archive_override calls of a MODULE.bazel, as text."""
    return re.findall(r"^archive_override\(.*?^\)\n", module, re.M | re.S)


def main(document, folder, consumer=None):
    with open(document, encoding="utf-8") as f:
        files = files_of(f.read())
    if consumer:
        with open(os.path.join(consumer, "MODULE.bazel"), encoding="utf-8") as f:
            files["MODULE.bazel"] += "\n" + "\n".join(overrides_of(f.read()))
        shutil.copytree(os.path.join(consumer, "patches"), os.path.join(folder, "patches"))
        # Without it Bazel 7 reads WORKSPACE as well.
        files["WORKSPACE.bzlmod"] = ""
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(content)
    print(" ".join(files))


if __name__ == "__main__":
    main(*sys.argv[1:])
