#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks C++ files in small ways, one at a time, and asks their tests.

usage: mutate.py [--most=N] [--seed=N] [--tests=TARGET,...] [FILE ...]

A mutation that no test notices is printed as "survived": a test is missing, or
the code is. Without FILE: the files of mutate_files.txt, each with its tests
there. Run by tools/mutate, in a copy of the tree, with RILL_BAZEL.
"""
import argparse
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lint"))
import lint  # noqa: E402: strip_code.

# What is looked for in code without comments and strings, and what takes its
# place. Templates and streams have blanks on neither or strings on one side.
_SWAPS = [
    (r" (<) (?!<)", "<="), (r" (<=) ", "<"), (r" (>) (?!>)", ">="), (r" (>=) ", ">"),
    (r" (==) ", "!="), (r" (!=) ", "=="), (r" (&&) ", "||"), (r" (\|\|) ", "&&"),
    (r" (\+) ", "-"), (r" (-) ", "+"), (r" (\*) (?=\w)", "+"), (r" (\+=) ", "-="), (r" (-=) ", "+="),
    (r"\b(true)\b", "false"), (r"\b(false)\b", "true"), (r"(?<=[ (])(1)(?=[;,) ])", "2"),
    (r"(?<=[ (])(0)(?=[;,) ])", "1"), (r"\bif (\()(?!constexpr)", "(!"), (r"(\+\+)(?=\w)", "--"),
]
_SWAPS = [(re.compile(pattern), new) for pattern, new in _SWAPS]
# A call or an assignment on a line of its own, left out.
_STATEMENT = re.compile(r"^ +((?:[\w:\[\]]+(?:->|\.))*[\w:\[\]]+(?:\([^;{}]*\)| [-+|&]?= [^;{}]+);)$", re.M)
_NO_STATEMENT = re.compile(r"^(return|using|break|continue|else|goto|delete|static_assert|ASSERT|EXPECT)\b")


def mutations(text):
    """[(begin, end, replacement)] of C++ `text`, in its order."""
    code = lint.strip_code(text)
    # Macros and attributes are no code of a function.
    code = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*|\bABSL_\w+\([^()]*\)", lambda m: re.sub(r"[^\n]", " ", m.group()), code,
                  flags=re.M)
    found = set()
    for pattern, new in _SWAPS:
        for match in pattern.finditer(code):
            if new == "(!":
                end = _closing(code, match.start(1))
                if end is None or ";" in code[match.start(1):end]:
                    continue  # if (const auto x = f(); x)
                found.add((match.start(1), end + 1, "(!%s)" % text[match.start(1):end + 1]))
            else:
                found.add((match.start(1), match.end(1), new))
    for match in _STATEMENT.finditer(code):
        if not _NO_STATEMENT.match(match.group(1)):
            found.add((match.start(1), match.end(1), ";"))
    return sorted(found)


def chosen(text, most, seed):
    """At most `most` of the mutations of `text`: one of those that make the same of the same line."""
    groups = {}
    for begin, end, new in mutations(text):
        start = text.rfind("\n", 0, begin) + 1
        groups.setdefault((begin - start, new, text[start:].split("\n", 1)[0]), (begin, end, new))
    found = list(groups.values())
    return sorted(random.Random(seed).sample(found, min(most, len(found))))


def listed_files(text):
    """{file: [target]} of the lines "FILE TARGET ..." of `text`."""
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {row[0]: row[1:] for row in rows}


def _closing(code, at):
    depth = 0
    for i in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i
    return None


def shown(text, mutation):
    """The line and what a mutation makes of it."""
    begin, end, new = mutation
    old = " ".join(text[begin:end].split())
    line = text.count("\n", 0, begin) + 1
    whole = text[text.rfind("\n", 0, begin) + 1:].split("\n", 1)[0].strip()
    return "%d: %s  [%s -> %s]" % (line, whole, old, "nothing" if new == ";" else " ".join(new.split()))


def ask_tests(bazel, path, targets):
    """"caught", "survived", or "does not compile"; the first failing test ends it."""
    # A mutation may loop or allocate for ever. Warnings are no verdict of tests.
    command = [bazel, "test", "--noshow_progress", "--ui_event_filters=-info,-warning", "--test_output=summary",
               "--notest_keep_going", "--test_env=GTEST_FAIL_FAST=1", "--test_timeout=60,60,300,600",
               "--run_under=prlimit --data=8589934592", "--per_file_copt=^%s$@-w" % re.escape(path)]
    command += os.environ.get("RILL_BAZEL_FLAGS", "").split()
    status = subprocess.run(command + ["--"] + targets, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            check=False).returncode
    # Bazel's: 0 all passed, 3 tests failed, 4 none was found, 1 no build.
    return {0: "survived", 3: "caught", 1: "does not compile"}.get(status)


def try_file(bazel, path, targets, options):
    """{verdict: how many} of the mutations of a file, or None if it cannot be judged."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    verdict = ask_tests(bazel, path, targets)
    if verdict != "survived":
        print("mutate: %s: its tests do not pass as it is (%s)" % (", ".join(targets), verdict))
        return None
    counts = dict.fromkeys(("caught", "survived", "does not compile"), 0)
    try:
        for begin, end, new in chosen(text, options.most, options.seed):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text[:begin] + new + text[end:])
            verdict = ask_tests(bazel, path, targets)
            if verdict is None:
                print("mutate: bazel failed on %s" % ", ".join(targets))
                return None
            counts[verdict] += 1
            print("%s:%s: %s" % (path, shown(text, (begin, end, new)), verdict), flush=True)
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    return counts


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=20, help="mutations a file")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--tests", default="", help="targets; else those of mutate_files.txt or the file's package")
    parser.add_argument("files", nargs="*", metavar="FILE")
    options = parser.parse_args(argv[1:])
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutate_files.txt"), encoding="utf-8") as f:
        listed = listed_files(f.read())
    lines = []
    for path in options.files or listed:
        targets = options.tests.split(",") if options.tests else listed.get(path, ["//%s/..." % os.path.dirname(path)])
        counts = try_file(os.environ["RILL_BAZEL"], path, targets, options)
        if counts is None:
            return 1
        lines.append("%s: %s" % (path, ", ".join("%d %s" % (n, verdict) for verdict, n in counts.items())))
        print("mutate: " + lines[-1], flush=True)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
