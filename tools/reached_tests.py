#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names the C++ tests that what changed since a commit can reach.

usage: reached_tests.py [--base=COMMIT] [--tag=TAG] [--limit=N] TARGET ...

Prints labels, one a line, and says why on standard error. TARGETs are patterns:
the fixed choice. It is taken whole where there is no base, where nothing
changed since, or where what changed is no part of a package's own build
(.bazelrc, WORKSPACE, .bzl, tools/). Otherwise the answer is every test that
depends on a changed file; more than N of them (default 60) are cut down to
those of the changed packages and of the fixed choice, and if these are still
more than N, to the fixed choice. With --tag only tests
that have it. No line at all: the change reaches no test.
RILL_BAZEL=PATH names Bazel.
"""
import argparse
import os
import re
import subprocess
import sys

# Files that no test is made of.
_PROSE = re.compile(r"(^|/)(README|CHANGELOG|CONTRIBUTING|LICENSE)[^/]*$|\.md$")
# Files that change how everything is built or looked at.
_WHOLE = re.compile(r"^(\.bazelrc|WORKSPACE|MODULE\.bazel|BUILD|\.ci/)|^tools/(?!.*_test\.(py|sh)$)|\.bzl$")
# What Bazel says of a TARGET that is not there.
_NO_TARGET = re.compile(r"no targets found beneath '[^']*'|no such target '//[^']*_test'")
# Workspaces of their own.
_OUTSIDE = re.compile(r"^testing/consumer/")
_NOT_UNDER_SANITIZERS = r"[\[ ](benchmark|no_sanitizer|manual|requires-flight|requires-gpu|requires-mpi|requires-mujoco|requires-onnx|requires-torch)[,\]]"


def say(sentence):
    print("reached_tests: " + sentence, file=sys.stderr)


def git(*arguments):
    """The lines that git prints; None if it fails."""
    done = subprocess.run(("git",) + arguments, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else None


def changed_since(base):
    """Files that differ from where HEAD left `base`, also uncommitted; None if unknown."""
    fork = git("merge-base", base, "HEAD")
    if not fork:
        return None
    return sorted(set(git("diff", "--name-only", "--no-renames", fork[0]) +
                      git("ls-files", "--others", "--exclude-standard")))


def seed_of(path, is_package):
    """What to ask Bazel for, of a changed file; None if no package holds it."""
    folder = os.path.dirname(path)
    while folder and not is_package(folder):
        folder = os.path.dirname(folder)
    if not folder:
        return None
    rest = os.path.relpath(path, folder)
    # A file that is gone has its BUILD file changed too.
    return "//%s:%s" % (folder, "all" if rest == "BUILD" else rest)


def seeds_of(files, is_package):
    """Set of patterns that stand for `files`; None if they concern everything."""
    seeds = set()
    for path in files:
        if _OUTSIDE.match(path) or _PROSE.search(path):
            continue
        if _WHOLE.search(path):
            say("%s changed, which concerns everything" % path)
            return None
        seed = seed_of(path, is_package)
        if seed:
            seeds.add(seed)
    return seeds


def tests_among(expression, tag):
    """Query for the C++ tests of `expression` that a sanitizer runs."""
    tests = "kind('cc_test rule', %s)" % expression
    if tag:
        tests = r"attr(tags, '[\[ ]%s[,\]]', %s)" % (tag, tests)
    # Bazel refuses a test by name where what it is made for is off.
    return "(%s except attr(tags, '%s', %s) except attr(target_compatible_with, 'is off', %s))" % (
        tests, _NOT_UNDER_SANITIZERS, tests, tests)


def query(expression):
    """The labels of a bazel query, sorted."""
    # Asked for names that no BUILD file mentions, it answers for the others and
    # ends with 3.
    done = subprocess.run(
        (os.environ.get("RILL_BAZEL", "bazel"), "query", "--keep_going", "--noshow_progress",
         expression), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.stderr.write(done.stderr)
        raise SystemExit("reached_tests: bazel query ended with status %d, as shown" % done.returncode)
    missing = _NO_TARGET.search(done.stderr)
    if missing:
        raise SystemExit("reached_tests: %s: want patterns of targets that are there" % missing.group())
    return sorted(done.stdout.split())


def choose(files, fixed, tag, limit, ask, is_package):
    """Labels to test: of what `files` reach, or the fixed choice."""
    def among(expression):
        return ask(tests_among(expression, tag))

    patterns = " + ".join(fixed)
    seeds = seeds_of(files, is_package) if files else None
    if seeds is None:
        return among(patterns)
    if not seeds:
        return []
    reached = "rdeps(//..., %s)" % " + ".join('"%s"' % seed for seed in sorted(seeds))
    labels = among(reached)
    if len(labels) <= limit:
        say("%d files changed, %d tests reached" % (len(files), len(labels)))
        return labels
    packages = sorted({seed.split(":")[0] + ":all" for seed in seeds})
    cut = among("%s intersect (%s)" % (reached, " + ".join(packages + fixed)))
    say("%d files changed, %d tests reached, %d of them in the changed packages or the fixed choice"
        % (len(files), len(labels), len(cut)))
    if len(cut) <= limit:
        return cut
    say("more than %d: the fixed choice" % limit)
    return among(patterns)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", default="")
    parser.add_argument("--tag", default="")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("fixed", nargs="+", metavar="TARGET")
    args = parser.parse_args(arguments)
    files = changed_since(args.base) if args.base else None
    if not files:
        say("%s: the fixed choice" % (
            "no base" if not args.base else
            "%s is no ancestor here" % args.base if files is None else
            "nothing changed since %s" % args.base))
    for label in choose(files, args.fixed, args.tag, args.limit, query,
                        lambda folder: os.path.exists(os.path.join(folder, "BUILD"))):
        print(label)


if __name__ == "__main__":
    main(sys.argv[1:])
