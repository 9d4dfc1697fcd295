#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a target needs what docs/build.md says, and no more.

usage: check_closure.py TARGET DEPS_FILE PAGE [PACKAGE ...]

DEPS_FILE holds one label a line, as genquery writes it. PAGE has a row
"| `TARGET` | N | N | LIBRARY, LIBRARY |": at most so many files of this
repository and of others are compiled, and from which libraries. A bound is not
far above what is there. With PACKAGEs, only these are reached.
"""
import collections
import re
import sys

LABEL = re.compile(r"^@{0,2}(?P<repo>[^/@]*)//(?P<package>[^:]*):(?P<name>.*)$")
COMPILED = (".cc", ".c", ".cpp", ".cu")
# Of the build itself: nothing of them is linked.
TOOLS = re.compile(r"^(bazel_tools|bazel_skylib|local_config_\w+|platforms|rules_\w+|remote_\w+)\b")
# A repository, which bzlmod calls by its module, and how the page says it.
LIBRARIES = {"com_google_absl": "Abseil", "abseil-cpp": "Abseil", "eigen": "Eigen", "highway": "Highway",
             "nlohmann_json": "nlohmann/json", "random123": "Random123", "zlib": "zlib",
             "zstd": "Zstandard"}
# A bound may be so much above what is there.
SLACK, SLACK_PERCENT = 10, 10


def library(repo):
    """The page's word for a repository of others; its own where it has none."""
    name = [part for part in re.split(r"[~+]", repo) if part]
    return LIBRARIES.get(name[-1], LIBRARIES.get(name[0], name[-1]))


def closure(labels):
    """(files of this repository, of others, libraries, packages) in `labels`."""
    files, libraries, packages = collections.Counter(), set(), set()
    for label in labels:
        match = LABEL.match(label)
        if not match or TOOLS.match(match["repo"]):
            continue
        own = match["repo"] in ("", "rill")
        if own:
            packages.add(match["package"])
        else:
            libraries.add(library(match["repo"]))
        if match["name"].endswith(COMPILED):
            files["own" if own else "others"] += 1
    return files["own"], files["others"], libraries, packages


def row_of(page, target):
    """(own, others, libraries) that the page's row for `target` says."""
    row = re.search(r"^\| `@rill%s` \| (\d+) \| (\d+) \| ([^|]*) \|$" % re.escape(target), page, re.M)
    if not row:
        raise SystemExit("docs/build.md has no row \"| `@rill%s` | N | N | LIBRARIES |\"" % target)
    return int(row[1]), int(row[2]), set(row[3].split(", "))


def problems(target, labels, page, packages):
    """What is not as the page and the law say."""
    own, others, libraries, reached = closure(labels)
    max_own, max_others, want_libraries = row_of(page, target)
    found = []
    for what, got, bound in (("of Rill", own, max_own), ("of others", others, max_others)):
        if not got <= bound <= got + max(SLACK, got * SLACK_PERCENT // 100):
            found.append("files %s: got %d, docs/build.md says at most %d; does it need all of them?"
                         % (what, got, bound))
    if libraries != want_libraries:
        found.append("libraries: got %s, docs/build.md says %s"
                     % (", ".join(sorted(libraries)), ", ".join(sorted(want_libraries))))
    # Build settings are in tools and in what lies below it.
    reached = {p for p in reached if p != "tools" and not p.startswith("tools/")}
    for package in sorted(reached - set(packages)) if packages else []:
        found.append("reaches //%s, want none but %s; the way: bazel query 'somepath(%s, //%s:all)'"
                     % (package, " ".join(packages), target, package))
    return found


def main(target, deps_file, page, *packages):
    with open(deps_file, encoding="utf-8") as f:
        labels = f.read().splitlines()
    with open(page, encoding="utf-8") as f:
        found = problems(target, labels, f.read(), packages)
    for line in found:
        print("%s: %s" % (target, line))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
